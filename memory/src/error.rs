//! Why an access or an allocation was refused.

use std::fmt;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an access or an allocation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The range `offset..offset + length` does not lie in `available` bytes.
    OutOfRange {
        /// First byte, counted from the start of the span.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// Length of the span.
        available: u64,
    },
    /// The span may not be written.
    ReadOnly,
    /// The alignment is not a power of two.
    BadAlignment(u64),
    /// The system has no memory of this size.
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
    },
    /// The limit of the account would be passed.
    OverLimit {
        /// Bytes asked for.
        requested: u64,
        /// Bytes charged already.
        used: u64,
        /// The limit.
        limit: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { offset, length, available } => {
                write!(f, "{length} bytes at offset {offset} do not lie in a range of {available} bytes")
            }
            Self::ReadOnly => f.write_str("the bytes are read-only"),
            Self::BadAlignment(alignment) => write!(f, "alignment {alignment} is not a power of two"),
            Self::OutOfMemory { requested } => write!(f, "no memory for {requested} bytes"),
            Self::OverLimit { requested, used, limit } => {
                write!(f, "{requested} bytes would pass the memory limit of {limit} bytes ({used} in use)")
            }
        }
    }
}

impl std::error::Error for Error {}
