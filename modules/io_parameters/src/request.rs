//! What programs ask for: scope, keys and spans, as they stand in buffers.

use vmfb_memory::Span;
use vmfb_vm::{Arguments, Buffer, Error, Meter, Ref, Result};

/// Longest key; names in files that are longer cannot be asked for.
const MOST_KEY: u32 = 64 << 10;

/// A key takes two words of the key table.
const KEY_BYTES: usize = 8;

/// A span takes three double words.
const SPAN_BYTES: usize = 24;

/// Keys and spans of one call.
pub(crate) struct Requests<'a> {
    table: &'a Span,
    data: &'a Span,
    spans: &'a Span,
    count: usize,
}

/// A range of a parameter, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) key: Vec<u8>,
    pub(crate) parameter_offset: u64,
    pub(crate) buffer_offset: u64,
    pub(crate) length: u64,
}

impl<'a> Requests<'a> {
    /// Reads key table, key data and spans.
    pub(crate) fn read(arguments: &mut Arguments<'a>) -> Result<Self> {
        let table = arguments.buffer("the key table")?.span();
        let data = arguments.buffer("the key data")?.span();
        let spans = arguments.buffer("the spans")?.span();
        if !spans.len().is_multiple_of(SPAN_BYTES) {
            return Err(Error::invalid(format!("the spans have {} bytes; wanted a multiple of {SPAN_BYTES}", spans.len())));
        }
        let count = spans.len() / SPAN_BYTES;
        let keys = table.len() / KEY_BYTES;
        if keys < count {
            return Err(Error::invalid(format!("the key table has {keys} keys for {count} spans")));
        }
        Ok(Self { table, data, spans, count })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// One request. Reading it costs a unit of fuel and what its key has in bytes.
    pub(crate) fn get(&self, index: usize, meter: &mut Meter) -> Result<Request> {
        let word = |offset| self.table.load_u32(index * KEY_BYTES + offset).ok_or_else(lost);
        let double = |offset| self.spans.load_u64(index * SPAN_BYTES + offset).ok_or_else(lost);
        let key = read_key(self.data, word(0)?, word(4)?, meter)?;
        Ok(Request { key, parameter_offset: double(0)?, buffer_offset: double(8)?, length: double(16)? })
    }
}

fn read_key(data: &Span, offset: u32, length: u32, meter: &mut Meter) -> Result<Vec<u8>> {
    meter.charge(1)?;
    if length > MOST_KEY {
        return Err(Error::not_found(format!("a key of {length} bytes; the longest that there can be has {MOST_KEY}")));
    }
    meter.charge_bytes(u64::from(length))?;
    Ok(data.slice(offset as usize, length as usize)?.to_vec()?)
}

/// A name as a whole buffer, null for an empty one.
pub(crate) fn read_text(reference: &Ref, what: &str) -> Result<Vec<u8>> {
    if reference.is_null() {
        return Ok(Vec::new());
    }
    let buffer: &Buffer = reference.buffer(what)?;
    if buffer.len() > MOST_KEY as usize {
        return Err(Error::not_found(format!("{what} has {} bytes; the longest that there can be has {MOST_KEY}", buffer.len())));
    }
    let mut bytes = buffer.span().to_vec()?;
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(bytes)
}

#[cold]
fn lost() -> Error {
    Error::internal("a request lies outside of its table")
}
