//! Lists that hold themselves or each other.

use crate::lists::LIST;
use crate::support::*;
use vmfb_bytecode::isa::{Op, RefMove, RefRead, X4};
use vmfb_vm::{List, Ref, Value};

/// A program whose `run` makes two lists that hold each other, and itself, and keeps none.
fn cyclic(held: &str) -> Program {
    let mut program = Program::new(NEWEST);
    let element = program.type_of("!vm.opaque");
    program.export("run", held, |f| {
        f.start_block();
        f.i32(0, 2).i32(1, 1);
        for register in [0, 1, 2] {
            let list = RefRead::new(register);
            f.op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(register) }).op(Op::ListResize { list, size: X4(0) });
        }
        // r0 and r1 hold each other, r0 holds itself; r2 holds a buffer, and r0 holds r2.
        f.op(Op::ListSetRef { list: RefRead::new(0), index: X4(2), value: RefMove::new(1) });
        f.op(Op::ListSetRef { list: RefRead::new(1), index: X4(2), value: RefMove::new(0) });
        f.op(Op::ListSetRef { list: RefRead::new(0), index: X4(1), value: RefMove::new(0) });
        f.op(Op::ListSetRef { list: RefRead::new(1), index: X4(1), value: RefMove::new(2) });
        f.i64(4, 1000).alloc(4, 3).op(Op::ListSetRef { list: RefRead::new(2), index: X4(2), value: RefMove::new(3) });
        if held.ends_with('r') {
            f.ret([r(2)])
        } else {
            f.ret([])
        };
    });
    program
}

#[test]
fn lists_that_hold_each_other_go_with_the_store() {
    let mut running = cyclic("0v_v").start();
    running.call("run", &[]).unwrap();
    let account = running.store.account().clone();
    assert!(account.used() > 1000);
    drop(running);
    assert_eq!(account.used(), 0);
}

/// What the host still holds is not cleared, even if a cycle that nobody holds refers to it.
#[test]
fn lists_of_the_host_outlive_the_cycles_of_a_store() {
    let mut running = cyclic("0v_r").start();
    let held: List = running.call_one("run", ()).unwrap();
    let account = running.store.account().clone();
    drop(running);
    assert_eq!(held.get_ref(0).unwrap().buffer("the element").unwrap().len(), 1000);
    assert!(account.used() > 1000);
    drop(held);
    assert_eq!(account.used(), 0);
}

/// A cycle that the host holds is left alone: the host can still walk it.
#[test]
fn a_cycle_of_the_host_stays_whole() {
    let mut program = Program::new(NEWEST);
    let element = program.type_of("!vm.opaque");
    program.export("run", "0v_r", |f| {
        f.start_block();
        f.i32(0, 1).op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(0) }).op(Op::ListResize { list: LIST, size: X4(0) });
        f.op(Op::ListSetRef { list: LIST, index: X4(1), value: RefMove::new(0) }).ret([r(0)]);
    });
    let mut running = program.start();
    let list: List = running.call_one("run", ()).unwrap();
    drop(running);
    assert!(list.get_ref(0).unwrap().same(&list.clone().into()));
    // Who holds a cycle takes it apart.
    list.clear();
}

/// A list of a fork's parent: the parent goes first, then the fork; nothing is lost, nothing leaks.
#[test]
fn cycles_in_globals_that_a_fork_shares() {
    let mut program = cyclic("0v_r");
    program.def.global_refs = 1;
    let list = program.type_of("!vm.list<?>");
    let run = vmfb_bytecode::isa::FunctionRef::internal(0);
    program.export("keep", "0v_v", |f| {
        f.start_block();
        let slot = vmfb_bytecode::isa::GlobalSlot(0);
        f.i32(1, 1).call(run, [], [r(0)]).op(Op::ListSetRef { list: LIST, index: X4(1), value: RefMove::new(0) });
        f.op(Op::GlobalStoreRef { slot, type_ordinal: list, value: RefMove::moved(0) }).ret([]);
    });
    let mut parent = program.start();
    parent.call("keep", &[]).unwrap();
    let account = parent.store.account().clone();
    for parent_first in [true, false] {
        let mut parent = program.start();
        parent.call("keep", &[]).unwrap();
        let account = parent.store.account().clone();
        let child = parent.store.fork(()).unwrap();
        if parent_first {
            drop(parent);
            assert!(account.used() > 1000, "the fork holds the list still");
            drop(child);
        } else {
            drop(child);
            assert!(account.used() > 1000, "the parent holds the list still");
            drop(parent);
        }
        assert_eq!(account.used(), 0, "parent first: {parent_first}");
    }
    drop(parent);
    assert_eq!(account.used(), 0);
}

/// The list operand and the moved value are one register: the list gets itself, then the register is released.
#[test]
fn a_list_moved_into_itself() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let element = program.type_of("!vm.list<?>");
        program.export("main", "0v_r", |f| {
            f.start_block();
            f.i32(0, 1).op(Op::ListAlloc { element, capacity: X4(0), dst: RefMove::new(0) });
            f.op(Op::ListResize { list: LIST, size: X4(0) });
            f.op(Op::ListSetRef { list: LIST, index: X4(1), value: RefMove::moved(0) }).ret([r(0)]);
        });
        let mut running = program.start();
        // Until version 15 a list access leaves its operands.
        let left = running.call("main", &[]).unwrap().remove(0);
        assert_eq!(matches!(left, Value::Ref(Ref::Null)), version.major() >= 16);
        drop(left);
        let account = running.store.account().clone();
        assert!(account.used() > 0, "the list holds itself");
        drop(running);
        assert_eq!(account.used(), 0, "and ends with its store");
    }
}
