//! Flags of the official tools: those that are missing say why, and the official `--help` text works as a flag file.

use crate::support::{Folder, root, run, vm_bench, vm_run};
use std::process::Command;

const MUL: &str = "samples/hello/mul_vmvx.vmfb";
const INPUTS: [&str; 2] = ["--input=4xf32=1 2 3 4", "--input=4xf32=10"];

#[test]
fn flags_that_are_missing_say_why() {
    insta::assert_snapshot!("executable_plugin", vm_run(&[MUL, "--executable_plugin=math.so"]));
    for flag in ["--cuda_tracing=2", "--hip-tracing=1", "--task_topology_mode=x", "--device_profiling_mode=counters", "--agents_md"] {
        for program in
            [env!("CARGO_BIN_EXE_vm-run"), env!("CARGO_BIN_EXE_vm-bench"), env!("CARGO_BIN_EXE_vm-check"), env!("CARGO_BIN_EXE_vm-dump")]
        {
            let outcome = run(program, &[MUL, flag], &[]);
            assert_eq!(outcome.code, Some(2), "{flag}: {outcome}");
            assert!(outcome.stderr.contains("is not supported here, because"), "{flag}: {outcome}");
        }
    }
    let unknown = vm_run(&[MUL, "--no_such_flag"]);
    assert!(!unknown.stderr.contains("not supported here"), "{unknown}");
}

/// The beginning of the official text, and one flag of each sort from it.
const HELP: &str = "\
# ============================================================================
# 👻 IREE: iree-run-module
# ============================================================================

Runs a compiled IREE module.

Replay capture flags:
  --device_replay_output=path.ireereplay
      Writes a HAL replay stream.

# Displays command line usage information.
# --help

--cuda_use_streams=true
--cuda_tracing=3

--task_topology_mode=\"physical_cores\"
--task_topology_group_count=0
--task_topology_max_group_count=64
--expected_rtol=1e-05
--equality_mode=\"approximate\"
# --module=...
--module_mode=\"preload\"
--device_replay_output=\"\"
--trace_execution=false
--function=\"\"
--print_statistics=false
--agents_md=false
";

#[test]
fn the_official_help_text_is_a_flag_file() {
    let folder = Folder::new();
    let help = format!("--flagfile={}", folder.write("help", HELP));
    let product = vm_run(&[&[help.as_str(), MUL], &INPUTS[..]].concat()).success();
    assert!(product.ends_with("4xf32=10 20 30 40\n"), "{product}");
    // What follows overrides it.
    vm_run(&[&[help.as_str(), MUL, "--function=mul", "--module_mode=mmap"], &INPUTS[..]].concat()).success();
    vm_bench(&[&[help.as_str(), MUL, "--function=mul", "--iterations=1", "--repetitions=1"], &INPUTS[..]].concat()).success();
    // A setting that asks for something is not passed over.
    let edited = folder.write("edited", HELP.replace("replay_output=\"\"", "replay_output=\"x\""));
    let refused = vm_run(&[&format!("--flagfile={edited}"), MUL]);
    assert!(refused.stderr.contains("--device_replay_output is not supported here"), "{refused}");
}

#[test]
fn every_flag_of_the_official_tools_is_known() {
    let documented = std::fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    for (official, ours) in [("iree-run-module", "vm-run"), ("iree-benchmark-module", "vm-bench"), ("iree-dump-module", "vm-dump")] {
        let Ok(output) = Command::new(official).arg("--help").output() else {
            eprintln!("{official} is not installed: not compared");
            continue;
        };
        let help = String::from_utf8(output.stdout).unwrap();
        let program = match ours {
            "vm-run" => env!("CARGO_BIN_EXE_vm-run"),
            "vm-bench" => env!("CARGO_BIN_EXE_vm-bench"),
            _ => env!("CARGO_BIN_EXE_vm-dump"),
        };
        let own = run(program, &["--help"], &[]).success();
        let hidden = ["task_topology_group_count", "task_topology_max_group_count"];
        for line in help.lines() {
            let Some(flag) = line.strip_prefix("# --").or_else(|| line.strip_prefix("--")) else { continue };
            let name = flag.split(['=', '[', ' ']).next().unwrap_or_default();
            let words = flag.contains("is ") || flag.contains("instead.");
            if name.is_empty() || words || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit()) {
                continue;
            }
            let supported = own.contains(&format!("--{name}")) || hidden.contains(&name);
            assert!(supported || vmfb_tools::official::find(name).is_some(), "{official}: --{name}");
            let family = name.split('_').next().unwrap_or_default();
            let listed = documented.contains(&format!("`--{name}`")) || documented.contains(&format!("`--{family}_*`"));
            assert!(listed, "docs/compatibility.md does not list --{name} of {official}");
        }
    }
}

#[test]
fn executed_instructions_are_traced() {
    let outcome = vm_run(&["samples/hello/add.vmfb", "--trace_execution", "--input=40", "--input=2"]);
    assert!(outcome.stdout.contains("i32=42"), "{outcome}");
    insta::assert_snapshot!("trace_execution", outcome);
    // Loops are traced each time round, kernels too.
    let outcome = vm_run(&[&[MUL, "--trace_execution=true"], &INPUTS[..]].concat());
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert!(outcome.stdout.ends_with("4xf32=10 20 30 40\n"), "{outcome}");
    assert!(lines.iter().any(|line| line.contains(".mul+") && line.contains("vm.return")), "{outcome}");
    assert!(lines.iter().any(|line| line.contains("vm.buffer.load.f32")), "{outcome}");
}

#[test]
fn statistics_are_printed_in_the_official_columns() {
    let outcome = vm_run(&[&[MUL, "--print_statistics"], &INPUTS[..]].concat());
    assert!(outcome.stderr.starts_with("Device: local-task\n[[ memory statistics ]]\nDEVICE_LOCAL:"), "{outcome}");
    assert!(outcome.stderr.contains("B peak /") && outcome.stderr.contains("B live"), "{outcome}");
}
