//! Calls driven step by step: yields, waits, giving up.

use crate::natives::native;
use crate::support::*;
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};
use vmfb_bytecode::isa::{MoveList, Op, RegisterList, X4, X8};
use vmfb_vm::{Buffer, Completion, Config, Interruption, Linker, NativeFunction, Status, Value, Wait};

/// Something to wait for.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap()
    }

    fn wait(&self, until: Instant) {
        let open = self.0.0.lock().unwrap();
        let left = until.saturating_duration_since(Instant::now());
        drop(self.0.1.wait_timeout_while(open, left, |open| !*open).unwrap());
    }

    /// A linker with `host.f(ref, ref, i64) -> (i64, i32)`, which waits for the gate and gives its i64 and how many references
    /// there are.
    fn linker(&self) -> Linker {
        let gate = self.clone();
        let mut linker = Linker::new();
        let functions = move || {
            let gate = gate.clone();
            vec![NativeFunction::waiting("f", "0rrI_Ii", move |call| {
                if !gate.is_open() {
                    let gate = gate.clone();
                    return Ok(Completion::Wait(Wait { block: Box::new(move |until| gate.wait(until)), what: "the gate".into() }));
                }
                let references = [call.arguments.reference()?, call.arguments.reference()?];
                let value = call.arguments.i64()?;
                call.results.push_i64(value);
                call.results.push_i32(references.iter().filter(|reference| !reference.is_null()).count() as i32);
                Ok(Completion::Done)
            })]
        };
        linker.add_native(native("host", functions)).unwrap();
        linker
    }
}

/// `run(i64) -> (i64, i32)` that waits in the middle, with a buffer of 1000 bytes given away once, twice, or lent.
fn waiting(words: [vmfb_bytecode::isa::Register; 2]) -> Program {
    let mut program = Program::new(NEWEST);
    let callee = program.import("host.f", "0rrI_Ii");
    program.export("run", "0I_Ii", |f| {
        f.start_block();
        f.i64(2, 1000).alloc(2, 0);
        f.call(callee, [words[0], words[1], v(0)], [v(4), v(6)]).ret([v(4), v(6)]);
    });
    program.export("yieldable", "0I_Ii", |f| {
        f.start_block();
        let resume = f.label();
        f.i64(2, 1000).alloc(2, 0);
        let (arguments, results) = (list([words[0], words[1], v(0)]), list([v(4), v(6)]));
        let (arguments, results) = (RegisterList::new(&arguments), RegisterList::new(&results));
        f.op(Op::CallYieldable { callee, arguments, resume: resume.pc(), results });
        f.place(resume);
        f.ret([v(4), v(6)]);
    });
    program
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(5))
}

#[test]
fn waits_end_at_the_deadline_of_the_poll_and_go_on_later() {
    // Whether the buffer is lent, given once, or given in a register that stands there twice, it arrives after the wait too.
    for (words, references) in [([r(0), r(1)], 1), ([moved(0), r(1)], 1), ([r(0), moved(0)], 2), ([moved(0), moved(0)], 1)] {
        for name in ["run", "yieldable"] {
            let gate = Gate::default();
            let mut running = waiting(words).start_with(&gate.linker(), Config::new());
            let function = running.instance.function(&running.store, name).unwrap();
            let mut invocation = function.start(&mut running.store, &[(1_i64 << 40).into()]).unwrap();
            assert!(invocation.waits_for().is_none());
            for _ in 0..3 {
                assert!(matches!(invocation.poll(&mut running.store, soon()), Ok(Poll::Pending)));
                assert_eq!(invocation.waits_for(), Some("the gate"));
            }
            assert!(running.used() >= 1000);
            gate.open();
            let Poll::Ready(results) = invocation.poll(&mut running.store, soon()).unwrap() else { panic!("the gate is open") };
            assert_eq!(results.iter().map(bits).collect::<Vec<_>>(), [1 << 40, references]);
            assert_eq!(running.used(), 0);
            assert_eq!(status(invocation.poll(&mut running.store, None)), Status::FailedPrecondition);
        }
    }
}

