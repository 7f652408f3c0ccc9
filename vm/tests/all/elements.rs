//! Element access at every address: whatever the alignment of a buffer's first byte, and whatever becomes of the registers that hold
//! the index.

use crate::support::*;
use vmfb_bytecode::isa::{Op, RefMove, RefRead, X4, X8};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Buffer, Config, Dispatch, Linker, Origin, Result, Status, Value};

const WAYS: [Dispatch; 3] = [Dispatch::Automatic, Dispatch::Portable, Dispatch::Reference];

const BUFFER: RefRead = RefRead::new(0);
/// Where the index stands, and what it is the sum of.
const INDEX: X8 = X8(10);
const VALUE4: X4 = X4(12);
const VALUE8: X8 = X8(12);

/// How a program gets at the index: as it was given, or computed right before the access, as compiled kernels do.
#[derive(Clone, Copy, Debug)]
enum Form {
    Given,
    Sum,
    Sum3,
    Product,
    ProductSum,
    And,
}

const FORMS: [Form; 6] = [Form::Given, Form::Sum, Form::Sum3, Form::Product, Form::ProductSum, Form::And];

/// Computes the index of the first argument pair (i0:1) in [`INDEX`]; i4:5 is 0 and i6:7 is 1.
fn index(f: &mut Body, form: Form) {
    let [given, zero, one] = [X8(0), X8(4), X8(6)];
    f.i64(4, 0).i64(6, 1);
    match form {
        Form::Given => f.op(Op::AndI64 { a: given, b: given, dst: X8(8) }).op(Op::OrI64 { a: X8(8), b: zero, dst: INDEX }),
        Form::Sum => f.op(Op::AddI64 { a: given, b: zero, dst: INDEX }),
        Form::Sum3 => f.op(Op::AddI64 { a: given, b: zero, dst: X8(8) }).op(Op::AddI64 { a: X8(8), b: zero, dst: INDEX }),
        Form::Product => f.op(Op::FmaI64 { a: given, b: one, c: zero, dst: INDEX }),
        Form::ProductSum => f.op(Op::FmaI64 { a: given, b: one, c: zero, dst: X8(8) }).op(Op::AddI64 { a: X8(8), b: zero, dst: INDEX }),
        Form::And => f.op(Op::AndI64 { a: given, b: given, dst: INDEX }),
    };
}

/// Loads and stores of one element: the letter of the value, size, ops. Stores take the second argument, in i2 or i2:3.
fn accesses() -> [(char, usize, Op<'static>, Op<'static>); 8] {
    let (source, source_offset, target, target_offset) = (BUFFER, INDEX, BUFFER, INDEX);
    let (four, eight) = (X4(2), X8(2));
    let store8 = Op::BufferStoreI8 { target, target_offset, value: four };
    let store16 = Op::BufferStoreI16 { target, target_offset, value: four };
    [
        ('i', 1, Op::BufferLoadI8U { source, source_offset, dst: VALUE4 }, store8),
        ('i', 1, Op::BufferLoadI8S { source, source_offset, dst: VALUE4 }, store8),
        ('i', 2, Op::BufferLoadI16U { source, source_offset, dst: VALUE4 }, store16),
        ('i', 2, Op::BufferLoadI16S { source, source_offset, dst: VALUE4 }, store16),
        ('i', 4, Op::BufferLoadI32 { source, source_offset, dst: VALUE4 }, Op::BufferStoreI32 { target, target_offset, value: four }),
        ('f', 4, Op::BufferLoadF32 { source, source_offset, dst: VALUE4 }, Op::BufferStoreF32 { target, target_offset, value: four }),
        ('I', 8, Op::BufferLoadI64 { source, source_offset, dst: VALUE8 }, Op::BufferStoreI64 { target, target_offset, value: eight }),
        ('F', 8, Op::BufferLoadF64 { source, source_offset, dst: VALUE8 }, Op::BufferStoreF64 { target, target_offset, value: eight }),
    ]
}

/// What a load gives for the bytes of an element.
fn loaded(op: &Op<'_>, bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    match op {
        Op::BufferLoadI8S { .. } => u64::from(i32::from(bytes[0] as i8) as u32),
        Op::BufferLoadI16S { .. } => u64::from(i32::from(i16::from_le_bytes([bytes[0], bytes[1]])) as u32),
        _ => u64::from_le_bytes(wide),
    }
}

