//! Fuzz target over `vmfb_fuzz_support::npy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vmfb_fuzz_support::npy::check(bytes));
