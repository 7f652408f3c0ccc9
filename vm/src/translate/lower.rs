//! Instructions to ops, one by one.

use super::graph::{Block, Graph, Step};
use crate::body::Moves;
use crate::code::{Code, Inst, MOVE};
use crate::engine::Config;
use crate::value_ops::for_each_value_op;
use vmfb_bytecode::isa::{Imm32, Op, RefList, RefMove, RefRead, TypeOrdinal, X4};
use vmfb_bytecode::verify::VerifiedModule;

/// A function that is being lowered.
pub(super) struct Lowering<'m> {
    pub(super) module: &'m VerifiedModule,
    pub(super) function: u32,
    pub(super) pc: u32,
    /// Whether MOVE bits of single operands mean something.
    pub(super) moves: Moves,
    pub(super) graph: Graph,
    /// The block that ops are appended to.
    pub(super) block: Block,
}

/// The ops of a function of a verified module, as blocks.
pub(super) fn lower(module: &VerifiedModule, function: u32, config: &Config) -> crate::Result<Graph> {
    let mut lowering = Lowering::new(module, function);
    let starts = module.block_starts(function);
    let end = module.definition().body(function).len() as u32;
    lowering.graph.blocks.reserve(starts.len());
    let mut blocks = starts.iter().copied().peekable();
    let mut started = false;
    for instruction in module.instructions(function) {
        let instruction = instruction?;
        if blocks.next_if_eq(&instruction.pc).is_some() {
            let length = blocks.peek().copied().unwrap_or(end).saturating_sub(instruction.pc);
            lowering.start_block(instruction.pc, length, started);
            started = true;
        }
        lowering.pc = instruction.pc;
        if config.tracer.is_some() && !matches!(instruction.op, Op::Block {}) {
            let [low, high] = split(function);
            lowering.emit(Code::Trace, [low, high, 0, 0, 0], instruction.pc);
        }
        lowering.instruction(&instruction.op);
    }
    lowering.graph.blocks.push(lowering.block);
    Ok(lowering.graph)
}

/// Most instructions have an opcode and three registers.
const INSTRUCTION_BYTES: u32 = 7;

/// Two halves of a 32-bit number as operands.
fn split(value: u32) -> [u16; 2] {
    [value as u16, (value >> 16) as u16]
}

impl<'m> Lowering<'m> {
    fn new(module: &'m VerifiedModule, function: u32) -> Self {
        let moves = if module.version().honours_move() { Moves::Honoured } else { Moves::Ignored };
        let info = module.functions().get(function as usize);
        let graph = Graph {
            results: info.map(|info| info.convention.results.clone()).unwrap_or_default(),
            value_slots: info.map_or(0, |info| usize::from(info.value_registers).next_multiple_of(2)),
            ref_slots: info.map_or(0, |info| usize::from(info.ref_registers)),
            ..Graph::default()
        };
        Self { module, function, pc: 0, moves, graph, block: Block::new(0) }
    }

    /// Begins the next block, of so many bytes; the one before it is done, if there was one.
    fn start_block(&mut self, pc: u32, length: u32, started: bool) {
        let mut block = Block::new(pc);
        // And a return, which is short and may become two ops.
        block.steps.reserve((length / INSTRUCTION_BYTES) as usize + 2);
        let done = std::mem::replace(&mut self.block, block);
        if started {
            self.graph.blocks.push(done);
        }
    }

    /// Appends the ops of one instruction.
    fn instruction(&mut self, op: &Op<'_>) {
        if !matches!(op, Op::Block {}) {
            self.block.instructions += 1;
        }
        if !(self.value_op(op)
            || self.branch_or_call(op)
            || self.constant_or_global(op)
            || self.list(op)
            || self.reference(op)
            || self.buffer(op)
            || self.element(op))
        {
            unreachable!("{} has no lowering", op.mnemonic());
        }
    }

