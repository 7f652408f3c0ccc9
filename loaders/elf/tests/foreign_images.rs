//! Images for machines that this one is not: relocated in plain memory, compared word by word, their tables read.

mod support;

use support::{corpus_images, u16_at, u32_at, u64_at};
use vmfb_hal::abi::{AddressSpace, LibraryTables, PointerWidth, Version, read_library};
use vmfb_loader_elf::{Architecture, ElfFile, Layout, Protection, Target};

const PAIRS: [(&str, &[u8], u32); 3] = [
    ("arm_32", include_bytes!("data/pair_arm_32.so"), 23),
    ("x86_32", include_bytes!("data/pair_x86_32.so"), 8),
    ("riscv_32", include_bytes!("data/pair_riscv_32.so"), 3),
];

fn target(name: &str) -> Target {
    Target { architecture: Architecture::named(name).unwrap(), page: 4096 }
}

/// An image in plain memory, as if it stood at `base`.
struct Relocated {
    base: u64,
    bytes: Vec<u8>,
    layout: Layout,
}

impl Relocated {
    fn new(bytes: &[u8], architecture: &str, base: u64) -> Self {
        let file = ElfFile::parse(bytes, target(architecture)).unwrap();
        Self { base, bytes: file.relocated_bytes(base).unwrap().0, layout: file.layout().clone() }
    }

    /// The library struct is found by trying every word: the query function cannot be called.
    fn library(&self, width: PointerWidth, versions: &[Version]) -> LibraryTables {
        let addresses = (self.base..self.base + self.bytes.len() as u64).step_by(width.bytes() as usize);
        let mut found = addresses.flat_map(|address| versions.iter().map(move |version| (address, *version)));
        found
            .find_map(|(address, version)| read_library(self, width, address, version).ok().filter(|tables| !tables.exports.is_empty()))
            .unwrap()
    }
}

impl AddressSpace for Relocated {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let range =
            address.checked_sub(self.base).and_then(|offset| self.layout.image_range(offset + self.layout.start(), target.len() as u64));
        range.map(|range| target.copy_from_slice(&self.bytes[range])).is_some()
    }

    fn is_executable(&self, address: u64) -> bool {
        let segment = address.checked_sub(self.base).and_then(|offset| self.layout.segment_of(offset + self.layout.start(), 1));
        segment.is_some_and(|segment| segment.protection == Protection::ReadExecute)
    }

    fn describe(&self) -> &str {
        "the relocated image"
    }
}

/// Segments and relative relocations of a 32-bit file once more, by hand: `REL` tables keep the addend in the word.
fn relocate_by_hand(bytes: &[u8], relative: u32, base: u32, size: usize) -> Vec<u8> {
    let mut image = vec![0; size];
    let mut dynamic = 0..0;
    for header in (0..usize::from(u16_at(bytes, 0x2C))).map(|i| u32_at(bytes, 0x1C) as usize + i * 32) {
        let (offset, address) = (u32_at(bytes, header + 4) as usize, u32_at(bytes, header + 8) as usize);
        let length = u32_at(bytes, header + 16) as usize;
        match u32_at(bytes, header) {
            1 => image[address..address + length].copy_from_slice(&bytes[offset..offset + length]),
            2 => dynamic = offset..offset + length,
            _ => {}
        }
    }
    let entries: Vec<(u32, u32)> = bytes[dynamic].chunks(8).map(|entry| (u32_at(entry, 0), u32_at(entry, 4))).collect();
    let tag = |tag: u32| entries.iter().find(|entry| entry.0 == tag).map(|entry| entry.1 as usize);
    let (table, length, entry_length) = match tag(7) {
        Some(rela) => (rela, tag(8).unwrap(), 12),
        None => (tag(17).unwrap(), tag(18).unwrap(), 8),
    };
    assert!(length >= 9 * entry_length);
    for entry in image[table..table + length].to_vec().chunks(entry_length) {
        assert_eq!(u32_at(entry, 4), relative);
        let place = u32_at(entry, 0) as usize;
        let addend = if entry_length == 12 { u32_at(entry, 8) } else { u32_at(&image, place) };
        image[place..place + 4].copy_from_slice(&(base + addend).to_le_bytes());
    }
    image
}

#[test]
fn images_of_32_bit_machines_are_relocated() {
    for base in [0x1000_0000, 0x8000_0000, 0xFFF0_0000] {
        for (architecture, bytes, relative) in PAIRS {
            let relocated = Relocated::new(bytes, architecture, base.into());
            let by_hand = relocate_by_hand(bytes, relative, base, relocated.bytes.len());
            assert!(relocated.bytes == by_hand, "{architecture} at {base:#x}");
        }
    }
}

