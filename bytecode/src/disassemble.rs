//! Readable text of functions, in the syntax of IREE's own disassembler where that has one.
//!
//! Works on modules that were not verified: a listing ends at the first instruction that cannot be decoded and says why. What the
//! official tool shows wrongly is shown rightly here (pairs of 64-bit arguments, strings with quotes), and functions come with their
//! register counts.
//!
//! The work is in proportion to the module, whatever that is: a file may describe thousands of functions that are all the same large
//! part of its bytecode, and each of their instructions may name something whose name is long (which is cut).

mod operation;
mod values;

use std::collections::HashMap;
use std::fmt::Write;

use crate::calling_convention::{CallingConvention, Item, Kind, PlacementRule};
use crate::decode::Instructions;
use crate::definition::{Function, ModuleDef, Necessity, Requirements};
use crate::isa::{Op, Pc};
use crate::{Error, Result, Status};
use values::{Escaped, Pair, Slot};

/// Whether each line starts with the byte offset of its instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOffsets {
    /// No offsets.
    #[default]
    Hidden,
    /// `[0000001A]` before each line.
    Shown,
}

/// The text of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The text; up to the error if there is one.
    pub text: String,
    /// Why the listing ends early.
    pub error: Option<Error>,
}

/// Largest ratio of the sizes of all functions to the size of the bytecode that is listed: a small file must not ask for a long text.
const MAXIMUM_OVERLAP: u64 = 16;

/// Writes the functions of a module as text.
#[derive(Debug)]
pub struct Disassembler<'m> {
    definition: &'m ModuleDef,
    /// The names under which each function is exported.
    exports: HashMap<u32, Vec<&'m str>>,
    offsets: ByteOffsets,
    /// So many functions are listed. Those behind overlap the ones in front too much.
    listed: usize,
}

impl<'m> Disassembler<'m> {
    /// A disassembler for a module.
    pub fn new(definition: &'m ModuleDef, offsets: ByteOffsets) -> Self {
        let mut exports: HashMap<u32, Vec<&'m str>> = HashMap::new();
        for export in &definition.exports {
            exports.entry(export.function).or_default().push(&export.name);
        }
        Self { definition, exports, offsets, listed: listed(definition) }
    }

    /// The lines in front of the functions: name, types, imports.
    pub fn header(&self) -> String {
        let mut text = String::new();
        let definition = self.definition;
        line(&mut text, format_args!("vm.module @{} version {}", Escaped(&definition.name), definition.version));
        for name in &definition.types {
            line(&mut text, format_args!("vm.type {}", Escaped(name)));
        }
        for import in &definition.imports {
            let optional = if import.necessity == Necessity::Optional { "optional " } else { "" };
            let convention = import.signature.as_ref().map(|signature| signature.calling_convention.as_str()).unwrap_or_default();
            line(&mut text, format_args!("vm.import {optional}@{} cconv \"{}\"", Escaped(&import.full_name), Escaped(convention)));
        }
        text
    }

    /// A function. An ordinal out of range gives an error and no text.
    pub fn function(&self, ordinal: u32) -> Listing {
        let Some(function) = self.definition.functions.get(ordinal as usize) else {
            let count = self.definition.functions.len();
            let error = Error::out_of_range(format!("function {ordinal}; the module has {count}"));
            return Listing { text: String::new(), error: Some(error) };
        };
        let mut text = String::new();
        self.describe(&mut text, ordinal, function);
        let result = if (ordinal as usize) < self.listed {
            self.body(&mut text, ordinal)
        } else {
            Err(Error::new(Status::ResourceExhausted, "not listed: the functions of the module overlap too much"))
        };
        let error = result.err().map(|error| error.at(ordinal, 0));
        if let Some(error) = &error {
            line(&mut text, format_args!("  // {}", Escaped(&error.to_string())));
        }
        text.push_str("}\n");
        Listing { text, error }
    }

    /// One instruction, with byte offsets for branch targets.
    pub fn instruction(&self, op: &Op<'_>) -> String {
        let mut text = String::new();
        operation::Operation { module: self, labels: &[] }.write(&mut text, op);
        text
    }

    /// What is known about a function before its body: ordinal, sizes, exports, signature.
    fn describe(&self, text: &mut String, ordinal: u32, function: &Function) {
        let (values, refs, bytes) = (function.value_registers, function.ref_registers, function.bytecode.len());
        let _ = write!(text, "// function {ordinal}: {bytes} bytes, {values} value registers, {refs} ref registers");
        if let Some(blocks) = function.block_count {
            let _ = write!(text, ", {blocks} blocks");
        }
        if function.requirements != Requirements::NONE {
            let _ = write!(text, ", requires {}", requirement_names(function.requirements));
        }
        text.push('\n');
        for name in self.exports.get(&ordinal).into_iter().flatten() {
            line(text, format_args!("vm.export @{}", Escaped(name)));
        }
        let signature = function.signature.as_ref().map(|signature| signature.calling_convention.as_str());
        line(text, format_args!("vm.func @{}{} {{", self.function_name(ordinal), signature_text(signature)));
    }

