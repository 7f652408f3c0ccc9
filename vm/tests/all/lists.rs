//! Lists: conversions between element types, statuses, growth, lists in lists.

use crate::support::*;
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{Op, RefMove, RefRead, Text, X4, X8};
use vmfb_vm::{Buffer, Config, List, Ref, RefObject, Result, Status, Value};

/// The list of the programs here.
pub const LIST: RefRead = RefRead::new(0);

struct Thing;

impl RefObject for Thing {
    const TYPE_NAME: &'static str = "test.thing";
}

/// A program that makes a list of one element type and has an exported function per list op: `make(size) -> list`,
/// `get_…(list, index)`, `set_…(list, index, value)`, `reserve`, `resize`, `size`.
fn program(version: BytecodeVersion, element: &str) -> Program {
    let mut program = Program::new(version);
    let element = program.type_of(element);
    let buffer = program.type_of("!vm.buffer");
    program.export("make", "0i_r", |f| {
        f.start_block();
        f.op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(0) }).op(Op::ListResize { list: LIST, size: X4(0) }).ret([r(0)]);
    });
    let index = X4(0);
    let gets: [(&str, &str, Op<'_>); 4] = [
        ("get_i32", "0ri_i", Op::ListGetI32 { list: LIST, index, dst: X4(2) }),
        ("get_i64", "0ri_I", Op::ListGetI64 { list: LIST, index, dst: X8(2) }),
        ("get_f32", "0ri_f", Op::ListGetF32 { list: LIST, index, dst: X4(2) }),
        ("get_f64", "0ri_F", Op::ListGetF64 { list: LIST, index, dst: X8(2) }),
    ];
    for (name, convention, op) in gets {
        program.export(name, convention, |f| {
            f.start_block();
            f.op(op).ret([v(2)]);
        });
    }
    let sets: [(&str, &str, Op<'_>); 5] = [
        ("set_i32", "0rii_v", Op::ListSetI32 { list: LIST, index, value: X4(1) }),
        ("set_i64", "0riI_v", Op::ListSetI64 { list: LIST, index, value: X8(2) }),
        ("set_f32", "0rif_v", Op::ListSetF32 { list: LIST, index, value: X4(1) }),
        ("set_f64", "0riF_v", Op::ListSetF64 { list: LIST, index, value: X8(2) }),
        ("set_ref", "0rir_v", Op::ListSetRef { list: LIST, index, value: RefMove::new(1) }),
    ];
    for (name, convention, op) in sets {
        program.export(name, convention, |f| {
            f.start_block();
            f.op(op).ret([]);
        });
    }
    program.export("get_ref", "0ri_r", |f| {
        f.start_block();
        f.op(Op::ListGetRef { list: LIST, index, type_ordinal: buffer, dst: RefMove::new(1) }).ret([r(1)]);
    });
    program.export("size", "0r_i", |f| {
        f.start_block();
        f.op(Op::ListSize { list: LIST, dst: X4(0) }).ret([v(0)]);
    });
    program.export("resize", "0ri_v", |f| {
        f.start_block();
        f.op(Op::ListResize { list: LIST, size: X4(0) }).ret([]);
    });
    program.export("reserve", "0ri_v", |f| {
        f.start_block();
        f.op(Op::ListReserve { list: LIST, capacity: X4(0) }).ret([]);
    });
    program
}

/// A running program and a list that it made.
struct Lists {
    running: Running,
    list: Value,
}

impl Lists {
    fn new(version: BytecodeVersion, element: &str, size: i32) -> Self {
        let mut running = program(version, element).start();
        let list = running.call("make", &[size.into()]).unwrap().remove(0);
        Self { running, list }
    }

    fn get(&mut self, name: &str, index: i32) -> Result<Value> {
        self.running.call(name, &[self.list.clone(), index.into()]).map(|mut results| results.remove(0))
    }

    fn set(&mut self, name: &str, index: i32, value: impl Into<Value>) -> Result<()> {
        self.running.call(name, &[self.list.clone(), index.into(), value.into()]).map(|_| ())
    }

    /// All four readings of an element, as bits.
    fn readings(&mut self, index: i32) -> [u64; 4] {
        ["get_i32", "get_i64", "get_f32", "get_f64"].map(|name| bits(&self.get(name, index).unwrap()))
    }
}

fn f32_bits(value: f32) -> u64 {
    u64::from(value.to_bits())
}

#[test]
fn integers_convert_by_truncation_and_sign_extension() {
    for version in VERSIONS {
        let mut narrow = Lists::new(version, "i8", 2);
        narrow.set("set_i32", 0, 200).unwrap();
        assert_eq!(narrow.readings(0), [-56_i32 as u32 as u64, -56_i64 as u64, 0, 0]);
        narrow.set("set_i64", 1, 0x1_0000_017F_i64).unwrap();
        assert_eq!(narrow.readings(1)[..2], [127, 127]);
        let mut short = Lists::new(version, "i16", 1);
        short.set("set_i32", 0, 0x1_8001).unwrap();
        assert_eq!(short.readings(0)[..2], [-32767_i32 as u32 as u64, -32767_i64 as u64]);
        let mut word = Lists::new(version, "i32", 1);
        word.set("set_i64", 0, (1_i64 << 32) + 5).unwrap();
        assert_eq!(word.readings(0), [5, 5, 0, 0]);
        word.set("set_i32", 0, -1).unwrap();
        assert_eq!(word.readings(0)[..2], [0xFFFF_FFFF, u64::MAX]);
        let mut wide = Lists::new(version, "i64", 1);
        wide.set("set_i64", 0, (1_i64 << 32) + 5).unwrap();
        assert_eq!(wide.readings(0), [5, (1 << 32) + 5, 0, 0]);
        wide.set("set_i32", 0, -2).unwrap();
        assert_eq!(wide.readings(0)[1], -2_i64 as u64);
    }
}

#[test]
fn floats_convert_among_each_other_and_are_zero_as_integers() {
    for version in VERSIONS {
        let mut single = Lists::new(version, "f32", 1);
        single.set("set_f32", 0, 2.5_f32).unwrap();
        assert_eq!(single.readings(0), [0, 0, f32_bits(2.5), 2.5_f64.to_bits()]);
        single.set("set_f64", 0, 0.1_f64).unwrap();
        assert_eq!(single.readings(0)[2..], [f32_bits(0.1), f64::from(0.1_f32).to_bits()]);
        single.set("set_i32", 0, 7).unwrap();
        assert_eq!(single.readings(0), [0; 4]);
        let mut double = Lists::new(version, "f64", 1);
        double.set("set_f64", 0, 0.1_f64).unwrap();
        assert_eq!(double.readings(0), [0, 0, f32_bits(0.1), 0.1_f64.to_bits()]);
        let mut integers = Lists::new(version, "i32", 1);
        integers.set("set_i32", 0, 9).unwrap();
        integers.set("set_f32", 0, 2.5_f32).unwrap();
        assert_eq!(integers.readings(0), [0; 4]);
    }
}

#[test]
fn variant_lists_keep_the_type_that_was_stored() {
    for version in VERSIONS {
        let mut lists = Lists::new(version, "!vm.opaque", 2);
        // An empty element is no number, but it is a null reference.
        for name in ["get_i32", "get_i64", "get_f32", "get_f64"] {
            assert_eq!(status(lists.get(name, 0)), Status::FailedPrecondition);
        }
        assert!(matches!(lists.get("get_ref", 0), Ok(Value::Ref(Ref::Null))));
        lists.set("set_i64", 0, (1_i64 << 32) + 5).unwrap();
        assert_eq!(lists.readings(0), [5, (1 << 32) + 5, 0, 0]);
        lists.set("set_f32", 0, 2.5_f32).unwrap();
        assert_eq!(lists.readings(0), [0, 0, f32_bits(2.5), 2.5_f64.to_bits()]);
        lists.set("set_f64", 0, 0.1).unwrap();
        assert_eq!(lists.readings(0), [0, 0, f32_bits(0.1), 0.1_f64.to_bits()]);
        lists.set("set_i32", 0, -1).unwrap();
        assert_eq!(lists.readings(0), [0xFFFF_FFFF, u64::MAX, 0, 0]);
        assert_eq!(status(lists.get("get_ref", 0)), Status::FailedPrecondition);
        let buffer = Buffer::constant(vec![1]);
        lists.set("set_ref", 0, buffer.clone()).unwrap();
        assert!(matches!(lists.get("get_ref", 0), Ok(Value::Ref(found)) if found.same(&buffer.clone().into())));
        assert_eq!(status(lists.get("get_i32", 0)), Status::FailedPrecondition);
        // A reference of another type than the reader wants reads as null, without an error.
        lists.set("set_ref", 0, Ref::new(Thing)).unwrap();
        assert!(matches!(lists.get("get_ref", 0), Ok(Value::Ref(Ref::Null))));
        lists.set("set_ref", 0, Ref::Null).unwrap();
        assert_eq!(status(lists.get("get_i32", 0)), Status::FailedPrecondition);
    }
}

#[test]
fn lists_of_references_hold_their_type_alone() {
    for version in VERSIONS {
        let mut lists = Lists::new(version, "!vm.buffer", 1);
        assert!(matches!(lists.get("get_ref", 0), Ok(Value::Ref(Ref::Null))));
        let buffer = Buffer::constant(vec![1]);
        lists.set("set_ref", 0, buffer.clone()).unwrap();
        assert_eq!(status(lists.set("set_ref", 0, Ref::new(Thing))), Status::InvalidArgument);
        assert!(matches!(lists.get("get_ref", 0), Ok(Value::Ref(found)) if found.same(&buffer.clone().into())));
        for name in ["get_i32", "get_i64", "get_f32", "get_f64"] {
            assert_eq!(status(lists.get(name, 0)), Status::FailedPrecondition);
        }
        assert_eq!(status(lists.set("set_i32", 0, 1)), Status::FailedPrecondition);
        assert_eq!(status(lists.set("set_f64", 0, 1.0)), Status::FailedPrecondition);
        lists.set("set_ref", 0, Ref::Null).unwrap();
        let mut numbers = Lists::new(version, "i32", 1);
        assert_eq!(status(numbers.set("set_ref", 0, buffer.clone())), Status::FailedPrecondition);
        assert_eq!(status(numbers.get("get_ref", 0)), Status::FailedPrecondition);
    }
}

#[test]
fn indices_and_list_operands_are_checked() {
    for version in VERSIONS {
        for element in ["i8", "i32", "f64", "!vm.opaque", "!vm.buffer"] {
            let mut lists = Lists::new(version, element, 3);
            for index in [3, 4, -1, i32::MIN] {
                for name in ["get_i32", "get_i64", "get_f32", "get_f64", "get_ref"] {
                    assert_eq!(status(lists.get(name, index)), Status::OutOfRange, "{element}: {name} {index}");
                }
                assert_eq!(status(lists.set("set_i32", index, 0)), Status::OutOfRange);
                assert_eq!(status(lists.set("set_f64", index, 0.0)), Status::OutOfRange);
                assert_eq!(status(lists.set("set_ref", index, Ref::Null)), Status::OutOfRange);
            }
        }
        let mut lists = Lists::new(version, "i32", 1);
        for wrong in [null(), Buffer::constant(vec![]).into(), Value::Ref(Ref::new(Thing))] {
            lists.list = wrong;
            assert_eq!(status(lists.get("get_i32", 0)), Status::InvalidArgument);
            assert_eq!(status(lists.get("get_ref", 0)), Status::InvalidArgument);
            assert_eq!(status(lists.set("set_i64", 0, 0_i64)), Status::InvalidArgument);
            assert_eq!(status(lists.set("set_ref", 0, Ref::Null)), Status::InvalidArgument);
            for name in ["resize", "reserve"] {
                assert_eq!(status(lists.running.call(name, &[lists.list.clone(), 1.into()])), Status::InvalidArgument);
            }
            assert_eq!(status(lists.running.call("size", &[lists.list.clone()])), Status::InvalidArgument);
        }
    }
}

#[test]
fn shrinking_clears_and_growing_gives_zeros() {
    for version in VERSIONS {
        for element in ["i8", "i16", "i32", "i64", "f32", "f64"] {
            let mut lists = Lists::new(version, element, 2);
            let set = if element.starts_with('i') { "set_i32" } else { "set_f32" };
            let one: Value = if element.starts_with('i') { 1.into() } else { 1.0_f32.into() };
            lists.set(set, 1, one).unwrap();
            let mut resize = |size: i32| lists.running.call("resize", &[lists.list.clone(), size.into()]).unwrap();
            resize(1);
            resize(3);
            assert_eq!(lists.readings(1), [0; 4], "{element}");
            assert_eq!(bits(&lists.running.call("size", &[lists.list.clone()]).unwrap()[0]), 3);
        }
        let mut lists = Lists::new(version, "!vm.opaque", 2);
        lists.set("set_i32", 1, 5).unwrap();
        lists.running.call("resize", &[lists.list.clone(), 0.into()]).unwrap();
        lists.running.call("resize", &[lists.list.clone(), 2.into()]).unwrap();
        assert_eq!(status(lists.get("get_i32", 1)), Status::FailedPrecondition);
        // Room is not size.
        lists.running.call("reserve", &[lists.list.clone(), 100.into()]).unwrap();
        assert_eq!(bits(&lists.running.call("size", &[lists.list.clone()]).unwrap()[0]), 2);
    }
}

/// Dropped elements are released at once.
#[test]
fn shrinking_releases_references() {
    let mut lists = Lists::new(NEWEST, "!vm.buffer", 2);
    let buffer = lists.running.store.account().clone();
    let before = buffer.used();
    let big = Buffer::allocate(100_000, 1, &buffer).unwrap();
    lists.set("set_ref", 1, big).unwrap();
    assert!(buffer.used() >= before + 100_000);
    lists.running.call("resize", &[lists.list.clone(), 1.into()]).unwrap();
    assert_eq!(buffer.used(), before);
}

/// The ops after a list access run: the accesses are no returns.
#[test]
fn what_follows_a_list_access_is_reached() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let (element, buffer) = (program.type_of("!vm.opaque"), program.type_of("!vm.buffer"));
        program.export("run", "0v_v", |f| {
            f.start_block();
            f.i32(0, 1).op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(0) });
            f.op(Op::ListResize { list: LIST, size: X4(0) });
            f.op(Op::ListSetRef { list: LIST, index: X4(1), value: RefMove::new(1) });
            f.op(Op::ListGetRef { list: LIST, index: X4(1), type_ordinal: buffer, dst: RefMove::new(2) });
            f.i32(2, 9).op(Op::Fail { code: X4(2), message: Text(b"reached") });
        });
        let error = program.start().call("run", &[]).unwrap_err();
        assert_eq!((error.status(), error.message()), (Status::FailedPrecondition, "reached"));
    }
}

