//! What limits promise, measured on the process and not by the account of a store: bytes that are allocated, and processor time.
// Nothing leaves a test binary.
#![allow(unreachable_pub)]

#[path = "support/expectation.rs"]
#[allow(dead_code, reason = "shared with the corpus test")]
mod expectation;
#[allow(dead_code, reason = "shared with the tests of the virtual machine")]
#[path = "../vm/tests/all/support.rs"]
mod program;
#[path = "support/text.rs"]
#[allow(dead_code, reason = "shared with the corpus test")]
mod text;
mod support {
    pub mod hostile;
    #[allow(dead_code, reason = "shared with other tests")]
    pub mod kernels;
}

use expectation::{Case, Corpus};
use std::path::Path;
use std::time::{Duration, Instant};
use support::hostile;
use vmfb::{Config, Engine, Error, FuelMetering, Interruption, Module, NativeCode, Status, Store, Value};
use vmfb_testing_allocator::{Alone, Counting, Usage, is_counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a store takes besides what its programs are charged for: stack, linker, native state, texts of errors.
const SLACK: usize = 4 << 20;

/// What a module takes for each byte of its file: definition, verification, translation. It is the host that chooses modules.
const BYTES_PER_BYTE: usize = 32;

/// Processor time that a computation may need past its deadline. The promise is wider than what is measured (some
/// milliseconds), as the machine may do other work and caches are cold.
const OVERRUN: Duration = Duration::from_millis(200);

const LIMIT: usize = 64 << 20;

/// What a run may take of the machine.
#[derive(Clone, Copy)]
enum Threads {
    One,
    Four,
}

impl Threads {
    fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Four => 4,
        }
    }

    /// Fuel is counted on one thread alone, so that several are there to be used without it.
    fn config(self, limit: usize) -> Config {
        let config = Config::new().interruption(Interruption::On).memory_limit(limit as u64).worker_threads(self.count());
        match self {
            Self::One => config.fuel(FuelMetering::On),
            Self::Four => config,
        }
    }
}

/// What a measured run came to.
struct Run {
    outcome: Result<Vec<Value>, Error>,
    /// The most that its store was charged.
    charged: usize,
    usage: Usage,
    file: usize,
}

impl Run {
    /// Fails if the process took more than the store was charged and what comes on top.
    #[track_caller]
    fn check(&self, name: &str, deadline: Duration, threads: Threads) {
        let Self { usage, charged, file, .. } = self;
        let most = charged + SLACK + file * BYTES_PER_BYTE;
        assert!(usage.peak_bytes <= most, "{name}: the process took {} bytes, the store paid {charged}", usage.peak_bytes);
        let most = deadline * threads.count() as u32 + OVERRUN;
        assert!(usage.cpu <= most, "{name}: {:?} of processor time under a deadline of {deadline:?}", usage.cpu);
    }
}

/// Loads a module and calls its export `run`; everything is dropped inside of the measurement but the outcome.
fn run_hostile(alone: &Alone, bytes: &[u8], limit: usize, deadline: Duration, threads: Threads) -> Run {
    let file = bytes.len();
    let ((outcome, charged), usage) = alone.measure(|| {
        let engine = Engine::new(threads.config(limit).native_code(NativeCode::Deny));
        let module = match Module::new(&engine, bytes.to_vec()) {
            Ok(module) => module,
            Err(error) => return (Err(error), 0),
        };
        let linker = vmfb::linker().expect("the built-in modules link");
        let mut store = Store::new(&engine, ());
        store.set_fuel(10_000_000);
        store.set_deadline(Some(Instant::now() + deadline));
        let instance = linker.instantiate(&mut store, &module).expect("an instance");
        let outcome = instance.function(&store, "run").and_then(|function| function.call(&mut store, &[]));
        (outcome, store.account().peak() as usize)
    });
    assert!(charged <= limit);
    Run { outcome, charged, usage, file }
}

/// How a hostile module may end: within its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It fits.
    Fits,
    /// With an error at a limit.
    AtALimit,
    /// One or the other: fuel is counted on one thread alone.
    Either,
}

impl End {
    fn of(outcome: &Result<Vec<Value>, Error>) -> Option<Self> {
        match outcome {
            Ok(_) => Some(Self::Fits),
            Err(error) if matches!(error.status(), Status::ResourceExhausted | Status::DeadlineExceeded) => Some(Self::AtALimit),
            Err(_) => None,
        }
    }
}

