//! Loops as compilers write them, which translation makes fewer ops of: whatever it does, the results are those of one op for each
//! instruction.

use crate::generate::Choices;
use crate::support::*;
use proptest::collection::vec;
use proptest::prelude::*;
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{FunctionRef, Move, MoveList, Op, RefRead, X4, X8};
use vmfb_vm::{Buffer, Config, Dispatch, Engine, FuelMetering, Interruption, Linker, Origin, Store, Value};

/// Pairs that programs compute indices in.
const INDICES: [u16; 4] = [0, 2, 4, 6];
/// Registers of floats, and of integers.
const FLOATS: [u16; 3] = [8, 9, 10];
const INTEGERS: [u16; 3] = [11, 12, 13];
/// The counter of the loop, its limit and its step, and the largest index.
const COUNTER: u16 = 14;
const LIMIT: u16 = 16;
const STEP: u16 = 18;
const MASK: u16 = 20;
/// The condition of branches; nothing else uses it, or everything does.
const CONDITION: u16 = 22;

/// Elements of each buffer.
const LENGTH: usize = 64;

/// Appends an op; about half of them are the beginning or the middle of something that can be fused.
fn append(f: &mut Body, choices: &mut Choices<'_>, helper: Option<FunctionRef>) {
    let index = |choices: &mut Choices<'_>| X8(choices.pick(&[0, 2, 4, 6, COUNTER]));
    let pair = |choices: &mut Choices<'_>| X8(choices.pick(&INDICES));
    let float = |choices: &mut Choices<'_>| X4(choices.pick(&FLOATS));
    let integer = |choices: &mut Choices<'_>| X4(choices.pick(&INTEGERS));
    let (floats, integers) = (RefRead::new(0), RefRead::new(1));
    match choices.below(20) {
        0..=4 => {
            // An index and an access.
            let at = pair(choices);
            match choices.below(5) {
                0 => _ = f.op(Op::AndI64 { a: index(choices), b: X8(MASK), dst: at }),
                1 => _ = f.op(Op::AddI64 { a: index(choices), b: index(choices), dst: at }),
                2 => _ = f.op(Op::FmaI64 { a: index(choices), b: index(choices), c: index(choices), dst: at }),
                3 => {
                    f.op(Op::AddI64 { a: index(choices), b: index(choices), dst: at });
                    f.op(Op::AddI64 { a: index(choices), b: at, dst: at });
                }
                _ => {
                    f.op(Op::MulI64 { a: index(choices), b: index(choices), dst: at });
                    f.op(Op::AddI64 { a: at, b: index(choices), dst: at });
                    f.op(Op::AddI64 { a: at, b: index(choices), dst: at });
                }
            }
            match choices.below(5) {
                0 => _ = f.op(Op::BufferLoadF32 { source: floats, source_offset: at, dst: float(choices) }),
                1 => _ = f.op(Op::BufferLoadI32 { source: integers, source_offset: at, dst: integer(choices) }),
                2 => _ = f.op(Op::BufferStoreI32 { value: integer(choices), target: integers, target_offset: at }),
                3 => _ = f.op(Op::BufferLoadI8S { source: integers, source_offset: at, dst: integer(choices) }),
                _ => _ = f.op(Op::BufferStoreF32 { value: float(choices), target: floats, target_offset: at }),
            }
        }
        5 | 6 => {
            // An update of an element.
            let (at, loaded, sum) = (index(choices), float(choices), float(choices));
            f.op(Op::BufferLoadF32 { source: floats, source_offset: at, dst: loaded });
            match choices.below(3) {
                0 => _ = f.op(Op::AddF32 { a: float(choices), b: loaded, dst: sum }),
                1 => _ = f.op(Op::FmaF32 { a: float(choices), b: float(choices), c: loaded, dst: sum }),
                _ => {
                    f.op(Op::MulF32 { a: float(choices), b: float(choices), dst: sum });
                    f.op(Op::AddF32 { a: loaded, b: sum, dst: sum });
                }
            }
            f.op(Op::BufferStoreF32 { value: sum, target: floats, target_offset: at });
        }
        7 | 8 => {
            let (at, loaded, sum) = (index(choices), integer(choices), integer(choices));
            f.op(Op::BufferLoadI32 { source: integers, source_offset: at, dst: loaded });
            match choices.below(2) {
                0 => _ = f.op(Op::AddI32 { a: loaded, b: integer(choices), dst: sum }),
                _ => _ = f.op(Op::FmaI32 { a: integer(choices), b: integer(choices), c: loaded, dst: sum }),
            }
            f.op(Op::BufferStoreI32 { value: sum, target: integers, target_offset: at });
        }
        9 => _ = f.op(Op::AndI64 { a: index(choices), b: X8(MASK), dst: pair(choices) }),
        10 => _ = f.op(Op::AddI64 { a: index(choices), b: index(choices), dst: pair(choices) }),
        11 => _ = f.op(Op::MulI32 { a: integer(choices), b: integer(choices), dst: integer(choices) }),
        12 => _ = f.op(Op::AddI32 { a: integer(choices), b: integer(choices), dst: integer(choices) }),
        13 => _ = f.op(Op::XorI32 { a: integer(choices), b: integer(choices), dst: integer(choices) }),
        14 => _ = f.op(Op::SubF32 { a: float(choices), b: float(choices), dst: float(choices) }),
        15 => _ = f.op(Op::ExtI32I64U { a: integer(choices), dst: pair(choices) }),
        // Halves of pairs.
        16 => _ = f.op(Op::AddI32 { a: X4(choices.pick(&INDICES)), b: integer(choices), dst: X4(choices.pick(&INDICES) + 1) }),
        17 => _ = f.op(Op::CmpLtI32S { a: integer(choices), b: integer(choices), dst: X4(choices.pick(&[11, 12, 13, CONDITION])) }),
        18 => {
            _ = f.op(Op::SelectI32 {
                condition: X4(CONDITION),
                if_true: integer(choices),
                if_false: integer(choices),
                dst: integer(choices),
            })
        }
        _ => {
            let (a, b, result) = (integer(choices).register(), pair(choices).register(), integer(choices).register());
            if let Some(helper) = helper {
                f.call(helper, [a, b], [result]);
            }
        }
    }
}

