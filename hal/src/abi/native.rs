//! A library of native kernels: checked once when it is loaded, called on one path.

use super::address_space::AddressSpace;
use super::grid::{BindingTable, Block, Kernel, Stop, dispatch_state, padded_constants, run};
use super::layout::{PointerWidth, Version};
use super::library::{
    ExportEntry, ImportSymbol, LOCAL_MEMORY_PAGE, LibraryTables, MAX_BINDINGS, MAX_CONSTANTS, Need, Sanitizer, WorkgroupOrder,
    declared_version, read_library,
};
use super::state::{DispatchState, Environment, HostKernel, HostQuery, WorkgroupState};
use super::threads::{self, run_on_threads};
use crate::{Dispatch, Executable, Export, Pace, Workers, workgroups};
use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::time::Instant;
use vmfb_memory::{BASE_ALIGNMENT, Span};
use vmfb_vm::{Engine, Error, KERNEL_STACK_SIZE, Meter, Result, Status};

/// How code of a library is called.
///
/// # Safety
/// An implementation makes exactly the call that each function describes, in one fixed calling convention.
pub unsafe trait CallingConvention: 'static {
    /// Calls the query function at an address.
    ///
    /// # Safety
    /// The address is that of a query function of this convention, and the environment is alive.
    unsafe fn query(function: usize, max_version: u32, environment: *const Environment) -> *const c_void;

    /// Calls the kernel at an address for one workgroup.
    ///
    /// # Safety
    /// The address is that of a kernel of this convention, and the states are what it needs.
    unsafe fn workgroup(
        function: usize,
        environment: *const Environment,
        dispatch: *const DispatchState,
        workgroup: *const WorkgroupState,
    ) -> i32;

    /// A function of this convention that takes the four arguments of an import thunk and returns 1: no import is ever there.
    fn refusing_thunk() -> *const c_void;
}

/// The C calling convention of this process.
#[derive(Clone, Copy, Debug)]
pub struct HostConvention;

// SAFETY: each function makes the one call that it describes, as `extern "C"`.
unsafe impl CallingConvention for HostConvention {
    unsafe fn query(function: usize, max_version: u32, environment: *const Environment) -> *const c_void {
        // SAFETY: the caller vouches that this is the address of such a function; function pointers have the size of `usize`.
        let function: HostQuery = unsafe { std::mem::transmute(ptr::with_exposed_provenance::<c_void>(function)) };
        // SAFETY: as above.
        unsafe { function(max_version, environment) }
    }

    #[inline]
    unsafe fn workgroup(
        function: usize,
        environment: *const Environment,
        dispatch: *const DispatchState,
        workgroup: *const WorkgroupState,
    ) -> i32 {
        // SAFETY: the caller vouches that this is the address of such a function; function pointers have the size of `usize`.
        let function: HostKernel = unsafe { std::mem::transmute(ptr::with_exposed_provenance::<c_void>(function)) };
        // SAFETY: as above.
        unsafe { function(environment, dispatch, workgroup) }
    }

    fn refusing_thunk() -> *const c_void {
        extern "C" fn refuse(_: *const c_void, _: *const c_void, _: *const c_void, _: *const c_void) -> i32 {
            1
        }
        refuse as *const c_void
    }
}

/// A library of native kernels.
pub struct NativeLibrary<C> {
    name: String,
    version: Version,
    exports: Box<[NativeExport]>,
    by_name: HashMap<Box<str>, usize>,
    environment: Environment,
    /// Threads that dispatches may be spread over.
    workers: Option<Arc<Workers>>,
    /// Bytes of stack that kernels find.
    stack_size: usize,
    /// What the environment points at.
    _constants: Vec<u32>,
    _imports: Vec<usize>,
    /// Keeps the code mapped; dropped last.
    _code: Box<dyn Any + Send + Sync>,
    convention: PhantomData<fn() -> C>,
}

// SAFETY: the raw pointers in the environment point at vectors that this value owns and nobody changes after loading; the
// rest is plain data or `Send + Sync` itself.
unsafe impl<C> Send for NativeLibrary<C> {}
// SAFETY: as above. That kernels may run on several threads at once is part of the contract of loading.
unsafe impl<C> Sync for NativeLibrary<C> {}

