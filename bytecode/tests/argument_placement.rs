//! Where arguments stand, decided per function, and the calling conventions of 13.0 functions that state none.

use vmfb_bytecode::Status::{self, Unimplemented};
use vmfb_bytecode::assemble::{FunctionBuilder, Label, empty_module};
use vmfb_bytecode::calling_convention::PlacementRule::{self, LowestFree, NextFree};
use vmfb_bytecode::definition::{BytecodeVersion, ModuleDef};
use vmfb_bytecode::isa::{FunctionRef, Imm32, Imm64, Move, MoveList, Op, Register, RegisterList, X4, X8};
use vmfb_bytecode::verify::verify;

const V13: BytecodeVersion = BytecodeVersion::V13;
const V15: BytecodeVersion = BytecodeVersion::V15;

fn i(ordinal: u16) -> Register {
    Register::value(ordinal)
}

fn return_of(builder: &mut FunctionBuilder, values: &[Register]) {
    let values: Vec<_> = values.iter().map(|register| register.to_bytes()).collect();
    builder.push(Op::Return { values: RegisterList::new(&values) });
}

fn call(builder: &mut FunctionBuilder, callee: u32, arguments: &[Register], results: &[Register]) {
    let bytes = |registers: &[Register]| registers.iter().map(|register| register.to_bytes()).collect::<Vec<_>>();
    let (arguments, results) = (bytes(arguments), bytes(results));
    let callee = FunctionRef::internal(callee);
    builder.push(Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) });
}

/// The rule chosen for a function of this convention, with 10 registers, and the slots.
#[track_caller]
fn chosen(
    version: BytecodeVersion,
    convention: &str,
    registers: u16,
    build: impl Fn(&mut FunctionBuilder, Label),
) -> (PlacementRule, Vec<u16>) {
    let mut builder = FunctionBuilder::new(version, convention);
    builder.value_registers(registers).ref_registers(2);
    let entry = builder.start_block();
    build(&mut builder, entry);
    let mut module = empty_module("placement", version);
    builder.finish().unwrap().export_from(&mut module, "tested");
    let verified = verify(module).unwrap();
    let info = &verified.functions()[0];
    (info.placement_rule, info.placement.slots.to_vec())
}

fn add(builder: &mut FunctionBuilder, a: u16, b: u16, dst: u16) {
    builder.push(Op::AddI32 { a: X4(a), b: X4(b), dst: X4(dst) });
}

#[test]
fn reads_decide_where_the_placements_differ() {
    for version in [V13, BytecodeVersion::V14, V15] {
        let old = chosen(version, "0iIi_i", 10, |builder, _| {
            add(builder, 0, 1, 5);
            return_of(builder, &[i(5)]);
        });
        assert_eq!(old, (LowestFree, vec![0, 2, 1]));
        let new = chosen(version, "0iIi_i", 10, |builder, _| {
            add(builder, 0, 4, 5);
            return_of(builder, &[i(5)]);
        });
        assert_eq!(new, (NextFree, vec![0, 2, 4]));
    }
}

#[test]
fn later_versions_have_the_new_rule() {
    for version in [BytecodeVersion::V16, BytecodeVersion::V17] {
        let new = chosen(version, "0iIi_i", 10, |builder, _| {
            add(builder, 0, 1, 5);
            return_of(builder, &[i(5)]);
        });
        assert_eq!(new, (NextFree, vec![0, 2, 4]));
    }
}

#[test]
fn too_few_registers_decide_for_the_old_rule() {
    let old = chosen(V15, "0iIi_i", 4, |builder, _| return_of(builder, &[i(0)]));
    assert_eq!(old, (LowestFree, vec![0, 2, 1]));
    // Nothing is read: the new rule if it fits.
    let new = chosen(V15, "0iIi_v", 5, |builder, _| return_of(builder, &[]));
    assert_eq!(new, (NextFree, vec![0, 2, 4]));
}

