//! The executable loader for embedded ELF images.

use crate::architecture::Architecture;
use crate::call::{EmbeddedConvention, load_library};
use crate::fat;
use crate::image::Image;
use std::borrow::Cow;
use std::sync::Arc;
use vmfb_hal::abi::NativeLibrary;
use vmfb_hal::{ExecutableLoader, ExecutableParameters, Load};
use vmfb_memory::MemoryAccount;
use vmfb_vm::{Error, NativeCode, Result, Status};

const PREFIX: &str = "embedded-elf-";
const FAT: &str = "embedded-fatelf";

/// Whether pages are asked to be executable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodePages {
    /// They are.
    #[default]
    Allowed,
    /// As if the system refused them: loading goes as far as it can and fails where this process would have to execute.
    Refused,
}

/// Loads embedded ELF images for the architecture of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ElfLoader {
    code_pages: CodePages,
}

impl ElfLoader {
    /// The loader.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with or without executable pages.
    #[must_use]
    pub fn with_code_pages(self, code_pages: CodePages) -> Self {
        Self { code_pages }
    }

    fn load(&self, parameters: &ExecutableParameters<'_>) -> Result<NativeLibrary<EmbeddedConvention>> {
        let Some(architecture) = Architecture::host() else {
            return Err(Error::unimplemented(format!("there are no embedded ELF executables for {}", std::env::consts::ARCH)));
        };
        // Parsed and mapped from one private copy, so that nobody changes what was checked.
        let bytes = match parameters.data.constant_bytes() {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(parameters.data.to_vec()?),
        };
        let image = Image::load(fat::select(&bytes, architecture)?, architecture, self.code_pages, parameters.account)?;
        tracing::debug!(format = parameters.format, bytes = bytes.len(), "mapped an embedded ELF image");
        Ok(load_library(image, parameters.constants)?.for_engine(parameters.engine))
    }
}

impl ExecutableLoader for ElfLoader {
    fn name(&self) -> &str {
        "embedded-elf"
    }

    fn query_support(&self, format: &str) -> bool {
        let Some(architecture) = Architecture::host() else { return false };
        format == FAT || format.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with(architecture.name))
    }

    fn formats(&self) -> Vec<String> {
        Architecture::host().map(|architecture| format!("{PREFIX}{}", architecture.name)).into_iter().collect()
    }

    fn try_load(&self, parameters: &ExecutableParameters<'_>) -> Result<Load> {
        if parameters.engine.native_code() == NativeCode::Deny {
            return Err(Error::new(
                Status::PermissionDenied,
                format!(
                    "the executable format {:?} is machine code, which this engine denies; compile the module for VMVX instead: \
                     --iree-hal-target-backends=vmvx",
                    parameters.format
                ),
            ));
        }
        self.load(parameters).map(|library| Load::Loaded(Arc::new(library)))
    }
}

/// Does everything that loading does before code is entered: parse, lay out, relocate, protect.
pub fn check(bytes: &[u8]) -> Result<()> {
    let Some(architecture) = Architecture::host() else {
        return Err(Error::unimplemented(format!("there are no embedded ELF executables for {}", std::env::consts::ARCH)));
    };
    Image::load(fat::select(bytes, architecture)?, architecture, CodePages::Allowed, &MemoryAccount::default()).map(drop)
}
