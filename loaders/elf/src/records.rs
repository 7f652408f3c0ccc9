//! The records of an ELF file as plain numbers, whatever their class; little-endian throughout.

use object::LittleEndian;
use object::elf::{FileHeader32, FileHeader64};
use object::pod;
use object::read::elf::{Dyn, ProgramHeader as _, Rel as _, Rela as _, SectionHeader as _, Sym as _};
use vmfb_vm::{Error, Status};

/// Width of addresses in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// 32 bits.
    Elf32,
    /// 64 bits.
    Elf64,
}

/// The file header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileHeader {
    pub(crate) kind: u16,
    pub(crate) machine: u16,
    pub(crate) version: u32,
    pub(crate) header_size: u16,
    pub(crate) program_headers: u64,
    pub(crate) program_header_size: u16,
    pub(crate) program_header_count: u16,
    pub(crate) section_headers: u64,
    pub(crate) section_header_size: u16,
    pub(crate) section_header_count: u16,
}

/// A program header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramHeader {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) file_size: u64,
    pub(crate) memory_size: u64,
    pub(crate) alignment: u64,
}

/// A section header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectionHeader {
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// An entry of the dynamic table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DynamicEntry {
    pub(crate) tag: i64,
    pub(crate) value: u64,
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    pub(crate) name: u32,
    pub(crate) bind: u8,
    pub(crate) section: u16,
    pub(crate) value: u64,
}

/// A relocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    pub(crate) offset: u64,
    pub(crate) kind: u32,
    pub(crate) symbol: u32,
    /// `None` when the addend stands in the word that is relocated.
    pub(crate) addend: Option<i64>,
}

const LITTLE: LittleEndian = LittleEndian;

/// Calls a generic reader with the structs of a class.
macro_rules! by_class {
    ($class:expr, $function:ident($bytes:expr)) => {
        match $class {
            Class::Elf32 => $function::<FileHeader32<LittleEndian>>($bytes),
            Class::Elf64 => $function::<FileHeader64<LittleEndian>>($bytes),
        }
    };
}

impl Class {
    /// Bytes of an address.
    pub const fn address_bytes(self) -> u64 {
        match self {
            Self::Elf32 => 4,
            Self::Elf64 => 8,
        }
    }

    /// The largest address.
    pub const fn address_limit(self) -> u64 {
        match self {
            Self::Elf32 => u32::MAX as u64,
            Self::Elf64 => u64::MAX,
        }
    }

    /// How messages call the class.
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Elf32 => "32-bit",
            Self::Elf64 => "64-bit",
        }
    }

    pub(crate) const fn file_header_bytes(self) -> usize {
        self.pick(size_of::<FileHeader32<LittleEndian>>(), size_of::<FileHeader64<LittleEndian>>())
    }

    pub(crate) const fn program_header_bytes(self) -> usize {
        self.pick(size_of::<object::elf::ProgramHeader32<LittleEndian>>(), size_of::<object::elf::ProgramHeader64<LittleEndian>>())
    }

    pub(crate) const fn section_header_bytes(self) -> usize {
        self.pick(size_of::<object::elf::SectionHeader32<LittleEndian>>(), size_of::<object::elf::SectionHeader64<LittleEndian>>())
    }

    pub(crate) const fn dynamic_bytes(self) -> usize {
        self.pick(size_of::<object::elf::Dyn32<LittleEndian>>(), size_of::<object::elf::Dyn64<LittleEndian>>())
    }

    pub(crate) const fn symbol_bytes(self) -> usize {
        self.pick(size_of::<object::elf::Sym32<LittleEndian>>(), size_of::<object::elf::Sym64<LittleEndian>>())
    }

    pub(crate) const fn rel_bytes(self) -> usize {
        self.pick(size_of::<object::elf::Rel32<LittleEndian>>(), size_of::<object::elf::Rel64<LittleEndian>>())
    }

    pub(crate) const fn rela_bytes(self) -> usize {
        self.pick(size_of::<object::elf::Rela32<LittleEndian>>(), size_of::<object::elf::Rela64<LittleEndian>>())
    }

    const fn pick(self, narrow: usize, wide: usize) -> usize {
        match self {
            Self::Elf32 => narrow,
            Self::Elf64 => wide,
        }
    }

    pub(crate) fn file_header(self, bytes: &[u8]) -> Option<FileHeader> {
        by_class!(self, file_header(bytes))
    }

    pub(crate) fn program_header(self, bytes: &[u8]) -> Option<ProgramHeader> {
        by_class!(self, program_header(bytes))
    }

    pub(crate) fn section_header(self, bytes: &[u8]) -> Option<SectionHeader> {
        by_class!(self, section_header(bytes))
    }

    pub(crate) fn dynamic(self, bytes: &[u8]) -> Option<DynamicEntry> {
        by_class!(self, dynamic(bytes))
    }

    pub(crate) fn symbol(self, bytes: &[u8]) -> Option<Symbol> {
        by_class!(self, symbol(bytes))
    }

    pub(crate) fn rel(self, bytes: &[u8]) -> Option<Relocation> {
        by_class!(self, rel(bytes))
    }

    pub(crate) fn rela(self, bytes: &[u8]) -> Option<Relocation> {
        by_class!(self, rela(bytes))
    }
}

