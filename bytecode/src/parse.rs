//! Reads the module definition of an archive, in both ages of its schema, and checks all that can be checked without
//! looking at the bytecode.

use crate::archive::Archive;
use crate::definition::{
    Attribute, BytecodeVersion, Dependency, Export, Function, Import, ModuleDef, Necessity, Requirements, Rodata, RodataPlacement,
    Signature,
};
use crate::flatbuffer::{Buffer, Slot, Table};
use crate::flatbuffer_schema as schema;
use crate::types::TypeDef;
use crate::{Error, Result, Status};
use byteorder::{ByteOrder, LittleEndian};

#[path = "parse_debug.rs"]
mod debug;

/// Largest primitive global area that a module may ask for, in bytes.
pub const MAXIMUM_GLOBAL_BYTES: u32 = 1 << 30;
/// Largest number of ref globals that a module may ask for.
pub const MAXIMUM_GLOBAL_REFS: u32 = 1 << 20;
/// Largest number of 32-bit value registers of a function.
pub const MAXIMUM_VALUE_REGISTERS: u16 = 0x7FFF;
/// Largest number of ref registers of a function.
pub const MAXIMUM_REF_REGISTERS: u16 = 0x3FFF;

/// All requirements that there are; this crate's users provide all of them.
const KNOWN_REQUIREMENTS: u32 = Requirements::F32 | Requirements::F64 | Requirements::YIELD | Requirements::UNWIND;

const FLAG_OPTIONAL: u32 = 2;
const FLAGS_DEFAULT: u32 = 1;

impl Archive {
    /// Reads and checks the module definition. The bytecode of the functions is copied, not checked.
    pub fn definition(&self) -> Result<ModuleDef> {
        let buffer = Buffer::new(self.flatbuffer());
        let root = buffer.root(schema::IDENTIFIER, "BytecodeModuleDef")?;
        let (layout, version) = layout(&root)?;
        Parser { archive: self, buffer: &buffer, root, layout, version }.module()
    }
}

/// Decides the age of the schema. The version field itself moved, so the size of the root vtable has to tell: the bytecode
/// field is always written, and it is the 13th of one layout and the 15th of the other.
fn layout(root: &Table<'_>) -> Result<(&'static schema::Root, BytecodeVersion)> {
    let old = root.vtable_size() <= schema::LAYOUT_A_VTABLE;
    let layout = if old { &schema::LAYOUT_A } else { &schema::LAYOUT_B };
    let version = BytecodeVersion(root.u32(layout.bytecode_version, 0)?);
    let understood = if old { version.major() == 13 } else { matches!(version.major(), 14..=17) };
    if understood && version.minor() == 0 {
        return Ok((layout, version));
    }
    Err(Error::invalid(format!(
        "bytecode version {version} in a root table of the {} layout is not understood; understood are 13.0 (compilers up to 2023-02-28) in the \
         old layout, and in the new one 14.0 (development trees of 2023-03), 15.0 (2023-03 up to 3.9.0), 16.0 (3.10.0), 17.0 (3.11.0 to 3.13.0)",
        if old { "old" } else { "new" }
    )))
}

struct Parser<'a> {
    archive: &'a Archive,
    buffer: &'a Buffer<'a>,
    root: Table<'a>,
    layout: &'static schema::Root,
    version: BytecodeVersion,
}

