//! Functions with Rust types.

use crate::func::kind_name;
use crate::{Buffer, Error, Func, List, Ref, Result, StoreCore, Value};
use std::marker::PhantomData;
use vmfb_bytecode::calling_convention::Kind;

/// A type that crosses the border to programs as one value.
pub trait HostType: Sized {
    /// What it is for a calling convention.
    const KIND: Kind;

    /// As a value.
    fn into_value(self) -> Value;

    /// From a value; INVALID_ARGUMENT if it is another type.
    fn from_value(value: Value) -> Result<Self>;
}

fn mismatch(value: &Value, wanted: &str) -> Error {
    Error::invalid(format!("found {}, wanted {wanted}", value.type_name()))
}

macro_rules! number {
    ($type:ty, $variant:ident) => {
        impl HostType for $type {
            const KIND: Kind = Kind::$variant;

            fn into_value(self) -> Value {
                Value::$variant(self)
            }

            fn from_value(value: Value) -> Result<Self> {
                match value {
                    Value::$variant(number) => Ok(number),
                    other => Err(mismatch(&other, stringify!($type))),
                }
            }
        }
    };
}

number!(i32, I32);
number!(i64, I64);
number!(f32, F32);
number!(f64, F64);

impl HostType for Ref {
    const KIND: Kind = Kind::Ref;

    fn into_value(self) -> Value {
        Value::Ref(self)
    }

    fn from_value(value: Value) -> Result<Self> {
        match value {
            Value::Ref(reference) => Ok(reference),
            other => Err(mismatch(&other, "a reference")),
        }
    }
}

macro_rules! reference {
    ($type:ty, $get:ident) => {
        impl HostType for $type {
            const KIND: Kind = Kind::Ref;

            fn into_value(self) -> Value {
                Value::Ref(self.into())
            }

            fn from_value(value: Value) -> Result<Self> {
                Ref::from_value(value)?.$get("the value").cloned()
            }
        }
    };
}

reference!(Buffer, buffer);
reference!(List, list);

/// A tuple of arguments.
pub trait IntoValues {
    /// Kinds of the values.
    const KINDS: &'static [Kind];

    /// The values.
    fn into_values(self) -> Vec<Value>;
}

/// A tuple of results.
pub trait FromValues: Sized {
    /// Kinds of the values.
    const KINDS: &'static [Kind];

    /// The tuple of these values.
    fn from_values(values: Vec<Value>) -> Result<Self>;
}

fn next(values: &mut std::vec::IntoIter<Value>) -> Result<Value> {
    values.next().ok_or_else(|| Error::invalid("too few values"))
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<$($name: HostType),*> IntoValues for ($($name,)*) {
            const KINDS: &'static [Kind] = &[$($name::KIND),*];

            #[allow(non_snake_case)]
            fn into_values(self) -> Vec<Value> {
                let ($($name,)*) = self;
                vec![$($name.into_value()),*]
            }
        }

        impl<$($name: HostType),*> FromValues for ($($name,)*) {
            const KINDS: &'static [Kind] = &[$($name::KIND),*];

            #[allow(unused_mut, unused_variables)]
            fn from_values(values: Vec<Value>) -> Result<Self> {
                let mut values = values.into_iter();
                Ok(($($name::from_value(next(&mut values)?)?,)*))
            }
        }
    };
}

tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);

impl<A: HostType> FromValues for A {
    const KINDS: &'static [Kind] = &[A::KIND];

    fn from_values(values: Vec<Value>) -> Result<Self> {
        A::from_value(next(&mut values.into_iter())?)
    }
}

/// A function whose types were checked once.
pub struct TypedFunc<A, R> {
    function: Func,
    types: PhantomData<fn(A) -> R>,
}

impl<A: IntoValues, R: FromValues> TypedFunc<A, R> {
    pub(crate) fn new(function: Func, store: &StoreCore) -> Result<Self> {
        let convention = function.convention(store)?;
        let arguments = convention.plain_arguments().unwrap_or_default();
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind_name(*kind)).collect::<Vec<_>>().join(", ");
        if arguments[..] != *A::KINDS || convention.results[..] != *R::KINDS {
            return Err(Error::invalid(format!(
                "the function is ({}) -> ({}), wanted ({}) -> ({})",
                names(&arguments),
                names(&convention.results),
                names(A::KINDS),
                names(R::KINDS)
            )));
        }
        Ok(Self { function, types: PhantomData })
    }

    /// Calls the function and waits for its results. Arguments are handed over: the program works in place on a tensor to which
    /// nothing else refers. One that the caller keeps a clone of keeps its value.
    pub fn call(&self, store: &mut StoreCore, arguments: A) -> Result<R> {
        R::from_values(self.function.call_owned(store, arguments.into_values())?)
    }
}

impl<A, R> Clone for TypedFunc<A, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, R> Copy for TypedFunc<A, R> {}
