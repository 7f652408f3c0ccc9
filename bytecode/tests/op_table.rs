//! Facts of the op table, and encoding and decoding of every op of every version.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use vmfb_bytecode::Status;
use vmfb_bytecode::decode::{Instructions, decode_op};
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::encode::{Encoder, reencode_body};
use vmfb_bytecode::isa::{
    Access, CaseList, FunctionRef, Imm32, Move, MoveList, Op, OpSet, Opcode, OperandKind, PREFIX_F32, PREFIX_F64, Pc, Register,
    RegisterList, SegmentList, SwitchCase, X4, words,
};

const VERSIONS: [BytecodeVersion; 5] =
    [BytecodeVersion::V13, BytecodeVersion::V14, BytecodeVersion::V15, BytecodeVersion::V16, BytecodeVersion::V17];

fn count(set: OpSet, major: u32) -> usize {
    (0..=u8::MAX).filter(|&byte| Opcode::find(set, byte, major).is_some()).count()
}

#[test]
fn numbers_of_opcodes() {
    // 13.0 has 239 opcodes, two of which are the prefixes.
    assert_eq!([OpSet::Core, OpSet::F32, OpSet::F64].map(|set| count(set, 13)), [121, 55, 61]);
    assert_eq!(121 + 55 + 61 + 2, 239);
    // 14 has the block marker, 15 ends with buffer.hash, 16 adds two, 17 the yieldable calls and fpowi.
    assert_eq!([14, 15, 16, 17].map(|major| count(OpSet::Core, major)), [122, 133, 135, 137]);
    assert_eq!([14, 15, 16, 17].map(|major| count(OpSet::F32, major)), [55, 62, 62, 63]);
    assert_eq!([14, 15, 16, 17].map(|major| count(OpSet::F64, major)), [61, 64, 64, 65]);
    assert_eq!(Opcode::ALL.len(), 137 + 63 + 65);
}

#[test]
fn checked_rows() {
    use OpSet::{Core, F32, F64};
    for (set, byte, mnemonic, since) in [
        (Core, 0x00, "global.load.i32", 13),
        (Core, 0x1E, "select.ref", 13),
        (Core, 0x22, "add.i32", 13),
        (Core, 0x25, "div.i32.s", 13),
        (Core, 0x3D, "shl.i64", 13),
        (Core, 0x56, "br", 13),
        (Core, 0x57, "cond_br", 13),
        (Core, 0x5B, "fail", 13),
        (Core, 0x63, "buffer.load.i8.s", 13),
        (Core, 0x78, "abs.i64", 13),
        (Core, 0x79, "block", 14),
        (Core, 0x7A, "min.i32.s", 15),
        (Core, 0x82, "cast.any.ref", 15),
        (Core, 0x83, "br_table", 15),
        (Core, 0x85, "discard.refs", 16),
        (Core, 0x88, "call.variadic.yieldable", 17),
        (F32, 0x0F, "fma.f32", 13),
        (F32, 0x30, "cmp.lte.f32.o", 13),
        (F32, 0x39, "round.f32.even", 15),
        (F32, 0x3E, "fpowi.f32", 17),
        (F64, 0x19, "cast.f64.ui32", 13),
        (F64, 0x3C, "round.f64", 13),
        (F64, 0x3F, "round.f64.even", 15),
        (F64, 0x40, "fpowi.f64", 17),
    ] {
        let opcode = Opcode::find(set, byte, 17).unwrap();
        assert_eq!((opcode.mnemonic(), opcode.info().since_major), (mnemonic, since));
        assert_eq!((opcode.set(), opcode.info().set, opcode.info().byte), (set, set, byte));
    }
}

