//! Results to where `--output` sends them: text, array files, raw bytes. A file is written whole or not at all.

use crate::failure::{Failure, Result, io_status};
use crate::npy;
use crate::report;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::str::FromStr;
use tempfile::NamedTempFile;
use vmfb_hal::{BufferView, ElementType, HalBuffer};
use vmfb_vm::{Ref, Status, Value};

/// Where a result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere.
    Ignored,
    /// To the standard output, as text without a label.
    Text,
    /// To a file: an array if its name ends in `.npy`, else raw bytes.
    File {
        /// The path.
        path: String,
        /// What becomes of a file that is there.
        existing: Existing,
    },
}

/// What becomes of a file that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced.
    Replaced,
    /// The result is appended to it.
    Appended,
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let file = |path: &str, existing| match path {
            "" => Err(format!("'{text}' names no file")),
            _ => Ok(Self::File { path: path.to_owned(), existing }),
        };
        match text {
            "" => Ok(Self::Ignored),
            "-" => Ok(Self::Text),
            _ => match (text.strip_prefix('@'), text.strip_prefix('+')) {
                (Some(path), _) => file(path, Existing::Replaced),
                (_, Some(path)) => file(path, Existing::Appended),
                _ => Err(format!("'{text}' is not a destination, wanted -, @file, +file or nothing; for a file write @{text}")),
            },
        }
    }
}

/// Sends a result to its destination. Of tensors as text at most `limit` elements are printed.
pub fn write(out: &mut impl Write, value: &Value, destination: &Destination, limit: u64) -> Result<()> {
    match destination {
        Destination::Ignored => Ok(()),
        Destination::Text => report::write_value(out, value, limit).map_err(|error| Failure::output(&error)),
        Destination::File { path, existing } => {
            let content = if path.ends_with(".npy") { array_bytes(value) } else { raw_bytes(value) };
            let content = content.map_err(|failure| failure.context(format!("writing {path}")))?;
            let written = match existing {
                Existing::Replaced => replace(Path::new(path), &content),
                Existing::Appended => append(Path::new(path), &content),
            };
            written.map_err(|error| file_error(path, &error))
        }
    }
}

fn file_error(path: &str, error: &io::Error) -> Failure {
    Failure::new(io_status(error), format!("cannot write {path}: {error}"))
}

/// Header and elements. Numbers are arrays of rank 0, buffers arrays of bytes, null an empty one.
fn array_bytes(value: &Value) -> Result<Vec<u8>> {
    let data = raw_bytes(value)?;
    let (shape, element_type) = match value {
        Value::I32(_) => (Vec::new(), ElementType::I32),
        Value::I64(_) => (Vec::new(), ElementType::I64),
        Value::F32(_) => (Vec::new(), ElementType::F32),
        Value::F64(_) => (Vec::new(), ElementType::F64),
        _ => match value.as_ref().and_then(|reference| reference.downcast::<BufferView>()) {
            Some(view) => (view.shape().to_vec(), view.element_type()),
            None => (vec![data.len() as u64], ElementType::SI8),
        },
    };
    let mut bytes = npy::header(&shape, element_type)?;
    bytes.extend(data);
    Ok(bytes)
}

fn raw_bytes(value: &Value) -> Result<Vec<u8>> {
    Ok(match value {
        Value::I32(value) => value.to_le_bytes().to_vec(),
        Value::I64(value) => value.to_le_bytes().to_vec(),
        Value::F32(value) => value.to_le_bytes().to_vec(),
        Value::F64(value) => value.to_le_bytes().to_vec(),
        Value::Ref(Ref::Null) => Vec::new(),
        Value::Ref(Ref::Buffer(buffer)) => buffer.span().to_vec()?,
        Value::Ref(reference) => match (reference.downcast::<BufferView>(), reference.downcast::<HalBuffer>()) {
            (Some(view), _) => view.to_bytes()?,
            (_, Some(buffer)) => buffer.span().to_vec()?,
            _ => return Err(no_file_form(reference.type_name())),
        },
        _ => return Err(no_file_form(value.type_name())),
    })
}

fn no_file_form(type_name: &str) -> Failure {
    Failure::new(Status::Unimplemented, format!("a result of type {type_name} has no file form")).help("print it with --output=-")
}

