//! The dynamic table: where symbols and relocations stand, each address checked to lie in the image.

use crate::architecture::{Architecture, RelocationForm};
use crate::layout::Layout;
use crate::records::{refused, refused_with};
use object::elf;
use std::ops::Range;
use vmfb_vm::{Result, Status};

/// The tables of an image, as ranges of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dynamic {
    /// Address of the symbol table; its size follows from the hash table.
    pub(crate) symbols: u64,
    /// The SysV hash table's address.
    pub(crate) hash: u64,
    /// Symbol names.
    pub(crate) strings: Range<usize>,
    /// Relocations.
    pub(crate) relocations: Vec<RelocationTable>,
}

/// A table of relocations.
#[derive(Clone, Debug)]
pub(crate) struct RelocationTable {
    /// The tag that names it, for messages.
    pub(crate) name: &'static str,
    pub(crate) range: Range<usize>,
    /// How many entries at the start must be relative ones.
    pub(crate) relative: u64,
}

/// The values of the tags that are used. Each may occur once.
#[derive(Default)]
struct Values {
    symbols: Option<u64>,
    symbol_bytes: Option<u64>,
    strings: Option<u64>,
    strings_bytes: Option<u64>,
    hash: Option<u64>,
    rela: TableValues,
    rel: TableValues,
    plt: Option<u64>,
    plt_bytes: Option<u64>,
    plt_form: Option<u64>,
}

#[derive(Default)]
struct TableValues {
    address: Option<u64>,
    bytes: Option<u64>,
    entry_bytes: Option<u64>,
    relative: Option<u64>,
}

impl Dynamic {
    /// Reads the table from an image whose segments were filled.
    pub(crate) fn read(layout: &Layout, architecture: &Architecture, image: &[u8]) -> Result<Self> {
        let values = Values::read(layout, architecture, image)?;
        let class = architecture.class;
        let wanted = class.symbol_bytes() as u64;
        let symbol_bytes = required(values.symbol_bytes, "DT_SYMENT")?;
        if symbol_bytes != wanted {
            return Err(refused("DT_SYMENT", format!("{symbol_bytes} instead of {wanted}")));
        }
        let strings = required(values.strings, "DT_STRTAB")?;
        let strings_bytes = required(values.strings_bytes, "DT_STRSZ")?;
        let Some(string_range) = layout.image_range(strings, strings_bytes) else {
            let why = format!("the string table, {strings_bytes:#x} bytes (DT_STRSZ) at {strings:#x}, does not lie in the image");
            return Err(refused("DT_STRTAB", why));
        };
        if image.get(string_range.clone()).and_then(<[u8]>::last) != Some(&0) {
            return Err(refused("DT_STRSZ", "the string table does not end with a NUL"));
        }
        Ok(Self {
            symbols: required(values.symbols, "DT_SYMTAB")?,
            hash: required(values.hash, "DT_HASH")?,
            strings: string_range,
            relocations: values.relocations(layout, architecture)?,
        })
    }
}

impl Values {
    fn read(layout: &Layout, architecture: &Architecture, image: &[u8]) -> Result<Self> {
        let class = architecture.class;
        let range = layout.dynamic();
        let table = layout.image_range(range.start, range.end - range.start).and_then(|range| image.get(range));
        let table = table.ok_or_else(|| refused("PT_DYNAMIC", "the table does not lie in the image"))?;
        if table.len() % class.dynamic_bytes() != 0 {
            return Err(refused("PT_DYNAMIC", format!("p_memsz {:#x} is not a multiple of {}", table.len(), class.dynamic_bytes())));
        }
        let mut values = Self::default();
        for entry in table.chunks_exact(class.dynamic_bytes()).filter_map(|bytes| class.dynamic(bytes)) {
            if elf::DynamicTag(entry.tag) == elf::DT_NULL {
                return Ok(values);
            }
            values.take(elf::DynamicTag(entry.tag), entry.value)?;
        }
        Err(refused("PT_DYNAMIC", "the table does not end with DT_NULL"))
    }

