//! Conversions between number types. The tables of float to integer are measurements of official runtimes on x86-64.

use crate::support::*;
use vmfb_bytecode::isa::Op;

const INF: f64 = f64::INFINITY;

#[test]
fn integers_to_floats_round_to_nearest_even() {
    let si32 = |a: i32| op::<_, f32>((a,), Op::CastSi32F32 { a: A4, dst: D4 });
    let ui32 = |a: i32| op::<_, f32>((a,), Op::CastUi32F32 { a: A4, dst: D4 });
    let si64 = |a: i64| op::<_, f32>((a,), Op::CastSi64F32 { a: A8, dst: D4 });
    let ui64 = |a: i64| op::<_, f32>((a,), Op::CastUi64F32 { a: A8, dst: D4 });
    assert_eq!((si32(-1), si32(16_777_217), si32(16_777_219)), (-1.0, 16_777_216.0, 16_777_220.0));
    assert_eq!((ui32(-1), ui32(i32::MIN)), (4_294_967_296.0, 2_147_483_648.0));
    assert_eq!((si64(-3), si64(i64::MIN), si64(16_777_217)), (-3.0, -9_223_372_036_854_775_808.0, 16_777_216.0));
    // A double rounding by way of f64 would give 2^40.
    assert_eq!(si64((1 << 40) + (1 << 16) + 1), ((1_i64 << 40) + (1 << 17)) as f32);
    assert_eq!((ui64(-1), ui64(i64::MIN)), (18_446_744_073_709_551_616.0, 9_223_372_036_854_775_808.0));

    let si32 = |a: i32| op::<_, f64>((a,), Op::CastSi32F64 { a: A4, dst: D8 });
    let ui32 = |a: i32| op::<_, f64>((a,), Op::CastUi32F64 { a: A4, dst: D8 });
    let si64 = |a: i64| op::<_, f64>((a,), Op::CastSi64F64 { a: A8, dst: D8 });
    let ui64 = |a: i64| op::<_, f64>((a,), Op::CastUi64F64 { a: A8, dst: D8 });
    assert_eq!((si32(-1), ui32(-1)), (-1.0, 4_294_967_295.0));
    assert_eq!((si64(9_007_199_254_740_993), si64(-1)), (9_007_199_254_740_992.0, -1.0));
    assert_eq!((ui64(-1), ui64(1)), (18_446_744_073_709_551_616.0, 1.0));
}

#[test]
fn f32_to_32_bits_keeps_the_low_bits_of_64() {
    let cases = [
        (2.5, 3),
        (-2.5, -3),
        (0.49, 0),
        (-0.5, -1),
        (3e9, -1_294_967_296),
        (1e10, 1_410_065_408),
        (f64::NAN, 0),
        (INF, 0),
        (-INF, 0),
        (1e30, 0),
        (-1e30, 0),
        // 2^63 does not fit in 64 bits.
        (9_223_372_036_854_775_808.0, 0),
    ];
    for (value, wanted) in cases {
        assert_eq!(op::<_, i32>((value as f32,), Op::CastF32Si32 { a: A4, dst: D4 }), wanted, "si32 of {value}");
        assert_eq!(op::<_, i32>((value as f32,), Op::CastF32Ui32 { a: A4, dst: D4 }), wanted, "ui32 of {value}");
    }
}

#[test]
fn f32_to_64_bits() {
    let signed = |value: f64| op::<_, i64>((value as f32,), Op::CastF32Si64 { a: A4, dst: D8 });
    for (value, wanted) in [(2.5, 3), (-2.5, -3), (-1e10, -10_000_000_000), (f64::NAN, i64::MIN), (INF, i64::MIN), (-INF, i64::MIN)] {
        assert_eq!(signed(value), wanted, "{value}");
    }
    assert_eq!((signed(1.8e19), signed(-9_223_372_036_854_775_808.0)), (i64::MIN, i64::MIN));
    let unsigned = |value: f64| op::<_, i64>((value as f32,), Op::CastF32Ui64 { a: A4, dst: D8 }) as u64;
    for (value, wanted) in [
        (2.5, 3),
        (1.8e19, 18_000_000_404_716_257_280),
        (-1.0, u64::MAX),
        (-1e10, (-10_000_000_000_i64) as u64),
        (f64::NAN, 1 << 63),
        (INF, 1 << 63),
        (-INF, 1 << 63),
        (18_446_744_073_709_551_616.0, 1 << 63),
        (9_223_372_036_854_775_808.0, 1 << 63),
    ] {
        assert_eq!(unsigned(value), wanted, "{value}");
    }
}

