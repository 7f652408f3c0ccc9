//! The loader for system libraries: shared objects inside modules, opened by the system's own loader.

use crate::library;
use crate::placement::{Placed, Placement};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use vmfb_hal::{Executable, ExecutableLoader, ExecutableParameters, Load, processor};
use vmfb_vm::{Error, NativeCode, Result, Status};

/// Kind of shared objects that this system opens.
const KIND: &str = if cfg!(windows) {
    "dll"
} else if cfg!(target_vendor = "apple") {
    "dylib"
} else {
    "elf"
};

/// File name suffix of such objects.
const SUFFIX: &str = if cfg!(windows) {
    ".dll"
} else if cfg!(target_vendor = "apple") {
    ".dylib"
} else {
    ".so"
};

/// Loads system libraries for this operating system and architecture. Their initializers run, and they may use other
/// libraries: they are as trusted as the program itself.
#[derive(Clone, Debug, Default)]
pub struct SystemLibraryLoader {
    placement: Placement,
}

impl SystemLibraryLoader {
    /// A loader that keeps libraries in memory where it can.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with libraries put elsewhere.
    #[must_use]
    pub fn with_placement(self, placement: Placement) -> Self {
        Self { placement }
    }

    /// Where a library in memory does not open, as some systems execute nothing from there, a file may.
    fn open(&self, bytes: &[u8], parameters: &ExecutableParameters<'_>) -> Result<Arc<dyn Executable>> {
        let opened = open_in(bytes, &self.placement, parameters);
        match (opened, &self.placement) {
            (Err(error), Placement::Directory(directory)) => Err(advise(error, directory, "choose a directory")),
            (Err(error), Placement::Automatic) => {
                let directory = std::env::temp_dir();
                // What the second attempt says is about a file, and names more.
                open_in(bytes, &Placement::Directory(directory.clone()), parameters).map_err(|second| {
                    let error = if is_about_execution(&second) { second } else { error };
                    advise(error, &directory, "set TMPDIR to a directory")
                })
            }
            (opened, _) => opened,
        }
    }

    fn prefix() -> Option<String> {
        processor::architecture().map(|architecture| format!("system-{KIND}-{architecture}"))
    }
}

impl ExecutableLoader for SystemLibraryLoader {
    fn name(&self) -> &str {
        "system-library"
    }

    fn query_support(&self, format: &str) -> bool {
        Self::prefix().is_some_and(|prefix| format.starts_with(&prefix))
    }

    fn formats(&self) -> Vec<String> {
        Self::prefix().into_iter().collect()
    }

    fn try_load(&self, parameters: &ExecutableParameters<'_>) -> Result<Load> {
        if parameters.engine.native_code() == NativeCode::Deny {
            return Err(denied(parameters.format));
        }
        let bytes = match parameters.data.constant_bytes() {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(parameters.data.to_vec()?),
        };
        #[cfg(unix)]
        crate::inspect::check(&bytes).map_err(|reason| Error::precondition(format!("the system library is {reason}")))?;
        self.open(&bytes, parameters).map(Load::Loaded)
    }
}

/// Whether the system may have refused to execute what lies in a directory.
fn is_about_execution(error: &Error) -> bool {
    ["failed to map segment", "Operation not permitted", "Permission denied"].iter().any(|text| error.message().contains(text))
}

/// Adds what to do about a directory from which nothing is executed.
#[cold]
fn advise(error: Error, directory: &Path, action: &str) -> Error {
    if !is_about_execution(&error) {
        return error;
    }
    let message =
        format!("{}; perhaps files in {} may not be executed (noexec): {action} where they may", error.message(), directory.display());
    error.context_chain().fold(Error::new(error.status(), message), |error, text| error.context(text))
}

fn open_in(bytes: &[u8], placement: &Placement, parameters: &ExecutableParameters<'_>) -> Result<Arc<dyn Executable>> {
    let placed = Placed::new(bytes, placement, SUFFIX)
        .map_err(|error| Error::new(Status::Unavailable, format!("the system library could not be put into a file: {error}")))?;
    tracing::debug!(path = %placed.path().display(), bytes = bytes.len(), "opening a system library");
    library::open(placed, parameters)
}

/// The refusal of machine code.
#[cold]
pub(crate) fn denied(format: &str) -> Error {
    Error::new(
        Status::PermissionDenied,
        format!(
            "the executable format {format:?} is machine code, which this engine denies; compile the module for VMVX instead: \
             --iree-hal-target-backends=vmvx"
        ),
    )
}