#[test]
fn tables_of_32_bit_machines_are_read() {
    for (architecture, bytes, _) in PAIRS {
        let library = Relocated::new(bytes, architecture, 0x4000_0000).library(PointerWidth::Bits32, &[Version::V0_6]);
        let exports: Vec<_> = library.exports.iter().map(|export| (export.name.as_deref().unwrap(), export.attributes)).collect();
        assert_eq!(exports.len(), 2, "{architecture}");
        // The second kernel takes the extents of its two inputs, 64-bit indices, as two constants each.
        let counts: Vec<_> = exports.iter().map(|(_, attributes)| (attributes.constant_count, attributes.binding_count)).collect();
        assert_eq!(counts, [(Some(0), Some(3)), (Some(4), Some(3))], "{architecture}");
        assert!(exports[0].0.starts_with("add_dispatch_0") && exports[1].0.starts_with("scale_dispatch_0"), "{architecture}: {exports:?}");
    }
}

#[test]
fn tables_of_64_bit_foreign_machines_are_read() {
    let images = corpus_images(|_, mode, program| program == "ew_f32" && ["inline-elf-aarch64", "inline-elf-riscv64"].contains(&mode));
    assert!(images.len() >= 6, "{}", images.len());
    for image in images {
        let architecture = if image.mode.ends_with("aarch64") { "arm_64" } else { "riscv_64" };
        let relocated = Relocated::new(&image.bytes, architecture, 0x5555_0000_0000);
        let version = match image.release.as_str() {
            "20230524.529" => Version::V0_3,
            "2.9.0" => Version::V0_5,
            "3.13.0" => Version::V0_6,
            release => panic!("{release}"),
        };
        let library = relocated.library(PointerWidth::Bits64, &[version]);
        assert_eq!(library.version, version);
        // add, mix, larger, curve: one kernel each, add with three buffers.
        assert_eq!(library.exports.len(), 4, "{}", image.label());
        let expected = (version >= Version::V0_5).then_some(3);
        assert_eq!(library.exports[0].attributes.binding_count, expected, "{}", image.label());
    }
}

/// Every relocation type of every architecture, in a file made for it: values by hand from the processor supplements.
#[test]
fn symbol_relocations_follow_their_formulas() {
    // x86-64: the first relocation becomes one with the symbol at 0x26a0 (the query function) and an addend.
    let image = support::edit::Edited::new();
    let rela = image.table(support::edit::DT_RELA);
    let symbols = image.table(support::edit::DT_SYMTAB);
    let value = u64_at(&image.bytes, symbols + 24 + 8);
    let base = 0x1234_5000u64;
    let apply = |kind: u64, addend: u64| {
        let edited = image.clone().set_dynamic(support::edit::DT_RELACOUNT, 0).set64(rela + 8, 1 << 32 | kind).set64(rela + 16, addend);
        let place = u64_at(&edited.bytes, rela);
        let file = ElfFile::parse(&edited.bytes, target("x86_64")).unwrap();
        file.relocated_bytes(base).map(|(bytes, _)| (u64_at(&bytes, place as usize), base + place))
    };
    assert_eq!(apply(1, 0x10).unwrap().0, base + value + 0x10);
    assert_eq!(apply(6, 0x10).unwrap().0, base + value);
    assert_eq!(apply(7, 0).unwrap().0, base + value);
    let (word, place) = apply(2, 4).unwrap();
    assert_eq!(word as u32, (base + value + 4).wrapping_sub(place) as u32);
    assert_eq!(apply(10, 4).unwrap().0 as u32, (base + value + 4) as u32);
    assert_eq!(apply(11, 4).unwrap().0 as u32, (base + value + 4) as u32);
    assert!(apply(5, 0).is_err() && apply(3, 0).is_err());
    // An address that does not fit in 32 bits, and a symbol that a relocation needs.
    let wide = image.clone().set_dynamic(support::edit::DT_RELACOUNT, 0).set64(rela + 8, 1 << 32 | 10).set64(rela + 16, 0);
    let error = ElfFile::parse(&wide.bytes, target("x86_64")).unwrap().relocated_bytes(1 << 40).unwrap_err();
    assert!(error.message().contains("does not fit in 32 bits"), "{error}");
    let nameless = image.clone().set_dynamic(support::edit::DT_RELACOUNT, 0).set64(rela + 8, 1);
    let error = ElfFile::parse(&nameless.bytes, target("x86_64")).unwrap().relocated_bytes(base).unwrap_err();
    assert!(error.message().contains("needs a symbol"), "{error}");
}
