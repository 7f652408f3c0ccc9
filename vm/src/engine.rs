//! Configuration that all modules and stores of one engine share.

use crate::FuelMetering;
use crate::interpreter::threaded_works;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use vmfb_bytecode::definition::ModuleDef;

/// Whether executables with machine code may be loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NativeCode {
    /// They may. Machine code can do anything that the process can.
    #[default]
    Allow,
    /// They may not: only VMVX executables load, and a hostile module can do nothing but compute within its limits.
    Deny,
}

/// What becomes of a module that states processor features which this machine lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsupportedCpu {
    /// It is refused when it is linked: the first instruction that is not there would end the process.
    #[default]
    Refuse,
    /// It is linked.
    Allow,
}

/// Bytes of stack that machine code has unless a configuration says otherwise.
pub const KERNEL_STACK_SIZE: usize = 4 << 20;

/// Whether computations can be ended from outside. Chosen when an engine is made and compiled into the translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interruption {
    /// They cannot, and loops pay nothing.
    #[default]
    Off,
    /// Deadline and interrupt handle are looked at on function entry and in every loop.
    On,
}

/// How the interpreter goes from one op to the next. Programs behave the same in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dispatch {
    /// The fastest way that works in this build: ops that jump to each other where the compiler has made jumps of calls in tail
    /// position, which every new engine tests, else the portable way.
    #[default]
    Automatic,
    /// One loop that looks at every op. It has no unsafe code.
    Portable,
    /// As portable, and one op for each instruction: nothing is fused or left out. What the others are tested against.
    Reference,
}

/// An instruction that is about to run.
#[derive(Clone, Copy, Debug)]
pub struct TracedInstruction<'a> {
    /// The module that it is part of.
    pub module: &'a ModuleDef,
    /// Ordinal of its function.
    pub function: u32,
    /// Its byte offset in the function.
    pub pc: u32,
}

/// Is told of every instruction before it runs, on the thread that runs it.
#[derive(Clone)]
pub struct Tracer(Arc<dyn Fn(TracedInstruction<'_>) + Send + Sync>);

impl Tracer {
    /// A tracer that calls this function.
    pub fn new(instruction: impl Fn(TracedInstruction<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(instruction))
    }

    pub(crate) fn instruction(&self, instruction: TracedInstruction<'_>) {
        (self.0)(instruction);
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tracer")
    }
}

/// Configuration of an [`Engine`].
///
/// **Machine code inside executables is allowed by default**, because almost every compiled module contains some; it can do
/// anything that the process can. Set [`Config::native_code`] to [`NativeCode::Deny`] for modules that you did not build:
/// then only VMVX executables load.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) fuel: FuelMetering,
    pub(crate) interruption: Interruption,
    pub(crate) native_code: NativeCode,
    pub(crate) stack_bytes: usize,
    pub(crate) memory_limit: u64,
    pub(crate) worker_threads: usize,
    pub(crate) dispatch: Dispatch,
    pub(crate) kernel_stack_size: usize,
    pub(crate) unsupported_cpu: UnsupportedCpu,
    pub(crate) tracer: Option<Tracer>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            fuel: FuelMetering::Off,
            interruption: Interruption::Off,
            native_code: NativeCode::Allow,
            stack_bytes: 1 << 20,
            memory_limit: u64::MAX,
            worker_threads: 1,
            dispatch: Dispatch::Automatic,
            kernel_stack_size: KERNEL_STACK_SIZE,
            unsupported_cpu: UnsupportedCpu::Refuse,
            tracer: None,
        }
    }
}

impl Config {
    /// The defaults: machine code allowed, no fuel, 1 MiB of VM stack, no memory limit, one thread.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether fuel is counted.
    #[must_use]
    pub fn fuel(mut self, metering: FuelMetering) -> Self {
        self.fuel = metering;
        self
    }

