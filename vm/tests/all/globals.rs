//! Globals and constants.

use crate::support::*;
use vmfb_bytecode::isa::{GlobalOffset, GlobalSlot, Op, RefMove, RefRead, TypeOrdinal, X4, X8};
use vmfb_vm::{Buffer, Origin, Ref, Status, Value};

#[test]
fn globals_keep_their_values_between_calls_and_per_instance() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.def.global_bytes = 16;
        program.export("add", "0i_i", |f| {
            f.start_block();
            f.op(Op::GlobalLoadI32 { offset: GlobalOffset(4), dst: X4(1) }).op(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(1) });
            f.op(Op::GlobalStoreI32 { offset: GlobalOffset(4), value: X4(1) }).ret([v(1)]);
        });
        let (mut one, mut other) = (program.start(), program.start());
        let sums: Vec<i32> = (1..=10).map(|n| one.call_one("add", (n,)).unwrap()).collect();
        assert_eq!(sums, [1, 3, 6, 10, 15, 21, 28, 36, 45, 55]);
        assert_eq!(other.call_one::<i32>("add", (5,)).unwrap(), 5);
        // Two instances in one store have globals of their own too.
        let second = program.instantiate(&mut one.store).unwrap();
        let results = second.function(&one.store, "add").unwrap().call(&mut one.store, &[7.into()]).unwrap();
        assert_eq!(bits(&results[0]), 7);
    }
}

/// All widths in one little-endian area, at offsets that no compiler would choose.
#[test]
fn globals_of_all_types_share_bytes() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.def.global_bytes = 21;
        program.export("store", "0IF_v", |f| {
            f.start_block();
            f.op(Op::GlobalStoreI64 { offset: GlobalOffset(1), value: X8(0) });
            f.op(Op::GlobalStoreF64 { offset: GlobalOffset(13), value: X8(2) }).ret([]);
        });
        program.export("load", "0v_iifFI", |f| {
            f.start_block();
            f.op(Op::GlobalLoadI32 { offset: GlobalOffset(1), dst: X4(0) }).op(Op::GlobalLoadI32 { offset: GlobalOffset(3), dst: X4(1) });
            f.op(Op::GlobalLoadF32 { offset: GlobalOffset(17), dst: X4(2) }).op(Op::GlobalLoadF64 { offset: GlobalOffset(13), dst: X8(4) });
            f.op(Op::GlobalLoadI64 { offset: GlobalOffset(0), dst: X8(6) }).ret([v(0), v(1), v(2), v(4), v(6)]);
        });
        program.export("float", "0f_v", |f| {
            f.start_block();
            f.op(Op::GlobalStoreF32 { offset: GlobalOffset(0), value: X4(0) }).ret([]);
        });
        let mut running = program.start();
        running.call("store", &[0x1122_3344_5566_7788_i64.into(), 1.5.into()]).unwrap();
        let load = |running: &mut Running| -> Vec<u64> { running.call("load", &[]).unwrap().iter().map(bits).collect() };
        let one_and_a_half = 1.5_f64.to_bits();
        let wanted = [0x5566_7788, 0x3344_5566, one_and_a_half >> 32, one_and_a_half, 0x2233_4455_6677_8800];
        assert_eq!(load(&mut running), wanted);
        running.call("float", &[1.0_f32.into()]).unwrap();
        assert_eq!(load(&mut running)[4], 0x2233_4455_3F80_0000);
    }
}

