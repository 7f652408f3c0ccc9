//! Runs mutants of corpus modules: `mutants [--count=N] [--seed=S] [--mode=run|elf|native] [--tool=PATH] [FOLDER]`.
//!
//! `run` loads and calls each mutant in this process, with machine code denied, fuel and a memory limit; `elf` takes the ELF images
//! out of the modules, mutates them and does everything that loading does before code is entered; with `--tool` each mutant goes
//! through the real `vm-run` as a process of its own. Prints what became of them; ends with 1 if one crashed, hung or panicked.
//!
//! `native`, with `--tool` only, allows machine code. What damaged machine code does is nobody's promise, so signals and hangs are
//! counted and do not fail the run. It can do anything that this user can: use one without rights.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use vmfb::{Engine, Module};
use vmfb_fuzz_support::module::{FUEL, Outcome, run, sandbox};
use vmfb_fuzz_support::mutate::{Random, mutate};

/// `vm-run` ends itself after 10 s.
const LONGEST: Duration = Duration::from_secs(120);

struct Options {
    count: u64,
    seed: u64,
    mode: String,
    tool: Option<PathBuf>,
    folder: PathBuf,
}

fn main() -> ExitCode {
    let options = options();
    if options.mode == "native" && options.tool.is_none() {
        eprintln!("--mode=native runs machine code, which takes a process of its own: give --tool");
        return ExitCode::from(2);
    }
    let mut inputs = Vec::new();
    collect(&options.folder, &mut inputs);
    inputs.sort();
    let mut bytes: Vec<Vec<u8>> = inputs.iter().filter_map(|path| std::fs::read(path).ok()).filter(|bytes| bytes.len() < 1 << 17).collect();
    if options.mode == "elf" {
        bytes = bytes.iter().filter_map(|bytes| elf_image(bytes)).collect();
    }
    if bytes.is_empty() {
        eprintln!("no modules in {}", options.folder.display());
        return ExitCode::from(2);
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let engine = sandbox();
    let linker = vmfb::linker().expect("the built-in modules link");
    let (start, mut broken) = (Instant::now(), 0);
    for number in options.seed..options.seed + options.count {
        let mut random = Random::new(number);
        let original = &bytes[random.below(bytes.len())];
        let mut mutant = original.clone();
        let donor = bytes[random.below(bytes.len())].clone();
        mutate(&mut mutant, &donor, &mut random);
        let outcome = match &options.tool {
            Some(tool) => through_tool(tool, &mutant, function_of(&engine, original, &mut random), &options.mode),
            None if options.mode == "elf" => in_process(|| {
                vmfb_fuzz_support::elf::check(&mutant);
                if vmfb_fuzz_support::elf::loads(&mutant) { "loaded" } else { "refused" }
            }),
            None => in_process(|| match run(&engine, &linker, mutant, FUEL) {
                Outcome::Refused => "refused",
                Outcome::Failed => "failed",
                Outcome::Ran => "ran",
            }),
        };
        if outcome.starts_with("BROKEN") {
            broken += 1;
            eprintln!("mutant {number}: {outcome}");
        }
        *counts.entry(outcome).or_default() += 1;
        if (number - options.seed + 1).is_multiple_of(100_000) {
            eprintln!("{} mutants, {:?}, {:.0?}", number - options.seed + 1, counts, start.elapsed());
        }
    }
    println!("{} mutants of {} inputs, seed {}: {counts:?}, {:.0?}", options.count, bytes.len(), options.seed, start.elapsed());
    ExitCode::from(u8::from(broken > 0))
}

fn options() -> Options {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/modules");
    let mut options = Options { count: 10_000, seed: 1, mode: "run".into(), tool: None, folder: corpus };
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("--count", value)) => options.count = value.parse().expect("a number after --count="),
            Some(("--seed", value)) => options.seed = value.parse().expect("a number after --seed="),
            Some(("--mode", value)) => options.mode = value.into(),
            Some(("--tool", value)) => options.tool = Some(value.into()),
            _ => options.folder = argument.into(),
        }
    }
    options
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "vmfb") {
            files.push(path);
        }
    }
}

/// The first ELF image in a module, up to the end of the file.
fn elf_image(bytes: &[u8]) -> Option<Vec<u8>> {
    let start = bytes.windows(4).position(|window| window == b"\x7FELF")?;
    Some(bytes[start..].to_vec())
}

fn in_process(check: impl FnOnce() -> &'static str) -> String {
    let start = Instant::now();
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(_) if start.elapsed() > Duration::from_secs(10) => "BROKEN: took longer than 10 s".into(),
        Ok(outcome) => outcome.into(),
        Err(_) => "BROKEN: panicked".into(),
    }
}

/// One of the functions that a module exports, before it was damaged.
fn function_of(engine: &Engine, bytes: &[u8], random: &mut Random) -> Option<String> {
    let module = Module::new(engine, bytes.to_vec()).ok()?;
    let names: Vec<_> = module.exports().map(|export| export.name.to_owned()).filter(|name| !name.starts_with("__")).collect();
    names.get(random.below(names.len())).cloned()
}

/// Exit codes 0, 1 and, if the function is not there any more, 2 are how `vm-run` ends; a signal or a panic (101) is not.
fn through_tool(tool: &Path, mutant: &[u8], function: Option<String>, mode: &str) -> String {
    let path = std::env::temp_dir().join(format!("vmfb-mutant-{}.vmfb", std::process::id()));
    if let Err(error) = std::fs::write(&path, mutant) {
        return format!("BROKEN: cannot write: {error}");
    }
    let mut command = Command::new(tool);
    if mode != "native" {
        command.arg("--deny-native");
    }
    command.args(["--fuel=200000", "--max-memory=67108864", "--timeout=10", "--module_mode=preload", "--input=auto"]);
    command.args(function.map(|name| format!("--function={name}")));
    command.arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
    let ended = match command.spawn() {
        Ok(child) => wait(child),
        Err(error) => format!("BROKEN: cannot start: {error}"),
    };
    if mode == "native" { ended.replace("BROKEN: ", "") } else { ended }
}

/// How a child ends, which is killed if it takes too long.
fn wait(mut child: Child) -> String {
    let start = Instant::now();
    loop {
        match child.try_wait().map(|ended| ended.map(|status| status.code())) {
            Ok(Some(Some(0))) => return "ran".into(),
            Ok(Some(Some(1))) => return "refused or failed".into(),
            Ok(Some(Some(2))) => return "function not found".into(),
            Ok(Some(Some(code))) => return format!("BROKEN: exit code {code}"),
            Ok(Some(None)) => return "BROKEN: ended by a signal".into(),
            Ok(None) if start.elapsed() < LONGEST => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return format!("BROKEN: did not end in {LONGEST:?}");
            }
            Err(error) => return format!("BROKEN: cannot wait: {error}"),
        }
    }
}
