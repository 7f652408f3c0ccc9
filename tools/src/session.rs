//! Modules in a store, ready to be called: loading, limits, linking, and the choice of a function.

use crate::asserted;
use crate::command_line::{LimitArguments, ModuleArguments, ModuleMode};
use crate::declaration::{Declaration, Slot, input_slots, input_slots_before_fences, output_slots};
use crate::failure::{Failure, Result, io_status, printable};
use crate::file_kind::{self, FileKind};
use crate::suggest::{MOST_SUGGESTIONS, nearest};
use crate::{interrupt, start_help};
use std::io::Read;
use std::time::Instant;
use vmfb::{
    Config, Engine, FuelMetering, Func, Instance, Interruption, KERNEL_STACK_SIZE, Linker, Module, NativeCode, Store, StoreCore,
    UnsupportedCpu, Value,
};
use vmfb_bytecode::calling_convention::Kind;
use vmfb_hal::{LOST_CONSTANT_HINT, coarse_fences};
use vmfb_vm::{ExportInfo, Status};

/// Part of the machine's memory that programs may take unless told otherwise, in percent.
const MEMORY_PERCENT: u64 = 80;

/// Largest module that is read from the standard input.
const STANDARD_INPUT_LIMIT: u64 = 4 << 30;

/// Modules in a store.
pub struct Session {
    /// The store.
    pub store: Store<()>,
    instances: Vec<(Module, Instance)>,
}

/// A function that can be called, and what is known of it.
pub struct Callable {
    instance: Instance,
    func: Func,
    fences: bool,
    /// Whether its module was compiled for an inline mode.
    inline: bool,
    /// Name.
    pub name: String,
    /// The declaration, as text.
    pub declaration: Option<String>,
    /// Arguments.
    pub inputs: Vec<Slot>,
    /// Results.
    pub outputs: Vec<Slot>,
}

/// Loads the modules that the command line names.
pub fn load(engine: &Engine, arguments: &ModuleArguments) -> Result<Vec<(String, Module)>> {
    let paths: Vec<&String> = arguments.module.iter().chain(&arguments.files).collect();
    if paths.is_empty() {
        return Err(Failure::usage("no module is named").help("name a .vmfb file, for example: vm-run model.vmfb --list"));
    }
    let mapped = arguments.module_mode == ModuleMode::Mmap && engine.native_code() == NativeCode::Allow;
    let module = |path: &String| {
        match path.as_str() {
            "-" => return read_standard_input(engine),
            path if mapped => Module::from_mapped(engine, path),
            path => Module::from_file(engine, path),
        }
        .map_err(|error| with_kind(error.into(), path, file_kind::of_path(path, &tool())))
    };
    paths.into_iter().map(|path| Ok((path.clone(), module(path).map_err(|failure| with_load_help(failure, path))?))).collect()
}

/// The engine that the command line asks for. A time limit can only be kept with interruption.
pub fn engine(limits: &LimitArguments, interruption: Interruption) -> Engine {
    Engine::new(config(limits, interruption))
}

/// The configuration of that engine.
pub fn config(limits: &LimitArguments, interruption: Interruption) -> Config {
    let threads = limits.thread_count();
    let memory = limits.max_memory.unwrap_or_else(|| system_memory().map_or(u64::MAX, |bytes| bytes / 100 * MEMORY_PERCENT));
    tracing::debug!(threads, memory, deny_native = limits.deny_native, "limits");
    Config::new()
        .fuel(if limits.fuel.is_some() { FuelMetering::On } else { FuelMetering::Off })
        .interruption(if limits.timeout.is_some() { Interruption::On } else { interruption })
        .native_code(if limits.deny_native { NativeCode::Deny } else { NativeCode::Allow })
        .memory_limit(memory)
        .kernel_stack_size(limits.stack_size.unwrap_or(KERNEL_STACK_SIZE))
        .unsupported_cpu(if limits.allow_unsupported_cpu { UnsupportedCpu::Allow } else { UnsupportedCpu::Refuse })
        .worker_threads(threads)
}

impl Session {
    /// Makes an instance of each module, in order, which may import what the linker has.
    pub fn with_linker(engine: &Engine, modules: Vec<(String, Module)>, limits: &LimitArguments, linker: &Linker) -> Result<Self> {
        let mut store = Store::new(engine, ());
        interrupt::watch(store.interrupt_handle());
        if let Some(fuel) = limits.fuel {
            store.set_fuel(fuel);
        }
        if let Some(timeout) = limits.timeout {
            store.set_deadline(Instant::now().checked_add(timeout));
        }
        let mut instances = Vec::new();
        for (path, module) in modules {
            let instance = linker.instantiate(&mut store, &module).map_err(|error| {
                let help = start_help::of(&error, &module, linker.missing_modules(&store, &module), &path);
                Failure::from(error).context(format!("starting {path}")).maybe_help(help)
            })?;
            instances.push((module, instance));
        }
        Ok(Self { store, instances })
    }

