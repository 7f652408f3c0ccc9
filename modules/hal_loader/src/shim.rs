//! The unpacker of `executable.dispatch`: bytes of an argument buffer to typed fields.
//!
//! It is pure, total and allocation-free. Positions, in bytes (C constants, B bindings):
//!
//! | item | [`Signature::Ordinal`] | [`Signature::Function`] |
//! |---|---|---|
//! | executable | 0 | 0 |
//! | ordinal `i32`, function `i64` | 16 | 16 |
//! | workgroups x, y, z `i32` | 20, 24, 28 | 24, 28, 32 |
//! | C `i32` | 32 | 36 |
//! | constants `u32` | 36 | 40 |
//! | B `i32` | 36 + 4C | 40 + 4C |
//! | bindings (reference slot, offset `i64`, length `i64`) | 40 + 4C | 44 + 4C |
//!
//! In [`Layout::Aligned`] the bindings start at the next multiple of 8, and so does the end when there are none. The buffer
//! must end exactly there.

use byteorder::{ByteOrder, LittleEndian};
use vmfb_vm::abi::{Layout, REFERENCE_BYTES};
use vmfb_vm::{Error, Result};

/// Most bindings that one dispatch may have.
pub const MAXIMUM_BINDINGS: usize = 32;

/// Alignment of a binding in [`Layout::Aligned`].
const BINDING_ALIGNMENT: usize = 8;

const CONSTANT_BYTES: usize = 4;
const BINDING_BYTES: usize = REFERENCE_BYTES + 16;

/// Bytes of a reference, for [`vmfb_vm::abi::resolve_reference`].
pub type ReferenceSlot = [u8; REFERENCE_BYTES];

/// The two forms that `executable.dispatch` had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// With the ordinal of an entry point (compilers up to 3.11.0).
    Ordinal,
    /// With what `executable.lookup.function` gave (since 3.12.0).
    Function,
}

impl Signature {
    /// The calling convention.
    pub const fn convention(self) -> &'static str {
        match self {
            Self::Ordinal => "0riiiiCiDCrIID_v",
            Self::Function => "0rIiiiCiDCrIID_v",
        }
    }
}

/// Which export a dispatch names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The ordinal of an entry point.
    Ordinal(i32),
    /// What `executable.lookup.function` gave.
    Function(i64),
}

/// The arguments of a dispatch, as they stand in the buffer.
#[derive(Clone, Copy, Debug)]
pub struct DispatchArguments<'a> {
    /// The executable.
    pub executable: &'a ReferenceSlot,
    /// Which export.
    pub target: Target,
    /// Workgroups along x, y, z.
    pub workgroup_count: [i32; 3],
    constants: &'a [u8],
    bindings: &'a [[u8; BINDING_BYTES]],
}

/// A binding, as it stands in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingArguments<'a> {
    /// The buffer.
    pub buffer: &'a ReferenceSlot,
    /// First byte.
    pub offset: i64,
    /// Number of bytes.
    pub length: i64,
}

impl<'a> DispatchArguments<'a> {
    /// The constants, where they can be read in place: on little-endian machines, if they are aligned.
    #[inline]
    pub fn constants_in_place(&self) -> Option<&'a [u32]> {
        if cfg!(target_endian = "little") { bytemuck::try_cast_slice(self.constants).ok() } else { None }
    }

    /// The constants.
    pub fn constants(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.constants.chunks_exact(CONSTANT_BYTES).map(LittleEndian::read_u32)
    }

    /// The bindings, at most [`MAXIMUM_BINDINGS`].
    pub fn bindings(&self) -> impl ExactSizeIterator<Item = BindingArguments<'a>> + use<'a> {
        self.bindings.iter().map(|bytes| {
            // Both parts are there: 16 + 16 bytes of 32.
            let buffer = bytes.first_chunk().unwrap_or(&[0; REFERENCE_BYTES]);
            let range = bytes.last_chunk().unwrap_or(&[0; 16]);
            BindingArguments { buffer, offset: LittleEndian::read_i64(&range[..8]), length: LittleEndian::read_i64(&range[8..]) }
        })
    }
}

