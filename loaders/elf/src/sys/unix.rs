//! Executable memory on Unix: anonymous pages that are written, then flipped.
//!
//! On macOS a hardened process needs the entitlement `com.apple.security.cs.allow-unsigned-executable-memory`; without it, and
//! on iOS, protecting fails and the loader says so.

use crate::layout::Protection;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};

/// Private memory of one image.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// What the system gave.
    whole: NonNull<u8>,
    whole_length: usize,
    /// The aligned part that is used.
    base: NonNull<u8>,
    length: usize,
    /// Whether the protection of any page was changed.
    sealed: bool,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: through `&Mapping` only the address is known.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed readable and writable memory at a multiple of `alignment`, a power of two that is at least a page.
    pub(crate) fn writable(length: usize, alignment: usize) -> io::Result<Self> {
        let slack = alignment.saturating_sub(page_size() as usize);
        let whole_length = length.checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new private mapping at an address that the system chooses touches no memory of anybody.
        let whole = unsafe { mmap_anonymous(ptr::null_mut(), whole_length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)? };
        let whole = NonNull::new(whole.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let skip = whole.as_ptr().addr().wrapping_neg() % alignment;
        // SAFETY: `skip` is at most `slack`, so `length` bytes follow in the mapping.
        let base = unsafe { whole.add(skip) };
        Ok(Self { whole, whole_length, base, length, sealed: false })
    }

    /// Address of the first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The memory; empty once anything is protected.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        if self.sealed {
            return &mut [];
        }
        // SAFETY: the range is mapped readable and writable, was zeroed by the system, and belongs to `self`, which is borrowed
        // exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }

    /// Gives whole pages their final protection.
    pub(crate) fn protect(&mut self, range: Range<usize>, protection: Protection) -> io::Result<()> {
        let flags = match protection {
            Protection::Read => MprotectFlags::READ,
            Protection::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
            Protection::ReadExecute => MprotectFlags::READ | MprotectFlags::EXEC,
        };
        self.change(range.clone(), flags)?;
        if protection == Protection::ReadExecute {
            // SAFETY: `change` checked that the range lies in the mapping, and its pages are readable.
            unsafe { flush_instruction_cache(self.base.as_ptr().add(range.start), range.len()) };
        }
        Ok(())
    }

    /// Makes whole pages inaccessible.
    pub(crate) fn close(&mut self, range: Range<usize>) -> io::Result<()> {
        self.change(range, MprotectFlags::empty())
    }

    fn change(&mut self, range: Range<usize>, flags: MprotectFlags) -> io::Result<()> {
        if range.start > range.end || range.end > self.length {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.sealed = true;
        // SAFETY: the range lies in the mapping, which belongs to `self`; no reference into it is alive, as `self` is borrowed
        // exclusively.
        unsafe { mprotect(self.base.as_ptr().add(range.start).cast::<c_void>(), range.len(), flags)? };
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what was mapped; whoever holds addresses into it holds the owner of this value too.
        let _ = unsafe { munmap(self.whole.as_ptr().cast::<c_void>(), self.whole_length) };
    }
}

/// Bytes of a page.
pub(crate) fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// Makes written code visible to instruction fetches.
///
/// # Safety
/// The range is mapped and readable.
#[cfg(all(target_arch = "aarch64", not(target_vendor = "apple")))]
unsafe fn flush_instruction_cache(start: *const u8, length: usize) {
    use std::arch::asm;
    let cache_type: usize;
    // SAFETY: user programs may read CTR_EL0.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) cache_type, options(nomem, nostack, preserves_flags)) };
    let data_line = 4usize << (cache_type >> 16 & 0xF);
    let instruction_line = 4usize << (cache_type & 0xF);
    let end = start.addr() + length;
    let mut line = start.addr() & !(data_line - 1);
    while line < end {
        // SAFETY: cleans a line of mapped memory to the point of unification.
        unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
        line += data_line;
    }
    // SAFETY: a barrier.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    let mut line = start.addr() & !(instruction_line - 1);
    while line < end {
        // SAFETY: invalidates a line of the instruction cache.
        unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
        line += instruction_line;
    }
    // SAFETY: barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// Makes written code visible to instruction fetches.
///
/// # Safety
/// The range is mapped and readable.
#[cfg(all(target_arch = "aarch64", target_vendor = "apple"))]
unsafe fn flush_instruction_cache(start: *const u8, length: usize) {
    unsafe extern "C" {
        fn sys_icache_invalidate(start: *const c_void, length: usize);
    }
    // SAFETY: the range is mapped.
    unsafe { sys_icache_invalidate(start.cast(), length) };
}

/// Makes written code visible to instruction fetches on all processors: a system call, as `fence.i` reaches only this one.
///
/// # Safety
/// The range is mapped and readable.
#[cfg(all(target_arch = "riscv64", target_os = "linux"))]
unsafe fn flush_instruction_cache(start: *const u8, length: usize) {
    const RISCV_FLUSH_ICACHE: usize = 259;
    // SAFETY: the system call reads no memory and changes nothing but caches; it clobbers a0 alone.
    unsafe {
        std::arch::asm!(
            "ecall",
            inlateout("a0") start.addr() => _,
            in("a1") start.addr() + length,
            in("a2") 0usize,
            in("a7") RISCV_FLUSH_ICACHE,
            options(nostack),
        );
    }
}

/// Nothing to do: on x86 instruction fetches see all writes; other architectures run no embedded images.
///
/// # Safety
/// The range is mapped and readable.
#[cfg(not(any(target_arch = "aarch64", all(target_arch = "riscv64", target_os = "linux"))))]
unsafe fn flush_instruction_cache(_start: *const u8, _length: usize) {}
