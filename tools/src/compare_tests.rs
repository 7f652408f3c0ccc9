//! Tests of comparison: the rules of the newest official tool, and what it gets wrong.

use super::*;
use crate::declaration::Slot;
use crate::values::ValueReader;
use vmfb_bytecode::calling_convention::Kind;

fn difference_of(kind: Kind, actual: &str, expected: &str, tolerances: &Tolerances) -> Option<String> {
    let slots = [Slot { kind, declared: None }];
    let mut reader = ValueReader::default();
    let results = reader.inputs(&[actual], &slots).unwrap();
    let expected = reader.expectations(&[expected], &slots).unwrap();
    let differences = compare(&results, &expected, tolerances, 1024, &Meter::default()).unwrap();
    differences.first().map(ToString::to_string)
}

fn equal(actual: &str, expected: &str) -> bool {
    difference_of(Kind::Ref, actual, expected, &Tolerances::default()).is_none()
}

#[test]
fn floats_are_compared_as_in_the_newest_tool() {
    for (actual, expected) in [
        ("2xf32=0 1", "2xf32=-0 1"),
        ("2xf32=nan 1", "2xf32=-nan 1"),
        ("2xf32=1 1", "2xf32=1.0001 1"),
        ("2xf32=100000 1", "2xf32=100001 1"),
        ("2xf32=inf -inf", "2xf32=inf -inf"),
        ("bf16=1", "bf16=1.0078125"),
        ("f16=1", "f16=1.001"),
        ("f64=1", "f64=1.0001"),
        ("cf64=1+2i", "cf64=1.00005+2i"),
        ("f8E5M2=nan", "f8E5M2=-nan"),
    ] {
        assert!(equal(actual, expected), "{actual} {expected}");
    }
    for (actual, expected) in [
        ("2xf32=1 1", "2xf32=1.0002 1"),
        ("2xf32=100000 1", "2xf32=100002 1"),
        ("f32=inf", "f32=-inf"),
        ("f32=inf", "f32=3e38"),
        ("f32=3e38", "f32=inf"),
        ("f32=nan", "f32=0"),
        ("f32=0", "f32=nan"),
        ("f8E5M2=0", "f8E5M2=-0"),
        ("f8E4M3FN=1", "f8E4M3FN=1.125"),
        ("cf64=1+2i", "cf64=1+2.1i"),
    ] {
        assert!(!equal(actual, expected), "{actual} {expected}");
    }
}

#[test]
fn exact_means_bit_for_bit() {
    let exact = Tolerances { equality: "exact".parse().unwrap(), ..Tolerances::default() };
    for (actual, expected, same) in
        [("f32=0", "f32=-0", false), ("f32=nan", "f32=nan", true), ("f32=1", "f32=1.00001", false), ("2xi4=1 2", "2xi4=1 2", true)]
    {
        assert_eq!(difference_of(Kind::Ref, actual, expected, &exact).is_none(), same, "{actual} {expected}");
    }
    assert_eq!("absolut".parse::<Equality>(), Err("unknown equality mode 'absolut', wanted approximate or exact".to_owned()));
}

#[test]
fn tolerances_can_be_set() {
    let loose = Tolerances { f32: 0.5, ..Tolerances::default() };
    assert_eq!(difference_of(Kind::Ref, "f32=1", "f32=1.4", &loose), None);
    assert_eq!(difference_of(Kind::F32, "1", "1.4", &loose), None);
    let relative = Tolerances { relative: 0.1, ..Tolerances::default() };
    assert_eq!(difference_of(Kind::Ref, "f64=100", "f64=105", &relative), None);
}

#[test]
fn integers_without_sign_equal_those_with_one() {
    assert!(equal("2xi32=-1 2", "2xsi32=-1 2"));
    assert!(equal("2xi8=200 2", "2xui8=200 2"));
    assert!(equal("2xsi16=1 2", "2xi16=1 2"));
    assert!(!equal("2xsi32=1 2", "2xui32=1 2"));
    assert!(!equal("2xi8=1 0", "2xi1=1 0"));
    assert!(!equal("2xi32=1 0", "2xi64=1 0"));
    assert!(!equal("2xi32=1 0", "2xf32=1 0"));
}

#[test]
fn differences_read_as_in_the_official_tool() {
    let difference = |actual, expected| difference_of(Kind::Ref, actual, expected, &Tolerances::default()).unwrap();
    assert_eq!(
        difference("2x2xui8=1 2 3 4", "2x2xui8=1 2 3 5"),
        "[FAILED] result[0]: element at index 3 (4) does not match the expected (5); \
         expected that the view is equal to contents of a view of 2x2xui8\n  expected:\n2x2xui8=[1 2][3 5]\n  actual:\n2x2xui8=[1 2][3 4]"
    );
    assert_eq!(
        difference("2x2xf32=1 2 3 4", "4xf32=1 2 3 4"),
        "[FAILED] result[0]: metadata is 2x2xf32; expected that the view matches 4xf32; \
         expected that the view is equal to contents of a view of 4xf32\n  expected:\n4xf32=1 2 3 4\n  actual:\n2x2xf32=[1 2][3 4]"
    );
    assert_eq!(difference("(null)", "f32=1"), "[FAILED] result[0]: the result is null, expected hal.buffer_view");
    assert_eq!(difference("&2xi8=1 2", "&2xi8=1 3"), "[FAILED] result[0]: the buffer differs from the expected one at byte 1");
}

#[test]
fn scalars_are_compared_as_numbers() {
    let difference = |kind, actual, expected| difference_of(kind, actual, expected, &Tolerances::default());
    assert_eq!(difference(Kind::I32, "4", "4"), None);
    assert_eq!(difference(Kind::F32, "1", "1.00001"), None);
    assert_eq!(difference(Kind::F64, "nan", "nan"), None);
    assert_eq!(difference(Kind::I64, "4", "5").unwrap(), "[FAILED] result[0]: i64=4 does not match the expected i64=5");
    assert_eq!(difference(Kind::F32, "nan", "1").unwrap(), "[FAILED] result[0]: f32=nan does not match the expected f32=1");
    assert_eq!(difference(Kind::I32, "4", "(ignored)"), None);
}
