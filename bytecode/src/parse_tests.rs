//! Tests of the load-time checks: a module that is good but for one thing, and the status that it gets.

use super::*;
use crate::builder::{ArchiveForm, FunctionBody, ModuleBuilder, write_module};
use crate::definition::{DebugDatabase, FunctionSourceMap, Location};
use vmfb_memory::Span;

const VERSIONS: [BytecodeVersion; 5] =
    [BytecodeVersion::V13, BytecodeVersion::V14, BytecodeVersion::V15, BytecodeVersion::V16, BytecodeVersion::V17];

/// A module with one of everything.
fn good(version: BytecodeVersion) -> ModuleDef {
    let body = FunctionBody { bytecode: &[0x79, 0x5A, 0, 0], block_count: 1, value_registers: 3, ref_registers: 2 };
    let mut builder = ModuleBuilder::new("module", version);
    builder.add_type("i32");
    builder.add_type("!vm.buffer");
    builder.add_dependency("hal", 3, Necessity::Required);
    builder.add_import("hal.buffer.load", "0r_i", Necessity::Optional);
    let function = builder.add_exported_function("main", "0i_i", body);
    builder.add_function_attribute(function, "iree.abi.declaration", "sync func @main()");
    let module = builder.module_mut();
    module.global_bytes = 16;
    module.global_refs = 2;
    module.attributes.push(Attribute { key: "key".into(), value: "value".into() });
    module.debug = Some(DebugDatabase {
        locations: vec![Location::None, Location::FileLineColumn { filename: "a.mlir".into(), line: 1, column: 2 }],
        functions: vec![FunctionSourceMap { local_name: "main".into(), locations: vec![(0, 1)] }],
    });
    module.clone()
}

fn write(module: &ModuleDef) -> Vec<u8> {
    write_module(module, &vec![[0; 4]; module.rodata.len()], ArchiveForm::Plain).unwrap()
}

fn parse(bytes: &[u8]) -> Result<ModuleDef> {
    Archive::open(Span::from_vector(bytes.to_vec()))?.definition()
}

/// Breaks the good module of each version; it must be refused with this status and a message with this text.
fn refused_in(versions: &[BytecodeVersion], status: Status, text: &str, spoil: impl Fn(&mut ModuleDef)) {
    for &version in versions {
        let mut module = good(version);
        spoil(&mut module);
        refused_bytes(&write(&module), status, text);
    }
}

fn refused(text: &str, spoil: impl Fn(&mut ModuleDef)) {
    refused_in(&VERSIONS, Status::InvalidArgument, text, spoil);
}

fn refused_bytes(bytes: &[u8], status: Status, text: &str) {
    let error = parse(bytes).expect_err(text);
    assert_eq!(error.status, status, "{error}");
    assert!(error.message.contains(text), "{text:?} is not in {error}");
}

