//! One instruction as text.

use std::fmt::Write;

use super::Disassembler;
use super::values::{EscapedBytes, Name, Operand, list};
use crate::isa::{
    Access, Callee, CaseList, FunctionRef, GlobalOffset, GlobalSlot, Imm32, Imm64, MoveList, Op, OpSet, Opcode, OperandVisitor, Pc,
    RefList, RefMove, RefRead, RegisterList, RodataOrdinal, SegmentList, Text, TypeOrdinal, X4, X4List, X8, X8List,
};

/// Writes instructions of one function.
pub(super) struct Operation<'d, 'm> {
    pub(super) module: &'d Disassembler<'m>,
    /// Where blocks start, ascending.
    pub(super) labels: &'d [u32],
}

impl Operation<'_, '_> {
    /// The label of the block at the pc; the pc itself where no block starts.
    pub(super) fn label(&self, pc: Pc) -> String {
        match self.labels.binary_search(&pc.0) {
            Ok(index) => format!("^bb{index}"),
            Err(_) => format!("^pc_{:X}", pc.0),
        }
    }

    /// Writes an instruction without a line end.
    pub(super) fn write(&self, text: &mut String, op: &Op<'_>) {
        let mnemonic = op.mnemonic();
        let (results, operands) = self.shape(op);
        if !results.is_empty() {
            let _ = write!(text, "{results} = ");
        }
        let _ = write!(text, "vm.{mnemonic}");
        if !operands.is_empty() {
            let _ = write!(text, " {operands}");
        }
    }

    /// The texts before and behind the mnemonic. Most ops are written alike, see [`Plain`]; the others are here.
    fn shape(&self, op: &Op<'_>) -> (String, String) {
        match *op {
            Op::GlobalLoadIndirectI32 { offset, dst } | Op::GlobalLoadIndirectF32 { offset, dst } => load_indirect(offset, dst),
            Op::GlobalLoadIndirectI64 { offset, dst } | Op::GlobalLoadIndirectF64 { offset, dst } => load_indirect(offset, dst),
            Op::GlobalStoreIndirectI32 { offset, value } | Op::GlobalStoreIndirectF32 { offset, value } => store_indirect(offset, value),
            Op::GlobalStoreIndirectI64 { offset, value } | Op::GlobalStoreIndirectF64 { offset, value } => store_indirect(offset, value),
            Op::GlobalLoadIndirectRef { slot, type_ordinal, dst } => {
                (dst.text(), format!(".refs[{}] : {}", slot.text(), self.type_name(type_ordinal)))
            }
            Op::GlobalStoreIndirectRef { slot, type_ordinal, value } => {
                (String::new(), format!("{}, .refs[{}] : {}", value.text(), slot.text(), self.type_name(type_ordinal)))
            }
            Op::GlobalStoreI32 { offset, value } | Op::GlobalStoreF32 { offset, value } => store(offset, value),
            Op::GlobalStoreI64 { offset, value } | Op::GlobalStoreF64 { offset, value } => store(offset, value),
            Op::GlobalStoreRef { slot, type_ordinal, value } => {
                (String::new(), format!("{}, .refs[{}] : {}", value.text(), slot.0, self.type_name(type_ordinal)))
            }
            Op::SelectI32 { condition, if_true, if_false, dst } | Op::SelectF32 { condition, if_true, if_false, dst } => {
                (dst.text(), select(condition, if_true, if_false))
            }
            Op::SelectI64 { condition, if_true, if_false, dst } | Op::SelectF64 { condition, if_true, if_false, dst } => {
                (dst.text(), select(condition, if_true, if_false))
            }
            Op::SelectRef { condition, type_ordinal, if_true, if_false, dst } => {
                (dst.text(), format!("{} -> {}", select(condition, if_true, if_false), self.type_name(type_ordinal)))
            }
            Op::SwitchI32 { index, default, values, dst } | Op::SwitchF32 { index, default, values, dst } => {
                (dst.text(), switch(index, &list(values.iter().map(X4::register)), default))
            }
            // A pair of a list is written by its low register, as in calls.
            Op::SwitchI64 { index, default, values, dst } | Op::SwitchF64 { index, default, values, dst } => {
                (dst.text(), switch(index, &list(values.iter().map(X8::register)), default))
            }
            Op::SwitchRef { index, type_ordinal, default, values, dst } => {
                (dst.text(), format!("{} -> {}", switch(index, &list(values.iter()), default), self.type_name(type_ordinal)))
            }
            Op::BufferStoreI8 { target, target_offset, value }
            | Op::BufferStoreI16 { target, target_offset, value }
            | Op::BufferStoreI32 { target, target_offset, value }
            | Op::BufferStoreF32 { target, target_offset, value } => (String::new(), buffer_store(target, target_offset, value)),
            Op::BufferStoreI64 { target, target_offset, value } | Op::BufferStoreF64 { target, target_offset, value } => {
                (String::new(), buffer_store(target, target_offset, value))
            }
            Op::ListAlloc { element, capacity, dst } => {
                (dst.text(), format!("{} : !vm.list<{}>", capacity.text(), self.type_name(element)))
            }
            Op::CastAnyRef { a, type_ordinal, dst } => {
                (dst.text(), format!("{} : !vm.ref<?> -> {}", a.text(), self.type_name(type_ordinal)))
            }
            Op::ConstRefRodata { rodata, dst } => (dst.text(), self.rodata(rodata)),
            Op::Call { callee, arguments, results } => (list(results.iter()), self.call(callee, None, arguments)),
            Op::CallVariadic { callee, segments, arguments, results } => {
                (list(results.iter()), self.call(callee, Some(segments), arguments))
            }
            _ => self.control(op),
        }
    }

