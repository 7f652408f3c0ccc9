//! Generated loops that come to an end: the threaded core and both forms of the match loop compute the same, bit by bit.

use crate::generate::Choices;
use crate::raw::{Piece, RawBody};
use crate::support::*;
use proptest::collection::vec;
use proptest::prelude::*;
use vmfb_bytecode::isa::{Access, Opcode, OperandInfo, OperandKind};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Buffer, Config, Dispatch, FuelMetering, Linker, Origin, Status, Value};

/// Registers that ops may use freely, and those that keep a loop going.
const FREE: u16 = 16;
const MASK: u16 = 16;
const INDEX: u16 = 18;
const COUNTERS: [u16; 2] = [20, 21];
const ONE: u16 = 22;
const LIMIT: u16 = 23;
const REGISTERS: u16 = 26;
const REF: u16 = 0x8000;

/// Elements of the buffer that are touched, of eight bytes at most.
const ELEMENTS: u64 = 8;

/// A body of two loops, one in the other, of 5 rounds each: `0rIIIIIIII_IIIIIIII`. Blocks: entry, outer head, inner head, inner end,
/// end.
fn program(choices: &mut Choices<'_>) -> Program {
    let mut body = RawBody::default();
    body.block(NEWEST);
    for (register, value) in [(COUNTERS[0], 0), (ONE, 1), (LIMIT, 5)] {
        put(&mut body, Opcode::ConstI32, &[Piece::U32(value), Piece::U16(register)]);
    }
    put(&mut body, Opcode::ConstI64, &[Piece::U64(ELEMENTS - 1), Piece::U16(MASK)]);
    put(&mut body, Opcode::Br, &[Piece::Target(1), Piece::Moves(Vec::new())]);
    body.block(NEWEST);
    straight(&mut body, choices);
    put(&mut body, Opcode::ConstI32, &[Piece::U32(0), Piece::U16(COUNTERS[1])]);
    put(&mut body, Opcode::Br, &[Piece::Target(2), Piece::Moves(moves(choices))]);
    body.block(NEWEST);
    straight(&mut body, choices);
    round(&mut body, choices, COUNTERS[1], 2, 3);
    body.block(NEWEST);
    straight(&mut body, choices);
    round(&mut body, choices, COUNTERS[0], 1, 4);
    body.block(NEWEST);
    put(&mut body, Opcode::Return, &[Piece::List((0..FREE).step_by(2).collect())]);
    let mut program = Program::new(NEWEST);
    body.finish(NEWEST, "0rIIIIIIII_IIIIIIII", REGISTERS, 1).export_from(&mut program.def, "run");
    program.def.requirements = program.def.functions[0].requirements;
    program
}

fn put(body: &mut RawBody, opcode: Opcode, pieces: &[Piece]) {
    let mut pieces = pieces.iter();
    body.op(NEWEST, opcode, |_| pieces.next().expect("a piece for each operand").clone());
}

/// The next round, or on.
fn round(body: &mut RawBody, choices: &mut Choices<'_>, counter: u16, head: usize, end: usize) {
    put(body, Opcode::AddI32, &[counter, ONE, counter].map(Piece::U16));
    let condition = free4(choices);
    put(body, Opcode::CmpLtI32S, &[counter, LIMIT, condition].map(Piece::U16));
    let (condition, again, on) = (Piece::U16(condition), moves(choices), moves(choices));
    put(body, Opcode::CondBr, &[condition, Piece::Target(head), Piece::Moves(again), Piece::Target(end), Piece::Moves(on)]);
}

/// Ops that go on, with operands from the free registers; accesses with an index that is mostly in range.
fn straight(body: &mut RawBody, choices: &mut Choices<'_>) {
    for _ in 0..choices.below(12) {
        let opcode = choices.pick(&opcodes());
        if opcode.mnemonic().starts_with("buffer.") {
            index(body, choices);
        }
        body.op(NEWEST, opcode, |operand| operand_of(choices, opcode, operand));
    }
}

/// An index below the number of elements, with or without a sum or a product in front; now and then any number.
fn index(body: &mut RawBody, choices: &mut Choices<'_>) {
    let computed = choices.byte();
    if computed < 80 {
        let pieces = [free8(choices), free8(choices), INDEX].map(Piece::U16);
        put(body, choices.pick(&[Opcode::AddI64, Opcode::MulI64]), &pieces);
        put(body, Opcode::AndI64, &[INDEX, MASK, INDEX].map(Piece::U16));
    } else if computed < 254 {
        put(body, Opcode::AndI64, &[free8(choices), MASK, INDEX].map(Piece::U16));
    }
}

