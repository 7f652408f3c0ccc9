//! Every corpus module must parse to what the corpus index says about it. The index was made by an independent reader.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use vmfb_bytecode::archive::Archive;
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::definition::{ModuleDef, Necessity, RodataPlacement};
use vmfb_memory::Span;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus")
}

fn index() -> Vec<Value> {
    let mut index: Value = serde_json::from_slice(&std::fs::read(corpus().join("index.json")).unwrap()).unwrap();
    let Value::Array(entries) = index["modules"].take() else { panic!("the index has no list of modules") };
    assert!(entries.len() > 2000, "{} modules", entries.len());
    entries
}

/// All modules, in the order of the index.
fn modules() -> impl Iterator<Item = (String, Archive, ModuleDef)> {
    index().into_iter().map(|entry| {
        let file = entry["file"].as_str().unwrap().to_owned();
        let archive = Archive::open(Span::from_vector(std::fs::read(corpus().join(&file)).unwrap())).unwrap();
        let module = archive.definition().unwrap_or_else(|error| panic!("{file}: {error}"));
        (file, archive, module)
    })
}

/// The part of an index entry that the module definition knows, in the index's own form.
fn described(archive: &Archive, module: &ModuleDef) -> Value {
    let necessity = |necessity| if necessity == Necessity::Required { "required" } else { "optional" };
    let dependency = |d: &vmfb_bytecode::definition::Dependency| json!([d.name, d.minimum_version, necessity(d.necessity)]);
    let import = |i: &vmfb_bytecode::definition::Import| {
        let mut entry = json!({"name": i.full_name, "cconv": i.signature.as_ref().map(|s| s.calling_convention.clone())});
        if i.necessity == Necessity::Optional {
            entry["optional"] = json!(true);
        }
        entry
    };
    let export = |e: &vmfb_bytecode::definition::Export| {
        let signature = module.functions[e.function as usize].signature.as_ref();
        json!({"name": e.name, "cconv": signature.map(|s| s.calling_convention.clone())})
    };
    let rodata = |r: &vmfb_bytecode::definition::Rodata| {
        let place = if r.placement == RodataPlacement::Embedded { "inside" } else { "outside" };
        json!({"where": place, "at": r.range.start, "bytes": r.range.len()})
    };
    json!({
        "bytes": archive.bytes().len(),
        "zip": archive.flatbuffer_range().start != 4,
        "module": module.name,
        "requirements": module.requirements.0,
        "types": module.types,
        "dependencies": module.dependencies.iter().map(dependency).collect::<Vec<_>>(),
        "imports": module.imports.iter().map(import).collect::<Vec<_>>(),
        "exports": module.exports.iter().map(export).collect::<Vec<_>>(),
        "bytecode_version": module.bytecode_version.to_string(),
        "functions": module.functions.len(),
        "bytecode_bytes": module.bytecode.len(),
        "debug_database": module.debug.is_some(),
        "rodata": module.rodata.iter().map(rodata).collect::<Vec<_>>(),
    })
}

#[test]
fn every_module_is_what_the_index_says() {
    for (entry, (file, archive, module)) in index().iter().zip(modules()) {
        for (key, found) in described(&archive, &module).as_object().unwrap() {
            assert_eq!(found, &entry[key], "{key} of {file}");
        }
    }
}

#[test]
fn mapped_and_owned_archives_are_read_alike() {
    let file = corpus().join("modules/2.9.0/inline-elf/batch_matmul_f32.vmfb");
    let owned = Archive::open(Span::from_vector(std::fs::read(&file).unwrap())).unwrap();
    let mapped = Archive::open(Span::map_file(&std::fs::File::open(&file).unwrap()).unwrap()).unwrap();
    assert_eq!(owned.definition().unwrap(), mapped.definition().unwrap());
}

#[test]
fn every_module_can_be_written_again() {
    for (file, archive, module) in modules() {
        let constants: Vec<_> = module.rodata.iter().map(|it| archive.bytes().slice(it.range.start, it.range.len()).unwrap()).collect();
        let constants: Vec<_> = constants.iter().map(|span| span.to_vec().unwrap()).collect();
        let form = if archive.flatbuffer_range().start == 4 { ArchiveForm::Plain } else { ArchiveForm::Zip };
        let bytes = write_module(&module, &constants, form).unwrap();
        let copy = Archive::open(Span::from_vector(bytes)).unwrap();
        let mut copied = copy.definition().unwrap_or_else(|error| panic!("{file}: {error}"));
        for ((constant, original), found) in constants.iter().zip(&module.rodata).zip(&mut copied.rodata) {
            assert_eq!(&copy.bytes().slice(found.range.start, found.range.len()).unwrap().to_vec().unwrap(), constant);
            found.range = original.range.clone();
        }
        assert!(copied == module, "{file} changed");
    }
}

/// The programs with debug data were compiled from files or from the standard input, and every location is a place in the text.
#[test]
fn source_locations_are_places_in_the_program() {
    let mut places = 0;
    for (file, _, module) in modules().filter(|(_, _, module)| module.debug.is_some()) {
        let program = Path::new(&file).file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(corpus().join(format!("programs/{program}.mlir"))).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for (index, function) in module.functions.iter().enumerate() {
            let frames: Vec<_> = (0..function.bytecode.len()).map(|pc| module.source_location(index as u32, pc as u32)).collect();
            for position in frames.iter().flatten().filter_map(|frame| frame.position) {
                assert!([format!("{program}.mlir"), "<stdin>".to_owned()].contains(&position.filename.to_owned()), "{file}: {position}");
                // Line 0, column 0 is the file as a whole.
                if (position.line, position.column) == (0, 0) {
                    continue;
                }
                let line = lines.get(position.line as usize - 1).unwrap_or_else(|| panic!("{file}: {position}"));
                assert!(line.len() >= position.column as usize - 1, "{file}: {position} in {line:?}");
                places += 1;
            }
        }
    }
    assert!(places > 1000, "{places} places");
}