fn number(letter: char, bits: u64) -> Value {
    match letter {
        'i' => Value::I32(bits as i32),
        'f' => Value::F32(f32::from_bits(bits as u32)),
        'I' => Value::I64(bits as i64),
        _ => Value::F64(f64::from_bits(bits)),
    }
}

/// Every access in every form, at every address modulo 16: all valid elements, the last one with no byte to spare, and the one
/// behind it.
#[test]
fn elements_at_every_alignment() {
    const ELEMENTS: usize = 5;
    for dispatch in WAYS {
        for form in FORMS {
            for (letter, size, load, store) in accesses() {
                let mut program = Program::new(NEWEST);
                program.export("load", &format!("0rI_{letter}"), |f| {
                    f.start_block();
                    index(f, form);
                    f.op(load).ret([v(12)]);
                });
                program.export("store", &format!("0rI{letter}_v"), |f| {
                    f.start_block();
                    index(f, form);
                    f.op(store).ret([]);
                });
                let mut running = program.start_with(&Linker::new(), Config::new().dispatch(dispatch));
                for alignment in 0..16 {
                    check_alignment(&mut running, (letter, size, load), alignment, ELEMENTS);
                }
            }
        }
    }
}

fn check_alignment(running: &mut Running, (letter, size, load): (char, usize, Op<'_>), alignment: usize, elements: usize) {
    // One byte more than the elements have, which none of them may touch, and bytes around.
    let bytes: Vec<u8> = (0..alignment + elements * size + 16).map(|at| (at as u8).wrapping_mul(37) ^ 0x80).collect();
    let span = Span::copy_of(&bytes, &MemoryAccount::default()).unwrap();
    assert!(span.address().addr().is_multiple_of(16));
    let buffer: Value = Buffer::new(span.slice(alignment, elements * size).unwrap(), Origin::Host).into();
    let mut wanted = bytes.clone();
    for element in 0..elements {
        let range = alignment + element * size..alignment + (element + 1) * size;
        let results = running.call("load", &[buffer.clone(), (element as i64).into()]).unwrap();
        assert_eq!(bits(&results[0]), loaded(&load, &bytes[range.clone()]), "{load:?} of {element} at {alignment}");
        // No quiet bit is missing, so that floats pass unchanged.
        let value = 0x3FF8_7654_3FC2_3456_u64.rotate_left(8 * u32::from(size < 4));
        running.call("store", &[buffer.clone(), (element as i64).into(), number(letter, value)]).unwrap();
        wanted[range].copy_from_slice(&value.to_le_bytes()[..size]);
        assert_eq!(span.to_vec().unwrap(), wanted, "{load:?}: store of {element} at {alignment}");
    }
    for beyond in [elements as i64, -1] {
        assert_eq!(status(running.call("load", &[buffer.clone(), beyond.into()])), Status::OutOfRange, "{load:?} at {alignment}");
        let stored = running.call("store", &[buffer.clone(), beyond.into(), number(letter, 1)]);
        assert_eq!(status(stored), Status::OutOfRange, "{load:?} at {alignment}");
    }
    // A buffer that ends within its last element does not have it.
    let short: Value = Buffer::new(span.slice(alignment, elements * size - 1).unwrap(), Origin::Host).into();
    let last = running.call("load", &[short.clone(), (elements as i64 - 1).into()]);
    assert_eq!(status(last), Status::OutOfRange);
    assert_eq!(span.to_vec().unwrap(), wanted, "nothing was written outside");
}

/// What an update does to its index: nothing, or one of its results is a half of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Half {
    None,
    LoadedLow,
    LoadedHigh,
    SumLow,
    SumHigh,
}

/// An element plus a product or a number, with the loaded value and the sum in registers that may be halves of the index (i0:1).
fn update(half: Half, fused: bool) -> Program {
    let loaded = match half {
        Half::LoadedLow => 0,
        Half::LoadedHigh => 1,
        _ => 6,
    };
    let sum = match half {
        Half::SumLow => 0,
        Half::SumHigh => 1,
        _ => 7,
    };
    let mut program = Program::new(NEWEST);
    program.export("run", "0rIii_I", |f| {
        f.start_block();
        f.op(Op::BufferLoadI32 { source: BUFFER, source_offset: X8(0), dst: X4(loaded) });
        if fused {
            f.op(Op::FmaI32 { a: X4(2), b: X4(3), c: X4(loaded), dst: X4(sum) });
        } else {
            f.op(Op::AddI32 { a: X4(loaded), b: X4(2), dst: X4(sum) });
        }
        f.op(Op::BufferStoreI32 { target: BUFFER, target_offset: X8(0), value: X4(sum) }).ret([v(0)]);
    });
    program
}

