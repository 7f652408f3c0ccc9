//! `vm-bench`: how long calls of a function take.

use crate::command_line::{LimitArguments, ModuleArguments, main_of, write_output};
use crate::failure::{Failure, Result, printable};
use crate::interrupt;
use crate::parameters::ParameterArguments;
use crate::session::{self, Callable, Session};
use crate::statistics;
use crate::trace;
use crate::values::{ValueReader, counted};
use clap::{ArgAction, Parser};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use vmfb::BufferView;
use vmfb_vm::{Interruption, Ref, Status, Value};

/// Measures calls of functions: processor time of the calling thread, of the whole process, and wall time.
///
/// Inputs are made once, results are dropped after each call. Without --iterations a run has as many calls as fit into --min_time.
#[derive(Parser, Clone, Debug)]
#[command(name = "vm-bench", version, after_long_help = EXAMPLES)]
pub struct BenchArguments {
    #[command(flatten)]
    modules: ModuleArguments,

    /// Name of the function; without it all functions that take no arguments are measured
    #[arg(long, value_name = "NAME")]
    function: Option<String>,

    /// Value of the next argument, as vm-run takes it
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    input: Vec<String>,

    /// Calls of a run [default: as many as fit into the minimum time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,

    /// Runs; the median is reported
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repetitions: u32,

    /// Seconds that a run takes at least, where the number of calls is not given
    #[arg(long = "min_time", value_name = "SECONDS", default_value_t = 0.2)]
    min_time: f64,

    /// Print on the standard error how much memory was used
    #[arg(long = "print_statistics", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    print_statistics: bool,

    /// Print JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    json: bool,

    #[command(flatten)]
    parameters: ParameterArguments,

    #[command(flatten)]
    limits: LimitArguments,

    /// Show what happens: load, link, init; not for measuring
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,

    /// Read further flags from a file, one per line; lines that begin with # are comments
    #[arg(long, value_name = "FILE")]
    flagfile: Option<String>,
}

const EXAMPLES: &str = "\
EXAMPLES
  vm-bench model.vmfb --function=main --input=@image.npy
  vm-bench model.vmfb --function=main --input=auto:1 --iterations=1000 --repetitions=10 --json";

/// The tool.
pub fn main() -> ExitCode {
    main_of(run)
}

/// What one call took on average.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    thread: f64,
    process: f64,
    wall: f64,
}

struct Measurement {
    function: String,
    iterations: u64,
    runs: Vec<Times>,
}

fn run(arguments: BenchArguments) -> Result<ExitCode> {
    trace::start(arguments.verbose);
    // Loops that look for interruptions take a tenth longer. What is measured ends between two calls instead.
    let engine = session::engine(&arguments.limits, Interruption::Off);
    let modules = session::load(&engine, &arguments.modules)?;
    let mut linker = vmfb::linker()?;
    arguments.parameters.add_to(&mut linker)?;
    let mut session = Session::with_linker(&engine, modules, &arguments.limits, &linker)?;
    let callables = match (&arguments.function, arguments.input.as_slice()) {
        (None, []) => session.without_arguments()?,
        (name, _) => vec![session.callable(name.as_deref())?],
    };
    if callables.is_empty() {
        // Says which functions there are.
        session.callable(None)?;
        return Err(Failure::new(Status::NotFound, "no function without arguments").help("name one with --function and give its --input"));
    }
    let mut measurements = Vec::new();
    let mut outcome = Ok(ExitCode::SUCCESS);
    for callable in &callables {
        let mut measurement = Measurement { function: callable.name.clone(), iterations: 0, runs: Vec::new() };
        let measured = measure(&arguments, &mut session, callable, &mut measurement).map_err(|failure| callable.explain(failure));
        // What was measured before somebody asked for the end is reported.
        let ends = interrupt::exit_code().is_some();
        if !ends || !measurement.runs.is_empty() {
            measurements.push(measurement);
        }
        match measured {
            Err(failure) if ends => outcome = Err(failure),
            measured => measured?,
        }
        if ends {
            break;
        }
    }
    if arguments.print_statistics {
        eprint!("{}", statistics::text(&arguments.modules.device, session.store.account()));
    }
    if !measurements.is_empty() {
        write_output(&if arguments.json { json(&measurements) } else { table(&measurements) })?;
    }
    outcome
}

/// Measures until all is done or somebody asks for the end; whole runs are in `measurement` either way.
fn measure(arguments: &BenchArguments, session: &mut Session, callable: &Callable, measurement: &mut Measurement) -> Result<()> {
    let inputs = ValueReader::new(session.store.account().clone()).inputs(&arguments.input, &callable.inputs)?;
    // As in the official tool: a program that works in place finds what the call before has left.
    let inputs = inputs.iter().map(in_place).collect::<Result<Vec<_>>>()?;
    // The first call translates code and touches memory for the first time.
    let first = calls(session, callable, &inputs, 1)?;
    measurement.iterations = match arguments.iterations {
        Some(iterations) => iterations,
        None => calibrate(arguments, session, callable, &inputs, first)?,
    };
    for _ in 0..arguments.repetitions {
        measurement.runs.push(calls(session, callable, &inputs, measurement.iterations)?);
    }
    Ok(())
}

/// How many calls take the minimum time.
fn calibrate(arguments: &BenchArguments, session: &mut Session, callable: &Callable, inputs: &[Value], first: Times) -> Result<u64> {
    let wanted = arguments.min_time.clamp(0.0, 3600.0) * 1e9;
    let mut times = first;
    let mut iterations = 1u64;
    while times.wall * (iterations as f64) < wanted {
        let enough = (wanted / times.wall.max(1.0) * 1.1) as u64;
        let next = enough.clamp(iterations.saturating_add(1), iterations.saturating_mul(10));
        if enough <= next {
            return Ok(next);
        }
        iterations = next;
        times = calls(session, callable, inputs, iterations)?;
    }
    Ok(iterations)
}

