//! Status codes of the field and the error of this crate.

use std::fmt;

/// Canonical status codes, with the numbers that `fail` instructions and kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Status {
    /// The operation was cancelled.
    Cancelled = 1,
    /// Unknown failure.
    Unknown = 2,
    /// The caller passed something that can never be right.
    InvalidArgument = 3,
    /// A deadline passed before the operation ended.
    DeadlineExceeded = 4,
    /// Something named does not exist.
    NotFound = 5,
    /// Something that should be new exists already.
    AlreadyExists = 6,
    /// The operation is not allowed.
    PermissionDenied = 7,
    /// A limit was reached.
    ResourceExhausted = 8,
    /// The system is not in the state that the operation needs.
    FailedPrecondition = 9,
    /// The operation was aborted.
    Aborted = 10,
    /// An index, offset or length lies outside its valid range.
    OutOfRange = 11,
    /// The operation is not implemented.
    Unimplemented = 12,
    /// An invariant is broken.
    Internal = 13,
    /// A service is not available.
    Unavailable = 14,
    /// Data was lost.
    DataLoss = 15,
    /// The caller is not authenticated.
    Unauthenticated = 16,
    /// The operation was deferred.
    Deferred = 17,
    /// Two things do not fit together.
    Incompatible = 18,
}

impl Status {
    /// The status with the given number; `None` for 0 (OK) and for numbers without a name.
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::Cancelled,
            2 => Self::Unknown,
            3 => Self::InvalidArgument,
            4 => Self::DeadlineExceeded,
            5 => Self::NotFound,
            6 => Self::AlreadyExists,
            7 => Self::PermissionDenied,
            8 => Self::ResourceExhausted,
            9 => Self::FailedPrecondition,
            10 => Self::Aborted,
            11 => Self::OutOfRange,
            12 => Self::Unimplemented,
            13 => Self::Internal,
            14 => Self::Unavailable,
            15 => Self::DataLoss,
            16 => Self::Unauthenticated,
            17 => Self::Deferred,
            18 => Self::Incompatible,
            _ => return None,
        })
    }

    /// The number of this status.
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The name in the field's spelling, for example `INVALID_ARGUMENT`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Deferred => "DEFERRED",
            Self::Incompatible => "INCOMPATIBLE",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why bytes are not a module that this crate accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of failure.
    pub status: Status,
    /// What was found, what was wanted.
    pub message: String,
    /// The function (its ordinal) that the failure belongs to, if it belongs to one.
    pub function: Option<u32>,
    /// The byte offset in that function.
    pub pc: Option<u32>,
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failure of the module as a whole.
    #[cold]
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), function: None, pc: None }
    }

    /// The usual case: the bytes are not well-formed.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Status::InvalidArgument, message)
    }

    /// The usual case for positions and ordinals.
    #[cold]
    pub fn out_of_range(message: impl Into<String>) -> Self {
        Self::new(Status::OutOfRange, message)
    }

    /// Says in which function and at which byte offset the failure is.
    #[must_use]
    pub fn at(mut self, function: u32, pc: u32) -> Self {
        self.function.get_or_insert(function);
        self.pc.get_or_insert(pc);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)?;
        if let Some(function) = self.function {
            write!(f, " (function {function}")?;
            if let Some(pc) = self.pc {
                write!(f, " at pc {pc:#x}")?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
