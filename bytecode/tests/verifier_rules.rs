//! One invalid function for every rule of the verifier, and valid neighbours of the strict ones.

use vmfb_bytecode::Status::{self, FailedPrecondition, InvalidArgument, OutOfRange, ResourceExhausted, Unimplemented};
use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::definition::{BytecodeVersion, Export, Import, ModuleDef, Necessity, Requirements, Rodata, RodataPlacement, Signature};
use vmfb_bytecode::isa::{
    CaseList, FunctionRef, GlobalOffset, GlobalSlot, Move, MoveList, Op, Pc, RefList, RefMove, RefRead, Register, RegisterList,
    RodataOrdinal, SegmentList, SwitchCase, Text, TypeOrdinal, X4, X4List, X8, X8List, words,
};
use vmfb_bytecode::verify::{VerifiedModule, verify};

const V13: BytecodeVersion = BytecodeVersion::V13;
const V15: BytecodeVersion = BytecodeVersion::V15;
const V16: BytecodeVersion = BytecodeVersion::V16;
const V17: BytecodeVersion = BytecodeVersion::V17;
const VERSIONS: [BytecodeVersion; 5] = [V13, BytecodeVersion::V14, V15, V16, V17];

const VARIADIC: FunctionRef = FunctionRef::import(0);
const PLAIN: FunctionRef = FunctionRef::import(1);
const HELPER: FunctionRef = FunctionRef::internal(0);
/// The ordinal of the function under test.
const TESTED: u32 = 1;

fn i(ordinal: u16) -> Register {
    Register::value(ordinal)
}

fn r(ordinal: u16) -> Register {
    Register::reference(ordinal)
}

fn import(name: &str, calling_convention: &str) -> Import {
    let signature = Signature { calling_convention: calling_convention.to_owned(), attributes: Vec::new() };
    Import { full_name: name.to_owned(), signature: Some(signature), necessity: Necessity::Optional }
}

/// Two types, two imports, 16 bytes of globals, two ref globals, one constant, and function 0: `0iI_I`, which returns its pair.
fn module(version: BytecodeVersion) -> ModuleDef {
    let mut module = empty_module("rules", version);
    module.types = vec!["i32".to_owned(), "!vm.buffer".to_owned()];
    module.imports = vec![import("native.variadic", "0iCrID_I"), import("native.plain", "0rI_i")];
    module.global_bytes = 16;
    module.global_refs = 2;
    module.rodata = vec![Rodata { range: 0..0, placement: RodataPlacement::Embedded }];
    let mut helper = FunctionBuilder::new(version, "0iI_I");
    helper.start_block();
    helper.push(Op::Return { values: RegisterList::new(&words([i(2)])) });
    helper.finish().unwrap().export_from(&mut module, "helper");
    module
}

fn verified(version: BytecodeVersion, builder: FunctionBuilder) -> Result<VerifiedModule, (Status, Option<u32>, Option<u32>)> {
    let mut module = module(version);
    builder.finish().unwrap().export_from(&mut module, "tested");
    verify(module).map_err(|error| (error.status, error.function, error.pc))
}

/// A function `0v_v` with 8 value and 4 ref registers and one block, whose contents come from the argument and a return behind them.
fn body(version: BytecodeVersion, build: impl FnOnce(&mut FunctionBuilder)) -> FunctionBuilder {
    let mut builder = FunctionBuilder::new(version, "0v_v");
    builder.value_registers(8).ref_registers(4);
    builder.start_block();
    build(&mut builder);
    builder.push(Op::Return { values: RegisterList::new(&[]) });
    builder
}

/// Asserts that one op as the first of a function is refused, at its pc.
#[track_caller]
fn refuses(version: BytecodeVersion, op: Op<'_>, status: Status) {
    let builder = body(version, |builder| {
        builder.push(op);
    });
    let pc = u32::from(version.has_block_markers());
    assert_eq!(verified(version, builder).map(|_| ()), Err((status, Some(TESTED), Some(pc))), "{version} {op:?}");
}

