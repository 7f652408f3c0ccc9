//! The linker that knows every built-in native module and loader.

use std::sync::Arc;
use vmfb_hal::ExecutableLoader;
use vmfb_module_hal_inline::HalInline;
use vmfb_module_hal_loader::HalLoader;
use vmfb_vm::{Linker, Result};

/// A linker with the built-in native modules and all loaders that the features of this crate include.
pub fn linker() -> Result<Linker> {
    linker_with(&loaders())
}

/// A linker with the built-in native modules, which load executables with the given loaders, asked in order.
pub fn linker_with(loaders: &[Arc<dyn ExecutableLoader>]) -> Result<Linker> {
    let mut linker = Linker::new();
    linker.add_native(HalInline::new())?;
    linker.add_native(HalLoader::new(loaders.to_vec()))?;
    #[cfg(feature = "hal")]
    linker.add_native(vmfb_module_hal::Hal::new(loaders.to_vec()))?;
    // Without files: who has some adds the module once more, with them.
    #[cfg(feature = "hal")]
    linker.add_native(vmfb_module_io_parameters::IoParameters::new(Vec::new()))?;
    Ok(linker)
}

/// The loaders that the features of this crate include, in the order of the official runtime: system libraries, embedded ELF,
/// VMVX.
pub fn loaders() -> Vec<Arc<dyn ExecutableLoader>> {
    vec![
        #[cfg(feature = "native")]
        Arc::new(vmfb_loader_native::SystemLibraryLoader::new()),
        #[cfg(feature = "elf")]
        Arc::new(vmfb_loader_elf::ElfLoader::new()),
        #[cfg(feature = "vmvx")]
        Arc::new(vmfb_loader_vmvx::VmvxLoader::new()),
    ]
}
