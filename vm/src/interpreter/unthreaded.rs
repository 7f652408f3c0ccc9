//! What stands for the threaded core where it is not built: for architectures on which nobody has tested it, and for Miri.

use super::{Action, Machine};
use crate::code::Inst;
use crate::stack::Frame;
use crate::{Error, Result};

/// Whether this is the threaded core.
pub(super) const BUILT: bool = false;

/// An op.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadedOp {
    pub(crate) inst: Inst,
}

impl ThreadedOp {
    /// An op.
    pub(crate) fn new(inst: Inst) -> Self {
        Self { inst }
    }
}

/// Never called, as the self-test does not succeed.
pub(super) fn execute(_: &mut Machine<'_>, _: Frame, _: usize) -> Result<Action> {
    Err(Error::internal("this build has no threaded core"))
}
