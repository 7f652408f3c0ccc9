//! The argument buffer of import calls: packing arguments into bytes, and reading them back.
//!
//! A native function that unpacks its arguments itself gets them as one run of little-endian bytes. The calling convention
//! alone decides where a field stands, never the layout of a host struct:
//!
//! | item | [`Layout::Packed`] | [`Layout::Aligned`] |
//! |---|---|---|
//! | `i`, `f` | 4 bytes | 4 bytes |
//! | `I`, `F` | 8 bytes | 8 bytes at a multiple of 8 |
//! | `r` | 16 bytes | 16 bytes at a multiple of 8 |
//! | span | `u32` tuple count, tuples back to back | `u32` tuple count; if there are tuples, the first starts at a multiple of its largest alignment |
//! | end | after the last field | at a multiple of the largest alignment met |
//!
//! A reference stands there as a slot: `u32` index + 1 into the call's references (0 for null), `u32` [`ReferenceTag`],
//! 8 zero bytes. [`resolve_reference`] accepts nothing else, so any bytes are safe to read.

use crate::{Error, Ref, Result};
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind};

/// Bytes of a reference slot.
pub const REFERENCE_BYTES: usize = 16;

/// Alignment of a reference slot in [`Layout::Aligned`].
const REFERENCE_ALIGNMENT: usize = 8;

/// Bytes of a tuple count.
const COUNT_BYTES: usize = 4;

/// Where fields may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Back to back (runtimes before 2026).
    Packed,
    /// At multiples of their size (runtimes since 2026, and this one).
    Aligned,
}

/// What a reference slot says about the type of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ReferenceTag {
    /// Null.
    Null = 0,
    /// `!vm.buffer`.
    Buffer = 1,
    /// `!vm.list<…>`.
    List = 2,
    /// Any other object.
    Object = 3,
}

impl ReferenceTag {
    /// The tag of a reference.
    #[inline]
    pub fn of(reference: &Ref) -> Self {
        match reference {
            Ref::Null => Self::Null,
            Ref::Buffer(_) => Self::Buffer,
            Ref::List(_) => Self::List,
            Ref::Object(_) => Self::Object,
        }
    }
}

/// The slot of the reference with this index in the call's references.
#[inline]
pub fn reference_slot(index: u32, reference: &Ref) -> [u8; REFERENCE_BYTES] {
    let tag = ReferenceTag::of(reference);
    let number = if tag == ReferenceTag::Null { 0 } else { index.wrapping_add(1) };
    let mut slot = [0; REFERENCE_BYTES];
    slot[..4].copy_from_slice(&number.to_le_bytes());
    slot[4..8].copy_from_slice(&(tag as u32).to_le_bytes());
    slot
}

/// What a slot refers to; INVALID_ARGUMENT for anything that [`reference_slot`] does not make.
#[inline]
pub fn resolve_reference<'a>(slot: &[u8; REFERENCE_BYTES], references: &'a [Ref]) -> Result<&'a Ref> {
    const NULL: &Ref = &Ref::Null;
    let [n0, n1, n2, n3, t0, t1, t2, t3, rest @ ..] = *slot;
    let (number, tag) = (u32::from_le_bytes([n0, n1, n2, n3]), u32::from_le_bytes([t0, t1, t2, t3]));
    let reference = match number.checked_sub(1) {
        None => NULL,
        Some(index) => references.get(index as usize).filter(|reference| !reference.is_null()).ok_or_else(|| bad_slot(slot, references))?,
    };
    if tag != ReferenceTag::of(reference) as u32 || rest != [0; 8] {
        return Err(bad_slot(slot, references));
    }
    Ok(reference)
}

#[cold]
fn bad_slot(slot: &[u8; REFERENCE_BYTES], references: &[Ref]) -> Error {
    Error::invalid(format!("reference slot {slot:02x?} is none of a call with {} references", references.len()))
}

/// Where the arguments of a calling convention stand. Made once per import.
#[derive(Clone, Debug)]
pub struct ArgumentLayout {
    layout: Layout,
    items: Box<[PackedItem]>,
}

#[derive(Clone, Debug)]
enum PackedItem {
    Plain(Kind),
    Span(Tuple),
}

/// The fields of a span's tuples.
#[derive(Clone, Debug)]
struct Tuple {
    fields: Box<[Kind]>,
    alignment: usize,
    /// Bytes from one tuple to the next, where that is the same for all.
    stride: Option<usize>,
}

