//! Branches, tables, switches, moves between blocks.

use crate::support::*;
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{CaseList, MoveList, Op, Pc, SwitchCase, Text, X4, X4List, X8, X8List};
use vmfb_vm::Value;

/// `run(i) -> i` with a switch over three i32 values.
fn switch_i32(version: BytecodeVersion, index: i32) -> i32 {
    let mut program = Program::new(version);
    program.export("run", "0i_i", |f| {
        f.start_block();
        f.i32(1, 10).i32(2, 20).i32(3, 30).i32(4, -1);
        f.op(Op::SwitchI32 { index: X4(0), default: X4(4), values: X4List::new(&list([v(1), v(2), v(3)])), dst: X4(5) }).ret([v(5)]);
    });
    program.start().call_one("run", (index,)).unwrap()
}

const INDICES: [i32; 6] = [0, 1, 2, 3, -1, i32::MIN];

#[test]
fn switches_take_signed_indices() {
    for version in VERSIONS {
        assert_eq!(INDICES.map(|index| switch_i32(version, index)), [10, 20, 30, -1, -1, -1]);
    }
}

/// The official runtime gives the sign-extended low half of a chosen i64; the program asked for all bits.
#[test]
fn switches_of_64_bits_give_64_bits() {
    const BIG: i64 = 0x1234_5678_9ABC_DEF0;
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("i64", "0iII_I", |f| {
            f.start_block();
            let values = list([v(2)]);
            f.op(Op::SwitchI64 { index: X4(0), default: X8(4), values: X8List::new(&values), dst: X8(6) }).ret([v(6)]);
        });
        program.export("f64", "0iFF_F", |f| {
            f.start_block();
            let values = list([v(2)]);
            f.op(Op::SwitchF64 { index: X4(0), default: X8(4), values: X8List::new(&values), dst: X8(6) }).ret([v(6)]);
        });
        program.export("f32", "0iff_f", |f| {
            f.start_block();
            let values = list([v(1)]);
            f.op(Op::SwitchF32 { index: X4(0), default: X4(2), values: X4List::new(&values), dst: X4(3) }).ret([v(3)]);
        });
        let mut running = program.start();
        for (index, wanted) in [(0, BIG), (1, -2), (-1, -2)] {
            assert_eq!(running.call_one::<i64>("i64", (index, BIG, -2_i64)).unwrap(), wanted);
            assert_eq!(
                running.call_one::<f64>("f64", (index, f64::from_bits(BIG as u64), f64::from_bits(-2_i64 as u64))).unwrap().to_bits(),
                wanted as u64
            );
        }
        for (index, wanted) in [(0, 1.5), (1, 2.5), (-1, 2.5)] {
            assert_eq!(running.call_one::<f32>("f32", (index, 1.5_f32, 2.5_f32)).unwrap(), wanted);
        }
    }
}

/// A table with a case without moves, one with moves, and a default with moves.
#[test]
fn branch_tables_take_signed_indices_and_their_own_moves() {
    for version in VERSIONS.into_iter().filter(|version| version.major() >= 15) {
        let mut program = Program::new(version);
        program.export("run", "0i_ii", |f| {
            f.start_block();
            let (first, join) = (f.label(), f.label());
            f.i32(1, 100).i32(2, 200);
            let (case, default) = (moves([(v(1), v(3)), (v(2), v(1))]), moves([(v(2), v(3))]));
            let cases = [
                SwitchCase { to: first.pc(), moves: NO_MOVES },
                SwitchCase { to: join.pc(), moves: MoveList::new(&case) },
                SwitchCase { to: join.pc(), moves: NO_MOVES },
            ];
            let (default_to, default_moves) = (join.pc(), MoveList::new(&default));
            f.op(Op::BrTable { index: X4(0), default_to, default_moves, cases: CaseList::new(&cases) });
            f.place(first);
            f.i32(3, 1).op(Op::Br { to: join.pc(), moves: NO_MOVES });
            f.place(join);
            f.ret([v(3), v(1)]);
        });
        program.export("no_cases", "0i_i", |f| {
            f.start_block();
            let end = f.label();
            f.op(Op::BrTable { index: X4(0), default_to: end.pc(), default_moves: NO_MOVES, cases: CaseList::new(&[]) });
            f.place(end);
            f.ret([v(0)]);
        });
        let mut running = program.start();
        let mut run = |index: i32| -> Vec<u64> { running.call("run", &[index.into()]).unwrap().iter().map(bits).collect() };
        assert_eq!((run(0), run(1), run(2)), (vec![1, 100], vec![100, 200], vec![0, 100]));
        for index in [3, 4, -1, i32::MIN, i32::MAX] {
            assert_eq!(run(index), [200, 100], "index {index}");
        }
        assert_eq!(running.call_one::<i32>("no_cases", (5,)).unwrap(), 5);
    }
}

