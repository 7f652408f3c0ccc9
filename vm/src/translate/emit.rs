//! Blocks to a body: their order, branches with distances, and what limits need.

use super::coalesce::overlap;
use super::fuse;
use super::graph::{Block, Edge, End, Graph, Step, is_move};
use crate::body::Body;
use crate::code::{Code, Inst, encode_distance};
use crate::engine::{Config, Dispatch, Interruption};
use crate::interpreter::ThreadedOp;
use crate::registers::Width;
use crate::{FuelMetering, Result};
use std::ops::Range;
use vmfb_bytecode::calling_convention::Kind;

/// Lays the blocks out, in their order.
///
/// A block that does nothing but branch on a condition is what a loop starts with. Where another block goes to it, a copy of it
/// takes the place of the branch, so that a round of the loop has one branch instead of two.
pub(super) fn emit(graph: Graph, zeroed: Vec<Range<usize>>, config: &Config) -> Result<Body> {
    let (blocks, ops) = (graph.blocks.len(), graph.blocks.iter().map(size).sum());
    let mut emitter = Emitter {
        loop_heads: if config.interruption == Interruption::On { loop_heads(&graph) } else { Vec::new() },
        config,
        code: Vec::with_capacity(ops),
        pcs: Vec::with_capacity(ops),
        late_pcs: Vec::new(),
        tables: Vec::new(),
        fixups: Vec::with_capacity(2 * blocks),
        starts: Vec::with_capacity(blocks),
        block: 0,
        graph: &graph,
    };
    for number in 0..graph.blocks.len() {
        emitter.emit_block(number);
    }
    emitter.resolve();
    let Emitter { code, pcs, late_pcs, tables, .. } = emitter;
    let mut lists = graph.lists;
    lists.extend(tables.into_iter().map(Vec::into_boxed_slice));
    let body = Body {
        code: code.into_iter().map(ThreadedOp::new).collect(),
        pcs: pcs.into(),
        late_pcs: late_pcs.into(),
        lists: lists.into(),
        messages: graph.messages.into(),
        calls: graph.calls.into(),
        zeroed: zeroed.into(),
        value_slots: graph.value_slots,
        ref_slots: graph.ref_slots,
    };
    body.check()?;
    Ok(body)
}

/// Whether the op only looks at a limit.
fn is_limit(code: Code) -> bool {
    matches!(code, Code::Fuel | Code::Poll)
}

/// About how many ops a block becomes.
fn size(block: &Block) -> usize {
    const FRAME: usize = 4;
    block.steps.len() + block.edges().iter().map(|edge| edge.moves.len()).sum::<usize>() + FRAME
}

/// The most moves on the edges of a block that is copied.
const MOST_COPIED_MOVES: usize = 4;

struct Emitter<'g> {
    graph: &'g Graph,
    config: &'g Config,
    /// Blocks that some branch reaches from below; empty where that does not matter.
    loop_heads: Vec<bool>,
    code: Vec<Inst>,
    pcs: Vec<u32>,
    late_pcs: Vec<(u32, u32)>,
    /// Branch tables, with positions in place of distances at first.
    tables: Vec<Vec<u32>>,
    /// Distances that wait for the place of a block.
    fixups: Vec<Fixup>,
    /// Index of the first op of each block that was reached so far.
    starts: Vec<usize>,
    /// The block that is being emitted.
    block: usize,
}

struct Fixup {
    at: usize,
    /// Which entry of which table, where it is not the op's immediate.
    entry: Option<(usize, usize)>,
    to: u32,
}

impl<'g> Emitter<'g> {
    fn emit_block(&mut self, number: usize) {
        let graph = self.graph;
        let block = &graph.blocks[number];
        self.block = number;
        self.starts.push(self.code.len());
        self.limits(number);
        block.steps.iter().for_each(|step| self.push(step));
        match &block.end {
            End::Leave => {}
            End::Goto(edge) => self.go(edge),
            End::If { test, edges } => self.branch(test, edges),
            End::Table { index, pc, edges } => self.table(*index, *pc, edges),
            End::Yield { edge, pc } => {
                self.moves(edge);
                self.jump(Code::Yield, edge.to, *pc);
            }
        }
    }

