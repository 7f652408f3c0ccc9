//! What happens around calls: initialisers, deinitialisers, signals, forks.

use crate::natives::{Forks, Log, Native, native};
use crate::support::*;
use vmfb_bytecode::isa::{GlobalOffset, GlobalSlot, Op, RefMove, Text, X4, X8};
use vmfb_vm::{Buffer, Config, Engine, Linker, NativeFunction, Ref, Signal, Status, Store, Value};

/// A linker with `log.say(i32)`, which writes its argument into the log, and the log of the module itself.
fn logging(forks: Forks) -> (Linker, Log) {
    let log = Log::default();
    let seen = log.clone();
    let functions = move || {
        let seen = seen.clone();
        vec![NativeFunction::new("say", "0i_v", move |call: &mut vmfb_vm::Call<'_, i64>| {
            let said = call.arguments.i32()?;
            *call.state += 1;
            seen.push(format!("say {said}"));
            Ok(())
        })]
    };
    let mut linker = Linker::new();
    linker.add_native(Native { forks, log: log.clone(), ..native("log", functions) }).unwrap();
    (linker, log)
}

/// A module whose `__init`, `__deinit` and `__notify` say a number of its own, the last one plus the signal.
fn talkative(name: &str, number: i32) -> Program {
    let mut program = Program::named(name, NEWEST);
    let say = program.import("log.say", "0i_v");
    for (function, offset) in [("__init", 1), ("__deinit", 2)] {
        program.export(function, "0v_v", |f| {
            f.start_block();
            f.i32(0, number + offset).call(say, [v(0)], []).ret([]);
        });
    }
    program.export("__notify", "0i_v", |f| {
        f.start_block();
        f.i32(1, number + 10).op(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(0) }).call(say, [v(0)], []).ret([]);
    });
    program
}

#[test]
fn initialisers_and_deinitialisers_run_in_order() {
    let (linker, log) = logging(Forks::Yes);
    let mut store = Store::new(&Engine::default(), ());
    talkative("first", 100).instantiate_with(&linker, &mut store).unwrap();
    talkative("second", 200).instantiate_with(&linker, &mut store).unwrap();
    assert_eq!(log.take(), ["log state", "say 101", "say 201"]);
    drop(store);
    assert_eq!(log.take(), ["say 202", "say 102"]);
}

/// `__deinit` may fail; the others run all the same.
#[test]
fn errors_of_deinitialisers_are_ignored() {
    let (linker, log) = logging(Forks::Yes);
    let mut failing = Program::named("failing", NEWEST);
    failing.export("__deinit", "0v_v", |f| {
        f.start_block();
        f.i32(0, 9).op(Op::Fail { code: X4(0), message: Text(b"never mind") });
    });
    let mut store = Store::new(&Engine::default(), ());
    talkative("first", 100).instantiate_with(&linker, &mut store).unwrap();
    failing.instantiate(&mut store).unwrap();
    log.take();
    drop(store);
    assert_eq!(log.take(), ["say 102"]);
}

#[test]
fn a_failed_initialiser_leaves_the_store_as_it_was() {
    let (linker, log) = logging(Forks::No);
    for version in VERSIONS {
        let mut program = Program::named("failing", version);
        program.def.global_refs = 1;
        program.def.global_bytes = 1000;
        let say = program.import("log.say", "0i_v");
        let type_ordinal = program.type_of("!vm.buffer");
        program.export("__init", "0v_v", |f| {
            f.start_block();
            f.i64(0, 1000).alloc(0, 0).op(Op::GlobalStoreRef { slot: GlobalSlot(0), type_ordinal, value: RefMove::new(0) });
            f.i32(0, 11).call(say, [v(0)], []).op(Op::Fail { code: X4(0), message: Text(b"cannot start") });
        });
        program.export("f", "0v_i", |f| {
            f.start_block();
            f.ret([v(0)]);
        });
        let mut importer = Program::new(version);
        importer.import("failing.f", "0v_i");
        let mut store = Store::new(&Engine::default(), ());
        let error = program.instantiate_with(&linker, &mut store).unwrap_err();
        assert_eq!((error.status(), error.message()), (Status::OutOfRange, "cannot start"));
        assert!(error.to_string().contains("failing"), "{error}");
        assert_eq!(log.take(), ["log state", "say 11"]);
        assert_eq!(store.account().used(), 0);
        // Nobody can import from what is not there, its natives do not hinder a fork, and nothing is said at the end.
        assert_eq!(status(importer.instantiate(&mut store)), Status::NotFound);
        store.fork(()).unwrap();
        drop(store);
        assert!(log.take().is_empty());
    }
}

