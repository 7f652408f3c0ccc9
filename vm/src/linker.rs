//! Linking: imports of modules to native functions and to exports of other instances.

use crate::host::{HostFunction, IntoHostFunction};
use crate::interpreter::{ImportSlot, InstanceState};
use crate::native::NativeModule;
use crate::registry::{Adapter, ErasedNative};
use crate::{Error, Instance, Module, Result, ResultExt, StoreCore};
use std::sync::Arc;
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind};
use vmfb_bytecode::definition::{Import, Necessity};

/// Native modules and host functions that modules may import. Later ones shadow earlier ones; instances of a store shadow both.
#[derive(Clone, Default)]
pub struct Linker {
    natives: Vec<Arc<dyn ErasedNative>>,
}

/// The most bytes that the fixed arguments, or the results, of an import may take.
const MAXIMUM_FIXED_BYTES: usize = 16 << 10;

impl Linker {
    /// A linker that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a native module.
    pub fn add_native(&mut self, module: impl NativeModule) -> Result<&mut Self> {
        self.natives.push(Arc::new(Adapter::new(module)?));
        Ok(self)
    }

    /// Adds a host function `module.function`. Its calling convention follows from the closure's type.
    ///
    /// ```
    /// # use vmfb_vm::{Linker, Buffer, Result};
    /// # fn main() -> Result<()> {
    /// let mut linker = Linker::new();
    /// linker.func_wrap("math", "scale", |x: f32, y: f32| -> Result<f32> { Ok(x * y) })?;
    /// # Ok(()) }
    /// ```
    pub fn func_wrap<Arguments, Results>(
        &mut self,
        module: &str,
        function: &str,
        body: impl IntoHostFunction<Arguments, Results>,
    ) -> Result<&mut Self> {
        self.add_native(HostFunction::new(module, body.into_host_function(function)))
    }

    /// Adds a host function with a stated calling convention, which reads its arguments itself.
    pub fn func_new(&mut self, module: &str, function: crate::NativeFunction<()>) -> Result<&mut Self> {
        self.add_native(HostFunction::new(module, function))
    }

    /// Makes an instance: checks dependencies, links imports, runs the module's initialiser. A failed instance leaves the store
    /// as it was.
    pub fn instantiate(&self, store: &mut StoreCore, module: &Module) -> Result<Instance> {
        if !module.engine().same(store.engine()) {
            return Err(Error::invalid("the module belongs to another engine than the store"));
        }
        store.check_usable()?;
        let natives = store.natives.len();
        let state = {
            let _entered = tracing::debug_span!("link", module = module.name()).entered();
            self.check_dependencies(store, module)?;
            self.check_importer(module).context(|| format!("linking module {:?}", module.name()))?;
            self.new_state(store, module).inspect_err(|_| store.natives.truncate(natives))?
        };
        let instance = store.add_instance(module, state);
        let _entered = tracing::debug_span!("init", module = module.name()).entered();
        let scope = store.context.meter.scope.enter_initialiser();
        let initialised = store.special(instance.index, "__init").map(|function| function.call(store, &[]));
        store.context.meter.scope.leave(scope);
        match initialised {
            None | Some(Ok(_)) => Ok(instance),
            Some(Err(error)) => {
                store.remove_last_instance();
                store.natives.truncate(natives);
                Err(error.context(format!("initialising module {:?}", module.name())))
            }
        }
    }

    fn check_dependencies(&self, store: &StoreCore, module: &Module) -> Result<()> {
        for dependency in &module.definition().dependencies {
            let wanted = dependency.minimum_version;
            match self.version_of(store, &dependency.name) {
                Some(found) if found < wanted && dependency.necessity == Necessity::Required => {
                    return Err(Error::not_found(format!(
                        "module {:?} needs version {wanted} of module {:?}, version {found} is there: it was made for a newer \
                         runtime; {}",
                        module.name(),
                        dependency.name,
                        made_by(module)
                    )));
                }
                Some(_) => {}
                None if dependency.necessity == Necessity::Optional => {}
                None => return Err(self.missing_module(store, module, &dependency.name)),
            }
        }
        Ok(())
    }

    /// Asks the native modules whose functions a module imports.
    fn check_importer(&self, module: &Module) -> Result<()> {
        let imports = |name: &str| module.definition().imports.iter().any(|import| module_of(import) == Some(name));
        self.natives.iter().filter(|native| imports(native.name())).try_for_each(|native| native.check_importer(module))
    }