#[track_caller]
fn accepts(version: BytecodeVersion, op: Op<'_>) {
    let builder = body(version, |builder| {
        builder.push(op);
    });
    assert_eq!(verified(version, builder).map(|_| ()), Ok(()), "{version} {op:?}");
}

#[track_caller]
fn refused(version: BytecodeVersion, builder: FunctionBuilder, status: Status, pc: u32) {
    assert_eq!(verified(version, builder).map(|_| ()), Err((status, Some(TESTED), Some(pc))), "{version}");
}

#[test]
fn rule_1_requirements_are_known() {
    let mut builder = body(V17, |_| {});
    builder.requirements(Requirements(16));
    let mut module = module(V17);
    builder.finish().unwrap().add_to(&mut module);
    module.requirements = Requirements::NONE;
    let error = verify(module).unwrap_err();
    assert_eq!((error.status, error.function, error.pc), (InvalidArgument, Some(TESTED), Some(0)));
    let mut builder = body(V17, |_| {});
    builder.requirements(Requirements(1 | 2 | 4 | 8));
    assert!(verified(V17, builder).is_ok());
}

#[test]
fn rule_2_register_counts() {
    for (values, refs, status) in [
        (0x7FFF, 0x3FFF, None),
        (0x8000, 0, Some(ResourceExhausted)),
        (0xFFFF, 0, Some(ResourceExhausted)),
        (0, 0x4000, Some(ResourceExhausted)),
    ] {
        let mut builder = body(V15, |_| {});
        builder.value_registers(values).ref_registers(refs);
        let expected = status.map_or(Ok(()), |status| Err((status, Some(TESTED), Some(0))));
        assert_eq!(verified(V15, builder).map(|_| ()), expected, "{values} {refs}");
    }
}

#[test]
fn rule_3_calling_convention() {
    for (text, status) in [("1v_v", Unimplemented), ("0x_v", InvalidArgument), ("0CiD_v", InvalidArgument), ("0i_CiD", InvalidArgument)] {
        for version in VERSIONS {
            let mut builder = FunctionBuilder::new(version, text);
            builder.value_registers(8).start_block();
            builder.push(Op::Return { values: RegisterList::new(&[]) });
            refused(version, builder, status, 0);
        }
    }
    for version in VERSIONS.into_iter().skip(1) {
        let mut builder = body(version, |_| {});
        builder.without_signature();
        refused(version, builder, InvalidArgument, 0);
    }
}

#[test]
fn rule_4_arguments_fit() {
    for (text, values, refs) in [("0ii_v", 1, 0), ("0iI_v", 3, 0), ("0rr_v", 0, 1), ("0F_v", 1, 0)] {
        for version in VERSIONS {
            let mut builder = FunctionBuilder::new(version, text);
            builder.value_registers(values).ref_registers(refs).start_block();
            builder.push(Op::Return { values: RegisterList::new(&[]) });
            refused(version, builder, InvalidArgument, 0);
        }
    }
}

#[test]
fn rule_5_fields_lie_inside() {
    for version in VERSIONS {
        let pc = u32::from(version.has_block_markers());
        // const.i64 that is cut off, a return list of 3 entries of which one is there, a text that is too long.
        for bytes in [&[0x0F, 0, 0, 1, 0][..], &[0x5A, 0, 3, 0, 1, 0], &[0x5B, 1, 0, 9, 0, b'x']] {
            let mut builder = FunctionBuilder::new(version, "0v_v");
            builder.value_registers(8).start_block();
            // The list is padded to an even pc.
            let bytes = if bytes[0] == 0x5A && pc == 1 { [&bytes[..1], &bytes[2..]].concat() } else { bytes.to_vec() };
            builder.push_bytes(&bytes);
            refused(version, builder, OutOfRange, pc);
        }
    }
}

