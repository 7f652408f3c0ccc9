//! Everything that a program can make costs memory of its store: a program that makes one after another and keeps them runs into
//! the limit, whatever it makes, and all is returned when it has ended.
// Nothing leaves a test binary.
#![allow(unreachable_pub)]

#[allow(dead_code, reason = "shared with the tests of the virtual machine")]
#[path = "../vm/tests/all/support.rs"]
mod program;
mod support {
    #[allow(dead_code, reason = "shared with other tests")]
    pub mod kernels;
    pub mod watchdog;
}

use program::*;
use support::kernels::{self, ENTRY, Executable};
use support::watchdog::watched;
use vmfb::bytecode::isa::{FunctionRef, GlobalOffset, Op, RefMove, RefRead, SegmentList, X4};
use vmfb::{Config, Status};

const PLAIN: u16 = SegmentList::PLAIN;

/// Where a hoarding program keeps what it hoards, counts it, and holds the number one.
const HOARD: u16 = 20;
const COUNT: u16 = 40;
const ONE: u16 = 41;

const LIMIT: u64 = 1 << 20;

/// More than so many things cannot be made: the smallest takes more than 96 bytes.
const MOST: i32 = (LIMIT / 96) as i32;

/// Adds a function that keeps what is in ref register 0 after each round of `make`, for ever.
fn hoard(program: &mut Program, prepare: impl FnOnce(&mut Body), make: impl FnOnce(&mut Body)) {
    let element = program.type_of("!vm.opaque");
    program.def.global_bytes = 4;
    program.export("run", "0v_v", |f| {
        f.start_block();
        f.i32(ONE, 1).op(Op::ListAlloc { element, capacity: X4(ONE), dst: RefMove::new(HOARD) });
        prepare(f);
        let head = f.label();
        f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
        f.place(head);
        make(f);
        // The next room, then its content.
        f.op(Op::AddI32 { a: X4(COUNT), b: X4(ONE), dst: X4(COUNT + 2) });
        f.op(Op::ListResize { list: RefRead::new(HOARD), size: X4(COUNT + 2) });
        f.op(Op::ListSetRef { list: RefRead::new(HOARD), index: X4(COUNT), value: RefMove::new(0) });
        f.op(Op::AddI32 { a: X4(COUNT), b: X4(ONE), dst: X4(COUNT) });
        f.op(Op::GlobalStoreI32 { offset: GlobalOffset(0), value: X4(COUNT) });
        f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
    });
    program.export("count", "0v_i", |f| {
        f.start_block();
        f.op(Op::GlobalLoadI32 { offset: GlobalOffset(0), dst: X4(0) }).ret([v(0)]);
    });
}

/// Runs the hoarding program of a test.
#[track_caller]
fn runs_into_the_limit(program: &Program) -> i32 {
    let mut running = program.start_with(&vmfb::linker().unwrap(), Config::new().memory_limit(LIMIT));
    let before = running.used();
    let error = running.call("run", &[]).expect_err("hoarding ends");
    assert_eq!(error.status(), Status::ResourceExhausted, "{error}");
    assert!(error.to_string().contains("memory limit"), "{error}");
    assert!(running.store.account().peak() <= LIMIT);
    assert_eq!(running.used(), before, "everything is returned");
    running.call_one::<i32>("count", ()).unwrap()
}

/// Hoards what `make` makes of the device in ref register 1 and of the other things that `prepare` made.
#[track_caller]
fn hoarding(
    prepare: impl FnOnce(&mut Program) -> Box<dyn FnOnce(&mut Body)>,
    make: impl FnOnce(&mut Program) -> Box<dyn FnOnce(&mut Body)>,
) {
    let mut program = Program::new(NEWEST);
    let (prepare, make) = (prepare(&mut program), make(&mut program));
    hoard(&mut program, prepare, make);
    let count = runs_into_the_limit(&program);
    // The list alone would hold three times as many.
    assert!((1..=MOST).contains(&count), "{count} were made");
}

fn nothing(_program: &mut Program) -> Box<dyn FnOnce(&mut Body)> {
    Box::new(|_| {})
}

fn loading(executable: &Executable) {
    let executable = Executable { format: executable.format, bytes: executable.bytes.clone() };
    hoarding(nothing, |program| {
        let (format, data) = (program.rodata(executable.format.as_bytes()), program.rodata(&executable.bytes));
        let load = program.import("hal_loader.executable.load", "0rrr_r");
        Box::new(move |f| {
            f.op(Op::ConstRefRodata { rodata: format, dst: RefMove::new(1) }).op(Op::ConstRefRodata { rodata: data, dst: RefMove::new(2) });
            f.op(Op::ConstRefZero { dst: RefMove::new(3) }).call(load, [r(1), r(2), r(3)], [r(0)]);
        })
    });
}

