//! Tests of the hal module through its functions, called by programs made here and by real modules.

mod anything;
mod async_modules;
mod commands;
mod devices;
mod fences;
#[path = "../../../../tests/support/forward.rs"]
mod forward;
mod generations;
mod queue;
mod side_by_side;
mod support;
