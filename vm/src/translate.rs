//! Verified bytecode of any age to the internal form.
//!
//! [`lower`] makes blocks of ops, one by one; what the versions differ in is decided there: MOVE bits, units of fills, block markers.
//! [`coalesce`] and [`fuse`] make fewer ops of them, and [`emit`] lays them out. Limits are not changed by that: fuel is counted in
//! instructions of the bytecode.

mod accesses;
mod coalesce;
mod control;
mod emit;
mod fuse;
mod graph;
mod liveness;
mod lower;

use crate::Result;
use crate::body::Body;
use crate::engine::{Config, Dispatch};
use liveness::Liveness;
use std::ops::Range;
use vmfb_bytecode::verify::{FunctionInfo, VerifiedModule};

/// Translates one function. Its ordinal must be in range.
pub(crate) fn translate(module: &VerifiedModule, function: u32, config: &Config) -> Result<Body> {
    let mut graph = lower::lower(module, function, config)?;
    if config.dispatch == Dispatch::Reference {
        let zeroed = zeroed(module.functions().get(function as usize), graph.value_slots, None);
        return emit::emit(graph, zeroed, config);
    }
    let liveness = Liveness::of(&graph);
    let zeroed = zeroed(module.functions().get(function as usize), graph.value_slots, liveness.as_ref());
    if let Some(liveness) = &liveness {
        coalesce::coalesce(&mut graph, liveness);
    }
    fuse::fuse(&mut graph, liveness.as_ref());
    emit::emit(graph, zeroed, config)
}

/// The slots that are no arguments and may be read before they are written.
fn zeroed(info: Option<&FunctionInfo>, slots: usize, liveness: Option<&Liveness>) -> Vec<Range<usize>> {
    let mut wanted: Vec<bool> = match liveness.map(|liveness| liveness.at_start(0)) {
        Some(live) => (0..slots).map(|slot| live.contains(slot as u16)).collect(),
        None => vec![true; slots],
    };
    if let Some(info) = info {
        let kinds = info.convention.plain_arguments().unwrap_or_default();
        for (kind, slot) in kinds.iter().zip(&info.placement.slots) {
            let start = usize::from(*slot);
            if let Some(given) = wanted.get_mut(start..start + usize::from(kind.value_slots())) {
                given.fill(false);
            }
        }
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for slot in (0..slots).filter(|slot| wanted[*slot]) {
        match ranges.last_mut() {
            Some(range) if range.end == slot => range.end += 1,
            _ => ranges.push(slot..slot + 1),
        }
    }
    ranges
}
