//! ONNX node tests: one named test per module in `tests/onnx/modules`, which `tests/onnx/build.py` made with the official compiler.
//! Inputs and expected results are those that the `onnx` package ships.

#[path = "support/text.rs"]
mod text;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use vmfb::{Engine, Module, Store, Value};

/// The package's own backend tests compare with a relative tolerance of 1e-3.
const TOLERANCE: (f64, f64) = (1e-3, 1e-4);

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx/modules");
    let mut modules: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    modules.retain(|path| path.extension().is_some_and(|extension| extension == "vmfb"));
    modules.sort();
    let name = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let trials = modules.into_iter().map(|path| Trial::test(name(&path), move || check(&path))).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn check(path: &Path) -> Result<(), Failed> {
    let expectation: Json = serde_json::from_slice(&std::fs::read(path.with_extension("json"))?)?;
    let engine = Engine::default();
    let module = Module::from_mapped(&engine, path)?;
    let mut store = Store::new(&engine, ());
    let instance = vmfb::linker()?.instantiate(&mut store, &module)?;
    let export = module.exports().find(|export| !export.name.starts_with("__") && !export.name.contains('$'));
    let function = instance.function(&store, export.ok_or("the module exports nothing")?.name)?;
    let texts = |key: &str| expectation[key].as_array().cloned().unwrap_or_default();
    let inputs =
        texts("inputs").iter().map(|input| text::parse(input.as_str().unwrap_or_default(), "")).collect::<vmfb::Result<Vec<Value>>>()?;
    let results = function.call(&mut store, &inputs)?;
    let wanted = texts("outputs");
    if results.len() != wanted.len() {
        return Err(format!("{} results, expected {}", results.len(), wanted.len()).into());
    }
    for (index, (result, wanted)) in results.iter().zip(&wanted).enumerate() {
        let (found, wanted) = (text::print(result)?, wanted.as_str().unwrap_or_default());
        text::same(&signless(&found), &signless(wanted), TOLERANCE).map_err(|difference| format!("result {index}: {difference}"))?;
    }
    Ok(())
}

/// The compiler makes results signless: the text with the type without its sign, and the elements as signed numbers of its width.
fn signless(text: &str) -> String {
    let (kind, elements) = text.split_once('=').unwrap_or((text, ""));
    let (shape, element) = kind.rsplit_once('x').map_or(("", kind), |(shape, element)| (shape, element));
    let Some(width) = element.strip_prefix("ui").or(element.strip_prefix("si")) else { return text.to_owned() };
    let bits: u32 = width.parse().unwrap_or(64);
    let signed = |token: &str| {
        let value: i128 = token.parse().unwrap_or_default();
        (value << (128 - bits) >> (128 - bits)).to_string()
    };
    let elements: Vec<String> = elements.split_whitespace().map(signed).collect();
    let separator = if shape.is_empty() { "" } else { "x" };
    format!("{shape}{separator}i{width}={}", elements.join(" "))
}
