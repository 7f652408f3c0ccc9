//! Tests of the value grammar: numbers, references, files, generated values, and the number of values.

use super::*;
use crate::failure::Colour;
use proptest::prelude::*;
use std::path::Path;
use vmfb_hal::{HalBuffer, ViewText};

fn slot(kind: Kind, declared: &str) -> Slot {
    Slot { kind, declared: (!declared.is_empty()).then(|| DeclaredType::parse(declared)) }
}

fn read(texts: &[&str], slots: &[Slot]) -> Result<Vec<Value>> {
    ValueReader::new(MemoryAccount::with_limit(1 << 20)).inputs(texts, slots)
}

/// Values as the tools print them.
fn printed(texts: &[&str], slots: &[Slot]) -> String {
    match read(texts, slots) {
        Ok(values) => values.iter().map(show).collect::<Vec<_>>().join(" | "),
        Err(failure) => failure.to_string(),
    }
}

fn show(value: &Value) -> String {
    let view = value.as_ref().and_then(|reference| reference.downcast::<BufferView>());
    match view {
        Some(view) => ViewText::new(view).to_string(),
        None => vmfb_hal::format_scalar(value).unwrap_or_else(|| value.type_name().to_owned()),
    }
}

fn refs(count: usize) -> Vec<Slot> {
    vec![slot(Kind::Ref, ""); count]
}

#[test]
fn numbers_are_read_as_the_function_takes_them() {
    for (kind, text, print) in [
        (Kind::I32, "7", "i32=7"),
        (Kind::I32, " 0x10 ", "i32=16"),
        (Kind::I32, "010", "i32=8"),
        (Kind::I32, "4294967295", "i32=-1"),
        (Kind::I64, "-5", "i64=-5"),
        (Kind::F32, "1.5e-7", "f32=1.5e-07"),
        (Kind::F32, "0x1.8p3", "f32=12"),
        (Kind::F32, "1e400", "f32=inf"),
        (Kind::F64, "nan", "f64=nan"),
        (Kind::I32, "(null)", "i32=0"),
        (Kind::F64, "(ignored)", "f64=0"),
        (Kind::I32, "99999999999", "INVALID_ARGUMENT: '99999999999' is out of the range of i32: -2147483648 to 4294967295"),
        (
            Kind::I64,
            "18446744073709551616",
            "INVALID_ARGUMENT: '18446744073709551616' is out of the range of i64: -9223372036854775808 to 18446744073709551615",
        ),
        (Kind::I32, "1.5", "INVALID_ARGUMENT: '1.5' is not a whole number"),
        (Kind::I32, "i32=2", "i32=2"),
        (Kind::I32, "f32=2", "INVALID_ARGUMENT: 'f32=2' is not a number"),
        (Kind::F32, "abc", "INVALID_ARGUMENT: 'abc' is not a number"),
        (Kind::I32, "", "INVALID_ARGUMENT: the value is empty"),
    ] {
        assert_eq!(printed(&[text], &[slot(kind, "")]), print, "{text}");
    }
}

#[test]
fn declared_types_narrow_the_range() {
    for (declared, text, print) in [
        ("i8", "200", "i32=200"),
        ("i8", "-128", "i32=-128"),
        ("i8", "300", "INVALID_ARGUMENT: '300' is out of the range of i8: -128 to 255"),
        ("i16", "-32769", "INVALID_ARGUMENT: '-32769' is out of the range of i16: -32768 to 65535"),
        ("i1", "true", "i32=1"),
        ("i1", "0", "i32=0"),
        ("i1", "2", "INVALID_ARGUMENT: '2' is not an i1: 0, 1, true or false"),
        ("ui8", "-1", "INVALID_ARGUMENT: '-1' is out of the range of ui8: 0 to 255"),
        ("index", "4294967295", "i32=-1"),
    ] {
        assert_eq!(printed(&[text], &[slot(Kind::I32, declared)]), print, "{declared} {text}");
    }
}

