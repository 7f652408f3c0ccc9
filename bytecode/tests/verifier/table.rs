//! Every operand of every opcode, taken from the op table: a good instruction is made for each opcode of each version, then every
//! operand in turn gets every kind of bad value. What the table has and this file does not know fails the tests.

use super::*;
use vmfb_bytecode::isa::{Access, OpSet, Opcode, OperandInfo, OperandKind, PREFIX_F32, PREFIX_F64};

/// A part of an encoded operand.
#[derive(Clone)]
enum Piece {
    Bytes(Vec<u8>),
    /// A count and entries, which start at an even pc.
    List(Vec<u8>, u16),
    /// The pc of the block behind the instruction.
    Next,
}

type Operand = Vec<Piece>;

fn word(word: u16) -> Operand {
    vec![Piece::Bytes(word.to_le_bytes().to_vec())]
}

fn long(value: u32) -> Operand {
    vec![Piece::Bytes(value.to_le_bytes().to_vec())]
}

fn list(words: &[u16]) -> Operand {
    vec![Piece::List(words.iter().flat_map(|word| word.to_le_bytes()).collect(), words.len() as u16)]
}

fn moves(pairs: &[[u16; 2]]) -> Piece {
    Piece::List(pairs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect(), pairs.len() as u16)
}

/// The cases of a branch table: their number, then target and moves of each.
fn cases(cases: impl IntoIterator<Item = [Piece; 2]>) -> Operand {
    let cases: Vec<_> = cases.into_iter().collect();
    let count = Piece::Bytes((cases.len() as u16).to_le_bytes().to_vec());
    std::iter::once(count).chain(cases.into_iter().flatten()).collect()
}

fn pc(target: u32) -> Piece {
    Piece::Bytes(target.to_le_bytes().to_vec())
}

/// The instruction, whose opcode stands at `start`; list padding depends on that.
fn encode(opcode: Opcode, operands: &[Operand], start: u32) -> Vec<u8> {
    let encode_to = |next: u32| {
        let mut bytes = match opcode.info().set {
            OpSet::Core => Vec::new(),
            OpSet::F32 => vec![PREFIX_F32],
            OpSet::F64 => vec![PREFIX_F64],
        };
        bytes.push(opcode.info().byte);
        for piece in operands.iter().flatten() {
            match piece {
                Piece::Bytes(piece) => bytes.extend(piece),
                Piece::List(entries, count) => {
                    if (start as usize + bytes.len()) % 2 == 1 {
                        bytes.push(0);
                    }
                    bytes.extend(count.to_le_bytes());
                    bytes.extend(entries);
                }
                Piece::Next => bytes.extend(next.to_le_bytes()),
            }
        }
        bytes
    };
    let length = encode_to(0).len() as u32;
    encode_to(start + length)
}

/// A function with one instruction and a return behind it, in a block of its own if the instruction ends one.
fn outcome(version: BytecodeVersion, opcode: Opcode, operands: &[Operand]) -> Result<(), (Status, Option<u32>, Option<u32>)> {
    let mut builder = FunctionBuilder::new(version, "0v_v");
    builder.value_registers(8).ref_registers(4).start_block();
    builder.push_bytes(&encode(opcode, operands, builder.position()));
    if opcode.is_terminator() {
        builder.start_block();
    }
    builder.push(Op::Return { values: RegisterList::new(&[]) });
    builder.requirements(Requirements(0xF));
    verified(version, builder).map(|_| ())
}

/// Operands with which every instruction is valid in the module of these tests. Calls are of the import `0rI_i`.
fn good(opcode: Opcode, operand: &OperandInfo, version: BytecodeVersion) -> Operand {
    match operand.kind {
        OperandKind::X4 => word(1),
        OperandKind::X8 => word(2),
        OperandKind::AlignmentX4 if version.major() < 15 => Vec::new(),
        OperandKind::AlignmentX4 => word(0),
        OperandKind::RefRead => word(0x8001),
        OperandKind::RefMove => word(0x8002),
        OperandKind::Imm32 | OperandKind::GlobalOffset(_) | OperandKind::GlobalSlot | OperandKind::Rodata => long(0),
        OperandKind::Imm64 => vec![Piece::Bytes(vec![0; 8])],
        OperandKind::Type => long(1),
        OperandKind::Function => long(PLAIN.0),
        OperandKind::Pc => vec![Piece::Next],
        OperandKind::Registers => match (opcode, operand.access) {
            (Opcode::Return, _) => list(&[]),
            (Opcode::Trace | Opcode::Print, _) => list(&[1, 0x8001]),
            (_, Access::Read) => list(&[0x8001, 2]),
            (_, Access::Write) => list(&[4]),
        },
        OperandKind::X4List => list(&[1, 7]),
        OperandKind::X8List => list(&[2, 6]),
        OperandKind::RefList => list(&[0x8001, 0x8003]),
        OperandKind::Segments => list(&[SegmentList::PLAIN, SegmentList::PLAIN]),
        OperandKind::Moves => vec![moves(&[[1, 2], [0x8000, 0x8001]])],
        OperandKind::Cases => cases([[Piece::Next, moves(&[[1, 2]])], [Piece::Next, moves(&[])]]),
        OperandKind::Text => vec![Piece::Bytes(vec![1, 0, b'x'])],
        other => panic!("{other:?} is not known here"),
    }
}

