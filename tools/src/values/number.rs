//! Numbers as C writes them: decimal, hex and octal integers; decimal and hex floats.

use crate::values::small_float::{self, Layout};

/// Why a text is not the number that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumberError {
    /// What is wrong, as the end of a sentence that begins with the text.
    pub(crate) problem: String,
    /// What to write instead.
    pub(crate) help: Option<String>,
}

impl NumberError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: None }
    }

    pub(crate) fn with_help(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: Some(help.into()) }
    }
}

/// A whole number: decimal, `0x…` hex, or octal with a leading zero, with an optional sign.
pub(crate) fn parse_integer(text: &str) -> Result<i128, NumberError> {
    let (negative, digits) = split_sign(text);
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..).unwrap_or_default()),
        [b'0', _, ..] => (8, digits.get(1..).unwrap_or_default()),
        _ => (10, digits),
    };
    if digits.is_empty() {
        return Err(NumberError::new("is not a number"));
    }
    let mut value: i128 = 0;
    for character in digits.chars() {
        let Some(digit) = character.to_digit(radix) else { return Err(not_whole(text, radix)) };
        value = value
            .checked_mul(i128::from(radix))
            .and_then(|value| value.checked_add(i128::from(digit)))
            .ok_or_else(|| NumberError::new("does not fit in 128 bits"))?;
    }
    Ok(if negative { -value } else { value })
}

fn not_whole(text: &str, radix: u32) -> NumberError {
    let decimal = text.trim_start_matches(['-', '+']).trim_start_matches('0');
    if radix == 8 && decimal.bytes().all(|byte| byte.is_ascii_digit()) {
        return NumberError::with_help("is not an octal number, and a leading zero means octal", format!("decimal is written {decimal}"));
    }
    match parse_f64(text) {
        Ok(_) => NumberError::with_help("is not a whole number", "this place takes an integer"),
        Err(_) => NumberError::new("is not a number"),
    }
}

/// A double: decimal or hex float, `inf`, `nan`; the nearest representable value, ties to even.
pub(crate) fn parse_f64(text: &str) -> Result<f64, NumberError> {
    match parse_hex_float(text)? {
        Some(hex) => {
            let bits = hex.round(Layout::F64);
            Ok(f64::from_bits(bits | u64::from(hex.negative) << 63))
        }
        None => parse_decimal(text),
    }
}

/// A float, rounded once from the text.
pub(crate) fn parse_f32(text: &str) -> Result<f32, NumberError> {
    match parse_hex_float(text)? {
        Some(hex) => {
            let bits = u32::try_from(hex.round(Layout::F32)).unwrap_or(u32::MAX >> 1);
            Ok(f32::from_bits(bits | u32::from(hex.negative) << 31))
        }
        None => parse_decimal(text),
    }
}

