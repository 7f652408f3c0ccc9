//! Slots of the module definition's tables, in both ages of the schema. The reader and the writer share them.

use crate::flatbuffer::Slot;

/// Identifier of the module definition.
pub const IDENTIFIER: &[u8; 4] = b"IREE";

/// Slots of the root table.
#[derive(Debug)]
pub struct Root {
    /// Module requirements; only in layout B.
    pub requirements: Option<Slot>,
    /// Module reflection.
    pub attributes: Slot,
    /// Type table.
    pub types: Slot,
    /// Needed modules.
    pub dependencies: Slot,
    /// Imports.
    pub imports: Slot,
    /// Exports.
    pub exports: Slot,
    /// One signature per function; only in layout B.
    pub signatures: Option<Slot>,
    /// Constants.
    pub rodata: Slot,
    /// Sizes of globals.
    pub state: Slot,
    /// One descriptor per function.
    pub functions: Slot,
    /// Bytecode version.
    pub bytecode_version: Slot,
    /// Bodies of all functions.
    pub bytecode: Slot,
    /// Debug database.
    pub debug: Slot,
}

/// Module name; the same in both layouts.
pub const NAME: Slot = Slot(0, "name");
/// Module version; the same in both layouts.
pub const VERSION: Slot = Slot(1, "version");

/// Root of bytecode version 13.
pub const LAYOUT_A: Root = Root {
    requirements: None,
    attributes: Slot(2, "attrs"),
    types: Slot(3, "types"),
    dependencies: Slot(4, "dependencies"),
    imports: Slot(5, "imported_functions"),
    exports: Slot(6, "exported_functions"),
    signatures: None,
    rodata: Slot(7, "rodata_segments"),
    state: Slot(9, "module_state"),
    functions: Slot(10, "function_descriptors"),
    bytecode_version: Slot(11, "bytecode_version"),
    bytecode: Slot(12, "bytecode_data"),
    debug: Slot(13, "debug_database"),
};

/// Root of bytecode versions 14 and later.
pub const LAYOUT_B: Root = Root {
    requirements: Some(Slot(2, "requirements")),
    attributes: Slot(3, "attrs"),
    types: Slot(4, "types"),
    dependencies: Slot(5, "dependencies"),
    imports: Slot(6, "imported_functions"),
    exports: Slot(7, "exported_functions"),
    signatures: Some(Slot(8, "function_signatures")),
    rodata: Slot(9, "rodata_segments"),
    state: Slot(11, "module_state"),
    functions: Slot(12, "function_descriptors"),
    bytecode_version: Slot(13, "bytecode_version"),
    bytecode: Slot(14, "bytecode_data"),
    debug: Slot(15, "debug_database"),
};

/// Largest root vtable of layout A, in bytes. Layout B has more, because the bytecode is always written.
pub const LAYOUT_A_VTABLE: usize = 32;

/// A reflection entry.
pub mod attribute {
    use super::Slot;
    /// Key.
    pub const KEY: Slot = Slot(0, "key");
    /// Value.
    pub const VALUE: Slot = Slot(1, "value");
}

/// A type.
pub mod type_def {
    use super::Slot;
    /// Full name.
    pub const FULL_NAME: Slot = Slot(0, "full_name");
}

/// A signature.
pub mod signature {
    use super::Slot;
    /// Calling-convention string.
    pub const CALLING_CONVENTION: Slot = Slot(0, "calling_convention");
    /// Function reflection.
    pub const ATTRIBUTES: Slot = Slot(1, "attrs");
}

/// A needed module.
pub mod dependency {
    use super::Slot;
    /// Name.
    pub const NAME: Slot = Slot(0, "name");
    /// Lowest version.
    pub const MINIMUM_VERSION: Slot = Slot(1, "minimum_version");
    /// Flags; 1 when absent.
    pub const FLAGS: Slot = Slot(2, "flags");
}

/// An import.
pub mod import {
    use super::Slot;
    /// Full name.
    pub const FULL_NAME: Slot = Slot(0, "full_name");
    /// Signature.
    pub const SIGNATURE: Slot = Slot(1, "signature");
    /// Flags; 1 when absent.
    pub const FLAGS: Slot = Slot(2, "flags");
}

/// An export.
pub mod export {
    use super::Slot;
    /// Name.
    pub const NAME: Slot = Slot(0, "local_name");
    /// Signature; only in layout A.
    pub const SIGNATURE_A: Slot = Slot(1, "signature");
    /// Function ordinal in layout A.
    pub const ORDINAL_A: Slot = Slot(2, "internal_ordinal");
    /// Function ordinal in layout B.
    pub const ORDINAL_B: Slot = Slot(1, "internal_ordinal");
}

/// A constant.
pub mod rodata {
    use super::Slot;
    /// Union tag of the compression: 0 or 1 (both: none).
    pub const COMPRESSION_TAG: Slot = Slot(0, "compression_type");
    /// Data in the FlatBuffer.
    pub const EMBEDDED: Slot = Slot(2, "embedded_data");
    /// Offset from the external area.
    pub const OFFSET: Slot = Slot(3, "external_data_offset");
    /// Length in the external area.
    pub const LENGTH: Slot = Slot(4, "external_data_length");
}

/// Sizes of globals.
pub mod state {
    use super::Slot;
    /// Bytes of primitive globals.
    pub const BYTES: Slot = Slot(0, "global_bytes_capacity");
    /// Number of ref globals.
    pub const REFS: Slot = Slot(1, "global_ref_count");
}

/// The debug database and its parts.
pub mod debug {
    use super::Slot;
    /// Union tags of the locations.
    pub const LOCATION_TAGS: Slot = Slot(0, "location_table_type");
    /// Locations.
    pub const LOCATIONS: Slot = Slot(1, "location_table");
    /// Source maps, parallel to the functions.
    pub const FUNCTIONS: Slot = Slot(2, "functions");

    /// Name of a function.
    pub const LOCAL_NAME: Slot = Slot(0, "local_name");
    /// (offset, location) pairs of a function.
    pub const FUNCTION_LOCATIONS: Slot = Slot(1, "locations");

    /// Union tag of a call site.
    pub const CALL_SITE: u8 = 1;
    /// Location of the callee.
    pub const CALLEE: Slot = Slot(0, "callee");
    /// Location of the caller.
    pub const CALLER: Slot = Slot(1, "caller");

    /// Union tag of a position in a file.
    pub const FILE_LINE_COLUMN: u8 = 2;
    /// File name.
    pub const FILENAME: Slot = Slot(0, "filename");
    /// Line.
    pub const LINE: Slot = Slot(1, "line");
    /// Column.
    pub const COLUMN: Slot = Slot(2, "column");

    /// Union tag of several locations.
    pub const FUSED: u8 = 3;
    /// Free text.
    pub const METADATA: Slot = Slot(0, "metadata");
    /// The fused locations.
    pub const FUSED_LOCATIONS: Slot = Slot(1, "locations");

    /// Union tag of a named location.
    pub const NAME_LOCATION: u8 = 4;
    /// The name.
    pub const NAME: Slot = Slot(0, "name");
    /// The location that is named.
    pub const CHILD: Slot = Slot(1, "child_location");
}

/// Size of a function descriptor in layout A.
pub const DESCRIPTOR_A: usize = 12;
/// Size of a function descriptor in layout B.
pub const DESCRIPTOR_B: usize = 20;
/// Size of a (bytecode offset, location) pair.
pub const BYTECODE_LOCATION: usize = 8;
