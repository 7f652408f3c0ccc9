//! A range of shared bytes, with element access.

use crate::storage::{BASE_ALIGNMENT, Storage};
use crate::{Error, MemoryAccount, Result, bulk, memory_file};
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// A range of reference-counted bytes. Clones refer to the same bytes.
///
/// Offsets are byte offsets from the start of the span; multi-byte values are little-endian and need no alignment.
#[derive(Clone)]
pub struct Span {
    base: NonNull<u8>,
    length: usize,
    writable: bool,
    storage: Arc<Storage>,
}

// SAFETY: the pointer stays valid as long as the storage that the span holds, and access through it is atomic.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

macro_rules! element_access {
    ($load:ident, $load_element:ident, $store:ident, $store_element:ident, $integer:ty, $read:ident, $write:ident) => {
        #[doc = concat!("Reads one `", stringify!($integer), "` at a byte offset; `None` when it does not lie in the span.")]
        #[inline]
        pub fn $load(&self, offset: usize) -> Option<$integer> {
            const SIZE: usize = size_of::<$integer>();
            if SIZE > self.length || offset > self.length - SIZE {
                return None;
            }
            // SAFETY: `SIZE` bytes from `offset` lie in the span, and the storage is alive.
            Some(<$integer>::from_le(unsafe { bulk::$read(self.base.as_ptr().add(offset)) }))
        }

        #[doc = concat!("Reads the `", stringify!($integer), "` with this index, as in an array from the start of the span.")]
        #[inline]
        pub fn $load_element(&self, index: u64) -> Option<$integer> {
            const SIZE: usize = size_of::<$integer>();
            if index >= (self.length / SIZE) as u64 {
                return None;
            }
            // SAFETY: `index + 1` elements lie in the span, and the storage is alive.
            Some(<$integer>::from_le(unsafe { bulk::$read(self.base.as_ptr().add(index as usize * SIZE)) }))
        }

        #[doc = concat!("Writes one `", stringify!($integer), "` at a byte offset.")]
        #[inline]
        pub fn $store(&self, offset: usize, value: $integer) -> Result<()> {
            const SIZE: usize = size_of::<$integer>();
            if !self.writable {
                return Err(Error::ReadOnly);
            }
            if SIZE > self.length || offset > self.length - SIZE {
                return Err(self.out_of_range(offset as u64, SIZE as u64));
            }
            // SAFETY: `SIZE` bytes from `offset` lie in the span, the storage is alive, and it is writable (checked).
            unsafe { bulk::$write(self.base.as_ptr().add(offset), value.to_le()) };
            Ok(())
        }

        #[doc = concat!("Writes the `", stringify!($integer), "` with this index, as in an array from the start of the span.")]
        #[inline]
        pub fn $store_element(&self, index: u64, value: $integer) -> Result<()> {
            const SIZE: usize = size_of::<$integer>();
            if !self.writable {
                return Err(Error::ReadOnly);
            }
            if index >= (self.length / SIZE) as u64 {
                return Err(self.out_of_range(index.saturating_mul(SIZE as u64), SIZE as u64));
            }
            // SAFETY: `index + 1` elements lie in the span, the storage is alive, and it is writable (checked).
            unsafe { bulk::$write(self.base.as_ptr().add(index as usize * SIZE), value.to_le()) };
            Ok(())
        }
    };
}

impl Span {
    /// Zeroed writable bytes at a multiple of `alignment` (a power of two; at least 64 is given), charged to the account
    /// until the last span of them is gone.
    pub fn zeroed(length: usize, alignment: usize, account: &MemoryAccount) -> Result<Self> {
        Ok(Self::whole(Storage::zeroed(length, alignment, account)?))
    }

    /// Writable bytes with the given content, 64-byte aligned.
    pub fn copy_of(bytes: &[u8], account: &MemoryAccount) -> Result<Self> {
        let span = Self::zeroed(bytes.len(), 1, account)?;
        span.write(0, bytes)?;
        Ok(span)
    }

    /// Read-only bytes of a vector; the address is the vector's.
    pub fn from_vector(bytes: Vec<u8>) -> Self {
        Self::whole(Storage::from_vector(bytes))
    }

