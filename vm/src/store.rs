//! Stores: instances and what they share.

use crate::func::InstanceIdentity;
use crate::interpreter::{InstanceState, Machine, NativeInstance, Scratch};
use crate::module::{Module, ModuleInner};
use crate::native::{Context, Signal};
use crate::registry::ErasedNative;
use crate::scope::Calls;
use crate::stack::Stack;
use crate::{Engine, Error, Func, Instance, InterruptHandle, Meter, Result, ResultExt, Value};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;
use vmfb_memory::MemoryAccount;

/// Instances of modules, their state, and data of the host: what IREE calls a context.
///
/// One store runs one call at a time, which `&mut` enforces; use one store per thread. Everything a store has loaded may outlive
/// it.
pub struct Store<T: Send + 'static = ()> {
    core: StoreCore,
    data: PhantomData<fn() -> T>,
}

/// A store without the type of its host data.
pub struct StoreCore {
    pub(crate) modules: Vec<Arc<ModuleInner>>,
    /// One for each instance; forks have those of their parent.
    identities: Vec<InstanceIdentity>,
    pub(crate) instances: Vec<InstanceState>,
    pub(crate) natives: Vec<NativeInstance>,
    pub(crate) context: Context,
    pub(crate) scratch: Scratch,
    /// Stacks that no invocation uses.
    stacks: Vec<Stack>,
    /// Set while code runs; still set afterwards if a host function panicked.
    running: bool,
    /// Not shared with any other store, forks included.
    pub(crate) identity: Arc<()>,
    /// Those of its meter, which may be lent to other stores.
    calls: Arc<Calls>,
}

impl<T: Send + 'static> Store<T> {
    /// A store without instances.
    pub fn new(engine: &Engine, data: T) -> Self {
        let context = Context::new(engine.clone(), Box::new(data));
        let core = StoreCore {
            calls: context.meter.scope().calls().clone(),
            modules: Vec::new(),
            identities: Vec::new(),
            instances: Vec::new(),
            natives: Vec::new(),
            context,
            scratch: Scratch::default(),
            stacks: Vec::new(),
            running: false,
            identity: Arc::default(),
        };
        Self { core, data: PhantomData }
    }

    /// The host's data.
    pub fn data(&self) -> &T {
        match self.core.context.data() {
            Some(data) => data,
            None => unreachable!("a store is made with data of its type"),
        }
    }

    /// The host's data.
    pub fn data_mut(&mut self) -> &mut T {
        match self.core.context.data_mut() {
            Some(data) => data,
            None => unreachable!("a store is made with data of its type"),
        }
    }

    /// A new store with the same modules and a copy of their state: numbers are copied, references are shared. Native modules
    /// whose state cannot be copied make this fail with UNIMPLEMENTED.
    pub fn fork(&self, data: T) -> Result<Self> {
        self.core.check_usable()?;
        let mut natives = Vec::with_capacity(self.core.natives.len());
        for native in &self.core.natives {
            natives.push(NativeInstance { module: native.module.clone(), state: native.module.fork_state(&native.state)? });
        }
        let context = Context::new(self.core.context.engine.clone(), Box::new(data));
        let account = context.meter.account();
        let core = StoreCore {
            calls: context.meter.scope().calls().clone(),
            modules: self.core.modules.clone(),
            identities: self.core.identities.clone(),
            instances: self.core.instances.iter().map(|instance| instance.fork(account)).collect::<Result<_>>()?,
            natives,
            context,
            scratch: Scratch::default(),
            stacks: Vec::new(),
            running: false,
            identity: Arc::default(),
        };
        let mut child = Self { core, data: PhantomData };
        // Whichever store ends last clears the cycles among the lists that both hold.
        let account = child.core.context.meter.account().clone();
        child.core.context.lists = self.core.context.lists.fork(&account)?;
        child.core.notify(Signal::Fork)?;
        Ok(child)
    }
}

impl<T: Send + 'static> std::ops::Deref for Store<T> {
    type Target = StoreCore;

    fn deref(&self) -> &StoreCore {
        &self.core
    }
}

impl<T: Send + 'static> std::ops::DerefMut for Store<T> {
    fn deref_mut(&mut self) -> &mut StoreCore {
        &mut self.core
    }
}