    /// Terminators that name blocks; the rest goes to [`Plain`].
    fn control(&self, op: &Op<'_>) -> (String, String) {
        let operands = match *op {
            Op::Br { to, moves } | Op::Yield { to, moves } | Op::Break { to, moves } => self.target(to, moves),
            Op::CondBreak { condition, to, moves } => format!("{}, {}", condition.text(), self.target(to, moves)),
            Op::CondBr { condition, true_to, true_moves, false_to, false_moves } => {
                format!("{}, {}, {}", condition.text(), self.target(true_to, true_moves), self.target(false_to, false_moves))
            }
            Op::BrTable { index, default_to, default_moves, cases } => {
                format!("{} {{ default: {}{} }}", index.text(), self.target(default_to, default_moves), self.cases(cases))
            }
            Op::CallYieldable { callee, arguments, resume, results } => {
                format!("{} -> {}({})", self.call(callee, None, arguments), self.label(resume), list(results.iter()))
            }
            Op::CallVariadicYieldable { callee, segments, arguments, resume, results } => {
                format!("{} -> {}({})", self.call(callee, Some(segments), arguments), self.label(resume), list(results.iter()))
            }
            _ => {
                let mut plain =
                    Plain { operation: self, set: op.opcode().set(), results: Vec::new(), operands: Vec::new(), tail: String::new() };
                op.visit(&mut plain);
                return (plain.results.join(", "), plain.operands.join(", ") + &plain.tail);
            }
        };
        (String::new(), operands)
    }

    fn target(&self, to: Pc, moves: MoveList<'_>) -> String {
        let moves: Vec<_> = moves.iter().map(|step| format!("{}->{}", step.source.text(), step.destination.text())).collect();
        format!("{}({})", self.label(to), moves.join(", "))
    }

    fn cases(&self, cases: CaseList<'_>) -> String {
        cases.iter().enumerate().map(|(index, case)| format!(", {index}: {}", self.target(case.to, case.moves))).collect()
    }

    fn call(&self, callee: FunctionRef, segments: Option<SegmentList<'_>>, arguments: RegisterList<'_>) -> String {
        let mut text = self.callee(callee);
        if let Some(segments) = segments {
            let counts: Vec<_> = segments.iter().map(|count| count.to_string()).collect();
            let _ = write!(text, " segments[{}]", counts.join(", "));
        }
        text + &format!("({})", list(arguments.iter()))
    }

    /// The name of an import, or module and ordinal of an internal function.
    fn callee(&self, function: FunctionRef) -> String {
        let definition = self.module.definition;
        match function.callee() {
            Callee::Import(ordinal) => match definition.imports.get(ordinal as usize) {
                Some(import) => format!("@{}", Name(&import.full_name)),
                None => format!("@import_{ordinal}"),
            },
            Callee::Internal(ordinal) => format!("@{}:{ordinal}", Name(&definition.name)),
        }
    }

    fn type_name(&self, ordinal: TypeOrdinal) -> String {
        match self.module.definition.types.get(ordinal.0 as usize) {
            Some(name) => Name(name).to_string(),
            None => format!("!type_{}", ordinal.0),
        }
    }

