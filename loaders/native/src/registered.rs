//! The loader for kernels that the host program registers under a library name or a format of its own.

use crate::closure::ClosureLibrary;
use crate::library::StaticLibrary;
use crate::system::denied;
use std::sync::Arc;
use vmfb_hal::{Executable, ExecutableLoader, ExecutableParameters, Load};
use vmfb_vm::{Error, NativeCode, Result};

/// Format of executables whose data is the name of a library.
const STATIC: &str = "static";

/// A library that the host program has.
#[derive(Clone, Debug)]
pub enum Registered {
    /// Closures. They are part of the host program, and safe: an engine that denies machine code of modules takes them too.
    Closures(ClosureLibrary),
    /// Machine code that trusts what modules pass it: an engine that denies machine code refuses it.
    Static(StaticLibrary),
}

impl From<ClosureLibrary> for Registered {
    fn from(library: ClosureLibrary) -> Self {
        Self::Closures(library)
    }
}

impl From<StaticLibrary> for Registered {
    fn from(library: StaticLibrary) -> Self {
        Self::Static(library)
    }
}

impl Registered {
    fn name(&self) -> &str {
        match self {
            Self::Closures(library) => library.name(),
            Self::Static(library) => library.name(),
        }
    }
}

/// Loads what was registered.
#[derive(Clone, Debug, Default)]
pub struct RegisteredLoader {
    named: Vec<Registered>,
    formats: Vec<(String, Registered)>,
}

impl RegisteredLoader {
    /// A loader without libraries yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a library for executables of the format `static` whose data is its name. Of two with one name the later
    /// one counts.
    #[must_use]
    pub fn with(mut self, library: impl Into<Registered>) -> Self {
        self.named.push(library.into());
        self
    }

    /// Registers a library for all executables of a format, whatever their data is.
    #[must_use]
    pub fn with_format(mut self, format: impl Into<String>, library: impl Into<Registered>) -> Self {
        self.formats.push((format.into(), library.into()));
        self
    }

    fn find(&self, parameters: &ExecutableParameters<'_>) -> Result<&Registered> {
        if let Some((_, library)) = self.formats.iter().rev().find(|(format, _)| format == parameters.format) {
            return Ok(library);
        }
        let data = parameters.data.to_vec()?;
        let name = data.strip_suffix(&[0]).unwrap_or(&data);
        self.named.iter().rev().find(|library| library.name().as_bytes() == name).ok_or_else(|| {
            let known: Vec<&str> = self.named.iter().map(Registered::name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::not_found(format!("no library {:?} is registered; there are: {known}", String::from_utf8_lossy(name)))
        })
    }
}

impl ExecutableLoader for RegisteredLoader {
    fn name(&self) -> &str {
        "registered"
    }

    fn query_support(&self, format: &str) -> bool {
        (format == STATIC && !self.named.is_empty()) || self.formats.iter().any(|(known, _)| known == format)
    }

    fn formats(&self) -> Vec<String> {
        let named = (!self.named.is_empty()).then(|| STATIC.to_owned());
        named.into_iter().chain(self.formats.iter().map(|(format, _)| format.clone())).collect()
    }

    fn try_load(&self, parameters: &ExecutableParameters<'_>) -> Result<Load> {
        let library = match self.find(parameters) {
            Ok(library) => library,
            Err(error) => return Ok(Load::NotMine(error)),
        };
        let executable: Arc<dyn Executable> = match library {
            Registered::Closures(library) => library.load(parameters.constants)?,
            Registered::Static(_) if parameters.engine.native_code() == NativeCode::Deny => return Err(denied(parameters.format)),
            Registered::Static(library) => library.load(parameters)?,
        };
        Ok(Load::Loaded(executable))
    }
}
