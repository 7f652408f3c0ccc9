//! Files that inputs come from: array files and raw bytes, read from the start or on from where the last value ended.

use crate::failure::{Failure, Result, io_status};
use crate::npy::{self, Array};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use vmfb_vm::Status;

/// Open files by path.
#[derive(Debug, Default)]
pub(crate) struct Files(HashMap<String, BufReader<File>>);

impl Files {
    /// Makes the next read of this file begin at its start.
    pub(crate) fn rewind(&mut self, path: &str) {
        self.0.remove(path);
    }

    /// The next array of an array file of at most `limit` bytes; `None` at its end.
    pub(crate) fn next_array(&mut self, path: &str, limit: u64) -> Result<Option<Array>> {
        npy::read(self.open(path)?, limit).map_err(|failure| failure.context(format!("reading {path}")))
    }

    /// Whether an array begins where the next read of this file begins.
    pub(crate) fn is_at_array(&mut self, path: &str) -> Result<bool> {
        let reader = self.open(path)?;
        let ahead = reader.fill_buf().map_err(|error| read_error(path, &error))?;
        Ok(ahead.starts_with(npy::MAGIC))
    }

    /// The next `length` bytes.
    pub(crate) fn next_bytes(&mut self, path: &str, length: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.take(length).read_to_end(&mut bytes).map_err(|error| read_error(path, &error))?;
        if bytes.len() as u64 == length {
            return Ok(bytes);
        }
        Err(Failure::new(Status::OutOfRange, format!("{path} has {} bytes there, {length} are needed", bytes.len())))
    }

    fn open(&mut self, path: &str) -> Result<&mut BufReader<File>> {
        if !self.0.contains_key(path) {
            let file = File::open(path).map_err(|error| Failure::new(io_status(&error), format!("cannot open {path}: {error}")))?;
            self.0.insert(path.to_owned(), BufReader::new(file));
        }
        self.0.get_mut(path).ok_or_else(|| Failure::new(Status::Internal, format!("{path} is not open")))
    }
}

fn read_error(path: &str, error: &std::io::Error) -> Failure {
    Failure::new(io_status(error), format!("cannot read {path}: {error}"))
}