#[test]
fn rule_5_branch_tables_are_bounded_by_the_bytes_left() {
    let mut builder = FunctionBuilder::new(V17, "0v_v");
    builder.value_registers(8).start_block();
    builder.push_bytes(&[0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0]);
    refused(V17, builder, OutOfRange, 1);
}

#[test]
fn rule_6_opcodes_are_assigned() {
    for (bytes, version) in [
        (&[0x89][..], V17),
        (&[0xDF], V17),
        (&[0xE2], V17),
        (&[0xE0, 0x3F], V17),
        (&[0xE1, 0x41], V17),
        (&[0xE0, 0x3E], V16),
        (&[0x87], V16),
        (&[0x85], V15),
        (&[0x79], V13),
        (&[0x7A, 0, 0, 0, 0, 0, 0], BytecodeVersion::V14),
    ] {
        let mut builder = body(version, |builder| {
            builder.push_bytes(bytes);
        });
        builder.requirements(Requirements(3));
        refused(version, builder, InvalidArgument, u32::from(version.has_block_markers()));
    }
}

#[test]
fn rule_6_sets_need_their_requirement() {
    let f32_op = Op::AddF32 { a: X4(0), b: X4(1), dst: X4(2) };
    let f64_op = Op::AddF64 { a: X8(0), b: X8(2), dst: X8(4) };
    for (op, needed, others) in [(f32_op, Requirements::F32, 0xE), (f64_op, Requirements::F64, 0xD)] {
        for version in VERSIONS {
            for (bits, allowed) in [(needed, true), (others, !version.has_block_markers())] {
                let mut builder = body(version, |builder| {
                    builder.push(op);
                });
                builder.requirements(Requirements(bits));
                let expected = if allowed { Ok(()) } else { Err((InvalidArgument, Some(TESTED), Some(1))) };
                assert_eq!(verified(version, builder).map(|_| ()), expected, "{version} {op:?} {bits}");
            }
        }
    }
}

#[test]
fn rule_7_block_markers() {
    // No marker at the start.
    let mut builder = FunctionBuilder::new(V15, "0v_v");
    builder.push(Op::Return { values: RegisterList::new(&[]) }).block_count(1);
    refused(V15, builder, InvalidArgument, 0);
    // A marker inside of a block.
    refuses(V15, Op::Block {}, InvalidArgument);
    // No marker behind a terminator.
    let mut builder = body(V15, |_| {});
    builder.push(Op::Return { values: RegisterList::new(&[]) });
    refused(V15, builder, InvalidArgument, 4);
}

#[test]
fn rules_8_to_10_value_registers() {
    for version in VERSIONS {
        let not = |a, dst| Op::NotI32 { a: X4(a), dst: X4(dst) };
        let not_wide = |a, dst| Op::NotI64 { a: X8(a), dst: X8(dst) };
        accepts(version, not(7, 7));
        refuses(version, not(0x8000, 0), InvalidArgument);
        refuses(version, not(0, 0x8001), InvalidArgument);
        refuses(version, not(8, 0), OutOfRange);
        refuses(version, not(0, 0x7000), OutOfRange);
        accepts(version, not_wide(6, 0));
        refuses(version, not_wide(0x8000, 0), InvalidArgument);
        refuses(version, not_wide(1, 0), InvalidArgument);
        refuses(version, not_wide(0, 7), InvalidArgument);
        refuses(version, not_wide(8, 0), OutOfRange);
        refuses(version, not_wide(0, 0x7FFE), OutOfRange);
    }
}

#[test]
fn register_counts_are_exact_but_for_the_last_pair() {
    // Real modules of 2023 have 9 registers and swap through i8 and i9.
    for (registers, last, good) in [(9, 9, true), (9, 10, false), (10, 10, false), (10, 9, true)] {
        let mut builder = FunctionBuilder::new(V15, "0v_v");
        builder.value_registers(registers).start_block();
        builder.push(Op::ConstI32Zero { dst: X4(last) }).push(Op::Return { values: RegisterList::new(&[]) });
        assert_eq!(verified(V15, builder).is_ok(), good, "{registers} {last}");
    }
}

