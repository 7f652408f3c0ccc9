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
    "testing/allocator/src/counting",
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
    for (name, count) in unsafe_counts() {
        let allowed = UNSAFE.iter().any(|prefix| name.starts_with(prefix)) || is_test(&name);
        assert!(allowed, "{name} contains unsafe code in {count} places");
    }
}

/// The table in `docs/security.md` names every file with unsafe code, and how many places it has.
#[test]
fn the_table_of_unsafe_code_is_true() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).expect("the page about security");
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`').to_owned();
        let count = cells.next()?.parse::<usize>().ok()?;
        let invariant = cells.next()?.trim_end_matches(['|', ' ']);
        assert!(!invariant.is_empty(), "{name} has no invariant");
        Some((name, count)).filter(|(name, _)| name.ends_with(".rs"))
    };
    let table: BTreeMap<_, _> = page.lines().filter_map(row).collect();
    let found: BTreeMap<_, _> = unsafe_counts().into_iter().filter(|(name, _)| !is_test(name)).collect();
    assert!(found.len() > 10, "only {} files with unsafe code were found", found.len());
    for (name, count) in &found {
        assert_eq!(table.get(name), Some(count), "the row of {name} in docs/security.md; the file has {count} unsafe places");
    }
    let gone: Vec<_> = table.keys().filter(|name| !found.contains_key(*name)).collect();
    assert!(gone.is_empty(), "docs/security.md has rows for files without unsafe code: {gone:?}");
}

#[test]
fn text_is_no_code() {
    let code = "let a = \"unsafe { \\\" unsafe\"; // unsafe fn\nlet b = ('\"', unsafe { c }); /* unsafe */ unsafe_code";
    assert_eq!(unsafe_places(code), 1);
    assert_eq!(unsafe_places("unsafe impl A {}\npub unsafe fn b() { unsafe { c() } }\n/// unsafe\n"), 3);
    assert_eq!(unsafe_places("type F = unsafe extern \"C\" fn();\nr#\"unsafe\"#;\n'a: loop { unsafe { d } }"), 2);
}

/// Files and how often `unsafe` stands in their code: blocks, functions, types of functions, implementations.
fn unsafe_counts() -> Vec<(String, usize)> {
    let mut files = Vec::new();
    rust_files(root(), &mut files);
    assert!(files.len() > 50);
    let count = |path: PathBuf| {
        let name = path.strip_prefix(root()).expect("in the tree").to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(&path).expect("a readable file");
        Some((name, unsafe_places(&text))).filter(|(_, count)| *count > 0)
    };
    files.into_iter().filter_map(count).collect()
}

fn is_test(name: &str) -> bool {
    name.contains("tests")
}

/// How often the word stands in the code, not in comments and texts.
fn unsafe_places(text: &str) -> usize {
    let mut places = 0;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let token = token_length(rest, first);
        let (token, behind) = rest.split_at(token);
        places += usize::from(token == "unsafe");
        rest = behind;
    }
    places
}

/// Length of the comment, text, word or other character that begins here.
fn token_length(rest: &str, first: char) -> usize {
    let until = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    let raw = rest.trim_start_matches(['b', 'c']);
    let hashes = raw.strip_prefix('r').map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
    let prefix = rest.len() - raw.len();
    match first {
        _ if rest.starts_with("//") => until("\n", 0),
        _ if rest.starts_with("/*") => until("*/", 2),
        _ if prefix <= 1 && raw.starts_with('r') && raw[1 + hashes..].starts_with('"') => {
            until(&format!("\"{}", "#".repeat(hashes)), prefix + hashes + 2)
        }
        '"' => text_length(rest),
        // A character, not a lifetime.
        '\'' if rest.starts_with("'\\") => until("'", 3),
        '\'' if rest[1..].chars().nth(1) == Some('\'') => 2 + rest[1..].chars().next().map_or(0, char::len_utf8),
        _ if first.is_alphanumeric() || first == '_' => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
        _ => first.len_utf8(),
    }
}

/// Length of a text in quotes.
fn text_length(rest: &str) -> usize {
    let mut escaped = true;
    for (at, character) in rest.char_indices() {
        match character {
            '"' if !escaped => return at + 1,
            '\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    rest.len()
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