/// A module that cannot be linked leaves nothing behind either.
#[test]
fn a_failed_link_leaves_the_store_as_it_was() {
    let (linker, log) = logging(Forks::No);
    let mut program = Program::new(NEWEST);
    program.import("log.say", "0i_v");
    program.import("log.nothing", "0v_v");
    let mut store = Store::new(&Engine::default(), ());
    assert_eq!(status(program.instantiate_with(&linker, &mut store)), Status::NotFound);
    assert_eq!(log.take(), ["log state"]);
    store.fork(()).unwrap();
}

#[test]
fn an_initialiser_may_yield() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.def.global_bytes = 4;
        program.export("__init", "0v_v", |f| {
            f.start_block();
            let next = f.label();
            f.i32(0, 5).op(Op::Yield { to: next.pc(), moves: NO_MOVES });
            f.place(next);
            f.op(Op::GlobalStoreI32 { offset: GlobalOffset(0), value: X4(0) }).ret([]);
        });
        program.export("get", "0v_i", |f| {
            f.start_block();
            f.op(Op::GlobalLoadI32 { offset: GlobalOffset(0), dst: X4(0) }).ret([v(0)]);
        });
        assert_eq!(program.start().call_one::<i32>("get", ()).unwrap(), 5);
    }
}

#[test]
fn signals_go_up_or_down_through_the_modules() {
    let (linker, log) = logging(Forks::Yes);
    let mut store = Store::new(&Engine::default(), ());
    talkative("first", 100).instantiate_with(&linker, &mut store).unwrap();
    talkative("second", 200).instantiate_with(&linker, &mut store).unwrap();
    log.take();
    store.notify(Signal::Resume).unwrap();
    assert_eq!(log.take(), ["log Resume 2", "say 110", "say 210"]);
    store.notify(Signal::Suspend).unwrap();
    assert_eq!(log.take(), ["say 211", "say 111", "log Suspend 6"]);
    store.notify(Signal::LowMemory).unwrap();
    assert_eq!(log.take(), ["say 212", "say 112", "log LowMemory 8"]);
}

/// The first module that objects ends the round.
#[test]
fn the_first_error_of_a_signal_stops_it() {
    let (linker, log) = logging(Forks::Yes);
    let mut failing = Program::named("failing", NEWEST);
    failing.export("__notify", "0i_v", |f| {
        f.start_block();
        f.i32(1, 9).op(Op::Fail { code: X4(1), message: Text(b"not now") });
    });
    let mut store = Store::new(&Engine::default(), ());
    talkative("first", 100).instantiate_with(&linker, &mut store).unwrap();
    failing.instantiate(&mut store).unwrap();
    talkative("last", 200).instantiate_with(&linker, &mut store).unwrap();
    log.take();
    let error = store.notify(Signal::Suspend).unwrap_err();
    assert_eq!((error.status(), error.message()), (Status::FailedPrecondition, "not now"));
    assert_eq!(log.take(), ["say 211"]);
}

/// A module with a number and a buffer in globals: `set`, `get`, `buffer`.
fn stateful() -> Program {
    let mut program = Program::new(NEWEST);
    program.def.global_bytes = 8;
    program.def.global_refs = 1;
    let type_ordinal = program.type_of("!vm.buffer");
    program.export("set", "0Ir_v", |f| {
        f.start_block();
        f.op(Op::GlobalStoreI64 { offset: GlobalOffset(0), value: X8(0) });
        f.op(Op::GlobalStoreRef { slot: GlobalSlot(0), type_ordinal, value: RefMove::new(0) }).ret([]);
    });
    program.export("get", "0v_Ir", |f| {
        f.start_block();
        f.op(Op::GlobalLoadI64 { offset: GlobalOffset(0), dst: X8(0) });
        f.op(Op::GlobalLoadRef { slot: GlobalSlot(0), type_ordinal, dst: RefMove::new(0) }).ret([v(0), r(0)]);
    });
    program
}

