//! Tensors as text: `[dims x]type[=contents]`.

use crate::declaration::{DeclaredType, Slot};
use crate::failure::{Failure, Result};
use crate::npy::{Array, byte_length};
use crate::values::archives;
use crate::values::element::{Codec, Packer, decode_hex_byte};
use crate::values::files::Files;
use crate::values::{example, span, type_text};
use std::ops::Range;
use vmfb_hal::{BufferView, ElementType, Encoding, HalBuffer, MAX_RANK};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Handle, Status};

/// A tensor before it has memory of its own.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<u64>,
    pub(crate) element_type: ElementType,
    pub(crate) contents: Contents,
}

/// The bytes of a tensor.
#[derive(Debug)]
pub(crate) enum Contents {
    /// All zero.
    Zeros,
    /// These bytes over and over.
    Repeated(Vec<u8>),
    /// These bytes.
    Bytes(Vec<u8>),
}

impl Tensor {
    /// The tensor of an array file.
    pub(crate) fn of_array(array: Array) -> Self {
        Self { shape: array.shape, element_type: array.element_type, contents: Contents::Bytes(array.bytes) }
    }

    /// A view of new memory.
    pub(crate) fn into_view(self, account: &MemoryAccount) -> Result<BufferView> {
        let length = byte_length(&self.shape, self.element_type).and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or_else(|| too_large(&self.shape, self.element_type))?;
        let memory = Span::zeroed(length, 64, account)?;
        match &self.contents {
            Contents::Zeros => {}
            Contents::Bytes(bytes) => memory.write(0, bytes)?,
            Contents::Repeated(pattern) => {
                // The remainders are all that matters for the bits of the last byte.
                let bits = element_count(&self.shape) % 8 * self.element_type.bits() as u64;
                fill(&memory, pattern, bits % 8)?;
            }
        }
        Ok(BufferView::new(Handle::new(HalBuffer::new(memory)), &self.shape, self.element_type, Encoding::DENSE)?)
    }
}

/// Reads a tensor. `text` is the whole argument, for messages; `part` is what remains of it.
pub(crate) fn parse(text: &str, part: &str, slot: &Slot, files: &mut Files, limit: u64) -> Result<Tensor> {
    let part = part.trim_matches('"').trim();
    let (left, contents) = match part.split_once('=') {
        Some((left, contents)) => (left.trim(), Some(contents.trim())),
        None => (part, None),
    };
    let (shape, element_type) = match parse_type(text, left) {
        Ok(parsed) => parsed,
        // A number alone is a tensor of rank 0 where the function declares one.
        Err(failure) => match &slot.declared {
            Some(DeclaredType::Tensor { shape, element_type }) if contents.is_none() && shape.is_empty() => {
                return elements(text, part, Vec::new(), *element_type);
            }
            _ if contents.is_none() && !left.contains('x') => return Err(needs_type(text, part, slot)),
            _ => return Err(failure),
        },
    };
    let contents = contents.filter(|contents| !contents.is_empty());
    let Some(contents) = contents else { return Ok(Tensor { shape, element_type, contents: Contents::Zeros }) };
    match contents.strip_prefix(['@', '+']) {
        Some(path) => {
            if contents.starts_with('@') {
                files.rewind(path);
            }
            from_file(path, shape, element_type, files, limit).map_err(|failure| failure.at(text, span(text, contents), ""))
        }
        None => elements(text, contents, shape, element_type),
    }
}

/// `[dims x]type`, or the same as a program declares it: `tensor<2x3xf32>`, `2xcomplex<f32>`.
fn parse_type(text: &str, left: &str) -> Result<(Vec<u64>, ElementType)> {
    let left = match left.strip_prefix("tensor<").and_then(|inner| inner.strip_suffix('>')) {
        // An encoding may follow behind a comma.
        Some(inner) => inner.split_once(',').map_or(inner, |(inner, _)| inner).trim(),
        None => left,
    };
    let complex = left.ends_with('>').then(|| left.rfind("complex<")).flatten();
    let (dimensions, name) = match complex.and_then(|at| left.split_at_checked(at)) {
        Some((dimensions, name)) => (dimensions.trim_end().trim_end_matches('x'), name),
        None => match left.rsplit_once('x') {
            Some((dimensions, name)) => (dimensions, name.trim()),
            None => ("", left),
        },
    };
    let element_type = match name {
        "complex<f32>" => Some(ElementType::COMPLEX64),
        "complex<f64>" => Some(ElementType::COMPLEX128),
        name => ElementType::from_name(name),
    };
    let element_type = element_type.ok_or_else(|| unknown_type(text, left, name))?;
    let mut shape = Vec::new();
    if !dimensions.trim().is_empty() {
        for dimension in dimensions.split('x') {
            let dimension = dimension.trim();
            let valid = dimension.bytes().all(|byte| byte.is_ascii_digit());
            let size = dimension.parse().ok().filter(|_| valid);
            shape.push(size.ok_or_else(|| {
                let failure = Failure::invalid(format!("'{dimension}' is not a dimension, wanted a whole number"));
                let failure = failure.at(text, span(text, dimension), "");
                if dimension == "?" { failure.help("write the size that this value has in place of the ?") } else { failure }
            })?);
            if shape.len() > MAX_RANK {
                return Err(Failure::new(Status::OutOfRange, format!("a tensor has at most {MAX_RANK} dimensions")));
            }
        }
    }
    if byte_length(&shape, element_type).is_none() {
        return Err(too_large(&shape, element_type).at(text, span(text, left), ""));
    }
    Ok((shape, element_type))
}

