//! Access to shared bytes: elements, and bulk operations.
//!
//! Other threads and machine code may read and write the same bytes at the same time, so all access is either by relaxed atomics
//! (`portable`) or by machine instructions that the compiler does not see through (`x86_64`); in both cases such a race gives
//! some mix of old and new bytes and nothing worse.
//!
//! Every function takes raw addresses; the caller has checked the ranges.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
#[path = "bulk/x86_64.rs"]
mod block;
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
#[path = "bulk/portable.rs"]
mod block;

// Compiled for its tests where it is not used.
#[cfg(all(test, target_arch = "x86_64", target_feature = "sse2", not(miri)))]
#[allow(dead_code, reason = "the tests compare the bulk operations; element access is the same everywhere")]
#[path = "bulk/portable.rs"]
mod portable;

pub(crate) use block::{copy, equal, fill, load_1, load_2, load_4, load_8, read_bytes, store_1, store_2, store_4, store_8, write_bytes};

#[cfg(test)]
#[path = "bulk/tests.rs"]
mod tests;
