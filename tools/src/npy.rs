//! Array files of numpy: reading any that hold plain elements in C order, writing version 1.0.
//!
//! The reader is made for files that nobody vouches for: it takes the three keys of the header and nothing else, does not
//! recurse, and allocates no more than the file turns out to hold.

mod header;

use crate::failure::{Failure, Result, io_status};
use header::Dictionary;
use std::io::Read;
use vmfb_hal::{Class, ElementType, MAX_RANK};
use vmfb_vm::Status;

/// The first bytes of every array file.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Longest header that is read. Headers of plain arrays of the highest rank stay below.
const HEADER_LIMIT: u64 = 1 << 16;

/// An array in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    /// Element type. Two-byte void elements, as other tools store bf16, are bf16.
    pub element_type: ElementType,
    /// Elements in row-major order, little-endian.
    pub bytes: Vec<u8>,
}

/// Reads one array of at most `limit` bytes, up to its last byte. `None` at the end of the input.
pub fn read(reader: &mut impl Read, limit: u64) -> Result<Option<Array>> {
    let Some(text) = read_header_text(reader)? else { return Ok(None) };
    let dictionary = Dictionary::parse(&text)?;
    if dictionary.fortran_order {
        return Err(Failure::new(Status::Unimplemented, "the array is in Fortran order, wanted C order")
            .help("save it with numpy.save(path, numpy.ascontiguousarray(array))"));
    }
    if dictionary.shape.len() > MAX_RANK {
        return Err(Failure::invalid(format!("the array has {} dimensions, at most {MAX_RANK} are possible", dictionary.shape.len())));
    }
    let descriptor = Descriptor::parse(&dictionary.descr)?;
    let mut array = Array { shape: dictionary.shape, element_type: descriptor.element_type, bytes: Vec::new() };
    let length = byte_length(&array.shape, array.element_type)
        .ok_or_else(|| Failure::new(Status::OutOfRange, "the shape in the header has more bytes than 64 bits can count"))?;
    if length > limit {
        let text = format!("the array has {length} bytes, the memory limit leaves {limit}");
        return Err(Failure::new(Status::ResourceExhausted, text));
    }
    reader.take(length).read_to_end(&mut array.bytes).map_err(|error| Failure::new(io_status(&error), error.to_string()))?;
    let found = array.bytes.len() as u64;
    if found != length {
        let kind = crate::values::type_text(&array.shape, array.element_type);
        return Err(Failure::new(
            Status::OutOfRange,
            format!("the file ends early: {kind} needs {length} bytes after the header, found {found}"),
        ));
    }
    if descriptor.big_endian {
        array.bytes.chunks_exact_mut(descriptor.swap_width).for_each(<[u8]>::reverse);
    }
    Ok(Some(array))
}

/// The header of a file that holds an array of this type and shape; the elements follow in row-major order, little-endian.
/// bf16 is written as two-byte void, 8-bit floats as one-byte void: `numpy.load(path).view(ml_dtypes.bfloat16)` reads them.
pub fn header(shape: &[u64], element_type: ElementType) -> Result<Vec<u8>> {
    let descr = descriptor_text(element_type).ok_or_else(|| {
        Failure::new(Status::Unimplemented, format!("array files cannot hold {element_type}")).help("write the raw bytes to a .bin file")
    })?;
    let mut tuple = String::new();
    for dimension in shape {
        tuple.push_str(&format!("{dimension}, "));
    }
    // A tuple of one keeps its comma.
    let tuple = if shape.len() == 1 { tuple.trim_end() } else { tuple.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({tuple}), }}");
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let length = u16::try_from(text.len()).map_err(|_| Failure::invalid(format!("{} dimensions are too many", shape.len())))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    Ok(bytes)
}

/// Bytes of an array; `None` when they cannot be counted in 64 bits.
pub(crate) fn byte_length(shape: &[u64], element_type: ElementType) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    let count = shape.iter().try_fold(1u64, |product, dimension| product.checked_mul(*dimension))?;
    element_type.bytes_of(count)
}

