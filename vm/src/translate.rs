//! Verified bytecode of any age to the internal form.
//!
//! What the versions differ in is decided here: MOVE bits, units of fills, block markers. Compare-and-branch pairs and moves of
//! register pairs become single ops.

mod lower;

use crate::code::{Body, CallSite, Code, Inst, MOVE, Moves};
use crate::engine::{Config, Interruption};
use crate::{FuelMetering, Result};
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind};
use vmfb_bytecode::isa::{Callee, FunctionRef, MoveList, Pc, RefMove, Register, RegisterList, SegmentList};
use vmfb_bytecode::verify::VerifiedModule;

/// Translates one function. Its ordinal must be in range.
pub(crate) fn translate(module: &VerifiedModule, function: u32, config: &Config) -> Result<Body> {
    let mut lowering = Lowering::new(module, function, config);
    let blocks = module.block_starts(function);
    let mut next_block = 0;
    for instruction in module.instructions(function) {
        let instruction = instruction?;
        if blocks.get(next_block) == Some(&instruction.pc) {
            lowering.start_block(instruction.pc);
            next_block += 1;
        }
        lowering.pc = instruction.pc;
        lowering.instruction(&instruction.op, blocks.get(next_block).copied());
    }
    Ok(lowering.finish())
}

/// Marks an entry of a branch table that is a block number, not yet the index of an op.
const BLOCK: u32 = 1 << 31;

/// A function that is being translated.
struct Lowering<'m> {
    module: &'m VerifiedModule,
    config: &'m Config,
    function: u32,
    pc: u32,
    /// Whether MOVE bits of single operands mean something.
    moves: Moves,
    code: Vec<Inst>,
    pcs: Vec<u32>,
    lists: Vec<Box<[u32]>>,
    messages: Vec<Box<[u8]>>,
    calls: Vec<CallSite>,
    /// Index of the first op of each block that was reached so far, in the order of the blocks.
    block_ops: Vec<u32>,
    /// Blocks that some branch reaches from below.
    loop_heads: Vec<bool>,
    /// Ops whose immediate is a block number still.
    targets: Vec<usize>,
    /// Lists that are branch tables; entries with [`BLOCK`] are block numbers still.
    tables: Vec<u32>,
    /// The fuel op of the block and the number of instructions since.
    fuel: Option<(usize, u32)>,
}

impl<'m> Lowering<'m> {
    fn new(module: &'m VerifiedModule, function: u32, config: &'m Config) -> Self {
        let moves = if module.version().honours_move() { Moves::Honoured } else { Moves::Ignored };
        let mut lowering = Self {
            module,
            config,
            function,
            pc: 0,
            moves,
            code: Vec::new(),
            pcs: Vec::new(),
            lists: Vec::new(),
            messages: Vec::new(),
            calls: Vec::new(),
            block_ops: Vec::new(),
            loop_heads: Vec::new(),
            targets: Vec::new(),
            tables: Vec::new(),
            fuel: None,
        };
        if config.interruption == Interruption::On {
            lowering.find_loop_heads();
        }
        lowering
    }

    /// Marks the targets of back edges, which are where a loop can be ended from outside.
    fn find_loop_heads(&mut self) {
        self.loop_heads = vec![false; self.module.block_starts(self.function).len()];
        for instruction in self.module.instructions(self.function).flatten() {
            for target in lower::targets_of(&instruction.op) {
                if target.0 <= instruction.pc {
                    let block = self.block(target) as usize;
                    if let Some(head) = self.loop_heads.get_mut(block) {
                        *head = true;
                    }
                }
            }
        }
    }

    fn start_block(&mut self, pc: u32) {
        self.pc = pc;
        self.close_fuel();
        let number = self.block_ops.len();
        self.block_ops.push(self.code.len() as u32);
        if self.config.fuel == FuelMetering::On {
            self.fuel = Some((self.code.len(), 0));
            self.emit(Code::Fuel, [0; 5], 0);
        }
        let entry = number == 0 && self.config.interruption == Interruption::On;
        if entry || self.loop_heads.get(number) == Some(&true) {
            self.emit(Code::Poll, [0; 5], 0);
        }
    }

