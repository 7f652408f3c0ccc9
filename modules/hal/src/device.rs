//! The local device: `device.*`, `devices.*` and `ex.shared_device`.

use crate::State;
use crate::batch::Threads;
use std::sync::Arc;
use vmfb_hal::{ExecutableLoader, Name, processor};
use vmfb_vm::{Call, Engine, Error, Ref, RefObject, Result};

/// `!hal.device`: this process.
pub(crate) struct Device {
    pub(crate) loaders: Arc<[Arc<dyn ExecutableLoader>]>,
    pub(crate) engine: Engine,
    pub(crate) threads: Threads,
}

impl RefObject for Device {
    const TYPE_NAME: &'static str = "hal.device";
}

/// `!hal.allocator`: memory of a device. All memory is the host's.
pub(crate) struct Allocator;

impl RefObject for Allocator {
    const TYPE_NAME: &'static str = "hal.allocator";
}

/// Names that programs know the device by.
const IDENTIFIERS: [&str; 3] = ["local", "local-sync", "local-task"];

impl Device {
    pub(crate) fn new(loaders: Arc<[Arc<dyn ExecutableLoader>]>, engine: Engine) -> Self {
        Self { loaders, threads: Threads::of(&engine), engine }
    }

    /// The answer to a query; `None` for what is not known.
    fn query(&self, category: &str, key: &str) -> Option<i64> {
        match (category, key) {
            ("hal.device.id", pattern) => Some(IDENTIFIERS.iter().any(|id| matches(pattern, id)).into()),
            ("hal.executable.format", format) => Some(self.loaders.iter().any(|loader| loader.query_support(format)).into()),
            ("hal.device", "concurrency") => Some(1),
            ("hal.dispatch", "concurrency") => Some(self.threads.count() as i64),
            ("hal.cpu", feature) => processor::query(feature).map(i64::from),
            _ => None,
        }
    }
}

impl State {
    /// Checks that an argument is this store's device.
    pub(crate) fn check_device(&self, argument: &Ref) -> Result<()> {
        let device: &Device = argument.object("the device")?;
        if std::ptr::eq(device, &*self.device) {
            return Ok(());
        }
        Err(Error::invalid("the device belongs to another program"))
    }
}

/// `v_r`: the device, for programs that know of one only.
pub(crate) fn shared(call: &mut Call<'_, State>) -> Result<()> {
    call.results.push_reference(call.state.device.clone());
    Ok(())
}

/// `v_i`: the number of devices.
pub(crate) fn count(call: &mut Call<'_, State>) -> Result<()> {
    call.results.push_i32(1);
    Ok(())
}

/// `i_r`: the device with this index, null if there is none.
pub(crate) fn get(call: &mut Call<'_, State>) -> Result<()> {
    match call.arguments.i32()? {
        0 => call.results.push_reference(call.state.device.clone()),
        _ => call.results.push_reference(Ref::Null),
    }
    Ok(())
}

/// `r_r`: the allocator of a device.
pub(crate) fn allocator(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    call.results.push_reference(call.state.allocator.clone());
    Ok(())
}

/// `rrr_iI`: whether there is an answer to a query, and the answer.
pub(crate) fn query(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    let category = Name::read(call.arguments.buffer("the category of a device query")?);
    let key = Name::read(call.arguments.buffer("the key of a device query")?);
    let answer = category.zip(key).and_then(|(category, key)| call.state.device.query(&category, &key));
    call.results.push_i32(answer.is_some().into());
    call.results.push_i64(answer.unwrap_or(0));
    Ok(())
}

/// Whether a name fits a pattern in which `*` stands for any text and `?` for one character.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to go on if the text behind the last star does not fit: (behind the star, first byte the star did not take).
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                retry = Some((p, n));
            }
            Some(byte) if *byte == b'?' || *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((behind, taken)) = retry else { return false };
                p = behind;
                n = taken + 1;
                retry = Some((behind, n));
            }
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("local*", "local", true),
            ("local*", "local-task", true),
            ("*", "", true),
            ("", "", true),
            ("", "local", false),
            ("l?cal", "local", true),
            ("local?", "local", false),
            ("*a*l", "local", true),
            ("*-sync", "local-sync-sync", true),
            ("cuda*", "local", false),
            ("local", "local-task", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern:?} {name:?}");
        }
    }
}
