//! Float ops: IEEE results, and the choices where IEEE leaves one, as measured on official runtimes.

use crate::support::*;
use vmfb_bytecode::isa::{Op, X4, X8};

macro_rules! f32_op {
    ($op:ident($a:expr)) => {
        op::<_, f32>(($a as f32,), Op::$op { a: A4, dst: D4 })
    };
    ($op:ident($a:expr, $b:expr)) => {
        op::<_, f32>(($a as f32, $b as f32), Op::$op { a: A4, b: B4, dst: D4 })
    };
    ($op:ident($a:expr, $b:expr, $c:expr)) => {
        op::<_, f32>(($a as f32, $b as f32, $c as f32), Op::$op { a: A4, b: B4, c: C4, dst: D4 })
    };
}

macro_rules! f64_op {
    ($op:ident($a:expr)) => {
        op::<_, f64>(($a as f64,), Op::$op { a: A8, dst: D8 })
    };
    ($op:ident($a:expr, $b:expr)) => {
        op::<_, f64>(($a as f64, $b as f64), Op::$op { a: A8, b: B8, dst: D8 })
    };
    ($op:ident($a:expr, $b:expr, $c:expr)) => {
        op::<_, f64>(($a as f64, $b as f64, $c as f64), Op::$op { a: A8, b: B8, c: C8, dst: D8 })
    };
}

macro_rules! compare32 {
    ($op:ident($a:expr, $b:expr)) => {
        op::<_, i32>(($a as f32, $b as f32), Op::$op { a: A4, b: B4, dst: D4 })
    };
}

