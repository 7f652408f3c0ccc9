//! Loaders of code that the process links itself: system libraries inside modules, and kernels that the host program
//! registers, as library query functions, tables of `extern "C"` functions, or safe closures.
//!
//! What is not here: embedded ELF images, which `vmfb_loader_elf` maps itself.
#![deny(unsafe_code)]

mod closure;
mod element;
#[cfg(unix)]
mod inspect;
#[allow(unsafe_code)]
mod library;
mod placement;
mod process_map;
mod registered;
mod system;

pub use closure::{BindingView, Closure, ClosureLibrary, ClosureLibraryBuilder, Workgroup};
pub use element::Element;
pub use library::{Kernel, StaticLibrary};
pub use placement::Placement;
pub use registered::{Registered, RegisteredLoader};
pub use system::SystemLibraryLoader;
