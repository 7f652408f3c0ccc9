//! Reads the debug database.

use super::{collect, inside, reserve, text};
use crate::definition::{DebugDatabase, FunctionSourceMap, Location};
use crate::flatbuffer::{Buffer, Table};
use crate::flatbuffer_schema::{BYTECODE_LOCATION, debug as schema};
use crate::{Error, Result};
use byteorder::{ByteOrder, LittleEndian};
use std::collections::HashMap;
use std::sync::Arc;

/// Names of source files by their position in the buffer. Writers share the strings, and one file name stands in most locations.
type Filenames = HashMap<usize, Arc<str>>;

/// Reads all locations and source maps. Indices and offsets in them are kept as they are; whoever follows them checks them.
pub(super) fn database(buffer: &Buffer<'_>, table: &Table<'_>) -> Result<DebugDatabase> {
    Ok(DebugDatabase {
        locations: locations(buffer, table)?,
        functions: collect(buffer, table, schema::FUNCTIONS, |_, table| source_map(buffer, &table))?,
    })
}

/// The location table is a vector of unions, stored as two parallel vectors: tags and values.
fn locations(buffer: &Buffer<'_>, table: &Table<'_>) -> Result<Vec<Location>> {
    let (tags, values) = match (table.structs(schema::LOCATION_TAGS, 1, 1)?, table.offsets(schema::LOCATIONS)?) {
        (Some(tags), Some(values)) if tags.len() == values.len() => (tags, values),
        (None, None) => return Ok(Vec::new()),
        (tags, values) => {
            let count = |vector: Option<crate::flatbuffer::Vector<'_>>| vector.map_or(0, |vector| vector.len());
            return Err(Error::invalid(format!("the location table has {} tags and {} values", count(tags), count(values))));
        }
    };
    let mut filenames = Filenames::new();
    let mut locations = reserve(buffer, tags.len())?;
    for (index, &tag) in tags.bytes().iter().enumerate() {
        let location = match tag {
            schema::CALL_SITE..=schema::NAME_LOCATION => {
                values.table(index, "location").and_then(|table| location(buffer, tag, &table, &mut filenames))
            }
            // Index 0 is "no location" in every file; kinds that a later compiler may add say nothing to us.
            _ => Ok(Location::None),
        };
        locations.push(location.map_err(|error| inside(error, schema::LOCATIONS.1, index))?);
    }
    Ok(locations)
}

fn location(buffer: &Buffer<'_>, tag: u8, table: &Table<'_>, filenames: &mut Filenames) -> Result<Location> {
    Ok(match tag {
        schema::CALL_SITE => Location::CallSite { callee: table.i32(schema::CALLEE)?, caller: table.i32(schema::CALLER)? },
        schema::FILE_LINE_COLUMN => Location::FileLineColumn {
            filename: filename(buffer, table, filenames)?,
            line: table.i32(schema::LINE)?,
            column: table.i32(schema::COLUMN)?,
        },
        schema::FUSED => {
            let indices = table.structs(schema::FUSED_LOCATIONS, 4, 4)?;
            let mut locations = reserve(buffer, indices.map_or(0, |indices| indices.len()))?;
            locations.extend(indices.iter().flat_map(|indices| indices.elements(4)).map(LittleEndian::read_i32));
            Location::Fused { metadata: text(buffer, table, schema::METADATA)?, locations }
        }
        schema::NAME_LOCATION => Location::Name { name: text(buffer, table, schema::NAME)?, child: table.i32(schema::CHILD)? },
        _ => Location::None,
    })
}

fn filename(buffer: &Buffer<'_>, table: &Table<'_>, filenames: &mut Filenames) -> Result<Arc<str>> {
    let Some((position, bytes)) = table.string_with_position(schema::FILENAME)? else { return Ok("".into()) };
    if let Some(known) = filenames.get(&position) {
        return Ok(known.clone());
    }
    buffer.charge(bytes.len() + size_of::<(usize, Arc<str>)>())?;
    let name: Arc<str> = String::from_utf8_lossy(bytes).into();
    filenames.insert(position, name.clone());
    Ok(name)
}

fn source_map(buffer: &Buffer<'_>, table: &Table<'_>) -> Result<FunctionSourceMap> {
    let entries = table.structs(schema::FUNCTION_LOCATIONS, BYTECODE_LOCATION, 4)?;
    let mut locations = reserve(buffer, entries.map_or(0, |entries| entries.len()))?;
    for entry in entries.iter().flat_map(|entries| entries.elements(BYTECODE_LOCATION)) {
        let (offset, location) = entry.split_at(4);
        locations.push((LittleEndian::read_i32(offset), LittleEndian::read_i32(location)));
    }
    Ok(FunctionSourceMap { local_name: text(buffer, table, schema::LOCAL_NAME)?, locations })
}
