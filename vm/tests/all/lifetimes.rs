//! What may outlive what, and what may cross threads.

use crate::support::*;
use std::sync::OnceLock;
use std::thread;
use vmfb_bytecode::isa::{Op, RefMove, RefRead, X4};
use vmfb_vm::{
    Buffer, Engine, Error, Func, Handle, Instance, InterruptHandle, Invocation, Linker, List, Module, Ref, RefObject, Result, Status,
    Store, StoreCore, Value,
};

const fn shared<T: Send + Sync>() {}
const fn sent<T: Send>() {}

const _: () = {
    shared::<Engine>();
    shared::<Module>();
    shared::<Linker>();
    shared::<Buffer>();
    shared::<List>();
    shared::<Ref>();
    shared::<Value>();
    shared::<Func>();
    shared::<Instance>();
    shared::<InterruptHandle>();
    shared::<Handle<Flag>>();
    sent::<Store>();
    sent::<Store<Vec<u8>>>();
    sent::<StoreCore>();
    sent::<Invocation>();
    assert!(size_of::<Error>() == size_of::<usize>());
    assert!(size_of::<Result<()>>() == size_of::<usize>());
};

struct Flag;

impl RefObject for Flag {
    const TYPE_NAME: &'static str = "test.flag";
}

/// `run() -> (constant, allocated buffer, list of both)`.
fn program() -> Program {
    let mut program = Program::new(NEWEST);
    let rodata = program.rodata(&[7; 100]);
    let element = program.type_of("!vm.opaque");
    program.export("run", "0v_rrr", |f| {
        f.start_block();
        let list = RefRead::new(2);
        f.op(Op::ConstRefRodata { rodata, dst: RefMove::new(0) }).i64(0, 50).alloc(0, 1);
        f.i32(0, 2).i32(1, 1).op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(2) }).op(Op::ListResize { list, size: X4(0) });
        f.op(Op::ListSetRef { list, index: X4(2), value: RefMove::new(0) });
        f.op(Op::ListSetRef { list, index: X4(1), value: RefMove::new(1) }).ret([r(0), r(1), r(2)]);
    });
    program
}

fn check(values: &[Value]) {
    let reference = |at: usize| values[at].as_ref().unwrap();
    let constant = reference(0).buffer("the constant").unwrap();
    let allocated = reference(1).buffer("the buffer").unwrap();
    let list = reference(2).list("the list").unwrap();
    assert_eq!(constant.span().to_vec().unwrap(), [7; 100]);
    allocated.writable().unwrap().write(10, &[1, 2, 3]).unwrap();
    assert_eq!(allocated.span().to_vec().unwrap()[9..14], [0, 1, 2, 3, 0]);
    assert!(list.get_ref(0).unwrap().same(reference(0)) && list.get_ref(1).unwrap().same(reference(1)));
    list.push(5.into()).unwrap();
    assert_eq!(list.len(), 3);
}

/// Every order of dropping the five things that values come from.
#[test]
fn values_outlive_everything_in_every_order() {
    fn permutations(items: Vec<usize>) -> Vec<Vec<usize>> {
        if items.is_empty() {
            return vec![Vec::new()];
        }
        let with = |first: usize| {
            let rest = items.iter().copied().filter(move |item| *item != first).collect();
            permutations(rest).into_iter().map(move |rest| [vec![first], rest].concat())
        };
        items.iter().copied().flat_map(with).collect()
    }
    let bytes = program().bytes();
    for order in permutations((0..5).collect()) {
        let engine = Engine::default();
        let module = Module::new(&engine, bytes.clone()).unwrap();
        let linker = Linker::new();
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let function = instance.function(&store, "run").unwrap();
        let values = function.call(&mut store, &[]).unwrap();
        let started = function.start(&mut store, &[]).unwrap();
        let (mut engine, mut module, mut linker, mut store, mut started) =
            (Some(engine), Some(module), Some(linker), Some(store), Some(started));
        for thing in order {
            match thing {
                0 => _ = engine.take(),
                1 => _ = module.take(),
                2 => _ = linker.take(),
                3 => _ = store.take(),
                _ => _ = started.take(),
            }
            check(&values[..2].iter().cloned().chain([fresh_list(&values)]).collect::<Vec<_>>());
        }
        check(&values);
    }
}

/// A list like the third value, so that checking does not change the third value.
fn fresh_list(values: &[Value]) -> Value {
    List::of_values(values[..2].iter().cloned()).unwrap().into()
}

/// One module, eight threads, each with a store of its own; results travel back.
#[test]
fn threads_share_a_module() {
    let engine = Engine::default();
    let module = program().load(&engine).unwrap();
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let (engine, module) = (engine.clone(), module.clone());
            thread::spawn(move || {
                let mut store = Store::new(&engine, ());
                let instance = Linker::new().instantiate(&mut store, &module).unwrap();
                let function = instance.function(&store, "run").unwrap();
                (0..100).map(|_| function.call(&mut store, &[]).unwrap()).last().unwrap()
            })
        })
        .collect();
    drop((engine, module));
    let results: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    results.iter().for_each(|values| check(values));
    // Constants belong to the module, so they are the same object in all stores.
    assert!(results.windows(2).all(|pair| pair[0][0].as_ref().unwrap().same(pair[1][0].as_ref().unwrap())));
}

/// A store goes from thread to thread with a call that is under way.
#[test]
fn a_started_call_moves_to_another_thread_with_its_store() {
    let mut running = program().start();
    let function = running.instance.function(&running.store, "run").unwrap();
    let mut started = function.start(&mut running.store, &[]).unwrap();
    let values = thread::spawn(move || match started.poll(&mut running.store, None).unwrap() {
        std::task::Poll::Ready(values) => values,
        std::task::Poll::Pending => panic!("nothing to wait for"),
    });
    check(&values.join().unwrap());
}