#[test]
fn rules_10_to_12_ref_registers() {
    for version in VERSIONS {
        let read = |word| Op::CmpNzRef { a: RefRead(word), dst: X4(0) };
        let moved = |word| Op::ListSetRef { list: RefRead::new(0), index: X4(0), value: RefMove(word) };
        accepts(version, read(0x8003));
        refuses(version, read(3), InvalidArgument);
        refuses(version, read(0x8004), OutOfRange);
        accepts(version, moved(0x8003));
        accepts(version, moved(0xC003));
        refuses(version, moved(0x4003), InvalidArgument);
        refuses(version, moved(0xC004), OutOfRange);
        if version.honours_move() {
            refuses(version, read(0xC003), InvalidArgument);
        } else {
            accepts(version, read(0xC003));
            refuses(version, read(0xC004), OutOfRange);
        }
    }
}

#[test]
fn rule_13_lists() {
    for version in VERSIONS {
        for (register, status) in [(i(8), OutOfRange), (r(4), OutOfRange), (Register::moved(4), OutOfRange)] {
            let values = words([i(0), register]);
            refuses(version, Op::Trace { message: Text(b"x"), values: RegisterList::new(&values) }, status);
            refuses(version, Op::Print { message: Text(b"x"), values: RegisterList::new(&values) }, status);
        }
        let switch = |list: &[u16]| {
            let values: Vec<_> = list.iter().map(|word| word.to_le_bytes()).collect();
            refuses(
                version,
                Op::SwitchI32 { index: X4(0), default: X4(0), values: X4List::new(&values), dst: X4(1) },
                if list[0] < 0x8000 { OutOfRange } else { InvalidArgument },
            );
            refuses(
                version,
                Op::SwitchI64 { index: X4(0), default: X8(0), values: X8List::new(&values), dst: X8(2) },
                if list[0] < 0x8000 { OutOfRange } else { InvalidArgument },
            );
        };
        switch(&[8]);
        switch(&[0x8000]);
        let odd = [[3, 0]];
        refuses(version, Op::SwitchI64 { index: X4(0), default: X8(0), values: X8List::new(&odd), dst: X8(2) }, InvalidArgument);
        accepts(version, Op::SwitchI32 { index: X4(0), default: X4(0), values: X4List::new(&odd), dst: X4(1) });
        let refs = |list| Op::SwitchRef {
            index: X4(0),
            type_ordinal: TypeOrdinal(1),
            default: RefMove::new(0),
            values: list,
            dst: RefMove::new(1),
        };
        let (good, beyond, value) = (words([r(3), Register::moved(2)]), words([r(4)]), words([i(0)]));
        accepts(version, refs(RefList::new(&good)));
        refuses(version, refs(RefList::new(&beyond)), OutOfRange);
        refuses(version, refs(RefList::new(&value)), InvalidArgument);
    }
    refuses(V16, Op::DiscardRefs { refs: RefList::new(&words([i(0)])) }, InvalidArgument);
    refuses(V16, Op::DiscardRefs { refs: RefList::new(&words([r(4)])) }, OutOfRange);
}

#[test]
fn rule_13_moves() {
    for version in VERSIONS {
        for (source, destination, status) in [
            (i(8), i(0), OutOfRange),
            (i(0), i(8), OutOfRange),
            (r(4), r(0), OutOfRange),
            (r(0), r(4), OutOfRange),
            (i(0), r(0), InvalidArgument),
            (r(0), i(0), InvalidArgument),
        ] {
            let moves = [Move { source: i(0), destination: i(1) }.to_bytes(), Move { source, destination }.to_bytes()];
            let builder = body(version, |builder| {
                let next = builder.label();
                builder.push(Op::Br { to: next.pc(), moves: MoveList::new(&moves) }).place(next);
            });
            refused(version, builder, status, u32::from(version.has_block_markers()));
        }
        // One half of a pair may be moved alone.
        let moves = [Move { source: i(2), destination: i(5) }.to_bytes()];
        let builder = body(version, |builder| {
            let next = builder.label();
            builder.push(Op::ConstI64Zero { dst: X8(2) }).push(Op::Br { to: next.pc(), moves: MoveList::new(&moves) }).place(next);
        });
        assert!(verified(version, builder).is_ok());
    }
}