    /// Ops that compute values from values.
    fn value_op(&mut self, op: &Op<'_>) -> bool {
        macro_rules! lower_value_ops {
            (
                unary { $($unary:ident { $ua:ident: $ut:ty } -> $ur:ty = $ub:expr;)* }
                binary { $($binary:ident { $ba:ident: $bt:ty, $bb:ident: $bu:ty } -> $br:ty = $bf:expr;)* }
                ternary { $($ternary:ident { $ta:ident: $tt:ty, $tb:ident: $tu:ty, $tc:ident: $tv:ty } -> $tr:ty = $tf:expr;)* }
                fallible { $($fallible:ident { $fa:ident: $ft:ty, $fb:ident: $fu:ty } -> $fr:ty = $ff:expr;)* }
                compare { $($compare:ident branch $branch:ident unless $unless:ident { $ca:ident: $ct:ty, $cb:ident: $cu:ty } = $cf:expr;)* }
            ) => {
                match *op {
                    $(Op::$unary { $ua, dst } => self.emit(Code::$unary, [dst.0, $ua.0, 0, 0, 0], 0),)*
                    $(Op::$binary { $ba, $bb, dst } => self.emit(Code::$binary, [dst.0, $ba.0, $bb.0, 0, 0], 0),)*
                    $(Op::$fallible { $fa, $fb, dst } => self.emit(Code::$fallible, [dst.0, $fa.0, $fb.0, 0, 0], 0),)*
                    $(Op::$compare { $ca, $cb, dst } => self.emit(Code::$compare, [dst.0, $ca.0, $cb.0, 0, 0], 0),)*
                    $(Op::$ternary { $ta, $tb, $tc, dst } => self.emit(Code::$ternary, [dst.0, $ta.0, $tb.0, $tc.0, 0], 0),)*
                    _ => return false,
                }
            };
        }
        for_each_value_op!(lower_value_ops);
        true
    }

    /// Appends an op with operands `a` to `e` and the immediate.
    pub(super) fn emit(&mut self, code: Code, operands: [u16; 5], imm: u32) {
        self.block.steps.push(self.step(code, operands, imm));
    }

    /// An op of the current instruction.
    pub(super) fn step(&self, code: Code, operands: [u16; 5], imm: u32) -> Step {
        Step::new(Inst::new(code, operands, imm), self.pc)
    }

    pub(super) fn push_list(&mut self, entries: Vec<u32>) -> u32 {
        self.graph.lists.push(entries.into_boxed_slice());
        (self.graph.lists.len() - 1) as u32
    }

    /// A ref operand with its MOVE bit, where that means something.
    fn moved(&self, operand: RefMove) -> u16 {
        operand.ordinal() | if operand.is_move() && self.moves == Moves::Honoured { MOVE } else { 0 }
    }

    fn constant64(&mut self, dst: u16, value: u64) {
        let [b, c] = split((value >> 32) as u32);
        self.emit(Code::Const64, [dst, b, c, 0, 0], value as u32);
    }