/// The offset comes as an unsigned number; no sum of it may wrap.
#[test]
fn indirect_globals_are_checked_in_64_bits() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.def.global_bytes = 16;
        let offset = X4(0);
        program.export("load32", "0i_i", |f| {
            f.start_block();
            f.op(Op::GlobalLoadIndirectI32 { offset, dst: X4(1) }).op(Op::GlobalLoadIndirectF32 { offset, dst: X4(1) }).ret([v(1)]);
        });
        program.export("load64", "0i_I", |f| {
            f.start_block();
            f.op(Op::GlobalLoadIndirectI64 { offset, dst: X8(2) }).op(Op::GlobalLoadIndirectF64 { offset, dst: X8(2) }).ret([v(2)]);
        });
        program.export("store32", "0ii_v", |f| {
            f.start_block();
            f.op(Op::GlobalStoreIndirectI32 { offset, value: X4(1) }).op(Op::GlobalStoreIndirectF32 { offset, value: X4(1) }).ret([]);
        });
        program.export("store64", "0iI_v", |f| {
            f.start_block();
            f.op(Op::GlobalStoreIndirectI64 { offset, value: X8(2) }).op(Op::GlobalStoreIndirectF64 { offset, value: X8(2) }).ret([]);
        });
        let mut running = program.start();
        running.call("store64", &[8.into(), 0x1122_3344_5566_7788_i64.into()]).unwrap();
        running.call("store32", &[3.into(), (-1).into()]).unwrap();
        assert_eq!(running.call_one::<i32>("load32", (12,)).unwrap(), 0x1122_3344);
        assert_eq!(running.call_one::<i64>("load64", (8,)).unwrap(), 0x1122_3344_5566_7788);
        assert_eq!(running.call_one::<i64>("load64", (0,)).unwrap(), 0x00FF_FFFF_FF00_0000);
        let outside: [i32; 7] = [13, 16, 17, -1, -2, -4, -8];
        for offset in outside {
            assert_eq!(status(running.call("load32", &[offset.into()])), Status::OutOfRange, "{offset}");
            assert_eq!(status(running.call("store32", &[offset.into(), 0.into()])), Status::OutOfRange, "{offset}");
        }
        for offset in outside.into_iter().chain([9, 12]) {
            assert_eq!(status(running.call("load64", &[offset.into()])), Status::OutOfRange, "{offset}");
            assert_eq!(status(running.call("store64", &[offset.into(), 0_i64.into()])), Status::OutOfRange, "{offset}");
        }
        assert_eq!(running.call_one::<i64>("load64", (8,)).unwrap(), 0x1122_3344_5566_7788);
    }
}