fn unknown_type(text: &str, left: &str, name: &str) -> Failure {
    // What was meant as a type may hold the letter at which shape and type are split.
    let index = left.len().checked_sub("index".len()).and_then(|start| left.get(start..)).filter(|end| *end == "index");
    let name = if left.starts_with("tensor<") { left } else { index.unwrap_or(name) };
    let failure = Failure::invalid(format!("unknown element type '{name}'")).at(text, span(text, name), "");
    let known = match name {
        "float16" | "half" => "f16",
        "float32" | "float" => "f32",
        "float64" | "double" => "f64",
        "bfloat16" => "bf16",
        "bool" => "i1",
        "int8" => "i8",
        "int16" => "i16",
        "int32" | "int" => "i32",
        "int64" | "long" => "i64",
        "uint8" => "ui8",
        "uint16" => "ui16",
        "uint32" => "ui32",
        "uint64" => "ui64",
        "complex64" => "cf64",
        "complex128" => "cf128",
        "index" => "i64",
        _ if name.starts_with("tensor<") => {
            return failure.help("write the type without tensor<>, for example 4xf32=1 2 3 4");
        }
        _ => {
            return failure.help(
                "element types are i1, i4, i8 … i64, si8 …, ui8 …, f16, f32, f64, bf16, cf64, cf128, f8E5M2, f8E4M3FN, f8E5M2FNUZ, \
                 f8E4M3FNUZ, f8E8M0FNU, and *8 … for bytes without meaning",
            );
        }
    };
    failure.help(format!("write {known}"))
}

fn needs_type(text: &str, part: &str, slot: &Slot) -> Failure {
    Failure::invalid(format!("'{part}' has no shape and type, which the function needs here"))
        .at(text, span(text, part), "")
        .help(format!("write {}", example(slot)))
}

fn too_large(shape: &[u64], element_type: ElementType) -> Failure {
    Failure::new(Status::OutOfRange, format!("{} has more bytes than can be counted", type_text(shape, element_type)))
}

/// Raw bytes, or an array whose shape and type are these.
fn from_file(path: &str, shape: Vec<u64>, element_type: ElementType, files: &mut Files, limit: u64) -> Result<Tensor> {
    let wanted = type_text(&shape, element_type);
    let length = byte_length(&shape, element_type).ok_or_else(|| too_large(&shape, element_type))?;
    if length > limit {
        return Err(Failure::new(Status::ResourceExhausted, format!("{wanted} has {length} bytes, the memory limit leaves {limit}")));
    }
    let array = match archives::split_key(path) {
        (file, Some(key)) => Some(archives::read(file, key, limit)?),
        _ if files.is_at_array(path)? => match files.next_array(path, limit)? {
            Some(array) => Some(array),
            None => return Err(Failure::new(Status::OutOfRange, format!("{path} holds no further array"))),
        },
        _ => None,
    };
    if let Some(array) = array {
        if array.shape != shape || !holds(array.element_type, element_type) {
            let found = type_text(&array.shape, array.element_type);
            return Err(Failure::invalid(format!("{path} holds an array of {found}, wanted {wanted}"))
                .help(format!("write @{path} to take it as it is")));
        }
        return Ok(Tensor { shape, element_type, contents: Contents::Bytes(array.bytes) });
    }
    archives::refuse(path)?;
    if path.ends_with(".npy") {
        return Err(Failure::invalid(format!("{path} is not an array file: it does not begin with \\x93NUMPY"))
            .help("give files of raw bytes another extension"));
    }
    let bytes = files.next_bytes(path, length).map_err(|failure| failure.context(format!("reading {wanted}")))?;
    Ok(Tensor { shape, element_type, contents: Contents::Bytes(bytes) })
}