    fn constant_or_global(&mut self, op: &Op<'_>) -> bool {
        match *op {
            Op::ConstI32Zero { dst } | Op::ConstF32Zero { dst } => self.emit(Code::Const32, [dst.0, 0, 0, 0, 0], 0),
            Op::ConstI32 { value: Imm32(value), dst } | Op::ConstF32 { value: Imm32(value), dst } => {
                self.emit(Code::Const32, [dst.0, 0, 0, 0, 0], value);
            }
            Op::ConstI64Zero { dst } | Op::ConstF64Zero { dst } => self.constant64(dst.0, 0),
            Op::ConstI64 { value, dst } | Op::ConstF64 { value, dst } => self.constant64(dst.0, value.0),
            Op::BitcastI32F32 { a, dst } | Op::BitcastF32I32 { a, dst } => self.emit(Code::Move32, [dst.0, a.0, 0, 0, 0], 0),
            Op::BitcastI64F64 { a, dst } | Op::BitcastF64I64 { a, dst } => self.emit(Code::Move64, [dst.0, a.0, 0, 0, 0], 0),
            Op::ConstRefZero { dst } => self.emit(Code::ConstNull, [dst.ordinal(), 0, 0, 0, 0], 0),
            Op::ConstRefRodata { rodata, dst } => self.emit(Code::ConstRodata, [dst.ordinal(), 0, 0, 0, 0], rodata.0),
            Op::GlobalLoadI32 { offset, dst } | Op::GlobalLoadF32 { offset, dst } => self.global(Code::GlobalLoad32, dst.0, offset.0),
            Op::GlobalStoreI32 { offset, value } | Op::GlobalStoreF32 { offset, value } => {
                self.global(Code::GlobalStore32, value.0, offset.0);
            }
            Op::GlobalLoadI64 { offset, dst } | Op::GlobalLoadF64 { offset, dst } => self.global(Code::GlobalLoad64, dst.0, offset.0),
            Op::GlobalStoreI64 { offset, value } | Op::GlobalStoreF64 { offset, value } => {
                self.global(Code::GlobalStore64, value.0, offset.0);
            }
            Op::GlobalLoadIndirectI32 { offset, dst } | Op::GlobalLoadIndirectF32 { offset, dst } => {
                self.indirect_global(Code::GlobalLoadIndirect32, dst.0, offset);
            }
            Op::GlobalStoreIndirectI32 { offset, value } | Op::GlobalStoreIndirectF32 { offset, value } => {
                self.indirect_global(Code::GlobalStoreIndirect32, value.0, offset);
            }
            Op::GlobalLoadIndirectI64 { offset, dst } | Op::GlobalLoadIndirectF64 { offset, dst } => {
                self.indirect_global(Code::GlobalLoadIndirect64, dst.0, offset);
            }
            Op::GlobalStoreIndirectI64 { offset, value } | Op::GlobalStoreIndirectF64 { offset, value } => {
                self.indirect_global(Code::GlobalStoreIndirect64, value.0, offset);
            }
            Op::GlobalLoadRef { slot, type_ordinal, dst } => self.global_ref(Code::GlobalLoadRef, dst, type_ordinal, slot.0),
            Op::GlobalStoreRef { slot, type_ordinal, value } => self.global_ref(Code::GlobalStoreRef, value, type_ordinal, slot.0),
            Op::GlobalLoadIndirectRef { slot, type_ordinal, dst } => {
                self.global_ref(Code::GlobalLoadIndirectRef, dst, type_ordinal, u32::from(slot.0));
            }
            Op::GlobalStoreIndirectRef { slot, type_ordinal, value } => {
                self.global_ref(Code::GlobalStoreIndirectRef, value, type_ordinal, u32::from(slot.0));
            }
            _ => return false,
        }
        true
    }

    fn global(&mut self, code: Code, register: u16, offset: u32) {
        self.emit(code, [register, 0, 0, 0, 0], offset);
    }

    fn indirect_global(&mut self, code: Code, register: u16, offset: X4) {
        self.emit(code, [register, offset.0, 0, 0, 0], 0);
    }

    fn global_ref(&mut self, code: Code, register: RefMove, type_ordinal: TypeOrdinal, slot: u32) {
        let [b, c] = split(type_ordinal.0);
        self.emit(code, [self.moved(register), b, c, 0, 0], slot);
    }

    fn list(&mut self, op: &Op<'_>) -> bool {
        match *op {
            Op::ListAlloc { element, capacity, dst } => self.emit(Code::ListAlloc, [dst.ordinal(), capacity.0, 0, 0, 0], element.0),
            Op::ListReserve { list, capacity } => self.emit(Code::ListReserve, [list.ordinal(), capacity.0, 0, 0, 0], 0),
            Op::ListSize { list, dst } => self.emit(Code::ListSize, [dst.0, list.ordinal(), 0, 0, 0], 0),
            Op::ListResize { list, size } => self.emit(Code::ListResize, [list.ordinal(), size.0, 0, 0, 0], 0),
            Op::ListGetI32 { list, index, dst } => self.access(Code::ListGetI32, dst.0, list, index.0),
            Op::ListSetI32 { list, index, value } => self.access(Code::ListSetI32, value.0, list, index.0),
            Op::ListGetI64 { list, index, dst } => self.access(Code::ListGetI64, dst.0, list, index.0),
            Op::ListSetI64 { list, index, value } => self.access(Code::ListSetI64, value.0, list, index.0),
            Op::ListGetF32 { list, index, dst } => self.access(Code::ListGetF32, dst.0, list, index.0),
            Op::ListSetF32 { list, index, value } => self.access(Code::ListSetF32, value.0, list, index.0),
            Op::ListGetF64 { list, index, dst } => self.access(Code::ListGetF64, dst.0, list, index.0),
            Op::ListSetF64 { list, index, value } => self.access(Code::ListSetF64, value.0, list, index.0),
            Op::ListGetRef { list, index, type_ordinal, dst } => {
                self.emit(Code::ListGetRef, [self.moved(dst), list.ordinal(), index.0, 0, 0], type_ordinal.0);
            }
            Op::ListSetRef { list, index, value } => self.access(Code::ListSetRef, self.moved(value), list, index.0),
            _ => return false,
        }
        true
    }

