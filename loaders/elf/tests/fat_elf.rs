//! FatELF files made from images of the corpus (case C5).

mod support;

use support::corpus_image;
use vmfb_loader_elf::{Architecture, select_fat};
use vmfb_vm::Status;

const X86_64: [u8; 8] = [0x3E, 0, 0, 0, 2, 1, 0, 0];
const AARCH64: [u8; 8] = [0xB7, 0, 0, 0, 2, 1, 0, 0];

fn select(bytes: &[u8]) -> vmfb_vm::Result<&[u8]> {
    select_fat(bytes, Architecture::named("x86_64").unwrap())
}

/// A file with these records and this many records declared; the bodies follow.
fn fat(version: u16, count: u8, records: &[([u8; 8], u64, u64)], bodies: &[u8]) -> Vec<u8> {
    let mut file = vec![0xFA, 0x70, 0x0E, 0x1F];
    file.extend(version.to_le_bytes());
    file.extend([count, 0]);
    for (target, offset, size) in records {
        file.extend(target);
        file.extend(offset.to_le_bytes());
        file.extend(size.to_le_bytes());
    }
    file.extend(bodies);
    file
}

fn refusal(bytes: &[u8]) -> vmfb_vm::Error {
    select(bytes).expect_err("the file was taken")
}

#[test]
fn c5_the_right_architecture_is_picked() {
    let foreign = corpus_image("3.13.0", "inline-elf-aarch64", "ew_f32").bytes;
    let own = corpus_image("3.13.0", "inline-elf", "ew_f32").bytes;
    let start = 8 + 2 * 24;
    let records = [(AARCH64, start, foreign.len() as u64), (X86_64, start + foreign.len() as u64, own.len() as u64)];
    let file = fat(1, 2, &records, &[foreign.clone(), own.clone()].concat());
    assert!(select(&file).unwrap() == own);
    assert!(select_fat(&file, Architecture::named("arm_64").unwrap()).unwrap() == foreign);
    #[cfg(target_arch = "x86_64")]
    vmfb_loader_elf::check(&file).unwrap();
}

#[test]
fn c5_without_the_right_architecture_both_sides_are_named() {
    let records = [(AARCH64, 56, 4), ([0x28, 0, 0, 0, 1, 1, 0, 0], 60, 4)];
    let error = refusal(&fat(1, 2, &records, &[0; 8]));
    assert_eq!(error.status(), Status::InvalidArgument);
    assert_eq!(error.message(), "the FatELF file has code for arm_64, arm_32; this machine runs x86_64");
}

#[test]
fn c5_zero_records_hold_nothing() {
    let error = refusal(&fat(1, 0, &[], &[0; 32]));
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.message().contains("has code for nothing"), "{error}");
}

#[test]
fn c5_overlapping_ranges_are_refused() {
    let error = refusal(&fat(1, 2, &[(AARCH64, 56, 8), (X86_64, 60, 4)], &[0; 8]));
    assert_eq!(error.status(), Status::OutOfRange);
    assert!(error.message().contains("overlap"), "{error}");
}

#[test]
fn ranges_outside_the_file_or_in_the_records_are_refused() {
    for (offset, size) in [(31, 1), (0, 32), (32, 9), (40, 1), (u64::MAX, 2), (32, u64::MAX), (u64::MAX - 7, 8)] {
        let error = refusal(&fat(1, 1, &[(X86_64, offset, size)], &[0; 8]));
        assert_eq!(error.status(), Status::OutOfRange, "{offset} {size}");
    }
}

#[test]
fn more_records_than_bytes_are_refused() {
    assert_eq!(refusal(&fat(1, 255, &[(X86_64, 32, 4)], &[0; 4])).status(), Status::OutOfRange);
}

#[test]
fn another_version_is_unimplemented() {
    let error = refusal(&fat(2, 1, &[(X86_64, 32, 4)], &[0; 4]));
    assert_eq!(error.status(), Status::Unimplemented);
    assert!(error.message().contains("version is 2"), "{error}");
}

#[test]
fn big_endian_and_foreign_systems_do_not_fit() {
    for target in [[0x3E, 0, 0, 0, 2, 0, 0, 0], [0x3E, 0, 9, 0, 2, 1, 0, 0], [0x3E, 0, 0, 0, 1, 1, 0, 0], [0x3E, 0, 0, 0, 7, 1, 0, 0]] {
        assert_eq!(refusal(&fat(1, 1, &[(target, 32, 4)], &[0; 4])).status(), Status::InvalidArgument, "{target:?}");
    }
    for os_abi in [0, 3, 255] {
        assert_eq!(select(&fat(1, 1, &[([0x3E, 0, os_abi, 0, 2, 1, 0, 0], 32, 4)], b"body")).unwrap(), b"body");
    }
}

#[test]
fn other_files_pass_unchanged() {
    for bytes in [b"".as_slice(), b"\x7FELF and more that is not looked at here", &[0xFA, 0x70, 0x0E, 0x1F, 1, 0, 1]] {
        assert_eq!(select(bytes).unwrap(), bytes);
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(tail in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = select(&[&[0xFA, 0x70, 0x0E, 0x1F, 1, 0], tail.as_slice()].concat());
    }
}
