//! Checked module to running program: translation, interpreter, values, linking and the embedding API.
#![forbid(unsafe_code)]

mod buffer;
mod engine;
mod error;
mod list;
mod meter;
mod native;
mod reference;
mod types;
mod value;

pub use buffer::{Buffer, Origin};
pub use engine::{Config, Engine, NativeCode};
pub use error::{Error, FrameTrace, Result, ResultExt};
pub use list::{List, Scalar};
pub use meter::{FuelMetering, InterruptHandle, Meter};
pub use native::{Arguments, Call, Completion, Context, NativeFunction, NativeModule, RawCall, Results, Signal, Wait};
pub use reference::{Handle, Object, Ref, RefObject};
pub use types::{ElementKind, RefType};
pub use value::Value;
pub use vmfb_bytecode::Status;
