//! Devices are listed, and threads change nothing but the time.

use crate::support::{vm_bench, vm_run};
use std::process::Command;

#[test]
fn devices_are_listed_as_the_official_tool_lists_them() {
    let listed = vm_run(&["--list_devices"]).success();
    assert_eq!(listed, "local-sync://\nlocal-task://\n");
    assert_eq!(vm_run(&["--list_devices=local-task"]).success(), "local-task://\n");
    let drivers = vm_run(&["--list_drivers"]).success();
    assert!(drivers.contains("local-sync: ") && drivers.contains("local-task: "), "{drivers}");
    let unknown = vm_run(&["--list_devices=cuda"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("cuda") && unknown.stderr.contains("--list_drivers"), "{unknown}");
    match Command::new("iree-run-module").arg("--list_devices").output() {
        Ok(official) if official.status.success() => {
            let official = String::from_utf8(official.stdout).unwrap();
            let local: String = official.lines().filter(|line| line.starts_with("local")).map(|line| format!("{line}\n")).collect();
            assert_eq!(listed, local);
        }
        _ => eprintln!("iree-run-module is not installed: not compared"),
    }
}

#[test]
fn devices_are_described() {
    let described = vm_run(&["--dump_devices"]).success();
    for line in ["# Enumerated devices for driver 'local-sync'", "# --device=local-task://", "#   default"] {
        assert!(described.lines().any(|found| found == line), "{line}\n{described}");
    }
    let one = vm_run(&["--dump_devices=local-sync"]).success();
    assert!(one.contains("local-sync") && !one.contains("local-task"), "{one}");
    assert_eq!(vm_run(&["--dump_devices=cuda"]).code, Some(1));
}

#[test]
fn every_listed_device_is_accepted() {
    for device in vm_run(&["--list_devices"]).success().lines() {
        vm_run(&["samples/hello/mul_vmvx.vmfb", "--input=4xf32=1 2 3 4", "--input=4xf32=2", &format!("--device={device}")]).success();
    }
}

#[test]
fn threads_change_no_result() {
    let weights = "--parameters=model=samples/digits/digits.irpa";
    for module in ["digits_vmvx", "digits_async", "digits_parameters"] {
        let module = format!("samples/digits/{module}.vmfb");
        let run = |threads: &str| {
            let arguments = [&module, "--input=@samples/digits/digit_7.npy", weights, threads];
            vm_run(&arguments).success()
        };
        let one = run("--threads=1");
        assert!(one.contains("result[0]"), "{one}");
        for threads in ["--threads=2", "--threads=4", "--task_topology_group_count=3"] {
            assert_eq!(run(threads), one, "{module} {threads}");
        }
    }
}

#[test]
fn the_number_of_threads_is_told() {
    let call = ["samples/hello/add.vmfb", "--input=3", "--input=4", "-v"];
    let told = |arguments: &[&str]| vm_run(&[&call[..], arguments].concat()).stderr;
    assert!(told(&["--threads=3"]).contains("threads=3"));
    let machine = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(told(&[]).contains(&format!("threads={machine}")));
}

#[test]
fn programs_with_parameters_are_measured() {
    let arguments = ["samples/digits/digits_parameters.vmfb", "--input=@samples/digits/digit_7.npy", "--iterations=2", "--repetitions=1"];
    let text = vm_bench(&[&arguments[..], &["--parameters=model=samples/digits/digits.safetensors"]].concat()).success();
    assert!(text.contains("median of 1 run of 2 calls"), "{text}");
    let without = vm_bench(&arguments);
    assert_eq!(without.code, Some(1), "{without}");
}

/// Programs imported from PyTorch export a function with fences beside one without.
#[test]
fn both_twins_of_a_function_are_called_by_name() {
    let call = ["tests/twins/twins.vmfb", "--input=4xf32=1 2 3 -4", "--input=4xf32=10 20 30 40"];
    for name in [&[][..], &["--function=square_sum"], &["--function=square_sum$async"]] {
        let text = vm_run(&[&call[..], name].concat()).success();
        assert!(text.ends_with("result[0]: hal.buffer_view\n4xf32=11 24 39 56\n"), "{name:?}: {text}");
    }
}
