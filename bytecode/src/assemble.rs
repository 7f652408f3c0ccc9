//! Building functions op by op: for tests, fuzzers and assemblers.
//!
//! ```
//! use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
//! use vmfb_bytecode::definition::BytecodeVersion;
//! use vmfb_bytecode::isa::{Op, Register, RegisterList, X4, words};
//!
//! let mut builder = FunctionBuilder::new(BytecodeVersion::V17, "0ii_i");
//! builder.start_block();
//! builder.push(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(2) });
//! builder.push(Op::Return { values: RegisterList::new(&words([Register::value(2)])) });
//!
//! let mut module = empty_module("example", BytecodeVersion::V17);
//! let ordinal = builder.finish()?.add_to(&mut module);
//! assert_eq!(module.functions[ordinal as usize].value_registers, 3);
//! # Ok::<(), vmfb_bytecode::Error>(())
//! ```

use crate::calling_convention::{CallingConvention, Kind, PlacementRule};
use crate::definition::{BytecodeVersion, Export, Function, ModuleDef, Requirements, Signature};
use crate::encode::Encoder;
use crate::isa::{
    Access, MoveList, Op, OpSet, Opcode, OperandVisitor, Pc, RefList, RefMove, RefRead, RegisterList, X4, X4List, X8, X8List,
};
use crate::{Error, Result};

/// A block that branches can name before it is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(u32);

impl Label {
    /// The label as a branch target of an op that goes to [`FunctionBuilder::push`].
    pub const fn pc(self) -> Pc {
        Pc(self.0)
    }
}

/// Assembles the body of one function and its descriptor.
///
/// Nothing is checked but the encoding, so invalid functions can be built as well. The first failure is kept and comes from
/// [`FunctionBuilder::finish`].
#[derive(Clone, Debug)]
pub struct FunctionBuilder {
    encoder: Encoder,
    labels: Vec<Option<u32>>,
    fixups: Vec<(usize, Label)>,
    blocks: u32,
    usage: RegisterUsage,
    signature: Option<Signature>,
    value_registers: Option<u16>,
    ref_registers: Option<u16>,
    block_count: Option<u16>,
    requirements: Option<Requirements>,
    error: Option<Error>,
}

/// A finished function.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The body; in 13.0 with its padding.
    pub bytecode: Vec<u8>,
    /// The descriptor; its range starts at 0.
    pub function: Function,
}

impl FunctionBuilder {
    /// A function with this calling convention.
    pub fn new(version: BytecodeVersion, calling_convention: &str) -> Self {
        let mut builder = Self {
            encoder: Encoder::new(version),
            labels: Vec::new(),
            fixups: Vec::new(),
            blocks: 0,
            usage: RegisterUsage::default(),
            signature: Some(Signature { calling_convention: calling_convention.to_owned(), attributes: Vec::new() }),
            value_registers: None,
            ref_registers: None,
            block_count: None,
            requirements: None,
            error: None,
        };
        // A malformed string is for the verifier to refuse.
        if let Ok(convention) = calling_convention.parse::<CallingConvention>() {
            builder.usage.enter(convention);
        }
        builder
    }

    /// Leaves the signature out, as 13.0 does for functions that are not exported.
    pub fn without_signature(&mut self) -> &mut Self {
        self.signature = None;
        self
    }

    /// A label for a block that is placed later.
    pub fn label(&mut self) -> Label {
        let label = Label(u32::try_from(self.labels.len()).unwrap_or(u32::MAX));
        self.labels.push(None);
        label
    }

    /// Starts the block here; from 14.0 on with a marker.
    pub fn place(&mut self, label: Label) -> &mut Self {
        match (self.labels.get_mut(label.0 as usize), u32::try_from(self.encoder.bytes().len())) {
            (Some(place @ None), Ok(pc)) => *place = Some(pc),
            _ => self.fail(Error::invalid("a label is placed twice or belongs to another function")),
        }
        self.blocks = self.blocks.saturating_add(1);
        if self.encoder.version().has_block_markers() {
            self.push_raw(Op::Block {});
        }
        self
    }

