//! `vm-bench` measures and reports.

use crate::programs;
use crate::support::{Folder, vm_bench};

#[test]
fn figures_are_plausible() {
    let arguments = ["samples/hello/mul_vmvx.vmfb", "--input=auto:1", "--iterations=50", "--repetitions=3", "--json", "--threads=1"];
    let report: serde_json::Value = serde_json::from_str(&vm_bench(&arguments).success()).unwrap();
    assert_eq!(report["function"], "mul");
    assert_eq!(report["iterations"], 50);
    assert_eq!(report["runs"].as_array().unwrap().len(), 3);
    let figure = |name: &str| report[name].as_f64().unwrap();
    // A call takes more than 10 ns and less than 10 s.
    for name in ["cpu_ns_per_call", "process_cpu_ns_per_call", "wall_ns_per_call"] {
        assert!((10.0..1e10).contains(&figure(name)), "{name}: {report}");
    }
}

#[test]
fn the_number_of_calls_is_found_where_none_is_given() {
    let text = vm_bench(&["samples/hello/add.vmfb", "--input=3", "--input=4", "--min_time=0.01", "--repetitions=2"]).success();
    assert!(text.starts_with("add: ") && text.contains("median of 2 runs of "), "{text}");
}

#[test]
fn failures_are_told() {
    insta::assert_snapshot!("bench_without_inputs", vm_bench(&["samples/hello/add.vmfb"]));
    let folder = Folder::new();
    let trouble = folder.write("trouble.vmfb", programs::trouble());
    let outcome = vm_bench(&[&trouble, "--function=divide", "--input=1", "--input=0"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("INVALID_ARGUMENT"), "{outcome}");
}
