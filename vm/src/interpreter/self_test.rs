//! Whether the threaded core works in this build: a call of the next op's function must be a jump, or the processor's stack would grow
//! with every op.

use super::steps::for_each_step;
use super::{ImportSlot, InstanceState, Machine, NativeInstance, Scratch, threaded};
use crate::access_ops::for_each_access_op;
use crate::body::{Body, CallSite, Moves};
use crate::code::{Code, Inst, encode_distance};
use crate::interpreter::ThreadedOp;
use crate::module::ModuleInner;
use crate::native::Context;
use crate::stack::Stack;
use crate::value_ops::for_each_value_op;
use crate::{Buffer, Engine, List, Ref, Result, Value};
use std::sync::Arc;
use vmfb_bytecode::calling_convention::Kind;
use vmfb_bytecode::isa::Register;
use vmfb_memory::MemoryAccount;

/// Rounds of the loop that runs every op.
const ROUNDS: u32 = 4;

/// Whether the threaded core was built, works, and leaves the processor's stack as it is.
///
/// A loop runs every op that goes on, and a call. The stack pointer must be the same in all rounds.
pub(crate) fn threaded_works(engine: &Engine) -> bool {
    threaded::BUILT
        && depths(engine).is_ok_and(|depths| depths.len() == ROUNDS as usize && depths.windows(2).all(|pair| pair[0] == pair[1]))
}

/// The addresses that a local of a function has which is called from a handler, one for each round.
fn depths(engine: &Engine) -> Result<Vec<usize>> {
    let account = MemoryAccount::default();
    let buffer = Buffer::allocate(64, 16, &account)?;
    let module = Arc::new(ModuleInner::of_bodies(engine, vec![every_op()?, callee()?], buffer.clone())?);
    let mut context = Context::new(engine.clone(), Box::new(()));
    let mut instances = [InstanceState::new(64, 1, vec![ImportSlot::Unresolved], &account)?];
    let mut scratch = Scratch::default();
    let mut stack = Stack::new(1 << 12, Arc::default());
    stack.push(0, 0, module.body(0)?)?;
    for (register, reference) in [(0, Ref::from(buffer)), (NUMBERS, numbers()?), (REFERENCES, references()?)] {
        stack.refs[usize::from(register)] = reference;
    }
    stack.values[..16].copy_from_slice(&[1, 0].repeat(8));
    let Some(frame) = stack.frames.last().copied() else { return Ok(Vec::new()) };
    let mut machine = Machine {
        modules: &[module],
        instances: &mut instances,
        natives: &mut [] as &mut [NativeInstance],
        context: &mut context,
        stack: &mut stack,
        scratch: &mut scratch,
    };
    threaded::execute(&mut machine, frame, 0)?;
    Ok(scratch.depths)
}

macro_rules! list_codes {
    (
        load { $($load:ident $ls:ident $ls3:ident $lf:ident $lfs:ident $la:ident = $lm:ident -> $lt:ty = $lb:expr;)* }
        store { $($store:ident $ss:ident $ss3:ident $sf:ident $sfs:ident $sa:ident = $sm:ident <- $st:ty = $sb:expr;)* }
        quick { $($quick:ident = $quick_function:expr;)* }
        slow { $($slow:ident = $slow_function:expr;)* }
        test { $($test:ident = $test_function:expr;)* }
        unary { $($unary:ident { $($ua:tt)* } -> $ur:ty = $ub:expr;)* }
        binary { $($binary:ident { $($ba:tt)* } -> $br:ty = $bf:expr;)* }
        ternary { $($ternary:ident { $($ta:tt)* } -> $tr:ty = $tf:expr;)* }
        fallible { $($fallible:ident { $($fa:tt)* } -> $fr:ty = $ff:expr;)* }
        compare { $($compare:ident branch $branch:ident unless $unless:ident { $($ca:tt)* } = $cf:expr;)* }
    ) => {
        /// Ops that compute something from registers and go on.
        const VALUES: &[Code] = &[$(Code::$unary,)* $(Code::$binary,)* $(Code::$ternary,)* $(Code::$fallible,)* $(Code::$compare,)*];
        /// Ops that read or write an element of a buffer.
        const ACCESSES: &[Code] = &[
            $(Code::$load, Code::$ls, Code::$ls3, Code::$lf, Code::$lfs, Code::$la,)*
            $(Code::$store, Code::$ss, Code::$ss3, Code::$sf, Code::$sfs, Code::$sa,)*
        ];
        /// Other ops that are quick.
        const QUICK: &[Code] = &[$(Code::$quick,)*];
        /// Ops that are not quick.
        #[cfg(test)]
        const SLOW: &[Code] = &[$(Code::$slow,)*];
        /// Ops that branch.
        const TESTS: &[Code] = &[$(Code::$test,)* $(Code::$branch,)* $(Code::$unless,)*];
    };
}

