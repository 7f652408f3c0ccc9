//! `channel.*` and collectives, which a device of one process does not have.

use crate::State;
use vmfb_vm::{Call, Error, Result};

pub(crate) fn create(_call: &mut Call<'_, State>) -> Result<()> {
    Err(unsupported("channel.create"))
}

pub(crate) fn split(_call: &mut Call<'_, State>) -> Result<()> {
    Err(unsupported("channel.split"))
}

pub(crate) fn rank_and_count(_call: &mut Call<'_, State>) -> Result<()> {
    Err(unsupported("channel.rank_and_count"))
}

pub(crate) fn collective(_call: &mut Call<'_, State>) -> Result<()> {
    Err(unsupported("command_buffer.collective"))
}

#[cold]
fn unsupported(function: &str) -> Error {
    Error::unimplemented(format!("{function}: the local device is one process and has no channels for collective operations"))
}
