//! One dispatch of a native kernel: its binding table, its states, and the walk over its grid.

use super::float_control::FloatControl;
use super::library::{MAX_BINDINGS, MAX_CONSTANTS};
use super::native::CallingConvention;
use super::pacer::Pacer;
use super::stack::with_room;
use super::state::{DispatchState, Environment, WorkgroupState};
use crate::Binding;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use vmfb_memory::Span;
use vmfb_vm::{Error, Meter, Result};

/// Alignment that a binding's address must have: kernels use aligned vector accesses of at least this width.
const BINDING_ALIGNMENT: usize = 16;

/// What stands in the slots behind the last binding when nobody knows how many a kernel reads. An access near it faults on
/// every supported machine: on x86-64 and RISC-V it is no canonical address, on AArch64 bit 54 selects neither address range.
#[cfg(target_pointer_width = "64")]
const GUARD_ADDRESS: usize = 0x4040_0000_0000_0000;
#[cfg(not(target_pointer_width = "64"))]
const GUARD_ADDRESS: usize = 0;

/// Addresses and lengths of the bindings as a kernel reads them. Lives on the stack; only the slots in use are written.
pub(super) struct BindingTable {
    pointers: [MaybeUninit<*mut c_void>; MAX_BINDINGS],
    lengths: [MaybeUninit<usize>; MAX_BINDINGS],
}

impl BindingTable {
    #[inline]
    pub(super) const fn new() -> Self {
        Self { pointers: [MaybeUninit::uninit(); MAX_BINDINGS], lengths: [MaybeUninit::uninit(); MAX_BINDINGS] }
    }

    /// Writes the bindings, which are at most [`MAX_BINDINGS`], after checking that each lies in its span and is aligned.
    #[inline]
    pub(super) fn fill(&mut self, bindings: &[Binding<'_>]) -> Result<()> {
        let slots = self.pointers.iter_mut().zip(&mut self.lengths);
        for (index, (binding, (pointer, length))) in bindings.iter().zip(slots).enumerate() {
            let available = binding.span.len();
            if binding.length > available || binding.offset > available - binding.length {
                return Err(outside(index, binding));
            }
            let address = binding.span.address().wrapping_add(binding.offset);
            if !address.addr().is_multiple_of(BINDING_ALIGNMENT) && binding.length != 0 {
                return Err(misaligned(index, address.addr()));
            }
            pointer.write(address.cast());
            length.write(binding.length);
        }
        Ok(())
    }

    /// Writes zero-length slots behind the bindings whose access faults.
    #[inline]
    pub(super) fn guard_from(&mut self, first: usize) {
        let first = first.min(MAX_BINDINGS);
        self.pointers[first..].fill(MaybeUninit::new(ptr::without_provenance_mut(GUARD_ADDRESS)));
        self.lengths[first..].fill(MaybeUninit::new(0));
    }
}

/// Constants with zeros behind them, for kernels that do not say how many they read.
#[inline]
pub(super) fn padded_constants(constants: &[u32]) -> [u32; MAX_CONSTANTS] {
    let mut padded = [0; MAX_CONSTANTS];
    let given = constants.len().min(MAX_CONSTANTS);
    padded[..given].copy_from_slice(&constants[..given]);
    padded
}

/// The state of a dispatch. Counts were checked: 64 constants, 64 bindings, 65535 workgroups along z at most.
pub(super) fn dispatch_state(count: [u32; 3], constants: (&[u32], u16), bindings: (&BindingTable, u8)) -> DispatchState {
    DispatchState {
        workgroup_size_x: 1,
        workgroup_size_y: 1,
        workgroup_size_z: 1,
        constant_count: constants.1,
        workgroup_count_x: count[0],
        workgroup_count_y: count[1],
        workgroup_count_z: count[2] as u16,
        max_concurrency: 1,
        binding_count: bindings.1,
        constants: constants.0.as_ptr(),
        binding_pointers: bindings.0.pointers.as_ptr().cast(),
        binding_lengths: bindings.0.lengths.as_ptr().cast(),
    }
}

/// A kernel and all that its workgroups share.
pub(super) struct Kernel<'a> {
    pub(super) function: usize,
    pub(super) environment: &'a Environment,
    pub(super) state: &'a DispatchState,
    /// Bytes of stack that it needs.
    pub(super) stack_size: usize,
}