#[test]
fn words_of_returns_and_calls_are_reads() {
    let old = chosen(V15, "0iIi_iI", 10, |builder, _| return_of(builder, &[i(1), i(2)]));
    assert_eq!(old.0, LowestFree);
    let new = chosen(V15, "0iIi_iI", 10, |builder, _| return_of(builder, &[i(4), i(2)]));
    assert_eq!(new.0, NextFree);
    // As a 64-bit value, i4 cannot be the last argument of the new rule, but of the old one neither.
    let wide = chosen(V15, "0iIi_I", 10, |builder, _| return_of(builder, &[i(4)]));
    assert_eq!(wide.0, LowestFree);
    let recursive = |argument: u16| {
        chosen(V15, "0iIi_v", 10, |builder, _| {
            call(builder, 0, &[i(0), i(2), i(argument)], &[]);
            return_of(builder, &[]);
        })
    };
    assert_eq!((recursive(1).0, recursive(4).0), (LowestFree, NextFree));
}

#[test]
fn halves_of_pairs_are_no_sign_of_the_old_rule() {
    // The low half of the pair as an i32, and both halves through moves.
    let moves = [Move { source: i(2), destination: i(6) }.to_bytes(), Move { source: i(3), destination: i(7) }.to_bytes()];
    let new = chosen(V15, "0iIi_i", 10, |builder, _| {
        let next = builder.label();
        add(builder, 2, 4, 5);
        builder.push(Op::Br { to: next.pc(), moves: MoveList::new(&moves) }).place(next);
        return_of(builder, &[i(5)]);
    });
    assert_eq!(new.0, NextFree);
    let moves = [Move { source: i(1), destination: i(6) }.to_bytes()];
    let old = chosen(V15, "0iIi_v", 10, |builder, _| {
        let next = builder.label();
        builder.push(Op::Br { to: next.pc(), moves: MoveList::new(&moves) }).place(next);
        return_of(builder, &[]);
    });
    assert_eq!(old.0, LowestFree);
}

#[test]
fn every_path_from_the_entry_counts() {
    // One block writes i1, its sibling behind it reads what came in.
    let old = chosen(V15, "0iIi_i", 10, |builder, _| {
        let (writes, reads) = (builder.label(), builder.label());
        let none = MoveList::EMPTY;
        builder.push(Op::CondBr { condition: X4(0), true_to: writes.pc(), true_moves: none, false_to: reads.pc(), false_moves: none });
        builder.place(writes).push(Op::ConstI32 { value: Imm32(7), dst: X4(1) });
        return_of(builder, &[i(1)]);
        builder.place(reads);
        return_of(builder, &[i(1)]);
    });
    assert_eq!(old.0, LowestFree);
    // Both ways to the read go over a write.
    let new = chosen(V15, "0iIi_i", 10, |builder, entry| {
        let join = builder.label();
        let write = [Move { source: i(0), destination: i(1) }.to_bytes()];
        let write = MoveList::new(&write);
        builder.push(Op::CondBr {
            condition: X4(4),
            true_to: join.pc(),
            true_moves: write,
            false_to: entry.pc(),
            false_moves: MoveList::EMPTY,
        });
        builder.place(join);
        return_of(builder, &[i(1)]);
    });
    assert_eq!(new.0, NextFree);
}

#[test]
fn many_arguments_are_decided_within_bounds() {
    // Slots beyond the first 64 count as well.
    let wide = format!("0i{}i_i", "I".repeat(50));
    let read = |slot: u16| chosen(V15, &wide, 120, |builder, _| return_of(builder, &[i(slot)])).0;
    assert_eq!((read(1), read(102)), (LowestFree, NextFree));
    let too_wide = format!("0i{}i_v", "I".repeat(200));
    let mut builder = FunctionBuilder::new(V15, &too_wide);
    builder.start_block();
    return_of(&mut builder, &[]);
    let mut module = empty_module("wide", V15);
    builder.finish().unwrap().add_to(&mut module);
    let error = verify(module).unwrap_err();
    assert_eq!((error.status, error.function, error.pc), (Unimplemented, Some(0), Some(0)));
}

