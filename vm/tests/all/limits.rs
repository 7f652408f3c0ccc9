//! Limits other than fuel: interruption from other threads, deadlines, memory.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{FunctionRef, Op, RefMove, RefRead, X4, X8};
use vmfb_vm::{Buffer, Config, Engine, Interruption, Linker, Result, Status, Store, Value};

const PROGRAMS: [&str; 7] = ["forever", "two_blocks", "yields", "calls", "natives", "fills", "nested"];

/// Programs that never end, each in its own way.
fn endless(version: BytecodeVersion) -> Program {
    let mut program = Program::new(version);
    let native = program.import("host.f", "0v_v");
    program.export("forever", "0r_v", |f| {
        let head = f.start_block();
        f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
    });
    program.export("two_blocks", "0r_v", |f| {
        let head = f.start_block();
        let (other, never) = (f.label(), f.label());
        f.op(Op::CmpNzI32 { a: X4(0), dst: X4(1) });
        f.op(Op::CondBr { condition: X4(1), true_to: never.pc(), true_moves: NO_MOVES, false_to: other.pc(), false_moves: NO_MOVES });
        f.place(never);
        f.ret([]);
        f.place(other);
        f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
    });
    program.export("yields", "0r_v", |f| {
        let head = f.start_block();
        f.op(Op::Yield { to: head.pc(), moves: NO_MOVES });
    });
    let callee = program.function("0v_v", |f| {
        f.start_block();
        f.ret([]);
    });
    program.export("calls", "0r_v", |f| {
        let head = f.start_block();
        f.call(FunctionRef::internal(callee), [], []).op(Op::Br { to: head.pc(), moves: NO_MOVES });
    });
    program.export("natives", "0r_v", |f| {
        let head = f.start_block();
        f.call(native, [], []).op(Op::Br { to: head.pc(), moves: NO_MOVES });
    });
    program.export("fills", "0r_v", |f| {
        let head = f.start_block();
        f.op(Op::BufferLength { buffer: RefRead::new(0), dst: X8(0) });
        f.op(Op::BufferFillI8 { target: RefRead::new(0), target_offset: X8(2), length: X8(0), value: X4(4) });
        f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
    });
    let inner = program.export("nested", "0r_v", |f| {
        let head = f.start_block();
        f.i64(0, 1).alloc(0, 0).op(Op::Br { to: head.pc(), moves: NO_MOVES });
    });
    program.export("outer", "0r_v", |f| {
        f.start_block();
        f.call(FunctionRef::internal(inner), [r(0)], []).ret([]);
    });
    program
}

fn linker() -> Linker {
    let mut linker = Linker::new();
    linker.func_wrap("host", "f", || Ok(())).unwrap();
    linker
}

fn start(version: BytecodeVersion) -> Running {
    endless(version).start_with(&linker(), Config::new().interruption(Interruption::On))
}

fn big_buffer() -> Value {
    Buffer::allocate(16 << 20, 1, &Default::default()).unwrap().into()
}

/// Runs a call that must end soon, once somebody wants it to.
fn ends_soon(call: impl FnOnce() -> Result<Vec<Value>>) -> Status {
    let start = Instant::now();
    let result = call();
    assert!(start.elapsed() < Duration::from_secs(20), "the call went on for {:?}", start.elapsed());
    status(result)
}

#[test]
fn another_thread_ends_endless_programs() {
    for version in [BytecodeVersion::V13, NEWEST] {
        let mut running = start(version);
        for name in PROGRAMS.iter().chain(["outer"].iter()) {
            let handle = running.store.interrupt_handle();
            let interrupter = thread::spawn(move || {
                thread::sleep(Duration::from_millis(10));
                handle.interrupt();
            });
            assert_eq!(ends_soon(|| running.call(name, &[big_buffer()])), Status::Cancelled, "{name}");
            interrupter.join().unwrap();
            // The request stands until it is taken back.
            assert_eq!(ends_soon(|| running.call(name, &[big_buffer()])), Status::Cancelled, "{name}");
            running.store.interrupt_handle().clear();
            assert_eq!(running.used(), 0);
        }
    }
}