fn check_hostile(alone: &Alone, name: &str, bytes: &[u8], expected: End) {
    assert!(is_counting());
    for threads in [Threads::One, Threads::Four] {
        for limit in [LIMIT, LIMIT / 16] {
            let deadline = Duration::from_secs(2);
            let run = run_hostile(alone, bytes, limit, deadline, threads);
            run.check(name, deadline, threads);
            let end = End::of(&run.outcome);
            assert!(end.is_some(), "{name}: {:?}", run.outcome);
            if limit == LIMIT && expected != End::Either {
                assert_eq!(end, Some(expected), "{name}: {:?}", run.outcome);
            }
        }
        // However early it comes.
        let deadline = Duration::from_millis(20);
        run_hostile(alone, bytes, LIMIT, deadline, threads).check(name, deadline, threads);
    }
}

fn check_file(name: &str, expected: End) {
    let alone = Alone::wait();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile").join(name);
    check_hostile(&alone, name, &std::fs::read(path).expect("a module of the tree"), expected);
}

#[test]
#[cfg(feature = "hal")]
fn two_fences_of_twenty_thousand_moments() {
    check_file("follows_once.vmfb", End::Either);
}

#[test]
#[cfg(feature = "hal")]
fn fences_of_a_thousand_moments_that_follow_each_other() {
    check_file("follows.vmfb", End::Fits);
}

#[test]
fn globals_of_executables() {
    check_file("globals.vmfb", End::AtALimit);
    check_file("globalrefs.vmfb", End::AtALimit);
}

#[test]
#[cfg(feature = "hal")]
fn binding_tables_of_queued_work() {
    check_file("tables.vmfb", End::AtALimit);
}

#[test]
#[cfg(feature = "hal")]
fn constants_that_command_buffers_keep() {
    check_file("bound.vmfb", End::AtALimit);
}

#[test]
#[cfg(feature = "hal")]
fn fences_that_keep_errors_with_long_names() {
    let alone = Alone::wait();
    check_hostile(&alone, "errors", &hostile::errors_with_long_names(), End::Either);
}

#[test]
fn functions_that_share_their_bytes() {
    let alone = Alone::wait();
    check_hostile(&alone, "overlapping functions", &hostile::overlapping_functions(16), End::AtALimit);
    check_hostile(&alone, "one function", &hostile::overlapping_functions(1), End::Fits);
}

#[test]
fn lists_of_many_references() {
    let alone = Alone::wait();
    check_hostile(&alone, "lists", &hostile::lists_of_lists(), End::AtALimit);
    check_hostile(&alone, "short-lived lists", &hostile::short_lived_lists(), End::AtALimit);
}

/// Every module of the corpus, with its own calls.
#[test]
fn the_corpus_takes_what_it_pays_for() {
    let alone = Alone::wait();
    let corpus = Corpus::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"));
    let linker = vmfb::linker().expect("the built-in modules link");
    let mut checked = 0;
    for threads in [Threads::One, Threads::Four] {
        let engine = Engine::new(threads.config(LIMIT));
        for case in corpus.cases() {
            let deadline = Duration::from_secs(20);
            let run = run_case(&alone, &engine, &linker, &case, deadline);
            run.check(case.name(), deadline, threads);
            checked += 1;
        }
    }
    assert!(checked > 4000, "{checked} modules");
}

/// Makes the calls of a module; how they end is the matter of another test.
fn run_case(alone: &Alone, engine: &Engine, linker: &vmfb::Linker, case: &Case, deadline: Duration) -> Run {
    let bytes = std::fs::read(&case.path).expect("a module");
    let file = bytes.len();
    let (charged, usage) = alone.measure(|| {
        let Ok(module) = Module::new(engine, bytes) else { return 0 };
        let mut charged = 0;
        for sequence in &case.sequences {
            let mut store = Store::new(engine, ());
            store.set_fuel(u64::MAX);
            store.set_deadline(Some(Instant::now() + deadline));
            let Ok(instance) = linker.instantiate(&mut store, &module) else { continue };
            for (call, _) in sequence {
                let inputs = call.inputs.iter().zip(&call.kinds).map(|(input, kind)| text::parse(input, kind));
                let inputs = inputs.collect::<Result<Vec<Value>, _>>();
                let function = instance.function(&store, &call.function);
                let (Ok(function), Ok(inputs)) = (function, inputs) else { continue };
                let _ = function.call(&mut store, &inputs);
            }
            charged = charged.max(store.account().peak() as usize);
        }
        charged
    });
    Run { outcome: Ok(Vec::new()), charged, usage, file }
}
