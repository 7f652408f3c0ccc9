//! Tests of the argument buffer: positions by hand, and writer against reader.

use super::*;
use crate::{Buffer, List};
use proptest::prelude::*;

fn layout(convention: &str, layout: Layout) -> ArgumentLayout {
    ArgumentLayout::new(&convention.parse().unwrap(), layout)
}

fn word(buffer: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(buffer[at..at + 4].try_into().unwrap())
}

fn pair(buffer: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(buffer[at..at + 8].try_into().unwrap())
}

fn buffer_reference() -> Ref {
    Buffer::constant([]).into()
}

/// Arguments of a dispatch with function 7, grid 1 2 3, constants 100.., bindings (0x1_0000_0002 + k, 16).
fn dispatch_values(function: &[u32], constants: u32, bindings: u32) -> Vec<u32> {
    let mut values = [function, &[1, 2, 3]].concat();
    values.extend((0..constants).map(|k| 100 + k));
    values.extend((0..bindings).flat_map(|k| [2 + k, 1, 16, 0]));
    values
}

#[test]
fn a_dispatch_stands_where_the_published_example_says() {
    let references = vec![buffer_reference(); 4];
    let mut bytes = Vec::new();
    let layout = layout("0rIiiiCiDCrIID_v", Layout::Aligned);
    layout.write(&dispatch_values(&[7, 0], 4, 3), &references, &[4, 3], &mut bytes).unwrap();
    assert_eq!(bytes.len(), 160);
    assert_eq!((word(&bytes, 0), word(&bytes, 4), pair(&bytes, 8)), (1, ReferenceTag::Buffer as u32, 0));
    assert_eq!(pair(&bytes, 16), 7);
    assert_eq!([24, 28, 32].map(|at| word(&bytes, at)), [1, 2, 3]);
    assert_eq!([36, 40, 44, 48, 52].map(|at| word(&bytes, at)), [4, 100, 101, 102, 103]);
    assert_eq!(word(&bytes, 56), 3);
    for (index, at) in [64, 96, 128].into_iter().enumerate() {
        assert_eq!(word(&bytes, at), 2 + index as u32);
        assert_eq!((pair(&bytes, at + 16), pair(&bytes, at + 24)), (0x1_0000_0002 + index as u64, 16));
    }
}

#[test]
fn the_old_dispatch_is_packed_back_to_back() {
    let references = vec![buffer_reference(); 3];
    let mut bytes = Vec::new();
    let layout = layout("0riiiiCiDCrIID_v", Layout::Packed);
    layout.write(&dispatch_values(&[7], 1, 2), &references, &[1, 2], &mut bytes).unwrap();
    assert_eq!([16, 20, 24, 28, 32, 36, 40].map(|at| word(&bytes, at)), [7, 1, 2, 3, 1, 100, 2]);
    assert_eq!((word(&bytes, 44), pair(&bytes, 60), pair(&bytes, 68)), (2, 0x1_0000_0002, 16));
    assert_eq!(bytes.len(), 44 + 2 * 32);
}

#[test]
fn sizes_of_dispatches_follow_the_table_of_offsets() {
    let up = |at: usize| at.next_multiple_of(8);
    for constants in 0..=3usize {
        for bindings in 0..=3usize {
            let segments = [constants as u16, bindings as u16];
            let size = |convention, kind| layout(convention, kind).size(&segments).unwrap();
            assert_eq!(size("0riiiiCiDCrIID_v", Layout::Packed), 40 + 4 * constants + 32 * bindings);
            assert_eq!(size("0riiiiCiDCrIID_v", Layout::Aligned), up(40 + 4 * constants) + 32 * bindings);
            assert_eq!(size("0rIiiiCiDCrIID_v", Layout::Packed), 44 + 4 * constants + 32 * bindings);
            assert_eq!(size("0rIiiiCiDCrIID_v", Layout::Aligned), up(44 + 4 * constants) + 32 * bindings);
        }
    }
}

