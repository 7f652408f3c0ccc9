//! Fuzz target over `vmfb_fuzz_support::limits`, in a process whose allocator counts.
#![no_main]

use vmfb_testing_allocator::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vmfb_fuzz_support::limits::check(bytes));
