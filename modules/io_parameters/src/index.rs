//! Parameter files: names, and where the bytes of each are.

use crate::reader::{Builder, Sharing};
use crate::{gguf, irpa, safetensors};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use vmfb_memory::{BASE_ALIGNMENT, MemoryAccount, Span};
use vmfb_vm::{Error, Meter, Result, ResultExt, Status, bulk};

/// The parameters of one file.
pub struct ParameterIndex {
    source: String,
    parameters: HashMap<Box<[u8]>, Parameter>,
}

/// One parameter.
#[derive(Clone)]
pub struct Parameter(pub(crate) Content);

#[derive(Clone)]
pub(crate) enum Content {
    /// Bytes of the file.
    Data(Span),
    /// A pattern that is repeated.
    Splat { pattern: Pattern, length: u64 },
}

/// From 1 to 16 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Pattern {
    bytes: [u8; 16],
    length: u8,
}

/// Kinds of parameter files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterFormat {
    /// `.irpa`, the archives of IREE.
    Irpa,
    /// `.safetensors`.
    Safetensors,
    /// `.gguf`.
    Gguf,
}

/// Patterns are written in pieces of about this many bytes.
const PIECE: usize = 4096;

/// So many of them take about as long as a piece of other bulk work.
const PIECES_BETWEEN_POLLS: usize = bulk::PIECE / PIECE;

impl ParameterFormat {
    /// The format of files with this name, by its end.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "irpa" => Some(Self::Irpa),
            "safetensors" => Some(Self::Safetensors),
            "gguf" => Some(Self::Gguf),
            _ => None,
        }
    }
}

impl ParameterIndex {
    /// Maps a file and reads its header; the bytes of parameters stay in the file until they are used. **If another process
    /// truncates the file while the index or one of its parameters is in use, this process ends with SIGBUS**; use
    /// [`ParameterIndex::read_file`] for files that others may write.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let format = format_of(path)?;
        let file = open(path)?;
        // An empty file cannot be mapped everywhere.
        let span = match file.metadata() {
            Ok(metadata) if metadata.len() == 0 => Span::from_static(&[]),
            _ => Span::map_file(&file).map_err(|error| file_error(path, &error))?,
        };
        Self::from_span(span, format, path.display().to_string())
    }

    /// Reads a file whole, into memory of the host.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let format = format_of(path)?;
        let mut file = open(path)?;
        let span = read_whole(&mut file, path)?;
        Self::from_span(span, format, path.display().to_string())
    }

    /// Reads the header of a file that is in memory; `source` names it in errors.
    ///
    /// A file in which one name stands for two parameters, or one byte belongs to two, is refused. In `.irpa` archives several
    /// names may have the same bytes, if these are the same from the first to the last (tied weights).
    pub fn from_span(span: Span, format: ParameterFormat, source: impl Into<String>) -> Result<Self> {
        let source = source.into();
        let span = span.read_only();
        let sharing = if format == ParameterFormat::Irpa { Sharing::Whole } else { Sharing::None };
        let mut builder = Builder::new(&span, sharing);
        let parsed = match format {
            ParameterFormat::Irpa => irpa::parse(&span, &mut builder),
            ParameterFormat::Safetensors => safetensors::parse(&span, &mut builder),
            ParameterFormat::Gguf => gguf::parse(&span, &mut builder),
        };
        let parameters = parsed.and_then(|()| builder.finish()).context(|| format!("reading the parameter file {source}"))?;
        Ok(Self { source, parameters })
    }

    /// What the index was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Number of parameters.
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// The parameter with this name.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&Parameter> {
        self.parameters.get(name.as_ref())
    }

    /// The names, in no order.
    pub fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.parameters.keys().map(|name| String::from_utf8_lossy(name))
    }
}

impl fmt::Debug for ParameterIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParameterIndex").field("source", &self.source).field("parameters", &self.parameters.len()).finish()
    }
}

impl Parameter {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Content::Data(span) => span.len() as u64,
            Content::Splat { length, .. } => *length,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes where the file holds them; `None` for a pattern that is repeated.
    pub fn bytes(&self) -> Option<&Span> {
        match &self.0 {
            Content::Data(span) => Some(span),
            Content::Splat { .. } => None,
        }
    }

