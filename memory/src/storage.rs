//! Storage: one block of bytes and who owns it. It is never moved, resized or freed while a span refers to it.

use crate::{Error, MemoryAccount, Result};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::File;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Alignment of every allocation: compiled kernels use aligned vector accesses of up to 64 bytes.
pub const BASE_ALIGNMENT: usize = 64;

/// What a storage costs beside its bytes; charged too, so that many empty allocations are not free.
pub const STORAGE_OVERHEAD: u64 = 128;

/// From this length on the system's own zeroed pages are used. A zeroed allocation of a larger alignment than the allocator gives
/// by itself is cleared byte by byte, which touches every page at once: seconds for some gigabytes, in which nothing can end it.
const PAGES: usize = 1 << 20;

/// Alignments above a page are charged to the account, as they reserve address space.
const PAGE: usize = 4096;

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Number of storages alive in this process; a leak test compares it before and after.
pub fn live_allocations() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// One block of bytes.
pub(crate) struct Storage {
    pub(crate) base: NonNull<u8>,
    pub(crate) length: usize,
    owner: Owner,
    charge: Option<(MemoryAccount, u64)>,
}

/// Who frees the bytes.
enum Owner {
    Allocation {
        start: NonNull<u8>,
        layout: Layout,
    },
    /// A whole file, of the file system or of memory. The file stays open for private maps of its pages.
    Map {
        _map: memmap2::MmapRaw,
        file: File,
    },
    /// Pages of a file that are copied when they are written.
    Private {
        _map: memmap2::MmapRaw,
    },
    Vector {
        _bytes: Vec<u8>,
    },
    Shared {
        _bytes: Arc<[u8]>,
    },
    Static,
}

// SAFETY: the owner keeps the bytes alive and in place for as long as the storage lives, and all access to them goes through
// `Span`, which uses atomics on shared bytes; nothing here is tied to a thread.
unsafe impl Send for Storage {}
// SAFETY: as above; `&Storage` gives no other access than `Span` does.
unsafe impl Sync for Storage {}

impl Storage {
    /// Zeroed bytes at a multiple of `alignment` (at least 64), charged to the account.
    pub(crate) fn zeroed(length: usize, alignment: usize, account: &MemoryAccount) -> Result<Self> {
        if !alignment.is_power_of_two() {
            return Err(Error::BadAlignment(alignment as u64));
        }
        let alignment = alignment.max(BASE_ALIGNMENT);
        let reserved = if alignment > PAGE { alignment as u64 } else { 0 };
        let requested = (length as u64).saturating_add(reserved).saturating_add(STORAGE_OVERHEAD);
        // Zero-length storage still has an address of its own.
        let too_large = Error::OutOfMemory { requested: length as u64 };
        let layout = if length < PAGES {
            Layout::from_size_align(length.max(1), alignment)
        } else {
            Layout::from_size_align(length.checked_add(alignment).ok_or(too_large)?, 1)
        };
        let layout = layout.map_err(|_| too_large)?;
        account.charge(requested)?;
        // SAFETY: the layout has a size of at least one byte.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            account.refund(requested);
            return Err(Error::OutOfMemory { requested });
        };
        let unaligned = start.as_ptr().addr().wrapping_neg() % alignment;
        // SAFETY: less than `alignment` bytes further on, which the layout has in addition where the start may be unaligned.
        let base = unsafe { start.add(unaligned) };
        Ok(Self::new(base, length, Owner::Allocation { start, layout }, Some((account.clone(), requested))))
    }

    /// Takes over a vector; its bytes are never written.
    pub(crate) fn from_vector(mut bytes: Vec<u8>) -> Self {
        // By a mutable address, although nobody writes: shared references to atomics are made of it.
        let (base, length) = (NonNull::from(bytes.as_mut_slice()).cast(), bytes.len());
        Self::new(base, length, Owner::Vector { _bytes: bytes }, None)
    }

    /// Shares bytes that others may read too; they are never written.
    pub(crate) fn from_shared(bytes: Arc<[u8]>) -> Self {
        // Not by way of a reference, for the same reason.
        let base = NonNull::new(Arc::as_ptr(&bytes).cast_mut().cast()).unwrap_or(NonNull::dangling());
        let length = bytes.len();
        Self::new(base, length, Owner::Shared { _bytes: bytes }, None)
    }

    /// Bytes of the program itself; they are never written.
    ///
    /// Where a slice is all there is, atomics are made of a shared reference. They are only loaded from, which the standard library
    /// allows even of memory that cannot be written, and so does the aliasing model Tree Borrows; Stacked Borrows does not.
    pub(crate) fn from_static(bytes: &'static [u8]) -> Self {
        Self::new(NonNull::from(bytes).cast(), bytes.len(), Owner::Static, None)
    }

    /// Maps a whole file for reading. The map is read with atomic loads only and no slice of it is ever made, so a change of the file
    /// by another process is no data race of ours; that truncation ends the process is stated where maps are offered.
    pub(crate) fn map(file: File) -> std::io::Result<Self> {
        let map = memmap2::MmapOptions::new().map_raw_read_only(&file)?;
        let (base, length) = (NonNull::new(map.as_mut_ptr()).unwrap_or(NonNull::dangling()), map.len());
        Ok(Self::new(base, length, Owner::Map { _map: map, file }, None))
    }

    /// A writable map of a range of a mapped file, whose pages are copied when they are written. `None` for other storage.
    pub(crate) fn private_map(&self, offset: usize, length: usize, account: &MemoryAccount) -> Option<Result<Self>> {
        let Owner::Map { file, .. } = &self.owner else { return None };
        if let Err(error) = account.charge(STORAGE_OVERHEAD) {
            return Some(Err(error));
        }
        // SAFETY: no slice of the map is ever made, so a change of the file is no data race of ours, as for the map itself.
        let map = unsafe { memmap2::MmapOptions::new().offset(offset as u64).len(length).map_copy(file) };
        let map = memmap2::MmapRaw::from(match map {
            Ok(map) => map,
            Err(_) => {
                account.refund(STORAGE_OVERHEAD);
                return Some(Err(Error::OutOfMemory { requested: length as u64 }));
            }
        });
        let base = NonNull::new(map.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Some(Ok(Self::new(base, length, Owner::Private { _map: map }, Some((account.clone(), STORAGE_OVERHEAD)))))
    }

    /// Whether the bytes may be written at all.
    pub(crate) fn is_writable(&self) -> bool {
        matches!(self.owner, Owner::Allocation { .. } | Owner::Private { .. })
    }

    /// Whether the pages of the bytes are those of a file until they are written.
    pub(crate) fn is_private_map(&self) -> bool {
        matches!(self.owner, Owner::Private { .. })
    }

    /// The bytes as a slice where nobody can change them: not in allocations, not in maps.
    pub(crate) fn constant_bytes(&self) -> Option<&[u8]> {
        match self.owner {
            Owner::Allocation { .. } | Owner::Map { .. } | Owner::Private { .. } => None,
            // SAFETY: the owner holds initialised bytes at this base and length, and neither this crate nor their owner
            // writes them while the storage lives.
            _ => Some(unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.length) }),
        }
    }

    fn new(base: NonNull<u8>, length: usize, owner: Owner, charge: Option<(MemoryAccount, u64)>) -> Self {
        LIVE.fetch_add(1, Ordering::Relaxed);
        Self { base, length, owner, charge }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        if let Owner::Allocation { start, layout } = self.owner {
            // SAFETY: `start` came from `alloc_zeroed` with this layout and is freed once, here.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
        if let Some((account, bytes)) = &self.charge {
            account.refund(*bytes);
        }
    }
}
