//! Modules that take much where little was asked, made by code as their files would be large.

use super::kernels::{self, ENTRY};
use crate::program::*;
use vmfb::bytecode::isa::{FunctionRef, Op, RefMove, RefRead, SegmentList, X4};

const PLAIN: u16 = SegmentList::PLAIN;

/// Five hundred fences, each of which keeps the failure of a kernel with a name of 1 MiB.
pub fn errors_with_long_names() -> Vec<u8> {
    let name = "n".repeat(1 << 20);
    let kernel = kernels::vmvx(|module| {
        module.export(&name, ENTRY, |f| {
            f.start_block();
            // Divides by zero.
            f.i32(20, 0).op(Op::DivI32S { a: X4(20), b: X4(20), dst: X4(20) }).ret([]);
        });
    });
    let mut program = Program::new(NEWEST);
    let (format, data) = (program.rodata(kernel.format.as_bytes()), program.rodata(&kernel.bytes));
    let device = program.import("hal.devices.get", "0i_r");
    let fence = program.import("hal.fence.create", "0rI_r");
    let create = program.import("hal.executable.create", "0rIrrr_r");
    let commands = program.import("hal.command_buffer.create", "0riiIi_r");
    let dispatch = program.import("hal.command_buffer.dispatch", "0rrIiiiICiDCiirIID_v");
    let finalize = program.import("hal.command_buffer.finalize", "0r_v");
    let execute = program.import("hal.device.queue.execute", "0rIrrrI_v");
    repeat(
        &mut program,
        500,
        move |f| {
            f.i64(4, 0).i64(6, -1).i32(8, 3).i32(9, 0).i32(1, 1).call(device, [v(9)], [r(1)]);
            f.op(Op::ConstRefRodata { rodata: format, dst: RefMove::new(2) }).op(Op::ConstRefRodata { rodata: data, dst: RefMove::new(3) });
            f.op(Op::ConstRefZero { dst: RefMove::new(4) }).call(create, [r(1), v(6), r(2), r(3), r(4)], [r(5)]);
            f.call(commands, [r(1), v(9), v(8), v(6), v(9)], [r(6)]);
            let segments = [PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, 0, 0];
            f.call_variadic(dispatch, &segments, &[r(6), r(5), v(4), v(1), v(1), v(1), v(4)], []).call(finalize, [r(6)], []);
        },
        move |f| {
            f.call(fence, [r(1), v(4)], [r(0)]).call(execute, [r(1), v(6), r(4), r(0), r(6), v(4)], []);
        },
    );
    program.bytes()
}

/// So many functions over the same 400,000 bytes of code; each is called.
pub fn overlapping_functions(count: u32) -> Vec<u8> {
    let mut program = Program::new(NEWEST);
    let first = program.function("0v_i", |f| {
        f.start_block();
        for _ in 0..50_000 {
            f.op(Op::AddI32 { a: X4(0), b: X4(0), dst: X4(0) });
        }
        f.ret([v(0)]);
    });
    let function = program.def.functions[first as usize].clone();
    let mut callees = vec![FunctionRef::internal(first)];
    for _ in 1..count {
        program.def.functions.push(function.clone());
        callees.push(FunctionRef::internal(program.def.functions.len() as u32 - 1));
    }
    program.export("run", "0v_i", |f| {
        f.start_block();
        for callee in callees {
            f.call(callee, [], [v(0)]);
        }
        f.ret([v(0)]);
    });
    program.bytes()
}

/// Lists in a list for ever, each with room for a thousand references.
pub fn lists_of_lists() -> Vec<u8> {
    let mut program = Program::new(NEWEST);
    let element = program.type_of("!vm.list<?>");
    repeat(
        &mut program,
        i32::MAX,
        |f| {
            f.i32(8, 1000);
        },
        move |f| {
            f.op(Op::ListAlloc { element, capacity: X4(8), dst: RefMove::new(0) });
            f.op(Op::ListResize { list: RefRead::new(0), size: X4(8) });
            f.op(Op::ListSetRef { list: RefRead::new(0), index: X4(9), value: RefMove::new(HOARD) });
        },
    );
    program.bytes()
}

/// A hundred thousand lists that are dropped all at once, again and again, until fuel or time is out.
pub fn short_lived_lists() -> Vec<u8> {
    let mut program = Program::new(NEWEST);
    let element = program.type_of("!vm.list<?>");
    program.export("run", "0v_v", |f| {
        f.start_block();
        f.i32(ONE, 1).i32(8, 100_000).i32(9, 0);
        f.op(Op::ListAlloc { element, capacity: X4(9), dst: RefMove::new(HOARD) });
        let (outer, inner) = (f.label(), f.label());
        f.op(Op::Br { to: outer.pc(), moves: NO_MOVES });
        f.place(outer);
        f.i32(COUNT, 0).op(Op::ListResize { list: RefRead::new(HOARD), size: X4(COUNT) });
        f.op(Op::ListResize { list: RefRead::new(HOARD), size: X4(8) });
        f.op(Op::Br { to: inner.pc(), moves: NO_MOVES });
        f.place(inner);
        f.op(Op::ListAlloc { element, capacity: X4(9), dst: RefMove::new(0) });
        f.op(Op::ListSetRef { list: RefRead::new(HOARD), index: X4(COUNT), value: RefMove::new(0) });
        f.op(Op::AddI32 { a: X4(COUNT), b: X4(ONE), dst: X4(COUNT) });
        f.op(Op::CmpLtI32S { a: X4(COUNT), b: X4(8), dst: X4(COUNT + 2) });
        f.op(Op::CondBr {
            condition: X4(COUNT + 2),
            true_to: inner.pc(),
            true_moves: NO_MOVES,
            false_to: outer.pc(),
            false_moves: NO_MOVES,
        });
    });
    program.bytes()
}

/// Where a program keeps what it hoards, counts it, holds the number one, and the number that it makes.
const HOARD: u16 = 20;
const COUNT: u16 = 40;
const ONE: u16 = 41;
const MOST: u16 = 42;

/// Adds `run`, which keeps what is in ref register 0 after each of so many rounds.
fn repeat(program: &mut Program, most: i32, prepare: impl FnOnce(&mut Body), make: impl FnOnce(&mut Body)) {
    let element = program.type_of("!vm.opaque");
    program.export("run", "0v_v", |f| {
        f.start_block();
        f.i32(ONE, 1).i32(MOST, most).op(Op::ListAlloc { element, capacity: X4(ONE), dst: RefMove::new(HOARD) });
        prepare(f);
        let (head, end) = (f.label(), f.label());
        f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
        f.place(head);
        make(f);
        f.op(Op::AddI32 { a: X4(COUNT), b: X4(ONE), dst: X4(COUNT + 4) });
        f.op(Op::ListResize { list: RefRead::new(HOARD), size: X4(COUNT + 4) });
        f.op(Op::ListSetRef { list: RefRead::new(HOARD), index: X4(COUNT), value: RefMove::new(0) });
        f.op(Op::AddI32 { a: X4(COUNT), b: X4(ONE), dst: X4(COUNT) });
        f.op(Op::CmpLtI32S { a: X4(COUNT), b: X4(MOST), dst: X4(COUNT + 4) });
        f.op(Op::CondBr { condition: X4(COUNT + 4), true_to: head.pc(), true_moves: NO_MOVES, false_to: end.pc(), false_moves: NO_MOVES });
        f.place(end);
        f.ret([]);
    });
}
