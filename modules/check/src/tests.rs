//! Tensors whose comparison is known from the rules.

use crate::compare::{Tolerance, all_true, almost_equal, equal};
use crate::{Check, CheckReport};
use vmfb_hal::{BufferView, ElementType};
use vmfb_memory::MemoryAccount;
use vmfb_vm::{FuelMetering, Linker, Meter, Status};

fn meter() -> Meter {
    Meter::new(FuelMetering::Off, MemoryAccount::default())
}

fn tensor(element_type: ElementType, shape: &[u64], bytes: &[u8]) -> BufferView {
    BufferView::from_bytes(shape, element_type, bytes).unwrap()
}

fn f32s(values: &[f32]) -> BufferView {
    BufferView::from_f32(&[values.len() as u64], values).unwrap()
}

fn f64s(values: &[f64]) -> BufferView {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor(ElementType::F64, &[values.len() as u64], &bytes)
}

fn near(found: &BufferView, wanted: &BufferView, absolute: f64, relative: f64) -> bool {
    almost_equal(found, wanted, &Tolerance { absolute, relative }, &mut meter()).unwrap().is_none()
}

#[test]
fn equality_is_of_type_shape_and_bytes() {
    let same = |a: &BufferView, b: &BufferView| equal(a, b, &mut meter()).unwrap();
    assert_eq!(same(&f32s(&[1.0, 2.0]), &f32s(&[1.0, 2.0])), None);
    assert_eq!(same(&f32s(&[f32::NAN]), &f32s(&[f32::NAN])), None);
    assert_eq!(same(&f32s(&[]), &f32s(&[])), None);
    let text = same(&f32s(&[1.0, 2.0, 3.0]), &f32s(&[1.0, 2.0, 4.0])).unwrap();
    assert!(text.starts_with("element 2 differs: found 3, wanted 4\n"), "{text}");
    assert!(text.contains("3xf32=1 2 3") && text.contains("3xf32=1 2 4"), "{text}");
    assert!(same(&f32s(&[0.0]), &f32s(&[-0.0])).is_some());
    let reshaped = BufferView::from_f32(&[2, 1], &[1.0, 2.0]).unwrap();
    assert_eq!(same(&f32s(&[1.0, 2.0]), &reshaped).unwrap(), "found a 2xf32, wanted a 2x1xf32");
    let (signed, signless) = (tensor(ElementType::SI8, &[1], &[1]), tensor(ElementType::I8, &[1], &[1]));
    assert_eq!(same(&signed, &signless).unwrap(), "found a 1xsi8, wanted a 1xi8");
    // Packed: the third byte holds the elements 4 and 5.
    let packed = |bytes: [u8; 3]| tensor(ElementType::from_name("i4").unwrap(), &[6], &bytes);
    assert!(same(&packed([1, 2, 3]), &packed([1, 2, 4])).unwrap().starts_with("element 4 differs\n"));
}

#[test]
fn closeness_is_absolute_and_relative_to_what_is_wanted() {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    for (found, wanted, absolute, relative, expected) in [
        (1.0, 1.5, 0.5, 0.0, true),
        (1.0, 1.75, 0.5, 0.0, false),
        (90.0, 100.0, 0.0, 0.125, true),
        // The same distance of the same numbers, but less is wanted: 0.125 * 80 = 10.
        (91.0, 80.0, 0.0, 0.125, false),
        (-0.0, 0.0, 0.0, 0.0, true),
        (nan, nan, 0.0, 0.0, true),
        (nan, 1.0, 9.0, 9.0, false),
        (1.0, nan, 9.0, 9.0, false),
        (infinity, infinity, 0.0, 0.0, true),
        (infinity, -infinity, infinity, 0.0, false),
        (1.0, infinity, 9.0, 9.0, false),
        (infinity, 1.0, 9.0, 9.0, false),
    ] {
        assert_eq!(near(&f64s(&[found]), &f64s(&[wanted]), absolute, relative), expected, "{found} {wanted} {absolute} {relative}");
    }
    let text = almost_equal(&f32s(&[1.0, 2.5]), &f32s(&[1.0, 2.0]), &Tolerance::of_old(ElementType::F32), &mut meter()).unwrap().unwrap();
    assert!(text.starts_with("element 1 differs: found 2.5, wanted 2\n") && text.contains("0.5"), "{text}");
}

