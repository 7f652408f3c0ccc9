//! The dynamic symbol table: bounded, without undefined symbols, searched by name.

use crate::architecture::Architecture;
use crate::dynamic::Dynamic;
use crate::layout::{Layout, Protection};
use crate::records::{Class, Symbol, refused, refused_with};
use object::elf;
use std::ops::Range;
use vmfb_vm::{Error, Result, Status};

/// Symbols that ARM compilers leave undefined to keep an unwinder linked in, although no code uses them.
const UNUSED_IMPORTS: [&[u8]; 3] = [b"__aeabi_unwind_cpp_pr0", b"__aeabi_unwind_cpp_pr1", b"__aeabi_unwind_cpp_pr2"];

/// The dynamic symbols of an image.
#[derive(Clone, Debug)]
pub(crate) struct SymbolTable {
    class: Class,
    symbols: Range<usize>,
    strings: Range<usize>,
    count: u32,
}

impl SymbolTable {
    /// Finds the table and checks its hash table and every symbol in it.
    pub(crate) fn read(layout: &Layout, architecture: &Architecture, dynamic: &Dynamic, image: &[u8]) -> Result<Self> {
        let class = architecture.class;
        let count = symbol_count(layout, dynamic, image)?;
        let bytes = u64::from(count) * class.symbol_bytes() as u64;
        let Some(symbols) = layout.image_range(dynamic.symbols, bytes) else {
            let why = format!("the table of {count} symbols at {:#x} does not lie in the image", dynamic.symbols);
            return Err(refused("DT_SYMTAB", why));
        };
        let table = Self { class, symbols, strings: dynamic.strings.clone(), count };
        for index in 1..count {
            table.check(layout, image, index)?;
        }
        Ok(table)
    }

    /// Number of symbols; number 0 is none.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Address of a defined symbol before the load bias.
    pub(crate) fn address(&self, image: &[u8], index: u32) -> Result<u64> {
        let symbol = self.get(image, index)?;
        if is_undefined(&symbol) {
            return Err(undefined(&String::from_utf8_lossy(self.name(image, &symbol)?)));
        }
        Ok(symbol.value)
    }

    /// Address before the load bias of the function that the image exports under this name: the last one, if several do.
    pub(crate) fn function(&self, layout: &Layout, image: &[u8], name: &str) -> Result<u64> {
        for index in (1..self.count).rev() {
            let symbol = self.get(image, index)?;
            let exported = [elf::STB_GLOBAL, elf::STB_WEAK].contains(&elf::SymbolBind(symbol.bind)) && !is_undefined(&symbol);
            if !exported || self.name(image, &symbol)? != name.as_bytes() {
                continue;
            }
            let executable = layout.segment_of(symbol.value, 1).is_some_and(|segment| segment.protection == Protection::ReadExecute);
            if !executable {
                return Err(refused("st_value", format!("{name} is at {:#x}, where no executable code is", symbol.value)));
            }
            return Ok(symbol.value);
        }
        Err(Error::not_found(format!("the ELF image exports no function {name}: it is not an executable library")))
    }

    fn get(&self, image: &[u8], index: u32) -> Result<Symbol> {
        let size = self.class.symbol_bytes();
        let bytes = image.get(self.symbols.clone()).and_then(|table| table.get((index as usize).checked_mul(size)?..));
        bytes
            .and_then(|bytes| self.class.symbol(bytes))
            .ok_or_else(|| refused_with(Status::OutOfRange, "r_sym", format!("symbol {index} does not exist; there are {}", self.count)))
    }

    /// The string table ends with a NUL, so every name in it ends.
    fn name<'a>(&self, image: &'a [u8], symbol: &Symbol) -> Result<&'a [u8]> {
        let strings = image.get(self.strings.clone()).unwrap_or_default();
        let rest = strings.get(symbol.name as usize..).filter(|rest| !rest.is_empty());
        let Some(rest) = rest else {
            let why = format!("{:#x} does not lie in the string table of {:#x} bytes", symbol.name, strings.len());
            return Err(refused("st_name", why));
        };
        Ok(rest.split(|byte| *byte == 0).next().unwrap_or_default())
    }

    fn check(&self, layout: &Layout, image: &[u8], index: u32) -> Result<()> {
        let symbol = self.get(image, index)?;
        let name = self.name(image, &symbol)?;
        if is_undefined(&symbol) {
            let unused = UNUSED_IMPORTS.contains(&name);
            return if unused { Ok(()) } else { Err(undefined(&String::from_utf8_lossy(name))) };
        }
        // Reserved section numbers do not stand for addresses in the image.
        if symbol.section < elf::SHN_LORESERVE && !layout.is_pointee(symbol.value) {
            let why = format!("{:#x} of {} does not lie in the image", symbol.value, String::from_utf8_lossy(name));
            return Err(refused("st_value", why));
        }
        Ok(())
    }
}

/// The second word of the SysV hash table is the number of symbols.
fn symbol_count(layout: &Layout, dynamic: &Dynamic, image: &[u8]) -> Result<u32> {
    const HEADER: u64 = 8;
    let word = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(at..)?.get(..4)?.try_into().ok()?));
    let header = layout.image_range(dynamic.hash, HEADER).and_then(|range| image.get(range));
    let counts = header.and_then(|header| Some((word(header, 0)?, word(header, 4)?)));
    let Some((buckets, chains)) = counts else {
        return Err(refused("DT_HASH", format!("the table at {:#x} does not lie in the image", dynamic.hash)));
    };
    let words = 2 + u64::from(buckets) + u64::from(chains);
    let Some(table) = layout.image_range(dynamic.hash, words * 4).and_then(|range| image.get(range)) else {
        let why = format!("the table at {:#x} with {buckets} buckets and {chains} chains does not lie in the image", dynamic.hash);
        return Err(refused("DT_HASH", why));
    };
    let links = table.get(HEADER as usize..).unwrap_or_default().chunks_exact(4);
    if let Some(link) = links.filter_map(|bytes| word(bytes, 0)).find(|link| *link >= chains) {
        return Err(refused("DT_HASH", format!("an entry names the symbol {link} of {chains}")));
    }
    Ok(chains)
}

fn is_undefined(symbol: &Symbol) -> bool {
    symbol.section == elf::SHN_UNDEF.0
}

#[cold]
fn undefined(name: &str) -> Error {
    refused_with(
        Status::Unavailable,
        "symbol table",
        format!(
            "the symbol {name:?} is undefined: embedded images cannot import functions; link it in, or compile for a system library \
             (--iree-llvmcpu-link-embedded=false)"
        ),
    )
}
