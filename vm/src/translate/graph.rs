//! A function on its way: blocks of ops and the edges between them.

use crate::body::CallSite;
use crate::code::{Code, Inst};
use smallvec::SmallVec;
use vmfb_bytecode::calling_convention::Kind;

/// The blocks of a function, in the order of the bytecode, and what their ops refer to.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) blocks: Vec<Block>,
    pub(super) lists: Vec<Box<[u32]>>,
    pub(super) messages: Vec<Box<[u8]>>,
    pub(super) calls: Vec<CallSite>,
    /// What the function returns.
    pub(super) results: SmallVec<[Kind; 8]>,
    /// Value slots of a frame.
    pub(super) value_slots: usize,
    /// Ref slots of a frame.
    pub(super) ref_slots: usize,
}

/// Ops that run from the first to the last.
#[derive(Debug)]
pub(super) struct Block {
    /// Offset of the first instruction in the bytecode.
    pub(super) pc: u32,
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
    /// How many instructions the block stands for.
    pub(super) instructions: u32,
}

/// An op and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) inst: Inst,
    /// Offset of its instruction in the bytecode; of the first of several.
    pub(super) pc: u32,
    /// Offset of the last of several instructions.
    pub(super) late_pc: u32,
}

/// How a block ends.
#[derive(Debug)]
pub(super) enum End {
    /// Its last op does not go on.
    Leave,
    Goto(Edge),
    /// A conditional branch, still without a distance: if it is taken along the first edge, else along the second.
    If {
        test: Step,
        edges: [Edge; 2],
    },
    /// The last edge is the default.
    Table {
        index: u16,
        pc: u32,
        edges: Vec<Edge>,
    },
    Yield {
        edge: Edge,
        pc: u32,
    },
}

/// The way to another block: moves that happen on it one after another, and the block's number.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) moves: Vec<Step>,
    pub(super) to: u32,
}

impl Step {
    pub(super) const fn new(inst: Inst, pc: u32) -> Self {
        Self { inst, pc, late_pc: pc }
    }
}

impl Block {
    pub(super) const fn new(pc: u32) -> Self {
        Self { pc, steps: Vec::new(), end: End::Leave, instructions: 0 }
    }

    /// The edges that lead out of the block.
    pub(super) fn edges(&self) -> &[Edge] {
        match &self.end {
            End::Leave => &[],
            End::Goto(edge) | End::Yield { edge, .. } => std::slice::from_ref(edge),
            End::If { edges, .. } => edges,
            End::Table { edges, .. } => edges,
        }
    }
}

/// Whether the op moves a value from one register to another.
pub(super) const fn is_move(code: Code) -> bool {
    matches!(code, Code::Move32 | Code::Move64)
}
