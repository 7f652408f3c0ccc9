//! A module definition as FlatBuffer tables, in both ages of the schema.

use super::{Field, Node, is_old, schema};
use crate::definition::{Attribute, DebugDatabase, Location, ModuleDef, Necessity, RodataPlacement, Signature};
use crate::flatbuffer::Slot;
use std::ops::Range;

type Fields<'a> = Vec<(Slot, Field<'a>)>;

/// Constants that kernels use in place want cache-line alignment; short ones are strings and keys.
const LARGE_CONSTANT: usize = 64;

/// The root table. `external` has the ranges of the external constants, in order, from the start of the external area.
pub(super) fn root<'a>(module: &'a ModuleDef, rodata: &[(&'a [u8], RodataPlacement)], external: &[Range<u64>]) -> Node<'a> {
    let old = is_old(module.bytecode_version);
    let layout = if old { &schema::LAYOUT_A } else { &schema::LAYOUT_B };
    let mut fields = vec![(schema::NAME, text(&module.name))];
    scalar(&mut fields, schema::VERSION, module.version, 0);
    if let Some(slot) = layout.requirements {
        scalar(&mut fields, slot, module.requirements.0, 0);
    }
    attributes(&mut fields, layout.attributes, &module.attributes);
    tables(&mut fields, layout.types, module.types.iter().map(|name| vec![(schema::type_def::FULL_NAME, text(name))]));
    tables(&mut fields, layout.dependencies, dependencies(module));
    tables(&mut fields, layout.imports, imports(module));
    tables(&mut fields, layout.exports, module.exports.iter().map(|export| self::export(module, export)));
    if let Some(slot) = layout.signatures {
        tables(&mut fields, slot, module.functions.iter().filter_map(|function| function.signature.as_ref()).map(signature));
    }
    tables(&mut fields, layout.rodata, constants(rodata, external));
    if module.global_bytes != 0 || module.global_refs != 0 {
        let mut state = Fields::new();
        scalar(&mut state, schema::state::BYTES, module.global_bytes, 0);
        scalar(&mut state, schema::state::REFS, module.global_refs, 0);
        fields.push((layout.state, Field::Node(Node::Table(state))));
    }
    if !module.functions.is_empty() {
        fields.push((layout.functions, Field::Node(Node::Structs(module.functions.len(), descriptors(module)))));
    }
    scalar(&mut fields, layout.bytecode_version, module.bytecode_version.0, 0);
    fields.push((layout.bytecode, Field::Node(Node::Bytes(&module.bytecode, 8))));
    fields.extend(module.debug.as_ref().map(|debug| (layout.debug, Field::Node(database(debug)))));
    Node::Table(fields)
}

fn dependencies(module: &ModuleDef) -> impl Iterator<Item = Fields<'_>> {
    module.dependencies.iter().map(|dependency| {
        let mut fields = vec![(schema::dependency::NAME, text(&dependency.name))];
        scalar(&mut fields, schema::dependency::MINIMUM_VERSION, dependency.minimum_version, 0);
        scalar(&mut fields, schema::dependency::FLAGS, flags(dependency.necessity), 1);
        fields
    })
}

fn imports(module: &ModuleDef) -> impl Iterator<Item = Fields<'_>> {
    module.imports.iter().map(|import| {
        let mut fields = vec![(schema::import::FULL_NAME, text(&import.full_name))];
        let signature = import.signature.as_ref().map(|it| Field::Node(Node::Table(signature(it))));
        fields.extend(signature.map(|field| (schema::import::SIGNATURE, field)));
        scalar(&mut fields, schema::import::FLAGS, flags(import.necessity), 1);
        fields
    })
}

fn export<'a>(module: &'a ModuleDef, export: &'a crate::definition::Export) -> Fields<'a> {
    let mut fields = vec![(schema::export::NAME, text(&export.name))];
    if is_old(module.bytecode_version) {
        let function = module.functions.get(export.function as usize);
        let signature = function.and_then(|function| function.signature.as_ref()).map(signature);
        fields.extend(signature.map(|it| (schema::export::SIGNATURE_A, Field::Node(Node::Table(it)))));
        scalar(&mut fields, schema::export::ORDINAL_A, export.function, 0);
    } else {
        scalar(&mut fields, schema::export::ORDINAL_B, export.function, 0);
    }
    fields
}

fn constants<'a>(rodata: &[(&'a [u8], RodataPlacement)], external: &[Range<u64>]) -> impl Iterator<Item = Fields<'a>> {
    let mut external = external.iter();
    rodata.iter().map(move |(bytes, placement)| {
        let range = if *placement == RodataPlacement::External { external.next() } else { None };
        let Some(range) = range else {
            let alignment = if bytes.len() < LARGE_CONSTANT { 16 } else { LARGE_CONSTANT };
            return vec![(schema::rodata::EMBEDDED, Field::Node(Node::Bytes(bytes, alignment)))];
        };
        vec![(schema::rodata::OFFSET, Field::U64(range.start)), (schema::rodata::LENGTH, Field::U64(range.end - range.start))]
    })
}