impl Parser<'_> {
    fn module(&self) -> Result<ModuleDef> {
        let requirements = self.requirements()?;
        let name = self.name(&self.root, schema::NAME)?;
        let types = self.collect(self.layout.types, |_, table| self.name(&table, schema::type_def::FULL_NAME))?;
        let rodata = self.collect(self.layout.rodata, |_, table| self.rodata(&table))?;
        let dependencies = self.collect(self.layout.dependencies, |_, table| self.dependency(&table))?;
        let imports = self.collect(self.layout.imports, |_, table| self.import(&table))?;
        let bytecode = self.root.structs(self.layout.bytecode, 1, 1)?.map_or(&[][..], |vector| vector.bytes());
        let mut functions = self.functions(bytecode.len())?;
        let exports = self.collect(self.layout.exports, |_, table| self.export(&table, &mut functions))?;
        let (global_bytes, global_refs) = self.state()?;
        for (index, name) in types.iter().enumerate() {
            TypeDef::parse(name).map_err(|error| inside(error, self.layout.types.1, index))?;
        }
        let debug = self.root.table(self.layout.debug)?.map(|table| debug::database(self.buffer, &table)).transpose()?;
        Ok(ModuleDef {
            name,
            version: self.root.u32(schema::VERSION, 0)?,
            bytecode_version: self.version,
            requirements,
            attributes: self.attributes(&self.root, self.layout.attributes)?,
            types,
            dependencies,
            imports,
            exports,
            rodata,
            global_bytes,
            global_refs,
            functions,
            bytecode: self.copy(bytecode)?,
            debug,
        })
    }

    fn requirements(&self) -> Result<Requirements> {
        let bits = self.layout.requirements.map_or(Ok(0), |slot| self.root.u32(slot, 0))?;
        if bits & !KNOWN_REQUIREMENTS != 0 {
            return Err(Error::invalid(format!(
                "the module requires features {bits:#x}; known are 1 (f32), 2 (f64), 4 (yield), 8 (unwind)"
            )));
        }
        Ok(Requirements(bits))
    }

    fn rodata(&self, table: &Table<'_>) -> Result<Rodata> {
        let tag = table.u8(schema::rodata::COMPRESSION_TAG, 0)?;
        if tag > 1 {
            return Err(Error::new(Status::Unimplemented, format!("compression of kind {tag}; known is uncompressed data, kinds 0 and 1")));
        }
        if let Some(data) = table.structs(schema::rodata::EMBEDDED, 1, 1)? {
            let start = self.archive.flatbuffer_range().start + data.position();
            return Ok(Rodata { range: start..start + data.len(), placement: RodataPlacement::Embedded });
        }
        let (offset, length) = (table.u64(schema::rodata::OFFSET)?, table.u64(schema::rodata::LENGTH)?);
        let (base, available) = (self.archive.external_base(), self.archive.bytes().len());
        let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok()).and_then(|(offset, length)| {
            let start = base.checked_add(offset)?;
            Some(start..start.checked_add(length)?)
        });
        let range = range.filter(|range| base <= available && range.end <= available).ok_or_else(|| {
            Error::invalid(format!(
                "external data of {length} bytes at offset {offset} from {base:#x} does not lie in the archive of {available} bytes"
            ))
        })?;
        Ok(Rodata { range, placement: RodataPlacement::External })
    }

    fn dependency(&self, table: &Table<'_>) -> Result<Dependency> {
        Ok(Dependency {
            name: self.name(table, schema::dependency::NAME)?,
            minimum_version: table.u32(schema::dependency::MINIMUM_VERSION, 0)?,
            necessity: necessity(table.u32(schema::dependency::FLAGS, FLAGS_DEFAULT)?),
        })
    }

    fn import(&self, table: &Table<'_>) -> Result<Import> {
        Ok(Import {
            full_name: self.name(table, schema::import::FULL_NAME)?,
            signature: table.table(schema::import::SIGNATURE)?.map(|table| self.signature(&table)).transpose()?,
            necessity: necessity(table.u32(schema::import::FLAGS, FLAGS_DEFAULT)?),
        })
    }

    fn signature(&self, table: &Table<'_>) -> Result<Signature> {
        let calling_convention = table.string(schema::signature::CALLING_CONVENTION)?.unwrap_or_default();
        Ok(Signature {
            calling_convention: self.utf8(calling_convention, schema::signature::CALLING_CONVENTION)?,
            attributes: self.attributes(table, schema::signature::ATTRIBUTES)?,
        })
    }

    fn functions(&self, available: usize) -> Result<Vec<Function>> {
        let size = if self.layout.signatures.is_some() { schema::DESCRIPTOR_B } else { schema::DESCRIPTOR_A };
        let Some(descriptors) = self.root.structs(self.layout.functions, size, 4)? else { return Ok(Vec::new()) };
        let mut signatures = match self.layout.signatures {
            Some(slot) => self.collect(slot, |_, table| self.signature(&table).map(Some))?,
            None => self.reserve(descriptors.len())?,
        };
        if self.layout.signatures.is_some() && signatures.len() != descriptors.len() {
            return Err(Error::invalid(format!("{} functions have {} signatures", descriptors.len(), signatures.len())));
        }
        signatures.resize_with(descriptors.len(), || None);
        let mut functions = self.reserve(descriptors.len())?;
        for ((index, descriptor), signature) in descriptors.elements(size).enumerate().zip(signatures) {
            let function = function(descriptor, signature, available);
            functions.push(function.map_err(|error| inside(error, self.layout.functions.1, index))?);
        }
        Ok(functions)
    }

    fn export(&self, table: &Table<'_>, functions: &mut [Function]) -> Result<Export> {
        let name = self.name(table, schema::export::NAME)?;
        let has_signature = self.layout.signatures.is_none();
        let ordinal = table.i32(if has_signature { schema::export::ORDINAL_A } else { schema::export::ORDINAL_B })?;
        let count = functions.len();
        let found = u32::try_from(ordinal).ok().and_then(|index| Some((index, functions.get_mut(index as usize)?)));
        let Some((function, target)) = found else {
            return Err(Error::invalid(format!("{name:?} is function {ordinal} of {count}")));
        };
        if has_signature && let Some(table) = table.table(schema::export::SIGNATURE_A)? {
            let signature = self.signature(&table)?;
            match &target.signature {
                Some(known) if known.calling_convention != signature.calling_convention => {
                    return Err(Error::invalid(format!(
                        "{name:?} says that function {ordinal} has the calling convention {:?}, an export before it said {:?}",
                        signature.calling_convention, known.calling_convention
                    )));
                }
                Some(_) => {}
                None => target.signature = Some(signature),
            }
        }
        Ok(Export { name, function })
    }

    fn state(&self) -> Result<(u32, u32)> {
        let Some(table) = self.root.table(self.layout.state)? else { return Ok((0, 0)) };
        let limited = |slot: Slot, limit: u32| {
            let value = table.i32(slot)?;
            let count = u32::try_from(value).map_err(|_| Error::invalid(format!("{} is negative: {value}", slot.1)))?;
            if count > limit {
                return Err(Error::new(Status::ResourceExhausted, format!("{} is {count}, more than the limit of {limit}", slot.1)));
            }
            Ok(count)
        };
        Ok((limited(schema::state::BYTES, MAXIMUM_GLOBAL_BYTES)?, limited(schema::state::REFS, MAXIMUM_GLOBAL_REFS)?))
    }

    fn attributes(&self, table: &Table<'_>, slot: Slot) -> Result<Vec<Attribute>> {
        collect(self.buffer, table, slot, |_, table| {
            Ok(Attribute { key: self.text(&table, schema::attribute::KEY)?, value: self.text(&table, schema::attribute::VALUE)? })
        })
    }

    /// All tables of a vector of the root.
    fn collect<T>(&self, slot: Slot, read: impl FnMut(usize, Table<'_>) -> Result<T>) -> Result<Vec<T>> {
        collect(self.buffer, &self.root, slot, read)
    }

    fn reserve<T>(&self, count: usize) -> Result<Vec<T>> {
        reserve(self.buffer, count)
    }

    fn copy(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut copy = self.reserve(bytes.len())?;
        copy.extend_from_slice(bytes);
        Ok(copy)
    }

    /// A name that has to be there.
    fn name(&self, table: &Table<'_>, slot: Slot) -> Result<String> {
        match table.string(slot)?.unwrap_or_default() {
            [] => Err(Error::invalid(format!("{} is absent or empty", slot.1))),
            bytes => self.utf8(bytes, slot),
        }
    }

    fn utf8(&self, bytes: &[u8], slot: Slot) -> Result<String> {
        self.buffer.charge(bytes.len())?;
        let text = std::str::from_utf8(bytes);
        text.map(str::to_owned).map_err(|_| Error::invalid(format!("{} is not UTF-8: \"{}\"", slot.1, bytes.escape_ascii())))
    }

    /// Text that only informs; bytes that are not UTF-8 are replaced.
    fn text(&self, table: &Table<'_>, slot: Slot) -> Result<String> {
        text(self.buffer, table, slot)
    }
}

