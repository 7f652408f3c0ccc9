//! Integer ops at their edges. Expected values are arithmetic modulo 2^32 and 2^64, or were measured on official runtimes.

use crate::support::*;
use vmfb_bytecode::isa::{Op, X4, X8};
use vmfb_vm::{HostType, IntoValues, Result, Status};

/// Runs a unary op: `unary!(NotI32 0_i32 => i32)`.
macro_rules! unary {
    (@a i32) => { A4 };
    (@a i64) => { A8 };
    (@d i32) => { D4 };
    (@d i64) => { D8 };
    ($op:ident($a:expr): $at:ident => $rt:ident) => {{
        let result: $rt = op(($a as $at,), Op::$op { a: unary!(@a $at), dst: unary!(@d $rt) });
        result
    }};
}

macro_rules! binary32 {
    ($op:ident, $a:expr, $b:expr) => {{
        let result: Result<i32> = run_op(($a as i32, $b as i32), Op::$op { a: A4, b: B4, dst: D4 });
        result
    }};
}

macro_rules! binary64 {
    ($op:ident, $a:expr, $b:expr) => {{
        let result: Result<i64> = run_op(($a as i64, $b as i64), Op::$op { a: A8, b: B8, dst: D8 });
        result
    }};
}

/// A compare of 64-bit values, which gives an i32.
macro_rules! compare64 {
    ($op:ident, $a:expr, $b:expr) => {{
        let result: i32 = op(($a as i64, $b as i64), Op::$op { a: A8, b: B8, dst: D4 });
        result
    }};
}

const MIN32: i32 = i32::MIN;
const MIN64: i64 = i64::MIN;
const BIG: i64 = 0x1234_5678_9ABC_DEF0;

#[test]
fn arithmetic_wraps() {
    assert_eq!(binary32!(AddI32, i32::MAX, 1).unwrap(), MIN32);
    assert_eq!(binary32!(SubI32, MIN32, 1).unwrap(), i32::MAX);
    assert_eq!(binary32!(MulI32, i32::MAX, 2).unwrap(), -2);
    assert_eq!(binary32!(MulI32, 0x1_0001, 0x1_0001).unwrap(), 0x2_0001);
    assert_eq!(binary64!(AddI64, i64::MAX, 1).unwrap(), MIN64);
    assert_eq!(binary64!(AddI64, 0xFFFF_FFFF_i64, 1).unwrap(), 0x1_0000_0000);
    assert_eq!(binary64!(SubI64, MIN64, 1).unwrap(), i64::MAX);
    assert_eq!(binary64!(SubI64, 0x1_0000_0000_i64, 1).unwrap(), 0xFFFF_FFFF);
    assert_eq!(binary64!(MulI64, i64::MAX, 2).unwrap(), -2);
    assert_eq!(binary64!(MulI64, 0x1_0000_0001_i64, 0x1_0000_0001_i64).unwrap(), 0x2_0000_0001);
}

#[test]
fn division_truncates() {
    assert_eq!(binary32!(DivI32S, -7, 2).unwrap(), -3);
    assert_eq!(binary32!(RemI32S, -7, 2).unwrap(), -1);
    assert_eq!(binary32!(RemI32S, 7, -2).unwrap(), 1);
    assert_eq!(binary32!(DivI32U, -7, 2).unwrap(), 0x7FFF_FFFC);
    assert_eq!(binary32!(RemI32U, -7, 10).unwrap(), 9);
    assert_eq!(binary64!(DivI64S, -7, 2).unwrap(), -3);
    assert_eq!(binary64!(RemI64S, -7, 2).unwrap(), -1);
    assert_eq!(binary64!(DivI64U, -7, 2).unwrap(), 0x7FFF_FFFF_FFFF_FFFC);
    assert_eq!(binary64!(RemI64U, -7, 10).unwrap(), 9);
}

