//! Programs that write what must keep its value: constants, and tensors that the caller keeps.

use std::path::PathBuf;
use vmfb::{BufferView, Config, Engine, Instance, Module, Store, Value};

fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keeping")).join(format!("{name}.vmfb"))
}

/// The same module mapped, read, and from bytes.
fn modules(engine: &Engine, name: &str) -> [Module; 3] {
    let path = path(name);
    let bytes = std::fs::read(&path).unwrap();
    [Module::from_mapped(engine, &path).unwrap(), Module::from_file(engine, &path).unwrap(), Module::new(engine, bytes).unwrap()]
}

fn instantiate(module: &Module) -> (Store, Instance) {
    let mut store = Store::new(module.engine(), ());
    let instance = vmfb::linker().unwrap().instantiate(&mut store, module).unwrap();
    (store, instance)
}

fn view(value: &Value) -> &BufferView {
    value.as_ref().unwrap().downcast().unwrap()
}

/// Results of a call without arguments.
fn call(store: &mut Store, instance: Instance, function: &str) -> Vec<BufferView> {
    let results = instance.function(store, function).unwrap().call(store, &[]).unwrap();
    results.iter().map(|value| view(value).clone()).collect()
}

const PUT: [i32; 24] = [1, 2, 3, 4, 5, 6, 11, 12, -1, -2, 15, 16, 21, 22, -3, -4, 25, 26, 31, 32, 33, 34, 35, 36];
const SORTED: [i32; 6] = [1, 2, 3, 5, 7, 9];
const RANKS: [i32; 6] = [3, 5, 1, 0, 4, 2];
const GROWN: [i32; 8] = [1, 102, 3, 204, 5, 306, 7, 8];

/// Program, function, results.
type Case<'a> = (&'a str, &'a str, &'a [&'a [i32]]);

const CONSTANTS: [Case<'_>; 10] = [
    ("const_write", "put", &[&PUT]),
    ("const_write.vmvx", "put", &[&PUT]),
    ("const_sort", "sorted", &[&SORTED]),
    ("const_sort.vmvx", "sorted", &[&SORTED]),
    ("const_sort", "ranked", &[&SORTED, &RANKS]),
    ("const_sort.vmvx", "ranked", &[&SORTED, &RANKS]),
    ("const_double", "grow", &[&GROWN]),
    ("const_double.vmvx", "grow", &[&GROWN]),
    ("globals", "ordered", &[&SORTED]),
    ("globals.vmvx", "ordered", &[&SORTED]),
];

/// Machine code of the fixtures is for x86-64.
fn runs_here(program: &str) -> bool {
    program.ends_with(".vmvx") || program.ends_with(".static") || cfg!(target_arch = "x86_64")
}

fn check_constants(case: &Case<'_>, store: &mut Store, instance: Instance) {
    let (program, function, wanted) = case;
    let found = call(store, instance, function);
    let found: Vec<Vec<i32>> = found.iter().map(|view| view.to_i32().unwrap()).collect();
    assert_eq!(found, *wanted, "{program} {function}");
}

#[test]
fn constants_have_their_value_at_every_call() {
    let engine = Engine::default();
    for case in CONSTANTS.iter().filter(|(program, ..)| runs_here(program)) {
        for module in modules(&engine, case.0) {
            let (mut store, instance) = instantiate(&module);
            (0..3).for_each(|_| check_constants(case, &mut store, instance));
            let mut fork = store.fork(()).unwrap();
            check_constants(case, &mut fork, instance);
            check_constants(case, &mut store, instance);
        }
    }
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn system_libraries_write_no_constants_either() {
    for module in modules(&Engine::default(), "const_double.system") {
        let (mut store, instance) = instantiate(&module);
        (0..3).for_each(|_| check_constants(&("const_double.system", "grow", &[&GROWN]), &mut store, instance));
    }
}

/// Results of earlier calls keep their values, too.
#[test]
fn results_do_not_change_with_later_calls() {
    for program in ["const_double", "const_double.vmvx"].into_iter().filter(|program| runs_here(program)) {
        let module = Module::from_mapped(&Engine::default(), path(program)).unwrap();
        let (mut store, instance) = instantiate(&module);
        let grow = |at: i32, by: i32, store: &mut Store| {
            let function = instance.typed_function::<_, BufferView>(store, "grow_at").unwrap();
            let (at, by) = ([at, 6, 7], [by, 0, 0]);
            let arguments = (BufferView::from_i32(&[3, 1], &at).unwrap(), BufferView::from_i32(&[3], &by).unwrap());
            function.call(store, arguments).unwrap()
        };
        let (first, second) = (grow(0, 10, &mut store), grow(1, 20, &mut store));
        assert_eq!(first.to_i32().unwrap(), [11, 2, 3, 4, 5, 6, 7, 8], "{program}");
        assert_eq!(second.to_i32().unwrap(), [1, 22, 3, 4, 5, 6, 7, 8], "{program}");
    }
}

#[test]
fn stores_on_several_threads_share_a_module() {
    let engine = Engine::default();
    for case in CONSTANTS.iter().filter(|(program, ..)| runs_here(program)) {
        let module = Module::from_mapped(&engine, path(case.0)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let (mut store, instance) = instantiate(&module);
                    (0..20).for_each(|_| check_constants(case, &mut store, instance));
                });
            }
        });
    }
}

