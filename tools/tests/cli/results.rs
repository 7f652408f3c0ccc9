//! Modules run and give the results that were computed elsewhere.

use crate::programs;
use crate::support::{Folder, root, run, vm_run};

#[test]
fn the_commands_of_the_samples_work() {
    let inputs = ["--input=4xf32=1 2 3 4", "--input=4xf32=10 20 30 40"];
    let printed = "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 40 90 160\n";
    let vmvx = "samples/hello/mul_vmvx.vmfb";
    assert_eq!(vm_run(&[vmvx, "--function=mul", inputs[0], inputs[1]]).success(), printed);
    // As the official tool spells it, without the name of the only function, and without machine code.
    assert_eq!(vm_run(&[&format!("--module={vmvx}"), inputs[0], inputs[1], "--device=local-task", "--deny-native"]).success(), printed);
    assert_eq!(vm_run(&["samples/hello/add.vmfb", "--input=3", "--input=-4"]).success(), "EXEC @add\nresult[0]: i32=-1\n");
    #[cfg(target_arch = "x86_64")]
    assert_eq!(vm_run(&["samples/hello/mul.vmfb", inputs[0], inputs[1]]).success(), printed);
}

#[test]
fn digits_are_told_as_numpy_computed_them() {
    let expected: serde_json::Value = serde_json::from_slice(&std::fs::read(root().join("samples/digits/expected.json")).unwrap()).unwrap();
    let folder = Folder::new();
    let mut modules = vec!["samples/digits/digits_vmvx.vmfb"];
    if cfg!(target_arch = "x86_64") {
        modules.push("samples/digits/digits.vmfb");
    }
    for module in modules {
        for digit in 0..10 {
            let input = format!("--input=@samples/digits/digit_{digit}.npy");
            let output = format!("--output=@{}", folder.path("scores.npy"));
            vm_run(&[module, "--function=main", &input, &output]).success();
            // Another reader of array files has to read what was written.
            let bytes = folder.read("scores.npy");
            let scores: Vec<f32> = npyz::NpyFile::new(&*bytes).unwrap().into_vec().unwrap();
            let entry = &expected["cases"][digit];
            assert_eq!(entry["input"], format!("digit_{digit}.npy"));
            let wanted: Vec<f64> = entry["scores"].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect();
            assert_eq!(scores.len(), wanted.len());
            for (score, wanted) in scores.iter().zip(&wanted) {
                assert!((f64::from(*score) - wanted).abs() < 1e-4, "{module} {digit}: {scores:?}");
            }
        }
    }
}

#[test]
fn results_are_compared_with_what_is_expected() {
    let arguments = ["samples/hello/mul_vmvx.vmfb", "--input=4xf32=1 2 3 4", "--input=4xf32=10"];
    let with = |expected: &[&str]| vm_run(&[&arguments, expected].concat());
    let success = "EXEC @mul\n[SUCCESS] all function outputs matched their expected values.\n";
    assert_eq!(with(&["--expected_output=4xf32=10 20 30 40"]).success(), success);
    assert_eq!(with(&["--expected_output=4xf32=10 20 30 40.0001"]).success(), success);
    assert_eq!(with(&["--expected_output=(ignored)"]).success(), success);
    assert_eq!(with(&["--expected_output=4xf32=10 20 30 41", "--expected_f32_threshold=2"]).success(), success);
    let exact = with(&["--expected_output=4xf32=10 20 30 40.0001", "--equality-mode=exact"]);
    assert_eq!(exact.code, Some(1));
    assert!(exact.stdout.contains("[FAILED] result[0]: element at index 3 (40) does not match the expected (40.0001)"), "{exact}");
    let scalar = vm_run(&["samples/hello/add.vmfb", "--input=3", "--input=4", "--expected_output=7"]);
    assert!(scalar.success().contains("[SUCCESS]"));
}

#[test]
fn an_output_can_be_expected_later_with_and_without_its_type() {
    let folder = Folder::new();
    let arguments = ["samples/hello/mul_vmvx.vmfb", "--input=4xf32=1 2 3 4", "--input=4xf32=10"];
    let path = folder.path("product.npy");
    vm_run(&[&arguments[..], &[&format!("--output=@{path}")]].concat()).success();
    for expected in [format!("--expected_output=@{path}"), format!("--expected_output=4xf32=@{path}")] {
        assert!(vm_run(&[&arguments[..], &[&expected]].concat()).success().contains("[SUCCESS]"));
    }
    let wrong = vm_run(&[&arguments[..], &[&format!("--expected_output=2x2xf32=@{path}")]].concat());
    assert!(wrong.stderr.contains("holds an array of 4xf32, wanted 2x2xf32"), "{wrong}");
}

