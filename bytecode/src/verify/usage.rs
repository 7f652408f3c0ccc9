//! Which value registers a function reads before it writes them, and what that says about the placement of its arguments.
//!
//! Compilers up to 3.4.0 placed arguments by another rule than later ones, and the bytecode version does not tell them apart.

use super::Context;
use super::access::{AccessSink, Width, each_access};
use crate::calling_convention::{CallingConvention, Placement, PlacementRule};
use crate::definition::Function;
use crate::isa::MoveList;
use crate::{Error, Result, Status};

/// Only the first value registers are looked at, so that the work stays linear. No known function has arguments beyond.
pub(super) const WINDOW: u16 = 256;

/// Registers that are read before they are written, on some path from the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ExposedGroup {
    /// As 32 bits.
    four: u64,
    /// As the low half of a pair.
    eight: u64,
    /// By a move: as 32 bits or as either half of a pair.
    moved: u64,
}

/// The registers below [`WINDOW`] that are read before they are written.
#[derive(Clone, Debug)]
pub(super) struct Exposed([ExposedGroup; WINDOW as usize / 64]);

impl Exposed {
    fn has(&self, slot: u16, mask: impl Fn(&ExposedGroup) -> u64) -> bool {
        self.0.get(usize::from(slot / 64)).is_some_and(|group| mask(group) >> (slot % 64) & 1 != 0)
    }

    pub(super) fn four(&self, slot: u16) -> bool {
        self.has(slot, |group| group.four)
    }

    pub(super) fn eight(&self, slot: u16) -> bool {
        self.has(slot, |group| group.eight)
    }

    pub(super) fn moved(&self, slot: u16) -> bool {
        self.has(slot, |group| group.moved)
    }
}

/// How the arguments of a function are placed.
pub(super) fn placement_rule(context: &Context<'_>, ordinal: u32, function: &Function) -> Result<PlacementRule> {
    let convention = context.convention(ordinal).ok_or_else(|| Error::new(Status::Internal, "the convention was not resolved"))?;
    if context.definition.bytecode_version.major() >= 16 || !convention.placement_depends_on_rule() {
        return Ok(PlacementRule::NextFree);
    }
    if function.signature.is_none() {
        // Inference of 13.0 placed them so.
        return Ok(PlacementRule::LowestFree);
    }
    let new = convention.placement(PlacementRule::NextFree)?;
    let old = convention.placement(PlacementRule::LowestFree)?;
    if new.value_slots > function.value_registers && old.value_slots <= function.value_registers {
        return Ok(PlacementRule::LowestFree);
    }
    if new.value_slots > WINDOW {
        return Err(Error::new(
            Status::Unimplemented,
            format!(
                "the placement of the arguments of {convention} is ambiguous, and beyond {WINDOW} value registers nothing is looked at"
            ),
        ));
    }
    let exposed = exposed(context, ordinal)?;
    if explains(&new, convention, &exposed) || old.value_slots > function.value_registers {
        return Ok(PlacementRule::NextFree);
    }
    Ok(PlacementRule::LowestFree)
}

/// Whether every register that is read before it is written is an argument.
pub(super) fn explains(placement: &Placement, convention: &CallingConvention, exposed: &Exposed) -> bool {
    let mut fours = [0_u64; WINDOW as usize / 64];
    let mut eights = fours;
    for (kind, slot) in convention.plain_arguments().unwrap_or_default().iter().zip(&placement.slots) {
        let set = match kind.value_slots() {
            0 => continue,
            1 => &mut fours,
            _ => &mut eights,
        };
        if let Some(group) = set.get_mut(usize::from(slot / 64)) {
            *group |= 1 << (slot % 64);
        }
    }
    // Pairs start at even slots, so a pair never reaches into the next group.
    exposed.0.iter().zip(fours.iter().zip(&eights)).all(|(exposed, (fours, eights))| {
        exposed.eight & !eights == 0 && exposed.four & !(fours | eights) == 0 && exposed.moved & !(fours | eights | eights << 1) == 0
    })
}

