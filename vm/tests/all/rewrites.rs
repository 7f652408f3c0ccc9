//! Programs in which a rewrite of the translation would be wrong: each result depends on a rewrite that is not made.

use crate::support::*;
use vmfb_bytecode::isa::{FunctionRef, MoveList, Op, X4, X8, X8List};
use vmfb_vm::{Config, Dispatch, Linker};

const DISPATCHES: [Dispatch; 3] = [Dispatch::Automatic, Dispatch::Portable, Dispatch::Reference];

#[track_caller]
fn gives(program: &Program, arguments: &[vmfb_vm::Value], wanted: &[vmfb_vm::Value]) {
    for dispatch in DISPATCHES {
        let mut running = program.start_with(&Linker::new(), Config::new().dispatch(dispatch));
        let results = running.call("run", arguments).unwrap();
        let values = |values: &[vmfb_vm::Value]| values.iter().map(bits).collect::<Vec<_>>();
        assert_eq!(values(&results), values(wanted), "{dispatch:?}");
    }
}

/// A sum that is moved on and chosen from by a switch as well: it must be computed where the switch reads it.
#[test]
fn what_a_switch_chooses_from_stays_where_it_is() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0IIi_I", |f| {
            f.start_block();
            let on = f.label();
            let moved = moves([(v(6), v(8)), (v(7), v(9))]);
            f.op(Op::AddI64 { a: X8(0), b: X8(2), dst: X8(6) });
            f.op(Op::Br { to: on.pc(), moves: MoveList::new(&moved) });
            f.place(on);
            f.op(Op::MulI64 { a: X8(8), b: X8(8), dst: X8(8) });
            let choices = list([v(6), v(8)]);
            f.op(Op::SwitchI64 { index: X4(4), default: X8(0), values: X8List::new(&choices), dst: X8(10) });
            f.ret([v(10)]);
        });
        for (index, wanted) in [(0, 1 << 33 | 5), (1, (1_i64 << 33 | 5).wrapping_mul(1 << 33 | 5)), (2, 1 << 33)] {
            gives(&program, &[(1_i64 << 33).into(), 5_i64.into(), index.into()], &[wanted.into()]);
        }
    }
}

/// The end of a counted loop, where the counter is read behind its addition: the copy is the counter of this round.
#[test]
fn an_addition_stays_in_front_of_what_reads_its_sum() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0i_ii", |f| {
            f.start_block();
            let (head, end) = (f.label(), f.label());
            f.i32(1, 0).i32(2, 1).i32(3, 0).i32(6, 0);
            f.op(Op::Br { to: head.pc(), moves: MoveList::new(&[]) });
            f.place(head);
            f.op(Op::AddI32 { a: X4(1), b: X4(2), dst: X4(1) });
            // Without a conversion it is a move.
            f.op(Op::BitcastI32F32 { a: X4(1), dst: X4(6) });
            f.op(Op::CmpLtI32S { a: X4(1), b: X4(0), dst: X4(4) });
            f.op(Op::CondBr {
                condition: X4(4),
                true_to: head.pc(),
                true_moves: MoveList::new(&[]),
                false_to: end.pc(),
                false_moves: MoveList::new(&[]),
            });
            f.place(end);
            f.op(Op::BitcastF32I32 { a: X4(6), dst: X4(7) });
            f.ret([v(1), v(7)]);
        });
        gives(&program, &[5.into()], &[5.into(), 5.into()]);
    }
}

/// A sum that is passed to a function, with another call in between: it cannot be computed in its place behind the frame, which the
/// other function uses.
#[test]
fn arguments_are_not_computed_in_front_of_another_call() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let other = FunctionRef::internal(program.function("0v_i", |f| {
            f.start_block();
            f.i32(0, 99).i32(1, 98).ret([v(0)]);
        }));
        let negated = FunctionRef::internal(program.function("0i_i", |f| {
            f.start_block();
            f.op(Op::NotI32 { a: X4(0), dst: X4(0) }).ret([v(0)]);
        }));
        program.export("run", "0ii_ii", |f| {
            f.start_block();
            f.op(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(2) });
            f.call(other, [], [v(3)]);
            f.call(negated, [v(2)], [v(4)]);
            f.ret([v(4), v(3)]);
        });
        gives(&program, &[20.into(), 3.into()], &[(!23).into(), 99.into()]);
    }
}