#[test]
fn calls_wait_until_another_thread_is_done() {
    for name in ["run", "yieldable"] {
        let gate = Gate::default();
        let mut running = waiting([moved(0), r(1)]).start_with(&gate.linker(), Config::new());
        let opener = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            gate.open();
        });
        let results = running.call(name, &[5_i64.into()]).unwrap();
        assert_eq!(results.iter().map(bits).collect::<Vec<_>>(), [5, 1]);
        opener.join().unwrap();
    }
}

#[test]
fn raw_calls_wait_too() {
    let gate = Gate::default();
    let mut running = waiting([moved(0), r(1)]).start_with(&gate.linker(), Config::new());
    let function = running.instance.function(&running.store, "run").unwrap();
    let opener = thread::spawn({
        let gate = gate.clone();
        move || {
            thread::sleep(Duration::from_millis(20));
            gate.open();
        }
    });
    function.call_raw(&mut running.store, &[7, 0], &[]).unwrap();
    opener.join().unwrap();
    assert_eq!(running.used(), 0);
}

/// A wait that nobody ends: the store's deadline or its interrupt handle ends it, and the error says what was waited for.
#[test]
fn waits_end_with_the_limits_of_the_store() {
    for name in ["run", "yieldable"] {
        let gate = Gate::default();
        let mut running = waiting([moved(0), r(1)]).start_with(&gate.linker(), Config::new().interruption(Interruption::On));
        running.store.set_deadline(Some(Instant::now() + Duration::from_millis(30)));
        let error = running.call(name, &[5_i64.into()]).unwrap_err();
        assert_eq!(error.status(), Status::DeadlineExceeded);
        assert!(error.to_string().contains("the gate"), "{error}");
        // const.i64 takes 11 bytes, buffer.alloc 7, behind the marker.
        let frames: Vec<_> = error.frames().iter().map(|frame| (frame.name.as_deref(), frame.pc)).collect();
        assert_eq!(frames, [(Some(name), 1 + 11 + 7)]);
        assert_eq!(running.used(), 0);
        running.store.set_deadline(None);
        let handle = running.store.interrupt_handle();
        let interrupter = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            handle.interrupt();
        });
        assert_eq!(status(running.call(name, &[5_i64.into()])), Status::Cancelled);
        interrupter.join().unwrap();
        // Afterwards the store is as good as before.
        running.store.interrupt_handle().clear();
        gate.open();
        running.call(name, &[5_i64.into()]).unwrap();
    }
}

#[test]
fn nothing_runs_before_the_first_poll_and_dropping_gives_up() {
    let gate = Gate::default();
    let mut running = waiting([moved(0), r(1)]).start_with(&gate.linker(), Config::new());
    let function = running.instance.function(&running.store, "run").unwrap();
    let mut invocation = function.start(&mut running.store, &[5_i64.into()]).unwrap();
    assert_eq!(running.used(), 0);
    assert!(matches!(invocation.poll(&mut running.store, soon()), Ok(Poll::Pending)));
    assert!(running.used() >= 1000);
    drop(invocation);
    assert_eq!(running.used(), 0);
    gate.open();
    running.call("run", &[5_i64.into()]).unwrap();
}

/// A call may be given up after its store is gone, too.
#[test]
fn an_invocation_may_outlive_its_store() {
    let gate = Gate::default();
    let mut running = waiting([moved(0), r(1)]).start_with(&gate.linker(), Config::new());
    let function = running.instance.function(&running.store, "run").unwrap();
    let mut invocation = function.start(&mut running.store, &[5_i64.into()]).unwrap();
    assert!(matches!(invocation.poll(&mut running.store, soon()), Ok(Poll::Pending)));
    let account = running.store.account().clone();
    drop(running);
    assert!(account.used() >= 1000);
    drop(invocation);
    assert_eq!(account.used(), 0);
}