#[test]
fn an_empty_span_aligns_the_size_but_not_the_fields_after_it() {
    let layout = layout("0CIDi_v", Layout::Aligned);
    let mut bytes = Vec::new();
    layout.write(&[9], &[], &[0], &mut bytes).unwrap();
    assert_eq!(bytes, [0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn tuples_are_not_padded_at_their_end() {
    let layout = layout("0CIiD_v", Layout::Aligned);
    let mut bytes = Vec::new();
    layout.write(&[1, 0, 2, 3, 0, 4], &[], &[2], &mut bytes).unwrap();
    assert_eq!([pair(&bytes, 8), pair(&bytes, 24)], [1, 3]);
    assert_eq!([word(&bytes, 16), word(&bytes, 32)], [2, 4]);
    assert_eq!(bytes.len(), 40, "36 rounded up to a multiple of 8");
}

#[test]
fn a_second_call_allocates_nothing() {
    let layout = layout("0rIiiiCiDCrIID_v", Layout::Aligned);
    let references = vec![buffer_reference(); 4];
    let mut bytes = Vec::with_capacity(160);
    let before = bytes.as_ptr();
    for _ in 0..2 {
        layout.write(&dispatch_values(&[7, 0], 4, 3), &references, &[4, 3], &mut bytes).unwrap();
        assert_eq!((bytes.as_ptr(), bytes.capacity()), (before, 160));
    }
}

#[test]
fn counts_that_do_not_fit_are_refused() {
    let layout = layout("0riCID_v", Layout::Aligned);
    let one = [buffer_reference()];
    let mut bytes = Vec::new();
    let mut write = |values: &[u32], references: &[Ref], segments: &[u16]| layout.write(values, references, segments, &mut bytes).is_ok();
    assert!(write(&[1, 2, 3], &one, &[1]));
    assert!(!write(&[1, 2], &one, &[1]));
    assert!(!write(&[1, 2, 3, 4], &one, &[1]));
    assert!(!write(&[1, 2, 3], &[], &[1]));
    assert!(!write(&[1, 2, 3], &[Ref::Null, Ref::Null], &[1]));
    assert!(!write(&[1, 2, 3], &one, &[]));
    assert!(!write(&[1, 2, 3], &one, &[1, 0]));
}

#[test]
fn slots_lead_back_to_their_reference() {
    let list: Ref = List::of_values([]).unwrap().into();
    let references = [buffer_reference(), Ref::Null, list];
    for (index, reference) in references.iter().enumerate() {
        let slot = reference_slot(index as u32, reference);
        assert!(resolve_reference(&slot, &references).unwrap().same(reference));
    }
    let slot = |number: u8, tag: u8, last: u8| [number, 0, 0, 0, tag, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    for wrong in [slot(1, 2, 0), slot(1, 1, 1), slot(2, 0, 0), slot(3, 3, 0), slot(4, 1, 0), slot(0, 1, 0), slot(0, 0, 1), [0xFF; 16]] {
        assert_eq!(resolve_reference(&wrong, &references).unwrap_err().status(), crate::Status::InvalidArgument, "{wrong:?}");
    }
}

/// A convention, tuple counts that fit it, and whether the layout is packed.
fn calls() -> impl Strategy<Value = (CallingConvention, Vec<u16>, Layout)> {
    let fields = "[iIfFr]{0,5}";
    let items =
        proptest::collection::vec(prop_oneof![fields.prop_map(String::from), fields.prop_map(|fields| format!("C{fields}D"))], 0..6);
    (items, proptest::collection::vec(0u16..6, 6), any::<bool>()).prop_map(|(items, counts, packed)| {
        let convention: CallingConvention = format!("0{}_v", items.concat()).parse().unwrap();
        let spans = convention.arguments.iter().filter(|item| matches!(item, Item::Span(_))).count();
        (convention, counts[..spans].to_vec(), if packed { Layout::Packed } else { Layout::Aligned })
    })
}

/// The kinds of all fields of a call, in order.
fn kinds(convention: &CallingConvention, counts: &[u16]) -> Vec<Kind> {
    let mut counts = counts.iter();
    let of_item = |item: &Item| match item {
        Item::Plain(kind) => vec![*kind],
        Item::Span(fields) => fields.repeat(usize::from(*counts.next().unwrap())),
    };
    convention.arguments.iter().flat_map(of_item).collect()
}

fn flatten(arguments: Vec<Argument>) -> Vec<Argument> {
    let of_argument = |argument| match argument {
        Argument::Span(tuples) => tuples.concat(),
        plain => vec![plain],
    };
    arguments.into_iter().flat_map(of_argument).collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read((convention, counts, kind) in calls()) {
        let (mut values, mut references, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for (n, kind) in kinds(&convention, &counts).into_iter().enumerate() {
            let low = n as u32 + 1;
            match kind {
                Kind::I32 => expected.push(Argument::I32(low as i32)),
                Kind::F32 => expected.push(Argument::F32(f32::from_bits(low))),
                Kind::I64 => expected.push(Argument::I64(i64::from(low) | 5 << 32)),
                Kind::F64 => expected.push(Argument::F64(f64::from_bits(u64::from(low) | 5 << 32))),
                Kind::Ref => {
                    references.push(if n % 3 == 0 { Ref::Null } else { buffer_reference() });
                    let index = references.len() as u32 - 1;
                    expected.push(Argument::Reference(reference_slot(index, &references[index as usize])));
                }
            }
            values.extend([low, 5].into_iter().take(usize::from(kind.value_slots())));
        }
        let layout = ArgumentLayout::new(&convention, kind);
        let mut bytes = vec![0xEE; 7];
        layout.write(&values, &references, &counts, &mut bytes).unwrap();
        prop_assert_eq!(bytes.len(), layout.size(&counts).unwrap());
        prop_assert_eq!(flatten(layout.read(&bytes).unwrap()), expected);
        let extended = [&bytes[..], &[0]].concat();
        prop_assert!(layout.read(&extended).is_err());
        if let Some((_, cut)) = bytes.split_last() {
            prop_assert!(layout.read(cut).is_err());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused((convention, _, kind) in calls(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let layout = ArgumentLayout::new(&convention, kind);
        if let Ok(arguments) = layout.read(&bytes) {
            prop_assert!(arguments.len() == convention.arguments.len());
        }
    }
}
