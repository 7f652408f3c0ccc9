//! Private views: writable bytes that start as those of a read-only span, and that nothing else sees.

use crate::{Error, MemoryAccount, Result, Span, pages};

/// From this length on a view maps the pages of the file behind its source, where there is one. Below, copying is cheaper.
pub(crate) const MAPPED_FROM: usize = 64 << 10;

/// Writable bytes that start as those of a read-only span.
///
/// A large range of a file, on disk or in memory, is mapped privately: a page is copied when it is first written, and
/// nothing is copied before. Everything else is copied, and charged to the account.
#[derive(Debug)]
pub struct PrivateView {
    source: Span,
    span: Span,
}

impl PrivateView {
    /// A view of a range of bytes.
    pub fn of(source: &Span, account: &MemoryAccount) -> Result<Self> {
        if source.len() >= MAPPED_FROM
            && let Some(mapped) = source.private_map(account)
        {
            match mapped {
                Ok(span) => return Ok(Self { source: source.clone(), span }),
                Err(error @ Error::OverLimit { .. }) => return Err(error),
                // The system gives no map; it may have memory.
                Err(_) => {}
            }
        }
        let span = Span::zeroed(source.len(), 1, account)?;
        span.copy_from(0, source, 0, source.len())?;
        Ok(Self { source: source.clone(), span })
    }

    /// The bytes.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Whether the bytes are pages of a file until they are written, and so not charged.
    pub fn is_mapped(&self) -> bool {
        self.span.is_private_map()
    }

    /// Whether a range was not written: by the state of its pages where the system tells, else by comparison.
    pub fn is_unchanged(&self, offset: usize, length: usize) -> Result<bool> {
        self.span.check(offset, length)?;
        if self.is_mapped()
            && let Some(written) = pages::any_written(self.span.address().addr().wrapping_add(offset), length)
        {
            return Ok(!written);
        }
        self.span.equals(offset, &self.source, offset, length)
    }

    /// Undoes what was written to a range. Nothing may use the bytes meanwhile.
    pub fn restore(&mut self, offset: usize, length: usize, account: &MemoryAccount) -> Result<()> {
        if self.is_mapped() {
            // A new map gives the memory of the written pages back.
            *self = Self::of(&self.source, account)?;
            return Ok(());
        }
        self.span.copy_from(offset, &self.source, offset, length)
    }
}

#[cfg(test)]
#[path = "private_view_tests.rs"]
mod tests;
