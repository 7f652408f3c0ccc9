//! References: MOVE bits in old and new bytecode, checked assignment, selects and switches, identity, release.

use crate::support::*;
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{MoveList, Op, RefList, RefMove, RefRead, RegisterList, Text, X4};
use vmfb_vm::{Buffer, Ref, RefObject, Status, Value};

struct Thing;

impl RefObject for Thing {
    const TYPE_NAME: &'static str = "test.thing";
}

fn buffer() -> Buffer {
    Buffer::constant(vec![1, 2, 3])
}

/// Runs a program of refs: arguments are refs, results are refs; gives which argument each result is (`None` for null).
fn run(
    version: BytecodeVersion,
    arguments: &[Ref],
    results: usize,
    build: impl FnOnce(&mut Program) -> Box<dyn FnOnce(&mut Body)>,
) -> Result<Vec<Option<usize>>, Status> {
    let mut program = Program::new(version);
    let body = build(&mut program);
    let convention = format!("0{}_{}", "r".repeat(arguments.len()), "r".repeat(results));
    program.export("run", &convention, |f| {
        f.start_block();
        body(f);
    });
    let values: Vec<Value> = arguments.iter().cloned().map(Value::Ref).collect();
    let found = program.start().call("run", &values).map_err(|error| error.status())?;
    let which = |value: Value| match value {
        Value::Ref(Ref::Null) => None,
        Value::Ref(reference) => Some(arguments.iter().position(|argument| argument.same(&reference)).expect("one of the arguments")),
        other => panic!("{other:?}"),
    };
    Ok(found.into_iter().map(which).collect())
}

/// The same program with and without MOVE on its operand: what the source register holds afterwards.
fn after_move(version: BytecodeVersion, operand: RefMove) -> Vec<Option<usize>> {
    run(version, &[buffer().into()], 2, |program| {
        let type_ordinal = program.type_of("!vm.buffer");
        Box::new(move |f| {
            f.op(Op::CastAnyRef { a: operand, type_ordinal, dst: RefMove::new(1) }).ret([r(0), r(1)]);
        })
    })
    .unwrap()
}

#[test]
fn move_on_single_operands_means_something_since_16() {
    assert_eq!(after_move(BytecodeVersion::V15, RefMove::new(0)), [Some(0), Some(0)]);
    assert_eq!(after_move(BytecodeVersion::V15, RefMove::moved(0)), [Some(0), Some(0)]);
    for version in [BytecodeVersion::V16, BytecodeVersion::V17] {
        assert_eq!(after_move(version, RefMove::new(0)), [Some(0), Some(0)]);
        assert_eq!(after_move(version, RefMove::moved(0)), [None, Some(0)]);
    }
}

/// What a `select.ref` leaves in its two operands and its result.
fn select(version: BytecodeVersion, condition: i32, if_true: RefMove, if_false: RefMove, dst: u16) -> Vec<Option<usize>> {
    run(version, &[buffer().into(), buffer().into()], 3, |program| {
        let type_ordinal = program.type_of("!vm.buffer");
        Box::new(move |f| {
            f.i32(0, condition).op(Op::SelectRef { condition: X4(0), type_ordinal, if_true, if_false, dst: RefMove::new(dst) });
            f.ret([r(0), r(1), r(2)]);
        })
    })
    .unwrap()
}

