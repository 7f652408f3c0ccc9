//! Runs the digit classifier on one image: `cargo run --example classify`.

use vmfb::{BufferView, Engine, Module, Store};

fn main() -> vmfb::Result<()> {
    let engine = Engine::default();
    let module = Module::from_mapped(&engine, "samples/digits/digits_vmvx.vmfb")?;
    let mut store = Store::new(&engine, ());
    let instance = vmfb::linker()?.instantiate(&mut store, &module)?;
    let classify = instance.typed_function::<(BufferView,), BufferView>(&store, "main")?;

    // A vertical stroke.
    let image: Vec<f32> = (0..64).map(|pixel| if matches!(pixel % 8, 3 | 4) { 16.0 } else { 0.0 }).collect();
    let scores = classify.call(&mut store, (BufferView::from_f32(&[1, 8, 8], &image)?,))?.to_f32()?;
    for (digit, score) in scores.iter().enumerate() {
        println!("{digit}: {score:.4}");
    }
    Ok(())
}
