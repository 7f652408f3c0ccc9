//! Round trips of arbitrary modules, and broken archives.

use super::*;
use crate::archive::Archive;
use crate::definition::{FunctionSourceMap, Location};
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Read;
use vmfb_memory::Span;

#[derive(Clone, Debug)]
struct Sample {
    module: ModuleDef,
    rodata: Vec<Vec<u8>>,
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_.]{1,12}", "\\PC{1,6}"]
}

fn attributes() -> impl Strategy<Value = Vec<Attribute>> {
    vec(("\\PC{0,8}", "\\PC{0,8}").prop_map(|(key, value)| Attribute { key, value }), 0..3)
}

fn any_signature() -> impl Strategy<Value = Signature> {
    ("[0-9a-zA-Z_]{0,8}", attributes()).prop_map(|(calling_convention, attributes)| Signature { calling_convention, attributes })
}

fn necessity() -> impl Strategy<Value = Necessity> {
    prop_oneof![Just(Necessity::Required), Just(Necessity::Optional)]
}

fn dependencies() -> impl Strategy<Value = Vec<Dependency>> {
    let fields = (name(), any::<u32>(), necessity());
    vec(fields.prop_map(|(name, minimum_version, necessity)| Dependency { name, minimum_version, necessity }), 0..3)
}

fn imports() -> impl Strategy<Value = Vec<Import>> {
    let fields = (name(), proptest::option::of(any_signature()), necessity());
    vec(fields.prop_map(|(full_name, signature, necessity)| Import { full_name, signature, necessity }), 0..4)
}

fn types() -> impl Strategy<Value = Vec<String>> {
    let known = prop_oneof![Just("i8"), Just("i64"), Just("f32"), Just("!vm.buffer"), Just("!vm.list<?>"), Just("!hal.fence")];
    vec(prop_oneof![known.prop_map(str::to_owned), "![a-z]{1,5}\\.[a-z<>]{1,5}"], 0..5)
}

fn location() -> impl Strategy<Value = Location> {
    prop_oneof![
        Just(Location::None),
        any::<(i32, i32)>().prop_map(|(callee, caller)| Location::CallSite { callee, caller }),
        ("[a-c]{0,2}", any::<(i32, i32)>()).prop_map(|(file, (line, column))| Location::FileLineColumn {
            filename: file.into(),
            line,
            column
        }),
        ("\\PC{0,4}", vec(any::<i32>(), 0..4)).prop_map(|(metadata, locations)| Location::Fused { metadata, locations }),
        ("\\PC{0,4}", any::<i32>()).prop_map(|(name, child)| Location::Name { name, child }),
    ]
}

fn database() -> impl Strategy<Value = DebugDatabase> {
    let map = ("\\PC{0,4}", vec(any::<(i32, i32)>(), 0..4));
    let map = map.prop_map(|(local_name, locations)| FunctionSourceMap { local_name, locations });
    (vec(location(), 0..6), vec(map, 0..3)).prop_map(|(locations, functions)| DebugDatabase { locations, functions })
}

prop_compose! {
    fn functions()(
        bodies in vec((vec(any::<u8>(), 1..40), any_signature(), 1..=u16::MAX, 0..0x8000_u16, 0..0x4000_u16, any::<u32>()), 0..4),
    ) -> Vec<(Vec<u8>, Function)> {
        let function = |(body, signature, blocks, value_registers, ref_registers, requirements): (Vec<u8>, _, _, _, _, _)| {
            let requirements = Requirements(requirements);
            let function = Function {
                bytecode: 0..0, requirements, block_count: Some(blocks), value_registers, ref_registers, signature: Some(signature),
            };
            (body, function)
        };
        bodies.into_iter().map(function).collect()
    }
}

