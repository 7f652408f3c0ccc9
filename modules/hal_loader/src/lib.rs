//! The hal_loader native module: loads executables and dispatches their functions.
//!
//! Programs that were compiled for the inline-dynamic execution model import it. It knows the traits of executables and
//! loaders, never a concrete loader. [`shim`] unpacks the argument buffer of a dispatch.
#![forbid(unsafe_code)]

mod constants;
mod dispatch;
mod load;
mod lookup;
pub mod shim;
#[cfg(test)]
mod test_support;

use std::fmt;
use std::sync::Arc;

use constants::Constants;
use lookup::LookupCache;
use shim::Signature;
use vmfb_hal::ExecutableLoader;
use vmfb_vm::{Call, Engine, NativeFunction, NativeModule, RawCall, Result, Signal};

/// The `hal_loader` module.
pub struct HalLoader {
    loaders: Arc<[Arc<dyn ExecutableLoader>]>,
}

/// What the module keeps per store.
#[derive(Default)]
pub struct LoaderState {
    lookups: LookupCache,
    constants: Constants,
}

impl HalLoader {
    /// The module with loaders that are asked in this order.
    pub fn new(loaders: Vec<Arc<dyn ExecutableLoader>>) -> Self {
        Self { loaders: loaders.into() }
    }
}

impl fmt::Debug for HalLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.loaders.iter().map(|loader| loader.name())).finish()
    }
}

impl fmt::Debug for LoaderState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoaderState").finish_non_exhaustive()
    }
}

impl NativeModule for HalLoader {
    type State = LoaderState;

    fn name(&self) -> &str {
        "hal_loader"
    }

    fn version(&self) -> u32 {
        1
    }

    fn functions(&self) -> Vec<NativeFunction<LoaderState>> {
        let (querying, loading) = (self.loaders.clone(), self.loaders.clone());
        let dispatch = |signature: Signature| {
            NativeFunction::raw("executable.dispatch", signature.convention(), move |call: &mut RawCall<'_, LoaderState>| {
                let concurrency = call.context.engine().worker_threads();
                let (constants, meter) = (&mut call.state.constants, &mut call.context.meter);
                dispatch::dispatch(signature, call.arguments, call.references, constants, meter, concurrency)
            })
        };
        vec![
            NativeFunction::new("executable.query_support", "0r_i", move |call| query_support(call, &querying)),
            NativeFunction::new("executable.load", "0rrr_r", move |call| load(call, &loading)),
            NativeFunction::new("executable.lookup.function", "0rr_I", lookup_function),
            dispatch(Signature::Function),
            dispatch(Signature::Ordinal),
        ]
    }

    fn new_state(&self, _engine: &Engine) -> Result<LoaderState> {
        Ok(LoaderState::default())
    }

    fn fork_state(&self, _state: &LoaderState) -> Result<LoaderState> {
        Ok(LoaderState::default())
    }

    fn notify(&self, state: &mut LoaderState, signal: Signal) -> Result<()> {
        if signal == Signal::LowMemory {
            state.lookups.clear();
            state.constants.clear();
        }
        Ok(())
    }
}

fn query_support(call: &mut Call<'_, LoaderState>, loaders: &[Arc<dyn ExecutableLoader>]) -> Result<()> {
    let format = call.arguments.buffer("the executable format")?;
    call.results.push_i32(i32::from(load::query_support(loaders, format)));
    Ok(())
}

fn load(call: &mut Call<'_, LoaderState>, loaders: &[Arc<dyn ExecutableLoader>]) -> Result<()> {
    let format = call.arguments.buffer("the executable format")?;
    let data = call.arguments.buffer("the executable data")?;
    let constants = call.arguments.reference()?;
    let engine = call.context.engine().clone();
    call.results.push_reference(load::load(loaders, &engine, &mut call.context.meter, format, data, constants)?);
    Ok(())
}

fn lookup_function(call: &mut Call<'_, LoaderState>) -> Result<()> {
    let (executable, name) = (call.arguments.reference()?, call.arguments.buffer("the function name")?);
    call.results.push_i64(load::lookup_function(&mut call.state.lookups, executable, name)?);
    Ok(())
}