    /// What a block starts with if there are limits.
    fn limits(&mut self, number: usize) {
        let block = &self.graph.blocks[number];
        if self.config.fuel == FuelMetering::On {
            self.push(&Step::new(Inst::new(Code::Fuel, [0; 5], block.instructions), block.pc));
        }
        let entry = number == 0 && self.config.interruption == Interruption::On;
        if entry || self.loop_heads.get(number) == Some(&true) {
            self.push(&Step::new(Inst::new(Code::Poll, [0; 5], 0), block.pc));
        }
    }

    fn push(&mut self, step: &Step) {
        let mut inst = step.inst;
        if let Code::Call | Code::CallGeneral = inst.code
            && let Some([(Kind::I32 | Kind::F32 | Kind::I64 | Kind::F64, register)]) =
                self.graph.calls.get(inst.imm as usize).map(|site| &*site.results)
        {
            inst.a = register.ordinal();
        }
        if step.late_pc != step.pc {
            self.late_pcs.push((self.code.len() as u32, step.late_pc));
        }
        self.code.push(inst);
        self.pcs.push(step.pc);
    }

    fn moves(&mut self, edge: &'g Edge) {
        edge.moves.iter().for_each(|step| self.push(step));
    }

    /// Appends a branch to a block.
    fn jump(&mut self, code: Code, to: u32, pc: u32) {
        self.jump_if(&Step::new(Inst::new(code, [0; 5], 0), pc), to);
    }

    /// Appends a branch op that leads to a block.
    fn jump_if(&mut self, branch: &Step, to: u32) {
        self.fixups.push(Fixup { at: self.code.len(), entry: None, to });
        self.push(branch);
    }

    fn is_next(&self, edge: &Edge) -> bool {
        edge.to as usize == self.block + 1
    }

    /// Goes along an edge.
    fn go(&mut self, edge: &'g Edge) {
        self.moves(edge);
        if self.is_next(edge) {
            return;
        }
        let graph = self.graph;
        match graph.blocks.get(edge.to as usize) {
            Some(target) if target.steps.is_empty() && self.config.dispatch != Dispatch::Reference => {
                if let End::If { test, edges } = &target.end
                    && edges.iter().map(|edge| edge.moves.len()).sum::<usize>() <= MOST_COPIED_MOVES
                {
                    self.limits(edge.to as usize);
                    return self.branch(test, edges);
                }
            }
            _ => {}
        }
        self.leave(edge);
    }

    /// Goes along an edge whose moves have happened.
    fn leave(&mut self, edge: &Edge) {
        if !self.is_next(edge) {
            let pc = self.graph.blocks.get(self.block).map_or(0, |block| block.pc);
            self.jump(Code::Br, edge.to, pc);
        }
    }

    /// Appends a conditional branch.
    fn branch(&mut self, test: &Step, edges: &'g [Edge; 2]) {
        let [then, otherwise] = edges;
        let negated = test.inst.code.negated().map(|code| Step { inst: Inst { code, ..test.inst }, ..*test });
        let (test, [taken, other]) = match negated {
            Some(negated) if self.prefers_second(then, otherwise) => (negated, [otherwise, then]),
            _ => (*test, [then, otherwise]),
        };
        if taken.moves.is_empty() {
            let test = self.with_addition(&test);
            self.jump_if(&test, taken.to);
            self.moves(other);
            return self.leave(other);
        }
        let at = self.code.len();
        self.push(&test);
        self.moves(other);
        self.jump(Code::Br, other.to, test.pc);
        let distance = self.code.len() - at;
        if let Some(branch) = self.code.get_mut(at) {
            branch.imm = encode_distance(distance as isize);
        }
        self.moves(taken);
        self.leave(taken);
    }