/// Moves happen one after another, and only those of the side that is taken.
#[test]
fn moves_are_sequential_and_of_the_taken_side() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0iii_iii", |f| {
            f.start_block();
            let (yes, no) = (f.label(), f.label());
            // In parallel the left side would swap; in sequence both end up with i2.
            let (left, right) = (moves([(v(2), v(1)), (v(1), v(2))]), moves([(v(0), v(2)), (v(2), v(0)), (v(1), v(0))]));
            let (true_moves, false_moves) = (MoveList::new(&left), MoveList::new(&right));
            f.op(Op::CondBr { condition: X4(0), true_to: yes.pc(), true_moves, false_to: no.pc(), false_moves });
            f.place(yes);
            f.ret([v(0), v(1), v(2)]);
            f.place(no);
            f.ret([v(0), v(1), v(2)]);
        });
        let mut running = program.start();
        let mut run =
            |arguments: [i32; 3]| -> Vec<u64> { running.call("run", &arguments.map(Value::I32)).unwrap().iter().map(bits).collect() };
        assert_eq!(run([1, 5, 6]), [1, 6, 6]);
        assert_eq!(run([0, 5, 6]), [5, 5, 0]);
    }
}

/// Two moves of halves may be one move of a pair, unless a half was written in between or the pair is a odd one.
#[test]
fn moves_of_pairs_and_of_single_halves() {
    const BIG: i64 = 0x1234_5678_9ABC_DEF0;
    type Case = (&'static str, Vec<(u16, u16)>, i64);
    let cases: [Case; 6] = [
        ("a pair", vec![(0, 4), (1, 5)], BIG),
        ("high half first", vec![(1, 5), (0, 4)], BIG),
        ("the low half alone", vec![(0, 4)], 0x9ABC_DEF0),
        ("halves exchanged", vec![(0, 5), (1, 4)], 0x9ABC_DEF0_1234_5678_u64 as i64),
        ("low half twice", vec![(0, 4), (0, 5)], 0x9ABC_DEF0_9ABC_DEF0_u64 as i64),
        ("by way of an odd place", vec![(0, 7), (1, 8), (7, 4), (8, 5)], BIG),
    ];
    for version in VERSIONS {
        for (what, pairs, wanted) in &cases {
            let mut program = Program::new(version);
            program.export("run", "0I_I", |f| {
                f.start_block();
                let next = f.label();
                let pairs: Vec<[u8; 4]> = pairs.iter().flat_map(|&(from, to)| moves([(v(from), v(to))])).collect();
                f.op(Op::Br { to: next.pc(), moves: MoveList::new(&pairs) });
                f.place(next);
                f.ret([v(4)]);
            });
            assert_eq!(program.start().call_one::<i64>("run", (BIG,)).unwrap(), *wanted, "{what}");
        }
    }
}

/// A move onto an overlapping pair, in sequence: i1 = i0, i2 = i1.
#[test]
fn moves_to_overlapping_registers() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0ii_iii", |f| {
            f.start_block();
            let next = f.label();
            let pairs = moves([(v(0), v(1)), (v(1), v(2))]);
            f.op(Op::Br { to: next.pc(), moves: MoveList::new(&pairs) });
            f.place(next);
            f.ret([v(0), v(1), v(2)]);
        });
        let results = program.start().call("run", &[7.into(), 8.into()]).unwrap();
        assert_eq!(results.iter().map(bits).collect::<Vec<_>>(), [7, 7, 7]);
    }
}