struct NativeExport {
    function: usize,
    name: Option<Box<str>>,
    constant_count: Option<u8>,
    binding_count: Option<u8>,
    local_memory: u32,
    order: WorkgroupOrder,
    pace: Pace,
}

impl<C: CallingConvention> NativeLibrary<C> {
    /// Asks the query function at an address for its tables, newest version first, and checks all of them.
    ///
    /// # Safety
    /// `query` is the address of a library query function of the convention `C`, and it and the kernels that its tables name
    /// keep to the ABI as far as `space` cannot check: they may be called, on any thread, as long as `code` is alive, with
    /// the bindings and constants that their attributes declare.
    pub unsafe fn load(query: usize, space: &dyn AddressSpace, code: Box<dyn Any + Send + Sync>, constants: &[u32]) -> Result<Self> {
        let environment = Environment::new(*crate::processor::words());
        let mut refused = Vec::new();
        for version in Version::NEWEST_FIRST {
            // SAFETY: by the contract of this function.
            let library = unsafe { C::query(query, version.number(), &raw const environment) };
            if library.is_null() {
                continue;
            }
            let library = library.expose_provenance() as u64;
            // A library written by hand may answer to any number that is not below its own.
            let declared = declared_version(space, PointerWidth::HOST, library)?;
            if declared != version.number() {
                refused.push(declared);
                continue;
            }
            let tables = read_library(space, PointerWidth::HOST, library, version)?;
            // SAFETY: by the contract of this function.
            return unsafe { Self::from_tables(tables, code, constants) };
        }
        let asked = "6, 5, 4 and 3";
        Err(Error::precondition(match refused.first() {
            None => format!("the executable library supports none of the ABI versions {asked} of this runtime"),
            Some(declared) => format!("the executable library declares ABI version {declared}; this runtime takes {asked}"),
        }))
    }

    /// A library from tables that were read or made otherwise.
    ///
    /// # Safety
    /// As for [`NativeLibrary::load`], of the functions in the tables.
    pub unsafe fn from_tables(tables: LibraryTables, code: Box<dyn Any + Send + Sync>, constants: &[u32]) -> Result<Self> {
        if tables.sanitizer != Sanitizer::None {
            return Err(Error::new(
                Status::Unavailable,
                format!("the executable library was built with a sanitizer ({:?}), whose runtime is not here", tables.sanitizer),
            ));
        }
        check_imports(&tables.imports)?;
        if tables.constant_count as usize != constants.len() {
            return Err(Error::precondition(format!(
                "the executable library wants {} executable constants, {} were given",
                tables.constant_count,
                constants.len()
            )));
        }
        let constants = constants.to_vec();
        let imports = vec![0usize; tables.imports.len()];
        let mut environment = Environment::new(*crate::processor::words());
        environment.constants = constants.as_ptr();
        environment.import_thunk = C::refusing_thunk();
        environment.import_functions = imports.as_ptr().cast();
        environment.import_contexts = imports.as_ptr().cast();
        let mut by_name = HashMap::new();
        let mut exports = Vec::with_capacity(tables.exports.len());
        for (ordinal, entry) in tables.exports.into_iter().enumerate() {
            let export = NativeExport::new(entry)?;
            if let Some(name) = &export.name {
                by_name.entry(name.clone()).or_insert(ordinal);
            }
            exports.push(export);
        }
        Ok(Self {
            name: tables.name,
            version: tables.version,
            exports: exports.into(),
            by_name,
            environment,
            workers: None,
            stack_size: KERNEL_STACK_SIZE,
            _constants: constants,
            _imports: imports,
            _code: code,
            convention: PhantomData,
        })
    }
}

impl<C> NativeLibrary<C> {
    /// Spreads long dispatches over the threads of a pool.
    #[must_use]
    pub fn with_workers(mut self, workers: Option<Arc<Workers>>) -> Self {
        self.workers = workers;
        self
    }