/// Everything that computes in registers or touches elements, and cannot fail on most operands.
fn opcodes() -> Vec<Opcode> {
    let computes = |opcode: &Opcode| {
        let plain = |operand: &OperandInfo| {
            matches!(operand.kind, OperandKind::X4 | OperandKind::X8 | OperandKind::Imm32 | OperandKind::Imm64 | OperandKind::RefRead)
        };
        let mnemonic = opcode.mnemonic();
        let element = mnemonic.starts_with("buffer.load") || mnemonic.starts_with("buffer.store");
        let reference = opcode.info().operands.iter().any(|operand| operand.kind == OperandKind::RefRead);
        let fails = ["div.i", "rem.i", "global."].iter().any(|name| mnemonic.starts_with(name));
        opcode.info().operands.iter().all(plain) && (element || !reference) && !fails && *opcode != Opcode::Block
    };
    // Products, sums and accesses come more often, since they are fused.
    let all: Vec<Opcode> = Opcode::ALL.iter().copied().filter(computes).collect();
    let often = [
        [Opcode::MulF32, Opcode::AddF32, Opcode::MulI32, Opcode::AddI32],
        [Opcode::MulF64, Opcode::AddF64, Opcode::MulI64, Opcode::AddI64],
        [Opcode::BufferLoadI32, Opcode::BufferStoreI32, Opcode::BufferLoadF32, Opcode::BufferStoreF32],
    ];
    all.into_iter().chain(often.into_iter().flatten().cycle().take(48)).collect()
}

fn operand_of(choices: &mut Choices<'_>, opcode: Opcode, operand: &OperandInfo) -> Piece {
    let access = opcode.mnemonic().starts_with("buffer.");
    match operand.kind {
        OperandKind::X8 if access && operand.access == Access::Read && operand.name.ends_with("offset") => Piece::U16(INDEX),
        OperandKind::X4 => Piece::U16(free4(choices)),
        OperandKind::X8 => Piece::U16(free8(choices)),
        OperandKind::Imm32 => Piece::U32(literal(choices) as u32),
        OperandKind::Imm64 => Piece::U64(literal(choices)),
        OperandKind::RefRead => Piece::U16(REF),
        other => panic!("{other:?} is not asked for"),
    }
}

/// Few registers, so that results are used again, often right away.
fn free4(choices: &mut Choices<'_>) -> u16 {
    let few = choices.byte() < 200;
    choices.below(if few { 6 } else { usize::from(FREE) }) as u16
}

fn free8(choices: &mut Choices<'_>) -> u16 {
    free4(choices) & !1
}

/// Numbers of every kind; among floats different NaNs, infinities and zeros of both signs.
fn literal(choices: &mut Choices<'_>) -> u64 {
    const FLOATS: [u32; 8] = [0x7FC0_0001, 0xFFC0_0002, 0x7F80_0003, 0x7F80_0000, 0xFF80_0000, 0x8000_0000, 0x3FC0_0000, 0x7F7F_FFFF];
    match choices.byte() {
        0..60 => u64::from(choices.byte()),
        60..140 => u64::from(choices.pick(&FLOATS)) << 32 | u64::from(choices.pick(&FLOATS)),
        140..200 => (f64::from(f32::from_bits(choices.pick(&FLOATS)))).to_bits() ^ u64::from(choices.byte() % 4),
        _ => (0..8).fold(0, |number, _| number << 8 | u64::from(choices.byte())),
    }
}

fn moves(choices: &mut Choices<'_>) -> Vec<(u16, u16)> {
    (0..choices.below(4)).map(|_| (free4(choices), free4(choices))).collect()
}

/// Results or status, what is in the buffer, and the fuel that was used.
type Outcome = (Result<Vec<u64>, Status>, Vec<u8>, Option<u64>);

fn run(program: &Program, config: Config, inputs: &[u64]) -> Outcome {
    let mut running = program.start_with(&Linker::new(), config);
    running.store.set_fuel(100_000);
    let bytes: Vec<u8> = inputs.iter().flat_map(|word| word.to_le_bytes()).collect();
    let span = Span::copy_of(&bytes, &MemoryAccount::default()).unwrap();
    let mut arguments: Vec<Value> = vec![Buffer::new(span.clone(), Origin::Host).into()];
    arguments.extend(inputs.iter().map(|word| Value::I64(*word as i64)));
    let result = running.call("run", &arguments);
    let results = result.map(|results| results.iter().map(bits).collect()).map_err(|error| error.status());
    (results, span.to_vec().unwrap(), running.store.fuel())
}

fn inputs(choices: &mut Choices<'_>) -> Vec<u64> {
    (0..ELEMENTS).map(|_| literal(choices)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn loops_compute_the_same_in_every_way(choices in vec(any::<u8>(), 0..600)) {
        let mut choices = Choices::new(&choices);
        let inputs = inputs(&mut choices);
        let program = program(&mut choices);
        let wanted = run(&program, Config::new().dispatch(Dispatch::Reference), &inputs);
        for dispatch in [Dispatch::Automatic, Dispatch::Portable] {
            prop_assert_eq!(&run(&program, Config::new().dispatch(dispatch), &inputs), &wanted, "{:?}", dispatch);
        }
        let metered = |dispatch| run(&program, Config::new().fuel(FuelMetering::On).dispatch(dispatch), &inputs);
        prop_assert_eq!(metered(Dispatch::Automatic), metered(Dispatch::Reference));
    }
}

/// The comparison is worth something only if most loops run to their end.
#[test]
fn most_of_these_loops_finish() {
    let mut finished = 0;
    for seed in 0..200_u64 {
        let bytes: Vec<u8> = (0..600_u64).map(|at| (seed * 600 + at).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0]).collect();
        let mut choices = Choices::new(&bytes);
        let inputs = inputs(&mut choices);
        finished += u32::from(run(&program(&mut choices), Config::new(), &inputs).0.is_ok());
    }
    assert!(finished >= 120, "{finished} of 200 finish");
}
