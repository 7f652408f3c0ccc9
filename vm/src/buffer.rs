//! `!vm.buffer`: bytes with access rights.

use crate::{Error, Result};
use std::fmt;
use std::sync::Arc;
use vmfb_bytecode::Status;
use vmfb_memory::{MemoryAccount, Span};

/// A buffer of bytes with access rights. Clones are the same buffer.
#[derive(Clone)]
pub struct Buffer(Arc<Inner>);

struct Inner {
    span: Span,
    origin: Origin,
}

/// Who made the bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A constant of a module.
    Module,
    /// The program.
    Guest,
    /// The host or a native module.
    Host,
}

impl Buffer {
    /// New zeroed bytes that the program may write.
    pub fn allocate(length: usize, alignment: usize, account: &MemoryAccount) -> Result<Self> {
        Ok(Self::new(Span::zeroed(length, alignment, account)?, Origin::Guest))
    }

    /// A buffer over the given bytes; it may be written exactly if the span may.
    pub fn new(span: Span, origin: Origin) -> Self {
        Self(Arc::new(Inner { span, origin }))
    }

    /// A constant buffer with the given content.
    pub fn constant(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Span::from_vector(bytes.into()), Origin::Host)
    }

    /// The bytes.
    #[inline]
    pub fn span(&self) -> &Span {
        &self.0.span
    }

    /// The bytes if they may be written, else PERMISSION_DENIED.
    #[inline]
    pub fn writable(&self) -> Result<&Span> {
        if self.0.span.is_writable() { Ok(&self.0.span) } else { Err(read_only()) }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.span.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Who made the bytes.
    pub fn origin(&self) -> Origin {
        self.0.origin
    }

    /// Whether both are the same buffer object.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The content as text, for names and format strings: INVALID_ARGUMENT naming `what` if it is no UTF-8. A NUL at the end is dropped.
    pub fn text(&self, what: &str) -> Result<String> {
        let mut bytes = self.span().to_vec()?;
        if bytes.last() == Some(&0) {
            bytes.pop();
        }
        String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{what} is not UTF-8 text")))
    }
}

#[cold]
fn read_only() -> Error {
    Error::new(Status::PermissionDenied, "the buffer is read-only")
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "!vm.buffer of {} bytes ({:?})", self.len(), self.0.origin)
    }
}
