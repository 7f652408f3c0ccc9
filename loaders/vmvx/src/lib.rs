//! Loader of VMVX executables, which are bytecode modules themselves.
//!
//! A kernel is an exported function that is called once per workgroup. It runs in a store of its own under the limits of the
//! caller: what it uses of fuel, memory and time is the caller's. It can touch the buffers that are bound and nothing else, so
//! these executables load where machine code is denied, too. Where fuel is not counted, the workgroups of a long dispatch are
//! spread over the worker threads of the engine.
#![forbid(unsafe_code)]

mod entry;
mod executable;
mod grid;

use executable::VmvxExecutable;
use std::sync::Arc;
use vmfb_hal::{ExecutableLoader, ExecutableParameters, Load};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Error, Module, Result, ResultExt};

/// The format of VMVX executables.
pub const FORMAT: &str = "vmvx-bytecode-fb";

/// What a module takes at most for each byte of its file: read, verified and translated.
const BYTES_PER_BYTE: u64 = 32;

/// What an executable takes however small it is: a store, a linker with the functions of `vmvx`.
const FIXED_BYTES: u64 = 64 << 10;

/// Loads executables of the format [`FORMAT`].
#[derive(Clone, Copy, Debug, Default)]
pub struct VmvxLoader;

impl VmvxLoader {
    /// The loader.
    pub fn new() -> Self {
        Self
    }
}

impl ExecutableLoader for VmvxLoader {
    fn name(&self) -> &str {
        "vmvx"
    }

    fn query_support(&self, format: &str) -> bool {
        format == FORMAT
    }

    fn formats(&self) -> Vec<String> {
        vec![FORMAT.to_owned()]
    }

    fn try_load(&self, parameters: &ExecutableParameters<'_>) -> Result<Load> {
        if !self.query_support(parameters.format) {
            return Ok(Load::NotMine(Error::invalid(format!("the format is {:?}, wanted {FORMAT:?}", parameters.format))));
        }
        let _entered = tracing::debug_span!("load_vmvx", bytes = parameters.data.len()).entered();
        let load = || {
            // Charged before it is read.
            let bytes = (parameters.data.len() as u64).saturating_mul(BYTES_PER_BYTE).saturating_add(FIXED_BYTES);
            let charge = parameters.account.hold(bytes)?;
            let module = Module::from_span(parameters.engine, private_copy(parameters.data, parameters.account)?)?;
            VmvxExecutable::new(module, parameters, charge)
        };
        Ok(Load::Loaded(Arc::new(load().context(|| "loading a VMVX executable".to_owned())?)))
    }
}

/// Bytes that nobody changes while they are checked and afterwards.
fn private_copy(data: &Span, account: &MemoryAccount) -> Result<Span> {
    if data.constant_bytes().is_some() {
        return Ok(data.clone());
    }
    let copy = Span::zeroed(data.len(), vmfb_memory::BASE_ALIGNMENT, account)?;
    copy.copy_from(0, data, 0, data.len())?;
    Ok(copy.read_only())
}