/// The input, such that calls copy nothing of it.
fn in_place(input: &Value) -> Result<Value> {
    match input.as_ref().and_then(|reference| reference.downcast::<BufferView>()) {
        Some(view) => Ok(Value::Ref(Ref::new(view.in_place()?))),
        None => Ok(input.clone()),
    }
}

fn calls(session: &mut Session, callable: &Callable, inputs: &[Value], iterations: u64) -> Result<Times> {
    let (thread, process, wall) = (clock::thread(), clock::process(), Instant::now());
    for _ in 0..iterations {
        if interrupt::exit_code().is_some() {
            return Err(Failure::new(Status::Cancelled, "the measurement was interrupted"));
        }
        drop(callable.call(&mut session.store, inputs.to_vec())?);
    }
    let (wall, process, thread) = (wall.elapsed(), clock::process().saturating_sub(process), clock::thread().saturating_sub(thread));
    let each = |time: Duration| time.as_nanos() as f64 / iterations as f64;
    Ok(Times { thread: each(thread), process: each(process), wall: each(wall) })
}

impl Measurement {
    fn median(&self, time: impl Fn(&Times) -> f64) -> f64 {
        let mut times: Vec<f64> = self.runs.iter().map(time).collect();
        times.sort_by(f64::total_cmp);
        let middle = |index: usize| times.get(index).copied().unwrap_or_default();
        (middle(times.len() / 2) + middle(times.len().saturating_sub(1) / 2)) / 2.0
    }
}

fn table(measurements: &[Measurement]) -> String {
    let mut text = String::new();
    for measurement in measurements {
        let _ = writeln!(
            text,
            "{}: {} thread CPU, {} process CPU, {} wall per call (median of {} of {})",
            printable(&measurement.function),
            duration(measurement.median(|times| times.thread)),
            duration(measurement.median(|times| times.process)),
            duration(measurement.median(|times| times.wall)),
            counted(measurement.runs.len(), "run"),
            counted(usize::try_from(measurement.iterations).unwrap_or(usize::MAX), "call")
        );
    }
    text
}

fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e3 => format!("{ns:.1} ns"),
        ns if ns < 1e6 => format!("{:.3} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.3} ms", ns / 1e6),
        ns => format!("{:.3} s", ns / 1e9),
    }
}

/// One object for one function, a list for several.
fn json(measurements: &[Measurement]) -> String {
    let objects: Vec<String> = measurements.iter().map(json_object).collect();
    match objects.as_slice() {
        [object] => format!("{object}\n"),
        _ => format!("[\n{}\n]\n", objects.join(",\n")),
    }
}

fn json_object(measurement: &Measurement) -> String {
    let runs: Vec<String> =
        measurement.runs.iter().map(|times| format!("{{{}}}", json_times(times.thread, times.process, times.wall))).collect();
    let medians = json_times(
        measurement.median(|times| times.thread),
        measurement.median(|times| times.process),
        measurement.median(|times| times.wall),
    );
    format!(
        "{{\"function\": {}, \"iterations\": {}, {medians}, \"runs\": [{}]}}",
        json_string(&measurement.function),
        measurement.iterations,
        runs.join(", ")
    )
}

fn json_times(thread: f64, process: f64, wall: f64) -> String {
    format!("\"cpu_ns_per_call\": {thread:.3}, \"process_cpu_ns_per_call\": {process:.3}, \"wall_ns_per_call\": {wall:.3}")
}

fn json_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            _ if character.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}

/// Processor time.
#[cfg(unix)]
mod clock {
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;

    pub(super) fn thread() -> Duration {
        read(ClockId::ThreadCPUTime)
    }

    pub(super) fn process() -> Duration {
        read(ClockId::ProcessCPUTime)
    }

    fn read(clock: ClockId) -> Duration {
        let time = clock_gettime(clock);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

/// Where processor time cannot be read, wall time stands for it.
#[cfg(not(unix))]
mod clock {
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    static START: OnceLock<Instant> = OnceLock::new();

    pub(super) fn thread() -> Duration {
        START.get_or_init(Instant::now).elapsed()
    }

    pub(super) fn process() -> Duration {
        thread()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_json_that_others_read() {
        let times = |thread| Times { thread, process: 2.0 * thread, wall: 3.0 * thread };
        let measurement =
            |name: &str| Measurement { function: name.to_owned(), iterations: 7, runs: vec![times(4.0), times(1.0), times(2.0)] };
        let one: serde_json::Value = serde_json::from_str(&json(&[measurement("a\"\\\u{1}ü")])).unwrap();
        assert_eq!(one["function"], "a\"\\\u{1}ü");
        assert_eq!(one["iterations"], 7);
        assert_eq!(one["cpu_ns_per_call"], 2.0);
        assert_eq!(one["wall_ns_per_call"], 6.0);
        assert_eq!(one["runs"].as_array().unwrap().len(), 3);
        let two: serde_json::Value = serde_json::from_str(&json(&[measurement("a"), measurement("b")])).unwrap();
        assert_eq!(two[1]["function"], "b");
    }

    #[test]
    fn an_even_number_of_runs_has_the_mean_of_the_middle_two() {
        let runs = [1.0, 9.0, 3.0, 5.0].map(|wall| Times { wall, ..Times::default() }).to_vec();
        let measurement = Measurement { function: String::new(), iterations: 1, runs };
        assert_eq!(measurement.median(|times| times.wall), 4.0);
    }
}
