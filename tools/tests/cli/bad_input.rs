//! What users do wrong, and what they are told: what was found, what is wanted, what to do.

use crate::programs;
use crate::support::{Folder, vm_run};
use std::time::{Duration, Instant};

const MUL: &str = "samples/hello/mul_vmvx.vmfb";
const ONES: &str = "--input=4xf32=1";

macro_rules! snapshot {
    ($name:literal, $arguments:expr) => {
        insta::assert_snapshot!($name, vm_run(&$arguments))
    };
}

#[test]
fn files_that_are_no_modules() {
    snapshot!("missing_file", ["no/such/file.vmfb"]);
    snapshot!("no_file", [""; 0]);
    snapshot!("not_a_module", ["README.md"]);
    let folder = Folder::new();
    let whole = std::fs::read(crate::support::root().join(MUL)).unwrap();
    let truncated = folder.write("truncated.vmfb", &whole[..whole.len() / 2]);
    insta::assert_snapshot!("truncated_file", folder.show(&vm_run(&[&truncated])));
    let empty = folder.write("empty.vmfb", "");
    insta::assert_snapshot!("empty_file", folder.show(&vm_run(&[&empty])));
    let future = folder.write("future.vmfb", programs::future_version());
    insta::assert_snapshot!("unknown_bytecode_version", folder.show(&vm_run(&[&future])));
}

#[test]
fn functions_that_are_not_there_or_not_named() {
    snapshot!("wrong_function", [MUL, "--function=add"]);
    snapshot!("several_functions", ["tests/corpus/modules/3.13.0/inline-vmvx/control_flow.vmfb"]);
}

#[test]
fn inputs_that_do_not_fit() {
    snapshot!("too_few_inputs", [MUL, ONES]);
    snapshot!("too_many_inputs", [MUL, ONES, ONES, ONES]);
    snapshot!("wrong_element_type", [MUL, ONES, "--input=4xi32=1"]);
    snapshot!("wrong_shape", [MUL, ONES, "--input=2x2xf32=1 2 3 4"]);
    snapshot!("wrong_dimension", [MUL, ONES, "--input=5xf32=1"]);
    snapshot!("too_few_elements", [MUL, ONES, "--input=4xf32=1 2 3"]);
    snapshot!("too_many_elements", [MUL, ONES, "--input=4xf32=1 2 3 4 5 6"]);
    snapshot!("no_number", [MUL, ONES, "--input=4xf32=1 2 x 4"]);
    snapshot!("no_type", [MUL, ONES, "--input=7"]);
    snapshot!("numpy_type_name", [MUL, ONES, "--input=4xfloat32=1"]);
    snapshot!("missing_array_file", [MUL, ONES, "--input=@none.npy"]);
    snapshot!("array_file_of_another_type", [MUL, ONES, "--input=4xf32=@samples/digits/digit_3.npy"]);
    snapshot!("scalar_with_type", ["samples/hello/add.vmfb", "--input=i32=3", "--input=4"]);
    snapshot!("fraction_for_an_integer", ["samples/hello/add.vmfb", "--input=1.5", "--input=4"]);
}

#[test]
fn modules_that_need_what_is_not_there() {
    let folder = Folder::new();
    let lonely = folder.write("lonely.vmfb", programs::missing_import());
    insta::assert_snapshot!("missing_import", folder.show(&vm_run(&[&lonely])));
    let missing = "tests/corpus/modules/3.13.0/inline-vmvx/needs_import.vmfb";
    let text = vm_run(&[missing, "--function=run", "--input=1"]).to_string();
    for wanted in ["exit code 1", "NOT_FOUND", "needs module \"nowhere\"", "hal_loader", "vm-run nowhere.vmfb"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    // The compiler lost a constant of this module.
    snapshot!("null_binding", ["tests/corpus/modules/3.13.0/inline-vmvx/big_const.vmfb", "--function=row", "--input=i32=1"]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn executables_for_other_machines() {
    let outcome = vm_run(&["tests/corpus/modules/3.13.0/inline-elf-aarch64/mlp.vmfb"]);
    let text = outcome.to_string();
    assert_eq!(outcome.code, Some(1), "{text}");
    for wanted in ["UNAVAILABLE", "embedded-elf-arm_64", "embedded-elf-x86_64", "vmvx-bytecode-fb", "--iree-hal-target-backends=vmvx"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    snapshot!("machine_code_denied", ["samples/hello/mul.vmfb", "--deny-native", ONES, ONES]);
}

#[test]
fn limits_end_a_program() {
    let folder = Folder::new();
    let trouble = folder.write("trouble.vmfb", programs::trouble());
    insta::assert_snapshot!("out_of_fuel", folder.show(&vm_run(&[&trouble, "--function=forever", "--fuel=1000000"])));
    let start = Instant::now();
    // Where in the loop it was is a matter of luck.
    let text = vm_run(&[&trouble, "--function=forever", "--timeout=0.2"]).to_string();
    for wanted in ["exit code 1", "DEADLINE_EXCEEDED", "trouble.forever", "--timeout"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(start.elapsed() < Duration::from_secs(20));
    insta::assert_snapshot!("division_by_zero", folder.show(&vm_run(&[&trouble, "--function=divide", "--input=1", "--input=0"])));
    let text = vm_run(&[MUL, "--max-memory=1MiB", ONES, "--input=1000000xf32=1"]).to_string();
    for wanted in ["exit code 1", "RESOURCE_EXHAUSTED", "memory limit of 1048576 bytes", "--max-memory"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn outputs_that_do_not_fit() {
    snapshot!("outputs_without_results", [MUL, ONES, ONES, "--output=-", "--output=-"]);
    snapshot!("no_destination", [MUL, ONES, ONES, "--output=file.npy"]);
    snapshot!("missing_folder", [MUL, ONES, ONES, "--output=@no/such/file.npy"]);
    snapshot!("expected_outputs_without_results", [MUL, ONES, ONES, "--expected_output=4xf32=1", "--expected_output=4xf32=1"]);
    snapshot!("another_result", [MUL, ONES, ONES, "--expected_output=4xf32=1 1 2 1"]);
    snapshot!("unknown_equality_mode", [MUL, ONES, ONES, "--equality_mode=fuzzy"]);
}

#[test]
fn flags_that_are_none() {
    snapshot!("unknown_flag", [MUL, "--inputs=4xf32=1"]);
    snapshot!("unknown_device", [MUL, "--device=vulkan"]);
}

#[test]
fn names_from_modules_cannot_steer_the_terminal() {
    let folder = Folder::new();
    let evil = folder.write("evil.vmfb", programs::hostile_names());
    for arguments in [vec![evil.as_str(), "--list"], vec![evil.as_str()], vec![evil.as_str(), "--function=x"]] {
        let outcome = vm_run(&arguments);
        let text = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(text.contains("evil\\u{1b}[31m"), "{text}");
        assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text:?}");
    }
}
