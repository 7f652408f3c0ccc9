//! Failures of hot ops, small enough for registers.

use crate::code::Inst;
use crate::{Error, Ref, Result, Status};

/// Why an op failed that is too hot to make an [`Error`] itself: making one takes calls, for which registers would have to be saved
/// before the op does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Division by zero.
    DivisionByZero,
    /// This, divided by -1.
    DivisionOverflow(i64),
    /// Ref `b` is no buffer.
    NotABuffer,
    /// Buffer `b` does not have an element with this index.
    OutOfRange(u64),
    /// Buffer `b` may not be written.
    ReadOnly,
    /// As above; the op has read the buffer before.
    UpdateOfReadOnly,
    /// Not enough fuel.
    OutOfFuel,
}

impl Fault {
    /// The error that this is, for an op that had these refs.
    #[cold]
    #[inline(never)]
    pub(crate) fn explain(self, op: &Inst, refs: &[Ref]) -> Error {
        let operand = refs.get(usize::from(op.b)).unwrap_or(&Ref::Null);
        match self {
            Self::DivisionByZero => Error::invalid("integer division by zero"),
            Self::DivisionOverflow(dividend) => Error::invalid(format!("integer division overflow: {dividend} / -1")),
            Self::NotABuffer if operand.is_null() => Error::invalid("the buffer operand is null"),
            Self::NotABuffer => Error::invalid(format!("the buffer operand is a !{}", operand.type_name())),
            Self::OutOfRange(index) => {
                let length = operand.buffer("the buffer operand").map(|buffer| buffer.len()).unwrap_or_default();
                Error::out_of_range(format!("the element with index {index} does not lie in the buffer of {length} bytes"))
            }
            Self::ReadOnly | Self::UpdateOfReadOnly => Error::new(Status::PermissionDenied, "the buffer is read-only"),
            Self::OutOfFuel => Error::exhausted("out of fuel"),
        }
    }
}

/// Result of a hot op.
pub(crate) type Quick<T = ()> = Result<T, Fault>;

const _: () = assert!(size_of::<Quick>() == 16);
