//! What errors say: statuses of `fail`, messages, frames with pcs, source positions.

use crate::support::*;
use std::sync::Arc;
use vmfb_bytecode::definition::{DebugDatabase, FunctionSourceMap, Location};
use vmfb_bytecode::isa::{FunctionRef, Op, Text, X4, X8};
use vmfb_vm::{Error, Status};

/// A program that fails with a code and a message.
fn failing(message: &[u8]) -> Running {
    let mut program = Program::new(NEWEST);
    program.export("run", "0i_v", |f| {
        f.start_block();
        f.op(Op::Fail { code: X4(0), message: Text(message) });
    });
    program.start()
}

/// The numbers of the field, by name. Only the low 5 bits of a code count.
#[test]
fn codes_of_fail() {
    let named = [
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
        "DEFERRED",
        "INCOMPATIBLE",
    ];
    let mut running = failing(b"what went wrong");
    let mut fail = |code: i32| running.call("run", &[code.into()]).unwrap_err();
    for (code, name) in (1..).zip(named) {
        for high in [0, 32, 64, -32, i32::MIN] {
            let error = fail(code | high);
            assert_eq!(error.status().name(), name);
            assert_eq!(error.message(), "what went wrong");
        }
    }
    // 0 is a failure too, and says what happened; numbers without a name are unknown.
    for code in [0, 32, i32::MIN] {
        let error = fail(code);
        assert_eq!(error.status(), Status::Internal);
        assert!(error.message().contains("what went wrong"));
    }
    for code in [19, 25, 31, -1, 63] {
        let error = fail(code);
        assert_eq!(error.status(), Status::Unknown);
        assert!(error.message().contains("what went wrong") && error.message().contains(&(code & 31).to_string()), "{error}");
    }
    assert_eq!(fail(33).status(), Status::Cancelled);
}

#[test]
fn messages_of_any_bytes() {
    assert_eq!(failing(b"").call("run", &[9.into()]).unwrap_err().message(), "");
    let odd = failing(b"\xFF\xFEtext\n\x1b[31m").call("run", &[9.into()]).unwrap_err();
    assert!(odd.message().contains("text"));
    // What a terminal would act on does not reach it.
    assert!(!odd.to_string().contains('\u{1b}'), "{odd}");
    let long = failing(&[b'x'; 65_535]).call("run", &[9.into()]).unwrap_err();
    assert_eq!(long.message().len(), 65_535);
}

/// Frames of a failure two calls deep: pcs are those of the calls and of the failing op, in every version.
#[test]
fn traces_have_the_pc_of_every_frame() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        // A marker takes 1 byte, const.i32 7, div.i32.s 7.
        let inner = FunctionRef::internal(program.function("0i_i", |f| {
            f.start_block();
            f.i32(1, 0).op(Op::DivI32S { a: X4(0), b: X4(1), dst: X4(0) }).ret([v(0)]);
        }));
        let mut calls = Vec::new();
        let middle = FunctionRef::internal(program.function("0i_i", |f| {
            f.start_block();
            let second = f.label();
            f.i32(1, 0).op(Op::Br { to: second.pc(), moves: NO_MOVES });
            f.place(second);
            f.i32(1, 0);
            calls.push(f.position());
            f.call(inner, [v(0)], [v(0)]).i32(1, 0).ret([v(0)]);
        }));
        program.export("outer", "0i_i", |f| {
            f.start_block();
            calls.push(f.position());
            f.call(middle, [v(0)], [v(0)]).ret([v(0)]);
        });
        let error = program.start().call("outer", &[1.into()]).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(error.message().contains("zero"), "{error}");
        let frames: Vec<_> =
            error.frames().iter().map(|frame| (frame.module.as_str(), frame.function, frame.name.as_deref(), frame.pc)).collect();
        let marker = u32::from(version.has_block_markers());
        assert_eq!(frames, [("test", 0, None, marker + 7), ("test", 1, None, calls[0]), ("test", 2, Some("outer"), calls[1])]);
        let text = error.to_string();
        assert!(text.contains(&format!("test@1:{:#x}", calls[0])) && text.contains("test.outer"), "{text}");
    }
}

