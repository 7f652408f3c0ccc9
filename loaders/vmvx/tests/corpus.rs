//! Executables that real compilers wrote, cut out of the modules of the conformance corpus.

use serde_json::Value as Json;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use vmfb_hal::{Binding, Dispatch, Executable, ExecutableLoader, ExecutableParameters, Load};
use vmfb_loader_vmvx::{FORMAT, VmvxLoader};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Engine, Meter};

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

/// An executable in a module, and what the index says about it.
struct Nested {
    file: String,
    program: String,
    data: Span,
    exports: Vec<String>,
}

/// Constants of VMVX modules that are modules themselves: they are the longest ones.
fn nested() -> Vec<Nested> {
    let index: Json = serde_json::from_str(&fs::read_to_string(corpus().join("index.json")).unwrap()).unwrap();
    let mut all = Vec::new();
    for entry in index["modules"].as_array().unwrap() {
        let text = |key: &str| entry[key].as_str().unwrap().to_owned();
        if !text("mode").starts_with("inline-vmvx") {
            continue;
        }
        let bytes: Arc<[u8]> = fs::read(corpus().join(text("file"))).unwrap().into();
        let number = |constant: &Json, key: &str| constant[key].as_u64().unwrap() as usize;
        let mut constants: Vec<&Json> = entry["rodata"].as_array().unwrap().iter().collect();
        constants.retain(|constant| {
            let (at, length) = (number(constant, "at"), number(constant, "bytes"));
            let bytes = &bytes[at..at + length];
            bytes.starts_with(b"PK\x03\x04") || bytes.get(8..12) == Some(b"IREE")
        });
        let executables = entry["nested"].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(constants.len(), executables.len(), "{}", text("file"));
        for (constant, executable) in constants.into_iter().zip(executables) {
            let data = Span::from_shared(bytes.clone()).slice(number(constant, "at"), number(constant, "bytes")).unwrap();
            let exports = executable["exports"].as_array().unwrap().iter().map(|export| export["name"].as_str().unwrap().to_owned());
            all.push(Nested { file: text("file"), program: text("program"), data, exports: exports.collect() });
        }
    }
    all
}

fn load(nested: &Nested) -> Arc<dyn Executable> {
    let engine = Engine::default();
    let parameters =
        ExecutableParameters { format: FORMAT, data: &nested.data, constants: &[], engine: &engine, account: &MemoryAccount::default() };
    match VmvxLoader::new().try_load(&parameters) {
        Ok(Load::Loaded(executable)) => executable,
        Ok(Load::NotMine(reason)) => panic!("{}: {reason}", nested.file),
        Err(error) => panic!("{}: {error}", nested.file),
    }
}

#[test]
fn every_executable_loads_with_the_exports_of_the_index() {
    let all = nested();
    assert!(all.len() > 400, "only {} executables found", all.len());
    for nested in all {
        let executable = load(&nested);
        let names = (0..executable.export_count()).map(|ordinal| executable.export(ordinal).unwrap().name.unwrap().to_owned());
        assert_eq!(names.collect::<Vec<_>>(), nested.exports, "{}", nested.file);
        for (ordinal, name) in nested.exports.iter().enumerate() {
            assert_eq!(executable.lookup(name), Some(ordinal), "{}", nested.file);
            let export = executable.export(ordinal).unwrap();
            assert_eq!(export.binding_count.is_some(), export.constant_count.is_some(), "{}", nested.file);
        }
    }
}

fn floats(values: &[f32]) -> Span {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Span::copy_of(&bytes, &MemoryAccount::default()).unwrap()
}

fn content(span: &Span) -> Vec<f32> {
    (0..(span.len() / 4) as u64).map(|index| f32::from_bits(span.load_element_u32(index).unwrap())).collect()
}

/// Runs a kernel with the smallest grid that gives the expected output. Compilers divide the work differently, and the grid is
/// computed by the program around the kernel; here it is found by trying.
fn run(nested: &Nested, export: usize, inputs: &[&[f32]], expected: &[f32]) {
    let executable = load(nested);
    let grids = (1..=5).flat_map(|y| (1..=5).map(move |x| [x, y, 1]));
    let found = grids.into_iter().any(|workgroup_count| {
        let mut spans: Vec<Span> = inputs.iter().map(|input| floats(input)).collect();
        spans.push(floats(&vec![0.0; expected.len()]));
        let bindings: Vec<Binding<'_>> = spans.iter().map(|span| Binding { span, offset: 0, length: span.len() }).collect();
        let dispatch = Dispatch { export, workgroup_count, constants: &[], bindings: &bindings, concurrency: 1 };
        executable.dispatch(&mut Meter::default(), &dispatch).is_ok() && spans.last().map(content).as_deref() == Some(expected)
    });
    assert!(found, "{}: no grid gives {expected:?}", nested.file);
}

/// `ew_f32.add` of every release, with and without microkernels: eight sums.
#[test]
fn a_kernel_of_every_release_adds() {
    let all: Vec<_> = nested().into_iter().filter(|nested| nested.program == "ew_f32").collect();
    assert!(all.len() >= 28, "only {} found", all.len());
    for nested in all {
        let export = nested.exports.iter().position(|name| name.starts_with("add_dispatch_0")).unwrap();
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let b = [0.5, -2.0, 1e9, 0.25, 5.0, 0.0, -7.5, 1.0];
        run(&nested, export, &[&a, &b], &[1.5, 0.0, 1e9 + 3.0, 4.25, 10.0, 6.0, -0.5, 9.0]);
    }
}

/// `matmul_f32.odd` where one kernel with three bindings does it all: a 5 x 7 matrix times a 7 x 3 matrix.
#[test]
fn a_kernel_multiplies_matrices() {
    let a: Vec<f32> = (0..35).map(|i| (i % 11) as f32 - 5.0).collect();
    let b: Vec<f32> = (0..21).map(|i| (i % 5) as f32 - 2.0).collect();
    let mut expected = vec![0f32; 15];
    for (i, j) in (0..5).flat_map(|i| (0..3).map(move |j| (i, j))) {
        expected[i * 3 + j] = (0..7).map(|k| a[i * 7 + k] * b[k * 3 + j]).sum();
    }
    let mut found = 0;
    for nested in nested().into_iter().filter(|nested| nested.program == "matmul_f32") {
        let kernels: Vec<_> = (0..).zip(&nested.exports).filter(|(_, name)| name.starts_with("odd_dispatch")).collect();
        let [(kernel, _)] = kernels[..] else { continue };
        let bindings = load(&nested).export(kernel).unwrap().binding_count;
        if bindings.is_none_or(|count| count == 3) {
            run(&nested, kernel, &[&a, &b], &expected);
            found += 1;
        }
    }
    assert!(found >= 8, "only {found} found");
}