#[test]
fn f64_to_integers() {
    let cases = [
        (2.5, 3),
        (-2.5, -3),
        (1e19, i64::MIN),
        (1.8e19, i64::MIN),
        (f64::NAN, i64::MIN),
        (INF, i64::MIN),
        (-INF, i64::MIN),
        (4_503_599_627_370_497.5, 4_503_599_627_370_498),
        (-9_223_372_036_854_775_808.0, i64::MIN),
        (9_223_372_036_854_774_784.0, 9_223_372_036_854_774_784),
    ];
    for (value, wanted) in cases {
        assert_eq!(op::<_, i64>((value,), Op::CastF64Si64 { a: A8, dst: D8 }), wanted, "si64 of {value}");
        assert_eq!(op::<_, i64>((value,), Op::CastF64Ui64 { a: A8, dst: D8 }), wanted, "ui64 of {value}");
    }
    // The f64 itself is rounded, not an f32 made of it.
    for (value, wanted) in [(16_777_217.0, 16_777_217), (2.5, 3), (-2.5, -3), (3e9, -1_294_967_296), (f64::NAN, 0), (INF, 0)] {
        assert_eq!(op::<_, i32>((value,), Op::CastF64Si32 { a: A8, dst: D4 }), wanted, "si32 of {value}");
        assert_eq!(op::<_, i32>((value,), Op::CastF64Ui32 { a: A8, dst: D4 }), wanted, "ui32 of {value}");
    }
}

#[test]
fn floats_of_both_widths() {
    let narrow = |value: f64| op::<_, f32>((value,), Op::TruncF64F32 { a: A8, dst: D4 });
    let wide = |value: f32| op::<_, f64>((value,), Op::ExtF32F64 { a: A4, dst: D8 });
    assert_eq!(narrow(1.0 + 2_f64.powi(-24)), 1.0);
    assert_eq!(narrow(1.0 + 3.0 * 2_f64.powi(-24)), 1.0 + 2_f32.powi(-22));
    assert_eq!((narrow(1e300), narrow(-1e-300).to_bits()), (f32::INFINITY, 0x8000_0000));
    assert!(narrow(f64::NAN).is_nan() && wide(f32::NAN).is_nan());
    assert_eq!((wide(0.1_f32), wide(f32::from_bits(1))), (f64::from(0.1_f32), 2_f64.powi(-149)));
}

#[test]
fn bitcasts_keep_every_bit() {
    // Signalling NaNs among them.
    for bits in [0, 1, 0x3F80_0000, 0x7F80_0001, 0xFFFF_FFFF_u32, 0x8000_0000] {
        assert_eq!(op::<_, f32>((bits as i32,), Op::BitcastI32F32 { a: A4, dst: D4 }).to_bits(), bits);
        assert_eq!(op::<_, i32>((f32::from_bits(bits),), Op::BitcastF32I32 { a: A4, dst: D4 }) as u32, bits);
    }
    for bits in [0, 1, 0x3FF0_0000_0000_0000, 0x7FF0_0000_0000_0001, u64::MAX, 1 << 63] {
        assert_eq!(op::<_, f64>((bits as i64,), Op::BitcastI64F64 { a: A8, dst: D8 }).to_bits(), bits);
        assert_eq!(op::<_, i64>((f64::from_bits(bits),), Op::BitcastF64I64 { a: A8, dst: D8 }) as u64, bits);
    }
}