#[test]
fn divisions_without_a_result_fail() {
    for dividend in [0, 1, -1, MIN32] {
        assert_eq!(status(binary32!(DivI32S, dividend, 0)), Status::InvalidArgument);
        assert_eq!(status(binary32!(DivI32U, dividend, 0)), Status::InvalidArgument);
        assert_eq!(status(binary32!(RemI32S, dividend, 0)), Status::InvalidArgument);
        assert_eq!(status(binary32!(RemI32U, dividend, 0)), Status::InvalidArgument);
    }
    for dividend in [0, 1, -1, MIN64] {
        assert_eq!(status(binary64!(DivI64S, dividend, 0)), Status::InvalidArgument);
        assert_eq!(status(binary64!(DivI64U, dividend, 0)), Status::InvalidArgument);
        assert_eq!(status(binary64!(RemI64S, dividend, 0)), Status::InvalidArgument);
        assert_eq!(status(binary64!(RemI64U, dividend, 0)), Status::InvalidArgument);
    }
    assert_eq!(status(binary32!(DivI32S, MIN32, -1)), Status::InvalidArgument);
    assert_eq!(status(binary64!(DivI64S, MIN64, -1)), Status::InvalidArgument);
    // As unsigned numbers these are 2^31 / (2^32 - 1).
    assert_eq!(binary32!(DivI32U, MIN32, -1).unwrap(), 0);
    assert_eq!(binary32!(RemI32U, MIN32, -1).unwrap(), MIN32);
    assert_eq!(binary64!(DivI64U, MIN64, -1).unwrap(), 0);
    assert_eq!(binary64!(RemI64U, MIN64, -1).unwrap(), MIN64);
}

#[test]
fn the_remainder_of_the_least_number_by_minus_one_is_zero() {
    assert_eq!(binary32!(RemI32S, MIN32, -1).unwrap(), 0);
    assert_eq!(binary64!(RemI64S, MIN64, -1).unwrap(), 0);
}

#[test]
fn fma_wraps() {
    let fma32 = |a: i32, b: i32, c: i32| op::<_, i32>((a, b, c), Op::FmaI32 { a: A4, b: B4, c: C4, dst: D4 });
    let fma64 = |a: i64, b: i64, c: i64| op::<_, i64>((a, b, c), Op::FmaI64 { a: A8, b: B8, c: C8, dst: D8 });
    assert_eq!(fma32(3, 4, 5), 17);
    assert_eq!(fma32(i32::MAX, 2, 3), 1);
    assert_eq!(fma64(1 << 32, 1 << 31, -1), i64::MAX);
    assert_eq!(fma64(i64::MAX, 2, 3), 1);
}

#[test]
fn bits() {
    assert_eq!(unary!(NotI32(0x0F0F_0F0F): i32 => i32), 0xF0F0_F0F0_u32 as i32);
    assert_eq!(unary!(NotI64(0): i64 => i64), -1);
    assert_eq!(binary32!(AndI32, 0b1100, 0b1010).unwrap(), 0b1000);
    assert_eq!(binary32!(OrI32, 0b1100, 0b1010).unwrap(), 0b1110);
    assert_eq!(binary32!(XorI32, 0b1100, 0b1010).unwrap(), 0b0110);
    assert_eq!(binary64!(AndI64, BIG, 0xFFFF_0000_FFFF_0000_u64).unwrap(), 0x1234_0000_9ABC_0000);
    assert_eq!(binary64!(OrI64, BIG, 0x0000_000F_0000_000F_i64).unwrap(), 0x1234_567F_9ABC_DEFF);
    assert_eq!(binary64!(XorI64, BIG, -1).unwrap(), !BIG);
}

#[test]
fn shift_amounts_are_masked() {
    assert_eq!(op::<_, i32>((1, 33), Op::ShlI32 { a: A4, amount: B4, dst: D4 }), 2);
    assert_eq!(op::<_, i32>((1, -1), Op::ShlI32 { a: A4, amount: B4, dst: D4 }), MIN32);
    assert_eq!(op::<_, i32>((-8, 33), Op::ShrI32S { a: A4, amount: B4, dst: D4 }), -4);
    assert_eq!(op::<_, i32>((-8, 33), Op::ShrI32U { a: A4, amount: B4, dst: D4 }), 0x7FFF_FFFC);
    assert_eq!(op::<_, i64>((1_i64, 65), Op::ShlI64 { a: A8, amount: X4(2), dst: D8 }), 2);
    assert_eq!(op::<_, i64>((1_i64, -1), Op::ShlI64 { a: A8, amount: X4(2), dst: D8 }), MIN64);
    assert_eq!(op::<_, i64>((-8_i64, 65), Op::ShrI64S { a: A8, amount: X4(2), dst: D8 }), -4);
    assert_eq!(op::<_, i64>((-8_i64, 65), Op::ShrI64U { a: A8, amount: X4(2), dst: D8 }), 9_223_372_036_854_775_804);
    assert_eq!(op::<_, i64>((BIG, 32), Op::ShrI64U { a: A8, amount: X4(2), dst: D8 }), 0x1234_5678);
    for (amount, wanted) in [(0, 5), (32, 5), (64, 5), (i32::MIN, 5)] {
        assert_eq!(op::<_, i32>((5, amount), Op::ShlI32 { a: A4, amount: B4, dst: D4 }), wanted);
    }
    assert_eq!(op::<_, i64>((5_i64, 32), Op::ShlI64 { a: A8, amount: X4(2), dst: D8 }), 5 << 32);
    assert_eq!(op::<_, i64>((5_i64, 64), Op::ShlI64 { a: A8, amount: X4(2), dst: D8 }), 5);
}

