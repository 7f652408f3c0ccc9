//! What the tools say about themselves.

use crate::support::{Outcome, vm_bench, vm_dump, vm_run};

#[test]
fn help_teaches() {
    insta::assert_snapshot!("vm_run_help", vm_run(&["--help"]));
    insta::assert_snapshot!("vm_dump_help", vm_dump(&["--help"]));
    insta::assert_snapshot!("vm_bench_help", vm_bench(&["--help"]));
}

#[test]
fn every_example_of_the_value_table_is_read() {
    let help = vm_run(&["--help"]).success();
    let identity = crate::programs::identity(1);
    let folder = crate::support::Folder::new();
    let module = folder.write("identity.vmfb", identity);
    let table = help.split("VALUES\n").nth(1).unwrap().split("ELEMENT TYPES").next().unwrap();
    let examples = table.lines().filter_map(|line| line.get(2..27)).map(str::trim_end);
    // Examples with types; numbers and files have tests of their own.
    let tensors: Vec<&str> = examples.filter(|example| example.contains('=') && !example.contains(['@', '&'])).collect();
    assert!(tensors.len() > 6, "{tensors:?}");
    for text in tensors.iter().flat_map(|example| example.split("  ")) {
        let outcome = vm_run(&[&module, "--function=refs", &format!("--input={text}")]);
        assert_eq!(outcome.code, Some(0), "{text}\n{outcome}");
    }
}

#[test]
fn versions_are_told() {
    for outcome in [vm_run(&["--version"]), vm_dump(&["--version"]), vm_bench(&["--version"])] {
        let text: Outcome = outcome;
        assert!(text.success().contains(env!("CARGO_PKG_VERSION")));
    }
}
