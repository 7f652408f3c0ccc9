//! Tests of fences.

use super::*;
use std::sync::atomic::AtomicBool;
use vmfb_vm::Status;

fn join(fences: &[&Fence]) -> Fence {
    Fence::join(fences.iter().copied(), &mut Meter::default()).unwrap().unwrap()
}

fn failure(fence: &Fence) -> Option<Status> {
    match fence.status() {
        FenceStatus::Failed(error) => Some(error.status()),
        _ => None,
    }
}

fn is_reached(fence: &Fence) -> bool {
    matches!(fence.status(), FenceStatus::Reached)
}

fn is_pending(fence: &Fence) -> bool {
    matches!(fence.status(), FenceStatus::Pending)
}

#[test]
fn the_first_outcome_counts() {
    let fence = Fence::new();
    assert!(is_pending(&fence));
    fence.signal();
    fence.fail(Error::internal("too late"));
    assert!(is_reached(&fence));

    let fence = Fence::new();
    fence.fail(Error::not_found("first").context("somewhere"));
    fence.signal();
    let FenceStatus::Failed(error) = fence.wait(None) else { panic!("the fence failed") };
    assert_eq!((error.status(), error.message()), (Status::NotFound, "first"));
    assert_eq!(error.context_chain().collect::<Vec<_>>(), ["somewhere"]);
}

#[test]
fn waiting_ends_at_the_deadline() {
    let fence = Fence::new();
    let start = Instant::now();
    assert!(matches!(fence.wait(Some(start + Duration::from_millis(30))), FenceStatus::Pending));
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert!(matches!(fence.wait(Some(start)), FenceStatus::Pending), "a deadline in the past is no wait");
}

#[test]
fn another_thread_ends_a_wait() {
    let (a, b) = (Fence::new(), Fence::new());
    let both = join(&[&a, &b]);
    let thread = std::thread::spawn({
        let (a, b) = (a.clone(), b.clone());
        move || {
            std::thread::sleep(Duration::from_millis(10));
            b.signal();
            std::thread::sleep(Duration::from_millis(10));
            a.signal();
        }
    });
    assert!(matches!(both.wait(None), FenceStatus::Reached));
    thread.join().unwrap();
}

#[test]
fn a_joined_fence_fails_with_its_first_failure_at_once() {
    let (a, b) = (Fence::new(), Fence::new());
    let both = join(&[&a, &b]);
    b.fail(Error::exhausted("no more"));
    assert_eq!(failure(&both), Some(Status::ResourceExhausted));
    assert!(matches!(both.wait(None), FenceStatus::Failed(_)), "a is still pending");
    assert!(is_pending(&a));
}

#[test]
fn signalling_a_joined_fence_reaches_all() {
    let (a, b) = (Fence::new(), Fence::new());
    join(&[&a, &b]).signal();
    assert!(is_reached(&a) && is_reached(&b));
}

#[test]
fn joining_charges_points_and_skips_what_was_reached() {
    let mut meter = Meter::default();
    let used = |meter: &Meter| meter.account().used();
    assert!(Fence::join([], &mut meter).unwrap().is_none());
    let (a, b, c) = (Fence::new(), Fence::new(), Fence::new());
    a.signal();
    let one = Fence::join([&a, &b, &b], &mut meter).unwrap().unwrap();
    assert_eq!((one.point_count(), used(&meter)), (1, 0));
    let two = Fence::join([&a, &b, &c], &mut meter).unwrap().unwrap();
    assert_eq!((two.point_count(), used(&meter)), (2, JOINED_BYTES + 3 * JOINED_POINT_BYTES));
    b.signal();
    assert!(is_reached(&one) && is_pending(&two));
    assert!(is_reached(&join(&[&a, &b])));
    drop(two);
    assert_eq!(used(&meter), 0);
    let mut full = Meter::new(Default::default(), MemoryAccount::with_limit(JOINED_BYTES));
    assert_eq!(Fence::join([&Fence::new()], &mut full).unwrap_err().status(), Status::ResourceExhausted);
}

#[test]
fn joining_and_following_cost_fuel_and_look_at_the_deadline() {
    let fences: Vec<Fence> = (0..100).map(|_| Fence::new()).collect();
    let mut meter = Meter::new(vmfb_vm::FuelMetering::On, MemoryAccount::default());
    meter.set_fuel(300);
    let all = Fence::join(&fences, &mut meter).unwrap().unwrap();
    assert_eq!(meter.fuel(), Some(200));
    Fence::new().follow(&all, &mut meter).unwrap();
    assert_eq!(meter.fuel(), Some(99));
    assert_eq!(Fence::join(&fences, &mut meter).unwrap_err().status(), Status::ResourceExhausted);
    let mut late = Meter::default();
    late.set_deadline(Some(Instant::now()));
    assert_eq!(Fence::join(&fences, &mut late).unwrap_err().status(), Status::DeadlineExceeded);
    assert_eq!(Fence::new().follow(&all, &mut late).unwrap_err().status(), Status::DeadlineExceeded);
}