fn read_header_text(reader: &mut impl Read) -> Result<Option<Vec<u8>>> {
    let mut start = Vec::new();
    read_up_to(reader, 8, &mut start)?;
    if start.is_empty() {
        return Ok(None);
    }
    if !start.starts_with(MAGIC) {
        return Err(Failure::invalid("this is not an array file: it does not begin with \\x93NUMPY"));
    }
    let length_bytes = match start.get(6..) {
        Some([1, 0]) => 2,
        Some([2 | 3, 0]) => 4,
        Some([major, minor]) => {
            return Err(Failure::new(Status::Unimplemented, format!("array file version {major}.{minor}, wanted 1.0, 2.0 or 3.0")));
        }
        _ => return Err(truncated()),
    };
    let mut length = Vec::new();
    read_up_to(reader, length_bytes, &mut length)?;
    if length.len() as u64 != length_bytes {
        return Err(truncated());
    }
    let length = length.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    if length > HEADER_LIMIT {
        return Err(Failure::invalid(format!("the header says that it is {length} bytes long, at most {HEADER_LIMIT} are read")));
    }
    let mut text = Vec::new();
    read_up_to(reader, length, &mut text)?;
    if text.len() as u64 != length {
        return Err(truncated());
    }
    Ok(Some(text))
}

fn read_up_to(reader: &mut impl Read, length: u64, target: &mut Vec<u8>) -> Result<()> {
    reader.take(length).read_to_end(target).map_err(|error| Failure::new(io_status(&error), error.to_string()))?;
    Ok(())
}

fn truncated() -> Failure {
    Failure::invalid("the array file ends inside its header")
}

/// A type string such as `<f4`.
struct Descriptor {
    element_type: ElementType,
    big_endian: bool,
    /// Bytes that are reversed together where the file is big-endian.
    swap_width: usize,
}

impl Descriptor {
    fn parse(text: &str) -> Result<Self> {
        let refuse = || {
            Failure::new(Status::Unimplemented, format!("the elements have the type '{text}'")).help(
                "readable are booleans, integers, floats of 2, 4 and 8 bytes, complex numbers, and void types of up to 31 bytes; \
                 convert with array.astype",
            )
        };
        let mut characters = text.chars();
        let order = characters.next().ok_or_else(refuse)?;
        if !matches!(order, '<' | '>' | '=' | '|') {
            return Err(refuse());
        }
        let kind = characters.next().ok_or_else(refuse)?;
        let size: usize = characters.as_str().parse().map_err(|_| refuse())?;
        let class = match (kind, size) {
            ('b', 1) => Class::Boolean,
            ('i', 1 | 2 | 4 | 8) => Class::SignedInteger,
            ('u', 1 | 2 | 4 | 8) => Class::UnsignedInteger,
            ('f', 2 | 4 | 8) => Class::Float,
            ('c', 8 | 16) => Class::Complex,
            ('V', 2) => Class::BrainFloat,
            ('V', 1..=31) => Class::Opaque,
            _ => return Err(refuse()),
        };
        let bits = u8::try_from(8 * size).map_err(|_| refuse())?;
        let swap_width = match class {
            Class::Complex => size / 2,
            Class::Opaque => 1,
            _ => size,
        };
        let big_endian = order == '>' || (order == '=' && cfg!(target_endian = "big"));
        Ok(Self { element_type: ElementType::new(class, bits), big_endian, swap_width })
    }
}

fn descriptor_text(element_type: ElementType) -> Option<String> {
    let bits = element_type.bits();
    if bits == 0 || !bits.is_multiple_of(8) {
        return None;
    }
    let size = bits / 8;
    let kind = match element_type.class()? {
        Class::Boolean => 'b',
        Class::Integer | Class::SignedInteger if size.is_power_of_two() && size <= 8 => 'i',
        Class::UnsignedInteger if size.is_power_of_two() && size <= 8 => 'u',
        Class::Float => 'f',
        Class::Complex => 'c',
        Class::Opaque | Class::BrainFloat => 'V',
        Class::Float8E5M2 | Class::Float8E4M3FN | Class::Float8E5M2FNUZ | Class::Float8E4M3FNUZ | Class::Float8E8M0FNU => 'V',
        _ => return None,
    };
    let order = if size == 1 || element_type.is_opaque() { '|' } else { '<' };
    Some(format!("{order}{kind}{size}"))
}

#[cfg(test)]
#[path = "npy_tests.rs"]
mod tests;
