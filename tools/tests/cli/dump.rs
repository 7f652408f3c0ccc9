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
fn the_module_definition_is_json_as_in_the_official_tool() {
    let module = "samples/hello/mul.vmfb";
    let json = vm_dump(&[module, "--output=flatbuffer-json"]).success();
    let read: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["name"], "module");
    assert_eq!(read["exported_functions"][0]["local_name"], "mul");
    assert_eq!(read["function_signatures"][0]["calling_convention"], "0rr_r");
    assert_eq!(read["rodata_segments"][1]["embedded_data"][0], 101);
    assert_eq!(read["bytecode_version"], 17 << 16);
    let pretty = vm_dump(&[module, "--output=flatbuffer-json", "--pretty"]).success();
    assert!(pretty.lines().count() > 100 && serde_json::from_str::<Value>(&pretty).unwrap() == read);
    for module in [module, "samples/digits/digits_async.vmfb", "tools/tests/cli/modules/onnx.vmfb"] {
        let official = |form: &str| {
            let output = std::process::Command::new("iree-dump-module").args([form, module]).current_dir(root()).output();
            output.ok().filter(|output| output.status.success()).map(|output| output.stdout)
        };
        match official("--output=flatbuffer-json") {
            Some(official) => {
                let own = vm_dump(&[module, "--output=flatbuffer-json"]).success();
                assert_eq!(serde_json::from_slice::<Value>(&official).unwrap(), serde_json::from_str::<Value>(&own).unwrap(), "{module}");
            }
            None => eprintln!("iree-dump-module is not installed: not compared"),
        }
    }
}

#[test]
fn the_module_definition_is_taken_out_as_it_is() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_vm-dump"))
        .args(["--output=flatbuffer-binary", "samples/hello/mul.vmfb"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success() && output.stdout.get(4..8) == Some(b"IREE"));
    let whole = std::fs::read(root().join("samples/hello/mul.vmfb")).unwrap();
    assert!(whole.windows(output.stdout.len()).any(|window| window == output.stdout));
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
