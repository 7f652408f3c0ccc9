//! Programs that make things and keep them: a loop of calls of native functions and of ops that allocate, chosen by bytes.

use crate::support::{Body, NEWEST, NO_MOVES, Program, moves, r, v};
use arbitrary::{Result, Unstructured};
use std::collections::HashMap;
use vmfb_bytecode::isa::{
    FunctionRef, GlobalSlot, MoveList, Op, RefMove, RefRead, Register, RegisterList, RodataOrdinal, SegmentList, TypeOrdinal, Word, X4,
    words,
};

/// What a ref register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Null,
    Device,
    Allocator,
    /// What work waits for.
    Fence,
    /// What work signals.
    Signal,
    Buffer,
    Bytes,
    /// A command buffer that takes commands.
    Commands,
    /// One that is final.
    Final,
    Layout,
    Executable,
    Format,
    Data,
    List,
    /// Kept, and not used for anything.
    Other,
}

impl Class {
    /// The registers of a class.
    fn registers(self) -> &'static [u16] {
        match self {
            Self::Null => &[1],
            Self::Device => &[2],
            Self::Allocator => &[3],
            Self::Fence => &[4, 5, 6],
            Self::Signal => &[21, 22],
            Self::Final => &[23, 24],
            Self::Buffer => &[7, 8],
            Self::Bytes => &[9, 10],
            Self::Commands => &[11, 12],
            Self::Layout => &[13],
            Self::Executable => &[14],
            Self::Format => &[15],
            Self::Data => &[16],
            Self::List => &[17, 18],
            Self::Other => &[19],
        }
    }
}

/// An argument of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    Ref(Class),
    /// An i32 of this value.
    Int(i32),
    /// An i64 of this value.
    Long(i64),
    /// A length in bytes, an i64.
    Length,
    /// A span: up to so many tuples of these.
    Span(u8, &'static [Argument]),
}

use Argument::{Int, Length, Long, Ref, Span};
use Class::*;

/// A function, its arguments, and what it gives.
type Action = (&'static str, &'static str, &'static [Argument], &'static [Class]);