    /// Modules that a module needs, by itself or for a function that it must have, and that are neither here nor in the store.
    pub fn missing_modules<'m>(&self, store: &StoreCore, module: &'m Module) -> Vec<&'m str> {
        let definition = module.definition();
        let needed = definition.dependencies.iter().filter(|dependency| dependency.necessity == Necessity::Required);
        let imports = definition.imports.iter().filter(|import| import.necessity == Necessity::Required);
        let names = needed.map(|dependency| dependency.name.as_str()).chain(imports.filter_map(module_of));
        let mut missing: Vec<&str> = names.filter(|name| self.version_of(store, name).is_none()).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn version_of(&self, store: &StoreCore, name: &str) -> Option<u32> {
        let definitions = store.modules.iter().rev().map(|module| module.verified.definition());
        let instance = definitions.into_iter().find(|definition| definition.name == name).map(|definition| definition.version);
        instance.or_else(|| self.natives.iter().filter(|native| native.name() == name).map(|native| native.version()).max())
    }

    #[cold]
    fn missing_module(&self, store: &StoreCore, module: &Module, name: &str) -> Error {
        let mut known: Vec<&str> = self.natives.iter().map(|native| native.name()).collect();
        known.extend(store.modules.iter().map(|module| module.verified.definition().name.as_str()));
        known.sort_unstable();
        known.dedup();
        Error::not_found(format!("module {:?} needs module {name:?}, which is not there; known are {}", module.name(), known.join(", ")))
    }

    fn new_state(&self, store: &mut StoreCore, module: &Module) -> Result<InstanceState> {
        let definition = module.definition();
        let mut imports = Vec::with_capacity(definition.imports.len());
        for (import, convention) in definition.imports.iter().zip(module.verified().imports()) {
            let slot = self.resolve(store, module, import, convention).context(|| format!("linking module {:?}", module.name()))?;
            imports.push(slot);
        }
        let (bytes, refs) = (definition.global_bytes as usize, definition.global_refs as usize);
        InstanceState::new(bytes, refs, imports, store.account())
            .context(|| format!("setting up the globals of module {:?}", module.name()))
    }

    /// Finds what an import names: the last instance of the store with that module name, else the last native module.
    fn resolve(&self, store: &mut StoreCore, importer: &Module, import: &Import, convention: &CallingConvention) -> Result<ImportSlot> {
        let Some(signature) = &import.signature else {
            return Err(Error::invalid(format!("the import {} has no signature", import.full_name)));
        };
        check_size(import, convention)?;
        let Some((module, function)) = import.full_name.split_once('.') else {
            return Err(Error::invalid(format!("the import {:?} names no module", import.full_name)));
        };
        let mut mismatch = Vec::new();
        if let Some(slot) = find_export(store, module, function, convention, &mut mismatch) {
            return Ok(slot);
        }
        for native in self.natives.iter().rev().filter(|native| native.name() == module) {
            match native.find(function, &signature.calling_convention) {
                Ok(index) => return Ok(ImportSlot::Native { module: store.native(native)?, function: index as u32 }),
                Err(conventions) => mismatch.extend(conventions),
            }
        }
        if !mismatch.is_empty() {
            return Err(Error::internal(format!(
                "the import {} is called as {}, this runtime has it as {}; {}",
                import.full_name,
                signature.calling_convention,
                mismatch.join(" and "),
                made_by(importer)
            )));
        }
        if import.necessity == Necessity::Optional {
            return Ok(ImportSlot::Unresolved);
        }
        Err(match self.version_of(store, module) {
            None => Error::not_found(format!("the required import {} is not there: no module {module:?} is known", import.full_name)),
            Some(_) => Error::not_found(format!(
                "the required import {} is not there: the module {module:?} that is known has no function {function:?}; {}",
                import.full_name,
                made_by(importer)
            )),
        })
    }
}

/// Name of the module that an import names.
fn module_of(import: &Import) -> Option<&str> {
    import.full_name.split_once('.').map(|(module, _)| module)
}

/// Which compilers write modules like this one, for messages.
fn made_by(module: &Module) -> String {
    let version = module.definition().bytecode_version;
    format!("module {:?} was written by {} (bytecode {version})", module.name(), version.compilers())
}

fn find_export(
    store: &StoreCore,
    module: &str,
    function: &str,
    convention: &CallingConvention,
    mismatch: &mut Vec<String>,
) -> Option<ImportSlot> {
    let (instance, inner) = store.modules.iter().enumerate().rev().find(|(_, inner)| inner.verified.definition().name == module)?;
    let export = inner.verified.definition().exports.iter().find(|export| export.name == function)?;
    let found = &inner.verified.functions().get(export.function as usize)?.convention;
    if found == convention {
        return Some(ImportSlot::Bytecode { instance: instance as u32, function: export.function });
    }
    mismatch.push(found.to_string());
    None
}

/// References take 16 bytes, other values their size.
fn check_size(import: &Import, convention: &CallingConvention) -> Result<()> {
    let bytes = |kind: &Kind| if *kind == Kind::Ref { 16 } else { usize::from(kind.value_slots()) * 4 };
    let arguments: usize = convention.arguments.iter().map(|item| if let Item::Plain(kind) = item { bytes(kind) } else { 4 }).sum();
    let results: usize = convention.results.iter().map(bytes).sum();
    if arguments.max(results) > MAXIMUM_FIXED_BYTES {
        return Err(Error::invalid(format!(
            "the import {} has more than {MAXIMUM_FIXED_BYTES} bytes of arguments or results",
            import.full_name
        )));
    }
    Ok(())
}
