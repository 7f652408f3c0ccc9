//! Fuzz target over `vmfb_fuzz_support::dispatch_shim`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| vmfb_fuzz_support::dispatch_shim::check(bytes));
