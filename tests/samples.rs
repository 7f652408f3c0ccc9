//! The checked-in samples compute what numpy computed.

use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use vmfb::{BufferView, Config, Engine, Linker, Module, NativeCode, Store};

fn sample(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(path)
}

/// The f32 values behind the header of a version 1 npy file.
fn npy_values(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).expect("a sample input");
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\0");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[start..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four bytes"))).collect()
}

fn classify_all(engine: &Engine, file: &str) {
    classify_all_with(engine, file, &vmfb::linker().expect("a linker"));
}

fn classify_all_with(engine: &Engine, file: &str, linker: &Linker) {
    let module = Module::from_mapped(engine, sample(file)).expect("a module");
    let mut store = Store::new(engine, ());
    let instance = linker.instantiate(&mut store, &module).expect("an instance");
    let expected: Json = serde_json::from_slice(&std::fs::read(sample("digits/expected.json")).expect("expectations")).expect("JSON");
    let cases = expected["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 10);
    for case in cases {
        let pixels = npy_values(&sample("digits").join(case["input"].as_str().expect("a name")));
        let image = BufferView::from_f32(&[1, 8, 8], &pixels).expect("an image");
        let main = instance.typed_function::<(BufferView,), BufferView>(&store, "main").expect("a function");
        let scores = main.call(&mut store, (image,)).expect("scores");
        assert_eq!(scores.shape(), [1, 10]);
        let scores = scores.to_f32().expect("f32");
        for (found, wanted) in scores.iter().zip(case["scores"].as_array().expect("scores")) {
            let wanted = wanted.as_f64().expect("a number");
            assert!((f64::from(*found) - wanted).abs() <= 1e-5, "{file} {}: {found}, expected {wanted}", case["input"]);
        }
        let best = (0..10).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).expect("ten scores");
        assert_eq!(best as u64, case["class"].as_u64().expect("a class"));
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_digit_classifier_as_machine_code_gives_the_scores_of_numpy() {
    classify_all(&Engine::default(), "digits/digits.vmfb");
}

#[cfg(all(target_arch = "x86_64", feature = "hal"))]
#[test]
fn the_digit_classifier_gives_the_same_scores_with_its_weights_in_a_file() {
    use vmfb::modules::io_parameters::{IoParameters, ParameterIndex, ParameterProvider};
    for file in ["digits/digits.irpa", "digits/digits.safetensors"] {
        let weights = ParameterIndex::from_file(sample(file)).expect("weights");
        let mut linker = vmfb::linker().expect("a linker");
        linker.add_native(IoParameters::new(vec![ParameterProvider::new("model", weights)])).expect("a module");
        classify_all_with(&Engine::default(), "digits/digits_parameters.vmfb", &linker);
    }
}

#[cfg(all(target_arch = "x86_64", feature = "hal"))]
#[test]
fn weights_that_are_not_given_are_named() {
    let engine = Engine::default();
    let module = Module::from_mapped(&engine, sample("digits/digits_parameters.vmfb")).expect("a module");
    let mut store = Store::new(&engine, ());
    let error = vmfb::linker().expect("a linker").instantiate(&mut store, &module).expect_err("no weights");
    assert!(error.to_string().contains("\"model\""), "{error}");
}

#[test]
fn the_digit_classifier_as_bytecode_gives_the_scores_of_numpy() {
    classify_all(&Engine::default(), "digits/digits_vmvx.vmfb");
}

#[test]
fn the_digit_classifier_as_bytecode_runs_with_machine_code_denied() {
    classify_all(&Engine::new(Config::new().native_code(NativeCode::Deny)), "digits/digits_vmvx.vmfb");
}

#[test]
fn machine_code_is_refused_when_denied() {
    let engine = Engine::new(Config::new().native_code(NativeCode::Deny));
    let module = Module::from_mapped(&engine, sample("digits/digits.vmfb")).expect("a module");
    let mut store = Store::new(&engine, ());
    let error = vmfb::linker().expect("a linker").instantiate(&mut store, &module).expect_err("machine code");
    let text = error.to_string();
    assert!(text.contains("embedded-elf") && text.contains("vmvx"), "{text}");
}

#[test]
fn a_module_without_imports_needs_no_natives() {
    let engine = Engine::default();
    let module = Module::from_file(&engine, sample("hello/add.vmfb")).expect("a module");
    let mut store = Store::new(&engine, ());
    let instance = vmfb::Linker::new().instantiate(&mut store, &module).expect("an instance");
    let add = instance.typed_function::<(i32, i32), i32>(&store, "add").expect("a function");
    assert_eq!(add.call(&mut store, (40, 2)).expect("a sum"), 42);
}
