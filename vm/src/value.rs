//! Values that cross the border between host and program.

use crate::Ref;

/// A value of a program. Smaller integers travel as `I32`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// i32, and every smaller integer.
    I32(i32),
    /// i64.
    I64(i64),
    /// f32.
    F32(f32),
    /// f64.
    F64(f64),
    /// A reference; null allowed.
    Ref(Ref),
}

impl Value {
    /// The type's name: `i32`, `i64`, `f32`, `f64`, or the object's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::I32(_) => "i32",
            Self::I64(_) => "i64",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::Ref(reference) => reference.type_name(),
        }
    }

    /// The reference, if it is one.
    pub fn as_ref(&self) -> Option<&Ref> {
        match self {
            Self::Ref(reference) => Some(reference),
            _ => None,
        }
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::I32(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Self::F32(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::F64(value)
    }
}

impl<R: Into<Ref>> From<R> for Value {
    fn from(value: R) -> Self {
        Self::Ref(value.into())
    }
}