    fn take(&mut self, tag: elf::DynamicTag, value: u64) -> Result<()> {
        match tag {
            elf::DT_SYMTAB => once(&mut self.symbols, value, "DT_SYMTAB"),
            elf::DT_SYMENT => once(&mut self.symbol_bytes, value, "DT_SYMENT"),
            elf::DT_STRTAB => once(&mut self.strings, value, "DT_STRTAB"),
            elf::DT_STRSZ => once(&mut self.strings_bytes, value, "DT_STRSZ"),
            elf::DT_HASH => once(&mut self.hash, value, "DT_HASH"),
            elf::DT_RELA => once(&mut self.rela.address, value, "DT_RELA"),
            elf::DT_RELASZ => once(&mut self.rela.bytes, value, "DT_RELASZ"),
            elf::DT_RELAENT => once(&mut self.rela.entry_bytes, value, "DT_RELAENT"),
            elf::DT_RELACOUNT => once(&mut self.rela.relative, value, "DT_RELACOUNT"),
            elf::DT_REL => once(&mut self.rel.address, value, "DT_REL"),
            elf::DT_RELSZ => once(&mut self.rel.bytes, value, "DT_RELSZ"),
            elf::DT_RELENT => once(&mut self.rel.entry_bytes, value, "DT_RELENT"),
            elf::DT_RELCOUNT => once(&mut self.rel.relative, value, "DT_RELCOUNT"),
            elf::DT_JMPREL => once(&mut self.plt, value, "DT_JMPREL"),
            elf::DT_PLTRELSZ => once(&mut self.plt_bytes, value, "DT_PLTRELSZ"),
            elf::DT_PLTREL => once(&mut self.plt_form, value, "DT_PLTREL"),
            elf::DT_NEEDED => Err(refused("DT_NEEDED", "embedded images cannot use other libraries; compile for a system library instead")),
            elf::DT_TEXTREL => Err(refused("DT_TEXTREL", "relocations in read-only segments are not applied")),
            elf::DT_INIT | elf::DT_INIT_ARRAY | elf::DT_PREINIT_ARRAY => {
                Err(refused("DT_INIT", "embedded images with initializers are not run"))
            }
            elf::DT_RELR | elf::DT_RELRSZ | elf::DT_RELRENT => {
                Err(refused_with(Status::Unimplemented, "DT_RELR", "packed relative relocations are not supported"))
            }
            // Flags, names, debugging and finalizers, which are never run, change nothing here.
            _ => Ok(()),
        }
    }

    fn relocations(&self, layout: &Layout, architecture: &Architecture) -> Result<Vec<RelocationTable>> {
        let (values, other, names, entry_bytes) = match architecture.form {
            RelocationForm::Rela => {
                (&self.rela, &self.rel, ["DT_RELA", "DT_RELASZ", "DT_RELAENT", "DT_RELACOUNT", "DT_REL"], architecture.class.rela_bytes())
            }
            RelocationForm::Rel => {
                (&self.rel, &self.rela, ["DT_REL", "DT_RELSZ", "DT_RELENT", "DT_RELCOUNT", "DT_RELA"], architecture.class.rel_bytes())
            }
        };
        let [name, size_name, entry_name, count_name, other_name] = names;
        if other.address.is_some() {
            return Err(refused(other_name, format!("{} uses {name} alone", architecture.name)));
        }
        let mut tables = Vec::new();
        if let Some(address) = values.address {
            let bytes = required(values.bytes, size_name)?;
            let found = required(values.entry_bytes, entry_name)?;
            if found != entry_bytes as u64 {
                return Err(refused(entry_name, format!("{found} instead of {entry_bytes}")));
            }
            let relative = values.relative.unwrap_or(0);
            if relative > bytes / entry_bytes as u64 {
                let why = format!("{bytes:#x} has no room for the {relative} relative relocations of {count_name}");
                return Err(refused(size_name, why));
            }
            tables.push(relocation_table(layout, [name, size_name], address, bytes, entry_bytes, relative)?);
        } else if values.bytes.is_some_and(|bytes| bytes != 0) || values.relative.is_some_and(|count| count != 0) {
            return Err(refused(name, format!("missing, although there is {size_name} or {count_name}")));
        }
        if let Some(address) = self.plt {
            let wanted = if architecture.form == RelocationForm::Rela { elf::DT_RELA.0 } else { elf::DT_REL.0 };
            let form = required(self.plt_form, "DT_PLTREL")?;
            if form != wanted as u64 {
                return Err(refused("DT_PLTREL", format!("{form} instead of {wanted} ({name})")));
            }
            let bytes = required(self.plt_bytes, "DT_PLTRELSZ")?;
            tables.push(relocation_table(layout, ["DT_JMPREL", "DT_PLTRELSZ"], address, bytes, entry_bytes, 0)?);
        }
        Ok(tables)
    }
}

fn relocation_table(
    layout: &Layout,
    [name, size_name]: [&'static str; 2],
    address: u64,
    bytes: u64,
    entry_bytes: usize,
    relative: u64,
) -> Result<RelocationTable> {
    if !bytes.is_multiple_of(entry_bytes as u64) {
        return Err(refused(size_name, format!("{bytes:#x} is not a multiple of {entry_bytes}")));
    }
    match layout.image_range(address, bytes) {
        Some(range) => Ok(RelocationTable { name, range, relative }),
        None => Err(refused(name, format!("the table, {bytes:#x} bytes ({size_name}) at {address:#x}, does not lie in the image"))),
    }
}

fn once(slot: &mut Option<u64>, value: u64, name: &str) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(refused(name, "stands twice in the dynamic table")),
    }
}

fn required(value: Option<u64>, name: &str) -> Result<u64> {
    value.ok_or_else(|| refused(name, "missing from the dynamic table"))
}
