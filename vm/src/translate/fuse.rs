//! Runs of instructions that one op does: products and sums, accesses with computed indices, updates of an element, compares and
//! branches.
//!
//! A fused op writes every register that its instructions write, unless a later one of them overwrites it. So nothing needs to be
//! known about what follows, but for conditions, which only the branch needs almost always.

use super::graph::{Block, End, Graph, Step};
use super::liveness::Liveness;
use crate::code::{Code, Inst};

/// Fuses what can be fused in all blocks. `liveness` is that of the graph.
pub(super) fn fuse(graph: &mut Graph, liveness: Option<&Liveness>) {
    if let Some(liveness) = liveness {
        let mut blocks = std::mem::take(&mut graph.blocks);
        blocks.iter_mut().for_each(|block| fuse_test(graph, block, liveness));
        graph.blocks = blocks;
    }
    // The blocks pass their memory on.
    let mut fused = Vec::new();
    for block in &mut graph.blocks {
        for step in block.steps.drain(..) {
            push(&mut fused, step);
        }
        std::mem::swap(&mut block.steps, &mut fused);
    }
}

/// Makes the compare before a conditional branch part of it, if the condition is not needed afterwards.
fn fuse_test(graph: &Graph, block: &mut Block, liveness: &Liveness) {
    let live = liveness.behind_test(graph, block);
    let End::If { test, .. } = &mut block.end else { return };
    while let Some(last) = block.steps.last()
        && test.inst.code == Code::BrIf
        && last.inst.a == test.inst.b
        && !live.contains(last.inst.a)
    {
        let branch = match last.inst.code {
            Code::CmpNzI32 => Some(Code::BrIf),
            Code::CmpNzI64 => Some(Code::BrIf64),
            code => code.branch(),
        };
        let Some(code) = branch else { return };
        test.inst = Inst { code, ..last.inst };
        block.steps.pop();
    }
}

/// Appends an op, or makes it one with those before it.
fn push(steps: &mut Vec<Step>, mut step: Step) {
    loop {
        let three_in_one = match steps.as_slice() {
            [.., first, second] => three(first, second, &step),
            _ => None,
        };
        if let Some(fused) = three_in_one {
            steps.truncate(steps.len() - 2);
            step = fused;
            continue;
        }
        match steps.last().and_then(|last| two(&last.inst, &step.inst)) {
            Some(inst) => {
                steps.pop();
                step.inst = inst;
            }
            None => break,
        }
    }
    steps.push(step);
}

/// One op for two.
fn two(first: &Inst, second: &Inst) -> Option<Inst> {
    if let Some(forms) = second.code.index_forms() {
        if first.a != second.c {
            return None;
        }
        return match first.code {
            Code::AddI64 => Some(Inst { code: forms.sum, c: first.b, d: first.c, e: first.a, ..*second }),
            Code::AndI64 => Some(Inst { code: forms.and, c: first.b, d: first.c, e: first.a, ..*second }),
            Code::FmaI64 => Some(Inst { code: forms.fma, c: first.b, d: first.c, e: first.d, imm: first.a.into(), ..*second }),
            _ => None,
        };
    }
    let code = match (first.code, second.code) {
        (Code::MulI32, Code::AddI32) => Code::FmaI32,
        (Code::MulI64, Code::AddI64) => Code::FmaI64,
        (Code::MulF32, Code::AddF32) if second.c == first.a => Code::SumFmaF32,
        (Code::MulF32, Code::AddF32) => Code::FmaF32,
        (Code::MulF64, Code::AddF64) if second.c == first.a => Code::SumFmaF64,
        (Code::MulF64, Code::AddF64) => Code::FmaF64,
        _ => return None,
    };
    let addend = other(second, first.a)?;
    (second.a == first.a).then_some(Inst { code, d: addend, ..*first })
}

/// One op for three.
fn three(first: &Step, second: &Step, third: &Step) -> Option<Step> {
    let (a, b, c) = (&first.inst, &second.inst, &third.inst);
    if let Some(forms) = c.code.index_forms()
        && b.code == Code::AddI64
        && a.a == b.a
        && b.a == c.c
    {
        let addend = other(b, a.a)?;
        let inst = match a.code {
            Code::AddI64 => Inst { code: forms.sum3, c: a.b, d: a.c, e: addend, imm: a.a.into(), ..*c },
            Code::FmaI64 => Inst { code: forms.fma_sum, c: a.b, d: a.c, e: a.d, imm: u32::from(a.a) | u32::from(addend) << 16, ..*c },
            _ => return None,
        };
        return Some(Step { inst, ..*third });
    }
    update(a, b, c).map(|inst| Step { inst, pc: first.pc, late_pc: third.pc })
}

/// A load, a sum and a store to the same element.
fn update(load: &Inst, sum: &Inst, store: &Inst) -> Option<Inst> {
    let same_element = (load.b, load.c) == (store.b, store.c);
    if load.code != Code::BufferLoad32 || store.code != Code::BufferStore32 || !same_element || sum.a != store.a {
        return None;
    }
    // The index must be the same still when the element is stored.
    let index = [load.c, load.c.wrapping_add(1)];
    if index.contains(&load.a) || index.contains(&sum.a) {
        return None;
    }
    let (code, d, e, is_second) = match sum.code {
        Code::AddI32 => (Code::UpdateAddI32, other(sum, load.a)?, 0, false),
        Code::AddF32 => (Code::UpdateAddF32, other(sum, load.a)?, 0, sum.c == load.a),
        Code::FmaI32 if sum.d == load.a => (Code::UpdateFmaI32, sum.b, sum.c, false),
        Code::FmaF32 if sum.d == load.a => (Code::UpdateFmaF32, sum.b, sum.c, true),
        Code::SumFmaF32 if sum.d == load.a => (Code::UpdateFmaF32, sum.b, sum.c, false),
        _ => return None,
    };
    Some(Inst { code, a: sum.a, b: load.b, c: load.c, d, e, imm: u32::from(load.a) | u32::from(is_second) << 16 })
}

/// The operand of a sum that is not the given one; `None` if both are, or neither is.
pub(super) fn other(sum: &Inst, register: u16) -> Option<u16> {
    match (sum.b == register, sum.c == register) {
        (true, false) => Some(sum.c),
        (false, true) => Some(sum.b),
        _ => None,
    }
}
