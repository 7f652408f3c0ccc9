//! Command lines: flag files, both spellings of flags, and the arguments that several tools share.

use crate::failure::{Colour, Failure, Result, io_status};
use crate::interrupt;
use crate::official;
use clap::{ArgAction, Args, Parser, ValueEnum};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use vmfb_vm::Status;

/// Flag files may name flag files to this depth.
const MAX_FLAG_FILE_DEPTH: usize = 8;

/// What to load.
#[derive(Args, Clone, Debug)]
pub struct ModuleArguments {
    /// Module files, dependencies first; `-` is the standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,

    /// Module file, as in the official tool; may be repeated, dependencies first
    #[arg(long, value_name = "FILE")]
    pub module: Vec<String>,

    /// Map the file and leave constants in it, or read it whole
    ///
    /// A mapped file must not be truncated while it is in use. With --deny-native files are read.
    #[arg(long = "module_mode", value_name = "MODE", value_enum, default_value_t = ModuleMode::Mmap)]
    pub module_mode: ModuleMode,

    /// Where tensors live; every name means this machine's processor
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    pub device: Vec<String>,
}

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModuleMode {
    /// Mapped: constants stay in the file until they are used.
    Mmap,
    /// Read whole.
    Preload,
}

/// What programs may use.
#[derive(Args, Clone, Debug)]
pub struct LimitArguments {
    /// End with RESOURCE_EXHAUSTED after this much work: about one unit per VM instruction
    #[arg(long, value_name = "UNITS")]
    pub fuel: Option<u64>,

    /// End with DEADLINE_EXCEEDED after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<std::time::Duration>,

    /// Most memory that tensors, buffers and lists may take, for example 2GiB [default: 80 % of the machine's]
    #[arg(long = "max-memory", value_name = "BYTES", value_parser = byte_count)]
    pub max_memory: Option<u64>,

    /// Refuse machine code: only VMVX executables load, for modules that you do not trust
    #[arg(long = "deny-native", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    pub deny_native: bool,

    /// Bytes of stack for machine code, for example 8MiB [default: 4MiB]
    #[arg(long = "stack-size", value_name = "BYTES", value_parser = stack_size)]
    pub stack_size: Option<usize>,

    /// Run modules that were compiled with processor features which this machine lacks
    #[arg(long = "allow-unsupported-cpu", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    pub allow_unsupported_cpu: bool,

    /// Threads that work on one dispatch [default: as many as the machine runs at once]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// The same, as in the official tool; 0 leaves the choice to the tool
    #[arg(long = "task_topology_group_count", value_name = "N", hide = true)]
    pub task_topology_group_count: Option<usize>,

    /// Most threads that are chosen where no number is given, as in the official tool
    #[arg(long = "task_topology_max_group_count", value_name = "N", hide = true)]
    pub task_topology_max_group_count: Option<usize>,
}

impl LimitArguments {
    /// How many threads work on one dispatch.
    pub fn thread_count(&self) -> usize {
        let chosen = self.threads.or(self.task_topology_group_count).filter(|threads| *threads > 0);
        let most = self.task_topology_max_group_count.unwrap_or(usize::MAX).max(1);
        chosen.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from).min(most))
    }
}

/// Reads the command line of this process and runs the tool; problems go to the standard error.
pub fn main_of<T: Parser>(run: impl FnOnce(T) -> Result<ExitCode>) -> ExitCode {
    let arguments = match parse::<T>(std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()) {
        Ok(arguments) => arguments,
        Err(Problem::Clap(error)) => {
            // Help and version are no errors and go to the standard output.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
        Err(Problem::Failure(failure)) => return report(&failure),
    };
    let code = run(arguments).unwrap_or_else(|failure| report(&failure));
    // Who asked for the end is told that it came to one.
    interrupt::exit_code().unwrap_or(code)
}

/// Shows a failure on the standard error.
pub fn report(failure: &Failure) -> ExitCode {
    if failure.is_silent() {
        return failure.exit_code();
    }
    let mut error = std::io::stderr();
    let plain = std::env::var_os("NO_COLOR").is_some() || !error.is_terminal();
    let colour = if plain { Colour::Plain } else { Colour::Ansi };
    // Nothing is left to do if even this cannot be written.
    let _ = error.write_all(failure.render(colour).as_bytes());
    failure.exit_code()
}

/// Writes text to the standard output.
pub fn write_output(text: &str) -> Result<ExitCode> {
    write_bytes(text.as_bytes())
}

/// Writes bytes to the standard output.
pub fn write_bytes(bytes: &[u8]) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::output(&error)),
    }
}