#[test]
fn executables_of_bytecode() {
    watched(|| {
        loading(&kernels::vmvx(|module| {
            module.export("kernel", ENTRY, |f| {
                f.start_block();
                f.ret([]);
            });
        }));
    });
}

#[test]
#[cfg(all(feature = "elf", target_arch = "x86_64"))]
fn executables_of_machine_code() {
    watched(|| loading(&kernels::elf()));
}

#[test]
#[cfg(feature = "hal")]
fn executables_of_a_device() {
    watched(|| {
        hoarding(device, |program| {
            let executable = kernels::vmvx(|module| {
                module.export("kernel", ENTRY, |f| {
                    f.start_block();
                    f.ret([]);
                });
            });
            let (format, data) = (program.rodata(executable.format.as_bytes()), program.rodata(&executable.bytes));
            let create = program.import("hal.executable.create", "0rIrrr_r");
            Box::new(move |f| {
                f.op(Op::ConstRefRodata { rodata: format, dst: RefMove::new(2) });
                f.op(Op::ConstRefRodata { rodata: data, dst: RefMove::new(3) });
                f.op(Op::ConstRefZero { dst: RefMove::new(4) });
                f.call(create, [r(1), v(0), r(2), r(3), r(4)], [r(0)]);
            })
        });
    });
}

/// The device, in ref register 1.
#[cfg(feature = "hal")]
fn device(program: &mut Program) -> Box<dyn FnOnce(&mut Body)> {
    let get = program.import("hal.devices.get", "0i_r");
    Box::new(move |f| {
        f.call(get, [v(0)], [r(1)]);
    })
}

/// A buffer of 64 bytes in ref register 1 that the inline module made.
fn inline_buffer(program: &mut Program) -> Box<dyn FnOnce(&mut Body)> {
    let allocate = program.import("hal_inline.buffer.allocate", "0iI_rr");
    Box::new(move |f| {
        f.i32(0, 64).i64(2, 64).call(allocate, [v(0), v(2)], [r(1), r(2)]);
        f.i64(4, 0).i64(6, 8);
    })
}

#[test]
fn buffers_without_bytes() {
    watched(|| {
        hoarding(nothing, |_| {
            Box::new(|f| {
                f.alloc(2, 0);
            })
        });
    });
}

#[test]
fn inline_buffers_over_others() {
    watched(|| {
        for name in ["hal_inline.buffer.wrap", "hal_inline.buffer.subspan"] {
            hoarding(inline_buffer, |program| {
                let function = program.import(name, "0rII_r");
                let source = if name.ends_with("wrap") { r(2) } else { r(1) };
                Box::new(move |f| {
                    f.call(function, [source, v(4), v(6)], [r(0)]);
                })
            });
        }
    });
}

/// Views of a whole buffer, so that they are all that is made; of few dimensions, and of so many that they are held elsewhere.
#[test]
fn buffer_views() {
    watched(|| {
        for rank in [1, 100] {
            hoarding(inline_buffer, |program| {
                let create = program.import("hal_inline.buffer_view.create", "0rIIiiCID_r");
                Box::new(move |f| {
                    // 64 bytes from the start, f32, dense; every dimension is 1.
                    f.i64(8, 64).i32(10, 0x2100_0020).i32(11, 1).i64(12, 1);
                    let mut arguments = vec![r(1), v(4), v(8), v(10), v(11)];
                    arguments.extend(std::iter::repeat_n(v(12), rank));
                    f.call_variadic(create, &[PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, rank as u16], &arguments, [r(0)]);
                })
            });
        }
    });
}

#[test]
#[cfg(feature = "hal")]
fn fences() {
    watched(|| {
        hoarding(device, |program| {
            let create = program.import("hal.fence.create", "0rI_r");
            Box::new(move |f| {
                f.call(create, [r(1), v(0)], [r(0)]);
            })
        });
    });
}

#[test]
#[cfg(feature = "hal")]
fn joined_fences() {
    let two_fences = |program: &mut Program| -> Box<dyn FnOnce(&mut Body)> {
        let device = device(program);
        let create = program.import("hal.fence.create", "0rI_r");
        Box::new(move |f| {
            device(f);
            f.call(create, [r(1), v(0)], [r(2)]).call(create, [r(1), v(0)], [r(3)]);
        })
    };
    watched(move || {
        hoarding(two_fences, |program| {
            let join = program.import("hal.fence.join", "0ICrD_r");
            Box::new(move |f| {
                f.call_variadic(join, &[PLAIN, 2], &[v(0), r(2), r(3)], [r(0)]);
            })
        });
    });
}

