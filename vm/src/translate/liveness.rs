//! Which value registers hold something that is read later.

use super::accesses::{Access, visit};
use super::graph::{Block, Edge, End, Graph, Step};
use crate::code::Code;
use crate::registers::Width;
use smallvec::{SmallVec, smallvec};
use vmfb_bytecode::calling_convention::Kind;
use vmfb_bytecode::isa::Register;

/// Value slots of a frame. Slots behind the frame's are ignored: nothing is ever in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(SmallVec<[u64; 4]>);

/// The slots that are live where each block starts.
#[derive(Debug)]
pub(super) struct Liveness {
    words: usize,
    live_in: Vec<u64>,
}

/// The most words that the analysis may use, so that it costs no more than the ops of large functions do; and the most rounds.
const MOST_WORDS: usize = 1 << 16;
const MOST_ROUNDS: usize = 32;

impl Slots {
    fn empty(words: usize) -> Self {
        Self(smallvec![0; words])
    }

    pub(super) fn contains(&self, slot: u16) -> bool {
        self.0.get(usize::from(slot / 64)).is_some_and(|word| word & 1 << (slot % 64) != 0)
    }

    /// Whether any part of a register is among the slots.
    pub(super) fn intersects(&self, slot: u16, width: Width) -> bool {
        self.contains(slot) || width == Width::Pair && self.contains(slot.wrapping_add(1))
    }

    fn set(&mut self, slot: u16, width: Width, live: bool) {
        let last = if width == Width::Pair { slot.wrapping_add(1) } else { slot };
        for slot in [slot, last] {
            if let Some(word) = self.0.get_mut(usize::from(slot / 64)) {
                *word = if live { *word | 1 << (slot % 64) } else { *word & !(1 << (slot % 64)) };
            }
        }
    }

    fn unite(&mut self, words: &[u64]) {
        self.0.iter_mut().zip(words).for_each(|(word, other)| *word |= other);
    }

    /// Goes back over an op: what was live after it to what is live before it.
    pub(super) fn before(&mut self, step: &Step, graph: &Graph) {
        let mut inst = step.inst;
        if let [word] = &mut *self.0
            && listed(inst.code) == Listed::Nothing
        {
            let (mut read, mut written) = (0, 0);
            visit(&mut inst, &mut |access, width, slot| match access {
                Access::Read => read |= bits(*slot, width),
                Access::Write => written |= bits(*slot, width),
            });
            *word = *word & !written | read;
            return;
        }
        self.before_any(step, graph);
    }

    fn before_any(&mut self, step: &Step, graph: &Graph) {
        let mut inst = step.inst;
        let listed = listed(inst.code);
        let site = if listed == Listed::Call { graph.calls.get(inst.imm as usize) } else { None };
        for (kind, register) in site.into_iter().flat_map(|site| &site.results) {
            self.set_register(*kind, *register, false);
        }
        visit(&mut inst, &mut |access, width, slot| {
            if access == Access::Write {
                self.set(*slot, width, false);
            }
        });
        for (kind, register) in site.into_iter().flat_map(|site| &site.arguments) {
            self.set_register(*kind, *register, true);
        }
        let list = || graph.lists.get(inst.imm as usize).into_iter().flatten().map(|word| Register::from_word(*word as u16));
        match listed {
            Listed::Nothing | Listed::Call => {}
            Listed::Results => graph.results.iter().zip(list()).for_each(|(kind, register)| self.set_register(*kind, register, true)),
            Listed::Choices(width) => list().for_each(|register| self.set(register.ordinal(), width, true)),
        }
        visit(&mut inst, &mut |access, width, slot| {
            if access == Access::Read {
                self.set(*slot, width, true);
            }
        });
    }

    fn set_register(&mut self, kind: Kind, register: Register, live: bool) {
        match kind.value_slots() {
            0 => {}
            1 => self.set(register.ordinal(), Width::One, live),
            _ => self.set(register.ordinal(), Width::Pair, live),
        }
    }
}

/// Which registers of an op stand elsewhere than in its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    Nothing,
    /// Arguments and results, at a call site.
    Call,
    /// What the function returns, in a list.
    Results,
    /// What a switch chooses from, in a list.
    Choices(Width),
}

fn listed(code: Code) -> Listed {
    match code {
        Code::Call | Code::CallGeneral | Code::CallImport => Listed::Call,
        Code::Return | Code::Return32 | Code::Return64 => Listed::Results,
        Code::Switch32 => Listed::Choices(Width::One),
        Code::Switch64 => Listed::Choices(Width::Pair),
        _ => Listed::Nothing,
    }
}

/// The slots of a register in a frame of at most 64 slots.
#[inline]
fn bits(slot: u16, width: Width) -> u64 {
    let register: u64 = if width == Width::Pair { 0b11 } else { 0b1 };
    register.checked_shl(slot.into()).unwrap_or(0)
}

impl Liveness {
    /// Analyses a function. `None` if that would take too long.
    pub(super) fn of(graph: &Graph) -> Option<Self> {
        let words = graph.value_slots.div_ceil(64);
        if words.checked_mul(graph.blocks.len())? > MOST_WORDS {
            return None;
        }
        let mut liveness = Self { words, live_in: vec![0; words * graph.blocks.len()] };
        for _ in 0..MOST_ROUNDS {
            let mut loops = false;
            let mut changed = false;
            for (index, block) in graph.blocks.iter().enumerate().rev() {
                let mut live = liveness.at_end(graph, block);
                block.steps.iter().rev().for_each(|step| live.before(step, graph));
                if let Some(known) = liveness.live_in.get_mut(index * words..(index + 1) * words)
                    && *known != *live.0
                {
                    known.copy_from_slice(&live.0);
                    changed = true;
                }
                loops |= block.edges().iter().any(|edge| edge.to as usize <= index);
            }
            if !changed || !loops {
                return Some(liveness);
            }
        }
        None
    }

    /// What is live where a block starts.
    pub(super) fn at_start(&self, block: usize) -> Slots {
        Slots(self.words_of(block).into())
    }

    /// What is live behind the ops of a block: before its branch, and before the moves on its edges.
    pub(super) fn at_end(&self, graph: &Graph, block: &Block) -> Slots {
        let mut live = self.behind_test(graph, block);
        match &block.end {
            End::If { test, .. } => live.before(test, graph),
            End::Table { index, .. } => live.set(*index, Width::One, true),
            _ => {}
        }
        live
    }

    /// What is live behind a block's branch, where the moves on its edges start.
    pub(super) fn behind_test(&self, graph: &Graph, block: &Block) -> Slots {
        let mut live = Slots::empty(self.words);
        for edge in block.edges() {
            live.unite(&self.on_edge(graph, edge).0);
        }
        live
    }

    /// What is live where an edge starts.
    fn on_edge(&self, graph: &Graph, edge: &Edge) -> Slots {
        let mut live = self.at_start(edge.to as usize);
        edge.moves.iter().rev().for_each(|step| live.before(step, graph));
        live
    }

    fn words_of(&self, block: usize) -> &[u64] {
        self.live_in.get(block * self.words..(block + 1) * self.words).unwrap_or_default()
    }
}