#[test]
fn widths_change_as_the_name_says() {
    assert_eq!(unary!(TruncI32I8(-1): i32 => i32), 255);
    assert_eq!(unary!(TruncI32I8(0x1234_5678): i32 => i32), 0x78);
    assert_eq!(unary!(TruncI32I16(-1): i32 => i32), 0xFFFF);
    assert_eq!(unary!(TruncI64I32(BIG): i64 => i32), 0x9ABC_DEF0_u32 as i32);
    assert_eq!(unary!(ExtI8I32S(255): i32 => i32), -1);
    assert_eq!(unary!(ExtI8I32S(0x17F): i32 => i32), 127);
    assert_eq!(unary!(ExtI8I32U(-1): i32 => i32), 255);
    assert_eq!(unary!(ExtI16I32S(0x1_8000): i32 => i32), -32768);
    assert_eq!(unary!(ExtI16I32U(-1): i32 => i32), 0xFFFF);
    assert_eq!(unary!(ExtI32I64S(-2): i32 => i64), -2);
    assert_eq!(unary!(ExtI32I64U(-2): i32 => i64), 0xFFFF_FFFE);
}

#[test]
fn leading_zeros_and_absolute_values() {
    assert_eq!(unary!(CtlzI32(0): i32 => i32), 32);
    assert_eq!(unary!(CtlzI32(1): i32 => i32), 31);
    assert_eq!(unary!(CtlzI32(-1): i32 => i32), 0);
    assert_eq!(unary!(CtlzI64(0): i64 => i64), 64);
    assert_eq!(unary!(CtlzI64(0xFFFF_FFFF_i64): i64 => i64), 32);
    assert_eq!(unary!(CtlzI64(MIN64): i64 => i64), 0);
    assert_eq!(unary!(AbsI32(-5): i32 => i32), 5);
    assert_eq!(unary!(AbsI32(MIN32): i32 => i32), MIN32);
    assert_eq!(unary!(AbsI64(-5): i64 => i64), 5);
    assert_eq!(unary!(AbsI64(MIN64): i64 => i64), MIN64);
}

#[test]
fn smaller_and_larger() {
    assert_eq!(binary32!(MinI32S, -1, 1).unwrap(), -1);
    assert_eq!(binary32!(MinI32U, -1, 1).unwrap(), 1);
    assert_eq!(binary32!(MaxI32S, -1, 1).unwrap(), 1);
    assert_eq!(binary32!(MaxI32U, -1, 1).unwrap(), -1);
    // The low half decides nothing on its own.
    let (high, low) = (0x1_0000_0000_i64, 0xFFFF_FFFF_i64);
    assert_eq!(binary64!(MinI64S, high, low).unwrap(), low);
    assert_eq!(binary64!(MaxI64S, high, low).unwrap(), high);
    assert_eq!(binary64!(MinI64S, -1, 1).unwrap(), -1);
    assert_eq!(binary64!(MinI64U, -1, 1).unwrap(), 1);
    assert_eq!(binary64!(MaxI64S, -1, 1).unwrap(), 1);
    assert_eq!(binary64!(MaxI64U, -1, 1).unwrap(), -1);
}

#[test]
fn compares() {
    for (a, b) in [(0, 0), (1, 2), (2, 1), (-1, 1), (MIN32, i32::MAX), (MIN32, MIN32)] {
        assert_eq!(binary32!(CmpEqI32, a, b).unwrap(), i32::from(a == b));
        assert_eq!(binary32!(CmpNeI32, a, b).unwrap(), i32::from(a != b));
        assert_eq!(binary32!(CmpLtI32S, a, b).unwrap(), i32::from(a < b));
        assert_eq!(binary32!(CmpLtI32U, a, b).unwrap(), i32::from((a as u32) < (b as u32)));
    }
    for (a, b) in [(0, 0), (1, 2), (-1, 1), (1, 0x1_0000_0001), (0x1_0000_0000, 1), (MIN64, i64::MAX), (BIG, BIG)] {
        assert_eq!(compare64!(CmpEqI64, a, b), i32::from(a == b));
        assert_eq!(compare64!(CmpNeI64, a, b), i32::from(a != b));
        assert_eq!(compare64!(CmpLtI64S, a, b), i32::from(a < b));
        assert_eq!(compare64!(CmpLtI64U, a, b), i32::from((a as u64) < (b as u64)));
    }
    for (value, wanted) in [(0, 0), (1, 1), (-1, 1), (MIN32, 1)] {
        assert_eq!(unary!(CmpNzI32(value): i32 => i32), wanted);
    }
    for (value, wanted) in [(0, 0), (1, 1), (1 << 32, 1), (MIN64, 1)] {
        assert_eq!(unary!(CmpNzI64(value): i64 => i32), wanted);
    }
}

