//! `.irpa` files: headers that are linked forwards, each with a table of entries, a segment of names and one of data.

use crate::index::{Content, Pattern};
use crate::reader::{Builder, Reader, part};
use vmfb_memory::Span;
use vmfb_vm::{Error, Result, ResultExt};

const MAGIC: u32 = 0x4150_5249;

/// Size of a version 0 header.
const HEADER_SIZE: u64 = 88;

/// Headers and entries begin at multiples of this.
const ALIGNMENT: u64 = 16;

/// Size of the fields that all entries have.
const ENTRY_SIZE: u64 = 60;

const SKIP: u32 = 0;
const SPLAT: u32 = 1;
const DATA: u32 = 2;
const EXTERNAL: u32 = 3;

/// The segments of one header.
struct Segments {
    count: u64,
    entries: Span,
    metadata: Span,
    storage: Span,
}

pub(crate) fn parse(file: &Span, builder: &mut Builder) -> Result<()> {
    let mut start = 0;
    // Entry tables of several headers may overlap; all entries together are no more than fit into the file.
    let mut budget = file.len() as u64 / ENTRY_SIZE;
    loop {
        let (segments, next) = header(file, start).context(|| format!("in the header at offset {start}"))?;
        entries(&segments, builder, &mut budget).context(|| format!("in the entries of the header at offset {start}"))?;
        if next == 0 {
            return Ok(());
        }
        // Forwards only, so that this ends.
        start = start.checked_add(next).ok_or_else(|| Error::out_of_range("the next header lies past the end of the file"))?;
    }
}

/// Reads a header; gives its segments and the distance to the next header.
fn header(file: &Span, start: u64) -> Result<(Segments, u64)> {
    let mut reader = Reader::new(file, start);
    let (magic, major, minor) = (reader.u32()?, reader.u16()?, reader.u16()?);
    if magic != MAGIC {
        return Err(Error::invalid(format!("found the magic {magic:#010x}, an .irpa file has {MAGIC:#010x}")));
    }
    if (major, minor) != (0, 0) {
        return Err(Error::unimplemented(format!("version {major}.{minor} of the format; this runtime knows 0.0")));
    }
    let (size, next, _flags) = (reader.u64()?, reader.u64()?, reader.u64()?);
    if size != HEADER_SIZE {
        return Err(Error::invalid(format!("a header of {size} bytes; version 0 has {HEADER_SIZE}")));
    }
    if !next.is_multiple_of(ALIGNMENT) || (next != 0 && next < HEADER_SIZE) {
        return Err(Error::invalid(format!("the distance to the next header is {next}; wanted 0 or a multiple of {ALIGNMENT}")));
    }
    let count = reader.u64()?;
    let from_header = part(file, start, (file.len() as u64).saturating_sub(start), "the header")?;
    let mut segment = |what| {
        let (offset, length) = (reader.u64()?, reader.u64()?);
        part(&from_header, offset, length, what)
    };
    let segments =
        Segments { count, entries: segment("the entry table")?, metadata: segment("the metadata")?, storage: segment("the storage")? };
    Ok((segments, next))
}

fn entries(segments: &Segments, builder: &mut Builder, budget: &mut u64) -> Result<()> {
    let mut start = 0u64;
    for index in 0..segments.count {
        *budget = budget.checked_sub(1).ok_or_else(|| Error::invalid("there are more entries than fit into the file"))?;
        let size = entry(segments, start, builder).context(|| format!("in entry {index}"))?;
        start = start
            .checked_add(size)
            .and_then(|end| end.checked_next_multiple_of(ALIGNMENT))
            .ok_or_else(|| Error::out_of_range("the entry is too large"))?;
    }
    Ok(())
}

/// Reads an entry; gives its size.
fn entry(segments: &Segments, start: u64, builder: &mut Builder) -> Result<u64> {
    let size = Reader::new(&segments.entries, start).u64()?;
    let entry = part(&segments.entries, start, size, "the entry")?;
    let mut reader = Reader::new(&entry, 8);
    let (kind, _flags) = (reader.u32()?, reader.u64()?);
    let (name_offset, name_length) = (reader.u64()?, reader.u64()?);
    let (metadata_offset, metadata_length) = (reader.u64()?, reader.u64()?);
    part(&segments.metadata, metadata_offset, metadata_length, "the metadata of an entry")?;
    let _minimum_alignment = reader.u64()?;
    let content = match kind {
        SKIP => return Ok(size),
        SPLAT => splat(&mut reader)?,
        DATA => Content::Data(part(&segments.storage, reader.u64()?, reader.u64()?, "the data of an entry")?),
        EXTERNAL => return Err(Error::unimplemented("the parameter lies in another file, which is not supported")),
        kind => return Err(Error::unimplemented(format!("an entry of the unknown type {kind}"))),
    };
    let name = builder.name(&segments.metadata, name_offset, name_length)?;
    builder.add(name, content);
    Ok(size)
}

fn splat(reader: &mut Reader<'_>) -> Result<Content> {
    let length = reader.u64()?;
    let (bytes, pattern_length) = (reader.bytes::<16>()?, reader.u8()?);
    let pattern = Pattern::new(bytes, pattern_length)?;
    Ok(Content::Splat { pattern, length })
}