/// Moves among registers of the same sort, pairs as compilers write them or by halves.
fn some_moves(choices: &mut Choices<'_>) -> Vec<[u8; 4]> {
    let mut encoded = Vec::new();
    for _ in 0..choices.below(4) {
        let mut add = |from: u16, to: u16| encoded.push(Move { source: v(from), destination: v(to) }.to_bytes());
        match choices.below(4) {
            0 => add(choices.pick(&FLOATS), choices.pick(&FLOATS)),
            1 => add(choices.pick(&[11, 12, 13, CONDITION]), choices.pick(&INTEGERS)),
            2 => {
                let (from, to) = (choices.pick(&INDICES), choices.pick(&INDICES));
                add(from, to);
                add(from + 1, to + 1);
            }
            _ => add(choices.pick(&INDICES), choices.pick(&INDICES) + 1),
        }
    }
    encoded
}

/// `run(a, b, c, d, buffer of floats, buffer of integers)`: a loop, with a choice in its body.
fn looping(choices: &mut Choices<'_>) -> Program {
    let mut program = Program::new(BytecodeVersion::V17);
    let helper = program.function("0iI_i", |f| {
        f.start_block();
        // Register 4 is read before it is written.
        f.op(Op::TruncI64I32 { a: X8(2), dst: X4(5) }).op(Op::SubI32 { a: X4(5), b: X4(4), dst: X4(5) });
        f.op(Op::MulI32 { a: X4(0), b: X4(5), dst: X4(4) }).ret([v(4)]);
    });
    let helper = Some(FunctionRef::internal(helper));
    program.export("run", "0IIIIrr_IIIIIffffiiii", |f| {
        f.start_block();
        let [head, body, left, right, join, end] = std::array::from_fn(|_| f.label());
        for (register, value) in FLOATS.into_iter().zip([0.5_f32, 1.0, -2.25]) {
            f.i32(register, value.to_bits() as i32);
        }
        f.i64(COUNTER, 0).i64(LIMIT, choices.below(6) as i64).i64(STEP, 1).i64(MASK, LENGTH as i64 / 4 - 1);
        for register in INTEGERS {
            f.i32(register, choices.byte().into());
        }
        (0..choices.below(4)).for_each(|_| append(f, choices, helper));
        let entry = some_moves(choices);
        f.op(Op::Br { to: head.pc(), moves: MoveList::new(&entry) });
        f.place(head);
        if choices.byte() < 30 {
            append(f, choices, helper);
        }
        let (there, away) = (some_moves(choices), some_moves(choices));
        let (there, away) = if choices.byte() < 128 { (&[][..], &[][..]) } else { (&there[..], &away[..]) };
        f.op(Op::CmpLtI64S { a: X8(COUNTER), b: X8(LIMIT), dst: X4(CONDITION) });
        f.op(Op::CondBr {
            condition: X4(CONDITION),
            true_to: body.pc(),
            true_moves: MoveList::new(there),
            false_to: end.pc(),
            false_moves: MoveList::new(away),
        });
        f.place(body);
        (0..choices.below(8)).for_each(|_| append(f, choices, helper));
        if choices.byte() < 128 {
            let condition = X4(choices.pick(&[11, CONDITION]));
            match choices.below(3) {
                0 => _ = f.op(Op::CmpEqI32 { a: X4(11), b: X4(12), dst: condition }),
                1 => _ = f.op(Op::CmpNzI64 { a: X8(2), dst: condition }),
                _ => _ = f.op(Op::CmpLtF32O { a: X4(8), b: X4(9), dst: condition }).op(Op::CmpNzI32 { a: condition, dst: condition }),
            }
            let (there, away) = (some_moves(choices), some_moves(choices));
            let (true_moves, false_moves) = (MoveList::new(&there), MoveList::new(&away));
            f.op(Op::CondBr { condition, true_to: left.pc(), true_moves, false_to: right.pc(), false_moves });
        } else {
            f.op(Op::Br { to: left.pc(), moves: NO_MOVES });
        }
        f.place(left);
        (0..choices.below(4)).for_each(|_| append(f, choices, helper));
        let moves = some_moves(choices);
        f.op(Op::Br { to: join.pc(), moves: MoveList::new(&moves) });
        f.place(right);
        (0..choices.below(4)).for_each(|_| append(f, choices, helper));
        let moves = some_moves(choices);
        f.op(Op::Br { to: join.pc(), moves: MoveList::new(&moves) });
        f.place(join);
        (0..choices.below(4)).for_each(|_| append(f, choices, helper));
        f.op(Op::AddI64 { a: X8(COUNTER), b: X8(STEP), dst: X8(COUNTER) });
        let back = some_moves(choices);
        f.op(Op::Br { to: head.pc(), moves: MoveList::new(&back) });
        f.place(end);
        f.ret([v(0), v(2), v(4), v(6), v(COUNTER), v(8), v(9), v(10), v(8), v(11), v(12), v(13), v(CONDITION)]);
    });
    program
}

