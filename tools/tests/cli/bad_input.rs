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
fn names_that_are_near_are_offered() {
    let folder = Folder::new();
    let many = folder.write("many.vmfb", programs::many_functions(4000));
    insta::assert_snapshot!("wrong_function_of_many", folder.show(&vm_run(&[&many, "--function=function_77x"])));
    let text = vm_run(&[&many]).to_string();
    assert!(text.lines().count() < 20, "{text}");
    // As traces and imports write it.
    vm_run(&[&many, "--function=many.function_77"]).success();
    vm_run(&[MUL, "--function=module.mul", ONES, ONES]).success();
}

#[test]
fn generated_inputs_keep_to_their_types() {
    let module = "tools/tests/cli/modules/auto_types.vmfb";
    let truth: Vec<String> = (0..8).map(|seed| vm_run(&[module, "--function=s", &format!("--input=auto:{seed}")]).success()).collect();
    assert!(truth.iter().all(|text| text.ends_with("i32=0\n") || text.ends_with("i32=1\n")), "{truth:?}");
    assert!(truth.iter().any(|text| text.ends_with("i32=1\n")), "{truth:?}");
    let text = vm_run(&[module, "--function=t", "--input=auto:7"]).success();
    let values = |kind: &str| -> Vec<i32> {
        let line = text.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
        line.split(' ').map(|value| value.parse().unwrap()).collect()
    };
    let (narrow, bytes) = (values("8xi4="), values("8xui8="));
    assert!(narrow.iter().all(|value| (-8..8).contains(value)) && narrow.iter().any(|value| *value != 0), "{text}");
    assert!(bytes.iter().all(|value| (0..256).contains(value)) && bytes.iter().any(|value| *value > 1), "{text}");
}

#[test]
fn types_come_from_assertions_where_no_declaration_is() {
    let module = "tools/tests/cli/modules/onnx.vmfb";
    let random = vm_run(&[module, "--function=main", "--input=auto:7"]).success();
    assert!(random.contains("\n1x4xf32=["), "{random}");
    let uniform = vm_run(&[module, "--function=main", "--input=auto"]).success();
    assert!(uniform.ends_with("1x4xf32=[0.25 0.25 0.25 0.25]\n"), "{uniform}");
    let folder = Folder::new();
    let identity = folder.write("identity.vmfb", programs::identity(1));
    insta::assert_snapshot!("nothing_to_generate_from", folder.show(&vm_run(&[&identity, "--function=refs", "--input=auto"])));
}

#[test]
fn differences_are_told_apart() {
    let folder = Folder::new();
    let identity = folder.write("identity.vmfb", programs::identity(1));
    let exact = ["--expected_f32_threshold=0", "--expected_rtol=0"];
    let refs = |input: &str, expected: &str, more: &[&str]| {
        let arguments = [&identity, "--function=refs", &format!("--input={input}"), &format!("--expected_output={expected}")];
        folder.show(&vm_run(&[&arguments[..], more].concat()))
    };
    insta::assert_snapshot!("difference_in_the_seventh_digit", refs("1xf32=1000000", "1xf32=1000001", &exact));
    for (input, expected, found, wanted) in [
        ("f64=1e300", "f64=1.00000000000001e300", "(1E300)", "(1.00000000000001E300)"),
        ("f32=0", "f32=-0", "(0)", "(-0)"),
        ("cf64=(1,16777216)", "cf64=(1,16777214)", "((1,16777216))", "((1,16777214))"),
        ("1xf16=2048", "1xf16=2050", "(2048)", "(2050)"),
    ] {
        let text = refs(input, expected, &["--equality_mode=exact"]);
        assert!(text.contains(found) && text.contains(wanted), "{text}");
    }
    let scalar = vm_run(&[&identity, "--function=f32", "--input=1000000", "--expected_output=1000001", exact[0], exact[1]]);
    assert!(scalar.stdout.contains("f32=1000000 does not match the expected f32=1000001"), "{scalar}");
    let within = refs("3xi8=1 2 3", "3xi8=2 1 3", &["--expected_integer_threshold=1"]);
    assert!(within.contains("[SUCCESS]"), "{within}");
    let beyond = refs("2xui8=255 0", "2xui8=0 0", &["--expected_integer_threshold=1"]);
    assert!(beyond.contains("(255) does not match the expected (0)"), "{beyond}");
}

#[test]
fn types_are_read_as_they_are_listed() {
    let folder = Folder::new();
    let identity = folder.write("identity.vmfb", programs::identity(1));
    for (text, result) in [
        ("2xcomplex<f32>=1 2", "2xcf64=0000803F00000000 0000004000000000"),
        ("tensor<2xcomplex<f64>>=0", "2xcf128=00000000000000000000000000000000 00000000000000000000000000000000"),
        ("complex<f32>=1", "cf64=0000803F00000000"),
        ("tensor<2x2xf32>=1", "2x2xf32=[1 1][1 1]"),
        ("tensor<f32>=2", "f32=2"),
        ("tensor<2xf8E4M3FN>=1", "2xf8E4M3FN=1 1"),
        ("tensor<2xi1>=1", "2xi1=01 01"),
        ("tensor<4xi4, #e<1>>=7", "4xi4=7 7 7 7"),
    ] {
        let output = vm_run(&[&identity, "--function=refs", &format!("--input={text}")]).success();
        assert!(output.ends_with(&format!("{result}\n")), "{text}\n{output}");
    }
    let scalar = vm_run(&["samples/hello/add.vmfb", "--input=i32=40", "--input=2", "--expected_output=i32=42"]).success();
    assert!(scalar.contains("[SUCCESS]"), "{scalar}");
    insta::assert_snapshot!("open_dimension", folder.show(&vm_run(&[&identity, "--function=refs", "--input=tensor<?x2xf32>=1"])));
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
    snapshot!("scalar_with_type", ["samples/hello/add.vmfb", "--input=f32=3", "--input=4"]);
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
