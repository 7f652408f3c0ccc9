//! Tests of array files: headers as numpy writes them, hostile headers, and another reader's and writer's opinion.

use super::*;
use npyz::WriterBuilder;
use proptest::prelude::*;

/// A file with the given version, dictionary text and data.
fn file(version: u8, dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((dictionary.len() as u16).to_le_bytes()),
        _ => bytes.extend((dictionary.len() as u32).to_le_bytes()),
    }
    bytes.extend(dictionary.as_bytes());
    bytes.extend(data);
    bytes
}

fn read_all(bytes: &[u8]) -> Result<Option<Array>> {
    read(&mut &*bytes, u64::MAX)
}

fn message(bytes: &[u8]) -> String {
    read_all(bytes).unwrap_err().to_string()
}

#[test]
fn all_versions_are_read() {
    let dictionary = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }   \n";
    for version in 1..=3 {
        let array = read_all(&file(version, dictionary, &[1, 0, 2, 0])).unwrap().unwrap();
        assert_eq!(array, Array { shape: vec![2, 1], element_type: ElementType::SI16, bytes: vec![1, 0, 2, 0] });
    }
    assert_eq!(message(&file(4, dictionary, &[])), "UNIMPLEMENTED: array file version 4.0, wanted 1.0, 2.0 or 3.0");
}

#[test]
fn keys_may_come_in_any_order_and_spelling() {
    for dictionary in [
        "{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"|u1\"}",
        "{'shape': (3L,), 'descr': '|u1', 'fortran_order': False}",
        "\n{ 'fortran_order' : False , 'shape' : ( 3 ) , 'descr' : '|u1' , } \n\n",
    ] {
        let array = read_all(&file(1, dictionary, &[1, 2, 3])).unwrap().unwrap();
        assert_eq!((array.shape, array.element_type), (vec![3], ElementType::UI8), "{dictionary}");
    }
}

#[test]
fn type_strings_have_their_element_types() {
    for (descr, name) in [
        ("|b1", "i1"),
        ("|i1", "si8"),
        ("=i4", "si32"),
        ("<u8", "ui64"),
        ("<f2", "f16"),
        ("<f8", "f64"),
        ("<c8", "cf64"),
        ("<c16", "cf128"),
        ("<V2", "bf16"),
        ("|V2", "bf16"),
        ("|V1", "*8"),
        ("|V4", "*32"),
    ] {
        let dictionary = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ()}}");
        let array = read_all(&file(1, &dictionary, &[0; 16])).unwrap().unwrap();
        assert_eq!(array.element_type.to_string(), name, "{descr}");
    }
    for descr in ["<f16", "|O", "<U4", "|S3", "<M8[ns]", "f4", "", "<", "<i3", "<V32", "<V0", "|i-1", "<f99999999999999999999"] {
        let dictionary = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ()}}");
        assert!(read_all(&file(1, &dictionary, &[0; 64])).is_err(), "{descr}");
    }
}

