//! The hal native module: devices, command buffers, queues and fences, as programs of the default execution model use them.
//!
//! Programs of every compiler release import functions of one name in different forms; `table` lists them all. There is one
//! device, this process: command buffers are recorded, and executed when the fences that they wait for are reached: at once,
//! on the calling thread, if that is so at submission, else on the thread that signals the last of them. That thread has the
//! help of the engine's worker threads, for the workgroups of a dispatch and for the commands between two barriers. Queued work
//! owns everything that it uses.
//!
//! What is not here: the inline modules (`hal_inline`, `hal_loader`), the loaders of executables.
#![forbid(unsafe_code)]

mod allocator;
mod batch;
mod buffer;
mod channel;
mod command;
mod command_functions;
mod device;
mod executable;
mod fence;
mod layout;
mod program;
mod queue;
mod queue_functions;
mod table;

use device::{Allocator, Device};
use fence::Awaiting;
use queue::Tab;
use std::fmt;
use std::sync::Arc;
use vmfb_hal::{ExecutableLoader, Trace, TraceSink, trace_to_stderr};
use vmfb_vm::{Engine, Handle, Module, NativeFunction, NativeModule, Result};

/// The `hal` module.
pub struct Hal {
    loaders: Arc<[Arc<dyn ExecutableLoader>]>,
    trace_sink: TraceSink,
}

/// What the module keeps in a store.
pub struct State {
    device: Handle<Device>,
    allocator: Handle<Allocator>,
    /// What queued work has done on behalf of the store.
    tab: Arc<Tab>,
    /// Waits with a timeout that are going on.
    awaiting: Awaiting,
    trace_sink: TraceSink,
}

impl Hal {
    /// The module; its device asks these loaders, in order. Traces go to stderr.
    pub fn new(loaders: Vec<Arc<dyn ExecutableLoader>>) -> Self {
        Self { loaders: loaders.into(), trace_sink: trace_to_stderr() }
    }

    /// Where traces go.
    #[must_use]
    pub fn trace_sink(mut self, sink: impl Fn(&Trace<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        self.trace_sink = Arc::new(sink);
        self
    }

    /// Name, calling convention and nothing else of every function, several forms under one name.
    pub fn function_table() -> impl Iterator<Item = (&'static str, &'static str)> {
        table::TABLE.iter().map(|row| (row.name, row.convention))
    }
}

impl fmt::Debug for Hal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loaders: Vec<&str> = self.loaders.iter().map(|loader| loader.name()).collect();
        f.debug_struct("Hal").field("loaders", &loaders).finish_non_exhaustive()
    }
}

impl NativeModule for Hal {
    type State = State;

    fn name(&self) -> &str {
        "hal"
    }

    /// The newest generation; older programs ask for less.
    fn version(&self) -> u32 {
        7
    }

    fn functions(&self) -> Vec<NativeFunction<State>> {
        table::functions()
    }

    fn check_importer(&self, importer: &Module) -> Result<()> {
        vmfb_hal::target::check_targets(importer, &self.loaders)
    }

    fn new_state(&self, engine: &Engine) -> Result<State> {
        Ok(State {
            device: Handle::new(Device::new(self.loaders.clone(), engine.clone())),
            allocator: Handle::new(Allocator),
            tab: Arc::default(),
            awaiting: Awaiting::default(),
            trace_sink: self.trace_sink.clone(),
        })
    }

    /// A fork has the device of its parent, as globals of the program refer to it.
    fn fork_state(&self, state: &State) -> Result<State> {
        Ok(State {
            device: state.device.clone(),
            allocator: state.allocator.clone(),
            tab: Arc::default(),
            awaiting: Awaiting::default(),
            trace_sink: state.trace_sink.clone(),
        })
    }
}