#[test]
fn references_are_null_views_or_storage() {
    assert_eq!(printed(&["(null)"], &refs(1)), "null");
    let values = read(&["&2xf32=1 2"], &refs(1)).unwrap();
    let buffer = values[0].as_ref().unwrap().object::<HalBuffer>("the value").unwrap();
    assert_eq!(buffer.span().to_vec().unwrap(), [0, 0, 128, 63, 0, 0, 0, 64]);
    assert!(buffer.span().is_writable());
    let expectations = ValueReader::default().expectations(&["(ignored)", "(null)"], &refs(2)).unwrap();
    assert!(matches!(expectations[0], Expectation::Ignored));
    assert!(matches!(&expectations[1], Expectation::Value(Value::Ref(Ref::Null))));
}

#[test]
fn the_number_of_values_must_fit() {
    let slots = [slot(Kind::Ref, "tensor<?x4xf32>"), slot(Kind::I32, "")];
    assert_eq!(printed(&["2x4xf32"], &slots), "INVALID_ARGUMENT: the function has 2 inputs (tensor<?x4xf32>, i32), got 1");
    let failure = read(&["2x4xf32", "1", "3"], &slots).unwrap_err();
    assert_eq!(failure.to_string(), "INVALID_ARGUMENT: there are more inputs than the function has: tensor<?x4xf32>, i32");
    assert!(failure.render(Colour::Plain).contains("reading input 2"));
    let failure = read(&[] as &[&str], &slots).unwrap_err();
    assert!(failure.render(Colour::Plain).contains("add --input=\"2x4xf32=…\""));
    assert_eq!(printed(&[], &[]), "");
}

/// A folder with two arrays in one file, and five floats as raw bytes.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut two = npy(&[2], ElementType::F32, &[1f32.to_le_bytes(), 2f32.to_le_bytes()].concat());
    two.extend(npy(&[1, 2], ElementType::SI32, &[3, 0, 0, 0, 4, 0, 0, 0]));
    std::fs::write(folder.path().join("two.npy"), two).unwrap();
    let raw: Vec<u8> = (1..=5u8).flat_map(|value| f32::from(value).to_le_bytes()).collect();
    std::fs::write(folder.path().join("five.bin"), raw).unwrap();
    folder
}

fn npy(shape: &[u64], element_type: ElementType, data: &[u8]) -> Vec<u8> {
    let mut bytes = crate::npy::header(shape, element_type).unwrap();
    bytes.extend(data);
    bytes
}

fn at(folder: &Path, text: &str) -> String {
    text.replace("DIR", folder.to_str().unwrap())
}

#[test]
fn array_files_are_read_as_the_official_tool_reads_them() {
    let folder = folder();
    for (texts, print) in [
        (vec!["@DIR/two.npy", "+DIR/two.npy"], "2xf32=1 2 | 1x2xsi32=[3 4]"),
        (vec!["@DIR/two.npy", "*DIR/two.npy"], "2xf32=1 2 | 1x2xsi32=[3 4]"),
        (vec!["*DIR/two.npy"], "2xf32=1 2 | 1x2xsi32=[3 4]"),
        (vec!["+DIR/two.npy", "+DIR/two.npy"], "2xf32=1 2 | 1x2xsi32=[3 4]"),
        (vec!["@DIR/two.npy", "@DIR/two.npy"], "2xf32=1 2 | 2xf32=1 2"),
        (vec!["2xf32=@DIR/five.bin", "3xf32=+DIR/five.bin"], "2xf32=1 2 | 3xf32=3 4 5"),
        (vec!["2xf32=@DIR/two.npy", "1x2xi32=+DIR/two.npy"], "2xf32=1 2 | 1x2xi32=[3 4]"),
    ] {
        let texts: Vec<String> = texts.iter().map(|text| at(folder.path(), text)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(printed(&texts, &refs(2)), print, "{texts:?}");
    }
}

#[test]
fn void_elements_take_the_type_before_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("brain.npy"), npy(&[2], ElementType::BF16, &[0x80, 0x3F, 0x00, 0x40])).unwrap();
    std::fs::write(folder.path().join("bytes.npy"), npy(&[2], ElementType::from_name("f8E5M2").unwrap(), &[0x3C, 0x40])).unwrap();
    for (text, print) in [
        ("@DIR/brain.npy", "2xbf16=1 2"),
        ("2xbf16=@DIR/brain.npy", "2xbf16=1 2"),
        ("2xf16=@DIR/brain.npy", "2xf16=1.875 2"),
        ("@DIR/bytes.npy", "2x*8=3C 40"),
        ("2xf8E5M2=@DIR/bytes.npy", "2xf8E5M2=1 2"),
    ] {
        assert_eq!(printed(&[&at(folder.path(), text)], &refs(1)), print, "{text}");
    }
}

