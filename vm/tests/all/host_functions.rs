//! Closures as imports: types, the caller, limits, panics.

use crate::support::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use vmfb_bytecode::isa::{Op, Register, RegisterList};
use vmfb_vm::{Buffer, Caller, Config, Engine, Error, FuelMetering, Linker, List, Ref, Result, ResultExt, Status, Store, Value};

/// A program whose `run` forwards to `host.f`. Arguments and results must stand where the convention puts arguments.
fn forwarder(convention: &str) -> Program {
    let mut program = Program::new(NEWEST);
    let callee = program.import("host.f", convention);
    program.export("run", convention, |f| {
        f.start_block();
        let (arguments, results) = convention[1..].split_once('_').unwrap();
        let (arguments, results) = (registers(arguments, 0), registers(results, 40));
        f.op(Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) }).ret_list(&results);
    });
    program
}

/// Registers for values of these letters, from a value register on.
fn registers(letters: &str, first: u16) -> Vec<[u8; 2]> {
    let (mut value, mut reference) = (first, first / 10);
    let mut place = |letter| match letter {
        'r' => {
            reference += 1;
            Register::reference(reference - 1)
        }
        'i' | 'f' => {
            value += 1;
            Register::value(value - 1)
        }
        _ => {
            value = value.next_multiple_of(2) + 2;
            Register::value(value - 2)
        }
    };
    letters.chars().filter(|letter| *letter != 'v').map(|letter| place(letter).to_bytes()).collect()
}

/// Calls a linked closure with a convention and gives the results.
fn call<A, R>(convention: &str, body: impl vmfb_vm::IntoHostFunction<A, R>, arguments: &[Value]) -> Result<Vec<Value>> {
    let mut linker = Linker::new();
    linker.func_wrap("host", "f", body)?;
    let mut store = Store::new(&Engine::default(), ());
    let instance = forwarder(convention).instantiate_with(&linker, &mut store)?;
    Running { store, instance }.call("run", arguments)
}

fn numbers(results: Result<Vec<Value>>) -> Vec<u64> {
    results.unwrap().iter().map(bits).collect()
}

/// The convention follows from the closure's type: a program that states it links, and one that states another does not.
#[test]
fn closures_of_every_arity() {
    let (one, two) = (1.into(), 2_i64.into());
    let (three, four) = (3.0_f32.into(), 4.0_f64.into());
    let all: [Value; 6] = [one, two, three, four, 5.into(), 6_i64.into()];
    assert_eq!(numbers(call("0v_i", || Ok(9), &[])), [9]);
    assert_eq!(numbers(call("0i_i", |a: i32| Ok(a + 1), &all[..1])), [2]);
    assert_eq!(numbers(call("0iI_I", |a: i32, b: i64| Ok(i64::from(a) + b), &all[..2])), [3]);
    assert_eq!(numbers(call("0iIf_f", |a: i32, b: i64, c: f32| Ok(a as f32 + b as f32 + c), &all[..3])), [u64::from(6_f32.to_bits())]);
    let sum = |a: i32, b: i64, c: f32, d: f64| Ok(f64::from(a) + b as f64 + f64::from(c) + d);
    assert_eq!(numbers(call("0iIfF_F", sum, &all[..4])), [10_f64.to_bits()]);
    let product = |a: i32, b: i64, c: f32, d: f64, e: i32| Ok(i64::from(a * e) + b + c as i64 + d as i64);
    assert_eq!(numbers(call("0iIfFi_I", product, &all[..5])), [14]);
    let six = |a: i32, b: i64, c: f32, d: f64, e: i32, f: i64| Ok(i64::from(a * e) + b * f + c as i64 + d as i64);
    assert_eq!(numbers(call("0iIfFiI_I", six, &all)), [24]);
    assert_eq!(status(call("0I_i", |a: i32| Ok(a), &[1_i64.into()])), Status::Internal);
}

