//! Edits of the fields of an x86-64 image, found from its bytes.

use super::{corpus_image, u16_at, u32_at, u64_at};
use std::sync::OnceLock;

pub(crate) const PT_LOAD: u32 = 1;
pub(crate) const PT_DYNAMIC: u32 = 2;
pub(crate) const PT_GNU_RELRO: u32 = 0x6474_E552;
pub(crate) const PT_GNU_STACK: u32 = 0x6474_E551;

pub(crate) const DT_HASH: u64 = 4;
pub(crate) const DT_STRTAB: u64 = 5;
pub(crate) const DT_SYMTAB: u64 = 6;
pub(crate) const DT_RELA: u64 = 7;
pub(crate) const DT_RELASZ: u64 = 8;
pub(crate) const DT_RELAENT: u64 = 9;
pub(crate) const DT_STRSZ: u64 = 10;
pub(crate) const DT_SYMENT: u64 = 11;
pub(crate) const DT_FLAGS: u64 = 30;
pub(crate) const DT_FLAGS_1: u64 = 0x6FFF_FFFB;
pub(crate) const DT_RELACOUNT: u64 = 0x6FFF_FFF9;

/// An image and where its fields stand.
#[derive(Clone)]
pub(crate) struct Edited {
    pub(crate) bytes: Vec<u8>,
}

impl Edited {
    /// An image of the newest release in the corpus: LOAD R, LOAD RX, LOAD RW, DYNAMIC, GNU_RELRO, GNU_STACK.
    pub(crate) fn new() -> Self {
        static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
        Self { bytes: IMAGE.get_or_init(|| corpus_image("3.13.0", "inline-elf", "ew_f32").bytes).clone() }
    }

    /// File offset of the n-th program header of a type.
    pub(crate) fn program_header(&self, kind: u32, n: usize) -> usize {
        let table = u64_at(&self.bytes, 0x20) as usize;
        let headers = (0..usize::from(u16_at(&self.bytes, 0x38))).map(|i| table + i * 56);
        headers.filter(|header| u32_at(&self.bytes, *header) == kind).nth(n).unwrap()
    }

    /// File offset of the entry of the dynamic table with a tag.
    pub(crate) fn dynamic(&self, tag: u64) -> usize {
        let header = self.program_header(PT_DYNAMIC, 0);
        let (start, size) = (u64_at(&self.bytes, header + 8) as usize, u64_at(&self.bytes, header + 32) as usize);
        (start..start + size).step_by(16).find(|entry| u64_at(&self.bytes, *entry) == tag).unwrap()
    }

    /// File offset of a table that the dynamic table names; all of them are in the first segment, whose addresses are offsets.
    pub(crate) fn table(&self, tag: u64) -> usize {
        u64_at(&self.bytes, self.dynamic(tag) + 8) as usize
    }

    pub(crate) fn set64(mut self, at: usize, value: u64) -> Self {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn set32(mut self, at: usize, value: u32) -> Self {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn set16(mut self, at: usize, value: u16) -> Self {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn set8(mut self, at: usize, value: u8) -> Self {
        self.bytes[at] = value;
        self
    }

    pub(crate) fn set_dynamic(self, tag: u64, value: u64) -> Self {
        let at = self.dynamic(tag) + 8;
        self.set64(at, value)
    }
}
