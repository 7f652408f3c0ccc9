//! Nothing is left of programs, whatever is dropped first. One test, as it counts what is alive in the whole process.
#![cfg(all(target_arch = "x86_64", unix))]

use std::path::Path;
use std::sync::Arc;
use vmfb_hal::coarse_fences::{submit, with_fences};
use vmfb_hal::{BufferView, Fence, FenceStatus};
use vmfb_loader_elf::ElfLoader;
use vmfb_memory::live_allocations;
use vmfb_module_hal::Hal;
use vmfb_vm::{Engine, Linker, Module, Ref, Store, Value};

fn vector(values: &[f32]) -> Value {
    Ref::new(BufferView::from_f32(&[values.len() as u64], values).unwrap()).into()
}

fn values(view: &Value) -> Vec<f32> {
    view.as_ref().unwrap().object::<BufferView>("the result").unwrap().to_f32().unwrap()
}

/// What may go in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Engine,
    Module,
    Linker,
    Store,
    Wait,
    Result,
}

const PARTS: [Part; 6] = [Part::Engine, Part::Module, Part::Linker, Part::Store, Part::Wait, Part::Result];

/// The permutation of this number, by Lehmer's code.
fn permutation(mut number: usize) -> Vec<Part> {
    let mut left = PARTS.to_vec();
    let mut order = Vec::new();
    while !left.is_empty() {
        order.push(left.remove(number % left.len()));
        number /= left.len() + 1;
    }
    order
}

fn drop_in_order(path: &Path, order: &[Part]) {
    let engine = Engine::default();
    let mut linker = Linker::new();
    linker.add_native(Hal::new(vec![Arc::new(ElfLoader::new())])).unwrap();
    let module = Module::from_file(&engine, path).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let (wait, signal) = (Fence::new(), Fence::new());
    let arguments = with_fences(&[vector(&[1.0, 2.0]), vector(&[3.0, 4.0])], Ref::new(wait.clone()), &signal);
    let function = instance.function(&store, "scale").unwrap();
    let result = function.call(&mut store, &arguments).unwrap().remove(0);
    drop(arguments);
    let (mut engine, mut linker, mut module, mut store) = (Some(engine), Some(linker), Some(module), Some(store));
    let (mut wait, mut result) = (Some(wait), Some(result));
    let mut expected = None;
    for part in order {
        match part {
            Part::Engine => engine = None,
            Part::Module => module = None,
            Part::Linker => linker = None,
            Part::Store => store = None,
            Part::Wait => {
                wait.take().unwrap().signal();
                assert!(matches!(signal.wait(None), FenceStatus::Reached), "{order:?}");
                expected = Some([3.0, 8.0]);
            }
            Part::Result => {
                if let (Some(expected), Some(result)) = (expected, &result) {
                    assert_eq!(values(result), expected, "{order:?}");
                }
                result = None;
            }
        }
    }
    drop((engine, module, linker, store));
}

#[test]
fn nothing_is_left() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let before = live_allocations();
    for release in ["20230209.425", "20240621.931", "20240828.999", "3.13.0"] {
        let path = folder.join(format!("scale-{release}.vmfb"));
        for number in 0..720 {
            drop_in_order(&path, &permutation(number));
            assert_eq!(live_allocations(), before, "{release}: {:?}", permutation(number));
        }
    }
    ten_thousand_invocations(&folder.join("scale-3.13.0.vmfb"));
    assert_eq!(live_allocations(), before);
    abandoned_work(&folder.join("scale-3.13.0.vmfb"));
    assert_eq!(live_allocations(), before);
}

/// Inputs are dropped right after submission; thousands of calls are in flight.
fn ten_thousand_invocations(path: &Path) {
    let engine = Engine::default();
    let mut linker = Linker::new();
    linker.add_native(Hal::new(vec![Arc::new(ElfLoader::new())])).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &Module::from_file(&engine, path).unwrap()).unwrap();
    let start = Fence::new();
    let flight: Vec<_> = (0..10_000)
        .map(|number| {
            let arguments = [vector(&[number as f32]), vector(&[2.0])];
            let (mut results, end) = submit(&mut store, instance, "scale", &arguments, Some(&start)).unwrap();
            (results.remove(0), end)
        })
        .collect();
    drop((store, linker, engine));
    let signaller = std::thread::spawn(move || start.signal());
    for (number, (result, end)) in flight.iter().enumerate() {
        assert!(matches!(end.wait(None), FenceStatus::Reached));
        assert_eq!(values(result), [number as f32 * 2.0]);
    }
    signaller.join().unwrap();
}

/// The fence that work waits for is never signalled.
fn abandoned_work(path: &Path) {
    let engine = Engine::default();
    let mut linker = Linker::new();
    linker.add_native(Hal::new(vec![Arc::new(ElfLoader::new())])).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &Module::from_file(&engine, path).unwrap()).unwrap();
    let (mut last, mut value) = (Fence::new(), vector(&[1.0]));
    for _ in 0..1000 {
        let (mut results, next) = submit(&mut store, instance, "scale", &[value, vector(&[2.0])], Some(&last)).unwrap();
        (last, value) = (next, results.remove(0));
    }
    assert!(matches!(last.status(), FenceStatus::Failed(_)), "the first fence was dropped, so nothing ever happens");
}
