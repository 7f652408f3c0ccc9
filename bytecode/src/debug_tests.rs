//! Tests of source locations.

use super::*;
use crate::builder::{FunctionBody, ModuleBuilder};
use crate::definition::BytecodeVersion;

fn position(line: i32) -> Location {
    Location::FileLineColumn { filename: "a.mlir".into(), line, column: 5 }
}

/// Displayed frames of location 0.
fn frames(locations: Vec<Location>) -> Vec<String> {
    let debug = DebugDatabase { locations, functions: Vec::new() };
    debug.frames(0).iter().map(ToString::to_string).collect()
}

#[test]
fn kinds_of_locations() {
    assert_eq!(frames(vec![position(3)]), ["a.mlir:3:5"]);
    assert_eq!(frames(vec![Location::None]), [""; 0]);
    let call = Location::CallSite { callee: 1, caller: 2 };
    assert_eq!(frames(vec![call, position(1), position(2)]), ["a.mlir:1:5", "a.mlir:2:5"]);
    let fused = Location::Fused { metadata: String::new(), locations: vec![2, 1] };
    assert_eq!(frames(vec![fused, position(1), position(2)]), ["a.mlir:2:5", "a.mlir:1:5"]);
    let name = |child| Location::Name { name: "conv".into(), child };
    assert_eq!(frames(vec![name(1), position(1)]), ["\"conv\" at a.mlir:1:5"]);
    assert_eq!(frames(vec![name(1), Location::None]), ["\"conv\""]);
}

#[test]
fn inlined_twice() {
    let locations = vec![
        Location::CallSite { callee: 1, caller: 2 },
        position(1),
        Location::CallSite { callee: 3, caller: 4 },
        position(3),
        position(4),
    ];
    assert_eq!(frames(locations), ["a.mlir:1:5", "a.mlir:3:5", "a.mlir:4:5"]);
}

#[test]
fn indices_that_lead_nowhere() {
    for index in [-1, 7, i32::MIN, i32::MAX] {
        assert_eq!(frames(vec![Location::CallSite { callee: index, caller: index }]), [""; 0]);
        assert_eq!(frames(vec![Location::Fused { metadata: String::new(), locations: vec![index] }]), [""; 0]);
    }
}

#[test]
fn cycles_and_wide_graphs_end() {
    assert_eq!(frames(vec![Location::Name { name: "self".into(), child: 0 }]), [""; 0]);
    let round = vec![Location::CallSite { callee: 1, caller: 2 }, Location::CallSite { callee: 0, caller: 2 }, position(9)];
    assert_eq!(frames(round), ["a.mlir:9:5"]);
    // Fewer under Miri, which is slow.
    let (width, length) = if cfg!(miri) { (100, 1000) } else { (10_000, 100_000) };
    let all: Vec<i32> = (0..width).collect();
    let wide = vec![Location::Fused { metadata: String::new(), locations: all }; width as usize];
    assert_eq!(frames(wide), [""; 0]);
    let chain = (0..length).map(|index| Location::CallSite { callee: index + 1, caller: 0 }).collect();
    assert_eq!(frames(chain), [""; 0]);
}

#[test]
fn control_characters_are_escaped() {
    let file = Location::FileLineColumn { filename: "a\u{1b}[2J".into(), line: 1, column: 1 };
    assert_eq!(frames(vec![Location::Name { name: "\n".into(), child: 1 }, file]), ["\"\\n\" at a\\u{1b}[2J:1:1"]);
}

fn module(maps: usize) -> ModuleDef {
    let body = FunctionBody { bytecode: &[0; 8], block_count: 1, value_registers: 0, ref_registers: 0 };
    let mut builder = ModuleBuilder::new("module", BytecodeVersion::V17);
    builder.add_exported_function("exported", "0v_v", body);
    builder.add_function("0v_v", body);
    let map = |name: &str| FunctionSourceMap { local_name: name.to_owned(), locations: vec![(2, 0), (10, 1)] };
    let functions = vec![map("first"), map("second"), map("third")].split_off(3 - maps);
    builder.set_debug(DebugDatabase { locations: vec![position(1), position(2)], functions });
    builder.module().clone()
}

#[test]
fn the_entry_at_or_before_the_counter_counts() {
    let module = module(2);
    let line = |pc| module.source_location(1, pc).first().and_then(|frame| frame.position).map(|position| position.line);
    assert_eq!([0, 1, 2, 9, 10, 11, u32::MAX].map(line), [None, None, Some(1), Some(1), Some(2), Some(2), Some(2)]);
    assert!(module.source_location(2, 5).is_empty());
}

#[test]
fn names() {
    let module = module(2);
    assert_eq!(module.function_name(0), Some("exported"));
    assert_eq!(module.function_name(1), Some("third"));
    assert_eq!(module.function_name(2), None);
}

#[test]
fn a_table_of_another_length_than_the_functions_is_not_believed() {
    for maps in [1, 3] {
        let module = module(maps);
        assert_eq!(module.function_name(0), Some("exported"));
        assert_eq!(module.function_name(1), None);
        assert!(module.source_location(0, 5).is_empty());
    }
}
