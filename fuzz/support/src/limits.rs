//! What limits promise, measured on the process: programs that hoard whatever they can make.

use crate::hoard;
use arbitrary::Unstructured;
use std::time::{Duration, Instant};
use vmfb::{Config, Engine, FuelMetering, Interruption, Linker, Module, NativeCode, Store};
use vmfb_testing_allocator::{Alone, Usage, is_counting};

/// Memory of one program, in bytes.
const MEMORY: usize = 2 << 20;
/// What a store takes besides what its programs are charged for.
const SLACK: usize = 1 << 20;
/// What a module takes for each byte of its file.
const BYTES_PER_BYTE: usize = 32;
const FUEL: u64 = 100_000;
const DEADLINE: Duration = Duration::from_millis(200);
/// Processor time past the deadline; instrumented programs are slower.
const OVERRUN: Duration = if cfg!(fuzzing) { Duration::from_secs(2) } else { Duration::from_millis(200) };
/// Calls of one program: what it has kept stays when one fails.
const CALLS: usize = 4;

thread_local! {
    static SANDBOX: Option<[(Engine, Linker); 2]> = sandboxes();
}

fn sandboxes() -> Option<[(Engine, Linker); 2]> {
    let config = || Config::new().native_code(NativeCode::Deny).interruption(Interruption::On).memory_limit(MEMORY as u64);
    let with = |config: Config| Some((Engine::new(config), vmfb::linker().ok()?));
    Some([with(config().fuel(FuelMetering::On))?, with(config().worker_threads(4))?])
}

/// Makes a program of the bytes and runs it with fuel, and on four threads without.
pub fn check(bytes: &[u8]) {
    let Ok(module) = hoard::generate(&mut Unstructured::new(bytes)) else { return };
    SANDBOX.with(|sandboxes| {
        let sandboxes = sandboxes.as_ref().expect("the built-in modules link");
        let alone = Alone::wait();
        for ((engine, linker), threads) in sandboxes.iter().zip([1, 4]) {
            let (charged, usage) = alone.measure(|| run(engine, linker, &module));
            assert!(charged <= MEMORY);
            compare(charged, &usage, module.len(), threads);
        }
    });
}

/// What the store of the program was charged at most.
fn run(engine: &Engine, linker: &Linker, module: &[u8]) -> usize {
    let Ok(module) = Module::new(engine, module.to_vec()) else { panic!("a generated program is refused") };
    let mut store = Store::new(engine, ());
    store.set_fuel(FUEL);
    store.set_deadline(Some(Instant::now() + DEADLINE));
    let instance = linker.instantiate(&mut store, &module).expect("what is imported is there");
    let function = instance.function(&store, "run").expect("the export");
    for _ in 0..CALLS {
        let _ = function.call(&mut store, &[]);
    }
    store.account().peak() as usize
}

fn compare(charged: usize, usage: &Usage, file: usize, threads: u32) {
    let most = charged + SLACK + file * BYTES_PER_BYTE;
    assert!(!is_counting() || usage.peak_bytes <= most, "the process took {} bytes, the store paid {charged}", usage.peak_bytes);
    // Other tests of the process may run besides where nothing is counted.
    let cpu = DEADLINE * threads + OVERRUN;
    assert!(!is_counting() || usage.cpu <= cpu, "{:?} of processor time under a deadline of {DEADLINE:?}", usage.cpu);
}
