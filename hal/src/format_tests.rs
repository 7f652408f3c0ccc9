//! Tests of view text against lines that the official tool printed.

use super::*;
use vmfb_vm::Handle;

fn text(shape: &[u64], element_type: ElementType, bytes: &[u8]) -> String {
    ViewText::new(&BufferView::from_bytes(shape, element_type, bytes).unwrap()).to_string()
}

fn named(name: &str) -> ElementType {
    ElementType::from_name(name).unwrap()
}

#[test]
fn floats_print_as_in_the_tools() {
    let values = [f32::NAN.copysign(1.0), f32::NAN.copysign(-1.0), f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-7];
    let view = BufferView::from_f32(&[6], &values).unwrap();
    assert_eq!(ViewText::new(&view).to_string(), "6xf32=NAN -NAN INF -INF -0 1E-07");
    let doubles: Vec<u8> = [1e300f64, 5e-324].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(text(&[2], ElementType::F64, &doubles), "2xf64=1E+300 4.94066E-324");
    let halves: Vec<u8> = [0xFE00u16, 0x7E00, 0xFC00, 0x8001].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    assert_eq!(text(&[4], ElementType::F16, &halves), "4xf16=NAN NAN -INF -5.96046E-08");
    let brains: Vec<u8> = [0xFFC0u16, 0x7FC0, 0xFF80, 0x8001].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    assert_eq!(text(&[4], ElementType::BF16, &brains), "4xbf16=NAN NAN -INF -9.18355E-41");
    assert_eq!(text(&[4], named("f8E5M2"), &[0x7B, 0xFC, 0xFF, 0x80]), "4xf8E5M2=57344 -INF NAN -0");
    assert_eq!(text(&[3], named("f8E8M0FNU"), &[0x00, 0x80, 0xFF]), "3xf8E8M0FNU=5.87747E-39 2 NAN");
}

#[test]
fn integers_and_bits_print_as_in_the_tools() {
    assert_eq!(text(&[2], ElementType::I8, &[200, 5]), "2xi8=-56 5");
    assert_eq!(text(&[2], ElementType::SI16, &[0xFF, 0xFF, 1, 0]), "2xsi16=-1 1");
    assert_eq!(text(&[3], ElementType::UI8, &[1, 200, 3]), "3xui8=1 200 3");
    let extremes: Vec<u8> = [i64::MIN, 5].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(text(&[2], ElementType::I64, &extremes), "2xi64=-9223372036854775808 5");
    assert_eq!(text(&[1], ElementType::UI64, &[0xFF; 8]), "1xui64=18446744073709551615");
    assert_eq!(text(&[2], ElementType::I1, &[0, 1]), "2xi1=00 01");
    assert_eq!(text(&[3], named("*16"), &[1, 2, 3, 4, 5, 0xAB]), "3x*16=0102 0304 05AB");
    let complex = [0, 0, 0, 0, 0, 0, 0x80, 0x3F, 0, 0, 0, 0x40, 0, 0, 0x40, 0xAB];
    assert_eq!(text(&[1], ElementType::COMPLEX128, &complex), "1xcf128=000000000000803F00000040000040AB");
    assert_eq!(text(&[2], ElementType::COMPLEX64, &complex), "2xcf64=000000000000803F 00000040000040AB");
}

/// The official tool cannot print these; values by hand, lowest bits first.
#[test]
fn packed_elements_are_unpacked() {
    assert_eq!(text(&[3], named("i4"), &[0x21, 0x0F]), "3xi4=1 2 -1");
    assert_eq!(text(&[3], named("ui4"), &[0x21, 0x0F]), "3xui4=1 2 15");
    assert_eq!(text(&[2, 2], named("i2"), &[0b01_11_10_00]), "2x2xi2=[0 -2][-1 1]");
    assert_eq!(text(&[2], named("i12"), &[0x34, 0xF2, 0xFF]), "2xi12=564 -1");
    assert_eq!(text(&[2], named("*4"), &[0xA5]), "2x*4=05 0A");
    assert_eq!(text(&[1], named("i128"), &[0x01; 16]), "1xi128=01010101010101010101010101010101");
    assert_eq!(text(&[1], ElementType(0x7F00_0010), &[0xAB, 0xCD]).split_once('=').unwrap().1, "ABCD");
}