    /// Starts a block with a new label.
    pub fn start_block(&mut self) -> Label {
        let label = self.label();
        self.place(label);
        label
    }

    /// Appends an op whose branch targets are [`Label::pc`]s of this builder.
    pub fn push(&mut self, op: Op<'_>) -> &mut Self {
        let before = self.encoder.target_fields().len();
        self.push_raw(op);
        for &field in &self.encoder.target_fields()[before..] {
            let number = self.encoder.bytes().get(field..).and_then(|rest| rest.first_chunk());
            self.fixups.push((field, Label(number.map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes)))));
        }
        self
    }

    /// Appends an op whose branch targets are byte offsets.
    pub fn push_raw(&mut self, op: Op<'_>) -> &mut Self {
        op.visit(&mut self.usage);
        if let Err(error) = self.encoder.op(&op) {
            self.fail(error);
        }
        self
    }

    /// Appends bytes.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.encoder.raw(bytes);
        self
    }

    /// The byte offset of the next op.
    pub fn position(&self) -> u32 {
        u32::try_from(self.encoder.bytes().len()).unwrap_or(u32::MAX)
    }

    /// States the number of value registers instead of taking what the ops need.
    pub fn value_registers(&mut self, count: u16) -> &mut Self {
        self.value_registers = Some(count);
        self
    }

    /// States the number of ref registers instead of taking what the ops need.
    pub fn ref_registers(&mut self, count: u16) -> &mut Self {
        self.ref_registers = Some(count);
        self
    }

    /// States the number of blocks instead of taking the blocks placed.
    pub fn block_count(&mut self, count: u16) -> &mut Self {
        self.block_count = Some(count);
        self
    }

    /// States the requirements instead of taking what the ops need.
    pub fn requirements(&mut self, requirements: Requirements) -> &mut Self {
        self.requirements = Some(requirements);
        self
    }

    /// The function.
    ///
    /// # Errors
    /// The first failure of any call before: an op that the version does not have, an overlong list, a misplaced label; a branch to
    /// a label that was not placed; more than 65535 blocks.
    pub fn finish(mut self) -> Result<Assembled> {
        if let Some(error) = self.error {
            return Err(error);
        }
        for (field, label) in self.fixups {
            let pc = self.labels.get(label.0 as usize).copied().flatten();
            let pc = pc.ok_or_else(|| Error::invalid(format!("a branch goes to label {}, which is not placed", label.0)))?;
            self.encoder.patch_target(field, Pc(pc));
        }
        let version = self.encoder.version();
        let block_count = match (version.has_block_markers(), self.block_count) {
            (false, _) => None,
            (true, Some(count)) => Some(count),
            (true, None) => Some(u16::try_from(self.blocks).map_err(|_| Error::out_of_range("more than 65535 blocks"))?),
        };
        let requirements =
            self.requirements.unwrap_or(if version.has_block_markers() { self.usage.requirements } else { Requirements::NONE });
        let mut bytecode = self.encoder.into_bytes();
        if !version.has_block_markers() {
            bytecode.resize(bytecode.len().next_multiple_of(8), 0);
        }
        let function = Function {
            bytecode: 0..bytecode.len(),
            requirements,
            block_count,
            value_registers: self.value_registers.unwrap_or(self.usage.values),
            ref_registers: self.ref_registers.unwrap_or(self.usage.refs),
            signature: self.signature,
        };
        Ok(Assembled { bytecode, function })
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

impl Assembled {
    /// Appends the function to a module and gives its ordinal.
    pub fn add_to(mut self, def: &mut ModuleDef) -> u32 {
        let start = def.bytecode.len().next_multiple_of(8);
        def.bytecode.resize(start, 0);
        def.bytecode.extend_from_slice(&self.bytecode);
        self.function.bytecode = start..def.bytecode.len();
        def.requirements.0 |= self.function.requirements.0;
        def.functions.push(self.function);
        u32::try_from(def.functions.len() - 1).unwrap_or(u32::MAX)
    }

    /// Appends the function to a module, exports it and gives its ordinal.
    pub fn export_from(self, def: &mut ModuleDef, name: &str) -> u32 {
        let function = self.add_to(def);
        def.exports.push(Export { name: name.to_owned(), function });
        function
    }
}

/// A module without contents.
pub fn empty_module(name: &str, version: BytecodeVersion) -> ModuleDef {
    ModuleDef {
        name: name.to_owned(),
        version: 0,
        bytecode_version: version,
        requirements: Requirements::NONE,
        attributes: Vec::new(),
        types: Vec::new(),
        dependencies: Vec::new(),
        imports: Vec::new(),
        exports: Vec::new(),
        rodata: Vec::new(),
        global_bytes: 0,
        global_refs: 0,
        functions: Vec::new(),
        bytecode: Vec::new(),
        debug: None,
    }
}

/// Counts the registers that a function needs.
///
/// An even word among the arguments or results of a call is counted as a pair, since the callee is not known here.
#[derive(Clone, Debug, Default)]
struct RegisterUsage {
    values: u16,
    refs: u16,
    requirements: Requirements,
    results: Vec<Kind>,
    returns: bool,
}

impl RegisterUsage {
    fn enter(&mut self, convention: CallingConvention) {
        if let Ok(placement) = convention.placement(PlacementRule::NextFree) {
            (self.values, self.refs) = (placement.value_slots, placement.ref_slots);
        }
        self.results = convention.results.to_vec();
    }

    fn value(&mut self, ordinal: u16, slots: u16) {
        self.values = self.values.max((ordinal & 0x7FFF).saturating_add(slots));
    }

    fn reference(&mut self, ordinal: u16) {
        self.refs = self.refs.max(ordinal.saturating_add(1));
    }
}

impl<'a> OperandVisitor<'a> for RegisterUsage {
    fn opcode(&mut self, opcode: Opcode) {
        self.returns = opcode == Opcode::Return;
        self.requirements.0 |= match opcode.set() {
            OpSet::Core => 0,
            OpSet::F32 => Requirements::F32,
            OpSet::F64 => Requirements::F64,
        };
    }

    fn x4(&mut self, register: X4, _access: Access) {
        self.value(register.0, 1);
    }

    fn x8(&mut self, register: X8, _access: Access) {
        self.value(register.0, 2);
    }

    fn ref_read(&mut self, register: RefRead) {
        self.reference(register.ordinal());
    }

    fn ref_move(&mut self, register: RefMove, _access: Access) {
        self.reference(register.ordinal());
    }

    fn registers(&mut self, list: RegisterList<'a>, _access: Access) {
        for (index, register) in list.iter().enumerate() {
            let pair = if self.returns {
                self.results.get(index).is_some_and(|kind| kind.value_slots() == 2)
            } else {
                register.ordinal().is_multiple_of(2)
            };
            match register.is_ref() {
                true => self.reference(register.ordinal()),
                false => self.value(register.ordinal(), if pair { 2 } else { 1 }),
            }
        }
    }

    fn x4_list(&mut self, list: X4List<'a>) {
        list.iter().for_each(|register| self.value(register.0, 1));
    }

    fn x8_list(&mut self, list: X8List<'a>) {
        list.iter().for_each(|register| self.value(register.0, 2));
    }

    fn ref_list(&mut self, list: RefList<'a>) {
        list.iter().for_each(|register| self.reference(register.ordinal()));
    }

    fn moves(&mut self, list: MoveList<'a>) {
        for register in list.iter().flat_map(|step| [step.source, step.destination]) {
            match register.is_ref() {
                true => self.reference(register.ordinal()),
                false => self.value(register.ordinal(), 1),
            }
        }
    }
}