/// The error that refuses a file because of one of its fields: FAILED_PRECONDITION.
#[cold]
pub(crate) fn refused(field: &str, why: impl std::fmt::Display) -> Error {
    refused_with(Status::FailedPrecondition, field, why)
}

/// As [`refused`], with another status.
#[cold]
pub(crate) fn refused_with(status: Status, field: &str, why: impl std::fmt::Display) -> Error {
    Error::new(status, format!("ELF {field}: {why}"))
}

trait Header: object::read::elf::FileHeader<Endian = LittleEndian> {}

impl<F: object::read::elf::FileHeader<Endian = LittleEndian>> Header for F {}

fn file_header<F: Header>(bytes: &[u8]) -> Option<FileHeader> {
    let (header, _) = pod::from_bytes::<F>(bytes).ok()?;
    Some(FileHeader {
        kind: header.e_type(LITTLE).0,
        machine: header.e_machine(LITTLE).0,
        version: header.e_version(LITTLE),
        header_size: header.e_ehsize(LITTLE),
        program_headers: header.e_phoff(LITTLE).into(),
        program_header_size: header.e_phentsize(LITTLE),
        program_header_count: header.e_phnum(LITTLE),
        section_headers: header.e_shoff(LITTLE).into(),
        section_header_size: header.e_shentsize(LITTLE),
        section_header_count: header.e_shnum(LITTLE),
    })
}

fn program_header<F: Header>(bytes: &[u8]) -> Option<ProgramHeader> {
    let (header, _) = pod::from_bytes::<F::ProgramHeader>(bytes).ok()?;
    Some(ProgramHeader {
        kind: header.p_type(LITTLE).0,
        flags: header.p_flags(LITTLE).0,
        offset: header.p_offset(LITTLE).into(),
        address: header.p_vaddr(LITTLE).into(),
        file_size: header.p_filesz(LITTLE).into(),
        memory_size: header.p_memsz(LITTLE).into(),
        alignment: header.p_align(LITTLE).into(),
    })
}

fn section_header<F: Header>(bytes: &[u8]) -> Option<SectionHeader> {
    let (header, _) = pod::from_bytes::<F::SectionHeader>(bytes).ok()?;
    Some(SectionHeader {
        kind: header.sh_type(LITTLE).0,
        flags: header.sh_flags(LITTLE).0,
        address: header.sh_addr(LITTLE).into(),
        offset: header.sh_offset(LITTLE).into(),
        size: header.sh_size(LITTLE).into(),
    })
}

fn dynamic<F: Header>(bytes: &[u8]) -> Option<DynamicEntry> {
    let (entry, _) = pod::from_bytes::<F::Dyn>(bytes).ok()?;
    Some(DynamicEntry { tag: entry.tag(LITTLE).0, value: entry.val(LITTLE) })
}

fn symbol<F: Header>(bytes: &[u8]) -> Option<Symbol> {
    let (symbol, _) = pod::from_bytes::<F::Sym>(bytes).ok()?;
    Some(Symbol {
        name: symbol.st_name(LITTLE),
        bind: symbol.st_bind().0,
        section: symbol.st_shndx(LITTLE).0,
        value: symbol.st_value(LITTLE).into(),
    })
}

fn rel<F: Header>(bytes: &[u8]) -> Option<Relocation> {
    let (entry, _) = pod::from_bytes::<F::Rel>(bytes).ok()?;
    Some(Relocation { offset: entry.r_offset(LITTLE).into(), kind: entry.r_type(LITTLE).0, symbol: entry.r_sym(LITTLE), addend: None })
}

fn rela<F: Header>(bytes: &[u8]) -> Option<Relocation> {
    let (entry, _) = pod::from_bytes::<F::Rela>(bytes).ok()?;
    Some(Relocation {
        offset: entry.r_offset(LITTLE).into(),
        kind: entry.r_type(LITTLE, false).0,
        symbol: entry.r_sym(LITTLE, false),
        addend: Some(entry.r_addend(LITTLE).into()),
    })
}
