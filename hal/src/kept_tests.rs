use super::*;
use crate::{BufferView, Bytes, HalBuffer, MemoryType, Usage};
use vmfb_memory::MemoryAccount;
use vmfb_vm::{FuelMetering, Handle, Holders, RefObject};

fn constant(bytes: &[u8]) -> Bytes {
    Bytes::constant(Span::from_vector(bytes.to_vec()))
}

/// Runs a closure as one call.
fn in_call<R>(meter: &mut Meter, body: impl FnOnce(&mut Meter) -> R) -> R {
    let before = meter.begin_call();
    let result = body(meter);
    meter.end_call(before);
    result
}

fn write(bytes: &Bytes, offset: usize, value: u8, meter: &mut Meter) {
    bytes.writable(Writer::MachineCode, meter).unwrap().store_u8(offset, value).unwrap();
}

fn seen(bytes: &Bytes, meter: &Meter) -> Vec<u8> {
    bytes.readable(meter).unwrap().to_vec().unwrap()
}

#[test]
fn what_a_call_writes_into_a_constant_ends_with_it() {
    let whole = constant(&[1, 2, 3, 4]);
    let part = whole.slice(1, 2).unwrap();
    let meter = &mut Meter::default();
    for _ in 0..3 {
        in_call(meter, |meter| {
            assert_eq!(seen(&part, meter), [2, 3]);
            write(&part, 0, 9, meter);
            assert_eq!(seen(&whole, meter), [1, 9, 3, 4]);
            assert_eq!(seen(&part, meter), [9, 3]);
            assert_eq!(whole.current().to_vec().unwrap(), [1, 2, 3, 4]);
        });
    }
    // A call that only reads, and the host.
    in_call(meter, |meter| assert_eq!(seen(&whole, meter), [1, 2, 3, 4]));
    assert_eq!(seen(&whole, meter), [1, 2, 3, 4]);
}

#[test]
fn calls_at_the_same_time_do_not_see_each_other() {
    let bytes = constant(&[0; 4]);
    let (mut one, mut two) = (Meter::default(), Meter::default());
    let mut also_one = one.for_worker();
    let calls = (one.begin_call(), two.begin_call(), also_one.begin_call());
    for (index, meter) in [&mut one, &mut two, &mut also_one].into_iter().enumerate() {
        write(&bytes, index, 7, meter);
    }
    assert_eq!(seen(&bytes, &one), [7, 0, 0, 0]);
    assert_eq!(seen(&bytes, &two), [0, 7, 0, 0]);
    assert_eq!(seen(&bytes, &also_one), [0, 0, 7, 0]);
    one.end_call(calls.0);
    two.end_call(calls.1);
    also_one.end_call(calls.2);
}

/// Constants that are computed when a module is initialised may be computed in place.
#[test]
fn what_an_initialiser_writes_stays() {
    let bytes = constant(&[5, 6]);
    let meter = &mut Meter::default();
    write(&bytes, 0, 50, meter);
    assert_eq!(seen(&bytes, meter), [50, 6]);
    for _ in 0..2 {
        in_call(meter, |meter| {
            assert_eq!(seen(&bytes, meter), [50, 6]);
            write(&bytes, 1, 60, meter);
            assert_eq!(seen(&bytes, meter), [50, 60]);
        });
    }
    assert_eq!(bytes.current().to_vec().unwrap(), [50, 6]);
}

/// Work that is queued may be done when its call has ended, in the order in which it was queued.
#[test]
fn held_work_sees_what_its_call_wrote() {
    let bytes = constant(&[1, 2]);
    let meter = &mut Meter::default();
    let (mut later, held) = in_call(meter, |meter| {
        write(&bytes, 0, 9, meter);
        (meter.for_worker(), bytes.hold(meter).unwrap())
    });
    in_call(meter, |meter| write(&bytes, 1, 8, meter));
    assert_eq!(seen(&bytes, &later), [9, 2]);
    write(&bytes, 1, 7, &mut later);
    assert_eq!(seen(&bytes, &later), [9, 7]);
    drop(held);
    in_call(meter, |meter| assert_eq!(seen(&bytes, meter), [1, 2]));
}

