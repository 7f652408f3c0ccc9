//! The tables of a module as text.

use crate::failure::printable;
use std::fmt::Write;
use vmfb_bytecode::archive::Archive;
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind};
use vmfb_bytecode::definition::{BytecodeVersion, ModuleDef, Necessity, Requirements, RodataPlacement, Signature};

/// Bytes of a constant that are looked at.
const PREVIEW: usize = 64;

/// What the bytes of a constant seem to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// An ELF image for a machine.
    Elf(&'static str),
    /// A bytecode module.
    Module,
    /// Short printable text.
    Text(String),
    /// Anything else.
    Data,
}

impl Content {
    /// Looks at all bytes, or at the first of many.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let word = |at: usize| bytes.get(at..at + 2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        if bytes.starts_with(b"\x7fELF") {
            return Self::Elf(match word(18) {
                Some(62) => "x86_64",
                Some(183) => "aarch64",
                Some(243) if bytes.get(4) == Some(&2) => "riscv64",
                Some(243) => "riscv32",
                Some(40) => "arm",
                Some(3) => "x86",
                _ => "another machine",
            });
        }
        // A bare FlatBuffer, with or without its size in front, or a ZIP archive.
        let identified = |at: usize| bytes.get(at..at + 4) == Some(b"IREE");
        if identified(4) || identified(8) || bytes.starts_with(b"PK\x03\x04") {
            return Self::Module;
        }
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.is_empty() && text.len() < PREVIEW && !text.contains(char::is_control) => Self::Text(text.to_owned()),
            _ => Self::Data,
        }
    }

    /// The extension that files with such content have.
    pub(super) fn extension(&self) -> &'static str {
        match self {
            Self::Elf(_) => "elf",
            Self::Module => "vmfb",
            Self::Text(_) => "txt",
            Self::Data => "bin",
        }
    }
}

/// Appends everything but instructions.
pub(super) fn write(text: &mut String, path: &str, length: usize, archive: &Archive, definition: &ModuleDef) {
    // Writing to a string cannot fail.
    let _ = write_summary(text, path, length, archive, definition)
        .and_then(|()| write_tables(text, definition))
        .and_then(|()| write_constants(text, archive, definition))
        .and_then(|()| write_functions(text, definition));
}

fn write_summary(text: &mut String, path: &str, length: usize, archive: &Archive, definition: &ModuleDef) -> std::fmt::Result {
    let version = definition.bytecode_version;
    writeln!(text, "module @{} version {}", printable(&definition.name), definition.version)?;
    writeln!(text, "  file          {}, {length} bytes, FlatBuffer of {} bytes", printable(path), archive.flatbuffer().len())?;
    writeln!(text, "  bytecode      {version}, {}", releases(version))?;
    writeln!(text, "  requires      {}", requirements(definition.requirements))?;
    writeln!(text, "  globals       {} bytes, {} references", definition.global_bytes, definition.global_refs)?;
    writeln!(text, "  instructions  {} bytes", definition.bytecode.len())?;
    let locations = definition.debug.as_ref().map_or(0, |debug| debug.locations.len());
    writeln!(text, "  locations     {}", if locations == 0 { "none".to_owned() } else { locations.to_string() })?;
    for attribute in &definition.attributes {
        writeln!(text, "  attribute     {} = {}", printable(&attribute.key), printable(&attribute.value))?;
    }
    Ok(())
}

fn write_tables(text: &mut String, definition: &ModuleDef) -> std::fmt::Result {
    title(text, "types", definition.types.len())?;
    for (index, name) in definition.types.iter().enumerate() {
        writeln!(text, "  [{index}] {}", printable(name))?;
    }
    title(text, "dependencies", definition.dependencies.len())?;
    for dependency in &definition.dependencies {
        let necessity = necessity(dependency.necessity);
        writeln!(text, "  {} version {} or later, {necessity}", printable(&dependency.name), dependency.minimum_version)?;
    }
    title(text, "imports", definition.imports.len())?;
    for (index, import) in definition.imports.iter().enumerate() {
        write!(text, "  [{index}] {}", printable(&import.full_name))?;
        write_signature(text, import.signature.as_ref())?;
        writeln!(text, "{}", if import.necessity == Necessity::Optional { ", optional" } else { "" })?;
    }
    title(text, "exports", definition.exports.len())?;
    for export in &definition.exports {
        write!(text, "  @{} = function {}", printable(&export.name), export.function)?;
        let signature = definition.functions.get(export.function as usize).and_then(|function| function.signature.as_ref());
        write_signature(text, signature)?;
        writeln!(text)?;
        for attribute in signature.map(|signature| signature.attributes.as_slice()).unwrap_or_default() {
            writeln!(text, "      {} = {}", printable(&attribute.key), printable(&attribute.value))?;
        }
    }
    Ok(())
}

