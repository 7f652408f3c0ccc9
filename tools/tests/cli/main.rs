//! The tools as their users meet them: real processes, real files.

mod archives;
mod bad_input;
mod bench;
mod devices;
mod differential;
mod dump;
mod help;
#[cfg(unix)]
mod interrupt;
mod modules_of_other_kinds;
mod official;
mod programs;
mod results;
mod start;
mod support;
