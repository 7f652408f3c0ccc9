//! An executable and a loader that record what they are asked.

use std::sync::{Arc, Mutex};
use vmfb_hal::{Dispatch, Executable, ExecutableLoader, ExecutableParameters, Export, Load};
use vmfb_vm::{Meter, Result};

/// What a test knows of a dispatch that came through: export, grid, constants, (bytes bound, offset) of each binding.
pub(crate) type Seen = (usize, [u32; 3], Vec<u32>, Vec<(Vec<u8>, usize)>);

/// An executable that records its dispatches.
pub(crate) struct Kernels {
    exports: Vec<Export<'static>>,
    pub(crate) seen: Mutex<Vec<Seen>>,
}

impl Kernels {
    pub(crate) fn new(exports: &[Export<'static>]) -> Arc<Self> {
        Arc::new(Self { exports: exports.to_vec(), seen: Mutex::default() })
    }
}

impl Executable for Kernels {
    fn export_count(&self) -> usize {
        self.exports.len()
    }

    fn lookup(&self, name: &str) -> Option<usize> {
        self.exports.iter().position(|export| export.name == Some(name))
    }

    fn export(&self, ordinal: usize) -> Option<Export<'_>> {
        self.exports.get(ordinal).cloned()
    }

    fn dispatch(&self, _meter: &mut Meter, dispatch: &Dispatch<'_>) -> Result<()> {
        let bytes = |binding: &vmfb_hal::Binding<'_>| {
            let bound = binding.span.slice(binding.offset, binding.length).unwrap();
            (bound.to_vec().unwrap(), binding.offset)
        };
        let bindings = dispatch.bindings.iter().map(bytes).collect();
        self.seen.lock().unwrap().push((dispatch.export, dispatch.workgroup_count, dispatch.constants.to_vec(), bindings));
        Ok(())
    }
}

/// What a loader does when asked.
pub(crate) type Answer = Box<dyn Fn(&ExecutableParameters<'_>) -> Result<Load> + Send + Sync>;

/// A loader that claims formats with a prefix.
pub(crate) struct Loader {
    pub(crate) prefix: &'static str,
    pub(crate) answer: Answer,
}

impl Loader {
    pub(crate) fn claiming(
        prefix: &'static str,
        answer: impl Fn(&ExecutableParameters<'_>) -> Result<Load> + Send + Sync + 'static,
    ) -> Arc<dyn ExecutableLoader> {
        Arc::new(Self { prefix, answer: Box::new(answer) })
    }
}

impl ExecutableLoader for Loader {
    fn name(&self) -> &str {
        self.prefix
    }

    fn query_support(&self, format: &str) -> bool {
        format.starts_with(self.prefix)
    }

    fn formats(&self) -> Vec<String> {
        vec![format!("{}-here", self.prefix)]
    }

    fn try_load(&self, parameters: &ExecutableParameters<'_>) -> Result<Load> {
        (self.answer)(parameters)
    }
}
