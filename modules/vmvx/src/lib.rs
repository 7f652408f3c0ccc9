//! The vmvx native module: microkernels of VMVX executables.
//!
//! All functions work on elements of 32 bits (copies on 8 to 64) of matrices in buffers, `offset + i * stride0 + j * stride1`
//! being the element (i, j). Every element that a call touches is checked to lie in its buffer before the first is
//! touched, and the work is charged to the store's meter before it is done. An output may be the same range as an input; where ranges
//! overlap otherwise, the result is unspecified.
#![deny(unsafe_code)]

mod elementwise;
mod flags;
mod functions;
mod kernel;
mod matmul;
mod matrix;
mod mmt4d;
mod pack;
#[cfg(test)]
mod test_support;

use kernel::Kernels;
use mmt4d::Scratch;
use vmfb_vm::{Engine, NativeFunction, NativeModule, Result};

/// The module `vmvx`, for linkers of VMVX executables and of programs that have their kernels in themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vmvx;

/// What the module keeps in a store: blocks of matrices, at most about half a megabyte, between calls.
pub struct State {
    kernels: Kernels,
    scratch: Scratch,
}

impl Vmvx {
    /// The module.
    pub fn new() -> Self {
        Self
    }
}

impl NativeModule for Vmvx {
    type State = State;

    fn name(&self) -> &str {
        "vmvx"
    }

    fn functions(&self) -> Vec<NativeFunction<State>> {
        functions::all()
    }

    fn new_state(&self, _engine: &Engine) -> Result<State> {
        Ok(State::new())
    }

    fn fork_state(&self, _state: &State) -> Result<State> {
        Ok(State::new())
    }
}

impl State {
    fn new() -> Self {
        Self { kernels: Kernels::detect(), scratch: Scratch::default() }
    }
}
