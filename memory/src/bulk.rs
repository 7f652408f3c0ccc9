//! Bulk operations on shared bytes.
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
#[path = "bulk/portable.rs"]
mod portable;

pub(crate) use block::{copy, equal, fill, read_bytes, write_bytes};

#[cfg(test)]
#[path = "bulk/tests.rs"]
mod tests;
