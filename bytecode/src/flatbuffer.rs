//! A bounded FlatBuffer reader: every access is checked against the bytes, and nothing is believed.

use crate::{Error, Result, Status};
use byteorder::{ByteOrder, LittleEndian};
use std::cell::Cell;

/// Scalars are aligned relative to the 4-byte size prefix before the buffer.
const PREFIX: usize = 4;

/// Reading may allocate this many times the length of the buffer. Honest files stay below 12; a file that refers to one large
/// part many times would go far above.
const ALLOWANCE_FACTOR: usize = 32;

/// Allowance that even the smallest buffer has.
const ALLOWANCE_BASE: usize = 4096;

/// A FlatBuffer without its size prefix.
pub struct Buffer<'a> {
    bytes: &'a [u8],
    allowance: Cell<usize>,
}

/// A vtable slot and the name of its field, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Slot(pub usize, pub &'static str);

/// A table whose vtable and extent were checked.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    buffer: &'a Buffer<'a>,
    position: usize,
    size: usize,
    vtable: &'a [u8],
    name: &'static str,
}

/// A vector of `count` elements, all of them in bounds.
#[derive(Clone, Copy)]
pub struct Vector<'a> {
    buffer: &'a Buffer<'a>,
    /// Position of the first element in the buffer.
    position: usize,
    bytes: &'a [u8],
    count: usize,
    name: &'static str,
}

impl<'a> Buffer<'a> {
    /// Takes the bytes of a buffer, without looking at them.
    pub fn new(bytes: &'a [u8]) -> Self {
        let allowance = bytes.len().saturating_mul(ALLOWANCE_FACTOR).saturating_add(ALLOWANCE_BASE);
        Self { bytes, allowance: Cell::new(allowance) }
    }

    /// The root table; the buffer must carry the identifier.
    pub fn root(&'a self, identifier: &[u8; 4], name: &'static str) -> Result<Table<'a>> {
        let found = self
            .bytes
            .get(4..8)
            .ok_or_else(|| Error::invalid(format!("a FlatBuffer has at least 8 bytes, this one {}", self.bytes.len())))?;
        if found != identifier {
            return Err(Error::invalid(format!(
                "FlatBuffer identifier is \"{}\", wanted \"{}\"",
                found.escape_ascii(),
                identifier.escape_ascii()
            )));
        }
        let position = self.follow(0, name)?;
        self.table_at(position, name)
    }

    /// Accounts for `bytes` of memory that the caller is about to allocate for what it reads.
    pub fn charge(&self, bytes: usize) -> Result<()> {
        let left = self.allowance.get().checked_sub(bytes).ok_or_else(|| {
            Error::new(
                Status::ResourceExhausted,
                format!(
                    "the FlatBuffer of {} bytes refers to the same parts so often that reading it takes unreasonable memory",
                    self.bytes.len()
                ),
            )
        })?;
        self.allowance.set(left);
        Ok(())
    }

    fn get(&self, position: usize, length: usize, what: &str) -> Result<&'a [u8]> {
        let end = position.checked_add(length);
        end.and_then(|end| self.bytes.get(position..end)).ok_or_else(|| {
            Error::invalid(format!(
                "FlatBuffer: {what} needs {length} bytes at {position:#x}, but the buffer ends at {:#x}",
                self.bytes.len()
            ))
        })
    }

    fn aligned(&self, position: usize, alignment: usize, what: &str) -> Result<()> {
        if position.wrapping_add(PREFIX).is_multiple_of(alignment) {
            return Ok(());
        }
        Err(Error::invalid(format!("FlatBuffer: {what} at {position:#x} is not aligned to {alignment}")))
    }

    fn u32_at(&self, position: usize, what: &str) -> Result<u32> {
        self.aligned(position, 4, what)?;
        self.get(position, 4, what).map(LittleEndian::read_u32)
    }

    /// The position that the offset stored at `position` points to.
    fn follow(&self, position: usize, what: &str) -> Result<usize> {
        let offset = self.u32_at(position, what)? as usize;
        let target = position.checked_add(offset).filter(|target| offset != 0 && *target < self.bytes.len());
        target.ok_or_else(|| {
            Error::invalid(format!(
                "FlatBuffer: the offset of {what} at {position:#x} is {offset:#x}, which does not point into the buffer of {:#x} bytes",
                self.bytes.len()
            ))
        })
    }

    fn table_at(&'a self, position: usize, name: &'static str) -> Result<Table<'a>> {
        self.aligned(position, 4, name)?;
        let back = i64::from(LittleEndian::read_i32(self.get(position, 4, name)?));
        let vtable = usize::try_from(position as i64 - back)
            .map_err(|_| Error::invalid(format!("FlatBuffer: the vtable of {name} at {position:#x} lies before the buffer")))?;
        self.aligned(vtable, 2, name)?;
        let head = self.get(vtable, 4, name)?;
        let (vtable_size, size) = (LittleEndian::read_u16(head) as usize, LittleEndian::read_u16(&head[2..]) as usize);
        if vtable_size < 4 || !vtable_size.is_multiple_of(2) || size < 4 {
            return Err(Error::invalid(format!(
                "FlatBuffer: {name} at {position:#x} has a vtable of {vtable_size} bytes and a table of {size}"
            )));
        }
        self.get(position, size, name)?;
        Ok(Table { buffer: self, position, size, vtable: self.get(vtable, vtable_size, name)?, name })
    }

    fn vector_at(&'a self, position: usize, element: usize, alignment: usize, name: &'static str) -> Result<Vector<'a>> {
        let count = self.u32_at(position, name)? as usize;
        let first = position + 4;
        if count != 0 {
            self.aligned(first, alignment, name)?;
        }
        let length = count
            .checked_mul(element)
            .ok_or_else(|| Error::invalid(format!("FlatBuffer: {name} at {position:#x} counts {count} elements, more than can be")))?;
        Ok(Vector { buffer: self, position: first, bytes: self.get(first, length, name)?, count, name })
    }

    fn string_at(&'a self, position: usize, name: &'static str) -> Result<&'a [u8]> {
        let vector = self.vector_at(position, 1, 1, name)?;
        match self.bytes.get(vector.position + vector.count) {
            Some(0) => Ok(vector.bytes),
            _ => Err(Error::invalid(format!("FlatBuffer: the string {name} at {position:#x} has no NUL behind it"))),
        }
    }
}

