//! Fuel: one unit per encoded instruction, taken for a whole block when it is entered.

use crate::support::*;
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{CaseList, FunctionRef, GlobalOffset, MoveList, Op, RefMove, RefRead, SwitchCase, X4, X8};
use vmfb_vm::{Config, FuelMetering, Interruption, Linker, Result, Status, Value};

fn metered(program: &Program) -> Running {
    program.start_with(&Linker::new(), Config::new().fuel(FuelMetering::On))
}

/// Fuel that a call takes.
fn cost(running: &mut Running, name: &str, arguments: &[Value]) -> u64 {
    running.store.set_fuel(1_000_000);
    running.call(name, arguments).unwrap();
    1_000_000 - running.store.fuel().unwrap()
}

/// `sum(n)`: a loop of 5 instructions around a compare that becomes one with its branch, entered by 3, left to 1.
fn looping(version: BytecodeVersion) -> Program {
    let mut program = Program::new(version);
    program.export("sum", "0i_i", |f| {
        f.start_block();
        let (head, end) = (f.label(), f.label());
        f.i32(1, 0).i32(2, -1).op(Op::Br { to: head.pc(), moves: NO_MOVES });
        f.place(head);
        f.op(Op::AddI32 { a: X4(1), b: X4(0), dst: X4(1) }).op(Op::AddI32 { a: X4(0), b: X4(2), dst: X4(0) });
        f.op(Op::ConstI32Zero { dst: X4(3) }).op(Op::CmpLtI32S { a: X4(3), b: X4(0), dst: X4(4) });
        f.op(Op::CondBr { condition: X4(4), true_to: head.pc(), true_moves: NO_MOVES, false_to: end.pc(), false_moves: NO_MOVES });
        f.place(end);
        f.ret([v(1)]);
    });
    program
}

#[test]
fn a_loop_costs_its_instructions() {
    for version in VERSIONS {
        let mut running = metered(&looping(version));
        for n in [1, 2, 10, 100] {
            assert_eq!(cost(&mut running, "sum", &[n.into()]), 3 + 5 * n as u64 + 1);
        }
    }
}

/// Nothing about the count changes when interruption is compiled in too.
#[test]
fn polls_cost_nothing() {
    let config = Config::new().fuel(FuelMetering::On).interruption(Interruption::On);
    let mut running = looping(NEWEST).start_with(&Linker::new(), config);
    assert_eq!(cost(&mut running, "sum", &[10.into()]), 54);
}

/// Moves of a branch are part of it, however many there are, and tables cost one.
#[test]
fn branches_cost_one_with_all_their_moves() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("br", "0II_I", |f| {
            f.start_block();
            let next = f.label();
            // A pair in two halves, a single, and a reference.
            let pairs = moves([(v(0), v(4)), (v(1), v(5)), (v(2), v(6)), (r(0), r(1))]);
            f.op(Op::Br { to: next.pc(), moves: MoveList::new(&pairs) });
            f.place(next);
            f.ret([v(4)]);
        });
        program.export("cond_br", "0i_i", |f| {
            f.start_block();
            let (yes, no) = (f.label(), f.label());
            let pairs = moves([(v(0), v(1)), (v(0), v(2))]);
            let taken = MoveList::new(&pairs);
            f.op(Op::CmpNzI32 { a: X4(0), dst: X4(3) });
            f.op(Op::CondBr { condition: X4(3), true_to: yes.pc(), true_moves: taken, false_to: no.pc(), false_moves: taken });
            f.place(yes);
            f.i32(1, 1).ret([v(1)]);
            f.place(no);
            f.ret([v(1)]);
        });
        let mut running = metered(&program);
        assert_eq!(cost(&mut running, "br", &[1_i64.into(), 2_i64.into()]), 2);
        assert_eq!((cost(&mut running, "cond_br", &[1.into()]), cost(&mut running, "cond_br", &[0.into()])), (4, 3));
    }
    for version in VERSIONS.into_iter().filter(|version| version.major() >= 15) {
        let mut program = Program::new(version);
        program.export("run", "0i_i", |f| {
            f.start_block();
            let (case, end) = (f.label(), f.label());
            let pairs = moves([(v(0), v(1)), (v(0), v(2))]);
            let cases = [SwitchCase { to: case.pc(), moves: MoveList::new(&pairs) }, SwitchCase { to: end.pc(), moves: NO_MOVES }];
            let (default_to, default_moves) = (end.pc(), MoveList::new(&pairs));
            f.op(Op::BrTable { index: X4(0), default_to, default_moves, cases: CaseList::new(&cases) });
            f.place(case);
            f.i32(1, 1).op(Op::Br { to: end.pc(), moves: NO_MOVES });
            f.place(end);
            f.ret([v(1)]);
        });
        let mut running = metered(&program);
        assert_eq!([0, 1, 2].map(|index: i32| cost(&mut running, "run", &[index.into()])), [4, 2, 2]);
    }
}

