//! What to do about a module that does not start.

use vmfb::Module;
use vmfb_hal::target;
use vmfb_vm::{Error, Status};

/// How to compile for every machine.
const EVERYWHERE: &str = "--iree-hal-target-backends=vmvx";

/// Help for a failure of linking or of the initialiser, where something is known. `missing` are the modules that this one needs
/// and that are not there.
pub(crate) fn of(error: &Error, module: &Module, missing: Vec<&str>, path: &str) -> Option<String> {
    if !missing.is_empty() {
        let files: Vec<String> = missing.iter().map(|name| format!("{name}.vmfb")).collect();
        let them = if missing.len() == 1 { "module" } else { "modules" };
        return Some(format!("name the {them} {} in front of this one: vm-run {} {path}", missing.join(", "), files.join(" ")));
    }
    match error.status() {
        Status::NotFound => parameters(error),
        Status::Unavailable | Status::Incompatible => processor(module).or_else(|| formats(module)),
        Status::ResourceExhausted if error.message().contains("bytes of stack") => {
            Some("more stack is given with --stack-size, for example --stack-size=16MiB".to_owned())
        }
        _ => None,
    }
}

/// A scope without files.
fn parameters(error: &Error) -> Option<String> {
    let (scope, _) = error.message().strip_prefix("no parameters have the scope \"")?.split_once('"')?;
    let scope = if scope.is_empty() { String::new() } else { format!("{scope}=") };
    Some(format!("name the file that holds them: --parameters={scope}FILE, where FILE is an .irpa, .safetensors or .gguf file"))
}

/// A module for a processor that can more than this one.
fn processor(module: &Module) -> Option<String> {
    let missing = target::missing_features(module, &vmfb::loaders());
    (!missing.is_empty()).then(|| {
        "compile with --iree-llvmcpu-target-cpu=generic, or on this machine with --iree-llvmcpu-target-cpu=host\n\
             --allow-unsupported-cpu runs it nevertheless, and an instruction that is not there ends the process"
            .to_owned()
    })
}

/// A module whose executables are all for other machines.
fn formats(module: &Module) -> Option<String> {
    let loaders = vmfb::loaders();
    let offered = offered_formats(module);
    if offered.iter().any(|format| loaders.iter().any(|loader| loader.query_support(format))) {
        return None;
    }
    // Code for another processor, not for another kind of device.
    let known = offered.iter().any(|format| vmfb_hal::processor::architecture_of(format).is_some());
    let offered: Vec<_> = offered.iter().map(|format| target::describe_format(format)).collect();
    let offered = if offered.is_empty() { "executables of an unknown format".to_owned() } else { offered.join(", ") };
    let taken: Vec<String> = loaders.iter().flat_map(|loader| loader.formats()).collect();
    let here = if known { format!("--iree-llvmcpu-target-triple={}", triple()) } else { "--iree-hal-target-backends=llvm-cpu".to_owned() };
    Some(format!(
        "the module has {offered}; this is {}, which runs {}\ncompile for this machine with {here}, or for every machine with \
         {EVERYWHERE}",
        std::env::consts::ARCH,
        taken.join(", "),
    ))
}

/// This machine as the compiler calls it.
fn triple() -> String {
    let system = match std::env::consts::OS {
        "linux" => "linux-gnu",
        "macos" => "apple-darwin",
        "windows" => "pc-windows-msvc",
        other => other,
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// Constants that name an executable format.
fn offered_formats(module: &Module) -> Vec<String> {
    let named = |buffer: &vmfb::Buffer| {
        let text = (buffer.len() < 64).then(|| buffer.text("a constant").ok()).flatten()?;
        let known = ["embedded-elf-", "system-", "vmvx-", "static", "cuda-", "vulkan-", "rocm-", "hip-", "metal-", "webgpu-", "amdgpu-"];
        known.iter().any(|prefix| text.starts_with(prefix)).then_some(text)
    };
    let mut formats: Vec<String> = module.constants().iter().filter_map(named).collect();
    formats.dedup();
    formats
}
