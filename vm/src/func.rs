//! Instances and functions: calling into programs.

use crate::interpreter::Exit;
use crate::native::Wait;
use crate::stack::Stack;
use crate::typed::{FromValues, IntoValues, TypedFunc};
use crate::{Error, Ref, Result, StoreCore, Value};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};
use vmfb_bytecode::calling_convention::{CallingConvention, Kind};

/// A module in a store. Belongs to the store that it was made in and to that store's forks; others refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    pub(crate) index: u32,
    pub(crate) identity: InstanceIdentity,
}

/// Tells an instance from every other that this process ever made, so that stores notice handles that are not theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstanceIdentity(u64);

/// A function of an instance. Belongs to the stores of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Func {
    pub(crate) instance: Instance,
    pub(crate) function: u32,
}

/// Waits are cut into slices of this length, so that interruption is noticed.
const WAIT_SLICE: Duration = Duration::from_millis(20);

impl InstanceIdentity {
    /// One that was never given before. Nothing but difference is made of the number, so engines still know nothing of each other.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Instance {
    /// The exported function with this name; NOT_FOUND lists what there is.
    pub fn function(&self, store: &StoreCore, name: &str) -> Result<Func> {
        let module = store.module_of(*self)?;
        if let Some(function) = store.special(self.index, name) {
            return Ok(function);
        }
        let exports = &module.verified.definition().exports;
        let names: Vec<&str> = exports.iter().map(|export| export.name.as_str()).filter(|name| !name.starts_with("__")).collect();
        let module = &module.verified.definition().name;
        Err(Error::not_found(format!("module {module:?} has no function {name:?}; it has {}", names.join(", "))))
    }

    /// The exported function with this name and these types.
    pub fn typed_function<A: IntoValues, R: FromValues>(&self, store: &StoreCore, name: &str) -> Result<TypedFunc<A, R>> {
        TypedFunc::new(self.function(store, name)?, store)
    }

    /// The module.
    pub fn module<'s>(&self, store: &'s StoreCore) -> Result<&'s vmfb_bytecode::definition::ModuleDef> {
        Ok(store.module_of(*self)?.verified.definition())
    }
}

impl Func {
    /// The function with this ordinal, exported or not, of an instance.
    pub fn by_ordinal(store: &StoreCore, instance: Instance, function: u32) -> Result<Self> {
        let func = Self { instance, function };
        func.convention(store).map(|_| func)
    }

    /// The calling convention.
    pub fn convention<'s>(&self, store: &'s StoreCore) -> Result<&'s CallingConvention> {
        let functions = store.module_of(self.instance)?.verified.functions();
        let info = functions.get(self.function as usize);
        info.map(|info| &info.convention)
            .ok_or_else(|| Error::invalid(format!("function {} of a module with {} functions", self.function, functions.len())))
    }

    /// Calls the function and waits for its results. Tensors among the arguments keep their values: where the program may write
    /// into one, it does so on a copy. [`Func::call_owned`] hands them over instead.
    pub fn call(&self, store: &mut StoreCore, arguments: &[Value]) -> Result<Vec<Value>> {
        self.call_owned(store, arguments.to_vec())
    }

    /// Calls the function with arguments that it may use up, and waits for its results. The program works in place on tensors
    /// to which nothing else refers.
    pub fn call_owned(&self, store: &mut StoreCore, arguments: Vec<Value>) -> Result<Vec<Value>> {
        let mut invocation = self.start_owned(store, arguments)?;
        loop {
            match invocation.poll(store, None)? {
                Poll::Ready(results) => return Ok(results),
                Poll::Pending => {}
            }
        }
    }

    /// Starts a call that can be driven step by step. Nothing runs before the first poll.
    pub fn start(&self, store: &mut StoreCore, arguments: &[Value]) -> Result<Invocation> {
        self.start_owned(store, arguments.to_vec())
    }

    /// As [`Func::start`], with arguments that the function may use up, as for [`Func::call_owned`].
    pub fn start_owned(&self, store: &mut StoreCore, arguments: Vec<Value>) -> Result<Invocation> {
        let convention = self.convention(store)?;
        let (values, refs) = flatten(convention, arguments)?;
        let results = convention.results.iter().copied().collect();
        let stack = self.enter(store, &values, &refs)?;
        Ok(Invocation { stack: Some(stack), results, waiting: None, store: store.identity.clone() })
    }

    /// Calls the function with values and references as the calling convention orders them, 64-bit values as low and high half.
    /// For callers that call often: nothing is allocated, and objects are passed as they are. Waits and yields are driven to the end.
    pub fn call_raw(&self, store: &mut StoreCore, values: &[u32], refs: &[Ref]) -> Result<()> {
        let mut stack = self.enter(store, values, refs)?;
        // A wait lives until the repeated call is over, as in an invocation.
        let mut _waiting;
        let result = loop {
            match store.with_machine(&mut stack, |machine| machine.run(0)) {
                Ok(Exit::Returned) => break Ok(()),
                Ok(Exit::Yielded) => {}
                Ok(Exit::Waiting(wait)) => {
                    if let Err(error) = block(store, &mut stack, &wait, None) {
                        break Err(error);
                    }
                    _waiting = wait;
                }
                Err(error) => break Err(error),
            }
        };
        stack.end_call();
        store.give_stack(stack);
        result
    }

    fn enter(&self, store: &mut StoreCore, values: &[u32], refs: &[Ref]) -> Result<Stack> {
        self.convention(store)?;
        let mut stack = store.take_stack();
        stack.begin_call();
        let (instance, function) = (self.instance.index, self.function);
        let entered = store.with_machine(&mut stack, |machine| machine.enter(instance, function, values, refs));
        if let Err(error) = entered {
            stack.end_call();
            store.give_stack(stack);
            return Err(error);
        }
        Ok(stack)
    }
}

