//! A look at an ELF shared object before the system's loader gets it: that loader maps what the headers say, and touching
//! pages behind the end of the file kills the process.

use object::LittleEndian;
#[cfg(not(target_pointer_width = "64"))]
use object::elf::FileHeader32 as Header;
#[cfg(target_pointer_width = "64")]
use object::elf::FileHeader64 as Header;
use object::elf::PT_LOAD;
use object::read::elf::{FileHeader, ProgramHeader};

/// Where a file states for which machine it is, and the word size.
const MACHINE: std::ops::Range<usize> = 18..20;
const CLASS: usize = 4;

/// Says why the bytes cannot be a whole ELF file for this machine. Where the system's libraries are of another kind, all pass.
pub(crate) fn check(bytes: &[u8]) -> Result<(), String> {
    if cfg!(target_vendor = "apple") {
        return Ok(());
    }
    if !bytes.starts_with(b"\x7FELF") {
        let first = bytes.get(..4).unwrap_or(bytes);
        return Err(format!("damaged: it begins with {first:02x?}, not with an ELF header"));
    }
    check_machine(bytes)?;
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

/// Names the machine of a library for another one.
fn check_machine(bytes: &[u8]) -> Result<(), String> {
    let (Some(&[low, high]), Some(&class)) = (bytes.get(MACHINE), bytes.get(CLASS)) else {
        return Err(format!("cut off: {} bytes have no room for an ELF header", bytes.len()));
    };
    let found = object::elf::Machine(u16::from_le_bytes([low, high]));
    let Some(wanted) = HOST else { return Ok(()) };
    if found == wanted {
        return Ok(());
    }
    let bits = if class == 1 { 32 } else { 64 };
    let name = match NAMES.iter().find(|(machine, wide, _)| *machine == found && *wide == bits) {
        Some((_, _, name)) => (*name).to_owned(),
        None => format!("the machine {} ({bits}-bit)", found.0),
    };
    Err(format!("for {name}, this is {}", std::env::consts::ARCH))
}

/// Machines, the bits of their pointers, and their names.
const NAMES: [(object::elf::Machine, u32, &str); 6] = [
    (object::elf::EM_X86_64, 64, "x86_64"),
    (object::elf::EM_386, 32, "x86"),
    (object::elf::EM_AARCH64, 64, "aarch64"),
    (object::elf::EM_ARM, 32, "arm"),
    (object::elf::EM_RISCV, 64, "riscv64"),
    (object::elf::EM_RISCV, 32, "riscv32"),
];

/// This machine, where it is one of these.
const HOST: Option<object::elf::Machine> = if cfg!(target_arch = "x86_64") {
    Some(object::elf::EM_X86_64)
} else if cfg!(target_arch = "x86") {
    Some(object::elf::EM_386)
} else if cfg!(target_arch = "aarch64") {
    Some(object::elf::EM_AARCH64)
} else if cfg!(target_arch = "arm") {
    Some(object::elf::EM_ARM)
} else if cfg!(any(target_arch = "riscv64", target_arch = "riscv32")) {
    Some(object::elf::EM_RISCV)
} else {
    None
};
