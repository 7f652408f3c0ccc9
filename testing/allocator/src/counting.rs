//! The allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The allocator of the system, with a count of the bytes that are allocated.
pub struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes that are allocated now.
pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// The most bytes that were allocated at once since the last restart.
pub(crate) fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Forgets the peak, and says how much is allocated now.
pub(crate) fn restart_peak() -> usize {
    let now = live();
    PEAK.store(now, Ordering::Relaxed);
    now
}

fn add(bytes: usize) {
    let now = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if now > peak() {
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
}

fn remove(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: every call is passed on to the allocator of the system with the arguments as they came, and its answer is returned.
// Counting touches two atomics and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `GlobalAlloc`, which is the same.
        let address = unsafe { System.alloc(layout) };
        if !address.is_null() {
            add(layout.size());
        }
        address
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let address = unsafe { System.alloc_zeroed(layout) };
        if !address.is_null() {
            add(layout.size());
        }
        address
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: as above; the address came from the allocator of the system.
        unsafe { System.dealloc(address, layout) };
        remove(layout.size());
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let moved = unsafe { System.realloc(address, layout, size) };
        if !moved.is_null() {
            add(size);
            remove(layout.size());
        }
        moved
    }
}
