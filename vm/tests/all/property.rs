//! Any byte string is refused or runs within its limits. `PROPTEST_CASES` sets how many are tried.

use crate::generate::{Choices, program};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use vmfb_bytecode::calling_convention::{CallingConvention, Kind};
use vmfb_vm::{
    Config, Dispatch, Engine, FuelMetering, Func, Instance, Interruption, Linker, Module, NativeFunction, NativeModule, Ref, Result,
    Status, Store, Value,
};

/// Fuel of one call.
const FUEL: u64 = 3000;

/// So many cases unless the environment says otherwise.
fn cases(count: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { ProptestConfig { cases: count, ..config } }
}

/// All imports of a module under one module name: each gives zeros and nulls.
struct Stub {
    name: String,
    functions: Vec<(String, String)>,
}

impl NativeModule for Stub {
    type State = ();

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        u32::MAX
    }

    fn functions(&self) -> Vec<NativeFunction<()>> {
        let function = |(name, convention): &(String, String)| {
            let results = convention.parse::<CallingConvention>().map(|convention| convention.results).unwrap_or_default();
            NativeFunction::new(name.clone(), convention.clone(), move |call| {
                for kind in &results {
                    match kind {
                        Kind::I32 | Kind::F32 => call.results.push_i32(0),
                        Kind::I64 | Kind::F64 => call.results.push_i64(0),
                        Kind::Ref => call.results.push_reference(Ref::Null),
                    }
                }
                Ok(())
            })
        };
        self.functions.iter().map(function).collect()
    }

    fn new_state(&self, _engine: &Engine) -> Result<()> {
        Ok(())
    }

    fn fork_state(&self, (): &()) -> Result<()> {
        Ok(())
    }
}

/// A linker that has everything that the module imports.
fn stubs(module: &Module) -> Result<Linker> {
    let mut modules: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    let definition = module.definition();
    definition.dependencies.iter().for_each(|dependency| _ = modules.entry(&dependency.name).or_default());
    for import in &definition.imports {
        let Some((name, function)) = import.full_name.split_once('.') else { continue };
        let convention = import.signature.as_ref().map(|signature| signature.calling_convention.clone()).unwrap_or_default();
        modules.entry(name).or_default().push((function.to_owned(), convention));
    }
    let mut linker = Linker::new();
    for (name, functions) in modules {
        linker.add_native(Stub { name: name.to_owned(), functions })?;
    }
    Ok(linker)
}

/// What a call gave, without addresses.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Failed(Status, String),
    Values(Vec<(&'static str, u64)>),
}

fn outcome(result: Result<Vec<Value>>) -> Outcome {
    let value = |value: &Value| match value {
        Value::Ref(Ref::Buffer(buffer)) => ("buffer", buffer.len() as u64),
        Value::Ref(Ref::List(list)) => ("list", list.len() as u64),
        Value::Ref(reference) => (reference.type_name(), 0),
        number => (number.type_name(), crate::support::bits(number)),
    };
    match result {
        Ok(values) => Outcome::Values(values.iter().map(value).collect()),
        Err(error) => Outcome::Failed(error.status(), error.to_string()),
    }
}

/// Loads a module, runs all its functions on simple arguments and looks whether anything is left behind. `None` if it was refused.
fn exercise(bytes: &[u8], config: Config) -> Option<Vec<(Outcome, Option<u64>)>> {
    let engine = Engine::new(config.memory_limit(4 << 20).stack_bytes(64 << 10));
    let module = Module::new(&engine, bytes.to_vec()).ok()?;
    let linker = stubs(&module).ok()?;
    let mut store = Store::new(&engine, ());
    let account = store.account().clone();
    store.set_fuel(FUEL);
    let instance = linker.instantiate(&mut store, &module).ok();
    let outcomes = instance.map(|instance| run_all(&mut store, instance, module.definition().functions.len().min(64)));
    let _fork = store.fork(());
    drop(_fork);
    store.set_fuel(FUEL);
    drop(store);
    assert_eq!(account.used(), 0, "memory of the program is left");
    outcomes
}

fn run_all(store: &mut Store, instance: Instance, count: usize) -> Vec<(Outcome, Option<u64>)> {
    let mut outcomes = Vec::new();
    for function in 0..count as u32 {
        let Ok(function) = Func::by_ordinal(store, instance, function) else { continue };
        let kinds = function.convention(store).ok().and_then(CallingConvention::plain_arguments).unwrap_or_default();
        let argument = |(at, kind): (usize, &Kind)| match kind {
            Kind::I32 => Value::I32(at as i32),
            Kind::I64 => Value::I64(at as i64 + 1),
            Kind::F32 => Value::F32(0.5),
            Kind::F64 => Value::F64(-0.5),
            Kind::Ref => vmfb_vm::Buffer::constant(vec![1, 2, 3]).into(),
        };
        let arguments: Vec<Value> = kinds.iter().enumerate().map(argument).collect();
        store.set_fuel(FUEL);
        outcomes.push((outcome(function.call(store, &arguments)), store.fuel()));
    }
    outcomes
}

fn metered() -> Config {
    Config::new().fuel(FuelMetering::On)
}

/// Modules to damage: some of real compilers where they are at hand, some that are made here. With the place of their bytecode.
fn seeds() -> &'static [(Vec<u8>, std::ops::Range<usize>)] {
    static SEEDS: OnceLock<Vec<(Vec<u8>, std::ops::Range<usize>)>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let corpus =
            std::env::var_os("VMFB_CORPUS").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus"), Into::into);
        let read = |name: &str| std::fs::read(corpus.join("modules").join(name)).ok();
        let names = [
            "20230209.425/inline-vmvx/scalars.vmfb",
            "20230209.425/inline-vmvx/control_flow.vmfb",
            "20240828.999/inline-vmvx/scalars.vmfb",
            "3.9.0/inline-vmvx/control_flow.vmfb",
            "3.13.0/inline-vmvx/scalars.vmfb",
            "3.13.0/inline-vmvx/control_flow.vmfb",
            "3.13.0/inline-elf/globals_scalar.vmfb",
        ];
        let made = (0..24_u8).map(|seed| program(&mut Choices::new(&noise(u64::from(seed), 600))).bytes());
        names.iter().filter_map(|name| read(name)).chain(made).map(|bytes| (bytes.clone(), bytecode(&bytes))).collect()
    })
}