    /// Appends an access to an element of a list or buffer: value register, list or buffer, index register.
    fn access(&mut self, code: Code, register: u16, container: RefRead, index: u16) {
        self.emit(code, [register, container.ordinal(), index, 0, 0], 0);
    }

    fn reference(&mut self, op: &Op<'_>) -> bool {
        match *op {
            Op::SelectRef { condition, type_ordinal, if_true, if_false, dst } => {
                let operands = [dst.ordinal(), condition.0, self.moved(if_true), self.moved(if_false), 0];
                self.emit(Code::SelectRef, operands, type_ordinal.0);
            }
            Op::SwitchI32 { index, default, values, dst } | Op::SwitchF32 { index, default, values, dst } => {
                let list = self.push_list(values.iter().map(|value| u32::from(value.0)).collect());
                self.emit(Code::Switch32, [dst.0, index.0, default.0, 0, 0], list);
            }
            Op::SwitchI64 { index, default, values, dst } | Op::SwitchF64 { index, default, values, dst } => {
                let list = self.push_list(values.iter().map(|value| u32::from(value.0)).collect());
                self.emit(Code::Switch64, [dst.0, index.0, default.0, 0, 0], list);
            }
            Op::SwitchRef { index, type_ordinal, default, values, dst } => {
                let list = self.switch_values(values);
                let [d, e] = split(type_ordinal.0);
                self.emit(Code::SwitchRef, [dst.ordinal(), index.0, self.moved(default), d, e], list);
            }
            Op::CmpEqRef { a, b, dst } => self.emit(Code::CmpEqRef, [dst.0, a.ordinal(), b.ordinal(), 0, 0], 0),
            Op::CmpNeRef { a, b, dst } => self.emit(Code::CmpNeRef, [dst.0, a.ordinal(), b.ordinal(), 0, 0], 0),
            Op::CmpNzRef { a, dst } => self.emit(Code::CmpNzRef, [dst.0, a.ordinal(), 0, 0, 0], 0),
            Op::CastAnyRef { a, type_ordinal, dst } => self.emit(Code::CastRef, [dst.ordinal(), self.moved(a), 0, 0, 0], type_ordinal.0),
            Op::AssignRef { source, dst } => self.emit(Code::MoveRef, [dst.ordinal(), self.moved(source), 0, 0, 0], 0),
            Op::DiscardRefs { refs } => {
                for register in refs.iter() {
                    self.emit(Code::DiscardRef, [register.ordinal(), 0, 0, 0, 0], 0);
                }
            }
            _ => return false,
        }
        true
    }

    /// The values of a ref switch. Their MOVE bits count in every version.
    fn switch_values(&mut self, values: RefList<'_>) -> u32 {
        self.push_list(values.iter().map(|value| u32::from(value.ordinal() | if value.is_move() { MOVE } else { 0 })).collect())
    }