/// Workgroups that one thread runs one after the other, x innermost. A dispatch over several threads cuts its grid into such
/// blocks; each thread has local memory of its own.
pub(super) struct Block {
    /// First workgroup.
    pub(super) start: [u32; 3],
    /// Number of workgroups; the end of the grid ends the block too.
    pub(super) workgroups: u64,
}

impl Block {
    /// The whole grid.
    pub(super) const WHOLE: Self = Self { start: [0; 3], workgroups: u64::MAX };
}

/// Why a block ended early.
pub(super) enum Stop {
    /// A workgroup returned a code other than 0.
    Failed { workgroup: [u32; 3], code: i32 },
    /// The meter said so.
    Meter(Error),
}

/// Runs a block that is not empty, stopping at the first workgroup that fails.
///
/// # Safety
/// The kernel's function is code of the convention `C` that may be called with its state: the pointer tables hold at least as
/// many valid entries as it reads, and the memory they point at is alive. The call may do whatever machine code can.
#[inline]
pub(super) unsafe fn run<C: CallingConvention>(
    kernel: &Kernel<'_>,
    block: Block,
    local_memory: Option<&Span>,
    meter: &Meter,
) -> Result<(), Stop> {
    // SAFETY: by the contract of this function.
    match with_room(kernel.stack_size, || unsafe { walk::<C>(kernel, &block, local_memory, meter) }) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(stop)) => Err(*stop),
        Err(error) => Err(Stop::Meter(error)),
    }
}

/// Runs a block on the stack that there is. The outcome is one word, as it goes from stack to stack.
///
/// # Safety
/// As for [`run`].
#[inline]
unsafe fn walk<C: CallingConvention>(
    kernel: &Kernel<'_>,
    block: &Block,
    local_memory: Option<&Span>,
    meter: &Meter,
) -> Result<(), Box<Stop>> {
    let [mut x, mut y, mut z] = block.start;
    let mut left = block.workgroups;
    let mut pacer = Pacer::new();
    let float_control = FloatControl::save();
    let (count_x, count_y, count_z) =
        (kernel.state.workgroup_count_x, kernel.state.workgroup_count_y, u32::from(kernel.state.workgroup_count_z));
    loop {
        let workgroup = WorkgroupState {
            workgroup_id_x: x,
            workgroup_id_y: y,
            workgroup_id_z: z as u16,
            reserved: 0,
            processor_id: 0,
            local_memory: local_memory.map_or(ptr::null_mut(), |span| span.address().cast()),
            local_memory_size: local_memory.map_or(0, |span| span.len() as u32),
        };
        // SAFETY: the caller vouches for the function and the states; the workgroup state is valid for the call.
        let code = unsafe { C::workgroup(kernel.function, kernel.environment, kernel.state, &raw const workgroup) };
        float_control.restore();
        if code != 0 {
            return Err(Box::new(Stop::Failed { workgroup: [x, y, z], code }));
        }
        left -= 1;
        x += 1;
        if x == count_x {
            x = 0;
            y += 1;
            if y == count_y {
                y = 0;
                z += 1;
            }
        }
        if z == count_z || left == 0 {
            return Ok(());
        }
        pacer.between_workgroups(meter).map_err(|error| Box::new(Stop::Meter(error)))?;
    }
}

#[cold]
fn outside(index: usize, binding: &Binding<'_>) -> Error {
    Error::out_of_range(format!(
        "binding {index}: {} bytes at offset {} do not lie in a buffer of {} bytes",
        binding.length,
        binding.offset,
        binding.span.len()
    ))
}

#[cold]
fn misaligned(index: usize, address: usize) -> Error {
    Error::invalid(format!(
        "binding {index} starts at the address {address:#x}; machine code needs a multiple of {BINDING_ALIGNMENT} (best 64): \
         align the host memory or the offset"
    ))
}