    /// Spreads long dispatches over the threads of an engine, and gives kernels the stack that it is configured to.
    #[must_use]
    pub fn for_engine(mut self, engine: &Engine) -> Self {
        self.workers = Workers::of(engine);
        self.stack_size = engine.kernel_stack_size();
        self
    }

    /// Name of the library, from its header.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Version of the ABI.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How messages call an export.
    fn describe(&self, ordinal: usize) -> String {
        match self.exports.get(ordinal).and_then(|export| export.name.as_deref()) {
            Some(name) => format!("export {ordinal} ({name}) of {}", self.name),
            None => format!("export {ordinal} of {}", self.name),
        }
    }

    #[cold]
    fn no_export(&self, ordinal: usize) -> Error {
        Error::out_of_range(format!("export {ordinal} does not exist; {} has {} exports", self.name, self.exports.len()))
    }

    #[cold]
    fn wrong_count(&self, ordinal: usize, what: &str, expected: usize, given: usize) -> Error {
        Error::invalid(format!("{} takes {expected} {what}, {given} were given", self.describe(ordinal)))
    }

    #[cold]
    fn over_limit(&self, ordinal: usize, what: &str, limit: usize, given: usize) -> Error {
        Error::out_of_range(format!("{}: {given} {what}; at most {limit} are possible", self.describe(ordinal)))
    }

    #[cold]
    fn stopped(&self, ordinal: usize, stop: Stop) -> Error {
        match stop {
            Stop::Meter(error) => error.context(format!("running {}", self.describe(ordinal))),
            Stop::Failed { workgroup: [x, y, z], code } => {
                Error::internal(format!("workgroup ({x}, {y}, {z}) of {} failed with the code {code}", self.describe(ordinal)))
            }
        }
    }

    /// Checks the counts of a dispatch and returns its export.
    #[inline]
    fn check(&self, dispatch: &Dispatch<'_>) -> Result<&NativeExport> {
        let ordinal = dispatch.export;
        let Some(export) = self.exports.get(ordinal) else { return Err(self.no_export(ordinal)) };
        let (constants, bindings) = (dispatch.constants.len(), dispatch.bindings.len());
        match export.constant_count {
            Some(expected) if usize::from(expected) != constants => {
                return Err(self.wrong_count(ordinal, "constants", expected.into(), constants));
            }
            None if constants > MAX_CONSTANTS => return Err(self.over_limit(ordinal, "constants", MAX_CONSTANTS, constants)),
            _ => {}
        }
        match export.binding_count {
            Some(expected) if usize::from(expected) != bindings => {
                return Err(self.wrong_count(ordinal, "bindings", expected.into(), bindings));
            }
            None if bindings > MAX_BINDINGS => return Err(self.over_limit(ordinal, "bindings", MAX_BINDINGS, bindings)),
            _ => {}
        }
        let workgroups_z = dispatch.workgroup_count[2];
        if workgroups_z > u32::from(u16::MAX) {
            return Err(self.over_limit(ordinal, "workgroups along z", u16::MAX.into(), workgroups_z as usize));
        }
        Ok(export)
    }
}

impl<C: CallingConvention> Executable for NativeLibrary<C> {
    fn export_count(&self) -> usize {
        self.exports.len()
    }

    fn lookup(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    fn export(&self, ordinal: usize) -> Option<Export<'_>> {
        self.exports.get(ordinal).map(|export| Export {
            name: export.name.as_deref(),
            constant_count: export.constant_count.map(usize::from),
            binding_count: export.binding_count.map(usize::from),
            local_memory: export.local_memory as usize,
        })
    }

