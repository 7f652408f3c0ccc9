//! Rules about opcodes and single operands, lists and moves.

use super::*;

#[test]
fn fields_lie_inside() {
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
fn branch_tables_are_bounded_by_the_bytes_left() {
    let mut builder = FunctionBuilder::new(V17, "0v_v");
    builder.value_registers(8).start_block();
    builder.push_bytes(&[0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0]);
    refused(V17, builder, OutOfRange, 1);
}

#[test]
fn opcodes_are_assigned() {
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
fn sets_need_their_requirement() {
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
fn value_registers() {
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
fn ref_registers() {
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
fn words_of_lists() {
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
fn moves_stay_in_their_bank() {
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
fn types_exist() {
    for version in VERSIONS {
        accepts(version, Op::ListAlloc { element: TypeOrdinal(1), capacity: X4(0), dst: RefMove::new(0) });
        refuses(version, Op::ListAlloc { element: TypeOrdinal(2), capacity: X4(0), dst: RefMove::new(0) }, OutOfRange);
        refuses(version, Op::GlobalLoadRef { slot: GlobalSlot(0), type_ordinal: TypeOrdinal(u32::MAX), dst: RefMove::new(0) }, OutOfRange);
    }
    refuses(V15, Op::CastAnyRef { a: RefMove::new(0), type_ordinal: TypeOrdinal(2), dst: RefMove::new(0) }, OutOfRange);
}

#[test]
fn globals_and_constants() {
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
