//! A look at an ELF shared object before the system's loader gets it: that loader maps what the headers say, and touching
//! pages behind the end of the file kills the process.

use object::LittleEndian;
#[cfg(not(target_pointer_width = "64"))]
use object::elf::FileHeader32 as Header;
#[cfg(target_pointer_width = "64")]
use object::elf::FileHeader64 as Header;
use object::elf::PT_LOAD;
use object::read::elf::{FileHeader, ProgramHeader};

/// Says why the bytes cannot be a whole ELF file of this machine's class; other kinds of files pass.
pub(crate) fn check(bytes: &[u8]) -> Result<(), String> {
    if !bytes.starts_with(b"\x7FELF") {
        return Ok(());
    }
    let header = Header::<LittleEndian>::parse(bytes).map_err(|error| format!("damaged ELF header: {error}"))?;
    let headers = header.program_headers(LittleEndian, bytes).map_err(|error| format!("damaged ELF program headers: {error}"))?;
    for (index, header) in headers.iter().enumerate().filter(|(_, header)| header.p_type(LittleEndian) == PT_LOAD) {
        let (offset, size) = header.file_range(LittleEndian);
        if offset.checked_add(size).is_none_or(|end| end > bytes.len() as u64) {
            return Err(format!("cut off: program header {index} wants {size:#x} bytes at {offset:#x} of a file of {:#x}", bytes.len()));
        }
    }
    Ok(())
}