    /// Read-only bytes that others may read too.
    pub fn from_shared(bytes: Arc<[u8]>) -> Self {
        Self::whole(Storage::from_shared(bytes))
    }

    /// Read-only bytes of the program itself.
    pub fn from_static(bytes: &'static [u8]) -> Self {
        Self::whole(Storage::from_static(bytes))
    }

    /// Read-only bytes of a whole file, mapped. If another process truncates the file while it is mapped, reading the lost
    /// part ends this process with SIGBUS; read the file instead where that matters.
    pub fn map_file(file: &File) -> std::io::Result<Self> {
        Ok(Self::whole(Storage::map(file.try_clone()?)?))
    }

    /// Read-only bytes: up to `length` of a file from its current position, 64-byte aligned. Large ones are read into a memory
    /// file where the system has those, so that private views of them cost nothing until they are written.
    pub fn read_file(file: &mut File, length: usize) -> std::io::Result<Self> {
        match memory_file::read(file, length)? {
            Some(copy) => Ok(Self::whole(copy)),
            None => read_by_pieces(file, length),
        }
    }

    /// A 64-byte aligned read-only copy; large ones are memory files, as for [`Span::read_file`].
    pub fn aligned_copy(&self) -> Result<Self> {
        if let Some(copy) = memory_file::copy(self)? {
            return Ok(Self::whole(copy));
        }
        let copy = Self::zeroed(self.length, BASE_ALIGNMENT, &MemoryAccount::default())?;
        copy.copy_from(0, self, 0, self.length)?;
        Ok(copy.read_only())
    }

    /// Writable bytes whose pages are those of the file behind this span until they are written. `None` where there is none.
    pub(crate) fn private_map(&self, account: &MemoryAccount) -> Option<Result<Self>> {
        let map = self.storage.private_map(self.storage_offset(), self.length, account)?;
        Some(map.map(Self::whole))
    }

    /// Whether the pages are those of a file until they are written.
    pub(crate) fn is_private_map(&self) -> bool {
        self.storage.is_private_map()
    }

    /// Number of spans that refer to the storage, this one included. What the others did before they were dropped is over.
    pub fn holders(&self) -> usize {
        let holders = Arc::strong_count(&self.storage);
        fence(Ordering::Acquire);
        holders
    }