#[test]
fn selects_take_any_nonzero_condition() {
    for (condition, wanted) in [(0, 20), (1, 10), (-1, 10), (MIN32, 10), (2, 10)] {
        let select = Op::SelectI32 { condition: A4, if_true: B4, if_false: C4, dst: D4 };
        assert_eq!(op::<_, i32>((condition, 10, 20), select), wanted);
        let select = Op::SelectI64 { condition: A4, if_true: X8(2), if_false: X8(4), dst: D8 };
        assert_eq!(op::<_, i64>((condition, 10 + BIG, 20 + BIG), select), i64::from(wanted) + BIG);
    }
}

#[test]
fn constants() {
    fn constant<R: HostType + Clone>(value: Op<'_>) -> R {
        op((), value)
    }
    use vmfb_bytecode::isa::{Imm32, Imm64};
    assert_eq!(constant::<i32>(Op::ConstI32 { value: Imm32(0xFFFF_FFFE), dst: D4 }), -2);
    assert_eq!(constant::<i64>(Op::ConstI64 { value: Imm64(BIG as u64), dst: D8 }), BIG);
    assert_eq!(constant::<i32>(Op::ConstI32Zero { dst: D4 }), 0);
    assert_eq!(constant::<i64>(Op::ConstI64Zero { dst: D8 }), 0);
    assert_eq!(constant::<f32>(Op::ConstF32 { value: Imm32(0x7FC0_1234), dst: D4 }).to_bits(), 0x7FC0_1234);
    assert_eq!(constant::<f64>(Op::ConstF64 { value: Imm64(0x7FF8_0000_DEAD_BEEF), dst: D8 }).to_bits(), 0x7FF8_0000_DEAD_BEEF);
    assert_eq!(constant::<f32>(Op::ConstF32Zero { dst: D4 }).to_bits(), 0);
    assert_eq!(constant::<f64>(Op::ConstF64Zero { dst: D8 }).to_bits(), 0);
}

/// Zeros replace what was there, both halves of it.
#[test]
fn zero_constants_overwrite() {
    fn after<R: HostType>(arguments: impl IntoValues, convention: &str, zero: Op<'_>, result: u16) -> R {
        let mut program = Program::new(NEWEST);
        program.export("run", convention, |f| {
            f.start_block();
            f.op(zero).ret([v(result)]);
        });
        program.start().call_one("run", arguments).unwrap()
    }
    assert_eq!(after::<i32>((-1,), "0i_i", Op::ConstI32Zero { dst: X4(0) }, 0), 0);
    assert_eq!(after::<i64>((-1_i64,), "0I_I", Op::ConstI64Zero { dst: X8(0) }, 0), 0);
    assert_eq!(after::<f32>((-1_f32,), "0f_f", Op::ConstF32Zero { dst: X4(0) }, 0), 0.0);
    assert_eq!(after::<f64>((-1_f64,), "0F_F", Op::ConstF64Zero { dst: X8(0) }, 0), 0.0);
}

/// A 32-bit operand may name one half of a pair, and a write may replace one half.
#[test]
fn halves_of_pairs_are_registers() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.export("run", "0I_iiI", |f| {
            f.start_block();
            // i4 = low half + 0, i5 = high half + 0; then the high half of the argument becomes 7.
            f.op(Op::AddI32 { a: X4(0), b: X4(ZERO), dst: X4(4) }).op(Op::AddI32 { a: X4(1), b: X4(ZERO), dst: X4(5) });
            f.i32(1, 7).ret([v(4), v(5), v(0)]);
        });
        let results = program.start().call("run", &[BIG.into()]).unwrap();
        let wanted = [0x9ABC_DEF0_u64, 0x1234_5678, 0x0000_0007_9ABC_DEF0];
        assert_eq!(results.iter().map(crate::support::bits).collect::<Vec<_>>(), wanted);
    }
}
