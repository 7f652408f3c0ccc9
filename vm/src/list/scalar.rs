//! Numbers as lists hold and convert them.

use crate::Value;

/// A number in a list, of any width. Converts as list accesses do: integers truncate and sign-extend among each other, floats
/// round among each other, and the two kinds read as zero of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Any integer, sign-extended.
    Integer(i64),
    /// An f32.
    Single(f32),
    /// An f64.
    Double(f64),
}

impl Scalar {
    /// As an integer; the caller truncates.
    pub fn integer(self) -> i64 {
        match self {
            Self::Integer(value) => value,
            Self::Single(_) | Self::Double(_) => 0,
        }
    }

    /// As an f32, bit by bit if it is one.
    pub fn single(self) -> f32 {
        match self {
            Self::Integer(_) => 0.0,
            Self::Single(value) => value,
            Self::Double(value) => value as f32,
        }
    }

    /// As an f64.
    pub fn double(self) -> f64 {
        match self {
            Self::Integer(_) => 0.0,
            Self::Single(value) => f64::from(value),
            Self::Double(value) => value,
        }
    }

    /// The number in a value; `None` for a reference.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::I32(value) => Some(Self::Integer(i64::from(*value))),
            Value::I64(value) => Some(Self::Integer(*value)),
            Value::F32(value) => Some(Self::Single(*value)),
            Value::F64(value) => Some(Self::Double(*value)),
            Value::Ref(_) => None,
        }
    }
}