    fn dispatch(&self, meter: &mut Meter, dispatch: &Dispatch<'_>) -> Result<()> {
        let export = self.check(dispatch)?;
        let count = dispatch.workgroup_count;
        if count.contains(&0) {
            return Ok(());
        }
        meter.charge_product(&count.map(u64::from))?;
        let mut bindings = BindingTable::new();
        bindings.fill(dispatch.bindings)?;
        let padded;
        let constants = if export.declares_counts() {
            dispatch.constants
        } else {
            bindings.guard_from(dispatch.bindings.len());
            padded = padded_constants(dispatch.constants);
            &padded
        };
        // Both counts were checked to be at most 64.
        let state = dispatch_state(count, (constants, dispatch.constants.len() as u16), (&bindings, dispatch.bindings.len() as u8));
        let kernel = Kernel { function: export.function, environment: &self.environment, state: &state, stack_size: self.stack_size };
        // SAFETY: the contract of loading says that the function may be called, on any thread, with the declared numbers of
        // bindings and constants, which were checked; where none are declared, the tables have the most entries that the ABI
        // knows. The spans keep their memory alive during the call.
        unsafe { self.run(&kernel, export, dispatch, meter) }
    }
}

impl<C: CallingConvention> NativeLibrary<C> {
    /// Runs a grid on the calling thread, or on several if that is worthwhile.
    ///
    /// # Safety
    /// As for [`run`], on any thread, until this returns.
    #[inline]
    unsafe fn run(&self, kernel: &Kernel<'_>, export: &NativeExport, dispatch: &Dispatch<'_>, meter: &Meter) -> Result<()> {
        let stopped = |stop| self.stopped(dispatch.export, stop);
        if let Some(workers) = &self.workers
            && dispatch.concurrency > 1
            && export.order == WorkgroupOrder::Any
            && let Some(workgroups) = workgroups(dispatch.workgroup_count)
            && workgroups > 1
        {
            let threads = workers.threads().min(dispatch.concurrency).min(usize::try_from(workgroups).unwrap_or(usize::MAX));
            if workers.is_worthwhile(export.pace.estimate(workgroups)) {
                let local_memory = threads::local_memory(export.local_memory as usize, threads, meter.account())?;
                // SAFETY: by the contract of this function.
                return unsafe { run_on_threads::<C>(kernel, workgroups, local_memory, meter, workers) }.map_err(stopped);
            }
            let start = Instant::now();
            // SAFETY: by the contract of this function.
            let outcome = unsafe { Self::run_here(kernel, export, meter)? };
            export.pace.learn(start, workgroups);
            return outcome.map_err(stopped);
        }
        // SAFETY: by the contract of this function.
        unsafe { Self::run_here(kernel, export, meter)? }.map_err(stopped)
    }

    /// Runs a grid on the calling thread.
    ///
    /// # Safety
    /// As for [`run`].
    #[inline]
    unsafe fn run_here(kernel: &Kernel<'_>, export: &NativeExport, meter: &Meter) -> Result<Result<(), Stop>> {
        let local_memory = match export.local_memory {
            0 => None,
            bytes => Some(Span::zeroed(bytes as usize, BASE_ALIGNMENT, meter.account())?),
        };
        // SAFETY: by the contract of this function.
        Ok(unsafe { run::<C>(kernel, Block::WHOLE, local_memory.as_ref(), meter) })
    }
}

impl NativeExport {
    fn new(entry: ExportEntry) -> Result<Self> {
        let function = usize::try_from(entry.function)
            .map_err(|_| Error::precondition(format!("the kernel address {:#x} does not fit in a pointer", entry.function)))?;
        let attributes = entry.attributes;
        Ok(Self {
            function,
            name: entry.name.map(String::into_boxed_str),
            constant_count: attributes.constant_count,
            binding_count: attributes.binding_count,
            // At most 65535 pages: below 2^32 bytes.
            local_memory: u32::from(attributes.local_memory_pages) * LOCAL_MEMORY_PAGE as u32,
            order: attributes.order,
            pace: Pace::default(),
        })
    }

    fn declares_counts(&self) -> bool {
        self.constant_count.is_some() && self.binding_count.is_some()
    }
}

/// There is nobody to provide imports: optional ones stay null, a required one is refused by name.
fn check_imports(imports: &[ImportSymbol]) -> Result<()> {
    match imports.iter().find(|import| import.need == Need::Required) {
        None => Ok(()),
        Some(import) => Err(Error::new(
            Status::Unavailable,
            format!("the executable library imports the function {:?}, and nothing here provides functions to executables", import.name),
        )),
    }
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod tests;
