//! Buffers: access rights before bounds, bounds without wrap-around, alignment, units of the ages, bulk ops.

use crate::support::*;
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{Op, RefMove, RefRead, X4, X8};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Buffer, Config, Linker, List, Origin, Ref, Result, Status, Value};

const SOURCE: RefRead = RefRead::new(0);
const TARGET: RefRead = RefRead::new(1);

/// A writable buffer with the given content.
fn buffer(bytes: &[u8]) -> Buffer {
    Buffer::new(Span::copy_of(bytes, &MemoryAccount::default()).unwrap(), Origin::Host)
}

fn content(buffer: &Buffer) -> Vec<u8> {
    buffer.span().to_vec().unwrap()
}

/// A program of one op: values are given in calling convention, `results` are value registers from i16 on.
fn single(version: BytecodeVersion, convention: &str, op: Op<'_>) -> Running {
    let mut program = Program::new(version);
    program.export("run", convention, |f| {
        f.start_block();
        f.op(op);
        if convention.ends_with("_v") {
            f.ret([])
        } else if convention.ends_with("_r") {
            f.ret([r(2)])
        } else {
            f.ret([v(16)])
        };
    });
    program.start()
}

/// The ops that load one element at the offset in i0:1: convention, op, size.
fn loads() -> [(&'static str, Op<'static>, u64); 8] {
    let (source, source_offset) = (SOURCE, X8(0));
    [
        ("0rI_i", Op::BufferLoadI8U { source, source_offset, dst: X4(16) }, 1),
        ("0rI_i", Op::BufferLoadI8S { source, source_offset, dst: X4(16) }, 1),
        ("0rI_i", Op::BufferLoadI16U { source, source_offset, dst: X4(16) }, 2),
        ("0rI_i", Op::BufferLoadI16S { source, source_offset, dst: X4(16) }, 2),
        ("0rI_i", Op::BufferLoadI32 { source, source_offset, dst: X4(16) }, 4),
        ("0rI_f", Op::BufferLoadF32 { source, source_offset, dst: X4(16) }, 4),
        ("0rI_I", Op::BufferLoadI64 { source, source_offset, dst: X8(16) }, 8),
        ("0rI_F", Op::BufferLoadF64 { source, source_offset, dst: X8(16) }, 8),
    ]
}

/// The ops that store one element at the offset in i0:1: convention, op, size.
fn stores() -> [(&'static str, Op<'static>, u64); 6] {
    let (target, target_offset) = (SOURCE, X8(0));
    [
        ("0rIi_v", Op::BufferStoreI8 { target, target_offset, value: X4(2) }, 1),
        ("0rIi_v", Op::BufferStoreI16 { target, target_offset, value: X4(2) }, 2),
        ("0rIi_v", Op::BufferStoreI32 { target, target_offset, value: X4(2) }, 4),
        ("0rIf_v", Op::BufferStoreF32 { target, target_offset, value: X4(2) }, 4),
        ("0rII_v", Op::BufferStoreI64 { target, target_offset, value: X8(2) }, 8),
        ("0rIF_v", Op::BufferStoreF64 { target, target_offset, value: X8(2) }, 8),
    ]
}

/// A value of the kind that the convention's last argument has.
fn sample(convention: &str) -> Value {
    match convention.as_bytes()[3] {
        b'i' => 0x1122_3344.into(),
        b'f' => f32::from_bits(0x1122_3344).into(),
        b'I' => 0x1122_3344_5566_7788_i64.into(),
        _ => f64::from_bits(0x1122_3344_5566_7788).into(),
    }
}

#[test]
fn loads_extend_and_count_elements() {
    let bytes = buffer(&[0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x8F]);
    let wanted = [0x81, 0xFFFF_FF81, 0x8382, 0xFFFF_8382, 0x8786_8584, 0x8786_8584, 0x8F8E_8D8C_8B8A_8988, 0x8F8E_8D8C_8B8A_8988];
    for version in VERSIONS {
        for ((convention, op, _), wanted) in loads().into_iter().zip(wanted) {
            let results = single(version, convention, op).call("run", &[bytes.clone().into(), 1_i64.into()]).unwrap();
            assert_eq!(bits(&results[0]), wanted, "{op:?}");
        }
    }
}

