//! An embedded ELF file: header checks, and the way from a file to a relocated image.

use crate::architecture::Architecture;
use crate::dynamic::Dynamic;
use crate::layout::Layout;
use crate::records::{Class, refused, refused_with};
use crate::{relocate, sections, symbols};
use object::elf;
use vmfb_hal::abi::QUERY_SYMBOL;
use vmfb_vm::{Error, Result, Status};

/// What an image is laid out for.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The architecture that the file must be for.
    pub architecture: &'static Architecture,
    /// Bytes of a page, a power of two.
    pub page: u64,
}

/// A file whose headers are checked and whose segments have their places.
#[derive(Debug)]
pub struct ElfFile<'a> {
    bytes: &'a [u8],
    target: Target,
    layout: Layout,
}

/// What is known once an image is in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Address of the library query function.
    pub query: u64,
}

impl<'a> ElfFile<'a> {
    /// Checks header and program headers.
    pub fn parse(bytes: &'a [u8], target: Target) -> Result<Self> {
        let class = check_identification(bytes, target.architecture)?;
        let Some(header) = class.file_header(bytes) else {
            return Err(refused("header", format!("the file has {} bytes, a header takes {}", bytes.len(), class.file_header_bytes())));
        };
        if header.machine != target.architecture.machine {
            return Err(foreign(&describe_machine(header.machine, class), target.architecture, "e_machine"));
        }
        if header.kind != elf::ET_DYN.0 {
            return Err(refused("e_type", format!("{} instead of {} (shared object)", header.kind, elf::ET_DYN.0)));
        }
        if header.version != 1 {
            return Err(refused("e_version", format!("{} instead of 1", header.version)));
        }
        if usize::from(header.header_size) != class.file_header_bytes() {
            return Err(refused("e_ehsize", format!("{} instead of {}", header.header_size, class.file_header_bytes())));
        }
        let layout = Layout::new(bytes, class, &header, target.page)?;
        sections::check(bytes, class, &header, &layout)?;
        Ok(Self { bytes, target, layout })
    }

    /// Where everything goes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Copies the segments into an image of [`Layout::size`] zeros that stands at the address `base`, checks its tables and
    /// relocates it.
    pub fn place(&self, image: &mut [u8], base: u64) -> Result<Placed> {
        if image.len() as u64 != self.layout.size() {
            return Err(Error::internal(format!("an image of {:#x} bytes got {:#x}", self.layout.size(), image.len())));
        }
        let architecture = self.target.architecture;
        self.layout.fill(self.bytes, image)?;
        let dynamic = Dynamic::read(&self.layout, architecture, image)?;
        let symbols = symbols::SymbolTable::read(&self.layout, architecture, &dynamic, image)?;
        let bias = base.wrapping_sub(self.layout.start());
        let query = symbols.function(&self.layout, image, QUERY_SYMBOL)?;
        relocate::apply(&self.layout, architecture, &dynamic, &symbols, image, bias)?;
        Ok(Placed { query: query.wrapping_add(bias) })
    }

    /// The image as plain bytes, relocated for the address `base`: for architectures that this process cannot run.
    pub fn relocated_bytes(&self, base: u64) -> Result<(Vec<u8>, Placed)> {
        let size = usize::try_from(self.layout.size()).map_err(|_| Error::exhausted("the image is larger than the address space"))?;
        let mut image = Vec::new();
        image.try_reserve_exact(size).map_err(|_| Error::exhausted(format!("no memory for an image of {size} bytes")))?;
        image.resize(size, 0);
        let placed = self.place(&mut image, base)?;
        Ok((image, placed))
    }
}

/// Checks `e_ident` and returns the class.
fn check_identification(bytes: &[u8], architecture: &Architecture) -> Result<Class> {
    let Some(ident) = bytes.get(..16) else {
        return Err(refused("header", format!("the file has {} bytes, which is less than any header", bytes.len())));
    };
    let [m0, m1, m2, m3, class, data, version, os_abi, ..] = *ident else { return Err(refused("header", "too short")) };
    if [m0, m1, m2, m3] != *b"\x7FELF" {
        return Err(refused("e_ident[EI_MAG]", format!("the file begins with {:02x?}, not with an ELF header", [m0, m1, m2, m3])));
    }
    let class = match class {
        1 => Class::Elf32,
        2 => Class::Elf64,
        _ => return Err(refused("e_ident[EI_CLASS]", format!("{class} is neither 1 (32-bit) nor 2 (64-bit)"))),
    };
    if class != architecture.class {
        return Err(foreign(class.describe(), architecture, "e_ident[EI_CLASS]"));
    }
    if data != 1 {
        return Err(refused("e_ident[EI_DATA]", format!("{data} instead of 1 (little-endian)")));
    }
    if version != 1 {
        return Err(refused("e_ident[EI_VERSION]", format!("{version} instead of 1")));
    }
    if ![0, 3].contains(&os_abi) {
        return Err(refused("e_ident[EI_OSABI]", format!("{os_abi} instead of 0 (System V) or 3 (GNU)")));
    }
    Ok(class)
}

/// How messages call what a file is for.
pub(crate) fn describe_machine(machine: u16, class: Class) -> String {
    match Architecture::of(machine, class) {
        Some(architecture) => architecture.name.to_owned(),
        None => format!("the machine {machine} ({})", class.describe()),
    }
}

#[cold]
fn foreign(found: &str, wanted: &Architecture, field: &str) -> Error {
    refused_with(Status::FailedPrecondition, field, format!("the code is for {found}, this machine runs {}", wanted.name))
}