fn write_constants(text: &mut String, archive: &Archive, definition: &ModuleDef) -> std::fmt::Result {
    title(text, "constants", definition.rodata.len())?;
    for (index, segment) in definition.rodata.iter().enumerate() {
        let place = match segment.placement {
            RodataPlacement::Embedded => "inside the FlatBuffer",
            RodataPlacement::External => "behind the FlatBuffer",
        };
        let mut preview = vec![0; segment.range.len().min(PREVIEW)];
        let content = archive.bytes().read(segment.range.start, &mut preview).map(|()| Content::of(&preview));
        let content = match content {
            Ok(Content::Elf(machine)) => format!(", ELF image for {machine}"),
            Ok(Content::Module) => ", bytecode module".to_owned(),
            Ok(Content::Text(content)) => format!(", \"{}\"", printable(&content)),
            Ok(Content::Data) | Err(_) => String::new(),
        };
        writeln!(text, "  [{index}] {} bytes at {:#x} {place}{content}", segment.range.len(), segment.range.start)?;
    }
    Ok(())
}

fn write_functions(text: &mut String, definition: &ModuleDef) -> std::fmt::Result {
    title(text, "functions", definition.functions.len())?;
    for (index, function) in definition.functions.iter().enumerate() {
        let ordinal = u32::try_from(index).unwrap_or(u32::MAX);
        let name = definition.function_name(ordinal).map(|name| format!(" @{}", printable(name))).unwrap_or_default();
        let blocks = function.block_count.map_or(String::new(), |count| format!(", {count} blocks"));
        write!(text, "  [{index}]{name} {} bytes at {:#x}{blocks}", function.bytecode.len(), function.bytecode.start)?;
        write!(text, ", {} value and {} reference registers", function.value_registers, function.ref_registers)?;
        if function.requirements != Requirements::NONE {
            write!(text, ", requires {}", requirements(function.requirements))?;
        }
        writeln!(text)?;
    }
    writeln!(text)
}

fn title(text: &mut String, name: &str, count: usize) -> std::fmt::Result {
    writeln!(text, "\n{name}: {count}")
}

/// The calling convention and what it means.
fn write_signature(text: &mut String, signature: Option<&Signature>) -> std::fmt::Result {
    let Some(signature) = signature else { return write!(text, " without signature") };
    write!(text, " {}", printable(&signature.calling_convention))?;
    let Ok(convention) = signature.calling_convention.parse::<CallingConvention>() else { return Ok(()) };
    let results = convention.results.iter().map(|kind| kind_name(*kind)).collect::<Vec<_>>().join(", ");
    let arguments = convention.arguments.iter().map(|item| match item {
        Item::Plain(kind) => kind_name(*kind).to_owned(),
        Item::Span(kinds) => format!("({})...", kinds.iter().map(|kind| kind_name(*kind)).collect::<Vec<_>>().join(", ")),
    });
    write!(text, " ({}) -> ({results})", arguments.collect::<Vec<_>>().join(", "))
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::I32 => "i32",
        Kind::I64 => "i64",
        Kind::F32 => "f32",
        Kind::F64 => "f64",
        Kind::Ref => "reference",
    }
}

fn necessity(necessity: Necessity) -> &'static str {
    match necessity {
        Necessity::Required => "required",
        Necessity::Optional => "optional",
    }
}

/// Which compilers write a version.
fn releases(version: BytecodeVersion) -> &'static str {
    match version {
        BytecodeVersion::V13 => "written up to 2023-02-28",
        BytecodeVersion::V14 => "written in 2023-03",
        BytecodeVersion::V15 => "written by releases from 2023-03 to 3.9",
        BytecodeVersion::V16 => "written by release 3.10",
        BytecodeVersion::V17 => "written by release 3.11 and later",
        _ => "of no known release",
    }
}

fn requirements(requirements: Requirements) -> String {
    let known = [(Requirements::F32, "f32"), (Requirements::F64, "f64"), (Requirements::YIELD, "yield"), (Requirements::UNWIND, "unwind")];
    let mut names: Vec<String> = known.iter().filter(|(bit, _)| requirements.0 & bit != 0).map(|(_, name)| (*name).to_owned()).collect();
    let unknown = known.iter().fold(requirements.0, |rest, (bit, _)| rest & !bit);
    if unknown != 0 {
        names.push(format!("unknown features {unknown:#x}"));
    }
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_told_apart() {
        let mut elf = vec![0; 20];
        elf[..4].copy_from_slice(b"\x7fELF");
        elf[18] = 183;
        assert_eq!(Content::of(&elf), Content::Elf("aarch64"));
        assert_eq!(Content::of(b"\x7fELF"), Content::Elf("another machine"));
        assert_eq!(Content::of(b"\x20\0\0\0IREE"), Content::Module);
        assert_eq!(Content::of(b"embedded-elf-x86_64"), Content::Text("embedded-elf-x86_64".to_owned()));
        for bytes in [b"".as_slice(), b"a\n", b"\xFF\xFE", &[b'a'; 64]] {
            assert_eq!(Content::of(bytes), Content::Data);
        }
    }
}
