//! Tests of the archive rules on hand-made bytes.

use super::*;
use crate::Status;
use vmfb_memory::MemoryAccount;

fn open(bytes: &[u8]) -> Result<Archive> {
    Archive::open(Span::from_vector(bytes.to_vec()))
}

fn refused(bytes: &[u8]) -> String {
    let error = open(bytes).expect_err("must be refused");
    assert_eq!(error.status, Status::InvalidArgument);
    error.message
}

/// A local file header with the given lengths of name and extra field, followed by `rest`.
fn zip(name: u16, extra: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = b"PK\x03\x04".to_vec();
    bytes.resize(26, 0);
    bytes.extend_from_slice(&name.to_le_bytes());
    bytes.extend_from_slice(&extra.to_le_bytes());
    bytes.resize(30 + usize::from(name) + usize::from(extra), 0);
    bytes.extend_from_slice(rest);
    bytes
}

fn prefixed(size: u32, length: usize) -> Vec<u8> {
    let mut bytes = size.to_le_bytes().to_vec();
    bytes.resize(4 + length, 0xAB);
    bytes
}

#[test]
fn plain() {
    let archive = open(&prefixed(12, 12)).unwrap();
    assert_eq!(archive.flatbuffer_range(), 4..16);
    assert_eq!(archive.flatbuffer(), [0xAB; 12]);
    assert_eq!(archive.external_base(), 64);
    assert_eq!(open(&prefixed(60, 200)).unwrap().external_base(), 64);
    assert_eq!(open(&prefixed(61, 200)).unwrap().external_base(), 128);
}

#[test]
fn too_short() {
    assert!(refused(b"").contains("0 bytes"));
    assert!(refused(&prefixed(0, 11)).contains("15 bytes"));
    open(&prefixed(0, 12)).unwrap();
}

#[test]
fn size_prefix_beyond_the_end() {
    let message = refused(&prefixed(13, 12));
    assert!(message.contains("announces 13 bytes, 12 follow"), "{message}");
    assert!(refused(&prefixed(u32::MAX, 12)).contains("4294967295"));
}

#[test]
fn zip_header_in_front() {
    // The external area is aligned from the start of the archive, not from the end of the ZIP header.
    let archive = open(&zip(9, 2, &prefixed(40, 100))).unwrap();
    assert_eq!(archive.flatbuffer_range(), 45..85);
    assert_eq!(archive.external_base(), 128);
}

#[test]
fn zip_header_beyond_the_end() {
    let mut bytes = zip(9, 25, &[]);
    bytes.truncate(63);
    assert!(refused(&bytes).contains("has 64 bytes"));
    assert!(refused(&zip(9, 25, &[0; 15])).contains("64 are a ZIP header"));
    open(&zip(9, 25, &[0; 16])).unwrap();
}

#[test]
fn a_zip_signature_in_a_short_file_is_a_size() {
    let mut bytes = b"PK\x03\x04".to_vec();
    bytes.resize(29, 0);
    assert!(refused(&bytes).contains("announces 67324752 bytes, 25 follow"));
}

#[test]
fn an_archive_inside_another_one() {
    let mut bytes = vec![0; 13];
    bytes.extend_from_slice(&zip(9, 25, &prefixed(60, 60)));
    let inner = Span::from_vector(bytes).slice(13, 128).unwrap();
    let archive = Archive::open(inner).unwrap();
    assert_eq!(archive.flatbuffer_range(), 68..128);
    assert_eq!(archive.flatbuffer(), [0xAB; 60]);
    assert_eq!(archive.external_base(), 128);
}

#[test]
fn bytes_that_may_change_are_copied() {
    let span = Span::copy_of(&prefixed(12, 12), &MemoryAccount::default()).unwrap();
    let archive = Archive::open(span.clone()).unwrap();
    span.fill(0, 16, &[0]).unwrap();
    assert_eq!(archive.flatbuffer(), [0xAB; 12]);
}
