//! Whether results are what was expected of them.

use crate::failure::{Failure, Result};
use crate::values::{Codec, Expectation, Number, counted, extract};
use std::fmt;
use std::str::FromStr;
use vmfb_hal::{BufferView, Class, ElementType, General, HalBuffer, Letters, ViewText, format_scalar};
use vmfb_vm::{Meter, Ref, Value};

/// How numbers are compared. Everything else is always compared exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerances {
    /// Whether differences are tolerated at all.
    pub equality: Equality,
    /// Tolerated difference of f16.
    pub f16: f64,
    /// Tolerated difference of f32 and the parts of `complex<f32>`.
    pub f32: f64,
    /// Tolerated difference of f64 and the parts of `complex<f64>`.
    pub f64: f64,
    /// Tolerated difference of bf16.
    pub bf16: f64,
    /// Tolerated difference as a fraction of the expected value, in addition; of floats only.
    pub relative: f64,
    /// Tolerated difference of integers of every width.
    pub integer: u64,
}

/// When two floats are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Equality {
    /// If `abs(actual - expected) <= tolerance + relative * abs(expected)`. NaN equals NaN and nothing else.
    #[default]
    Approximate,
    /// If all their bits are equal.
    Exact,
}

impl Default for Tolerances {
    fn default() -> Self {
        Self { equality: Equality::Approximate, f16: 1e-3, f32: 1e-4, f64: 1e-4, bf16: 1e-2, relative: 1e-5, integer: 0 }
    }
}

impl FromStr for Equality {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "approximate" => Ok(Self::Approximate),
            "exact" => Ok(Self::Exact),
            _ => Err(format!("unknown equality mode '{text}', wanted approximate or exact")),
        }
    }
}

/// A result that is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    index: usize,
    text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[FAILED] result[{}]: {}", self.index, self.text)
    }
}

/// Elements that are compared between two looks at the clock.
const BETWEEN_POLLS: usize = 1 << 14;

/// Compares results with what was expected: one difference per result that has any. Of tensors at most `limit` elements are
/// shown.
pub fn compare(results: &[Value], expected: &[Expectation], tolerances: &Tolerances, limit: u64, meter: &Meter) -> Result<Vec<Difference>> {
    if results.len() != expected.len() {
        return Err(Failure::invalid(format!(
            "{} given, the function has {}",
            counted(expected.len(), "expected output"),
            counted(results.len(), "result")
        )));
    }
    let mut differences = Vec::new();
    for (index, (actual, expected)) in results.iter().zip(expected).enumerate() {
        let Expectation::Value(expected) = expected else { continue };
        if let Some(text) = compare_values(actual, expected, tolerances, limit, meter)? {
            differences.push(Difference { index, text });
        }
    }
    Ok(differences)
}

fn compare_values(actual: &Value, expected: &Value, tolerances: &Tolerances, limit: u64, meter: &Meter) -> Result<Option<String>> {
    let scalar = |element_type: ElementType, a: &[u8], e: &[u8]| {
        let same = Codec::of(element_type).is_some_and(|codec| Rule::of(element_type, tolerances).accepts(&codec, a, e));
        (!same).then(|| {
            let (a, e) = match (format_scalar(actual), format_scalar(expected)) {
                (Some(a), Some(e)) if a != e => (a, e),
                _ => {
                    let (a, e) = shown_apart(element_type, a, e);
                    (format!("{element_type}={a}"), format!("{element_type}={e}"))
                }
            };
            format!("{a} does not match the expected {e}")
        })
    };
    Ok(match (actual, expected) {
        (Value::I32(a), Value::I32(e)) => scalar(ElementType::I32, &a.to_le_bytes(), &e.to_le_bytes()),
        (Value::I64(a), Value::I64(e)) => scalar(ElementType::I64, &a.to_le_bytes(), &e.to_le_bytes()),
        (Value::F32(a), Value::F32(e)) => scalar(ElementType::F32, &a.to_le_bytes(), &e.to_le_bytes()),
        (Value::F64(a), Value::F64(e)) => scalar(ElementType::F64, &a.to_le_bytes(), &e.to_le_bytes()),
        (Value::Ref(Ref::Null), Value::Ref(Ref::Null)) => None,
        (Value::Ref(actual), Value::Ref(expected)) => compare_references(actual, expected, tolerances, limit, meter)?,
        _ => Some(format!("the result is {}, expected {}", actual.type_name(), expected.type_name())),
    })
}

