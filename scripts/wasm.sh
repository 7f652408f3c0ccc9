#!/usr/bin/env bash
# Builds a program around the runtime for wasm32 and runs it in Node: the digit classifier as VMVX bytecode must give the scores
# that numpy gives. Needs the target (`rustup target add wasm32-unknown-unknown`) and `node`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
place=$root/target/wasm
mkdir -p "$place/src"

cat >"$place/Cargo.toml" <<TOML
[package]
name = "digit-wasm"
version = "0.0.0"
edition = "2024"
[lib]
crate-type = ["cdylib"]
[dependencies]
vmfb = { path = "$root", default-features = false, features = ["vmvx"] }
[workspace]
TOML

cat >"$place/src/lib.rs" <<RUST
use vmfb::{BufferView, Engine, Module, Store};

static MODULE: &[u8] = include_bytes!("$root/samples/digits/digits_vmvx.vmfb");
static IMAGE: &[u8] = include_bytes!("$root/samples/digits/digit_3.npy");

/// The score of a digit; -1 if the program fails.
#[unsafe(no_mangle)]
pub extern "C" fn score(digit: u32) -> f32 {
    scores().ok().and_then(|scores| scores.get(digit as usize).copied()).unwrap_or(-1.0)
}

fn scores() -> vmfb::Result<Vec<f32>> {
    let engine = Engine::default();
    let module = Module::new(&engine, MODULE.to_vec())?;
    let mut store = Store::new(&engine, ());
    let instance = vmfb::linker()?.instantiate(&mut store, &module)?;
    let classify = instance.typed_function::<(BufferView,), BufferView>(&store, "main")?;
    // The array is at the end of its file: 64 floats.
    let pixels = IMAGE[IMAGE.len() - 256..].chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
    let image: Vec<f32> = pixels.collect();
    classify.call(&mut store, (BufferView::from_f32(&[1, 8, 8], &image)?,))?.to_f32()
}
RUST

cargo build --manifest-path "$place/Cargo.toml" --release --target wasm32-unknown-unknown --target-dir "$place/target"
node -e '
const bytes = require("fs").readFileSync(process.argv[1]);
const expected = JSON.parse(require("fs").readFileSync(process.argv[2]));
WebAssembly.instantiate(bytes, {}).then(({ instance }) => {
  const found = [...Array(10).keys()].map((digit) => instance.exports.score(digit));
  console.log(found.join(" "));
  const wanted = expected.cases.find((entry) => entry.input === "digit_3.npy").scores;
  const near = wanted.every((value, digit) => Math.abs(value - found[digit]) < expected.atol);
  process.exit(near ? 0 : 1);
});' "$place/target/wasm32-unknown-unknown/release/digit_wasm.wasm" samples/digits/expected.json