#[rustfmt::skip]
const ACTIONS: &[Action] = &[
    ("hal.fence.create", "0rI_r", &[Ref(Device), Long(0)], &[Fence]),
    ("hal.fence.join", "0ICrD_r", &[Long(0), Span(31, &[Ref(Fence)])], &[Fence]),
    ("hal.fence.create", "0rI_r", &[Ref(Device), Long(0)], &[Signal]),
    ("hal.fence.join", "0ICrD_r", &[Long(0), Span(1, &[Ref(Signal)])], &[Fence]),
    ("hal.fence.signal", "0r_v", &[Ref(Fence)], &[]),
    ("hal.fence.fail", "0ri_v", &[Ref(Fence), Int(3)], &[]),
    ("hal.device.queue.barrier", "0rIrrI_v", &[Ref(Device), Long(0), Ref(Fence), Ref(Signal), Long(0)], &[]),
    ("hal.device.queue.barrier", "0rIrrI_v", &[Ref(Device), Long(0), Ref(Fence), Ref(Null), Long(0)], &[]),
    ("hal.device.queue.alloca", "0rIrrIiiII_r",
        &[Ref(Device), Long(0), Ref(Fence), Ref(Signal), Long(0), Int(3), Int(3), Length, Long(0)], &[Buffer]),
    ("hal.device.queue.dealloca", "0rIrrrI_v", &[Ref(Device), Long(0), Ref(Fence), Ref(Null), Ref(Buffer), Long(0)], &[]),
    ("hal.device.queue.fill", "0rIrrrIIIiI_v",
        &[Ref(Device), Long(0), Ref(Fence), Ref(Signal), Ref(Buffer), Long(0), Long(8), Long(7), Int(1), Long(0)], &[]),
    ("hal.device.queue.copy", "0rIrrrIrIII_v",
        &[Ref(Device), Long(0), Ref(Fence), Ref(Signal), Ref(Buffer), Long(0), Ref(Buffer), Long(8), Long(8), Long(0)], &[]),
    ("hal.device.queue.update", "0rIrrrIrIII_v",
        &[Ref(Device), Long(0), Ref(Fence), Ref(Null), Ref(Bytes), Long(0), Ref(Buffer), Long(0), Long(8), Long(0)], &[]),
    ("hal.device.queue.execute", "0rIrrrI_v", &[Ref(Device), Long(0), Ref(Fence), Ref(Signal), Ref(Final), Long(0)], &[]),
    ("hal.device.queue.execute", "0rIrrrI_v", &[Ref(Device), Long(0), Ref(Null), Ref(Signal), Ref(Final), Long(0)], &[]),
    ("hal.device.queue.execute", "0rIrrCrD_v", &[Ref(Device), Long(0), Ref(Fence), Ref(Null), Span(31, &[Ref(Final)])], &[]),
    ("hal.device.queue.execute.indirect", "0rIrrrICrIID_v",
        &[Ref(Device), Long(0), Ref(Fence), Ref(Null), Ref(Null), Long(0), Span(255, &[Ref(Buffer), Long(0), Long(8)])], &[]),
    ("hal.command_buffer.create", "0riiIi_r", &[Ref(Device), Int(0), Int(3), Long(-1), Int(0)], &[Commands]),
    ("hal.command_buffer.fill_buffer", "0rrIIiIiI_v",
        &[Ref(Commands), Ref(Buffer), Long(0), Long(8), Int(0), Long(7), Int(1), Long(0)], &[]),
    ("hal.command_buffer.update_buffer", "0rrIrIIiI_v",
        &[Ref(Commands), Ref(Bytes), Long(0), Ref(Buffer), Long(0), Long(8), Int(0), Long(0)], &[]),
    ("hal.command_buffer.execution_barrier", "0riiI_v", &[Ref(Commands), Int(1), Int(1), Long(0)], &[]),
    ("hal.command_buffer.push_constants", "0rriCiD_v", &[Ref(Commands), Ref(Layout), Int(0), Span(64, &[Int(1)])], &[]),
    ("hal.command_buffer.dispatch", "0rrIiiiICiDCiirIID_v",
        &[Ref(Commands), Ref(Executable), Long(0), Int(2), Int(1), Int(1), Long(0), Span(0, &[]), Span(0, &[])], &[]),
    ("hal.command_buffer.execute.commands", "0rrCrIID_v",
        &[Ref(Commands), Ref(Final), Span(255, &[Ref(Buffer), Long(0), Long(8)])], &[]),
    ("hal.allocator.allocate", "0rIiiI_r", &[Ref(Allocator), Long(0), Int(3), Int(3), Length], &[Buffer]),
    ("hal.allocator.import", "0riIiirII_r",
        &[Ref(Allocator), Int(0), Long(0), Int(0), Int(0), Ref(Bytes), Long(0), Long(8)], &[Other]),
    ("hal.buffer.subspan", "0rII_r", &[Ref(Buffer), Long(0), Long(8)], &[Other]),
    ("hal.buffer_view.create", "0rIIiiCID_r",
        &[Ref(Buffer), Long(0), Long(8), Int(0x2100_0020), Int(1), Span(200, &[Long(1)])], &[Other]),
    ("hal.executable.create", "0rIrrr_r", &[Ref(Device), Long(-1), Ref(Format), Ref(Data), Ref(Null)], &[Executable]),
    ("hal_loader.executable.load", "0rrr_r", &[Ref(Format), Ref(Data), Ref(Null)], &[Other]),
    ("hal.pipeline_layout.create", "0riCrD_r", &[Ref(Device), Int(64), Span(0, &[])], &[Layout]),
    ("hal.descriptor_set_layout.create", "0riCiiiD_r", &[Ref(Device), Int(0), Span(0, &[])], &[Other]),
    ("hal.ex.file.from_memory", "0rIirIIi_r",
        &[Ref(Device), Long(0), Int(1), Ref(Bytes), Long(0), Long(8), Int(0)], &[Other]),
    ("hal_inline.buffer.allocate", "0iI_rr", &[Int(64), Length], &[Buffer, Bytes]),
    ("hal_inline.buffer.wrap", "0rII_r", &[Ref(Bytes), Long(0), Long(8)], &[Other]),
];