#[test]
fn forks_copy_numbers_and_share_references() {
    let mut parent = stateful().start();
    let (shared, other) = (Buffer::constant(vec![1]), Buffer::constant(vec![2]));
    parent.call("set", &[(1_i64 << 40).into(), shared.clone().into()]).unwrap();
    let mut child = Running { store: parent.store.fork(()).unwrap(), instance: parent.instance };
    let state = |running: &mut Running| {
        let results = running.call("get", &[]).unwrap();
        (bits(&results[0]), results[1].as_ref().unwrap().clone())
    };
    let (number, reference) = state(&mut child);
    assert_eq!(number, 1 << 40);
    assert!(reference.same(&shared.clone().into()));
    // From here on each goes its own way.
    child.call("set", &[7_i64.into(), other.clone().into()]).unwrap();
    let (number, reference) = state(&mut parent);
    assert_eq!(number, 1 << 40);
    assert!(reference.same(&Ref::from(shared)));
    drop(parent);
    let (number, reference) = state(&mut child);
    assert_eq!(number, 7);
    assert!(reference.same(&Ref::from(other)));
}

#[test]
fn forks_are_told_and_copy_the_state_of_natives() {
    let (linker, log) = logging(Forks::Yes);
    let mut store = Store::new(&Engine::default(), 1);
    talkative("first", 100).instantiate_with(&linker, &mut store).unwrap();
    talkative("second", 200).instantiate_with(&linker, &mut store).unwrap();
    log.take();
    let child = store.fork(2).unwrap();
    // In the child, upwards, without initialisers: the copied state has counted two sayings.
    assert_eq!(log.take(), ["log Fork 2", "say 113", "say 213"]);
    assert_eq!((*store.data(), *child.data()), (1, 2));
    store.notify(Signal::Resume).unwrap();
    assert_eq!(log.take(), ["log Resume 2", "say 110", "say 210"]);
    drop(store);
    assert_eq!(log.take(), ["say 202", "say 102"]);
    drop(child);
    assert_eq!(log.take(), ["say 202", "say 102"]);
}

#[test]
fn natives_without_a_copy_of_their_state_cannot_be_forked() {
    let (linker, _log) = logging(Forks::No);
    let mut store = Store::new(&Engine::default(), ());
    talkative("first", 100).instantiate_with(&linker, &mut store).unwrap();
    assert_eq!(store.fork(()).map(|_| ()).unwrap_err().status(), Status::Unimplemented);
}

/// A module that refuses the FORK signal makes the fork fail.
#[test]
fn a_fork_may_be_refused_by_the_program() {
    let mut program = Program::new(NEWEST);
    program.export("__notify", "0i_v", |f| {
        f.start_block();
        f.op(Op::Fail { code: X4(0), message: Text(b"no forks") });
    });
    let running = program.start();
    // FORK is 3, and so is INVALID_ARGUMENT.
    assert_eq!(running.store.fork(()).map(|_| ()).unwrap_err().status(), Status::InvalidArgument);
}

/// Globals are memory like any other: the fork's are charged to the fork.
#[test]
fn globals_are_charged() {
    let mut program = stateful();
    program.def.global_bytes = 1 << 20;
    let engine = Engine::new(Config::new().memory_limit(3 << 19));
    let mut store = Store::new(&engine, ());
    let module = program.load(&engine).unwrap();
    Linker::new().instantiate(&mut store, &module).unwrap();
    assert!((1 << 20..(1 << 20) + 1000).contains(&store.account().used()));
    assert_eq!(status(Linker::new().instantiate(&mut store, &module)), Status::ResourceExhausted);
    let child = store.fork(()).unwrap();
    assert_eq!(child.account().used(), store.account().used());
    let small = Engine::new(Config::new().memory_limit(1 << 19));
    assert_eq!(status(program.instantiate(&mut Store::new(&small, ()))), Status::ResourceExhausted);
}

/// A call of a special function by the host is a call like any other.
#[test]
fn special_functions_are_exports() {
    let (linker, log) = logging(Forks::Yes);
    let mut running = talkative("first", 100).start_with(&linker, Config::new());
    running.call("__init", &[]).unwrap();
    running.call("__notify", &[Value::I32(5)]).unwrap();
    assert_eq!(log.take(), ["log state", "say 101", "say 101", "say 115"]);
}
