//! `!hal.buffer`: bytes that devices and kernels use.

use crate::{Bytes, Writer};
use std::sync::atomic::{AtomicU32, Ordering};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Buffer, Error, Handle, Holders, Meter, Origin, RefObject, Result};

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

/// A HAL buffer: a range of bytes.
#[derive(Debug)]
pub struct HalBuffer {
    bytes: Bytes,
    /// Whether programs work in place on it although the host keeps a reference.
    in_place: bool,
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

    fn lent(&self, holders: Holders) -> Option<Self> {
        let handed_over = holders == Holders::Call && self.has_sole_bytes();
        (!handed_over && !self.in_place).then(|| self.to_lent())
    }
}

impl HalBuffer {
    /// A buffer over a span.
    pub fn new(span: Span) -> Self {
        Self::with_usage(span, MemoryType::HOST_LOCAL, Usage::ALL)
    }

    /// A buffer over a span that is good for some uses alone.
    pub fn with_usage(span: Span, memory_type: MemoryType, usage: Usage) -> Self {
        Self::of_bytes(Bytes::own(span), memory_type, usage)
    }

    /// A buffer over the bytes of a constant. What a call writes into it is seen by that call alone; what the host or an
    /// initialiser writes stays.
    pub fn constant(span: Span, memory_type: MemoryType, usage: Usage) -> Self {
        Self::of_bytes(Bytes::constant(span), memory_type, usage)
    }

    /// A buffer over bytes.
    fn of_bytes(bytes: Bytes, memory_type: MemoryType, usage: Usage) -> Self {
        Self { bytes, in_place: false, memory_type, usage, root: None, owners: AtomicU32::new(1) }
    }

    /// New zeroed bytes.
    pub fn allocate(length: usize, alignment: usize, account: &MemoryAccount) -> Result<Self> {
        Ok(Self::new(Span::zeroed(length, alignment, account)?))
    }

    /// The bytes, to be looked up for reading or writing.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes as the host sees them. Of a constant, or a tensor that the host keeps, this span is read-only.
    pub fn span(&self) -> Span {
        self.bytes.current()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A VM buffer over the same bytes. What must keep its value is copied now, as nobody can tell whether the buffer is written.
    pub fn storage(&self, meter: &mut Meter) -> Result<Buffer> {
        Ok(Buffer::new(self.bytes.writable(Writer::Checked, meter)?, Origin::Host))
    }

    /// Lets programs work in place on the buffer although the host keeps references.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        self.in_place = true;
        self
    }

    /// Whether programs work in place on the buffer although the host keeps references.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Whether a program may write the bytes in place and nothing else refers to them.
    pub(crate) fn has_sole_bytes(&self) -> bool {
        match &self.root {
            None => self.bytes.holders() == Some(1),
            // The allocation that this is a part of has one, too.
            Some(root) => Handle::is_sole(root) && self.bytes.holders() == Some(2),
        }
    }

    /// A buffer with the same bytes, which are copied when they may first be written.
    pub(crate) fn to_lent(&self) -> Self {
        Self::of_bytes(Bytes::argument(self.span()), self.memory_type, self.usage)
    }

    /// Counts one more owner of the allocation.
    pub fn preserve(&self) {
        self.change_owners(|owners| owners.checked_add(1));
    }

    /// Counts one owner of the allocation less; true if it was the last.
    pub fn discard(&self) -> bool {
        self.change_owners(|owners| owners.checked_sub(1)) == Some(1)
    }

    /// Changes the number of owners, if there is a number to change it to, and returns what it was before.
    fn change_owners(&self, change: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let mut owners = self.owners().load(Ordering::Relaxed);
        loop {
            let changed = change(owners)?;
            match self.owners().compare_exchange_weak(owners, changed, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(before) => return Some(before),
                Err(now) => owners = now,
            }
        }
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

/// The buffer for a view: what a call has written into a constant goes along with the view, which may outlive the call.
pub(crate) fn for_view(buffer: Handle<HalBuffer>, meter: &Meter) -> Result<Handle<HalBuffer>> {
    match buffer.bytes.written_by(meter.scope())? {
        Some(span) => Handle::charged(HalBuffer::with_usage(span, buffer.memory_type, buffer.usage), 0, meter.account()),
        None => Ok(buffer),
    }
}

/// A part of a buffer, charged to the account; the whole range gives the same object.
pub fn subspan(buffer: &Handle<HalBuffer>, offset: u64, length: u64, account: &MemoryAccount) -> Result<Handle<HalBuffer>> {
    let (offset, length) = buffer.resolve_range(offset, length)?;
    if offset == 0 && length == buffer.len() {
        return Ok(buffer.clone());
    }
    let part = HalBuffer::of_bytes(buffer.bytes.slice(offset, length)?, buffer.memory_type, buffer.usage);
    let root = Some(buffer.root.as_ref().unwrap_or(buffer).clone());
    Handle::charged(HalBuffer { root, in_place: buffer.in_place, ..part }, 0, account)
}
