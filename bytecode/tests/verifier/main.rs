//! One invalid function for every rule of the verifier, and valid neighbours of the strict ones; then damaged functions.
//!
//! Here is what the tests share.

mod blocks;
mod calls;
mod descriptors;
mod operands;
mod robustness;
mod table;

use vmfb_bytecode::Status::{self, FailedPrecondition, InvalidArgument, OutOfRange, ResourceExhausted, Unimplemented};
use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::definition::{BytecodeVersion, Export, Import, ModuleDef, Necessity, Requirements, Rodata, RodataPlacement, Signature};
use vmfb_bytecode::isa::{
    CaseList, FunctionRef, GlobalOffset, GlobalSlot, Move, MoveList, Op, Pc, RefList, RefMove, RefRead, Register, RegisterList,
    RodataOrdinal, SegmentList, SwitchCase, Text, TypeOrdinal, X4, X4List, X8, X8List, words,
};
use vmfb_bytecode::verify::{VerifiedModule, verify};

const V13: BytecodeVersion = BytecodeVersion::V13;
const V15: BytecodeVersion = BytecodeVersion::V15;
const V16: BytecodeVersion = BytecodeVersion::V16;
const V17: BytecodeVersion = BytecodeVersion::V17;
const VERSIONS: [BytecodeVersion; 5] = [V13, BytecodeVersion::V14, V15, V16, V17];

const VARIADIC: FunctionRef = FunctionRef::import(0);
const PLAIN: FunctionRef = FunctionRef::import(1);
const HELPER: FunctionRef = FunctionRef::internal(0);
/// The ordinal of the function under test.
const TESTED: u32 = 1;

fn i(ordinal: u16) -> Register {
    Register::value(ordinal)
}

fn r(ordinal: u16) -> Register {
    Register::reference(ordinal)
}

fn import(name: &str, calling_convention: &str) -> Import {
    let signature = Signature { calling_convention: calling_convention.to_owned(), attributes: Vec::new() };
    Import { full_name: name.to_owned(), signature: Some(signature), necessity: Necessity::Optional }
}

/// Two types, two imports, 16 bytes of globals, two ref globals, one constant, and function 0: `0iI_I`, which returns its pair.
fn module(version: BytecodeVersion) -> ModuleDef {
    let mut module = empty_module("rules", version);
    module.types = vec!["i32".to_owned(), "!vm.buffer".to_owned()];
    module.imports = vec![import("native.variadic", "0iCrID_I"), import("native.plain", "0rI_i")];
    module.global_bytes = 16;
    module.global_refs = 2;
    module.rodata = vec![Rodata { range: 0..0, placement: RodataPlacement::Embedded }];
    let mut helper = FunctionBuilder::new(version, "0iI_I");
    helper.start_block();
    helper.push(Op::Return { values: RegisterList::new(&words([i(2)])) });
    helper.finish().unwrap().export_from(&mut module, "helper");
    module
}

fn verified(version: BytecodeVersion, builder: FunctionBuilder) -> Result<VerifiedModule, (Status, Option<u32>, Option<u32>)> {
    let mut module = module(version);
    builder.finish().unwrap().export_from(&mut module, "tested");
    verify(module).map_err(|error| (error.status, error.function, error.pc))
}

/// A function `0v_v` with 8 value and 4 ref registers and one block, whose contents come from the argument and a return behind them.
fn body(version: BytecodeVersion, build: impl FnOnce(&mut FunctionBuilder)) -> FunctionBuilder {
    let mut builder = FunctionBuilder::new(version, "0v_v");
    builder.value_registers(8).ref_registers(4);
    builder.start_block();
    build(&mut builder);
    builder.push(Op::Return { values: RegisterList::new(&[]) });
    builder
}

/// Asserts that one op as the first of a function is refused, at its pc.
#[track_caller]
fn refuses(version: BytecodeVersion, op: Op<'_>, status: Status) {
    let builder = body(version, |builder| {
        builder.push(op);
    });
    let pc = u32::from(version.has_block_markers());
    assert_eq!(verified(version, builder).map(|_| ()), Err((status, Some(TESTED), Some(pc))), "{version} {op:?}");
}

#[track_caller]
fn accepts(version: BytecodeVersion, op: Op<'_>) {
    let builder = body(version, |builder| {
        builder.push(op);
    });
    assert_eq!(verified(version, builder).map(|_| ()), Ok(()), "{version} {op:?}");
}

#[track_caller]
fn refused(version: BytecodeVersion, builder: FunctionBuilder, status: Status, pc: u32) {
    assert_eq!(verified(version, builder).map(|_| ()), Err((status, Some(TESTED), Some(pc))), "{version}");
}
