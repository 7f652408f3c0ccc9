//! The values of 8-bit floats.

use crate::Class;

/// The value of an 8-bit float of this class; `None` for classes that are none. NaNs are positive.
pub fn float8_to_f32(class: Class, bits: u8) -> Option<f32> {
    // Mantissa bits, exponent bias, and which patterns are no numbers.
    let (mantissa_bits, bias, special) = match class {
        Class::Float8E5M2 => (2, 15, Special::Ieee),
        Class::Float8E4M3FN => (3, 7, Special::AllOnes),
        Class::Float8E5M2FNUZ => (2, 16, Special::NegativeZero),
        Class::Float8E4M3FNUZ => (3, 8, Special::NegativeZero),
        Class::Float8E8M0FNU if bits == 0xFF => return Some(f32::NAN),
        Class::Float8E8M0FNU => return Some(power_of_two(i32::from(bits) - 127)),
        _ => return None,
    };
    let magnitude = bits & 0x7F;
    let (exponent, mantissa) = (i32::from(magnitude >> mantissa_bits), magnitude & ((1 << mantissa_bits) - 1));
    let all_ones = magnitude >> mantissa_bits == 0x7F >> mantissa_bits;
    let nan = match special {
        Special::Ieee if all_ones && mantissa == 0 => return Some(with_sign(f32::INFINITY, bits)),
        Special::Ieee => all_ones,
        Special::AllOnes => magnitude == 0x7F,
        Special::NegativeZero => bits == 0x80,
    };
    if nan {
        return Some(f32::NAN);
    }
    // A subnormal has the exponent of the smallest normal number and no implicit one.
    let implicit = if exponent == 0 { 0 } else { 1 << mantissa_bits };
    let scale = power_of_two(exponent.max(1) - bias - mantissa_bits);
    Some(with_sign(f32::from(mantissa | implicit) * scale, bits))
}

/// Which patterns are no numbers.
enum Special {
    /// Infinity and NaNs under the largest exponent.
    Ieee,
    /// NaN where all bits but the sign are set.
    AllOnes,
    /// NaN in place of negative zero.
    NegativeZero,
}

fn with_sign(value: f32, bits: u8) -> f32 {
    if bits & 0x80 == 0 { value } else { -value }
}

fn power_of_two(exponent: i32) -> f32 {
    // Exact: every power that occurs is a number of type f32.
    2f64.powi(exponent) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that the official tools print for these patterns.
    #[test]
    fn values_are_those_of_the_field() {
        let cases: &[(Class, u8, f32)] = &[
            (Class::Float8E5M2, 0x01, 1.525_878_9e-5),
            (Class::Float8E5M2, 0x7B, 57344.0),
            (Class::Float8E5M2, 0x7C, f32::INFINITY),
            (Class::Float8E5M2, 0xFC, f32::NEG_INFINITY),
            (Class::Float8E4M3FN, 0x01, 0.001_953_125),
            (Class::Float8E4M3FN, 0x7E, 448.0),
            (Class::Float8E4M3FN, 0x7B, 352.0),
            (Class::Float8E4M3FN, 0xFE, -448.0),
            (Class::Float8E5M2FNUZ, 0x81, -7.629_394_5e-6),
            (Class::Float8E5M2FNUZ, 0xFF, -57344.0),
            (Class::Float8E5M2FNUZ, 0x7B, 28672.0),
            (Class::Float8E4M3FNUZ, 0x01, 0.000_976_562_5),
            (Class::Float8E4M3FNUZ, 0x7F, 240.0),
            (Class::Float8E4M3FNUZ, 0x7B, 176.0),
            (Class::Float8E8M0FNU, 0x7B, 0.0625),
            (Class::Float8E8M0FNU, 0xFE, 1.701_411_8e38),
            (Class::Float8E8M0FNU, 0x00, 5.877_472e-39),
        ];
        for (class, bits, value) in cases {
            assert_eq!(float8_to_f32(*class, *bits), Some(*value), "{class:?} {bits:#04x}");
        }
        let zero = float8_to_f32(Class::Float8E5M2, 0x80);
        assert_eq!(zero.map(f32::to_bits), Some((-0f32).to_bits()));
        for (class, bits) in [
            (Class::Float8E5M2, 0x7D),
            (Class::Float8E5M2, 0xFF),
            (Class::Float8E4M3FN, 0x7F),
            (Class::Float8E4M3FN, 0xFF),
            (Class::Float8E5M2FNUZ, 0x80),
            (Class::Float8E4M3FNUZ, 0x80),
            (Class::Float8E8M0FNU, 0xFF),
        ] {
            assert!(float8_to_f32(class, bits).is_some_and(f32::is_nan), "{class:?} {bits:#04x}");
        }
        assert_eq!(float8_to_f32(Class::Float, 0), None);
    }
}