#[test]
fn a_view_that_was_not_written_is_used_again() {
    let bytes = constant(&[3; 100]);
    let meter = &mut Meter::default();
    let address = |meter: &mut Meter| bytes.writable(Writer::MachineCode, meter).unwrap().address();
    let first = in_call(meter, address);
    let used = meter.account().used();
    assert_eq!(in_call(meter, address), first);
    assert_eq!(meter.account().used(), used);
}

#[test]
fn copies_of_constants_are_charged() {
    let meter = &mut Meter::new(FuelMetering::Off, MemoryAccount::with_limit(1000));
    let small = constant(&[0; 500]);
    in_call(meter, |meter| write(&small, 0, 1, meter));
    assert!(meter.account().used() >= 500);
    in_call(meter, |meter| assert!(constant(&[0; 500]).writable(Writer::MachineCode, meter).is_err()));
    drop(small);
    assert_eq!(meter.account().used(), 0);
}

/// A large constant of a file: machine code pays for nothing, a writer under limits for all that it could write.
#[test]
fn mapped_views_are_charged_to_checked_writers() {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &vec![1; 1 << 20]).unwrap();
    let bytes = Bytes::constant(Span::map_file(&file).unwrap());
    let meter = &mut Meter::new(FuelMetering::Off, MemoryAccount::with_limit(500_000));
    in_call(meter, |meter| {
        write(&bytes, 1 << 19, 2, meter);
        assert!(meter.account().used() < 1000);
        assert!(bytes.writable(Writer::Checked, meter).is_err());
        assert_eq!(seen(&bytes.slice(1 << 19, 2).unwrap(), meter), [2, 1]);
    });
    in_call(meter, |meter| assert_eq!(seen(&bytes.slice(1 << 19, 2).unwrap(), meter), [1, 1]));
}

#[test]
fn a_tensor_that_the_host_keeps_is_copied_when_it_is_written() {
    let view = BufferView::from_i32(&[4], &[1, 2, 3, 4]).unwrap();
    let lent = view.lent(Holders::Others).unwrap();
    let meter = &mut Meter::new(FuelMetering::Off, MemoryAccount::default());
    let bytes = lent.buffer().bytes();
    assert_eq!(bytes.readable(meter).unwrap().address(), view.buffer().span().address());
    bytes.writable(Writer::Checked, meter).unwrap().store_element_u32(0, 10).unwrap();
    assert!(meter.account().used() >= 16);
    assert_eq!(lent.to_i32().unwrap(), [10, 2, 3, 4]);
    assert_eq!(view.to_i32().unwrap(), [1, 2, 3, 4]);
    drop(lent);
    assert_eq!(meter.account().used(), 0);
}

/// Handed over are the last reference to view, buffer and bytes; and what the host says may be written.
#[test]
fn only_the_last_reference_is_handed_over() {
    let view = BufferView::from_i32(&[1], &[1]).unwrap();
    assert!(view.lent(Holders::Call).is_none());
    assert!(view.lent(Holders::Others).is_some());
    let other = view.clone();
    assert!(view.lent(Holders::Call).is_some());
    drop(other);
    let bytes = view.buffer().span();
    assert!(view.lent(Holders::Call).is_some());
    drop(bytes);
    assert!(view.lent(Holders::Call).is_none());
    let in_place = view.in_place().unwrap();
    assert!(in_place.lent(Holders::Others).is_none());
    let read_only = HalBuffer::with_usage(Span::from_vector(vec![0; 4]), MemoryType::HOST_LOCAL, Usage::ALL);
    let constant = BufferView::new(Handle::new(read_only), &[4], crate::ElementType::UI8, crate::Encoding::DENSE).unwrap();
    assert!(constant.lent(Holders::Call).is_some());
    assert!(constant.in_place().is_err());
}

#[test]
fn a_deep_clone_shares_nothing() {
    let view = BufferView::from_i32(&[2], &[1, 2]).unwrap();
    let copy = view.deep_clone().unwrap();
    view.buffer().span().store_element_u32(0, 5).unwrap();
    assert_eq!((view.to_i32().unwrap(), copy.to_i32().unwrap()), (vec![5, 2], vec![1, 2]));
}
