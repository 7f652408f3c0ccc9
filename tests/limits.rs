//! Every way in which a program can go on for ever or take too much, through the facade: each ends with an error of its own, and
//! store and engine are usable afterwards. No machine code is needed for any of it but the grid of native workgroups.
// Nothing leaves a test binary.
#![allow(unreachable_pub)]

#[allow(dead_code, reason = "shared with the tests of the virtual machine")]
#[path = "../vm/tests/all/support.rs"]
mod program;
mod support {
    pub mod kernels;
    pub mod watchdog;
}

use program::*;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use support::kernels::{self, ENTRY, Executable};
use support::watchdog::watched;
use vmfb::bytecode::isa::{FunctionRef, Op, RefMove, RefRead, SegmentList, X4, X8};
use vmfb::{Config, Error, FuelMetering, Interruption, List, Ref, Status, Store, StoreCore, Value};

/// How a computation is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Fuel,
    Deadline,
    Interrupt,
}

const WAYS: [Way; 3] = [Way::Fuel, Way::Deadline, Way::Interrupt];

impl Way {
    fn config(self) -> Config {
        match self {
            Self::Fuel => Config::new().fuel(FuelMetering::On),
            _ => Config::new().interruption(Interruption::On),
        }
    }

    /// Sets the limit; the thread is the one that interrupts.
    fn set(self, store: &mut StoreCore) -> Option<JoinHandle<()>> {
        match self {
            Self::Fuel => store.set_fuel(1_000_000),
            Self::Deadline => store.set_deadline(Some(Instant::now() + Duration::from_millis(30))),
            Self::Interrupt => {
                let handle = store.interrupt_handle();
                return Some(thread::spawn(move || {
                    thread::sleep(Duration::from_millis(30));
                    handle.interrupt();
                }));
            }
        }
        None
    }

    /// Status and text of the error.
    fn error(self) -> (Status, &'static str) {
        match self {
            Self::Fuel => (Status::ResourceExhausted, "out of fuel"),
            Self::Deadline => (Status::DeadlineExceeded, "the time limit was reached"),
            Self::Interrupt => (Status::Cancelled, "interrupted"),
        }
    }
}

fn start(program: &Program, config: Config) -> Running {
    program.start_with(&vmfb::linker().unwrap(), config)
}

/// Adds a function that shows whether a store is usable.
fn answering(mut program: Program) -> Program {
    program.export("answer", "0v_i", |f| {
        f.start_block();
        f.i32(0, 42).ret([v(0)]);
    });
    program
}

/// Calls something that ends in no other way, and makes sure that nothing but the call has ended.
#[track_caller]
fn ends(program: &Program, ways: &[Way], function: &str, arguments: &[Value]) {
    for way in ways {
        let mut running = start(program, way.config());
        let interrupter = way.set(&mut running.store);
        let error = running.call(function, arguments).expect_err("the call does not end by itself");
        interrupter.map(JoinHandle::join).transpose().unwrap();
        let (status, text) = way.error();
        assert_eq!(error.status(), status, "{way:?}: {error}");
        assert!(error.to_string().contains(text), "{way:?}: {error}");
        usable(program, &mut running);
    }
}

/// Store and engine work, and nothing is held.
#[track_caller]
fn usable(program: &Program, running: &mut Running) {
    running.store.set_fuel(1000);
    running.store.set_deadline(None);
    running.store.interrupt_handle().clear();
    assert_eq!(running.used(), 0, "what the call held is returned");
    assert_eq!(running.call_one::<i32>("answer", ()).unwrap(), 42);
    let mut store = Store::new(running.store.engine(), ());
    store.set_fuel(1000);
    let instance = program.instantiate_with(&vmfb::linker().unwrap(), &mut store).unwrap();
    assert_eq!(Running { store, instance }.call_one::<i32>("answer", ()).unwrap(), 42);
}

/// The call fails for want of something else than fuel.
#[track_caller]
fn exhausted(program: &Program, config: Config, function: &str, arguments: &[Value], text: &str) -> Error {
    let mut running = start(program, config);
    let error = running.call(function, arguments).expect_err("there is not enough");
    assert_eq!(error.status(), Status::ResourceExhausted, "{error}");
    assert!(error.to_string().contains(text), "{error}");
    usable(program, &mut running);
    error
}