    /// Whether the branch should be taken along the second edge: it cannot go along an edge with moves at once; the next block is
    /// reached without branch; and in a loop the way back should have one branch only.
    fn prefers_second(&self, first: &Edge, second: &Edge) -> bool {
        match (first.moves.is_empty(), second.moves.is_empty()) {
            (false, false) | (true, false) => false,
            (false, true) => true,
            (true, true) if self.is_next(first) => true,
            (true, true) if self.is_next(second) => false,
            (true, true) => first.to as usize > self.block && second.to as usize <= self.block,
        }
    }

    /// Takes the addition before a test into it: how a counted loop ends.
    fn with_addition(&mut self, test: &Step) -> Step {
        let code = match test.inst.code {
            Code::BrLtI32S => (Code::AddI32, Code::AddBrLtI32S),
            Code::BrLtI64S => (Code::AddI64, Code::AddBrLtI64S),
            _ => return *test,
        };
        if self.config.dispatch == Dispatch::Reference {
            return *test;
        }
        // Nothing branches to what stands between the start of a block and its end. The addition may wait until the limits of the
        // next block were looked at: if they are met, nobody sees what was computed.
        let passes = |inst: &Inst| is_move(inst.code) || is_limit(inst.code);
        let start = self.starts.last().copied().unwrap_or(0);
        let Some(at) = self.code.iter().skip(start).rposition(|inst| !passes(inst)).map(|at| start + at) else { return *test };
        let (addition, passed) = (self.code[at], &self.code[at + 1..]);
        let width = if code.0 == Code::AddI32 { Width::One } else { Width::Pair };
        let apart = |inst: &Inst| {
            if is_limit(inst.code) {
                return true;
            }
            let moved = if inst.code == Code::Move32 { Width::One } else { Width::Pair };
            let written = [addition.a, addition.b, addition.c].iter().any(|register| overlap(inst.a, moved, *register, width));
            !written && !overlap(inst.b, moved, addition.a, width)
        };
        if addition.code != code.0 || addition.a != test.inst.b || !passed.iter().all(apart) {
            return *test;
        }
        let Some(amount) = fuse::other(&addition, addition.a) else { return *test };
        self.code.remove(at);
        self.pcs.remove(at);
        Step { inst: Inst::new(code.1, [addition.a, amount, test.inst.c, 0, 0], 0), ..*test }
    }

    /// Appends a branch table. A case with moves goes by way of a trampoline behind the table op.
    fn table(&mut self, index: u16, pc: u32, edges: &'g [Edge]) {
        let table = self.tables.len();
        let at = self.code.len();
        self.tables.push(vec![0; edges.len()]);
        self.push(&Step::new(Inst::new(Code::BrTable, [index, 0, 0, 0, 0], (self.graph.lists.len() + table) as u32), pc));
        for (number, edge) in edges.iter().enumerate() {
            if edge.moves.is_empty() {
                self.fixups.push(Fixup { at, entry: Some((table, number)), to: edge.to });
                continue;
            }
            let distance = self.code.len() - at;
            if let Some(entry) = self.tables.get_mut(table).and_then(|entries| entries.get_mut(number)) {
                *entry = encode_distance(distance as isize);
            }
            self.moves(edge);
            self.jump(Code::Br, edge.to, pc);
        }
    }

    /// Writes all distances.
    fn resolve(&mut self) {
        for fixup in std::mem::take(&mut self.fixups) {
            let Some(start) = self.starts.get(fixup.to as usize) else { continue };
            let distance = encode_distance(*start as isize - fixup.at as isize);
            let place = match fixup.entry {
                Some((table, entry)) => self.tables.get_mut(table).and_then(|entries| entries.get_mut(entry)),
                None => self.code.get_mut(fixup.at).map(|op| &mut op.imm),
            };
            if let Some(place) = place {
                *place = distance;
            }
        }
    }
}

/// Blocks that are targets of branches from themselves or from below, which is where a loop can be ended from outside.
fn loop_heads(graph: &Graph) -> Vec<bool> {
    let mut heads = vec![false; graph.blocks.len()];
    for (number, block) in graph.blocks.iter().enumerate() {
        for edge in block.edges() {
            if edge.to as usize <= number
                && let Some(head) = heads.get_mut(edge.to as usize)
            {
                *head = true;
            }
        }
    }
    heads
}