    fn whole(storage: Storage) -> Self {
        let (base, length, writable) = (storage.base, storage.length, storage.is_writable());
        Self { base, length, writable, storage: Arc::new(storage) }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether stores are allowed.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Address of the first byte, for alignment checks and machine code. Valid while a span of the storage is alive.
    pub fn address(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The same bytes, not writable through the new span.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.writable = false;
        self
    }

    /// A part of this span.
    pub fn slice(&self, offset: usize, length: usize) -> Result<Self> {
        self.check(offset, length)?;
        // SAFETY: `offset` is at most the length, so the address is in the span or one past its end.
        let base = unsafe { self.base.add(offset) };
        Ok(Self { base, length, writable: self.writable, storage: self.storage.clone() })
    }

    /// Byte offset of `part` in this span's storage, if both are of the same storage: (own offset, its offset).
    pub fn same_storage(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Offset of the first byte in the whole storage.
    pub fn storage_offset(&self) -> usize {
        self.base.as_ptr().addr() - self.storage.base.as_ptr().addr()
    }

    /// A span of the whole storage that this one is a part of, as writable as this one.
    #[must_use]
    pub fn whole_storage(&self) -> Self {
        Self { base: self.storage.base, length: self.storage.length, writable: self.writable, storage: self.storage.clone() }
    }

    /// The bytes as a slice, where nobody can change them: bytes that came from a vector, a shared slice or the program.
    pub fn constant_bytes(&self) -> Option<&[u8]> {
        self.storage.constant_bytes()?.get(self.storage_offset()..)?.get(..self.length)
    }

    element_access!(load_u8, load_element_u8, store_u8, store_element_u8, u8, load_1, store_1);
    element_access!(load_u16, load_element_u16, store_u16, store_element_u16, u16, load_2, store_2);
    element_access!(load_u32, load_element_u32, store_u32, store_element_u32, u32, load_4, store_4);
    element_access!(load_u64, load_element_u64, store_u64, store_element_u64, u64, load_8, store_8);

    /// Copies bytes of the span into `target`.
    pub fn read(&self, offset: usize, target: &mut [u8]) -> Result<()> {
        self.check(offset, target.len())?;
        // SAFETY: the range was checked.
        unsafe { bulk::read_bytes(self.base.as_ptr().add(offset), target) };
        Ok(())
    }

    /// Copies `source` into the span.
    pub fn write(&self, offset: usize, source: &[u8]) -> Result<()> {
        self.check_writable()?;
        self.check(offset, source.len())?;
        // SAFETY: the range was checked, and the storage is writable.
        unsafe { bulk::write_bytes(self.base.as_ptr().add(offset), source) };
        Ok(())
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.length).map_err(|_| Error::OutOfMemory { requested: self.length as u64 })?;
        bytes.resize(self.length, 0);
        self.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies `length` bytes from `source` into this span; the ranges may overlap.
    pub fn copy_from(&self, offset: usize, source: &Self, source_offset: usize, length: usize) -> Result<()> {
        self.check_writable()?;
        self.check(offset, length)?;
        source.check(source_offset, length)?;
        // SAFETY: both ranges were checked, and the target storage is writable.
        unsafe { bulk::copy(source.base.as_ptr().add(source_offset), self.base.as_ptr().add(offset), length) };
        Ok(())
    }

    /// Whether `length` bytes here and there are equal.
    pub fn equals(&self, offset: usize, other: &Self, other_offset: usize, length: usize) -> Result<bool> {
        self.check(offset, length)?;
        other.check(other_offset, length)?;
        // SAFETY: both ranges were checked.
        Ok(unsafe { bulk::equal(self.base.as_ptr().add(offset), other.base.as_ptr().add(other_offset), length) })
    }

    /// Fills `length` bytes with a repeated pattern of 1, 2, 4 or 8 bytes; a part of the pattern at the end is cut off.
    pub fn fill(&self, offset: usize, length: usize, pattern: &[u8]) -> Result<()> {
        self.check_writable()?;
        self.check(offset, length)?;
        let pattern: [u8; 8] = match pattern {
            [a] => [*a; 8],
            [a, b] => [*a, *b, *a, *b, *a, *b, *a, *b],
            [a, b, c, d] => [*a, *b, *c, *d, *a, *b, *c, *d],
            _ => pattern.try_into().map_err(|_| Error::BadAlignment(pattern.len() as u64))?,
        };
        // SAFETY: the range was checked, and the storage is writable.
        unsafe { bulk::fill(self.base.as_ptr().add(offset), length, pattern) };
        Ok(())
    }

    /// Fails unless `offset..offset + length` lies in the span.
    pub fn check(&self, offset: usize, length: usize) -> Result<()> {
        if length <= self.length && offset <= self.length - length { Ok(()) } else { Err(self.out_of_range(offset as u64, length as u64)) }
    }

    fn check_writable(&self) -> Result<()> {
        if self.writable { Ok(()) } else { Err(Error::ReadOnly) }
    }

    #[cold]
    fn out_of_range(&self, offset: u64, length: u64) -> Error {
        Error::OutOfRange { offset, length, available: self.length as u64 }
    }
}

/// Reads into an allocation.
fn read_by_pieces(file: &mut File, length: usize) -> std::io::Result<Span> {
    let span = Span::zeroed(length, BASE_ALIGNMENT, &MemoryAccount::default()).map_err(std::io::Error::other)?;
    let mut piece = vec![0; length.min(1 << 16)];
    let mut at = 0;
    while at < length {
        let wanted = piece.len().min(length - at);
        match file.read(&mut piece[..wanted]) {
            Ok(0) => break,
            Ok(read) => {
                span.write(at, &piece[..read]).map_err(std::io::Error::other)?;
                at += read;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(span.slice(0, at).map_err(std::io::Error::other)?.read_only())
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span").field("length", &self.length).field("writable", &self.writable).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "span_tests.rs"]
mod tests;