/// Repeats what `body` appends for ever.
fn forever(f: &mut Body, body: impl FnOnce(&mut Body)) {
    let head = f.label();
    f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
    f.place(head);
    body(f);
    f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
}

#[test]
fn an_endless_loop_in_host_code_ends() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        program.export("run", "0v_v", |f| {
            f.start_block();
            forever(f, |f| {
                f.op(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(0) });
            });
        });
        ends(&program, &WAYS, "run", &[]);
    });
}

#[test]
fn an_endless_loop_in_a_nested_kernel_ends() {
    watched(|| {
        let kernel = kernels::vmvx(|module| {
            module.export("kernel", ENTRY, |f| {
                f.start_block();
                forever(f, |f| {
                    f.op(Op::AddI32 { a: X4(9), b: X4(10), dst: X4(9) });
                });
            });
        });
        ends(&answering(kernels::dispatching(&kernel)), &WAYS, "dispatch", &grid(1, 1, 1));
    });
}

fn grid(x: i32, y: i32, z: i32) -> [Value; 3] {
    [x.into(), y.into(), z.into()]
}

/// Without strides every element is the first, so that any size fits any buffer: 2^64 elements in a buffer of four bytes.
#[test]
fn a_vmvx_function_without_strides_over_the_largest_sizes_ends() {
    watched(|| {
        let kernel = kernels::vmvx(|module| {
            let add = module.import("vmvx.add.2d.i32", "0rIIIrIIIrIIIII_v");
            module.export("kernel", ENTRY, |f| {
                f.start_block();
                f.i64(10, 4).alloc(10, 3).i64(12, 0).i64(14, i64::from(u32::MAX));
                let [buffer, zero, size] = [r(3), v(12), v(14)];
                let operands = [buffer, zero, zero, zero, buffer, zero, zero, zero, buffer, zero, zero, zero, size, size];
                f.call(add, operands, []).ret([]);
            });
        });
        ends(&answering(kernels::dispatching(&kernel)), &WAYS, "dispatch", &grid(1, 1, 1));
    });
}

/// One workgroup less than 2^32 is possible, and runs until a limit ends it.
fn grid_ends(executable: &Executable) {
    let program = answering(kernels::dispatching(executable));
    for counts in [grid(65536, 65536, 1), grid(i32::MAX, i32::MAX, i32::MAX)] {
        exhausted(&program, Config::new(), "dispatch", &counts, "workgroups");
    }
    ends(&program, &WAYS, "dispatch", &grid(65535, 65535, 1));
}

#[test]
fn a_grid_of_2_to_the_32_workgroups_of_bytecode_ends() {
    watched(|| {
        grid_ends(&kernels::vmvx(|module| {
            module.export("kernel", ENTRY, |f| {
                f.start_block();
                f.ret([]);
            });
        }));
    });
}

#[test]
#[cfg(all(feature = "elf", target_arch = "x86_64"))]
fn a_grid_of_2_to_the_32_workgroups_of_machine_code_ends() {
    watched(|| grid_ends(&kernels::elf()));
}

#[test]
fn fills_in_a_loop_end() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        program.export("run", "0v_v", |f| {
            f.start_block();
            f.i64(0, 16 << 20).alloc(0, 0);
            forever(f, |f| {
                f.op(Op::BufferFillI8 { target: RefRead::new(0), target_offset: X8(2), length: X8(0), value: X4(4) });
            });
        });
        ends(&program, &WAYS, "run", &[]);
    });
}

#[test]
fn a_growing_list_ends() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        let element = program.type_of("i8");
        program.export("run", "0v_v", |f| {
            f.start_block();
            f.i32(0, 1).op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(0) });
            forever(f, |f| {
                f.op(Op::ListResize { list: RefRead::new(0), size: X4(0) }).op(Op::AddI32 { a: X4(0), b: X4(0), dst: X4(0) });
            });
        });
        exhausted(&program, Config::new().memory_limit(1 << 20), "run", &[], "limit");
        let mut running = start(&program, Way::Fuel.config());
        running.store.set_fuel(10_000);
        assert_eq!(running.call("run", &[]).unwrap_err().status(), Status::ResourceExhausted);
        usable(&program, &mut running);
    });
}

