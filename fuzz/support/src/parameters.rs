//! Parameter files: refused, or an index whose entries lie in the file and are found by their names.

use vmfb::memory::{MemoryAccount, Span};
use vmfb_module_io_parameters::{Parameter, ParameterFormat, ParameterIndex};

/// Of a parameter that repeats a pattern no more than this is written.
const MOST_COPIED: u64 = 4096;

/// Reads the bytes as a file of every format.
pub fn check(bytes: &[u8]) {
    parameters(bytes);
}

/// As [`check`]; the number of parameters, `None` if no format accepts the file.
pub fn parameters(bytes: &[u8]) -> Option<usize> {
    let file = Span::from_vector(bytes.to_vec());
    let formats = [ParameterFormat::Irpa, ParameterFormat::Safetensors, ParameterFormat::Gguf];
    let mut found = formats.into_iter().filter_map(|format| ParameterIndex::from_span(file.clone(), format, "input").ok());
    let index = found.next()?;
    check_index(&index, &file);
    assert!(found.next().is_none(), "formats differ in their first bytes, so no file is of two");
    Some(index.len())
}

fn check_index(index: &ParameterIndex, file: &Span) {
    // Every name is in the file, and stands for an entry of it.
    assert!(index.len() <= file.len(), "{} parameters in {} bytes", index.len(), file.len());
    let names: Vec<_> = index.names().collect();
    assert_eq!((names.len(), index.is_empty()), (index.len(), names.is_empty()));
    for name in names {
        match index.get(&*name) {
            Some(parameter) => check_parameter(parameter, file),
            None => assert!(name.contains('\u{FFFD}'), "the name {name:?} is listed and not found"),
        }
    }
}

fn check_parameter(parameter: &Parameter, file: &Span) {
    let length = parameter.len();
    if let Some(bytes) = parameter.bytes() {
        let (start, whole) = (bytes.storage_offset(), bytes.whole_storage().len());
        assert!(bytes.is_empty() || bytes.same_storage(file), "the bytes are not those of the file");
        assert!(start as u64 + length <= whole as u64 && bytes.len() as u64 == length);
        assert!(!bytes.is_writable(), "a program could change the file");
    }
    let part = length.min(MOST_COPIED);
    let Some(all) = copy(parameter, 0, part) else { panic!("{part} of {length} bytes cannot be read") };
    if part > 0 {
        // What is read from the second byte on is the same as before.
        assert_eq!(copy(parameter, 1, part - 1).as_deref(), all.get(1..));
        assert!(copy(parameter, length - 1, 1).is_some());
    }
    assert!(copy(parameter, length, 1).is_none(), "read past the end");
    assert!(copy(parameter, u64::MAX, 1).is_none(), "read past the end");
}

/// A range of a parameter; `None` if it was refused.
fn copy(parameter: &Parameter, offset: u64, length: u64) -> Option<Vec<u8>> {
    let target = Span::zeroed(usize::try_from(length).ok()?, 1, &MemoryAccount::default()).ok()?;
    parameter.copy_to(offset, &target).ok()?;
    target.to_vec().ok()
}
