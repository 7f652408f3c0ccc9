//! An engine with one thread makes no other. One test, as it counts the threads of the whole process.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vmfb_hal::{BufferView, Workers, coarse_fences};
use vmfb_loader_elf::ElfLoader;
use vmfb_module_hal::Hal;
use vmfb_vm::{Config, Engine, Linker, Module, Ref, Store, Value};

/// Threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Calls a program in an engine with so many threads, and counts those that there are afterwards.
fn threads_after_calls(count: usize) -> usize {
    let engine = Engine::new(Config::new().worker_threads(count));
    engine.shared(|| Workers::new(count).worthwhile(Duration::ZERO));
    let mut linker = Linker::new();
    linker.add_native(Hal::new(vec![Arc::new(ElfLoader::new())])).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/scale-3.13.0.vmfb");
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &Module::from_file(&engine, path).unwrap()).unwrap();
    let values: Vec<f32> = (0..100_000).map(|number| number as f32).collect();
    let vector = || Value::Ref(Ref::new(BufferView::from_f32(&[100_000], &values).unwrap()));
    for _ in 0..10 {
        coarse_fences::call(&mut store, instance, "scale", &[vector(), vector()]).unwrap();
    }
    threads()
}

#[test]
fn an_engine_makes_as_many_threads_as_it_may_less_the_calling_one() {
    let before = threads();
    assert_eq!(threads_after_calls(1), before);
    assert_eq!(threads_after_calls(3), before + 2);
    // The system may show a thread for a moment after it has ended.
    let start = Instant::now();
    while threads() > before {
        assert!(start.elapsed() < Duration::from_secs(120), "threads end with their engine");
        std::thread::yield_now();
    }
}