/// An argument as [`ArgumentLayout::read`] finds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// `i`
    I32(i32),
    /// `I`
    I64(i64),
    /// `f`
    F32(f32),
    /// `F`
    F64(f64),
    /// `r`: a slot for [`resolve_reference`].
    Reference([u8; REFERENCE_BYTES]),
    /// The tuples of a span.
    Span(Vec<Vec<Argument>>),
}

impl ArgumentLayout {
    /// The layout of a calling convention's arguments.
    pub fn new(convention: &CallingConvention, layout: Layout) -> Self {
        let item = |item: &Item| match item {
            Item::Plain(kind) => PackedItem::Plain(*kind),
            Item::Span(fields) => PackedItem::Span(Tuple::new(fields, layout)),
        };
        Self { layout, items: convention.arguments.iter().map(item).collect() }
    }

    /// Length of the argument buffer in bytes. `segments` has the tuple count of each span.
    pub fn size(&self, segments: &[u16]) -> Result<usize> {
        let (mut at, mut largest, mut segments) = (0usize, 1usize, segments.iter());
        for item in &self.items {
            match item {
                PackedItem::Plain(kind) => {
                    let alignment = alignment(*kind, self.layout);
                    largest = largest.max(alignment);
                    at = advance(at, alignment, bytes(*kind))?;
                }
                PackedItem::Span(tuple) => {
                    let count = usize::from(*segments.next().ok_or_else(wrong_counts)?);
                    largest = largest.max(tuple.alignment).max(alignment(Kind::I32, self.layout));
                    at = advance(at, alignment(Kind::I32, self.layout), COUNT_BYTES)?;
                    at = tuple.end(advance(at, tuple.alignment, 0)?, count, self.layout)?;
                }
            }
        }
        if segments.next().is_some() {
            return Err(wrong_counts());
        }
        advance(at, largest, 0)
    }

    /// Packs the arguments of a call. `values` are 32-bit slots in the order of the arguments, 64-bit values as low and high
    /// slot without alignment; `references` in the order of the arguments; `segments` the tuple count of each span.
    ///
    /// The buffer is replaced; nothing is allocated if its capacity suffices. Counts that do not fit the calling convention are
    /// INTERNAL: who calls has checked them.
    pub fn write(&self, values: &[u32], references: &[Ref], segments: &[u16], buffer: &mut Vec<u8>) -> Result<()> {
        let size = self.size(segments)?;
        buffer.clear();
        buffer.try_reserve(size).map_err(|_| Error::exhausted(format!("no memory for {size} bytes of arguments")))?;
        let mut writer = Writer { layout: self.layout, buffer, values, references, next_reference: 0 };
        let mut segments = segments.iter();
        for item in &self.items {
            match item {
                PackedItem::Plain(kind) => writer.field(*kind)?,
                PackedItem::Span(tuple) => {
                    let count = *segments.next().ok_or_else(wrong_counts)?;
                    writer.word(u32::from(count));
                    if count > 0 {
                        writer.align(tuple.alignment);
                    }
                    for _ in 0..count {
                        tuple.fields.iter().try_for_each(|kind| writer.field(*kind))?;
                    }
                }
            }
        }
        if !writer.values.is_empty() || writer.next_reference != references.len() {
            return Err(wrong_counts());
        }
        buffer.resize(size, 0);
        Ok(())
    }

    /// Reads an argument buffer: INVALID_ARGUMENT if it is not exactly as long as its counts say, or a count has more than 16 bits.
    pub fn read(&self, buffer: &[u8]) -> Result<Vec<Argument>> {
        let mut reader = Reader { layout: self.layout, buffer, at: 0 };
        let (mut arguments, mut segments) = (Vec::new(), Vec::new());
        for item in &self.items {
            arguments.push(match item {
                PackedItem::Plain(kind) => reader.field(*kind)?,
                PackedItem::Span(tuple) => {
                    let count = reader.count()?;
                    segments.push(count);
                    reader.tuples(tuple, count)?
                }
            });
        }
        let wanted = self.size(&segments)?;
        if wanted != buffer.len() {
            return Err(Error::invalid(format!("the argument buffer has {} bytes, its counts ask for {wanted}", buffer.len())));
        }
        Ok(arguments)
    }
}

impl Tuple {
    fn new(fields: &[Kind], layout: Layout) -> Self {
        let alignment = fields.iter().map(|kind| alignment(*kind, layout)).max().unwrap_or(1);
        let mut tuple = Self { fields: fields.into(), alignment, stride: None };
        tuple.stride = tuple.end(0, 1, layout).ok().filter(|end| end % alignment == 0);
        tuple
    }

