//! Whole modules without machine code: they are refused, or run within their limits.

use std::time::{Duration, Instant};
use vmfb::bytecode::calling_convention::{Item, Kind};
use vmfb::{BufferView, Config, Engine, FuelMetering, Instance, Interruption, Linker, Module, NativeCode, Ref, Store, Value};

/// What became of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not a module that this runtime accepts, or one that cannot be linked.
    Refused,
    /// Linked; every call ended with an error.
    Failed,
    /// At least one call returned, or there was none to make.
    Ran,
}

/// Fuel for one module.
pub const FUEL: u64 = 200_000;
/// Memory for one module, in bytes.
const MEMORY: u64 = 64 << 20;
/// No computation of this size takes that long; if one does, it is not metered where it should be.
const TOO_LONG: Duration = Duration::from_secs(120);

/// An engine that runs anything: no machine code, fuel, a memory limit.
pub fn sandbox() -> Engine {
    let config = Config::new().native_code(NativeCode::Deny).fuel(FuelMetering::On).interruption(Interruption::On).memory_limit(MEMORY);
    Engine::new(config)
}

thread_local! {
    /// Making these takes longer than most inputs do.
    static SANDBOX: Option<(Engine, Linker)> = vmfb::linker().ok().map(|linker| (sandbox(), linker));
}

/// Loads the bytes, calls every export with plain arguments.
pub fn check(bytes: &[u8]) {
    check_with_fuel(bytes, FUEL);
}

/// The same with other fuel: programs that loop by chance use all that there is.
pub fn check_with_fuel(bytes: &[u8], fuel: u64) {
    SANDBOX.with(|sandbox| {
        let (engine, linker) = sandbox.as_ref().expect("the built-in modules link");
        run(engine, linker, bytes.to_vec(), fuel);
    });
}

/// The same with an engine and linker that are used again and again.
pub fn run(engine: &Engine, linker: &Linker, bytes: Vec<u8>, fuel: u64) -> Outcome {
    let Ok(module) = Module::new(engine, bytes) else { return Outcome::Refused };
    let mut store = Store::new(engine, ());
    store.set_fuel(fuel);
    let start = Instant::now();
    let Ok(instance) = linker.instantiate(&mut store, &module) else { return Outcome::Refused };
    let outcome = call_exports(&mut store, instance, &module);
    assert!(start.elapsed() < TOO_LONG, "{fuel} units of fuel took {:?}", start.elapsed());
    assert!(store.account().used() <= MEMORY);
    outcome
}

fn call_exports(store: &mut Store<()>, instance: Instance, module: &Module) -> Outcome {
    let mut outcome = Outcome::Ran;
    let exports = module.exports().filter(|export| !export.name.starts_with("__"));
    for export in exports.take(16) {
        let arguments: Vec<Value> = export.convention.arguments.iter().map(plain_value).collect();
        let Ok(function) = instance.function(store, export.name) else { continue };
        if function.call(store, &arguments).is_ok() {
            return Outcome::Ran;
        }
        outcome = Outcome::Failed;
    }
    outcome
}

fn plain_value(item: &Item) -> Value {
    match item {
        Item::Plain(Kind::I32) => Value::I32(3),
        Item::Plain(Kind::I64) => Value::I64(3),
        Item::Plain(Kind::F32) => Value::F32(1.5),
        Item::Plain(Kind::F64) => Value::F64(1.5),
        Item::Plain(Kind::Ref) | Item::Span(_) => {
            let view = BufferView::from_f32(&[4], &[1.0, 2.0, 3.0, 4.0]);
            Value::Ref(view.map_or(Ref::Null, Ref::new))
        }
    }
}
