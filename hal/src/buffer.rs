//! `!hal.buffer`: bytes that devices and kernels use.

use std::sync::atomic::{AtomicU32, Ordering};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Buffer, Error, Handle, Origin, RefObject, Result};

/// Where memory may live and who sees it (bit set).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryType(pub u32);

impl MemoryType {
    /// Host memory that devices see: what every buffer of this runtime is.
    pub const HOST_LOCAL: Self = Self(2 | 4 | 16 | 32 | 64);
}

/// What a buffer may be used for (bit set).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage(pub u32);

impl Usage {
    /// Everything.
    pub const ALL: Self = Self(0x1F00_3F03);
    /// The bytes are never written and may be shared.
    pub const SHARING_IMMUTABLE: Self = Self(0x8_0000);
}

/// A HAL buffer: a range of storage.
#[derive(Debug)]
pub struct HalBuffer {
    span: Span,
    /// Memory type bits.
    pub memory_type: MemoryType,
    /// Usage bits.
    pub usage: Usage,
    /// The allocation that this is a part of.
    root: Option<Handle<HalBuffer>>,
    /// Owners of the allocation that the program counts.
    owners: AtomicU32,
}

impl RefObject for HalBuffer {
    const TYPE_NAME: &'static str = "hal.buffer";
}

impl HalBuffer {
    /// A buffer over a span.
    pub fn new(span: Span) -> Self {
        Self::with_usage(span, MemoryType::HOST_LOCAL, Usage::ALL)
    }

    /// A buffer over a span that is good for some uses alone.
    pub fn with_usage(span: Span, memory_type: MemoryType, usage: Usage) -> Self {
        Self { span, memory_type, usage, root: None, owners: AtomicU32::new(1) }
    }

    /// New zeroed bytes.
    pub fn allocate(length: usize, alignment: usize, account: &MemoryAccount) -> Result<Self> {
        Ok(Self::new(Span::zeroed(length, alignment, account)?))
    }

    /// The bytes.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.span.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.span.is_empty()
    }

    /// A VM buffer over the same bytes.
    pub fn storage(&self) -> Buffer {
        Buffer::new(self.span.clone(), Origin::Host)
    }

    /// Counts one more owner of the allocation.
    pub fn preserve(&self) {
        self.change_owners(|owners| owners.checked_add(1));
    }

    /// Counts one owner of the allocation less; true if it was the last.
    pub fn discard(&self) -> bool {
        self.change_owners(|owners| owners.checked_sub(1)) == Some(1)
    }

    /// Replaces the number of owners by what `next` makes of it; the number before, or `None` if there is no next one.
    /// (The library's method for this has another name in newer releases than in the oldest that is supported.)
    fn change_owners(&self, next: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let owners = self.owners();
        let mut current = owners.load(Ordering::Relaxed);
        while let Some(changed) = next(current) {
            match owners.compare_exchange_weak(current, changed, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(before) => return Some(before),
                Err(now) => current = now,
            }
        }
        None
    }

    /// Whether the allocation has one owner.
    pub fn is_terminal(&self) -> bool {
        self.owners().load(Ordering::Relaxed) == 1
    }

    fn owners(&self) -> &AtomicU32 {
        self.root.as_ref().map_or(&self.owners, |root| &root.owners)
    }

    /// Resolves a range as programs state it: length `u64::MAX` means up to the end. OUT_OF_RANGE names all three numbers.
    pub fn resolve_range(&self, offset: u64, length: u64) -> Result<(usize, usize)> {
        let available = self.len() as u64;
        let rest = available.checked_sub(offset);
        let length = if length == u64::MAX { rest.unwrap_or(u64::MAX) } else { length };
        match rest {
            Some(rest) if length <= rest => Ok((offset as usize, length as usize)),
            _ => Err(Error::out_of_range(format!(
                "the range of {length} bytes at offset {offset} does not lie in the buffer of {available} bytes"
            ))),
        }
    }
}

/// A part of a buffer, charged to the account; the whole range gives the same object.
pub fn subspan(buffer: &Handle<HalBuffer>, offset: u64, length: u64, account: &MemoryAccount) -> Result<Handle<HalBuffer>> {
    let (offset, length) = buffer.resolve_range(offset, length)?;
    if offset == 0 && length == buffer.len() {
        return Ok(buffer.clone());
    }
    let span = buffer.span.slice(offset, length)?;
    let root = Some(buffer.root.as_ref().unwrap_or(buffer).clone());
    Handle::charged(HalBuffer { root, ..HalBuffer::with_usage(span, buffer.memory_type, buffer.usage) }, 0, account)
}