impl<'a> Table<'a> {
    /// Length of the vtable in bytes; it tells how many slots the writer knew.
    pub fn vtable_size(&self) -> usize {
        self.vtable.len()
    }

    /// A `u8`, or the default.
    pub fn u8(&self, slot: Slot, default: u8) -> Result<u8> {
        Ok(self.field(slot, 1)?.and_then(|position| self.buffer.bytes.get(position).copied()).unwrap_or(default))
    }

    /// A `u32`, or the default.
    pub fn u32(&self, slot: Slot, default: u32) -> Result<u32> {
        self.field(slot, 4)?.map_or(Ok(default), |position| self.buffer.u32_at(position, slot.1))
    }

    /// An `i32`, or 0.
    pub fn i32(&self, slot: Slot) -> Result<i32> {
        self.u32(slot, 0).map(u32::cast_signed)
    }

    /// A `u64`, or 0.
    pub fn u64(&self, slot: Slot) -> Result<u64> {
        self.field(slot, 8)?.map_or(Ok(0), |position| self.buffer.get(position, 8, slot.1).map(LittleEndian::read_u64))
    }

    /// The bytes of a string without its NUL; they need not be UTF-8.
    pub fn string(&self, slot: Slot) -> Result<Option<&'a [u8]>> {
        self.target(slot)?.map(|position| self.buffer.string_at(position, slot.1)).transpose()
    }

    /// A string with its position, which tells shared strings.
    pub fn string_with_position(&self, slot: Slot) -> Result<Option<(usize, &'a [u8])>> {
        let Some(position) = self.target(slot)? else { return Ok(None) };
        Ok(Some((position, self.buffer.string_at(position, slot.1)?)))
    }

    /// A table.
    pub fn table(&self, slot: Slot) -> Result<Option<Table<'a>>> {
        self.target(slot)?.map(|position| self.buffer.table_at(position, slot.1)).transpose()
    }

    /// A vector of offsets: of tables, strings or union values.
    pub fn offsets(&self, slot: Slot) -> Result<Option<Vector<'a>>> {
        self.structs(slot, 4, 4)
    }

    /// A vector of inline elements.
    pub fn structs(&self, slot: Slot, element: usize, alignment: usize) -> Result<Option<Vector<'a>>> {
        self.target(slot)?.map(|position| self.buffer.vector_at(position, element, alignment, slot.1)).transpose()
    }

    /// Position of a field of the given size in the buffer; `None` when the field is absent.
    fn field(&self, slot: Slot, size: usize) -> Result<Option<usize>> {
        let entry = slot.0.checked_mul(2).and_then(|at| at.checked_add(4)).and_then(|at| self.vtable.get(at..)?.get(..2));
        let offset = entry.map_or(0, LittleEndian::read_u16) as usize;
        if offset == 0 {
            return Ok(None);
        }
        if offset < 4 || offset + size > self.size {
            return Err(Error::invalid(format!(
                "FlatBuffer: field {} of {} at {:#x} lies outside of its table of {} bytes",
                slot.1, self.name, self.position, self.size
            )));
        }
        let position = self.position + offset;
        self.buffer.aligned(position, size, slot.1)?;
        Ok(Some(position))
    }

    fn target(&self, slot: Slot) -> Result<Option<usize>> {
        self.field(slot, 4)?.map(|position| self.buffer.follow(position, slot.1)).transpose()
    }
}

impl<'a> Vector<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Position of the first element in the buffer.
    pub fn position(&self) -> usize {
        self.position
    }

    /// All elements as they are stored.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements of inline vectors as they are stored.
    pub fn elements(&self, size: usize) -> std::slice::ChunksExact<'a, u8> {
        self.bytes.chunks_exact(size.max(1))
    }

    /// The table that element `index` of a vector of offsets points to.
    pub fn table(&self, index: usize, name: &'static str) -> Result<Table<'a>> {
        self.buffer.table_at(self.buffer.follow(self.element(index, 4)?, self.name)?, name)
    }

    fn element(&self, index: usize, size: usize) -> Result<usize> {
        if index < self.count {
            return Ok(self.position + index * size);
        }
        Err(Error::invalid(format!("FlatBuffer: {} has {} elements, element {index} is wanted", self.name, self.count)))
    }
}

#[cfg(test)]
#[path = "flatbuffer_tests.rs"]
mod tests;
