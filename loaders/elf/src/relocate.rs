//! Relocation: table-driven, every target and every value checked.

use crate::architecture::{Architecture, Field, Formula, RelocationForm, RelocationType};
use crate::dynamic::{Dynamic, RelocationTable};
use crate::layout::{Layout, Protection};
use crate::records::{Relocation, refused, refused_with};
use crate::symbols::SymbolTable;
use std::ops::Range;
use vmfb_vm::{Error, Result, Status};

/// Applies all relocations to an image whose addresses in memory are `bias` above those of the file.
pub(crate) fn apply(
    layout: &Layout,
    architecture: &Architecture,
    dynamic: &Dynamic,
    symbols: &SymbolTable,
    image: &mut [u8],
    bias: u64,
) -> Result<()> {
    let relocator = Relocator { layout, architecture, symbols, bias };
    dynamic.relocations.iter().try_for_each(|table| relocator.apply_table(table, image))
}

struct Relocator<'a> {
    layout: &'a Layout,
    architecture: &'a Architecture,
    symbols: &'a SymbolTable,
    bias: u64,
}

impl Relocator<'_> {
    fn apply_table(&self, table: &RelocationTable, image: &mut [u8]) -> Result<()> {
        let class = self.architecture.class;
        let size = match self.architecture.form {
            RelocationForm::Rel => class.rel_bytes(),
            RelocationForm::Rela => class.rela_bytes(),
        };
        for index in 0..table.range.len() / size {
            // Read one by one: a table in a writable segment may be relocated itself.
            let bytes = image.get(table.range.clone()).and_then(|table| table.get(index * size..)).unwrap_or_default();
            let entry = match self.architecture.form {
                RelocationForm::Rel => class.rel(bytes),
                RelocationForm::Rela => class.rela(bytes),
            };
            let entry = entry.ok_or_else(|| refused(table.name, format!("relocation {index} lies outside the table")))?;
            self.apply_entry(table, index, &entry, image)
                .map_err(|error| error.context(format!("relocation {index} of {}", table.name)))?;
        }
        Ok(())
    }

    fn apply_entry(&self, table: &RelocationTable, index: usize, entry: &Relocation, image: &mut [u8]) -> Result<()> {
        let Some(kind) = self.architecture.relocation_type(entry.kind) else {
            let why = format!("type {} is not known for {}", entry.kind, self.architecture.name);
            return Err(refused_with(Status::Unimplemented, "r_info", why));
        };
        if (index as u64) < table.relative && kind.formula != Formula::Relative {
            return Err(refused("r_info", format!("type {} among the first {}, which are relative ones", entry.kind, table.relative)));
        }
        if entry.symbol >= self.symbols.count().max(1) {
            let why = format!("symbol {} does not exist; there are {}", entry.symbol, self.symbols.count());
            return Err(refused_with(Status::OutOfRange, "r_info", why));
        }
        if kind.formula == Formula::Nothing {
            return Ok(());
        }
        let place = self.place(kind, entry, image)?;
        let addend = match entry.addend {
            Some(addend) => addend,
            None => read_field(kind.field, image, place.clone())?,
        };
        let value = self.value(kind, entry, addend, image)?;
        write_field(kind.field, self.architecture, image, place, value)
    }

    /// The word that is relocated. It lies in a segment that is writable until the image is protected.
    fn place(&self, kind: &RelocationType, entry: &Relocation, image: &[u8]) -> Result<Range<usize>> {
        let bytes = kind.field.bytes();
        let segment = self.layout.segment_of(entry.offset, bytes);
        let range = self.layout.image_range(entry.offset, bytes).filter(|range| range.end <= image.len());
        match (segment, range) {
            (Some(segment), Some(range)) if segment.protection == Protection::ReadWrite => Ok(range),
            (Some(segment), Some(_)) => {
                let why = format!("{:#x} lies in the segment of program header {}, which is read-only", entry.offset, segment.index);
                Err(refused("r_offset", why))
            }
            _ => Err(refused("r_offset", format!("{bytes} bytes at {:#x} do not lie in the image", entry.offset))),
        }
    }

    fn value(&self, kind: &RelocationType, entry: &Relocation, addend: i64, image: &[u8]) -> Result<u64> {
        let addend_bits = match self.architecture.class {
            crate::records::Class::Elf64 => addend as u64,
            // Addends of 32-bit files are addresses without a sign or small differences: both wrap at 32 bits.
            crate::records::Class::Elf32 => u64::from(addend as u32),
        };
        match kind.formula {
            Formula::Nothing => Ok(0),
            Formula::Relative => {
                if !self.layout.is_pointee(addend_bits) {
                    return Err(refused("r_addend", format!("{addend_bits:#x} does not lie in the image")));
                }
                Ok(addend_bits.wrapping_add(self.bias))
            }
            Formula::Symbol => self.symbol(entry, image),
            Formula::SymbolAddend | Formula::PlaceRelative => {
                let value = self.symbol(entry, image)?.wrapping_add(addend_bits);
                if !self.layout.is_pointee(self.unbiased(value)) {
                    return Err(refused("r_addend", format!("symbol {} with {addend:#x} does not lie in the image", entry.symbol)));
                }
                let place = if kind.formula == Formula::PlaceRelative { entry.offset.wrapping_add(self.bias) } else { 0 };
                Ok(value.wrapping_sub(place))
            }
        }
    }

    fn unbiased(&self, value: u64) -> u64 {
        value.wrapping_sub(self.bias) & self.architecture.class.address_limit()
    }

    fn symbol(&self, entry: &Relocation, image: &[u8]) -> Result<u64> {
        if entry.symbol == 0 {
            return Err(refused("r_info", format!("type {} needs a symbol", entry.kind)));
        }
        Ok(self.symbols.address(image, entry.symbol)?.wrapping_add(self.bias))
    }
}

fn outside() -> Error {
    refused("r_offset", "the word does not lie in the image")
}

fn read_field(field: Field, image: &[u8], place: Range<usize>) -> Result<i64> {
    let bytes = image.get(place).ok_or_else(outside)?;
    match field {
        Field::Word64 => bytes.try_into().map(i64::from_le_bytes).map_err(|_| outside()),
        Field::Word32 | Field::Signed32 => bytes.try_into().map(i32::from_le_bytes).map(i64::from).map_err(|_| outside()),
    }
}

fn write_field(field: Field, architecture: &Architecture, image: &mut [u8], place: Range<usize>, value: u64) -> Result<()> {
    let target = image.get_mut(place).ok_or_else(outside)?;
    let narrow_class = architecture.class == crate::records::Class::Elf32;
    let fits = match field {
        Field::Word64 => true,
        // In 32-bit files arithmetic wraps.
        Field::Word32 => narrow_class || u32::try_from(value).is_ok(),
        Field::Signed32 => i32::try_from(value as i64).is_ok(),
    };
    if !fits {
        return Err(refused_with(Status::OutOfRange, "r_info", format!("the value {value:#x} does not fit in 32 bits")));
    }
    match field {
        Field::Word64 => target.copy_from_slice(&value.to_le_bytes()),
        Field::Word32 | Field::Signed32 => target.copy_from_slice(&(value as u32).to_le_bytes()),
    }
    Ok(())
}
