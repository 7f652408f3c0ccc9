//! Every corpus module must parse to what the corpus index says about it. The index was made by an independent reader.

use serde_json::{Value, json};
use std::path::Path;
use vmfb_bytecode::archive::Archive;
use vmfb_bytecode::definition::{ModuleDef, Necessity, RodataPlacement};
use vmfb_memory::Span;

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
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus");
    let index: Value = serde_json::from_slice(&std::fs::read(corpus.join("index.json")).unwrap()).unwrap();
    let entries = index["modules"].as_array().unwrap();
    assert!(entries.len() > 2000, "{} modules", entries.len());
    for entry in entries {
        let file = entry["file"].as_str().unwrap();
        let archive = Archive::open(Span::from_vector(std::fs::read(corpus.join(file)).unwrap())).unwrap();
        let module = archive.definition().unwrap_or_else(|error| panic!("{file}: {error}"));
        for (key, found) in described(&archive, &module).as_object().unwrap() {
            assert_eq!(found, &entry[key], "{key} of {file}");
        }
    }
}

#[test]
fn mapped_and_owned_archives_are_read_alike() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/modules/2.9.0/inline-elf/batch_matmul_f32.vmfb");
    let owned = Archive::open(Span::from_vector(std::fs::read(&file).unwrap())).unwrap();
    let mapped = Archive::open(Span::map_file(&std::fs::File::open(&file).unwrap()).unwrap()).unwrap();
    assert_eq!(owned.definition().unwrap(), mapped.definition().unwrap());
}
