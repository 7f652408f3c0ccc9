//! Every opcode in every version that has it: loads, verifies, is translated and runs.

use crate::raw::{Piece, RawBody};
use crate::support::*;
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{Access, Opcode, OperandInfo, OperandKind};
use vmfb_vm::{Config, FuelMetering, Interruption, Linker, NativeFunction, Status};

const REF: u16 = 0x8000;
const MOVE: u16 = 0x4000;
/// Types of the module, by ordinal.
const BUFFER: u32 = 0;
const I32: u32 = 1;
const VARIANT: u32 = 2;

#[test]
fn every_opcode_of_every_version_runs() {
    for version in VERSIONS {
        for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.info().since_major <= version.major() && **opcode != Opcode::Block) {
            for move_bit in [0, MOVE] {
                for (fuel, interruption) in [(FuelMetering::Off, Interruption::Off), (FuelMetering::On, Interruption::On)] {
                    run(version, opcode, move_bit, Config::new().fuel(fuel).interruption(interruption));
                }
            }
        }
    }
}

fn run(version: BytecodeVersion, opcode: Opcode, move_bit: u16, config: Config) {
    let program = program(version, opcode, move_bit);
    let mut linker = Linker::new();
    let variadic = NativeFunction::new("variadic", "0iCrID_i", |call| {
        let mut sum = i64::from(call.arguments.i32()?);
        for _ in 0..call.arguments.span()? {
            sum += i64::from(!call.arguments.reference()?.is_null()) + call.arguments.i64()?;
        }
        call.results.push_i32(sum as i32);
        Ok(())
    });
    linker.func_new("host", variadic).unwrap();
    let mut running = program.start_with(&linker, config);
    running.store.set_fuel(1000);
    let result = running.call("run", &[]);
    match opcode {
        Opcode::Fail => assert_eq!(status(result), Status::Cancelled),
        _ => assert_eq!(result.unwrap_or_else(|error| panic!("{version} {}: {error}", opcode.mnemonic())).len(), 2),
    }
}

fn program(version: BytecodeVersion, opcode: Opcode, move_bit: u16) -> Program {
    let mut program = Program::new(version);
    for name in ["!vm.buffer", "i32", "!vm.opaque", "!vm.list<?>"] {
        program.type_of(name);
    }
    program.rodata(b"0123456789abcdef");
    program.def.global_bytes = 16;
    program.def.global_refs = 2;
    program.import("host.variadic", "0iCrID_i");
    let mut body = RawBody::default();
    body.block(version);
    set_up(&mut body, version, opcode);
    body.op(version, opcode, |operand| choose(opcode, operand, move_bit));
    if !opcode.is_terminator() {
        body.op(version, Opcode::Br, target_only);
    }
    body.block(version);
    body.op(version, Opcode::Return, |_| Piece::List(vec![0, REF | 1]));
    body.finish(version, "0v_ir", 32, 8).export_from(&mut program.def, "run");
    // An internal callee: (i32, ref) -> (i32, ref).
    let mut callee = RawBody::default();
    callee.block(version);
    callee.op(version, Opcode::AddI32, |_| Piece::U16(0));
    callee.op(version, Opcode::Return, |_| Piece::List(vec![0, REF | MOVE]));
    callee.finish(version, "0ir_ir", 2, 1).export_from(&mut program.def, "callee");
    program
}

