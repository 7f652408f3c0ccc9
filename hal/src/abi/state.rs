//! The structs that kernels are called with. Their layout is the same in all versions of the ABI.

use std::ffi::c_void;
use std::ptr;

/// What all workgroups of a library see.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Environment {
    /// Executable constants.
    pub constants: *const u32,
    /// Through this function the code calls its imports.
    pub import_thunk: *const c_void,
    /// Functions by import ordinal; null where an optional one is missing.
    pub import_functions: *const *const c_void,
    /// What each function gets.
    pub import_contexts: *const *const c_void,
    /// What the processor can do, as [`crate::processor::words`] gives it.
    pub processor_data: [u64; 8],
}

impl Environment {
    /// An environment without constants and imports.
    pub const fn new(processor_data: [u64; 8]) -> Self {
        Self {
            constants: ptr::null(),
            import_thunk: ptr::null(),
            import_functions: ptr::null(),
            import_contexts: ptr::null(),
            processor_data,
        }
    }
}

/// What all workgroups of a dispatch see.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct DispatchState {
    /// Size of a workgroup along x.
    pub workgroup_size_x: u32,
    /// Size of a workgroup along y.
    pub workgroup_size_y: u32,
    /// Size of a workgroup along z.
    pub workgroup_size_z: u16,
    /// Number of 32-bit constants.
    pub constant_count: u16,
    /// Number of workgroups along x.
    pub workgroup_count_x: u32,
    /// Number of workgroups along y.
    pub workgroup_count_y: u32,
    /// Number of workgroups along z.
    pub workgroup_count_z: u16,
    /// Most workgroups that run at once.
    pub max_concurrency: u8,
    /// Number of bindings.
    pub binding_count: u8,
    /// Constants.
    pub constants: *const u32,
    /// Addresses of the bindings.
    pub binding_pointers: *const *mut c_void,
    /// Lengths of the bindings in bytes.
    pub binding_lengths: *const usize,
}

/// What one workgroup sees.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct WorkgroupState {
    /// Position in the grid along x.
    pub workgroup_id_x: u32,
    /// Position in the grid along y.
    pub workgroup_id_y: u32,
    /// Position in the grid along z.
    pub workgroup_id_z: u16,
    /// Zero.
    pub reserved: u16,
    /// Number of the processor that runs the workgroup.
    pub processor_id: u32,
    /// Scratch memory of this workgroup alone.
    pub local_memory: *mut c_void,
    /// Bytes of scratch memory.
    pub local_memory_size: u32,
}

/// A kernel with the calling convention of this process.
pub type HostKernel = unsafe extern "C" fn(*const Environment, *const DispatchState, *const WorkgroupState) -> i32;

/// A library's query function with the calling convention of this process: the library struct for this version, or null.
pub type HostQuery = unsafe extern "C" fn(u32, *const Environment) -> *const c_void;

macro_rules! assert_offsets {
    ($struct:ident, $($field:ident $wide:literal $narrow:literal),+ $(,)?) => {
        $(const _: () = assert!(
            std::mem::offset_of!($struct, $field) == if cfg!(target_pointer_width = "64") { $wide } else { $narrow }
        );)+
    };
}

assert_offsets!(Environment, constants 0 0, import_thunk 8 4, import_functions 16 8, import_contexts 24 12, processor_data 32 16);
assert_offsets!(
    DispatchState,
    workgroup_size_x 0 0,
    workgroup_size_y 4 4,
    workgroup_size_z 8 8,
    constant_count 10 10,
    workgroup_count_x 12 12,
    workgroup_count_y 16 16,
    workgroup_count_z 20 20,
    max_concurrency 22 22,
    binding_count 23 23,
    constants 24 24,
    binding_pointers 32 28,
    binding_lengths 40 32,
);
assert_offsets!(
    WorkgroupState,
    workgroup_id_x 0 0,
    workgroup_id_y 4 4,
    workgroup_id_z 8 8,
    reserved 10 10,
    processor_id 12 12,
    local_memory 16 16,
    local_memory_size 24 20,
);