/// Direct offsets are refused when the module is loaded, with function and pc.
#[test]
fn direct_globals_are_checked_at_load() {
    let stores: [fn(u32) -> Op<'static>; 4] = [
        |offset| Op::GlobalStoreF64 { offset: GlobalOffset(offset), value: X8(0) },
        |offset| Op::GlobalStoreI64 { offset: GlobalOffset(offset), value: X8(0) },
        |offset| Op::GlobalStoreI32 { offset: GlobalOffset(offset), value: X4(0) },
        |offset| Op::GlobalStoreF32 { offset: GlobalOffset(offset), value: X4(0) },
    ];
    let widths = [8, 8, 4, 4];
    for version in VERSIONS {
        for capacity in [0, 4, 16_u32] {
            for (store, width) in stores.into_iter().zip(widths) {
                for offset in [capacity.wrapping_sub(4), capacity.wrapping_sub(8), capacity, 0xFFFF_FFFC, 0xFFFF_FFFE, u32::MAX] {
                    let mut program = Program::new(version);
                    program.def.global_bytes = capacity;
                    program.export("run", "0I_v", |f| {
                        f.start_block();
                        f.i32(4, 0).op(store(offset)).ret([]);
                    });
                    let fits = u64::from(offset) + width <= u64::from(capacity);
                    match program.load(&Default::default()) {
                        Ok(_) => assert!(fits, "{version}: {width} bytes at {offset:#x} of {capacity} were accepted"),
                        Err(error) => {
                            assert!(!fits, "{error}");
                            assert_eq!(error.status(), Status::OutOfRange);
                            let pc = if version.has_block_markers() { 8 } else { 7 };
                            assert!(error.message().contains(&format!("function 0 at pc {pc:#x}")), "{error}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn ref_globals() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.def.global_refs = 2;
        let buffer = program.type_of("!vm.buffer");
        let list = program.type_of("!vm.list<i32>");
        let store = |program: &mut Program, name: &str, type_ordinal: TypeOrdinal, value| {
            program.export(name, "0r_r", |f| {
                f.start_block();
                f.op(Op::GlobalStoreRef { slot: GlobalSlot(1), type_ordinal, value }).ret([r(0)]);
            });
        };
        store(&mut program, "store", buffer, RefMove::new(0));
        store(&mut program, "store_moved", buffer, RefMove::moved(0));
        let load = |program: &mut Program, name: &str, type_ordinal: TypeOrdinal, dst| {
            program.export(name, "0v_r", |f| {
                f.start_block();
                f.op(Op::GlobalLoadRef { slot: GlobalSlot(1), type_ordinal, dst }).ret([r(0)]);
            });
        };
        load(&mut program, "load", buffer, RefMove::new(0));
        load(&mut program, "load_moved", buffer, RefMove::moved(0));
        load(&mut program, "load_list", list, RefMove::new(0));
        let mut running = program.start();
        let value = Ref::from(Buffer::constant(vec![1]));
        let is_value = |found: Ref| found.same(&value);
        assert!(running.call_one::<Ref>("load", ()).unwrap().is_null());
        assert!(running.call_one::<Ref>("load_list", ()).unwrap().is_null());
        assert!(is_value(running.call_one("store", (value.clone(),)).unwrap()));
        assert!(is_value(running.call_one("load", ()).unwrap()));
        assert_eq!(status(running.call("load_list", &[])), Status::InvalidArgument);
        // MOVE takes the register's content along, and out of the global, since 16.
        let left = running.call_one::<Ref>("store_moved", (value.clone(),)).unwrap();
        assert_eq!(left.is_null(), version.honours_move());
        assert!(is_value(running.call_one("load_moved", ()).unwrap()));
        assert_eq!(running.call_one::<Ref>("load", ()).unwrap().is_null(), version.honours_move());
        // A value of another type is refused, and the global keeps what it has.
        running.call("store", &[Value::Ref(value.clone())]).unwrap();
        let wrong = vmfb_vm::List::of_values([]).unwrap();
        assert_eq!(status(running.call("store", &[wrong.into()])), Status::InvalidArgument);
        assert!(is_value(running.call_one("load", ()).unwrap()));
        running.call("store", &[null()]).unwrap();
        assert!(running.call_one::<Ref>("load", ()).unwrap().is_null());
    }
}

#[test]
fn indirect_ref_globals() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        program.def.global_refs = 2;
        let type_ordinal = program.type_of("!vm.buffer");
        program.export("store", "0ir_v", |f| {
            f.start_block();
            f.op(Op::GlobalStoreIndirectRef { slot: X4(0), type_ordinal, value: RefMove::moved(0) }).ret([]);
        });
        program.export("load", "0i_r", |f| {
            f.start_block();
            f.op(Op::GlobalLoadIndirectRef { slot: X4(0), type_ordinal, dst: RefMove::new(0) }).ret([r(0)]);
        });
        let mut running = program.start();
        let value = Buffer::constant(vec![1]);
        running.call("store", &[1.into(), value.clone().into()]).unwrap();
        assert!(running.call_one::<Ref>("load", (1,)).unwrap().same(&value.clone().into()));
        assert!(running.call_one::<Ref>("load", (0,)).unwrap().is_null());
        for slot in [2, -1, i32::MIN] {
            assert_eq!(status(running.call("load", &[slot.into()])), Status::OutOfRange);
            assert_eq!(status(running.call("store", &[slot.into(), value.clone().into()])), Status::OutOfRange);
        }
    }
}

#[test]
fn a_global_releases_what_it_held() {
    let mut program = Program::new(NEWEST);
    program.def.global_refs = 1;
    let type_ordinal = program.type_of("!vm.buffer");
    program.export("fill", "0I_v", |f| {
        f.start_block();
        f.alloc(0, 0).op(Op::GlobalStoreRef { slot: GlobalSlot(0), type_ordinal, value: RefMove::moved(0) }).ret([]);
    });
    let mut running = program.start();
    let empty = running.used();
    running.call("fill", &[100_000_i64.into()]).unwrap();
    assert!(running.used() >= empty + 100_000);
    running.call("fill", &[1000_i64.into()]).unwrap();
    assert!((empty + 1000..empty + 2000).contains(&running.used()));
}

/// One buffer object per constant, the same each time, and not writable.
#[test]
fn constants_are_one_object_each() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let (first, second) = (program.rodata(b"first"), program.rodata(b"first"));
        program.export("run", "0v_rrri", |f| {
            f.start_block();
            f.op(Op::ConstRefRodata { rodata: first, dst: RefMove::new(0) }).op(Op::ConstRefRodata { rodata: first, dst: RefMove::new(1) });
            f.op(Op::ConstRefRodata { rodata: second, dst: RefMove::new(2) });
            f.op(Op::CmpEqRef { a: RefRead::new(0), b: RefRead::new(1), dst: X4(0) }).ret([r(0), r(1), r(2), v(0)]);
        });
        program.export("write", "0v_v", |f| {
            f.start_block();
            f.op(Op::ConstRefRodata { rodata: first, dst: RefMove::new(0) });
            f.op(Op::BufferStoreI8 { target: RefRead::new(0), target_offset: X8(0), value: X4(2) }).ret([]);
        });
        let mut running = program.start();
        let results = running.call("run", &[]).unwrap();
        let references: Vec<&Ref> = results.iter().filter_map(Value::as_ref).collect();
        assert!(references[0].same(references[1]) && !references[0].same(references[2]));
        assert_eq!(bits(&results[3]), 1);
        let again = running.call("run", &[]).unwrap();
        assert!(references[0].same(again[0].as_ref().unwrap()));
        let buffer = references[0].buffer("the constant").unwrap();
        assert_eq!((buffer.span().to_vec().unwrap(), buffer.origin()), (b"first".to_vec(), Origin::Module));
        assert!(!buffer.span().is_writable());
        assert_eq!(status(running.call("write", &[])), Status::PermissionDenied);
    }
}
