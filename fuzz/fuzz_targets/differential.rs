//! Fuzz target over `vmfb_fuzz_support::differential`.
#![no_main]

use vmfb_fuzz_support::differential;

libfuzzer_sys::fuzz_target!(
    init: {
        let expected = cfg!(target_arch = "x86_64") && !cfg!(debug_assertions);
        assert!(differential::compares_cores() || !expected, "this build has no threaded core: nothing would be compared");
    },
    |bytes: &[u8]| differential::check(bytes)
);