macro_rules! with_values {
    ($($tables:tt)*) => {
        for_each_value_op!(list_codes $($tables)*);
    };
}

macro_rules! with_steps {
    ($($tables:tt)*) => {
        for_each_step!(with_values $($tables)*);
    };
}

for_each_access_op!(with_steps);

/// Where results go that nobody looks at: a pair, and a ref.
const RESULT: u16 = 24;
const OBJECT: u16 = 1;
/// Refs: a list of a number, a list of a reference.
const NUMBERS: u16 = 2;
const REFERENCES: u16 = 3;

fn numbers() -> Result<Ref> {
    Ok(List::of_values([Value::I32(1)])?.into())
}

fn references() -> Result<Ref> {
    Ok(List::of_values([Value::Ref(Ref::Null)])?.into())
}

/// Every slow op that goes on, with operands that it accepts. Value 2 and the pairs 2, 4 and 6 are 1, value 3 is 0; ref 0 is a
/// buffer. List 1 names value 2, list 2 ref 0.
fn slow_ops() -> Vec<Inst> {
    use Code::*;
    let lists = [(ListSetI32, ListGetI32), (ListSetI64, ListGetI64), (ListSetF32, ListGetF32), (ListSetF64, ListGetF64)];
    let numbers = lists.map(|(set, get)| [(set, [2, NUMBERS, 3, 0, 0], 0), (get, [RESULT, NUMBERS, 3, 0, 0], 0)]);
    let others = [
        (MoveRef, [OBJECT, 0, 0, 0, 0], 0),
        (DiscardRef, [OBJECT, 0, 0, 0, 0], 0),
        (ListSize, [RESULT, NUMBERS, 0, 0, 0], 0),
        (ListSetRef, [0, REFERENCES, 3, 0, 0], 0),
        (ListGetRef, [OBJECT, REFERENCES, 3, 0, 0], 0),
        (ListAlloc, [OBJECT, 3, 0, 0, 0], 0),
        (ListReserve, [NUMBERS, 2, 0, 0, 0], 0),
        (ListResize, [NUMBERS, 2, 0, 0, 0], 0),
        (ConstNull, [OBJECT, 0, 0, 0, 0], 0),
        (ConstRodata, [OBJECT, 0, 0, 0, 0], 0),
        (CastRef, [OBJECT, 0, 0, 0, 0], 0),
        (GlobalLoadIndirect32, [RESULT, 3, 0, 0, 0], 0),
        (GlobalStoreIndirect32, [2, 3, 0, 0, 0], 0),
        (GlobalLoadIndirect64, [RESULT, 3, 0, 0, 0], 0),
        (GlobalStoreIndirect64, [2, 3, 0, 0, 0], 0),
        (GlobalStoreRef, [0, 0, 0, 0, 0], 0),
        (GlobalLoadRef, [OBJECT, 0, 0, 0, 0], 0),
        (GlobalStoreIndirectRef, [0, 0, 0, 0, 0], 3),
        (GlobalLoadIndirectRef, [OBJECT, 0, 0, 0, 0], 3),
        (SelectRef, [OBJECT, 2, 0, 0, 0], 0),
        (Switch32, [RESULT, 3, 2, 0, 0], 1),
        (Switch64, [RESULT, 3, 2, 0, 0], 1),
        (SwitchRef, [OBJECT, 3, 0, 0, 0], 2),
        (CmpEqRef, [RESULT, 0, OBJECT, 0, 0], 0),
        (CmpNeRef, [RESULT, 0, OBJECT, 0, 0], 0),
        (CmpNzRef, [RESULT, 0, 0, 0, 0], 0),
        (ImportResolved, [RESULT, 0, 0, 0, 0], 0),
        (BufferAlloc, [OBJECT, 2, 0, 0, 0], 0),
        (BufferClone, [OBJECT, 0, 2, 4, 0], 0),
        (BufferLength, [RESULT, 0, 0, 0, 0], 0),
        (BufferCopy, [0, 2, 0, 4, 6], 0),
        (BufferCompare, [0, 2, 0, 4, 6], u32::from(RESULT)),
        (BufferFill, [0, 2, 4, 6, 1], 1),
        (BufferHash, [RESULT, 0, 2, 4, 0], 0),
    ];
    others.into_iter().chain(numbers.into_iter().flatten()).map(|(code, operands, imm)| Inst::new(code, operands, imm)).collect()
}

