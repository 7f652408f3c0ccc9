//! Every seed and every regression input goes through its oracle.

use std::path::{Path, PathBuf};
use vmfb_fuzz_support::TARGETS;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

#[test]
fn seeds_and_regressions_pass_their_oracles() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (target, check) in TARGETS {
        for kind in ["seeds", "regressions"] {
            for path in files(&fuzz.join(kind).join(target)) {
                check(&std::fs::read(&path).expect("a readable seed"));
            }
        }
    }
}

#[test]
fn modules_of_every_release_pass_the_module_oracle() {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/modules");
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