    /// Where `count` tuples end whose first starts at `at`, a multiple of the alignment.
    fn end(&self, mut at: usize, count: usize, layout: Layout) -> Result<usize> {
        if let Some(stride) = self.stride {
            return stride.checked_mul(count).and_then(|length| at.checked_add(length)).ok_or_else(too_long);
        }
        for _ in 0..count {
            for kind in &self.fields {
                at = advance(at, alignment(*kind, layout), bytes(*kind))?;
            }
        }
        Ok(at)
    }
}

fn bytes(kind: Kind) -> usize {
    match kind.value_slots() {
        0 => REFERENCE_BYTES,
        slots => usize::from(slots) * 4,
    }
}

fn alignment(kind: Kind, layout: Layout) -> usize {
    match layout {
        Layout::Packed => 1,
        Layout::Aligned => bytes(kind).min(REFERENCE_ALIGNMENT),
    }
}

/// The end of a field of `length` bytes at the next multiple of `alignment`.
fn advance(at: usize, alignment: usize, length: usize) -> Result<usize> {
    at.checked_next_multiple_of(alignment).and_then(|at| at.checked_add(length)).ok_or_else(too_long)
}

#[cold]
fn wrong_counts() -> Error {
    Error::internal("values, references and tuple counts of a call do not fit its calling convention")
}

#[cold]
fn too_long() -> Error {
    Error::exhausted("the arguments of a call take more bytes than there are addresses")
}

struct Writer<'a> {
    layout: Layout,
    buffer: &'a mut Vec<u8>,
    values: &'a [u32],
    references: &'a [Ref],
    next_reference: usize,
}

impl Writer<'_> {
    #[inline]
    fn align(&mut self, alignment: usize) {
        if !self.buffer.len().is_multiple_of(alignment) {
            self.buffer.resize(self.buffer.len().next_multiple_of(alignment), 0);
        }
    }

    #[inline]
    fn word(&mut self, value: u32) {
        self.align(alignment(Kind::I32, self.layout));
        self.buffer.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn field(&mut self, kind: Kind) -> Result<()> {
        match kind.value_slots() {
            0 => {
                let index = self.next_reference;
                let reference = self.references.get(index).ok_or_else(wrong_counts)?;
                self.align(alignment(kind, self.layout));
                self.buffer.extend_from_slice(&reference_slot(index as u32, reference));
                self.next_reference = index + 1;
            }
            1 => {
                let (value, rest) = self.values.split_first().ok_or_else(wrong_counts)?;
                self.values = rest;
                self.word(*value);
            }
            _ => {
                let ([low, high], rest) = self.values.split_first_chunk().ok_or_else(wrong_counts)?;
                self.values = rest;
                self.align(alignment(kind, self.layout));
                self.buffer.extend_from_slice(&(u64::from(*low) | u64::from(*high) << 32).to_le_bytes());
            }
        }
        Ok(())
    }
}

struct Reader<'a> {
    layout: Layout,
    buffer: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self, alignment: usize) -> Result<[u8; N]> {
        let at = advance(self.at, alignment, 0)?;
        let bytes = self.buffer.get(at..).and_then(|rest| rest.first_chunk::<N>());
        let length = self.buffer.len();
        let bytes = bytes.ok_or_else(|| Error::invalid(format!("the argument buffer has {length} bytes, {N} are wanted at {at}")))?;
        self.at = at + N;
        Ok(*bytes)
    }

    fn count(&mut self) -> Result<u16> {
        let count = u32::from_le_bytes(self.take(alignment(Kind::I32, self.layout))?);
        u16::try_from(count).map_err(|_| Error::invalid(format!("a span of {count} tuples; at most 65535 are possible")))
    }

    fn tuples(&mut self, tuple: &Tuple, count: u16) -> Result<Argument> {
        if count > 0 {
            self.at = advance(self.at, tuple.alignment, 0)?;
        }
        let one = |reader: &mut Self| tuple.fields.iter().map(|kind| reader.field(*kind)).collect();
        (0..count).map(|_| one(self)).collect::<Result<_>>().map(Argument::Span)
    }

    fn field(&mut self, kind: Kind) -> Result<Argument> {
        let alignment = alignment(kind, self.layout);
        Ok(match kind {
            Kind::I32 => Argument::I32(i32::from_le_bytes(self.take(alignment)?)),
            Kind::I64 => Argument::I64(i64::from_le_bytes(self.take(alignment)?)),
            Kind::F32 => Argument::F32(f32::from_le_bytes(self.take(alignment)?)),
            Kind::F64 => Argument::F64(f64::from_le_bytes(self.take(alignment)?)),
            Kind::Ref => Argument::Reference(self.take(alignment)?),
        })
    }
}

#[cfg(test)]
#[path = "abi_tests.rs"]
mod tests;