    /// Whether computations can be ended by a deadline or an interrupt handle.
    #[must_use]
    pub fn interruption(mut self, interruption: Interruption) -> Self {
        self.interruption = interruption;
        self
    }

    /// Whether executables with machine code may be loaded.
    #[must_use]
    pub fn native_code(mut self, native_code: NativeCode) -> Self {
        self.native_code = native_code;
        self
    }

    /// The most that the VM stack of one invocation may hold, in bytes.
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = bytes;
        self
    }

    /// The most memory that the programs of one store may hold, in bytes.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// How the interpreter goes from one op to the next.
    #[must_use]
    pub fn dispatch(mut self, dispatch: Dispatch) -> Self {
        self.dispatch = dispatch;
        self
    }

    /// Bytes of stack that machine code in executables finds when it is entered; [`KERNEL_STACK_SIZE`] by default. A dispatch
    /// on a thread with less left runs on a stack of its own, which the thread keeps for the next one; memory is taken only for
    /// what is used. Modules that state a larger need are refused.
    ///
    /// Raise it for modules that were compiled with a large `--iree-llvmcpu-stack-allocation-limit`.
    #[must_use]
    pub fn kernel_stack_size(mut self, bytes: usize) -> Self {
        self.kernel_stack_size = bytes;
        self
    }

    /// Whether modules that state processor features which this machine lacks are refused.
    #[must_use]
    pub fn unsupported_cpu(mut self, unsupported_cpu: UnsupportedCpu) -> Self {
        self.unsupported_cpu = unsupported_cpu;
        self
    }

    /// Tells a tracer of every instruction of bytecode before it runs, those of VMVX kernels too. Programs then run as with
    /// [`Dispatch::Reference`], slowly; without a tracer nothing is paid for this.
    #[must_use]
    pub fn trace(mut self, tracer: Tracer) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// Threads that work on one dispatch, the calling one included; 1 creates none.
    #[must_use]
    pub fn worker_threads(mut self, threads: usize) -> Self {
        self.worker_threads = threads.max(1);
        self
    }
}

/// Shared configuration. Clones are the same engine; two engines know nothing of each other.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Config,
    threaded: bool,
    /// What others made for this engine, one of a type.
    shared: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

impl Engine {
    /// An engine with the given configuration.
    pub fn new(mut config: Config) -> Self {
        if config.tracer.is_some() {
            config.dispatch = Dispatch::Reference;
        }
        let with = |config, threaded| Self(Arc::new(Inner { config, threaded, shared: Mutex::default() }));
        let threaded = config.dispatch == Dispatch::Automatic && threaded_works(&with(Config::default(), false));
        with(config, threaded)
    }

    /// Whether executables with machine code may be loaded.
    pub fn native_code(&self) -> NativeCode {
        self.0.config.native_code
    }

    /// Threads that work on one dispatch, the calling one included.
    pub fn worker_threads(&self) -> usize {
        self.0.config.worker_threads
    }

    /// Bytes of stack that machine code in executables finds when it is entered.
    pub fn kernel_stack_size(&self) -> usize {
        self.0.config.kernel_stack_size
    }

    /// Whether modules that state processor features which this machine lacks are refused.
    pub fn unsupported_cpu(&self) -> UnsupportedCpu {
        self.0.config.unsupported_cpu
    }

    /// Whether ops jump to each other, as with [`Dispatch::Automatic`] where the build allows it, and do not run in one loop.
    pub fn is_threaded(&self) -> bool {
        self.0.threaded
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Something that an engine has one of, for example a pool of threads: `make` makes it when it is first asked for. It lives
    /// as long as the engine, so it must not own the engine.
    pub fn shared<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut shared = self.0.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shared.iter().find_map(|known| known.clone().downcast().ok());
        known.unwrap_or_else(|| {
            let made = Arc::new(make());
            shared.push(made.clone());
            made
        })
    }

    /// Whether both are the same engine.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new(Config::default())
    }
}
