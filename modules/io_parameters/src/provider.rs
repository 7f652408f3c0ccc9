//! Providers: scopes with the files that belong to them.

use crate::index::{Parameter, ParameterIndex};
use std::fmt;
use std::sync::Arc;
use vmfb_vm::{Error, Result};

/// Parameters under a scope. Clones are the same.
#[derive(Clone)]
pub struct ParameterProvider {
    scope: Arc<str>,
    index: Arc<ParameterIndex>,
}

impl ParameterProvider {
    /// Parameters that programs find under this scope; it may be empty.
    pub fn new(scope: impl Into<Arc<str>>, index: impl Into<Arc<ParameterIndex>>) -> Self {
        Self { scope: scope.into(), index: index.into() }
    }

    /// The scope.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The parameters.
    pub fn index(&self) -> &ParameterIndex {
        &self.index
    }
}

impl fmt::Debug for ParameterProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParameterProvider").field("scope", &self.scope).field("index", &self.index).finish()
    }
}

/// All providers of a module.
#[derive(Clone, Debug)]
pub(crate) struct Providers(Arc<[ParameterProvider]>);

/// The providers that have one scope.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    name: String,
    providers: Vec<&'a ParameterProvider>,
}

impl Providers {
    pub(crate) fn new(providers: Vec<ParameterProvider>) -> Self {
        Self(providers.into())
    }

    /// The providers with this scope.
    pub(crate) fn scope(&self, name: String) -> Result<Scope<'_>> {
        let providers: Vec<_> = self.0.iter().filter(|provider| *provider.scope == *name).collect();
        if !providers.is_empty() {
            return Ok(Scope { name, providers });
        }
        let mut known: Vec<String> = self.0.iter().map(|provider| format!("{:?}", provider.scope)).collect();
        known.dedup();
        let known = if known.is_empty() { "no parameter files are given".into() } else { format!("there are {}", known.join(", ")) };
        Err(Error::not_found(format!("no parameters have the scope {name:?}; {known}")))
    }
}

impl Scope<'_> {
    /// The parameter with this name, of the first file that has it.
    pub(crate) fn find(&self, key: &[u8]) -> Result<&Parameter> {
        self.providers.iter().find_map(|provider| provider.index.get(key)).ok_or_else(|| self.missing(key))
    }

    #[cold]
    fn missing(&self, key: &[u8]) -> Error {
        const SHOWN: usize = 8;
        const LONGEST: usize = 100;
        let files: Vec<&str> = self.providers.iter().map(|provider| provider.index.source()).collect();
        let wanted = String::from_utf8_lossy(key);
        let mut names: Vec<String> = self.providers.iter().flat_map(|provider| provider.index.names()).map(Into::into).collect();
        let count = names.len();
        // Those that begin like the one that is wanted stand first.
        names.sort_by_cached_key(|name| (std::cmp::Reverse(common_prefix(name, &wanted)), name.clone()));
        names.truncate(SHOWN);
        let names: Vec<String> = names.iter().map(|name| format!("{:?}", name.chars().take(LONGEST).collect::<String>())).collect();
        let there = match count {
            0 => "which has no parameters".to_owned(),
            _ if count > SHOWN => format!("among its {count} are {}", names.join(", ")),
            _ => format!("which has {}", names.join(", ")),
        };
        Error::not_found(format!("there is no parameter {wanted:?} in the scope {:?} of {}, {there}", self.name, files.join(", ")))
    }
}

/// Bytes that both begin with.
fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}