    /// Copies the bytes from `offset` on into all of `target`.
    pub fn copy_to(&self, offset: u64, target: &Span) -> Result<()> {
        self.copy_within(&Meter::default(), offset, target)
    }

    /// As [`Parameter::copy_to`], in pieces between which the deadline and interruption are looked at.
    pub(crate) fn copy_within(&self, meter: &Meter, offset: u64, target: &Span) -> Result<()> {
        self.check(offset, target.len() as u64)?;
        match &self.0 {
            Content::Data(span) => bulk::copy(meter, (span, offset as usize), (target, 0), target.len()),
            Content::Splat { pattern, .. } => pattern.fill(meter, offset, target),
        }
    }

    /// Fails unless the range lies in the parameter.
    pub(crate) fn check(&self, offset: u64, length: u64) -> Result<()> {
        match self.len().checked_sub(offset) {
            Some(rest) if length <= rest => Ok(()),
            _ => Err(Error::out_of_range(format!(
                "the range of {length} bytes at offset {offset} does not lie in the parameter of {} bytes",
                self.len()
            ))),
        }
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a parameter of {} bytes", self.len())
    }
}

impl Pattern {
    /// The first `length` of these bytes.
    pub(crate) fn new(bytes: [u8; 16], length: u8) -> Result<Self> {
        if length == 0 || usize::from(length) > bytes.len() {
            return Err(Error::invalid(format!("a pattern of {length} bytes; wanted 1 to 16")));
        }
        Ok(Self { bytes, length })
    }

    /// Fills a span as if the pattern had begun `offset` bytes before it.
    fn fill(&self, meter: &Meter, offset: u64, target: &Span) -> Result<()> {
        let pattern = self.bytes.get(..usize::from(self.length)).unwrap_or(&self.bytes);
        let phase = (offset % u64::from(self.length)) as usize;
        let whole = PIECE / pattern.len() * pattern.len();
        let piece: Vec<u8> = pattern.iter().copied().cycle().skip(phase).take(whole).collect();
        for (index, start) in (0..target.len()).step_by(whole).enumerate() {
            if index % PIECES_BETWEEN_POLLS == PIECES_BETWEEN_POLLS - 1 {
                meter.poll()?;
            }
            let length = whole.min(target.len() - start);
            target.write(start, piece.get(..length).unwrap_or(&piece))?;
        }
        Ok(())
    }
}

fn format_of(path: &Path) -> Result<ParameterFormat> {
    ParameterFormat::of_path(path).ok_or_else(|| {
        Error::unimplemented(format!("{} is of an unknown format: parameters are in .irpa, .safetensors and .gguf files", path.display()))
    })
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| file_error(path, &error))
}

fn file_error(path: &Path, error: &std::io::Error) -> Error {
    let status = match error.kind() {
        std::io::ErrorKind::NotFound => Status::NotFound,
        std::io::ErrorKind::PermissionDenied => Status::PermissionDenied,
        _ => Status::Unknown,
    };
    Error::new(status, format!("cannot read the parameter file {}: {error}", path.display()))
}

/// Aligned, so that parameters can be used in place.
fn read_whole(file: &mut File, path: &Path) -> Result<Span> {
    let length = file.metadata().map_err(|error| file_error(path, &error))?.len();
    let length = usize::try_from(length).map_err(|_| Error::exhausted(format!("{} is too large", path.display())))?;
    let span = Span::zeroed(length, BASE_ALIGNMENT, &MemoryAccount::default())?;
    let mut piece = vec![0; (1 << 20).min(length)];
    let mut done = 0;
    while done < length {
        let wanted = piece.len().min(length - done);
        let read = piece.get_mut(..wanted).map_or(Ok(0), |piece| file.read(piece)).map_err(|error| file_error(path, &error))?;
        if read == 0 {
            return Err(Error::new(Status::DataLoss, format!("{} became shorter while it was read", path.display())));
        }
        span.write(done, piece.get(..read).unwrap_or_default())?;
        done += read;
    }
    Ok(span)
}
