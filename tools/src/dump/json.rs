//! The tables of a module as JSON, with the names and in the order of the official schema.
//!
//! Fields that have their default value are left out, as the official tool leaves them out. Modules of 13.0 are shown in the
//! newest form of the schema.

use crate::failure::{Failure, Result};
use serde::Serialize;
use vmfb_bytecode::archive::Archive;
use vmfb_bytecode::definition::{
    Attribute, DebugDatabase, Dependency, Export, Function, Import, Location, ModuleDef, Necessity, Requirements, Rodata, RodataPlacement,
    Signature,
};
use vmfb_vm::Status;

/// The JSON text of a module.
pub(super) fn text(archive: &Archive, definition: &ModuleDef, layout: Layout) -> Result<String> {
    let root = Root::of(archive, definition)?;
    let text = match layout {
        Layout::Indented => serde_json::to_string_pretty(&root),
        Layout::OneLine => serde_json::to_string(&root),
    };
    text.map_err(|error| Failure::new(Status::Internal, error.to_string()))
}

/// How JSON is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// With line breaks.
    Indented,
    /// On one line.
    OneLine,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[derive(Serialize)]
struct Root<'m> {
    name: &'m str,
    #[serde(skip_serializing_if = "is_zero")]
    version: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    requirements: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attrs: Vec<Pair<'m>>,
    types: Vec<TypeName<'m>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<Module<'m>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    imported_functions: Vec<Imported<'m>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exported_functions: Vec<Exported<'m>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    function_signatures: Vec<Signed<'m>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rodata_segments: Vec<Segment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module_state: Option<State>,
    function_descriptors: Vec<Descriptor>,
    bytecode_version: u32,
    bytecode_data: &'m [u8],
    #[serde(skip_serializing_if = "Option::is_none")]
    debug_database: Option<Database<'m>>,
}

#[derive(Serialize)]
struct Pair<'m> {
    key: &'m str,
    value: &'m str,
}

#[derive(Serialize)]
struct TypeName<'m> {
    full_name: &'m str,
}

#[derive(Serialize)]
struct Module<'m> {
    name: &'m str,
    #[serde(skip_serializing_if = "is_zero")]
    minimum_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<&'static str>,
}

#[derive(Serialize)]
struct Imported<'m> {
    full_name: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<Signed<'m>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<&'static str>,
}

#[derive(Serialize)]
struct Exported<'m> {
    local_name: &'m str,
    #[serde(skip_serializing_if = "is_zero")]
    internal_ordinal: u32,
}

#[derive(Serialize)]
struct Signed<'m> {
    calling_convention: &'m str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attrs: Vec<Pair<'m>>,
}

#[derive(Serialize)]
struct Segment {
    #[serde(skip_serializing_if = "Option::is_none")]
    embedded_data: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_data_offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_data_length: Option<usize>,
}

#[derive(Serialize)]
struct State {
    #[serde(skip_serializing_if = "is_zero")]
    global_bytes_capacity: u32,
    #[serde(skip_serializing_if = "is_zero")]
    global_ref_count: u32,
}

/// A struct of the schema: every field is always there.
#[derive(Serialize)]
struct Descriptor {
    bytecode_offset: usize,
    bytecode_length: usize,
    requirements: Flags,
    reserved: u16,
    block_count: u16,
    i32_register_count: u16,
    ref_register_count: u16,
}

/// Flags by name, or 0.
#[derive(Serialize)]
#[serde(untagged)]
enum Flags {
    None(u32),
    Named(String),
}

#[derive(Serialize)]
struct Database<'m> {
    location_table_type: Vec<&'static str>,
    location_table: Vec<Option<Place<'m>>>,
    functions: Vec<SourceMap<'m>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Place<'m> {
    CallSite {
        #[serde(skip_serializing_if = "is_default")]
        callee: i32,
        #[serde(skip_serializing_if = "is_default")]
        caller: i32,
    },
    FileLineColumn {
        filename: &'m str,
        #[serde(skip_serializing_if = "is_default")]
        line: i32,
        #[serde(skip_serializing_if = "is_default")]
        column: i32,
    },
    Fused {
        #[serde(skip_serializing_if = "str::is_empty")]
        metadata: &'m str,
        locations: &'m [i32],
    },
    Name {
        name: &'m str,
        #[serde(skip_serializing_if = "is_default")]
        child_location: i32,
    },
}

fn is_default(value: &i32) -> bool {
    *value == 0
}

#[derive(Serialize)]
struct SourceMap<'m> {
    local_name: &'m str,
    locations: Vec<Mapped>,
}

#[derive(Serialize)]
struct Mapped {
    bytecode_offset: i32,
    location: i32,
}

