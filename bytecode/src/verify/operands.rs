//! The checks of the operands of one instruction after another.

use super::Context;
use super::MAXIMUM_VALUE_REGISTERS;
use super::calls::Calls;
use crate::Error;
use crate::decode::Cursor;
use crate::definition::{Function, Requirements};
use crate::isa::{
    Access, BlockFlow, FunctionRef, GlobalSlot, MoveList, OpSet, Opcode, OperandVisitor, Pc, RefList, RefMove, RefRead, Register,
    RegisterList, RodataOrdinal, SegmentList, TypeOrdinal, X4, X4List, X8, X8List, walk,
};

/// Branches cannot name this pc or a larger one.
const BRANCH_LIMIT: u32 = 0x00FF_FFFF;

const REF_BIT: u16 = 0x8000;
const MOVE_BIT: u16 = 0x4000;

/// The number of value registers that a frame of the function has: what the descriptor says, rounded up to pairs.
///
/// Compilers of 2023 did not count the high half of the last pair when it served only to swap block arguments, and their runtimes gave
/// more registers than asked for.
pub(super) fn frame_values(function: &Function) -> u16 {
    whole_pairs(function.value_registers)
}

/// A number of value registers, rounded up to pairs.
pub(super) fn whole_pairs(registers: u16) -> u16 {
    registers.saturating_add(registers & 1).min(MAXIMUM_VALUE_REGISTERS)
}

/// What is wrong with an operand, said only when something is.
type Complaint = fn(&Checker<'_, '_>, u32) -> Error;

/// Sees the operands of an instruction and takes note of the first that breaks a rule.
pub(super) struct Checker<'c, 'm> {
    pub(super) context: Context<'m>,
    pub(super) ordinal: u32,
    pc: u32,
    error: Option<(Error, usize)>,
    /// Value ordinals are below; at most 0x7FFF.
    values: u16,
    /// Ordinals of pairs are even and below.
    pairs: u16,
    /// Ref ordinals are below; at most 0x3FFF.
    refs: u16,
    /// Leaves the MOVE bit away where a ref operand that cannot move may have it nevertheless.
    ref_read_mask: u16,
    allows_f32: bool,
    allows_f64: bool,
    global_bytes: u32,
    global_refs: usize,
    rodata: usize,
    types: usize,
    targets: &'c mut Vec<(u32, u32)>,
    pub(super) calls: Calls<'m>,
}

impl<'c, 'm> Checker<'c, 'm> {
    pub(super) fn new(context: Context<'m>, ordinal: u32, function: &Function, targets: &'c mut Vec<(u32, u32)>) -> Self {
        let definition = context.definition;
        let version = definition.bytecode_version;
        let allows = |bit| !version.has_block_markers() || function.requirements.0 & bit != 0;
        Self {
            context,
            ordinal,
            pc: 0,
            error: None,
            values: frame_values(function),
            pairs: frame_values(function) & !1,
            refs: function.ref_registers,
            ref_read_mask: if version.honours_move() { u16::MAX } else { !MOVE_BIT },
            allows_f32: allows(Requirements::F32),
            allows_f64: allows(Requirements::F64),
            global_bytes: definition.global_bytes,
            global_refs: definition.global_refs as usize,
            rodata: definition.rodata.len(),
            types: definition.types.len(),
            targets,
            calls: Calls::default(),
        }
    }

    /// Checks the instruction at the cursor, and gives what is left of the body behind it.
    #[inline(always)]
    pub(super) fn instruction(&mut self, cursor: Cursor<'m>) -> (&'m [u8], BlockFlow) {
        self.pc = cursor.position() as u32;
        walk(cursor, self)
    }

    /// The first rule that was broken since the last time, and where.
    #[inline]
    pub(super) fn take_error(&mut self) -> Option<(Error, usize)> {
        self.error.take()
    }

    /// Takes note of an error.
    #[cold]
    pub(super) fn fail(&mut self, error: Error) {
        self.error.get_or_insert((error, self.pc as usize));
    }

    #[inline(always)]
    fn expect(&mut self, holds: bool, complaint: Complaint, found: u32) {
        if !holds {
            self.complain(complaint, found);
        }
    }

    #[cold]
    #[inline(never)]
    fn complain(&mut self, complaint: Complaint, found: u32) {
        let error = complaint(self, found);
        self.fail(error);
    }

    #[inline(always)]
    pub(super) fn value(&mut self, word: u16) {
        // A set bit 15 fails as well, since counts are below it.
        self.expect(word < self.values, bad_value, word.into());
    }

    #[inline(always)]
    pub(super) fn pair(&mut self, word: u16) {
        self.expect(word < self.pairs && word & 1 == 0, bad_pair, word.into());
    }

    /// A ref register word with or without MOVE.
    #[inline(always)]
    pub(super) fn reference(&mut self, word: u16) {
        self.expect((word ^ REF_BIT) & !MOVE_BIT < self.refs, bad_ref, word.into());
    }

    /// A register word of either bank.
    #[inline(always)]
    pub(super) fn register(&mut self, register: Register) {
        if register.is_ref() { self.reference(register.word()) } else { self.value(register.word()) }
    }
}

impl<'m> OperandVisitor<'m> for Checker<'_, 'm> {
    #[inline(always)]
    fn opcode(&mut self, opcode: Opcode) {
        let allowed = match opcode.set() {
            OpSet::Core => opcode != Opcode::Block,
            OpSet::F32 => self.allows_f32,
            OpSet::F64 => self.allows_f64,
        };
        if !allowed {
            self.fail(forbidden_opcode(opcode));
        }
    }

    #[inline(always)]
    fn end(&mut self, opcode: Opcode) {
        self.finish(opcode);
    }

    #[inline(always)]
    fn x4(&mut self, register: X4, _access: Access) {
        self.value(register.0);
    }