#[test]
fn stores_keep_the_low_bits_and_count_elements() {
    for version in VERSIONS {
        for (convention, op, size) in stores() {
            let target = buffer(&[0xEE; 24]);
            single(version, convention, op).call("run", &[target.clone().into(), 1_i64.into(), sample(convention)]).unwrap();
            let mut wanted = vec![0xEE; 24];
            let value = bits(&sample(convention)).to_le_bytes();
            wanted[size as usize..2 * size as usize].copy_from_slice(&value[..size as usize]);
            assert_eq!(content(&target), wanted, "{op:?}");
        }
    }
}

/// Element offsets of which some wrap to small numbers when they are scaled or added to: none may pass.
fn bad_offsets(length: u64, size: u64) -> Vec<i64> {
    let beyond = length / size;
    let wrapping = [
        1 << 61,
        1 << 62,
        1 << 63,
        (1 << 61) - 1,
        (1 << 62) - 1,
        (1 << 63) - 1,
        u64::MAX,
        u64::MAX / size,
        (u64::MAX / size).saturating_add(1),
    ];
    [beyond, beyond + 1].into_iter().chain(wrapping).map(|offset| offset as i64).collect()
}

#[test]
fn elements_outside_are_out_of_range() {
    const LENGTH: u64 = 17;
    for version in VERSIONS {
        for (convention, op, size) in loads() {
            let mut running = single(version, convention, op);
            let source = buffer(&[0; LENGTH as usize]);
            running.call("run", &[source.clone().into(), (LENGTH as i64 / size as i64 - 1).into()]).unwrap();
            for offset in bad_offsets(LENGTH, size) {
                assert_eq!(
                    status(running.call("run", &[source.clone().into(), offset.into()])),
                    Status::OutOfRange,
                    "{op:?} at {offset:#x}"
                );
            }
        }
        for (convention, op, size) in stores() {
            let mut running = single(version, convention, op);
            let target = buffer(&[7; LENGTH as usize]);
            for offset in bad_offsets(LENGTH, size) {
                let result = running.call("run", &[target.clone().into(), offset.into(), sample(convention)]);
                assert_eq!(status(result), Status::OutOfRange, "{op:?} at {offset:#x}");
            }
            assert_eq!(content(&target), [7; LENGTH as usize]);
        }
    }
}

/// A program with every op that writes, on a read-only buffer and far outside: the access right is looked at first.
#[test]
fn access_rights_come_before_bounds() {
    let constant = Buffer::constant(vec![1; 16]);
    for version in VERSIONS {
        for (convention, op, _) in stores() {
            let result = single(version, convention, op).call("run", &[constant.clone().into(), (-1_i64).into(), sample(convention)]);
            assert_eq!(status(result), Status::PermissionDenied, "{op:?}");
        }
        for (op, wide) in fills() {
            let convention = if wide { "0rIII_v" } else { "0rIIi_v" };
            let value = if wide { Value::I64(1) } else { Value::I32(1) };
            let result = single(version, convention, op).call("run", &[constant.clone().into(), (-1_i64).into(), (-1_i64).into(), value]);
            assert_eq!(status(result), Status::PermissionDenied, "{op:?}");
        }
        let arguments = [buffer(&[0; 4]).into(), constant.clone().into(), 0_i64.into(), (-1_i64).into(), (-1_i64).into()];
        assert_eq!(status(single(version, "0rrIII_v", COPY).call("run", &arguments)), Status::PermissionDenied);
    }
    assert_eq!(content(&constant), [1; 16]);
}

const COPY: Op<'static> = Op::BufferCopy { source: SOURCE, source_offset: X8(0), target: TARGET, target_offset: X8(2), length: X8(4) };
const COMPARE: Op<'static> = Op::BufferCompare { a: SOURCE, a_offset: X8(0), b: TARGET, b_offset: X8(2), length: X8(4), dst: X4(16) };
const HASH: Op<'static> = Op::BufferHash { source: SOURCE, source_offset: X8(0), length: X8(2), dst: X8(16) };