/// Compares keep their result beside the branch that they decide, whichever op is between, and whichever register is asked.
#[test]
fn compares_before_branches() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0ii_ii", |f| {
            f.start_block();
            let (yes, no) = (f.label(), f.label());
            f.op(Op::CmpLtI32S { a: X4(0), b: X4(1), dst: X4(2) });
            let (true_moves, false_moves) = (moves([(v(2), v(3))]), moves([(v(0), v(3))]));
            let (true_moves, false_moves) = (MoveList::new(&true_moves), MoveList::new(&false_moves));
            f.op(Op::CondBr { condition: X4(2), true_to: yes.pc(), true_moves, false_to: no.pc(), false_moves });
            f.place(yes);
            f.ret([v(2), v(3)]);
            f.place(no);
            f.ret([v(2), v(3)]);
        });
        // The branch looks at another register than the compare writes.
        program.export("other", "0ii_i", |f| {
            f.start_block();
            let (yes, no) = (f.label(), f.label());
            f.op(Op::CmpLtI32S { a: X4(0), b: X4(1), dst: X4(2) });
            f.op(Op::CondBr { condition: X4(0), true_to: yes.pc(), true_moves: NO_MOVES, false_to: no.pc(), false_moves: NO_MOVES });
            f.place(yes);
            f.ret([v(2)]);
            f.place(no);
            f.i32(2, 7).ret([v(2)]);
        });
        // The compare ends a block, the branch is in the next one, which a loop enters with another value.
        program.export("across", "0ii_i", |f| {
            f.start_block();
            let (test, yes, no) = (f.label(), f.label(), f.label());
            f.op(Op::CmpLtI32S { a: X4(0), b: X4(1), dst: X4(2) }).op(Op::Br { to: test.pc(), moves: NO_MOVES });
            f.place(test);
            f.op(Op::CondBr { condition: X4(2), true_to: yes.pc(), true_moves: NO_MOVES, false_to: no.pc(), false_moves: NO_MOVES });
            f.place(yes);
            f.op(Op::AddI32 { a: X4(3), b: X4(2), dst: X4(3) });
            f.op(Op::ConstI32Zero { dst: X4(2) }).op(Op::Br { to: test.pc(), moves: NO_MOVES });
            f.place(no);
            f.ret([v(3)]);
        });
        let mut running = program.start();
        let results = |values: Vec<Value>| values.iter().map(bits).collect::<Vec<_>>();
        assert_eq!(results(running.call("run", &[1.into(), 2.into()]).unwrap()), [1, 1]);
        assert_eq!(results(running.call("run", &[2.into(), 1.into()]).unwrap()), [0, 2]);
        assert_eq!(running.call_one::<i32>("other", (5, 1)).unwrap(), 0);
        assert_eq!(running.call_one::<i32>("other", (0, 1)).unwrap(), 7);
        assert_eq!((running.call_one::<i32>("across", (1, 2)).unwrap(), running.call_one::<i32>("across", (2, 1)).unwrap()), (1, 0));
    }
}

/// Every compare, decided by a branch: same answer as the value, both ways round and with NaN.
#[test]
fn every_compare_decides_a_branch() {
    type Compare = fn(X4, X4, X8, X8) -> Op<'static>;
    let compares: [Compare; 18] = [
        |a, b, _, _| Op::CmpEqI32 { a, b, dst: X4(8) },
        |a, b, _, _| Op::CmpNeI32 { a, b, dst: X4(8) },
        |a, b, _, _| Op::CmpLtI32S { a, b, dst: X4(8) },
        |a, b, _, _| Op::CmpLtI32U { a, b, dst: X4(8) },
        |_, _, a, b| Op::CmpEqI64 { a, b, dst: X4(8) },
        |_, _, a, b| Op::CmpNeI64 { a, b, dst: X4(8) },
        |_, _, a, b| Op::CmpLtI64S { a, b, dst: X4(8) },
        |_, _, a, b| Op::CmpLtI64U { a, b, dst: X4(8) },
        |a, b, _, _| Op::CmpEqF32O { a, b, dst: X4(8) },
        |a, b, _, _| Op::CmpNeF32O { a, b, dst: X4(8) },
        |a, b, _, _| Op::CmpLtF32O { a, b, dst: X4(8) },
        |a, b, _, _| Op::CmpLteF32O { a, b, dst: X4(8) },
        |_, _, a, b| Op::CmpEqF64O { a, b, dst: X4(8) },
        |_, _, a, b| Op::CmpNeF64O { a, b, dst: X4(8) },
        |_, _, a, b| Op::CmpLtF64O { a, b, dst: X4(8) },
        |_, _, a, b| Op::CmpLteF64O { a, b, dst: X4(8) },
        |a, b, _, _| Op::CmpLtF32U { a, b, dst: X4(8) },
        |_, _, a, b| Op::CmpLteF64U { a, b, dst: X4(8) },
    ];
    let narrow = [0_u32, 1, u32::MAX, 1 << 31, 0x3F80_0000, 0xBF80_0000, 0x7FC0_0000, 0x7F80_0000];
    let wide = [0_u64, 1, u64::MAX, 1 << 63, 0x3FF0_0000_0000_0000, 0xBFF0_0000_0000_0000, 0x7FF8_0000_0000_0000, 1 << 32];
    for (number, compare) in compares.into_iter().enumerate() {
        let mut program = Program::new(NEWEST);
        // i0, i1 and the pairs at 2 and 4 are compared; i9 tells which way the branch went.
        program.export("run", "0iiII_ii", |f| {
            f.start_block();
            let (yes, no) = (f.label(), f.label());
            f.op(compare(X4(0), X4(1), X8(2), X8(4)));
            f.op(Op::CondBr { condition: X4(8), true_to: yes.pc(), true_moves: NO_MOVES, false_to: no.pc(), false_moves: NO_MOVES });
            f.place(no);
            f.ret([v(8), v(9)]);
            f.place(yes);
            f.i32(9, 1).ret([v(8), v(9)]);
        });
        program.export("value", "0iiII_i", |f| {
            f.start_block();
            f.op(compare(X4(0), X4(1), X8(2), X8(4))).ret([v(8)]);
        });
        let mut running = program.start();
        for a in 0..narrow.len() {
            for b in 0..narrow.len() {
                let number32 = |at: usize| Value::I32(narrow[at] as i32);
                let arguments = [number32(a), number32(b), Value::I64(wide[a] as i64), Value::I64(wide[b] as i64)];
                let value = bits(&running.call("value", &arguments).unwrap()[0]);
                let branch: Vec<u64> = running.call("run", &arguments).unwrap().iter().map(bits).collect();
                assert_eq!(branch, [value, value], "compare {number} of {arguments:?}");
            }
        }
    }
}