#[test]
fn rule_14_types() {
    for version in VERSIONS {
        accepts(version, Op::ListAlloc { element: TypeOrdinal(1), capacity: X4(0), dst: RefMove::new(0) });
        refuses(version, Op::ListAlloc { element: TypeOrdinal(2), capacity: X4(0), dst: RefMove::new(0) }, OutOfRange);
        refuses(version, Op::GlobalLoadRef { slot: GlobalSlot(0), type_ordinal: TypeOrdinal(u32::MAX), dst: RefMove::new(0) }, OutOfRange);
    }
    refuses(V15, Op::CastAnyRef { a: RefMove::new(0), type_ordinal: TypeOrdinal(2), dst: RefMove::new(0) }, OutOfRange);
}

#[test]
fn rule_15_globals_and_constants() {
    for version in VERSIONS {
        accepts(version, Op::GlobalLoadI32 { offset: GlobalOffset(12), dst: X4(0) });
        accepts(version, Op::GlobalLoadI64 { offset: GlobalOffset(8), dst: X8(0) });
        for offset in [13, 16, u32::MAX, u32::MAX - 3] {
            refuses(version, Op::GlobalLoadI32 { offset: GlobalOffset(offset), dst: X4(0) }, OutOfRange);
        }
        for offset in [9, 12, u32::MAX - 7] {
            refuses(version, Op::GlobalStoreI64 { offset: GlobalOffset(offset), value: X8(0) }, OutOfRange);
        }
        let store = |slot| Op::GlobalStoreRef { slot: GlobalSlot(slot), type_ordinal: TypeOrdinal(1), value: RefMove::new(0) };
        accepts(version, store(1));
        refuses(version, store(2), OutOfRange);
        accepts(version, Op::ConstRefRodata { rodata: RodataOrdinal(0), dst: RefMove::new(0) });
        refuses(version, Op::ConstRefRodata { rodata: RodataOrdinal(1), dst: RefMove::new(0) }, OutOfRange);
    }
    // An f64 global takes 8 bytes.
    let mut builder = body(V17, |builder| {
        builder.push(Op::GlobalLoadF64 { offset: GlobalOffset(12), dst: X8(0) });
    });
    builder.requirements(Requirements(Requirements::F64));
    refused(V17, builder, OutOfRange, 1);
}

#[test]
fn rule_16_callees_exist() {
    for version in VERSIONS {
        for callee in [FunctionRef::import(2), FunctionRef::internal(2), FunctionRef(u32::MAX), FunctionRef(0x7FFF_FFFF)] {
            refuses(version, Op::Call { callee, arguments: RegisterList::new(&[]), results: RegisterList::new(&[]) }, InvalidArgument);
        }
    }
}

fn call(callee: FunctionRef, arguments: &[Register], results: &[Register]) -> (FunctionRef, Vec<[u8; 2]>, Vec<[u8; 2]>) {
    let bytes = |registers: &[Register]| registers.iter().map(|register| register.to_bytes()).collect();
    (callee, bytes(arguments), bytes(results))
}

