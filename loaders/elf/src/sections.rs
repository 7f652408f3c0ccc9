//! The section header table, where there is one, as a second description of the same image: where it contradicts the program
//! headers, the file is damaged.

use crate::layout::{Layout, Protection, Segment};
use crate::records::{Class, FileHeader, SectionHeader, refused};
use object::elf;
use vmfb_vm::Result;

/// Most section headers that are read; compilers write about 30 with debug information.
const MAX_SECTION_HEADERS: u16 = 4096;

/// Compares all sections that take part in the image with its segments. Files without section headers pass.
pub(crate) fn check(file: &[u8], class: Class, header: &FileHeader, layout: &Layout) -> Result<()> {
    if header.section_headers == 0 && header.section_header_count == 0 {
        return Ok(());
    }
    let size = class.section_header_bytes();
    if usize::from(header.section_header_size) != size {
        return Err(refused("e_shentsize", format!("{} instead of {size}", header.section_header_size)));
    }
    let count = header.section_header_count;
    if count == 0 || count > MAX_SECTION_HEADERS {
        return Err(refused("e_shnum", format!("{count} section headers; 1 to {MAX_SECTION_HEADERS} are taken")));
    }
    let table = usize::try_from(header.section_headers).ok();
    let Some(table) = table.and_then(|offset| file.get(offset..)?.get(..usize::from(count) * size)) else {
        let why = format!("{count} section headers at {:#x} do not lie in the file of {:#x} bytes", header.section_headers, file.len());
        return Err(refused("e_shoff", why));
    };
    let headers = table.chunks_exact(size).filter_map(|bytes| class.section_header(bytes));
    headers.enumerate().try_for_each(|(index, section)| check_section(index, &section, layout))
}

fn check_section(index: usize, section: &SectionHeader, layout: &Layout) -> Result<()> {
    let in_memory = section.flags & elf::SHF_ALLOC.0 != 0 && section.size != 0;
    if !in_memory || elf::SectionType(section.kind) == elf::SHT_NULL {
        return Ok(());
    }
    let field = |name: &str| format!("section header {index}: {name}");
    let empty = elf::SectionType(section.kind) == elf::SHT_NOBITS;
    // Sections without bytes in the file may only pad a page.
    let Some(segment) = layout.segment_of(section.address, if empty { 0 } else { section.size }) else {
        let why = format!("{:#x} bytes (sh_size) at {:#x} lie in no segment", section.size, section.address);
        return Err(refused(&field("sh_addr"), why));
    };
    if !empty && !same_place(section, segment) {
        let why = format!(
            "{:#x} at sh_addr {:#x} contradicts program header {}, whose p_offset is {:#x} at p_vaddr {:#x}",
            section.offset, section.address, segment.index, segment.file.start, segment.address
        );
        return Err(refused(&field("sh_offset"), why));
    }
    let wanted = match (section.flags & elf::SHF_WRITE.0 != 0, section.flags & elf::SHF_EXECINSTR.0 != 0) {
        (true, _) => segment.protection == Protection::ReadWrite,
        (false, true) => segment.protection == Protection::ReadExecute,
        (false, false) => segment.protection != Protection::ReadWrite,
    };
    if !wanted {
        let why = format!("{:#x} contradicts the p_flags of program header {} ({:?})", section.flags, segment.index, segment.protection);
        return Err(refused(&field("sh_flags"), why));
    }
    Ok(())
}

/// Whether the section's bytes are those that the segment puts at its address.
fn same_place(section: &SectionHeader, segment: &Segment) -> bool {
    let offset = section.address - segment.address;
    let in_file = offset.checked_add(section.size).is_some_and(|end| end <= segment.file.len() as u64);
    in_file && segment.file.start as u64 + offset == section.offset
}
