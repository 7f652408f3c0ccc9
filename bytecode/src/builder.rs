//! Writes modules: the counterpart of the reader, for tests, tools and everything else that makes modules.
//!
//! A [`ModuleBuilder`] collects the parts; [`write_module`] writes a definition as it is. Neither checks what it writes: tests
//! write broken modules with them.

use crate::definition::{
    Attribute, BytecodeVersion, DebugDatabase, Dependency, Export, Function, Import, ModuleDef, Necessity, Requirements, Rodata,
    RodataPlacement, Signature,
};
use crate::flatbuffer_writer::{self, Field, Node};
use crate::{Error, Result, flatbuffer_schema as schema};

#[path = "builder_archive.rs"]
mod archive;
#[path = "builder_tables.rs"]
mod tables;

/// What is in front of a module and behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveForm {
    /// The module alone.
    Plain,
    /// A file that is a ZIP archive too, of the module and its external constants; what compilers write by default.
    Zip,
}

/// Writes a module. The bytes of constants come from `rodata`; of [`ModuleDef::rodata`] only the placement counts.
///
/// Major 13 and lower are written in the old schema; it keeps signatures at the exports, so those of other functions are lost.
/// Functions without a signature are left out of the signature table of the new schema.
pub fn write_module(module: &ModuleDef, rodata: &[impl AsRef<[u8]>], form: ArchiveForm) -> Result<Vec<u8>> {
    let (count, wanted) = (rodata.len(), module.rodata.len());
    if count != wanted {
        return Err(Error::invalid(format!("the module has {wanted} constants, bytes were given for {count}")));
    }
    let constants: Vec<_> = rodata.iter().map(AsRef::as_ref).zip(module.rodata.iter().map(|rodata| rodata.placement)).collect();
    let external: Vec<_> = constants.iter().filter(|(_, place)| *place == RodataPlacement::External).map(|(bytes, _)| *bytes).collect();
    let layout = archive::external_layout(&external, form);
    let root = tables::root(module, &constants, &layout);
    archive::assemble(&flatbuffer_writer::write(&root, schema::IDENTIFIER)?, &external, form)
}

/// A module in the making.
#[derive(Clone, Debug)]
pub struct ModuleBuilder {
    module: ModuleDef,
    rodata: Vec<Vec<u8>>,
}

/// The body of a function and what its descriptor says about it.
#[derive(Clone, Copy, Debug)]
pub struct FunctionBody<'a> {
    /// Its instructions.
    pub bytecode: &'a [u8],
    /// Number of basic blocks; not written in version 13.
    pub block_count: u16,
    /// Number of 32-bit value slots.
    pub value_registers: u16,
    /// Number of ref slots.
    pub ref_registers: u16,
}

impl ModuleBuilder {
    /// A module without anything in it.
    pub fn new(name: &str, bytecode_version: BytecodeVersion) -> Self {
        let module = ModuleDef {
            name: name.to_owned(),
            version: 0,
            bytecode_version,
            requirements: Requirements::NONE,
            attributes: Vec::new(),
            types: Vec::new(),
            dependencies: Vec::new(),
            imports: Vec::new(),
            exports: Vec::new(),
            rodata: Vec::new(),
            global_bytes: 0,
            global_refs: 0,
            functions: Vec::new(),
            bytecode: Vec::new(),
            debug: None,
        };
        Self { module, rodata: Vec::new() }
    }

    /// The definition so far.
    pub fn module(&self) -> &ModuleDef {
        &self.module
    }

    /// The definition so far, for everything that has no method here and for breaking rules.
    pub fn module_mut(&mut self) -> &mut ModuleDef {
        &mut self.module
    }

    /// The index of a type, added if it is new.
    pub fn add_type(&mut self, name: &str) -> u32 {
        let known = self.module.types.iter().position(|known| known == name);
        known.unwrap_or_else(|| push(&mut self.module.types, name.to_owned())) as u32
    }

    /// Adds a needed module.
    pub fn add_dependency(&mut self, name: &str, minimum_version: u32, necessity: Necessity) {
        self.module.dependencies.push(Dependency { name: name.to_owned(), minimum_version, necessity });
    }

    /// Adds an import; returns its ordinal.
    pub fn add_import(&mut self, full_name: &str, calling_convention: &str, necessity: Necessity) -> u32 {
        let import = Import { full_name: full_name.to_owned(), signature: Some(signature(calling_convention)), necessity };
        push(&mut self.module.imports, import) as u32
    }

    /// Adds a constant; returns its index.
    pub fn add_rodata(&mut self, bytes: impl Into<Vec<u8>>, placement: RodataPlacement) -> u32 {
        self.rodata.push(bytes.into());
        push(&mut self.module.rodata, Rodata { range: 0..0, placement }) as u32
    }

    /// Adds a function that is not exported; returns its ordinal. Version 13 cannot keep its signature.
    pub fn add_function(&mut self, calling_convention: &str, body: FunctionBody<'_>) -> u32 {
        let start = self.module.bytecode.len();
        self.module.bytecode.extend_from_slice(body.bytecode);
        let exact = self.module.bytecode.len();
        let padded = exact.next_multiple_of(8);
        self.module.bytecode.resize(padded, 0);
        let old = is_old(self.module.bytecode_version);
        let function = Function {
            bytecode: start..if old { padded } else { exact },
            requirements: Requirements::NONE,
            block_count: (!old).then_some(body.block_count),
            value_registers: body.value_registers,
            ref_registers: body.ref_registers,
            signature: Some(signature(calling_convention)),
        };
        push(&mut self.module.functions, function) as u32
    }

    /// Exports a function.
    pub fn add_export(&mut self, name: &str, function: u32) {
        self.module.exports.push(Export { name: name.to_owned(), function });
    }

    /// Adds a function and exports it; returns its ordinal.
    pub fn add_exported_function(&mut self, name: &str, calling_convention: &str, body: FunctionBody<'_>) -> u32 {
        let function = self.add_function(calling_convention, body);
        self.add_export(name, function);
        function
    }

    /// Adds a reflection entry to a function; nothing happens if there is no such function.
    pub fn add_function_attribute(&mut self, function: u32, key: &str, value: &str) {
        let attribute = Attribute { key: key.to_owned(), value: value.to_owned() };
        if let Some(function) = self.module.functions.get_mut(function as usize) {
            function.signature.get_or_insert_default().attributes.push(attribute);
        }
    }

    /// Sets the debug database.
    pub fn set_debug(&mut self, debug: DebugDatabase) {
        self.module.debug = Some(debug);
    }

    /// Writes the module.
    pub fn write(&self, form: ArchiveForm) -> Result<Vec<u8>> {
        write_module(&self.module, &self.rodata, form)
    }
}

/// Whether a version is written in the old schema.
fn is_old(version: BytecodeVersion) -> bool {
    version.major() <= 13
}

fn signature(calling_convention: &str) -> Signature {
    Signature { calling_convention: calling_convention.to_owned(), attributes: Vec::new() }
}

/// Appends an item; returns its index.
fn push<T>(items: &mut Vec<T>, item: T) -> usize {
    items.push(item);
    items.len() - 1
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