fn function(descriptor: &[u8], signature: Option<Signature>, available: usize) -> Result<Function> {
    let old = descriptor.len() == schema::DESCRIPTOR_A;
    let short = |at: usize| descriptor.get(at..at + 2).map_or(0, LittleEndian::read_u16);
    let long = |at: usize| descriptor.get(at..at + 4).map_or(0, LittleEndian::read_i32);
    let (offset, length) = (long(0), long(4));
    let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok()).and_then(|(start, length)| {
        let range = start..start.checked_add(length)?;
        (length != 0 && range.end <= available).then_some(range)
    });
    let bytecode = range.ok_or_else(|| {
        Error::invalid(format!("{length} bytes of bytecode at offset {offset} are empty or not in the {available} bytes that there are"))
    })?;
    let counts = if old { [short(8), short(10)] } else { [short(16), short(18)] };
    let [value_registers, ref_registers] = counts;
    if value_registers > MAXIMUM_VALUE_REGISTERS || ref_registers > MAXIMUM_REF_REGISTERS {
        return Err(Error::invalid(format!(
            "{value_registers} value and {ref_registers} ref registers; at most {MAXIMUM_VALUE_REGISTERS} and {MAXIMUM_REF_REGISTERS} are possible"
        )));
    }
    let block_count = if old { None } else { Some(short(14)) };
    if block_count == Some(0) {
        return Err(Error::invalid("a function without blocks; one is the least"));
    }
    let requirements = Requirements(if old { 0 } else { long(8).cast_unsigned() });
    Ok(Function { bytecode, requirements, block_count, value_registers, ref_registers, signature })
}

