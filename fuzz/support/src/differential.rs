//! The ways to run a program against each other: the threaded core, the match loop, and the match loop without fused ops must give the
//! same results, the same failures and the same count of fuel.

use crate::generate::{Choices, IMPORTS, program};
use vmfb_bytecode::calling_convention::{CallingConvention, Kind};
use vmfb_vm::{
    Buffer, Config, Dispatch, Engine, FuelMetering, Func, Interruption, Linker, Module, NativeFunction, NativeModule, Ref, Result, Status,
    Store, Value,
};

/// Fuel of one call.
const FUEL: u64 = 3000;
/// Memory of one store, in bytes.
const MEMORY: u64 = 4 << 20;

/// Whether there is anything to compare: builds with debug assertions, or for other architectures, have no threaded core.
pub fn compares_cores() -> bool {
    Engine::new(metered(Dispatch::Automatic)).is_threaded()
}

/// Makes a program of the bytes and runs all its functions in every way.
pub fn check(bytes: &[u8]) {
    let bytes = program(&mut Choices::new(bytes)).bytes();
    let wanted = run(&bytes, metered(Dispatch::Reference));
    for dispatch in [Dispatch::Portable, Dispatch::Automatic] {
        assert_eq!(run(&bytes, metered(dispatch)), wanted, "{dispatch:?}");
    }
    // What is compiled in besides must not change anything.
    assert_eq!(run(&bytes, metered(Dispatch::Automatic).interruption(Interruption::On)), wanted, "with interruption");
}

fn metered(dispatch: Dispatch) -> Config {
    Config::new().fuel(FuelMetering::On).memory_limit(MEMORY).stack_bytes(64 << 10).dispatch(dispatch)
}

/// What a call gave, without addresses, and the fuel that it left.
#[derive(Debug, PartialEq)]
struct Outcome {
    ended: Result<Vec<Shown>, (Status, String)>,
    fuel: Option<u64>,
    memory: u64,
}

/// A value without its address.
#[derive(Debug, PartialEq)]
enum Shown {
    Number(&'static str, u64),
    Buffer(Vec<u8>),
    List(usize),
    Other(String),
}

/// The outcome of each function; `None` if the program was refused.
fn run(bytes: &[u8], config: Config) -> Option<Vec<Outcome>> {
    let engine = Engine::new(config);
    let module = Module::new(&engine, bytes.to_vec()).ok()?;
    let mut store = Store::new(&engine, ());
    let account = store.account().clone();
    store.set_fuel(FUEL);
    let mut linker = Linker::new();
    linker.add_native(Host).ok()?;
    let instance = linker.instantiate(&mut store, &module).ok()?;
    let count = module.definition().functions.len() as u32;
    let outcomes = (0..count).filter_map(|ordinal| Func::by_ordinal(&store, instance, ordinal).ok()).collect::<Vec<_>>();
    let outcomes = outcomes.into_iter().map(|function| call(&mut store, &function)).collect();
    drop(store);
    assert_eq!(account.used(), 0, "memory of the program is left");
    Some(outcomes)
}

fn call(store: &mut Store, function: &Func) -> Outcome {
    let kinds = function.convention(store).ok().and_then(CallingConvention::plain_arguments).unwrap_or_default();
    let arguments: Vec<Value> = kinds.iter().zip(0..).map(|(kind, at)| argument(*kind, at)).collect();
    store.set_fuel(FUEL);
    let ended = function.call(store, &arguments).map(|values| values.iter().map(shown).collect());
    Outcome { ended: ended.map_err(|error| (error.status(), error.to_string())), fuel: store.fuel(), memory: store.account().used() }
}

fn argument(kind: Kind, at: i32) -> Value {
    match kind {
        Kind::I32 => Value::I32(at),
        Kind::I64 => Value::I64(i64::from(at) + 1),
        Kind::F32 => Value::F32(0.5),
        Kind::F64 => Value::F64(-0.5),
        Kind::Ref => Buffer::constant(vec![1, 2, 3]).into(),
    }
}

fn shown(value: &Value) -> Shown {
    match value {
        Value::I32(number) => Shown::Number("i32", u64::from(*number as u32)),
        Value::I64(number) => Shown::Number("i64", *number as u64),
        // The payload of a NaN depends on the order of operands that the compiler chose.
        Value::F32(number) if number.is_nan() => Shown::Other("NaN".into()),
        Value::F64(number) if number.is_nan() => Shown::Other("NaN".into()),
        Value::F32(number) => Shown::Number("f32", u64::from(number.to_bits())),
        Value::F64(number) => Shown::Number("f64", number.to_bits()),
        Value::Ref(Ref::Buffer(buffer)) => Shown::Buffer(buffer.span().to_vec().unwrap_or_default()),
        Value::Ref(Ref::List(list)) => Shown::List(list.len()),
        other => Shown::Other(other.type_name().to_owned()),
    }
}

/// What generated programs import: each function gives zeros and nulls.
struct Host;

impl NativeModule for Host {
    type State = ();

    fn name(&self) -> &str {
        "host"
    }

    fn functions(&self) -> Vec<NativeFunction<()>> {
        IMPORTS.iter().filter_map(|(name, convention)| zeros(name.strip_prefix("host.")?, convention)).collect()
    }

    fn new_state(&self, _engine: &Engine) -> Result<()> {
        Ok(())
    }

    fn fork_state(&self, (): &()) -> Result<()> {
        Ok(())
    }
}

fn zeros(name: &str, convention: &str) -> Option<NativeFunction<()>> {
    let results = convention.parse::<CallingConvention>().ok()?.results;
    Some(NativeFunction::new(name.to_owned(), convention.to_owned(), move |call| {
        for kind in &results {
            match kind {
                Kind::I32 | Kind::F32 => call.results.push_i32(0),
                Kind::I64 | Kind::F64 => call.results.push_i64(0),
                Kind::Ref => call.results.push_reference(Ref::Null),
            }
        }
        Ok(())
    }))
}
