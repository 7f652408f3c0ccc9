//! Layouts of the executable-library structs: byte offsets by version and pointer width, stated once.

/// Version of the executable-library ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Compilers 20230209 to 20240226.
    V0_3 = 3,
    /// Compilers 20240410 to 20240724.
    V0_4 = 4,
    /// Compilers 20240828 to 3.7.1.
    V0_5 = 5,
    /// Compilers from 3.8.0 on.
    V0_6 = 6,
}

impl Version {
    /// All versions, in the order in which a library is asked for them: compiled code answers only to its own number.
    pub const NEWEST_FIRST: [Self; 4] = [Self::V0_6, Self::V0_5, Self::V0_4, Self::V0_3];

    /// The number that the query function is given.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The layouts of this version's tables.
    pub const fn layout(self) -> &'static VersionLayout {
        match self {
            Self::V0_3 => &V0_3,
            Self::V0_4 => &V0_4,
            Self::V0_5 => &V0_5,
            Self::V0_6 => &V0_6,
        }
    }
}

/// Width of a pointer in the code that a library is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerWidth {
    /// 4 bytes.
    Bits32,
    /// 8 bytes.
    Bits64,
}

impl PointerWidth {
    /// The width on this machine.
    pub const HOST: Self = if cfg!(target_pointer_width = "64") { Self::Bits64 } else { Self::Bits32 };

    /// Bytes of a pointer.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }
}

/// A byte offset or size for both pointer widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    wide: u16,
    narrow: u16,
}

impl At {
    /// The value for one width.
    pub const fn of(self, width: PointerWidth) -> u64 {
        match width {
            PointerWidth::Bits32 => self.narrow as u64,
            PointerWidth::Bits64 => self.wide as u64,
        }
    }

    /// The value on this machine.
    pub const fn host(self) -> usize {
        self.of(PointerWidth::HOST) as usize
    }
}

const fn at(wide: u16, narrow: u16) -> At {
    At { wide, narrow }
}

/// The header, the same in all versions.
#[derive(Clone, Copy, Debug)]
pub struct HeaderLayout {
    /// `u32`.
    pub version: At,
    /// Pointer to a string.
    pub name: At,
    /// `u32`.
    pub features: At,
    /// `u32`, a [`super::Sanitizer`].
    pub sanitizer: At,
    /// Bytes of the struct.
    pub size: At,
}

/// The header's layout.
pub const HEADER: HeaderLayout =
    HeaderLayout { version: at(0, 0), name: at(8, 4), features: at(16, 8), sanitizer: at(20, 12), size: at(24, 16) };

/// The table of imports, the same in all versions; it stands inside the library struct.
#[derive(Clone, Copy, Debug)]
pub struct ImportTableLayout {
    /// `u32`.
    pub count: At,
    /// Pointer to an array of string pointers.
    pub symbols: At,
}

/// The import table's layout.
pub const IMPORT_TABLE: ImportTableLayout = ImportTableLayout { count: at(0, 0), symbols: at(8, 4) };

/// The library struct.
#[derive(Clone, Copy, Debug)]
pub struct LibraryLayout {
    /// Pointer to the header.
    pub header: At,
    /// The import table, inline.
    pub imports: At,
    /// The export table, inline.
    pub exports: At,
    /// Number of executable constants, `u32`.
    pub constant_count: At,
    /// Bytes of the struct.
    pub size: At,
}

/// The table of exports. What this runtime has no use for (parameters, occupancy, tags, source locations) is not listed.
#[derive(Clone, Copy, Debug)]
pub struct ExportTableLayout {
    /// `u32`.
    pub count: At,
    /// Pointer to an array of function pointers.
    pub functions: At,
    /// Pointer to an array of dispatch attributes.
    pub attributes: At,
    /// Pointer to an array of string pointers, or null.
    pub names: At,
}

/// One element of the dispatch attributes; the same for both pointer widths.
#[derive(Clone, Copy, Debug)]
pub struct AttributesLayout {
    /// `u64`.
    pub flags: Option<u64>,
    /// `u16`, pages of 4096 bytes.
    pub local_memory_pages: u64,
    /// `u8`.
    pub constant_count: Option<u64>,
    /// `u8`.
    pub binding_count: Option<u64>,
    /// Bytes from one element to the next.
    pub stride: u64,
}

/// The layouts that differ from version to version.
#[derive(Clone, Copy, Debug)]
pub struct VersionLayout {
    /// The library struct.
    pub library: LibraryLayout,
    /// The export table inside it.
    pub exports: ExportTableLayout,
    /// The elements of the attributes array.
    pub attributes: AttributesLayout,
}

const V0_3: VersionLayout = VersionLayout {
    library: LibraryLayout { header: at(0, 0), imports: at(8, 4), exports: at(24, 12), constant_count: at(72, 36), size: at(80, 40) },
    exports: ExportTableLayout { count: at(0, 0), functions: at(8, 4), attributes: at(16, 8), names: at(24, 12) },
    attributes: AttributesLayout { flags: None, local_memory_pages: 0, constant_count: None, binding_count: None, stride: 4 },
};

const V0_4: VersionLayout = VersionLayout {
    library: LibraryLayout { header: at(0, 0), imports: at(8, 4), exports: at(24, 12), constant_count: at(80, 40), size: at(104, 52) },
    exports: V0_3.exports,
    attributes: V0_3.attributes,
};

const V0_5: VersionLayout = VersionLayout {
    library: V0_4.library,
    exports: V0_3.exports,
    attributes: AttributesLayout { flags: None, local_memory_pages: 0, constant_count: Some(2), binding_count: Some(3), stride: 72 },
};

const V0_6: VersionLayout = VersionLayout {
    library: LibraryLayout { header: at(0, 0), imports: at(8, 4), exports: at(24, 12), constant_count: at(104, 52), size: at(128, 64) },
    exports: ExportTableLayout { count: at(0, 0), functions: at(8, 4), attributes: at(16, 8), names: at(40, 20) },
    attributes: AttributesLayout { flags: Some(0), local_memory_pages: 8, constant_count: Some(10), binding_count: Some(11), stride: 64 },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_export_table_and_the_constant_count_lie_in_the_library() {
        for version in Version::NEWEST_FIRST {
            let layout = version.layout();
            for width in [PointerWidth::Bits32, PointerWidth::Bits64] {
                let names_end = layout.library.exports.of(width) + layout.exports.names.of(width) + width.bytes();
                assert!(names_end <= layout.library.constant_count.of(width), "{version:?} {width:?}");
                assert!(layout.library.constant_count.of(width) + 4 <= layout.library.size.of(width), "{version:?} {width:?}");
            }
        }
    }

    #[test]
    fn versions_are_asked_from_six_down_to_three() {
        assert_eq!(Version::NEWEST_FIRST.map(Version::number), [6, 5, 4, 3]);
    }
}