/// A 13.0 module: an exported caller, then functions without signatures, with 16 registers each.
fn old_module(functions: &[&dyn Fn(&mut FunctionBuilder)]) -> ModuleDef {
    let mut module = empty_module("old", V13);
    for (ordinal, build) in functions.iter().enumerate() {
        let mut builder = FunctionBuilder::new(V13, "0v_v");
        builder.value_registers(16).ref_registers(2).start_block();
        build(&mut builder);
        if ordinal == 0 {
            builder.finish().unwrap().export_from(&mut module, "main");
        } else {
            builder.without_signature();
            builder.finish().unwrap().add_to(&mut module);
        }
    }
    module
}

fn inferred(functions: &[&dyn Fn(&mut FunctionBuilder)]) -> Vec<String> {
    let verified = verify(old_module(functions)).unwrap();
    verified.functions().iter().skip(1).map(|info| info.convention.to_string()).collect()
}

fn refused(functions: &[&dyn Fn(&mut FunctionBuilder)]) -> (Status, Option<u32>, Option<u32>) {
    let error = verify(old_module(functions)).unwrap_err();
    (error.status, error.function, error.pc)
}

fn add_wide(builder: &mut FunctionBuilder, a: u16, b: u16, dst: u16) {
    builder.push(Op::AddI64 { a: X8(a), b: X8(b), dst: X8(dst) });
}

#[test]
fn widths_come_from_the_first_reads_and_the_last_writes() {
    let conventions = inferred(&[
        &|builder| {
            builder.push(Op::ConstI64 { value: Imm64(5), dst: X8(2) });
            // The first word may name the low half of a pair.
            call(builder, 1, &[i(2), i(2), i(5), Register::reference(0)], &[i(8), i(10), Register::reference(1)]);
            return_of(builder, &[]);
        },
        // i32, i64, i32, ref: the last i32 fills the gap.
        &|builder| {
            add(builder, 0, 1, 4);
            add_wide(builder, 2, 2, 6);
            return_of(builder, &[i(4), i(6), Register::reference(0)]);
        },
    ]);
    assert_eq!(conventions, ["0iIir_iIr"]);
    let verified = verify(old_module(&[
        &|builder| {
            add_wide(builder, 4, 4, 2);
            call(builder, 1, &[i(0), i(2), i(5)], &[]);
            return_of(builder, &[]);
        },
        &|builder| {
            add(builder, 0, 1, 4);
            add_wide(builder, 2, 2, 6);
            return_of(builder, &[]);
        },
    ]));
    let info = verified.unwrap().functions()[1].clone();
    assert_eq!((info.placement_rule, info.placement.slots.to_vec()), (LowestFree, vec![0, 2, 1]));
}

#[test]
fn gaps_make_orders_look_alike() {
    // The callee reads i0, i1 and i2:3; only the callers can tell which argument is the wide one.
    let callee = |builder: &mut FunctionBuilder| {
        add(builder, 0, 1, 4);
        add_wide(builder, 2, 2, 6);
        return_of(builder, &[]);
    };
    for (wide, expected) in [([2, 4], Some("0iIi_v")), ([4, 2], Some("0iiI_v")), ([4, 6], None)] {
        let caller = |builder: &mut FunctionBuilder| {
            add_wide(builder, 8, 8, 2);
            add(builder, 8, 8, 4);
            call(builder, 1, &[i(0), i(wide[0]), i(wide[1])], &[]);
            return_of(builder, &[]);
        };
        match expected {
            Some(expected) => assert_eq!(inferred(&[&caller, &callee]), [expected]),
            None => {
                let unknown = |builder: &mut FunctionBuilder| {
                    call(builder, 1, &[i(0), i(4), i(6)], &[]);
                    return_of(builder, &[]);
                };
                assert_eq!(refused(&[&unknown, &callee]), (Unimplemented, Some(1), Some(0)));
            }
        }
    }
}