    fn close_fuel(&mut self) {
        if let Some((at, count)) = self.fuel.take()
            && let Some(op) = self.code.get_mut(at)
        {
            op.imm = count;
        }
    }

    /// Appends an op with operands `a` to `e` and the immediate.
    fn emit(&mut self, code: Code, [a, b, c, d, e]: [u16; 5], imm: u32) {
        self.code.push(Inst { code, a, b, c, d, e, imm });
        self.pcs.push(self.pc);
    }

    /// Appends an op whose immediate is the place of a block.
    fn emit_branch(&mut self, code: Code, operands: [u16; 5], to: Pc) {
        self.targets.push(self.code.len());
        let block = self.block(to);
        self.emit(code, operands, block);
    }

    /// Number of the block at a pc. Verified targets are block starts.
    fn block(&self, pc: Pc) -> u32 {
        self.module.block_starts(self.function).partition_point(|start| *start < pc.0) as u32
    }

    fn push_list(&mut self, entries: Vec<u32>) -> u32 {
        self.lists.push(entries.into_boxed_slice());
        (self.lists.len() - 1) as u32
    }

    /// A ref operand with its MOVE bit, where that means something.
    fn moved(&self, operand: RefMove) -> u16 {
        operand.ordinal() | if operand.is_move() && self.moves == Moves::Honoured { MOVE } else { 0 }
    }

    /// Appends the moves of a branch. They happen one after another; the two halves of a pair become one op.
    fn emit_moves(&mut self, moves: MoveList<'_>) {
        let mut moves = moves.iter().peekable();
        while let Some(step) = moves.next() {
            let (source, destination) = (step.source, step.destination);
            if source.is_ref() {
                let taken = if source.is_move() { MOVE } else { 0 };
                self.emit(Code::MoveRef, [destination.ordinal(), source.ordinal() | taken, 0, 0, 0], 0);
                continue;
            }
            let (to, from) = (destination.ordinal(), source.ordinal());
            let pair = to % 2 == 0 && from % 2 == 0;
            let high = moves.next_if(|high| pair && is_value(high.source, from + 1) && is_value(high.destination, to + 1));
            self.emit(if high.is_some() { Code::Move64 } else { Code::Move32 }, [to, from, 0, 0, 0], 0);
        }
    }

    /// Appends moves and a branch; no branch where the target follows anyway.
    fn emit_edge(&mut self, moves: MoveList<'_>, to: Pc, next_block: Option<u32>) {
        self.emit_moves(moves);
        if next_block != Some(to.0) {
            self.emit_branch(Code::Br, [0; 5], to);
        }
    }

    /// Appends a conditional branch, fused with the compare before it.
    fn emit_condition(&mut self, condition: u16) -> usize {
        let block_start = self.block_ops.last().map_or(0, |at| *at as usize);
        let fused = match self.code.last() {
            Some(last) if self.code.len() > block_start && last.a == condition => {
                lower::fused(last.code).map(|code| Inst { code, ..*last })
            }
            _ => None,
        };
        match fused {
            Some(op) => {
                self.code.pop();
                self.code.push(op);
            }
            None => self.emit(Code::BrIf, [condition, 0, 0, 0, 0], 0),
        }
        self.code.len() - 1
    }

    fn emit_cond_br(&mut self, condition: u16, to_true: (Pc, MoveList<'_>), to_false: (Pc, MoveList<'_>), next_block: Option<u32>) {
        let branch = self.emit_condition(condition);
        if to_true.1.is_empty() {
            let block = self.block(to_true.0);
            self.targets.push(branch);
            self.set_immediate(branch, block);
            self.emit_edge(to_false.1, to_false.0, next_block);
            return;
        }
        self.emit_edge(to_false.1, to_false.0, None);
        let here = self.code.len() as u32;
        self.set_immediate(branch, here);
        self.emit_edge(to_true.1, to_true.0, next_block);
    }

