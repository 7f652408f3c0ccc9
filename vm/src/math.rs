//! Arithmetic whose edge cases need words.

use crate::fault::{Fault, Quick};

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Rounds half away from zero. NaN and what does not fit give the least i64, as x86-64 does.
pub(crate) fn round_to_i64(value: f64) -> i64 {
    let rounded = value.round();
    if (-TWO_TO_63..TWO_TO_63).contains(&rounded) { rounded as i64 } else { i64::MIN }
}

/// Rounds half away from zero. Negative values wrap; NaN and what does not fit give 2^63, as x86-64 does.
pub(crate) fn round_to_u64(value: f64) -> u64 {
    let rounded = value.round();
    if (TWO_TO_63..2.0 * TWO_TO_63).contains(&rounded) { rounded as u64 } else { round_to_i64(value) as u64 }
}

macro_rules! signed_division {
    ($div:ident, $rem:ident, $integer:ty) => {
        /// Truncating division; the two divisions without a result are errors.
        pub(crate) fn $div(a: $integer, b: $integer) -> Quick<$integer> {
            match a.checked_div(b) {
                Some(quotient) => Ok(quotient),
                None if b == 0 => Err(Fault::DivisionByZero),
                None => Err(Fault::DivisionOverflow(a.into())),
            }
        }

        /// Remainder with the sign of the dividend; MIN % -1 is 0.
        pub(crate) fn $rem(a: $integer, b: $integer) -> Quick<$integer> {
            if b == 0 { Err(Fault::DivisionByZero) } else { Ok(a.wrapping_rem(b)) }
        }
    };
}

signed_division!(div_i32, rem_i32, i32);
signed_division!(div_i64, rem_i64, i64);

macro_rules! float_sum {
    ($name:ident, $float:ty, $quiet:literal) => {
        /// The sum of two numbers of which `second_first` says in which order the program adds them. That makes a difference for two
        /// NaNs alone: the payload of the first stays, as where the sum is an op of its own.
        #[inline(always)]
        pub(crate) fn $name(a: $float, b: $float, second_first: bool) -> $float {
            let sum = a + b;
            if !sum.is_nan() {
                return sum;
            }
            let (first, second) = if second_first { (b, a) } else { (a, b) };
            match (first.is_nan(), second.is_nan()) {
                (true, true) if cfg!(target_arch = "x86_64") => <$float>::from_bits(first.to_bits() | $quiet),
                _ => first + second,
            }
        }
    };
}

float_sum!(sum_f32, f32, 0x0040_0000);
float_sum!(sum_f64, f64, 0x0008_0000_0000_0000);

macro_rules! integer_power {
    ($name:ident, $float:ty) => {
        /// `base` to an integer power by repeated squaring; `x^0` is 1 even for NaN.
        pub(crate) fn $name(base: $float, exponent: i32) -> $float {
            let (mut square, mut rest, mut power) = (base, exponent.unsigned_abs(), 1.0);
            while rest != 0 {
                if rest & 1 != 0 {
                    power *= square;
                }
                square *= square;
                rest >>= 1;
            }
            if exponent < 0 { 1.0 / power } else { power }
        }
    };
}

integer_power!(powi_f32, f32);
integer_power!(powi_f64, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_those_measured_on_the_official_runtime() {
        for (value, expected) in [(2.5, 3), (-2.5, -3), (f64::NAN, i64::MIN), (f64::INFINITY, i64::MIN), (1e19, i64::MIN)] {
            assert_eq!(round_to_i64(value), expected, "{value}");
        }
        for (value, expected) in [(3e9, -1_294_967_296), (1e10, 1_410_065_408), (f64::NAN, 0), (f64::NEG_INFINITY, 0)] {
            assert_eq!(round_to_i64(value) as i32, expected, "{value}");
        }
        for (value, expected) in [
            (f64::from(1.8e19_f32), 18_000_000_404_716_257_280),
            (-1.0, u64::MAX),
            (-1e10, (-10_000_000_000_i64) as u64),
            (f64::NAN, 1 << 63),
            (f64::INFINITY, 1 << 63),
            (1e30, 1 << 63),
        ] {
            assert_eq!(round_to_u64(value), expected, "{value}");
        }
    }

    #[test]
    fn divisions_without_a_result_are_errors() {
        assert!(div_i32(1, 0).is_err() && div_i32(i32::MIN, -1).is_err() && rem_i32(1, 0).is_err());
        assert!(div_i64(1, 0).is_err() && div_i64(i64::MIN, -1).is_err() && rem_i64(1, 0).is_err());
        assert_eq!((rem_i32(i32::MIN, -1).unwrap(), rem_i64(i64::MIN, -1).unwrap()), (0, 0));
        assert_eq!((div_i32(-7, 2).unwrap(), rem_i32(-7, 2).unwrap()), (-3, -1));
    }

    #[test]
    fn powers_have_the_measured_edges() {
        assert_eq!(powi_f64(1.5, 2), 2.25);
        assert_eq!(powi_f64(2.0, -1), 0.5);
        assert_eq!(powi_f64(f64::NAN, 0), 1.0);
        assert_eq!(powi_f32(0.0, -1), f32::INFINITY);
        assert_eq!(powi_f32(-0.0, -1), f32::NEG_INFINITY);
    }
}
