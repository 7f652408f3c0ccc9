//! `vm-dump` on modules of every age.

use crate::programs;
use crate::support::{Folder, root, vm_dump};
use serde_json::Value;

#[test]
fn the_tables_are_those_of_the_file() {
    insta::assert_snapshot!("dump_metadata", vm_dump(&["samples/hello/mul.vmfb", "--output=metadata"]));
    insta::assert_snapshot!("dump_function", vm_dump(&["samples/hello/add.vmfb", "--function=add", "--bytecode-offsets"]));
}

#[test]
fn metadata_agrees_with_the_index_of_the_corpus() {
    let text = std::fs::read_to_string(root().join("tests/corpus/index.json")).unwrap();
    let index: Value = serde_json::from_str(&text).unwrap();
    let modules = index["modules"].as_array().unwrap();
    // One module per release and mode.
    let mut seen = std::collections::HashSet::new();
    for entry in modules.iter().filter(|entry| seen.insert(format!("{}/{}", entry["version"], entry["mode"]))) {
        let path = format!("tests/corpus/{}", entry["file"].as_str().unwrap());
        let dump = vm_dump(&[&path]).success();
        let count = |key: &str| entry[key].as_array().unwrap().len();
        for line in [
            format!("imports: {}", count("imports")),
            format!("exports: {}", count("exports")),
            format!("types: {}", count("types")),
            format!("constants: {}", count("rodata")),
            format!("functions: {}", entry["functions"]),
        ] {
            assert!(dump.lines().any(|found| found == line), "{path}: {line}\n{dump}");
        }
        assert!(dump.contains(&format!("bytecode      {},", entry["bytecode_version"].as_str().unwrap())), "{path}\n{dump}");
        for import in entry["imports"].as_array().unwrap() {
            let line = format!("{} {}", import["name"].as_str().unwrap(), import["cconv"].as_str().unwrap());
            assert!(dump.contains(&line), "{path}: {line}\n{dump}");
        }
        assert_eq!(dump.matches("\nvm.func ").count() as u64, entry["functions"].as_u64().unwrap(), "{path}\n{dump}");
    }
}

#[test]
fn constants_can_be_taken_out() {
    let folder = Folder::new();
    let constants = folder.path("constants");
    vm_dump(&["samples/hello/mul.vmfb", "--output=metadata", &format!("--extract-rodata={constants}")]).success();
    assert_eq!(folder.read("constants/rodata_1.txt"), b"embedded-elf-x86_64");
    let image = folder.read("constants/rodata_0.elf");
    let file = std::fs::read(root().join("samples/hello/mul.vmfb")).unwrap();
    assert!(image.starts_with(b"\x7fELF") && file.windows(image.len()).any(|window| window == image));
}

#[test]
fn what_cannot_be_shown_is_named() {
    insta::assert_snapshot!("dump_missing_function", vm_dump(&["samples/hello/add.vmfb", "--function=sub"]));
    insta::assert_snapshot!("dump_not_a_module", vm_dump(&["README.md"]));
    let folder = Folder::new();
    let evil = folder.write("evil.vmfb", programs::hostile_names());
    let outcome = vm_dump(&[&evil]);
    assert!(!outcome.stdout.chars().any(|character| character.is_control() && character != '\n'), "{outcome}");
}
