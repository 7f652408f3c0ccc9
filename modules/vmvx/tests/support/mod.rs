//! Programs that call one function of the module.

use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::calling_convention::{CallingConvention, Kind, PlacementRule};
use vmfb_bytecode::definition::{BytecodeVersion, Dependency, Import, Necessity, Signature};
use vmfb_bytecode::isa::{FunctionRef, Op, Register, RegisterList, Word};

/// A module whose one function, `run`, passes its arguments on to an import, and the results back.
pub(crate) fn forwarder(name: &str, convention: &str) -> Vec<u8> {
    let version = BytecodeVersion::V17;
    let mut module = empty_module("kernel", version);
    module.dependencies.push(Dependency { name: "vmvx".into(), minimum_version: 0, necessity: Necessity::Required });
    let signature = Some(Signature { calling_convention: convention.into(), attributes: Vec::new() });
    module.imports.push(Import { full_name: format!("vmvx.{name}"), signature, necessity: Necessity::Required });
    module.types.extend(["i32", "i64", "f32", "!vm.buffer"].map(String::from));

    let parsed: CallingConvention = convention.parse().unwrap();
    let kinds = parsed.plain_arguments().unwrap();
    let placement = parsed.placement(PlacementRule::NextFree).unwrap();
    let arguments = kinds.iter().zip(&placement.slots).map(|(kind, slot)| {
        let register = if *kind == Kind::Ref { Register::reference(*slot) } else { Register::value(*slot) };
        register.to_bytes()
    });
    let arguments: Vec<Word> = arguments.collect();
    let (mut value, mut reference) = (placement.value_slots, placement.ref_slots);
    let results = registers(&parsed.results, &mut value, &mut reference);
    let mut builder = FunctionBuilder::new(version, convention);
    builder.value_registers(value.next_multiple_of(2)).ref_registers(reference);
    builder.start_block();
    builder.push(Op::Call {
        callee: FunctionRef::import(0),
        arguments: RegisterList::new(&arguments),
        results: RegisterList::new(&results),
    });
    builder.push(Op::Return { values: RegisterList::new(&results) });
    builder.finish().unwrap().export_from(&mut module, "run");
    write_module(&module, &[] as &[Vec<u8>], ArchiveForm::Plain).unwrap()
}

/// Registers of a list of kinds, placed from the given first ones on.
fn registers(kinds: &[Kind], value: &mut u16, reference: &mut u16) -> Vec<Word> {
    let place = |kind: &Kind| match kind.value_slots() {
        0 => {
            *reference += 1;
            Register::reference(*reference - 1)
        }
        slots => {
            *value = value.next_multiple_of(slots) + slots;
            Register::value(*value - slots)
        }
    };
    kinds.iter().map(place).map(Register::to_bytes).collect()
}
