//! The error of the runtime: a status, what happened, and where.

use std::fmt;
use vmfb_bytecode::Status;

/// Result of the runtime.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes of the message of an error. Names come from modules, which can make them of any length.
const MAXIMUM_TEXT: usize = 64 << 10;

/// Bytes of one text of context.
const MAXIMUM_CONTEXT: usize = 4 << 10;

/// Bytes of a name or source position in a frame.
const MAXIMUM_NAME: usize = 1 << 10;

/// Source positions of a frame.
const MAXIMUM_POSITIONS: usize = 8;

/// Texts of context and frames of an error; of more, the innermost and the outermost are kept.
const MAXIMUM_PARTS: usize = 64;

/// Why an operation failed. One pointer in size.
///
/// What an error holds is bounded: long texts are cut, and of long chains the middle is left out.
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: Status,
    message: String,
    context: Vec<String>,
    frames: Vec<FrameTrace>,
}

/// Where in a program an error was raised: one frame of the VM stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTrace {
    /// Module name.
    pub module: String,
    /// Ordinal of the function in its module.
    pub function: u32,
    /// Name of the function where it has one.
    pub name: Option<String>,
    /// Byte offset of the instruction in the function.
    pub pc: u32,
    /// Source position, `file:line:column`, where the module kept it; innermost first.
    pub source: Vec<String>,
}

impl Error {
    /// A failure with the given status.
    #[cold]
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { status, message: cut(message.into(), MAXIMUM_TEXT), context: Vec::new(), frames: Vec::new() }))
    }

    /// INVALID_ARGUMENT.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Status::InvalidArgument, message)
    }

    /// OUT_OF_RANGE.
    #[cold]
    pub fn out_of_range(message: impl Into<String>) -> Self {
        Self::new(Status::OutOfRange, message)
    }

    /// NOT_FOUND.
    #[cold]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Status::NotFound, message)
    }

    /// RESOURCE_EXHAUSTED.
    #[cold]
    pub fn exhausted(message: impl Into<String>) -> Self {
        Self::new(Status::ResourceExhausted, message)
    }

    /// FAILED_PRECONDITION.
    #[cold]
    pub fn precondition(message: impl Into<String>) -> Self {
        Self::new(Status::FailedPrecondition, message)
    }

    /// UNIMPLEMENTED.
    #[cold]
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Status::Unimplemented, message)
    }

    /// INTERNAL.
    #[cold]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Status::Internal, message)
    }

    /// The status code.
    pub fn status(&self) -> Status {
        self.0.status
    }

    /// What happened, without context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What was being done, innermost first.
    pub fn context_chain(&self) -> impl Iterator<Item = &str> {
        self.0.context.iter().map(String::as_str)
    }

    /// The frames that were running, innermost first.
    pub fn frames(&self) -> &[FrameTrace] {
        &self.0.frames
    }

    /// Adds what was being done.
    #[must_use]
    #[cold]
    pub fn context(mut self, text: impl Into<String>) -> Self {
        push_bounded(&mut self.0.context, cut(text.into(), MAXIMUM_CONTEXT));
        self
    }

    /// Adds a frame to the trace, outside the ones that are there.
    #[must_use]
    #[cold]
    pub fn frame(mut self, mut frame: FrameTrace) -> Self {
        frame.module = cut(frame.module, MAXIMUM_NAME);
        frame.name = frame.name.map(|name| cut(name, MAXIMUM_NAME));
        frame.source.truncate(MAXIMUM_POSITIONS);
        frame.source = frame.source.into_iter().map(|text| cut(text, MAXIMUM_NAME)).collect();
        push_bounded(&mut self.0.frames, frame);
        self
    }

    /// How many bytes of memory the error takes, about.
    pub fn size(&self) -> u64 {
        let text = |text: &str| text.len() as u64 + 64;
        let frame = |frame: &FrameTrace| {
            let source: u64 = frame.source.iter().map(|position| text(position)).sum();
            size_of::<FrameTrace>() as u64 + text(&frame.module) + frame.name.as_deref().map_or(0, text) + source
        };
        let context: u64 = self.0.context.iter().map(|entry| text(entry)).sum();
        let frames: u64 = self.0.frames.iter().map(frame).sum();
        256 + text(&self.0.message) + context + frames
    }
}