#[test]
fn checked_operands() {
    use Access::{Read, Write};
    use OperandKind as K;
    let operands = |opcode: Opcode| opcode.info().operands.iter().map(|operand| (operand.kind, operand.access)).collect::<Vec<_>>();
    assert_eq!(operands(Opcode::ShlI64), [(K::X8, Read), (K::X4, Read), (K::X8, Write)]);
    assert_eq!(operands(Opcode::CmpLtI64S), [(K::X8, Read), (K::X8, Read), (K::X4, Write)]);
    assert_eq!(operands(Opcode::BufferAlloc), [(K::X8, Read), (K::AlignmentX4, Read), (K::RefMove, Write)]);
    assert_eq!(operands(Opcode::GlobalStoreF64), [(K::GlobalOffset(8), Read), (K::X8, Read)]);
    assert_eq!(operands(Opcode::ListGetRef), [(K::RefRead, Read), (K::X4, Read), (K::Type, Read), (K::RefMove, Write)]);
    assert_eq!(operands(Opcode::FpowiF32), [(K::X4, Read), (K::X8, Read), (K::X4, Write)]);
    assert_eq!(operands(Opcode::CondBr), [(K::X4, Read), (K::Pc, Read), (K::Moves, Read), (K::Pc, Read), (K::Moves, Read)]);
    assert_eq!(operands(Opcode::CallYieldable), [(K::Function, Read), (K::Registers, Read), (K::Pc, Read), (K::Registers, Write)]);
    assert_eq!(operands(Opcode::Block), []);
}

#[test]
fn terminators() {
    let mnemonics: Vec<_> = Opcode::ALL.iter().filter(|opcode| opcode.is_terminator()).map(|opcode| opcode.mnemonic()).collect();
    let expected =
        ["br", "cond_br", "return", "fail", "yield", "cond_break", "break", "br_table", "call.yieldable", "call.variadic.yieldable"];
    assert_eq!(mnemonics, expected);
}

#[test]
fn no_two_ops_share_a_number_a_name_or_a_mnemonic() {
    let mut keys: Vec<_> = Opcode::ALL.iter().map(|opcode| (opcode.info().set as u8, opcode.info().byte)).collect();
    let mut mnemonics: Vec<_> = Opcode::ALL.iter().map(|opcode| opcode.mnemonic()).collect();
    for length in [keys.len(), mnemonics.len()] {
        assert_eq!(length, Opcode::ALL.len());
    }
    keys.sort_unstable();
    keys.dedup();
    mnemonics.sort_unstable();
    mnemonics.dedup();
    assert_eq!((keys.len(), mnemonics.len()), (Opcode::ALL.len(), Opcode::ALL.len()));
    assert!(Opcode::ALL.iter().all(|opcode| !opcode.info().documentation.is_empty() && opcode.info().since_major <= 17));
}

#[test]
fn example_of_a_break() {
    let bytes = [
        0x79, 0x0D, 9, 0, 0, 0, 1, 0, 0x61, 0x10, 0, 0, 0, 0, 0, 0, 0x79, 0x4A, 0, 0, 1, 0, 2, 0, //
    ];
    let ops: Vec<_> = Instructions::new(&bytes, BytecodeVersion::V17).map(|instruction| instruction.unwrap()).collect();
    let expected = [
        (0, Op::Block {}),
        (1, Op::ConstI32 { value: Imm32(9), dst: X4(1) }),
        (8, Op::Break { to: Pc(16), moves: MoveList::EMPTY }),
        (16, Op::Block {}),
        (17, Op::CmpNeI32 { a: X4(0), b: X4(1), dst: X4(2) }),
    ];
    assert_eq!(ops.iter().map(|instruction| (instruction.pc, instruction.op)).collect::<Vec<_>>(), expected);
    assert_eq!(ops.last().unwrap().next, 24);
    assert_eq!(reencode_body(&bytes, BytecodeVersion::V17).unwrap(), bytes);
}

#[test]
fn example_of_a_call() {
    let bytes = [0x79, 0x58, 3, 0, 0, 0, 3, 0, 2, 0, 0, 0, 4, 0, 1, 0, 4, 0];
    let (op, next) = decode_op(&bytes, 1, BytecodeVersion::V17).unwrap();
    let (arguments, results) = (words([2, 0, 4].map(Register::value)), words([Register::value(4)]));
    let expected =
        Op::Call { callee: FunctionRef::internal(3), arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) };
    assert_eq!(op, expected);
    assert_eq!(next, 18);
}

