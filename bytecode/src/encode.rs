//! Ops to bytes.

use crate::decode::Instructions;
use crate::definition::{BytecodeVersion, ModuleDef};
use crate::isa::{Op, OpSet, Opcode, PREFIX_F32, PREFIX_F64, Pc};
use crate::{Error, Result};

/// Appends instructions to a function body.
///
/// Lists are padded to even offsets from the start of the body, so the encoder holds the body from its start.
#[derive(Clone, Debug)]
pub struct Encoder {
    bytes: Vec<u8>,
    version: BytecodeVersion,
    targets: Vec<usize>,
    /// The first failure of the current instruction.
    error: Option<Error>,
}

impl Encoder {
    /// An empty body of this version.
    pub fn new(version: BytecodeVersion) -> Self {
        Self { bytes: Vec::new(), version, targets: Vec::new(), error: None }
    }

    /// The version.
    pub fn version(&self) -> BytecodeVersion {
        self.version
    }

    /// The body so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The offset of every branch target field so far.
    pub fn target_fields(&self) -> &[usize] {
        &self.targets
    }

    /// The body.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends an instruction.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the version does not have the op or the operand, OUT_OF_RANGE if a list or text is longer than its
    /// count can say. The body is unchanged then.
    pub fn op(&mut self, op: &Op<'_>) -> Result<()> {
        let (set, byte) = (op.opcode().set(), op.opcode().info().byte);
        if Opcode::find(set, byte, self.version.major()).is_none() {
            return Err(crate::isa::unknown_opcode(set, byte, self.version.major()));
        }
        let (length, targets) = (self.bytes.len(), self.targets.len());
        match set {
            OpSet::Core => self.raw(&[byte]),
            OpSet::F32 => self.raw(&[PREFIX_F32, byte]),
            OpSet::F64 => self.raw(&[PREFIX_F64, byte]),
        }
        op.encode_operands(self);
        let Some(error) = self.error.take() else { return Ok(()) };
        self.bytes.truncate(length);
        self.targets.truncate(targets);
        Err(error)
    }

    /// Remembers why the current instruction cannot be encoded.
    #[cold]
    pub(crate) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a branch target.
    pub(crate) fn target(&mut self, pc: Pc) {
        self.targets.push(self.bytes.len());
        self.raw(&pc.0.to_le_bytes());
    }

    /// Overwrites the branch target field at the offset.
    pub(crate) fn patch_target(&mut self, field: usize, pc: Pc) {
        if let Some(bytes) = self.bytes.get_mut(field..).and_then(|rest| rest.first_chunk_mut()) {
            *bytes = pc.0.to_le_bytes();
        }
    }

    /// Appends a count.
    pub(crate) fn count(&mut self, count: usize) {
        match u16::try_from(count) {
            Ok(count) => self.raw(&count.to_le_bytes()),
            Err(_) => self.fail(Error::out_of_range(format!("a list or text of {count} entries; at most 65535"))),
        }
    }

    /// Appends a padded list.
    pub(crate) fn list<const N: usize>(&mut self, entries: &[[u8; N]]) {
        if !self.bytes.len().is_multiple_of(2) {
            self.raw(&[0]);
        }
        self.count(entries.len());
        self.raw(entries.as_flattened());
    }
}

/// Decodes every function and encodes it again; gives the bytecode of the whole module.
///
/// For a well-formed module the result is what the module has; bytes that belong to no function are zero.
///
/// # Errors
/// What the decoder refuses, with function and pc; OUT_OF_RANGE if a function lies outside the bytecode.
pub fn reencode(def: &ModuleDef) -> Result<Vec<u8>> {
    let mut bytecode = vec![0; def.bytecode.len()];
    for (ordinal, function) in (0..).zip(&def.functions) {
        let body = def.bytecode.get(function.bytecode.clone());
        let body = body.ok_or_else(|| Error::out_of_range("the function lies outside the bytecode").at(ordinal, 0))?;
        let encoded = reencode_body(body, def.bytecode_version).map_err(|error| error.at(ordinal, 0))?;
        if let Some(place) = bytecode.get_mut(function.bytecode.clone()).and_then(|place| place.get_mut(..encoded.len())) {
            place.copy_from_slice(&encoded);
        }
    }
    Ok(bytecode)
}

/// Decodes a function body and encodes it again, including its padding.
///
/// # Errors
/// What the decoder refuses, with the pc.
pub fn reencode_body(body: &[u8], version: BytecodeVersion) -> Result<Vec<u8>> {
    let mut encoder = Encoder::new(version);
    let mut instructions = Instructions::new(body, version);
    for instruction in &mut instructions {
        encoder.op(&instruction?.op)?;
    }
    let mut bytes = encoder.into_bytes();
    bytes.resize(bytes.len() + instructions.padding(), 0);
    Ok(bytes)
}
