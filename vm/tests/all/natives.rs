//! Native modules for tests.

use std::sync::{Arc, Mutex};
use vmfb_vm::{Engine, Error, NativeFunction, NativeModule, Result, Signal};

/// A native module whose functions are made by a closure. Its state is a number, 0 in a new store.
pub struct Native<F> {
    pub name: &'static str,
    pub version: u32,
    pub functions: F,
    pub forks: Forks,
    pub log: Log,
}

/// Whether a module's state can be copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Forks {
    Yes,
    No,
}

/// What happened, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn push(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A native module with version 0 that forks.
pub fn native<F: Fn() -> Vec<NativeFunction<i64>>>(name: &'static str, functions: F) -> Native<F> {
    Native { name, version: 0, functions, forks: Forks::Yes, log: Log::default() }
}

impl<F: Fn() -> Vec<NativeFunction<i64>> + Send + Sync + 'static> NativeModule for Native<F> {
    type State = i64;

    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn functions(&self) -> Vec<NativeFunction<i64>> {
        (self.functions)()
    }

    fn new_state(&self, _engine: &Engine) -> Result<i64> {
        self.log.push(format!("{} state", self.name));
        Ok(0)
    }

    fn fork_state(&self, state: &i64) -> Result<i64> {
        match self.forks {
            Forks::Yes => Ok(*state),
            Forks::No => Err(Error::unimplemented("no copies of this state")),
        }
    }

    fn notify(&self, state: &mut i64, signal: Signal) -> Result<()> {
        self.log.push(format!("{} {signal:?} {state}", self.name));
        Ok(())
    }
}
