//! How code of embedded images is called: by the processor's System V convention, on every operating system.

use crate::image::Image;
use std::ffi::c_void;
use std::ptr;
use vmfb_hal::abi::{CallingConvention, DispatchState, Environment, NativeLibrary, WorkgroupState};
use vmfb_vm::Result;

/// The calling convention of embedded ELF code.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedConvention;

/// Defines the functions for one ABI string.
macro_rules! embedded_convention {
    ($abi:literal) => {
        type Query = unsafe extern $abi fn(u32, *const Environment) -> *const c_void;
        type Kernel = unsafe extern $abi fn(*const Environment, *const DispatchState, *const WorkgroupState) -> i32;

        extern $abi fn refuse(_: *const c_void, _: *const c_void, _: *const c_void, _: *const c_void) -> i32 {
            1
        }
    };
}

#[cfg(target_arch = "x86_64")]
embedded_convention!("sysv64");
#[cfg(not(target_arch = "x86_64"))]
embedded_convention!("C");

// SAFETY: each function makes the one call that it describes, by the processor's System V convention.
unsafe impl CallingConvention for EmbeddedConvention {
    unsafe fn query(function: usize, max_version: u32, environment: *const Environment) -> *const c_void {
        // SAFETY: the caller vouches that this is the address of such a function; function pointers have the size of `usize`.
        let function: Query = unsafe { std::mem::transmute(ptr::with_exposed_provenance::<c_void>(function)) };
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
        let function: Kernel = unsafe { std::mem::transmute(ptr::with_exposed_provenance::<c_void>(function)) };
        // SAFETY: as above.
        unsafe { function(environment, dispatch, workgroup) }
    }

    fn refusing_thunk() -> *const c_void {
        refuse as *const c_void
    }
}

/// The executable library in an image.
pub(crate) fn load_library(image: Image, constants: &[u32]) -> Result<NativeLibrary<EmbeddedConvention>> {
    let query = image.query();
    // SAFETY: the address is that of the query function that the image exports, in an executable segment. That machine code
    // keeps to its ABI cannot be checked: the user vouches for it by not denying native code in the engine's configuration,
    // which says so. The image stays mapped as long as the library, which owns a reference to it.
    unsafe { NativeLibrary::load(query, &image.clone(), Box::new(image), constants) }
}