/// `r0 = r0[0]`, `r0[0] = r0`: the value survives although the list may go.
#[test]
fn a_list_may_be_replaced_by_its_own_element() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let (element, buffer) = (program.type_of("!vm.opaque"), program.type_of("!vm.buffer"));
        program.export("run", "0r_r", |f| {
            f.start_block();
            f.i32(0, 1).op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(1) });
            f.op(Op::ListResize { list: RefRead::new(1), size: X4(0) });
            f.op(Op::ListSetRef { list: RefRead::new(1), index: X4(1), value: RefMove::new(0) });
            f.op(Op::ConstRefZero { dst: RefMove::new(0) });
            f.op(Op::ListGetRef { list: RefRead::new(1), index: X4(1), type_ordinal: buffer, dst: RefMove::new(1) }).ret([r(1)]);
        });
        let buffer = Ref::from(Buffer::constant(vec![4, 2]));
        assert!(program.start().call_one::<Ref>("run", (buffer.clone(),)).unwrap().same(&buffer));
    }
}

#[test]
fn move_bits_of_list_accesses() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let (buffer, list) = (program.type_of("!vm.buffer"), program.type_of("!vm.list<?>"));
        program.export("set", "0rr_r", |f| {
            f.start_block();
            f.op(Op::ListSetRef { list: LIST, index: X4(1), value: RefMove::moved(1) }).ret([r(1)]);
        });
        for (name, type_ordinal) in [("take", buffer), ("take_list", list)] {
            program.export(name, "0r_r", |f| {
                f.start_block();
                f.op(Op::ListGetRef { list: LIST, index: X4(1), type_ordinal, dst: RefMove::moved(1) }).ret([r(1)]);
            });
        }
        let mut running = program.start();
        let list = List::of_values([null()]).unwrap();
        let value = Ref::from(Buffer::constant(vec![1]));
        let left: Ref = running.call_one("set", (list.clone(), value.clone())).unwrap();
        assert_eq!(left.is_null(), version.honours_move());
        // An element of another type stays where it is.
        assert!(running.call_one::<Ref>("take_list", (list.clone(),)).unwrap().is_null());
        assert!(list.get_ref(0).unwrap().same(&value));
        assert!(running.call_one::<Ref>("take", (list.clone(),)).unwrap().same(&value));
        assert_eq!(list.get_ref(0).unwrap().is_null(), version.honours_move());
    }
}