fn compare_references(actual: &Ref, expected: &Ref, tolerances: &Tolerances, limit: u64, meter: &Meter) -> Result<Option<String>> {
    if let (Some(actual), Some(expected)) = (actual.downcast::<BufferView>(), expected.downcast::<BufferView>()) {
        let Some(problem) = compare_views(actual, expected, tolerances, meter)? else { return Ok(None) };
        let (wanted, found) = (ViewText::with_limit(expected, limit).within(meter), ViewText::with_limit(actual, limit).within(meter));
        let kind = expected.type_text();
        return Ok(Some(format!(
            "{problem}; expected that the view is equal to contents of a view of {kind}\n  expected:\n{wanted}\n  actual:\n{found}"
        )));
    }
    if let (Some(actual), Some(expected)) = (bytes(actual)?, bytes(expected)?) {
        if actual.len() != expected.len() {
            return Ok(Some(format!("the buffer has {} bytes, expected {}", actual.len(), expected.len())));
        }
        let first = actual.iter().zip(&expected).position(|(actual, expected)| actual != expected);
        return Ok(first.map(|index| format!("the buffer differs from the expected one at byte {index}")));
    }
    Ok(Some(format!("the result is {}, expected {}", actual.type_name(), expected.type_name())))
}

/// The bytes of a buffer of any kind.
fn bytes(reference: &Ref) -> Result<Option<Vec<u8>>> {
    let span = match reference {
        Ref::Buffer(buffer) => Some(buffer.span().clone()),
        _ => reference.downcast::<HalBuffer>().map(HalBuffer::span),
    };
    Ok(span.map(|span| span.to_vec()).transpose()?)
}

fn compare_views(actual: &BufferView, expected: &BufferView, tolerances: &Tolerances, meter: &Meter) -> Result<Option<String>> {
    let element_type = actual.element_type();
    if actual.shape() != expected.shape() || !same_type(element_type, expected.element_type()) {
        return Ok(Some(format!("metadata is {}; expected that the view matches {}", actual.type_text(), expected.type_text())));
    }
    let (actual, wanted) = (actual.to_bytes()?, expected.to_bytes()?);
    let codec = Codec::of(element_type);
    let Some(codec) = codec else { return Ok((actual != wanted).then(|| "the bytes do not match".to_owned())) };
    let rule = Rule::of(element_type, tolerances);
    // Whole bytes are compared at once first: most results that must be equal are.
    if actual == wanted && rule == Rule::Bytes {
        return Ok(None);
    }
    let count = expected.element_count().unwrap_or(0);
    for index in 0..usize::try_from(count).unwrap_or(usize::MAX) {
        if index % BETWEEN_POLLS == BETWEEN_POLLS - 1 {
            meter.poll()?;
        }
        let (Some(a), Some(e)) = (extract(&actual, element_type, index), extract(&wanted, element_type, index)) else { break };
        if !rule.accepts(&codec, &a, &e) {
            let (a, e) = shown_apart(element_type, &a, &e);
            return Ok(Some(format!("element at index {index} ({a}) does not match the expected ({e})")));
        }
    }
    Ok(None)
}

/// Whether types are equal, or integers of one width of which one has no sign of its own.
fn same_type(a: ElementType, b: ElementType) -> bool {
    let (Some(class_a), Some(class_b)) = (a.class(), b.class()) else { return a == b };
    let signless = class_a == Class::Integer || class_b == Class::Integer;
    a == b || (a.bits() == b.bits() && signless && is_number(class_a) && is_number(class_b))
}

/// Whether elements of this class are whole numbers.
fn is_number(class: Class) -> bool {
    matches!(class, Class::Integer | Class::SignedInteger | Class::UnsignedInteger)
}

/// When two elements of one type are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// When their bytes are.
    Bytes,
    /// When their bytes are, or both are NaN.
    BytesOrNan,
    /// When they are close.
    Close { absolute: f64, relative: f64 },
    /// When they are integers that differ by no more than this.
    CloseInteger { absolute: u64 },
}

