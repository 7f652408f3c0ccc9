//! What a module states about the machines that it was compiled for.
//!
//! Programs of the default execution model since 2024-08 carry, in the message of their initialiser for a device that is not
//! there, the attributes of that device: for each executable target its format, processor features and largest frame. Inline
//! modules and older ones state nothing but the architecture, in the name of the format.

use crate::{ExecutableLoader, processor};
use std::borrow::Cow;
use std::sync::Arc;
use vmfb_vm::{Error, Module, Result, Status, UnsupportedCpu};

/// A target of the executables of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedTarget {
    /// Which of the module's devices it belongs to; targets of one device follow each other in order of preference.
    pub device: usize,
    /// Format of the executables, for example `embedded-elf-x86_64`.
    pub format: String,
    /// Processor, as the compiler calls it.
    pub cpu: String,
    /// Features that were turned on or off, for example `+avx,-avx2`.
    pub cpu_features: String,
    /// Bytes of stack that a function of a kernel may allocate.
    pub stack_allocation: Option<u64>,
}

/// What kernels use of the stack beside what the compiler's limit counts: spilled registers, and what they call.
const STACK_SLACK: u64 = 64 << 10;

/// Targets that are read of one module.
const MOST_TARGETS: usize = 256;

const DEVICE: &[u8] = b"#hal.device.target<";
const TARGET: &[u8] = b"#hal.executable.target<";

/// The targets that a module states; none if it states none.
pub fn stated_targets(module: &Module) -> Vec<StatedTarget> {
    read_targets(&module.definition().bytecode)
}

/// Refuses a module that cannot run on this machine and says so: its executables are all for others, or need processor
/// features or stack that are not there.
pub fn check_targets(module: &Module, loaders: &[Arc<dyn ExecutableLoader>]) -> Result<()> {
    let targets = stated_targets(module);
    if targets.is_empty() {
        return Ok(());
    }
    let chosen = chosen(&targets, loaders);
    if chosen.is_empty() {
        return Err(foreign(&targets));
    }
    if module.engine().unsupported_cpu() == UnsupportedCpu::Refuse {
        chosen.iter().try_for_each(|target| check_features(target))?;
    }
    chosen.iter().try_for_each(|target| check_stack(target, module.engine().kernel_stack_size()))
}

/// Processor features that a module needs and this machine lacks.
pub fn missing_features(module: &Module, loaders: &[Arc<dyn ExecutableLoader>]) -> Vec<String> {
    let targets = stated_targets(module);
    let mut missing: Vec<String> = chosen(&targets, loaders).into_iter().flat_map(StatedTarget::missing_features).collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// What programs load: of each device the first target that a loader takes.
fn chosen<'t>(targets: &'t [StatedTarget], loaders: &[Arc<dyn ExecutableLoader>]) -> Vec<&'t StatedTarget> {
    let taken = |target: &&StatedTarget| loaders.iter().any(|loader| loader.query_support(&target.format));
    targets.chunk_by(|a, b| a.device == b.device).filter_map(|device| device.iter().find(taken)).collect()
}

impl StatedTarget {
    /// Whether the executables are machine code of this machine's architecture.
    fn is_native(&self) -> bool {
        processor::architecture().is_some_and(|architecture| self.format.ends_with(architecture))
    }

    /// Features that were turned on and are known to be absent here.
    fn missing_features(&self) -> Vec<String> {
        if !self.is_native() {
            return Vec::new();
        }
        let wanted = self.cpu_features.split(',').filter_map(|feature| feature.trim().strip_prefix('+'));
        wanted.filter(|feature| processor::has(feature) == Some(false)).map(str::to_owned).collect()
    }
}

fn check_features(target: &StatedTarget) -> Result<()> {
    let missing = target.missing_features();
    if missing.is_empty() {
        return Ok(());
    }
    let cpu = if target.cpu.is_empty() { String::new() } else { format!(" for the processor {:?}", target.cpu) };
    Err(Error::new(
        Status::Incompatible,
        format!(
            "the machine code of this module ({}) was compiled{cpu} with processor features that this machine lacks: {}",
            target.format,
            missing.join(", ")
        ),
    ))
}