/// What the body of the loop does besides calls.
const OPS: usize = 6;

/// Registers of values: the hoard's length, the numbers that a round needs.
const COUNT: u16 = 0;
const ONE: u16 = 1;
const SPARE: u16 = 2;
const FLAG: u16 = 3;
/// Where numbers of calls are put; each takes a pair.
const FIRST_NUMBER: u16 = 8;
/// What is called in front of the loop and by operations.
const FINALIZE: (&str, &str) = ("hal.command_buffer.finalize", "0r_v");
const CREATE: (&str, &str) = ("hal.command_buffer.create", "0riiIi_r");

const LENGTHS: [i64; 6] = [8, 16, 64, 1000, 4096, 100_000];

/// The ref register of the hoard. It is kept in a global, too, so that a call which fails does not lose it.
const HOARD: u16 = 20;

struct Types {
    any: TypeOrdinal,
    list: TypeOrdinal,
}

/// A program whose export `run` loops for ever, unless something in it fails.
pub(crate) fn generate(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut program = Program::new(NEWEST);
    let types = Types { any: program.type_of("!vm.opaque"), list: program.type_of("!vm.list<?>") };
    program.def.global_refs = 1;
    let executable = executable(input)?;
    let (format, data) = (program.rodata(b"vmvx-bytecode-fb"), program.rodata(&executable));
    let mut imports = HashMap::new();
    for (name, convention, ..) in ACTIONS {
        imports.entry((*name, *convention)).or_insert_with(|| program.import(name, convention));
    }
    for (name, convention) in [("hal.devices.get", "0i_r"), ("hal.device.allocator", "0r_r"), FINALIZE] {
        imports.insert((name, convention), program.import(name, convention));
    }
    let choices: Vec<usize> =
        (0..input.int_in_range(1..=10)?).map(|_| input.int_in_range(0..=ACTIONS.len() + OPS - 1)).collect::<Result<_>>()?;
    let mut outcome = Ok(());
    program.export("run", "0v_v", |f| {
        f.start_block();
        prologue(f, &imports, &types, (format, data));
        let head = f.label();
        f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
        f.place(head);
        outcome = choices.into_iter().try_for_each(|choice| match ACTIONS.get(choice) {
            Some(action) => call(f, &imports, action, input),
            None if choice == ACTIONS.len() => {
                let (commands, end) = (choose(Commands, input)?, choose(Final, input)?);
                finish(f, &imports, commands, end);
                Ok(())
            }
            None => operation(f, &types, choice - ACTIONS.len(), input),
        });
        f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
    });
    outcome?;
    Ok(program.bytes())
}

/// A VMVX executable with globals, whose kernel returns or fails.
fn executable(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut module = Program::named("module", NEWEST);
    module.def.global_bytes = u32::from(input.arbitrary::<u16>()?);
    module.def.global_refs = u32::from(input.arbitrary::<u8>()?) * 16;
    let fails = input.arbitrary::<bool>()?;
    let name = "k".repeat(input.int_in_range(1..=3000)?);
    module.export(&name, "0rrriiiiiiiii_v", |f| {
        f.start_block();
        f.i32(20, if fails { 0 } else { 1 }).op(Op::DivI32S { a: X4(20), b: X4(20), dst: X4(20) }).ret([]);
    });
    Ok(module.bytes())
}

type Imports = HashMap<(&'static str, &'static str), FunctionRef>;

