//! `executable.query_support`, `executable.load` and `executable.lookup.function`.

use crate::lookup::LookupCache;
use smallvec::SmallVec;
use std::sync::Arc;
use vmfb_hal::{ExecutableLoader, ExecutableParameters, ExecutableReference, Name, load_executable, printable};
use vmfb_memory::Charge;
use vmfb_vm::{Buffer, Engine, Error, Handle, Meter, Ref, Result, bulk};

/// Constants of a whole executable; more are allocated.
type Constants = SmallVec<[u32; 16]>;

/// Whether any loader claims the format.
pub(crate) fn query_support(loaders: &[Arc<dyn ExecutableLoader>], format: &Buffer) -> bool {
    Name::read(format).is_some_and(|format| loaders.iter().any(|loader| loader.query_support(&format)))
}

/// Loads an executable with the first loader that takes it.
pub(crate) fn load(
    loaders: &[Arc<dyn ExecutableLoader>],
    engine: &Engine,
    meter: &mut Meter,
    format: &Buffer,
    data: &Buffer,
    constants: &Ref,
) -> Result<Handle<ExecutableReference>> {
    let Some(name) = Name::read(format) else {
        return Err(Error::not_found(format!("no loader takes the executable format \"{}\", which is no name", printable(format))));
    };
    let (constants, _charge) = read_constants(meter, constants)?;
    let _entered = tracing::debug_span!("load", format = &*name, bytes = data.len(), constants = constants.len()).entered();
    // Every loader reads all of it.
    meter.charge_bytes(data.len() as u64)?;
    let account = meter.account();
    let parameters = ExecutableParameters { format: &name, data: data.span(), constants: &constants, engine, account };
    let executable = load_executable(loaders, &parameters)?;
    tracing::debug!(exports = executable.export_count(), "executable loaded");
    Handle::charged(ExecutableReference(executable), 0, account)
}

/// The 32-bit constants in a buffer, none for null, and what pays for them while an executable is loaded.
fn read_constants(meter: &mut Meter, constants: &Ref) -> Result<(Constants, Charge)> {
    if constants.is_null() {
        return Ok((Constants::new(), meter.account().hold(0)?));
    }
    let buffer = constants.buffer("the constants of an executable")?;
    let length = buffer.len();
    if !length.is_multiple_of(4) {
        return Err(Error::invalid(format!("the constants of an executable have {length} bytes, wanted a multiple of 4")));
    }
    meter.charge_bytes(length as u64)?;
    let charge = meter.account().hold(length as u64)?;
    let mut words = Constants::new();
    words.try_reserve_exact(length / 4).map_err(|_| Error::exhausted(format!("no memory for {length} bytes of constants")))?;
    // Every word lies in the buffer.
    bulk::in_pieces(meter, length, |start, part| {
        words.extend((start..start + part).step_by(4).filter_map(|offset| buffer.span().load_u32(offset)));
        Ok(())
    })?;
    Ok((words, charge))
}

/// The number by which dispatches name a function of an executable.
pub(crate) fn lookup_function(cache: &mut LookupCache, executable: &Ref, name: &Buffer) -> Result<i64> {
    let key: &ExecutableReference = executable.object("the executable")?;
    if let Some(function) = cache.get(executable, key, name) {
        return Ok(function);
    }
    let found = Name::read(name).and_then(|name| key.0.lookup(&name));
    let Some(function) = found.and_then(|export| i64::try_from(export).ok()) else {
        return Err(not_found(key, name));
    };
    cache.insert(executable, key, name, function);
    Ok(function)
}

/// Names the function that is not there, and some that are.
#[cold]
fn not_found(executable: &ExecutableReference, name: &Buffer) -> Error {
    const SHOWN: usize = 8;
    let count = executable.0.export_count();
    let export = |export| executable.0.export(export)?.name.map(|name| name.escape_debug().to_string());
    let names: Vec<String> = (0..count.min(SHOWN)).filter_map(export).collect();
    let names = match (names.is_empty(), count > SHOWN) {
        (true, _) => format!("its {count} exports have no names"),
        (false, true) => format!("among its {count} exports are {}", names.join(", ")),
        (false, false) => format!("it has {}", names.join(", ")),
    };
    Error::not_found(format!("the executable has no function \"{}\"; {names}", printable(name)))
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