/// A constant whose pages are mapped.
#[test]
fn large_constants_are_written_in_private() {
    for program in ["large", "large.vmvx"].into_iter().filter(|program| runs_here(program)) {
        for module in modules(&Engine::default(), program) {
            let (mut store, instance) = instantiate(&module);
            for at in [0, 19_999, 5_000, 5_000] {
                let bump = instance.typed_function::<_, BufferView>(&store, "bump").unwrap();
                let found = bump.call(&mut store, (BufferView::from_i32(&[1, 1], &[at]).unwrap(),)).unwrap().to_i32().unwrap();
                let wanted: Vec<i32> = (0..20_000).map(|value| if value == at { value + 1000 } else { value }).collect();
                assert!(found == wanted, "{program} at {at}");
            }
        }
    }
}

/// Under a limit below the constant, checked kernels are refused what they cannot pay, and change nothing.
#[test]
fn checked_kernels_pay_for_what_they_may_write() {
    let engine = Engine::new(Config::new().memory_limit(40_000));
    for module in modules(&engine, "large.vmvx") {
        let mut store = Store::new(&engine, ());
        let Ok(instance) = vmfb::linker().unwrap().instantiate(&mut store, &module) else { continue };
        let bump = instance.typed_function::<(BufferView,), BufferView>(&store, "bump").unwrap();
        assert!(bump.call(&mut store, (BufferView::from_i32(&[1, 1], &[3]).unwrap(),)).is_err());
        assert!(store.account().peak() <= 40_000);
    }
}

/// A global that starts as a constant is no constant: it keeps what calls write.
#[test]
fn globals_keep_what_is_written() {
    for program in ["globals", "globals.vmvx"].into_iter().filter(|program| runs_here(program)) {
        let module = Module::from_mapped(&Engine::default(), path(program)).unwrap();
        let (mut store, instance) = instantiate(&module);
        for value in [20, 30] {
            let step = instance.typed_function::<_, BufferView>(&store, "step").unwrap();
            let found = step.call(&mut store, (BufferView::from_i32(&[1], &[value]).unwrap(),)).unwrap();
            assert_eq!(found.to_i32().unwrap(), [1, value, 3, 4], "{program}");
        }
    }
}

/// The module binds a constant as the output of its kernel. The kernel writes on a view of its own.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_constant_bound_as_an_output_is_not_written() {
    for module in modules(&Engine::default(), "rodata_out") {
        let before: Vec<Vec<u8>> = module.constants().iter().map(|constant| constant.span().to_vec().unwrap()).collect();
        let (mut store, instance) = instantiate(&module);
        for _ in 0..2 {
            instance.function(&store, "run").unwrap().call(&mut store, &[]).unwrap();
        }
        let after: Vec<Vec<u8>> = module.constants().iter().map(|constant| constant.span().to_vec().unwrap()).collect();
        assert!(before == after);
    }
}

const INPUTS: [&str; 4] = ["inputs", "inputs.vmvx", "inputs.inline", "inputs.static"];

fn updated() -> Vec<f32> {
    (0..16).map(|index| if (4..8).contains(&index) { 7.0 } else { 0.0 }).collect()
}

#[test]
fn tensors_that_the_caller_keeps_keep_their_value() {
    for program in INPUTS.into_iter().filter(|program| runs_here(program)) {
        let (mut store, instance) = instantiate(&Module::from_mapped(&Engine::default(), path(program)).unwrap());
        let kept = BufferView::from_f32(&[16], &[0.0; 16]).unwrap();
        let value = Value::Ref(vmfb::Ref::new(kept.clone()));
        let function = instance.function(&store, "upd").unwrap();
        for _ in 0..2 {
            let results = function.call(&mut store, std::slice::from_ref(&value)).unwrap();
            assert_eq!(view(&results[0]).to_f32().unwrap(), updated(), "{program}");
            assert_eq!(kept.to_f32().unwrap(), [0.0; 16], "{program}");
        }
        // By value, with a clone that is kept.
        let typed = instance.typed_function::<_, BufferView>(&store, "upd").unwrap();
        assert_eq!(typed.call(&mut store, (kept.clone(),)).unwrap().to_f32().unwrap(), updated(), "{program}");
        assert_eq!(kept.to_f32().unwrap(), [0.0; 16], "{program}");
        // What was returned shares bytes with the argument, and is no longer the caller's alone.
        let four = BufferView::from_f32(&[4], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        let same = instance.typed_function::<_, BufferView>(&store, "same").unwrap();
        assert_eq!(same.call(&mut store, (four.clone(),)).unwrap().to_f32().unwrap(), four.to_f32().unwrap(), "{program}");
    }
}

/// The last reference is handed over, and so is what the caller says may be written: results are in the same place.
#[test]
fn tensors_that_are_handed_over_are_not_copied() {
    for program in INPUTS.into_iter().filter(|program| runs_here(program)) {
        let (mut store, instance) = instantiate(&Module::from_mapped(&Engine::default(), path(program)).unwrap());
        let upd = instance.typed_function::<_, BufferView>(&store, "upd").unwrap();
        let mut view = BufferView::from_f32(&[16], &[0.0; 16]).unwrap();
        let address = view.buffer().span().address();
        for _ in 0..3 {
            view = upd.call(&mut store, (view,)).unwrap();
            if !program.ends_with("inline") && !program.ends_with("static") {
                assert_eq!(view.buffer().span().address(), address, "{program}");
            }
        }
        assert_eq!(view.to_f32().unwrap(), updated());
        let given = BufferView::from_f32(&[16], &[0.0; 16]).unwrap().in_place().unwrap();
        let result = upd.call(&mut store, (given.clone(),)).unwrap();
        assert_eq!(result.to_f32().unwrap(), updated(), "{program}");
    }
}
