//! Shared objects that the system's loader opens.

use super::ProcessMemory;
use crate::placement::Placed;
use crate::process_map::ProcessMap;
use std::error::Error as _;
use std::ffi::c_void;
use std::sync::Arc;
use vmfb_hal::abi::{HostConvention, HostQuery, NativeLibrary, QUERY_SYMBOL};
use vmfb_hal::{Executable, ExecutableParameters};
use vmfb_memory::Charge;
use vmfb_vm::{Error, Result, Status};

/// What is charged for a library beside its bytes: the tables that are made of it, and what the system keeps.
const TABLE_BYTES: u64 = 16 << 10;

/// An open shared object and its file. The library is closed before its file goes.
struct OpenLibrary {
    library: libloading::Library,
    /// What it leaves undefined.
    _mathematics: Option<libloading::Library>,
    _placed: Placed,
    _charge: Charge,
}

/// Opens a shared object and reads its tables.
pub(crate) fn open(mut placed: Placed, parameters: &ExecutableParameters<'_>) -> Result<Arc<dyn Executable>> {
    // The file and what is mapped of it, about.
    let charge = parameters.account.hold((parameters.data.len() as u64).saturating_mul(2).saturating_add(TABLE_BYTES))?;
    let mathematics = open_mathematics();
    // SAFETY: opening runs the initializers of the library, which nobody can check: the user vouches for machine code by not
    // denying it in the engine's configuration, which says so.
    let library = unsafe { open_library(&placed) }.map_err(|error| {
        let reason = error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        Error::new(Status::Unavailable, format!("the system does not open the library: {reason}"))
    })?;
    placed.opened();
    let open = OpenLibrary { library, _mathematics: mathematics, _placed: placed, _charge: charge };
    // SAFETY: the symbol is a function of this type by the ABI; it is called while the library is open.
    let query = unsafe { open.library.get::<HostQuery>(QUERY_SYMBOL) }
        .map_err(|_| Error::not_found(format!("the library exports no function {QUERY_SYMBOL}: it is not an executable library")))?;
    let query = *query as *const c_void;
    let space = ProcessMemory(ProcessMap::now());
    // SAFETY: the function is the library's query function; what it does is vouched for as above. The library stays open as
    // long as the executable, which owns it.
    let library =
        unsafe { NativeLibrary::<HostConvention>::load(query.expose_provenance(), &space, Box::new(open), parameters.constants) }?;
    Ok(Arc::new(library.for_engine(parameters.engine)))
}

/// The C library's mathematical functions (`fmaf` and the like), for all libraries to see: compilers leave them undefined
/// without saying where they are. Not every system has them in a file of their own.
#[cfg(all(unix, not(target_vendor = "apple")))]
fn open_mathematics() -> Option<libloading::Library> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    ["libm.so.6", "libm.so"].into_iter().find_map(|name| {
        // SAFETY: a library of the system, which has no initializers that matter.
        unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) }.ok().map(Into::into)
    })
}

#[cfg(not(all(unix, not(target_vendor = "apple"))))]
fn open_mathematics() -> Option<libloading::Library> {
    None
}

/// # Safety
/// The library's initializers may run.
#[cfg(unix)]
unsafe fn open_library(placed: &Placed) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // Bound at once: a function that is missing is an error now and not the end of the process later.
    // SAFETY: by the contract of this function.
    unsafe { Library::open(Some(placed.path()), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// # Safety
/// The library's initializers may run.
#[cfg(not(unix))]
unsafe fn open_library(placed: &Placed) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: by the contract of this function.
    unsafe { libloading::Library::new(placed.path()) }
}
