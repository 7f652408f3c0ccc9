//! Memory files: bytes in memory of which private maps can be made, as of a file on disk.
//!
//! Where the system has none, and for few bytes, every function answers `None`.

use crate::private_view::MAPPED_FROM;
use crate::storage::Storage;
use crate::{Error, Result, Span};
use std::fs::File;
use std::io::{Error as IoError, Read, Write};

/// Bytes that are copied at once.
const PIECE: usize = 64 << 10;

/// Reads up to `length` bytes of a file into a memory file.
pub(crate) fn read(source: &mut File, length: usize) -> std::io::Result<Option<Storage>> {
    if length < MAPPED_FROM {
        return Ok(None);
    }
    let Some(mut file) = create() else { return Ok(None) };
    let read = std::io::copy(&mut source.take(length as u64), &mut file)?;
    // An empty map is an error.
    if read == 0 { Ok(None) } else { Storage::map(file).map(Some) }
}

/// A copy of a span in a memory file.
pub(crate) fn copy(source: &Span) -> Result<Option<Storage>> {
    if source.len() < MAPPED_FROM {
        return Ok(None);
    }
    let Some(mut file) = create() else { return Ok(None) };
    let exhausted = |_: IoError| Error::OutOfMemory { requested: source.len() as u64 };
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < source.len() {
        let length = PIECE.min(source.len() - at);
        source.read(at, &mut piece[..length])?;
        // Written by the system, which answers a lack of memory with an error; a map would end the process.
        file.write_all(&piece[..length]).map_err(exhausted)?;
        at += length;
    }
    Storage::map(file).map(Some).map_err(exhausted)
}

#[cfg(target_os = "linux")]
fn create() -> Option<File> {
    rustix::fs::memfd_create("vmfb", rustix::fs::MemfdFlags::CLOEXEC).ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn create() -> Option<File> {
    None
}
