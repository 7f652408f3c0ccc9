//! ELF images: parsed, laid out and relocated for every architecture, mapped and protected for this one, never entered.

use vmfb_loader_elf::{ARCHITECTURES, ElfFile, Target, select_fat};

/// Larger images are laid out but not placed.
const LARGEST: u64 = 16 << 20;

/// Does everything that loading does before code is entered.
pub fn check(bytes: &[u8]) {
    for architecture in &ARCHITECTURES {
        let Ok(file) = select_fat(bytes, architecture) else { continue };
        for page in [0x1000, 0x1_0000] {
            let Ok(file) = ElfFile::parse(file, Target { architecture, page }) else { continue };
            let layout = file.layout();
            let inside = layout.segments().iter().all(|segment| segment.end() <= layout.start() + layout.size());
            assert!(inside, "a segment lies outside the image");
            if layout.size() <= LARGEST
                && let Ok((image, placed)) = file.relocated_bytes(0x7000_0000)
            {
                assert!(placed.query >= 0x7000_0000 && placed.query < 0x7000_0000 + image.len() as u64);
            }
        }
    }
    let _ = vmfb_loader_elf::check(bytes);
}

/// Whether everything that loading does before code is entered succeeds.
pub fn loads(bytes: &[u8]) -> bool {
    vmfb_loader_elf::check(bytes).is_ok()
}
