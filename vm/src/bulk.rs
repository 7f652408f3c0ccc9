//! Work on many bytes, in pieces: between two pieces the deadline and interruption are looked at.
//!
//! A function that ends early has done its first pieces whole and none of the others; a copy to a
//! higher address of the same bytes begins with the last piece. Fuel is charged by the caller.

use crate::{Error, Meter, Result};
use vmfb_memory::Span;

/// Bytes that are worked on between two looks at the clock: about 1.5 ms where every page is touched
/// for the first time, and a few microseconds at best.
pub const PIECE: usize = 1 << 20;

/// Copies bytes; the ranges may overlap, the result is as if the source had been read first.
#[inline]
pub fn copy(meter: &Meter, (source, from): (&Span, usize), (target, to): (&Span, usize), length: usize) -> Result<()> {
    if length <= PIECE {
        return Ok(target.copy_from(to, source, from, length)?);
    }
    source.check(from, length)?;
    target.check(to, length)?;
    let ahead = (target.address().addr() + to).wrapping_sub(source.address().addr() + from);
    let piece = |start: usize, length: usize| Ok(target.copy_from(to + start, source, from + start, length)?);
    // The same condition as within a piece: a target that begins within the source is written back to front.
    if ahead != 0 && ahead < length {
        return in_pieces(meter, length, |start, part| piece(length - start - part, part));
    }
    in_pieces(meter, length, piece)
}

/// Fills bytes with a repeated pattern of 1, 2, 4 or 8 bytes; a part of the pattern at the end is cut off.
#[inline]
pub fn fill(meter: &Meter, (target, at): (&Span, usize), length: usize, pattern: &[u8]) -> Result<()> {
    if length <= PIECE {
        return Ok(target.fill(at, length, pattern)?);
    }
    target.check(at, length)?;
    // Pieces are multiples of every pattern.
    in_pieces(meter, length, |start, part| Ok(target.fill(at + start, part, pattern)?))
}

/// Whether two ranges hold the same bytes.
#[inline]
pub fn equals(meter: &Meter, (a, a_at): (&Span, usize), (b, b_at): (&Span, usize), length: usize) -> Result<bool> {
    Ok(first_difference(meter, (a, a_at), (b, b_at), length)?.is_none())
}

/// Where the first piece that differs begins, as a distance from both offsets, and how long it is.
#[inline]
pub fn first_difference(
    meter: &Meter,
    (a, a_at): (&Span, usize),
    (b, b_at): (&Span, usize),
    length: usize,
) -> Result<Option<(usize, usize)>> {
    if length <= PIECE {
        return Ok((!a.equals(a_at, b, b_at, length)?).then_some((0, length)));
    }
    a.check(a_at, length)?;
    b.check(b_at, length)?;
    let mut start = 0;
    while start < length {
        let part = (length - start).min(PIECE);
        if !a.equals(a_at + start, b, b_at + start, part)? {
            return Ok(Some((start, part)));
        }
        start += part;
        meter.poll()?;
    }
    Ok(None)
}

/// A copy of all bytes in a vector.
pub fn to_vec(meter: &Meter, source: &Span) -> Result<Vec<u8>> {
    let length = source.len();
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| Error::exhausted(format!("no memory for {length} bytes")))?;
    in_pieces(meter, length, |start, part| {
        bytes.resize(start + part, 0);
        let piece = bytes.get_mut(start..).ok_or_else(|| Error::internal("a piece lies outside of its vector"))?;
        Ok(source.read(start, piece)?)
    })?;
    Ok(bytes)
}

/// Calls `work` with start and length of each piece, and looks at the clock between two of them.
pub fn in_pieces(meter: &Meter, length: usize, mut work: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
    let mut start = 0;
    while start < length {
        if start != 0 {
            meter.poll()?;
        }
        let part = (length - start).min(PIECE);
        work(start, part)?;
        start += part;
    }
    Ok(())
}

#[cfg(test)]
#[path = "bulk_tests.rs"]
mod tests;
