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
        let files: Vec<&str> = self.providers.iter().map(|provider| provider.index.source()).collect();
        Error::not_found(format!(
            "there is no parameter {:?} in the scope {:?} of {}",
            String::from_utf8_lossy(key),
            self.name,
            files.join(", ")
        ))
    }
}