/// A call costs one, its callee costs itself, and coming back costs nothing again.
#[test]
fn calls_cost_one_and_their_callee() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let callee = FunctionRef::internal(program.function("0i_i", |f| {
            f.start_block();
            f.op(Op::AddI32 { a: X4(0), b: X4(0), dst: X4(0) }).op(Op::AddI32 { a: X4(0), b: X4(0), dst: X4(0) }).ret([v(0)]);
        }));
        program.export("run", "0i_i", |f| {
            f.start_block();
            f.call(callee, [v(0)], [v(1)]).call(callee, [v(1)], [v(2)]).i32(3, 0).ret([v(2)]);
        });
        let mut running = metered(&program);
        assert_eq!(cost(&mut running, "run", &[1.into()]), 4 + 2 * 3);
    }
}

/// Yields, and calls that may yield: the instruction, the resume block, nothing for the pause.
#[test]
fn resumptions_cost_nothing() {
    let mut program = Program::new(NEWEST);
    let callee = FunctionRef::internal(program.function("0v_v", |f| {
        f.start_block();
        let next = f.label();
        f.op(Op::Yield { to: next.pc(), moves: NO_MOVES });
        f.place(next);
        f.i32(0, 1).ret([]);
    }));
    program.export("run", "0v_v", |f| {
        f.start_block();
        let resume = f.label();
        let nothing = vmfb_bytecode::isa::RegisterList::new(&[]);
        f.i32(0, 1).op(Op::CallYieldable { callee, arguments: nothing, resume: resume.pc(), results: nothing });
        f.place(resume);
        f.ret([]);
    });
    assert_eq!(cost(&mut metered(&program), "run", &[]), 2 + 1 + 2 + 1);
}

/// `run` sets a global in its first block and another one in its second.
fn two_blocks(version: BytecodeVersion) -> Program {
    let mut program = Program::new(version);
    program.def.global_bytes = 8;
    program.export("run", "0ii_v", |f| {
        f.start_block();
        let second = f.label();
        f.op(Op::GlobalStoreI32 { offset: GlobalOffset(0), value: X4(0) }).op(Op::Br { to: second.pc(), moves: NO_MOVES });
        f.place(second);
        f.op(Op::GlobalStoreI32 { offset: GlobalOffset(4), value: X4(1) }).i32(2, 0).ret([]);
    });
    program.export("get", "0v_ii", |f| {
        f.start_block();
        f.op(Op::GlobalLoadI32 { offset: GlobalOffset(0), dst: X4(0) }).op(Op::GlobalLoadI32 { offset: GlobalOffset(4), dst: X4(1) });
        f.ret([v(0), v(1)]);
    });
    program
}

#[test]
fn a_block_that_cannot_be_paid_does_not_begin() {
    for version in VERSIONS {
        let mut running = metered(&two_blocks(version));
        let mut run = |fuel: u64, value: i32| -> (Result<()>, Vec<u64>, u64) {
            running.store.set_fuel(fuel);
            let result = running.call("run", &[value.into(), value.into()]).map(|_| ());
            let left = running.store.fuel().unwrap();
            running.store.set_fuel(100);
            (result, running.call("get", &[]).unwrap().iter().map(bits).collect(), left)
        };
        // 2 instructions in the first block, 3 in the second.
        for (fuel, value, state) in [(1, 1, [0, 0]), (2, 2, [2, 0]), (4, 3, [3, 0])] {
            let (result, globals, left) = run(fuel, value);
            let error = result.unwrap_err();
            assert_eq!(error.status(), Status::ResourceExhausted);
            assert!(error.message().contains("fuel"), "{error}");
            assert_eq!(globals, state);
            assert_eq!(left, fuel - if fuel >= 2 { 2 } else { 0 });
        }
        let (result, globals, left) = run(5, 4);
        result.unwrap();
        assert_eq!((globals, left), (vec![4, 4], 0));
    }
}