/// One op that would work on two gigabytes for seconds, and no other op behind it that could look at the clock: it is left in the
/// middle. Memory is touched as far as the op came.
#[test]
fn one_op_on_many_bytes_ends() {
    type Append = fn(&mut Body);
    let ops: [(&str, Append); 6] = [
        ("fill", |f| _ = f.op(Op::BufferFillI8 { target: RefRead::new(0), target_offset: X8(4), length: X8(2), value: X4(0) })),
        ("copy", |f| _ = f.op(copy_of([RefRead::new(0), RefRead::new(1)], X8(4)))),
        ("copy within", |f| _ = f.op(copy_of([RefRead::new(0), RefRead::new(0)], X8(6)))),
        ("compare", |f| {
            let (a, b) = (RefRead::new(0), RefRead::new(1));
            f.op(Op::BufferCompare { a, a_offset: X8(4), b, b_offset: X8(4), length: X8(2), dst: X4(0) });
        }),
        ("hash", |f| _ = f.op(Op::BufferHash { source: RefRead::new(0), source_offset: X8(4), length: X8(2), dst: X8(8) })),
        ("clone", |f| {
            let (source, alignment) = (RefRead::new(0), f.alignment(0));
            f.op(Op::BufferClone { source, offset: X8(4), length: X8(2), alignment, dst: RefMove::new(2) });
        }),
    ];
    watched(move || {
        for (name, append) in ops {
            let mut program = answering(Program::new(NEWEST));
            program.export("run", "0v_v", |f| {
                f.start_block();
                f.i32(0, 16).i64(2, 2_000_000_000).i64(4, 0).i64(6, 4096).i64(8, 2_000_004_096);
                f.alloc(8, 0).alloc(8, 1);
                append(f);
                f.ret([]);
            });
            println!("{name}");
            ends(&program, &[Way::Deadline, Way::Interrupt], "run", &[]);
        }
    });
}

fn copy_of([source, target]: [RefRead; 2], target_offset: X8) -> Op<'static> {
    Op::BufferCopy { source, source_offset: X8(4), target, target_offset, length: X8(2) }
}

#[test]
fn one_resize_of_a_list_ends() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        let element = program.type_of("i64");
        program.export("run", "0v_v", |f| {
            f.start_block();
            f.i32(0, 200_000_000).op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(0) });
            f.op(Op::ListResize { list: RefRead::new(0), size: X4(0) }).ret([]);
        });
        ends(&program, &[Way::Deadline, Way::Interrupt], "run", &[]);
    });
}

/// A program whose `run(n)` makes lists in lists, `n` deep, and gives the outermost.
fn nesting() -> Program {
    let mut program = answering(Program::new(NEWEST));
    let element = program.type_of("!vm.opaque");
    program.export("run", "0i_r", |f| {
        f.start_block();
        let (head, end) = (f.label(), f.label());
        f.i32(1, 1).op(Op::Br { to: head.pc(), moves: NO_MOVES });
        f.place(head);
        f.op(Op::ListAlloc { element, capacity: X4(1), dst: RefMove::new(1) }).op(Op::ListResize { list: RefRead::new(1), size: X4(1) });
        f.op(Op::ListSetRef { list: RefRead::new(1), index: X4(2), value: RefMove::moved(0) });
        f.op(Op::AssignRef { source: RefMove::moved(1), dst: RefMove::new(0) });
        f.op(Op::SubI32 { a: X4(0), b: X4(1), dst: X4(0) });
        f.op(Op::CondBr { condition: X4(0), true_to: head.pc(), true_moves: NO_MOVES, false_to: end.pc(), false_moves: NO_MOVES });
        f.place(end);
        f.ret([r(0)]);
    });
    program.export("same", "0rr_i", |f| {
        f.start_block();
        f.op(Op::CmpEqRef { a: RefRead::new(0), b: RefRead::new(1), dst: X4(0) }).ret([v(0)]);
    });
    program
}

#[test]
fn a_million_nested_lists_are_built_printed_compared_and_dropped() {
    watched(|| {
        let program = nesting();
        let mut running = start(&program, Config::new());
        let outer: List = running.call_one("run", (1_000_000,)).unwrap();
        assert!(format!("{outer:?} {:?}", Ref::from(outer.clone())).len() < 1000);
        let other: List = running.call_one("run", (1_000_000,)).unwrap();
        assert!(!outer.same(&other) && outer.same(&outer.clone()));
        for (right, wanted) in [(&outer, 1), (&other, 0)] {
            assert_eq!(running.call_one::<i32>("same", (outer.clone(), right.clone())).unwrap(), wanted);
        }
        drop((outer, other));
        usable(&program, &mut running);
        exhausted(&program, Config::new().memory_limit(1 << 20), "run", &[1_000_000.into()], "limit");
    });
}