prop_compose! {
    fn sample()(
        (name, version, major, requirements) in (name(), any::<u32>(), 13..=17_u32, 0..16_u32),
        (attributes, types, dependencies, imports) in (attributes(), types(), dependencies(), imports()),
        functions in functions(),
        exports in vec((name(), any::<prop::sample::Index>()), 0..4),
        constants in vec((vec(any::<u8>(), 0..200), any::<bool>()), 0..4),
        (global_bytes, global_refs) in (0..=1_u32 << 30, 0..=1_u32 << 20),
        debug in proptest::option::of(database()),
    ) -> Sample {
        let mut module = ModuleBuilder::new(&name, BytecodeVersion(major << 16)).module;
        let count = functions.len();
        for (body, mut function) in functions {
            function.bytecode = module.bytecode.len()..module.bytecode.len() + body.len();
            module.bytecode.extend(body);
            module.functions.push(function);
        }
        if count > 0 {
            module.exports = exports.into_iter().map(|(name, at)| Export { name, function: at.index(count) as u32 }).collect();
        }
        let place = |inside| if inside { RodataPlacement::Embedded } else { RodataPlacement::External };
        module.rodata = constants.iter().map(|(_, inside)| Rodata { range: 0..0, placement: place(*inside) }).collect();
        let rodata = constants.into_iter().map(|(bytes, _)| bytes).collect();
        let requirements = Requirements(requirements);
        let mut module = ModuleDef {
            version, requirements, attributes, types, dependencies, imports, global_bytes, global_refs, debug, ..module
        };
        if major == 13 {
            forget_what_13_cannot_say(&mut module);
        }
        Sample { module, rodata }
    }
}

fn forget_what_13_cannot_say(module: &mut ModuleDef) {
    module.requirements = Requirements::NONE;
    for (index, function) in module.functions.iter_mut().enumerate() {
        function.requirements = Requirements::NONE;
        function.block_count = None;
        if !module.exports.iter().any(|export| export.function as usize == index) {
            function.signature = None;
        }
    }
}

fn form() -> impl Strategy<Value = ArchiveForm> {
    prop_oneof![Just(ArchiveForm::Plain), Just(ArchiveForm::Zip)]
}

fn open(bytes: &[u8]) -> Result<(Archive, ModuleDef)> {
    let archive = Archive::open(Span::from_vector(bytes.to_vec()))?;
    let module = archive.definition()?;
    Ok((archive, module))
}

/// A small module with everything in it, in both ages.
fn rich(version: BytecodeVersion) -> ModuleBuilder {
    let body = FunctionBody { bytecode: &[0x79, 0x5A, 0, 0], block_count: 1, value_registers: 3, ref_registers: 2 };
    let mut builder = ModuleBuilder::new("module", version);
    builder.add_type("!vm.buffer");
    builder.add_dependency("hal", 3, Necessity::Optional);
    builder.add_import("hal.buffer.load", "0r_i", Necessity::Optional);
    builder.add_exported_function("main", "0i_i", body);
    builder.add_function_attribute(0, "key", "value");
    builder.add_rodata(*b"inside", RodataPlacement::Embedded);
    builder.add_rodata(*b"outside", RodataPlacement::External);
    builder.module_mut().global_refs = 2;
    builder.set_debug(DebugDatabase {
        locations: vec![
            Location::FileLineColumn { filename: "a.mlir".into(), line: 1, column: 2 },
            Location::Fused { metadata: "m".into(), locations: vec![0] },
            Location::Name { name: "n".into(), child: 1 },
            Location::CallSite { callee: 0, caller: 2 },
        ],
        functions: vec![FunctionSourceMap { local_name: "main".into(), locations: vec![(0, 3)] }],
    });
    builder
}

