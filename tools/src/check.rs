//! `vm-check`: runs the test functions of a module.

use crate::command_line::{LimitArguments, ModuleArguments, main_of};
use crate::failure::{Colour, Failure, Result, io_status, printable};
use crate::interrupt;
use crate::parameters::ParameterArguments;
use crate::session::{self, Session, public_exports};
use crate::trace;
use crate::values::counted;
use clap::{ArgAction, Parser};
use std::io::{self, Write};
use std::process::ExitCode;
use vmfb::hal::coarse_fences::takes_coarse_fences;
use vmfb::modules::check::{Check, CheckReport};
use vmfb::{Engine, ExportInfo, Interruption, Module};
use vmfb_vm::Status;

/// Runs the test functions of a module: all that it exports but those with `__` in front or `$` in their names.
///
/// A test takes and returns nothing. It fails if the call fails, or if one of its expectations (functions of the module `check`) is
/// not met. Each test has an instance of its own.
#[derive(Parser, Clone, Debug)]
#[command(name = "vm-check", version)]
pub struct CheckArguments {
    #[command(flatten)]
    modules: ModuleArguments,

    /// Run only the tests whose names contain this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// List the tests and stop
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    list: bool,

    /// Succeed if a test fails, fail if none does
    #[arg(long = "expect_failure", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    expect_failure: bool,

    #[command(flatten)]
    parameters: ParameterArguments,

    #[command(flatten)]
    limits: LimitArguments,

    /// Show what happens: load, link, init, invoke, dispatch; twice for more
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,

    /// Read further flags from a file, one per line; lines that begin with # are comments
    #[arg(long, value_name = "FILE")]
    flagfile: Option<String>,
}

/// The tool.
pub fn main() -> ExitCode {
    main_of(run)
}

fn run(arguments: CheckArguments) -> Result<ExitCode> {
    trace::start(arguments.verbose);
    let engine = session::engine(&arguments.limits, Interruption::On);
    let modules = session::load(&engine, &arguments.modules)?;
    let tests = tests(&modules, arguments.filter.as_deref())?;
    if arguments.list {
        tests.iter().try_for_each(|test| print(&format!("{}\n", printable(test))))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut failed, mut run) = (0, 0);
    for test in &tests {
        let complaints = run_test(&engine, &modules, &arguments, test);
        let verdict = if complaints.is_empty() { "ok  " } else { "FAIL" };
        print(&format!("{verdict}  {}\n", printable(test)))?;
        for line in complaints.iter().flat_map(|complaint| complaint.lines()) {
            print(&format!("      {line}\n"))?;
        }
        failed += usize::from(!complaints.is_empty());
        run += 1;
        if interrupt::exit_code().is_some() {
            break;
        }
    }
    let left = if run < tests.len() { format!(", {} not run (interrupted)", tests.len() - run) } else { String::new() };
    print(&format!("{}: {} passed, {failed} failed{left}\n", counted(tests.len(), "test"), run - failed))?;
    Ok(if (failed > 0) == arguments.expect_failure { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The names of the tests of the last module.
fn tests(modules: &[(String, Module)], filter: Option<&str>) -> Result<Vec<String>> {
    let Some((path, module)) = modules.last() else { return Err(Failure::usage("no module is named")) };
    let wanted = |export: &ExportInfo<'_>| filter.is_none_or(|filter| export.name.contains(filter));
    let tests = public_exports(module).filter(wanted).map(|export| test_name(module, &export)).collect::<Result<Vec<_>>>()?;
    match (tests.is_empty(), filter) {
        (false, _) => Ok(tests),
        (true, None) => Err(Failure::new(Status::NotFound, format!("{path} has no test functions"))),
        (true, Some(filter)) => {
            let message = format!("{path} has no test function with '{filter}' in its name");
            Err(Failure::new(Status::NotFound, message).help(format!("it has\n{}", session::listing_near(module, filter))))
        }
    }
}

fn test_name(module: &Module, export: &ExportInfo<'_>) -> Result<String> {
    let fences = if takes_coarse_fences(module.definition(), export.name) { 2 } else { 0 };
    if export.convention.arguments.len() == fences && export.convention.results.is_empty() {
        return Ok(export.name.to_owned());
    }
    let message = format!("the function '{}' is not a test: it takes or returns something", export.name);
    Err(Failure::invalid(message).help("name the tests with --filter=TEXT, or call the function with vm-run"))
}

/// Runs one test in a store of its own; gives what it has to complain of.
fn run_test(engine: &Engine, modules: &[(String, Module)], arguments: &CheckArguments, test: &str) -> Vec<String> {
    let report = CheckReport::new();
    let outcome = call(engine, modules, arguments, test, &report);
    let mut complaints = check_failures(&report);
    if let Err(failure) = outcome {
        complaints.push(failure.render(Colour::Plain).trim_end().to_owned());
    }
    complaints
}

fn call(engine: &Engine, modules: &[(String, Module)], arguments: &CheckArguments, test: &str, report: &CheckReport) -> Result<()> {
    let mut linker = vmfb::linker()?;
    linker.add_native(Check::new(report.clone()))?;
    arguments.parameters.add_to(&mut linker)?;
    let mut session = Session::with_linker(engine, modules.to_vec(), &arguments.limits, &linker)?;
    let callable = session.callable(Some(test))?;
    callable.call(&mut session.store, Vec::new())?;
    Ok(())
}

/// The expectations that were not met, as texts.
pub fn check_failures(report: &CheckReport) -> Vec<String> {
    let count = report.count();
    let mut texts: Vec<String> = report.take().iter().map(ToString::to_string).collect();
    if count > texts.len() as u64 {
        texts.push(format!("and {} more", count - texts.len() as u64));
    }
    texts
}

fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::new(io_status(&error), format!("cannot write to the standard output: {error}")))
}
