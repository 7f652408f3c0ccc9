//! Calling exports with coarse fences: functions that take a fence to wait for and one to signal behind their declared arguments.
//!
//! Programs that were compiled for the `async-external` execution model export such functions, those imported from PyTorch
//! beside a twin that waits by itself. The results can be passed on at once, but their bytes are there only when the signal
//! fence is reached.

use crate::{Fence, FenceStatus};
use std::time::{Duration, Instant};
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind};
use vmfb_bytecode::definition::{ModuleDef, Signature};
use vmfb_vm::{Func, Instance, Ref, Result, ResultExt, StoreCore, Value};

/// Waits are cut into slices of this length, so that interruption and the store's deadline are noticed.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// Behind the name of a function with fences, where a twin without them has the name alone.
const TWIN_SUFFIX: &str = "$async";

/// Whether the export with this name takes fences: it says so, or it is the twin of one that does not. Programs imported from
/// PyTorch do not say so.
pub fn takes_coarse_fences(module: &ModuleDef, export: &str) -> bool {
    let Some(signature) = signature(module, export) else { return false };
    let model = signature.attributes.iter().find(|attribute| attribute.key == "iree.abi.model");
    match (model, export.strip_suffix(TWIN_SUFFIX)) {
        (Some(model), _) => model.value == "coarse-fences",
        (None, Some(twin)) => is_twin(signature, self::signature(module, twin)).unwrap_or(false),
        (None, None) => false,
    }
}

/// Whether a function takes two references, the fences, behind what the other takes, and returns the same.
fn is_twin(with_fences: &Signature, other: Option<&Signature>) -> Option<bool> {
    let parse = |signature: &Signature| signature.calling_convention.parse::<CallingConvention>().ok();
    let (with_fences, other) = (parse(with_fences)?, parse(other?)?);
    let arguments = with_fences.arguments.strip_suffix(&[Item::Plain(Kind::Ref), Item::Plain(Kind::Ref)])?;
    Some(*arguments == *other.arguments && with_fences.results == other.results)
}

fn signature<'m>(module: &'m ModuleDef, export: &str) -> Option<&'m Signature> {
    let export = module.exports.iter().find(|candidate| candidate.name == export)?;
    module.functions.get(export.function as usize)?.signature.as_ref()
}

/// Calls the export with this name and waits until the bytes of its results are there, whether it takes fences or not.
///
/// `arguments` are those that the program declares. If there are two more, they are taken for fences of the caller, who then
/// waits himself.
pub fn call(store: &mut StoreCore, instance: Instance, export: &str, arguments: &[Value]) -> Result<Vec<Value>> {
    call_owned(store, instance, export, arguments.to_vec())
}

/// As [`call`], with arguments that the program may use up: see [`Func::call_owned`].
pub fn call_owned(store: &mut StoreCore, instance: Instance, export: &str, arguments: Vec<Value>) -> Result<Vec<Value>> {
    let (results, signal) = submit_owned(store, instance, export, arguments, None)?;
    wait(store, &signal).context(|| format!("waiting for the results of {export}"))?;
    Ok(results)
}

/// Calls the export with this name without waiting for the bytes of its results: they are there when the fence is reached.
///
/// What the export does waits for `after`. An export that takes no fences is called when that is reached, and waits by itself;
/// so does one that is given fences of the caller.
pub fn submit(
    store: &mut StoreCore,
    instance: Instance,
    export: &str,
    arguments: &[Value],
    after: Option<&Fence>,
) -> Result<(Vec<Value>, Fence)> {
    submit_owned(store, instance, export, arguments.to_vec(), after)
}

/// As [`submit`], with arguments that the program may use up: see [`Func::call_owned`].
pub fn submit_owned(
    store: &mut StoreCore,
    instance: Instance,
    export: &str,
    mut arguments: Vec<Value>,
    after: Option<&Fence>,
) -> Result<(Vec<Value>, Fence)> {
    let function = instance.function(store, export)?;
    let signal = Fence::new();
    if takes_coarse_fences(instance.module(store)?, export) && !given_fences(store, function, &arguments)? {
        let after = after.map_or(Ref::Null, |after| Ref::new(after.clone()));
        arguments.extend([Value::Ref(after), Value::Ref(Ref::new(signal.clone()))]);
        let results = function.call_owned(store, arguments)?;
        return Ok((results, signal));
    }
    if let Some(after) = after {
        wait(store, after).context(|| format!("waiting to call {export}"))?;
    }
    let results = function.call_owned(store, arguments)?;
    signal.signal();
    Ok((results, signal))
}

/// Arguments with the two fences behind them, for an export that takes fences. A null fence to wait for means that there is
/// nothing to wait for.
pub fn with_fences(arguments: &[Value], wait: impl Into<Ref>, signal: &Fence) -> Vec<Value> {
    let mut all = arguments.to_vec();
    all.push(Value::Ref(wait.into()));
    all.push(Value::Ref(Ref::new(signal.clone())));
    all
}

/// Blocks until a fence is reached, or fails; or until the store is interrupted or its deadline passes.
pub fn wait(store: &mut StoreCore, fence: &Fence) -> Result<()> {
    loop {
        match fence.wait(Some(Instant::now() + WAIT_SLICE)) {
            FenceStatus::Reached => return Ok(()),
            FenceStatus::Failed(error) => return Err(error),
            FenceStatus::Pending => store.meter().poll()?,
        }
    }
}

fn given_fences(store: &StoreCore, function: Func, arguments: &[Value]) -> Result<bool> {
    Ok(function.convention(store)?.arguments.len() == arguments.len())
}