    fn set_immediate(&mut self, at: usize, value: u32) {
        if let Some(op) = self.code.get_mut(at) {
            op.imm = value;
        }
    }

    /// Appends a branch table. A case with moves goes by way of a trampoline behind the table op.
    fn emit_br_table(&mut self, index: u16, edges: &[(Pc, MoveList<'_>)]) {
        let table = self.push_list(Vec::new());
        self.tables.push(table);
        self.emit(Code::BrTable, [index, 0, 0, 0, 0], table);
        let mut entries = Vec::with_capacity(edges.len());
        for (to, moves) in edges {
            if moves.is_empty() {
                entries.push(BLOCK | self.block(*to));
            } else {
                entries.push(self.code.len() as u32);
                self.emit_edge(*moves, *to, None);
            }
        }
        if let Some(list) = self.lists.last_mut() {
            *list = entries.into();
        }
    }

    fn emit_call(&mut self, callee: FunctionRef, segments: SegmentList<'_>, arguments: RegisterList<'_>, results: RegisterList<'_>) {
        let site = self.calls.len() as u32;
        let segments: Vec<u16> = segments.iter().filter(|count| *count != SegmentList::PLAIN).collect();
        let with_kinds = |kinds: Vec<Kind>, registers: RegisterList<'_>| kinds.into_iter().zip(registers.iter()).collect();
        let (code, callee, convention, placement, moves) = match callee.callee() {
            Callee::Internal(ordinal) => {
                let Some(info) = self.module.functions().get(ordinal as usize) else { return };
                (Code::CallInternal, ordinal, &info.convention, info.placement.slots.to_vec(), Moves::Honoured)
            }
            Callee::Import(ordinal) => {
                let Some(convention) = self.module.imports().get(ordinal as usize) else { return };
                (Code::CallImport, ordinal, convention, Vec::new(), self.moves)
            }
        };
        self.calls.push(CallSite {
            callee,
            arguments: with_kinds(flat_kinds(convention, &segments), arguments),
            placement: placement.into(),
            segments: segments.into(),
            results: with_kinds(convention.results.to_vec(), results),
            moves,
        });
        self.emit(code, [0; 5], site);
    }

    fn finish(mut self) -> Body {
        self.close_fuel();
        for at in std::mem::take(&mut self.targets) {
            if let Some(op) = self.code.get_mut(at) {
                op.imm = self.block_ops.get(op.imm as usize).copied().unwrap_or(0);
            }
        }
        for table in std::mem::take(&mut self.tables) {
            for entry in self.lists.get_mut(table as usize).into_iter().flatten().filter(|entry| **entry & BLOCK != 0) {
                *entry = self.block_ops.get((*entry & !BLOCK) as usize).copied().unwrap_or(0);
            }
        }
        let info = self.module.definition().functions.get(self.function as usize);
        Body {
            code: self.code.into(),
            pcs: self.pcs.into(),
            lists: self.lists.into(),
            messages: self.messages.into(),
            calls: self.calls.into(),
            value_slots: info.map_or(0, |info| usize::from(info.value_registers).next_multiple_of(2)),
            ref_slots: info.map_or(0, |info| usize::from(info.ref_registers)),
        }
    }
}

fn is_value(register: Register, ordinal: u16) -> bool {
    !register.is_ref() && register.ordinal() == ordinal
}

/// The kinds of all argument words of a call, each tuple of a span in turn.
fn flat_kinds(convention: &CallingConvention, segments: &[u16]) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let mut segments = segments.iter();
    for item in &convention.arguments {
        match item {
            Item::Plain(kind) => kinds.push(*kind),
            Item::Span(fields) => {
                let count = segments.next().map_or(0, |count| usize::from(*count));
                (0..count).for_each(|_| kinds.extend(fields));
            }
        }
    }
    kinds
}
