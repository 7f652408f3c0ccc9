//! Numbers as C's `%g` and `%G` print them: six significant digits, an exponent only where it is shorter.

use smallvec::SmallVec;
use std::fmt::{self, Write};

/// Significant digits.
const DIGITS: i32 = 6;

/// Which letters are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters {
    /// `%g`: `1e-07`, `nan`, `inf`.
    Lower,
    /// `%G`: `1E-07`, `NAN`, `INF`.
    Upper,
}

/// A float whose `Display` is that of C's `%g` or `%G`. NaNs keep their sign.
#[derive(Clone, Copy, Debug)]
pub struct General(pub f64, pub Letters);

impl General {
    /// An f32. Widening keeps the sign of NaN here; some machines drop it.
    pub fn from_f32(value: f32, letters: Letters) -> Self {
        let sign = if value.is_sign_negative() { -1.0 } else { 1.0 };
        Self(f64::from(value).copysign(sign), letters)
    }
}

impl fmt::Display for General {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, letters) = *self;
        if value.is_sign_negative() {
            f.write_str("-")?;
        }
        let upper = letters == Letters::Upper;
        if value.is_nan() {
            return f.write_str(if upper { "NAN" } else { "nan" });
        }
        if value.is_infinite() {
            return f.write_str(if upper { "INF" } else { "inf" });
        }
        let (digits, exponent) = round(value.abs());
        if (-4..DIGITS).contains(&exponent) {
            return write_fixed(f, &digits, exponent);
        }
        write_point(f, &digits, 1)?;
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(f, "{}{sign}{:02}", if upper { 'E' } else { 'e' }, exponent.unsigned_abs())
    }
}

/// The significant digits without zeros at the end, and the decimal exponent of the first.
fn round(value: f64) -> (SmallVec<[u8; 8]>, i32) {
    let mut text = Bytes::default();
    // Writing into bytes cannot fail.
    let _ = write!(text, "{value:.*e}", DIGITS as usize - 1);
    let mut halves = text.0.split(|byte| *byte == b'e');
    let mut digits: SmallVec<[u8; 8]> = halves.next().unwrap_or_default().iter().copied().filter(u8::is_ascii_digit).collect();
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    let exponent = halves.next().and_then(|half| std::str::from_utf8(half).ok()?.parse().ok()).unwrap_or(0);
    (digits, exponent)
}

/// Text that is not allocated.
#[derive(Default)]
struct Bytes(SmallVec<[u8; 32]>);

impl Write for Bytes {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

fn write_fixed(f: &mut fmt::Formatter<'_>, digits: &[u8], exponent: i32) -> fmt::Result {
    match usize::try_from(exponent) {
        Ok(exponent) => write_point(f, digits, exponent + 1),
        Err(_) => {
            f.write_str("0.")?;
            (exponent..-1).try_for_each(|_| f.write_str("0"))?;
            write_digits(f, digits)
        }
    }
}

/// Writes digits with `whole` of them before the point, padding with zeros up to it.
fn write_point(f: &mut fmt::Formatter<'_>, digits: &[u8], whole: usize) -> fmt::Result {
    let (before, after) = digits.split_at(whole.min(digits.len()));
    write_digits(f, before)?;
    (before.len()..whole).try_for_each(|_| f.write_str("0"))?;
    if after.is_empty() {
        return Ok(());
    }
    f.write_str(".")?;
    write_digits(f, after)
}

fn write_digits(f: &mut fmt::Formatter<'_>, digits: &[u8]) -> fmt::Result {
    f.write_str(std::str::from_utf8(digits).unwrap_or_default())
}

#[cfg(test)]
#[path = "number_tests.rs"]
mod tests;