/// Replaces the only occurrence of a byte string.
fn replaced(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let places: Vec<_> = (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    let [place] = places[..] else { panic!("{from:?} is at {places:?}") };
    bytes[place..place + to.len()].copy_from_slice(to);
    bytes
}

#[test]
fn the_good_module_is_good() {
    for version in VERSIONS {
        assert_eq!(parse(&write(&good(version))).unwrap(), good(version));
    }
}

#[test]
fn unknown_versions() {
    for major in [0_u32, 1, 12, 18, 0xFFFF] {
        refused(&format!("bytecode version {major}.0"), |module| module.bytecode_version = BytecodeVersion(major << 16));
    }
    refused("bytecode version 15.1", |module| module.bytecode_version = BytecodeVersion(15 << 16 | 1));
    refused("understood are 13.0 (compilers up to 2023-02-28)", |module| module.bytecode_version = BytecodeVersion(18 << 16));
    refused("17.0 (3.11.0 to 3.13.0)", |module| module.bytecode_version = BytecodeVersion(18 << 16));
}

#[test]
fn version_and_layout_must_fit() {
    let version = |major: u32| u32::to_le_bytes(major << 16);
    let old = replaced(write(&good(BytecodeVersion::V13)), &version(13), &version(15));
    refused_bytes(&old, Status::InvalidArgument, "15.0 in a root table of the old layout");
    let new = replaced(write(&good(BytecodeVersion::V15)), &version(15), &version(13));
    refused_bytes(&new, Status::InvalidArgument, "13.0 in a root table of the new layout");
}

#[test]
fn structure_comes_first() {
    let bytes = write(&good(BytecodeVersion::V17));
    refused_bytes(&replaced(bytes.clone(), b"IREE", b"EERI"), Status::InvalidArgument, "identifier is \"EERI\"");
    refused_bytes(&replaced(bytes.clone(), b"\x06\0\0\0module\0", b"\xFF\xFF\xFF\xFF"), Status::InvalidArgument, "name");
    refused_bytes(&replaced(bytes.clone(), b"module\0", b"modulex"), Status::InvalidArgument, "NUL");
    refused_bytes(&replaced(bytes, b"module\0", b"modul\xFF\0"), Status::InvalidArgument, "not UTF-8");
}

#[test]
fn requirements() {
    let newer = &VERSIONS[1..];
    refused_in(newer, Status::InvalidArgument, "features 0x10", |module| module.requirements = Requirements(16));
    refused_in(newer, Status::InvalidArgument, "features 0x80000001", |module| module.requirements = Requirements(1 | 1 << 31));
    for version in newer {
        for bits in 0..16 {
            let mut module = good(*version);
            module.requirements = Requirements(bits);
            assert_eq!(parse(&write(&module)).unwrap().requirements.0, bits);
        }
    }
}

#[test]
fn requirements_of_a_function_are_hints() {
    let mut module = good(BytecodeVersion::V17);
    module.functions[0].requirements = Requirements(0xFF);
    assert_eq!(parse(&write(&module)).unwrap().functions[0].requirements.0, 0xFF);
}

#[test]
fn names_that_must_be_there() {
    refused("name is absent or empty", |module| module.name.clear());
    refused("types[1]: full_name is absent or empty", |module| module.types[1].clear());
    refused("dependencies[0]: name is absent or empty", |module| module.dependencies[0].name.clear());
    refused("imported_functions[0]: full_name is absent or empty", |module| module.imports[0].full_name.clear());
    refused("exported_functions[0]: local_name is absent or empty", |module| module.exports[0].name.clear());
}

#[test]
fn elements_that_must_be_there() {
    // An offset of 0 in the first element of each vector of the root table.
    for version in VERSIONS {
        let old = version == BytecodeVersion::V13;
        let layout = if old { &schema::LAYOUT_A } else { &schema::LAYOUT_B };
        let vectors = [layout.attributes, layout.types, layout.dependencies, layout.imports, layout.exports];
        for slot in vectors.into_iter().chain(layout.signatures) {
            let mut bytes = write(&good(version));
            let buffer = Buffer::new(&bytes[4..]);
            let place = 4 + buffer.root(b"IREE", "root").unwrap().offsets(slot).unwrap().unwrap().position();
            bytes[place..place + 4].fill(0);
            refused_bytes(&bytes, Status::InvalidArgument, &format!("{}[0]", slot.1));
        }
    }
}

#[test]
fn types() {
    refused("reference type has an empty name", |module| module.types[1] = "!".into());
    refused_in(&VERSIONS, Status::NotFound, "types[0]: type \"i128\"", |module| module.types[0] = "i128".into());
    let mut module = good(BytecodeVersion::V17);
    module.types = vec!["!nobody.knows".into(), "!vm.list<what?>".into()];
    assert_eq!(parse(&write(&module)).unwrap().types, module.types);
}

#[test]
fn external_constants() {
    let mut module = good(BytecodeVersion::V17);
    module.rodata.push(Rodata { range: 0..0, placement: RodataPlacement::External });
    let length = 0x0123_4567_u64;
    let bytes = write_module(&module, &[vec![7; 64]], ArchiveForm::Plain).unwrap();
    let place = (0..bytes.len()).find(|at| bytes[*at..].starts_with(&64_u64.to_le_bytes()) && bytes[at - 8..*at] == [0; 8]).unwrap();
    assert_eq!(parse(&bytes).unwrap().rodata[0].range, bytes.len() - 64..bytes.len());
    let with = |offset: u64, length: u64| {
        let mut bytes = bytes.clone();
        bytes[place - 8..place].copy_from_slice(&offset.to_le_bytes());
        bytes[place..place + 8].copy_from_slice(&length.to_le_bytes());
        bytes
    };
    for (offset, length) in [(0, 64), (64, 0), (63, 1)] {
        assert_eq!(parse(&with(offset, length)).unwrap().rodata[0].range.len() as u64, length);
    }
    for (offset, length) in [(0, 65), (65, 0), (64, 1), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX), (1 << 63, 1 << 63), (0, length)]
    {
        refused_bytes(&with(offset, length), Status::InvalidArgument, "does not lie in the archive");
    }
}

