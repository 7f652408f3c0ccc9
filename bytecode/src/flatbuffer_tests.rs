//! Tests of the FlatBuffer reader on buffers written by hand, word by word.

use super::*;

const FIRST: Slot = Slot(0, "first");
const SECOND: Slot = Slot(1, "second");
const ABSENT: Slot = Slot(9, "absent");

/// Root table at 16 with two fields of 4 bytes; its vtable is at 8, and what follows starts at 28.
fn two_fields(first: u32, second: u32, rest: &[u32]) -> Vec<u8> {
    let identifier = u32::from_le_bytes(*b"TEST");
    let head = [16, identifier, 8 | 12 << 16, 4 | 8 << 16, 8, first, second];
    head.iter().chain(rest).flat_map(|word| word.to_le_bytes()).collect()
}

fn patched(mut bytes: Vec<u8>, at: usize, value: &[u8]) -> Vec<u8> {
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

/// Status of what `read` says about the root table.
fn refused(bytes: &[u8], read: impl FnOnce(Table<'_>) -> Result<()>) -> String {
    let buffer = Buffer::new(bytes);
    let error = buffer.root(b"TEST", "Root").and_then(read).expect_err("must be refused");
    assert_eq!(error.status, Status::InvalidArgument);
    error.message
}

fn refused_root(bytes: &[u8]) -> String {
    refused(bytes, |_| Ok(()))
}

#[test]
fn scalars_and_defaults() {
    let bytes = two_fields(7, u32::MAX, &[]);
    let buffer = Buffer::new(&bytes);
    let root = buffer.root(b"TEST", "Root").unwrap();
    assert_eq!(root.vtable_size(), 8);
    assert_eq!(root.u32(FIRST, 1).unwrap(), 7);
    assert_eq!(root.i32(SECOND).unwrap(), -1);
    assert_eq!(root.u8(FIRST, 0).unwrap(), 7);
    assert_eq!(root.u32(ABSENT, 5).unwrap(), 5);
    assert_eq!(root.u64(ABSENT).unwrap(), 0);
    assert!(root.string(ABSENT).unwrap().is_none());
    assert!(root.table(ABSENT).unwrap().is_none());
    assert!(root.offsets(ABSENT).unwrap().is_none());
}

#[test]
fn vtable_entry_zero_is_an_absent_field() {
    let bytes = patched(two_fields(7, 8, &[]), 12, &[0, 0]);
    let buffer = Buffer::new(&bytes);
    assert_eq!(buffer.root(b"TEST", "Root").unwrap().u32(FIRST, 42).unwrap(), 42);
}

#[test]
fn strings_and_vectors() {
    // The string "abc" at 28, a vector of the words 1 and 2 at 36.
    let bytes = two_fields(8, 12, &[3, u32::from_le_bytes(*b"abc\0"), 2, 1, 2]);
    let buffer = Buffer::new(&bytes);
    let root = buffer.root(b"TEST", "Root").unwrap();
    assert_eq!(root.string(FIRST).unwrap(), Some(&b"abc"[..]));
    assert_eq!(root.string_with_position(FIRST).unwrap(), Some((28, &b"abc"[..])));
    let vector = root.structs(SECOND, 4, 4).unwrap().unwrap();
    assert_eq!((vector.len(), vector.position()), (2, 40));
    assert_eq!(vector.elements(4).map(|word| word[0]).collect::<Vec<_>>(), [1, 2]);
    assert!(vector.table(2, "element").is_err());
}

#[test]
fn too_short_or_foreign() {
    assert!(refused_root(b"").contains("at least 8 bytes"));
    assert!(refused_root(&[16, 0, 0, 0, b'T', b'E', b'S']).contains("at least 8 bytes"));
    let message = refused_root(&patched(two_fields(0, 0, &[]), 4, b"PSET"));
    assert!(message.contains("\"PSET\"") && message.contains("\"TEST\""), "{message}");
}

#[test]
fn root_offsets() {
    for (offset, wanted) in [(0, "does not point"), (28, "does not point"), (u32::MAX, "does not point"), (17, "aligned"), (18, "aligned")]
    {
        let message = refused_root(&patched(two_fields(0, 0, &[]), 0, &u32::to_le_bytes(offset)));
        assert!(message.contains(wanted), "{offset}: {message}");
    }
}

#[test]
fn vtables() {
    let cases: [(usize, &[u8], &str); 8] = [
        (16, &i32::to_le_bytes(20), "before the buffer"),
        (16, &i32::to_le_bytes(i32::MAX), "before the buffer"),
        (16, &i32::to_le_bytes(i32::MIN), "ends at"),
        (16, &i32::to_le_bytes(7), "aligned"),
        (8, &u16::to_le_bytes(2), "vtable of 2 bytes"),
        (8, &u16::to_le_bytes(7), "vtable of 7 bytes"),
        (8, &u16::to_le_bytes(0xFFFE), "ends at"),
        (10, &u16::to_le_bytes(13), "ends at"),
    ];
    for (at, value, wanted) in cases {
        let message = refused_root(&patched(two_fields(0, 0, &[]), at, value));
        assert!(message.contains(wanted), "{at} {value:?}: {message}");
    }
}

#[test]
fn fields_outside_of_their_table() {
    for offset in [2_u16, 9, 12, 0xFFFF] {
        let message = refused(&patched(two_fields(0, 0, &[]), 12, &offset.to_le_bytes()), |root| root.u32(FIRST, 0).map(drop));
        assert!(message.contains("outside of its table"), "{offset}: {message}");
    }
    assert!(refused(&two_fields(0, 0, &[]), |root| root.u64(SECOND).map(drop)).contains("outside of its table"));
}

#[test]
fn alignment_counts_from_the_size_prefix() {
    // The field at 20 lies at 24 from the prefix: a 64-bit scalar fits there, and at 24 (28 from the prefix) it does not.
    let bytes = patched(two_fields(1, 2, &[0]), 10, &[16, 0]);
    let buffer = Buffer::new(&bytes);
    assert_eq!(buffer.root(b"TEST", "Root").unwrap().u64(FIRST).unwrap(), 1 | 2 << 32);
    assert!(refused(&bytes, |root| root.u64(SECOND).map(drop)).contains("not aligned to 8"));
}

#[test]
fn vectors_beyond_the_end() {
    let counted = |count| two_fields(8, 0, &[count, 0, 0]);
    assert!(refused(&counted(3), |root| root.offsets(FIRST).map(drop)).contains("ends at"));
    assert!(refused(&counted(u32::MAX), |root| root.structs(FIRST, 20, 4).map(drop)).contains("FlatBuffer"));
    assert!(refused(&counted(9), |root| root.string(FIRST).map(drop)).contains("ends at"));
    assert!(refused(&counted(8), |root| root.string(FIRST).map(drop)).contains("no NUL"));
    assert!(refused(&two_fields(8, 0, &[2, 0x6162_6364]), |root| root.string(FIRST).map(drop)).contains("no NUL"));
}

#[test]
fn null_and_looping_table_offsets() {
    let null = two_fields(8, 0, &[1, 0]);
    assert!(refused(&null, |root| root.offsets(FIRST)?.unwrap().table(0, "element").map(drop)).contains("does not point"));
    // A table that refers to itself is a table like any other, since nobody walks without an end of their own.
    let bytes = two_fields(u32::MAX - 3, 0, &[]);
    assert!(refused(&bytes, |root| root.table(FIRST).map(drop)).contains("does not point"));
}

#[test]
fn the_allowance_ends() {
    let bytes = two_fields(0, 0, &[]);
    let buffer = Buffer::new(&bytes);
    buffer.charge(bytes.len() * ALLOWANCE_FACTOR).unwrap();
    buffer.charge(ALLOWANCE_BASE).unwrap();
    assert_eq!(buffer.charge(1).unwrap_err().status, Status::ResourceExhausted);
}