enum Problem {
    Clap(clap::Error),
    Failure(Failure),
}

fn parse<T: Parser>(arguments: Vec<String>) -> std::result::Result<T, Problem> {
    let mut arguments = arguments.into_iter();
    let program = arguments.next().unwrap_or_default();
    // A flag that is given again replaces what a flag file said.
    let once: Vec<clap::Id> = T::command()
        .get_arguments()
        .filter(|argument| matches!(argument.get_action(), ArgAction::Set) && !argument.is_positional())
        .map(|argument| argument.get_id().clone())
        .collect();
    let mut command = once.iter().fold(T::command(), |command, id| command.mut_arg(id, |argument| argument.overrides_with(id.clone())));
    command.build();
    let expanded = expand_flag_files(arguments.collect(), &command).map_err(Problem::Failure)?;
    if let Some(failure) = expanded.iter().find_map(|argument| unsupported(&command, argument)) {
        return Err(Problem::Failure(failure));
    }
    let spelled = expanded.into_iter().map(|argument| spell(&command, argument));
    let matches = command.clone().try_get_matches_from(std::iter::once(program).chain(spelled)).map_err(Problem::Clap)?;
    T::from_arg_matches(&matches).map_err(|error| Problem::Clap(error.format(&mut command)))
}

/// Spells a flag as the command does: `-` and `_` mean the same.
fn spell(command: &clap::Command, argument: String) -> String {
    let Some(flag) = argument.strip_prefix("--") else { return argument };
    let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
    match (known_flag(command, name), value) {
        (Some(long), Some(value)) => format!("--{long}={value}"),
        (Some(long), None) => format!("--{long}"),
        _ => argument,
    }
}

/// The flag with this name, as the command spells it.
fn known_flag<'c>(command: &'c clap::Command, name: &str) -> Option<&'c str> {
    let plain = |name: &str| name.replace('-', "_");
    command.get_arguments().filter_map(clap::Arg::get_long).find(|long| plain(long) == plain(name))
}

/// What is said of a flag that only the official tools have; `None` for other arguments.
fn unsupported(command: &clap::Command, argument: &str) -> Option<Failure> {
    let (name, _) = flag_parts(argument)?;
    let flag = official::find(name).filter(|_| known_flag(command, name).is_none())?;
    Some(Failure::usage(format!("--{name} is not supported here, because {}", flag.because)))
}

/// Name and value of `--name=value`; a flag without a value has none.
fn flag_parts(argument: &str) -> Option<(&str, Option<&str>)> {
    let flag = argument.strip_prefix("--").filter(|flag| !flag.is_empty())?;
    Some(flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value))))
}

/// The flags of a flag file. Values may stand in quotes. What only the official tools have is passed over where it asks for
/// nothing, so that their `--help` text, which is a flag file, can be used as it is.
fn flags_of(text: &str, command: &clap::Command) -> Vec<String> {
    let help = official::is_help_text(text);
    // Prose stands between the flags of a help text; examples in it are indented.
    let lines = text.lines().filter(|line| !help || line.starts_with("--")).map(str::trim);
    let flags = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let Some((name, Some(value))) = flag_parts(line) else { return line.to_owned() };
        let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        format!("--{name}={bare}")
    });
    let wanted = |line: &String| {
        let Some((name, value)) = flag_parts(line) else { return true };
        match known_flag(command, name) {
            // An empty value in a help text says that nothing was chosen.
            Some(_) => !(help && value == Some("")),
            None => !official::find(name).is_some_and(|flag| flag.asks_for_nothing(value.unwrap_or("true"))),
        }
    };
    flags.filter(wanted).collect()
}