/// Where the bytecode of a module is in its file; the whole file if that cannot be told.
fn bytecode(bytes: &[u8]) -> std::ops::Range<usize> {
    let module = Module::new(&Engine::default(), bytes.to_vec());
    let code = module.map(|module| module.definition().bytecode.clone()).unwrap_or_default();
    let found = bytes.windows(code.len().max(1)).position(|window| window == code);
    found.map_or(0..bytes.len(), |start| start..start + code.len())
}

/// Bytes without a pattern, the same for the same seed.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn damage(bytes: &mut Vec<u8>, code: &std::ops::Range<usize>, choices: &mut Choices<'_>) {
    let number = choices.pick(&[0, 1, 0x7F, 0xFF, 0x7FFF, 0x8000, 0xFFFF, i32::MAX as u32, 1 << 31, u32::MAX, u32::MAX - 1]);
    let area = if choices.byte() < 160 { code.clone() } else { 0..bytes.len() };
    let at = area.start + choices.below(area.len().max(1));
    let end = bytes.len();
    match choices.below(7) {
        0 | 1 if at < end => bytes[at] ^= 1 << choices.below(8),
        2 if at < end => bytes[at] = choices.byte(),
        3 if at + 2 <= end => bytes[at..at + 2].copy_from_slice(&(number as u16).to_le_bytes()),
        4 if at + 4 <= end => bytes[at..at + 4].copy_from_slice(&number.to_le_bytes()),
        5 => {
            let (from, length) = (choices.below(end.max(1)), choices.below(64));
            if from + length <= end && at + length <= end {
                bytes.copy_within(from..from + length, at);
            }
        }
        6 if choices.byte() < 60 => bytes.truncate(at),
        _ => {}
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn random_bytes_are_refused_or_run(bytes in vec(any::<u8>(), 0..600)) {
        exercise(&bytes, metered());
    }

    /// The identifier in its place, so that more than the first check is passed.
    #[test]
    fn random_bytes_that_look_like_a_module(mut bytes in vec(any::<u8>(), 12..600), root in 4_u32..300) {
        let length = bytes.len() as u32 - 4;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[4..8].copy_from_slice(&root.to_le_bytes());
        bytes[8..12].copy_from_slice(b"IREE");
        exercise(&bytes, metered());
    }
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn damaged_modules_are_refused_or_run(choices in vec(any::<u8>(), 0..120), seed in any::<prop::sample::Index>()) {
        let (bytes, code) = &seeds()[seed.index(seeds().len())];
        let (mut bytes, mut choices) = (bytes.clone(), Choices::new(&choices));
        for _ in 0..1 + choices.below(6) {
            damage(&mut bytes, code, &mut choices);
        }
        exercise(&bytes, metered());
    }

    /// Programs that are mostly valid end in some way, and in the same way whatever limits are compiled in and
    /// whichever way they are run.
    #[test]
    fn generated_programs_run_the_same_in_every_way(choices in vec(any::<u8>(), 0..1500)) {
        let bytes = program(&mut Choices::new(&choices)).bytes();
        let with_fuel = exercise(&bytes, metered());
        let with_both = exercise(&bytes, metered().interruption(Interruption::On));
        prop_assert_eq!(&with_fuel, &with_both);
        for dispatch in [Dispatch::Portable, Dispatch::Reference] {
            prop_assert_eq!(&with_fuel, &exercise(&bytes, metered().dispatch(dispatch)), "{:?}", dispatch);
        }
        let ran_out = |(_, left): &(Outcome, Option<u64>)| *left == Some(0);
        let ended = |(outcome, _): &(Outcome, Option<u64>)| !matches!(outcome, Outcome::Failed(_, text) if text.contains("out of fuel"));
        if let Some(outcomes) = with_fuel
            && outcomes.iter().all(ended)
            && !outcomes.iter().any(ran_out)
        {
            let values = |outcomes: Vec<(Outcome, Option<u64>)>| outcomes.into_iter().map(|(outcome, _)| outcome).collect::<Vec<_>>();
            let wanted = Some(values(outcomes));
            for dispatch in [Dispatch::Automatic, Dispatch::Portable, Dispatch::Reference] {
                let free = exercise(&bytes, Config::new().dispatch(dispatch));
                prop_assert_eq!(free.map(values), wanted.clone(), "{:?}", dispatch);
            }
        }
    }
}

/// The generator is worth something only if most of what it makes is accepted, and much of it gets somewhere.
#[test]
fn most_generated_programs_are_valid_and_many_succeed() {
    let (mut accepted, mut succeeded, mut functions) = (0, 0, 0);
    for seed in 0..200 {
        let bytes = program(&mut Choices::new(&noise(seed + 1000, 1500))).bytes();
        let Some(outcomes) = exercise(&bytes, metered()) else { continue };
        accepted += 1;
        functions += outcomes.len();
        succeeded += outcomes.iter().filter(|(outcome, _)| matches!(outcome, Outcome::Values(_))).count();
    }
    assert!(accepted >= 100, "{accepted} of 200 programs are accepted");
    assert!(succeeded * 5 >= functions, "{succeeded} of {functions} functions return");
}