    /// Ops on whole buffers and ranges of them.
    fn buffer(&mut self, op: &Op<'_>) -> bool {
        match *op {
            Op::BufferAlloc { length, alignment, dst } => {
                let (register, given) = alignment.map_or((0, 0), |alignment| (alignment.0, 1));
                self.emit(Code::BufferAlloc, [dst.ordinal(), length.0, register, given, 0], 0);
            }
            Op::BufferClone { source, offset, length, alignment, dst } => {
                let (register, given) = alignment.map_or((0, 0), |alignment| (alignment.0, 1));
                self.emit(Code::BufferClone, [dst.ordinal(), source.ordinal(), offset.0, length.0, register], given);
            }
            Op::BufferLength { buffer, dst } => self.emit(Code::BufferLength, [dst.0, buffer.ordinal(), 0, 0, 0], 0),
            Op::BufferCopy { source, source_offset, target, target_offset, length } => {
                let operands = [source.ordinal(), source_offset.0, target.ordinal(), target_offset.0, length.0];
                self.emit(Code::BufferCopy, operands, 0);
            }
            Op::BufferCompare { a, a_offset, b, b_offset, length, dst } => {
                let operands = [a.ordinal(), a_offset.0, b.ordinal(), b_offset.0, length.0];
                self.emit(Code::BufferCompare, operands, u32::from(dst.0));
            }
            Op::BufferHash { source, source_offset, length, dst } => {
                self.emit(Code::BufferHash, [dst.0, source.ordinal(), source_offset.0, length.0, 0], 0);
            }
            Op::BufferFillI8 { target, target_offset, length, value } => {
                self.fill([target.ordinal(), target_offset.0, length.0, value.0, 1])
            }
            Op::BufferFillI16 { target, target_offset, length, value } => {
                self.fill([target.ordinal(), target_offset.0, length.0, value.0, 2]);
            }
            Op::BufferFillI32 { target, target_offset, length, value } | Op::BufferFillF32 { target, target_offset, length, value } => {
                self.fill([target.ordinal(), target_offset.0, length.0, value.0, 4]);
            }
            Op::BufferFillI64 { target, target_offset, length, value } | Op::BufferFillF64 { target, target_offset, length, value } => {
                self.fill([target.ordinal(), target_offset.0, length.0, value.0, 8]);
            }
            _ => return false,
        }
        true
    }

    /// Appends a fill; up to 13.0 its range is in bytes, later in elements.
    fn fill(&mut self, operands: [u16; 5]) {
        let [.., size] = operands;
        let unit = if self.module.version().has_block_markers() { u32::from(size) } else { 1 };
        self.emit(Code::BufferFill, operands, unit);
    }

    /// Loads and stores of buffer elements.
    fn element(&mut self, op: &Op<'_>) -> bool {
        match *op {
            Op::BufferLoadI8U { source, source_offset, dst } => self.access(Code::BufferLoadI8U, dst.0, source, source_offset.0),
            Op::BufferLoadI8S { source, source_offset, dst } => self.access(Code::BufferLoadI8S, dst.0, source, source_offset.0),
            Op::BufferLoadI16U { source, source_offset, dst } => self.access(Code::BufferLoadI16U, dst.0, source, source_offset.0),
            Op::BufferLoadI16S { source, source_offset, dst } => self.access(Code::BufferLoadI16S, dst.0, source, source_offset.0),
            Op::BufferLoadI32 { source, source_offset, dst } | Op::BufferLoadF32 { source, source_offset, dst } => {
                self.access(Code::BufferLoad32, dst.0, source, source_offset.0);
            }
            Op::BufferLoadI64 { source, source_offset, dst } | Op::BufferLoadF64 { source, source_offset, dst } => {
                self.access(Code::BufferLoad64, dst.0, source, source_offset.0);
            }
            Op::BufferStoreI8 { target, target_offset, value } => self.access(Code::BufferStore8, value.0, target, target_offset.0),
            Op::BufferStoreI16 { target, target_offset, value } => self.access(Code::BufferStore16, value.0, target, target_offset.0),
            Op::BufferStoreI32 { target, target_offset, value } | Op::BufferStoreF32 { target, target_offset, value } => {
                self.access(Code::BufferStore32, value.0, target, target_offset.0);
            }
            Op::BufferStoreI64 { target, target_offset, value } | Op::BufferStoreF64 { target, target_offset, value } => {
                self.access(Code::BufferStore64, value.0, target, target_offset.0);
            }
            _ => return false,
        }
        true
    }
}
