//! Every seed and every regression input goes through its oracle, and so do seeds with damage.

use std::path::{Path, PathBuf};
use vmfb_fuzz_support::mutate::{Random, mutate};
use vmfb_fuzz_support::{TARGETS, elf, parameters};

/// Damaged copies of each seed.
const MUTANTS: u64 = 50;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    files(&fuzz().join("seeds").join(target)).iter().map(|path| std::fs::read(path).expect("a readable seed")).collect()
}

#[test]
fn seeds_and_regressions_pass_their_oracles() {
    for (target, check) in TARGETS {
        for path in files(&fuzz().join("regressions").join(target)) {
            check(&std::fs::read(&path).expect("a readable input"));
        }
        seeds(target).iter().for_each(|seed| check(seed));
    }
}

#[test]
fn damaged_seeds_pass_their_oracles() {
    for (target, check) in TARGETS {
        let seeds = seeds(target);
        for (number, seed) in (0..).zip(&seeds) {
            for round in 0..MUTANTS {
                let mut random = Random::new(number * MUTANTS + round);
                let mut mutant = seed.clone();
                mutate(&mut mutant, &seeds[random.below(seeds.len())], &mut random);
                check(&mutant);
            }
        }
    }
}

/// Oracles that accept everything they refuse are of use only if the seeds get through.
#[test]
fn seeds_are_what_their_targets_accept() {
    let parameters = seeds("parameters");
    assert!(parameters.len() >= 5 && parameters.iter().all(|seed| parameters::parameters(seed).is_some_and(|count| count > 0)));
    assert!(seeds("elf").iter().any(|seed| !cfg!(target_arch = "x86_64") || elf::loads(seed)));
}

#[test]
fn every_target_can_be_built_and_has_seeds() {
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).expect("the manifest of the targets");
    let sources: Vec<String> =
        files(&fuzz().join("fuzz_targets")).iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    assert_eq!(sources.len(), TARGETS.len());
    for (target, _) in TARGETS {
        assert!(sources.iter().any(|source| source == target), "{target} has no source");
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is not in the manifest");
        assert!(!seeds(target).is_empty(), "{target} has no seeds");
    }
}

#[test]
fn modules_of_every_release_pass_the_module_oracle() {
    let modules = fuzz().join("../tests/corpus/modules");
    let mut checked = 0;
    for release in std::fs::read_dir(modules).expect("the corpus").flatten() {
        for mode in std::fs::read_dir(release.path()).expect("a release").flatten() {
            for path in files(&mode.path()).into_iter().take(2) {
                vmfb_fuzz_support::module::check(&std::fs::read(path).expect("a module"));
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "only {checked} modules were found");
}
