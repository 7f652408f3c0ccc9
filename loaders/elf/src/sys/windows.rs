//! Executable memory on Windows: committed pages that are written, then flipped.

use crate::layout::Protection;
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use windows_sys::Win32::System::Diagnostics::Debug::FlushInstructionCache;
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_EXECUTE_READ, PAGE_NOACCESS, PAGE_READONLY, PAGE_READWRITE, VirtualAlloc, VirtualFree,
    VirtualProtect,
};
use windows_sys::Win32::System::SystemInformation::{GetSystemInfo, SYSTEM_INFO};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// Private memory of one image.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// What the system gave.
    whole: NonNull<u8>,
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
        // SAFETY: a new allocation at an address that the system chooses touches no memory of anybody.
        let whole = unsafe { VirtualAlloc(ptr::null(), whole_length, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) };
        let whole = NonNull::new(whole.cast::<u8>()).ok_or_else(io::Error::last_os_error)?;
        let skip = whole.as_ptr().addr().wrapping_neg() % alignment;
        // SAFETY: `skip` is at most `slack`, so `length` bytes follow in the allocation.
        let base = unsafe { whole.add(skip) };
        Ok(Self { whole, base, length, sealed: false })
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
        // SAFETY: the range is committed readable and writable, was zeroed by the system, and belongs to `self`, which is
        // borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }

    /// Gives whole pages their final protection.
    pub(crate) fn protect(&mut self, range: Range<usize>, protection: Protection) -> io::Result<()> {
        let flags = match protection {
            Protection::Read => PAGE_READONLY,
            Protection::ReadWrite => PAGE_READWRITE,
            Protection::ReadExecute => PAGE_EXECUTE_READ,
        };
        self.change(range.clone(), flags)?;
        if protection == Protection::ReadExecute {
            // SAFETY: `change` checked that the range lies in the mapping.
            let done = unsafe { FlushInstructionCache(GetCurrentProcess(), self.base.as_ptr().add(range.start).cast(), range.len()) };
            if done == 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Makes whole pages inaccessible.
    pub(crate) fn close(&mut self, range: Range<usize>) -> io::Result<()> {
        self.change(range, PAGE_NOACCESS)
    }

    fn change(&mut self, range: Range<usize>, flags: u32) -> io::Result<()> {
        if range.start > range.end || range.end > self.length {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if range.is_empty() {
            return Ok(());
        }
        self.sealed = true;
        let mut previous = 0;
        // SAFETY: the range lies in the allocation, which belongs to `self`; no reference into it is alive, as `self` is borrowed
        // exclusively.
        let done = unsafe { VirtualProtect(self.base.as_ptr().add(range.start).cast::<c_void>(), range.len(), flags, &raw mut previous) };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: frees exactly what was allocated; whoever holds addresses into it holds the owner of this value too.
        unsafe { VirtualFree(self.whole.as_ptr().cast::<c_void>(), 0, MEM_RELEASE) };
    }
}

/// Bytes of a page.
pub(crate) fn page_size() -> u64 {
    // SAFETY: the struct is plain numbers and pointers, for which zeros are valid.
    let mut info: SYSTEM_INFO = unsafe { std::mem::zeroed() };
    // SAFETY: fills the struct.
    unsafe { GetSystemInfo(&raw mut info) };
    u64::from(info.dwPageSize)
}
