//! Tests of `buffer_view.*`.

use super::*;
use std::sync::{Arc, Mutex};
use vmfb_hal::HalBuffer;
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Buffer, FuelMetering, Status};

fn status<T>(result: Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

/// A HAL buffer of 16 bytes.
fn buffer() -> Ref {
    let bytes: Vec<u8> = (0..16).collect();
    Ref::new(HalBuffer::new(Span::copy_of(&bytes, &MemoryAccount::default()).unwrap()))
}

fn create_f32(buffer: &Ref, offset: i64, length: i64, shape: &[i64]) -> Result<Handle<BufferView>> {
    create(buffer, offset, length, ElementType::F32, Encoding::DENSE, shape)
}

#[test]
fn a_view_has_what_it_was_made_with() {
    let buffer = buffer();
    let made = create(&buffer, 0, 16, ElementType::SI16, Encoding(7), &[2, 4]).unwrap();
    assert!(Ref::from(made.buffer().clone()).same(&buffer), "the whole buffer is not copied or sliced");
    assert_eq!((made.element_type(), made.encoding(), made.shape()), (ElementType::SI16, Encoding(7), &[2u64, 4][..]));
    let made = Ref::from(made);
    assert_eq!([dimension(&made, 0).unwrap(), dimension(&made, 1).unwrap()], [2, 4]);
    for index in [2, 3, i32::MAX, -1, i32::MIN] {
        assert_eq!(status(dimension(&made, index)), Some(Status::OutOfRange));
    }
}

#[test]
fn a_view_of_a_part_starts_there() {
    let part = create(&buffer(), 4, 8, ElementType::UI8, Encoding::DENSE, &[8]).unwrap();
    assert_eq!(part.to_bytes().unwrap(), [4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(create_f32(&buffer(), 12, -1, &[]).unwrap().to_bytes().unwrap(), [12, 13, 14, 15]);
}

#[test]
fn a_view_must_fit_its_buffer() {
    let whole = buffer();
    for (offset, length, shape) in [
        (0, 16, &[5i64][..]),
        (0, 16, &[i64::MAX, i64::MAX]),
        (0, 16, &[1 << 32, 1 << 32]),
        (0, 16, &[-1]),
        (0, 16, &[0, -1]),
        (4, 16, &[]),
        (-16, 16, &[]),
        (13, 3, &[]),
        (0, 16, &[0; 129]),
    ] {
        assert_eq!(status(create_f32(&whole, offset, length, shape)), Some(Status::OutOfRange), "{offset} {length} {shape:?}");
    }
    assert_eq!(create_f32(&whole, 0, 16, &[0, 1 << 40]).unwrap().shape(), [0, 1 << 40]);
    assert_eq!(create_f32(&whole, 0, 16, &[1; 128]).unwrap().shape().len(), 128);
    let error = create_f32(&Ref::Null, 0, 16, &[4]).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.to_string().contains("--iree-flow-inline-constants-max-byte-length"), "{error}");
    assert_eq!(status(create_f32(&Buffer::constant([0; 16]).into(), 0, 16, &[4])), Some(Status::InvalidArgument));
}

#[test]
fn shapes_are_read_up_to_the_largest_rank() {
    let read = |values: &[u32], rank| read_shape(&mut Arguments::new(values, &[], &[rank])).map(|shape| shape.to_vec());
    assert_eq!(read(&[2, 0, 0xFFFF_FFFF, 0xFFFF_FFFF], 2).unwrap(), [2, -1]);
    assert_eq!(read(&[], 0).unwrap(), []);
    assert_eq!(read(&[1, 0].repeat(128), 128).unwrap(), [1; 128]);
    assert_eq!(status(read(&[1, 0].repeat(129), 129)), Some(Status::OutOfRange));
}

#[test]
fn assertions_carry_the_message() {
    let view: Ref = create_f32(&buffer(), 0, 16, &[2, 2]).unwrap().into();
    let message: Ref = Buffer::constant(*b"input0").into();
    let check = |view: &Ref, element_type, shape: &[i64]| assert(view, &message, element_type, Encoding::DENSE, shape);
    assert!(check(&view, ElementType::F32, &[2, 2]).is_ok());
    for error in [
        check(&view, ElementType::F64, &[2, 2]).unwrap_err(),
        check(&view, ElementType::F32, &[2]).unwrap_err(),
        check(&view, ElementType::F32, &[2, 3]).unwrap_err(),
        check(&Ref::Null, ElementType::F32, &[2, 2]).unwrap_err(),
        check(&buffer(), ElementType::F32, &[2, 2]).unwrap_err(),
    ] {
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(error.to_string().contains("input0"), "{error}");
    }
    assert_eq!(status(assert(&view, &Ref::Null, ElementType::F32, Encoding::DENSE, &[2, 2])), Some(Status::InvalidArgument));
}

#[test]
fn a_trace_reaches_its_sink() {
    let lines = Arc::new(Mutex::new(String::new()));
    let seen = lines.clone();
    let sink: TraceSink = Arc::new(move |trace| {
        seen.lock().unwrap().push_str(&trace.to_string());
        Ok(())
    });
    let view = Handle::new(BufferView::from_i32(&[2], &[3, 4]).unwrap());
    let key: Ref = Buffer::constant(*b"a\x1Bkey").into();
    let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
    meter.set_fuel(5);
    trace(&mut meter, &sink, &key, &[view.clone(), view.clone()]).unwrap();
    assert_eq!(*lines.lock().unwrap(), "=== a\\u{1b}key ===\n2xi32=3 4\n2xi32=3 4\n\n");
    assert_eq!(meter.fuel(), Some(1));
    assert_eq!(status(trace(&mut meter, &sink, &key, &[view])), Some(Status::ResourceExhausted));
}

#[test]
fn a_trace_takes_128_views() {
    let view: Ref = Handle::new(BufferView::from_i32(&[1], &[3]).unwrap()).into();
    assert_eq!(read_traced(128, || Ok(&view)).unwrap().len(), 128);
    assert_eq!(status(read_traced(129, || Ok(&view))), Some(Status::ResourceExhausted));
    assert_eq!(status(read_traced(1, || Ok(&Ref::Null))), Some(Status::InvalidArgument));
}