/// The registers that a function reads before it writes them.
pub(super) fn exposed(context: &Context<'_>, ordinal: u32) -> Result<Exposed> {
    let mut groups = [ExposedGroup::default(); WINDOW as usize / 64];
    for (base, group) in (0..).step_by(64).zip(&mut groups) {
        let mut summary = Summary { base, ..Summary::default() };
        each_access(context, ordinal, &mut summary)?;
        *group = summary.solve();
        if summary.beyond == 0 {
            break;
        }
    }
    Ok(Exposed(groups))
}

/// What the blocks of a function do to the 64 registers from `base` on.
#[derive(Default)]
struct Summary {
    base: u16,
    blocks: Vec<Block>,
    edges: Vec<Edge>,
    /// Accesses to registers behind these.
    beyond: usize,
}

#[derive(Default)]
struct Block {
    pc: u32,
    exposed: ExposedGroup,
    written: u64,
    first_edge: usize,
}

struct Edge {
    target: u32,
    /// What its moves write.
    written: u64,
}

impl Summary {
    fn bit(&mut self, slot: u16) -> u64 {
        match slot.checked_sub(self.base) {
            Some(offset @ 0..64) => 1 << offset,
            Some(_) => {
                self.beyond += 1;
                0
            }
            None => 0,
        }
    }

    /// Propagates "not written yet" along the edges until nothing changes; each block can change 64 times at most.
    fn solve(&self) -> ExposedGroup {
        let find = |edge: &Edge| self.blocks.binary_search_by_key(&edge.target, |block| block.pc).ok();
        let targets: Vec<_> = self.edges.iter().map(find).collect();
        let mut unwritten = vec![0_u64; self.blocks.len()];
        let mut work = Vec::new();
        if let Some(entry) = unwritten.first_mut() {
            *entry = u64::MAX;
            work.push(0);
        }
        while let Some(index) = work.pop() {
            let (Some(block), Some(&state)) = (self.blocks.get(index), unwritten.get(index)) else { continue };
            let last_edge = self.blocks.get(index + 1).map_or(self.edges.len(), |next| next.first_edge);
            let edges = block.first_edge..last_edge;
            let (edges, targets) = (self.edges.get(edges.clone()).unwrap_or_default(), targets.get(edges).unwrap_or_default());
            for (edge, target) in edges.iter().zip(targets) {
                let Some(target) = *target else { continue };
                let Some(known) = unwritten.get_mut(target) else { continue };
                let joined = *known | state & !block.written & !edge.written;
                if joined != *known {
                    *known = joined;
                    work.push(target);
                }
            }
        }
        let mut exposed = ExposedGroup::default();
        for (block, state) in self.blocks.iter().zip(unwritten) {
            exposed.four |= block.exposed.four & state;
            exposed.eight |= block.exposed.eight & state;
            exposed.moved |= block.exposed.moved & state;
        }
        exposed
    }
}

impl<'m> AccessSink<'m> for Summary {
    fn block(&mut self, pc: u32) {
        self.blocks.push(Block { pc, first_edge: self.edges.len(), ..Block::default() });
    }

    fn read(&mut self, slot: u16, width: Width) {
        let bit = self.bit(slot);
        let Some(block) = self.blocks.last_mut() else { return };
        let bit = bit & !block.written;
        match width {
            Width::Four => block.exposed.four |= bit,
            Width::Eight => block.exposed.eight |= bit,
            Width::Unknown => {}
        }
    }

    fn write(&mut self, slot: u16, width: Width) {
        let bit = self.bit(slot);
        let bits = if width == Width::Eight { bit | bit << 1 } else { bit };
        if let Some(block) = self.blocks.last_mut() {
            block.written |= bits;
        }
    }

    fn branch(&mut self, target: u32) {
        self.edges.push(Edge { target, written: 0 });
    }

    fn moves(&mut self, moves: MoveList<'m>) {
        for step in moves.iter().filter(|step| !step.source.is_ref()) {
            let (source, destination) = (self.bit(step.source.ordinal()), self.bit(step.destination.ordinal()));
            let (Some(block), Some(edge)) = (self.blocks.last_mut(), self.edges.last_mut()) else { return };
            block.exposed.moved |= source & !block.written & !edge.written;
            edge.written |= destination;
        }
    }
}
