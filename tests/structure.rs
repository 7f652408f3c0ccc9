//! The rules of the tree: dependencies point one way, `unsafe` stays at its addresses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Each crate and the crates of this workspace that it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("memory", &[]),
    ("bytecode", &["memory"]),
    ("vm", &["memory", "bytecode"]),
    ("hal", &["memory", "bytecode", "vm"]),
    ("modules/hal_inline", &["memory", "vm", "hal"]),
    ("modules/hal_loader", &["memory", "vm", "hal"]),
    ("modules/hal", &["memory", "vm", "hal"]),
    ("modules/check", &["memory", "vm", "hal"]),
    ("modules/io_parameters", &["memory", "vm", "hal"]),
    ("modules/vmvx", &["memory", "vm"]),
    ("loaders/elf", &["memory", "vm", "hal"]),
    ("loaders/native", &["memory", "vm", "hal"]),
    ("loaders/vmvx", &["memory", "bytecode", "vm", "hal", "module-vmvx"]),
];

/// Files that may contain `unsafe`.
const UNSAFE: &[&str] = &[
    "memory/src/",
    "hal/src/abi",
    "loaders/elf/src/image",
    "loaders/elf/src/call",
    "loaders/elf/src/sys",
    "loaders/native/src/library",
    "modules/vmvx/src/simd/",
    "vm/src/interpreter/threaded",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn dependencies_point_one_way() {
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let mut checked = 0;
    for (folder, allowed) in &allowed {
        let Ok(manifest) = std::fs::read_to_string(root().join(folder).join("Cargo.toml")) else { continue };
        let section = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let section = section.split("\n[").next().unwrap_or_default();
        for line in section.lines().filter_map(|line| line.trim().strip_prefix("vmfb-")) {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            assert!(allowed.contains(&name), "{folder} must not depend on vmfb-{name}");
        }
        checked += 1;
    }
    assert!(checked >= 10, "only {checked} crates were found");
}

#[test]
fn unsafe_code_stays_at_its_addresses() {
    let mut files = Vec::new();
    rust_files(root(), &mut files);
    assert!(files.len() > 50);
    for path in files {
        let name = path.strip_prefix(root()).expect("in the tree").to_string_lossy().replace('\\', "/");
        let allowed = UNSAFE.iter().any(|prefix| name.starts_with(prefix)) || name.contains("tests");
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let found = text.lines().map(|line| line.split("//").next().unwrap_or_default()).position(has_unsafe);
        assert!(allowed || found.is_none(), "{name}:{} contains unsafe code", found.unwrap_or_default() + 1);
    }
}

fn has_unsafe(line: &str) -> bool {
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait"].iter().any(|form| line.contains(form)) && !line.contains('"')
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                rust_files(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The table in `docs/security.md` names tests that exist: `file`: `test`, `test`; `file`: …
#[test]
fn the_tests_that_the_security_page_names_exist() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).expect("the page");
    let (_, section) = page.split_once("\n## Known weaknesses").expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what happens"));
    let mut named = 0;
    for row in rows {
        let tests = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        assert!(tests.starts_with('`'), "a row names no tests: {row}");
        for group in tests.split("; ") {
            let (file, tests) = group.split_once(": ").unwrap_or_else(|| panic!("{group:?} names no test"));
            let file = file.trim_matches('`');
            let text = std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            for test in tests.split(", ").map(|test| test.trim_matches('`')) {
                // Some tests are rows of a table in a macro.
                let exists = text.contains(&format!("fn {test}(")) || text.contains(&format!("\n    {test}: "));
                assert!(exists, "{file} has no test {test}");
                named += 1;
            }
        }
    }
    assert!(named >= 80, "only {named} tests are named");
}