fn parse_decimal<T: std::str::FromStr>(text: &str) -> Result<T, NumberError> {
    text.parse().map_err(|_| NumberError::new("is not a number"))
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// `mantissa * 2^exponent`, and whether nonzero bits below the mantissa were dropped.
struct HexFloat {
    negative: bool,
    mantissa: u64,
    exponent: i64,
    sticky: bool,
}

impl HexFloat {
    /// The code of the magnitude; infinity when it is too large.
    fn round(&self, layout: Layout) -> u64 {
        small_float::round(self.mantissa, self.exponent, self.sticky, layout).min(layout.infinity())
    }
}

/// Exponents beyond this are beyond every float, and sums with them do not overflow.
const EXPONENT_BOUND: i64 = 1 << 40;

/// `[sign]0x<digits>[.<digits>][p[sign]<decimal>]`; `None` for other texts.
fn parse_hex_float(text: &str) -> Result<Option<HexFloat>, NumberError> {
    let (negative, rest) = split_sign(text);
    let Some(rest) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) else { return Ok(None) };
    let (digits, exponent_text) = match rest.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, Some(exponent)),
        None => (rest, None),
    };
    let mut float = HexFloat { negative, mantissa: 0, exponent: 0, sticky: false };
    let (mut seen_point, mut seen_digit) = (false, false);
    for character in digits.chars() {
        if character == '.' && !seen_point {
            seen_point = true;
            continue;
        }
        let digit = character.to_digit(16).ok_or_else(|| NumberError::new("is not a hex number"))?;
        seen_digit = true;
        if float.mantissa >> 60 == 0 {
            float.mantissa = float.mantissa << 4 | u64::from(digit);
            float.exponent -= if seen_point { 4 } else { 0 };
        } else {
            float.sticky |= digit != 0;
            float.exponent += if seen_point { 0 } else { 4 };
        }
    }
    if !seen_digit {
        return Err(NumberError::new("is not a hex number"));
    }
    if let Some(text) = exponent_text {
        let (negative, digits) = split_sign(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NumberError::new("has no decimal exponent after the p"));
        }
        let exponent = digits.parse::<i64>().unwrap_or(i64::MAX).min(EXPONENT_BOUND);
        float.exponent += if negative { -exponent } else { exponent };
    }
    Ok(Some(float))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_are_read_as_c_reads_them() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("+7", 7),
            ("010", 8),
            ("0x10", 16),
            ("-0X1f", -31),
            ("4294967295", 4_294_967_295),
            ("-9223372036854775808", i128::from(i64::MIN)),
        ] {
            assert_eq!(parse_integer(text), Ok(value), "{text}");
        }
        for text in ["", "-", "+-1", "--1", "0x", "1.5", "1e3", "abc", "08", "1 2", "1;2", "99999999999999999999999999999999999999999"] {
            assert!(parse_integer(text).is_err(), "{text}");
        }
        assert_eq!(parse_integer("1.5").unwrap_err().problem, "is not a whole number");
        assert_eq!(parse_integer("08").unwrap_err().help.as_deref(), Some("decimal is written 8"));
    }

    #[test]
    fn floats_have_the_bits_that_c_gives_them() {
        for (text, bits) in [
            ("1", 0x3FF0_0000_0000_0000_u64),
            ("-0", 0x8000_0000_0000_0000),
            ("0x1.8p1", 0x4008_0000_0000_0000),
            ("0x1p-1074", 1),
            ("0x1p-1075", 0),
            ("0x1.8p-1075", 1),
            ("0x1.fffffffffffff8p0", 0x4000_0000_0000_0000),
            ("0x1.00000000000008p0", 0x3FF0_0000_0000_0000),
            ("0x1.000000000000080000000000000001p0", 0x3FF0_0000_0000_0001),
            ("0x1p1024", 0x7FF0_0000_0000_0000),
            ("0x.8", 0x3FE0_0000_0000_0000),
            ("-0x10p-4", 0xBFF0_0000_0000_0000),
            ("inf", 0x7FF0_0000_0000_0000),
            ("-INFINITY", 0xFFF0_0000_0000_0000),
            ("1e400", 0x7FF0_0000_0000_0000),
            ("1e-400", 0),
            ("0x1p99999999999999999999", 0x7FF0_0000_0000_0000),
            ("0x0p99999999999999999999", 0),
            ("0x1p-99999999999999999999", 0),
        ] {
            assert_eq!(parse_f64(text).map(f64::to_bits), Ok(bits), "{text}");
        }
        assert!(parse_f64("nan").is_ok_and(f64::is_nan));
        // A tie of two floats is decided by the digits behind it: rounding through a double would lose them.
        assert_eq!(parse_f32("0x1.00000100000000000001p0").map(f32::to_bits), Ok(0x3F80_0001));
        assert_eq!(parse_f32("0x1.000001p0").map(f32::to_bits), Ok(0x3F80_0000));
        assert_eq!(parse_f32("0x1p128").map(f32::to_bits), Ok(0x7F80_0000));
        for text in ["", ".", "0x", "0x.", "0xp1", "0x1p", "0x1p+", "1.0f", "1e", "0x1.8.8p0", "one"] {
            assert!(parse_f64(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn hex_floats_of_exact_values_are_read_back(value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            let bits = value.to_bits();
            let (field, fraction) = ((bits >> 52 & 0x7FF) as i64, bits & ((1 << 52) - 1));
            let sign = if value.is_sign_negative() { "-" } else { "" };
            let (lead, exponent) = if field == 0 { (0, -1022) } else { (1, field - 1023) };
            prop_assert_eq!(parse_f64(&format!("{sign}0x{lead}.{fraction:013x}p{exponent}")), Ok(value));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}", digits in "[-+]?0?[xX]?[0-9a-fA-F.]{0,60}([pPeE][-+]?[0-9]{0,30})?") {
            for text in [text, digits] {
                let _ = (parse_integer(&text), parse_f64(&text), parse_f32(&text));
            }
        }
    }
}