impl<'m> Root<'m> {
    fn of(archive: &Archive, definition: &'m ModuleDef) -> Result<Self> {
        let state = (definition.global_bytes, definition.global_refs);
        Ok(Self {
            name: &definition.name,
            version: definition.version,
            requirements: requirement_names(definition.requirements),
            attrs: pairs(&definition.attributes),
            types: definition.types.iter().map(|full_name| TypeName { full_name }).collect(),
            dependencies: definition.dependencies.iter().map(Module::of).collect(),
            imported_functions: definition.imports.iter().map(Imported::of).collect(),
            exported_functions: definition.exports.iter().map(Exported::of).collect(),
            function_signatures: definition.functions.iter().filter_map(|function| function.signature.as_ref()).map(Signed::of).collect(),
            rodata_segments: definition.rodata.iter().map(|segment| Segment::of(archive, segment)).collect::<Result<_>>()?,
            module_state: (state != (0, 0)).then_some(State { global_bytes_capacity: state.0, global_ref_count: state.1 }),
            function_descriptors: definition.functions.iter().map(Descriptor::of).collect(),
            bytecode_version: definition.bytecode_version.0,
            bytecode_data: &definition.bytecode,
            debug_database: definition.debug.as_ref().map(Database::of),
        })
    }
}

fn pairs(attributes: &[Attribute]) -> Vec<Pair<'_>> {
    attributes.iter().map(|Attribute { key, value }| Pair { key, value }).collect()
}

/// The names of the requirement bits; empty without any.
fn requirement_names(requirements: Requirements) -> String {
    let names =
        [(Requirements::F32, "EXT_F32"), (Requirements::F64, "EXT_F64"), (Requirements::YIELD, "YIELD"), (Requirements::UNWIND, "UNWIND")];
    names.iter().filter(|(bit, _)| requirements.0 & bit != 0).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

/// The flags of dependencies and imports; `None` for the default.
fn flags(necessity: Necessity) -> Option<&'static str> {
    (necessity == Necessity::Optional).then_some("OPTIONAL")
}

impl<'m> Module<'m> {
    fn of(dependency: &'m Dependency) -> Self {
        Self { name: &dependency.name, minimum_version: dependency.minimum_version, flags: flags(dependency.necessity) }
    }
}

impl<'m> Imported<'m> {
    fn of(import: &'m Import) -> Self {
        let signature = import.signature.as_ref().map(Signed::of);
        Self { full_name: &import.full_name, signature, flags: flags(import.necessity) }
    }
}

impl<'m> Exported<'m> {
    fn of(export: &'m Export) -> Self {
        Self { local_name: &export.name, internal_ordinal: export.function }
    }
}

impl<'m> Signed<'m> {
    fn of(signature: &'m Signature) -> Self {
        Self { calling_convention: &signature.calling_convention, attrs: pairs(&signature.attributes) }
    }
}

impl Segment {
    fn of(archive: &Archive, segment: &Rodata) -> Result<Self> {
        let range = &segment.range;
        Ok(match segment.placement {
            RodataPlacement::Embedded => {
                let bytes = archive.bytes().slice(range.start, range.len())?.to_vec()?;
                Self { embedded_data: Some(bytes), external_data_offset: None, external_data_length: None }
            }
            RodataPlacement::External => {
                let offset = range.start.saturating_sub(archive.external_base());
                Self {
                    embedded_data: None,
                    external_data_offset: Some(offset).filter(|offset| *offset > 0),
                    external_data_length: Some(range.len()).filter(|length| *length > 0),
                }
            }
        })
    }
}

impl Descriptor {
    fn of(function: &Function) -> Self {
        let names = requirement_names(function.requirements);
        Self {
            bytecode_offset: function.bytecode.start,
            bytecode_length: function.bytecode.len(),
            requirements: if names.is_empty() { Flags::None(0) } else { Flags::Named(names) },
            reserved: 0,
            block_count: function.block_count.unwrap_or(0),
            i32_register_count: function.value_registers,
            ref_register_count: function.ref_registers,
        }
    }
}

impl<'m> Database<'m> {
    fn of(database: &'m DebugDatabase) -> Self {
        let kinds = database.locations.iter().map(|location| match location {
            Location::None => "NONE",
            Location::CallSite { .. } => "CallSiteLocDef",
            Location::FileLineColumn { .. } => "FileLineColLocDef",
            Location::Fused { .. } => "FusedLocDef",
            Location::Name { .. } => "NameLocDef",
        });
        let functions = database.functions.iter().map(|function| SourceMap {
            local_name: &function.local_name,
            locations: function
                .locations
                .iter()
                .map(|(bytecode_offset, location)| Mapped { bytecode_offset: *bytecode_offset, location: *location })
                .collect(),
        });
        Self {
            location_table_type: kinds.collect(),
            location_table: database.locations.iter().map(Place::of).collect(),
            functions: functions.collect(),
        }
    }
}

impl<'m> Place<'m> {
    fn of(location: &'m Location) -> Option<Self> {
        Some(match location {
            Location::None => return None,
            Location::CallSite { callee, caller } => Self::CallSite { callee: *callee, caller: *caller },
            Location::FileLineColumn { filename, line, column } => {
                Self::FileLineColumn { filename: filename.as_ref(), line: *line, column: *column }
            }
            Location::Fused { metadata, locations } => Self::Fused { metadata, locations },
            Location::Name { name, child } => Self::Name { name, child_location: *child },
        })
    }
}