/// Nobody can reach it when the call is over, and yet it is gone with the store.
#[test]
fn a_list_that_contains_itself_goes_with_the_store() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        let element = program.type_of("!vm.opaque");
        program.export("run", "0v_v", |f| {
            f.start_block();
            f.i32(0, 1).op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(0) });
            f.op(Op::ListResize { list: RefRead::new(0), size: X4(0) });
            f.op(Op::ListSetRef { list: RefRead::new(0), index: X4(1), value: RefMove::new(0) }).ret([]);
        });
        let mut running = start(&program, Config::new());
        running.call("run", &[]).unwrap();
        assert_eq!(running.call_one::<i32>("answer", ()).unwrap(), 42);
        let account = running.store.account().clone();
        assert!(account.used() > 0, "the list holds itself");
        drop(running);
        assert_eq!(account.used(), 0);
    });
}

#[test]
fn deep_recursion_ends() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        let own = program.def.functions.len() as u32;
        program.export("run", "0i_i", |f| {
            f.start_block();
            f.call(FunctionRef::internal(own), [v(0)], [v(0)]).ret([v(0)]);
        });
        exhausted(&program, Config::new(), "run", &[1.into()], "stack");
        exhausted(&program, Config::new().stack_bytes(64 << 20), "run", &[1.into()], "stack");
    });
}

/// Waiting costs no fuel; time and interruption end it.
#[test]
#[cfg(feature = "hal")]
fn a_wait_that_nobody_signals_ends() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        let device = program.import("hal.devices.get", "0i_r");
        let create = program.import("hal.fence.create", "0rI_r");
        let wait = program.import("hal.fence.await", "0iICrD_i");
        program.export("run", "0v_v", |f| {
            const PLAIN: u16 = SegmentList::PLAIN;
            f.start_block();
            f.call(device, [v(0)], [r(0)]).call(create, [r(0), v(2)], [r(1)]).i32(4, -1);
            f.call_variadic(wait, &[PLAIN, PLAIN, 1], &[v(4), v(2), r(1)], [v(6)]).ret([]);
        });
        ends(&program, &[Way::Deadline, Way::Interrupt], "run", &[]);
    });
}

/// By the machine, by the limit, and in every way of asking for memory.
#[test]
fn a_huge_allocation_fails() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        program.export("alloc", "0I_v", |f| {
            f.start_block();
            f.alloc(0, 0).ret([]);
        });
        for length in [-1, i64::MAX, 1 << 62] {
            exhausted(&program, Config::new(), "alloc", &[length.into()], "memory");
        }
        exhausted(&program, Config::new().memory_limit(1 << 20), "alloc", &[(1i64 << 20).into()], "limit");
    });
}

#[test]
fn the_memory_limit_holds_for_inline_buffers() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        let allocate = program.import("hal_inline.buffer.allocate", "0iI_rr");
        program.export("allocate", "0iI_v", |f| {
            f.start_block();
            f.call(allocate, [v(0), v(2)], [r(0), r(1)]).ret([]);
        });
        exhausted(&program, Config::new().memory_limit(1 << 20), "allocate", &[64.into(), (1i64 << 20).into()], "limit");
    });
}

#[test]
#[cfg(feature = "hal")]
fn the_memory_limit_holds_for_the_allocator_of_a_device() {
    watched(|| {
        let mut program = answering(Program::new(NEWEST));
        let device = program.import("hal.devices.get", "0i_r");
        let allocator = program.import("hal.device.allocator", "0r_r");
        let allocate = program.import("hal.allocator.allocate", "0rIiiI_r");
        program.export("allocate", "0I_v", |f| {
            f.start_block();
            f.call(device, [v(4)], [r(0)]).call(allocator, [r(0)], [r(1)]);
            f.call(allocate, [r(1), v(6), v(4), v(5), v(0)], [r(2)]).ret([]);
        });
        exhausted(&program, Config::new().memory_limit(1 << 20), "allocate", &[(1i64 << 20).into()], "limit");
        exhausted(&program, Config::new(), "allocate", &[(1i64 << 62).into()], "memory");
    });
}
