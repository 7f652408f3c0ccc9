//! The executable-library ABI: layouts of its tables and states for v0_3 to v0_6, bounded reading of tables, and the one path
//! on which kernels of such libraries are called, however their code got into the process.
//!
//! What is not here: loading of code.

mod address_space;
#[cfg(target_arch = "x86_64")]
pub(crate) mod cpuid;
mod float_control;
mod grid;
pub mod layout;
mod library;
mod native;
mod pacer;
mod stack;
mod state;
#[cfg(test)]
mod test_library;
mod threads;

pub use address_space::{AddressSpace, MAX_STRING, Reader};
pub use layout::{PointerWidth, Version};
pub use library::{
    Attributes, ExportEntry, ImportSymbol, LOCAL_MEMORY_PAGE, LibraryTables, MAX_BINDINGS, MAX_CONSTANTS, MAX_ENTRIES, Need, Sanitizer,
    WorkgroupOrder, declared_version, read_library,
};
pub use native::{CallingConvention, HostConvention, NativeLibrary};
pub use state::{DispatchState, Environment, HostKernel, HostQuery, WorkgroupState};

/// Name under which a shared object exports its query function.
pub const QUERY_SYMBOL: &str = "iree_hal_executable_library_query";