#[test]
fn an_endless_loop_runs_out_and_the_store_goes_on() {
    for version in VERSIONS {
        let mut program = looping(version);
        program.export("forever", "0v_v", |f| {
            let head = f.start_block();
            f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
        });
        program.export("yields", "0v_v", |f| {
            let head = f.start_block();
            f.op(Op::Yield { to: head.pc(), moves: NO_MOVES });
        });
        program.export("recursion", "0v_v", |f| {
            f.start_block();
            f.call(FunctionRef::internal(3), [], []).ret([]);
        });
        let mut running = metered(&program);
        for name in ["forever", "yields"] {
            running.store.set_fuel(10_000);
            let error = running.call(name, &[]).unwrap_err();
            assert_eq!((error.status(), running.store.fuel()), (Status::ResourceExhausted, Some(0)));
            assert_eq!(error.frames()[0].name.as_deref(), Some(name));
        }
        running.store.set_fuel(101);
        assert_eq!(status(running.call("recursion", &[])), Status::ResourceExhausted);
        assert_eq!(running.store.fuel(), Some(1));
        assert_eq!(cost(&mut running, "sum", &[10.into()]), 54);
    }
}

/// A started call runs out, is refuelled by nobody, and has ended.
#[test]
fn no_fuel_at_all() {
    let mut running = metered(&looping(NEWEST));
    assert_eq!(running.store.fuel(), Some(0));
    assert_eq!(status(running.call("sum", &[1.into()])), Status::ResourceExhausted);
    let mut free = looping(NEWEST).start();
    assert_eq!(free.store.fuel(), None);
    free.store.set_fuel(0);
    free.call("sum", &[1.into()]).unwrap();
}

/// Work on many bytes costs more than the instruction.
#[test]
fn bulk_ops_are_charged() {
    const BYTES: i64 = 1 << 20;
    for version in VERSIONS {
        let mut program = Program::new(version);
        let element = program.type_of("i64");
        let (a, b, whole) = (RefRead::new(0), RefRead::new(1), X8(0));
        let mut add = |name: &str, op: Op<'_>| {
            program.export(name, "0Irr_v", |f| {
                f.start_block();
                f.op(op).ret([]);
            });
        };
        add("fill", Op::BufferFillI8 { target: a, target_offset: X8(2), length: whole, value: X4(4) });
        add("copy", Op::BufferCopy { source: a, source_offset: X8(2), target: b, target_offset: X8(2), length: whole });
        add("compare", Op::BufferCompare { a, a_offset: X8(2), b, b_offset: X8(2), length: whole, dst: X4(4) });
        let alignment = (version.major() >= 15).then_some(X4(2));
        add("alloc", Op::BufferAlloc { length: whole, alignment, dst: RefMove::new(2) });
        add("clone", Op::BufferClone { source: a, offset: X8(2), length: whole, alignment, dst: RefMove::new(2) });
        add("list", Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(2) });
        let mut names = vec!["fill", "copy", "compare", "alloc", "clone", "list"];
        if version.major() >= 15 {
            add("hash", Op::BufferHash { source: a, source_offset: X8(2), length: whole, dst: X8(4) });
            names.push("hash");
        }
        let mut running = metered(&program);
        let account = Default::default();
        let buffer = || Value::from(vmfb_vm::Buffer::allocate(BYTES as usize, 1, &account).unwrap());
        let arguments = [BYTES.into(), buffer(), buffer()];
        for name in names {
            // At least one unit per 64 bytes, and not so much that nobody could pay it.
            let found = cost(&mut running, name, &arguments);
            assert!((2 + BYTES as u64 / 64..BYTES as u64).contains(&found), "{version} {name}: {found}");
            running.store.set_fuel(1000);
            assert_eq!(status(running.call(name, &arguments)), Status::ResourceExhausted, "{name}");
        }
    }
}
