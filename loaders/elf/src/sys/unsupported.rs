//! Executable memory where there is none.

use crate::layout::Protection;
use std::io;
use std::ops::Range;

/// Memory that cannot be had.
#[derive(Debug)]
pub(crate) enum Mapping {}

impl Mapping {
    pub(crate) fn writable(_length: usize, _alignment: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn base(&self) -> *mut u8 {
        match *self {}
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match *self {}
    }

    pub(crate) fn protect(&mut self, _range: Range<usize>, _protection: Protection) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn close(&mut self, _range: Range<usize>) -> io::Result<()> {
        match *self {}
    }
}

pub(crate) fn page_size() -> u64 {
    4096
}