#[test]
fn alignment_operand_exists_from_15_on() {
    let bytes = [0x6C, 2, 0, 4, 0, 0, 0x80, 0x5A, 0, 0];
    let expected = |alignment, dst| Op::BufferAlloc { length: vmfb_bytecode::isa::X8(2), alignment, dst: vmfb_bytecode::isa::RefMove(dst) };
    for version in VERSIONS {
        let (op, next) = decode_op(&bytes, 0, version).unwrap();
        if version.major() >= 15 {
            assert_eq!((op, next), (expected(Some(X4(4)), 0x8000), 7));
        } else {
            assert_eq!((op, next), (expected(None, 4), 5));
        }
        let mut encoder = Encoder::new(version);
        let wrong = expected((version.major() < 15).then_some(X4(0)), 0x8000);
        assert_eq!(encoder.op(&wrong).unwrap_err().status, Status::InvalidArgument);
        assert!(encoder.bytes().is_empty());
    }
}

#[test]
fn overlong_lists_are_refused() {
    let list = vec![[0, 0]; 65536];
    let mut encoder = Encoder::new(BytecodeVersion::V17);
    assert_eq!(encoder.op(&Op::Return { values: RegisterList::new(&list) }).unwrap_err().status, Status::OutOfRange);
    assert!(encoder.bytes().is_empty());
    encoder.op(&Op::Return { values: RegisterList::new(&list[1..]) }).unwrap();
    assert_eq!(encoder.bytes().len(), 4 + 2 * 65535);
}

#[test]
fn the_size_of_an_op_is_bounded() {
    assert!(size_of::<Op<'_>>() <= 64, "{}", size_of::<Op<'_>>());
}

/// Random operands of an opcode as bytes, put together from the table.
fn operand_bytes(kind: OperandKind, major: u32, random: &[u8], bytes: &mut Vec<u8>) {
    let take = |at: usize, count: usize| random.iter().cycle().skip(at).take(count).copied();
    let list = |bytes: &mut Vec<u8>, entry: usize, at: usize| {
        if bytes.len() % 2 == 1 {
            bytes.push(0);
        }
        let count = usize::from(random[at % random.len()] % 5);
        bytes.extend((count as u16).to_le_bytes());
        bytes.extend(take(at + 1, count * entry));
    };
    match kind {
        OperandKind::X4 | OperandKind::X8 | OperandKind::RefRead | OperandKind::RefMove => bytes.extend(take(0, 2)),
        OperandKind::AlignmentX4 => bytes.extend(take(0, if major >= 15 { 2 } else { 0 })),
        OperandKind::Imm64 => bytes.extend(take(0, 8)),
        OperandKind::Moves => list(bytes, 4, 0),
        OperandKind::Registers | OperandKind::X4List | OperandKind::X8List | OperandKind::RefList | OperandKind::Segments => {
            list(bytes, 2, 0)
        }
        OperandKind::Cases => {
            let count = u16::from(random[0] % 4);
            bytes.extend(count.to_le_bytes());
            for case in 0..usize::from(count) {
                bytes.extend(take(case, 4));
                list(bytes, 4, case);
            }
        }
        OperandKind::Text => {
            let count = u16::from(random[0] % 9);
            bytes.extend(count.to_le_bytes());
            bytes.extend(take(1, usize::from(count)));
        }
        _ => bytes.extend(take(0, 4)),
    }
}

/// An instruction of each opcode of the version, one after another.
fn every_instruction(version: BytecodeVersion, random: &[u8]) -> Vec<(Opcode, usize, Vec<u8>)> {
    let mut position = 0;
    let known = Opcode::ALL.iter().filter(|opcode| opcode.info().since_major <= version.major());
    known
        .enumerate()
        .map(|(index, &opcode)| {
            let info = opcode.info();
            let mut bytes = vec![0; position % 2];
            match info.set {
                OpSet::Core => {}
                OpSet::F32 => bytes.push(PREFIX_F32),
                OpSet::F64 => bytes.push(PREFIX_F64),
            }
            bytes.push(info.byte);
            for (number, operand) in info.operands.iter().enumerate() {
                let at = (index + 3 * number) % random.len();
                operand_bytes(operand.kind, version.major(), &random[at..], &mut bytes);
            }
            bytes.drain(..position % 2);
            let start = position;
            position += bytes.len();
            (opcode, start, bytes)
        })
        .collect()
}

