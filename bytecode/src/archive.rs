//! The archive: finds the module definition and the external constants in the bytes of a `.vmfb` file.

use crate::{Error, Result};
use std::ops::Range;
use vmfb_memory::Span;

/// Signature of a ZIP local file header, which polyglot archives start with.
pub(crate) const ZIP_LOCAL_HEADER: u32 = 0x0403_4B50;
/// Fixed part of a ZIP local file header.
pub(crate) const ZIP_LOCAL_HEADER_SIZE: usize = 30;
/// External constants start at a multiple of this, counted from the start of the archive.
pub(crate) const RODATA_ALIGNMENT: usize = 64;

/// Fewer bytes than this cannot hold a size prefix and a module definition.
const SMALLEST: usize = 16;

/// The bytes of a `.vmfb` file, plain or with a ZIP header in front, and where its parts are.
///
/// Modules nest: an executable may be an archive inside the constants of another one, at any address.
#[derive(Clone, Debug)]
pub struct Archive {
    bytes: Span,
    flatbuffer: Range<usize>,
    external: usize,
    /// Private copy of the FlatBuffer where the archive may change under us (a mapped file, a writable buffer).
    copy: Option<Vec<u8>>,
}

impl Archive {
    /// Finds the parts. Of a ZIP archive only the first local header is looked at, and of that only its length.
    pub fn open(bytes: Span) -> Result<Self> {
        let length = bytes.len();
        let header = zip_header(&bytes)?;
        let rest = length.checked_sub(header).filter(|rest| *rest >= SMALLEST);
        let Some(rest) = rest else {
            return Err(Error::invalid(format!(
                "not a vmfb archive: {length} bytes, of which {header} are a ZIP header; a module needs {SMALLEST} bytes behind it"
            )));
        };
        let size = bytes.load_u32(header).unwrap_or(u32::MAX) as usize;
        if size > rest - 4 {
            return Err(Error::invalid(format!(
                "not a vmfb archive, or a truncated one: the size prefix at {header:#x} announces {size} bytes, {} follow",
                rest - 4
            )));
        }
        let start = header + 4;
        let flatbuffer = start..start + size;
        let external = flatbuffer.end.checked_next_multiple_of(RODATA_ALIGNMENT);
        let external = external.ok_or_else(|| Error::invalid(format!("the archive of {length} bytes is too large")))?;
        let copy = if bytes.constant_bytes().is_some() { None } else { Some(copy_of(&bytes, &flatbuffer)?) };
        Ok(Self { bytes, flatbuffer, external, copy })
    }

    /// The whole archive; ranges of constants refer to it.
    pub fn bytes(&self) -> &Span {
        &self.bytes
    }

    /// The FlatBuffer without its size prefix.
    pub fn flatbuffer(&self) -> &[u8] {
        match &self.copy {
            Some(copy) => copy,
            None => self.bytes.constant_bytes().and_then(|bytes| bytes.get(self.flatbuffer.clone())).unwrap_or_default(),
        }
    }

    /// Where the FlatBuffer is in the archive.
    pub fn flatbuffer_range(&self) -> Range<usize> {
        self.flatbuffer.clone()
    }

    /// Where external constants start; behind the end of the archive when it has none.
    pub fn external_base(&self) -> usize {
        self.external
    }
}

/// Length of the ZIP header in front of the module, 0 without one.
fn zip_header(bytes: &Span) -> Result<usize> {
    if bytes.len() < ZIP_LOCAL_HEADER_SIZE || bytes.load_u32(0) != Some(ZIP_LOCAL_HEADER) {
        return Ok(0);
    }
    let lengths = bytes.load_u16(26).zip(bytes.load_u16(28));
    let header = lengths.map_or(0, |(name, extra)| ZIP_LOCAL_HEADER_SIZE + usize::from(name) + usize::from(extra));
    if header > bytes.len() {
        return Err(Error::invalid(format!("the ZIP header says that it has {header} bytes, the archive has {}", bytes.len())));
    }
    Ok(header)
}

fn copy_of(bytes: &Span, range: &Range<usize>) -> Result<Vec<u8>> {
    bytes
        .slice(range.start, range.len())
        .and_then(|part| part.to_vec())
        .map_err(|error| Error::new(crate::Status::ResourceExhausted, format!("copying the module definition: {error}")))
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