/// The same, step by step: memory, index and failure afterwards.
fn expected(half: Half, memory: &mut [i32], start: u64, addend: i32) -> Result<u64, Status> {
    let put = |index: &mut u64, value: i32, low: bool| {
        let value = u64::from(value as u32);
        *index = if low { *index >> 32 << 32 | value } else { *index & 0xFFFF_FFFF | value << 32 };
    };
    let mut index = start;
    let value = *memory.get(index as usize).ok_or(Status::OutOfRange)?;
    match half {
        Half::LoadedLow => put(&mut index, value, true),
        Half::LoadedHigh => put(&mut index, value, false),
        _ => {}
    }
    let sum = value.wrapping_add(addend);
    match half {
        Half::SumLow => put(&mut index, sum, true),
        Half::SumHigh => put(&mut index, sum, false),
        _ => {}
    }
    *memory.get_mut(index as usize).ok_or(Status::OutOfRange)? = sum;
    Ok(index)
}

#[test]
fn updates_whose_registers_are_halves_of_the_index() {
    let halves = [Half::None, Half::LoadedLow, Half::LoadedHigh, Half::SumLow, Half::SumHigh];
    for dispatch in WAYS {
        for (half, fused) in halves.into_iter().flat_map(|half| [(half, false), (half, true)]) {
            let mut running = update(half, fused).start_with(&Linker::new(), Config::new().dispatch(dispatch));
            // Small numbers are indices themselves; 0 as a high half changes nothing.
            for (start, addend) in (0..9).flat_map(|start| [-7, -1, 0, 1, 3].map(|addend| (start, addend))) {
                let before = [5, 0, 7, 1, -1, 3, 100, 2];
                let mut memory = before;
                let wanted = expected(half, &mut memory, start, addend);
                let bytes: Vec<u8> = before.iter().flat_map(|word| word.to_le_bytes()).collect();
                let span = Span::copy_of(&bytes, &MemoryAccount::default()).unwrap();
                let buffer: Value = Buffer::new(span.clone(), Origin::Host).into();
                let found = running.call("run", &[buffer, (start as i64).into(), addend.into(), 1.into()]);
                let found = found.map(|results| bits(&results[0])).map_err(|error| error.status());
                let case = format!("{dispatch:?} {half:?} fused: {fused}, {start} + {addend}");
                assert_eq!(found, wanted, "{case}");
                let words: Vec<u8> = memory.iter().flat_map(|word| word.to_le_bytes()).collect();
                assert_eq!(span.to_vec().unwrap(), words, "{case}");
            }
        }
    }
}

/// A load into a half of its own index, and then another with what is the index now.
#[test]
fn loads_into_halves_of_the_index() {
    for dispatch in WAYS {
        for form in FORMS {
            let mut program = Program::new(NEWEST);
            program.export("run", "0rI_i", |f| {
                f.start_block();
                index(f, form);
                f.op(Op::BufferLoadI32 { source: BUFFER, source_offset: INDEX, dst: X4(INDEX.0) });
                f.op(Op::BufferLoadI32 { source: BUFFER, source_offset: INDEX, dst: X4(INDEX.0 + 1) });
                f.op(Op::AssignRef { source: RefMove::moved(0), dst: RefMove::new(1) }).ret([v(INDEX.0 + 1)]);
            });
            let mut running = program.start_with(&Linker::new(), Config::new().dispatch(dispatch));
            let bytes: Vec<u8> = [3, 2, 0, 1].iter().flat_map(|word: &i32| word.to_le_bytes()).collect();
            for (start, wanted) in [(0i64, 1), (1, 0), (2, 3), (3, 2)] {
                let buffer = Buffer::new(Span::copy_of(&bytes, &MemoryAccount::default()).unwrap(), Origin::Host);
                assert_eq!(running.call_one::<i32>("run", (buffer, start)).unwrap(), wanted, "{dispatch:?} {form:?} {start}");
            }
        }
    }
}
