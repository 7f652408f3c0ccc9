//! A cursor over the header of a parameter file, and the index that is built from what it reads.

use crate::index::{Content, Parameter};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
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

/// Whether several names may stand for the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// They may, if the bytes are the same from the first to the last: tied weights in archives.
    Whole,
    /// They may not.
    None,
}

/// Collects parameters. What it holds is bounded by the size of the file, however often ranges of the file overlap.
pub(crate) struct Builder {
    parameters: HashMap<Box<[u8]>, Parameter>,
    /// Bytes of names that may still come.
    name_budget: u64,
    /// Address of the file.
    start: usize,
    /// The first name that came twice, for other bytes.
    twice: Option<Box<[u8]>>,
    sharing: Sharing,
}

impl Builder {
    pub(crate) fn new(file: &Span, sharing: Sharing) -> Self {
        let start = file.address().addr();
        Self { parameters: HashMap::new(), name_budget: file.len() as u64, start, twice: None, sharing }
    }

    /// Reads a name.
    pub(crate) fn name(&mut self, file: &Span, offset: u64, length: u64) -> Result<Box<[u8]>> {
        let name = part(file, offset, length, "a name")?;
        self.name_budget = self.name_budget.checked_sub(length).ok_or_else(|| Error::invalid("the names overlap"))?;
        Ok(name.to_vec()?.into())
    }

    /// Adds a parameter.
    pub(crate) fn add(&mut self, name: Box<[u8]>, content: Content) {
        match self.parameters.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(Parameter(content));
            }
            Entry::Occupied(entry) => {
                let same = self.sharing == Sharing::Whole && range(&entry.get().0).is_some_and(|bytes| range(&content) == Some(bytes));
                if !same {
                    self.twice.get_or_insert_with(|| entry.key().clone());
                }
            }
        }
    }

    /// The parameters, if each name stands for one and no byte belongs to two.
    pub(crate) fn finish(self) -> Result<HashMap<Box<[u8]>, Parameter>> {
        if let Some(name) = &self.twice {
            return Err(Error::invalid(format!("two parameters have the name {}", shown(name))));
        }
        let ranges = self.parameters.iter().filter_map(|(name, parameter)| Some((range(&parameter.0)?, &**name)));
        let mut ranges: Vec<_> = ranges.filter(|((start, end), _)| start < end).collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            if let [(first, a), (second, b)] = pair
                && second.0 < first.1
                && (self.sharing == Sharing::None || first != second)
            {
                let [from, to] = [second.0, first.1.min(second.1)].map(|address| address - self.start);
                return Err(Error::invalid(format!(
                    "the bytes {from} to {to} of the file belong to two parameters: {} and {}",
                    shown(a),
                    shown(b)
                )));
            }
        }
        Ok(self.parameters)
    }
}

/// First and last address of the bytes in the file.
fn range(content: &Content) -> Option<(usize, usize)> {
    match content {
        Content::Data(span) => Some((span.address().addr(), span.address().addr() + span.len())),
        Content::Splat { .. } => None,
    }
}

/// A name for messages.
fn shown(name: &[u8]) -> String {
    const LONGEST: usize = 100;
    format!("{:?}", String::from_utf8_lossy(name).chars().take(LONGEST).collect::<String>())
}
