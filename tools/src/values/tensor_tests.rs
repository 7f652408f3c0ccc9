//! Tests of tensors as text against what the official tool was measured to accept, and of what we add to it.

use super::*;
use crate::declaration::Slot;
use proptest::prelude::*;
use vmfb_bytecode::calling_convention::Kind;
use vmfb_hal::ViewText;

fn view(text: &str) -> Result<BufferView> {
    let slot = Slot { kind: Kind::Ref, declared: None };
    parse(text, text, &slot, &mut Files::default(), u64::MAX)?.into_view(&MemoryAccount::with_limit(1 << 30))
}

/// What a text is printed as after it was read.
fn printed(text: &str) -> String {
    match view(text) {
        Ok(view) => ViewText::new(&view).to_string(),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn what_the_official_tool_reads_is_read_alike() {
    for (text, print) in [
        ("f32=2", "f32=2"),
        ("xf32=2", "f32=2"),
        ("4xf32=2 4 6 8", "4xf32=2 4 6 8"),
        ("2x2xi32=[1 2][3 4]", "2x2xi32=[1 2][3 4]"),
        ("2x2xi32=1,2,3,4", "2x2xi32=[1 2][3 4]"),
        ("4xi32=[1 2][3 4]", "4xi32=1 2 3 4"),
        ("2xf32=1,,2", "2xf32=1 2"),
        ("2xf32=[1 2", "2xf32=1 2"),
        ("2xf32 = 1 2", "2xf32=1 2"),
        ("2 xf32=1 2", "2xf32=1 2"),
        ("\"2xf32=1 2\"", "2xf32=1 2"),
        ("3xf32", "3xf32=0 0 0"),
        ("3xf32=", "3xf32=0 0 0"),
        ("3xf32=7", "3xf32=7 7 7"),
        ("0xf32=", "0xf32="),
        ("0x2xf32", "0x2xf32="),
        ("2x0xf32=[][]", "2x0xf32=[][]"),
        ("2xi8=200 -56", "2xi8=-56 -56"),
        ("2xui8=200 0x10", "2xui8=200 16"),
        ("2xsi16=010 -1", "2xsi16=8 -1"),
        ("2xi1=00 01", "2xi1=00 01"),
        ("2xi1=02 ff", "2xi1=02 FF"),
        ("f64=0x1.8p1", "f64=3"),
        ("f8E5M2=500", "f8E5M2=512"),
        ("f8E4M3FN=500", "f8E4M3FN=NAN"),
        ("f8E8M0FNU=3", "f8E8M0FNU=4"),
        ("2xf16=1e-8 70000", "2xf16=0 INF"),
        ("2xbf16=1e39 nan", "2xbf16=INF NAN"),
        ("4xf32=nan inf -inf -0", "4xf32=NAN INF -INF -0"),
        ("2xcf64=0000803F00000000 0000000000000040", "2xcf64=0000803F00000000 0000000000000040"),
        ("1x*8=0a", "1x*8=0A"),
        ("2x*16=0aff 0000", "2x*16=0AFF 0000"),
    ] {
        assert_eq!(printed(text), print, "{text}");
    }
}

#[test]
fn readable_forms_are_read_where_the_official_tool_wants_hex() {
    for (text, print) in [
        ("4xi1=1,0,1,0", "4xi1=01 00 01 00"),
        ("3xi1=true false 1", "3xi1=01 00 01"),
        ("4xi1=0", "4xi1=00 00 00 00"),
        ("4xi1=1", "4xi1=01 01 01 01"),
        ("3xi4=1 -8 15", "3xi4=1 -8 -1"),
        ("4xi4=21 F3", "4xi4=1 2 3 -1"),
        ("5xi4=7", "5xi4=7 7 7 7 7"),
        ("11xi3=-3", "11xi3=-3 -3 -3 -3 -3 -3 -3 -3 -3 -3 -3"),
        ("2xcf64=1+2i (0.5,-1)", "2xcf64=0000803F00000040 0000003F000080BF"),
        ("f32", "f32=0"),
    ] {
        assert_eq!(printed(text), print, "{text}");
    }
    let bytes = view("5xi4=7").unwrap().to_bytes().unwrap();
    assert_eq!(bytes, [0x77, 0x77, 0x07]);
}

#[test]
fn errors_name_what_was_found_and_wanted() {
    for (text, error) in [
        ("3xf32=1 2", "OUT_OF_RANGE: 3xf32 needs 3 values, got 2"),
        ("3xf32=1 2 3 4", "OUT_OF_RANGE: 3xf32 needs 3 values, got 4"),
        ("0xf32=1", "OUT_OF_RANGE: 0xf32 needs 0 values, got 1"),
        ("2xf32=[]", "OUT_OF_RANGE: 2xf32 needs 2 values, got 0"),
        ("2xui8=-1 2", "INVALID_ARGUMENT: '-1' is out of the range of ui8: 0 to 255"),
        ("2xi32=99999999999 2", "INVALID_ARGUMENT: '99999999999' is out of the range of i32: -2147483648 to 4294967295"),
        ("2xi32=1.5 2", "INVALID_ARGUMENT: '1.5' is not a whole number"),
        ("2xi8=true 1", "INVALID_ARGUMENT: 'true' is not a number"),
        ("2xf32=1;2 3", "INVALID_ARGUMENT: '1;2' is not a number"),
        ("4xf33=1", "INVALID_ARGUMENT: unknown element type 'f33'"),
        ("4xindex=1", "INVALID_ARGUMENT: unknown element type 'index'"),
        ("-1xf32=2", "INVALID_ARGUMENT: '-1' is not a dimension, wanted a whole number"),
        ("?xf32=2", "INVALID_ARGUMENT: '?' is not a dimension, wanted a whole number"),
        ("4xx=1", "INVALID_ARGUMENT: unknown element type ''"),
        ("2xi12*=1", "INVALID_ARGUMENT: unknown element type 'i12*'"),
        ("2x*12=1", "UNIMPLEMENTED: elements of *12 cannot be written as text"),
        ("7", "INVALID_ARGUMENT: '7' has no shape and type, which the function needs here"),
        ("4294967296x4294967296xf32=1", "OUT_OF_RANGE: 4294967296x4294967296xf32 has more bytes than can be counted"),
    ] {
        assert_eq!(printed(text), error, "{text}");
    }
    let large = printed("1099511627776xf32=1");
    assert!(large.starts_with("RESOURCE_EXHAUSTED") && large.contains("memory limit of 1073741824 bytes"), "{large}");
    let deep = "1x".repeat(129) + "f32=1";
    assert_eq!(printed(&deep), "OUT_OF_RANGE: a tensor has at most 128 dimensions");
    assert_eq!(printed(&("1x".repeat(128) + "f32=")).len(), 1 + 128 * 2 + 4 + 2 * 127);
}

#[test]
fn a_number_alone_is_a_tensor_of_rank_0_where_one_is_declared() {
    let slot = Slot { kind: Kind::Ref, declared: Some(DeclaredType::parse("tensor<f32>")) };
    let tensor = parse("2.5", "2.5", &slot, &mut Files::default(), u64::MAX).unwrap();
    assert_eq!(tensor.into_view(&MemoryAccount::default()).unwrap().to_f32().unwrap(), [2.5]);
    let slot = Slot { kind: Kind::Ref, declared: Some(DeclaredType::parse("tensor<4xf32>")) };
    let failure = parse("2.5", "2.5", &slot, &mut Files::default(), u64::MAX).unwrap_err();
    assert!(failure.render(crate::failure::Colour::Plain).contains("write \"4xf32=…\""));
}

proptest! {
    #[test]
    fn what_is_printed_is_read(
        shape in proptest::collection::vec(0u64..4, 0..4),
        name in proptest::sample::select(vec![
            "i1", "i3", "i4", "ui4", "i8", "si8", "ui8", "i16", "i32", "ui32", "i64", "ui64", "si64", "f8E5M2", "f8E4M3FN", "f8E5M2FNUZ",
            "f8E4M3FNUZ", "cf64", "cf128", "*8", "*24", "i128",
        ]),
        seed: u64,
    ) {
        let element_type = ElementType::from_name(name).unwrap();
        let length = byte_length(&shape, element_type).unwrap();
        let mut bytes: Vec<u8> = (0..length).map(|index| (seed.rotate_left(index as u32 * 7) as u8).wrapping_add(index as u8)).collect();
        let used = (element_count(&shape) * element_type.bits() as u64) % 8;
        if let (Some(last), 1..) = (bytes.last_mut(), used) {
            *last &= (1 << used) - 1;
        }
        let view = BufferView::from_bytes(&shape, element_type, &bytes).unwrap();
        let text = ViewText::new(&view).to_string();
        let again = self::view(&text).unwrap();
        prop_assert_eq!(again.shape(), view.shape());
        prop_assert_eq!(again.element_type(), element_type);
        // NaNs lose their payload.
        if !text.contains("NAN") {
            prop_assert_eq!(again.to_bytes().unwrap(), bytes, "{}", text);
        }
    }

    #[test]
    fn floats_are_read_as_their_shortest_text(values in proptest::collection::vec(any::<f32>(), 1..20)) {
        let text: Vec<String> = values.iter().map(ToString::to_string).collect();
        let view = self::view(&format!("{}xf32={}", values.len(), text.join(" "))).unwrap();
        for (read, value) in view.to_f32().unwrap().iter().zip(&values) {
            prop_assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan());
        }
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in ".{0,60}",
        shaped in "([0-9]{1,3}x){0,4}(i1|i4|i8|f32|cf64|\\*16|f8E5M2|x)?=?[-0-9a-f.,i\\[\\]() @+]{0,30}",
    ) {
        let _ = (self::view(&text), self::view(&shaped));
    }
}