/// Adds to a list of texts or frames; where it is full, the first of the outer half makes room.
fn push_bounded<T>(parts: &mut Vec<T>, part: T) {
    if parts.len() >= MAXIMUM_PARTS {
        parts.remove(MAXIMUM_PARTS / 2);
    }
    parts.push(part);
}

/// A text of at most so many bytes, and a few that say what was cut.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let length = text.len();
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(&format!("… ({length} bytes)"));
        text.shrink_to_fit();
    }
    text
}

/// Adds context to results.
pub trait ResultExt<T> {
    /// Adds what was being done, if this is an error.
    fn context(self, text: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for std::result::Result<T, E> {
    fn context(self, text: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| error.into().context(text()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.status, Escaped(&self.0.message))?;
        for text in &self.0.context {
            write!(f, "; {}", Escaped(text))?;
        }
        for frame in &self.0.frames {
            write!(f, "\n  at {frame}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FrameTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{}.{}", Escaped(&self.module), Escaped(name))?,
            None => write!(f, "{}@{}", Escaped(&self.module), self.function)?,
        }
        write!(f, ":{:#x}", self.pc)?;
        for position in &self.source {
            write!(f, " {}", Escaped(position))?;
        }
        Ok(())
    }
}

/// Text that may come from a module: control characters are escaped, as terminals act on them. Lines stay lines.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(|letter: char| letter.is_control() && letter != '\n') {
            let (plain, control) = rest.split_at(at);
            f.write_str(plain)?;
            let mut letters = control.chars();
            letters.next().map_or(Ok(()), |letter| write!(f, "{}", letter.escape_default()))?;
            rest = letters.as_str();
        }
        f.write_str(rest)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<vmfb_bytecode::Error> for Error {
    fn from(error: vmfb_bytecode::Error) -> Self {
        let status = error.status;
        let mut message = error.message;
        if let Some(function) = error.function {
            message.push_str(&format!(" (function {function}"));
            if let Some(pc) = error.pc {
                message.push_str(&format!(" at pc {pc:#x}"));
            }
            message.push(')');
        }
        Self::new(status, message)
    }
}

impl From<vmfb_memory::Error> for Error {
    fn from(error: vmfb_memory::Error) -> Self {
        use vmfb_memory::Error as Memory;
        let status = match error {
            Memory::OutOfRange { .. } => Status::OutOfRange,
            Memory::ReadOnly => Status::PermissionDenied,
            Memory::BadAlignment(_) => Status::InvalidArgument,
            Memory::OutOfMemory { .. } | Memory::OverLimit { .. } => Status::ResourceExhausted,
        };
        Self::new(status, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_holds_is_bounded() {
        let long = "ö".repeat(1 << 20);
        let mut error = Error::invalid(long.clone());
        for index in 0..1000 {
            let frame = FrameTrace { module: long.clone(), function: index, name: None, pc: 0, source: vec![long.clone()] };
            error = error.context(format!("{index} {long}")).frame(frame);
        }
        assert!(error.message().ends_with("ö… (2097152 bytes)"), "{}", &error.message()[error.message().len() - 40..]);
        let context: Vec<_> = error.context_chain().map(|text| text.split(' ').next().unwrap()).collect();
        assert_eq!((context[0], context[31], context[63], context.len()), ("0", "31", "999", 64));
        assert_eq!((error.frames().len(), error.frames()[63].function), (64, 999));
        assert!(error.size() < 1 << 20, "{} bytes", error.size());
    }

    #[test]
    fn an_error_is_one_pointer() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
