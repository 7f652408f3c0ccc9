//! Structured programs: mostly valid functions, assembled from arbitrary bytes, that run under fuel.

use arbitrary::{Result, Unstructured};
use vmfb_bytecode::assemble::{FunctionBuilder, Label, empty_module};
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::definition::{BytecodeVersion, ModuleDef, Rodata, RodataPlacement};
use vmfb_bytecode::isa::{
    Imm32, Imm64, Move, MoveList, Op, RefMove, RefRead, Register, RegisterList, RodataOrdinal, TypeOrdinal, X4, X8, words,
};

const VALUES: u16 = 16;
const REFS: u16 = 4;
/// Fuel of one program: little, as many loop by chance until it is used up.
const FUEL: u64 = 5000;

/// Builds a module from the bytes; it must be refused or run like any other.
pub fn check(bytes: &[u8]) {
    if let Ok(Some(module)) = generate(&mut Unstructured::new(bytes)) {
        crate::module::check_with_fuel(&module, FUEL);
    }
}

/// A module with one function, `f(i32, i64) -> (i32)`.
fn generate(input: &mut Unstructured<'_>) -> Result<Option<Vec<u8>>> {
    let versions = [BytecodeVersion::V13, BytecodeVersion::V15, BytecodeVersion::V16, BytecodeVersion::V17];
    let version = *input.choose(&versions)?;
    let mut builder = FunctionBuilder::new(version, "0iI_i");
    builder.value_registers(VALUES).ref_registers(REFS);
    let labels: Vec<Label> = (0..input.int_in_range(1..=6)?).map(|_| builder.label()).collect();
    for label in &labels {
        builder.place(*label);
        for _ in 0..input.int_in_range(0..=8)? {
            push_op(&mut builder, input, version)?;
        }
        push_terminator(&mut builder, input, &labels)?;
    }
    let Ok(function) = builder.finish() else { return Ok(None) };
    let mut module = empty_module("generated", version);
    module.types = ["i32", "!vm.buffer", "!vm.list<?>", "!vm.opaque"].map(str::to_owned).to_vec();
    module.rodata = vec![Rodata { range: 0..0, placement: RodataPlacement::Embedded }];
    (module.global_bytes, module.global_refs) = (16, 2);
    function.export_from(&mut module, "f");
    Ok(finish(&module))
}

fn finish(module: &ModuleDef) -> Option<Vec<u8>> {
    write_module(module, &[&b"constant"[..]], ArchiveForm::Plain).ok()
}

fn x4(input: &mut Unstructured<'_>) -> Result<X4> {
    Ok(X4(input.int_in_range(0..=VALUES - 1)?))
}

fn x8(input: &mut Unstructured<'_>) -> Result<X8> {
    Ok(X8(input.int_in_range(0..=VALUES / 2 - 1)? * 2))
}

fn read(input: &mut Unstructured<'_>) -> Result<RefRead> {
    Ok(RefRead::new(input.int_in_range(0..=REFS - 1)?))
}

fn moved(input: &mut Unstructured<'_>) -> Result<RefMove> {
    let register = input.int_in_range(0..=REFS - 1)?;
    Ok(if input.arbitrary()? { RefMove::moved(register) } else { RefMove::new(register) })
}

