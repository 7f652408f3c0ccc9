//! The seeds of `limits` again, and damaged ones, where the allocator of the process counts: in a process of their own.

use std::path::Path;
use vmfb_fuzz_support::limits;
use vmfb_fuzz_support::mutate::{Random, mutate};
use vmfb_testing_allocator::{Counting, is_counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Damaged copies of each seed.
const MUTANTS: u64 = 20;

#[test]
fn programs_that_hoard_stay_within_their_limits() {
    assert!(is_counting());
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seeds = Vec::new();
    for folder in ["seeds/limits", "regressions/limits"] {
        let files = std::fs::read_dir(fuzz.join(folder)).into_iter().flatten().flatten();
        seeds.extend(files.map(|file| std::fs::read(file.path()).expect("a readable seed")));
    }
    assert!(seeds.len() >= 8);
    for (number, seed) in (0..).zip(&seeds) {
        limits::check(seed);
        for round in 0..MUTANTS {
            let mut random = Random::new(number * MUTANTS + round);
            let mut mutant = seed.clone();
            mutate(&mut mutant, &seeds[random.below(seeds.len())], &mut random);
            limits::check(&mutant);
        }
    }
}