#[test]
fn external_constants_without_an_external_area() {
    // The archive ends with the FlatBuffer, before the next multiple of 64: an empty constant is out of bounds too.
    let mut module = good(BytecodeVersion::V15);
    module.rodata.push(Rodata { range: 0..0, placement: RodataPlacement::External });
    let mut bytes = write_module(&module, &[vec![]], ArchiveForm::Plain).unwrap();
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    assert_ne!((size + 4) % 64, 0);
    parse(&bytes).unwrap();
    bytes.truncate(size + 4);
    refused_bytes(&bytes, Status::InvalidArgument, "does not lie in the archive");
    module.rodata.clear();
    let mut bytes = write(&module);
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    bytes.truncate(size + 4);
    parse(&bytes).unwrap();
}

#[test]
fn signatures_and_functions_are_parallel() {
    refused_in(&VERSIONS[1..], Status::InvalidArgument, "1 functions have 0 signatures", |module| module.functions[0].signature = None);
    let mut module = good(BytecodeVersion::V13);
    module.functions[0].signature = None;
    assert_eq!(parse(&write(&module)).unwrap().functions[0].signature, None);
}

#[test]
fn export_ordinals() {
    refused("\"main\" is function 1 of 1", |module| module.exports[0].function = 1);
    refused("\"main\" is function -1 of 1", |module| module.exports[0].function = u32::MAX);
}

#[test]
fn old_exports_agree_on_the_signature_of_a_function() {
    let mut module = good(BytecodeVersion::V13);
    module.exports.push(Export { name: "alias".into(), function: 0 });
    assert_eq!(parse(&write(&module)).unwrap(), module);
    module.functions.push(Function { signature: Some(Signature::default()), ..module.functions[0].clone() });
    module.exports[1].function = 1;
    let ordinal = {
        let bytes = write(&module);
        let buffer = Buffer::new(&bytes[4..]);
        let root = buffer.root(b"IREE", "root").unwrap();
        let table = root.offsets(schema::LAYOUT_A.exports).unwrap().unwrap().table(1, "export").unwrap();
        assert_eq!(table.i32(schema::export::ORDINAL_A).unwrap(), 1);
        // The ordinal is the third field of four bytes behind the vtable distance.
        let at = (0..bytes.len()).rfind(|at| bytes[*at..].starts_with(&1_u32.to_le_bytes()) && bytes[at - 12..*at - 8] == [10, 0, 0, 0]);
        (bytes, at)
    };
    let (mut bytes, Some(at)) = ordinal else { panic!("the ordinal was not found") };
    bytes[at..at + 4].fill(0);
    refused_bytes(&bytes, Status::InvalidArgument, "an export before it said \"0i_i\"");
}

#[test]
fn function_descriptors() {
    refused("0 bytes of bytecode", |module| module.functions[0].bytecode = 0..0);
    refused("at offset -8", |module| module.functions[0].bytecode = usize::MAX - 7..usize::MAX);
    refused("-1 bytes of bytecode", |module| module.functions[0].bytecode = std::ops::Range { start: 1, end: 0 });
    refused("not in the 8 bytes", |module| module.functions[0].bytecode = 0..9);
    refused("not in the 8 bytes", |module| module.functions[0].bytecode = 8..12);
    refused("2147483647 bytes of bytecode at offset 2147483647", |module| module.functions[0].bytecode = 0x7FFF_FFFF..0xFFFF_FFFE);
    refused("32768 value", |module| module.functions[0].value_registers = 0x8000);
    refused("16384 ref", |module| module.functions[0].ref_registers = 0x4000);
    refused_in(&VERSIONS[1..], Status::InvalidArgument, "without blocks", |module| module.functions[0].block_count = Some(0));
    for version in VERSIONS {
        let mut module = good(version);
        module.functions[0].value_registers = 0x7FFF;
        module.functions[0].ref_registers = 0x3FFF;
        assert_eq!(parse(&write(&module)).unwrap(), module);
    }
}

