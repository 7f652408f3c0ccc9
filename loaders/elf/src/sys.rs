//! Executable memory, one module for each operating system.

#[cfg(unix)]
#[path = "sys/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "sys/windows.rs"]
mod system;
#[cfg(not(any(unix, windows)))]
#[path = "sys/unsupported.rs"]
mod system;

pub(crate) use system::{Mapping, page_size};