impl StoreCore {
    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.context.engine
    }

    /// The limits.
    pub fn meter(&mut self) -> &mut Meter {
        &mut self.context.meter
    }

    /// Sets the fuel that is left. Needs [`crate::FuelMetering::On`].
    pub fn set_fuel(&mut self, units: u64) {
        self.context.meter.set_fuel(units);
    }

    /// Fuel left; `None` when the engine does not count it.
    pub fn fuel(&self) -> Option<u64> {
        self.context.meter.fuel()
    }

    /// Sets the moment at which computations end with DEADLINE_EXCEEDED. Needs [`crate::Interruption::On`] to end loops.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.context.meter.set_deadline(deadline);
    }

    /// A handle that ends computations of this store from another thread. Needs [`crate::Interruption::On`] to end loops.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.context.meter.interrupt_handle()
    }

    /// Where the memory of this store's programs is charged.
    pub fn account(&self) -> &MemoryAccount {
        self.context.meter.account()
    }

    /// Exchanges the store's limits, to run one computation under those of another.
    pub fn swap_meter(&mut self, meter: &mut Meter) {
        std::mem::swap(&mut self.context.meter, meter);
    }

    /// Tells all modules something: natives first on the way up (resume, fork), last on the way down (suspend, low memory).
    pub fn notify(&mut self, signal: Signal) -> Result<()> {
        let upwards = matches!(signal, Signal::Resume | Signal::Fork);
        if upwards {
            self.notify_natives(signal)?;
        }
        let mut order: Vec<u32> = (0..self.instances.len() as u32).collect();
        if !upwards {
            order.reverse();
        }
        for instance in order {
            if let Some(function) = self.special(instance, "__notify") {
                self.call(function, &[Value::I32(signal as i32)]).context(|| format!("notifying of {signal:?}"))?;
            }
        }
        if upwards { Ok(()) } else { self.notify_natives(signal) }
    }

    fn notify_natives(&mut self, signal: Signal) -> Result<()> {
        self.natives.iter_mut().try_for_each(|native| native.module.notify(&mut native.state, signal))
    }

    /// The module of an instance, if that is of this store.
    pub(crate) fn module_of(&self, instance: Instance) -> Result<&Arc<ModuleInner>> {
        let (module, identity) = (self.modules.get(instance.index as usize), self.identities.get(instance.index as usize));
        match module {
            Some(module) if identity == Some(&instance.identity) => Ok(module),
            _ => Err(Error::invalid("the function or instance belongs to another store")),
        }
    }

    /// A function that the runtime calls itself, if the instance exports it.
    pub(crate) fn special(&self, instance: u32, name: &str) -> Option<Func> {
        let module = self.modules.get(instance as usize)?;
        let export = module.verified.definition().exports.iter().find(|export| export.name == name)?;
        let identity = *self.identities.get(instance as usize)?;
        Some(Func { instance: Instance { index: instance, identity }, function: export.function })
    }

    fn call(&mut self, function: Func, arguments: &[Value]) -> Result<Vec<Value>> {
        function.call(self, arguments)
    }

    /// Index of a native module in this store; its state is made on first use.
    pub(crate) fn native(&mut self, module: &Arc<dyn ErasedNative>) -> Result<u32> {
        let known = self.natives.iter().position(|native| Arc::ptr_eq(&native.module, module));
        if let Some(index) = known {
            return Ok(index as u32);
        }
        let state = module.new_state(&self.context.engine).context(|| format!("setting up module {}", module.name()))?;
        self.natives.push(NativeInstance { module: module.clone(), state });
        Ok((self.natives.len() - 1) as u32)
    }

    pub(crate) fn add_instance(&mut self, module: &Module, state: InstanceState) -> Instance {
        let identity = InstanceIdentity::new();
        self.modules.push(module.inner().clone());
        self.identities.push(identity);
        self.instances.push(state);
        Instance { index: (self.instances.len() - 1) as u32, identity }
    }

    /// Removes the last instance again, as its initialisation failed.
    pub(crate) fn remove_last_instance(&mut self) {
        self.modules.pop();
        self.identities.pop();
        self.instances.pop();
    }

    pub(crate) fn take_stack(&mut self) -> Stack {
        self.stacks.pop().unwrap_or_else(|| Stack::new(self.context.engine.config().stack_bytes, self.calls.clone()))
    }

    pub(crate) fn give_stack(&mut self, stack: Stack) {
        if stack.frames.is_empty() {
            self.stacks.push(stack);
        }
    }

    /// Fails if a host function panicked in this store: nobody knows what state it is in.
    pub(crate) fn check_usable(&self) -> Result<()> {
        if self.running {
            return Err(Error::precondition("the store cannot be used any more: a host function panicked in it"));
        }
        Ok(())
    }

    /// Runs a closure on the machine. Fails if a host function panicked in this store before.
    pub(crate) fn with_machine<R>(&mut self, stack: &mut Stack, run: impl FnOnce(&mut Machine<'_>) -> Result<R>) -> Result<R> {
        self.check_usable()?;
        self.running = true;
        let scope = self.context.meter.scope.enter(stack.call());
        let mut machine = Machine {
            modules: &self.modules,
            instances: &mut self.instances,
            natives: &mut self.natives,
            context: &mut self.context,
            stack,
            scratch: &mut self.scratch,
        };
        let result = run(&mut machine);
        self.running = false;
        self.context.meter.scope.leave(scope);
        result
    }
}

impl Drop for StoreCore {
    /// Runs `__deinit` of each instance, last first, and ignores its errors (no code runs after a panic of a host function);
    /// then releases all state.
    fn drop(&mut self) {
        let instances = if self.running { 0 } else { self.instances.len() as u32 };
        for instance in (0..instances).rev() {
            if let Some(function) = self.special(instance, "__deinit")
                && let Err(error) = self.call(function, &[])
            {
                tracing::warn!(%error, "deinitialisation failed");
            }
        }
        self.instances.iter_mut().for_each(|instance| instance.refs.clear());
        // Nothing of the store itself may look like a holder of lists from outside.
        self.natives.clear();
        self.scratch = Scratch::default();
        self.stacks.clear();
        self.context.data = Box::new(());
        self.context.lists.clear_cycles();
    }
}
