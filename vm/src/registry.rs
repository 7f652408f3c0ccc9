//! Native modules behind one type, whatever their state is.

use crate::abi::{ArgumentLayout, Layout};
use crate::native::{Arguments, Body, Call, Completion, Context, NativeFunction, NativeModule, RawCall, Results, Signal};
use crate::{Engine, Error, Module, Ref, Result};
use std::any::Any;
use vmfb_bytecode::calling_convention::CallingConvention;

/// State of a native module in one store.
pub(crate) type NativeState = Box<dyn Any + Send>;

/// A native module with its state type erased.
pub(crate) trait ErasedNative: Send + Sync {
    fn name(&self) -> &str;
    fn version(&self) -> u32;
    /// Index of the function with this name and convention; `Err` with all conventions under this name if none fits.
    fn find(&self, name: &str, convention: &str) -> Result<usize, Vec<String>>;
    fn check_importer(&self, importer: &Module) -> Result<()>;
    fn new_state(&self, engine: &Engine) -> Result<NativeState>;
    fn fork_state(&self, state: &NativeState) -> Result<NativeState>;
    fn notify(&self, state: &mut NativeState, signal: Signal) -> Result<()>;
    fn call(&self, function: usize, state: &mut NativeState, call: NativeArguments<'_>) -> Result<Completion>;
}

/// What a native function is called with.
pub(crate) struct NativeArguments<'a> {
    pub(crate) context: &'a mut Context,
    pub(crate) values: &'a [u32],
    pub(crate) references: &'a [Ref],
    pub(crate) segments: &'a [u16],
    /// Reused for argument buffers.
    pub(crate) buffer: &'a mut Vec<u8>,
    pub(crate) results: &'a mut Results,
}

/// A native module and its functions.
pub(crate) struct Adapter<M: NativeModule> {
    module: M,
    functions: Vec<(NativeFunction<M::State>, ArgumentLayout)>,
}

impl<M: NativeModule> Adapter<M> {
    /// Collects the functions; fails if a convention string is malformed.
    pub(crate) fn new(module: M) -> Result<Self> {
        let functions = module.functions().into_iter().map(|function| {
            let convention: CallingConvention = function.convention.parse()?;
            Ok((function, ArgumentLayout::new(&convention, Layout::Aligned)))
        });
        let functions = functions.collect::<Result<_>>()?;
        Ok(Self { module, functions })
    }
}

fn state_of<S: 'static>(state: &mut NativeState) -> Result<&mut S> {
    state.downcast_mut().ok_or_else(|| Error::internal("the state belongs to another native module"))
}

impl<M: NativeModule> ErasedNative for Adapter<M> {
    fn name(&self) -> &str {
        self.module.name()
    }

    fn version(&self) -> u32 {
        self.module.version()
    }

    fn find(&self, name: &str, convention: &str) -> Result<usize, Vec<String>> {
        let named = || self.functions.iter().enumerate().filter(|(_, (function, _))| function.name == name);
        match named().find(|(_, (function, _))| function.convention == convention) {
            Some((index, _)) => Ok(index),
            None => Err(named().map(|(_, (function, _))| function.convention.to_string()).collect()),
        }
    }

    fn check_importer(&self, importer: &Module) -> Result<()> {
        self.module.check_importer(importer)
    }

    fn new_state(&self, engine: &Engine) -> Result<NativeState> {
        Ok(Box::new(self.module.new_state(engine)?))
    }

    fn fork_state(&self, state: &NativeState) -> Result<NativeState> {
        let state = state.downcast_ref().ok_or_else(|| Error::internal("the state belongs to another native module"))?;
        Ok(Box::new(self.module.fork_state(state)?))
    }

    fn notify(&self, state: &mut NativeState, signal: Signal) -> Result<()> {
        self.module.notify(state_of(state)?, signal)
    }

    #[inline]
    fn call(&self, function: usize, state: &mut NativeState, call: NativeArguments<'_>) -> Result<Completion> {
        let (function, layout) = self.functions.get(function).ok_or_else(|| Error::internal("no such native function"))?;
        let state = state_of(state)?;
        let NativeArguments { context, values, references, segments, buffer, results } = call;
        match &function.body {
            Body::Typed(body) => body(&mut Call { state, context, arguments: Arguments::new(values, references, segments), results }),
            Body::Raw(body) => {
                layout.write(values, references, segments, buffer)?;
                body(&mut RawCall { state, context, arguments: buffer, references, results })?;
                Ok(Completion::Done)
            }
        }
    }
}