#[test]
fn shapes_get_one_bracket_pair_per_outer_slice() {
    let counted = |shape: &[u64]| {
        let count = shape.iter().product::<u64>() as i32;
        ViewText::new(&BufferView::from_i32(shape, &(1..=count).collect::<Vec<_>>()).unwrap()).to_string()
    };
    assert_eq!(counted(&[]), "i32=1");
    assert_eq!(counted(&[4]), "4xi32=1 2 3 4");
    assert_eq!(counted(&[2, 2]), "2x2xi32=[1 2][3 4]");
    assert_eq!(counted(&[2, 1, 2]), "2x1x2xi32=[[1 2]][[3 4]]");
    assert_eq!(counted(&[1, 2, 2, 1]), "1x2x2x1xi32=[[[1][2]][[3][4]]]");
    for (shape, wanted) in [
        (&[0][..], "0xi32="),
        (&[0, 5], "0x5xi32="),
        (&[3, 0], "3x0xi32=[][][]"),
        (&[3, 0, 2], "3x0x2xi32=[][][]"),
        (&[3, 2, 0], "3x2x0xi32=[[][]][[][]][[][]]"),
    ] {
        assert_eq!(counted(shape), wanted);
    }
}

#[test]
fn elements_beyond_the_limit_are_dots() {
    let view = BufferView::from_f32(&[2, 2, 2], &[1., 2., 3., 4., 5., 6., 7., 8.]).unwrap();
    for (limit, wanted) in [
        (0, "[[...][...]][[...][...]]"),
        (1, "[[1...][...]][[...][...]]"),
        (2, "[[1 2][...]][[...][...]]"),
        (3, "[[1 2][3...]][[...][...]]"),
        (4, "[[1 2][3 4]][[...][...]]"),
        (5, "[[1 2][3 4]][[5...][...]]"),
        (8, "[[1 2][3 4]][[5 6][7 8]]"),
    ] {
        assert_eq!(ViewText::with_limit(&view, limit).to_string(), format!("2x2x2xf32={wanted}"));
    }
    let scalar = BufferView::from_f32(&[], &[2.5]).unwrap();
    assert_eq!(ViewText::with_limit(&scalar, 0).to_string(), "f32=...");
    assert_eq!(ViewText::with_limit(&scalar, 1).to_string(), "f32=2.5");
}

#[test]
fn brackets_around_nothing_end() {
    let nothing = BufferView::from_i32(&[1 << 40, 1 << 20, 0], &[]).unwrap();
    let text = ViewText::new(&nothing).to_string();
    assert!(text.ends_with("[]...") && text.len() < 4096, "{} characters", text.len());
}

#[test]
fn a_part_of_a_buffer_prints_its_own_elements() {
    let whole = BufferView::from_f32(&[4], &[1., 2., 3., 4.]).unwrap();
    let part: Handle<_> = crate::subspan(whole.buffer(), 4, 8, &vmfb_memory::MemoryAccount::default()).unwrap();
    let view = BufferView::new(part, &[2], ElementType::F32, crate::Encoding::DENSE).unwrap();
    assert_eq!(ViewText::new(&view).to_string(), "2xf32=2 3");
}

#[test]
fn scalars_print_as_results_do() {
    let text = |value: Value| format_scalar(&value).unwrap();
    assert_eq!(text(7.into()), "i32=7");
    assert_eq!(text((-5i64).into()), "i64=-5");
    assert_eq!(text(1.5e-7f32.into()), "f32=1.5e-07");
    assert_eq!(text(f32::NAN.copysign(-1.0).into()), "f32=-nan");
    assert_eq!(text(1e10f64.into()), "f64=1e+10");
    assert_eq!(format_scalar(&Value::Ref(vmfb_vm::Ref::Null)), None);
}

#[test]
fn a_text_ends_where_limits_end() {
    let meter = vmfb_vm::Meter::default();
    let view = BufferView::from_i32(&[100_000], &[7; 100_000]).unwrap();
    let rows = BufferView::from_i32(&[100_000, 1], &[7; 100_000]).unwrap();
    for view in [&view, &rows] {
        let whole = ViewText::new(view).within(&meter).to_string();
        assert!(whole.len() >= 200_000 && !whole.contains("..."));
    }
    meter.interrupt_handle().interrupt();
    for view in [&view, &rows] {
        let cut = ViewText::new(view).within(&meter).to_string();
        assert!(cut.len() < 10_000 && cut.contains("..."), "{}", cut.len());
    }
}

#[test]
fn rows_beyond_the_limit_are_bounded() {
    let bit = ElementType::from_name("i1").unwrap();
    let view = BufferView::from_bytes(&[1 << 22, 1], bit, &vec![1; 1 << 22]).unwrap();
    let text = ViewText::with_limit(&view, 2).to_string();
    assert!(text.starts_with("4194304x1xi1=[01][01][...][...]") && text.ends_with("[...]..."), "{}", &text[..40]);
    assert!(text.len() < 6 << 20, "{}", text.len());
}

/// A unit for each element, and for each bracket around it.
#[test]
fn what_a_text_costs() {
    let cost =
        |shape: &[u64]| ViewText::new(&BufferView::from_i32(shape, &[0; 6][..shape.iter().product::<u64>() as usize]).unwrap()).cost();
    assert_eq!([cost(&[]), cost(&[6]), cost(&[2, 3]), cost(&[6, 1, 1, 1]), cost(&[1 << 40, 0])], [1, 6, 12, 24, 2048]);
}