#[test]
fn deadlines_end_endless_programs() {
    for version in VERSIONS {
        let mut running = start(version);
        for name in PROGRAMS {
            running.store.set_deadline(Some(Instant::now() + Duration::from_millis(5)));
            assert_eq!(ends_soon(|| running.call(name, &[big_buffer()])), Status::DeadlineExceeded, "{name}");
        }
        running.store.set_deadline(Some(Instant::now() + Duration::from_secs(1000)));
        let mut program = Program::new(version);
        program.export("run", "0v_v", |f| {
            f.start_block();
            f.ret([]);
        });
        let instance = program.instantiate(&mut running.store).unwrap();
        instance.function(&running.store, "run").unwrap().call(&mut running.store, &[]).unwrap();
    }
}

/// The clock is looked at after a few calls of host functions already, as each may take long.
#[test]
fn slow_host_functions_do_not_put_off_a_deadline() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let mut linker = Linker::new();
    let slow = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(5));
        Ok(())
    };
    linker.func_wrap("host", "f", slow).unwrap();
    let mut running = endless(NEWEST).start_with(&linker, Config::new().interruption(Interruption::On));
    running.store.set_deadline(Some(Instant::now() + Duration::from_millis(10)));
    assert_eq!(status(running.call("natives", &[null()])), Status::DeadlineExceeded);
    let calls = calls.load(Ordering::Relaxed);
    assert!((1..60).contains(&calls), "{calls} calls");
}

/// A handle is of one store alone, and clones are the same handle.
#[test]
fn interrupting_one_store_leaves_others_alone() {
    let engine = Engine::new(Config::new().interruption(Interruption::On));
    let (mut one, mut other) = (Store::new(&engine, ()), Store::new(&engine, ()));
    let mut program = Program::new(NEWEST);
    program.export("run", "0v_i", |f| {
        f.start_block();
        f.i32(0, 5).ret([v(0)]);
    });
    let instances = [program.instantiate(&mut one).unwrap(), program.instantiate(&mut other).unwrap()];
    one.interrupt_handle().clone().interrupt();
    assert!(one.interrupt_handle().is_interrupted() && !other.interrupt_handle().is_interrupted());
    assert_eq!(status(instances[0].function(&one, "run").unwrap().call(&mut one, &[])), Status::Cancelled);
    instances[1].function(&other, "run").unwrap().call(&mut other, &[]).unwrap();
}

/// A program that keeps everything it allocates, until there is no more.
#[test]
fn programs_that_hoard_memory_are_ended() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let (variant, number) = (program.type_of("!vm.opaque"), program.type_of("i32"));
        program.export("buffers", "0v_v", |f| {
            f.start_block();
            let head = f.label();
            f.op(Op::ListAlloc { element: variant, capacity: X4(0), dst: RefMove::new(0) });
            f.i32(1, 1).i64(2, 100).op(Op::Br { to: head.pc(), moves: NO_MOVES });
            f.place(head);
            f.op(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(4) }).op(Op::ListResize { list: RefRead::new(0), size: X4(4) });
            f.alloc(2, 1).op(Op::ListSetRef { list: RefRead::new(0), index: X4(0), value: RefMove::new(1) });
            f.op(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(0) }).op(Op::Br { to: head.pc(), moves: NO_MOVES });
        });
        program.export("lists", "0v_v", |f| {
            f.start_block();
            let head = f.label();
            f.i32(0, 1).op(Op::Br { to: head.pc(), moves: NO_MOVES });
            f.place(head);
            f.op(Op::ListAlloc { element: variant, capacity: X4(0), dst: RefMove::new(1) });
            f.op(Op::ListResize { list: RefRead::new(1), size: X4(0) });
            f.op(Op::ListSetRef { list: RefRead::new(1), index: X4(4), value: RefMove::new(0) });
            let pairs = moves([(moved(1), r(0))]);
            f.op(Op::Br { to: head.pc(), moves: vmfb_bytecode::isa::MoveList::new(&pairs) });
        });
        program.export("growth", "0v_v", |f| {
            f.start_block();
            let head = f.label();
            f.i32(0, 1).op(Op::ListAlloc { element: number, capacity: X4(0), dst: RefMove::new(0) });
            f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
            f.place(head);
            f.op(Op::ListResize { list: RefRead::new(0), size: X4(0) }).op(Op::AddI32 { a: X4(0), b: X4(0), dst: X4(0) });
            f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
        });
        let mut running = program.start_with(&Linker::new(), Config::new().memory_limit(1 << 20));
        for name in ["buffers", "lists", "growth"] {
            let error = running.call(name, &[]).unwrap_err();
            assert_eq!(error.status(), Status::ResourceExhausted);
            assert_eq!(running.used(), 0, "{name}: what the program held is released");
            assert!(running.store.account().peak() <= 1 << 20);
        }
    }
}