/// A call that has not ended. Dropping it gives the call up.
pub struct Invocation {
    stack: Option<Stack>,
    results: SmallVec<[Kind; 4]>,
    waiting: Option<Wait>,
    /// Identity of the store that the frames belong to.
    store: Arc<()>,
}

impl Invocation {
    /// Runs until the function returns (the results), until it waits longer than to the deadline, or until it yields (pending).
    /// Without a deadline waits are waited for. The store must be the one in which the call was started.
    pub fn poll(&mut self, store: &mut StoreCore, deadline: Option<Instant>) -> Result<Poll<Vec<Value>>> {
        if !Arc::ptr_eq(&self.store, &store.identity) {
            return Err(Error::invalid("the call was started in another store"));
        }
        let Some(stack) = &mut self.stack else {
            return Err(Error::precondition("the call has ended already"));
        };
        let _entered = tracing::trace_span!("run").entered();
        loop {
            if let Some(wait) = &self.waiting
                && let Err(error) = block(store, stack, wait, deadline)
            {
                self.end(store);
                return Err(error);
            }
            match store.with_machine(stack, |machine| machine.run(0)) {
                Ok(Exit::Returned) => break,
                Ok(Exit::Yielded) => {
                    self.waiting = None;
                    return Ok(Poll::Pending);
                }
                Ok(Exit::Waiting(wait)) => {
                    self.waiting = Some(wait);
                    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return Ok(Poll::Pending);
                    }
                }
                Err(error) => {
                    self.end(store);
                    return Err(error);
                }
            }
        }
        let results = unflatten(&self.results, store);
        self.end(store);
        results.map(Poll::Ready)
    }

    /// What the call waits for, if it does.
    pub fn waits_for(&self) -> Option<&str> {
        self.waiting.as_ref().map(|wait| wait.what.as_str())
    }

    fn end(&mut self, store: &mut StoreCore) {
        if let Some(mut stack) = self.stack.take() {
            stack.end_call();
            store.give_stack(stack);
        }
    }
}

/// Waits in slices, so that interruption and the store's deadline end the wait.
fn block(store: &mut StoreCore, stack: &mut Stack, wait: &Wait, deadline: Option<Instant>) -> Result<()> {
    if let Err(error) = store.context.meter.poll() {
        let error = error.context(format!("waiting for {}", wait.what));
        return store.with_machine(stack, |machine| Err(machine.end_wait(error)));
    }
    let slice = Instant::now() + WAIT_SLICE;
    (wait.block)(deadline.map_or(slice, |deadline| deadline.min(slice)));
    Ok(())
}

type Flat = (SmallVec<[u32; 16]>, SmallVec<[Ref; 8]>);

/// Arguments as slots. Integers convert to each other as far as they fit the declared width, floats too; numbers of the other
/// sort are refused.
fn flatten(convention: &CallingConvention, arguments: Vec<Value>) -> Result<Flat> {
    let kinds = convention.plain_arguments().ok_or_else(|| Error::invalid("a function with spans cannot be called from outside"))?;
    if kinds.len() != arguments.len() {
        let (wanted, found) = (kinds.len(), arguments.len());
        return Err(Error::invalid(format!("the function takes {wanted} arguments ({convention}), found {found}")));
    }
    let (mut values, mut refs) = Flat::default();
    for (index, (kind, argument)) in kinds.iter().zip(arguments).enumerate() {
        let mut push64 = |bits: u64| values.extend([bits as u32, (bits >> 32) as u32]);
        match (kind, argument) {
            (Kind::I64, Value::I32(value)) => push64(i64::from(value) as u64),
            (Kind::I64, Value::I64(value)) => push64(value as u64),
            (Kind::F64, Value::F32(value)) => push64(f64::from(value).to_bits()),
            (Kind::F64, Value::F64(value)) => push64(value.to_bits()),
            (Kind::I32, Value::I32(value)) => values.push(value as u32),
            (Kind::I32, Value::I64(value)) => values.push(value as u32),
            (Kind::F32, Value::F32(value)) => values.push(value.to_bits()),
            (Kind::F32, Value::F64(value)) => values.push((value as f32).to_bits()),
            (Kind::Ref, Value::Ref(reference)) => refs.push(reference.into_argument()),
            (_, argument) => {
                let (wanted, found) = (kind_name(*kind), argument.type_name());
                return Err(Error::invalid(format!("argument {index} is {found}, wanted {wanted}")));
            }
        }
    }
    Ok((values, refs))
}

pub(crate) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::I32 => "i32",
        Kind::I64 => "i64",
        Kind::F32 => "f32",
        Kind::F64 => "f64",
        Kind::Ref => "a reference",
    }
}

/// Takes the results of the last run out of the store.
fn unflatten(kinds: &[Kind], store: &mut StoreCore) -> Result<Vec<Value>> {
    let results = &mut store.scratch.results;
    let mut slots = results.values.drain(..);
    let mut references = results.references.drain(..);
    let missing = || Error::internal("the function returned fewer results than its calling convention has");
    let mut next = || slots.next().ok_or_else(missing);
    let mut values = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let mut next64 = || -> Result<u64> { Ok(u64::from(next()?) | u64::from(next()?) << 32) };
        values.push(match kind {
            Kind::I64 => Value::I64(next64()? as i64),
            Kind::F64 => Value::F64(f64::from_bits(next64()?)),
            Kind::I32 => Value::I32(next()? as i32),
            Kind::F32 => Value::F32(f32::from_bits(next()?)),
            Kind::Ref => Value::Ref(references.next().ok_or_else(missing)?),
        });
    }
    Ok(values)
}
