//! Modules in a store, ready to be called: loading, limits, linking, and the choice of a function.

use crate::command_line::{LimitArguments, ModuleArguments, ModuleMode};
use crate::declaration::{Declaration, Slot, input_slots, input_slots_before_fences, output_slots};
use crate::failure::{Failure, Result, io_status, printable};
use crate::{interrupt, start_help};
use std::io::Read;
use std::time::Instant;
use vmfb::{
    Config, Engine, FuelMetering, Func, Instance, Interruption, KERNEL_STACK_SIZE, Linker, Module, NativeCode, Store, StoreCore,
    UnsupportedCpu, Value,
};
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
    let module = |path: &String| match path.as_str() {
        "-" => read_standard_input(engine),
        path if mapped => Ok(Module::from_mapped(engine, path)?),
        path => Ok(Module::from_file(engine, path)?),
    };
    paths.into_iter().map(|path| Ok((path.clone(), module(path).map_err(|failure| with_load_help(failure, path))?))).collect()
}

/// The engine that the command line asks for. A time limit can only be kept with interruption.
pub fn engine(limits: &LimitArguments, interruption: Interruption) -> Engine {
    let threads = limits.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let memory = limits.max_memory.unwrap_or_else(|| system_memory().map_or(u64::MAX, |bytes| bytes / 100 * MEMORY_PERCENT));
    tracing::debug!(threads, memory, deny_native = limits.deny_native, "limits");
    let config = Config::new()
        .fuel(if limits.fuel.is_some() { FuelMetering::On } else { FuelMetering::Off })
        .interruption(if limits.timeout.is_some() { Interruption::On } else { interruption })
        .native_code(if limits.deny_native { NativeCode::Deny } else { NativeCode::Allow })
        .memory_limit(memory)
        .kernel_stack_size(limits.stack_size.unwrap_or(KERNEL_STACK_SIZE))
        .unsupported_cpu(if limits.allow_unsupported_cpu { UnsupportedCpu::Allow } else { UnsupportedCpu::Refuse })
        .worker_threads(threads);
    Engine::new(config)
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
        let Some(name) = name.map(|name| name.strip_prefix('@').unwrap_or(name)) else {
            let (module, instance) = (last, self.instances.last().map(|(_, instance)| *instance));
            let name = only_function(module)?;
            return self.describe(module, instance, &name);
        };
        let found = self.instances.iter().rev().find(|(module, _)| module.export(name).is_some());
        match found {
            Some((module, instance)) => self.describe(module, Some(*instance), name),
            None => Err(Failure::new(Status::NotFound, format!("module '{}' has no function '{name}'", last.name()))
                .help(format!("it has\n{}", listing(last)))),
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
        Ok(Callable {
            func: instance.function(&self.store, name)?,
            instance,
            fences,
            inline: module.definition().imports.iter().any(|import| import.full_name.starts_with("hal_inline.")),
            name: name.to_owned(),
            declaration: declaration.map(str::to_owned),
            inputs: if fences {
                input_slots_before_fences(export.convention, parsed.as_ref())
            } else {
                input_slots(export.convention, parsed.as_ref())
            },
            outputs: output_slots(export.convention, parsed.as_ref()),
        })
    }
}

impl Callable {
    /// Calls the function and waits until its results are there.
    pub fn call(&self, store: &mut StoreCore, inputs: &[Value]) -> Result<Vec<Value>> {
        let results = match self.fences {
            true => coarse_fences::call(store, self.instance, &self.name, inputs),
            false => self.func.call(store, inputs),
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
            .help(format!("add for example --function={first}; the functions are\n{}", listing(module)))),
    }
}

fn read_standard_input(engine: &Engine) -> Result<Module> {
    let mut bytes = Vec::new();
    let mut input = std::io::stdin().lock().take(STANDARD_INPUT_LIMIT);
    input.read_to_end(&mut bytes).map_err(|error| Failure::new(io_status(&error), format!("cannot read the standard input: {error}")))?;
    Ok(Module::new(engine, bytes)?)
}

fn with_load_help(failure: Failure, path: &str) -> Failure {
    match failure.status() {
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