    fn rodata(&self, ordinal: RodataOrdinal) -> String {
        match self.module.definition.rodata.get(ordinal.0 as usize) {
            Some(rodata) => format!("{}  // {}b", ordinal.0, rodata.range.len()),
            None => ordinal.0.to_string(),
        }
    }
}

fn load_indirect(offset: X4, dst: impl Operand) -> (String, String) {
    (dst.text(), format!(".rwdata[{}]", offset.text()))
}

fn store_indirect(offset: X4, value: impl Operand) -> (String, String) {
    (String::new(), format!("{}, .rwdata[{}]", value.text(), offset.text()))
}

fn store<const SIZE: u32>(offset: GlobalOffset<SIZE>, value: impl Operand) -> (String, String) {
    (String::new(), format!("{}, .rwdata[{}]", value.text(), offset.0))
}

fn select<T: Operand>(condition: X4, if_true: T, if_false: T) -> String {
    format!("{} ? {} : {}", condition.text(), if_true.text(), if_false.text())
}

fn switch(index: X4, values: &str, default: impl Operand) -> String {
    format!("{}[{values}] else {}", index.text(), default.text())
}

fn buffer_store(target: RefRead, offset: X8, value: impl Operand) -> String {
    format!("{}, {}, {}", value.text(), target.text(), offset.text())
}

/// The usual form: results, mnemonic, operands in the order of their encoding, then types and comments.
struct Plain<'o, 'd, 'm> {
    operation: &'o Operation<'d, 'm>,
    set: OpSet,
    results: Vec<String>,
    operands: Vec<String>,
    tail: String,
}

impl Plain<'_, '_, '_> {
    fn register(&mut self, register: impl Operand, access: Access) {
        match access {
            Access::Read => self.operands.push(register.text()),
            Access::Write => self.results.push(register.text()),
        }
    }
}

impl<'a> OperandVisitor<'a> for Plain<'_, '_, '_> {
    fn opcode(&mut self, opcode: Opcode) {
        self.set = opcode.set();
    }

    fn x4(&mut self, register: X4, access: Access) {
        self.register(register, access);
    }

    fn x8(&mut self, register: X8, access: Access) {
        self.register(register, access);
    }

    fn ref_read(&mut self, register: RefRead) {
        self.register(register, Access::Read);
    }

    fn ref_move(&mut self, register: RefMove, access: Access) {
        self.register(register, access);
    }

    fn imm32(&mut self, literal: Imm32) {
        self.operands.push(match self.set {
            OpSet::F32 => format!("{:?}", f32::from_bits(literal.0)),
            _ => literal.0.cast_signed().to_string(),
        });
        self.tail = format!("  // 0x{:08X}", literal.0);
    }

    fn imm64(&mut self, literal: Imm64) {
        self.operands.push(match self.set {
            OpSet::F64 => format!("{:?}", f64::from_bits(literal.0)),
            _ => literal.0.cast_signed().to_string(),
        });
        self.tail = format!("  // 0x{:016X}", literal.0);
    }

    fn global_offset(&mut self, offset: u32, _size: u32) {
        self.operands.push(format!(".rwdata[{offset}]"));
    }

    fn global_slot(&mut self, slot: GlobalSlot) {
        self.operands.push(format!(".refs[{}]", slot.0));
    }

    fn rodata(&mut self, ordinal: RodataOrdinal) {
        self.operands.push(ordinal.0.to_string());
    }

    fn type_ordinal(&mut self, ordinal: TypeOrdinal) {
        self.tail = format!(" : {}", self.operation.type_name(ordinal));
    }

    fn function(&mut self, function: FunctionRef) {
        self.operands.push(self.operation.callee(function));
    }

    fn target(&mut self, pc: Pc) {
        self.operands.push(self.operation.label(pc));
    }

    fn registers(&mut self, registers: RegisterList<'a>, _access: Access) {
        // Only `return`, `trace` and `print` come here; the latter two write their values behind the text.
        match self.operands.is_empty() {
            true => self.operands.extend(registers.iter().map(Operand::text)),
            false => self.tail = format!("({})", list(registers.iter())),
        }
    }

    fn x4_list(&mut self, registers: X4List<'a>) {
        self.operands.push(list(registers.iter()));
    }

    fn x8_list(&mut self, registers: X8List<'a>) {
        self.operands.push(list(registers.iter()));
    }

    fn ref_list(&mut self, registers: RefList<'a>) {
        self.operands.extend(registers.iter().map(Operand::text));
    }

    fn text(&mut self, text: Text<'a>) {
        self.operands.push(format!("\"{}\"", EscapedBytes(text.0)));
    }
}
