//! Test support: the ELF images inside the conformance corpus.

#![allow(dead_code)]

pub(crate) mod edit;

use std::path::{Path, PathBuf};

/// An ELF image from a module of the corpus.
pub(crate) struct CorpusImage {
    pub(crate) program: String,
    pub(crate) release: String,
    pub(crate) mode: String,
    pub(crate) library_version: Option<u64>,
    pub(crate) bytes: Vec<u8>,
}

impl CorpusImage {
    pub(crate) fn label(&self) -> String {
        format!("{} {} {}", self.release, self.mode, self.program)
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

/// All images whose module the filter takes: release, mode, program.
pub(crate) fn corpus_images(filter: impl Fn(&str, &str, &str) -> bool) -> Vec<CorpusImage> {
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(corpus().join("index.json")).unwrap()).unwrap();
    let mut images = Vec::new();
    for module in index["modules"].as_array().unwrap() {
        let text = |key: &str| module[key].as_str().unwrap().to_owned();
        let (release, mode, program) = (text("version"), text("mode"), text("program"));
        if !filter(&release, &mode, &program) {
            continue;
        }
        let file = std::fs::read(corpus().join(text("file"))).unwrap();
        for data in module["rodata"].as_array().unwrap().iter().filter(|data| data["where"] == "outside") {
            let at = data["at"].as_u64().unwrap() as usize;
            let bytes = &file[at..at + data["bytes"].as_u64().unwrap() as usize];
            if bytes.starts_with(b"\x7FELF") {
                let library_version = module["library_version"].as_u64();
                let (program, release, mode) = (program.clone(), release.clone(), mode.clone());
                images.push(CorpusImage { program, release, mode, library_version, bytes: bytes.to_vec() });
            }
        }
    }
    images
}

/// The one image of this module.
pub(crate) fn corpus_image(release: &str, mode: &str, program: &str) -> CorpusImage {
    let mut images = corpus_images(|r, m, p| (r, m, p) == (release, mode, program));
    assert_eq!(images.len(), 1);
    images.remove(0)
}

/// A 64-bit little-endian word.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// A 32-bit little-endian word.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// A 16-bit little-endian word.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}
