//! Programs that create fences and wait for them.

use crate::support::{Program, fence, handle, null, number, status};
use std::task::Poll;
use std::time::{Duration, Instant};
use vmfb_hal::{Fence, FenceStatus};
use vmfb_vm::{Config, Error, Interruption, Result, Status, Value};

const INFINITE: i32 = -1;

fn wait(program: &mut Program, timeout: i32, fences: &[Value]) -> Result<i64> {
    let arguments = [&[timeout.into(), 0i64.into()], fences].concat();
    program.call("fence.await", "0iICrD_i", &[fences.len() as u16], &arguments).map(|results| number(&results[0]))
}

fn query(program: &mut Program, fence: &Value) -> i64 {
    number(&program.get("fence.query", "0r_i", std::slice::from_ref(fence)))
}

#[test]
fn programs_make_and_signal_fences() {
    let mut program = Program::new();
    let device = program.device();
    let made = program.get("fence.create", "0rI_r", &[device.clone(), 0i64.into()]);
    assert_eq!(query(&mut program, &made), 17);
    program.call("fence.signal", "0r_v", &[], std::slice::from_ref(&made)).unwrap();
    assert_eq!(query(&mut program, &made), 0);
    let made = program.get("fence.create", "0ri_r", &[device, 0.into()]);
    program.call("fence.fail", "0ri_v", &[], &[made.clone(), (32 + 5).into()]).unwrap();
    assert_eq!(query(&mut program, &made), 5);
    assert!(matches!(handle::<Fence>(&made).status(), FenceStatus::Failed(error) if error.status() == Status::NotFound));
}

#[test]
fn a_wait_ends_with_a_number() {
    let mut program = Program::new();
    let (reached, pending) = (Fence::new(), Fence::new());
    reached.signal();
    assert_eq!(wait(&mut program, INFINITE, &[]).unwrap(), 0);
    assert_eq!(wait(&mut program, INFINITE, &[null(), fence(&reached)]).unwrap(), 0);
    assert_eq!(wait(&mut program, 0, &[fence(&reached)]).unwrap(), 0);
    assert_eq!(wait(&mut program, 0, &[fence(&reached), fence(&pending)]).unwrap(), 4);
    let start = Instant::now();
    assert_eq!(wait(&mut program, 60, &[fence(&pending)]).unwrap(), 4);
    assert!(start.elapsed() >= Duration::from_millis(60), "the deadline outlives the slices of the wait");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_failed_fence_fails_the_call_with_its_error() {
    let mut program = Program::new();
    let (failed, pending) = (Fence::new(), Fence::new());
    failed.fail(Error::new(Status::DataLoss, "lost"));
    for timeout in [INFINITE, 0, 10] {
        let error = wait(&mut program, timeout, &[fence(&pending), fence(&failed)]).unwrap_err();
        assert_eq!((error.status(), error.message()), (Status::DataLoss, "lost"));
    }
    assert_eq!(status(wait(&mut program, INFINITE, &vec![null(); 33])), Status::OutOfRange);
}

#[test]
fn a_wait_ends_when_another_thread_signals() {
    let mut program = Program::new();
    for timeout in [INFINITE, 60_000] {
        let (one, two) = (Fence::new(), Fence::new());
        let signallers = (one.clone(), two.clone());
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            signallers.1.signal();
            std::thread::sleep(Duration::from_millis(30));
            signallers.0.signal();
        });
        assert_eq!(wait(&mut program, timeout, &[fence(&one), fence(&two)]).unwrap(), 0);
        thread.join().unwrap();
    }
}

#[test]
fn a_call_that_waits_can_be_driven() {
    let mut program = Program::new();
    let gate = Fence::new();
    let function = program.function("fence.await", "0iICrD_i", &[1]);
    let mut invocation = function.start(&mut program.store, &[INFINITE.into(), 0i64.into(), fence(&gate)]).unwrap();
    let now = Some(Instant::now());
    assert!(invocation.poll(&mut program.store, now).unwrap().is_pending());
    assert!(invocation.waits_for().unwrap().contains("fence"));
    // Another call of the same store goes on meanwhile.
    assert_eq!(wait(&mut program, 0, &[fence(&gate)]).unwrap(), 4);
    gate.signal();
    let Poll::Ready(results) = invocation.poll(&mut program.store, None).unwrap() else { panic!("the fence is reached") };
    assert_eq!(number(&results[0]), 0);
}

#[test]
fn two_calls_keep_their_deadlines_apart() {
    let mut program = Program::new();
    let gate = Fence::new();
    let function = program.function("fence.await", "0iICrD_i", &[1]);
    let arguments = [1_000_000.into(), 0i64.into(), fence(&gate)];
    let mut given_up = function.start(&mut program.store, &arguments).unwrap();
    assert!(given_up.poll(&mut program.store, Some(Instant::now())).unwrap().is_pending());
    drop(given_up);
    let mut other = function.start(&mut program.store, &[1.into(), 0i64.into(), fence(&gate)]).unwrap();
    let Poll::Ready(results) = other.poll(&mut program.store, None).unwrap() else { panic!("a millisecond passes") };
    assert_eq!(number(&results[0]), 4);
    let mut again = function.start(&mut program.store, &arguments).unwrap();
    assert!(again.poll(&mut program.store, Some(Instant::now())).unwrap().is_pending());
    gate.signal();
    assert!(again.poll(&mut program.store, None).unwrap().is_ready());
}

#[test]
fn a_wait_can_be_interrupted() {
    let mut program = Program::with(Config::new().interruption(Interruption::On));
    let interrupt = program.store.interrupt_handle();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        interrupt.interrupt();
    });
    assert_eq!(status(wait(&mut program, INFINITE, &[fence(&Fence::new())])), Status::Cancelled);
    thread.join().unwrap();
}

#[test]
fn joined_fences() {
    let mut program = Program::new();
    let join = |program: &mut Program, fences: &[Value]| {
        let arguments = [&[0i64.into()], fences].concat();
        program.call("fence.join", "0ICrD_r", &[fences.len() as u16], &arguments).unwrap().remove(0)
    };
    assert!(join(&mut program, &[]).as_ref().unwrap().is_null());
    assert!(join(&mut program, &[null(), null()]).as_ref().unwrap().is_null());
    let (a, b) = (Fence::new(), Fence::new());
    let both = join(&mut program, &[fence(&a), null(), fence(&b)]);
    assert_eq!(query(&mut program, &both), 17);
    a.signal();
    assert_eq!(query(&mut program, &both), 17);
    b.signal();
    assert_eq!(query(&mut program, &both), 0);
    let old = program.call("fence.join", "0CrD_r", &[2], &[fence(&a), both]).unwrap().remove(0);
    assert_eq!(query(&mut program, &old), 0);
}