/// Replaces `--flagfile=PATH` by the flags in that file: one per line, `#` begins a comment line.
fn expand_flag_files(arguments: Vec<String>, command: &clap::Command) -> Result<Vec<String>> {
    let mut arguments = arguments;
    for _ in 0..MAX_FLAG_FILE_DEPTH {
        let mut expanded = Vec::with_capacity(arguments.len());
        let mut any = false;
        let mut remaining = arguments.into_iter();
        while let Some(argument) = remaining.next() {
            let path = match argument.strip_prefix("--flagfile") {
                Some("") => remaining.next().ok_or_else(|| Failure::usage("--flagfile names no file"))?,
                Some(value) if value.starts_with('=') => value.trim_start_matches('=').to_owned(),
                _ => {
                    expanded.push(argument);
                    continue;
                }
            };
            any = true;
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Failure::new(io_status(&error), format!("cannot read the flag file {path}: {error}")))?;
            expanded.extend(flags_of(&text, command));
        }
        arguments = expanded;
        if !any {
            return Ok(arguments);
        }
    }
    Err(Failure::new(Status::InvalidArgument, format!("flag files name flag files more than {MAX_FLAG_FILE_DEPTH} deep")))
}

fn device(text: &str) -> std::result::Result<String, String> {
    match text.strip_suffix("://").unwrap_or(text) {
        "local" | "local-sync" | "local-task" => Ok(text.to_owned()),
        _ => Err("the devices are local, local-sync and local-task".to_owned()),
    }
}

fn seconds(text: &str) -> std::result::Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "wanted seconds, for example 1.5".to_owned())?;
    std::time::Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// A number of bytes with an optional unit.
fn byte_count(text: &str) -> std::result::Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).unwrap_or((text, ""));
    let scale: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "K" | "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "M" | "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        unit => return Err(format!("unknown unit '{unit}'; write bytes, KiB, MiB, GiB or TiB")),
    };
    let number: u64 = number.parse().map_err(|_| "wanted a number of bytes, for example 512MiB".to_owned())?;
    number.checked_mul(scale).ok_or_else(|| "this is more than 64 bits can count".to_owned())
}

fn stack_size(text: &str) -> std::result::Result<usize, String> {
    usize::try_from(byte_count(text)?).map_err(|_| "this is more than the address space".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser, Debug)]
    struct Example {
        #[command(flatten)]
        modules: ModuleArguments,
        #[command(flatten)]
        limits: LimitArguments,
    }

    fn example(arguments: &[&str]) -> Option<Example> {
        parse(std::iter::once("x").chain(arguments.iter().copied()).map(str::to_owned).collect()).ok()
    }

    #[test]
    fn flags_are_known_in_both_spellings() {
        for spelling in ["--module_mode=preload", "--module-mode=preload"] {
            assert_eq!(example(&[spelling]).unwrap().modules.module_mode, ModuleMode::Preload);
        }
        for spelling in ["--deny-native", "--deny_native", "--deny_native=true"] {
            assert!(example(&[spelling]).unwrap().limits.deny_native);
        }
        assert!(!example(&["--deny-native=false"]).unwrap().limits.deny_native);
        assert!(example(&["--module_modes=preload"]).is_none());
        assert!(example(&["--device=cuda"]).is_none());
        assert!(example(&["--device=local-task://"]).is_some());
    }

    #[test]
    fn flag_files_stand_for_their_lines() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("inner"));
        std::fs::write(&inner, "--fuel=7\n").unwrap();
        std::fs::write(&outer, format!("# comment\n\n --module=a b.vmfb \n--flagfile={}\n", inner.display())).unwrap();
        let read = example(&[&format!("--flagfile={}", outer.display()), "--module=c"]).unwrap();
        assert_eq!(read.modules.module, ["a b.vmfb", "c"]);
        assert_eq!(read.limits.fuel, Some(7));
        std::fs::write(&inner, format!("--flagfile={}\n", inner.display())).unwrap();
        assert!(example(&[&format!("--flagfile={}", inner.display())]).is_none());
        assert!(example(&["--flagfile=/none"]).is_none());
        assert!(example(&["--flagfile"]).is_none());
        std::fs::write(&inner, "--fuel=8\n").unwrap();
        assert_eq!(example(&["--flagfile", inner.to_str().unwrap()]).unwrap().limits.fuel, Some(8));
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(byte_count("512"), Ok(512));
        assert_eq!(byte_count("2GiB"), Ok(2 << 30));
        assert_eq!(byte_count("3 MB"), Ok(3_000_000));
        for text in ["", "x", "-1", "1XB", "99999999999999T", "1.5G"] {
            assert!(byte_count(text).is_err(), "{text}");
        }
        assert_eq!(seconds("1.5"), Ok(std::time::Duration::from_millis(1500)));
        for text in ["", "-1", "nan", "inf", "1e30"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
