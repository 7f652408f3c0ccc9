//! Files that other people's tools have written, and what the readers of these tools say of them (`data/build.py`).

use serde_json::Value;
use std::path::{Path, PathBuf};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_module_io_parameters::ParameterIndex;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Compares names and bytes of a file with what was noted, and where the bytes lie, if that was noted.
fn check(file: &str, entries: usize) {
    let expected: Value = serde_json::from_slice(&std::fs::read(data("expected.json")).unwrap()).unwrap();
    let expected = expected[file].as_object().unwrap();
    assert_eq!(expected.len(), entries, "{file}");
    let content = std::fs::read(data(file)).unwrap();
    for index in [ParameterIndex::from_file(data(file)).unwrap(), ParameterIndex::read_file(data(file)).unwrap()] {
        let mut names: Vec<_> = index.names().collect();
        names.sort_unstable();
        let mut wanted: Vec<_> = expected.keys().map(String::as_str).collect();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{file}");
        for (name, entry) in expected {
            let parameter = index.get(name).unwrap();
            let bytes = bytes_of(entry["bytes"].as_str().unwrap());
            assert_eq!(parameter.len(), bytes.len() as u64, "{file} {name}");
            let target = Span::zeroed(bytes.len(), 1, &MemoryAccount::default()).unwrap();
            parameter.copy_to(0, &target).unwrap();
            assert_eq!(target.to_vec().unwrap(), bytes, "{file} {name}");
            if let Some(offset) = entry["offset"].as_u64() {
                let range = offset as usize..offset as usize + bytes.len();
                assert_eq!(content[range], bytes, "{file} {name}");
            }
        }
    }
}

#[test]
fn gguf_tensors_of_every_kind_that_its_package_writes() {
    check("tensors.gguf", 23);
}

#[test]
fn safetensors_of_its_package() {
    check("tensors.safetensors", 6);
}

#[test]
fn archives_of_the_official_tools() {
    check("created.irpa", 3);
    check("converted.irpa", 6);
}

/// The official tool has copied the tensors of one file into the other.
#[test]
fn a_converted_file_holds_the_same() {
    let index = |file: &str| ParameterIndex::from_file(data(file)).unwrap();
    let (tensors, archive) = (index("tensors.safetensors"), index("converted.irpa"));
    for name in tensors.names() {
        let bytes = |index: &ParameterIndex| index.get(name.as_bytes()).unwrap().bytes().unwrap().to_vec().unwrap();
        assert_eq!(bytes(&tensors), bytes(&archive), "{name}");
    }
}
