//! The io_parameters native module: weights that stay in files of their own.
//!
//! A program names a parameter by scope and key. The host gives [`ParameterProvider`]s, each a scope with the files that belong
//! to it. What is loaded is not copied where the file holds it at a multiple of 64: the program then uses the mapped file.
//!
//! ```
//! use vmfb_memory::Span;
//! use vmfb_module_io_parameters::{IoParameters, ParameterFormat, ParameterIndex, ParameterProvider};
//!
//! # fn main() -> vmfb_vm::Result<()> {
//! // One tensor of two floats: the length of the header, the header, the data.
//! let header = br#"{"bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
//! let file = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 8]].concat();
//! let weights = ParameterIndex::from_span(Span::from_vector(file), ParameterFormat::Safetensors, "weights")?;
//! assert_eq!(weights.get("bias").map(|bias| bias.len()), Some(8));
//! let mut linker = vmfb_vm::Linker::new();
//! linker.add_native(IoParameters::new(vec![ParameterProvider::new("model", weights)]))?;
//! # Ok(()) }
//! ```
//!
//! What is not here: devices, queues and fences, which are the hal module's.
#![forbid(unsafe_code)]

mod functions;
mod gguf;
mod index;
mod irpa;
mod provider;
mod reader;
mod request;
mod safetensors;

pub use index::{Parameter, ParameterFormat, ParameterIndex};
pub use provider::ParameterProvider;

use provider::Providers;
use std::fmt;
use std::sync::Arc;
use vmfb_vm::{Engine, NativeFunction, NativeModule, Result};

/// The `io_parameters` module.
pub struct IoParameters {
    providers: Providers,
}

impl IoParameters {
    /// The module; programs find what these providers have. Where several have the scope, they are asked in order.
    pub fn new(providers: Vec<ParameterProvider>) -> Self {
        Self { providers: Providers::new(providers) }
    }
}

impl fmt::Debug for IoParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoParameters").field("providers", &self.providers).finish()
    }
}

impl NativeModule for IoParameters {
    type State = ();

    fn name(&self) -> &str {
        "io_parameters"
    }

    /// The forms with a key of their own lived for some weeks of 2023-11.
    fn functions(&self) -> Vec<NativeFunction<()>> {
        let providers = Arc::new(self.providers.clone());
        let [load, load_one, gather, read] = std::array::from_fn(|_| providers.clone());
        vec![
            NativeFunction::new("load", "0rIrrrIiirrr_r", move |call| functions::load(call, &load)),
            NativeFunction::new("load", "0rIrrrrIIiiI_r", move |call| functions::load_one(call, &load_one)),
            NativeFunction::new("gather", "0rIrrrrrrr_v", move |call| functions::gather(call, &gather)),
            NativeFunction::new("scatter", "0rIrrrrrrr_v", functions::write),
            NativeFunction::new("read", "0rIrrrrIrII_v", move |call| functions::read(call, &read)),
            NativeFunction::new("write", "0rIrrrrIrII_v", functions::write),
        ]
    }

    fn new_state(&self, _engine: &Engine) -> Result<()> {
        Ok(())
    }

    fn fork_state(&self, (): &()) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