/// Positions are cut to 32 bits; a test that wants a negative one gives the start of a range as the number's complement.
fn descriptors(module: &ModuleDef) -> Vec<u8> {
    let mut bytes = Vec::new();
    for function in &module.functions {
        let (start, end) = (function.bytecode.start as u32, function.bytecode.end as u32);
        bytes.extend_from_slice(&start.to_le_bytes());
        bytes.extend_from_slice(&end.wrapping_sub(start).to_le_bytes());
        if !is_old(module.bytecode_version) {
            bytes.extend_from_slice(&function.requirements.0.to_le_bytes());
            bytes.extend_from_slice(&[0; 2]);
            bytes.extend_from_slice(&function.block_count.unwrap_or(0).to_le_bytes());
        }
        bytes.extend_from_slice(&function.value_registers.to_le_bytes());
        bytes.extend_from_slice(&function.ref_registers.to_le_bytes());
    }
    bytes
}

fn signature(signature: &Signature) -> Fields<'_> {
    let mut fields = vec![(schema::signature::CALLING_CONVENTION, text(&signature.calling_convention))];
    attributes(&mut fields, schema::signature::ATTRIBUTES, &signature.attributes);
    fields
}

fn attributes<'a>(fields: &mut Fields<'a>, slot: Slot, attributes: &'a [Attribute]) {
    let entry = |it: &'a Attribute| vec![(schema::attribute::KEY, text(&it.key)), (schema::attribute::VALUE, text(&it.value))];
    tables(fields, slot, attributes.iter().map(entry));
}

fn database(debug: &DebugDatabase) -> Node<'_> {
    let (tags, values): (Vec<_>, Vec<_>) = debug.locations.iter().map(location).unzip();
    let maps = debug.functions.iter().map(|map| {
        let pairs = map.locations.iter().flat_map(|(offset, location)| [offset.to_le_bytes(), location.to_le_bytes()].concat());
        let mut fields = vec![(schema::debug::LOCAL_NAME, text(&map.local_name))];
        fields.push((schema::debug::FUNCTION_LOCATIONS, Field::Node(Node::Structs(map.locations.len(), pairs.collect()))));
        fields
    });
    let mut fields = vec![
        (schema::debug::LOCATION_TAGS, Field::Node(Node::Structs(tags.len(), tags))),
        (schema::debug::LOCATIONS, Field::Node(Node::Offsets(values))),
    ];
    tables(&mut fields, schema::debug::FUNCTIONS, maps);
    Node::Table(fields)
}

/// Union tag and value of a location.
fn location(location: &Location) -> (u8, Option<Node<'_>>) {
    let index = |value: &i32| Field::U32(value.cast_unsigned());
    let (tag, fields) = match location {
        Location::None => return (0, None),
        Location::CallSite { callee, caller } => {
            (schema::debug::CALL_SITE, vec![(schema::debug::CALLEE, index(callee)), (schema::debug::CALLER, index(caller))])
        }
        Location::FileLineColumn { filename, line, column } => {
            let position = [(schema::debug::LINE, index(line)), (schema::debug::COLUMN, index(column))];
            (schema::debug::FILE_LINE_COLUMN, [(schema::debug::FILENAME, text(filename))].into_iter().chain(position).collect())
        }
        Location::Fused { metadata, locations } => {
            let indices = locations.iter().flat_map(|index| index.to_le_bytes()).collect();
            let indices = Field::Node(Node::Structs(locations.len(), indices));
            (schema::debug::FUSED, vec![(schema::debug::METADATA, text(metadata)), (schema::debug::FUSED_LOCATIONS, indices)])
        }
        Location::Name { name, child } => {
            (schema::debug::NAME_LOCATION, vec![(schema::debug::NAME, text(name)), (schema::debug::CHILD, index(child))])
        }
    };
    (tag, Some(Node::Table(fields)))
}

fn flags(necessity: Necessity) -> u32 {
    match necessity {
        Necessity::Required => 1,
        Necessity::Optional => 2,
    }
}

fn text(text: &str) -> Field<'_> {
    Field::Node(Node::Text(text))
}

/// Adds a scalar unless it has its default value.
fn scalar(fields: &mut Fields<'_>, slot: Slot, value: u32, default: u32) {
    if value != default {
        fields.push((slot, Field::U32(value)));
    }
}

/// Adds a vector of tables unless it is empty.
fn tables<'a>(fields: &mut Fields<'a>, slot: Slot, tables: impl Iterator<Item = Fields<'a>>) {
    let tables: Vec<_> = tables.map(|table| Some(Node::Table(table))).collect();
    if !tables.is_empty() {
        fields.push((slot, Field::Node(Node::Offsets(tables))));
    }
}
