use super::switch::{Stack, remaining};
use super::with_room;
use std::hint::black_box;

const THREAD: usize = 64 << 10;

/// Runs on a thread with a small stack.
fn on_small_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::Builder::new().stack_size(THREAD).spawn(work).unwrap().join().unwrap()
}

/// Writes all of a large frame.
#[inline(never)]
fn large_frame() -> u64 {
    let mut frame = black_box([1u8; 1 << 20]);
    black_box(&mut frame).iter().map(|byte| u64::from(*byte)).sum()
}

fn address() -> usize {
    let here = black_box(0u8);
    (&raw const here).addr()
}

#[test]
fn work_that_fits_stays_where_it_is() {
    let left = remaining();
    assert!(left > 16 << 10, "{left}");
    let (outside, inside) = (address(), with_room(16 << 10, address).unwrap());
    assert!(outside.abs_diff(inside) < 16 << 10);
}

#[test]
fn small_threads_have_room_for_large_frames() {
    let sums = on_small_thread(|| {
        assert!(remaining() <= THREAD + (64 << 10), "{}", remaining());
        // The second call finds the stack of the first, the third needs a larger one.
        [2 << 20, 1 << 20, 8 << 20].map(|size| with_room(size, large_frame).unwrap())
    });
    assert_eq!(sums, [1 << 20; 3]);
}

#[test]
fn work_inside_work_has_a_stack_of_its_own() {
    let apart = on_small_thread(|| {
        with_room(1 << 20, || {
            let outer = address();
            assert_eq!(remaining(), 0);
            let inner = with_room(1 << 20, || (address(), large_frame())).unwrap();
            (outer.abs_diff(inner.0), inner.1)
        })
        .unwrap()
    });
    assert!(apart.0 > 1 << 20 && apart.1 == 1 << 20);
}

#[test]
fn a_stack_that_cannot_be_had_is_an_error() {
    for size in [1 << 60, usize::MAX, usize::MAX / 2] {
        let error = with_room(size, || ()).unwrap_err();
        assert!(error.message().contains(&format!("no {size} bytes of stack for machine code")), "{error}");
    }
}

/// The guard is as large as the stack: frames are not probed, and a page could be stepped over.
#[cfg(target_os = "linux")]
#[test]
fn a_guard_lies_below_every_stack() {
    let stack = Stack::new(1 << 20).unwrap();
    let (bottom, top) = (stack.bottom(), stack.top().addr());
    assert!(top - bottom >= (1 << 20) + (16 << 10) && top % 16 == 0);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let rights = |address: usize| {
        maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            (number(start)..number(end)).contains(&address).then(|| rest[..4].to_owned())
        })
    };
    for address in [bottom, top - 1] {
        assert_eq!(rights(address).as_deref(), Some("rw-p"));
    }
    for address in [bottom - 1, bottom - 4096, bottom - (1 << 20)] {
        assert_eq!(rights(address).as_deref(), Some("---p"));
    }
}

/// Without the switch a kernel that needs more than its thread has ends the process.
#[test]
fn the_tests_would_notice() {
    assert!(on_small_thread(remaining) < 1 << 20);
}
