//! Rules about blocks, branches and padding.

use super::*;

#[test]
fn block_markers() {
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

/// A function of one block that branches to the pc.
fn branch(version: BytecodeVersion, target: u32) -> FunctionBuilder {
    let mut builder = FunctionBuilder::new(version, "0v_v");
    builder.value_registers(8).start_block();
    builder.push(Op::ConstI32Zero { dst: X4(0) }).push_raw(Op::Br { to: Pc(target), moves: MoveList::EMPTY });
    builder
}

#[test]
fn branches_stay_below_the_limit() {
    for version in VERSIONS {
        let pc = 3 + u32::from(version.has_block_markers());
        for target in [0x00FF_FFFF, 0x0100_0000, u32::MAX] {
            refused(version, branch(version, target), OutOfRange, pc);
        }
        refused(version, branch(version, 0x00FF_FFFE), InvalidArgument, pc);
    }
}

#[test]
fn targets_are_blocks() {
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
fn block_counts_agree() {
    for count in [0, 2, 65535] {
        let mut builder = body(V17, |_| {});
        builder.block_count(count);
        refused(V17, builder, InvalidArgument, 0);
    }
}

#[test]
fn the_last_block_ends() {
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