proptest! {
    #[test]
    fn what_is_written_is_read(sample in sample(), form in form()) {
        let bytes = write_module(&sample.module, &sample.rodata, form).unwrap();
        let (archive, mut module) = open(&bytes).unwrap();
        for (constant, found) in sample.rodata.iter().zip(&mut module.rodata) {
            let span = archive.bytes().slice(found.range.start, found.range.len()).unwrap();
            prop_assert_eq!(&span.to_vec().unwrap(), constant);
            let alignment = if constant.len() < 64 { 16 } else { 64 };
            prop_assert_eq!(found.range.start % alignment, 0);
            found.range = 0..0;
        }
        prop_assert_eq!(module, sample.module);
    }

    #[test]
    fn zip_archives_are_zip_archives(sample in sample()) {
        let bytes = write_module(&sample.module, &sample.rodata, ArchiveForm::Zip).unwrap();
        let mut zip = zip::ZipArchive::new(std::io::Cursor::new(&bytes)).unwrap();
        let external = sample.module.rodata.iter().zip(&sample.rodata).filter(|(it, _)| it.placement == RodataPlacement::External);
        let external: Vec<_> = external.map(|(_, bytes)| bytes.clone()).collect();
        prop_assert_eq!(zip.len(), 1 + external.len());
        for index in 0..zip.len() {
            let mut member = zip.by_index(index).unwrap();
            let mut content = Vec::new();
            // Reading to the end checks the CRC.
            member.read_to_end(&mut content).unwrap();
            match index.checked_sub(1) {
                None => {
                    prop_assert_eq!(member.name().unwrap(), "module.fb");
                    prop_assert_eq!(member.data_start(), Some(64));
                    prop_assert_eq!(content.len() % 64, 0);
                    prop_assert_eq!(content.len(), 4 + u32::from_le_bytes(content[..4].try_into().unwrap()) as usize);
                }
                Some(index) => prop_assert_eq!(&content, &external[index]),
            }
        }
    }

    #[test]
    fn changed_bytes_never_panic(
        sample in sample(),
        form in form(),
        changes in vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0), Just(0xFF), Just(0x7F), Just(0x80)]), 1..6),
    ) {
        let mut bytes = write_module(&sample.module, &sample.rodata, form).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        check_what_was_accepted(&bytes);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        check_what_was_accepted(&bytes);
    }
}

/// If the bytes are accepted, all that the definition promises must hold.
fn check_what_was_accepted(bytes: &[u8]) {
    let Ok((archive, module)) = open(bytes) else { return };
    assert!(!module.name.is_empty());
    assert!(module.rodata.iter().all(|rodata| archive.bytes().slice(rodata.range.start, rodata.range.len()).is_ok()));
    assert!(module.exports.iter().all(|export| (export.function as usize) < module.functions.len()));
    for (index, function) in module.functions.iter().enumerate() {
        assert_eq!(module.body(index as u32).len(), function.bytecode.len());
        assert!(!module.body(index as u32).is_empty());
        module.source_location(index as u32, 1);
        module.function_name(index as u32);
    }
}

/// Steps through the bytes of a module. Miri, some thousand times slower, looks at some of them.
const STEP: usize = if cfg!(miri) { 97 } else { 1 };

#[test]
fn every_byte_changed() {
    for version in [BytecodeVersion::V13, BytecodeVersion::V17] {
        let bytes = rich(version).write(ArchiveForm::Zip).unwrap();
        for at in (0..bytes.len()).step_by(STEP) {
            for value in [0, 1, 0x7F, 0x80, 0xFF, bytes[at] ^ 0x10] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                check_what_was_accepted(&bytes);
            }
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    for version in [BytecodeVersion::V13, BytecodeVersion::V17] {
        for form in [ArchiveForm::Plain, ArchiveForm::Zip] {
            let bytes = rich(version).write(form).unwrap();
            // The module ends with its last external constant; in a ZIP archive the directory follows.
            let end = open(&bytes).unwrap().1.rodata[1].range.end;
            for length in (0..end).step_by(STEP) {
                let error = open(&bytes[..length]).err().unwrap_or_else(|| panic!("{length} of {end} bytes are accepted"));
                assert_eq!(error.status, crate::Status::InvalidArgument);
            }
            open(&bytes[..end]).unwrap();
        }
    }
}

#[test]
fn constants_must_be_given() {
    let builder = rich(BytecodeVersion::V17);
    let error = write_module(builder.module(), &[b"one"], ArchiveForm::Plain).unwrap_err();
    assert!(error.message.contains("2 constants, bytes were given for 1"), "{error}");
}

#[test]
fn equal_strings_are_written_once() {
    let mut builder = ModuleBuilder::new("module", BytecodeVersion::V17);
    for _ in 0..10 {
        builder.add_import("twelve.chars", "0v_v", Necessity::Required);
    }
    let bytes = builder.write(ArchiveForm::Plain).unwrap();
    assert_eq!(bytes.windows(12).filter(|window| window == b"twelve.chars").count(), 1);
}

#[test]
fn types_are_added_once() {
    let mut builder = ModuleBuilder::new("module", BytecodeVersion::V17);
    assert_eq!([builder.add_type("i32"), builder.add_type("i64"), builder.add_type("i32")], [0, 1, 0]);
}