/// The fills of the range at i0:1, i2:3, with i4 or i4:5, and whether their value is wide.
fn fills() -> [(Op<'static>, bool); 6] {
    let (target, target_offset, length) = (SOURCE, X8(0), X8(2));
    [
        (Op::BufferFillI8 { target, target_offset, length, value: X4(4) }, false),
        (Op::BufferFillI16 { target, target_offset, length, value: X4(4) }, false),
        (Op::BufferFillI32 { target, target_offset, length, value: X4(4) }, false),
        (Op::BufferFillF32 { target, target_offset, length, value: X4(4) }, false),
        (Op::BufferFillI64 { target, target_offset, length, value: X8(4) }, true),
        (Op::BufferFillF64 { target, target_offset, length, value: X8(4) }, true),
    ]
}

#[test]
fn null_and_other_objects_are_no_buffers() {
    let wrong = [null(), Value::Ref(List::of_values([]).unwrap().into())];
    for version in VERSIONS {
        for wrong in &wrong {
            for (convention, op, _) in loads() {
                assert_eq!(status(single(version, convention, op).call("run", &[wrong.clone(), 0_i64.into()])), Status::InvalidArgument);
            }
            for (convention, op, _) in stores() {
                let result = single(version, convention, op).call("run", &[wrong.clone(), 0_i64.into(), sample(convention)]);
                assert_eq!(status(result), Status::InvalidArgument);
            }
            let zero = Value::I64(0);
            let good = Value::from(buffer(&[0; 4]));
            for op in [COPY, COMPARE] {
                let convention = if op == COPY { "0rrIII_v" } else { "0rrIII_i" };
                for (a, b) in [(wrong, &good), (&good, wrong)] {
                    let arguments = [a.clone(), b.clone(), zero.clone(), zero.clone(), zero.clone()];
                    assert_eq!(status(single(version, convention, op).call("run", &arguments)), Status::InvalidArgument);
                }
            }
            let length = single(version, "0r_I", Op::BufferLength { buffer: SOURCE, dst: X8(16) }).call("run", std::slice::from_ref(wrong));
            assert_eq!(status(length), Status::InvalidArgument);
            for (op, wide) in fills() {
                let (convention, value) = if wide { ("0rIII_v", Value::I64(1)) } else { ("0rIIi_v", Value::I32(1)) };
                let result = single(version, convention, op).call("run", &[wrong.clone(), zero.clone(), zero.clone(), value]);
                assert_eq!(status(result), Status::InvalidArgument);
            }
        }
    }
}

/// Byte ranges at the end, outside, and ones whose sum wraps: `(offset, length, fits in 16 bytes)`.
const RANGES: [(i64, i64, bool); 10] = [
    (0, 16, true),
    (16, 0, true),
    (15, 1, true),
    (17, 0, false),
    (16, 1, false),
    (0, 17, false),
    (-1, 1, false),
    (-1, 2, false),
    (1, -1, false),
    (i64::MIN, i64::MIN, false),
];

fn outcome<T>(result: Result<T>) -> std::result::Result<(), Status> {
    result.map(|_| ()).map_err(|error| error.status())
}

#[test]
fn byte_ranges_do_not_wrap() {
    for version in VERSIONS {
        for (offset, length, fits) in RANGES {
            let wanted = if fits { Ok(()) } else { Err(Status::OutOfRange) };
            let (small, large) = (buffer(&[0; 16]), buffer(&[0; 64]));
            for op in [COPY, COMPARE] {
                let convention = if op == COPY { "0rrIII_v" } else { "0rrIII_i" };
                let mut running = single(version, convention, op);
                let mut run = |a: &Buffer, b: &Buffer, at: i64, bt: i64| {
                    outcome(running.call("run", &[a.clone().into(), b.clone().into(), at.into(), bt.into(), length.into()]))
                };
                assert_eq!(run(&small, &large, offset, 0), wanted, "{version} {op:?} {offset} {length}");
                assert_eq!(run(&large, &small, 0, offset), wanted, "{version} {op:?} {offset} {length}");
            }
            if version.major() >= 15 {
                let hash = single(version, "0rII_I", HASH).call("run", &[small.clone().into(), offset.into(), length.into()]);
                assert_eq!(outcome(hash), wanted);
            }
            let clone = Op::BufferClone {
                source: SOURCE,
                offset: X8(0),
                length: X8(2),
                alignment: (version.major() >= 15).then_some(X4(ZERO)),
                dst: RefMove::new(2),
            };
            let result = single(version, "0rII_r", clone).call("run", &[small.clone().into(), offset.into(), length.into()]);
            assert_eq!(outcome(result), wanted, "clone {offset} {length}");
            let fill = fills()[0].0;
            let result = single(version, "0rIIi_v", fill).call("run", &[small.into(), offset.into(), length.into(), 1.into()]);
            assert_eq!(outcome(result), wanted, "fill {offset} {length}");
        }
    }
}

/// Elements since 14, bytes before.
#[test]
fn fills_count_elements_since_14() {
    for version in VERSIONS.into_iter().filter(|version| version.major() >= 14) {
        for ((op, wide), size) in fills().into_iter().zip([1_usize, 2, 4, 4, 8, 8]) {
            let target = buffer(&[0xEE; 40]);
            let pattern = 0x1122_3344_5566_7788_i64;
            let (convention, value) = if wide { ("0rIII_v", Value::I64(pattern)) } else { ("0rIIi_v", Value::I32(pattern as i32)) };
            let mut running = single(version, convention, op);
            running.call("run", &[target.clone().into(), 1_i64.into(), 3_i64.into(), value.clone()]).unwrap();
            let mut wanted = vec![0xEE; 40];
            for element in 1..4 {
                wanted[element * size..][..size].copy_from_slice(&pattern.to_le_bytes()[..size]);
            }
            assert_eq!(content(&target), wanted, "{op:?}");
            for (offset, length) in [(0, 41), (40 / size as i64, 1), (-1, 2), (1 << 61, 1), (0, 1 << 61), (1, i64::MIN), (i64::MAX, 1)] {
                let result = running.call("run", &[target.clone().into(), offset.into(), length.into(), value.clone()]);
                assert_eq!(status(result), Status::OutOfRange, "{op:?} {offset} {length}");
            }
            assert_eq!(content(&target), wanted);
        }
    }
}

/// Measured: `fill.i32` with offset 5 and length 11 writes bytes 4 to 11.
#[test]
fn fills_of_13_round_bytes_down_to_elements() {
    for ((op, wide), size) in fills().into_iter().zip([1_usize, 2, 4, 4, 8, 8]) {
        let target = buffer(&[0xEE; 24]);
        let pattern = 0x1122_3344_5566_7788_i64;
        let (convention, value) = if wide { ("0rIII_v", Value::I64(pattern)) } else { ("0rIIi_v", Value::I32(pattern as i32)) };
        let mut running = single(BytecodeVersion::V13, convention, op);
        running.call("run", &[target.clone().into(), 5_i64.into(), 11_i64.into(), value.clone()]).unwrap();
        let (start, length) = (5 / size * size, 11 / size * size);
        let mut wanted = vec![0xEE; 24];
        for (index, byte) in wanted[start..start + length].iter_mut().enumerate() {
            *byte = pattern.to_le_bytes()[index % size];
        }
        assert_eq!(content(&target), wanted, "{op:?}");
        if size == 4 {
            assert_eq!((start, start + length), (4, 12));
        }
        // Rounding comes before the check, so a part of an element past the end is no error; a whole one is.
        let last = 24 - size as i64;
        let past = size as i64 - 1;
        running.call("run", &[target.clone().into(), (last + past).into(), (size as i64 + past).into(), value.clone()]).unwrap();
        let result = running.call("run", &[target.clone().into(), 24_i64.into(), (size as i64).into(), value.clone()]);
        assert_eq!(status(result), Status::OutOfRange);
        let result = running.call("run", &[target.clone().into(), (-1_i64).into(), 16_i64.into(), value]);
        assert_eq!(status(result), Status::OutOfRange);
    }
}

#[test]
fn copies_overlap_like_memmove() {
    for version in VERSIONS {
        for (from, to) in [(0_i64, 3_i64), (3, 0), (2, 2)] {
            let bytes: Vec<u8> = (0..40).collect();
            let target = buffer(&bytes);
            let both = Value::from(target.clone());
            single(version, "0rrIII_v", COPY).call("run", &[both.clone(), both, from.into(), to.into(), 33_i64.into()]).unwrap();
            let mut wanted = bytes;
            wanted.copy_within(from as usize..from as usize + 33, to as usize);
            assert_eq!(content(&target), wanted);
        }
    }
}

#[test]
fn compares_look_at_bytes() {
    for version in VERSIONS {
        let mut running = single(version, "0rrIII_i", COMPARE);
        let (a, b) = (buffer(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), buffer(&[0, 2, 3, 4, 5, 6, 7, 8, 9, 11]));
        let mut equal = |from: i64, to: i64, length: i64| -> u64 {
            bits(&running.call("run", &[a.clone().into(), b.clone().into(), from.into(), to.into(), length.into()]).unwrap()[0])
        };
        assert_eq!((equal(1, 1, 8), equal(0, 0, 9), equal(1, 1, 9), equal(0, 3, 0), equal(1, 2, 3)), (1, 0, 0, 1, 0));
    }
}

/// SipHash-2-4 with the key 00 … 0F: measured values.
#[test]
fn hashes_are_siphash() {
    for version in VERSIONS.into_iter().filter(|version| version.major() >= 15) {
        let mut running = single(version, "0rII_I", HASH);
        let mut hash = |bytes: &[u8], offset: i64, length: i64| {
            bits(&running.call("run", &[buffer(bytes).into(), offset.into(), length.into()]).unwrap()[0])
        };
        assert_eq!(hash(&[], 0, 0), 8_246_050_544_436_514_353);
        assert_eq!(hash(&[0; 15], 0, 15), 3_740_926_846_336_961_724);
        // The vector of the algorithm's paper: bytes 00 … 0E.
        let counting: Vec<u8> = (0..15).collect();
        assert_eq!(hash(&counting, 0, 15), 0xa129_ca61_49be_45e5);
        let surrounded: Vec<u8> = [9, 9, 9].into_iter().chain(0..15).chain([9]).collect();
        assert_eq!(hash(&surrounded, 3, 15), 0xa129_ca61_49be_45e5);
    }
}

fn alloc(version: BytecodeVersion) -> Running {
    let alignment = (version.major() >= 15).then_some(X4(2));
    single(version, "0Ii_r", Op::BufferAlloc { length: X8(0), alignment, dst: RefMove::new(2) })
}

#[test]
fn new_buffers_are_zero_writable_and_aligned() {
    for version in VERSIONS {
        for length in [0_i64, 1, 100] {
            let found = alloc(version).call("run", &[length.into(), 0.into()]).unwrap().remove(0);
            let buffer = found.as_ref().unwrap().buffer("the result").unwrap().clone();
            assert_eq!(content(&buffer), vec![0; length as usize]);
            assert!(buffer.span().is_writable());
            assert_eq!(buffer.origin(), Origin::Guest);
            assert_eq!(buffer.span().address().addr() % 16, 0);
        }
    }
}

#[test]
fn alignments_are_powers_of_two() {
    for version in VERSIONS {
        for (alignment, good) in
            [(0, true), (1, true), (64, true), (4096, true), (8192, true), (3, false), (-1, false), (i32::MIN, false), (24, false)]
        {
            let result = alloc(version).call("run", &[8_i64.into(), alignment.into()]);
            // Versions 13 and 14 have no such operand.
            if good || version.major() < 15 {
                let result = result.unwrap_or_else(|error| panic!("{alignment}: {error}"));
                let buffer = result[0].as_ref().unwrap().buffer("the result").unwrap().clone();
                if version.major() >= 15 {
                    assert_eq!(buffer.span().address().addr() % alignment.max(16) as usize, 0);
                }
            } else {
                assert_eq!(status(result), Status::InvalidArgument, "{alignment}");
            }
        }
    }
}

#[test]
fn clones_are_writable_copies() {
    for version in VERSIONS {
        let clone = |register| Op::BufferClone {
            source: SOURCE,
            offset: X8(0),
            length: X8(2),
            alignment: (version.major() >= 15).then_some(X4(register)),
            dst: RefMove::new(2),
        };
        let constant = Buffer::constant((0..20).collect::<Vec<u8>>());
        let result = single(version, "0rII_r", clone(ZERO)).call("run", &[constant.clone().into(), 3_i64.into(), 5_i64.into()]).unwrap();
        let copy = result[0].as_ref().unwrap().buffer("the result").unwrap().clone();
        assert_eq!((content(&copy), copy.origin()), (vec![3, 4, 5, 6, 7], Origin::Guest));
        copy.writable().unwrap().write(0, &[9]).unwrap();
        assert_eq!(content(&constant)[3], 3);
        if version.major() >= 15 {
            let mut running = single(version, "0rIIi_r", clone(4));
            for (alignment, wanted) in [(32, Ok(())), (-8, Err(Status::InvalidArgument)), (6, Err(Status::InvalidArgument))] {
                let result = running.call("run", &[constant.clone().into(), 0_i64.into(), 5_i64.into(), alignment.into()]);
                assert_eq!(outcome(result), wanted);
            }
        }
    }
}

#[test]
fn lengths() {
    for version in VERSIONS {
        let mut running = single(version, "0r_I", Op::BufferLength { buffer: SOURCE, dst: X8(16) });
        for length in [0, 1, 1000] {
            assert_eq!(running.call_one::<i64>("run", (buffer(&vec![0; length]),)).unwrap(), length as i64);
        }
    }
}

/// -1 bytes and other lengths that nobody has: RESOURCE_EXHAUSTED, and the store goes on.
#[test]
fn allocations_that_are_too_large_fail() {
    for version in VERSIONS {
        for limit in [u64::MAX, 1 << 20] {
            let mut program = Program::new(version);
            program.export("run", "0I_r", |f| {
                f.start_block();
                f.alloc(0, 0).ret([r(0)]);
            });
            let mut running = program.start_with(&Linker::new(), Config::new().memory_limit(limit));
            for length in [-1, i64::MIN, i64::MAX, 1 << 62, i64::MAX - 64] {
                assert_eq!(status(running.call("run", &[length.into()])), Status::ResourceExhausted, "{length}");
            }
            if limit == 1 << 20 {
                assert_eq!(status(running.call("run", &[(1_i64 << 20).into()])), Status::ResourceExhausted);
            }
            assert_eq!(running.used(), 0);
            let found: Ref = running.call_one("run", (1000_i64,)).unwrap();
            assert!(running.used() >= 1000);
            drop(found);
            assert_eq!(running.used(), 0);
        }
    }
}

/// A huge alignment reserves addresses, so it counts against the limit.
#[test]
fn alignments_count_as_memory() {
    let alignment = Some(X4(2));
    let mut program = Program::new(NEWEST);
    program.export("run", "0Ii_r", |f| {
        f.start_block();
        f.op(Op::BufferAlloc { length: X8(0), alignment, dst: RefMove::new(0) }).ret([r(0)]);
    });
    let mut running = program.start_with(&Linker::new(), Config::new().memory_limit(1 << 20));
    assert_eq!(status(running.call("run", &[8_i64.into(), (1 << 30).into()])), Status::ResourceExhausted);
    running.call("run", &[8_i64.into(), (1 << 12).into()]).unwrap();
}
