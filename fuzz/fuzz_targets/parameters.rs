//! Fuzz target over `vmfb_fuzz_support::parameters`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vmfb_fuzz_support::parameters::check(bytes));
