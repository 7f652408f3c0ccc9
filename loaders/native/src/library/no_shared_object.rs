//! Where the system has no shared objects.

use crate::placement::Placed;
use std::sync::Arc;
use vmfb_hal::{Executable, ExecutableParameters};
use vmfb_vm::{Error, Result};

/// Refuses the library.
pub(crate) fn open(mut placed: Placed, parameters: &ExecutableParameters<'_>) -> Result<Arc<dyn Executable>> {
    placed.opened();
    Err(Error::unimplemented(format!(
        "this system opens no shared objects: {} of the format {:?}",
        placed.path().display(),
        parameters.format
    )))
}
