//! Files whose content is known, and damaged ones.

use crate::functions::{Fences, copy_into, finish};
use crate::provider::Providers;
use crate::request::{Request, Requests};
use crate::{ParameterFormat, ParameterIndex, ParameterProvider};
use proptest::prelude::*;
use std::path::PathBuf;
use vmfb_hal::{Fence, FenceStatus, HalBuffer};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Arguments, Buffer, Error, FuelMetering, Meter, Ref, Result, Status};

fn sample(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/digits")).join(name)
}

fn index(format: ParameterFormat, bytes: &[u8]) -> Result<ParameterIndex> {
    ParameterIndex::from_span(Span::from_vector(bytes.to_vec()), format, "test")
}

fn content(index: &ParameterIndex, name: &str) -> Vec<u8> {
    let parameter = index.get(name).unwrap();
    let target = Span::zeroed(parameter.len() as usize, 1, &MemoryAccount::default()).unwrap();
    parameter.copy_to(0, &target).unwrap();
    target.to_vec().unwrap()
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// An archive with a data entry `a` of the bytes 1 to 8, a splat `b` of 6 bytes with the pattern 7 8 9, a skipped entry, and the
/// data entry `c` of the same bytes as `a`.
fn small_irpa() -> Vec<u8> {
    irpa_with((2, 1), (0, 8))
}

/// The same, with another name and range of the last entry.
fn irpa_with(name: (u64, u64), range: (u64, u64)) -> Vec<u8> {
    let entry = |size: u64, kind: u32, name: (u64, u64), rest: &[u8]| {
        let mut bytes = words(&[size]);
        bytes.extend(kind.to_le_bytes());
        bytes.extend(words(&[0, name.0, name.1, 0, 0, 64]));
        bytes.extend(rest);
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        bytes
    };
    let mut splat = words(&[6]);
    splat.extend([7, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
    let mut entries = entry(76, 2, (0, 1), &words(&[0, 8]));
    entries.extend(entry(85, 1, (1, 1), &splat));
    entries.extend(entry(60, 0, (0, 0), &[]));
    entries.extend(entry(76, 2, name, &words(&[range.0, range.1])));
    let (table, metadata) = (96u64, 96 + entries.len() as u64);
    let storage = (metadata + 3).next_multiple_of(64);
    let mut file = b"IRPA\0\0\0\0".to_vec();
    file.extend(words(&[88, 0, 0, 4, table, entries.len() as u64, metadata, 3, storage, 8]));
    file.resize(table as usize, 0);
    file.extend(entries);
    file.extend(b"abc");
    file.resize(storage as usize, 0);
    file.extend(1..=8);
    file
}

/// Version 3 with nested metadata, the alignment 64, and the tensors `f` (2 x f32) and `q` (one block of Q8_0, 34 bytes).
fn small_gguf() -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let tensor = |name: &str, shape: &[u64], kind: u32, offset: u64| {
        [text(name), (shape.len() as u32).to_le_bytes().to_vec(), words(shape), kind.to_le_bytes().to_vec(), words(&[offset])].concat()
    };
    let word = |value: u32| value.to_le_bytes().to_vec();
    let mut file = [b"GGUF".to_vec(), word(3), words(&[2, 3])].concat();
    file.extend([text("general.alignment"), word(4), word(64)].concat());
    file.extend([text("names"), word(9), word(8), words(&[2]), text("x"), text("yz")].concat());
    file.extend([text("deep"), word(9), word(9), words(&[1]), word(5), words(&[2]), word(1), word(2)].concat());
    file.extend(tensor("f", &[2], 0, 0));
    file.extend(tensor("q", &[32], 8, 64));
    file.resize(file.len().next_multiple_of(64), 0);
    file.extend(1..=8);
    file.resize(file.len().next_multiple_of(64), 0);
    file.extend([5; 34]);
    file
}

fn small_safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

#[test]
fn both_files_of_the_digit_classifier_hold_the_same() {
    // Four bytes times the shapes in the program.
    let lengths = [
        ("convolution.weights", 4 * 3 * 3 * 8),
        ("convolution.bias", 4 * 8),
        ("hidden.weights", 4 * 128 * 32),
        ("hidden.bias", 4 * 32),
        ("scores.weights", 4 * 32 * 10),
        ("scores.bias", 4 * 10),
    ];
    let archive = ParameterIndex::from_file(sample("digits.irpa")).unwrap();
    let tensors = ParameterIndex::from_file(sample("digits.safetensors")).unwrap();
    let read = ParameterIndex::read_file(sample("digits.irpa")).unwrap();
    assert_eq!((archive.len(), tensors.len(), read.len()), (6, 6, 6));
    for (name, length) in lengths {
        assert_eq!(archive.get(name).unwrap().len(), length, "{name}");
        assert_eq!(content(&archive, name), content(&tensors, name), "{name}");
        assert_eq!(content(&archive, name), content(&read, name), "{name}");
        // Archives keep data at multiples of 64, so that nothing is copied.
        for index in [&archive, &read] {
            assert_eq!(index.get(name).unwrap().bytes().unwrap().address().addr() % 64, 0, "{name}");
        }
    }
}

#[test]
fn archives_have_data_patterns_and_gaps() {
    let index = index(ParameterFormat::Irpa, &small_irpa()).unwrap();
    assert_eq!(index.len(), 3);
    assert_eq!(content(&index, "a"), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(content(&index, "c"), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(content(&index, "b"), [7, 8, 9, 7, 8, 9]);
    // A part of a pattern begins where it would have been.
    let target = Span::zeroed(4, 1, &MemoryAccount::default()).unwrap();
    index.get("b").unwrap().copy_to(2, &target).unwrap();
    assert_eq!(target.to_vec().unwrap(), [9, 7, 8, 9]);
    assert_eq!(index.get("b").unwrap().copy_to(3, &target).unwrap_err().status(), Status::OutOfRange);
}

#[test]
fn headers_are_linked_forwards() {
    let mut first = small_irpa();
    first.resize(first.len().next_multiple_of(16), 0);
    let distance = first.len() as u64;
    first[16..24].copy_from_slice(&distance.to_le_bytes());
    let mut second = small_irpa();
    let name = second.windows(3).position(|names| names == b"abc").unwrap();
    second[name..name + 3].copy_from_slice(b"def");
    first.extend(second);
    let index = index(ParameterFormat::Irpa, &first).unwrap();
    assert_eq!(index.len(), 6);
    assert_eq!(content(&index, "d"), [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// One name for two parameters, one byte for two: nobody can say which is meant. The official runtime takes the first and both.
#[test]
fn names_and_bytes_belong_to_one_parameter() {
    let refused = |format, file: &[u8], wanted: &str| {
        let error = index(format, file).unwrap_err();
        assert_eq!((error.status(), error.message()), (Status::InvalidArgument, wanted));
    };
    let tensors = |header: &str| small_safetensors(header, &[0; 32]);
    let twice = r#"{"w":{"data_offsets":[0,16]},"w":{"data_offsets":[16,32]}}"#;
    refused(ParameterFormat::Safetensors, &tensors(twice), r#"two parameters have the name "w""#);
    let overlap = r#"{"w":{"data_offsets":[0,16]},"b":{"data_offsets":[8,24]}}"#;
    let start = 8 + overlap.len();
    let wanted = format!(r#"the bytes {} to {} of the file belong to two parameters: "w" and "b""#, start + 8, start + 16);
    refused(ParameterFormat::Safetensors, &tensors(overlap), &wanted);
    for same in
        [r#"{"w":{"data_offsets":[0,16]},"b":{"data_offsets":[0,16]}}"#, r#"{"w":{"data_offsets":[0,16]},"w":{"data_offsets":[0,16]}}"#]
    {
        assert_eq!(index(ParameterFormat::Safetensors, &tensors(same)).unwrap_err().status(), Status::InvalidArgument, "{same}");
    }
    // Neighbours, gaps and empty tensors are none.
    let apart = r#"{"a":{"data_offsets":[0,8]},"b":{"data_offsets":[8,16]},"c":{"data_offsets":[20,32]},"d":{"data_offsets":[24,24]}}"#;
    assert_eq!(index(ParameterFormat::Safetensors, &tensors(apart)).unwrap().len(), 4);
    let mut gguf = small_gguf();
    let name = gguf.windows(9).position(|bytes| bytes == b"\x01\0\0\0\0\0\0\0q").unwrap();
    gguf[name + 8] = b'f';
    refused(ParameterFormat::Gguf, &gguf, r#"two parameters have the name "f""#);
    gguf[name + 8] = b'q';
    // Name, rank, one dimension, type: the offset is the next.
    gguf[name + 9 + 4 + 8 + 4] = 0;
    assert!(index(ParameterFormat::Gguf, &gguf).unwrap_err().message().contains("belong to two parameters"));
    refused(ParameterFormat::Irpa, &irpa_with((0, 1), (1, 3)), r#"two parameters have the name "a""#);
    assert!(index(ParameterFormat::Irpa, &irpa_with((2, 1), (1, 3))).unwrap_err().message().contains("belong to two parameters"));
    assert_eq!(index(ParameterFormat::Irpa, &irpa_with((0, 1), (0, 8))).unwrap().len(), 2);
}

#[test]
fn gguf_tensors_lie_where_the_alignment_puts_them() {
    let file = small_gguf();
    let index = index(ParameterFormat::Gguf, &file).unwrap();
    assert_eq!(content(&index, "f"), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(content(&index, "q"), [5; 34]);
    let mut old = file;
    old[4] = 1;
    assert_eq!(self::index(ParameterFormat::Gguf, &old).unwrap_err().status(), Status::Unimplemented);
}

#[test]
fn hostile_archives_are_refused() {
    let refused = |offset: usize, bytes: &[u8], status: Status| {
        let mut file = small_irpa();
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
        let error = index(ParameterFormat::Irpa, &file).unwrap_err();
        assert_eq!(error.status(), status, "{offset}: {error}");
        assert!(error.to_string().contains("reading the parameter file test"), "{error}");
    };
    let huge = u64::MAX.to_le_bytes();
    refused(0, b"J", Status::InvalidArgument);
    refused(4, &[1], Status::Unimplemented);
    refused(6, &[1], Status::Unimplemented);
    refused(8, &[89], Status::InvalidArgument);
    refused(16, &[8], Status::InvalidArgument);
    refused(16, &[16], Status::InvalidArgument);
    refused(16, &(u64::MAX - 15).to_le_bytes(), Status::OutOfRange);
    for offset in [40, 48, 56, 64, 72, 80] {
        refused(offset, &huge, Status::OutOfRange);
    }
    // Count, size of the first entry, its type, its name, its metadata, its data.
    refused(32, &huge, Status::OutOfRange);
    refused(96, &huge, Status::OutOfRange);
    refused(96, &[0; 8], Status::OutOfRange);
    refused(96 + 8, &[3], Status::Unimplemented);
    refused(96 + 8, &[9], Status::Unimplemented);
    for offset in [20, 28, 36, 44, 60, 68] {
        refused(96 + offset, &huge, Status::OutOfRange);
    }
    // The length of the pattern.
    refused(96 + 80 + 84, &[17], Status::InvalidArgument);
    refused(96 + 80 + 84, &[0], Status::InvalidArgument);
}

#[test]
fn hostile_safetensors_are_refused() {
    let parse = |header: &str| index(ParameterFormat::Safetensors, &small_safetensors(header, &[1, 2, 3, 4]));
    let good = r#"{"__metadata__":{"x":"y"},"t":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"u":{"data_offsets":[0,1]}}   "#;
    assert_eq!(content(&parse(good).unwrap(), "t"), [2, 3]);
    for header in [r#"{"t":{"data_offsets":[0,5]}}"#, r#"{"t":{"data_offsets":[3,1]}}"#] {
        assert_eq!(parse(header).unwrap_err().status(), Status::OutOfRange, "{header}");
    }
    let deep = format!("{{\"t\":{{\"x\":{}", "[".repeat(100_000));
    let wrong =
        ["", "[]", "{", r#"{"t":1}"#, r#"{"t":{}}"#, r#"{"t":{"data_offsets":[0]}}"#, r#"{"t":{"data_offsets":[-1,2]}}"#, "{}{}", &deep];
    for header in wrong {
        assert_eq!(parse(header).unwrap_err().status(), Status::InvalidArgument, "{:.40}", header);
    }
    for file in [&b""[..], &words(&[100]), &[0xFF; 16]] {
        let error = index(ParameterFormat::Safetensors, file).unwrap_err();
        assert!(matches!(error.status(), Status::OutOfRange | Status::InvalidArgument), "{error}");
    }
}

#[test]
fn hostile_gguf_is_refused() {
    let file = |counts: [u64; 2], rest: &[u8]| [b"GGUF\x03\0\0\0".as_slice(), &words(&counts), rest].concat();
    let refused = |bytes: &[u8], status: Status| assert_eq!(index(ParameterFormat::Gguf, bytes).unwrap_err().status(), status);
    assert!(index(ParameterFormat::Gguf, &file([0, 0], &[])).unwrap().is_empty());
    refused(&file([u64::MAX, 0], &[]), Status::OutOfRange);
    refused(&file([0, u64::MAX], &[]), Status::OutOfRange);
    // A key without end, an array of 2^64 - 1 double words, arrays that are nested deep.
    refused(&file([0, 1], &words(&[u64::MAX])), Status::OutOfRange);
    let array = [words(&[0]), vec![9, 0, 0, 0, 10, 0, 0, 0], words(&[u64::MAX])].concat();
    refused(&file([0, 1], &array), Status::OutOfRange);
    let nested = [&words(&[0]), [9, 0, 0, 0].as_slice(), &[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0].repeat(1000)].concat();
    refused(&file([0, 1], &nested), Status::InvalidArgument);
    // A tensor of rank 5, and one of 2^64 elements.
    refused(&file([1, 0], &[&words(&[0]), [5, 0, 0, 0].as_slice(), &[0; 60]].concat()), Status::InvalidArgument);
    let large = [&words(&[0]), [2, 0, 0, 0].as_slice(), &words(&[1 << 32, 1 << 32]), &[0; 12]].concat();
    refused(&file([1, 0], &large), Status::OutOfRange);
}

#[test]
fn names_that_overlap_cannot_fill_the_memory() {
    // Each of many entries has all of a long metadata segment as its name.
    let (count, name) = (100u64, 4096u64);
    let mut file = b"IRPA\0\0\0\0".to_vec();
    file.extend(words(&[88, 0, 0, count, 96, count * 80, 96 + count * 80, name, 96 + count * 80, 0]));
    file.resize(96, 0);
    for _ in 0..count {
        file.extend(words(&[76]));
        file.extend(2u32.to_le_bytes());
        file.extend(words(&[0, 0, name, 0, 0, 0, 0, 0]));
        file.resize(file.len().next_multiple_of(16), 0);
    }
    file.extend(vec![b'x'; name as usize]);
    assert_eq!(index(ParameterFormat::Irpa, &file).unwrap_err().status(), Status::InvalidArgument);
}

#[test]
fn files_are_known_by_their_names() {
    let error = |name: &str| ParameterIndex::from_file(sample(name)).unwrap_err().status();
    assert_eq!(error("none.irpa"), Status::NotFound);
    assert_eq!(error("digits.mlir"), Status::Unimplemented);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("EMPTY.IRPA");
    std::fs::write(&path, "").unwrap();
    assert_eq!(ParameterIndex::from_file(&path).unwrap_err().status(), Status::OutOfRange);
    assert_eq!(ParameterIndex::read_file(&path).unwrap_err().status(), Status::OutOfRange);
}

fn providers() -> Providers {
    let small = index(ParameterFormat::Irpa, &small_irpa()).unwrap();
    let more =
        index(ParameterFormat::Safetensors, &small_safetensors(r#"{"t":{"data_offsets":[0,1]},"a":{"data_offsets":[1,2]}}"#, &[9, 9]))
            .unwrap();
    Providers::new(vec![ParameterProvider::new("s", small), ParameterProvider::new("s", more)])
}

#[test]
fn several_files_may_have_one_scope_and_what_is_missing_is_named() {
    let providers = providers();
    let scope = providers.scope("s".into()).unwrap();
    assert_eq!((scope.find(b"a").unwrap().len(), scope.find(b"t").unwrap().len()), (8, 1));
    let error = scope.find(b"zz").unwrap_err();
    assert_eq!(error.status(), Status::NotFound);
    assert!(["\"zz\"", "\"s\"", "test"].iter().all(|part| error.to_string().contains(part)), "{error}");
    let error = providers.scope("other".into()).unwrap_err();
    assert_eq!(error.status(), Status::NotFound);
    assert!(error.to_string().contains("\"other\"") && error.to_string().contains("\"s\""), "{error}");
}

#[test]
fn requests_are_checked() {
    let read = |table: &[u8], data: &[u8], spans: &[u8]| -> Result<Vec<Request>> {
        let references = [table, data, spans].map(|bytes| Ref::Buffer(Buffer::constant(bytes)));
        let requests = Requests::read(&mut Arguments::new(&[], &references, &[]))?;
        let mut meter = Meter::new(FuelMetering::Off, MemoryAccount::default());
        (0..requests.len()).map(|index| requests.get(index, &mut meter)).collect()
    };
    let status = |outcome: Result<Vec<Request>>| outcome.map(drop).map_err(|error| error.status());
    let key = |offset: u32, length: u32| [offset.to_le_bytes(), length.to_le_bytes()].concat();
    let expected = Request { key: b"bc".to_vec(), parameter_offset: 1, buffer_offset: 2, length: 3 };
    assert_eq!(read(&key(1, 2), b"abcd", &words(&[1, 2, 3])).unwrap(), [expected]);
    assert_eq!(status(read(&key(3, 2), b"abcd", &words(&[0, 0, 0]))), Err(Status::OutOfRange));
    assert_eq!(status(read(&key(u32::MAX, 2), b"abcd", &words(&[0, 0, 0]))), Err(Status::OutOfRange));
    assert_eq!(status(read(&key(0, 1), b"abcd", &words(&[0, 0]))), Err(Status::InvalidArgument));
    assert_eq!(status(read(&[], b"abcd", &words(&[0, 0, 0]))), Err(Status::InvalidArgument));
    assert_eq!(status(read(&[], &[], &[])), Ok(()));
}

#[test]
fn gathering_waits_for_its_fence() {
    let providers = providers();
    let scope = providers.scope("s".into()).unwrap();
    let account = MemoryAccount::default();
    let mut meter = Meter::new(FuelMetering::Off, account.clone());
    let target = HalBuffer::allocate(8, 64, &account).unwrap();
    let before = account.used();
    let request = |length| Request { key: b"a".to_vec(), parameter_offset: 2, buffer_offset: 4, length };
    for (fails, bytes) in [(true, [0; 8]), (false, [0, 0, 0, 0, 3, 4, 5, 6])] {
        let (wait, signal) = (Fence::new(), Fence::new());
        let copy = copy_into(&target, &scope, &request(4), &mut meter).unwrap();
        let mut copies = vmfb_memory::ChargedVec::new(&account).unwrap();
        copies.push(copy).unwrap();
        finish(&mut meter, &Fences { wait: Some(&wait), signal: Some(&signal) }, copies).unwrap();
        assert!(matches!(signal.status(), FenceStatus::Pending));
        assert!(account.used() > before);
        if fails {
            wait.fail(Error::invalid("because"))
        } else {
            wait.signal()
        }
        match signal.status() {
            FenceStatus::Failed(error) => assert!(fails && error.status() == Status::InvalidArgument, "{error}"),
            status => assert!(!fails && matches!(status, FenceStatus::Reached), "{status:?}"),
        }
        assert_eq!(target.span().to_vec().unwrap(), bytes);
        assert_eq!(account.used(), before);
    }
    for length in [5, 7, u64::MAX] {
        let error = copy_into(&target, &scope, &request(length), &mut meter).err().unwrap();
        assert_eq!(error.status(), Status::OutOfRange, "{length}: {error}");
    }
    let constant = HalBuffer::new(Span::from_static(&[0; 8]));
    let error = copy_into(&constant, &scope, &request(4), &mut meter).err().unwrap();
    assert_eq!(error.status(), Status::PermissionDenied);
}

proptest! {
    /// Damaged files are refused, or what they hold lies in them.
    #[test]
    fn damaged_files_do_no_harm(
        which in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![Just(0u8), Just(1), Just(0xFF), any::<u8>()]), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let header = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}"#;
        let (format, mut file) = match which {
            0 => (ParameterFormat::Irpa, small_irpa()),
            1 => (ParameterFormat::Gguf, small_gguf()),
            _ => (ParameterFormat::Safetensors, small_safetensors(header, &[1, 2, 3, 4])),
        };
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len() + 1));
        }
        if let Ok(index) = index(format, &file) {
            for name in index.names().collect::<Vec<_>>() {
                // Names that are no text are not found by what is shown of them.
                if let Some(bytes) = index.get(name.as_bytes()).and_then(|parameter| parameter.bytes()) {
                    prop_assert_eq!(bytes.to_vec().unwrap().len(), bytes.len());
                    prop_assert!(bytes.len() <= file.len());
                }
            }
        }
    }
}
