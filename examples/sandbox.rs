//! Runs a module that may be hostile: no machine code, bounded fuel, memory and time. `cargo run --example sandbox`.

use std::time::{Duration, Instant};
use vmfb::{BufferView, Config, Engine, FuelMetering, Interruption, Module, NativeCode, Store};

fn main() -> vmfb::Result<()> {
    let config = Config::new().native_code(NativeCode::Deny).fuel(FuelMetering::On).interruption(Interruption::On).memory_limit(64 << 20);
    let engine = Engine::new(config);
    let module = Module::from_file(&engine, "samples/digits/digits_vmvx.vmfb")?;
    let mut store = Store::new(&engine, ());
    store.set_fuel(10_000_000);
    store.set_deadline(Some(Instant::now() + Duration::from_secs(5)));
    let instance = vmfb::linker()?.instantiate(&mut store, &module)?;
    let classify = instance.typed_function::<(BufferView,), BufferView>(&store, "main")?;
    let scores = classify.call(&mut store, (BufferView::from_f32(&[1, 8, 8], &[0.0; 64])?,))?;
    println!("{:?}, {:?} units of fuel left", scores.to_f32()?, store.fuel());
    Ok(())
}