#[test]
fn closures_of_every_arity_with_the_caller() {
    let all: [Value; 6] = [1.into(), 2_i64.into(), 3.0_f32.into(), 4.0_f64.into(), 5.into(), 6_i64.into()];
    assert_eq!(numbers(call("0v_i", |_: Caller<'_, ()>| Ok(9), &[])), [9]);
    assert_eq!(numbers(call("0i_i", |_: Caller<'_, ()>, a: i32| Ok(a + 1), &all[..1])), [2]);
    assert_eq!(numbers(call("0iI_I", |_: Caller<'_, ()>, a: i32, b: i64| Ok(i64::from(a) + b), &all[..2])), [3]);
    let three = |_: Caller<'_, ()>, a: i32, b: i64, c: f32| Ok(i64::from(a) + b + c as i64);
    assert_eq!(numbers(call("0iIf_I", three, &all[..3])), [6]);
    let four = |_: Caller<'_, ()>, a: i32, b: i64, c: f32, d: f64| Ok(i64::from(a) + b + c as i64 + d as i64);
    assert_eq!(numbers(call("0iIfF_I", four, &all[..4])), [10]);
    let five = |_: Caller<'_, ()>, a: i32, b: i64, c: f32, d: f64, e: i32| Ok(i64::from(a * e) + b + c as i64 + d as i64);
    assert_eq!(numbers(call("0iIfFi_I", five, &all[..5])), [14]);
    let six = |_: Caller<'_, ()>, a: i32, b: i64, c: f32, d: f64, e: i32, f: i64| Ok(i64::from(a * e) + b * f + c as i64 + d as i64);
    assert_eq!(numbers(call("0iIfFiI_I", six, &all)), [24]);
}

#[test]
fn results_are_nothing_one_value_or_a_tuple() {
    assert!(numbers(call("0v_v", || Ok(()), &[])).is_empty());
    assert_eq!(numbers(call("0v_iI", || Ok((1, 2_i64)), &[])), [1, 2]);
    assert_eq!(numbers(call("0v_Ifi", || Ok((-1_i64, 1.0_f32, 3)), &[])), [u64::MAX, u64::from(1_f32.to_bits()), 3]);
    assert_eq!(numbers(call("0v_iIiI", || Ok((1, 2_i64, 3, 4_i64)), &[])), [1, 2, 3, 4]);
    assert_eq!(numbers(call("0v_i", || Ok((7,)), &[])), [7]);
}

#[test]
fn references_as_buffers_lists_and_whatever() {
    let buffer = Buffer::constant(vec![1, 2, 3]);
    let list = List::of_values([1.into()]).unwrap();
    let length = |buffer: Buffer| Ok(buffer.len() as i32);
    assert_eq!(numbers(call("0r_i", length, &[buffer.clone().into()])), [3]);
    assert_eq!(numbers(call("0r_i", |list: List| Ok(list.len() as i32), &[list.clone().into()])), [1]);
    assert_eq!(numbers(call("0r_i", |any: Ref| Ok(i32::from(any.is_null())), &[null()])), [1]);
    for wrong in [null(), list.clone().into()] {
        let error = call("0r_i", length, &[wrong]).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(error.to_string().contains("vm.buffer") && error.to_string().contains("host.f"), "{error}");
    }
    let same = call("0r_rr", |any: Ref| Ok((any.clone(), any)), &[buffer.clone().into()]).unwrap();
    assert!(same.iter().all(|result| result.as_ref().unwrap().same(&buffer.clone().into())));
    let made = call("0v_r", || List::of_values([5.into(), 6.into()]), &[]).unwrap();
    assert_eq!(made[0].as_ref().unwrap().list("the result").unwrap().len(), 2);
}

#[test]
fn the_caller_gives_the_hosts_data() {
    let mut linker = Linker::new();
    let count = |mut caller: Caller<'_, Vec<i32>>, value: i32| {
        let data = caller.data_mut().ok_or_else(|| Error::internal("other data"))?;
        data.push(value);
        Ok(data.len() as i32)
    };
    linker.func_wrap("host", "f", count).unwrap();
    let program = forwarder("0i_i");
    let mut store = Store::new(&Engine::default(), vec![10]);
    let instance = program.instantiate_with(&linker, &mut store).unwrap();
    let function = instance.typed_function::<(i32,), i32>(&store, "run").unwrap();
    assert_eq!(function.call(&mut store, (20,)).unwrap(), 2);
    store.data_mut().push(30);
    assert_eq!(function.call(&mut store, (40,)).unwrap(), 4);
    assert_eq!(*store.data(), [10, 20, 30, 40]);
    // In a store with other data the closure sees none.
    let mut other = Store::new(&Engine::default(), "text");
    let instance = program.instantiate_with(&linker, &mut other).unwrap();
    let function = instance.function(&other, "run").unwrap();
    assert_eq!(status(function.call(&mut other, &[1.into()])), Status::Internal);
}

#[test]
fn allocation_through_the_caller_is_charged() {
    let mut linker = Linker::new();
    let make = |mut caller: Caller<'_, ()>, length: i64| {
        let list = caller.new_list()?;
        list.push(caller.allocate(length as u64)?.into())?;
        Ok(list)
    };
    linker.func_wrap("host", "f", make).unwrap();
    let mut running = forwarder("0I_r").start_with(&linker, Config::new().memory_limit(100_000));
    let made: List = running.call_one("run", (50_000_i64,)).unwrap();
    assert!(running.used() >= 50_000);
    assert_eq!(status(running.call("run", &[60_000_i64.into()])), Status::ResourceExhausted);
    assert_eq!(status(running.call("run", &[(-1_i64).into()])), Status::ResourceExhausted);
    drop(made);
    assert_eq!(running.used(), 0);
    running.call("run", &[60_000_i64.into()]).unwrap();
}

#[test]
fn work_is_charged_through_the_caller() {
    let mut linker = Linker::new();
    let work = |mut caller: Caller<'_, ()>, units: i64| caller.meter().charge(units as u64);
    linker.func_wrap("host", "f", work).unwrap();
    let mut running = forwarder("0I_v").start_with(&linker, Config::new().fuel(FuelMetering::On));
    running.store.set_fuel(1000);
    running.call("run", &[100_i64.into()]).unwrap();
    // A call and a return.
    assert_eq!(running.store.fuel(), Some(1000 - 100 - 2));
    let error = running.call("run", &[1000_i64.into()]).unwrap_err();
    assert_eq!(error.status(), Status::ResourceExhausted);
    assert!(error.to_string().contains("fuel"), "{error}");
}

/// A panic goes through to who called; the store is lost, its engine, modules and other stores are not.
#[test]
fn a_panic_poisons_its_store_alone() {
    let mut linker = Linker::new();
    let body = |value: i32| {
        assert_ne!(value, 13, "unlucky");
        Ok(value)
    };
    linker.func_wrap("host", "f", body).unwrap();
    let engine = Engine::default();
    let module = forwarder("0i_i").load(&engine).unwrap();
    let (mut lost, mut other) = (Store::new(&engine, ()), Store::new(&engine, ()));
    let instances = [linker.instantiate(&mut lost, &module).unwrap(), linker.instantiate(&mut other, &module).unwrap()];
    let functions = [instances[0].function(&lost, "run").unwrap(), instances[1].function(&other, "run").unwrap()];
    functions[0].call(&mut lost, &[1.into()]).unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| functions[0].call(&mut lost, &[13.into()]))).unwrap_err();
    assert!(panic.downcast_ref::<String>().is_some_and(|message| message.contains("unlucky")));
    for _ in 0..2 {
        let error = functions[0].call(&mut lost, &[1.into()]).unwrap_err();
        assert_eq!(error.status(), Status::FailedPrecondition);
        assert!(error.message().contains("panicked"), "{error}");
    }
    assert_eq!(status(linker.instantiate(&mut lost, &module)), Status::FailedPrecondition);
    assert_eq!(lost.fork(()).map(|_| ()).unwrap_err().status(), Status::FailedPrecondition);
    drop(lost);
    assert_eq!(bits(&functions[1].call(&mut other, &[1.into()]).unwrap()[0]), 1);
    let mut fresh = Store::new(&engine, ());
    let instance = linker.instantiate(&mut fresh, &module).unwrap();
    assert_eq!(bits(&instance.function(&fresh, "run").unwrap().call(&mut fresh, &[7.into()]).unwrap()[0]), 7);
}

/// What a lost store holds is freed all the same.
#[test]
fn a_poisoned_store_leaks_nothing() {
    let mut program = Program::new(NEWEST);
    let callee = program.import("host.f", "0r_v");
    let element = program.type_of("!vm.opaque");
    program.export("run", "0v_v", |f| {
        f.start_block();
        let list = vmfb_bytecode::isa::RefRead::new(0);
        let dst = vmfb_bytecode::isa::RefMove::new(0);
        f.i32(0, 1).op(Op::ListAlloc { element, capacity: vmfb_bytecode::isa::X4(0), dst });
        f.op(Op::ListResize { list, size: vmfb_bytecode::isa::X4(0) });
        f.op(Op::ListSetRef { list, index: vmfb_bytecode::isa::X4(1), value: dst });
        f.call(callee, [r(0)], []).ret([]);
    });
    let mut linker = Linker::new();
    linker.func_wrap("host", "f", |_: List| -> Result<()> { panic!("on purpose") }).unwrap();
    let mut running = program.start_with(&linker, Config::new());
    let account = running.store.account().clone();
    assert!(catch_unwind(AssertUnwindSafe(|| running.call("run", &[]))).is_err());
    assert!(account.used() > 0);
    drop(running);
    assert_eq!(account.used(), 0);
}

#[test]
fn errors_carry_what_was_being_done() {
    let mut linker = Linker::new();
    let body = || -> Result<()> { Err(Error::new(Status::DataLoss, "the disk is gone")).context(|| "reading the weights".to_owned()) };
    linker.func_wrap("host", "f", body).unwrap();
    let error = forwarder("0v_v").start_with(&linker, Config::new()).call("run", &[]).unwrap_err();
    assert_eq!((error.status(), error.message()), (Status::DataLoss, "the disk is gone"));
    let chain: Vec<&str> = error.context_chain().collect();
    assert_eq!(chain[0], "reading the weights");
    assert!(chain[1].contains("host.f"), "{chain:?}");
    let frames: Vec<_> = error.frames().iter().map(|frame| (frame.module.as_str(), frame.name.as_deref(), frame.pc)).collect();
    assert_eq!(frames, [("test", Some("run"), 1)]);
    let text = error.to_string();
    for part in ["DATA_LOSS", "the disk is gone", "reading the weights", "host.f", "test.run"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Typed functions check their types once.
#[test]
fn typed_functions_state_both_types_when_they_differ() {
    let program = forwarder("0iI_f");
    let mut linker = Linker::new();
    linker.func_wrap("host", "f", |a: i32, b: i64| Ok(a as f32 + b as f32)).unwrap();
    let Running { mut store, instance } = program.start_with(&linker, Config::new());
    let typed = instance.typed_function::<(i32, i64), f32>(&store, "run").unwrap();
    assert_eq!(typed.call(&mut store, (1, 2)).unwrap(), 3.0);
    let typed = instance.typed_function::<(i32, i64), (f32,)>(&store, "run").unwrap();
    assert_eq!(typed.call(&mut store, (1, 2)).unwrap(), (3.0,));
    let error = instance.typed_function::<(i32, i32), f32>(&store, "run").map(|_| ()).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.message().contains("i32, i64") && error.message().contains("i32, i32"), "{error}");
    assert!(instance.typed_function::<(i32, i64), ()>(&store, "run").is_err());
    assert!(instance.typed_function::<(), f32>(&store, "run").is_err());
}
