//! The value registers that the instructions of a function read and write, with their widths.

use super::Context;
use super::calls::item_kinds;
use crate::calling_convention::{CallingConvention, Item, Kind};
use crate::decode::{BodyEnd, Cursor};
use crate::isa::{
    Access, Callee, FunctionRef, MoveList, Op, Opcode, OperandVisitor, Pc, Register, RegisterList, SegmentList, X4, X4List, X8, X8List,
};
use crate::{Error, Result};

/// How an instruction uses a value register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// As 32 bits; perhaps the low half of a pair.
    Four,
    /// As the low half of a pair.
    Eight,
    /// As a word whose width is not known: of a call of a function without a signature, or traced.
    Unknown,
}

/// Sees the accesses of a function in address order; within an instruction reads come before writes.
#[allow(unused_variables)]
pub(super) trait AccessSink<'m> {
    /// A block starts.
    fn block(&mut self, pc: u32) {}
    /// An instruction starts.
    fn instruction(&mut self, pc: u32) {}
    /// A value register is read.
    fn read(&mut self, slot: u16, width: Width);
    /// A value register is written.
    fn write(&mut self, slot: u16, width: Width);
    /// The block may go on at the target.
    fn branch(&mut self, target: u32) {}
    /// The moves on the way to the last target.
    fn moves(&mut self, moves: MoveList<'m>) {}
    /// The arguments of a call of a function whose convention is not known, before their reads.
    fn unknown_call(&mut self, function: u32, arguments: RegisterList<'m>) -> Result<()> {
        Ok(())
    }
    /// The results of that call, after their writes.
    fn unknown_results(&mut self, function: u32, results: RegisterList<'m>) -> Result<()> {
        Ok(())
    }
    /// The values that a function without a known convention returns, before their reads.
    fn unknown_return(&mut self, values: RegisterList<'m>) -> Result<()> {
        Ok(())
    }
}

/// Shows the accesses of a function that was checked to a sink.
pub(super) fn each_access<'m>(context: &Context<'m>, ordinal: u32, sink: &mut dyn AccessSink<'m>) -> Result<()> {
    let version = context.definition.bytecode_version;
    let body = context.definition.body(ordinal);
    let (end, mut cursor) = (BodyEnd::new(body, version), Cursor::new(body, 0, version));
    let mut visitor = Accesses {
        context: *context,
        ordinal,
        opcode: Opcode::Block,
        callee: FunctionRef(0),
        segments: SegmentList::new(&[]),
        sink,
        error: None,
    };
    let mut after_terminator = true;
    while cursor.position() == 0 || !end.reached(cursor.position(), after_terminator) {
        let pc = cursor.pc()?;
        if after_terminator {
            visitor.sink.block(pc);
        }
        visitor.sink.instruction(pc);
        let op = Op::decode(&mut cursor).map_err(|failure| cursor.error(failure).at(ordinal, pc))?;
        op.visit(&mut visitor);
        if let Some(error) = visitor.error {
            return Err(error.at(ordinal, pc));
        }
        after_terminator = op.is_terminator();
    }
    Ok(())
}

/// Turns operands into accesses.
struct Accesses<'s, 'm> {
    context: Context<'m>,
    ordinal: u32,
    opcode: Opcode,
    callee: FunctionRef,
    segments: SegmentList<'m>,
    sink: &'s mut dyn AccessSink<'m>,
    error: Option<Error>,
}

