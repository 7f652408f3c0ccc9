//! What every HAL flavour shares: element types, HAL buffers, buffer views, executables and their loaders, and the structs of
//! the executable-library ABI.
//!
//! What is not here: the native modules that programs import, and the loaders themselves.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod abi;
mod assert;
mod buffer;
mod bytes;
pub mod coarse_fences;
mod element_type;
mod executable;
mod fence;
mod float8;
mod format;
mod kept;
mod number;
mod pace;
mod pieces;
pub mod processor;
pub mod target;
mod text;
mod trace;
mod view;
pub mod view_functions;
mod workers;

pub use assert::{Expected, assert_view};
pub use buffer::{HalBuffer, MemoryType, Usage, subspan};
pub use bytes::{Bytes, Writer};
pub use element_type::{Class, ElementType};
pub use executable::{
    Binding, Dispatch, Executable, ExecutableLoader, ExecutableParameters, ExecutableReference, Export, Load, load_executable,
};
pub use fence::{Fence, FenceStatus, repeat_error};
pub use float8::float8_to_f32;
pub use format::{ViewText, format_scalar};
pub use number::{General, Letters};
pub use pace::{Pace, workgroups};
pub use pieces::Pieces;
pub use text::{LOST_CONSTANT_HINT, Name, printable};
pub use trace::{Trace, TraceSink, trace_to_stderr};
pub use view::{BufferView, Encoding, MAX_RANK, Shape};
pub use workers::{Task, Workers};
