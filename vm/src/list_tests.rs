//! Tests of lists against the conversion and failure rules of the instruction set.

use super::*;
use vmfb_bytecode::Status;

fn list(element: ElementKind, length: u32) -> List {
    let list = List::new(element, 0, &MemoryAccount::default()).unwrap();
    list.resize(length).unwrap();
    list
}

#[test]
fn numbers_convert_as_measured_on_the_official_runtime() {
    let wide = list(ElementKind::I64, 1);
    wide.set(0, Value::I64((1 << 32) + 5)).unwrap();
    assert_eq!(wide.get_scalar(0).unwrap().integer() as i32, 5);
    let narrow = list(ElementKind::I8, 1);
    narrow.set(0, Value::I32(200)).unwrap();
    assert_eq!(narrow.get_scalar(0).unwrap().integer(), -56);
    let float = list(ElementKind::F32, 1);
    float.set(0, Value::F32(2.5)).unwrap();
    assert_eq!(float.get_scalar(0).unwrap().integer(), 0);
    assert_eq!(float.get_scalar(0).unwrap().double(), 2.5);
}

#[test]
fn an_f32_keeps_its_bits() {
    let signalling = f32::from_bits(0x7f80_0001);
    for kind in [ElementKind::F32, ElementKind::Variant] {
        let list = list(kind, 1);
        list.set(0, Value::F32(signalling)).unwrap();
        assert_eq!(list.get_scalar(0).unwrap().single().to_bits(), 0x7f80_0001);
    }
}

#[test]
fn taking_leaves_null_behind_and_only_what_is_wanted_is_taken() {
    let buffer = || Ref::from(Buffer::constant(vec![1]));
    for kind in [ElementKind::Ref(RefType::Buffer), ElementKind::Variant] {
        let list = list(kind, 2);
        list.set(0, Value::Ref(buffer())).unwrap();
        assert!(list.take_ref(0, &RefType::List).unwrap().is_null());
        assert!(!list.get_ref(0).unwrap().is_null(), "a list was wanted: the buffer stays");
        assert!(!list.take_ref(0, &RefType::Buffer).unwrap().is_null());
        assert!(list.get_ref(0).unwrap().is_null());
        assert!(list.take_ref(1, &RefType::Buffer).unwrap().is_null());
        assert_eq!(list.take_ref(2, &RefType::Buffer).unwrap_err().status(), Status::OutOfRange);
    }
    let numbers = list(ElementKind::Variant, 1);
    numbers.set(0, Value::I32(7)).unwrap();
    assert_eq!(numbers.take_ref(0, &RefType::Buffer).unwrap_err().status(), Status::FailedPrecondition);
    assert_eq!(numbers.get_scalar(0).unwrap().integer(), 7);
}

#[test]
fn wrong_kinds_and_indices_have_their_status() {
    let references = list(ElementKind::Ref(RefType::Buffer), 1);
    assert_eq!(references.get_scalar(0).unwrap_err().status(), Status::FailedPrecondition);
    assert_eq!(references.set(0, Value::I32(1)).unwrap_err().status(), Status::FailedPrecondition);
    assert_eq!(references.set(0, List::of_values([]).unwrap().into()).unwrap_err().status(), Status::InvalidArgument);
    assert_eq!(references.get_ref(1).unwrap_err().status(), Status::OutOfRange);
    let values = list(ElementKind::I32, 1);
    assert_eq!(values.get_ref(0).unwrap_err().status(), Status::FailedPrecondition);
    assert_eq!(values.set(0, Value::Ref(Ref::Null)).unwrap_err().status(), Status::FailedPrecondition);
    assert_eq!(values.get_scalar(1).unwrap_err().status(), Status::OutOfRange);
    let anything = list(ElementKind::Variant, 2);
    anything.set(1, Value::I32(1)).unwrap();
    assert_eq!(anything.get_scalar(0).unwrap_err().status(), Status::FailedPrecondition);
    assert!(anything.get_ref(0).unwrap().is_null());
    assert_eq!(anything.get_ref(1).unwrap_err().status(), Status::FailedPrecondition);
}

#[test]
fn a_million_nested_lists_are_dropped() {
    let mut outer = list(ElementKind::Variant, 1);
    // Fewer under Miri, which is slow.
    for _ in 0..if cfg!(miri) { 1000 } else { 1_000_000 } {
        let next = list(ElementKind::Variant, 1);
        next.set(0, outer.into()).unwrap();
        outer = next;
    }
    drop(outer);
}

#[test]
fn growth_is_charged_and_returned() {
    let account = MemoryAccount::with_limit(1 << 20);
    let list = List::new(ElementKind::I64, 0, &account).unwrap();
    assert_eq!(list.resize(u32::MAX).unwrap_err().status(), Status::ResourceExhausted);
    list.resize(1000).unwrap();
    assert!(account.used() >= 8000);
    drop(list);
    assert_eq!(account.used(), 0);
}

#[test]
fn a_list_of_buffers_holds_them_in_order_and_is_charged() {
    let account = MemoryAccount::default();
    let buffers = [Buffer::constant([1]), Buffer::constant([2, 3])];
    let list = List::of_buffers(buffers.iter().cloned().map(Ok), &account).unwrap();
    assert_eq!(list.element(), &ElementKind::Ref(RefType::Buffer));
    assert!(list.len() == 2 && account.used() >= 2 * size_of::<Ref>() as u64);
    assert!(list.get_ref(0).unwrap().same(&buffers[0].clone().into()) && list.get_ref(1).unwrap().same(&buffers[1].clone().into()));
    drop(list);
    assert_eq!(account.used(), 0);
    let failing = [Ok(Buffer::constant([1])), Err(Error::invalid("no"))].into_iter();
    assert_eq!(List::of_buffers(failing, &account).unwrap_err().status(), Status::InvalidArgument);
    assert_eq!(account.used(), 0);
}

#[test]
fn a_resize_that_ends_early_leaves_a_length_between() {
    const LONG: u32 = 500_000;
    let meter = crate::Meter::default();
    meter.interrupt_handle().interrupt();
    for kind in [ElementKind::I64, ElementKind::Variant, ElementKind::Ref(RefType::Buffer)] {
        let grown = list(kind.clone(), 3);
        assert_eq!(grown.resize_within(&meter, LONG).unwrap_err().status(), Status::Cancelled);
        assert!((4..LONG as usize).contains(&grown.len()), "{}", grown.len());
        // Without an end it gets there, and back.
        grown.resize(LONG).unwrap();
        assert_eq!(grown.len(), LONG as usize);
        grown.resize(2).unwrap();
        assert_eq!(grown.len(), 2);
    }
    let held = Buffer::constant(*b"x");
    let shrunk = list(ElementKind::Variant, LONG);
    (0..LONG).for_each(|index| shrunk.set(index, Value::Ref(held.clone().into())).unwrap());
    assert_eq!(shrunk.resize_within(&meter, 0).unwrap_err().status(), Status::Cancelled);
    assert!((1..LONG as usize).contains(&shrunk.len()), "{}", shrunk.len());
}
