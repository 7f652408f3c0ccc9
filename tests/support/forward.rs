//! Programs that call one function of a native module, in the form that a test asks for.

use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind, PlacementRule};
use vmfb_bytecode::definition::{BytecodeVersion, Dependency, Import, Necessity, Signature};
use vmfb_bytecode::isa::{FunctionRef, Op, Register, RegisterList, SegmentList, Word};
use vmfb_vm::Result;

/// A module with one function, `forward`, that calls one import with its arguments and returns the results. `counts` are the
/// numbers of tuples in the spans of the import's arguments.
pub(crate) fn forwarding_module(import: &str, convention: &str, counts: &[u16]) -> Result<Vec<u8>> {
    let imported: CallingConvention = convention.parse()?;
    let mut module = empty_module("program", BytecodeVersion::V17);
    let dependency = import.split('.').next().unwrap_or_default().to_owned();
    module.dependencies.push(Dependency { name: dependency, minimum_version: 0, necessity: Necessity::Required });
    let signature = Some(Signature { calling_convention: convention.to_owned(), attributes: Vec::new() });
    module.imports.push(Import { full_name: import.to_owned(), signature, necessity: Necessity::Required });

    let (mut kinds, mut segments, mut counts) = (Vec::new(), Vec::<Word>::new(), counts.iter());
    for item in &imported.arguments {
        match item {
            Item::Plain(kind) => {
                kinds.push(*kind);
                segments.push(SegmentList::PLAIN.to_le_bytes());
            }
            Item::Span(fields) => {
                let count = counts.next().copied().unwrap_or(0);
                kinds.extend(fields.repeat(count.into()));
                segments.push(count.to_le_bytes());
            }
        }
    }
    let forwarded = CallingConvention { arguments: kinds.iter().copied().map(Item::Plain).collect(), results: imported.results.clone() };
    let placement = forwarded.placement(PlacementRule::NextFree)?;
    let word = |kind: Kind, slot: u16| if kind == Kind::Ref { Register::reference(slot) } else { Register::value(slot) }.to_bytes();
    let arguments: Vec<Word> = kinds.iter().zip(&placement.slots).map(|(kind, slot)| word(*kind, *slot)).collect();
    // Results stand behind the arguments, each value in a pair of its own.
    let (mut value, mut reference) = (placement.value_slots.next_multiple_of(2), placement.ref_slots);
    let mut results = Vec::<Word>::new();
    for kind in &imported.results {
        let next = if *kind == Kind::Ref { &mut reference } else { &mut value };
        results.push(word(*kind, *next));
        *next += kind.value_slots().next_multiple_of(2).max(1);
    }

    let mut builder = FunctionBuilder::new(BytecodeVersion::V17, &forwarded.to_string());
    builder.start_block();
    let (callee, arguments, results) = (FunctionRef::import(0), RegisterList::new(&arguments), RegisterList::new(&results));
    if imported.has_spans() {
        builder.push(Op::CallVariadic { callee, segments: SegmentList::new(&segments), arguments, results });
    } else {
        builder.push(Op::Call { callee, arguments, results });
    }
    builder.push(Op::Return { values: results });
    builder.value_registers(value + 2).ref_registers(reference + 1);
    builder.finish()?.export_from(&mut module, "forward");
    Ok(write_module(&module, &[] as &[&[u8]], ArchiveForm::Plain)?)
}
