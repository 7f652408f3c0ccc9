//! Libraries of machine code that this process links: shared objects, and what the host program registers.

use crate::process_map::ProcessMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use vmfb_hal::abi::{
    AddressSpace, Attributes, Environment, ExportEntry, HostConvention, HostKernel, HostQuery, LibraryTables, NativeLibrary, PointerWidth,
    Sanitizer, Version, WorkgroupOrder, declared_version, read_library,
};
use vmfb_hal::{Executable, ExecutableParameters};
use vmfb_vm::{Error, Result};

#[cfg(any(unix, windows))]
#[path = "library/shared_object.rs"]
mod shared_object;
#[cfg(not(any(unix, windows)))]
#[path = "library/no_shared_object.rs"]
mod shared_object;

pub(crate) use shared_object::open;

/// The memory of this process. Where the system tells what is mapped, pointers of tables are checked against that; elsewhere
/// the tables of a library are trusted as its code is.
struct ProcessMemory(Option<ProcessMap>);

impl AddressSpace for ProcessMemory {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let readable = match &self.0 {
            Some(map) => map.is_readable(address, target.len() as u64),
            None => address != 0,
        };
        let Some(address) = usize::try_from(address).ok().filter(|_| readable) else { return false };
        // SAFETY: the range is mapped readable, or the tables are trusted. The target is memory of its own.
        unsafe { ptr::copy_nonoverlapping(ptr::with_exposed_provenance(address), target.as_mut_ptr(), target.len()) };
        true
    }

    fn is_executable(&self, address: u64) -> bool {
        self.0.as_ref().map_or(address != 0, |map| map.is_executable(address))
    }

    fn describe(&self) -> &str {
        "this process"
    }
}

/// Kernels that are linked into the host program: a library query function, or a table of functions.
#[derive(Clone, Debug)]
pub struct StaticLibrary {
    name: String,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Query(HostQuery),
    Kernels(Vec<Kernel>),
}

/// A kernel with the C calling convention.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Name by which modules look it up.
    pub name: &'static str,
    /// The function.
    pub function: HostKernel,
    /// Number of 32-bit constants that it reads.
    pub constant_count: u8,
    /// Number of bindings that it reads.
    pub binding_count: u8,
    /// Pages of 4096 bytes of local memory that each workgroup gets.
    pub local_memory_pages: u16,
}

impl StaticLibrary {
    /// The library of a query function, as the compiler writes one for a static library (`<name>_library_query`).
    ///
    /// # Safety
    /// The function keeps to the executable-library ABI, and so do the kernels that it names: they may be called on any
    /// thread, for ever, with the numbers of constants and bindings that they declare. Bindings may be of any length and
    /// content, and several may be the same memory.
    pub unsafe fn from_query(query: HostQuery) -> Result<Self> {
        let environment = Environment::new(*vmfb_hal::processor::words());
        let space = ProcessMemory(ProcessMap::now());
        for version in Version::NEWEST_FIRST {
            // SAFETY: by the contract of this function.
            let library = unsafe { query(version.number(), &raw const environment) }.expose_provenance() as u64;
            if library != 0 && declared_version(&space, PointerWidth::HOST, library)? == version.number() {
                let tables = read_library(&space, PointerWidth::HOST, library, version)?;
                return Ok(Self { name: tables.name, source: Source::Query(query) });
            }
        }
        Err(Error::precondition("the library supports none of the ABI versions 6, 5, 4 and 3 of this runtime"))
    }

    /// A library of functions, in the order of their ordinals.
    ///
    /// # Safety
    /// As for [`StaticLibrary::from_query`], of all functions.
    pub unsafe fn from_kernels(name: impl Into<String>, kernels: impl Into<Vec<Kernel>>) -> Self {
        Self { name: name.into(), source: Source::Kernels(kernels.into()) }
    }

    /// Name of the library, which is the data of a `static` executable.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// An executable of this library.
    pub(crate) fn load(&self, parameters: &ExecutableParameters<'_>) -> Result<Arc<dyn Executable>> {
        let constants = parameters.constants;
        let library = match &self.source {
            Source::Query(query) => {
                let space = ProcessMemory(ProcessMap::now());
                let query = (*query as *const c_void).expose_provenance();
                // SAFETY: whoever made this value vouched for the function and its kernels, for ever.
                unsafe { NativeLibrary::<HostConvention>::load(query, &space, Box::new(()), constants) }?
            }
            // SAFETY: whoever made this value vouched for the functions, for ever.
            Source::Kernels(kernels) => unsafe { NativeLibrary::from_tables(self.tables(kernels)?, Box::new(()), constants) }?,
        };
        Ok(Arc::new(library.for_engine(parameters.engine)))
    }

    fn tables(&self, kernels: &[Kernel]) -> Result<LibraryTables> {
        let exports = kernels.iter().map(Kernel::entry).collect::<Result<_>>()?;
        let name = self.name.clone();
        Ok(LibraryTables { version: Version::V0_6, name, sanitizer: Sanitizer::None, imports: Vec::new(), exports, constant_count: 0 })
    }
}

impl Kernel {
    fn entry(&self) -> Result<ExportEntry> {
        use vmfb_hal::abi::{MAX_BINDINGS, MAX_CONSTANTS};
        if usize::from(self.constant_count) > MAX_CONSTANTS || usize::from(self.binding_count) > MAX_BINDINGS {
            return Err(Error::out_of_range(format!(
                "the kernel {} declares {} constants and {} bindings; at most {MAX_CONSTANTS} and {MAX_BINDINGS} are possible",
                self.name, self.constant_count, self.binding_count
            )));
        }
        Ok(ExportEntry {
            function: (self.function as *const c_void).expose_provenance() as u64,
            name: Some(self.name.to_owned()),
            attributes: Attributes {
                constant_count: Some(self.constant_count),
                binding_count: Some(self.binding_count),
                local_memory_pages: self.local_memory_pages,
                order: WorkgroupOrder::Any,
            },
        })
    }
}