/// Makes one thing of each class, and the hoard if there is none.
fn prologue(f: &mut Body, imports: &Imports, types: &Types, (format, data): (RodataOrdinal, RodataOrdinal)) {
    let (device, allocator) = (Device.registers()[0], Allocator.registers()[0]);
    f.i32(ONE, 1).i32(COUNT, 0).i64(FIRST_NUMBER, 0);
    f.op(Op::ConstRefZero { dst: RefMove::new(Null.registers()[0]) });
    f.op(Op::ConstRefRodata { rodata: format, dst: RefMove::new(Format.registers()[0]) });
    f.op(Op::ConstRefRodata { rodata: data, dst: RefMove::new(Data.registers()[0]) });
    f.call(imports[&("hal.devices.get", "0i_r")], [v(COUNT)], [r(device)]);
    f.call(imports[&("hal.device.allocator", "0r_r")], [r(device)], [r(allocator)]);
    for register in Fence.registers().iter().chain(Signal.registers()) {
        f.call(imports[&("hal.fence.create", "0rI_r")], [r(device), v(FIRST_NUMBER)], [r(*register)]);
    }
    for (buffer, bytes) in Buffer.registers().iter().zip(Bytes.registers()) {
        f.i32(SPARE, 64).i64(FIRST_NUMBER + 2, 64);
        f.call(imports[&("hal_inline.buffer.allocate", "0iI_rr")], [v(SPARE), v(FIRST_NUMBER + 2)], [r(*buffer), r(*bytes)]);
    }
    for end in Final.registers() {
        create(f, imports, Commands.registers()[0]);
        finish(f, imports, Commands.registers()[0], *end);
    }
    create(f, imports, Commands.registers()[1]);
    let (executable, layout) = (Executable.registers()[0], Layout.registers()[0]);
    let [format, data, null] = [Format, Data, Null].map(|class| r(class.registers()[0]));
    f.i64(FIRST_NUMBER, -1);
    let load = imports[&("hal.executable.create", "0rIrrr_r")];
    f.call(load, [r(device), v(FIRST_NUMBER), format, data, null], [r(executable)]);
    f.i32(FIRST_NUMBER, 64);
    let new_layout = imports[&("hal.pipeline_layout.create", "0riCrD_r")];
    f.call_variadic(new_layout, &[SegmentList::PLAIN, SegmentList::PLAIN, 0], &[r(device), v(FIRST_NUMBER)], [r(layout)]);
    for register in List.registers() {
        f.op(Op::ListAlloc { element: types.any, capacity: X4(ONE), dst: RefMove::new(*register) });
    }
    f.op(Op::GlobalLoadRef { slot: GlobalSlot(0), type_ordinal: types.list, dst: RefMove::new(HOARD) });
    let (new, ready) = (f.label(), f.label());
    f.op(Op::CmpNzRef { a: RefRead::new(HOARD), dst: X4(FLAG) });
    let (true_to, false_to) = (ready.pc(), new.pc());
    f.op(Op::CondBr { condition: X4(FLAG), true_to, true_moves: NO_MOVES, false_to, false_moves: NO_MOVES });
    f.place(new);
    f.op(Op::ListAlloc { element: types.any, capacity: X4(ONE), dst: RefMove::new(HOARD) });
    f.op(Op::GlobalStoreRef { slot: GlobalSlot(0), type_ordinal: types.list, value: RefMove::new(HOARD) });
    f.op(Op::Br { to: ready.pc(), moves: NO_MOVES });
    f.place(ready);
    f.op(Op::ListSize { list: RefRead::new(HOARD), dst: X4(COUNT) });
}

/// Makes a command buffer.
fn create(f: &mut Body, imports: &Imports, target: u16) {
    let [zero, three, affinity] = [FIRST_NUMBER, FIRST_NUMBER + 2, FIRST_NUMBER + 4];
    f.i32(zero, 0).i32(three, 3).i64(affinity, -1);
    f.call(imports[&CREATE], [r(Device.registers()[0]), v(zero), v(three), v(affinity), v(zero)], [r(target)]);
}

/// Ends a command buffer, puts it elsewhere and makes another in its place.
fn finish(f: &mut Body, imports: &Imports, commands: u16, end: u16) {
    f.call(imports[&FINALIZE], [r(commands)], []);
    let next = f.label();
    let moves = moves([(r(commands), r(end))]);
    f.op(Op::Br { to: next.pc(), moves: MoveList::new(&moves) });
    f.place(next);
    create(f, imports, commands);
}

fn choose(class: Class, input: &mut Unstructured<'_>) -> Result<u16> {
    input.choose(class.registers()).copied()
}

/// Keeps what is in a ref register.
fn keep(f: &mut Body, register: u16) {
    f.op(Op::AddI32 { a: X4(COUNT), b: X4(ONE), dst: X4(SPARE) });
    f.op(Op::ListResize { list: RefRead::new(HOARD), size: X4(SPARE) });
    f.op(Op::ListSetRef { list: RefRead::new(HOARD), index: X4(COUNT), value: RefMove::new(register) });
    f.op(Op::AddI32 { a: X4(COUNT), b: X4(ONE), dst: X4(COUNT) });
}