#[test]
fn rule_17_call_words() {
    for version in VERSIONS {
        for (arguments, results, status) in [
            (&[i(1), i(2)][..], &[i(4)][..], None),
            (&[i(1)], &[i(4)], Some(OutOfRange)),
            (&[i(1), i(2)], &[], Some(OutOfRange)),
            (&[i(1), i(2), i(3)], &[i(4)], Some(InvalidArgument)),
            (&[i(1), i(2)], &[i(4), i(6)], Some(InvalidArgument)),
            (&[r(1), i(2)], &[i(4)], Some(InvalidArgument)),
            (&[i(1), r(2)], &[i(4)], Some(InvalidArgument)),
            (&[i(1), i(3)], &[i(4)], Some(InvalidArgument)),
            (&[i(1), i(8)], &[i(4)], Some(OutOfRange)),
            (&[i(8), i(2)], &[i(4)], Some(OutOfRange)),
            (&[i(1), i(2)], &[i(5)], Some(InvalidArgument)),
            (&[i(1), i(2)], &[r(0)], Some(InvalidArgument)),
            (&[i(1), i(2)], &[i(8)], Some(OutOfRange)),
        ] {
            let (callee, arguments, results) = call(HELPER, arguments, results);
            let op = Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) };
            status.map_or_else(|| accepts(version, op), |status| refuses(version, op, status));
        }
        let (callee, arguments, results) = call(PLAIN, &[i(1), i(2)], &[i(4)]);
        refuses(
            version,
            Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) },
            InvalidArgument,
        );
        // A span needs segments.
        let (callee, arguments, results) = call(VARIADIC, &[i(1), r(2)], &[i(4)]);
        refuses(
            version,
            Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) },
            InvalidArgument,
        );
    }
}

#[test]
fn rule_17_segments() {
    const PLAIN: u16 = SegmentList::PLAIN;
    for version in VERSIONS {
        for (segments, arguments, status) in [
            (&[PLAIN, 0][..], &[i(1)][..], None),
            (&[PLAIN, 2], &[i(1), r(0), i(2), Register::moved(1), i(4)], None),
            (&[PLAIN, 2], &[i(1), r(0), i(2)], Some(OutOfRange)),
            (&[PLAIN, 0], &[i(1), r(0), i(2)], Some(InvalidArgument)),
            (&[PLAIN, 1], &[i(1), i(0), i(2)], Some(InvalidArgument)),
            (&[PLAIN, 1], &[i(1), r(0), i(3)], Some(InvalidArgument)),
            (&[PLAIN, 1], &[i(1), r(4), i(2)], Some(OutOfRange)),
            (&[PLAIN], &[i(1)], Some(InvalidArgument)),
            (&[PLAIN, 0, 0], &[i(1)], Some(InvalidArgument)),
            (&[1, 0], &[i(1)], Some(InvalidArgument)),
            (&[PLAIN, PLAIN], &[i(1)], Some(OutOfRange)),
            (&[], &[], Some(InvalidArgument)),
        ] {
            let segments: Vec<_> = segments.iter().map(|count| count.to_le_bytes()).collect();
            let (callee, arguments, results) = call(VARIADIC, arguments, &[i(6)]);
            let op = Op::CallVariadic {
                callee,
                segments: SegmentList::new(&segments),
                arguments: RegisterList::new(&arguments),
                results: RegisterList::new(&results),
            };
            status.map_or_else(|| accepts(version, op), |status| refuses(version, op, status));
        }
    }
}

#[test]
fn rules_18_and_19_import_only() {
    for version in VERSIONS {
        let (arguments, results) = (words([i(1), i(2)]), words([i(4)]));
        let op = Op::CallVariadic {
            callee: HELPER,
            segments: SegmentList::new(&[[0xFF, 0xFF], [0xFF, 0xFF]]),
            arguments: RegisterList::new(&arguments),
            results: RegisterList::new(&results),
        };
        refuses(version, op, FailedPrecondition);
        accepts(version, Op::ImportResolved { callee: PLAIN, dst: X4(0) });
        refuses(version, Op::ImportResolved { callee: HELPER, dst: X4(0) }, InvalidArgument);
        refuses(version, Op::ImportResolved { callee: FunctionRef::import(2), dst: X4(0) }, InvalidArgument);
    }
    let builder = body(V17, |builder| {
        let next = builder.label();
        builder.push(Op::CallVariadicYieldable {
            callee: HELPER,
            segments: SegmentList::new(&[]),
            arguments: RegisterList::new(&[]),
            resume: next.pc(),
            results: RegisterList::new(&[]),
        });
        builder.place(next);
    });
    refused(V17, builder, FailedPrecondition, 1);
}