#[test]
fn every_type_goes_through_files_unchanged() {
    let folder = Folder::new();
    let module = folder.write("identity.vmfb", programs::identity(1));
    for (text, file) in [
        ("3xi1=1 0 1", "npy"),
        ("3xbf16=1 nan -0", "npy"),
        ("2x2xf16=[1 2][3 4]", "npy"),
        ("0x2xf64=", "npy"),
        ("cf64=1-2i", "npy"),
        ("3xui64=18446744073709551615 0 1", "npy"),
        ("3xi4=1 -2 3", "bin"),
        ("2xf8E4M3FN=448 nan", "bin"),
        ("2xf8E4M3FN=448 nan", "npy"),
    ] {
        let (kind, _) = text.split_once('=').unwrap();
        let path = folder.path(&format!("value.{file}"));
        vm_run(&[&module, "--function=refs", &format!("--input={text}"), &format!("--output=@{path}")]).success();
        let direct = vm_run(&[&module, "--function=refs", &format!("--input={text}")]).success();
        let again = vm_run(&[&module, "--function=refs", &format!("--input={kind}=@{path}")]).success();
        assert_eq!(direct, again, "{text}");
    }
    assert_eq!(folder.names(), ["identity.vmfb", "value.bin", "value.npy"]);
}

#[test]
fn several_results_go_where_each_is_sent() {
    let folder = Folder::new();
    let module = folder.write("identity.vmfb", programs::identity(3));
    let path = folder.path("both.npy");
    let arguments = [module.as_str(), "--function=refs", "--input=2xf32=1 2", "--input=(null)", "--input=2xi32=3 4"];
    let outputs = [format!("--output=@{path}"), "--output=-".to_owned(), format!("--output=+{path}")];
    let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
    assert_eq!(vm_run(&[&arguments[..], &outputs].concat()).success(), "EXEC @refs\n(null)\n");
    let all = vm_run(&[&module, "--function=refs", &format!("--input=*{path}"), "--input=(null)"]);
    let printed = "EXEC @refs\nresult[0]: hal.buffer_view\n2xf32=1 2\nresult[1]: hal.buffer_view\n2xsi32=3 4\nresult[2]: (null)\n";
    assert_eq!(all.success(), printed);
}

#[test]
fn printing_is_cut_at_the_limit() {
    let folder = Folder::new();
    let module = folder.write("identity.vmfb", programs::identity(1));
    let outcome = vm_run(&[&module, "--function=refs", "--input=2x2x2xf32=1 2 3 4 5 6 7 8", "--output_max_element_count=3"]);
    assert_eq!(outcome.success(), "EXEC @refs\nresult[0]: hal.buffer_view\n2x2x2xf32=[[1 2][3...]][[...][...]]\n");
}

#[test]
fn functions_are_listed_with_their_types() {
    let list = vm_run(&["--list", "tests/corpus/modules/3.13.0/inline-vmvx/control_flow.vmfb", "samples/hello/mul.vmfb"]).success();
    for line in [
        "  sync func @gcd3(%input0: i32, %input1: i32, %input2: i32) -> (%output0: i32)",
        "  sync func @fib(%input0: i32) -> (%output0: i64)",
        "  sync func @mul(%input0: tensor<4xf32>, %input1: tensor<4xf32>) -> (%output0: tensor<4xf32>)",
    ] {
        assert!(list.lines().any(|found| found == line), "{line}\n{list}");
    }
    // The first release kept no declarations.
    let old = vm_run(&["--list", "tests/corpus/modules/20230209.425/inline-vmvx/globals_scalar.vmfb"]).success();
    assert!(old.contains("func @") && !old.contains("__init"), "{old}");
}

#[test]
fn inputs_can_be_made_from_the_declaration() {
    let arguments = ["samples/hello/mul_vmvx.vmfb", "--input=auto"];
    assert_eq!(vm_run(&arguments).success(), "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=0 0 0 0\n");
}

#[test]
fn modules_come_from_the_standard_input_too() {
    let bytes = std::fs::read(root().join("samples/hello/add.vmfb")).unwrap();
    let outcome = run(env!("CARGO_BIN_EXE_vm-run"), &["-", "--input=3", "--input=4"], &bytes);
    assert_eq!(outcome.success(), "EXEC @add\nresult[0]: i32=7\n");
}

#[test]
fn verbose_runs_tell_what_happens() {
    let outcome = vm_run(&["-v", "samples/hello/mul_vmvx.vmfb", "--input=auto"]);
    for event in ["load{", "link{", "init{", "invoke{", "dispatch{"] {
        assert!(outcome.stderr.contains(event), "{event}\n{outcome}");
    }
    assert!(vm_run(&["samples/hello/mul_vmvx.vmfb", "--input=auto"]).stderr.is_empty());
}

#[cfg(unix)]
#[test]
fn output_that_nobody_reads_is_no_news() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_vm-dump"))
        .arg("samples/digits/digits.vmfb")
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap(), "");
}