fn call(f: &mut Body, imports: &Imports, action: &Action, input: &mut Unstructured<'_>) -> Result<()> {
    let (name, convention, arguments, results) = action;
    let mut next = FIRST_NUMBER;
    let (mut registers, mut segments) = (Vec::new(), Vec::new());
    for argument in *arguments {
        if let Span(most, fields) = argument {
            let count = input.int_in_range(0..=*most)?;
            segments.push(u16::from(count));
            for _ in 0..count {
                // Numbers of all tuples share their registers.
                let mut shared = next;
                for field in *fields {
                    registers.push(value(f, field, &mut shared, input)?);
                }
            }
            next += 8;
        } else {
            segments.push(SegmentList::PLAIN);
            registers.push(value(f, argument, &mut next, input)?);
        }
    }
    let targets: Vec<u16> = results.iter().map(|class| choose(*class, input)).collect::<Result<_>>()?;
    let callee = imports[&(*name, *convention)];
    match targets[..] {
        [] => call_with(f, callee, &segments, &registers, []),
        [one] => call_with(f, callee, &segments, &registers, [r(one)]),
        [one, two, ..] => call_with(f, callee, &segments, &registers, [r(one), r(two)]),
    }
    if input.arbitrary()? {
        targets.into_iter().for_each(|target| keep(f, target));
    }
    Ok(())
}

/// A call, variadic where there are spans.
fn call_with<const R: usize>(f: &mut Body, callee: FunctionRef, segments: &[u16], arguments: &[Register], results: [Register; R]) {
    if segments.iter().any(|segment| *segment != SegmentList::PLAIN) {
        f.call_variadic(callee, segments, arguments, results);
    } else {
        let arguments: Vec<Word> = arguments.iter().map(|register| register.to_bytes()).collect();
        let results = words(results);
        f.op(Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) });
    }
}

/// Puts an argument into a register.
fn value(f: &mut Body, argument: &Argument, next: &mut u16, input: &mut Unstructured<'_>) -> Result<Register> {
    let register = *next;
    match argument {
        Ref(class) => return choose(*class, input).map(r),
        Int(number) => f.i32(register, *number),
        Long(number) => f.i64(register, *number),
        Length => f.i64(register, *input.choose(&LENGTHS)?),
        Span(..) => return Err(arbitrary::Error::IncorrectFormat),
    };
    *next += 2;
    Ok(v(register))
}

fn operation(f: &mut Body, types: &Types, which: usize, input: &mut Unstructured<'_>) -> Result<()> {
    let (list, number) = (choose(List, input)?, FIRST_NUMBER);
    match which {
        1 => {
            let target = choose(Bytes, input)?;
            f.i64(number, *input.choose(&LENGTHS)?).alloc(number, target);
            keep(f, target);
        }
        2 => {
            f.i32(number, i32::from(input.arbitrary::<u8>()?) * 16);
            f.op(Op::ListAlloc { element: types.any, capacity: X4(number), dst: RefMove::new(list) });
            keep(f, list);
        }
        3 => {
            f.i32(number, i32::from(input.arbitrary::<u16>()?));
            f.op(Op::ListResize { list: RefRead::new(list), size: X4(number) });
        }
        4 => {
            f.i32(number, 0);
            f.op(Op::ListResize { list: RefRead::new(list), size: X4(ONE) });
            let value = RefMove::new(choose(*input.choose(&[Fence, Bytes, List, Commands])?, input)?);
            f.op(Op::ListSetRef { list: RefRead::new(list), index: X4(number), value });
        }
        // Forgets all, or what was made last.
        _ => {
            f.i32(number, i32::from(input.arbitrary::<u8>()?));
            f.op(Op::RemI32U { a: X4(COUNT), b: X4(number), dst: X4(COUNT) });
            f.op(Op::ListResize { list: RefRead::new(HOARD), size: X4(COUNT) });
        }
    }
    Ok(())
}