/// A loop of all ops. Pairs up to 14 are 1 at first; ref 0 is a buffer of 64 bytes.
fn every_op() -> Result<Body> {
    const COUNTER: u16 = 20;
    const LIMIT: u16 = 22;
    let mut code = vec![Inst::new(Code::Const32, [COUNTER, 0, 0, 0, 0], 0), Inst::new(Code::Const32, [LIMIT, 0, 0, 0, 0], ROUNDS)];
    let start = code.len();
    code.extend(VALUES.iter().map(|op| Inst::new(*op, [RESULT, 2, 4, 6, 0], 0)));
    // Whichever way an index is computed, it is 4 at most. Where it goes to, and what is loaded, is of no use.
    let accesses = ACCESSES.iter().filter(|op| op.index_forms().is_none());
    code.extend(accesses.map(|op| Inst::new(*op, [RESULT, 0, 2, 4, 6], u32::from(RESULT) | 8 << 16)));
    let direct = ACCESSES.iter().filter(|op| op.index_forms().is_some());
    code.extend(direct.map(|op| Inst::new(*op, [RESULT, 0, 2, 0, 0], 0)));
    code.extend(QUICK.iter().map(|op| Inst::new(*op, [RESULT, 0, 2, 4, 6], u32::from(RESULT) + 2)));
    code.extend(slow_ops());
    // Taken or not, a branch leads to the next op.
    code.extend(TESTS.iter().map(|op| Inst::new(*op, [RESULT, 2, 4, 6, 0], encode_distance(1))));
    code.push(Inst::new(Code::Poll, [0; 5], 0));
    code.push(Inst::new(Code::BrTable, [RESULT, 0, 0, 0, 0], 0));
    code.push(Inst::new(Code::Call, [RESULT, 0, 0, 0, 0], 0));
    code.push(Inst::new(Code::Probe, [0; 5], 0));
    let distance = start as isize - code.len() as isize;
    code.push(Inst::new(Code::AddBrLtI32S, [COUNTER, 0, LIMIT, 0, 0], encode_distance(distance)));
    code.push(Inst::new(Code::Return0, [0; 5], 0));
    let site = CallSite {
        callee: 1,
        arguments: Box::default(),
        placement: Box::default(),
        segments: Box::default(),
        results: [(Kind::I32, Register::value(RESULT))].into(),
        moves: Moves::Honoured,
    };
    body(code, vec![[encode_distance(1)].into(), [2].into(), [0].into()], vec![site], 4)
}

/// A function that returns a number, and releases the refs that it does not have.
fn callee() -> Result<Body> {
    let code = [Code::ReleaseRefs, Code::Const32, Code::Return32].map(|code| Inst::new(code, [0; 5], 1));
    body(code.to_vec(), vec![Box::default()], Vec::new(), 0)
}

fn body(code: Vec<Inst>, lists: Vec<Box<[u32]>>, calls: Vec<CallSite>, ref_slots: usize) -> Result<Body> {
    let body = Body {
        pcs: vec![0; code.len()].into(),
        code: code.into_iter().map(ThreadedOp::new).collect(),
        late_pcs: Box::default(),
        lists: lists.into(),
        messages: Box::default(),
        calls: calls.into(),
        zeroed: Box::default(),
        value_slots: 32,
        ref_slots,
    };
    body.check()?;
    Ok(body)
}

/// The address of a local, when called from a handler.
#[inline(never)]
pub(super) fn stack_address() -> usize {
    let local = 0u8;
    std::hint::black_box(&raw const local).addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Dispatch};

    #[test]
    fn the_core_works_in_optimised_builds() {
        let works = threaded_works(&Engine::new(Config::new().dispatch(Dispatch::Portable)));
        assert!(works || cfg!(debug_assertions) || !threaded::BUILT);
    }

    /// All but those that end the run, and `Trace`, which the portable core alone runs; `Probe` and `ReleaseRefs` stand elsewhere.
    #[test]
    fn every_slow_op_is_among_the_tested_ones() {
        let tested: Vec<Code> =
            slow_ops().iter().map(|op| op.code).chain([Code::Fail, Code::Probe, Code::ReleaseRefs, Code::Trace]).collect();
        let missing: Vec<&Code> = SLOW.iter().filter(|code| !tested.contains(code)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_stack_that_grows_is_noticed() {
        let depths = depths(&Engine::new(Config::new().dispatch(Dispatch::Portable)));
        assert_eq!(depths.is_ok_and(|depths| depths.len() == ROUNDS as usize), threaded::BUILT, "every round is seen");
    }
}