/// Whether elements of an array file may be taken as these: integers of one width, and void types, which say only their width.
fn holds(found: ElementType, wanted: ElementType) -> bool {
    let void = found.is_opaque() || found == ElementType::BF16;
    found == wanted || (found.bits() == wanted.bits() && (void || found.is_integer() && wanted.is_integer()))
}

/// Elements as text.
fn elements(text: &str, contents: &str, shape: Vec<u64>, element_type: ElementType) -> Result<Tensor> {
    let kind = type_text(&shape, element_type);
    let codec = Codec::of(element_type).ok_or_else(|| {
        Failure::new(Status::Unimplemented, format!("elements of {element_type} cannot be written as text"))
            .at(text, span(text, contents), "")
            .help(format!("read them from a file: {kind}=@file.bin"))
    })?;
    let tokens = || Tokens { text: contents, at: 0, parentheses: codec.has_parentheses() };
    // Each element takes a character of text, so that the count fits.
    let (found, wanted) = (tokens().count() as u64, element_count(&shape));
    let bytes = byte_length(&shape, element_type).ok_or_else(|| too_large(&shape, element_type))?;
    if element_type.bits() < 8 && found == bytes && found != wanted && tokens().all(|token| decode_hex_byte(token).is_some()) {
        // The form of the official tools: one byte per token.
        let bytes = tokens().filter_map(decode_hex_byte).collect();
        return Ok(Tensor { shape, element_type, contents: Contents::Bytes(bytes) });
    }
    let splat = found == 1 && wanted > 0;
    if found != wanted && !splat {
        return Err(wrong_count(text, contents, &kind, found, wanted, tokens()));
    }
    let mut packer = Packer::default();
    for token in tokens() {
        let element = codec.encode(token).map_err(|error| {
            Failure::invalid(format!("'{token}' {}", error.problem)).at(text, span(text, token), "").maybe_help(error.help)
        })?;
        // Eight elements fill whole bytes whatever their width.
        let repetitions = if splat && !element_type.bits().is_multiple_of(8) { 8 } else { 1 };
        for _ in 0..repetitions {
            packer.push(&element, element_type.bits());
        }
    }
    let contents = if splat { Contents::Repeated(packer.into_bytes()) } else { Contents::Bytes(packer.into_bytes()) };
    Ok(Tensor { shape, element_type, contents })
}

fn wrong_count<'a>(text: &str, contents: &str, kind: &str, found: u64, wanted: u64, tokens: impl Iterator<Item = &'a str>) -> Failure {
    let values = if wanted == 1 { "value" } else { "values" };
    let message = format!("{kind} needs {wanted} {values}, got {found}");
    let place: Range<usize> = match usize::try_from(wanted).ok().and_then(|wanted| { tokens }.nth(wanted)) {
        Some(extra) => span(text, extra).start..span(text, contents).end,
        None => span(text, contents),
    };
    let label = if found > wanted { "too many" } else { "too few" };
    let failure = Failure::new(Status::OutOfRange, message).at(text, place, label);
    if wanted > 1 { failure.help("a single value fills the whole tensor, and none means zeros") } else { failure }
}

fn element_count(shape: &[u64]) -> u64 {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().try_fold(1u64, |product, dimension| product.checked_mul(*dimension)).unwrap_or(u64::MAX)
}

/// Fills memory with a repeated pattern. Of the last byte `last_bits` are used; 0 means all.
fn fill(memory: &Span, pattern: &[u8], last_bits: u64) -> Result<()> {
    if pattern.is_empty() {
        return Ok(());
    }
    let block = pattern.repeat(4096usize.div_ceil(pattern.len()));
    let mut offset = 0;
    while offset < memory.len() {
        let length = block.len().min(memory.len() - offset);
        memory.write(offset, block.get(..length).unwrap_or_default())?;
        offset += length;
    }
    // Bits behind the last element stay zero.
    if let (Some(last), used @ 1..8) = (memory.len().checked_sub(1), last_bits) {
        let byte = memory.load_u8(last).unwrap_or(0) & ((1 << used) - 1);
        memory.write(last, &[byte])?;
    }
    Ok(())
}

/// The elements of a text: separated by white space, commas and brackets, which carry no structure.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// Whether separators inside parentheses belong to the element.
    parentheses: bool,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at..)?;
        let separator = |character: char| character.is_ascii_whitespace() || matches!(character, ',' | '[' | ']');
        let start = self.at + rest.find(|character| !separator(character))?;
        let rest = self.text.get(start..)?;
        let end = match rest.find(')') {
            Some(end) if self.parentheses && rest.starts_with('(') => end + 1,
            _ => rest.find(separator).unwrap_or(rest.len()),
        };
        self.at = start + end;
        rest.get(..end)
    }
}

#[cfg(test)]
#[path = "tensor_tests.rs"]
mod tests;
