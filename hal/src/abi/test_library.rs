//! Test support: writes the tables of a library of any version and pointer width into bytes. Offsets are stated here once
//! more, by hand, so that a slip in the layouts shows.

use super::{AddressSpace, PointerWidth, Version};

/// An export to write.
pub(crate) struct TestExport {
    pub(crate) function: u64,
    pub(crate) name: Option<&'static str>,
    pub(crate) constants: u8,
    pub(crate) bindings: u8,
    pub(crate) pages: u16,
}

/// A library to write.
pub(crate) struct TestLibrary {
    pub(crate) version: Version,
    pub(crate) width: PointerWidth,
    pub(crate) exports: Vec<TestExport>,
    pub(crate) imports: Vec<&'static str>,
    pub(crate) constants: u32,
    pub(crate) sanitizer: u32,
}

/// Bytes at an address; code is everything in one address range.
pub(crate) struct ByteSpace {
    pub(crate) base: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) code: std::ops::Range<u64>,
}

impl AddressSpace for ByteSpace {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let bytes = address.checked_sub(self.base).and_then(|at| self.bytes.get(at as usize..)?.get(..target.len()));
        bytes.map(|bytes| target.copy_from_slice(bytes)).is_some()
    }

    fn is_executable(&self, address: u64) -> bool {
        self.code.contains(&address)
    }

    fn describe(&self) -> &str {
        "the test bytes"
    }
}

impl TestLibrary {
    pub(crate) fn new(version: Version, exports: Vec<TestExport>) -> Self {
        Self { version, width: PointerWidth::HOST, exports, imports: Vec::new(), constants: 0, sanitizer: 0 }
    }

    /// The bytes when they are to stand at `base`; the library struct comes first.
    pub(crate) fn write(&self, base: u64) -> Vec<u8> {
        let wide = self.width == PointerWidth::Bits64;
        let mut out = Writer { base, wide, bytes: vec![0; 128] };
        let (names_at, constants_at) = match (self.version, wide) {
            (Version::V0_3, true) => (24 + 24, 72),
            (Version::V0_3, false) => (12 + 12, 36),
            (Version::V0_4 | Version::V0_5, true) => (24 + 24, 80),
            (Version::V0_4 | Version::V0_5, false) => (12 + 12, 40),
            (Version::V0_6, true) => (24 + 40, 104),
            (Version::V0_6, false) => (12 + 20, 52),
        };
        let header = out.append(&[0; 24]);
        out.pointer_at(0, header);
        out.u32_at(header - base, self.version.number());
        let name = out.string("test_library");
        out.pointer_at(header - base + if wide { 8 } else { 4 }, name);
        out.u32_at(header - base + if wide { 20 } else { 12 }, self.sanitizer);
        let (imports_at, exports_at, pointer) = if wide { (8, 24, 8) } else { (4, 12, 4) };
        out.u32_at(imports_at, self.imports.len() as u32);
        let symbols: Vec<u64> = self.imports.iter().map(|name| out.string(name)).collect();
        let symbols = out.pointers(&symbols);
        out.pointer_at(imports_at + pointer, symbols);
        out.u32_at(exports_at, self.exports.len() as u32);
        let functions: Vec<u64> = self.exports.iter().map(|export| export.function).collect();
        let functions = out.pointers(&functions);
        out.pointer_at(exports_at + pointer, functions);
        let attributes: Vec<u8> = self.exports.iter().flat_map(|export| self.attributes(export)).collect();
        let attributes = out.append(&attributes);
        out.pointer_at(exports_at + 2 * pointer, attributes);
        if self.exports.iter().any(|export| export.name.is_some()) {
            let names: Vec<u64> = self.exports.iter().map(|export| export.name.map_or(0, |name| out.string(name))).collect();
            let names = out.pointers(&names);
            out.pointer_at(names_at, names);
        }
        out.u32_at(constants_at, self.constants);
        out.bytes
    }

    fn attributes(&self, export: &TestExport) -> Vec<u8> {
        let pages = export.pages.to_le_bytes();
        let counts = [export.constants, export.bindings];
        match self.version {
            Version::V0_3 | Version::V0_4 => vec![pages[0], pages[1], 0, 0],
            Version::V0_5 => [&pages[..], &counts, &[0; 68]].concat(),
            Version::V0_6 => [&[0; 8][..], &pages, &counts, &[0; 52]].concat(),
        }
    }
}

struct Writer {
    base: u64,
    wide: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn append(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let address = self.base + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        address
    }

    fn string(&mut self, text: &str) -> u64 {
        self.append(&[text.as_bytes(), &[0]].concat())
    }

    fn pointers(&mut self, values: &[u64]) -> u64 {
        let wide = self.wide;
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| if wide { value.to_le_bytes().to_vec() } else { (*value as u32).to_le_bytes().to_vec() })
            .collect();
        self.append(&bytes)
    }

    fn u32_at(&mut self, at: u64, value: u32) {
        self.bytes[at as usize..][..4].copy_from_slice(&value.to_le_bytes());
    }

    fn pointer_at(&mut self, at: u64, value: u64) {
        if self.wide {
            self.bytes[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
        } else {
            self.u32_at(at, value as u32);
        }
    }
}
