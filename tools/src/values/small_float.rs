//! Rounding to binary floating-point formats: f32 to 8-bit floats, and the rounding that hex floats need.

use vmfb_hal::Class;

/// Where exponent and mantissa stand in a format, without the sign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    mantissa_bits: u32,
    exponent_bits: u32,
    bias: i64,
}

impl Layout {
    pub(crate) const F64: Self = Self { mantissa_bits: 52, exponent_bits: 11, bias: 1023 };
    pub(crate) const F32: Self = Self { mantissa_bits: 23, exponent_bits: 8, bias: 127 };

    /// The code of infinity in formats of the IEEE kind: all ones in the exponent.
    pub(crate) const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }
}

/// An 8-bit float with a sign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float8 {
    layout: Layout,
    special: Special,
}

/// What the codes beyond the finite values mean.
#[derive(Clone, Copy, Debug)]
enum Special {
    /// As in IEEE 754: infinities and NaNs in the highest exponent.
    Ieee,
    /// No infinity; all ones is NaN. Values beyond the range become NaN.
    OnesAreNan,
    /// No infinity, no negative zero: its code is NaN. Values beyond the range become NaN.
    NegativeZeroIsNan,
}

impl Float8 {
    /// The format of a class; `None` for classes that are no 8-bit float with a sign.
    pub(crate) fn of(class: Class) -> Option<Self> {
        let (mantissa_bits, bias, special) = match class {
            Class::Float8E5M2 => (2, 15, Special::Ieee),
            Class::Float8E4M3FN => (3, 7, Special::OnesAreNan),
            Class::Float8E5M2FNUZ => (2, 16, Special::NegativeZeroIsNan),
            Class::Float8E4M3FNUZ => (3, 8, Special::NegativeZeroIsNan),
            _ => return None,
        };
        Some(Self { layout: Layout { mantissa_bits, exponent_bits: 7 - mantissa_bits, bias }, special })
    }

    /// The nearest code, ties to even.
    pub(crate) fn encode(self, value: f32) -> u8 {
        let sign = u8::from(value.is_sign_negative()) << 7;
        let nan = match self.special {
            Special::Ieee => sign | 0x7E,
            Special::OnesAreNan => sign | 0x7F,
            Special::NegativeZeroIsNan => 0x80,
        };
        if value.is_nan() {
            return nan;
        }
        let (mantissa, exponent) = if value.is_infinite() { (1, 1000) } else { decompose(value) };
        let code = round(mantissa, exponent, false, self.layout);
        match self.special {
            Special::Ieee => sign | code.min(self.layout.infinity()) as u8,
            Special::OnesAreNan if code >= 0x7F => nan,
            Special::NegativeZeroIsNan if code > 0x7F => nan,
            Special::NegativeZeroIsNan if code == 0 => 0,
            _ => sign | code as u8,
        }
    }
}

/// f8E8M0FNU, a power of two: the nearest, halves up; zero and negative values give the smallest, values beyond the range NaN.
pub(crate) fn encode_e8m0(value: f32) -> u8 {
    if value.is_nan() {
        return 0xFF;
    }
    // Below the middle of the two smallest codes, which are both subnormal as f32.
    if value < f32::from_bits(3 << 21) {
        return 0;
    }
    let bits = value.to_bits();
    let code = (bits >> 23) + (bits >> 22 & 1);
    u8::try_from(code).unwrap_or(0xFF)
}

/// The code of the float nearest to `mantissa * 2^exponent` (a little more if `sticky`), ties to even. Codes from
/// [`Layout::infinity`] up are beyond the range of formats of the IEEE kind.
pub(crate) fn round(mantissa: u64, exponent: i64, sticky: bool, layout: Layout) -> u64 {
    if mantissa == 0 {
        return 0;
    }
    let top = exponent.saturating_add(63 - i64::from(mantissa.leading_zeros()));
    if top > layout.bias + 1 {
        return u64::MAX;
    }
    let lowest = 1 - layout.bias;
    // The result counts units of 2^unit.
    let unit = top.max(lowest) - i64::from(layout.mantissa_bits);
    let units = if exponent > unit {
        mantissa << (exponent - unit).clamp(0, 63)
    } else {
        let shift = unit.saturating_sub(exponent);
        shift_right(mantissa, u32::try_from(shift).unwrap_or(u32::MAX), sticky)
    };
    // A normal number's leading one adds one to the exponent field, and so does a carry of the rounding.
    let field = (top.max(lowest) + layout.bias - 1) as u64;
    (field << layout.mantissa_bits) + units
}

fn shift_right(mantissa: u64, shift: u32, sticky: bool) -> u64 {
    if shift == 0 {
        return mantissa;
    }
    if shift > 64 {
        return 0;
    }
    let kept = mantissa.checked_shr(shift).unwrap_or(0);
    let half = 1 << (shift - 1);
    let dropped = if shift == 64 { mantissa } else { mantissa & ((1 << shift) - 1) };
    let up = dropped > half || dropped == half && (sticky || kept & 1 == 1);
    kept + u64::from(up)
}

