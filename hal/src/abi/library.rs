//! The tables of an executable library, read once into owned values.

use super::address_space::{AddressSpace, Reader, element};
use super::layout::{AttributesLayout, HEADER, IMPORT_TABLE, PointerWidth, Version};
use vmfb_vm::{Error, Result, Status};

/// Most 32-bit constants of one dispatch.
pub const MAX_CONSTANTS: usize = 64;

/// Most bindings of one dispatch.
pub const MAX_BINDINGS: usize = 64;

/// Unit of local memory.
pub const LOCAL_MEMORY_PAGE: usize = 4096;

/// Most exports and most imports of a library; programs have some hundreds.
pub const MAX_ENTRIES: u32 = 65_536;

/// Most bytes of all names of a library together: tables may point at one string many times.
const MAX_NAME_BYTES: usize = 16 << 20;

/// What a library was instrumented with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    /// Nothing.
    None,
    /// AddressSanitizer.
    Address,
    /// MemorySanitizer.
    Memory,
    /// ThreadSanitizer.
    Thread,
    /// UndefinedBehaviorSanitizer.
    Undefined,
}

impl Sanitizer {
    fn from_number(number: u32) -> Result<Self> {
        Ok(match number {
            0 => Self::None,
            1 => Self::Address,
            2 => Self::Memory,
            3 => Self::Thread,
            4 => Self::Undefined,
            _ => return Err(Error::precondition(format!("library header: sanitizer is {number}; 0 to 4 are known"))),
        })
    }
}

/// What a library says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryTables {
    /// Version of the ABI.
    pub version: Version,
    /// Name of the library.
    pub name: String,
    /// Instrumentation.
    pub sanitizer: Sanitizer,
    /// Functions that the library wants.
    pub imports: Vec<ImportSymbol>,
    /// Kernels.
    pub exports: Vec<ExportEntry>,
    /// Number of executable constants that the library wants.
    pub constant_count: u32,
}

/// A function that a library wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportSymbol {
    /// Name without the mark of optional ones.
    pub name: String,
    /// Whether the library needs it.
    pub need: Need,
}

/// Whether an import must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It must.
    Required,
    /// It may be null.
    Optional,
}

/// A kernel of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportEntry {
    /// Address of the code.
    pub function: u64,
    /// Name, if the library kept it.
    pub name: Option<String>,
    /// What a dispatch must bring and gets.
    pub attributes: Attributes,
}

/// Dispatch attributes of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Number of constants, where the version declares it.
    pub constant_count: Option<u8>,
    /// Number of bindings, where the version declares it.
    pub binding_count: Option<u8>,
    /// Pages of local memory for each workgroup.
    pub local_memory_pages: u16,
    /// Whether workgroups may run side by side.
    pub order: WorkgroupOrder,
}

/// How the workgroups of one dispatch may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkgroupOrder {
    /// In any order, side by side.
    #[default]
    Any,
    /// One after the other.
    Sequential,
}

/// The version that a library at this address declares.
pub fn declared_version(space: &dyn AddressSpace, width: PointerWidth, library: u64) -> Result<u32> {
    let reader = Reader::new(space, width);
    let header = reader.pointer(library, "library struct: header pointer")?;
    reader.u32(element(header, HEADER.version.of(width), 1, "library header")?, "library header: version")
}

/// Reads the tables of a library at this address, which must be of the given version.
pub fn read_library(space: &dyn AddressSpace, width: PointerWidth, library: u64, version: Version) -> Result<LibraryTables> {
    let declared = declared_version(space, width, library)?;
    if declared != version.number() {
        return Err(Error::precondition(format!("library header: version is {declared}, {} was asked for", version.number())));
    }
    let reader = Reader::new(space, width);
    let header = reader.pointer(library, "library struct: header pointer")?;
    let mut names = NameBudget(MAX_NAME_BYTES);
    let name_address = reader.pointer(element(header, HEADER.name.of(width), 1, "library header")?, "library header: name pointer")?;
    let name = if name_address == 0 { String::new() } else { names.read(&reader, name_address, "library header: name")? };
    let sanitizer = reader.u32(element(header, HEADER.sanitizer.of(width), 1, "library header")?, "library header: sanitizer")?;
    let layout = version.layout().library;
    let constants = element(library, layout.constant_count.of(width), 1, "library struct")?;
    Ok(LibraryTables {
        version,
        name,
        sanitizer: Sanitizer::from_number(sanitizer)?,
        imports: read_imports(&reader, element(library, layout.imports.of(width), 1, "library struct")?, &mut names)?,
        exports: read_exports(&reader, element(library, layout.exports.of(width), 1, "library struct")?, version, &mut names)?,
        constant_count: reader.u32(constants, "library struct: constants.count")?,
    })
}

