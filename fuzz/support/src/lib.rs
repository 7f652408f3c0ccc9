//! Oracles of the fuzz targets: each takes arbitrary bytes, and returns unless something is wrong.
//!
//! `fuzz_targets/NAME.rs` calls `NAME::check`; `tests/replay.rs` calls the same for every seed and regression.
#![forbid(unsafe_code)]

pub mod bytecode;
pub mod cli_values;
pub mod differential;
pub mod dispatch_shim;
pub mod elf;
mod hoard;
pub mod limits;
pub mod module;
pub mod mutate;
pub mod npy;
pub mod parameters;

// Programs that use every op: what the tests of the runtime generate them with.
#[path = "../../../vm/tests/all/generate.rs"]
#[allow(missing_docs, unreachable_pub)]
mod generate;
#[path = "../../../vm/tests/all/raw.rs"]
#[allow(missing_docs, unreachable_pub, dead_code)]
mod raw;
#[path = "../../../vm/tests/all/support.rs"]
#[allow(missing_docs, unreachable_pub, dead_code)]
mod support;

/// What a target does with an input: it returns unless something is wrong.
pub type Oracle = fn(&[u8]);

/// Every target by name.
pub const TARGETS: &[(&str, Oracle)] = &[
    ("module", module::check),
    ("bytecode", bytecode::check),
    ("dispatch_shim", dispatch_shim::check),
    ("elf", elf::check),
    ("npy", npy::check),
    ("cli_values", cli_values::check),
    ("parameters", parameters::check),
    ("differential", differential::check),
    ("limits", limits::check),
];
