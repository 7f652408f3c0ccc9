//! The table of `docs/compatibility.md` is true: it counts the modules of the corpus, each of which has a test.

use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn the_table_of_releases_and_modes_counts_the_corpus() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut counted: BTreeMap<(String, String), usize> = BTreeMap::new();
    for release in std::fs::read_dir(root.join("tests/corpus/modules")).expect("the corpus").flatten() {
        for mode in std::fs::read_dir(release.path()).expect("a release").flatten() {
            let key = (release.file_name().to_string_lossy().into_owned(), mode.file_name().to_string_lossy().into_owned());
            counted.insert(key, std::fs::read_dir(mode.path()).expect("a mode").count());
        }
    }
    let text = std::fs::read_to_string(root.join("docs/compatibility.md")).expect("the page");
    let mut rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
    let header = rows.next().expect("a table");
    let mut stated = BTreeMap::new();
    for row in rows.skip(1).take_while(|row| row.len() == header.len()) {
        for (mode, count) in header.iter().zip(&row).skip(3).filter(|(_, count)| *count != "–") {
            stated.insert((row[0].clone(), mode.clone()), count.parse().expect("a count"));
        }
    }
    assert_eq!(stated, counted);
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}
