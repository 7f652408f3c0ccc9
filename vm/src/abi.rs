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

/// Bytes of a word: everything consists of words.
const WORD: usize = 4;

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
    let mut slot = [0; REFERENCE_BYTES];
    slot[..4].copy_from_slice(&slot_number(index, tag).to_le_bytes());
    slot[4..8].copy_from_slice(&(tag as u32).to_le_bytes());
    slot
}

/// The first word of a slot.
#[inline]
fn slot_number(index: u32, tag: ReferenceTag) -> u32 {
    if tag == ReferenceTag::Null { 0 } else { index.wrapping_add(1) }
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
    /// The arguments, as the convention has them; what [`ArgumentLayout::read`] follows.
    items: Box<[Item]>,
    /// The same, as [`ArgumentLayout::write`] follows it.
    steps: Box<[Step]>,
    /// Alignment of the end, in words.
    end_alignment: usize,
}

/// A step of the writer. Every field is made of 32-bit words, in both layouts, and no alignment is above two words.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// That many value slots stand there as they are.
    Values(usize),
    /// A reference slot.
    Reference,
    /// A word of padding, if the next word has an odd position.
    Align,
    /// The tuples of a span.
    Span(Tuple),
}

/// The tuples of a span.
#[derive(Clone, Debug, PartialEq)]
struct Tuple {
    steps: Box<[Step]>,
    /// Whether the first one starts at an even position.
    aligned: bool,
    /// Words from one tuple to the next, where that is the same for all.
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
        let items: Box<[Item]> = convention.arguments.iter().cloned().collect();
        let widest = items.iter().flat_map(|item| match item {
            Item::Plain(kind) => std::slice::from_ref(kind),
            Item::Span(kinds) => kinds,
        });
        let end_alignment = widest.map(|kind| alignment(*kind, layout) / WORD).max().unwrap_or(1).max(1);
        Self { layout, steps: compile(&items, layout), items, end_alignment }
    }

    /// Length of the argument buffer in bytes. `segments` has the tuple count of each span.
    pub fn size(&self, segments: &[u16]) -> Result<usize> {
        let (mut words, mut segments) = (0usize, segments.iter());
        for step in &self.steps {
            words = words.checked_add(step.words(words)).ok_or_else(too_long)?;
            if let Step::Span(tuple) = step {
                let count = usize::from(*segments.next().ok_or_else(wrong_counts)?);
                // A tuple count is one word.
                let start = words.checked_next_multiple_of(if tuple.aligned { 2 } else { 1 }).ok_or_else(too_long)?;
                words = tuple.end(start, count)?;
            }
        }
        if segments.next().is_some() {
            return Err(wrong_counts());
        }
        words.checked_next_multiple_of(self.end_alignment).and_then(|words| words.checked_mul(WORD)).ok_or_else(too_long)
    }

    /// Packs the arguments of a call. `values` are 32-bit slots in the order of the arguments, 64-bit values as low and high
    /// slot without alignment; `references` in the order of the arguments; `segments` the tuple count of each span.
    ///
    /// The buffer is replaced; nothing is allocated if its capacity suffices. Counts that do not fit the calling convention are
    /// INTERNAL: who calls has checked them.
    pub fn write(&self, values: &[u32], references: &[Ref], segments: &[u16], buffer: &mut Vec<u8>) -> Result<()> {
        let size = self.size(segments)?;
        if size > buffer.len() {
            buffer.try_reserve(size - buffer.len()).map_err(|_| Error::exhausted(format!("no memory for {size} bytes of arguments")))?;
        }
        buffer.resize(size, 0);
        let (words, _) = buffer.as_chunks_mut();
        let mut writer = Writer { words, at: 0, values, references, next_reference: 0 };
        let mut segments = segments.iter();
        for step in &self.steps {
            match step {
                Step::Span(tuple) => writer.span(tuple, *segments.next().ok_or_else(wrong_counts)?)?,
                plain => writer.step(plain)?,
            }
        }
        writer.finish()
    }

    /// Reads an argument buffer: INVALID_ARGUMENT if it is not exactly as long as its counts say, or a count has more than 16 bits.
    pub fn read(&self, buffer: &[u8]) -> Result<Vec<Argument>> {
        let mut reader = Reader { layout: self.layout, buffer, at: 0 };
        let (mut arguments, mut segments) = (Vec::new(), Vec::new());
        for item in &self.items {
            arguments.push(match item {
                Item::Plain(kind) => reader.field(*kind)?,
                Item::Span(kinds) => {
                    let count = reader.count()?;
                    segments.push(count);
                    reader.tuples(kinds, count)?
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

/// The steps that write these arguments.
fn compile(items: &[Item], layout: Layout) -> Box<[Step]> {
    let mut compiler = Compiler { layout, steps: Vec::new(), odd: Some(false) };
    for item in items {
        match item {
            Item::Plain(kind) => compiler.field(*kind),
            Item::Span(kinds) => {
                compiler.steps.push(Step::Span(Tuple::new(kinds, layout)));
                // That depends on the number of tuples.
                compiler.odd = None;
            }
        }
    }
    compiler.steps.into()
}

struct Compiler {
    layout: Layout,
    steps: Vec<Step>,
    /// Whether the next position is odd, where that is known.
    odd: Option<bool>,
}

impl Compiler {
    fn field(&mut self, kind: Kind) {
        if alignment(kind, self.layout) > WORD && self.odd != Some(false) {
            self.steps.push(Step::Align);
            self.odd = Some(false);
        }
        let words = usize::from(kind.value_slots());
        match self.steps.last_mut() {
            _ if words == 0 => self.steps.push(Step::Reference),
            Some(Step::Values(count)) => *count += words,
            _ => self.steps.push(Step::Values(words)),
        }
        if words == 1 {
            self.odd = self.odd.map(|odd| !odd);
        }
    }
}

impl Tuple {
    fn new(kinds: &[Kind], layout: Layout) -> Self {
        let aligned = kinds.iter().any(|kind| alignment(*kind, layout) > WORD);
        let steps = |odd: Option<bool>| {
            let mut compiler = Compiler { layout, steps: Vec::new(), odd };
            kinds.iter().for_each(|kind| compiler.field(*kind));
            (compiler.steps.into_boxed_slice(), compiler.odd)
        };
        let (regular, end) = steps(Some(false));
        if aligned && end != Some(false) {
            // Every second tuple starts at an odd position.
            return Self { steps: steps(None).0, aligned, stride: None };
        }
        let stride = Some(end_of(&regular, 0));
        Self { steps: regular, aligned, stride }
    }

    /// Where `count` tuples end, in words, whose first starts at `at`.
    fn end(&self, at: usize, count: usize) -> Result<usize> {
        match self.stride {
            Some(stride) => stride.checked_mul(count).and_then(|words| at.checked_add(words)).ok_or_else(too_long),
            None => (0..count).try_fold(at, |at, _| Some(end_of(&self.steps, at)).filter(|end| *end >= at)).ok_or_else(too_long),
        }
    }
}

impl Step {
    /// Words that the step takes at this position; of a span only its tuple count.
    #[inline]
    fn words(&self, at: usize) -> usize {
        match self {
            Self::Values(count) => *count,
            Self::Reference => REFERENCE_BYTES / WORD,
            Self::Align => at & 1,
            Self::Span(_) => 1,
        }
    }
}

fn end_of(steps: &[Step], start: usize) -> usize {
    steps.iter().fold(start, |at, step| at.wrapping_add(step.words(at)))
}

fn bytes(kind: Kind) -> usize {
    match kind.value_slots() {
        0 => REFERENCE_BYTES,
        slots => usize::from(slots) * WORD,
    }
}

fn alignment(kind: Kind, layout: Layout) -> usize {
    match layout {
        Layout::Packed => 1,
        Layout::Aligned => bytes(kind).min(REFERENCE_ALIGNMENT),
    }
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
    words: &'a mut [[u8; WORD]],
    at: usize,
    values: &'a [u32],
    references: &'a [Ref],
    next_reference: usize,
}

impl Writer<'_> {
    #[inline(always)]
    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            // Copies of a constant length need no call.
            Step::Values(2) => self.copy::<2>(),
            Step::Values(4) => self.copy::<4>(),
            Step::Values(5) => self.copy::<5>(),
            Step::Values(count) => self.copy_many(*count),
            Step::Reference => self.reference(),
            Step::Align if self.at & 1 == 1 => self.put([[0; WORD]]),
            Step::Align | Step::Span(_) => Ok(()),
        }
    }

    #[inline]
    fn span(&mut self, tuple: &Tuple, count: u16) -> Result<()> {
        self.put([u32::from(count).to_le_bytes()])?;
        if count == 0 {
            return Ok(());
        }
        if tuple.aligned {
            self.step(&Step::Align)?;
        }
        match &*tuple.steps {
            [Step::Values(words)] => self.copy_many(words * usize::from(count)),
            // The bindings of dispatches.
            [Step::Reference, Step::Values(4)] => (0..count).try_for_each(|_| self.reference().and_then(|()| self.copy::<4>())),
            steps => (0..count).try_for_each(|_| steps.iter().try_for_each(|step| self.step(step))),
        }
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, words: [[u8; WORD]; N]) -> Result<()> {
        let target = self.words.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut()).ok_or_else(wrong_counts)?;
        *target = words;
        self.at += N;
        Ok(())
    }

    #[inline(always)]
    fn copy<const N: usize>(&mut self) -> Result<()> {
        let (values, rest) = self.values.split_first_chunk::<N>().ok_or_else(wrong_counts)?;
        self.values = rest;
        self.put(values.map(u32::to_le_bytes))
    }

    #[inline]
    fn copy_many(&mut self, count: usize) -> Result<()> {
        let (values, rest) = self.values.split_at_checked(count).ok_or_else(wrong_counts)?;
        self.values = rest;
        let target = self.words.get_mut(self.at..).and_then(|rest| rest.get_mut(..count)).ok_or_else(wrong_counts)?;
        target.iter_mut().zip(values).for_each(|(word, value)| *word = value.to_le_bytes());
        self.at += count;
        Ok(())
    }

    #[inline(always)]
    fn reference(&mut self) -> Result<()> {
        let index = self.next_reference;
        let reference = self.references.get(index).ok_or_else(wrong_counts)?;
        self.next_reference = index + 1;
        let tag = ReferenceTag::of(reference);
        self.put([slot_number(index as u32, tag).to_le_bytes(), (tag as u32).to_le_bytes(), [0; WORD], [0; WORD]])
    }

    /// Clears the padding at the end; everything must have been used.
    fn finish(self) -> Result<()> {
        self.words.get_mut(self.at..).ok_or_else(wrong_counts)?.fill([0; WORD]);
        if self.values.is_empty() && self.next_reference == self.references.len() { Ok(()) } else { Err(wrong_counts()) }
    }
}

struct Reader<'a> {
    layout: Layout,
    buffer: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self, alignment: usize) -> Result<[u8; N]> {
        // The position is at most the buffer's length.
        let at = self.at.next_multiple_of(alignment);
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

    fn tuples(&mut self, kinds: &[Kind], count: u16) -> Result<Argument> {
        if count > 0 {
            let widest = kinds.iter().map(|kind| alignment(*kind, self.layout)).max().unwrap_or(1);
            self.at = self.at.next_multiple_of(widest);
        }
        let one = |reader: &mut Self| kinds.iter().map(|kind| reader.field(*kind)).collect();
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
