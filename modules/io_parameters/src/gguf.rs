//! `.gguf` files, versions 2 and 3: key-value pairs, a table of tensors, and their data.

use crate::index::Content;
use crate::reader::{Builder, Reader, part};
use vmfb_memory::Span;
use vmfb_vm::{Error, Result, ResultExt};

const MAGIC: u32 = 0x4655_4747;
const DEFAULT_ALIGNMENT: u32 = 32;
const ALIGNMENT_KEY: &[u8] = b"general.alignment";
const MOST_DIMENSIONS: u32 = 4;

/// Arrays in arrays are read to this depth.
const MOST_DEPTH: usize = 16;

const UINT32: u32 = 4;
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// A tensor whose bytes have not been looked up.
struct Tensor {
    name: Box<[u8]>,
    offset: u64,
    length: u64,
}

pub(crate) fn parse(file: &Span, builder: &mut Builder) -> Result<()> {
    let mut reader = Reader::new(file, 0);
    let (magic, version) = (reader.u32()?, reader.u32()?);
    if magic != MAGIC {
        return Err(Error::invalid(format!("found the magic {magic:#010x}, a .gguf file has {MAGIC:#010x}")));
    }
    if !(2..=3).contains(&version) {
        return Err(Error::unimplemented(format!("version {version} of the format; this runtime knows 2 and 3, little-endian")));
    }
    let (tensor_count, pair_count) = (reader.u64()?, reader.u64()?);
    let mut alignment = DEFAULT_ALIGNMENT;
    for index in 0..pair_count {
        pair(file, &mut reader, &mut alignment).context(|| format!("in the key-value pair {index}"))?;
    }
    if !alignment.is_power_of_two() {
        return Err(Error::invalid(format!("the alignment is {alignment}; wanted a power of two")));
    }
    // Grows with what is read: the count may be anything.
    let mut tensors = Vec::new();
    for index in 0..tensor_count {
        tensors.push(tensor(file, &mut reader, builder).context(|| format!("in the description of tensor {index}"))?);
    }
    let start = reader.position().checked_next_multiple_of(u64::from(alignment)).unwrap_or(u64::MAX);
    // A file without tensors may end before the data would begin.
    let start = if tensors.is_empty() { start.min(file.len() as u64) } else { start };
    let data = part(file, start, (file.len() as u64).saturating_sub(start), "the data")?;
    for Tensor { name, offset, length } in tensors {
        if !offset.is_multiple_of(u64::from(alignment)) {
            return Err(Error::invalid(format!("a tensor at offset {offset}; wanted a multiple of {alignment}")));
        }
        let bytes = part(&data, offset, length, "the data of a tensor")?;
        builder.add(name, Content::Data(bytes));
    }
    Ok(())
}

/// Passes over a key-value pair, but takes note of the alignment.
fn pair(file: &Span, reader: &mut Reader<'_>, alignment: &mut u32) -> Result<()> {
    let length = reader.u64()?;
    let offset = reader.skip(length)?;
    let is_alignment = length == ALIGNMENT_KEY.len() as u64 && part(file, offset, length, "a key")?.to_vec()? == ALIGNMENT_KEY;
    let kind = reader.u32()?;
    if is_alignment && kind == UINT32 {
        *alignment = reader.u32()?;
        return Ok(());
    }
    skip_value(reader, kind)
}

/// Passes over a value. Each step of the loop reads bytes or ends an array, so that it ends with the file.
fn skip_value(reader: &mut Reader<'_>, kind: u32) -> Result<()> {
    // Arrays that are open: what they hold, and how many elements are still to come.
    let mut open = vec![(kind, 1u64)];
    while let Some((kind, left)) = open.last_mut() {
        if *left == 0 {
            open.pop();
            continue;
        }
        match *kind {
            STRING => {
                *left -= 1;
                let length = reader.u64()?;
                reader.skip(length)?;
            }
            ARRAY => {
                *left -= 1;
                let inner = (reader.u32()?, reader.u64()?);
                if open.len() == MOST_DEPTH {
                    return Err(Error::invalid(format!("arrays are nested more than {MOST_DEPTH} deep")));
                }
                open.push(inner);
            }
            kind => {
                let bytes = scalar_size(kind)?.checked_mul(*left).ok_or_else(|| Error::out_of_range("an array is too large"))?;
                *left = 0;
                reader.skip(bytes)?;
            }
        }
    }
    Ok(())
}

fn scalar_size(kind: u32) -> Result<u64> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        kind => Err(Error::invalid(format!("a value of the unknown type {kind}"))),
    }
}

fn tensor(file: &Span, reader: &mut Reader<'_>, builder: &mut Builder) -> Result<Tensor> {
    let length = reader.u64()?;
    let offset = reader.skip(length)?;
    let name = builder.name(file, offset, length)?;
    let rank = reader.u32()?;
    if rank > MOST_DIMENSIONS {
        return Err(Error::invalid(format!("a tensor of rank {rank}; at most {MOST_DIMENSIONS} is possible")));
    }
    let mut elements = 1u64;
    for _ in 0..rank {
        elements = elements.checked_mul(reader.u64()?).ok_or_else(|| Error::out_of_range("a tensor has more than 2^64 elements"))?;
    }
    let (block, bytes) = block_size(reader.u32()?)?;
    if !elements.is_multiple_of(block) {
        return Err(Error::invalid(format!("{elements} elements are not whole blocks of {block}")));
    }
    let length = (elements / block).checked_mul(bytes).ok_or_else(|| Error::out_of_range("a tensor has more than 2^64 bytes"))?;
    Ok(Tensor { name, offset: reader.u64()?, length })
}

/// Elements and bytes of a block of each tensor type.
fn block_size(kind: u32) -> Result<(u64, u64)> {
    Ok(match kind {
        0 => (1, 4),           // F32
        1 | 30 => (1, 2),      // F16, BF16
        2 | 20 => (32, 18),    // Q4_0, IQ4_NL
        3 => (32, 20),         // Q4_1
        6 => (32, 22),         // Q5_0
        7 => (32, 24),         // Q5_1
        8 => (32, 34),         // Q8_0
        9 => (32, 36),         // Q8_1
        10 => (256, 84),       // Q2_K
        11 | 21 => (256, 110), // Q3_K, IQ3_S
        12 => (256, 144),      // Q4_K
        13 => (256, 176),      // Q5_K
        14 => (256, 210),      // Q6_K
        15 => (256, 292),      // Q8_K
        16 | 35 => (256, 66),  // IQ2_XXS, TQ2_0
        17 => (256, 74),       // IQ2_XS
        18 => (256, 98),       // IQ3_XXS
        19 => (256, 50),       // IQ1_S
        22 => (256, 82),       // IQ2_S
        23 => (256, 136),      // IQ4_XS
        24 => (1, 1),          // I8
        25 => (1, 2),          // I16
        26 => (1, 4),          // I32
        27 | 28 => (1, 8),     // I64, F64
        29 => (256, 56),       // IQ1_M
        34 => (256, 54),       // TQ1_0
        kind => return Err(Error::unimplemented(format!("a tensor of the unknown type {kind}"))),
    })
}
