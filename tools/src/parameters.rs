//! Parameter files on the command line.

use crate::failure::{Failure, Result};
use clap::{Args, ValueEnum};
use vmfb::Linker;
use vmfb::Status;
use vmfb::modules::io_parameters::{IoParameters, ParameterIndex, ParameterProvider};

/// Files with the weights of programs.
#[derive(Args, Clone, Debug)]
pub struct ParameterArguments {
    /// File with weights that the program loads by name: .irpa, .safetensors or .gguf; may be repeated
    ///
    /// Programs ask for a scope and a name. Files of one scope are searched in the order in which they are given.
    #[arg(long, value_name = "[SCOPE=]FILE")]
    pub parameters: Vec<String>,

    /// Map parameter files and use them in place, or read them whole
    ///
    /// A mapped file must not be truncated while it is in use.
    #[arg(long = "parameter_mode", value_name = "MODE", value_enum, default_value_t = ParameterMode::File)]
    pub parameter_mode: ParameterMode,
}

/// How parameter files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ParameterMode {
    /// Mapped: weights stay in the file until they are used.
    File,
    /// Read whole.
    Preload,
}

impl ParameterArguments {
    /// Opens the files and offers them to the modules that the linker links.
    pub fn add_to(&self, linker: &mut Linker) -> Result<()> {
        let providers = self.parameters.iter().map(|text| self.provider(text)).collect::<Result<Vec<_>>>()?;
        if !providers.is_empty() {
            linker.add_native(IoParameters::new(providers))?;
        }
        Ok(())
    }

    fn provider(&self, text: &str) -> Result<ParameterProvider> {
        let (scope, path) = text.split_once('=').unwrap_or(("", text));
        let index = match self.parameter_mode {
            ParameterMode::File => ParameterIndex::from_file(path),
            ParameterMode::Preload => ParameterIndex::read_file(path),
        };
        let index = index.map_err(|error| {
            let named = matches!(error.status(), Status::NotFound | Status::Unimplemented);
            let help = named.then(|| "parameters are given as --parameters=[scope=]file".to_owned());
            Failure::from(error).maybe_help(help)
        })?;
        Ok(ParameterProvider::new(scope, index))
    }
}
