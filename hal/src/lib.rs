//! What every HAL flavour shares: element types, HAL buffers, buffer views, executables and their loaders, and the structs of
//! the executable-library ABI.
//!
//! What is not here: the native modules that programs import, and the loaders themselves.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod abi;
mod buffer;
mod element_type;
mod executable;
pub mod processor;
mod view;

pub use buffer::{HalBuffer, MemoryType, Usage, subspan};
pub use element_type::{Class, ElementType};
pub use executable::{
    Binding, Dispatch, Executable, ExecutableLoader, ExecutableParameters, ExecutableReference, Export, Load, load_executable,
};
pub use view::{BufferView, Encoding, MAX_RANK, Shape};
