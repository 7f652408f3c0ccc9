//! `.safetensors` files: the length of a JSON object, the object with a description of each tensor, and their data.

use crate::index::Content;
use crate::reader::{Builder, Reader, part};
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::io::{self, Read};
use vmfb_memory::Span;
use vmfb_vm::{Error, Result};

/// Longest header, as in the official library.
const MOST_HEADER: u64 = 100_000_000;

pub(crate) fn parse(file: &Span, builder: &mut Builder) -> Result<()> {
    let mut reader = Reader::new(file, 0);
    let length = reader.u64()?;
    if length > MOST_HEADER {
        return Err(Error::invalid(format!("a header of {length} bytes; a .safetensors file has at most {MOST_HEADER}")));
    }
    let header = part(file, reader.position(), length, "the header")?;
    reader.skip(length)?;
    let start = reader.position();
    let data = part(file, start, (file.len() as u64).saturating_sub(start), "the data")?;
    // The map is never a slice; the header is read in pieces.
    let mut json = serde_json::Deserializer::from_reader(Pieces::new(&header));
    let mut failure = None;
    let read = json.deserialize_map(Tensors { data: &data, builder, failure: &mut failure }).and_then(|()| json.end());
    match (failure, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(Error::invalid(format!("the header does not describe tensors: {error}"))),
        (None, Ok(())) => Ok(()),
    }
}

/// Reads the object that describes all tensors.
struct Tensors<'a> {
    data: &'a Span,
    builder: &'a mut Builder,
    /// A failure that has a status of its own.
    failure: &'a mut Option<Error>,
}

impl<'de> Visitor<'de> for Tensors<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let Offsets { begin, end } = map.next_value()?;
            let bytes = match end.checked_sub(begin) {
                Some(length) => part(self.data, begin, length, &format!("the data of {name:?}")),
                None => Err(Error::out_of_range(format!("the data of {name:?} end at {end}, before they begin at {begin}"))),
            };
            match bytes {
                Ok(bytes) => self.builder.add(name.into_bytes().into(), Content::Data(bytes)),
                Err(error) => {
                    *self.failure = Some(error);
                    return Err(A::Error::custom("a tensor lies outside of the file"));
                }
            }
        }
        Ok(())
    }
}

/// What is needed of the description of a tensor: where it begins and ends in the data.
struct Offsets {
    begin: u64,
    end: u64,
}

impl<'de> serde::Deserialize<'de> for Offsets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OffsetsVisitor)
    }
}

struct OffsetsVisitor;

impl<'de> Visitor<'de> for OffsetsVisitor {
    type Value = Offsets;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the description of a tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Offsets, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "data_offsets" {
                let (begin, end) = map.next_value()?;
                found.get_or_insert(Offsets { begin, end });
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        found.ok_or_else(|| A::Error::missing_field("data_offsets"))
    }
}

/// Reads a span in pieces.
struct Pieces<'a> {
    span: &'a Span,
    /// Offset of the first byte that is not in the piece.
    next: usize,
    piece: Box<[u8; 4096]>,
    taken: usize,
    filled: usize,
}

impl<'a> Pieces<'a> {
    fn new(span: &'a Span) -> Self {
        Self { span, next: 0, piece: Box::new([0; 4096]), taken: 0, filled: 0 }
    }

    fn refill(&mut self) -> io::Result<()> {
        let length = self.piece.len().min(self.span.len() - self.next);
        if let Some(piece) = self.piece.get_mut(..length) {
            self.span.read(self.next, piece).map_err(io::Error::other)?;
        }
        self.next += length;
        (self.taken, self.filled) = (0, length);
        Ok(())
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.filled {
            self.refill()?;
        }
        let rest = self.piece.get(self.taken..self.filled).unwrap_or_default();
        let length = rest.len().min(target.len());
        if let (Some(target), Some(source)) = (target.get_mut(..length), rest.get(..length)) {
            target.copy_from_slice(source);
        }
        self.taken += length;
        Ok(length)
    }
}