/// What waits on several points is paid for until the last of them lets go, and not until it has been called.
#[test]
fn waiters_are_paid_for_as_long_as_points_refer_to_them() {
    let mut meter = Meter::default();
    let (a, b) = (Fence::new(), Fence::new());
    join(&[&a, &b]).on_ready_in(|_| {}, &mut meter).unwrap();
    a.fail(Error::internal("a"));
    assert_eq!(meter.account().used(), 2 * WAITER_BYTES);
    b.signal();
    assert_eq!(meter.account().used(), 0);
}

/// A program's fence keeps the texts of its failure only where they can be paid for.
#[test]
fn failures_are_paid_for() {
    let account = MemoryAccount::with_limit(POINT_BYTES + 10_000);
    let fence = Fence::new_in(&account).unwrap();
    fence.fail(Error::invalid("x".repeat(5000)));
    assert!(account.used() > POINT_BYTES + 5000);
    let FenceStatus::Failed(error) = fence.status() else { panic!("it failed") };
    assert_eq!(error.message().len(), 5000);
    drop(fence);
    assert_eq!(account.used(), 0);
    let fence = Fence::new_in(&account).unwrap();
    fence.fail(Error::invalid("x".repeat(15_000)));
    let FenceStatus::Failed(error) = fence.status() else { panic!("it failed") };
    assert_eq!((error.status(), error.message()), (Status::InvalidArgument, "the memory limit leaves no room for the reason"));
}

#[test]
fn a_failed_fence_stays_failed_when_joined() {
    let (a, b) = (Fence::new(), Fence::new());
    a.signal();
    b.fail(Error::internal("broken"));
    assert_eq!(failure(&join(&[&a, &b])), Some(Status::Internal));
}

#[test]
fn bodies_are_called_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = |fence: &Fence| {
        let calls = calls.clone();
        fence.on_ready(move |result| {
            result.unwrap();
            calls.fetch_add(1, Ordering::Relaxed);
        });
    };
    let (a, b) = (Fence::new(), Fence::new());
    count(&a);
    count(&join(&[&a, &b]));
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    a.signal();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    b.signal();
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    count(&b);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn a_joint_body_hears_of_the_first_failure_alone() {
    let (a, b) = (Fence::new(), Fence::new());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = heard.clone();
    join(&[&a, &b]).on_ready(move |result| list.lock().unwrap().push(result.unwrap_err().status()));
    b.fail(Error::invalid("b"));
    a.fail(Error::internal("a"));
    assert_eq!(*heard.lock().unwrap(), [Status::InvalidArgument]);
}

#[test]
fn chains_of_any_length_resolve() {
    let first = Fence::new();
    let mut last = first.clone();
    for _ in 0..200_000 {
        let next = Fence::new();
        let signalled = next.clone();
        last.on_ready(move |result| match result {
            Ok(()) => signalled.signal(),
            Err(error) => signalled.fail(error),
        });
        last = next;
    }
    first.fail(Error::not_found("gone"));
    assert_eq!(failure(&last), Some(Status::NotFound));
}

#[test]
fn a_fence_dropped_everywhere_counts_as_failed() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = heard.clone();
    let fence = Fence::new();
    fence.on_ready(move |result| list.lock().unwrap().push(result.unwrap_err().status()));
    let copy = fence.clone();
    drop(fence);
    assert!(heard.lock().unwrap().is_empty());
    drop(copy);
    assert_eq!(*heard.lock().unwrap(), [Status::Aborted]);
}

#[test]
fn long_chains_can_be_dropped() {
    let first = Fence::new();
    let mut last = first.clone();
    for _ in 0..200_000 {
        let next = Fence::new();
        let signalled = next.clone();
        last.on_ready(move |result| drop((result, signalled)));
        last = next;
    }
    drop((first, last));
}

#[test]
fn a_panicking_body_does_not_silence_the_thread() {
    let fence = Fence::new();
    fence.on_ready(|_| panic!("expected by the test"));
    assert!(std::panic::catch_unwind(|| fence.signal()).is_err());
    let called = Arc::new(AtomicBool::new(false));
    let flag = called.clone();
    fence.on_ready(move |_| flag.store(true, Ordering::Relaxed));
    assert!(called.load(Ordering::Relaxed));
}

#[test]
fn circles_are_refused() {
    let (a, b, c) = (Fence::new(), Fence::new(), Fence::new());
    assert!(a.follow(&a, &mut Meter::default()).is_err());
    // As queued work does: the signal fence follows the wait fence, and something waits for the latter.
    let order = |signal: &Fence, wait: &Fence| signal.follow(wait, &mut Meter::default()).map(|()| wait.on_ready(|_| {}));
    order(&b, &a).unwrap();
    order(&c, &b).unwrap();
    assert_eq!(order(&a, &c).unwrap_err().status(), Status::InvalidArgument);
    let other = Fence::new();
    order(&c, &other).unwrap();
    assert!(order(&other, &c).is_err());
}

#[test]
fn fences_cross_threads() {
    fn check<T: Send + Sync>() {}
    check::<Fence>();
}
