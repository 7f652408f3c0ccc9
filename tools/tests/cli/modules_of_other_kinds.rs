//! Files that are given as modules and are none: every tool says what they are and what to do.

use crate::support::{Folder, Outcome, run, vm_bench, vm_dump, vm_run};

fn vm_check(arguments: &[&str]) -> Outcome {
    run(env!("CARGO_BIN_EXE_vm-check"), arguments, &[])
}

/// A file of each kind, and words that every tool has to say of it.
fn kinds(folder: &Folder) -> Vec<(String, [&'static str; 2])> {
    let tensors = std::fs::read(crate::support::root().join("tools/tests/cli/modules/tensors.safetensors")).unwrap();
    vec![
        (folder.write("x.mlir", "func.func @f() { return }\n"), ["is MLIR text", "iree-compile"]),
        (folder.write("x.onnx", b"\x08\x08\x12\x07pytorch"), ["is an ONNX model", "iree-import-onnx"]),
        (folder.write("p.irpa", b"IRPA\0\0\0\0\0\0\0\0"), ["holds weights (.irpa)", "--parameters=[scope=]"]),
        (folder.write("p.gguf", b"GGUF\x03\0\0\0\0\0\0\0"), ["holds weights (.gguf)", "--parameters=[scope=]"]),
        (folder.write("p.safetensors", tensors), ["holds weights (.safetensors)", "--parameters=[scope=]"]),
        (folder.write("x.so", b"\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"), ["is an ELF file", "iree-compile"]),
        (folder.write("x.zip", b"PK\x03\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), ["is a ZIP archive", "module.fb"]),
        (folder.write("x.npy", b"\x93NUMPY\x01\0\x46\0{'descr'"), ["is an array file of numpy", "--input=@"]),
        (folder.path(""), ["is a folder", "model.vmfb"]),
    ]
}

#[test]
fn every_tool_says_what_the_file_is() {
    let folder = Folder::new();
    for (path, words) in kinds(&folder) {
        for outcome in [vm_run(&[&path]), vm_dump(&[&path]), vm_bench(&[&path]), vm_check(&[&path])] {
            assert_eq!(outcome.code, Some(1), "{path}: {outcome}");
            assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{path}: {words:?}\n{outcome}");
        }
    }
}

#[test]
fn the_way_on_is_a_command() {
    let folder = Folder::new();
    let shown = |path: &str| folder.show(&vm_run(&[path]));
    insta::assert_snapshot!("mlir_as_module", shown(&folder.write("x.mlir", "module {}\n")));
    insta::assert_snapshot!("onnx_as_module", shown(&folder.write("x.onnx", b"\x08\x08\x12\x07pytorch")));
    insta::assert_snapshot!("weights_as_module", shown(&folder.write("p.irpa", b"IRPA\0\0\0\0")));
    insta::assert_snapshot!("folder_as_module", shown(&folder.path("")));
    let piped = run(env!("CARGO_BIN_EXE_vm-run"), &["-"], b"module {}\n");
    insta::assert_snapshot!("mlir_from_standard_input", piped);
}