    fn body(&self, text: &mut String, ordinal: u32) -> Result<()> {
        let version = self.definition.bytecode_version;
        let body = self.definition.body(ordinal);
        let labels = block_starts(Instructions::new(body, version));
        let operation = operation::Operation { module: self, labels: &labels };
        let mut after_terminator = true;
        for instruction in Instructions::new(body, version) {
            let instruction = instruction?;
            if after_terminator {
                self.offset(text, instruction.pc);
                line(text, format_args!("{}:", operation.label(Pc(instruction.pc))));
            }
            after_terminator = instruction.op.is_terminator();
            if matches!(instruction.op, Op::Block {}) {
                continue;
            }
            self.offset(text, instruction.pc);
            text.push_str("  ");
            operation.write(text, &instruction.op);
            text.push('\n');
        }
        Ok(())
    }

    fn offset(&self, text: &mut String, pc: u32) {
        if self.offsets == ByteOffsets::Shown {
            let _ = write!(text, "[{pc:08X}]");
        }
    }

    /// The first exported name, the name in the debug database, or a number.
    fn function_name(&self, ordinal: u32) -> String {
        let exported = self.exports.get(&ordinal).and_then(|names| names.first().copied());
        let name = exported.or_else(|| {
            let map = self.definition.debug.as_ref()?.function(ordinal, self.definition.functions.len())?;
            Some(map.local_name.as_str()).filter(|name| !name.is_empty())
        });
        name.map_or_else(|| format!("fn{ordinal}"), |name| Escaped(name).to_string())
    }
}

/// How many functions, from the first on, have bodies that together are in proportion to the bytecode.
fn listed(definition: &ModuleDef) -> usize {
    let allowed = (definition.bytecode.len() as u64).saturating_mul(MAXIMUM_OVERLAP).saturating_add(MAXIMUM_OVERLAP - 1);
    let mut total = 0u64;
    let fits = |function: &&Function| {
        total = total.saturating_add(function.bytecode.len() as u64);
        total <= allowed
    };
    definition.functions.iter().take_while(fits).count()
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{arguments}");
}

/// Where blocks start, as far as the body can be decoded.
fn block_starts(instructions: Instructions<'_>) -> Vec<u32> {
    let mut starts = Vec::new();
    let mut after_terminator = true;
    for instruction in instructions.map_while(Result::ok) {
        if after_terminator {
            starts.push(instruction.pc);
        }
        after_terminator = instruction.op.is_terminator();
    }
    starts
}

fn requirement_names(requirements: Requirements) -> String {
    let names = [(Requirements::F32, "f32"), (Requirements::F64, "f64"), (Requirements::YIELD, "yield"), (Requirements::UNWIND, "unwind")];
    let mut rest = requirements.0;
    let mut list: Vec<_> = names.into_iter().filter(|(bit, _)| rest & bit != 0).map(|(_, name)| name.to_owned()).collect();
    names.iter().for_each(|(bit, _)| rest &= !bit);
    if rest != 0 {
        list.push(format!("{rest:#x}"));
    }
    list.join(", ")
}

/// Arguments with their registers and results with their types.
fn signature_text(signature: Option<&str>) -> String {
    let Some(text) = signature else { return "(…) -> (…)".to_owned() };
    let placed = text.parse::<CallingConvention>().and_then(|convention| {
        let placement = convention.placement(PlacementRule::NextFree)?;
        Ok((convention, placement))
    });
    let Ok((convention, placement)) = placed else { return format!("(…) -> (…) /* {} */", Escaped(text)) };
    let arguments = convention.arguments.iter().zip(&placement.slots).filter_map(|(item, &slot)| match item {
        Item::Plain(kind) => Some(match kind.value_slots() {
            0 => format!("%r{slot}: {}", kind_name(*kind)),
            1 => format!("{}: {}", Slot(slot), kind_name(*kind)),
            _ => format!("{}: {}", Pair(slot), kind_name(*kind)),
        }),
        Item::Span(_) => None,
    });
    let arguments: Vec<_> = arguments.collect();
    let results: Vec<_> = convention.results.iter().map(|kind| kind_name(*kind)).collect();
    format!("({}) -> ({})", arguments.join(", "), results.join(", "))
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::I32 => "i32",
        Kind::I64 => "i64",
        Kind::F32 => "f32",
        Kind::F64 => "f64",
        Kind::Ref => "!vm.ref<?>",
    }
}
