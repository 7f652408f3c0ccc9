//! The bytes of a HAL buffer: its own, or bytes that must keep their value and are copied when a program may write them.

use crate::kept::{KeptArgument, KeptConstant};
use std::sync::Arc;
use vmfb_memory::Span;
use vmfb_vm::{CallScope, Error, Meter, Result};

/// Who writes bytes that may be those of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The runtime: commands, and kernels that run under the limits of the store. What can be written is charged to it.
    Checked,
    /// Machine code. Pages of a constant that it writes are not charged.
    MachineCode,
}

/// A range of bytes whose owner is known, looked up when they are used.
#[derive(Clone, Debug)]
pub struct Bytes(Source);

#[derive(Clone, Debug)]
enum Source {
    Own(Span),
    Kept { kept: Kept, offset: usize, length: usize },
}

#[derive(Clone, Debug)]
enum Kept {
    Argument(Arc<KeptArgument>),
    Constant(Arc<KeptConstant>),
}

impl Bytes {
    /// Bytes that a program may write if the span may be written.
    pub fn own(span: Span) -> Self {
        Self(Source::Own(span))
    }

    /// Bytes of a tensor that the host keeps: the program writes on a copy.
    pub(crate) fn argument(span: Span) -> Self {
        let length = span.len();
        Self(Source::Kept { kept: Kept::Argument(Arc::new(KeptArgument::new(span))), offset: 0, length })
    }

    /// Bytes of a constant: each call writes on a copy of its own.
    pub fn constant(span: Span) -> Self {
        let length = span.len();
        Self(Source::Kept { kept: Kept::Constant(Arc::new(KeptConstant::new(span))), offset: 0, length })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Source::Own(span) => span.len(),
            Source::Kept { length, .. } => *length,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of the bytes.
    pub fn slice(&self, offset: usize, length: usize) -> Result<Self> {
        match &self.0 {
            Source::Own(span) => Ok(Self::own(span.slice(offset, length)?)),
            Source::Kept { kept, offset: start, length: available } => {
                if available.checked_sub(offset).is_none_or(|rest| length > rest) {
                    return Err(Error::out_of_range(format!(
                        "the range of {length} bytes at offset {offset} does not lie in the buffer of {available} bytes"
                    )));
                }
                Ok(Self(Source::Kept { kept: kept.clone(), offset: start.saturating_add(offset), length }))
            }
        }
    }

    /// The bytes as the call that the meter is lent to sees them.
    pub fn readable(&self, meter: &Meter) -> Result<Span> {
        match &self.0 {
            Source::Own(span) => Ok(span.clone()),
            Source::Kept { kept: Kept::Argument(kept), offset, length } => Ok(kept.current().slice(*offset, *length)?),
            Source::Kept { kept: Kept::Constant(kept), offset, length } => Ok(kept.current(meter.scope())?.slice(*offset, *length)?),
        }
    }

    /// The bytes for writing. Those that must keep their value are copied; a copy is charged to the meter's account.
    pub fn writable(&self, writer: Writer, meter: &mut Meter) -> Result<Span> {
        match &self.0 {
            Source::Own(span) => Ok(span.clone()),
            Source::Kept { kept: Kept::Argument(kept), offset, length } => Ok(kept.copied(meter)?.slice(*offset, *length)?),
            Source::Kept { kept: Kept::Constant(kept), offset, length } => kept.writable(*offset, *length, writer, meter),
        }
    }

    /// The bytes as the host sees them: a constant as it is between calls.
    pub fn current(&self) -> Span {
        let (whole, offset, length) = match &self.0 {
            Source::Own(span) => return span.clone(),
            Source::Kept { kept: Kept::Argument(kept), offset, length } => (kept.current(), offset, length),
            Source::Kept { kept: Kept::Constant(kept), offset, length } => (kept.between_calls(), offset, length),
        };
        match whole.slice(*offset, *length) {
            Ok(span) => span,
            Err(_) => unreachable!("parts are checked when they are made"),
        }
    }

    /// How many spans refer to the storage, if these are bytes that a program may write in place.
    pub(crate) fn holders(&self) -> Option<usize> {
        match &self.0 {
            Source::Own(span) if span.is_writable() => Some(span.holders()),
            _ => None,
        }
    }

    /// What a call has made of a constant, where it has written it: for values that outlive the call.
    pub(crate) fn written_by(&self, scope: &CallScope) -> Result<Option<Span>> {
        match &self.0 {
            Source::Kept { kept: Kept::Constant(kept), offset, length } => kept.written_by(scope, *offset, *length),
            _ => Ok(None),
        }
    }

    /// For work that is done later, perhaps when the call that it belongs to has ended: keeps alive what the call sees of a
    /// constant, as long as the result is.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there is no memory for the call's copy of it.
    pub fn hold(&self, meter: &mut Meter) -> Result<Option<Span>> {
        match &self.0 {
            Source::Kept { kept: Kept::Constant(kept), offset, length } => {
                kept.writable(*offset, *length, Writer::MachineCode, meter).map(Some)
            }
            _ => Ok(None),
        }
    }
}
