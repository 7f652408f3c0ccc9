//! `vm-run`: calls a function of a module.

use crate::check::check_failures;
use crate::command_line::{LimitArguments, ModuleArguments, main_of, write_output};
use crate::compare::{Equality, Tolerances, compare};
use crate::devices::DeviceArguments;
use crate::failure::{Failure, Result};
use crate::limited::Limited;
use crate::output::{self, Destination};
use crate::parameters::ParameterArguments;
use crate::report;
use crate::session::{self, Callable, Session};
use crate::statistics;
use crate::trace;
use crate::values::counted;
use crate::values::{Expectation, ValueReader};
use clap::{ArgAction, Parser};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use vmfb::modules::check::{Check, CheckReport};
use vmfb_vm::{Engine, Interruption, Meter, Status, Value};

const EXAMPLES: &str = include_str!("run_help.txt");

/// Runs a function of a module that the IREE compiler wrote.
#[derive(Parser, Clone, Debug)]
#[command(name = "vm-run", version, after_long_help = EXAMPLES)]
pub struct RunArguments {
    #[command(flatten)]
    modules: ModuleArguments,

    /// Name of the function; may be left out if the module exports only one
    #[arg(long, value_name = "NAME")]
    function: Option<String>,

    /// Value of the next argument; see VALUES below
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    input: Vec<String>,

    /// Where the next result goes: `-` prints it, `@file` writes it, `+file` appends it, nothing drops it
    ///
    /// Files that end in .npy hold arrays, others raw bytes. Without this flag all results are printed.
    #[arg(long, value_name = "DEST", allow_hyphen_values = true)]
    output: Vec<Destination>,

    /// What the next result must be; `(ignored)` accepts anything
    ///
    /// Results are compared instead of printed; the exit code is 1 if one differs.
    #[arg(long = "expected_output", value_name = "VALUE", allow_hyphen_values = true)]
    expected_output: Vec<String>,

    /// Elements of each tensor that are printed
    #[arg(long = "output_max_element_count", value_name = "N", default_value_t = report::DEFAULT_ELEMENT_LIMIT)]
    output_max_element_count: u64,

    /// List the functions of the modules and stop
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    list: bool,

    #[command(flatten)]
    devices: DeviceArguments,

    #[command(flatten)]
    comparison: ComparisonArguments,

    #[command(flatten)]
    parameters: ParameterArguments,

    #[command(flatten)]
    limits: LimitArguments,

    /// Show what happens: load, link, init, invoke, dispatch; twice for more
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,

    /// Write each instruction of bytecode to the standard error before it runs
    #[arg(long = "trace_execution", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    trace_execution: bool,

    /// Print how much memory was used
    #[arg(long = "print_statistics", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    print_statistics: bool,

    /// Read further flags from a file, one per line; lines that begin with # are comments
    #[arg(long, value_name = "FILE")]
    flagfile: Option<String>,
}

/// How results are compared with what is expected.
#[derive(clap::Args, Clone, Debug)]
struct ComparisonArguments {
    /// `approximate` tolerates small differences of floats, `exact` none
    #[arg(long = "equality_mode", value_name = "MODE", default_value = "approximate")]
    equality_mode: Equality,

    /// Tolerated difference of f16
    #[arg(long = "expected_f16_threshold", value_name = "X", default_value_t = Tolerances::default().f16)]
    expected_f16_threshold: f64,

    /// Tolerated difference of f32
    #[arg(long = "expected_f32_threshold", value_name = "X", default_value_t = Tolerances::default().f32)]
    expected_f32_threshold: f64,

    /// Tolerated difference of f64
    #[arg(long = "expected_f64_threshold", value_name = "X", default_value_t = Tolerances::default().f64)]
    expected_f64_threshold: f64,

    /// Tolerated difference of bf16
    #[arg(long = "expected_bf16_threshold", value_name = "X", default_value_t = Tolerances::default().bf16)]
    expected_bf16_threshold: f64,

    /// Tolerated difference as a fraction of the expected value, in addition
    #[arg(long = "expected_rtol", value_name = "X", default_value_t = Tolerances::default().relative)]
    expected_rtol: f64,

    /// Tolerated difference of integers, for quantised programs
    #[arg(long = "expected_integer_threshold", value_name = "N", default_value_t = Tolerances::default().integer)]
    expected_integer_threshold: u64,
}

impl ComparisonArguments {
    fn tolerances(&self) -> Tolerances {
        Tolerances {
            equality: self.equality_mode,
            f16: self.expected_f16_threshold,
            f32: self.expected_f32_threshold,
            f64: self.expected_f64_threshold,
            bf16: self.expected_bf16_threshold,
            relative: self.expected_rtol,
            integer: self.expected_integer_threshold,
        }
    }
}