#[test]
fn selects_of_references() {
    for version in VERSIONS {
        let (plain0, plain1, moved0, moved1) = (RefMove::new(0), RefMove::new(1), RefMove::moved(0), RefMove::moved(1));
        assert_eq!(select(version, 1, plain0, plain1, 2), [Some(0), Some(1), Some(0)]);
        assert_eq!(select(version, 0, plain0, plain1, 2), [Some(0), Some(1), Some(1)]);
        // Into an operand, and both operands the same: values survive.
        assert_eq!(select(version, 1, plain0, plain1, 1), [Some(0), Some(0), None]);
        assert_eq!(select(version, 1, plain0, plain0, 0), [Some(0), Some(1), None]);
        assert_eq!(select(version, 0, moved0, moved0, 0), [Some(0), Some(1), None]);
        if version.honours_move() {
            assert_eq!(select(version, 1, moved0, plain1, 2), [None, Some(1), Some(0)]);
            // The operand that is not chosen is released too,
            assert_eq!(select(version, 1, moved0, moved1, 2), [None, None, Some(0)]);
            assert_eq!(select(version, 0, moved0, plain1, 2), [None, Some(1), Some(1)]);
            // unless it is the destination.
            assert_eq!(select(version, 1, moved0, moved1, 1), [None, Some(0), None]);
            assert_eq!(select(version, 0, moved0, moved1, 0), [Some(1), None, None]);
        } else {
            assert_eq!(select(version, 1, moved0, moved1, 2), [Some(0), Some(1), Some(0)]);
        }
    }
}

/// What a `switch.ref` over r0 and r1 with default r2 leaves in r0, r1, r2 and r3.
fn switch(version: BytecodeVersion, index: i32, values: [RefMove; 2], default: RefMove) -> Vec<Option<usize>> {
    run(version, &[buffer().into(), buffer().into(), buffer().into()], 4, |program| {
        let type_ordinal = program.type_of("!vm.buffer");
        Box::new(move |f| {
            let words = values.map(|value| value.0.to_le_bytes());
            f.i32(0, index);
            f.op(Op::SwitchRef { index: X4(0), type_ordinal, default, values: RefList::new(&words), dst: RefMove::new(3) });
            f.ret([r(0), r(1), r(2), r(3)]);
        })
    })
    .unwrap()
}

#[test]
fn switches_of_references() {
    let (plain, taken) = ([RefMove::new(0), RefMove::new(1)], [RefMove::moved(0), RefMove::moved(1)]);
    for version in VERSIONS {
        assert_eq!(switch(version, 1, plain, RefMove::new(2)), [Some(0), Some(1), Some(2), Some(1)]);
        for index in [2, -1, i32::MIN] {
            assert_eq!(switch(version, index, plain, RefMove::new(2)), [Some(0), Some(1), Some(2), Some(2)]);
        }
        // The MOVE bits of the list count in every version; the default's is a single operand.
        assert_eq!(switch(version, 0, taken, RefMove::new(2)), [None, Some(1), Some(2), Some(0)]);
        let default = if version.honours_move() { None } else { Some(2) };
        assert_eq!(switch(version, 9, plain, RefMove::moved(2)), [Some(0), Some(1), default, Some(2)]);
    }
}

#[test]
fn moves_of_branches_and_returns_are_honoured_in_every_version() {
    for version in VERSIONS {
        let found = run(version, &[buffer().into(), buffer().into()], 4, |_| {
            Box::new(|f| {
                let next = f.label();
                let pairs = moves([(moved(0), r(2)), (r(1), r(3))]);
                f.op(Op::Br { to: next.pc(), moves: MoveList::new(&pairs) });
                f.place(next);
                f.ret([r(0), r(1), r(2), r(3)]);
            })
        });
        assert_eq!(found.unwrap(), [None, Some(1), Some(0), Some(1)]);
        // A register that is moved twice is null the second time; one that is copied first is not.
        let twice = run(version, &[buffer().into()], 2, |_| Box::new(|f| _ = f.ret([moved(0), moved(0)])));
        assert_eq!(twice.unwrap(), [Some(0), None]);
        let copied = run(version, &[buffer().into()], 2, |_| Box::new(|f| _ = f.ret([r(0), moved(0)])));
        assert_eq!(copied.unwrap(), [Some(0), Some(0)]);
    }
}

