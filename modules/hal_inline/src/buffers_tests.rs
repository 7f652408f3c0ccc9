//! Tests of `buffer.*` and `device.query.i64`.

use super::*;
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{FuelMetering, Origin, Status};

fn status<T>(result: Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

/// A buffer with the bytes 0, 1, 2, …
fn counted(length: usize) -> Ref {
    let buffer = allocate(&mut Meter::default(), 64, length as i64).unwrap();
    let bytes: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
    buffer.span().write(0, &bytes).unwrap();
    buffer.into()
}

fn bytes(buffer: &Handle<HalBuffer>) -> Vec<u8> {
    buffer.span().to_vec().unwrap()
}

#[test]
fn allocation_gives_zeroed_aligned_bytes() {
    for alignment in [0, 1, 3, 64, 100] {
        let buffer = allocate(&mut Meter::default(), alignment, 40).unwrap();
        assert_eq!(bytes(&buffer), [0; 40]);
        assert_eq!(buffer.span().address().addr() % 64, 0);
    }
    assert_eq!(allocate(&mut Meter::default(), 64, 0).unwrap().len(), 0);
    let aligned = allocate(&mut Meter::default(), 256, 8).unwrap();
    assert_eq!(aligned.span().address().addr() % 256, 0);
}

#[test]
fn allocations_that_cannot_be_are_refused() {
    let meter = &mut Meter::new(FuelMetering::Off, MemoryAccount::with_limit(1 << 20));
    assert_eq!(status(allocate(meter, 64, -1)), Some(Status::OutOfRange));
    assert_eq!(status(allocate(meter, 64, i64::MIN)), Some(Status::OutOfRange));
    assert_eq!(status(allocate(meter, 64, i64::MAX)), Some(Status::ResourceExhausted));
    assert_eq!(status(allocate(meter, 64, 2 << 20)), Some(Status::ResourceExhausted));
    assert_eq!(status(allocate(meter, -64, 16)), Some(Status::InvalidArgument));
    assert_eq!(meter.account().used(), 0);
    assert_eq!(status(allocate(&mut Meter::default(), 64, i64::MAX)), Some(Status::ResourceExhausted));
}

#[test]
fn allocation_takes_fuel_and_memory() {
    let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
    meter.set_fuel(10);
    let buffer = allocate(&mut meter, 64, 640).unwrap();
    assert_eq!(meter.fuel(), Some(0));
    assert!(meter.account().used() >= 640);
    drop(buffer);
    assert_eq!(meter.account().used(), 0);
    assert_eq!(status(allocate(&mut meter, 64, 64)), Some(Status::ResourceExhausted));
}

#[test]
fn initialised_bytes_are_a_copy() {
    let source = Buffer::constant([1, 2, 3, 4, 5]);
    let meter = &mut Meter::default();
    let copy = allocate_initialized(meter, 64, &source.clone().into(), 1, 3).unwrap();
    assert_eq!(bytes(&copy), [2, 3, 4]);
    assert!(copy.span().is_writable());
    for (offset, length) in [(3, 3), (-1, 2), (0, -1), (6, 0), (i64::MAX, i64::MAX)] {
        assert_eq!(status(allocate_initialized(meter, 64, &source.clone().into(), offset, length)), Some(Status::OutOfRange));
    }
    assert_eq!(status(allocate_initialized(meter, 64, &Ref::Null, 0, 0)), Some(Status::InvalidArgument));
}

#[test]
fn a_wrapped_buffer_shares_its_bytes() {
    let account = MemoryAccount::default();
    let source = Buffer::new(Span::copy_of(&[1, 2, 3, 4], &account).unwrap(), Origin::Guest);
    let wrapped = wrap(&Meter::default(), &source.clone().into(), 1, 2).unwrap();
    source.span().store_u8(1, 9).unwrap();
    assert_eq!(bytes(&wrapped), [9, 3]);
    assert!(!wrap(&Meter::default(), &Buffer::constant([1]).into(), 0, 1).unwrap().span().is_writable());
    assert_eq!(status(wrap(&Meter::default(), &source.clone().into(), 2, 3)), Some(Status::OutOfRange));
    assert_eq!(status(wrap(&Meter::default(), &source.into(), -1, 1)), Some(Status::OutOfRange));
    let error = wrap(&Meter::default(), &Ref::Null, 0, 0).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.to_string().contains("--iree-flow-inline-constants-max-byte-length=268435456"), "{error}");
}

#[test]
fn a_part_lies_in_its_buffer() {
    let whole = counted(8);
    let part = subspan(&Meter::default(), &whole, 2, 5).unwrap();
    assert_eq!(bytes(&part), [2, 3, 4, 5, 6]);
    assert_eq!(bytes(&subspan(&Meter::default(), &whole, 6, -1).unwrap()), [6, 7]);
    assert_eq!(bytes(&subspan(&Meter::default(), &part.into(), 1, 2).unwrap()), [3, 4]);
    assert!(Ref::from(subspan(&Meter::default(), &whole, 0, 8).unwrap()).same(&whole));
    assert!(Ref::from(subspan(&Meter::default(), &whole, 0, -1).unwrap()).same(&whole));
    assert_eq!(subspan(&Meter::default(), &whole, 8, 0).unwrap().len(), 0);
    for (offset, length) in [(1, 8), (9, 0), (9, -1), (-1, 1), (-8, 8), (4, i64::MAX), (-1, -1)] {
        assert_eq!(status(subspan(&Meter::default(), &whole, offset, length)), Some(Status::OutOfRange), "{offset} {length}");
    }
    assert_eq!(status(subspan(&Meter::default(), &Ref::Null, 0, 0)), Some(Status::InvalidArgument));
}

#[test]
fn storage_is_a_new_buffer_over_the_same_bytes() {
    let buffer = counted(4);
    assert_eq!(length(&buffer).unwrap(), 4);
    let (first, second) = (storage(&mut Meter::default(), &buffer).unwrap(), storage(&mut Meter::default(), &buffer).unwrap());
    assert!(!first.same(&second));
    assert_eq!(first.origin(), Origin::Host);
    drop(buffer);
    first.writable().unwrap().store_u8(0, 7).unwrap();
    assert_eq!(second.span().to_vec().unwrap(), [7, 1, 2, 3]);
}

#[test]
fn a_null_buffer_points_to_the_lost_constant() {
    let error = storage(&mut Meter::default(), &Ref::Null).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.to_string().contains("--iree-flow-inline-constants-max-byte-length=268435456"), "{error}");
    let error = storage(&mut Meter::default(), &Buffer::constant([]).into()).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(!error.to_string().contains("--iree"), "{error}");
    assert_eq!(status(length(&Ref::Null)), Some(Status::InvalidArgument));
}

#[test]
fn only_the_processor_answers_queries() {
    let text = |text: &str| Buffer::constant(text.as_bytes());
    let ask = |category: &str, key: &str| query(&text(category), &text(key), |name| (name != "unknown").then_some(name == "avx2"));
    assert_eq!(ask("hal.cpu", "avx2"), Some(1));
    assert_eq!(ask("hal.cpu", "sse3"), Some(0));
    assert_eq!(ask("hal.cpu", "unknown"), None);
    assert_eq!(ask("hal.device", "avx2"), None);
    assert_eq!(query(&Buffer::constant([0xFF]), &text("avx2"), |_| Some(true)), None);
}