fn check_stack(target: &StatedTarget, available: usize) -> Result<()> {
    let Some(stated) = target.stack_allocation.filter(|_| target.is_native()) else { return Ok(()) };
    let needed = stated.saturating_add(STACK_SLACK);
    if needed <= available as u64 {
        return Ok(());
    }
    Err(Error::exhausted(format!(
        "the machine code of this module may need {needed} bytes of stack (it was compiled to allocate up to {stated}); \
         this engine gives {available}"
    )))
}

#[cold]
fn foreign(targets: &[StatedTarget]) -> Error {
    let mut found: Vec<String> = targets.iter().map(|target| describe_format(&target.format).into_owned()).collect();
    found.dedup();
    Error::new(Status::Incompatible, format!("the module has code for {}, this is {}", found.join(", "), std::env::consts::ARCH))
}

/// An executable format for people: `aarch64 (embedded-elf-arm_64)`.
pub fn describe_format(format: &str) -> Cow<'_, str> {
    match processor::architecture_of(format) {
        Some(architecture) => format!("{architecture} ({format})").into(),
        None => format.into(),
    }
}

/// Reads the targets out of bytecode, in which messages stand as they are.
fn read_targets(bytecode: &[u8]) -> Vec<StatedTarget> {
    let mut targets: Vec<StatedTarget> = Vec::new();
    let mut device = 0;
    let mut rest = bytecode;
    while let Some(at) = rest.iter().position(|byte| *byte == b'#') {
        rest = rest.get(at..).unwrap_or_default();
        if rest.starts_with(DEVICE) {
            device += 1;
        } else if let Some(text) = rest.strip_prefix(TARGET)
            && let Some(target) = (Text { rest: text }).target(device)
        {
            targets.push(target);
            if targets.len() == MOST_TARGETS {
                break;
            }
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    targets
}

/// The text of an attribute.
struct Text<'a> {
    rest: &'a [u8],
}

impl Text<'_> {
    /// `"backend", "format", {key = value, ...}>`, behind the attribute's name.
    fn target(mut self, device: usize) -> Option<StatedTarget> {
        self.string()?;
        self.token(b",")?;
        let mut target = StatedTarget { device, format: self.string()?, ..StatedTarget::default() };
        // A target without attributes ends here.
        if self.token(b",").and_then(|()| self.token(b"{")).is_some() {
            while self.entry(&mut target).is_some() {}
        }
        Some(target)
    }

    /// One `key = value`, and the comma behind it.
    fn entry(&mut self, target: &mut StatedTarget) -> Option<()> {
        self.skip_spaces();
        let length = self.rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"_.$-".contains(byte))?;
        let (key, rest) = self.rest.split_at_checked(length).filter(|(key, _)| !key.is_empty())?;
        self.rest = rest;
        if self.token(b"=").is_some() {
            match key {
                b"cpu" => target.cpu = self.string()?,
                b"cpu_features" => target.cpu_features = self.string()?,
                b"max_stack_allocation_size" => target.stack_allocation = self.number(),
                _ => {}
            }
        }
        self.skip_value()?;
        self.token(b",")
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn token(&mut self, token: &[u8]) -> Option<()> {
        self.skip_spaces();
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        self.token(b"\"")?;
        let end = self.rest.iter().position(|byte| *byte == b'"')?;
        let text = std::str::from_utf8(self.rest.get(..end)?).ok()?.to_owned();
        self.rest = self.rest.get(end + 1..)?;
        Some(text)
    }

    fn number(&mut self) -> Option<u64> {
        self.skip_spaces();
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(self.rest.get(..digits)?).ok()?;
        self.rest = self.rest.get(digits..)?;
        text.parse().ok()
    }

    /// Passes over the rest of a value, up to the comma behind it or the end of the dictionary.
    fn skip_value(&mut self) -> Option<()> {
        let (mut depth, mut quoted) = (0u32, false);
        for (at, byte) in self.rest.iter().enumerate() {
            match byte {
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b',' | b'}' | b'>' if depth == 0 => {
                    self.rest = self.rest.get(at..)?;
                    return Some(());
                }
                b'{' | b'[' | b'<' | b'(' => depth += 1,
                b'}' | b']' | b'>' | b')' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