/// Unpacks an argument buffer. INVALID_ARGUMENT if a count is negative or the buffer is not exactly as long as its counts say;
/// RESOURCE_EXHAUSTED for more than [`MAXIMUM_BINDINGS`] bindings.
#[inline]
pub fn unpack(signature: Signature, layout: Layout, buffer: &[u8]) -> Result<DispatchArguments<'_>> {
    let mut rest = Rest { buffer, at: 0 };
    let executable = rest.chunk("the executable")?;
    let target = match signature {
        Signature::Ordinal => Target::Ordinal(rest.i32("the entry point")?),
        Signature::Function => Target::Function(LittleEndian::read_i64(rest.chunk::<8>("the function")?)),
    };
    let workgroup_count = [rest.i32("workgroups x")?, rest.i32("workgroups y")?, rest.i32("workgroups z")?];
    let constants = rest.count("constants")?;
    let constants = rest.take(constants.checked_mul(CONSTANT_BYTES), "the constants")?;
    let binding_count = rest.count("bindings")?;
    if layout == Layout::Aligned {
        let padding = rest.at.next_multiple_of(BINDING_ALIGNMENT) - rest.at;
        rest.take(Some(padding), "the padding before the bindings")?;
    }
    let bindings = rest.take(binding_count.checked_mul(BINDING_BYTES), "the bindings")?;
    rest.end()?;
    if binding_count > MAXIMUM_BINDINGS {
        return Err(too_many_bindings(binding_count));
    }
    let (bindings, _) = bindings.as_chunks();
    Ok(DispatchArguments { executable, target, workgroup_count, constants, bindings })
}

/// What has not been read of a buffer. `at` is at most its length.
struct Rest<'a> {
    buffer: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    #[inline]
    fn take(&mut self, length: Option<usize>, what: &str) -> Result<&'a [u8]> {
        let taken = length.and_then(|length| self.buffer.get(self.at..)?.get(..length));
        let taken = taken.ok_or_else(|| too_short(self.buffer.len(), self.at, length, what))?;
        self.at += taken.len();
        Ok(taken)
    }

    #[inline]
    fn chunk<const N: usize>(&mut self, what: &str) -> Result<&'a [u8; N]> {
        let chunk = self.buffer.get(self.at..).and_then(|rest| rest.first_chunk());
        let chunk = chunk.ok_or_else(|| too_short(self.buffer.len(), self.at, Some(N), what))?;
        self.at += N;
        Ok(chunk)
    }

    #[inline]
    fn i32(&mut self, what: &str) -> Result<i32> {
        self.chunk::<4>(what).map(|bytes| LittleEndian::read_i32(bytes))
    }

    #[inline]
    fn count(&mut self, what: &str) -> Result<usize> {
        let count = self.i32(what)?;
        usize::try_from(count).map_err(|_| Error::invalid(format!("a dispatch with {count} {what}")))
    }

    #[inline]
    fn end(&self) -> Result<()> {
        if self.at == self.buffer.len() { Ok(()) } else { Err(too_long(self.buffer.len(), self.at)) }
    }
}

#[cold]
fn too_short(found: usize, at: usize, wanted: Option<usize>, what: &str) -> Error {
    let wanted = wanted.map_or_else(|| "too many".to_owned(), |wanted| wanted.to_string());
    Error::invalid(format!("the arguments of a dispatch have {found} bytes; {what} would take {wanted} at {at}"))
}

#[cold]
fn too_long(found: usize, wanted: usize) -> Error {
    Error::invalid(format!("the arguments of a dispatch have {found} bytes, their counts ask for {wanted}"))
}

#[cold]
fn too_many_bindings(found: usize) -> Error {
    Error::exhausted(format!("a dispatch with {found} bindings; at most {MAXIMUM_BINDINGS} are possible"))
}

#[cfg(test)]
#[path = "shim_tests.rs"]
mod tests;
