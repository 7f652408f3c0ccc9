//! Runs the `.vmfb` modules that the IREE compiler writes: every release since 2023-02, memory-safe, in pure Rust.
//!
//! ```
//! use vmfb::{BufferView, Engine, Module, Store};
//!
//! # fn main() -> vmfb::Result<()> {
//! let engine = Engine::default();
//! let module = Module::new(&engine, include_bytes!("../samples/hello/mul_vmvx.vmfb"))?;
//! let mut store = Store::new(&engine, ());
//! let instance = vmfb::linker()?.instantiate(&mut store, &module)?;
//!
//! let a = BufferView::from_f32(&[4], &[1.0, 2.0, 3.0, 4.0])?;
//! let b = BufferView::from_f32(&[4], &[10.0, 20.0, 30.0, 40.0])?;
//! let mul = instance.typed_function::<(BufferView, BufferView), BufferView>(&store, "mul")?;
//! let product = mul.call(&mut store, (a, b))?;
//! assert_eq!(product.to_f32()?, [10.0, 40.0, 90.0, 160.0]);
//! # Ok(()) }
//! ```
//!
//! # Concepts
//!
//! * [`Engine`]: configuration; no global state besides. [`Module`]: a verified file, shared by threads.
//! * [`Store`]: instances, their state, your data and the limits; what IREE calls a context.
//! * [`Linker`]: what modules may import: the built-in native modules ([`linker`]) and your functions ([`Linker::func_wrap`]).
//! * [`Instance`], [`Func`], [`TypedFunc`]: calling in. [`Value`], [`BufferView`], [`Buffer`], [`List`]: what goes in and out.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `elf` | yes | embedded ELF executables, which most modules contain |
//! | `native` | yes | system libraries, and kernels registered in-process |
//! | `vmvx` | yes | VMVX executables, which are bytecode |
//! | `hal` | yes | the full `hal` module, which modules of the compiler's default execution model import |
//!
//! Without `elf` and `native` no machine code can get in. With them, [`Config::native_code`] decides at run time.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod wiring;

pub use vmfb_bytecode as bytecode;
pub use vmfb_hal as hal;
pub use vmfb_hal::{BufferView, ElementType, Encoding, HalBuffer};
pub use vmfb_memory as memory;
pub use vmfb_vm::{
    Buffer, Caller, Config, ElementKind, Engine, Error, ExportInfo, FrameTrace, FromValues, FuelMetering, Func, Handle, HostType, Instance,
    InterruptHandle, Interruption, IntoValues, Invocation, KERNEL_STACK_SIZE, Linker, List, Meter, Module, ModuleBytes, NativeCode,
    NativeFunction, NativeModule, Origin, Ref, RefObject, Result, ResultExt, Signal, Status, Store, StoreCore, TracedInstruction, Tracer,
    TypedFunc, UnsupportedCpu, Value,
};
pub use wiring::{linker, linker_with, loaders};

/// Native modules and loaders, for linkers of your own.
pub mod modules {
    #[cfg(feature = "elf")]
    pub use vmfb_loader_elf as loader_elf;
    #[cfg(feature = "native")]
    pub use vmfb_loader_native as loader_native;
    #[cfg(feature = "vmvx")]
    pub use vmfb_loader_vmvx as loader_vmvx;
    pub use vmfb_module_check as check;
    #[cfg(feature = "hal")]
    pub use vmfb_module_hal as hal;
    pub use vmfb_module_hal_inline as hal_inline;
    pub use vmfb_module_hal_loader as hal_loader;
    #[cfg(feature = "hal")]
    pub use vmfb_module_io_parameters as io_parameters;
}
