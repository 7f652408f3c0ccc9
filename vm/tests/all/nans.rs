//! Payloads of NaNs: whether a product and a sum, or a load, a sum and a store, are one op or several, the same bits come out.

use crate::support::*;
use vmfb_bytecode::isa::{Op, RefRead, X4, X8};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Buffer, Config, Dispatch, Linker, Origin, Value};

/// NaNs of both signs, quiet and signalling, with payloads that tell them apart; infinities, zeros, numbers.
const FLOATS: [u32; 10] =
    [0x7FC0_0001, 0xFFC0_0002, 0x7F80_0003, 0x7FC0_0009, 0x7F80_0000, 0xFF80_0000, 0x8000_0000, 0, 0x3FC0_0000, 0x7F7F_FFFF];

/// Programs of two float arguments and one in memory and in a register, in every order of summands: `0rfff_f` and the like.
fn programs() -> [Program; 6] {
    let (element, sum) = (X4(8), X4(9));
    let load = Op::BufferLoadF32 { source: RefRead::new(0), source_offset: X8(4), dst: element };
    let store = Op::BufferStoreF32 { target: RefRead::new(0), target_offset: X8(4), value: sum };
    let (a, b, c) = (X4(0), X4(1), X4(2));
    let forms: [&[Op<'_>]; 6] = [
        &[Op::MulF32 { a, b, dst: sum }, Op::AddF32 { a: sum, b: c, dst: sum }],
        &[Op::MulF32 { a, b, dst: sum }, Op::AddF32 { a: c, b: sum, dst: sum }],
        &[load, Op::AddF32 { a: element, b: a, dst: sum }, store],
        &[load, Op::AddF32 { a, b: element, dst: sum }, store],
        &[load, Op::FmaF32 { a, b, c: element, dst: sum }, store],
        &[load, Op::MulF32 { a, b, dst: sum }, Op::AddF32 { a: element, b: sum, dst: sum }, store],
    ];
    forms.map(|ops| {
        let mut program = Program::new(NEWEST);
        program.export("run", "0rfff_f", |f| {
            f.start_block();
            f.i64(4, 0);
            ops.iter().for_each(|op| _ = f.op(*op));
            f.ret([v(9)]);
        });
        program
    })
}

/// The bits of all results, for every triple of numbers.
fn results(program: &Program, dispatch: Dispatch) -> Vec<u64> {
    let mut running = program.start_with(&Linker::new(), Config::new().dispatch(dispatch));
    let triples = FLOATS.iter().flat_map(|a| FLOATS.iter().flat_map(move |b| FLOATS.iter().map(move |c| [*a, *b, *c])));
    let mut run = |[a, b, c]: [u32; 3]| {
        let memory = Span::copy_of(&c.to_le_bytes(), &MemoryAccount::default()).unwrap();
        let [a, b, c] = [a, b, c].map(|bits| Value::F32(f32::from_bits(bits)));
        bits(&running.call("run", &[Buffer::new(memory, Origin::Host).into(), a, b, c]).unwrap()[0])
    };
    triples.map(&mut run).collect()
}

#[test]
fn fused_sums_have_the_payloads_of_separate_ones() {
    for (form, program) in programs().iter().enumerate() {
        let wanted = results(program, Dispatch::Reference);
        for dispatch in [Dispatch::Portable, Dispatch::Automatic] {
            assert_eq!(results(program, dispatch), wanted, "form {form}, {dispatch:?}");
        }
    }
}

/// As the processor has it, the first NaN stays, made quiet.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_first_of_two_nans_stays() {
    let [product_first, addend_first, ..] = programs();
    for (program, wanted) in [(product_first, 0x7FC0_0001), (addend_first, 0xFFC0_0002)] {
        let mut running = program.start();
        let number = |bits: u32| Value::F32(f32::from_bits(bits));
        let arguments = [null(), number(0x7FC0_0001), number(0x3F80_0000), number(0xFFC0_0002)];
        assert_eq!(bits(&running.call("run", &arguments).unwrap()[0]), wanted);
    }
}