#[test]
fn a_move_to_the_same_register_keeps_the_value() {
    for version in VERSIONS.into_iter().filter(|version| version.honours_move()) {
        let found = run(version, &[buffer().into()], 1, |program| {
            let type_ordinal = program.type_of("!vm.buffer");
            Box::new(move |f| {
                let next = f.label();
                f.op(Op::AssignRef { source: RefMove::moved(0), dst: RefMove::new(0) });
                f.op(Op::CastAnyRef { a: RefMove::moved(0), type_ordinal, dst: RefMove::new(0) });
                let pairs = moves([(moved(0), r(0))]);
                f.op(Op::Br { to: next.pc(), moves: MoveList::new(&pairs) });
                f.place(next);
                f.ret([r(0)]);
            })
        });
        assert_eq!(found.unwrap(), [Some(0)]);
    }
}

#[test]
fn assign_copies_or_moves_anything() {
    for version in [BytecodeVersion::V16, BytecodeVersion::V17] {
        let found = run(version, &[Ref::new(Thing), buffer().into()], 4, |_| {
            Box::new(|f| {
                f.op(Op::AssignRef { source: RefMove::new(0), dst: RefMove::new(2) });
                f.op(Op::AssignRef { source: RefMove::moved(1), dst: RefMove::new(3) });
                f.ret([r(0), r(1), r(2), r(3)]);
            })
        });
        assert_eq!(found.unwrap(), [Some(0), None, Some(0), Some(1)]);
    }
}

#[test]
fn checked_assignments_refuse_other_types_and_change_nothing() {
    // Null passes as anything; objects pass as their own type alone; nothing but null passes as an opaque value.
    let cases: [(&str, Ref, bool); 12] = [
        ("!vm.buffer", buffer().into(), true),
        ("!vm.buffer", Ref::new(Thing), false),
        ("!vm.buffer", Ref::Null, true),
        ("!vm.list<i32>", vmfb_vm::List::of_values([]).unwrap().into(), true),
        ("!vm.list<i32>", buffer().into(), false),
        ("!test.thing", Ref::new(Thing), true),
        ("!test.thing", buffer().into(), false),
        ("!test.thing", Ref::Null, true),
        ("!test.other", Ref::new(Thing), false),
        ("!vm.opaque", Ref::new(Thing), false),
        ("!vm.opaque", Ref::Null, true),
        ("i32", buffer().into(), false),
    ];
    for version in VERSIONS.into_iter().filter(|version| version.major() >= 15) {
        for (name, reference, passes) in &cases {
            let wanted = if reference.is_null() { None } else { Some(0) };
            let found = run(version, std::slice::from_ref(reference), 1, |program| {
                let type_ordinal = program.type_of(name);
                Box::new(move |f| _ = f.op(Op::CastAnyRef { a: RefMove::new(0), type_ordinal, dst: RefMove::new(1) }).ret([r(1)]))
            });
            assert_eq!(found, if *passes { Ok(vec![wanted]) } else { Err(Status::InvalidArgument) }, "{reference:?} as {name}");
        }
    }
    for version in VERSIONS {
        let select = run(version, &[Ref::new(Thing)], 1, |program| {
            let type_ordinal = program.type_of("!vm.buffer");
            let (if_true, if_false) = (RefMove::new(0), RefMove::new(1));
            Box::new(move |f| {
                f.i32(0, 1).op(Op::SelectRef { condition: X4(0), type_ordinal, if_true, if_false, dst: RefMove::new(1) }).ret([r(1)]);
            })
        });
        assert_eq!(select, Err(Status::InvalidArgument));
        let switch = run(version, &[Ref::new(Thing)], 1, |program| {
            let type_ordinal = program.type_of("!vm.buffer");
            let (default, dst) = (RefMove::new(0), RefMove::new(1));
            Box::new(move |f| {
                f.op(Op::SwitchRef { index: X4(0), type_ordinal, default, values: RefList::new(&[]), dst }).ret([r(1)]);
            })
        });
        assert_eq!(switch, Err(Status::InvalidArgument));
    }
}

