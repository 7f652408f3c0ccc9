//! Host functions: closures that programs import.

use crate::native::{Call, Context, NativeFunction, NativeModule};
use crate::typed::{FromValues, HostType};
use crate::{Buffer, Engine, List, Meter, Result, Value};
use std::marker::PhantomData;
use std::sync::Mutex;
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind};

/// What a host function may do to the store that calls it. `T` is the type of the store's data.
pub struct Caller<'a, T> {
    context: &'a mut Context,
    data: PhantomData<fn() -> T>,
}

impl<T: 'static> Caller<'_, T> {
    /// The host's data; `None` if the store was made with data of another type.
    pub fn data(&self) -> Option<&T> {
        self.context.data()
    }

    /// The host's data; `None` if the store was made with data of another type.
    pub fn data_mut(&mut self) -> Option<&mut T> {
        self.context.data_mut()
    }

    /// New zeroed bytes, charged to the store.
    pub fn allocate(&mut self, length: u64) -> Result<Buffer> {
        self.context.allocate(length, 64)
    }

    /// A new list of anything, charged to the store.
    pub fn new_list(&mut self) -> Result<List> {
        self.context.new_list(crate::ElementKind::Variant, 0)
    }

    /// The store's limits, to charge work to.
    pub fn meter(&mut self) -> &mut Meter {
        &mut self.context.meter
    }
}

/// A closure that can be a host function: `Fn(A, B, …) -> Result<R>`, optionally with a [`Caller`] first. `A`, `B` are
/// [`HostType`]s, `R` is one, or a tuple of them, or `()`.
pub trait IntoHostFunction<Arguments, Results>: Send + Sync + 'static {
    /// The function under a name.
    fn into_host_function(self, name: &str) -> NativeFunction<()>;
}

fn convention(arguments: &[Kind], results: &[Kind]) -> String {
    let convention = CallingConvention {
        arguments: arguments.iter().map(|kind| Item::Plain(*kind)).collect(),
        results: results.iter().copied().collect(),
    };
    convention.to_string()
}

fn read<A: HostType>(call: &mut Call<'_, ()>) -> Result<A> {
    A::from_value(match A::KIND {
        Kind::I32 => Value::I32(call.arguments.i32()?),
        Kind::I64 => Value::I64(call.arguments.i64()?),
        Kind::F32 => Value::F32(call.arguments.f32()?),
        Kind::F64 => Value::F64(call.arguments.f64()?),
        Kind::Ref => Value::Ref(call.arguments.reference()?.clone()),
    })
}

fn write(call: &mut Call<'_, ()>, values: Vec<Value>) {
    for value in values {
        match value {
            Value::I32(value) => call.results.push_i32(value),
            Value::I64(value) => call.results.push_i64(value),
            Value::F32(value) => call.results.push_f32(value),
            Value::F64(value) => call.results.push_f64(value),
            Value::Ref(value) => call.results.push_reference(value),
        }
    }
}

/// Results of a host function.
pub trait HostResults {
    /// Kinds of the values.
    const KINDS: &'static [Kind];

    /// The values.
    fn into_values(self) -> Vec<Value>;
}

impl<R: HostType> HostResults for R {
    const KINDS: &'static [Kind] = &[R::KIND];

    fn into_values(self) -> Vec<Value> {
        vec![self.into_value()]
    }
}

macro_rules! host_results {
    ($($name:ident)*) => {
        impl<$($name: HostType),*> HostResults for ($($name,)*) {
            const KINDS: &'static [Kind] = <($($name,)*) as FromValues>::KINDS;

            fn into_values(self) -> Vec<Value> {
                crate::typed::IntoValues::into_values(self)
            }
        }
    };
}

host_results!();
host_results!(A);
host_results!(A B);
host_results!(A B C);
host_results!(A B C D);

macro_rules! host_functions {
    ($($name:ident)*) => {
        impl<Body, Out, $($name: HostType + 'static),*> IntoHostFunction<($($name,)*), Out> for Body
        where
            Body: Fn($($name),*) -> Result<Out> + Send + Sync + 'static,
            Out: HostResults + 'static,
        {
            #[allow(non_snake_case)]
            fn into_host_function(self, name: &str) -> NativeFunction<()> {
                NativeFunction::new(name.to_owned(), convention(&[$($name::KIND),*], Out::KINDS), move |call| {
                    $(let $name = read::<$name>(call)?;)*
                    let results = self($($name),*)?;
                    write(call, results.into_values());
                    Ok(())
                })
            }
        }

        impl<Body, Data, Out, $($name: HostType + 'static),*> IntoHostFunction<(Caller<'static, Data>, $($name,)*), Out> for Body
        where
            Body: Fn(Caller<'_, Data>, $($name),*) -> Result<Out> + Send + Sync + 'static,
            Data: 'static,
            Out: HostResults + 'static,
        {
            #[allow(non_snake_case)]
            fn into_host_function(self, name: &str) -> NativeFunction<()> {
                NativeFunction::new(name.to_owned(), convention(&[$($name::KIND),*], Out::KINDS), move |call| {
                    $(let $name = read::<$name>(call)?;)*
                    let results = self(Caller { context: call.context, data: PhantomData }, $($name),*)?;
                    write(call, results.into_values());
                    Ok(())
                })
            }
        }
    };
}

host_functions!();
host_functions!(A);
host_functions!(A B);
host_functions!(A B C);
host_functions!(A B C D);
host_functions!(A B C D E);
host_functions!(A B C D E F);

/// A module of one host function.
pub(crate) struct HostFunction {
    module: String,
    /// Taken when the module is added to a linker.
    function: Mutex<Option<NativeFunction<()>>>,
}

impl HostFunction {
    pub(crate) fn new(module: &str, function: NativeFunction<()>) -> Self {
        Self { module: module.to_owned(), function: Mutex::new(Some(function)) }
    }
}

impl NativeModule for HostFunction {
    type State = ();

    fn name(&self) -> &str {
        &self.module
    }

    fn functions(&self) -> Vec<NativeFunction<()>> {
        self.function.lock().ok().and_then(|mut function| function.take()).into_iter().collect()
    }

    fn new_state(&self, _engine: &Engine) -> Result<()> {
        Ok(())
    }

    fn fork_state(&self, (): &()) -> Result<()> {
        Ok(())
    }
}