fn push_op(builder: &mut FunctionBuilder, input: &mut Unstructured<'_>, version: BytecodeVersion) -> Result<()> {
    let alignment = if version.major() >= 15 { Some(x4(input)?) } else { None };
    let small = Imm32(input.int_in_range(0..=64)?);
    let op = match input.int_in_range(0..=27)? {
        0 => Op::ConstI32 { value: Imm32(input.arbitrary()?), dst: x4(input)? },
        1 => Op::ConstI64 { value: Imm64(input.arbitrary()?), dst: x8(input)? },
        2 => Op::ConstI32 { value: small, dst: x4(input)? },
        3 => Op::ConstI64 { value: Imm64(small.0.into()), dst: x8(input)? },
        4 => Op::AddI32 { a: x4(input)?, b: x4(input)?, dst: x4(input)? },
        5 => Op::MulI64 { a: x8(input)?, b: x8(input)?, dst: x8(input)? },
        6 => Op::DivI32S { a: x4(input)?, b: x4(input)?, dst: x4(input)? },
        7 => Op::ShlI64 { a: x8(input)?, amount: x4(input)?, dst: x8(input)? },
        8 => Op::CmpLtI32S { a: x4(input)?, b: x4(input)?, dst: x4(input)? },
        9 => Op::CmpLtI64U { a: x8(input)?, b: x8(input)?, dst: x4(input)? },
        10 => Op::ConstRefRodata { rodata: RodataOrdinal(0), dst: moved(input)? },
        11 => Op::ConstRefZero { dst: moved(input)? },
        12 => Op::BufferAlloc { length: x8(input)?, alignment, dst: moved(input)? },
        13 => Op::BufferClone { source: read(input)?, offset: x8(input)?, length: x8(input)?, alignment, dst: moved(input)? },
        14 => Op::BufferLoadI32 { source: read(input)?, source_offset: x8(input)?, dst: x4(input)? },
        15 => Op::BufferStoreI64 { target: read(input)?, target_offset: x8(input)?, value: x8(input)? },
        16 => Op::BufferFillI16 { target: read(input)?, target_offset: x8(input)?, length: x8(input)?, value: x4(input)? },
        17 => Op::BufferCopy {
            source: read(input)?,
            source_offset: x8(input)?,
            target: read(input)?,
            target_offset: x8(input)?,
            length: x8(input)?,
        },
        18 => Op::ListAlloc { element: TypeOrdinal(input.int_in_range(0..=3)?), capacity: x4(input)?, dst: moved(input)? },
        19 => Op::ListResize { list: read(input)?, size: x4(input)? },
        20 => Op::ListGetI32 { list: read(input)?, index: x4(input)?, dst: x4(input)? },
        21 => Op::ListSetRef { list: read(input)?, index: x4(input)?, value: moved(input)? },
        22 => Op::ListGetRef {
            list: read(input)?,
            index: x4(input)?,
            type_ordinal: TypeOrdinal(input.int_in_range(0..=3)?),
            dst: moved(input)?,
        },
        23 => Op::GlobalStoreI32 { offset: vmfb_bytecode::isa::GlobalOffset(input.int_in_range(0..=12)?), value: x4(input)? },
        24 => Op::GlobalLoadIndirectI64 { offset: x4(input)?, dst: x8(input)? },
        25 => Op::GlobalStoreRef {
            slot: vmfb_bytecode::isa::GlobalSlot(input.int_in_range(0..=1)?),
            type_ordinal: TypeOrdinal(input.int_in_range(0..=3)?),
            value: moved(input)?,
        },
        26 => Op::CmpEqRef { a: read(input)?, b: read(input)?, dst: x4(input)? },
        _ => Op::SelectRef {
            condition: x4(input)?,
            type_ordinal: TypeOrdinal(input.int_in_range(0..=3)?),
            if_true: moved(input)?,
            if_false: moved(input)?,
            dst: moved(input)?,
        },
    };
    builder.push(op);
    Ok(())
}

fn push_terminator(builder: &mut FunctionBuilder, input: &mut Unstructured<'_>, labels: &[Label]) -> Result<()> {
    let mut moves = Vec::new();
    for _ in 0..input.int_in_range(0..=3)? {
        let step = Move { source: Register::value(x4(input)?.0), destination: Register::value(x4(input)?.0) };
        moves.push(step.to_bytes());
    }
    let moves = MoveList::new(&moves);
    let (to, other) = (input.choose(labels)?.pc(), input.choose(labels)?.pc());
    match input.int_in_range(0..=3)? {
        0 => builder.push(Op::Br { to, moves }),
        1 => builder.push(Op::CondBr {
            condition: x4(input)?,
            true_to: to,
            true_moves: moves,
            false_to: other,
            false_moves: MoveList::EMPTY,
        }),
        2 => builder.push(Op::Yield { to, moves }),
        _ => builder.push(Op::Return { values: RegisterList::new(&words([Register::value(x4(input)?.0)])) }),
    };
    Ok(())
}
