//! Real modules with coarse fences, one of each generation, with their kernels. They contain machine code for x86-64.
#![cfg(all(target_arch = "x86_64", unix))]

use crate::support::{fence, null};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vmfb_hal::coarse_fences::{self, takes_coarse_fences, with_fences};
use vmfb_hal::{BufferView, Fence, FenceStatus, Workers};
use vmfb_loader_elf::ElfLoader;
use vmfb_module_hal::Hal;
use vmfb_vm::{Config, Engine, Error, Instance, Linker, Module, Ref, Result, Status, Store, Value};

struct Program {
    store: Store,
    instance: Instance,
}

/// One module for each generation of the hal module.
fn modules() -> Vec<PathBuf> {
    let releases = ["20230209.425", "20231004.665", "20240621.931", "20240828.999", "3.5.0", "3.13.0"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    releases.iter().map(|release| folder.join(format!("scale-{release}.vmfb"))).collect()
}

fn load(path: &Path, config: Config) -> Program {
    load_in(&Engine::new(config), path)
}

fn load_in(engine: &Engine, path: &Path) -> Program {
    let mut linker = Linker::new();
    linker.add_native(Hal::new(vec![Arc::new(ElfLoader::new())])).unwrap();
    let mut store = Store::new(engine, ());
    let module = Module::from_file(engine, path).unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    Program { store, instance }
}

fn vector(values: &[f32]) -> Value {
    Ref::new(BufferView::from_f32(&[values.len() as u64], values).unwrap()).into()
}

fn values(view: &Value) -> Vec<f32> {
    view.as_ref().unwrap().object::<BufferView>("the result").unwrap().to_f32().unwrap()
}

fn start(program: &mut Program, wait: impl Into<Ref>, signal: &Fence, arguments: &[Value]) -> Result<Value> {
    let function = program.instance.function(&program.store, "scale")?;
    Ok(function.call(&mut program.store, &with_fences(arguments, wait, signal))?.remove(0))
}

#[test]
fn a_call_waits_for_its_results() {
    for path in modules() {
        let mut program = load(&path, Config::new());
        assert!(takes_coarse_fences(program.instance.module(&program.store).unwrap(), "scale"));
        let arguments = [vector(&[1.0, 2.0, 3.0]), vector(&[2.0, 3.0, 4.0])];
        let results = coarse_fences::call(&mut program.store, program.instance, "scale", &arguments).unwrap();
        assert_eq!(values(&results[0]), [2.0, 6.0, 12.0], "{path:?}");
    }
}

#[test]
fn fences_of_the_caller_are_left_to_him() {
    let mut program = load(&modules()[5], Config::new());
    let signal = Fence::new();
    let arguments = [vector(&[1.5]), vector(&[2.0]), null(), fence(&signal)];
    let results = coarse_fences::call(&mut program.store, program.instance, "scale", &arguments).unwrap();
    assert!(matches!(signal.wait(None), FenceStatus::Reached));
    assert_eq!(values(&results[0]), [3.0]);
}

#[test]
fn work_waits_for_the_host_and_holds_its_inputs() {
    for path in modules() {
        let mut program = load(&path, Config::new());
        let (wait, signal) = (Fence::new(), Fence::new());
        let result = start(&mut program, Ref::new(wait.clone()), &signal, &[vector(&[1.0, 2.0]), vector(&[5.0, 6.0])]).unwrap();
        assert!(matches!(signal.wait(Some(Instant::now() + Duration::from_millis(5))), FenceStatus::Pending), "{path:?}");
        // The inputs, the store with its instance, the module and the engine are gone.
        drop(program);
        let thread = std::thread::spawn(move || wait.signal());
        assert!(matches!(signal.wait(None), FenceStatus::Reached), "{path:?}");
        thread.join().unwrap();
        assert_eq!(values(&result), [5.0, 12.0], "{path:?}");
    }
}

#[test]
fn calls_can_be_chained_without_waiting() {
    for path in modules() {
        let Program { mut store, instance } = load(&path, Config::new());
        let first = Fence::new();
        let (mut last, mut value) = (first.clone(), vector(&[1.0, 3.0]));
        for _ in 0..10 {
            let arguments = [value, vector(&[2.0, 2.0])];
            let (mut results, next) = coarse_fences::submit(&mut store, instance, "scale", &arguments, Some(&last)).unwrap();
            (last, value) = (next, results.remove(0));
        }
        first.signal();
        assert!(matches!(last.wait(None), FenceStatus::Reached), "{path:?}");
        assert_eq!(values(&value), [1024.0, 3072.0], "{path:?}");
    }
}

#[test]
fn typed_functions_take_fences() {
    let mut program = load(&modules()[5], Config::new());
    let scale = program.instance.typed_function::<(BufferView, BufferView, Fence, Fence), BufferView>(&program.store, "scale").unwrap();
    let (wait, signal) = (Fence::new(), Fence::new());
    let view = |value: f32| BufferView::from_f32(&[1], &[value]).unwrap();
    let result = scale.call(&mut program.store, (view(3.0), view(4.0), wait.clone(), signal.clone())).unwrap();
    wait.signal();
    assert!(matches!(signal.wait(None), FenceStatus::Reached));
    assert_eq!(result.to_f32().unwrap(), [12.0]);
}

#[test]
fn a_failed_wait_fails_the_results() {
    for path in modules() {
        let mut program = load(&path, Config::new());
        let (wait, signal) = (Fence::new(), Fence::new());
        start(&mut program, Ref::new(wait.clone()), &signal, &[vector(&[1.0]), vector(&[5.0])]).unwrap();
        wait.fail(Error::new(Status::Unavailable, "no input came"));
        let FenceStatus::Failed(error) = signal.status() else { panic!("{path:?}: the input failed") };
        assert_eq!((error.status(), error.message()), (Status::Unavailable, "no input came"));
        let arguments = [vector(&[1.0]), vector(&[5.0])];
        let results = coarse_fences::call(&mut program.store, program.instance, "scale", &arguments).unwrap();
        assert_eq!(values(&results[0]), [5.0], "usable afterwards");
    }
}

#[test]
fn memory_over_the_limit_is_refused_and_the_program_goes_on() {
    for path in modules() {
        let mut program = load(&path, Config::new().memory_limit(1 << 20));
        let large = vec![1.0; 1 << 19];
        let arguments = [vector(&large), vector(&large)];
        let error = coarse_fences::call(&mut program.store, program.instance, "scale", &arguments).unwrap_err();
        assert_eq!(error.status(), Status::ResourceExhausted, "{path:?}: {error}");
        let arguments = [vector(&[1.0]), vector(&[5.0])];
        let results = coarse_fences::call(&mut program.store, program.instance, "scale", &arguments).unwrap();
        assert_eq!(values(&results[0]), [5.0]);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let values: Vec<f32> = (0..100_000).map(|number| number as f32 * 0.37).collect();
    let arguments = [vector(&values), vector(&values)];
    let run = |path: &Path, threads: usize| {
        let engine = Engine::new(Config::new().worker_threads(threads));
        // Every dispatch is spread, however short it is.
        engine.shared(|| Workers::new(threads).worthwhile(Duration::ZERO));
        let Program { mut store, instance } = load_in(&engine, path);
        let results = coarse_fences::call(&mut store, instance, "scale", &arguments).unwrap();
        results[0].as_ref().unwrap().object::<BufferView>("the result").unwrap().to_bytes().unwrap()
    };
    for path in modules() {
        let one = run(&path, 1);
        for threads in [2, 4] {
            assert!((0..10).all(|_| run(&path, threads) == one), "{path:?} on {threads} threads");
        }
    }
}

#[test]
fn nothing_is_left_after_many_calls() {
    for path in modules() {
        let mut program = load(&path, Config::new());
        let used = program.store.account().used();
        for round in 0..10_000 {
            let signal = Fence::new();
            let result = start(&mut program, Ref::Null, &signal, &[vector(&[round as f32]), vector(&[2.0])]).unwrap();
            if round % 100 == 0 {
                assert!(matches!(signal.wait(None), FenceStatus::Reached));
                assert_eq!(values(&result), [round as f32 * 2.0]);
            }
        }
        assert_eq!(program.store.account().used(), used, "{path:?}");
    }
}