#[test]
fn references_compare_by_identity() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0rr_iiiii", |f| {
            f.start_block();
            let (a, b, empty) = (RefRead::new(0), RefRead::new(1), RefRead::new(2));
            f.op(Op::CmpEqRef { a, b, dst: X4(0) }).op(Op::CmpNeRef { a, b, dst: X4(1) }).op(Op::CmpNzRef { a, dst: X4(2) });
            f.op(Op::CmpEqRef { a: empty, b: empty, dst: X4(3) }).op(Op::CmpEqRef { a, b: empty, dst: X4(4) });
            f.ret([v(0), v(1), v(2), v(3), v(4)]);
        });
        let mut running = program.start();
        let mut run = |a: &Ref, b: &Ref| -> Vec<u64> {
            running.call("run", &[Value::Ref(a.clone()), Value::Ref(b.clone())]).unwrap().iter().map(bits).collect()
        };
        let (one, other, thing) = (Ref::from(buffer()), Ref::from(buffer()), Ref::new(Thing));
        assert_eq!(run(&one, &one), [1, 0, 1, 1, 0]);
        // Equal content is not the same object.
        assert_eq!(run(&one, &other), [0, 1, 1, 1, 0]);
        assert_eq!(run(&thing, &thing), [1, 0, 1, 1, 0]);
        assert_eq!(run(&thing, &one), [0, 1, 1, 1, 0]);
        assert_eq!(run(&Ref::Null, &Ref::Null), [1, 0, 0, 1, 1]);
    }
}

/// The account tells when a buffer of 4096 bytes is gone.
#[test]
fn references_are_released_when_they_should_be() {
    fn left(version: BytecodeVersion, build: impl FnOnce(&mut Body)) -> Vec<bool> {
        let mut program = Program::new(version);
        let probe = program.import("host.probe", "0v_v");
        let held = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut linker = vmfb_vm::Linker::new();
        let seen = held.clone();
        let native = vmfb_vm::NativeFunction::new("probe", "0v_v", move |call: &mut vmfb_vm::Call<'_, ()>| {
            seen.lock().unwrap().push(call.context.meter.account().used() >= 4096);
            Ok(())
        });
        linker.func_new("host", native).unwrap();
        program.export("run", "0v_v", |f| {
            f.start_block();
            f.i64(0, 4096).alloc(0, 0);
            f.call(probe, [], []);
            build(f);
            f.call(probe, [], []).ret([]);
        });
        let mut running = program.start_with(&linker, vmfb_vm::Config::new());
        running.call("run", &[]).unwrap();
        held.lock().unwrap().push(running.used() >= 4096);
        held.lock().unwrap().clone()
    }
    for version in VERSIONS {
        assert_eq!(left(version, |_| ()), [true, true, false], "{version}: at return");
        assert_eq!(left(version, |f| _ = f.op(Op::ConstRefZero { dst: RefMove::new(0) })), [true, false, false], "{version}: overwritten");
        let trace = list([moved(0)]);
        let values = RegisterList::new(&trace);
        assert_eq!(left(version, |f| _ = f.op(Op::Trace { message: Text(b""), values })), [true, false, false], "{version}: trace");
        assert_eq!(left(version, |f| _ = f.op(Op::Print { message: Text(b""), values })), [true, false, false], "{version}: print");
        let kept = list([r(0)]);
        let values = RegisterList::new(&kept);
        assert_eq!(left(version, |f| _ = f.op(Op::Trace { message: Text(b""), values })), [true, true, false], "{version}: kept");
    }
    for version in [BytecodeVersion::V16, BytecodeVersion::V17] {
        for word in [r(0), moved(0)] {
            let words = list([word]);
            assert_eq!(left(version, |f| _ = f.op(Op::DiscardRefs { refs: RefList::new(&words) })), [true, false, false], "{version}");
        }
    }
}