/// Writes beside the file and puts the result in its place, so that nobody ever sees half of it.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // A link stays a link, and devices and pipes are written to.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if target.exists() && !target.is_file() {
        return OpenOptions::new().write(true).open(&target)?.write_all(content);
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}", folder.display())));
    }
    let mut temporary = new_file(folder)?;
    temporary.write_all(content)?;
    if let Ok(metadata) = target.metadata() {
        temporary.as_file().set_permissions(metadata.permissions())?;
    }
    temporary.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// A file with the permissions that new files have.
#[cfg(unix)]
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o666)).tempfile_in(folder)
}

#[cfg(not(unix))]
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().tempfile_in(folder)
}

/// Appends, or leaves the file as it was.
fn append(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    let length = file.metadata()?.len();
    write_all(&file, content).inspect_err(|_| {
        // If this fails too, the error that is reported is the one that matters.
        let _ = file.set_len(length);
    })
}

fn write_all(file: &File, content: &[u8]) -> io::Result<()> {
    let mut writer = BufWriter::new(file);
    writer.write_all(content)?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmfb_vm::{Handle, List};

    fn write_to(folder: &Path, destination: &str, value: &Value) -> Result<()> {
        let destination: Destination = destination.replace("DIR", folder.to_str().unwrap()).parse().unwrap();
        write(&mut Vec::new(), value, &destination, 10)
    }

    fn view(name: &str, bytes: &[u8]) -> Value {
        let element_type = ElementType::from_name(name).unwrap();
        let count = 8 * bytes.len() as u64 / element_type.bits() as u64;
        Handle::new(BufferView::from_bytes(&[count], element_type, bytes).unwrap()).into()
    }

    #[test]
    fn arrays_are_replaced_and_appended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.npy");
        write_to(folder.path(), "@DIR/out.npy", &view("i32", &[9; 8])).unwrap();
        write_to(folder.path(), "@DIR/out.npy", &view("i32", &[1; 8])).unwrap();
        write_to(folder.path(), "+DIR/out.npy", &view("bf16", &[2; 4])).unwrap();
        write_to(folder.path(), "+DIR/out.npy", &Value::F64(1.5)).unwrap();
        write_to(folder.path(), "+DIR/out.npy", &Value::Ref(Ref::Null)).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let mut reader = &*bytes;
        let mut shapes = Vec::new();
        while let Some(array) = npy::read(&mut reader, u64::MAX).unwrap() {
            shapes.push(format!("{:?} {}", array.shape, array.element_type));
        }
        assert_eq!(shapes, ["[2] si32", "[2] bf16", "[] f64", "[0] si8"]);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn raw_bytes_are_the_elements_alone() {
        let folder = tempfile::tempdir().unwrap();
        write_to(folder.path(), "+DIR/out.bin", &Value::I32(7)).unwrap();
        write_to(folder.path(), "+DIR/out.bin", &view("i4", &[0x21])).unwrap();
        assert_eq!(std::fs::read(folder.path().join("out.bin")).unwrap(), [7, 0, 0, 0, 0x21]);
    }

    #[test]
    fn what_cannot_be_written_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let narrow = write_to(folder.path(), "@DIR/out.npy", &view("i4", &[0x21])).unwrap_err();
        assert_eq!(narrow.to_string(), "UNIMPLEMENTED: array files cannot hold i4");
        let list = write_to(folder.path(), "@DIR/out.bin", &List::of_values([]).unwrap().into()).unwrap_err();
        assert_eq!(list.to_string(), "UNIMPLEMENTED: a result of type vm.list has no file form");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        let missing = write_to(folder.path(), "@DIR/none/out.bin", &Value::I32(7)).unwrap_err();
        assert_eq!(missing.status(), Some(Status::NotFound));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file.bin"), folder.path().join("link.bin"));
        std::fs::write(&file, [0]).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_to(folder.path(), "@DIR/link.bin", &Value::I32(7)).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), [7, 0, 0, 0]);
        write_to(folder.path(), "@/dev/null", &Value::I32(7)).unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn destinations_are_what_the_official_tool_takes() {
        assert_eq!("".parse(), Ok(Destination::Ignored));
        assert_eq!("-".parse(), Ok(Destination::Text));
        assert_eq!("+a".parse(), Ok(Destination::File { path: "a".to_owned(), existing: Existing::Appended }));
        for text in ["a.bin", "@", "+"] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
