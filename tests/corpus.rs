//! One named test per module of the corpus: it is read, verified, disassembled and encoded again, and it gives the expected results.
//!
//! `VMFB_CORPUS` names another folder of the same layout (`modules/RELEASE/MODE/NAME.vmfb`, `programs/NAME.json`; `index.json` and
//! `exceptions.json` may be missing), to try releases that are not in the tree.

#[path = "support/expectation.rs"]
mod expectation;
#[path = "support/text.rs"]
mod text;

use expectation::{Case, Corpus, Expected};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::sync::Arc;
use vmfb::bytecode::disassemble::{ByteOffsets, Disassembler};
use vmfb::{Engine, Module, Status, Store, Value};

fn main() {
    let arguments = Arguments::from_args();
    let folder = std::env::var_os("VMFB_CORPUS").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"), Into::into);
    let corpus = Arc::new(Corpus::read(&folder));
    let mut trials = Vec::new();
    for case in corpus.cases() {
        let case = Arc::new(case);
        let (bytes, run) = (case.clone(), case.clone());
        trials.push(Trial::test(format!("bytecode/{}", case.name()), move || check_bytecode(&bytes)));
        trials.push(Trial::test(format!("run/{}", case.name()), move || check_run(&run)));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Reads, verifies and disassembles the module, and encodes every function again to the same bytes.
fn check_bytecode(case: &Case) -> Result<(), Failed> {
    let engine = Engine::default();
    let module = Module::from_mapped(&engine, &case.path)?;
    let definition = module.definition();
    let disassembler = Disassembler::new(definition, ByteOffsets::Hidden);
    for function in 0..definition.functions.len() as u32 {
        let listing = disassembler.function(function);
        if let Some(error) = listing.error {
            return Err(format!("the disassembly of function {function} ends early: {error}").into());
        }
        let instructions = module.verified().functions()[function as usize].instructions as usize;
        if listing.text.lines().count() < instructions {
            return Err(format!("function {function} has {instructions} instructions, the disassembly fewer lines").into());
        }
    }
    if vmfb::bytecode::encode::reencode(definition)? != definition.bytecode {
        return Err("encoding gives other bytes".into());
    }
    Ok(())
}

/// Makes the calls of the program and compares what comes out.
fn check_run(case: &Case) -> Result<(), Failed> {
    let engine = Engine::default();
    let module = Module::from_mapped(&engine, &case.path)?;
    let linker = vmfb::linker()?;
    for (number, sequence) in case.sequences.iter().enumerate() {
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module);
        for (call, expected) in sequence {
            let what = format!("sequence {number}, {}", call.function);
            let outcome = match &instance {
                Err(error) => Err(error.to_string()).map_err(|text| (error.status(), text)),
                Ok(instance) => run_call(&mut store, *instance, call).map_err(|error| (error.status(), error.to_string())),
            };
            compare(outcome, expected).map_err(|text| format!("{what}: {text}"))?;
        }
    }
    Ok(())
}

fn run_call(store: &mut Store<()>, instance: vmfb::Instance, call: &expectation::Call) -> vmfb::Result<Vec<String>> {
    let function = instance.function(store, &call.function)?;
    let inputs = call.inputs.iter().zip(&call.kinds).map(|(input, kind)| text::parse(input, kind));
    let inputs: Vec<Value> = inputs.collect::<Result<_, _>>()?;
    let results = function.call(store, &inputs)?;
    results.iter().map(text::print).collect()
}

fn compare(outcome: Result<Vec<String>, (Status, String)>, expected: &Expected) -> Result<(), String> {
    match (outcome, expected) {
        (Ok(_), Expected::Undefined) => Ok(()),
        (Err((_, text)), Expected::Undefined) => Err(text),
        (outcome, Expected::OneOf(choices)) => {
            let mut differences = choices.iter().map(|choice| compare(outcome.clone(), choice));
            let first = differences.next().unwrap_or(Ok(()));
            if differences.any(|difference| difference.is_ok()) { Ok(()) } else { first }
        }
        (Ok(found), Expected::Outputs { texts, tolerance }) => {
            if found.len() != texts.len() {
                return Err(format!("{} results, expected {}", found.len(), texts.len()));
            }
            let pairs = found.iter().zip(texts).enumerate();
            pairs.into_iter().try_for_each(|(index, (found, wanted))| {
                text::same(found, wanted, *tolerance).map_err(|difference| format!("result {index}: {difference}"))
            })
        }
        (Err((status, text)), Expected::Status { name, contains }) => {
            let contained = contains.as_ref().is_none_or(|part| text.contains(part.as_str()));
            if status.name() == name && contained { Ok(()) } else { Err(format!("expected {name} with {contains:?}, failed with {text}")) }
        }
        (Ok(found), Expected::Status { name, .. }) => Err(format!("gave {found:?}, expected {name}")),
        (Err((_, text)), Expected::Outputs { .. }) => Err(text),
    }
}
