//! The exports of an executable: which are kernels, and what their attributes say.

use std::collections::HashMap;
use vmfb_bytecode::isa::Op;
use vmfb_hal::Pace;
use vmfb_vm::{Error, ExportInfo, Module, Result, ResultExt};

/// Calling convention of every kernel: local memory, constants, bindings; workgroup id, size and count in x, y, z.
const ENTRY_CONVENTION: &str = "0rrriiiiiiiii_v";

/// The export that takes the constants of the whole executable, and its calling convention.
const SET_CONSTANTS: &str = "__set_constants";
const SET_CONSTANTS_CONVENTION: &str = "0r_v";

/// Scratch memory is given in pages of this size.
const LOCAL_MEMORY_PAGE: usize = 4096;

/// A kernel.
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Ordinal of the function in the module.
    pub(crate) function: u32,
    pub(crate) constant_count: Option<usize>,
    pub(crate) binding_count: Option<usize>,
    /// Bytes of scratch memory, rounded up to pages.
    pub(crate) local_memory: usize,
    pub(crate) pace: Pace,
}

/// What a module exports.
pub(crate) struct Entries {
    /// The kernels, in the order of their ordinals.
    pub(crate) kernels: Vec<Entry>,
    /// Ordinals by name.
    pub(crate) names: HashMap<String, usize>,
    /// Ordinal of the function that takes the executable's constants.
    pub(crate) set_constants: Option<u32>,
}

impl Entries {
    /// Checks all exports of a module.
    pub(crate) fn new(module: &Module) -> Result<Self> {
        let mut entries = Self { kernels: Vec::new(), names: HashMap::new(), set_constants: None };
        for export in module.exports() {
            let check = |wanted: &str| check_convention(&export, wanted);
            if export.name == SET_CONSTANTS {
                check(SET_CONSTANTS_CONVENTION)?;
                entries.set_constants = Some(export.function);
                continue;
            }
            check(ENTRY_CONVENTION)?;
            let entry = Entry::new(&export).context(|| format!("in the attributes of {:?}", export.name))?;
            // As in a search from the start, the first of several exports with one name counts.
            entries.names.entry(entry.name.clone()).or_insert(entries.kernels.len());
            entries.kernels.push(entry);
        }
        check_for_yields(module)?;
        Ok(entries)
    }
}

impl Entry {
    fn new(export: &ExportInfo<'_>) -> Result<Self> {
        let binding_count = number(export, "binding_count")?;
        let constant_count = number(export, "constant_count")?;
        let local_memory = number(export, "local_memory")?.unwrap_or_default();
        Ok(Self {
            name: export.name.to_owned(),
            function: export.function,
            // A count of zero constants is not stated; without a count of bindings the compiler states neither.
            constant_count: constant_count.or(binding_count.map(|_| 0)),
            binding_count,
            pace: Pace::default(),
            local_memory: local_memory
                .checked_next_multiple_of(LOCAL_MEMORY_PAGE)
                .ok_or_else(|| Error::exhausted(format!("{local_memory} bytes of local memory")))?,
        })
    }
}

fn check_convention(export: &ExportInfo<'_>, wanted: &str) -> Result<()> {
    let found = export.convention.to_string();
    if found == wanted {
        return Ok(());
    }
    Err(Error::invalid(format!("the export {:?} has the calling convention {found:?}, wanted {wanted:?}", export.name)))
}

fn number(export: &ExportInfo<'_>, key: &str) -> Result<Option<usize>> {
    let Some(text) = export.attribute(key) else { return Ok(None) };
    let number = text.parse().map_err(|_| Error::invalid(format!("{key} is {text:?}, wanted a decimal number")))?;
    Ok(Some(number))
}

/// Kernels run to their end when they are called, so nothing in them may suspend.
fn check_for_yields(module: &Module) -> Result<()> {
    for function in 0..module.verified().functions().len() as u32 {
        for instruction in module.verified().instructions(function) {
            let instruction = instruction?;
            if matches!(instruction.op, Op::Yield { .. } | Op::CallYieldable { .. } | Op::CallVariadicYieldable { .. }) {
                return Err(Error::invalid(format!(
                    "function {function} may suspend at pc {:#x}; kernels must run to their end",
                    instruction.pc
                )));
            }
        }
    }
    Ok(())
}
