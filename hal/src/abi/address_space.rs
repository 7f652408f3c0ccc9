//! Bounded reading of memory that tables point into: every pointer is checked before it is followed.

use super::PointerWidth;
use vmfb_vm::{Error, Result};

/// Longest string that is read from a table.
pub const MAX_STRING: usize = 4096;

/// Memory from which the tables of a library are read. Addresses are those that the tables hold.
pub trait AddressSpace {
    /// Copies bytes out. False, with `target` unspecified, when not all of them are known to be readable.
    fn read(&self, address: u64, target: &mut [u8]) -> bool;

    /// Whether code at this address may be called.
    fn is_executable(&self, address: u64) -> bool;

    /// What the memory is, for messages: "the image".
    fn describe(&self) -> &str;
}

/// Reads integers, pointers and strings of one pointer width, little-endian.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    space: &'a dyn AddressSpace,
    width: PointerWidth,
}

impl<'a> Reader<'a> {
    /// A reader of an address space.
    pub fn new(space: &'a dyn AddressSpace, width: PointerWidth) -> Self {
        Self { space, width }
    }

    /// Width of the pointers.
    pub fn width(&self) -> PointerWidth {
        self.width
    }

    /// Reads one byte. `what` names the field in the error.
    pub fn u8(&self, address: u64, what: &str) -> Result<u8> {
        self.array::<1>(address, what).map(|[value]| value)
    }

    /// Reads 16 bits.
    pub fn u16(&self, address: u64, what: &str) -> Result<u16> {
        self.array(address, what).map(u16::from_le_bytes)
    }

    /// Reads 32 bits.
    pub fn u32(&self, address: u64, what: &str) -> Result<u32> {
        self.array(address, what).map(u32::from_le_bytes)
    }

    /// Reads 64 bits.
    pub fn u64(&self, address: u64, what: &str) -> Result<u64> {
        self.array(address, what).map(u64::from_le_bytes)
    }

    /// Reads a pointer.
    pub fn pointer(&self, address: u64, what: &str) -> Result<u64> {
        match self.width {
            PointerWidth::Bits32 => self.u32(address, what).map(u64::from),
            PointerWidth::Bits64 => self.u64(address, what),
        }
    }

    /// Reads a pointer to code and checks that it may be called.
    pub fn function(&self, address: u64, what: &str) -> Result<u64> {
        let function = self.pointer(address, what)?;
        if self.space.is_executable(function) {
            return Ok(function);
        }
        Err(Error::precondition(format!("{what} points at {function:#x}, which is not executable code in {}", self.space.describe())))
    }

    /// Reads the string of at most [`MAX_STRING`] bytes that starts at `address`.
    pub fn string(&self, address: u64, what: &str) -> Result<String> {
        let mut bytes = Vec::new();
        for i in 0..=MAX_STRING as u64 {
            match self.u8(element(address, i, 1, what)?, what)? {
                0 => return String::from_utf8(bytes).map_err(|_| Error::precondition(format!("{what} at {address:#x} is not UTF-8 text"))),
                byte => bytes.push(byte),
            }
        }
        Err(Error::precondition(format!("{what} at {address:#x} does not end within {MAX_STRING} bytes")))
    }

    fn array<const N: usize>(&self, address: u64, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        if self.space.read(address, &mut bytes) {
            return Ok(bytes);
        }
        Err(Error::precondition(format!("{what}: {N} bytes at {address:#x} are not readable in {}", self.space.describe())))
    }
}

/// Address of an array element, or the error that the array wraps around the address space.
pub(crate) fn element(base: u64, index: u64, stride: u64, what: &str) -> Result<u64> {
    index.checked_mul(stride).and_then(|offset| base.checked_add(offset)).ok_or_else(|| {
        Error::precondition(format!("{what}: element {index} of the array at {base:#x} lies past the end of the address space"))
    })
}
