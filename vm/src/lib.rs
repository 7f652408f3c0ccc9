//! Checked module to running program: translation, interpreter, values, linking and the embedding API.
#![deny(unsafe_code)]

pub mod abi;
mod access_ops;
mod body;
mod buffer;
pub mod bulk;
mod code;
mod cycles;
mod engine;
mod error;
mod fault;
mod func;
mod host;
mod interpreter;
mod linker;
mod list;
mod math;
mod meter;
mod module;
mod native;
mod reference;
mod registers;
mod registry;
mod scope;
mod siphash;
mod stack;
mod store;
mod translate;
mod typed;
mod types;
mod value;
mod value_ops;

pub use buffer::{Buffer, Origin};
pub use engine::{
    Config, Dispatch, Engine, Interruption, KERNEL_STACK_SIZE, NativeCode, TracedInstruction, Tracer, UnsupportedCpu,
};
pub use error::{Error, FrameTrace, Result, ResultExt};
pub use func::{Func, Instance, Invocation};
pub use host::{Caller, HostResults, IntoHostFunction};
pub use linker::Linker;
pub use list::{List, Scalar};
pub use meter::{FuelMetering, InterruptHandle, Meter};
pub use module::{ExportInfo, Module, ModuleBytes};
pub use native::{Arguments, Call, Completion, Context, NativeFunction, NativeModule, RawCall, Results, Signal, Wait};
pub use reference::{Handle, Holders, Object, Ref, RefObject};
pub use scope::CallScope;
pub use store::{Store, StoreCore};
pub use typed::{FromValues, HostType, IntoValues, TypedFunc};
pub use types::{ElementKind, RefType};
pub use value::Value;
pub use vmfb_bytecode::Status;