/// A finite value's magnitude as an integer times a power of two.
fn decompose(value: f32) -> (u64, i64) {
    let bits = value.to_bits() & 0x7FFF_FFFF;
    let (field, fraction) = (i64::from(bits >> 23), u64::from(bits & 0x7F_FFFF));
    if field == 0 { (fraction, -149) } else { (fraction | 1 << 23, field - 150) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vmfb_hal::float8_to_f32;

    const CLASSES: [Class; 4] = [Class::Float8E5M2, Class::Float8E4M3FN, Class::Float8E5M2FNUZ, Class::Float8E4M3FNUZ];

    fn decode(class: Class, code: u8) -> f32 {
        float8_to_f32(class, code).unwrap()
    }

    fn through(class: Class, value: f32) -> f32 {
        decode(class, Float8::of(class).unwrap().encode(value))
    }

    fn through_e8m0(value: f32) -> f32 {
        decode(Class::Float8E8M0FNU, encode_e8m0(value))
    }

    #[test]
    fn values_are_stored_as_measured_on_the_official_runtime() {
        for (class, value, stored) in [
            (Class::Float8E5M2, 500.0, 512.0),
            (Class::Float8E5M2, 61439.0, 57344.0),
            (Class::Float8E5M2, 61440.0, f32::INFINITY),
            (Class::Float8E4M3FN, 464.0, 448.0),
            (Class::Float8E4M3FN, 0.003, 0.003_906_25),
            (Class::Float8E4M3FN, 0.01, 0.009_765_625),
            (Class::Float8E4M3FNUZ, 247.0, 240.0),
            (Class::Float8E5M2FNUZ, -0.0, 0.0),
        ] {
            assert_eq!(through(class, value), stored, "{class:?} {value}");
        }
        for (class, value) in [
            (Class::Float8E4M3FN, 465.0),
            (Class::Float8E4M3FN, 500.0),
            (Class::Float8E4M3FN, f32::INFINITY),
            (Class::Float8E5M2FNUZ, 61440.0),
            (Class::Float8E4M3FNUZ, 248.0),
        ] {
            assert!(through(class, value).is_nan(), "{class:?} {value}");
        }
        for (value, stored) in [(1.5, 2.0), (3.0, 4.0), (1.4, 1.0), (0.0, 5.877_472e-39), (-1.0, 5.877_472e-39), (1e-40, 5.877_472e-39)] {
            assert_eq!(through_e8m0(value), stored, "{value}");
        }
        for value in [f32::NAN, f32::INFINITY, 3e38, 2.9e38] {
            assert!(through_e8m0(value).is_nan(), "{value}");
        }
    }

    #[test]
    fn every_code_is_read_back() {
        for class in CLASSES {
            let format = Float8::of(class).unwrap();
            for code in 0..=u8::MAX {
                let value = decode(class, code);
                assert!(format.encode(value) == code || value.is_nan(), "{class:?} {code:#x}");
            }
        }
        for code in 0..=u8::MAX {
            assert_eq!(encode_e8m0(decode(Class::Float8E8M0FNU, code)), code);
        }
    }

    proptest! {
        #[test]
        fn no_other_code_is_nearer(bits: u32, class in proptest::sample::select(CLASSES.to_vec())) {
            let (value, format) = (f32::from_bits(bits), Float8::of(class).unwrap());
            let stored = decode(class, format.encode(value));
            prop_assert_eq!(value.is_nan(), stored.is_nan() && (value.is_nan() || value.abs() <= 200.0));
            if stored.is_finite() {
                for code in 0..=u8::MAX {
                    let other = f64::from(decode(class, code));
                    let distance = (f64::from(stored) - f64::from(value)).abs();
                    prop_assert!(!other.is_finite() || distance <= (other - f64::from(value)).abs());
                }
            }
        }

        #[test]
        fn halves_and_brain_floats_round_as_the_half_crate_does(bits: u32) {
            let value = f32::from_bits(bits & 0x7FFF_FFFF);
            prop_assume!(value.is_finite());
            let (mantissa, exponent) = decompose(value);
            let half = Layout { mantissa_bits: 10, exponent_bits: 5, bias: 15 };
            let brain = Layout { mantissa_bits: 7, exponent_bits: 8, bias: 127 };
            let code = |layout: Layout| round(mantissa, exponent, false, layout).min(layout.infinity());
            prop_assert_eq!(code(half), u64::from(half::f16::from_f32(value).to_bits()));
            prop_assert_eq!(code(brain), u64::from(half::bf16::from_f32(value).to_bits()));
        }
    }
}