#[test]
fn every_float_type_is_compared_and_nothing_else() {
    // 1.0 and the next larger number of each type.
    let float8 = |name: &str| ElementType::from_name(name).unwrap();
    for (element_type, one, more, step) in [
        (ElementType::F16, vec![0x00, 0x3C], vec![0x01, 0x3C], 0.000_976_562_5),
        (ElementType::BF16, vec![0x80, 0x3F], vec![0x81, 0x3F], 0.007_812_5),
        (float8("f8E5M2"), vec![0x3C], vec![0x3D], 0.25),
        (float8("f8E4M3FN"), vec![0x38], vec![0x39], 0.125),
        (float8("f8E5M2FNUZ"), vec![0x40], vec![0x41], 0.25),
        (float8("f8E4M3FNUZ"), vec![0x40], vec![0x41], 0.125),
        (float8("f8E8M0FNU"), vec![0x7F], vec![0x80], 1.0),
    ] {
        let (one, more) = (tensor(element_type, &[1], &one), tensor(element_type, &[1], &more));
        assert!(near(&more, &one, step, 0.0), "{element_type}");
        assert!(!near(&more, &one, step * 0.99, 0.0), "{element_type}");
    }
    let integers = tensor(ElementType::I32, &[1], &[1, 0, 0, 0]);
    let error = almost_equal(&integers, &integers, &Tolerance::of_old(ElementType::I32), &mut meter()).unwrap_err();
    assert_eq!(error.status(), Status::Unimplemented);
}

#[test]
fn old_programs_have_fixed_tolerances() {
    let old = |a: &BufferView, b: &BufferView| almost_equal(a, b, &Tolerance::of_old(a.element_type()), &mut meter()).unwrap().is_none();
    assert!(old(&f64s(&[1.000_09]), &f64s(&[1.0])));
    assert!(!old(&f64s(&[1.000_11]), &f64s(&[1.0])));
    // One step of f16 at 1 is 0.00098.
    let half = |bits: u16| tensor(ElementType::F16, &[1], &bits.to_le_bytes());
    assert!(old(&half(0x3C01), &half(0x3C00)));
    assert!(!old(&half(0x3C02), &half(0x3C00)));
}

#[test]
fn all_true_means_no_zero() {
    let zero_at = |view: &BufferView| all_true(view, &mut meter()).unwrap();
    assert_eq!(zero_at(&tensor(ElementType::I1, &[2], &[1, 255])), None);
    assert_eq!(zero_at(&tensor(ElementType::I16, &[2], &[0, 1, 1, 0])), None);
    assert!(zero_at(&tensor(ElementType::I16, &[2], &[0, 1, 0, 0])).unwrap().starts_with("element 1 is zero"));
    assert!(zero_at(&f32s(&[1.0, -0.0])).unwrap().starts_with("element 1 is zero"));
    assert_eq!(zero_at(&f32s(&[f32::NAN])), None);
    assert_eq!(zero_at(&f64s(&[])), None);
    let packed = tensor(ElementType::from_name("i4").unwrap(), &[2], &[0x11]);
    assert_eq!(all_true(&packed, &mut meter()).unwrap_err().status(), Status::Unimplemented);
}

#[test]
fn looking_at_elements_takes_fuel() {
    let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
    meter.set_fuel(10);
    let many = f32s(&[1.0; 100]);
    for outcome in [equal(&many, &many, &mut meter).err(), all_true(&many, &mut meter).err()] {
        assert_eq!(outcome.map(|error| error.status()), Some(Status::ResourceExhausted));
    }
}

#[test]
fn a_report_keeps_a_bounded_number_of_failures_and_counts_all() {
    let report = CheckReport::new();
    for index in 0..1000 {
        report.add("expect_true", index.to_string());
    }
    assert_eq!(report.count(), 1000);
    let failures = report.take();
    assert_eq!(failures.len(), 100);
    assert_eq!(failures[1].to_string(), "check.expect_true: 1");
    assert_eq!((report.count(), report.take().len()), (0, 0));
}

#[test]
fn the_table_of_functions_is_well_formed() {
    Linker::new().add_native(Check::new(CheckReport::new())).unwrap();
}
