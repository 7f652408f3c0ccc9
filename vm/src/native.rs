//! Native modules: named functions in Rust that programs import.
//!
//! A module exports one name several times, once per historical calling-convention string; the importer's string chooses.

use crate::cycles::Registry;
use crate::{Buffer, ElementKind, Engine, Error, Handle, List, Meter, Module, Ref, RefObject, Result};
use smallvec::SmallVec;
use std::any::Any;
use std::borrow::Cow;
use std::time::Instant;
use vmfb_memory::MemoryAccount;

/// A module that is written in Rust. State is kept per store.
pub trait NativeModule: Send + Sync + 'static {
    /// State of the module in one store.
    type State: Send + 'static;

    /// Name that importers use, for example `hal_loader`.
    fn name(&self) -> &str;

    /// Version that importers may require.
    fn version(&self) -> u32 {
        0
    }

    /// The functions; called once when the module is added to a linker.
    fn functions(&self) -> Vec<NativeFunction<Self::State>>;

    /// Called when a module is linked that imports functions of this one, before its initialiser runs. An error refuses it.
    fn check_importer(&self, _importer: &Module) -> Result<()> {
        Ok(())
    }

    /// State for a new store.
    fn new_state(&self, engine: &Engine) -> Result<Self::State>;

    /// State for a fork of a store.
    fn fork_state(&self, _state: &Self::State) -> Result<Self::State> {
        Err(Error::unimplemented(format!("module {} cannot be forked", self.name())))
    }

    /// Called when the store is signalled.
    fn notify(&self, _state: &mut Self::State, _signal: Signal) -> Result<()> {
        Ok(())
    }
}

/// What a store can be told. The numbers are those that `__notify` functions of modules receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The program goes on after a suspension.
    Resume = 0,
    /// The program is about to be suspended.
    Suspend = 1,
    /// Memory is short; caches should be dropped.
    LowMemory = 2,
    /// The store was forked; sent in the child.
    Fork = 3,
}

/// One exported function of a native module.
pub struct NativeFunction<S> {
    pub(crate) name: Cow<'static, str>,
    pub(crate) convention: Cow<'static, str>,
    pub(crate) body: Body<S>,
}

pub(crate) enum Body<S> {
    Typed(TypedBody<S>),
    Raw(RawBody<S>),
}

pub(crate) type TypedBody<S> = Box<dyn Fn(&mut Call<'_, S>) -> Result<Completion> + Send + Sync>;
pub(crate) type RawBody<S> = Box<dyn Fn(&mut RawCall<'_, S>) -> Result<()> + Send + Sync>;

/// How a call of a native function ended.
pub enum Completion {
    /// The results are there.
    Done,
    /// The function waits. It is called again, with the same arguments, when the wait is over.
    Wait(Wait),
}

/// What a function that is not done waits for.
pub struct Wait {
    /// Blocks until the condition may hold or the moment has passed; may return early.
    pub block: Box<dyn Fn(Instant) + Send>,
    /// What is waited for, for messages.
    pub what: String,
}

impl<S: 'static> NativeFunction<S> {
    /// A function that reads typed arguments in order and pushes its results.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        convention: impl Into<Cow<'static, str>>,
        body: impl Fn(&mut Call<'_, S>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::waiting(name, convention, move |call| body(call).map(|()| Completion::Done))
    }

    /// A function that may have to wait for something outside the program.
    pub fn waiting(
        name: impl Into<Cow<'static, str>>,
        convention: impl Into<Cow<'static, str>>,
        body: impl Fn(&mut Call<'_, S>) -> Result<Completion> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), convention: convention.into(), body: Body::Typed(Box::new(body)) }
    }

    /// A function that unpacks the argument buffer itself. The buffer has the aligned layout ([`crate::abi`]); a reference is
    /// an index into [`RawCall::references`].
    pub fn raw(
        name: impl Into<Cow<'static, str>>,
        convention: impl Into<Cow<'static, str>>,
        body: impl Fn(&mut RawCall<'_, S>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), convention: convention.into(), body: Body::Raw(Box::new(body)) }
    }
}

/// One call of a typed native function.
pub struct Call<'a, S> {
    /// The module's state in this store.
    pub state: &'a mut S,
    /// Limits and allocation.
    pub context: &'a mut Context,
    /// The arguments, to be read in the order of the calling convention.
    pub arguments: Arguments<'a>,
    /// The results, to be pushed in the order of the calling convention.
    pub results: &'a mut Results,
}

/// One call of a native function that unpacks its argument buffer itself.
pub struct RawCall<'a, S> {
    /// The module's state in this store.
    pub state: &'a mut S,
    /// Limits and allocation.
    pub context: &'a mut Context,
    /// The argument buffer.
    pub arguments: &'a [u8],
    /// What the reference slots of the argument buffer refer to.
    pub references: &'a [Ref],
    /// The results, to be pushed in the order of the calling convention.
    pub results: &'a mut Results,
}

/// A cursor over arguments. The calling convention was checked when the import was linked, so reading anything else than it
/// says is a mistake of the native module and INTERNAL.
pub struct Arguments<'a> {
    values: &'a [u32],
    references: &'a [Ref],
    segments: &'a [u16],
}

impl<'a> Arguments<'a> {
    /// A cursor over value slots (64-bit values as low and high slot, without alignment), references and tuple counts.
    pub fn new(values: &'a [u32], references: &'a [Ref], segments: &'a [u16]) -> Self {
        Self { values, references, segments }
    }