/// What a run leaves: results or an error, the content of both buffers, fuel.
fn run(program: &Program, config: Config, read_only: bool) -> (Result<Vec<u64>, String>, Vec<u8>, Option<u64>) {
    let mut store = Store::new(&Engine::new(config), ());
    let instance = program.instantiate_with(&Linker::new(), &mut store).unwrap_or_else(|error| panic!("{error}"));
    let account = store.account().clone();
    let buffers = [(); 2].map(|()| Buffer::allocate(LENGTH * 4, 16, &account).unwrap());
    for (at, value) in (0..LENGTH).map(|at| (at * 4, at as f32 * 0.25)) {
        buffers[0].span().write(at, &value.to_le_bytes()).unwrap();
        buffers[1].span().write(at, &(at as u32).to_le_bytes()).unwrap();
    }
    let given = |buffer: &Buffer| {
        Value::from(if read_only { Buffer::new(buffer.span().clone().read_only(), Origin::Host) } else { buffer.clone() })
    };
    store.set_fuel(10_000);
    let arguments = [3.into(), 1.into(), 0.into(), 2.into(), given(&buffers[0]), given(&buffers[1])];
    let arguments = arguments.map(|value: Value| if let Value::I32(value) = value { Value::I64(value.into()) } else { value });
    let result = instance.function(&store, "run").unwrap().call(&mut store, &arguments);
    let result = result.map(|values| values.iter().map(bits).collect()).map_err(|error| error.to_string());
    let content = buffers.iter().flat_map(|buffer| buffer.span().to_vec().unwrap()).collect();
    (result, content, store.fuel())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn translation_changes_nothing(choices in vec(any::<u8>(), 0..400), read_only in 0..16) {
        let program = looping(&mut Choices::new(&choices));
        for limited in [false, true] {
            let config = || match limited {
                false => Config::new(),
                true => Config::new().fuel(FuelMetering::On).interruption(Interruption::On),
            };
            let wanted = run(&program, config().dispatch(Dispatch::Reference), read_only == 0);
            for dispatch in [Dispatch::Portable, Dispatch::Automatic] {
                let found = run(&program, config().dispatch(dispatch), read_only == 0);
                prop_assert_eq!(&found, &wanted, "{:?}, limits: {}", dispatch, limited);
            }
        }
    }
}
