//! `vm-check` and parameter files on the command line. `checks.mlir` holds test functions whose names tell their outcome.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit code, standard output, standard error.
struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(program: &str, arguments: &[&str]) -> Outcome {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn vm_check(arguments: &[&str]) -> Outcome {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/checks.vmfb");
    run(env!("CARGO_BIN_EXE_vm-check"), &[&[module.to_str().unwrap()], arguments].concat())
}

fn sample(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(name);
    path.to_str().unwrap().to_owned()
}

const NAMES: [&str; 6] = ["passes_equal", "fails_equal", "passes_almost", "fails_almost", "passes_truth", "fails_truth"];

#[test]
fn every_test_has_the_outcome_that_its_name_tells() {
    let outcome = vm_check(&[]);
    assert_eq!(outcome.code, Some(1), "{}{}", outcome.stdout, outcome.stderr);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    for name in NAMES {
        let verdict = if name.starts_with("passes") { "ok  " } else { "FAIL" };
        assert!(lines.contains(&format!("{verdict}  {name}").as_str()), "{name}\n{}", outcome.stdout);
    }
    assert_eq!(lines.last(), Some(&"6 tests: 3 passed, 3 failed"));
    assert_eq!(outcome.stderr, "");
}

#[test]
fn a_failed_expectation_is_told_and_does_not_end_the_test() {
    let text = vm_check(&["--filter=fails_equal"]).stdout;
    assert!(text.contains("check.expect_eq: element 2 differs: found 6, wanted 7"), "{text}");
    assert!(text.contains("check.expect_eq: element 3 differs: found 8, wanted 9"), "{text}");
    let text = vm_check(&["--filter=fails_truth"]).stdout;
    for line in ["check.expect_true: the value is 0", "check.expect_false: the value is 1", "check.expect_all_true: element 1 is zero"] {
        assert!(text.contains(line), "{text}");
    }
    let text = vm_check(&["--filter=fails_almost"]).stdout;
    assert!(text.contains("check.expect_almost_eq: element 0 differs: found 2, wanted 2.5"), "{text}");
}

#[test]
fn tests_are_listed_and_chosen() {
    let mut listed: Vec<String> = vm_check(&["--list"]).stdout.lines().map(str::to_owned).collect();
    let mut expected = NAMES.map(str::to_owned).to_vec();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    let passing = vm_check(&["--filter=passes"]);
    assert_eq!(passing.code, Some(0));
    assert!(passing.stdout.ends_with("3 tests: 3 passed, 0 failed\n"), "{}", passing.stdout);
    assert_eq!(vm_check(&["--filter=passes", "--expect_failure"]).code, Some(1));
    assert_eq!(vm_check(&["--filter=fails", "--expect_failure"]).code, Some(0));
    let none = vm_check(&["--filter=none"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("NOT_FOUND"), "{}", none.stderr);
}

#[test]
fn what_takes_arguments_is_no_test() {
    let outcome = run(env!("CARGO_BIN_EXE_vm-check"), &[&sample("hello/add.vmfb")]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("INVALID_ARGUMENT") && outcome.stderr.contains("'add'"), "{}", outcome.stderr);
}

#[test]
fn checks_count_in_vm_run() {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/checks.vmfb");
    let vm_run = |function: &str| run(env!("CARGO_BIN_EXE_vm-run"), &[module.to_str().unwrap(), &format!("--function={function}")]);
    for name in NAMES {
        let outcome = vm_run(name);
        assert_eq!(outcome.code, Some(if name.starts_with("passes") { 0 } else { 1 }), "{name}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.contains("check.expect"), name.starts_with("fails"), "{name}: {}", outcome.stderr);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn weights_come_from_files() {
    let module = sample("digits/digits_parameters.vmfb");
    let input = format!("--input=@{}", sample("digits/digit_3.npy"));
    // What numpy computes.
    let expected = "--expected_output=1x10xf32=7.45511642e-11 2.35974472e-05 1.96371185e-06 0.98293144 2.42524373e-08 1.55960029e-05 \
        3.60511639e-08 0.0017276065 0.0148028049 0.000496931478";
    let vm_run = |flags: &[&str]| run(env!("CARGO_BIN_EXE_vm-run"), &[&[module.as_str(), &input, expected], flags].concat());
    for file in ["digits/digits.irpa", "digits/digits.safetensors"] {
        let parameters = format!("--parameters=model={}", sample(file));
        for mode in ["--parameter_mode=file", "--parameter_mode=preload"] {
            let outcome = vm_run(&[&parameters, mode]);
            assert_eq!(outcome.code, Some(0), "{file} {mode}\n{}{}", outcome.stdout, outcome.stderr);
        }
    }
    let no_scope = format!("--parameters={}", sample("digits/digits.irpa"));
    for (flags, told) in [
        (&[][..], "no parameter files are given"),
        (&[no_scope.as_str()], "no parameters have the scope"),
        (&["--parameters=model=/none.irpa"], "/none.irpa"),
    ] {
        let outcome = vm_run(flags);
        assert_eq!(outcome.code, Some(1));
        assert!(outcome.stderr.contains("NOT_FOUND") && outcome.stderr.contains(told), "{flags:?}: {}", outcome.stderr);
    }
}
