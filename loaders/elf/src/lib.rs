//! Loader of embedded ELF executables: parse, lay out, relocate, protect, call.
//!
//! Everything before the first call into the code is checked and cannot be hurt by any file: each address that a file states
//! must lie in its image, and no page is ever writable and executable at once. What the code then does, nobody can check;
//! an engine with [`vmfb_vm::NativeCode::Deny`] loads none.
//!
//! What is not here: the tables of the executable library and the calls over a grid, which `vmfb_hal::abi` has.
#![deny(unsafe_code)]

mod architecture;
#[allow(unsafe_code)]
mod call;
mod dynamic;
mod fat;
mod file;
#[allow(unsafe_code)]
mod image;
mod layout;
mod loader;
mod records;
mod relocate;
mod sections;
mod symbols;
#[allow(unsafe_code)]
mod sys;

pub use architecture::{ARCHITECTURES, Architecture, Field, Formula, RelocationForm, RelocationType};
pub use call::EmbeddedConvention;
pub use fat::select as select_fat;
pub use file::{ElfFile, Placed, Target};
pub use layout::{Layout, Protection, Segment};
pub use loader::{CodePages, ElfLoader, check};
pub use records::Class;
