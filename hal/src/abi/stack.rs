//! Room on the stack for machine code: the thread's own stack where enough of it is left, else one that is made for the thread
//! and kept by it. The compiler's frames are not probed, so a guard as large as the stack lies below it.

use vmfb_vm::Result;

#[cfg(all(unix, not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
#[path = "stack/switch.rs"]
mod switch;

/// Runs `work` with at least `size` bytes of stack.
#[cfg(all(unix, not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
#[inline]
pub(super) fn with_room<R>(size: usize, mut work: impl FnMut() -> R) -> Result<R> {
    if switch::remaining() >= size { Ok(work()) } else { switch::on_own_stack(size, work) }
}

/// Runs `work` on the stack that there is: this system has no other.
#[cfg(not(all(unix, not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
#[inline]
pub(super) fn with_room<R>(_size: usize, mut work: impl FnMut() -> R) -> Result<R> {
    Ok(work())
}

#[cfg(all(test, unix, not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
#[path = "stack/tests.rs"]
mod tests;