/// One million lists come and go; the store remembers none of them.
#[test]
fn short_lived_lists_cost_nothing_later() {
    let mut program = Program::new(NEWEST);
    let element = program.type_of("i32");
    program.export("run", "0i_v", |f| {
        f.start_block();
        let (head, end) = (f.label(), f.label());
        f.i32(1, -1).op(Op::Br { to: head.pc(), moves: NO_MOVES });
        f.place(head);
        f.op(Op::ListAlloc { element, capacity: X4(4), dst: RefMove::new(0) });
        f.op(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(0) }).op(Op::CmpNzI32 { a: X4(0), dst: X4(2) });
        f.op(Op::CondBr { condition: X4(2), true_to: head.pc(), true_moves: NO_MOVES, false_to: end.pc(), false_moves: NO_MOVES });
        f.place(end);
        f.ret([]);
    });
    let mut running = program.start_with(&Linker::new(), Config::new().memory_limit(10_000));
    running.call("run", &[1_000_000.into()]).unwrap();
    assert_eq!(running.used(), 0);
}

/// Many lists alive and many short-lived ones beside them: the time stays in proportion.
#[test]
fn short_lived_lists_beside_many_living_ones() {
    let mut program = Program::new(NEWEST);
    let (element, variant) = (program.type_of("i32"), program.type_of("!vm.opaque"));
    program.export("run", "0ii_r", |f| {
        f.start_block();
        let (keep, churn, end) = (f.label(), f.label(), f.label());
        f.op(Op::ListAlloc { element: variant, capacity: X4(0), dst: RefMove::new(0) });
        f.op(Op::ListResize { list: RefRead::new(0), size: X4(0) }).i32(2, 1).op(Op::Br { to: keep.pc(), moves: NO_MOVES });
        f.place(keep);
        f.op(Op::SubI32 { a: X4(0), b: X4(2), dst: X4(0) });
        f.op(Op::ListAlloc { element, capacity: X4(4), dst: RefMove::new(1) });
        f.op(Op::ListSetRef { list: RefRead::new(0), index: X4(0), value: RefMove::new(1) });
        f.op(Op::CondBr { condition: X4(0), true_to: keep.pc(), true_moves: NO_MOVES, false_to: churn.pc(), false_moves: NO_MOVES });
        f.place(churn);
        f.op(Op::ListAlloc { element, capacity: X4(4), dst: RefMove::new(1) }).op(Op::SubI32 { a: X4(1), b: X4(2), dst: X4(1) });
        f.op(Op::CondBr { condition: X4(1), true_to: churn.pc(), true_moves: NO_MOVES, false_to: end.pc(), false_moves: NO_MOVES });
        f.place(end);
        f.ret([r(0)]);
    });
    let mut running = program.start_with(&Linker::new(), Config::new().interruption(Interruption::On));
    running.store.set_deadline(Some(Instant::now() + Duration::from_secs(30)));
    // So many alive that a table of a power of two has room for three more: a search of it at every third allocation would take
    // 10^11 steps.
    running.call("run", &[262_140.into(), 1_000_000.into()]).unwrap();
}