/// A module from each kind of bytes; constants are right whatever the alignment of the bytes.
#[test]
fn modules_from_vectors_statics_shared_bytes_and_files() {
    let bytes = program().bytes();
    let engine = Engine::default();
    let path = std::env::temp_dir().join(format!("vmfb-lifetimes-{}.vmfb", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    static SHIFTED: OnceLock<Vec<(usize, Vec<u8>)>> = OnceLock::new();
    let mut modules = vec![
        Module::new(&engine, bytes.clone()).unwrap(),
        Module::new(&engine, BYTES.get_or_init(|| bytes.clone()).as_slice()).unwrap(),
        Module::new(&engine, std::sync::Arc::<[u8]>::from(bytes.as_slice())).unwrap(),
        Module::from_file(&engine, &path).unwrap(),
        Module::from_mapped(&engine, &path).unwrap(),
    ];
    let shifted = |offset| (offset, [vec![0; offset], bytes.clone()].concat());
    for (offset, shifted) in SHIFTED.get_or_init(|| [1, 3, 8, 63].map(shifted).into()) {
        modules.push(Module::new(&engine, &shifted[*offset..]).unwrap());
    }
    std::fs::remove_file(&path).unwrap();
    for module in modules {
        let mut store = Store::new(&engine, ());
        let instance = Linker::new().instantiate(&mut store, &module).unwrap();
        drop(module);
        let values = instance.function(&store, "run").unwrap().call(&mut store, &[]).unwrap();
        drop(store);
        check(&values);
    }
}

/// A fork knows the same functions, but not the calls that are under way.
#[test]
fn a_started_call_belongs_to_its_store() {
    let mut running = program().start();
    let mut fork = running.store.fork(()).unwrap();
    let function = running.instance.function(&running.store, "run").unwrap();
    let mut started = function.start(&mut running.store, &[]).unwrap();
    for other in [&mut fork, &mut Store::new(&Engine::default(), ())] {
        assert_eq!(status(started.poll(other, None)), Status::InvalidArgument);
    }
    assert!(matches!(started.poll(&mut running.store, None), Ok(std::task::Poll::Ready(_))));
    check(&function.call(&mut fork, &[]).unwrap());
}

#[test]
fn functions_and_instances_of_another_store_are_refused() {
    let mut full = program().start();
    let function = full.instance.function(&full.store, "run").unwrap();
    let mut empty = Store::new(&Engine::default(), ());
    assert!(function.call(&mut empty, &[]).is_err());
    assert!(full.instance.function(&empty, "run").is_err());
    assert!(full.instance.module(&empty).is_err());
    assert!(Func::by_ordinal(&full.store, full.instance, 0).unwrap() == function);
    assert!(Func::by_ordinal(&full.store, full.instance, 1).is_err());
    full.call("run", &[]).unwrap();
}

/// Nor are they taken for those of the other store that happen to have the same numbers: results would be wrong.
#[test]
fn functions_of_another_store_are_refused_even_if_that_has_as_many() {
    let engine = Engine::default();
    let returning = |number: i32| {
        let mut program = Program::new(NEWEST);
        program.export("run", "0v_i", |f| {
            f.start_block();
            f.i32(0, number).ret([v(0)]);
        });
        let mut store = Store::new(&engine, ());
        let instance = program.instantiate(&mut store).unwrap();
        (store, instance)
    };
    let ((mut one, first), (mut two, second)) = (returning(1), returning(2));
    assert_ne!(first, second);
    let function = first.function(&one, "run").unwrap();
    let typed = first.typed_function::<(), i32>(&one, "run").unwrap();
    let refused = [
        function.call(&mut two, &[]).err(),
        function.start(&mut two, &[]).err(),
        function.call_raw(&mut two, &[], &[]).err(),
        function.convention(&two).err(),
        typed.call(&mut two, ()).err(),
        first.function(&two, "run").err(),
        first.typed_function::<(), i32>(&two, "run").err(),
        first.module(&two).err(),
        Func::by_ordinal(&two, first, 0).err(),
    ];
    for error in refused {
        let error = error.expect("the function belongs to the other store");
        assert!(error.status() == Status::InvalidArgument && error.to_string().contains("another store"), "{error}");
    }
    assert_eq!(typed.call(&mut one, ()).unwrap(), 1);
    assert_eq!(second.typed_function::<(), i32>(&two, "run").unwrap().call(&mut two, ()).unwrap(), 2);
    // A fork has the instances of its parent, and what is made afterwards is of one of them alone.
    let mut fork = one.fork(()).unwrap();
    assert_eq!(typed.call(&mut fork, ()).unwrap(), 1);
    let mut program = Program::new(NEWEST);
    program.export("run", "0v_i", |f| {
        f.start_block();
        f.i32(0, 3).ret([v(0)]);
    });
    let (of_parent, of_fork) = (program.instantiate(&mut one).unwrap(), program.instantiate(&mut fork).unwrap());
    assert!(of_parent.function(&fork, "run").is_err() && of_fork.function(&one, "run").is_err());
    assert!(of_parent.function(&one, "run").is_ok() && of_fork.function(&fork, "run").is_ok());
}

#[test]
fn a_handle_outlives_its_store_harmlessly() {
    let mut first = program().start();
    let (instance, function) = (first.instance, first.instance.function(&first.store, "run").unwrap());
    first.call("run", &[]).unwrap();
    drop(first);
    let mut second = program().start();
    assert!(function.call(&mut second.store, &[]).is_err() && instance.function(&second.store, "run").is_err());
    second.call("run", &[]).unwrap();
}
