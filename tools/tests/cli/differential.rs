//! The same command lines on the official tool, where release 3.13.0 of it is installed.

use crate::programs;
use crate::support::{Folder, Outcome, run, vm_run};
use std::process::{Command, Stdio};

/// The official tool, if it is there and runs modules of this age.
fn official(module: &str) -> Option<&'static str> {
    let tool = "iree-run-module";
    let found = Command::new(tool)
        .args([&format!("--module={module}"), "--function=i32", "--input=7"])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.stdout == b"EXEC @i32\nresult[0]: i32=7\n");
    if !found {
        println!("skipped: iree-run-module is not installed, or does not run modules of this release");
    }
    found.then_some(tool)
}

fn both(tool: &str, arguments: &[String]) -> (Outcome, Outcome) {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    (run(tool, &arguments, &[]), vm_run(&arguments))
}

/// Texts that both tools read and print alike.
const TENSORS: [&str; 36] = [
    "f32=2",
    "xf32=2",
    "4xf32=2 4 6 8",
    "2x2xi32=[1 2][3 4]",
    "4xi32=[1 2][3 4]",
    "2xf32=1,,2",
    "2xf32 = 1 2",
    "2 xf32=1 2",
    "3xf32",
    "3xf32=7",
    "0xf32=",
    "0x2xf32",
    "2x0xf32=[][]",
    "2x1x3xi64=[[1 2 3]][[4 5 6]]",
    "2xi8=200 -56",
    "2xui8=200 0x10",
    "2xsi16=010 -1",
    "2xi1=00 01",
    "2xi1=02 ff",
    "2xf64=0x1.8p1 -0x1p-1074",
    "4xf32=0x1.00000100000000000001p0 16777217 1e-38 1e-45",
    "4xf32=nan inf -inf -0",
    "7xf8E5M2=500 61439 61440 inf nan 1e-9 -1.3",
    "7xf8E4M3FN=500 464 465 448 0.01 0.016 -1.3",
    "5xf8E5M2FNUZ=61440 57344 -0 1.3 nan",
    "5xf8E4M3FNUZ=240 247 248 -0 1.3",
    "6xf8E8M0FNU=1.5 3 1.4 0 -1 3e38",
    "4xf16=1e-7 70000 65519 -2.5",
    "4xbf16=1e39 nan 1.00390625 1.01171875",
    "2xcf64=0000803F00000000 0000000000000040",
    "1xcf128=000000000000F03F0000000000000040",
    "2x*16=0aff 0000",
    "1x*8=0a",
    "2xui64=18446744073709551615 1",
    "2xi64=-9223372036854775808 9223372036854775807",
    "(null)",
];

#[test]
fn tensors_are_read_and_printed_alike() {
    let folder = Folder::new();
    let module = folder.write("identity.vmfb", programs::identity(TENSORS.len() as u16));
    let Some(tool) = official(&module) else { return };
    let mut arguments = vec![format!("--module={module}"), "--function=refs".to_owned()];
    arguments.extend(TENSORS.iter().map(|text| format!("--input={text}")));
    let (theirs, ours) = both(tool, &arguments);
    assert_eq!(theirs.success(), ours.success());
}

#[test]
fn numbers_are_read_and_printed_alike() {
    let folder = Folder::new();
    let module = folder.write("identity.vmfb", programs::identity(1));
    let Some(tool) = official(&module) else { return };
    for (function, text) in [
        ("i32", "0x10"),
        ("i32", "010"),
        ("i32", "4294967295"),
        ("i32", "(null)"),
        ("i64", "-9223372036854775808"),
        ("f32", "1.5e-7"),
        ("f32", "1e400"),
        ("f32", "-nan"),
        ("f64", "0x1.8p3"),
        ("f64", "123456789"),
    ] {
        let arguments = [format!("--module={module}"), format!("--function={function}"), format!("--input={text}")];
        let (theirs, ours) = both(tool, &arguments);
        assert_eq!(theirs.success(), ours.success(), "{text}");
    }
}

#[test]
fn comparisons_end_alike() {
    let folder = Folder::new();
    let pairs = [
        ("2xf32=0 1", "2xf32=-0 1"),
        ("2xf32=nan 1", "2xf32=0 1"),
        ("2xf32=1 1", "2xf32=1.0002 1"),
        ("2xf32=100000 1", "2xf32=100001 1"),
        ("2xf32=100000 1", "2xf32=100002 1"),
        ("2xf32=inf 1", "2xf32=-inf 1"),
        ("2x2xui8=1 2 3 4", "2x2xui8=1 2 3 5"),
        ("4xf32=1 2 3 4", "2x2xf32=1 2 3 4"),
        ("f16=1", "f16=1.001"),
        ("bf16=1", "bf16=1.0078125"),
    ];
    let module = folder.write("identity.vmfb", programs::identity(pairs.len() as u16));
    let Some(tool) = official(&module) else { return };
    for mode in ["approximate", "exact"] {
        let mut arguments = vec![format!("--module={module}"), "--function=refs".to_owned(), format!("--equality_mode={mode}")];
        arguments.extend(pairs.iter().map(|(actual, _)| format!("--input={actual}")));
        arguments.extend(pairs.iter().map(|(_, expected)| format!("--expected_output={expected}")));
        let (theirs, ours) = both(tool, &arguments);
        assert_eq!(theirs.stdout, ours.stdout);
        assert_eq!((theirs.code, ours.code), (Some(1), Some(1)));
    }
}

#[test]
fn files_are_written_and_read_alike() {
    let folder = Folder::new();
    let module = folder.write("identity.vmfb", programs::identity(1));
    let Some(tool) = official(&module) else { return };
    for text in ["2x3xf32=1 2 3 4 5 6", "2xi1=00 01", "ui16=7", "2xcf64=0000803F00000000", "0x2xi64="] {
        for extension in ["npy", "bin"] {
            let mut files = Vec::new();
            for (name, program) in [("theirs", tool), ("ours", env!("CARGO_BIN_EXE_vm-run"))] {
                let name = format!("{name}.{extension}");
                let output = format!("--output=@{}", folder.path(&name));
                run(program, &[&format!("--module={module}"), "--function=refs", &format!("--input={text}"), &output], &[]).success();
                files.push(folder.read(&name));
            }
            if extension == "bin" {
                assert_eq!(files[0], files[1], "{text}");
                continue;
            }
            for name in ["theirs.npy", "ours.npy"] {
                let arguments = [format!("--module={module}"), "--function=refs".to_owned(), format!("--input=@{}", folder.path(name))];
                let (theirs, ours) = both(tool, &arguments);
                assert_eq!(theirs.success(), ours.success(), "{text} {name}");
            }
        }
    }
}