#[test]
fn big_endian_elements_are_turned_around() {
    let dictionary = "{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}";
    let data = [1f32.to_be_bytes(), 2f32.to_be_bytes()].concat();
    let array = read_all(&file(1, dictionary, &data)).unwrap().unwrap();
    assert_eq!(array.bytes, [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat());
}

#[test]
fn refusals_say_what_was_found_and_wanted() {
    let with = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
    assert_eq!(message(b"hello world"), "INVALID_ARGUMENT: this is not an array file: it does not begin with \\x93NUMPY");
    assert_eq!(
        message(&file(1, &with("(4, 4)"), &[0; 40])),
        "OUT_OF_RANGE: the file ends early: 4x4xf32 needs 64 bytes after the header, found 40"
    );
    assert_eq!(
        message(&file(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", &[0; 16])),
        "UNIMPLEMENTED: the array is in Fortran order, wanted C order"
    );
    assert_eq!(
        message(&file(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", &[])),
        "INVALID_ARGUMENT: the elements of the array are records, wanted plain numbers"
    );
    assert_eq!(
        message(&file(1, "{'descr': '<f4', 'shape': ()}", &[])),
        "INVALID_ARGUMENT: the header of the array file has the end at byte 29 of its dictionary, wanted the key 'fortran_order'"
    );
    assert_eq!(message(&file(1, &with("(4294967296, 4294967296)"), &[])).split(':').next(), Some("OUT_OF_RANGE"));
    assert_eq!(message(&file(2, &with("(1,)"), &[])[..20]), "INVALID_ARGUMENT: the array file ends inside its header");
    let limited = read(&mut &*file(1, &with("(4,)"), &[0; 16]), 15).unwrap_err();
    assert_eq!(limited.to_string(), "RESOURCE_EXHAUSTED: the array has 16 bytes, the memory limit leaves 15");
}

#[test]
fn hostile_headers_are_refused_without_work() {
    let many = format!("({})", "1,".repeat(10_000));
    let deep = "(".repeat(30_000);
    for shape in ["(-1,)", "(18446744073709551616,)", "(1.5,)", "[1]", "((1,),)", "None", "(1", "(1,,)", &many, &deep] {
        let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        assert!(read_all(&file(2, &dictionary, &[0; 16])).is_err(), "{}", &shape[..shape.len().min(20)]);
    }
    let mut huge = MAGIC.to_vec();
    huge.extend([2, 0, 255, 255, 255, 255]);
    assert_eq!(message(&huge), "INVALID_ARGUMENT: the header says that it is 4294967295 bytes long, at most 65536 are read");
    // A zero dimension makes the others harmless.
    let empty = "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 18446744073709551615)}";
    assert!(read_all(&file(1, empty, &[])).unwrap().unwrap().bytes.is_empty());
}

#[test]
fn the_header_is_the_one_that_numpy_writes() {
    // numpy.save of a float32 array of shape (2, 3), and of shape (4,).
    let text = |shape: &[u64], element_type| {
        let bytes = header(shape, element_type).unwrap();
        assert_eq!(bytes.len() % 64, 0);
        assert_eq!(bytes[..10], *b"\x93NUMPY\x01\x00\x76\x00");
        String::from_utf8(bytes[10..].to_vec()).unwrap().trim_end().to_owned()
    };
    assert_eq!(text(&[2, 3], ElementType::F32), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
    assert_eq!(text(&[4], ElementType::F32), "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }");
    assert_eq!(text(&[], ElementType::I1), "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
    assert_eq!(text(&[0, 2], ElementType::BF16), "{'descr': '<V2', 'fortran_order': False, 'shape': (0, 2), }");
    assert!(header(&[2], ElementType::from_name("i4").unwrap()).is_err());
    assert!(header(&[2], ElementType::from_name("i24").unwrap()).is_err());
}

#[test]
fn arrays_of_another_writer_are_read_and_ours_by_another_reader() {
    let values: Vec<f32> = (0..24).map(|index| index as f32 * 0.5).collect();
    let mut theirs = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&[2, 3, 4]).writer(&mut theirs).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
    let array = read_all(&theirs).unwrap().unwrap();
    assert_eq!((array.shape.as_slice(), array.element_type), ([2, 3, 4].as_slice(), ElementType::F32));
    let mut ours = header(&array.shape, array.element_type).unwrap();
    ours.extend(&array.bytes);
    let read_back = npyz::NpyFile::new(&*ours).unwrap();
    assert_eq!(read_back.shape(), [2, 3, 4]);
    assert_eq!(read_back.into_vec::<f32>().unwrap(), values);
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        shape in proptest::collection::vec(0u64..5, 0..5),
        name in proptest::sample::select(vec!["i1", "si8", "ui16", "si32", "ui64", "f16", "bf16", "f32", "f64", "cf64", "cf128", "*8", "*24"]),
        seed: u8,
        tail in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let element_type = ElementType::from_name(name).unwrap();
        let length = byte_length(&shape, element_type).unwrap() as usize;
        let data: Vec<u8> = (0..length).map(|index| (index as u8).wrapping_mul(seed)).collect();
        let mut bytes = header(&shape, element_type).unwrap();
        bytes.extend(&data);
        bytes.extend(&tail);
        let mut reader = &*bytes;
        let array = read(&mut reader, u64::MAX).unwrap().unwrap();
        prop_assert_eq!(array, Array { shape, element_type, bytes: data });
        prop_assert_eq!(reader, &*tail);
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        version in 1u8..4,
        dictionary in "\\{('(descr|fortran_order|shape|x)': ?('[<>|=]?[a-zA-Z][0-9]{0,3}'|True|False|\\([0-9, L]{0,30}\\)|\\[\\(),? ?){0,4}\\}? {0,4}",
        cut in 0usize..300,
    ) {
        let _ = read(&mut &*bytes, 1 << 20);
        let mut made = file(version, &dictionary, &bytes);
        made.truncate(cut);
        let _ = read(&mut &*made, 1 << 20);
    }
}