#[test]
fn rule_20_returned_words() {
    for version in VERSIONS {
        for (values, status) in [
            (&[i(0), i(2), r(0)][..], None),
            (&[i(0), i(2)], Some(OutOfRange)),
            (&[i(0), i(2), r(0), r(0)], Some(InvalidArgument)),
            (&[i(0), i(3), r(0)], Some(InvalidArgument)),
            (&[r(0), i(2), r(0)], Some(InvalidArgument)),
            (&[i(0), i(2), i(4)], Some(InvalidArgument)),
            (&[i(8), i(2), r(0)], Some(OutOfRange)),
        ] {
            let mut builder = FunctionBuilder::new(version, "0v_iIr");
            builder.value_registers(8).ref_registers(4).start_block();
            let values: Vec<_> = values.iter().map(|register| register.to_bytes()).collect();
            builder.push(Op::Return { values: RegisterList::new(&values) });
            let pc = u32::from(version.has_block_markers());
            let expected = status.map_or(Ok(()), |status| Err((status, Some(TESTED), Some(pc))));
            assert_eq!(verified(version, builder).map(|_| ()), expected, "{version} {values:?}");
        }
    }
}

/// A function of one block that branches to the pc.
fn branch(version: BytecodeVersion, target: u32) -> FunctionBuilder {
    let mut builder = FunctionBuilder::new(version, "0v_v");
    builder.value_registers(8).start_block();
    builder.push(Op::ConstI32Zero { dst: X4(0) }).push_raw(Op::Br { to: Pc(target), moves: MoveList::EMPTY });
    builder
}

#[test]
fn rule_21_branches_stay_below_the_limit() {
    for version in VERSIONS {
        let pc = 3 + u32::from(version.has_block_markers());
        for target in [0x00FF_FFFF, 0x0100_0000, u32::MAX] {
            refused(version, branch(version, target), OutOfRange, pc);
        }
        refused(version, branch(version, 0x00FF_FFFE), InvalidArgument, pc);
    }
}

#[test]
fn rule_22_targets_are_blocks() {
    for version in VERSIONS {
        let pc = 3 + u32::from(version.has_block_markers());
        assert!(verified(version, branch(version, 0)).is_ok(), "{version}");
        // Behind the marker or inside of the first instruction, at the branch itself, past the end.
        for target in [1, pc, 64] {
            refused(version, branch(version, target), InvalidArgument, pc);
        }
    }
    // Every branch of a table counts.
    for bad in 0..3 {
        let builder = body(V17, |builder| {
            let good = builder.label();
            let to = |index| if index == bad { Pc(3) } else { Pc(0) };
            let cases = [1, 2].map(|index| SwitchCase { to: to(index), moves: MoveList::EMPTY });
            builder.push_raw(Op::BrTable { index: X4(0), default_to: to(0), default_moves: MoveList::EMPTY, cases: CaseList::new(&cases) });
            builder.place(good);
        });
        refused(V17, builder, InvalidArgument, 1);
    }
}

#[test]
fn rule_22_block_counts_agree() {
    for count in [0, 2, 65535] {
        let mut builder = body(V17, |_| {});
        builder.block_count(count);
        refused(V17, builder, InvalidArgument, 0);
    }
}