impl Rule {
    fn of(element_type: ElementType, tolerances: &Tolerances) -> Self {
        let close = |absolute| Self::Close { absolute, relative: tolerances.relative };
        if tolerances.equality == Equality::Exact {
            return Self::Bytes;
        }
        match (element_type.class(), element_type.bits()) {
            (Some(Class::Float), 16) => close(tolerances.f16),
            (Some(Class::Float), 32) | (Some(Class::Complex), 64) => close(tolerances.f32),
            (Some(Class::Float), 64) | (Some(Class::Complex), 128) => close(tolerances.f64),
            (Some(Class::BrainFloat), 16) => close(tolerances.bf16),
            (Some(_), 8) if element_type.is_float() => Self::BytesOrNan,
            (Some(class), _) if is_number(class) && tolerances.integer > 0 => Self::CloseInteger { absolute: tolerances.integer },
            _ => Self::Bytes,
        }
    }

    fn accepts(self, codec: &Codec, actual: &[u8], expected: &[u8]) -> bool {
        match self {
            Self::Bytes => actual == expected,
            Self::BytesOrNan => {
                let nan = |bytes| matches!(codec.decode(bytes), Number::Float(value) if value.is_nan());
                actual == expected || (nan(actual) && nan(expected))
            }
            Self::CloseInteger { absolute } => match (codec.decode(actual), codec.decode(expected)) {
                (Number::Integer(a), Number::Integer(e)) => a.abs_diff(e) <= u128::from(absolute),
                _ => actual == expected,
            },
            Self::Close { absolute, relative } => {
                let close = |a: f64, e: f64| {
                    // Equal infinities have no difference.
                    a == e || (a.is_nan() && e.is_nan()) || ((a - e).abs() <= absolute + relative * e.abs() && e.is_finite())
                };
                match (codec.decode(actual), codec.decode(expected)) {
                    (Number::Float(a), Number::Float(e)) => close(a, e),
                    (Number::Complex(a, b), Number::Complex(e, f)) => close(a, e) && close(b, f),
                    _ => actual == expected,
                }
            }
        }
    }
}

/// Two elements that differ, as texts that differ: with six digits, with as many as it takes, or with their bits.
fn shown_apart(element_type: ElementType, actual: &[u8], expected: &[u8]) -> (String, String) {
    for digits in [Digits::Six, Digits::Enough] {
        let show = |bytes: &[u8]| Codec::of(element_type).map(|codec| shown(&codec.decode(bytes), element_type, digits));
        match (show(actual), show(expected)) {
            (Some(a), Some(e)) if a != e => return (a, e),
            _ => {}
        }
    }
    let bits = |bytes: &[u8]| {
        let value = Codec::of(element_type).map(|codec| shown(&codec.decode(bytes), element_type, Digits::Six)).unwrap_or_default();
        let bits: String = bytes.iter().rev().map(|byte| format!("{byte:02X}")).collect();
        format!("{value}, bits 0x{bits}")
    };
    (bits(actual), bits(expected))
}

/// How many digits of a float are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Digits {
    /// As results are printed.
    Six,
    /// So many that each value has a text of its own.
    Enough,
}

fn shown(value: &Number, element_type: ElementType, digits: Digits) -> String {
    let single = match element_type.class() {
        Some(Class::Complex) => element_type.bits() == 64,
        _ => element_type.bits() <= 32,
    };
    let float = |value: f64| match digits {
        Digits::Six => General(value, Letters::Upper).to_string(),
        Digits::Enough if value.is_nan() || value.is_infinite() => General(value, Letters::Upper).to_string(),
        // The shortest text that is read back as the same value.
        Digits::Enough if single && plain(value) => (value as f32).to_string(),
        Digits::Enough if single => format!("{:E}", value as f32),
        Digits::Enough if plain(value) => value.to_string(),
        Digits::Enough => format!("{value:E}"),
    };
    match value {
        Number::Integer(value) => value.to_string(),
        Number::Float(value) => float(*value),
        Number::Complex(real, imaginary) => format!("({},{})", float(*real), float(*imaginary)),
        Number::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
    }
}

/// Whether a number is readable without an exponent.
fn plain(value: f64) -> bool {
    value == 0.0 || (1e-5..1e16).contains(&value.abs())
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
