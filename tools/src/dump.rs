//! `vm-dump`: shows what is in a module file, of any release.

mod json;
mod metadata;

use crate::command_line::{main_of, write_bytes, write_output};
use crate::failure::{Failure, Result, io_status, printable};
use crate::file_kind;
use crate::session::with_kind;
use crate::suggest::{MOST_SUGGESTIONS, nearest};
use crate::trace;
use clap::{ArgAction, Parser, ValueEnum};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use vmfb_bytecode::archive::Archive;
use vmfb_bytecode::definition::ModuleDef;
use vmfb_bytecode::disassemble::{ByteOffsets, Disassembler};
use vmfb_memory::Span;
use vmfb_vm::Status;

/// Shows what is in a module file: types, imports, exports, constants, functions and their instructions.
///
/// Nothing in the file is run, and files that would be refused are shown as far as they can be read.
#[derive(Parser, Clone, Debug)]
#[command(name = "vm-dump", version, after_long_help = EXAMPLES)]
pub struct DumpArguments {
    /// Module file; `-` is the standard input
    #[arg(value_name = "FILE")]
    file: String,

    /// What is shown
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Output::All)]
    output: Output,

    /// Show only this function, by name or ordinal
    #[arg(long, value_name = "NAME")]
    function: Option<String>,

    /// Show the offset of each instruction
    #[arg(long = "bytecode_offsets", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    bytecode_offsets: bool,

    /// Indent JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    pretty: bool,

    /// Write each constant to a file in this folder
    #[arg(long = "extract-rodata", value_name = "DIR")]
    extract_rodata: Option<String>,

    /// Show what happens while the file is read
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,

    /// Read further flags from a file, one per line; lines that begin with # are comments
    #[arg(long, value_name = "FILE")]
    flagfile: Option<String>,
}

const EXAMPLES: &str = "\
EXAMPLES
  vm-dump model.vmfb --output=metadata
  vm-dump model.vmfb --output=disassembly --function=main --bytecode_offsets
  vm-dump model.vmfb --output=metadata --extract-rodata=constants";

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Both of the others.
    All,
    /// Tables: types, imports, exports, constants, functions.
    Metadata,
    /// Instructions.
    Disassembly,
    /// The module definition as it is in the file, without what is around it.
    FlatbufferBinary,
    /// The module definition as JSON.
    FlatbufferJson,
}

/// The tool.
pub fn main() -> ExitCode {
    main_of(run)
}

fn run(arguments: DumpArguments) -> Result<ExitCode> {
    trace::start(arguments.verbose);
    let bytes = read(&arguments.file)?;
    let length = bytes.len();
    let head = bytes.slice(0, length.min(file_kind::HEAD))?.to_vec()?;
    let opened = Archive::open(bytes).and_then(|archive| archive.definition().map(|definition| (archive, definition)));
    let (archive, definition) = opened.map_err(|error| unreadable(vmfb_vm::Error::from(error).into(), &arguments.file, &head, length))?;
    match arguments.output {
        Output::FlatbufferBinary => return write_bytes(archive.flatbuffer()),
        Output::FlatbufferJson => {
            let layout = if arguments.pretty { json::Layout::Indented } else { json::Layout::OneLine };
            return write_output(&json::text(&archive, &definition, layout)?);
        }
        Output::All | Output::Metadata | Output::Disassembly => {}
    }
    let only = arguments.function.as_deref().filter(|name| !name.is_empty()).map(|name| function_ordinal(&definition, name)).transpose()?;
    let mut text = String::new();
    let mut code = ExitCode::SUCCESS;
    if arguments.output != Output::Disassembly && only.is_none() {
        metadata::write(&mut text, &arguments.file, length, &archive, &definition);
    }
    if arguments.output != Output::Metadata || only.is_some() {
        let offsets = if arguments.bytecode_offsets { ByteOffsets::Shown } else { ByteOffsets::Hidden };
        if !disassemble(&mut text, &definition, only, offsets) {
            code = ExitCode::from(1);
        }
    }
    write_output(&text)?;
    if let Some(folder) = &arguments.extract_rodata {
        extract(&archive, &definition, Path::new(folder))?;
    }
    // Last, so that everything was shown.
    if let Err(error) = vmfb_bytecode::verify::verify(definition) {
        return Err(Failure::from(vmfb_vm::Error::from(error)).context(format!("verifying {}", arguments.file)));
    }
    Ok(code)
}

/// Says what the file is, where that is known.
fn unreadable(failure: Failure, path: &str, head: &[u8], length: usize) -> Failure {
    let kind = file_kind::of_bytes(path, head, length as u64, "vm-run");
    with_kind(failure.context(format!("reading {path}")), path, kind)
}

fn read(path: &str) -> Result<Span> {
    let error = |error: &std::io::Error| Failure::new(io_status(error), format!("cannot read {path}: {error}"));
    if path == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(|failure| error(&failure))?;
        return Ok(Span::from_vector(bytes));
    }
    let file = File::open(path).map_err(|failure| error(&failure))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_file() && metadata.len() > 0 => Span::map_file(&file).map_err(|failure| error(&failure)),
        Ok(metadata) if metadata.is_file() => Err(Failure::invalid(format!("{path} is empty"))),
        _ => Err(with_kind(Failure::invalid(format!("{path} is not a file")), path, file_kind::of_path(path, "vm-run"))),
    }
}

fn function_ordinal(definition: &ModuleDef, name: &str) -> Result<u32> {
    let export = definition.exports.iter().find(|export| export.name == name.trim_start_matches('@'));
    let known = |ordinal: &u32| (*ordinal as usize) < definition.functions.len();
    export.map(|export| export.function).or_else(|| name.parse().ok()).filter(known).ok_or_else(|| {
        let names: Vec<&str> = definition.exports.iter().map(|export| export.name.as_str()).collect();
        let near = nearest(name, names.iter().copied());
        let more = names.len().checked_sub(MOST_SUGGESTIONS).filter(|more| *more > 0);
        let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        let names: Vec<&str> = match more.is_empty() {
            true => names,
            false => near.iter().filter_map(|index| names.get(*index).copied()).collect(),
        };
        Failure::new(Status::NotFound, format!("the module has no function '{name}'")).help(format!(
            "it exports {}{more}, and has functions 0 to {}",
            names.join(", "),
            definition.functions.len().saturating_sub(1)
        ))
    })
}

/// Appends the instructions of one or all functions; false if some cannot be decoded.
fn disassemble(text: &mut String, definition: &ModuleDef, only: Option<u32>, offsets: ByteOffsets) -> bool {
    let disassembler = Disassembler::new(definition, offsets);
    if only.is_none() {
        text.push_str(&disassembler.header());
    }
    let count = u32::try_from(definition.functions.len()).unwrap_or(u32::MAX);
    let mut complete = true;
    for ordinal in only.map_or(0..count, |only| only..only.saturating_add(1)) {
        let listing = disassembler.function(ordinal);
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&listing.text);
        if let Some(error) = listing.error {
            complete = false;
            text.push_str(&format!("// cannot be decoded further: {}\n", printable(&error.to_string())));
        }
    }
    complete
}

fn extract(archive: &Archive, definition: &ModuleDef, folder: &Path) -> Result<()> {
    let failed = |path: &Path, error: &std::io::Error| Failure::new(io_status(error), format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for (index, segment) in definition.rodata.iter().enumerate() {
        let bytes = archive.bytes().slice(segment.range.start, segment.range.len())?.to_vec()?;
        let path = folder.join(format!("rodata_{index}.{}", metadata::Content::of(&bytes).extension()));
        std::fs::write(&path, bytes).map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}