/// `run(i32, ref) -> (i32, ref)` that yields twice, with moves on the way.
fn yielding(version: vmfb_bytecode::definition::BytecodeVersion) -> Program {
    let mut program = Program::new(version);
    program.def.global_bytes = 4;
    program.export("run", "0ir_ir", |f| {
        f.start_block();
        let (second, third) = (f.label(), f.label());
        let (first_moves, second_moves) = (moves([(v(0), v(1)), (moved(0), r(1))]), moves([(v(1), v(2)), (r(1), r(2))]));
        f.op(Op::Yield { to: second.pc(), moves: MoveList::new(&first_moves) });
        f.place(second);
        f.op(Op::AddI32 { a: X4(1), b: X4(1), dst: X4(1) }).op(Op::Yield { to: third.pc(), moves: MoveList::new(&second_moves) });
        f.place(third);
        f.op(Op::AddI32 { a: X4(2), b: X4(0), dst: X4(2) }).ret([v(2), r(2)]);
    });
    program
}

#[test]
fn yields_suspend_a_started_call_and_not_a_plain_one() {
    for version in VERSIONS {
        let mut running = yielding(version).start();
        let buffer = Value::from(Buffer::constant(vec![1]));
        let function = running.instance.function(&running.store, "run").unwrap();
        let mut invocation = function.start(&mut running.store, &[5.into(), buffer.clone()]).unwrap();
        for _ in 0..2 {
            assert!(matches!(invocation.poll(&mut running.store, None), Ok(Poll::Pending)));
            assert_eq!(invocation.waits_for(), None);
        }
        let Poll::Ready(results) = invocation.poll(&mut running.store, None).unwrap() else { panic!("there are two yields") };
        assert_eq!(bits(&results[0]), 15);
        assert!(results[1].as_ref().unwrap().same(buffer.as_ref().unwrap()));
        // The official runtime hangs here.
        assert_eq!(bits(&running.call("run", &[7.into(), buffer.clone()]).unwrap()[0]), 21);
        function.call_raw(&mut running.store, &[7], &[buffer.as_ref().unwrap().clone()]).unwrap();
    }
}

/// Calls of one store may take turns; each has its own stack.
#[test]
fn several_calls_in_one_store_take_turns() {
    let mut running = yielding(NEWEST).start();
    let function = running.instance.function(&running.store, "run").unwrap();
    let mut calls: Vec<_> = (0..5).map(|n| function.start(&mut running.store, &[n.into(), null()]).unwrap()).collect();
    for _ in 0..2 {
        for call in &mut calls {
            assert!(matches!(call.poll(&mut running.store, None), Ok(Poll::Pending)));
        }
        running.call("run", &[100.into(), null()]).unwrap();
    }
    calls.remove(2);
    for (call, n) in calls.iter_mut().rev().zip([4, 3, 1, 0]) {
        let Poll::Ready(results) = call.poll(&mut running.store, None).unwrap() else { panic!("there are two yields") };
        assert_eq!(bits(&results[0]), 3 * n);
    }
}

/// An error on the way ends the call; what it held is released.
#[test]
fn a_failed_call_has_ended() {
    let mut program = Program::new(NEWEST);
    program.export("run", "0v_v", |f| {
        f.start_block();
        let next = f.label();
        f.i64(0, 1000).alloc(0, 0).op(Op::Yield { to: next.pc(), moves: NO_MOVES });
        f.place(next);
        f.op(Op::DivI64S { a: X8(0), b: X8(2), dst: X8(0) }).ret([]);
    });
    let mut running = program.start();
    let function = running.instance.function(&running.store, "run").unwrap();
    let mut invocation = function.start(&mut running.store, &[]).unwrap();
    assert!(matches!(invocation.poll(&mut running.store, None), Ok(Poll::Pending)));
    assert!(running.used() >= 1000);
    assert_eq!(status(invocation.poll(&mut running.store, None)), Status::InvalidArgument);
    assert_eq!(running.used(), 0);
    assert_eq!(status(invocation.poll(&mut running.store, None)), Status::FailedPrecondition);
}