macro_rules! compare64 {
    ($op:ident($a:expr, $b:expr)) => {
        op::<_, i32>(($a as f64, $b as f64), Op::$op { a: A8, b: B8, dst: D4 })
    };
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// Whether two floats have the same bits, any NaN for any other.
fn same(found: f64, wanted: f64) -> bool {
    found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan()
}

/// Asserts the same for both precisions; the values must be exact in f32.
macro_rules! both {
    ($op32:ident $op64:ident ($($a:expr),*) = $wanted:expr) => {{
        let (narrow, wide) = (f64::from(f32_op!($op32($($a),*))), f64_op!($op64($($a),*)));
        assert!(same(narrow, $wanted), "{}{:?}: found {narrow:?}, wanted {:?}", stringify!($op32), ($($a,)*), $wanted);
        assert!(same(wide, $wanted), "{}{:?}: found {wide:?}, wanted {:?}", stringify!($op64), ($($a,)*), $wanted);
    }};
}

#[test]
fn arithmetic_is_that_of_ieee() {
    both!(AddF32 AddF64(0.5, 0.25) = 0.75);
    both!(AddF32 AddF64(INF, -INF) = NAN);
    both!(SubF32 SubF64(1.0, 1.0) = 0.0);
    both!(SubF32 SubF64(-0.0, 0.0) = -0.0);
    both!(MulF32 MulF64(-2.0, 0.0) = -0.0);
    both!(MulF32 MulF64(INF, 0.0) = NAN);
    both!(DivF32 DivF64(1.0, 0.0) = INF);
    both!(DivF32 DivF64(-1.0, 0.0) = -INF);
    both!(DivF32 DivF64(0.0, 0.0) = NAN);
    both!(NegF32 NegF64(0.0) = -0.0);
    both!(NegF32 NegF64(INF) = -INF);
    both!(AbsF32 AbsF64(-0.0) = 0.0);
    both!(AbsF32 AbsF64(-INF) = INF);
    both!(SqrtF32 SqrtF64(9.0) = 3.0);
    both!(SqrtF32 SqrtF64(-0.0) = -0.0);
    both!(SqrtF32 SqrtF64(-1.0) = NAN);
    both!(RsqrtF32 RsqrtF64(4.0) = 0.5);
    both!(RsqrtF32 RsqrtF64(0.0) = INF);
    // Rounded to nearest even: 2^24 + 1 and 2^53 + 1 have no float.
    assert_eq!(f32_op!(AddF32(16_777_216.0, 1.0)), 16_777_216.0);
    assert_eq!(f64_op!(AddF64(9_007_199_254_740_992.0, 1.0)), 9_007_199_254_740_992.0);
    // Denormals are kept.
    assert_eq!(f32_op!(MulF32(f32::MIN_POSITIVE, 0.5)).to_bits(), 0x0040_0000);
    assert_eq!(f64_op!(MulF64(f64::MIN_POSITIVE, 0.5)).to_bits(), 0x0008_0000_0000_0000);
}

#[test]
fn negation_and_absolute_value_touch_the_sign_alone() {
    let nan = f32::from_bits(0xFFC0_1234);
    assert_eq!(op::<_, f32>((nan,), Op::NegF32 { a: A4, dst: D4 }).to_bits(), 0x7FC0_1234);
    assert_eq!(op::<_, f32>((nan,), Op::AbsF32 { a: A4, dst: D4 }).to_bits(), 0x7FC0_1234);
    let nan = f64::from_bits(0xFFF8_0000_0000_1234);
    assert_eq!(op::<_, f64>((nan,), Op::NegF64 { a: A8, dst: D8 }).to_bits(), 0x7FF8_0000_0000_1234);
    assert_eq!(op::<_, f64>((nan,), Op::AbsF64 { a: A8, dst: D8 }).to_bits(), 0x7FF8_0000_0000_1234);
}

#[test]
fn fma_rounds_twice() {
    let (a, c) = (1.0 + 2_f64.powi(-12), -(1.0 + 2_f64.powi(-11)));
    assert_eq!(f32_op!(FmaF32(a, a, c)), 0.0);
    let (a, c) = (1.0 + 2_f64.powi(-31), -(1.0 + 2_f64.powi(-30)));
    assert_eq!(f64_op!(FmaF64(a, a, c)), 0.0);
    both!(FmaF32 FmaF64(2.0, 3.0, 4.0) = 10.0);
    // The product overflows before the sum could bring it back.
    assert_eq!(f32_op!(FmaF32(3e38, 2.0, -3e38)), f32::INFINITY);
    assert_eq!(f64_op!(FmaF64(1e308, 2.0, -1e308)), INF);
}

#[test]
fn rem_is_the_ieee_remainder() {
    both!(RemF32 RemF64(5.5, 2.0) = -0.5);
    both!(RemF32 RemF64(7.0, 2.0) = -1.0);
    both!(RemF32 RemF64(-7.0, 2.0) = 1.0);
    both!(RemF32 RemF64(1.0, 0.0) = NAN);
    both!(RemF32 RemF64(INF, 2.0) = NAN);
    both!(RemF32 RemF64(3.0, INF) = 3.0);
    both!(RemF32 RemF64(5.0, 2.0) = 1.0);
    both!(RemF32 RemF64(3.0, 2.0) = -1.0);
}

#[test]
fn rounding_to_whole_numbers() {
    for (value, away, even) in [(0.5, 1.0, 0.0), (1.5, 2.0, 2.0), (2.5, 3.0, 2.0), (-1.5, -2.0, -2.0), (-2.5, -3.0, -2.0), (2.25, 2.0, 2.0)]
    {
        both!(RoundF32 RoundF64(value) = away);
        both!(RoundF32Even RoundF64Even(value) = even);
    }
    both!(RoundF32 RoundF64(-0.5) = -1.0);
    both!(RoundF32 RoundF64(INF) = INF);
    both!(RoundF32 RoundF64(NAN) = NAN);
    both!(RoundF32Even RoundF64Even(-0.0) = -0.0);
    both!(RoundF32Even RoundF64Even(NAN) = NAN);
    // Just below a half: naive rounding by adding a half fails.
    assert_eq!(f32_op!(RoundF32(0.499_999_97_f32)), 0.0);
    assert_eq!(f64_op!(RoundF64(0.499_999_999_999_999_94)), 0.0);
    // The sign of a zero from -0.5 is unspecified.
    assert_eq!(f32_op!(RoundF32Even(-0.5)), 0.0);
    assert_eq!(f64_op!(RoundF64Even(-0.5)), 0.0);
    both!(CeilF32 CeilF64(1.25) = 2.0);
    both!(CeilF32 CeilF64(-0.25) = -0.0);
    both!(FloorF32 FloorF64(-1.25) = -2.0);
    both!(FloorF32 FloorF64(1.75) = 1.0);
}

#[test]
fn min_and_max_take_the_first_operand_when_they_cannot_tell() {
    both!(MinF32 MinF64(NAN, 1.0) = NAN);
    both!(MinF32 MinF64(1.0, NAN) = 1.0);
    both!(MinF32 MinF64(-0.0, 0.0) = -0.0);
    both!(MinF32 MinF64(0.0, -0.0) = 0.0);
    both!(MinF32 MinF64(-2.0, 3.0) = -2.0);
    both!(MaxF32 MaxF64(NAN, 1.0) = NAN);
    both!(MaxF32 MaxF64(1.0, NAN) = 1.0);
    both!(MaxF32 MaxF64(-0.0, 0.0) = -0.0);
    both!(MaxF32 MaxF64(0.0, -0.0) = 0.0);
    both!(MaxF32 MaxF64(-2.0, 3.0) = 3.0);
}

#[test]
fn powers_to_integers_use_the_low_half_of_the_exponent() {
    let power32 = |a: f32, n: i64| op::<_, f32>((a, n), Op::FpowiF32 { a: A4, exponent: X8(2), dst: D4 });
    let power64 = |a: f64, n: i64| op::<_, f64>((a, n), Op::FpowiF64 { a: A8, exponent: X8(2), dst: D8 });
    assert_eq!((power32(1.5, (1 << 32) + 2), power64(1.5, (1 << 32) + 2)), (2.25, 2.25));
    assert_eq!((power32(2.0, i64::MAX), power64(2.0, i64::MAX)), (0.5, 0.5));
    assert_eq!((power32(f32::NAN, 0), power64(NAN, 0)), (1.0, 1.0));
    assert_eq!((power32(0.0, -1), power64(0.0, -1)), (f32::INFINITY, INF));
    assert_eq!((power32(-0.0, -1), power64(-0.0, -1)), (f32::NEG_INFINITY, -INF));
    assert_eq!((power32(-3.0, 3), power64(-3.0, 3)), (-27.0, -27.0));
    assert_eq!((power32(1.0, i64::from(i32::MIN)), power64(1.0, i64::from(i32::MIN))), (1.0, 1.0));
}

/// Values of the functions to 16 digits; the last bits may differ between math libraries.
#[test]
fn mathematical_functions() {
    macro_rules! near {
        ($op32:ident $op64:ident ($($a:expr),*) = $wanted:expr) => {{
            let (narrow, wide) = (f64::from(f32_op!($op32($($a),*))), f64_op!($op64($($a),*)));
            let wanted: f64 = $wanted;
            assert!((narrow - wanted).abs() <= wanted.abs() * 5e-7, "{}: {narrow}, wanted {wanted}", stringify!($op32));
            assert!((wide - wanted).abs() <= wanted.abs() * 1e-15, "{}: {wide}, wanted {wanted}", stringify!($op64));
        }};
    }
    near!(AtanF32 AtanF64(0.5) = 0.463_647_609_000_806_1);
    near!(CosF32 CosF64(0.5) = 0.877_582_561_890_372_7);
    near!(SinF32 SinF64(0.5) = 0.479_425_538_604_203);
    near!(ExpF32 ExpF64(0.5) = 1.648_721_270_700_128_1);
    near!(Exp2F32 Exp2F64(0.5) = std::f64::consts::SQRT_2);
    near!(Expm1F32 Expm1F64(0.5) = 0.648_721_270_700_128_1);
    near!(LogF32 LogF64(0.5) = -std::f64::consts::LN_2);
    near!(Log10F32 Log10F64(0.5) = -std::f64::consts::LOG10_2);
    near!(Log1pF32 Log1pF64(0.5) = 0.405_465_108_108_164_4);
    near!(Log2F32 Log2F64(0.125) = -3.0);
    near!(PowF32 PowF64(0.5, 2.5) = 0.176_776_695_296_636_9);
    near!(TanhF32 TanhF64(0.5) = 0.462_117_157_260_009_76);
    near!(ErfF32 ErfF64(0.5) = 0.520_499_877_813_046_5);
    // y first, x second: the point (-1, 0.5) lies in the second quadrant.
    near!(Atan2F32 Atan2F64(0.5, -1.0) = 2.677_945_044_588_987);
}

#[test]
fn compares_with_and_without_nan() {
    let cases = [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (0.0, -0.0), (INF, INF), (NAN, 1.0), (1.0, NAN), (NAN, NAN)];
    for (a, b) in cases {
        let unordered = a.is_nan() || b.is_nan();
        let flag = |holds: bool| i32::from(holds);
        // ne.o is true with NaN: it is not "ordered and different".
        for (found, wanted) in [
            (compare32!(CmpEqF32O(a, b)), a == b),
            (compare64!(CmpEqF64O(a, b)), a == b),
            (compare32!(CmpNeF32O(a, b)), a != b),
            (compare64!(CmpNeF64O(a, b)), a != b),
            (compare32!(CmpLtF32O(a, b)), a < b),
            (compare64!(CmpLtF64O(a, b)), a < b),
            (compare32!(CmpLteF32O(a, b)), a <= b),
            (compare64!(CmpLteF64O(a, b)), a <= b),
            (compare32!(CmpEqF32U(a, b)), unordered || a == b),
            (compare64!(CmpEqF64U(a, b)), unordered || a == b),
            (compare32!(CmpNeF32U(a, b)), unordered || a != b),
            (compare64!(CmpNeF64U(a, b)), unordered || a != b),
            (compare32!(CmpLtF32U(a, b)), unordered || a < b),
            (compare64!(CmpLtF64U(a, b)), unordered || a < b),
            (compare32!(CmpLteF32U(a, b)), unordered || a <= b),
            (compare64!(CmpLteF64U(a, b)), unordered || a <= b),
        ] {
            assert_eq!(found, flag(wanted), "{a} and {b}");
        }
        assert_eq!(op::<_, i32>((a as f32,), Op::CmpNanF32 { a: A4, dst: D4 }), flag(a.is_nan()));
        assert_eq!(op::<_, i32>((a,), Op::CmpNanF64 { a: A8, dst: D4 }), flag(a.is_nan()));
    }
}

#[test]
fn selects_keep_the_bits() {
    let nan = f32::from_bits(0x7F80_0001);
    let select = Op::SelectF32 { condition: A4, if_true: B4, if_false: C4, dst: D4 };
    assert_eq!(op::<_, f32>((2, nan, 1.0_f32), select).to_bits(), 0x7F80_0001);
    assert_eq!(op::<_, f32>((0, nan, 1.0_f32), select), 1.0);
    let nan = f64::from_bits(0x7FF0_0000_0000_0001);
    let select = Op::SelectF64 { condition: X4(0), if_true: X8(2), if_false: X8(4), dst: D8 };
    assert_eq!(op::<_, f64>((2, nan, 1.0_f64), select).to_bits(), 0x7FF0_0000_0000_0001);
    assert_eq!(op::<_, f64>((0, nan, 1.0_f64), select), 1.0);
}