#[cfg(feature = "hal")]
fn create_command_buffer(f: &mut Body, create: FunctionRef, target: u16) {
    f.i32(4, 0).i32(5, 3).i64(6, -1).i32(8, 0).call(create, [r(1), v(4), v(5), v(6), v(8)], [r(target)]);
}

#[test]
#[cfg(feature = "hal")]
fn command_buffers() {
    watched(|| {
        hoarding(device, |program| {
            let create = program.import("hal.command_buffer.create", "0riiIi_r");
            Box::new(move |f| create_command_buffer(f, create, 0))
        });
    });
}

/// What is hoarded is one null after another, which the list pays for; the commands pay for themselves.
#[test]
#[cfg(feature = "hal")]
fn recorded_commands() {
    let recording = |program: &mut Program| -> Box<dyn FnOnce(&mut Body)> {
        let device = device(program);
        let create = program.import("hal.command_buffer.create", "0riiIi_r");
        let allocator = program.import("hal.device.allocator", "0r_r");
        let allocate = program.import("hal.allocator.allocate", "0rIiiI_r");
        Box::new(move |f| {
            device(f);
            create_command_buffer(f, create, 2);
            f.i64(10, 64).call(allocator, [r(1)], [r(3)]);
            f.call(allocate, [r(3), v(6), v(4), v(5), v(10)], [r(4)]).i64(12, 0);
        })
    };
    watched(move || {
        let mut program = Program::new(NEWEST);
        let prepare = recording(&mut program);
        let fill = program.import("hal.command_buffer.fill_buffer", "0rrIIiIiI_v");
        // Records for ever, and keeps nothing else.
        program.export("run", "0v_v", |f| {
            f.start_block();
            prepare(f);
            f.i32(14, 1);
            let head = f.label();
            f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
            f.place(head);
            f.call(fill, [r(2), r(4), v(12), v(10), v(8), v(12), v(14), v(12)], []);
            f.op(Op::Br { to: head.pc(), moves: NO_MOVES });
        });
        program.export("count", "0v_i", |f| {
            f.start_block();
            f.i32(0, 42).ret([v(0)]);
        });
        runs_into_the_limit(&program);
    });
}

#[test]
#[cfg(feature = "hal")]
fn layouts_of_descriptor_sets_and_pipelines() {
    watched(|| {
        hoarding(device, |program| {
            let create = program.import("hal.descriptor_set_layout.create", "0riCiiiD_r");
            Box::new(move |f| {
                f.call_variadic(create, &[PLAIN, PLAIN, 1], &[r(1), v(0), v(0), v(0), v(0)], [r(0)]);
            })
        });
        hoarding(device, |program| {
            let create = program.import("hal.pipeline_layout.create", "0riCrD_r");
            Box::new(move |f| {
                f.call_variadic(create, &[PLAIN, PLAIN, 0], &[r(1), v(0)], [r(0)]);
            })
        });
    });
}

#[test]
#[cfg(feature = "hal")]
fn parts_of_buffers_and_files_in_memory() {
    let buffers = |program: &mut Program| -> Box<dyn FnOnce(&mut Body)> {
        let device = device(program);
        let allocator = program.import("hal.device.allocator", "0r_r");
        let allocate = program.import("hal.allocator.allocate", "0rIiiI_r");
        Box::new(move |f| {
            device(f);
            f.i64(2, 64).i64(6, 8).call(allocator, [r(1)], [r(2)]);
            f.call(allocate, [r(2), v(10), v(0), v(0), v(2)], [r(3)]).alloc(2, 4);
        })
    };
    watched(move || {
        hoarding(buffers, |program| {
            let part = program.import("hal.buffer.subspan", "0rII_r");
            Box::new(move |f| {
                f.call(part, [r(3), v(6), v(6)], [r(0)]);
            })
        });
        hoarding(buffers, |program| {
            let open = program.import("hal.ex.file.from_memory", "0rIirIIi_r");
            Box::new(move |f| {
                f.i32(12, 1).call(open, [r(1), v(10), v(12), r(4), v(10), v(6), v(14)], [r(0)]);
            })
        });
        hoarding(buffers, |program| {
            let import = program.import("hal.allocator.import", "0riIiirII_r");
            Box::new(move |f| {
                f.call(import, [r(2), v(0), v(10), v(0), v(0), r(4), v(10), v(6)], [r(0)]);
            })
        });
    });
}