#[test]
fn file_errors_name_the_file_and_what_is_wrong() {
    let folder = folder();
    for (text, print) in [
        ("@DIR/none.npy", "NOT_FOUND: cannot open DIR/none.npy: No such file or directory (os error 2)"),
        ("6xf32=@DIR/five.bin", "OUT_OF_RANGE: DIR/five.bin has 20 bytes there, 24 are needed"),
        ("@DIR/five.bin", "INVALID_ARGUMENT: DIR/five.bin is not an array file, and raw bytes need a shape and type"),
        ("3xf32=@DIR/two.npy", "INVALID_ARGUMENT: DIR/two.npy holds an array of 2xf32, wanted 3xf32"),
        ("2xi32=@DIR/two.npy", "INVALID_ARGUMENT: DIR/two.npy holds an array of 2xf32, wanted 2xi32"),
        ("2xi16=@DIR/two.npy", "INVALID_ARGUMENT: DIR/two.npy holds an array of 2xf32, wanted 2xi16"),
        ("9999999xf32=@DIR/five.bin", "RESOURCE_EXHAUSTED: 9999999xf32 has 39999996 bytes, the memory limit leaves 1048576"),
    ] {
        assert_eq!(printed(&[&at(folder.path(), text)], &refs(1)), at(folder.path(), print), "{text}");
    }
    let third = at(folder.path(), "+DIR/two.npy");
    assert_eq!(printed(&[&third, &third, &third], &refs(3)), at(folder.path(), "OUT_OF_RANGE: DIR/two.npy holds no further array"));
    let all = at(folder.path(), "*DIR/two.npy");
    assert_eq!(printed(&[&all], &refs(1)), "INVALID_ARGUMENT: there are more inputs than the function has: reference");
}

#[test]
fn inputs_are_made_from_the_declaration() {
    let slots = [slot(Kind::Ref, "tensor<2x?xf32>"), slot(Kind::I64, "index"), slot(Kind::Ref, "tensor<3xi1>")];
    assert_eq!(printed(&["auto"], &slots), "2x1xf32=[0][0] | i64=0 | 3xi1=00 00 00");
    let random = printed(&["auto:7"], &slots);
    assert_eq!(random, printed(&["auto:7"], &slots));
    assert_ne!(random, printed(&["auto:8"], &slots));
    assert_eq!(printed(&["auto", "5", "auto"], &slots), "2x1xf32=[0][0] | i64=5 | 3xi1=00 00 00");
    assert!(printed(&["auto"], &refs(1)).starts_with("FAILED_PRECONDITION: input 0 cannot be generated"));
    assert_eq!(printed(&["auto:x"], &refs(1)), "INVALID_ARGUMENT: 'x' is not a seed");
    let large = [slot(Kind::Ref, "tensor<1000x1000x1000xf32>")];
    assert!(printed(&["auto:1"], &large).starts_with("RESOURCE_EXHAUSTED"));
    for name in ["i1", "i4", "i8", "ui8", "i64", "f16", "bf16", "f64", "f8E8M0FNU", "complex<f32>"] {
        let slots = [slot(Kind::Ref, &format!("tensor<5x{name}>"))];
        assert!(read(&["auto:3"], &slots).is_ok(), "{name}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[^@+*]{0,40}", declared in "(i8|i1|index|tensor<f32>|tensor<2x2xi4>)?", kind in 0usize..5) {
        let kind = [Kind::I32, Kind::I64, Kind::F32, Kind::F64, Kind::Ref][kind];
        if let Err(failure) = read(&[&text], &[slot(kind, &declared)]) {
            prop_assert!(!failure.render(Colour::Plain).is_empty());
        }
    }
}
