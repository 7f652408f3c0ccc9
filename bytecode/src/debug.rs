//! Source locations and names of functions, from the debug database.

use crate::definition::{DebugDatabase, FunctionSourceMap, Location, ModuleDef};
use std::collections::HashSet;
use std::fmt;

/// Locations looked at for one program counter. Locations form a graph that a hostile file may make cyclic or huge.
const MAXIMUM_VISITED: usize = 256;

/// One place that an instruction came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceFrame<'a> {
    /// Name that the program gave to the place, if any.
    pub name: Option<&'a str>,
    /// Position in a file, if known.
    pub position: Option<SourcePosition<'a>>,
}

/// A position in a source file. Displayed as `file:line:column`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePosition<'a> {
    /// File name as the compiler saw it.
    pub filename: &'a str,
    /// Line, 1-based.
    pub line: i32,
    /// Column, 1-based.
    pub column: i32,
}

impl fmt::Display for SourceFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name, self.position) {
            (Some(name), Some(position)) => write!(f, "{:?} at {position}", name),
            (Some(name), None) => write!(f, "{name:?}"),
            (None, Some(position)) => position.fmt(f),
            (None, None) => f.write_str("unknown"),
        }
    }
}

impl fmt::Display for SourcePosition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.filename.escape_debug(), self.line, self.column)
    }
}

impl DebugDatabase {
    /// The source map of a function. Compilers 3.11.0 to 3.13.0 write only the last function's, so a database is believed only
    /// when it has one entry for each of the module's functions.
    pub fn function(&self, function: u32, function_count: usize) -> Option<&FunctionSourceMap> {
        if self.functions.len() == function_count { self.functions.get(function as usize) } else { None }
    }

    /// Where a location of the table is in source files: innermost callee first.
    pub fn frames(&self, location: i32) -> Vec<SourceFrame<'_>> {
        let mut frames = Vec::new();
        let mut visited = HashSet::new();
        let mut pending = vec![(location, None)];
        while let Some((index, name)) = pending.pop() {
            if visited.len() == MAXIMUM_VISITED || !visited.insert(index) {
                continue;
            }
            let location = usize::try_from(index).ok().and_then(|index| self.locations.get(index));
            match location.unwrap_or(&Location::None) {
                Location::None => frames.extend(name.map(|name| SourceFrame { name: Some(name), position: None })),
                Location::FileLineColumn { filename, line, column } => {
                    let position = SourcePosition { filename, line: *line, column: *column };
                    frames.push(SourceFrame { name, position: Some(position) });
                }
                Location::Name { name, child } => pending.push((*child, Some(name.as_str()))),
                Location::CallSite { callee, caller } => pending.extend([(*caller, None), (*callee, name)]),
                Location::Fused { locations, .. } => {
                    pending.extend(locations.iter().take(MAXIMUM_VISITED).rev().map(|location| (*location, name)));
                }
            }
        }
        frames
    }
}

impl ModuleDef {
    /// Where the instruction at or before `pc` of a function came from, innermost callee first; empty when nothing is known.
    pub fn source_location(&self, function: u32, pc: u32) -> Vec<SourceFrame<'_>> {
        let entry = self.debug.as_ref().and_then(|debug| {
            let map = debug.function(function, self.functions.len())?;
            let behind = map.locations.partition_point(|(offset, _)| i64::from(*offset) <= i64::from(pc));
            let (_, location) = map.locations.get(behind.checked_sub(1)?)?;
            Some((debug, *location))
        });
        entry.map(|(debug, location)| debug.frames(location)).unwrap_or_default()
    }

    /// The name of a function: that of its first export, else the one in the debug database.
    pub fn function_name(&self, function: u32) -> Option<&str> {
        let exported = self.exports.iter().find(|export| export.function == function).map(|export| export.name.as_str());
        exported.or_else(|| {
            let map = self.debug.as_ref()?.function(function, self.functions.len())?;
            Some(map.local_name.as_str()).filter(|name| !name.is_empty())
        })
    }
}

#[cfg(test)]
#[path = "debug_tests.rs"]
mod tests;