/// Bad values and what they are refused with: out of range, of the wrong bank, odd pairs, of the wrong type.
fn bad(opcode: Opcode, operand: &OperandInfo, version: BytecodeVersion) -> Vec<(Operand, Status)> {
    let of_words = |words: &[(u16, Status)]| words.iter().map(|(value, status)| (word(*value), *status)).collect::<Vec<_>>();
    let of_lists = |lists: &[(&[u16], Status)]| lists.iter().map(|(values, status)| (list(values), *status)).collect::<Vec<_>>();
    let all_out_of_range = |values: &[u32]| values.iter().map(|value| (long(*value), OutOfRange)).collect::<Vec<_>>();
    const VALUES: [(u16, Status); 5] =
        [(8, OutOfRange), (0x3FFF, OutOfRange), (0x7FFF, OutOfRange), (0x8001, InvalidArgument), (0xFFFF, InvalidArgument)];
    match operand.kind {
        OperandKind::AlignmentX4 if version.major() < 15 => Vec::new(),
        OperandKind::X4 | OperandKind::AlignmentX4 => of_words(&VALUES),
        OperandKind::X8 => of_words(&[
            (8, OutOfRange),
            (0x7FFE, OutOfRange),
            (1, InvalidArgument),
            (7, InvalidArgument),
            (0x7FFF, InvalidArgument),
            (0x8002, InvalidArgument),
        ]),
        OperandKind::RefRead => {
            let mut words = of_words(&[(0x8004, OutOfRange), (0xBFFF, OutOfRange), (1, InvalidArgument), (0x4001, InvalidArgument)]);
            let moved = if version.honours_move() { (0xC001, InvalidArgument) } else { (0xC004, OutOfRange) };
            words.extend(of_words(&[moved]));
            words
        }
        OperandKind::RefMove => {
            of_words(&[(0x8004, OutOfRange), (0xC004, OutOfRange), (0xFFFF, OutOfRange), (1, InvalidArgument), (0x4001, InvalidArgument)])
        }
        // Literals are all good.
        OperandKind::Imm32 | OperandKind::Imm64 => Vec::new(),
        OperandKind::GlobalOffset(size) => all_out_of_range(&[17 - size, 16, u32::MAX, u32::MAX - size + 1]),
        OperandKind::GlobalSlot | OperandKind::Type => all_out_of_range(&[2, u32::MAX]),
        OperandKind::Rodata => all_out_of_range(&[1, u32::MAX]),
        OperandKind::Function => {
            let internal = match opcode {
                Opcode::CallVariadic | Opcode::CallVariadicYieldable => FailedPrecondition,
                // The helper takes other arguments than the import; where there are none, it is no import.
                _ => InvalidArgument,
            };
            vec![(long(FunctionRef::import(2).0), InvalidArgument), (long(u32::MAX), InvalidArgument), (long(HELPER.0), internal)]
        }
        OperandKind::Pc => {
            let targets = [(0x00FF_FFFF, OutOfRange), (u32::MAX, OutOfRange), (1, InvalidArgument), (0x00FF_FFFE, InvalidArgument)];
            targets.map(|(target, status)| (vec![pc(target)], status)).to_vec()
        }
        OperandKind::Registers => match (opcode, operand.access) {
            (Opcode::Return, _) => of_lists(&[(&[1], InvalidArgument), (&[0x8001], InvalidArgument)]),
            (Opcode::Trace | Opcode::Print, _) => of_lists(&[(&[8], OutOfRange), (&[1, 0x8004], OutOfRange), (&[0xFFFF], OutOfRange)]),
            (_, Access::Read) => of_lists(&[
                (&[0x8004, 2], OutOfRange),
                (&[0x8001, 8], OutOfRange),
                (&[0x8001], OutOfRange),
                (&[], OutOfRange),
                (&[0x8001, 3], InvalidArgument),
                (&[1, 2], InvalidArgument),
                (&[0x8001, 0x8002], InvalidArgument),
                (&[0x8001, 2, 4], InvalidArgument),
            ]),
            (_, Access::Write) => {
                of_lists(&[(&[8], OutOfRange), (&[], OutOfRange), (&[0x8001], InvalidArgument), (&[4, 5], InvalidArgument)])
            }
        },
        OperandKind::X4List => of_lists(&[(&[1, 8], OutOfRange), (&[0x8001], InvalidArgument)]),
        OperandKind::X8List => of_lists(&[(&[2, 8], OutOfRange), (&[3], InvalidArgument), (&[0x8002], InvalidArgument)]),
        OperandKind::RefList => of_lists(&[(&[0x8001, 0x8004], OutOfRange), (&[0xC004], OutOfRange), (&[1], InvalidArgument)]),
        // Two plain arguments: what their segments say does not matter, as long as there are no more.
        OperandKind::Segments => of_lists(&[(&[SegmentList::PLAIN, SegmentList::PLAIN, 0], InvalidArgument)]),
        OperandKind::Moves => bad_moves().into_iter().map(|(moves, status)| (vec![moves], status)).collect(),
        OperandKind::Cases => {
            let second = |target, moves| cases([[Piece::Next, self::moves(&[])], [target, moves]]);
            let mut all: Vec<_> = bad_moves().into_iter().map(|(moves, status)| (second(Piece::Next, moves), status)).collect();
            all.push((second(pc(0x00FF_FFFF), moves(&[])), OutOfRange));
            all.push((second(pc(1), moves(&[])), InvalidArgument));
            // More cases than there are bytes.
            all.push((vec![Piece::Bytes(vec![0xFF, 0xFF])], OutOfRange));
            all
        }
        OperandKind::Text => vec![(vec![Piece::Bytes(vec![0xFF, 0xFF, b'x'])], OutOfRange)],
        other => panic!("{other:?} is not known here"),
    }
}

