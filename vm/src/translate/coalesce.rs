//! Moves that need not happen: what is moved is computed in its destination instead.
//!
//! Compilers end the blocks of a loop with moves into the registers that the next round reads, and every argument of a call is moved
//! into the callee's registers.

use super::accesses::{Access, visit};
use super::graph::{Block, End, Graph, Step, is_move};
use super::liveness::{Liveness, Slots};
use crate::code::Code;
use crate::registers::Width;
use smallvec::SmallVec;
use vmfb_bytecode::calling_convention::Kind;
use vmfb_bytecode::isa::Register;

/// How far back the op is looked for that computes what is moved.
const REACH: usize = 64;

/// Removes moves from all blocks. Moves on an edge that is always taken become ops of the block.
pub(super) fn coalesce(graph: &mut Graph, liveness: &Liveness) {
    let mut blocks = std::mem::take(&mut graph.blocks);
    for block in &mut blocks {
        let live = match &mut block.end {
            End::Goto(edge) => {
                block.steps.append(&mut edge.moves);
                liveness.at_start(edge.to as usize)
            }
            _ => liveness.at_end(graph, block),
        };
        if block.steps.iter().any(|step| is_move(step.inst.code)) {
            coalesce_block(graph, block, live);
        }
    }
    graph.blocks = blocks;
}

fn coalesce_block(graph: &mut Graph, block: &mut Block, mut live: Slots) {
    let mut removed: SmallVec<[usize; 8]> = SmallVec::new();
    for at in (0..block.steps.len()).rev() {
        let step = block.steps[at];
        if is_move(step.inst.code) && remove(graph, &mut block.steps, at, &live) {
            removed.push(at);
        } else {
            live.before(&step, graph);
        }
    }
    let mut removed = removed.iter().rev().peekable();
    let mut at = 0;
    block.steps.retain(|_| {
        let gone = removed.next_if(|next| **next == at).is_some();
        at += 1;
        !gone
    });
}

/// A move that may go.
struct Candidate {
    width: Width,
    from: u16,
    to: u16,
}

/// What an op means for a candidate, as it stands between the computation and the move.
enum Verdict {
    /// Nothing.
    Apart,
    /// It reads the source, and can read the destination instead.
    Reads,
    /// It computes what is moved.
    Computes,
    /// The move must stay.
    Conflict,
}

/// Makes the move at `at` needless if it can be: `live` is what is live behind it.
fn remove(graph: &mut Graph, steps: &mut [Step], at: usize, live: &Slots) -> bool {
    let inst = steps[at].inst;
    let width = if inst.code == Code::Move64 { Width::Pair } else { Width::One };
    let candidate = Candidate { width, from: inst.b, to: inst.a };
    if candidate.from == candidate.to {
        return true;
    }
    if live.intersects(candidate.from, width) {
        return false;
    }
    let mut readers: SmallVec<[usize; 8]> = SmallVec::new();
    for index in (at.saturating_sub(REACH)..at).rev() {
        match candidate.verdict(graph, &steps[index]) {
            Verdict::Apart => {}
            Verdict::Reads => readers.push(index),
            Verdict::Conflict => return false,
            Verdict::Computes => {
                candidate.rename_result(graph, &mut steps[index]);
                readers.iter().for_each(|reader| candidate.rename(Access::Read, &mut steps[*reader]));
                return true;
            }
        }
    }
    false
}

impl Candidate {
    fn verdict(&self, graph: &Graph, step: &Step) -> Verdict {
        match step.inst.code {
            Code::Call | Code::CallGeneral | Code::CallImport => return self.verdict_on_call(graph, step),
            // They read the registers of a list.
            Code::Switch32 | Code::Switch64 => return Verdict::Conflict,
            _ => {}
        }
        let mut inst = step.inst;
        let (mut computes, mut reads, mut conflict, mut reads_target) = (false, false, false, false);
        visit(&mut inst, &mut |access, width, slot| {
            let same = *slot == self.from && width == self.width;
            match access {
                Access::Write if same => computes = true,
                Access::Write => conflict |= overlap(*slot, width, self.from, self.width) || overlap(*slot, width, self.to, self.width),
                Access::Read if same => reads = true,
                Access::Read if overlap(*slot, width, self.to, self.width) => reads_target = true,
                Access::Read => conflict |= overlap(*slot, width, self.from, self.width),
            }
        });
        match (computes, reads) {
            // An op reads before it writes, so what it reads itself does not matter.
            (true, _) => Verdict::Computes,
            _ if conflict || reads_target => Verdict::Conflict,
            (false, true) => Verdict::Reads,
            (false, false) => Verdict::Apart,
        }
    }

    fn verdict_on_call(&self, graph: &Graph, step: &Step) -> Verdict {
        let Some(site) = graph.calls.get(step.inst.imm as usize) else { return Verdict::Conflict };
        // What stands behind the frame is lost in every call.
        if usize::from(self.to) >= graph.value_slots {
            return Verdict::Conflict;
        }
        let touches = |(kind, register): &(Kind, Register), other: u16| match kind.value_slots() {
            0 => false,
            1 => overlap(register.ordinal(), Width::One, other, self.width),
            _ => overlap(register.ordinal(), Width::Pair, other, self.width),
        };
        let any = |list: &[(Kind, Register)], other: u16| list.iter().any(|entry| touches(entry, other));
        let slots = if self.width == Width::One { 1 } else { 2 };
        match &*site.results {
            [(kind, register)] if register.ordinal() == self.from && kind.value_slots() == slots => Verdict::Computes,
            results if any(results, self.from) || any(results, self.to) => Verdict::Conflict,
            _ if any(&site.arguments, self.from) || any(&site.arguments, self.to) => Verdict::Conflict,
            _ => Verdict::Apart,
        }
    }

    fn rename_result(&self, graph: &mut Graph, step: &mut Step) {
        if let Code::Call | Code::CallGeneral | Code::CallImport = step.inst.code {
            if let Some(site) = graph.calls.get_mut(step.inst.imm as usize)
                && let [(_, register)] = &mut *site.results
            {
                *register = Register::value(self.to);
            }
        } else {
            self.rename(Access::Write, step);
        }
    }

    fn rename(&self, wanted: Access, step: &mut Step) {
        visit(&mut step.inst, &mut |access, _, slot| {
            if access == wanted && *slot == self.from {
                *slot = self.to;
            }
        });
    }
}

/// Whether two registers share a slot.
pub(super) fn overlap(a: u16, a_width: Width, b: u16, b_width: Width) -> bool {
    let end = |at: u16, width| u32::from(at) + if width == Width::Pair { 2 } else { 1 };
    u32::from(a) < end(b, b_width) && u32::from(b) < end(a, a_width)
}