    /// The function with this name: of the last module that has it. Without a name the only one that the last module exports.
    pub fn callable(&self, name: Option<&str>) -> Result<Callable> {
        let Some((last, _)) = self.instances.last() else { return Err(Failure::usage("no module is named")) };
        let name = name.map(|name| name.strip_prefix('@').unwrap_or(name)).filter(|name| !name.is_empty());
        let Some(name) = name else {
            let (module, instance) = (last, self.instances.last().map(|(_, instance)| *instance));
            let name = only_function(module)?;
            return self.describe(module, instance, &name);
        };
        let found = self.instances.iter().rev().find(|(module, _)| module.export(name).is_some());
        if let Some((module, instance)) = found {
            return self.describe(module, Some(*instance), name);
        }
        // `module.function`, as imports and traces write it.
        let qualified = self.instances.iter().rev().find_map(|(module, instance)| {
            let function = name.strip_prefix(module.name())?.strip_prefix('.')?;
            module.export(function).is_some().then_some((module, *instance, function))
        });
        match qualified {
            Some((module, instance, function)) => self.describe(module, Some(instance), function),
            None => Err(Failure::new(Status::NotFound, format!("module '{}' has no function '{name}'", last.name()))
                .help(format!("it has\n{}", listing_near(last, name)))),
        }
    }

    /// All functions of the last module that take no arguments.
    pub fn without_arguments(&self) -> Result<Vec<Callable>> {
        let Some((module, instance)) = self.instances.last() else { return Ok(Vec::new()) };
        let free = public_exports(module).filter(|export| export.convention.arguments.is_empty());
        free.map(|export| self.describe(module, Some(*instance), export.name)).collect()
    }

    fn describe(&self, module: &Module, instance: Option<Instance>, name: &str) -> Result<Callable> {
        let missing = || Failure::new(Status::NotFound, format!("module '{}' has no function '{name}'", module.name()));
        let (export, instance) = (module.export(name).ok_or_else(missing)?, instance.ok_or_else(missing)?);
        let declaration = export.declaration();
        let parsed = declaration.and_then(Declaration::parse);
        let fences = coarse_fences::takes_coarse_fences(module.definition(), name);
        let mut inputs = if fences {
            input_slots_before_fences(export.convention, parsed.as_ref())
        } else {
            input_slots(export.convention, parsed.as_ref())
        };
        add_asserted_types(module, export.function, &mut inputs);
        Ok(Callable {
            func: instance.function(&self.store, name)?,
            instance,
            fences,
            inline: module.definition().imports.iter().any(|import| import.full_name.starts_with("hal_inline.")),
            name: name.to_owned(),
            declaration: declaration.map(str::to_owned),
            inputs,
            outputs: output_slots(export.convention, parsed.as_ref()),
        })
    }
}

impl Callable {
    /// Calls the function and waits until its results are there. The inputs are handed over.
    pub fn call(&self, store: &mut StoreCore, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let results = match self.fences {
            true => coarse_fences::call_owned(store, self.instance, &self.name, inputs),
            false => self.func.call_owned(store, inputs),
        };
        Ok(results?)
    }

    /// Adds the declaration to a failure of the function.
    pub fn explain(&self, failure: Failure) -> Failure {
        let failure = match &self.declaration {
            Some(declaration) => failure.context(format!("in {declaration}")),
            None => failure.context(format!("in @{}", self.name)),
        };
        let limit = match failure.status() {
            _ if failure.has_help() => None,
            Some(Status::InvalidArgument) if self.inline && failure.message().ends_with(" is null") => Some(LOST_CONSTANT_HINT),
            Some(Status::ResourceExhausted) if failure.message().contains("bytes of stack") => Some("the stack is set with --stack-size"),
            Some(Status::ResourceExhausted) => Some("limits are set with --max-memory and --fuel"),
            Some(Status::DeadlineExceeded) => Some("more time is given with --timeout"),
            _ => None,
        };
        failure.maybe_help(limit.map(str::to_owned))
    }
}

/// Functions that users call: those whose names do not begin with `__` and have no `$`.
pub fn public_exports(module: &Module) -> impl Iterator<Item = ExportInfo<'_>> {
    module.exports().filter(|export| !export.name.starts_with("__") && !export.name.contains('$'))
}

