//! Executables: compiled kernels, however they were loaded, and the loaders that make them.

use std::sync::Arc;
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Engine, Error, Meter, RefObject, Result, Status};

/// Kernels that a loader made callable. Exports are numbered from 0.
pub trait Executable: Send + Sync {
    /// Number of exports.
    fn export_count(&self) -> usize;

    /// The export with this name. Executables without names have none.
    fn lookup(&self, name: &str) -> Option<usize>;

    /// What is known of an export; `None` past the end.
    fn export(&self, ordinal: usize) -> Option<Export<'_>>;

    /// Whether a kernel that writes a read-only binding fails with an error. Machine code does not: what it may write must be
    /// writable.
    fn checks_writes(&self) -> bool {
        false
    }

    /// Runs the workgroups of one dispatch, stopping at the first that fails.
    ///
    /// The caller has checked that binding ranges lie in their spans, and that the spans are writable unless the executable
    /// checks writes. The executable checks ordinal, counts and addresses.
    fn dispatch(&self, meter: &mut Meter, dispatch: &Dispatch<'_>) -> Result<()>;
}

/// What is known of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export<'a> {
    /// Name, where the executable kept it.
    pub name: Option<&'a str>,
    /// Number of 32-bit constants, where the executable declares it.
    pub constant_count: Option<usize>,
    /// Number of bindings, where the executable declares it.
    pub binding_count: Option<usize>,
    /// Bytes of scratch memory for each workgroup.
    pub local_memory: usize,
}

/// One dispatch: a grid of workgroups over bound buffers.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch<'a> {
    /// Ordinal of the export.
    pub export: usize,
    /// Number of workgroups along x, y, z.
    pub workgroup_count: [u32; 3],
    /// 32-bit constants.
    pub constants: &'a [u32],
    /// Buffers.
    pub bindings: &'a [Binding<'a>],
    /// Threads that may work on the grid, the calling one included.
    pub concurrency: usize,
}

/// A bound range of bytes; it lies in the span.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// The buffer's bytes.
    pub span: &'a Span,
    /// First bound byte.
    pub offset: usize,
    /// Number of bound bytes.
    pub length: usize,
}

/// What a loader is given.
#[derive(Clone, Copy, Debug)]
pub struct ExecutableParameters<'a> {
    /// The format, for example `embedded-elf-x86_64`.
    pub format: &'a str,
    /// The executable's bytes.
    pub data: &'a Span,
    /// Constants for the whole executable.
    pub constants: &'a [u32],
    /// The engine, for its configuration.
    pub engine: &'a Engine,
    /// Where the memory of the executable is charged for as long as it lives.
    pub account: &'a MemoryAccount,
}

/// What became of an attempt to load.
pub enum Load {
    /// The executable.
    Loaded(Arc<dyn Executable>),
    /// The bytes are not for this loader; the reason goes into the error if nobody takes them.
    NotMine(Error),
}

/// Makes executables of one kind of bytes.
pub trait ExecutableLoader: Send + Sync {
    /// Name for messages, for example `embedded-elf`.
    fn name(&self) -> &str;

    /// Whether executables of this format may be for this loader.
    fn query_support(&self, format: &str) -> bool;

    /// The formats that this loader takes on this machine, for messages.
    fn formats(&self) -> Vec<String>;

    /// Loads an executable, or says that it is for somebody else.
    fn try_load(&self, parameters: &ExecutableParameters<'_>) -> Result<Load>;
}

/// `!hal.executable`.
pub struct ExecutableReference(pub Arc<dyn Executable>);

impl RefObject for ExecutableReference {
    const TYPE_NAME: &'static str = "hal.executable";
}

/// Asks each loader that claims the format, in order. CANCELLED and NOT_FOUND mean "try the next"; the error of a search that
/// found nothing lists every loader's reason.
pub fn load_executable(loaders: &[Arc<dyn ExecutableLoader>], parameters: &ExecutableParameters<'_>) -> Result<Arc<dyn Executable>> {
    let mut reasons = Vec::new();
    for loader in loaders.iter().filter(|loader| loader.query_support(parameters.format)) {
        match loader.try_load(parameters) {
            Ok(Load::Loaded(executable)) => return Ok(executable),
            Ok(Load::NotMine(reason)) => reasons.push(format!("{}: {reason}", loader.name())),
            Err(error) if matches!(error.status(), Status::Cancelled | Status::NotFound) => {
                reasons.push(format!("{}: {error}", loader.name()));
            }
            Err(error) => {
                return Err(error.context(format!("loading the executable ({}) with the {} loader", parameters.format, loader.name())));
            }
        }
    }
    if !reasons.is_empty() {
        return Err(Error::not_found(format!("no loader took the executable ({}): {}", parameters.format, reasons.join("; "))));
    }
    let known: Vec<String> = loaders.iter().flat_map(|loader| loader.formats()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Error::not_found(format!("no loader takes the executable format {:?}; this runtime takes {known}", parameters.format)))
}