    /// The next argument, an i32.
    #[inline]
    pub fn i32(&mut self) -> Result<i32> {
        let (value, rest) = self.values.split_first().ok_or_else(misread)?;
        self.values = rest;
        Ok(*value as i32)
    }

    /// The next argument, an i32 that is read as unsigned.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.i32().map(|value| value as u32)
    }

    /// The next argument, an i64.
    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        let ([low, high], rest) = self.values.split_first_chunk().ok_or_else(misread)?;
        self.values = rest;
        Ok((u64::from(*low) | u64::from(*high) << 32) as i64)
    }

    /// The next argument, an i64 that is read as unsigned.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.i64().map(|value| value as u64)
    }

    /// The next argument, an f32.
    pub fn f32(&mut self) -> Result<f32> {
        self.u32().map(f32::from_bits)
    }

    /// The next argument, an f64.
    pub fn f64(&mut self) -> Result<f64> {
        self.u64().map(f64::from_bits)
    }

    /// The next argument, a reference; null allowed.
    #[inline]
    pub fn reference(&mut self) -> Result<&'a Ref> {
        let (first, rest) = self.references.split_first().ok_or_else(misread)?;
        self.references = rest;
        Ok(first)
    }

    /// The next argument, a buffer that is not null; `what` names it in the error.
    #[inline]
    pub fn buffer(&mut self, what: &str) -> Result<&'a Buffer> {
        self.reference()?.buffer(what)
    }

    /// The next argument, a list that is not null.
    pub fn list(&mut self, what: &str) -> Result<&'a List> {
        self.reference()?.list(what)
    }

    /// The next argument, an object of type `T` that is not null.
    #[inline]
    pub fn object<T: RefObject>(&mut self, what: &str) -> Result<&'a T> {
        self.reference()?.object(what)
    }

    /// The next argument, a handle of an object of type `T` that is not null.
    pub fn handle<T: RefObject>(&mut self, what: &str) -> Result<Handle<T>> {
        self.reference()?.handle(what)
    }

    /// The next argument, a span: the number of tuples whose fields follow.
    #[inline]
    pub fn span(&mut self) -> Result<usize> {
        let (count, rest) = self.segments.split_first().ok_or_else(misread)?;
        self.segments = rest;
        Ok(usize::from(*count))
    }
}

#[cold]
fn misread() -> Error {
    Error::internal("a native function read more arguments than its calling convention has")
}

/// Results of a native call.
#[derive(Default)]
pub struct Results {
    pub(crate) values: SmallVec<[u32; 8]>,
    pub(crate) references: SmallVec<[Ref; 4]>,
}

impl Results {
    /// Adds an i32.
    #[inline]
    pub fn push_i32(&mut self, value: i32) {
        self.values.push(value as u32);
    }

    /// Adds an i64.
    #[inline]
    pub fn push_i64(&mut self, value: i64) {
        self.values.push(value as u32);
        self.values.push((value as u64 >> 32) as u32);
    }

    /// Adds an f32.
    pub fn push_f32(&mut self, value: f32) {
        self.push_i32(value.to_bits() as i32);
    }

    /// Adds an f64.
    pub fn push_f64(&mut self, value: f64) {
        self.push_i64(value.to_bits() as i64);
    }

    /// Adds a reference.
    #[inline]
    pub fn push_reference(&mut self, reference: impl Into<Ref>) {
        self.references.push(reference.into());
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.references.clear();
    }
}

/// What every native call may use: limits, allocation, the engine, the host's data.
pub struct Context {
    pub(crate) engine: Engine,
    /// The store's limits.
    pub meter: Meter,
    pub(crate) lists: Registry,
    pub(crate) data: Box<dyn Any + Send>,
}

impl Context {
    pub(crate) fn new(engine: Engine, data: Box<dyn Any + Send>) -> Self {
        let account = MemoryAccount::with_limit(engine.config().memory_limit);
        let meter = Meter::new(engine.config().fuel, account);
        Self { engine, meter, lists: Registry::default(), data }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// New zeroed bytes, charged to the store. `length` and `alignment` are as programs give them.
    pub fn allocate(&mut self, length: u64, alignment: u64) -> Result<Buffer> {
        let length = usize::try_from(length).map_err(|_| Error::exhausted(format!("no memory for {length} bytes")))?;
        let alignment = usize::try_from(alignment).map_err(|_| Error::invalid(format!("alignment {alignment} is too large")))?;
        self.meter.charge_bytes(length as u64)?;
        Buffer::allocate(length, alignment, self.meter.account())
    }

    /// A new object, charged to the store until the last reference to it is dropped.
    pub fn new_object<T: RefObject>(&self, object: T) -> Result<Handle<T>> {
        Handle::charged(object, 0, self.meter.account())
    }

    /// A new list, charged to the store. The store clears lists that only cycles keep alive when it ends.
    pub fn new_list(&mut self, element: ElementKind, capacity: u32) -> Result<List> {
        let account = self.meter.account();
        List::new_in(element, capacity, account, Some(self.lists.reserve(account)?))
    }

    /// The host's data, if it is of type `T`.
    pub fn data<T: 'static>(&self) -> Option<&T> {
        self.data.downcast_ref()
    }

    /// The host's data, if it is of type `T`.
    pub fn data_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.data.downcast_mut()
    }
}