fn necessity(flags: u32) -> Necessity {
    if flags & FLAG_OPTIONAL != 0 { Necessity::Optional } else { Necessity::Required }
}

/// Says in which element of which vector an error is.
fn inside(mut error: Error, vector: &str, index: usize) -> Error {
    error.message = format!("{vector}[{index}]: {}", error.message);
    error
}

/// All tables of a vector; none when it is absent.
fn collect<T>(buffer: &Buffer<'_>, table: &Table<'_>, slot: Slot, mut read: impl FnMut(usize, Table<'_>) -> Result<T>) -> Result<Vec<T>> {
    let Some(vector) = table.offsets(slot)? else { return Ok(Vec::new()) };
    let mut items = reserve(buffer, vector.len())?;
    for index in 0..vector.len() {
        let item = vector.table(index, slot.1).and_then(|table| read(index, table));
        items.push(item.map_err(|error| inside(error, slot.1, index))?);
    }
    Ok(items)
}

/// An empty vector with room for `count` items, paid for from the allowance of the buffer.
fn reserve<T>(buffer: &Buffer<'_>, count: usize) -> Result<Vec<T>> {
    buffer.charge(count.saturating_mul(size_of::<T>()))?;
    let mut items = Vec::new();
    items.try_reserve_exact(count).map_err(|_| Error::new(Status::ResourceExhausted, format!("no memory for {count} items")))?;
    Ok(items)
}

fn text(buffer: &Buffer<'_>, table: &Table<'_>, slot: Slot) -> Result<String> {
    let bytes = table.string(slot)?.unwrap_or_default();
    buffer.charge(bytes.len())?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