#[test]
fn module_state() {
    refused("global_bytes_capacity is negative: -1", |module| module.global_bytes = u32::MAX);
    refused("global_ref_count is negative: -2147483648", |module| module.global_refs = 1 << 31);
    let limit = |text, spoil: fn(&mut ModuleDef)| refused_in(&VERSIONS, Status::ResourceExhausted, text, spoil);
    limit("global_bytes_capacity is 1073741825", |module| module.global_bytes = MAXIMUM_GLOBAL_BYTES + 1);
    limit("global_ref_count is 1048577", |module| module.global_refs = MAXIMUM_GLOBAL_REFS + 1);
}

// There must be so many, which would take Miri hours.
#[cfg_attr(miri, ignore)]
#[test]
fn more_functions_than_16_bits_count() {
    let mut module = good(BytecodeVersion::V17);
    module.debug = None;
    module.functions = vec![module.functions[0].clone(); 70_000];
    module.exports[0].function = 69_999;
    assert_eq!(parse(&write(&module)).unwrap(), module);
}

#[test]
fn debug_tables_of_different_lengths() {
    let mut module = good(BytecodeVersion::V17);
    let debug = module.debug.as_mut().unwrap();
    debug.locations = vec![Location::None; 0x1234];
    let mut bytes = write(&module);
    let place = (0..bytes.len()).find(|at| bytes[*at..].starts_with(&0x1234_u32.to_le_bytes())).unwrap();
    bytes[place..place + 4].copy_from_slice(&0x1233_u32.to_le_bytes());
    refused_bytes(&bytes, Status::InvalidArgument, "4659 tags and 4660 values");
}

#[test]
fn texts_that_only_inform_need_not_be_utf8() {
    let bytes = replaced(write(&good(BytecodeVersion::V17)), b"a.mlir", b"\xFF.mlir");
    let debug = parse(&bytes).unwrap().debug.unwrap();
    assert_eq!(debug.frames(1)[0].to_string(), "\u{FFFD}.mlir:1:2");
}

/// So many tables lead to the same place; fewer under Miri, which is some thousand times slower.
const MANY: usize = if cfg!(miri) { 2_000 } else { 20_000 };

#[test]
fn many_references_to_one_large_part_are_refused() {
    // A table of imports whose offsets all lead to the same one, with a name that is as long as the table.
    let mut module = good(BytecodeVersion::V17);
    let count = MANY;
    module.imports[0].full_name = format!("a.{}", "x".repeat(count));
    module.imports.extend(vec![Import { full_name: "b".into(), signature: None, necessity: Necessity::Required }; count]);
    let mut bytes = write(&module);
    let place = 4 + {
        let buffer = Buffer::new(&bytes[4..]);
        buffer.root(b"IREE", "root").unwrap().offsets(schema::LAYOUT_B.imports).unwrap().unwrap().position()
    };
    let first = u32::from_le_bytes(bytes[place..place + 4].try_into().unwrap());
    for index in 1..count {
        let at = place + 4 * index;
        bytes[at..at + 4].copy_from_slice(&(first - 4 * index as u32).to_le_bytes());
    }
    refused_bytes(&bytes, Status::ResourceExhausted, "refers to the same parts so often");
}

/// The same with the signatures of functions: one long calling convention that all of them have.
#[test]
fn many_functions_with_one_long_signature_are_refused() {
    let mut module = good(BytecodeVersion::V17);
    let count = MANY;
    let (first, mut function) = (module.functions[0].clone(), module.functions[0].clone());
    function.signature = Some(Signature { calling_convention: "0v_v".into(), attributes: Vec::new() });
    module.functions = vec![function; count];
    module.functions[0] = first;
    module.functions[0].signature = Some(Signature { calling_convention: format!("0{}_v", "i".repeat(count)), attributes: Vec::new() });
    let mut bytes = write(&module);
    let place = 4 + {
        let buffer = Buffer::new(&bytes[4..]);
        buffer.root(b"IREE", "root").unwrap().offsets(schema::LAYOUT_B.signatures.unwrap()).unwrap().unwrap().position()
    };
    let first = u32::from_le_bytes(bytes[place..place + 4].try_into().unwrap());
    for index in 1..count {
        let at = place + 4 * index;
        bytes[at..at + 4].copy_from_slice(&(first - 4 * index as u32).to_le_bytes());
    }
    refused_bytes(&bytes, Status::ResourceExhausted, "refers to the same parts so often");
}