/// i0 = 1, i2:3 = 1, r0 = what the op works on, r1 = a buffer.
fn set_up(body: &mut RawBody, version: BytecodeVersion, opcode: Opcode) {
    let mut op = |opcode, pieces: &[Piece]| {
        let mut pieces = pieces.iter();
        body.op(version, opcode, |_| pieces.next().unwrap().clone());
    };
    let [one, pair, eight] = [0, 2, 4].map(Piece::U16);
    op(Opcode::ConstI32, &[Piece::U32(1), one.clone()]);
    op(Opcode::ConstI64, &[Piece::U64(64), eight.clone()]);
    op(Opcode::BufferAlloc, &alloc(version, REF | 1));
    op(Opcode::ConstI64, &[Piece::U64(1), pair]);
    op(Opcode::GlobalStoreRef, &[Piece::U32(1), Piece::U32(BUFFER), Piece::U16(REF | 1)]);
    if opcode.mnemonic().starts_with("list.") {
        let two = Piece::U16(6);
        op(Opcode::ConstI32, &[Piece::U32(2), two.clone()]);
        op(Opcode::ListAlloc, &[Piece::U32(VARIANT), one.clone(), Piece::U16(REF)]);
        op(Opcode::ListResize, &[Piece::U16(REF), two]);
        if opcode != Opcode::ListGetRef {
            op(Opcode::ListSetI32, &[Piece::U16(REF), one.clone(), one]);
        }
    } else {
        op(Opcode::ConstI64, &[Piece::U64(64), eight]);
        op(Opcode::BufferAlloc, &alloc(version, REF));
    }
}

fn alloc(version: BytecodeVersion, register: u16) -> Vec<Piece> {
    let alignment = (version.major() >= 15).then_some(Piece::U16(ZERO / 2));
    [Some(Piece::U16(4)), alignment, Some(Piece::U16(register))].into_iter().flatten().collect()
}

fn target_only(operand: &OperandInfo) -> Piece {
    if operand.kind == OperandKind::Pc { Piece::Target(1) } else { Piece::Moves(Vec::new()) }
}

fn choose(opcode: Opcode, operand: &OperandInfo, move_bit: u16) -> Piece {
    let read = operand.access == Access::Read;
    match operand.kind {
        OperandKind::X4 | OperandKind::AlignmentX4 => Piece::U16(if read { 0 } else { 8 }),
        OperandKind::X8 => Piece::U16(if read { 2 } else { 10 }),
        OperandKind::RefRead => Piece::U16(REF),
        OperandKind::RefMove => Piece::U16(REF | move_bit | if read { 1 } else { 2 }),
        OperandKind::Imm32 => Piece::U32(0x8000_0001),
        OperandKind::Imm64 => Piece::U64(0x8000_0000_0000_0001),
        OperandKind::GlobalOffset(_) | OperandKind::GlobalSlot | OperandKind::Rodata => Piece::U32(0),
        OperandKind::Type => Piece::U32(if opcode == Opcode::ListAlloc { I32 } else { BUFFER }),
        OperandKind::Function => Piece::U32(if matches!(opcode, Opcode::Call | Opcode::CallYieldable) { 1 } else { 1 << 31 }),
        OperandKind::Pc => Piece::Target(1),
        OperandKind::Registers => Piece::List(registers(opcode, operand.access, move_bit)),
        OperandKind::X4List => Piece::List(vec![0, 1]),
        OperandKind::X8List => Piece::List(vec![2, 4]),
        OperandKind::RefList => Piece::List(vec![REF, REF | move_bit | 1]),
        OperandKind::Segments => Piece::List(vec![0xFFFF, 2]),
        OperandKind::Moves => Piece::Moves(vec![(0, 1), (2, 4), (3, 5), (REF | move_bit | 1, REF | 3)]),
        OperandKind::Cases => Piece::Cases(vec![(1, vec![]), (1, vec![(0, 7)])]),
        OperandKind::Text => Piece::Text(b"a message".to_vec()),
        other => panic!("operand kind {other:?} is new"),
    }
}

fn registers(opcode: Opcode, access: Access, move_bit: u16) -> Vec<u16> {
    let variadic = matches!(opcode, Opcode::CallVariadic | Opcode::CallVariadicYieldable);
    match (access, variadic) {
        (Access::Read, true) => vec![0, REF | 1, 2, REF | move_bit | 1, 2],
        (Access::Read, false) => vec![0, REF | move_bit | 1],
        (Access::Write, true) => vec![8],
        (Access::Write, false) => vec![8, REF | 2],
    }
}