    #[inline(always)]
    fn x8(&mut self, register: X8, _access: Access) {
        self.pair(register.0);
    }

    #[inline(always)]
    fn ref_read(&mut self, register: RefRead) {
        self.expect((register.0 ^ REF_BIT) & self.ref_read_mask < self.refs, bad_ref_read, register.0.into());
    }

    #[inline(always)]
    fn ref_move(&mut self, register: RefMove, _access: Access) {
        self.reference(register.0);
    }

    #[inline(always)]
    fn global_offset(&mut self, offset: u32, size: u32) {
        let fits = self.global_bytes.checked_sub(size).is_some_and(|last| offset <= last);
        self.expect(fits, bad_global_offset, offset);
    }

    #[inline(always)]
    fn global_slot(&mut self, slot: GlobalSlot) {
        self.expect((slot.0 as usize) < self.global_refs, bad_global_slot, slot.0);
    }

    #[inline(always)]
    fn rodata(&mut self, ordinal: RodataOrdinal) {
        self.expect((ordinal.0 as usize) < self.rodata, bad_rodata, ordinal.0);
    }

    #[inline(always)]
    fn type_ordinal(&mut self, ordinal: TypeOrdinal) {
        self.expect((ordinal.0 as usize) < self.types, bad_type, ordinal.0);
    }

    #[inline(always)]
    fn function(&mut self, function: FunctionRef) {
        self.calls.callee = function;
    }

    #[inline(always)]
    fn target(&mut self, pc: Pc) {
        self.expect(pc.0 < BRANCH_LIMIT, bad_target, pc.0);
        self.targets.push((pc.0, self.pc));
    }

    #[inline(always)]
    fn registers(&mut self, list: RegisterList<'m>, access: Access) {
        // Checked in `finish`, when the whole call is known.
        match access {
            Access::Read => self.calls.arguments = list,
            Access::Write => self.calls.results = list,
        }
    }

    fn x4_list(&mut self, list: X4List<'m>) {
        list.iter().for_each(|register| self.value(register.0));
    }

    fn x8_list(&mut self, list: X8List<'m>) {
        list.iter().for_each(|register| self.pair(register.0));
    }

    fn ref_list(&mut self, list: RefList<'m>) {
        list.iter().for_each(|register| self.reference(register.0));
    }

    #[inline(always)]
    fn segments(&mut self, list: SegmentList<'m>) {
        self.calls.segments = list;
    }

    #[inline]
    fn moves(&mut self, list: MoveList<'m>) {
        for step in list.iter() {
            let (source, destination) = (step.source, step.destination);
            if source.is_ref() != destination.is_ref() {
                self.fail(Error::invalid(format!("move from {source:?} to {destination:?}, between banks")));
            }
            self.register(source);
            self.register(destination);
        }
    }
}

#[cold]
fn forbidden_opcode(opcode: Opcode) -> Error {
    match opcode.set() {
        OpSet::Core => Error::invalid("block marker inside of a block; a terminator is missing before it"),
        OpSet::F32 => Error::invalid(format!("{} needs the f32 extension, which the function does not require", opcode.mnemonic())),
        OpSet::F64 => Error::invalid(format!("{} needs the f64 extension, which the function does not require", opcode.mnemonic())),
    }
}

fn bad_value(checker: &Checker<'_, '_>, word: u32) -> Error {
    if word & u32::from(REF_BIT) != 0 {
        return Error::invalid(format!("register word {word:#06x} names a ref register; a value register wanted"));
    }
    Error::out_of_range(format!("value register i{word}; the function has {}", checker.values))
}

fn bad_pair(checker: &Checker<'_, '_>, word: u32) -> Error {
    if word & u32::from(REF_BIT) != 0 {
        return bad_value(checker, word);
    }
    if word & 1 != 0 {
        return Error::invalid(format!("64-bit value in i{word}; pairs start at even registers"));
    }
    Error::out_of_range(format!("value registers i{word}:{}; the function has {}", word + 1, checker.values))
}

fn bad_ref(checker: &Checker<'_, '_>, word: u32) -> Error {
    if word & u32::from(REF_BIT) == 0 {
        return Error::invalid(format!("register word {word:#06x} names a value register; a ref register wanted"));
    }
    Error::out_of_range(format!("ref register r{}; the function has {}", word & !u32::from(REF_BIT | MOVE_BIT), checker.refs))
}

fn bad_ref_read(checker: &Checker<'_, '_>, word: u32) -> Error {
    if word & u32::from(REF_BIT) != 0 && word & u32::from(MOVE_BIT & checker.ref_read_mask) != 0 {
        return Error::invalid(format!("register word {word:#06x} moves a ref register out of an operand that is only looked at"));
    }
    bad_ref(checker, word)
}

fn bad_global_offset(checker: &Checker<'_, '_>, offset: u32) -> Error {
    Error::out_of_range(format!("global at byte {offset:#x}; there are {:#x} bytes", checker.global_bytes))
}

fn bad_global_slot(checker: &Checker<'_, '_>, ordinal: u32) -> Error {
    Error::out_of_range(format!("ref global {ordinal}; there are {}", checker.global_refs))
}

fn bad_rodata(checker: &Checker<'_, '_>, ordinal: u32) -> Error {
    Error::out_of_range(format!("rodata segment {ordinal}; there are {}", checker.rodata))
}

fn bad_type(checker: &Checker<'_, '_>, ordinal: u32) -> Error {
    Error::out_of_range(format!("type {ordinal}; there are {}", checker.types))
}

fn bad_target(_checker: &Checker<'_, '_>, pc: u32) -> Error {
    Error::out_of_range(format!("branch to {pc:#x}; targets are below {BRANCH_LIMIT:#x}"))
}
