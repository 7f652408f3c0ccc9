//! A cursor over the header of a parameter file, and the index that is built from what it reads.

use crate::index::{Content, Parameter};
use std::collections::HashMap;
use vmfb_memory::Span;
use vmfb_vm::{Error, Result};

/// Reads little-endian fields one after the other.
pub(crate) struct Reader<'a> {
    span: &'a Span,
    position: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(span: &'a Span, position: u64) -> Self {
        Self { span, position }
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        let offset = self.skip(N as u64)?;
        self.span.read(offset as usize, &mut bytes)?;
        Ok(bytes)
    }

    /// Passes over bytes that must be there; gives the offset of the first.
    pub(crate) fn skip(&mut self, length: u64) -> Result<u64> {
        let start = self.position;
        let end = start.checked_add(length).filter(|end| *end <= self.span.len() as u64);
        self.position = end.ok_or_else(|| {
            Error::out_of_range(format!("the header goes on to offset {start} + {length}, the file ends at {}", self.span.len()))
        })?;
        Ok(start)
    }
}

/// A part of a span that a file states; `what` names it in the error.
pub(crate) fn part(span: &Span, offset: u64, length: u64, what: &str) -> Result<Span> {
    match (usize::try_from(offset), usize::try_from(length)) {
        (Ok(offset), Ok(length)) if span.check(offset, length).is_ok() => Ok(span.slice(offset, length)?),
        _ => Err(Error::out_of_range(format!("{what}: {length} bytes at offset {offset} do not lie in {} bytes", span.len()))),
    }
}

/// Collects parameters. What it holds is bounded by the size of the file, however often ranges of the file overlap.
pub(crate) struct Builder {
    parameters: HashMap<Box<[u8]>, Parameter>,
    /// Bytes of names that may still come.
    name_budget: u64,
}

impl Builder {
    pub(crate) fn new(file: &Span) -> Self {
        Self { parameters: HashMap::new(), name_budget: file.len() as u64 }
    }

    /// Reads a name.
    pub(crate) fn name(&mut self, file: &Span, offset: u64, length: u64) -> Result<Box<[u8]>> {
        let name = part(file, offset, length, "a name")?;
        self.name_budget = self.name_budget.checked_sub(length).ok_or_else(|| Error::invalid("the names overlap"))?;
        Ok(name.to_vec()?.into())
    }

    /// Adds a parameter; the first with a name stays.
    pub(crate) fn add(&mut self, name: Box<[u8]>, content: Content) {
        self.parameters.entry(name).or_insert(Parameter(content));
    }

    pub(crate) fn finish(self) -> HashMap<Box<[u8]>, Parameter> {
        self.parameters
    }
}