#[test]
fn rule_23_the_last_block_ends() {
    for version in VERSIONS {
        let mut builder = FunctionBuilder::new(version, "0v_v");
        builder.value_registers(8).start_block();
        builder.push(Op::NotI32 { a: X4(0x101), dst: X4(0x101) }).value_registers(0x102);
        let assembled = builder.clone().finish().unwrap();
        if version.has_block_markers() {
            refused(version, builder, InvalidArgument, u32::try_from(assembled.bytecode.len()).unwrap());
        } else {
            // In 13.0 the padding is decoded here, since no terminator went before: `global.load.i32` that is cut off.
            refused(version, builder, OutOfRange, 5);
        }
    }
    let mut builder = FunctionBuilder::new(V15, "0v_v");
    builder.start_block();
    refused(V15, builder, InvalidArgument, 1);
}

#[test]
fn padding_of_13_is_zeros_behind_a_terminator() {
    let good = [0x5A, 0, 0, 0];
    for (tail, status) in [
        (&[0, 0, 0, 0][..], None),
        (&[], None),
        (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], None),
        (&[0, 0, 0, 1], Some(OutOfRange)),
        (&[0x89, 0, 0, 0], Some(InvalidArgument)),
    ] {
        let mut builder = FunctionBuilder::new(V13, "0v_v");
        builder.value_registers(8).start_block();
        builder.push_bytes(&good).push_bytes(tail);
        let expected = status.map_or(Ok(()), |status| Err((status, Some(TESTED), Some(4))));
        assert_eq!(verified(V13, builder).map(|_| ()), expected, "{tail:?}");
    }
    // Later versions have exact lengths.
    let builder = {
        let mut builder = body(V15, |_| {});
        builder.push_bytes(&[0, 0, 0]);
        builder
    };
    refused(V15, builder, InvalidArgument, 4);
}

#[test]
fn list_padding_is_zero() {
    let mut builder = FunctionBuilder::new(V13, "0v_v");
    builder.start_block();
    builder.push_bytes(&[0x5A, 7, 0, 0]);
    refused(V13, builder, InvalidArgument, 0);
}

#[test]
fn bodies_lie_in_the_bytecode() {
    for range in [0..1000, 5..5, usize::MAX - 1..usize::MAX] {
        let mut module = module(V17);
        body(V17, |_| {}).finish().unwrap().add_to(&mut module);
        module.functions[1].bytecode = range;
        let error = verify(module).unwrap_err();
        assert_eq!((error.status, error.function, error.pc), (InvalidArgument, Some(1), Some(0)));
    }
}

#[test]
fn module_tables_are_checked() {
    let refused = |change: fn(&mut ModuleDef)| {
        let mut module = module(V17);
        change(&mut module);
        let error = verify(module).unwrap_err();
        assert_eq!(error.function, None, "{error}");
        error.status
    };
    assert_eq!(refused(|module| module.bytecode_version = BytecodeVersion(18 << 16)), InvalidArgument);
    assert_eq!(refused(|module| module.bytecode_version = BytecodeVersion(12 << 16)), InvalidArgument);
    assert_eq!(refused(|module| module.bytecode_version = BytecodeVersion(17 << 16 | 1)), InvalidArgument);
    assert_eq!(refused(|module| module.requirements = Requirements(32)), InvalidArgument);
    assert_eq!(refused(|module| module.imports[0].signature = None), InvalidArgument);
    assert_eq!(refused(|module| module.imports[0].signature.as_mut().unwrap().calling_convention = "0CCD_v".to_owned()), InvalidArgument);
    assert_eq!(refused(|module| module.imports[0].signature.as_mut().unwrap().calling_convention = "2v_v".to_owned()), Unimplemented);
    assert_eq!(refused(|module| module.exports.push(Export { name: "x".to_owned(), function: 1 })), InvalidArgument);
}

#[test]
fn functions_may_overlap_a_little() {
    let repeated = |count: usize| {
        let mut module = module(V17);
        let function = module.functions[0].clone();
        module.functions = vec![function; count];
        verify(module).map(|_| ()).map_err(|error| error.status)
    };
    assert_eq!(repeated(16), Ok(()));
    assert_eq!(repeated(40), Err(ResourceExhausted));
}