/// sum of 1..=n by a loop with a back edge.
#[test]
fn loops() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0i_i", |f| {
            f.start_block();
            let (head, body, end) = (f.label(), f.label(), f.label());
            f.i32(1, 0).i32(2, 1).op(Op::Br { to: head.pc(), moves: NO_MOVES });
            f.place(head);
            f.op(Op::CmpLtI32S { a: X4(0), b: X4(2), dst: X4(3) });
            f.op(Op::CondBr { condition: X4(3), true_to: end.pc(), true_moves: NO_MOVES, false_to: body.pc(), false_moves: NO_MOVES });
            f.place(body);
            f.op(Op::AddI32 { a: X4(1), b: X4(2), dst: X4(1) }).i32(4, 1).op(Op::AddI32 { a: X4(2), b: X4(4), dst: X4(2) });
            f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
            f.place(end);
            f.ret([v(1)]);
        });
        let mut running = program.start();
        for (n, wanted) in [(0, 0), (1, 1), (100, 5050)] {
            assert_eq!(running.call_one::<i32>("run", (n,)).unwrap(), wanted);
        }
    }
}

/// Breaks have no debugger here: the conditional one jumps too, whatever its condition says.
#[test]
fn breaks_jump_and_traces_do_nothing() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0i_ii", |f| {
            f.start_block();
            let (second, third) = (f.label(), f.label());
            let (one, two) = (moves([(v(0), v(1))]), moves([(v(0), v(2))]));
            f.op(Op::CondBreak { condition: X4(0), to: second.pc(), moves: MoveList::new(&one) });
            f.place(second);
            f.op(Op::Trace { message: Text(b"here"), values: vmfb_bytecode::isa::RegisterList::new(&list([v(0), r(0)])) });
            f.op(Op::Print { message: Text(b"there"), values: vmfb_bytecode::isa::RegisterList::new(&list([v(1)])) });
            f.op(Op::Break { to: third.pc(), moves: MoveList::new(&two) });
            f.place(third);
            f.ret([v(1), v(2)]);
        });
        let mut running = program.start();
        for condition in [0, 9] {
            let results = running.call("run", &[condition.into()]).unwrap();
            assert_eq!(results.iter().map(bits).collect::<Vec<_>>(), [condition as u64; 2]);
        }
    }
}

/// A branch to its own block is a loop that can end.
#[test]
fn a_block_may_branch_to_itself_and_to_the_entry() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0i_i", |f| {
            let entry = f.start_block();
            let end = f.label();
            f.i32(1, 3).op(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(0) }).i32(2, 10);
            f.op(Op::CmpLtI32S { a: X4(0), b: X4(2), dst: X4(3) });
            f.op(Op::CondBr { condition: X4(3), true_to: entry.pc(), true_moves: NO_MOVES, false_to: end.pc(), false_moves: NO_MOVES });
            f.place(end);
            f.ret([v(0)]);
        });
        assert_eq!(program.start().call_one::<i32>("run", (0,)).unwrap(), 12);
    }
}

/// Blocks that nothing reaches are translated, but do nothing.
#[test]
fn unreachable_blocks_are_harmless() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0v_i", |f| {
            f.start_block();
            f.i32(0, 5).ret([v(0)]);
            let dead = f.start_block();
            f.op(Op::Br { to: Pc(dead.pc().0), moves: NO_MOVES });
        });
        assert_eq!(program.start().call_one::<i32>("run", ()).unwrap(), 5);
    }
}