/// One line per function: the declaration, or what the calling convention says.
pub fn listing(module: &Module) -> String {
    let named = module.exports().filter(|export| !export.name.starts_with("__"));
    let lines: Vec<String> = named.map(|export| format!("  {}", printable(&signature(&export)))).collect();
    if lines.is_empty() { "  no functions".to_owned() } else { lines.join("\n") }
}

/// The functions whose names are most like this one; all of them where they are few.
pub fn listing_near(module: &Module, name: &str) -> String {
    let exports: Vec<ExportInfo<'_>> = module.exports().filter(|export| !export.name.starts_with("__")).collect();
    if exports.len() <= MOST_SUGGESTIONS {
        return listing(module);
    }
    let chosen = nearest(name, exports.iter().map(|export| export.name));
    let line = |index: &usize| exports.get(*index).map(|export| format!("  {}", printable(&signature(export))));
    let lines: Vec<String> = chosen.iter().filter_map(line).collect();
    format!("{}\n  and {} more: see vm-run --list", lines.join("\n"), exports.len().saturating_sub(lines.len()))
}

/// Types that the code asserts, for references that no declaration describes.
fn add_asserted_types(module: &Module, function: u32, slots: &mut [Slot]) {
    let mut references: Vec<&mut Slot> = slots.iter_mut().filter(|slot| slot.kind == Kind::Ref).collect();
    if references.iter().all(|slot| slot.declared.is_some()) {
        return;
    }
    let types = asserted::reference_types(module.definition(), function, references.len());
    for (slot, declared) in references.iter_mut().zip(types) {
        if slot.declared.is_none() {
            slot.declared = declared;
        }
    }
}

/// The declaration of an export, or one made of its calling convention.
pub fn signature(export: &ExportInfo<'_>) -> String {
    if let Some(declaration) = export.declaration() {
        return declaration.to_owned();
    }
    let types = |slots: Vec<Slot>| slots.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (inputs, outputs) = (types(input_slots(export.convention, None)), types(output_slots(export.convention, None)));
    format!("func @{}({inputs}) -> ({outputs})", export.name)
}

fn only_function(module: &Module) -> Result<String> {
    let names: Vec<&str> = public_exports(module).map(|export| export.name).collect();
    match names.as_slice() {
        [name] => Ok((*name).to_owned()),
        [] => Err(Failure::new(Status::NotFound, format!("module '{}' exports no function", module.name()))),
        [first, ..] => Err(Failure::usage(format!("module '{}' exports {} functions, so one must be named", module.name(), names.len()))
            .help(format!("add for example --function={first}; the functions are\n{}", listing_near(module, first)))),
    }
}

fn read_standard_input(engine: &Engine) -> Result<Module> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(STANDARD_INPUT_LIMIT);
    input.read_to_end(&mut bytes).map_err(|error| Failure::new(io_status(&error), format!("cannot read the standard input: {error}")))?;
    let head = bytes.get(..bytes.len().min(file_kind::HEAD)).unwrap_or_default().to_vec();
    let length = bytes.len() as u64;
    Module::new(engine, bytes).map_err(|error| with_kind(error.into(), "-", file_kind::of_bytes("-", &head, length, &tool())))
}

/// The name of the tool that runs.
pub(crate) fn tool() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&program).file_stem().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "vm-run".to_owned())
}

/// Says what a file is that is not a module, where that is known.
pub(crate) fn with_kind(failure: Failure, path: &str, kind: Option<FileKind>) -> Failure {
    let path = if path == "-" { "the standard input" } else { path };
    match (failure.status(), kind) {
        (Some(Status::InvalidArgument | Status::Unknown | Status::OutOfRange | Status::FailedPrecondition), Some(kind)) => {
            Failure::invalid(format!("{path} {}", kind.message)).help(kind.help)
        }
        (_, _) => failure,
    }
}

fn with_load_help(failure: Failure, path: &str) -> Failure {
    match failure.status() {
        _ if failure.has_help() => failure,
        Some(Status::NotFound) => failure.help(format!("check the path {path}; modules are written by iree-compile -o {path}")),
        Some(Status::InvalidArgument) => failure.help("wanted is a whole .vmfb file that iree-compile wrote, of a release since 2023-02"),
        _ => failure,
    }
}

/// Bytes of memory that this process can have: the machine's, or its control group's.
#[cfg(target_os = "linux")]
fn system_memory() -> Option<u64> {
    let info = rustix::system::sysinfo();
    #[allow(clippy::useless_conversion, reason = "the width of the field depends on the platform")]
    let machine = u64::try_from(info.totalram).ok()?.checked_mul(u64::from(info.mem_unit))?;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(group.map_or(machine, |group: u64| group.min(machine)))
}

/// Bytes of memory that this process can have; not known here.
#[cfg(not(target_os = "linux"))]
fn system_memory() -> Option<u64> {
    None
}