fn read_imports(reader: &Reader<'_>, table: u64, names: &mut NameBudget) -> Result<Vec<ImportSymbol>> {
    let width = reader.width();
    let count = reader.u32(element(table, IMPORT_TABLE.count.of(width), 1, "import table")?, "import table: count")?;
    check_entries(count, "import table: count")?;
    let symbols = reader.pointer(element(table, IMPORT_TABLE.symbols.of(width), 1, "import table")?, "import table: symbols pointer")?;
    let mut imports = Vec::new();
    for i in 0..count {
        let what = "import table: symbol";
        let address = reader.pointer(element(symbols, i.into(), width.bytes(), what)?, what)?;
        let symbol = names.read(reader, address, what)?;
        imports.push(match symbol.strip_prefix('?') {
            Some(name) => ImportSymbol { name: name.to_owned(), need: Need::Optional },
            None => ImportSymbol { name: symbol, need: Need::Required },
        });
    }
    Ok(imports)
}

fn read_exports(reader: &Reader<'_>, table: u64, version: Version, names: &mut NameBudget) -> Result<Vec<ExportEntry>> {
    let width = reader.width();
    let layout = version.layout();
    let field = |at: u64, what: &str| element(table, at, 1, what);
    let count = reader.u32(field(layout.exports.count.of(width), "export table: count")?, "export table: count")?;
    check_entries(count, "export table: count")?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let pointer = |at: u64, what: &str| reader.pointer(field(at, what)?, what);
    let functions = pointer(layout.exports.functions.of(width), "export table: ptrs")?;
    let attributes = pointer(layout.exports.attributes.of(width), "export table: attrs")?;
    let name_table = pointer(layout.exports.names.of(width), "export table: names")?;
    let mut exports = Vec::new();
    for i in 0..u64::from(count) {
        let function = reader.function(element(functions, i, width.bytes(), "export table: ptrs")?, "export table: ptrs entry")?;
        let attributes = element(attributes, i, layout.attributes.stride, "export table: attrs")?;
        exports.push(ExportEntry {
            function,
            name: read_name(reader, name_table, i, names)?,
            attributes: read_attributes(reader, attributes, &layout.attributes).map_err(|error| error.context(format!("export {i}")))?,
        });
    }
    Ok(exports)
}

/// Names are optional as a whole and one by one: a lookup by name then fails, the load does not.
fn read_name(reader: &Reader<'_>, table: u64, index: u64, names: &mut NameBudget) -> Result<Option<String>> {
    if table == 0 {
        return Ok(None);
    }
    let what = "export table: names entry";
    let address = reader.pointer(element(table, index, reader.width().bytes(), what)?, what)?;
    if address == 0 {
        return Ok(None);
    }
    let name = names.read(reader, address, what)?;
    Ok((!name.is_empty()).then_some(name))
}

fn read_attributes(reader: &Reader<'_>, address: u64, layout: &AttributesLayout) -> Result<Attributes> {
    let field = |at: u64| element(address, at, 1, "export table: attrs entry");
    let count = |at: Option<u64>, what: &str, limit: usize| -> Result<Option<u8>> {
        let Some(at) = at else { return Ok(None) };
        let count = reader.u8(field(at)?, what)?;
        if usize::from(count) > limit {
            return Err(Error::out_of_range(format!("{what} is {count}; at most {limit} are possible")));
        }
        Ok(Some(count))
    };
    const SEQUENTIAL: u64 = 1;
    let flags = match layout.flags {
        Some(at) => reader.u64(field(at)?, "dispatch attributes: flags")?,
        None => 0,
    };
    Ok(Attributes {
        constant_count: count(layout.constant_count, "dispatch attributes: constant_count", MAX_CONSTANTS)?,
        binding_count: count(layout.binding_count, "dispatch attributes: binding_count", MAX_BINDINGS)?,
        local_memory_pages: reader.u16(field(layout.local_memory_pages)?, "dispatch attributes: local_memory_pages")?,
        order: if flags & SEQUENTIAL != 0 { WorkgroupOrder::Sequential } else { WorkgroupOrder::Any },
    })
}

fn check_entries(count: u32, what: &str) -> Result<()> {
    if count <= MAX_ENTRIES {
        return Ok(());
    }
    Err(Error::out_of_range(format!("{what} is {count}; at most {MAX_ENTRIES} are taken")))
}

/// Bytes that names may still take.
struct NameBudget(usize);

impl NameBudget {
    fn read(&mut self, reader: &Reader<'_>, address: u64, what: &str) -> Result<String> {
        let name = reader.string(address, what)?;
        self.0 = self.0.checked_sub(name.len()).ok_or_else(|| {
            Error::new(Status::ResourceExhausted, format!("{what}: the names of the library take more than {MAX_NAME_BYTES} bytes"))
        })?;
        Ok(name)
    }
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