#[test]
fn callers_tell_what_the_callee_does_not() {
    // The callee hands its argument on: only its callers know.
    for (wide, expected) in [(true, "0I_I"), (false, "0i_i")] {
        let conventions = inferred(&[
            &|builder| {
                match wide {
                    true => builder.push(Op::ConstI64 { value: Imm64(5), dst: X8(2) }),
                    false => builder.push(Op::ConstI32 { value: Imm32(5), dst: X4(2) }),
                };
                call(builder, 1, &[i(2)], &[i(4)]);
                return_of(builder, &[]);
            },
            &|builder| return_of(builder, &[i(0)]),
        ]);
        assert_eq!(conventions, [expected]);
    }
}

#[test]
fn widths_travel_through_chains_and_recursion() {
    let conventions = inferred(&[
        &|builder| {
            call(builder, 1, &[i(2)], &[i(4)]);
            return_of(builder, &[]);
        },
        // Hands on to function 2, which is resolved first.
        &|builder| {
            call(builder, 2, &[i(0)], &[i(6)]);
            return_of(builder, &[i(6)]);
        },
        // Calls itself with what it read.
        &|builder| {
            let (stop, next) = (builder.label(), builder.label());
            let none = MoveList::EMPTY;
            builder.push(Op::CmpNzI64 { a: X8(0), dst: X4(3) });
            builder.push(Op::CondBr { condition: X4(3), true_to: next.pc(), true_moves: none, false_to: stop.pc(), false_moves: none });
            builder.place(next);
            add_wide(builder, 0, 0, 4);
            call(builder, 2, &[i(4)], &[i(6)]);
            add_wide(builder, 6, 6, 8);
            return_of(builder, &[i(8)]);
            builder.place(stop);
            return_of(builder, &[i(0)]);
        },
    ]);
    assert_eq!(conventions, ["0I_I", "0I_I"]);
}

#[test]
fn functions_that_nobody_calls_are_kept() {
    let conventions = inferred(&[&|builder| return_of(builder, &[]), &|builder| {
        builder.push(Op::ConstI64Zero { dst: X8(2) });
        return_of(builder, &[i(2), i(4)]);
    }]);
    assert_eq!(conventions, ["0v_Ii"]);
}

#[test]
fn what_cannot_be_told_is_refused() {
    // Nobody reads the argument and nobody wrote it.
    let unread = refused(&[
        &|builder| {
            call(builder, 1, &[i(2)], &[]);
            return_of(builder, &[]);
        },
        &|builder| return_of(builder, &[]),
    ]);
    assert_eq!(unread, (Unimplemented, Some(1), Some(0)));
    // Two sites differ in number; the second is at pc 10.
    let number = refused(&[
        &|builder| {
            call(builder, 1, &[i(1)], &[]);
            call(builder, 1, &[i(1), i(3)], &[]);
            return_of(builder, &[]);
        },
        &|builder| return_of(builder, &[]),
    ]);
    assert_eq!(number, (Unimplemented, Some(0), Some(12)));
    // A site wants more results than the function returns.
    let results = refused(&[
        &|builder| {
            call(builder, 1, &[], &[i(1)]);
            return_of(builder, &[]);
        },
        &|builder| return_of(builder, &[]),
    ]);
    assert_eq!(results, (Unimplemented, Some(1), Some(0)));
    // The callers write 32 bits where the function reads registers that no argument fills.
    let unexplained = refused(&[
        &|builder| {
            call(builder, 1, &[i(1)], &[]);
            return_of(builder, &[]);
        },
        &|builder| {
            add(builder, 0, 1, 4);
            return_of(builder, &[]);
        },
    ]);
    assert_eq!(unexplained, (Unimplemented, Some(1), Some(0)));
}
