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
    let op = Op::decode(&mut cursor);
    cursor.check()?;
    Ok((op, cursor.pc()?))
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
        let op = Op::decode(&mut self.cursor);
        self.cursor.check().map_err(|mut error| {
            error.pc = Some(pc);
            error
        })?;
        self.after_terminator = op.is_terminator();
        Ok(Instruction { pc, next: self.cursor.pc()?, op })
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

/// A position in a function body. What cannot be read is remembered, and reading goes on with zeros.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    body: &'a [u8],
    /// What is left of the body.
    rest: &'a [u8],
    version: BytecodeVersion,
    failure: Option<Failure>,
}

/// The first thing that could not be read.
#[derive(Clone, Copy, Debug)]
enum Failure {
    PastTheEnd { position: usize, wanted: usize },
    Padding { position: usize },
    Opcode { set: OpSet, byte: u8 },
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(body: &'a [u8], position: usize, version: BytecodeVersion) -> Self {
        Self { body, rest: body.get(position..).unwrap_or_default(), version, failure: None }
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

    /// The position as a pc.
    pub(crate) fn pc(&self) -> Result<u32> {
        u32::try_from(self.position()).map_err(|_| Error::out_of_range("the function is longer than 4 GiB"))
    }

    /// What could not be read, if something could not.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.failure {
            None => Ok(()),
            Some(failure) => Err(self.error(failure)),
        }
    }

    /// Whether something could not be read.
    #[inline(always)]
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    #[cold]
    fn error(&self, failure: Failure) -> Error {
        match failure {
            Failure::PastTheEnd { position, wanted } => Error::out_of_range(format!(
                "the instruction runs past the end of the function: {wanted} bytes wanted at {position:#x}, the function has {:#x}",
                self.body.len()
            )),
            Failure::Padding { position } => Error::invalid(format!("the padding byte at {position:#x}, before a list, is not zero")),
            Failure::Opcode { set, byte } => crate::isa::unknown_opcode(set, byte, self.version.major()),
        }
    }

    #[cold]
    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    #[cold]
    fn fail_past_the_end(&mut self, wanted: usize) {
        self.fail(Failure::PastTheEnd { position: self.position(), wanted });
    }

    /// Takes note of a byte that is no opcode.
    #[cold]
    pub(crate) fn fail_opcode(&mut self, set: OpSet, byte: u8) {
        self.fail(Failure::Opcode { set, byte });
    }

    /// The opcode at the position.
    #[inline]
    pub(crate) fn opcode(&mut self) -> Option<Opcode> {
        let [first] = self.array();
        let (set, byte) = match first {
            PREFIX_F32 => (OpSet::F32, self.array::<1>()[0]),
            PREFIX_F64 => (OpSet::F64, self.array::<1>()[0]),
            core => (OpSet::Core, core),
        };
        let opcode = Opcode::find(set, byte, self.version.major());
        if opcode.is_none() {
            self.fail_opcode(set, byte);
        }
        opcode
    }

    /// Whether that many bytes are there.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, length: usize) -> bool {
        let enough = self.rest.len() >= length;
        if !enough {
            self.fail_past_the_end(length);
        }
        enough
    }

    /// The next `N` bytes.
    #[inline(always)]
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        match self.rest.split_first_chunk() {
            Some((array, rest)) => {
                self.rest = rest;
                *array
            }
            None => {
                self.fail_past_the_end(N);
                [0; N]
            }
        }
    }

    /// The next bytes.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, length: usize) -> &'a [u8] {
        match self.rest.split_at_checked(length) {
            Some((bytes, rest)) => {
                self.rest = rest;
                bytes
            }
            None => {
                self.fail_past_the_end(length);
                &[]
            }
        }
    }

    /// A padded list of entries of `N` bytes.
    #[inline(always)]
    pub(crate) fn list<const N: usize>(&mut self) -> &'a [[u8; N]] {
        let position = self.position();
        if position & 1 != 0 && self.array::<1>() != [0] {
            self.fail(Failure::Padding { position });
        }
        let count = u16::from_le_bytes(self.array());
        self.bytes(usize::from(count) * N).as_chunks().0
    }
}
