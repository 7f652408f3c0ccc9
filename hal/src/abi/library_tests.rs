//! Tests of reading tables: all versions and widths, and what is refused.

use super::super::test_library::{ByteSpace, TestExport, TestLibrary};
use super::*;

const BASE: u64 = 0x1_0000;

fn export(name: Option<&'static str>, constants: u8, bindings: u8, pages: u16) -> TestExport {
    TestExport { function: 0x5000, name, constants, bindings, pages }
}

fn two_exports(version: Version) -> TestLibrary {
    TestLibrary::new(version, vec![export(Some("first"), 6, 2, 0), export(Some("second"), 8, 3, 7)])
}

fn space(library: &TestLibrary) -> ByteSpace {
    ByteSpace { base: BASE, bytes: library.write(BASE), code: 0x5000..0x6000 }
}

fn refusal(library: &TestLibrary, edit: impl FnOnce(&mut ByteSpace)) -> Error {
    let mut space = space(library);
    edit(&mut space);
    read_library(&space, library.width, BASE, library.version).unwrap_err()
}

#[test]
fn every_version_and_width_is_read() {
    for version in Version::NEWEST_FIRST {
        for width in [PointerWidth::Bits32, PointerWidth::Bits64] {
            let mut library = two_exports(version);
            library.width = width;
            library.imports = vec!["?maybe", "needed"];
            library.constants = 5;
            let tables = read_library(&space(&library), width, BASE, version).unwrap();
            assert_eq!((tables.name.as_str(), tables.constant_count, tables.sanitizer), ("test_library", 5, Sanitizer::None));
            let needs: Vec<_> = tables.imports.iter().map(|import| (import.name.as_str(), import.need)).collect();
            assert_eq!(needs, [("maybe", Need::Optional), ("needed", Need::Required)]);
            let names: Vec<_> = tables.exports.iter().map(|export| export.name.as_deref()).collect();
            assert_eq!(names, [Some("first"), Some("second")]);
            let pages: Vec<_> = tables.exports.iter().map(|export| export.attributes.local_memory_pages).collect();
            assert_eq!(pages, [0, 7]);
            let counts: Vec<_> =
                tables.exports.iter().map(|export| (export.attributes.constant_count, export.attributes.binding_count)).collect();
            let declared = if version >= Version::V0_5 { [(Some(6), Some(2)), (Some(8), Some(3))] } else { [(None, None); 2] };
            assert_eq!(counts, declared, "{version:?} {width:?}");
        }
    }
}

#[test]
fn names_are_optional() {
    let library = TestLibrary::new(Version::V0_5, vec![export(None, 0, 1, 0)]);
    let tables = read_library(&space(&library), library.width, BASE, library.version).unwrap();
    assert_eq!(tables.exports[0].name, None);
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let library = two_exports(Version::V0_5);
    let error = read_library(&space(&library), library.width, BASE, Version::V0_6).unwrap_err();
    assert_eq!(error.message(), "library header: version is 5, 6 was asked for");
}

#[test]
fn a_function_outside_the_code_is_refused() {
    let mut library = two_exports(Version::V0_6);
    library.exports[1].function = 0x6000;
    let error = refusal(&library, |_| ());
    assert_eq!(error.message(), "export table: ptrs entry points at 0x6000, which is not executable code in the test bytes");
}

#[test]
fn more_constants_or_bindings_than_the_abi_has_are_refused() {
    for (constants, bindings, field) in [(65, 0, "constant_count"), (0, 65, "binding_count")] {
        let library = TestLibrary::new(Version::V0_5, vec![export(None, constants, bindings, 0)]);
        let error = refusal(&library, |_| ());
        assert_eq!(error.status(), Status::OutOfRange);
        assert!(error.message().contains(field) && error.message().contains("65"), "{error}");
    }
}

#[test]
fn a_huge_count_is_refused_before_anything_is_read() {
    let error = refusal(&two_exports(Version::V0_3), |space| space.bytes[24..28].fill(0xFF));
    assert_eq!(error.message(), "export table: count is 4294967295; at most 65536 are taken");
    let error = refusal(&two_exports(Version::V0_3), |space| space.bytes[8..12].fill(0xFF));
    assert_eq!(error.message(), "import table: count is 4294967295; at most 65536 are taken");
}

#[test]
fn pointers_that_wrap_or_leave_the_image_are_refused() {
    for at in [0, 32, 40] {
        for address in [0u64, u64::MAX, u64::MAX - 3, BASE - 1, 1 << 46] {
            let error = refusal(&two_exports(Version::V0_3), |space| space.bytes[at..at + 8].copy_from_slice(&address.to_le_bytes()));
            assert_eq!(error.status(), Status::FailedPrecondition, "{error}");
        }
    }
}

#[test]
fn a_string_that_does_not_end_is_refused() {
    let library = two_exports(Version::V0_3);
    let error = refusal(&library, |space| {
        let name = space.base + space.bytes.len() as u64;
        space.bytes.extend_from_slice(&[b'x'; MAX + 2]);
        let names = u64::from_le_bytes(space.bytes[48..56].try_into().unwrap()) - BASE;
        space.bytes[names as usize..][..8].copy_from_slice(&name.to_le_bytes());
    });
    assert!(error.message().contains("does not end within 4096 bytes"), "{error}");
    let error = refusal(&library, |space| {
        let name = space.base + space.bytes.len() as u64;
        space.bytes.extend_from_slice(b"cut");
        let names = u64::from_le_bytes(space.bytes[48..56].try_into().unwrap()) - BASE;
        space.bytes[names as usize..][..8].copy_from_slice(&name.to_le_bytes());
    });
    assert!(error.message().contains("not readable"), "{error}");
    const MAX: usize = super::super::MAX_STRING;
}

#[test]
fn names_may_not_take_unbounded_memory() {
    // Thousands of exports that share one long name.
    let mut library = TestLibrary::new(Version::V0_3, Vec::new());
    library.exports = (0..5000).map(|_| export(Some(""), 0, 0, 0)).collect();
    let error = refusal(&library, |space| {
        let name = space.base + space.bytes.len() as u64;
        space.bytes.extend_from_slice(&[b'x'; 4000]);
        space.bytes.push(0);
        let names = u64::from_le_bytes(space.bytes[48..56].try_into().unwrap()) - BASE;
        for slot in space.bytes[names as usize..][..5000 * 8].chunks_exact_mut(8) {
            slot.copy_from_slice(&name.to_le_bytes());
        }
    });
    assert_eq!(error.status(), Status::ResourceExhausted);
}

#[test]
fn an_unknown_sanitizer_is_refused() {
    let mut library = two_exports(Version::V0_6);
    library.sanitizer = 9;
    assert!(refusal(&library, |_| ()).message().contains("sanitizer is 9"));
}

proptest::proptest! {
    #[test]
    fn damaged_tables_never_panic(edits in proptest::collection::vec((0usize..700, proptest::num::u8::ANY), 1..8)) {
        for version in Version::NEWEST_FIRST {
            let mut space = space(&two_exports(version));
            for (at, value) in &edits {
                if let Some(byte) = space.bytes.get_mut(*at) {
                    *byte = *value;
                }
            }
            if let Ok(tables) = read_library(&space, PointerWidth::HOST, BASE, version) {
                proptest::prop_assert!(tables.exports.iter().all(|export| space.code.contains(&export.function)));
            }
        }
    }
}