fn check_every_instruction(version: BytecodeVersion, random: &[u8]) -> Result<(), TestCaseError> {
    let instructions = every_instruction(version, random);
    let body: Vec<u8> = instructions.iter().flat_map(|(_, _, bytes)| bytes.clone()).collect();
    let mut encoder = Encoder::new(version);
    for (opcode, start, bytes) in &instructions {
        let (op, next) = decode_op(&body, u32::try_from(*start).unwrap(), version)
            .map_err(|error| TestCaseError::fail(format!("{opcode:?}: {error}")))?;
        prop_assert_eq!(op.opcode(), *opcode);
        prop_assert_eq!(next as usize, start + bytes.len(), "{:?}", op);
        encoder.op(&op).map_err(|error| TestCaseError::fail(format!("{op:?}: {error}")))?;
        prop_assert_eq!(encoder.bytes(), &body[..next as usize], "{:?}", op);
        // Cut short it is refused.
        for end in *start..start + bytes.len() {
            let error = decode_op(&body[..end], u32::try_from(*start).unwrap(), version).unwrap_err();
            prop_assert_eq!(error.status, Status::OutOfRange, "{:?} cut at {}", op, end);
        }
    }
    Ok(())
}

fn a_move() -> impl Strategy<Value = Move> {
    (any::<u16>(), any::<u16>()).prop_map(|(a, b)| Move { source: Register::from_word(a), destination: Register::from_word(b) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_op_of_every_version_comes_back(random in proptest::collection::vec(any::<u8>(), 16..64)) {
        for version in VERSIONS {
            check_every_instruction(version, &random)?;
        }
    }

    #[test]
    fn built_branch_tables_come_back(
        cases in proptest::collection::vec((any::<u32>(), proptest::collection::vec(a_move(), 0..4)), 0..6),
        shift in 0..2_u8,
    ) {
        let moves: Vec<Vec<[u8; 4]>> = cases.iter().map(|(_, moves)| moves.iter().map(|step| step.to_bytes()).collect()).collect();
        let list: Vec<_> = cases.iter().zip(&moves).map(|((to, _), moves)| SwitchCase { to: Pc(*to), moves: MoveList::new(moves) }).collect();
        let op = Op::BrTable { index: X4(1), default_to: Pc(2), default_moves: MoveList::EMPTY, cases: CaseList::new(&list) };
        let mut encoder = Encoder::new(BytecodeVersion::V17);
        for _ in 0..shift {
            encoder.op(&Op::Block {}).unwrap();
        }
        encoder.op(&op).unwrap();
        let (decoded, next) = decode_op(encoder.bytes(), shift.into(), BytecodeVersion::V17).unwrap();
        prop_assert_eq!(decoded, op);
        prop_assert_eq!(next as usize, encoder.bytes().len());
        prop_assert_eq!(encoder.target_fields().len(), 1 + cases.len());
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_what_decodes_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for version in VERSIONS {
            if let Ok(encoded) = reencode_body(&bytes, version) {
                prop_assert_eq!(&encoded, &bytes);
            }
            for pc in 0..=bytes.len() as u32 + 1 {
                let _ = decode_op(&bytes, pc, version);
            }
        }
    }
}

#[test]
fn segments_and_lists_have_positions() {
    let list = [[1, 0], [0xFF, 0xFF]];
    let segments = SegmentList::new(&list);
    assert_eq!((segments.len(), segments.get(0), segments.get(1), segments.get(2)), (2, Some(1), Some(SegmentList::PLAIN), None));
    let registers = RegisterList::new(&list);
    assert_eq!(registers.get(1), Some(Register::moved(0x3FFF)));
}
