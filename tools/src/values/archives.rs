//! Files that hold several named tensors: `.safetensors` and `.npz`. One is chosen as `file:key`.

use crate::failure::{Failure, Result, io_status, printable};
use crate::npy::{self, Array};
use crate::values::{counted, type_text};
use safetensors::tensor::{Dtype, Metadata};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use vmfb_hal::{Class, ElementType};
use vmfb_vm::Status;

/// Longest header of a `.safetensors` file, as in the official library.
const MOST_HEADER: u64 = 100_000_000;
/// Most keys that a message lists.
const MOST_KEYS: usize = 20;

/// Splits `file.npz:key`. A file whose name is the whole text has no key.
pub(crate) fn split_key(text: &str) -> (&str, Option<&str>) {
    let whole = || std::path::Path::new(text).exists();
    let split = [".safetensors:", ".npz:"].iter().find_map(|mark| text.find(mark).map(|at| at + mark.len() - 1));
    match split.filter(|_| !whole()).and_then(|at| text.split_at_checked(at)) {
        Some((path, key)) => (path, key.strip_prefix(':')),
        None => (text, None),
    }
}

/// The tensor with this key, of at most `limit` bytes.
pub(crate) fn read(path: &str, key: &str, limit: u64) -> Result<Array> {
    let mut archive = Archive::open(path)?.ok_or_else(|| {
        let message = format!("{path} is neither a .safetensors nor a .npz file");
        Failure::invalid(message).help("only those hold tensors with keys; other files are given without ':key'")
    })?;
    archive.read(path, key, limit)
}

/// Refuses a file whose bytes are not those of one tensor: an archive, or weights of a program.
pub(crate) fn refuse(path: &str) -> Result<()> {
    if let Some(archive) = Archive::open(path)? {
        let keys = archive.keys()?;
        let example = keys.first().map_or("KEY", |(name, _)| name);
        let message = format!("{path} is a {} file with {}, not the bytes of one", archive.kind(), counted(keys.len(), "tensor"));
        return Err(Failure::invalid(message).help(format!("choose one, for example @{path}:{example}; it holds\n{}", listing(&keys))));
    }
    let mut start = Vec::new();
    open(path)?.take(4).read_to_end(&mut start).map_err(|error| unreadable(path, &error))?;
    let kind = match start.as_slice() {
        b"IRPA" => "a parameter archive (.irpa)",
        b"GGUF" => "a GGUF file",
        b"PK\x03\x04" => return Err(Failure::invalid(format!("{path} is a ZIP archive without arrays, not the bytes of a tensor"))),
        _ => return Ok(()),
    };
    let message = format!("{path} is {kind}, not the bytes of a tensor");
    Err(Failure::invalid(message).help(format!("weights that a program loads by name are given with --parameters=[scope=]{path}")))
}

enum Archive {
    Safetensors { file: File, metadata: Metadata, start: u64 },
    Npz(Box<zip::ZipArchive<File>>),
}

