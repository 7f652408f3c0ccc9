//! Offers a Rust function to modules. `cargo run --example host_function`.

use vmfb::{Caller, Engine, Linker, Module, Store};

fn main() -> vmfb::Result<()> {
    let engine = Engine::default();
    let mut linker = Linker::new();
    // The calling convention `0f_f` follows from the types.
    linker.func_wrap("math", "half", |x: f32| Ok(x / 2.0))?;
    // Through a caller the function reaches the data of the store that it is called in.
    linker.func_wrap("log", "count", |mut caller: Caller<'_, u32>, by: i32| {
        if let Some(count) = caller.data_mut() {
            *count += by as u32;
        }
        Ok(())
    })?;
    let module = Module::from_file(&engine, "samples/hello/add.vmfb")?;
    let mut store = Store::new(&engine, 0_u32);
    let instance = linker.instantiate(&mut store, &module)?;
    let add = instance.typed_function::<(i32, i32), i32>(&store, "add")?;
    println!("40 + 2 = {}, the count is {}", add.call(&mut store, (40, 2))?, store.data());
    Ok(())
}
