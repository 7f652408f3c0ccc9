//! Bytes to ops: the cursor over a function body, and the iterator over its instructions.

use crate::definition::BytecodeVersion;
use crate::isa::{Op, OpSet, Opcode, PREFIX_F32, PREFIX_F64};
use crate::{Error, Result};

/// Decodes the instruction at `pc` and returns it with the pc of the next one.
///
/// Errors carry no position; the caller knows function and pc.
///
/// # Errors
/// INVALID_ARGUMENT for an opcode that bytecode of this version does not have and for list padding that is not zero; OUT_OF_RANGE
/// for an instruction that runs past the end of the body.
pub fn decode_op(body: &[u8], pc: u32, version: BytecodeVersion) -> Result<(Op<'_>, u32)> {
    let mut cursor = Cursor::new(body, pc as usize, version);
    match Op::decode(&mut cursor) {
        Ok(op) => Ok((op, cursor.pc()?)),
        Err(failure) => Err(cursor.error(failure)),
    }
}

/// An instruction and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// Byte offset in the function.
    pub pc: u32,
    /// Byte offset of what follows.
    pub next: u32,
    /// The instruction.
    pub op: Op<'a>,
}

/// The instructions of a function body in address order; ends after the first error.
///
/// Bodies of 13.0 end with zero bytes that are no instructions: the iterator stops after the last terminator that only zeros follow.
#[derive(Clone, Debug)]
pub struct Instructions<'a> {
    cursor: Cursor<'a>,
    end: BodyEnd,
    after_terminator: bool,
    failed: bool,
}

impl<'a> Instructions<'a> {
    /// The instructions of the body.
    pub fn new(body: &'a [u8], version: BytecodeVersion) -> Self {
        let end = BodyEnd::new(body, version);
        Self { cursor: Cursor::new(body, 0, version), end, after_terminator: false, failed: false }
    }

    /// The bytes behind the last instruction (zeros in 13.0, none in later versions); whole once the iterator has ended.
    pub fn padding(&self) -> usize {
        self.cursor.rest.len()
    }

    fn step(&mut self) -> Result<Instruction<'a>> {
        let pc = self.cursor.pc()?;
        match Op::decode(&mut self.cursor) {
            Ok(op) => {
                self.after_terminator = op.is_terminator();
                Ok(Instruction { pc, next: self.cursor.pc()?, op })
            }
            Err(failure) => Err(Error { pc: Some(pc), ..self.cursor.error(failure) }),
        }
    }
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.end.reached(self.cursor.position(), self.after_terminator) {
            return None;
        }
        let result = self.step();
        self.failed = result.is_err();
        Some(result)
    }
}

impl std::iter::FusedIterator for Instructions<'_> {}

/// Where the instructions of a body end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyEnd {
    /// Length of the body.
    length: usize,
    /// From here on an instruction can only follow if no terminator went before.
    zeros: usize,
}

impl BodyEnd {
    pub(crate) fn new(body: &[u8], version: BytecodeVersion) -> Self {
        let length = body.len();
        // In 13.0 a block cannot begin in the zeros at the end: it would lack a terminator, since opcode 0 is none.
        let zeros = if version.has_block_markers() { length } else { body.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1) };
        Self { length, zeros }
    }

    #[inline]
    pub(crate) fn reached(self, position: usize, after_terminator: bool) -> bool {
        position >= self.length || (position >= self.zeros && after_terminator)
    }
}

/// A position in a function body.
///
/// Small and copied around, and never lent to a function that is not inlined, so that it can live in machine registers.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    body: &'a [u8],
    /// What is left of the body.
    rest: &'a [u8],
    version: BytecodeVersion,
}

/// Why bytes are no instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The bytes end before the instruction does.
    PastTheEnd,
    /// The padding of a list is not zero.
    Padding,
    /// The version has no such opcode.
    Opcode(OpSet, u8),
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(body: &'a [u8], position: usize, version: BytecodeVersion) -> Self {
        Self { body, rest: body.get(position..).unwrap_or_default(), version }
    }

    /// A cursor for operands that are the same in every version.
    pub(crate) fn unversioned(body: &'a [u8], position: usize) -> Self {
        Self::new(body, position, BytecodeVersion::V17)
    }

    #[inline(always)]
    pub(crate) fn version(&self) -> BytecodeVersion {
        self.version
    }

    pub(crate) fn body(&self) -> &'a [u8] {
        self.body
    }

    #[inline(always)]
    pub(crate) fn position(&self) -> usize {
        // `rest` is the end of `body`.
        self.body.len().wrapping_sub(self.rest.len())
    }

    /// What is left of the body.
    #[inline(always)]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The cursor where that is left of its body.
    #[inline(always)]
    pub(crate) fn with_rest(self, rest: &'a [u8]) -> Self {
        Self { rest, ..self }
    }

    /// The position as a pc.
    pub(crate) fn pc(&self) -> Result<u32> {
        u32::try_from(self.position()).map_err(|_| Error::out_of_range("the function is longer than 4 GiB"))
    }

    /// The failure in words.
    #[cold]
    pub(crate) fn error(&self, failure: Failure) -> Error {
        match failure {
            Failure::PastTheEnd => {
                Error::out_of_range(format!("the instruction runs past the end of the function, which has {:#x} bytes", self.body.len()))
            }
            Failure::Padding => Error::invalid("the padding byte before a list is not zero"),
            Failure::Opcode(set, byte) => crate::isa::unknown_opcode(set, byte, self.version.major()),
        }
    }

    /// The opcode at the position.
    #[inline(always)]
    pub(crate) fn opcode(&mut self) -> Result<Opcode, Failure> {
        let [first] = self.array()?;
        let (set, byte) = match first {
            PREFIX_F32 => (OpSet::F32, self.array::<1>()?[0]),
            PREFIX_F64 => (OpSet::F64, self.array::<1>()?[0]),
            core => (OpSet::Core, core),
        };
        Opcode::find(set, byte, self.version.major()).ok_or(Failure::Opcode(set, byte))
    }

    /// Fails if less than that many bytes are there.
    #[inline(always)]
    pub(crate) fn reserve(&self, length: usize) -> Result<(), Failure> {
        if self.rest.len() >= length { Ok(()) } else { Err(Failure::PastTheEnd) }
    }

    /// The next `N` bytes.
    #[inline(always)]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(Failure::PastTheEnd)?;
        self.rest = rest;
        Ok(*array)
    }

    /// The next bytes.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Failure> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Failure::PastTheEnd)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A padded list of entries of `N` bytes.
    #[inline(always)]
    pub(crate) fn list<const N: usize>(&mut self) -> Result<&'a [[u8; N]], Failure> {
        if self.position() & 1 != 0 && self.array::<1>()? != [0] {
            return Err(Failure::Padding);
        }
        let count = u16::from_le_bytes(self.array()?);
        Ok(self.bytes(usize::from(count) * N)?.as_chunks().0)
    }
}
