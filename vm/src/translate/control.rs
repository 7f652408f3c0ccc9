//! Branches, calls and returns.

use super::graph::{Edge, End};
use super::lower::Lowering;
use crate::body::{CallSite, Moves};
use crate::code::{Code, MOVE};
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind};
use vmfb_bytecode::isa::{Callee, FunctionRef, MoveList, Op, Pc, Register, RegisterList, SegmentList};

impl Lowering<'_> {
    pub(super) fn branch_or_call(&mut self, op: &Op<'_>) -> bool {
        const NO_SEGMENTS: SegmentList<'static> = SegmentList::new(&[]);
        match *op {
            Op::Block {} => {}
            Op::Br { to, moves } | Op::Break { to, moves } | Op::CondBreak { to, moves, .. } => {
                self.block.end = End::Goto(self.edge(to, moves));
            }
            Op::CondBr { condition, true_to, true_moves, false_to, false_moves } => {
                let test = self.step(Code::BrIf, [0, condition.0, 0, 0, 0], 0);
                self.block.end = End::If { test, edges: [self.edge(true_to, true_moves), self.edge(false_to, false_moves)] };
            }
            Op::BrTable { index, default_to, default_moves, cases } => {
                let cases = cases.iter().map(|case| self.edge(case.to, case.moves));
                let edges = cases.chain([self.edge(default_to, default_moves)]).collect();
                self.block.end = End::Table { index: index.0, pc: self.pc, edges };
            }
            Op::Call { callee, arguments, results } => self.call(callee, NO_SEGMENTS, arguments, results),
            Op::CallVariadic { callee, segments, arguments, results } => self.call(callee, segments, arguments, results),
            Op::CallYieldable { callee, arguments, resume, results } => {
                self.call(callee, NO_SEGMENTS, arguments, results);
                self.block.end = End::Goto(self.edge(resume, MoveList::EMPTY));
            }
            Op::CallVariadicYieldable { callee, segments, arguments, resume, results } => {
                self.call(callee, segments, arguments, results);
                self.block.end = End::Goto(self.edge(resume, MoveList::EMPTY));
            }
            Op::Return { values } => self.returned(values),
            Op::Fail { code, message } => {
                self.graph.messages.push(message.0.into());
                self.emit(Code::Fail, [code.0, 0, 0, 0, 0], (self.graph.messages.len() - 1) as u32);
            }
            Op::Yield { to, moves } => self.block.end = End::Yield { edge: self.edge(to, moves), pc: self.pc },
            Op::Trace { values, .. } | Op::Print { values, .. } => self.release_moved(values),
            Op::ImportResolved { callee, dst } => self.emit(Code::ImportResolved, [dst.0, 0, 0, 0, 0], callee.0 & !(1 << 31)),
            _ => return false,
        }
        true
    }

    /// Debug ops have no effect but the release of what was given to them.
    fn release_moved(&mut self, values: RegisterList<'_>) {
        for register in values.iter().filter(|register| register.is_move()) {
            self.emit(Code::DiscardRef, [register.ordinal(), 0, 0, 0, 0], 0);
        }
    }

    /// The edge to the block at a pc. Its moves happen one after another; the two halves of a pair become one op.
    fn edge(&self, to: Pc, moves: MoveList<'_>) -> Edge {
        let mut steps = Vec::new();
        let mut moves = moves.iter().peekable();
        while let Some(step) = moves.next() {
            let (source, destination) = (step.source, step.destination);
            if source.is_ref() {
                let taken = if source.is_move() { MOVE } else { 0 };
                steps.push(self.step(Code::MoveRef, [destination.ordinal(), source.ordinal() | taken, 0, 0, 0], 0));
                continue;
            }
            let (to, from) = (destination.ordinal(), source.ordinal());
            let pair = to % 2 == 0 && from % 2 == 0;
            let high = moves.next_if(|high| pair && is_value(high.source, from + 1) && is_value(high.destination, to + 1));
            steps.push(self.step(if high.is_some() { Code::Move64 } else { Code::Move32 }, [to, from, 0, 0, 0], 0));
        }
        // Verified targets are block starts.
        let to = self.module.block_starts(self.function).partition_point(|start| *start < to.0) as u32;
        Edge { moves: steps, to }
    }

    /// Appends a return. The usual ones, of one value or none, have ops of their own.
    fn returned(&mut self, values: RegisterList<'_>) {
        let list = self.push_list(values.iter().map(|register| u32::from(register.word())).collect());
        let results = self.module.functions().get(self.function as usize).map(|info| &*info.convention.results);
        let (code, register) = match (results, values.get(0)) {
            (Some([]), None) => (Code::Return0, 0),
            (Some([Kind::I32 | Kind::F32]), Some(value)) => (Code::Return32, value.ordinal()),
            (Some([Kind::I64 | Kind::F64]), Some(value)) => (Code::Return64, value.ordinal()),
            _ => (Code::Return, 0),
        };
        if code != Code::Return && self.graph.ref_slots > 0 {
            self.emit(Code::ReleaseRefs, [0; 5], 0);
        }
        self.emit(code, [register, 0, 0, 0, 0], list);
    }

    fn call(&mut self, callee: FunctionRef, segments: SegmentList<'_>, arguments: RegisterList<'_>, results: RegisterList<'_>) {
        match callee.callee() {
            Callee::Internal(ordinal) => self.call_internal(ordinal, arguments, results),
            Callee::Import(ordinal) => self.call_import(ordinal, segments, arguments, results),
        }
    }

    /// Appends a call inside the module. The callee's registers follow the caller's, so values are moved there directly.
    fn call_internal(&mut self, ordinal: u32, arguments: RegisterList<'_>, results: RegisterList<'_>) {
        let Some(info) = self.module.functions().get(ordinal as usize) else { return };
        let kinds = info.convention.plain_arguments().unwrap_or_default();
        let (mut references, mut placement) = (Vec::new(), Vec::new());
        for ((kind, register), slot) in kinds.into_iter().zip(arguments.iter()).zip(&info.placement.slots) {
            // Frames have at most 2^15 value slots, so the sum is one of the 2^16 that a window has.
            let to = (self.graph.value_slots as u16).wrapping_add(*slot);
            match kind {
                Kind::Ref => {
                    references.push((kind, register));
                    placement.push(*slot);
                }
                Kind::I32 | Kind::F32 => self.emit(Code::Move32, [to, register.ordinal(), 0, 0, 0], 0),
                Kind::I64 | Kind::F64 => self.emit(Code::Move64, [to, register.ordinal(), 0, 0, 0], 0),
            }
        }
        let results: Box<[(Kind, Register)]> = info.convention.results.iter().copied().zip(results.iter()).collect();
        let plain = references.is_empty() && matches!(&*results, [] | [(Kind::I32 | Kind::F32 | Kind::I64 | Kind::F64, _)]);
        self.graph.calls.push(CallSite {
            callee: ordinal,
            arguments: references.into(),
            placement: placement.into(),
            segments: Box::default(),
            results,
            moves: Moves::Honoured,
        });
        let site = (self.graph.calls.len() - 1) as u32;
        self.emit(if plain { Code::Call } else { Code::CallGeneral }, [0; 5], site);
    }

    fn call_import(&mut self, ordinal: u32, segments: SegmentList<'_>, arguments: RegisterList<'_>, results: RegisterList<'_>) {
        let Some(convention) = self.module.imports().get(ordinal as usize) else { return };
        // Those of plain arguments say nothing.
        let items = convention.arguments.iter().enumerate().filter(|(_, item)| matches!(item, Item::Span(_)));
        let segments: Vec<u16> = items.map(|(index, _)| segments.get(index).unwrap_or(0)).collect();
        self.graph.calls.push(CallSite {
            callee: ordinal,
            arguments: flat_kinds(convention, &segments).into_iter().zip(arguments.iter()).collect(),
            placement: Box::default(),
            segments: segments.into(),
            results: convention.results.iter().copied().zip(results.iter()).collect(),
            moves: self.moves,
        });
        let site = (self.graph.calls.len() - 1) as u32;
        self.emit(Code::CallImport, [0; 5], site);
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