/// The tool.
pub fn main() -> ExitCode {
    main_of(run)
}

fn run(arguments: RunArguments) -> Result<ExitCode> {
    trace::start(arguments.verbose);
    if let Some(answer) = arguments.devices.answer()? {
        return write_output(&answer);
    }
    let config = session::config(&arguments.limits, Interruption::On);
    let engine = Engine::new(if arguments.trace_execution { config.trace(trace::tracer()) } else { config });
    let modules = session::load(&engine, &arguments.modules)?;
    if arguments.list {
        return print(|out| {
            for (path, module) in &modules {
                writeln!(out, "module {} ({})", crate::failure::printable(module.name()), crate::failure::printable(path))?;
                writeln!(out, "{}", session::listing(module))?;
            }
            Ok(())
        });
    }
    let report = CheckReport::new();
    let mut linker = vmfb::linker()?;
    linker.add_native(Check::new(report.clone()))?;
    arguments.parameters.add_to(&mut linker)?;
    let mut session = Session::with_linker(&engine, modules, &arguments.limits, &linker)?;
    let code = call(&arguments, &mut session);
    let failed = check_failures(&report);
    failed.iter().for_each(|failure| eprintln!("{failure}"));
    if arguments.print_statistics {
        eprint!("{}", statistics::text(&arguments.modules.device, session.store.account()));
    }
    if failed.is_empty() { code } else { code.map(|_| ExitCode::from(1)) }
}

fn call(arguments: &RunArguments, session: &mut Session) -> Result<ExitCode> {
    let callable = session.callable(arguments.function.as_deref())?;
    check_outputs(arguments, &callable)?;
    let mut reader = ValueReader::new(session.store.account().clone());
    let explain = |failure| callable.explain(failure);
    let inputs = reader.inputs(&arguments.input, &callable.inputs).map_err(explain)?;
    let expected = match arguments.expected_output.as_slice() {
        [] => None,
        texts => Some(reader.expectations(texts, &callable.outputs).map_err(explain)?),
    };
    print(|out| writeln!(out, "EXEC @{}", crate::failure::printable(&callable.name)))?;
    let results = {
        let _entered = tracing::debug_span!("invoke", function = callable.name).entered();
        callable.call(&mut session.store, inputs).map_err(explain)?
    };
    match expected {
        Some(expected) => judge(arguments, session.store.meter(), &results, &expected).map_err(explain),
        None => deliver(arguments, session.store.meter(), &results).map_err(explain),
    }
}

fn check_outputs(arguments: &RunArguments, callable: &Callable) -> Result<()> {
    let (found, wanted) = (arguments.output.len(), callable.outputs.len());
    if found == 0 || found == wanted {
        return Ok(());
    }
    let message = format!("@{} has {}, --output is given {}", callable.name, counted(wanted, "result"), counted(found, "time"));
    Err(Failure::new(Status::OutOfRange, message).help("write one --output for each result; --output= drops it"))
}

/// Says whether results are what was expected.
fn judge(arguments: &RunArguments, meter: &mut Meter, results: &[Value], expected: &[Expectation]) -> Result<ExitCode> {
    let differences = compare(results, expected, &arguments.comparison.tolerances(), arguments.output_max_element_count, meter)?;
    print_within(meter, |out| {
        differences.iter().try_for_each(|difference| writeln!(out, "{difference}"))?;
        match differences.as_slice() {
            [] => writeln!(out, "[SUCCESS] all function outputs matched their expected values."),
            _ => Ok(()),
        }
    })?;
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Sends results to where the command line wants them.
fn deliver(arguments: &RunArguments, meter: &mut Meter, results: &[Value]) -> Result<ExitCode> {
    let limit = arguments.output_max_element_count;
    let mut out = BufWriter::new(Limited::new(io::stdout().lock(), meter));
    if arguments.output.is_empty() {
        let written = results.iter().enumerate().try_for_each(|(index, result)| report::write_result(&mut out, index, result, limit));
        written.map_err(|error| Failure::output(&error))?;
    }
    for (result, destination) in results.iter().zip(&arguments.output) {
        output::write(&mut out, result, destination, limit)?;
    }
    out.flush().map_err(|error| Failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<ExitCode> {
    print_to(io::stdout().lock(), write)
}

fn print_within(meter: &mut Meter, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<ExitCode> {
    print_to(Limited::new(io::stdout().lock(), meter), write)
}

fn print_to(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<ExitCode> {
    let mut out = BufWriter::new(out);
    write(&mut out).and_then(|()| out.flush()).map_err(|error| Failure::output(&error))?;
    Ok(ExitCode::SUCCESS)
}