impl Archive {
    /// Opens an archive; `None` for files of other kinds.
    fn open(path: &str) -> Result<Option<Self>> {
        let mut file = open(path)?;
        let mut start = Vec::new();
        (&mut file).take(9).read_to_end(&mut start).map_err(|error| unreadable(path, &error))?;
        if start.starts_with(b"PK\x03\x04") {
            let archive = zip::ZipArchive::new(file).map_err(|error| broken(path, &error))?;
            let arrays = archive.file_names().flatten().any(|name| name.ends_with(".npy"));
            return Ok(arrays.then(|| Self::Npz(Box::new(archive))));
        }
        let Some((length, b"{")) = start.split_first_chunk::<8>() else { return Ok(None) };
        let length = u64::from_le_bytes(*length);
        let whole = file.metadata().map_err(|error| unreadable(path, &error))?.len();
        if length > MOST_HEADER || length > whole.saturating_sub(8) {
            return Ok(None);
        }
        let mut header = Vec::new();
        let mut rewound = || {
            file.seek(SeekFrom::Start(0))?;
            (&mut file).take(8 + length).read_to_end(&mut header)
        };
        rewound().map_err(|error| unreadable(path, &error))?;
        let json = header.get(8..).unwrap_or_default();
        let metadata: Metadata = serde_json::from_slice(json).map_err(|error| broken(path, &error))?;
        Ok(Some(Self::Safetensors { file, metadata, start: 8 + length }))
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Safetensors { .. } => ".safetensors",
            Self::Npz(_) => ".npz",
        }
    }

    /// Keys and types, sorted.
    fn keys(&self) -> Result<Vec<(String, String)>> {
        let mut keys: Vec<(String, String)> = match self {
            Self::Safetensors { metadata, .. } => {
                let described = |(name, tensor): (String, &safetensors::tensor::TensorInfo)| {
                    let shape: Vec<u64> = tensor.shape.iter().map(|size| *size as u64).collect();
                    let kind = match element_type(tensor.dtype) {
                        Some(element_type) => type_text(&shape, element_type),
                        None => format!("{:?} of {shape:?}", tensor.dtype),
                    };
                    (name, kind)
                };
                metadata.tensors().into_iter().map(described).collect()
            }
            Self::Npz(archive) => {
                let names = archive.file_names().flatten();
                names.filter_map(|name| Some((name.strip_suffix(".npy")?.to_owned(), String::new()))).collect()
            }
        };
        keys.sort();
        Ok(keys)
    }

    fn read(&mut self, path: &str, key: &str, limit: u64) -> Result<Array> {
        let missing =
            Failure::new(Status::NotFound, format!("{path} has no tensor '{key}'")).help(format!("it holds\n{}", listing(&self.keys()?)));
        match self {
            Self::Npz(archive) => {
                let name = if key.ends_with(".npy") { key.to_owned() } else { format!("{key}.npy") };
                let mut member = match archive.by_name(&name) {
                    Ok(member) => member,
                    Err(zip::result::ZipError::FileNotFound) => return Err(missing),
                    Err(error) => return Err(broken(path, &error)),
                };
                let array = npy::read(&mut member, limit).map_err(|failure| failure.context(format!("reading {path}:{key}")))?;
                array.ok_or_else(|| Failure::new(Status::OutOfRange, format!("'{key}' of {path} is empty")))
            }
            Self::Safetensors { file, metadata, start } => {
                let Some(tensor) = metadata.info(key) else { return Err(missing) };
                let element_type = element_type(tensor.dtype)
                    .ok_or_else(|| Failure::new(Status::Unimplemented, format!("'{key}' of {path} has elements of {:?}", tensor.dtype)))?;
                let (begin, end) = tensor.data_offsets;
                let length = end.saturating_sub(begin) as u64;
                let shape: Vec<u64> = tensor.shape.iter().map(|size| *size as u64).collect();
                if npy::byte_length(&shape, element_type) != Some(length) {
                    let kind = type_text(&shape, element_type);
                    return Err(Failure::invalid(format!("'{key}' of {path} is {kind} but has {length} bytes")));
                }
                if length > limit {
                    let message = format!("'{key}' of {path} has {length} bytes, the memory limit leaves {limit}");
                    return Err(Failure::new(Status::ResourceExhausted, message));
                }
                let mut bytes = Vec::new();
                let position = start.saturating_add(begin as u64);
                file.seek(SeekFrom::Start(position)).map_err(|error| unreadable(path, &error))?;
                file.take(length).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
                if bytes.len() as u64 != length {
                    return Err(Failure::new(Status::OutOfRange, format!("{path} ends inside '{key}'")));
                }
                Ok(Array { shape, element_type, bytes })
            }
        }
    }
}

fn listing(keys: &[(String, String)]) -> String {
    let line = |(name, kind): &(String, String)| format!("  {}", printable(format!("{name} {kind}").trim_end()));
    let mut lines: Vec<String> = keys.iter().take(MOST_KEYS).map(line).collect();
    if keys.len() > MOST_KEYS {
        lines.push(format!("  and {} more", keys.len() - MOST_KEYS));
    }
    if lines.is_empty() { "  nothing".to_owned() } else { lines.join("\n") }
}

fn element_type(dtype: Dtype) -> Option<ElementType> {
    Some(match dtype {
        Dtype::BOOL => ElementType::I1,
        Dtype::U8 => ElementType::UI8,
        Dtype::U16 => ElementType::UI16,
        Dtype::U32 => ElementType::UI32,
        Dtype::U64 => ElementType::UI64,
        Dtype::I8 => ElementType::SI8,
        Dtype::I16 => ElementType::SI16,
        Dtype::I32 => ElementType::SI32,
        Dtype::I64 => ElementType::SI64,
        Dtype::F16 => ElementType::F16,
        Dtype::BF16 => ElementType::BF16,
        Dtype::F32 => ElementType::F32,
        Dtype::F64 => ElementType::F64,
        Dtype::F8_E5M2 => ElementType::new(Class::Float8E5M2, 8),
        Dtype::F8_E4M3 => ElementType::new(Class::Float8E4M3FN, 8),
        Dtype::F8_E8M0 => ElementType::new(Class::Float8E8M0FNU, 8),
        _ => return None,
    })
}

fn open(path: &str) -> Result<File> {
    File::open(path).map_err(|error| Failure::new(io_status(&error), format!("cannot open {path}: {error}")))
}

fn unreadable(path: &str, error: &std::io::Error) -> Failure {
    Failure::new(io_status(error), format!("cannot read {path}: {error}"))
}

fn broken(path: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::invalid(format!("{path} cannot be read: {error}"))
}