impl<'m> Accesses<'_, 'm> {
    fn access(&mut self, slot: u16, width: Width, access: Access) {
        match access {
            Access::Read => self.sink.read(slot, width),
            Access::Write => self.sink.write(slot, width),
        }
    }

    fn word(&mut self, register: Register, width: Width, access: Access) {
        if !register.is_ref() {
            self.access(register.ordinal(), width, access);
        }
    }

    fn unknown_words(&mut self, list: RegisterList<'m>, access: Access) {
        list.iter().for_each(|register| self.word(register, Width::Unknown, access));
    }

    fn known_words<'k>(&mut self, list: RegisterList<'m>, kinds: impl IntoIterator<Item = &'k Kind>, access: Access) {
        for (register, kind) in list.iter().zip(kinds) {
            let width = if kind.value_slots() == 2 { Width::Eight } else { Width::Four };
            self.word(register, width, access);
        }
    }

    /// The convention of the callee, or the function that has none.
    fn callee_convention(&self) -> Result<&'m CallingConvention, Option<u32>> {
        match self.callee.callee() {
            Callee::Import(ordinal) => self.context.imports.get(ordinal as usize).ok_or(None),
            Callee::Internal(ordinal) => self.context.convention(ordinal).ok_or(Some(ordinal)),
        }
    }

    fn call_words(&mut self, list: RegisterList<'m>, access: Access) -> Result<()> {
        let variadic = matches!(self.opcode, Opcode::CallVariadic | Opcode::CallVariadicYieldable);
        match (self.callee_convention(), access) {
            (Ok(convention), Access::Write) => self.known_words(list, &convention.results, access),
            (Ok(convention), Access::Read) => {
                let segments = if variadic { self.segments } else { SegmentList::new(&[]) };
                self.known_words(list, flat_kinds(convention, segments), access);
            }
            (Err(None), _) => self.unknown_words(list, access),
            (Err(Some(function)), Access::Read) => {
                self.sink.unknown_call(function, list)?;
                self.unknown_words(list, access);
            }
            (Err(Some(function)), Access::Write) => {
                self.unknown_words(list, access);
                self.sink.unknown_results(function, list)?;
            }
        }
        Ok(())
    }
}

/// The kind of each argument word.
fn flat_kinds<'k>(convention: &'k CallingConvention, segments: SegmentList<'k>) -> impl Iterator<Item = &'k Kind> {
    let items = convention.arguments.iter().enumerate();
    items.filter(|(_, item)| !item_kinds(item).is_empty()).flat_map(move |(index, item)| {
        let tuples = match item {
            Item::Plain(_) => 1,
            Item::Span(_) => usize::from(segments.get(index).unwrap_or(0)),
        };
        std::iter::repeat_n(item_kinds(item), tuples).flatten()
    })
}

impl<'m> OperandVisitor<'m> for Accesses<'_, 'm> {
    fn opcode(&mut self, opcode: Opcode) {
        self.opcode = opcode;
    }

    fn x4(&mut self, register: X4, access: Access) {
        self.access(register.0, Width::Four, access);
    }

    fn x8(&mut self, register: X8, access: Access) {
        self.access(register.0, Width::Eight, access);
    }

    fn function(&mut self, function: FunctionRef) {
        self.callee = function;
    }

    fn segments(&mut self, list: SegmentList<'m>) {
        self.segments = list;
    }

    fn target(&mut self, pc: Pc) {
        self.sink.branch(pc.0);
    }

    fn moves(&mut self, list: MoveList<'m>) {
        self.sink.moves(list);
    }

    fn registers(&mut self, list: RegisterList<'m>, access: Access) {
        match self.opcode {
            Opcode::Trace | Opcode::Print => self.unknown_words(list, access),
            Opcode::Return => match self.context.convention(self.ordinal) {
                Some(convention) => self.known_words(list, &convention.results, access),
                None => {
                    if let Err(error) = self.sink.unknown_return(list) {
                        self.error.get_or_insert(error);
                    }
                    self.unknown_words(list, access);
                }
            },
            _ => {
                if let Err(error) = self.call_words(list, access) {
                    self.error.get_or_insert(error);
                }
            }
        }
    }

    fn x4_list(&mut self, list: X4List<'m>) {
        list.iter().for_each(|register| self.access(register.0, Width::Four, Access::Read));
    }

    fn x8_list(&mut self, list: X8List<'m>) {
        list.iter().for_each(|register| self.access(register.0, Width::Eight, Access::Read));
    }
}