/// The failing op is found behind fused ops, in a branch table's trampoline, after a yield.
#[test]
fn pcs_survive_translation() {
    let mut program = Program::new(NEWEST);
    let mut wanted = 0;
    program.export("run", "0i_i", |f| {
        f.start_block();
        let (other, last) = (f.label(), f.label());
        let pairs = moves([(v(0), v(1)), (v(0), v(2)), (v(1), v(3))]);
        let edge = vmfb_bytecode::isa::MoveList::new(&pairs);
        f.op(Op::CmpNeI32 { a: X4(0), b: X4(4), dst: X4(5) });
        f.op(Op::CondBr { condition: X4(5), true_to: other.pc(), true_moves: edge, false_to: last.pc(), false_moves: edge });
        f.place(other);
        f.op(Op::Yield { to: last.pc(), moves: edge });
        f.place(last);
        f.i32(6, 1);
        wanted = f.position();
        f.op(Op::RemI32U { a: X4(0), b: X4(4), dst: X4(0) }).ret([v(0)]);
    });
    let mut running = program.start();
    for argument in [0, 1] {
        let error = running.call("run", &[argument.into()]).unwrap_err();
        assert_eq!(error.frames().len(), 1);
        assert_eq!(error.frames()[0].pc, wanted);
    }
}

fn position(filename: &str, line: i32, column: i32) -> Location {
    Location::FileLineColumn { filename: Arc::from(filename), line, column }
}

#[test]
fn traces_have_source_positions_where_the_module_kept_them() {
    let mut program = Program::new(NEWEST);
    let inner = FunctionRef::internal(program.function("0I_I", |f| {
        f.start_block();
        f.op(Op::DivI64U { a: X8(0), b: X8(2), dst: X8(0) }).ret([v(0)]);
    }));
    program.export("run", "0I_I", |f| {
        f.start_block();
        f.call(inner, [v(0)], [v(0)]).ret([v(0)]);
    });
    let locations = vec![
        position("inner.mlir", 3, 7),
        position("caller.mlir", 40, 2),
        Location::CallSite { callee: 0, caller: 1 },
        Location::Name { name: "matmul".into(), child: 1 },
    ];
    let map = |name: &str, locations| FunctionSourceMap { local_name: name.into(), locations };
    // The inner division was inlined from somewhere; the call has a name.
    let functions = vec![map("helper", vec![(0, 1), (1, 2)]), map("main", vec![(0, 3)])];
    program.def.debug = Some(DebugDatabase { locations, functions });
    let error = program.start().call("run", &[1_i64.into()]).unwrap_err();
    let frames = error.frames();
    assert_eq!(frames[0].name.as_deref(), Some("helper"));
    assert_eq!(frames[0].source, ["inner.mlir:3:7", "caller.mlir:40:2"]);
    assert_eq!(frames[1].name.as_deref(), Some("run"));
    assert_eq!(frames[1].source.len(), 1);
    assert!(frames[1].source[0].contains("matmul") && frames[1].source[0].contains("caller.mlir:40:2"), "{:?}", frames[1].source);
    assert!(error.to_string().contains("inner.mlir:3:7"), "{error}");
    // A database of another number of functions, as some compilers write it, is not believed.
    program.def.debug.as_mut().unwrap().functions.pop();
    let error = program.start().call("run", &[1_i64.into()]).unwrap_err();
    assert!(error.frames().iter().all(|frame| frame.source.is_empty()));
    assert_eq!(error.frames()[0].name, None);
}

#[test]
fn refusals_of_the_verifier_name_function_and_pc() {
    let mut program = Program::named("broken", NEWEST);
    program.export("fine", "0v_v", |f| {
        f.start_block();
        f.ret([]);
    });
    program.export("run", "0v_v", |f| {
        f.start_block();
        f.i32(0, 0).op(Op::AddI32 { a: X4(0), b: X4(9), dst: X4(1) }).ret([]);
        f.value_registers(4);
    });
    let error = program.load(&Default::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.status(), Status::OutOfRange);
    let text = error.to_string();
    for part in ["function 1", "pc 0x8", "broken", "i9"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn errors_are_errors() {
    let error: Box<dyn std::error::Error + Send + Sync> = Box::new(Error::invalid("no").context("doing this").context("doing that"));
    assert_eq!(error.to_string(), "INVALID_ARGUMENT: no; doing this; doing that");
    assert_eq!(format!("{error:?}"), error.to_string());
}
