//! The module definition: everything a `.vmfb` states about a module, in one age-free form.
//!
//! Both FlatBuffer schema ages are read into these types ([`crate::parse`]) and written from them ([`crate::builder`]).

use std::ops::Range;
use std::sync::Arc;

/// Bytecode version, `major.minor` as the file packs it in one `u32` (major in the high half).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BytecodeVersion(pub u32);

impl BytecodeVersion {
    /// Every compiler up to 2023-02-28.
    pub const V13: Self = Self(13 << 16);
    /// Development trees of three days in 2023-03.
    pub const V14: Self = Self(14 << 16);
    /// 2023-03 to 2025-12.
    pub const V15: Self = Self(15 << 16);
    /// 3.10.0.
    pub const V16: Self = Self(16 << 16);
    /// 3.11.0 and later.
    pub const V17: Self = Self(17 << 16);

    /// The major number; it alone decides the encoding.
    pub const fn major(self) -> u32 {
        self.0 >> 16
    }

    /// The compilers that write this version, for messages.
    pub const fn compilers(self) -> &'static str {
        match self.major() {
            13 => "a compiler up to 2023-02-28",
            14 => "a development compiler of 2023-03-03 to 03-06",
            15 => "a compiler of 2023-03-06 to 3.9.0",
            16 => "the compiler 3.10.0",
            17 => "a compiler from 3.11.0 on",
            _ => "an unknown compiler",
        }
    }

    /// The minor number; 0 in every known file.
    pub const fn minor(self) -> u32 {
        self.0 & 0xFFFF
    }

    /// Whether blocks start with a marker byte and branches point at it (14 and later).
    pub const fn has_block_markers(self) -> bool {
        self.major() >= 14
    }

    /// Whether MOVE bits on single ref operands mean something (16 and later).
    pub const fn honours_move(self) -> bool {
        self.major() >= 16
    }
}

impl std::fmt::Display for BytecodeVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}

impl std::fmt::Debug for BytecodeVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Requirement bits of a module or function (absent in 13.0: then [`Requirements::NONE`] is stored and nothing is refused).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirements(pub u32);

impl Requirements {
    /// Nothing required.
    pub const NONE: Self = Self(0);
    /// The f32 extension.
    pub const F32: u32 = 1;
    /// The f64 extension.
    pub const F64: u32 = 2;
    /// The function may yield (a hint, 17.0 and later).
    pub const YIELD: u32 = 4;
    /// The function may unwind (a hint, 17.0 and later).
    pub const UNWIND: u32 = 8;
}

/// One reflection entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Key; may be empty in malformed modules.
    pub key: String,
    /// Value.
    pub value: String,
}

/// A module that this one needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// Module name.
    pub name: String,
    /// The lowest version that will do.
    pub minimum_version: u32,
    /// Whether linking may go on without it.
    pub necessity: Necessity,
}

/// Whether linking fails without something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Necessity {
    /// Flag 1, the default.
    Required,
    /// Flag 2.
    Optional,
}

/// The calling convention and reflection of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// Calling-convention string, for example `0rIi_r`; empty means `() -> ()`.
    pub calling_convention: String,
    /// Reflection.
    pub attributes: Vec<Attribute>,
}

/// A function that another module provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// `module.function.with.dots`.
    pub full_name: String,
    /// Absent only in malformed modules.
    pub signature: Option<Signature>,
    /// Whether the import may stay unresolved.
    pub necessity: Necessity,
}

/// A function that other modules and the host may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name.
    pub name: String,
    /// Ordinal into [`ModuleDef::functions`]; checked to be in range.
    pub function: u32,
}

/// A defined function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its bytes in [`ModuleDef::bytecode`]; checked to be in range. In 13.0 the padding to 8 is included.
    pub bytecode: Range<usize>,
    /// Requirement bits; 0 in 13.0.
    pub requirements: Requirements,
    /// Number of basic blocks; absent in 13.0.
    pub block_count: Option<u16>,
    /// Number of 32-bit value slots, at most 0x7FFF.
    pub value_registers: u16,
    /// Number of ref slots, at most 0x3FFF.
    pub ref_registers: u16,
    /// Signature. In 13.0 only exported functions have one (copied here from the export).
    pub signature: Option<Signature>,
}

/// Where the bytes of a constant are, as a range of the whole archive; checked to be in range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rodata {
    /// Range of the archive.
    pub range: Range<usize>,
    /// Embedded in the FlatBuffer or stored behind it.
    pub placement: RodataPlacement,
}

/// Where a rodata segment is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RodataPlacement {
    /// Inside the FlatBuffer.
    Embedded,
    /// Behind the FlatBuffer.
    External,
}

/// Source locations; present unless stripped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugDatabase {
    /// Locations that functions and other locations refer to by index.
    pub locations: Vec<Location>,
    /// One entry per function in well-formed databases (3.11.0 to 3.13.0 write a single one: see [`DebugDatabase::function`]).
    pub functions: Vec<FunctionSourceMap>,
}

/// A source location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// Unknown.
    None,
    /// A call site: where the callee's location was inlined.
    CallSite {
        /// Index of the callee's location.
        callee: i32,
        /// Index of the caller's location.
        caller: i32,
    },
    /// A position in a file.
    FileLineColumn {
        /// File name, shared by all locations in it.
        filename: Arc<str>,
        /// Line, 1-based.
        line: i32,
        /// Column, 1-based.
        column: i32,
    },
    /// Several locations.
    Fused {
        /// Free text.
        metadata: String,
        /// Indices.
        locations: Vec<i32>,
    },
    /// A name on another location.
    Name {
        /// The name.
        name: String,
        /// Index of the location that it names.
        child: i32,
    },
}

/// Locations of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSourceMap {
    /// The function's own name.
    pub local_name: String,
    /// (byte offset in the function, location index), sorted by offset.
    pub locations: Vec<(i32, i32)>,
}

/// A whole module definition with a private copy of its bytecode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleDef {
    /// Namespace, for example `module`.
    pub name: String,
    /// Module version that dependents may require.
    pub version: u32,
    /// Bytecode version of the file.
    pub bytecode_version: BytecodeVersion,
    /// OR of all function requirements; 0 in 13.0.
    pub requirements: Requirements,
    /// Module reflection.
    pub attributes: Vec<Attribute>,
    /// Full names of the types that type operands index, for example `i32`, `!vm.list<?>`, `!hal.buffer`.
    pub types: Vec<String>,
    /// Needed modules.
    pub dependencies: Vec<Dependency>,
    /// Import table.
    pub imports: Vec<Import>,
    /// Export table.
    pub exports: Vec<Export>,
    /// Constants.
    pub rodata: Vec<Rodata>,
    /// Bytes of the primitive global area.
    pub global_bytes: u32,
    /// Number of ref globals.
    pub global_refs: u32,
    /// Functions.
    pub functions: Vec<Function>,
    /// All function bodies.
    pub bytecode: Vec<u8>,
    /// Source locations.
    pub debug: Option<DebugDatabase>,
}

impl ModuleDef {
    /// The body of a function; empty when the ordinal is out of range.
    pub fn body(&self, function: u32) -> &[u8] {
        let range = self.functions.get(function as usize).map(|f| f.bytecode.clone());
        range.and_then(|range| self.bytecode.get(range)).unwrap_or_default()
    }
}