/// 10^6 lists, each in the next one: built, printed, returned and dropped.
#[test]
fn a_million_nested_lists() {
    let mut program = Program::new(NEWEST);
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
        f.op(Op::CmpNzI32 { a: X4(0), dst: X4(3) });
        f.op(Op::CondBr { condition: X4(3), true_to: head.pc(), true_moves: NO_MOVES, false_to: end.pc(), false_moves: NO_MOVES });
        f.place(end);
        f.ret([r(0)]);
    });
    let mut running = program.start();
    let outer: List = running.call_one("run", (1_000_000,)).unwrap();
    assert!(format!("{outer:?}").len() < 1000);
    drop(outer);
    assert_eq!(running.used(), 0);
    // The same with the store dropped first.
    let outer: List = running.call_one("run", (1_000_000,)).unwrap();
    drop(running);
    assert_eq!(outer.len(), 1);
    drop(outer);
}

#[test]
fn growth_beyond_the_memory_limit_fails() {
    for version in VERSIONS {
        for element in ["i8", "i64", "!vm.buffer", "!vm.opaque"] {
            let program = program(version, element);
            let mut running = program.start_with(&vmfb_vm::Linker::new(), Config::new().memory_limit(1 << 20));
            let list = running.call("make", &[4.into()]).unwrap().remove(0);
            for size in [-1, i32::MAX, i32::MIN, 2 << 20] {
                for name in ["resize", "reserve"] {
                    assert_eq!(status(running.call(name, &[list.clone(), size.into()])), Status::ResourceExhausted, "{element} {size}");
                }
                assert_eq!(status(running.call("make", &[size.into()])), Status::ResourceExhausted);
            }
            // Nothing changed, and the store goes on.
            assert_eq!(bits(&running.call("size", std::slice::from_ref(&list)).unwrap()[0]), 4);
            running.call("resize", &[list.clone(), 100.into()]).unwrap();
            drop(list);
            assert_eq!(running.used(), 0);
        }
    }
}
