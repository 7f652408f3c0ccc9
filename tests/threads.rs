//! One named test per module of the corpus: ten runs with 1, 2 and 4 threads give identical bytes. Every grid and every group of
//! independent commands is spread, however short it is.

#[path = "support/expectation.rs"]
#[allow(dead_code, reason = "what results have to be is the matter of other tests")]
mod expectation;
#[path = "support/text.rs"]
#[allow(dead_code, reason = "results are compared as bytes")]
mod text;

use expectation::{Call, Case, Corpus};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vmfb::hal::Workers;
use vmfb::{BufferView, Config, Engine, Instance, Linker, Module, Status, Store, Value};

const RUNS: usize = 10;

fn main() {
    let arguments = Arguments::from_args();
    let folder = std::env::var_os("VMFB_CORPUS").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"), Into::into);
    let engines = Arc::new([1, 2, 4].map(engine));
    let trial = |case: Case| {
        let (name, engines) = (format!("threads/{}", case.name()), engines.clone());
        Trial::test(name, move || check(&case, &engines[..]))
    };
    let trials = Corpus::read(&folder).cases().into_iter().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn engine(threads: usize) -> Engine {
    let engine = Engine::new(Config::new().worker_threads(threads));
    engine.shared(|| Workers::new(threads).worthwhile(Duration::ZERO));
    engine
}

/// What a call gave: each result as its type and its bytes.
type Outcome = Result<Vec<(String, Vec<u8>)>, (Status, String)>;

fn check(case: &Case, engines: &[Engine]) -> Result<(), Failed> {
    let mut first: Option<Vec<Outcome>> = None;
    for engine in engines {
        let module = Module::from_mapped(engine, &case.path)?;
        let linker = vmfb::linker()?;
        for run in 0..RUNS {
            let outcomes = run_all(engine, &linker, &module, case);
            let first = first.get_or_insert_with(|| outcomes.clone());
            if let Some(call) = outcomes.iter().zip(&*first).position(|(now, then)| now != then) {
                return Err(format!("run {run} with {} threads, call {call}: {:?}", engine.worker_threads(), outcomes.get(call)).into());
            }
        }
    }
    Ok(())
}

/// Makes all calls of the module's program, each sequence in a store of its own.
fn run_all(engine: &Engine, linker: &Linker, module: &Module, case: &Case) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for sequence in &case.sequences {
        let mut store = Store::new(engine, ());
        let instance = linker.instantiate(&mut store, module);
        for (call, _) in sequence {
            let outcome = match &instance {
                Err(error) => Err((error.status(), error.to_string())),
                Ok(instance) => run_call(&mut store, *instance, call).map_err(|error| (error.status(), error.to_string())),
            };
            outcomes.push(outcome);
        }
    }
    outcomes
}

fn run_call(store: &mut Store<()>, instance: Instance, call: &Call) -> vmfb::Result<Vec<(String, Vec<u8>)>> {
    let function = instance.function(store, &call.function)?;
    let inputs = call.inputs.iter().zip(&call.kinds).map(|(input, kind)| text::parse(input, kind));
    let inputs: Vec<Value> = inputs.collect::<Result<_, _>>()?;
    function.call(store, &inputs)?.iter().map(bytes).collect()
}

fn bytes(value: &Value) -> vmfb::Result<(String, Vec<u8>)> {
    Ok(match value {
        Value::I32(value) => ("i32".to_owned(), value.to_le_bytes().to_vec()),
        Value::I64(value) => ("i64".to_owned(), value.to_le_bytes().to_vec()),
        Value::F32(value) => ("f32".to_owned(), value.to_le_bytes().to_vec()),
        Value::F64(value) => ("f64".to_owned(), value.to_le_bytes().to_vec()),
        Value::Ref(reference) => {
            let view = reference.object::<BufferView>("the result")?;
            (view.type_text(), view.to_bytes()?)
        }
        _ => return Err(vmfb::Error::invalid("unknown value")),
    })
}
