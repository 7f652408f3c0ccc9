//! References: counted, typed, nullable.

use crate::{Buffer, Error, List, Result};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use vmfb_memory::{Charge, MemoryAccount};

/// A counted, typed, nullable reference, as ref registers hold them.
#[derive(Clone, Default)]
pub enum Ref {
    /// No object.
    #[default]
    Null,
    /// `!vm.buffer`.
    Buffer(Buffer),
    /// `!vm.list<…>`.
    List(List),
    /// An object of a native module or an embedder.
    Object(Object),
}

/// A type whose values programs can hold references to.
pub trait RefObject: Any + Send + Sync {
    /// The type's name in module type tables without the exclamation mark, for example `hal.buffer_view`.
    const TYPE_NAME: &'static str;

    /// What a program is given in place of the object when a host passes it to a call; `None` stands for the object itself.
    /// `holders` says whether the host keeps a reference. Tensors that the host keeps are lent: the program cannot change them.
    fn lent(&self, holders: Holders) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = holders;
        None
    }
}

/// Who refers to an object that is passed to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holders {
    /// The call alone.
    Call,
    /// The call and others.
    Others,
}

/// A reference to an object that is neither a buffer nor a list.
#[derive(Clone)]
pub struct Object(Arc<ObjectBox>);

struct ObjectBox {
    type_name: &'static str,
    lent: fn(&(dyn Any + Send + Sync), Holders) -> Option<Ref>,
    payload: Box<dyn Any + Send + Sync>,
    /// Pays for the object, where a program made it.
    _charge: Option<Charge>,
}

/// What an object costs beside its own size: both allocations, with their counters.
const OBJECT_OVERHEAD: usize = 64;

/// A reference to an object whose type is known.
pub struct Handle<T> {
    object: Object,
    of: PhantomData<fn() -> T>,
}

impl Ref {
    /// A reference to a new object.
    pub fn new<T: RefObject>(object: T) -> Self {
        Handle::new(object).into()
    }

    /// Whether there is no object.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Name of the object's type without the exclamation mark; `null` for null.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Buffer(_) => "vm.buffer",
            Self::List(_) => "vm.list",
            Self::Object(object) => object.type_name(),
        }
    }

    /// Whether both are null or refer to the same object.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Buffer(a), Self::Buffer(b)) => a.same(b),
            (Self::List(a), Self::List(b)) => a.same(b),
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(&a.0, &b.0),
            _ => false,
        }
    }

    /// The buffer; INVALID_ARGUMENT naming `what` for null and other types.
    #[inline]
    pub fn buffer(&self, what: &str) -> Result<&Buffer> {
        match self {
            Self::Buffer(buffer) => Ok(buffer),
            _ => Err(self.mismatch(what, "vm.buffer")),
        }
    }

    /// The list; INVALID_ARGUMENT naming `what` for null and other types.
    #[inline]
    pub fn list(&self, what: &str) -> Result<&List> {
        match self {
            Self::List(list) => Ok(list),
            _ => Err(self.mismatch(what, "vm.list")),
        }
    }

    /// The object of type `T`; INVALID_ARGUMENT naming `what` for null and other types.
    pub fn object<T: RefObject>(&self, what: &str) -> Result<&T> {
        self.downcast().ok_or_else(|| self.mismatch(what, T::TYPE_NAME))
    }

    /// The object of type `T`, if it is one.
    pub fn downcast<T: RefObject>(&self) -> Option<&T> {
        match self {
            Self::Object(object) => object.0.payload.downcast_ref(),
            _ => None,
        }
    }

    /// The reference that a call is given in place of this one: see [`RefObject::lent`].
    pub(crate) fn into_argument(self) -> Self {
        let lent = match &self {
            Self::Object(object) => {
                let holders = if Arc::strong_count(&object.0) == 1 { Holders::Call } else { Holders::Others };
                (object.0.lent)(&*object.0.payload, holders)
            }
            _ => None,
        };
        lent.unwrap_or(self)
    }

    /// A handle of the object of type `T`; INVALID_ARGUMENT naming `what` for null and other types.
    pub fn handle<T: RefObject>(&self, what: &str) -> Result<Handle<T>> {
        match self {
            Self::Object(object) if object.0.payload.is::<T>() => Ok(Handle { object: object.clone(), of: PhantomData }),
            _ => Err(self.mismatch(what, T::TYPE_NAME)),
        }
    }

    #[cold]
    fn mismatch(&self, what: &str, wanted: &str) -> Error {
        match self {
            Self::Null => Error::invalid(format!("{what} is null, wanted a !{wanted}")),
            _ => Error::invalid(format!("{what} is a !{}, wanted a !{wanted}", self.type_name())),
        }
    }
}

impl Object {
    /// Name of the object's type without the exclamation mark.
    pub fn type_name(&self) -> &'static str {
        self.0.type_name
    }

    /// The object as any type.
    pub fn as_any(&self) -> &(dyn Any + Send + Sync) {
        &*self.0.payload
    }
}

impl<T: RefObject> Handle<T> {
    /// Whether this is the only reference to the object.
    pub fn is_sole(handle: &Self) -> bool {
        Arc::strong_count(&handle.object.0) == 1
    }

    /// A handle of a new object of the host. What programs make is charged: see [`Handle::charged`].
    pub fn new(object: T) -> Self {
        Self::boxed(object, None)
    }

    /// A handle of a new object that is charged to the account until the last reference to it is dropped: its size, and
    /// `extra` bytes that it holds elsewhere.
    pub fn charged(object: T, extra: u64, account: &MemoryAccount) -> Result<Self> {
        let size = size_of::<ObjectBox>().saturating_add(size_of::<T>()).saturating_add(OBJECT_OVERHEAD) as u64;
        Ok(Self::boxed(object, Some(account.hold(size.saturating_add(extra))?)))
    }

    fn boxed(object: T, charge: Option<Charge>) -> Self {
        let lent = |payload: &(dyn Any + Send + Sync), holders| payload.downcast_ref::<T>()?.lent(holders).map(Ref::new);
        let inner = ObjectBox { type_name: T::TYPE_NAME, lent, payload: Box::new(object), _charge: charge };
        Self { object: Object(Arc::new(inner)), of: PhantomData }
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), of: PhantomData }
    }
}

impl<T: RefObject> Deref for Handle<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let Some(object) = self.object.0.payload.downcast_ref() else { unreachable!("a handle is made of objects of its type alone") };
        object
    }
}

impl<T: RefObject> From<Handle<T>> for Ref {
    fn from(handle: Handle<T>) -> Self {
        Self::Object(handle.object)
    }
}

impl From<Buffer> for Ref {
    fn from(buffer: Buffer) -> Self {
        Self::Buffer(buffer)
    }
}

impl From<List> for Ref {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl fmt::Debug for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            _ => write!(f, "!{}", self.type_name()),
        }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "!{}", self.object.type_name())
    }
}