fn bad_moves() -> Vec<(Piece, Status)> {
    let pairs = [
        ([8, 1], OutOfRange),
        ([1, 8], OutOfRange),
        ([0x8004, 0x8001], OutOfRange),
        ([0x8001, 0xC004], OutOfRange),
        ([1, 0x8001], InvalidArgument),
        ([0x8001, 1], InvalidArgument),
    ];
    pairs.map(|(pair, status)| (moves(&[[1, 2], pair]), status)).to_vec()
}

/// The opcodes of a version but the block marker, which is no instruction inside of a block.
fn opcodes(version: BytecodeVersion) -> impl Iterator<Item = Opcode> {
    let known = Opcode::ALL.iter().copied().filter(move |opcode| opcode.info().since_major <= version.major());
    known.filter(|opcode| *opcode != Opcode::Block)
}

#[test]
fn every_opcode_is_accepted_with_good_operands() {
    for version in VERSIONS {
        let mut seen = 0;
        for opcode in opcodes(version) {
            let operands: Vec<_> = opcode.info().operands.iter().map(|operand| good(opcode, operand, version)).collect();
            assert_eq!(outcome(version, opcode, &operands), Ok(()), "{version} {opcode:?}");
            seen += 1;
        }
        // 13.0 has 237 opcodes and no block marker; 17.0 has them all.
        assert!(seen >= 237 && (version != V17 || seen == Opcode::ALL.len() - 1), "{version}: {seen} opcodes");
    }
}

#[test]
fn every_operand_of_every_opcode_is_refused_when_it_is_bad() {
    for version in VERSIONS {
        let at = Some(u32::from(version.has_block_markers()));
        for opcode in opcodes(version) {
            let infos = opcode.info().operands;
            let operands: Vec<_> = infos.iter().map(|operand| good(opcode, operand, version)).collect();
            for (index, info) in infos.iter().enumerate() {
                let values = bad(opcode, info, version);
                let is_free = matches!(info.kind, OperandKind::Imm32 | OperandKind::Imm64) || operands[index].is_empty();
                assert_eq!(values.is_empty(), is_free, "{version} {opcode:?}.{}: nothing is tried", info.name);
                for (number, (value, status)) in values.into_iter().enumerate() {
                    let mut operands = operands.clone();
                    operands[index] = value;
                    let found = outcome(version, opcode, &operands);
                    let wanted = Err((status, Some(TESTED), at));
                    assert_eq!(found, wanted, "{version} {opcode:?}.{}, value {number}", info.name);
                }
            }
        }
    }
}

/// An instruction that is cut off anywhere is out of range: no field is read past the end. (Bodies of 13.0 are padded with zeros.)
#[test]
fn every_opcode_is_refused_when_it_is_cut_off() {
    for version in VERSIONS.into_iter().filter(|version| version.has_block_markers()) {
        for opcode in opcodes(version) {
            let operands: Vec<_> = opcode.info().operands.iter().map(|operand| good(opcode, operand, version)).collect();
            let bytes = encode(opcode, &operands, 1);
            for length in 1..bytes.len() {
                let mut builder = FunctionBuilder::new(version, "0v_v");
                builder.value_registers(8).ref_registers(4).start_block();
                builder.push_bytes(&bytes[..length]).requirements(Requirements(0xF));
                let found = verified(version, builder).map(|_| ());
                assert_eq!(found, Err((OutOfRange, Some(TESTED), Some(1))), "{version} {opcode:?} {length}");
            }
        }
    }
}
