//! Modules that do not start, or not with what they need: the cause is named, and the way out where there is one.
//! `tests/errors/build.sh` compiles them.

use crate::programs;
use crate::support::{Folder, Outcome, root, run, vm_run};

const PARAMETERS: &str = "tools/tests/errors/parameters.vmfb";
const ONES: &str = "--input=4xf32=1";

/// Four parameters to a row: `w` and `b` of four floats, in the order of their bytes.
fn tensors(header: &str) -> Vec<u8> {
    let floats = [1f32, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0];
    let data: Vec<u8> = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

#[test]
fn parameters_that_are_not_there() {
    insta::assert_snapshot!("parameters_without_file", vm_run(&[PARAMETERS, ONES]));
    let folder = Folder::new();
    let with = |header: &str, scope: &str| {
        let file = folder.write("p.safetensors", tensors(header));
        folder.show(&vm_run(&[PARAMETERS, ONES, &format!("--parameters={scope}={file}")]))
    };
    let entry = |name: &str, range: &str| format!(r#""{name}":{{"dtype":"F32","shape":[4],"data_offsets":[{range}]}}"#);
    let (w, b) = (entry("w", "0,16"), entry("b", "16,32"));
    insta::assert_snapshot!("parameters_of_another_scope", with(&format!("{{{w},{b}}}"), "other"));
    insta::assert_snapshot!("parameter_missing", with(&format!("{{{w}}}"), "model"));
    insta::assert_snapshot!("parameters_overlap", with(&format!("{{{w},{}}}", entry("b", "8,24")), "model"));
    insta::assert_snapshot!("parameters_twice", with(&format!("{{{w},{},{b}}}", entry("w", "16,32")), "model"));
    assert!(with(&format!("{{{w},{b}}}"), "model").contains("4xf32=11 22 33 44"));
}

/// A module of the compiler with some bytes replaced by as many others.
fn edited(from: &str, to: &str) -> Vec<u8> {
    let mut bytes = std::fs::read(root().join("tests/corpus/modules/3.13.0/async-vmvx/ew_f32.vmfb"))
        .or_else(|_| std::fs::read(root().join("tests/corpus/modules/3.13.0/async-elf/ew_f32.vmfb")))
        .unwrap();
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from.as_bytes())).collect();
    assert!(!places.is_empty() && from.len() == to.len());
    places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to.as_bytes()));
    bytes
}

#[test]
fn imports_that_this_runtime_does_not_have() {
    let folder = Folder::new();
    let show = |name: &str, bytes: Vec<u8>| folder.show(&vm_run(&[&folder.write(name, bytes)]));
    insta::assert_snapshot!("import_of_another_name", show("name.vmfb", edited("hal.fence.await", "hal.fence.awaix")));
    insta::assert_snapshot!("import_of_another_signature", show("signature.vmfb", edited("0riiI_v", "0riif_v")));
    insta::assert_snapshot!("newer_dependency", show("newer.vmfb", programs::newer_dependency()));
}

#[test]
fn constants_that_the_compiler_lost() {
    for (name, module) in [("lost_static", "lost_static"), ("lost_dynamic", "lost_dynamic")] {
        insta::assert_snapshot!(name, vm_run(&[&format!("tools/tests/errors/{module}.vmfb"), ONES]));
    }
    // The same program, compiled as the help says.
    for module in ["kept_static", "kept_dynamic"] {
        let outcome = vm_run(&[&format!("tools/tests/errors/{module}.vmfb"), ONES]);
        assert!(outcome.stdout.contains("4xf32=11 22 33 44"), "{outcome}");
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine {
    use super::*;

    const STACK: &str = "tools/tests/errors/stack.vmfb";
    const FEATURES: &str = "tools/tests/errors/features.vmfb";

    #[test]
    fn modules_for_other_machines() {
        insta::assert_snapshot!("foreign_default", vm_run(&["tools/tests/errors/foreign.vmfb", ONES, ONES]));
        insta::assert_snapshot!("foreign_inline", vm_run(&["tests/corpus/modules/3.13.0/inline-elf-aarch64/mlp.vmfb"]));
        insta::assert_snapshot!("foreign_device", vm_run(&["tools/tests/errors/vulkan.vmfb", ONES, ONES]));
    }

    #[test]
    fn features_that_this_processor_lacks() {
        if vmfb_hal::processor::has("fma4") != Some(false) {
            return;
        }
        insta::assert_snapshot!("unsupported_cpu", vm_run(&[FEATURES, "--input=64xf32=1", "--input=64xf32=1"]));
        // Started, and only then in want of its inputs.
        let outcome = vm_run(&[FEATURES, "--allow-unsupported-cpu"]);
        assert!(outcome.stderr.contains("takes 2 arguments") || outcome.stderr.contains("input"), "{outcome}");
        assert!(!outcome.stderr.contains("fma4"), "{outcome}");
    }

    /// The kernel has a frame of 192 kB.
    fn on_small_stack(arguments: &[&str]) -> Outcome {
        let program = env!("CARGO_BIN_EXE_vm-run");
        let script = ["-c", "ulimit -s 128; exec \"$0\" \"$@\"", program, STACK, "--input=8x6000xf32=2"];
        run("/bin/sh", &[&script, arguments].concat(), &[])
    }

    #[test]
    fn machine_code_has_the_stack_that_it_needs() {
        let expected = "--expected_output=8x6000xf32=8";
        assert!(on_small_stack(&[expected]).success().contains("[SUCCESS]"));
        assert!(on_small_stack(&[expected, "--stack-size=16MiB", "--threads=4"]).success().contains("[SUCCESS]"));
        insta::assert_snapshot!("too_little_stack", on_small_stack(&["--stack-size=100KiB"]));
        insta::assert_snapshot!("no_memory_for_a_stack", on_small_stack(&["--stack-size=1000TiB"]));
    }

    /// Parts of a system library that were damaged.
    #[test]
    fn damaged_system_libraries() {
        let path = root().join("tests/corpus/modules/3.13.0/inline-system/matmul_f32.vmfb");
        let whole = std::fs::read(path).unwrap();
        let elf = whole.windows(4).position(|bytes| bytes == b"\x7FELF").unwrap();
        let query = b"iree_hal_executable_library_query";
        let symbol = whole.windows(query.len()).position(|bytes| bytes == query).unwrap();
        let folder = Folder::new();
        for (name, at, value) in [("damaged", elf, b"X"), ("foreign", elf + 18, b"\xb7"), ("no_query", symbol, b"x")] {
            let mut bytes = whole.clone();
            bytes[at] = value[0];
            let file = folder.write(&format!("{name}.vmfb"), bytes);
            insta::assert_snapshot!(format!("system_library_{name}"), folder.show(&vm_run(&[&file, "--function=even"])));
        }
    }
}
