//! One element of a tensor: text to bytes, and bytes to a number.

use crate::values::number::{NumberError, parse_f32, parse_f64, parse_integer};
use crate::values::small_float::{Float8, encode_e8m0};
use half::{bf16, f16};
use smallvec::SmallVec;
use vmfb_hal::{Class, ElementType, float8_to_f32};

/// The bytes of one element that stands alone, little-endian.
pub(crate) type ElementBytes = SmallVec<[u8; 16]>;

/// Reads and writes elements of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codec {
    element_type: ElementType,
    form: Form,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Integer { reading: Reading, low: i128, high: i128 },
    Boolean,
    F16,
    BF16,
    F32,
    F64,
    Float8(Float8),
    Float8E8M0,
    Complex,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Signed,
    Unsigned,
}

/// The value of an element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Number {
    /// Any integer or boolean.
    Integer(i128),
    /// Any float; exact.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// Bits without meaning.
    Bytes(ElementBytes),
}

impl Codec {
    /// The codec of a type; `None` for types whose elements have no text.
    pub(crate) fn of(element_type: ElementType) -> Option<Self> {
        let bits = element_type.bits();
        let class = element_type.class()?;
        let integer = matches!(class, Class::Integer | Class::SignedInteger | Class::UnsignedInteger);
        let form = match class {
            Class::Opaque if bits == 0 || !bits.is_multiple_of(8) => return None,
            Class::Opaque => Form::Bytes,
            _ if integer && bits > 64 && bits.is_multiple_of(8) => Form::Bytes,
            _ if integer && (1..=64).contains(&bits) => {
                let half = 1i128 << (bits - 1);
                let low = if class == Class::UnsignedInteger { 0 } else { -half };
                let high = if class == Class::SignedInteger { half - 1 } else { 2 * half - 1 };
                let reading = if class == Class::UnsignedInteger { Reading::Unsigned } else { Reading::Signed };
                Form::Integer { reading, low, high }
            }
            Class::Boolean if bits == 8 => Form::Boolean,
            Class::Float if bits == 16 => Form::F16,
            Class::Float if bits == 32 => Form::F32,
            Class::Float if bits == 64 => Form::F64,
            Class::BrainFloat if bits == 16 => Form::BF16,
            Class::Complex if bits == 64 || bits == 128 => Form::Complex,
            Class::Float8E8M0FNU if bits == 8 => Form::Float8E8M0,
            _ if bits == 8 => Form::Float8(Float8::of(class)?),
            _ => return None,
        };
        Some(Self { element_type, form })
    }

    /// Whether parentheses in the text of elements mean something.
    pub(crate) fn has_parentheses(&self) -> bool {
        matches!(self.form, Form::Complex)
    }

    /// Reads the text of one element.
    pub(crate) fn encode(&self, text: &str) -> Result<ElementBytes, NumberError> {
        Ok(match self.form {
            Form::Integer { low, high, .. } => {
                let value = parse_integer(text)?;
                if value < low || value > high {
                    return Err(NumberError::new(format!("is out of the range of {}: {low} to {high}", self.element_type)));
                }
                ElementBytes::from_slice(value.to_le_bytes().get(..self.element_type.dense_bytes()).unwrap_or_default())
            }
            Form::Boolean => ElementBytes::from_slice(&[encode_boolean(text)?]),
            Form::F16 => ElementBytes::from_slice(&f16::from_f32(parse_f32(text)?).to_le_bytes()),
            Form::BF16 => ElementBytes::from_slice(&bf16::from_f32(parse_f32(text)?).to_le_bytes()),
            Form::F32 => ElementBytes::from_slice(&parse_f32(text)?.to_le_bytes()),
            Form::F64 => ElementBytes::from_slice(&parse_f64(text)?.to_le_bytes()),
            Form::Float8(format) => ElementBytes::from_slice(&[format.encode(parse_f32(text)?)]),
            Form::Float8E8M0 => ElementBytes::from_slice(&[encode_e8m0(parse_f32(text)?)]),
            Form::Complex => self.encode_complex(text)?,
            Form::Bytes => self.encode_hex(text)?,
        })
    }

    fn encode_complex(&self, text: &str) -> Result<ElementBytes, NumberError> {
        if text.len() == 2 * self.element_type.dense_bytes() && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return self.encode_hex(text);
        }
        let (real, imaginary) = split_complex(text)?;
        if self.element_type.bits() == 64 {
            Ok(parse_f32(real)?.to_le_bytes().into_iter().chain(parse_f32(imaginary)?.to_le_bytes()).collect())
        } else {
            Ok(parse_f64(real)?.to_le_bytes().into_iter().chain(parse_f64(imaginary)?.to_le_bytes()).collect())
        }
    }

    /// Two hex digits per byte, in memory order.
    fn encode_hex(&self, text: &str) -> Result<ElementBytes, NumberError> {
        let wanted = 2 * self.element_type.dense_bytes();
        let digits: Option<SmallVec<[u8; 32]>> =
            text.chars().map(|character| character.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
        let digits = digits.filter(|digits| digits.len() == wanted).ok_or_else(|| {
            let help = format!("write {wanted} hex digits, two per byte in memory order");
            NumberError::with_help(format!("is not an element of {}", self.element_type), help)
        })?;
        Ok(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
    }

    /// The value of one element that stands alone.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Number {
        let low = |count: usize| -> u64 {
            let mut word = [0; 8];
            for (target, byte) in word.iter_mut().zip(bytes.iter().take(count)) {
                *target = *byte;
            }
            u64::from_le_bytes(word)
        };
        let bits = self.element_type.bits();
        match self.form {
            Form::Integer { reading: Reading::Signed, .. } => {
                let unused = 64u32.saturating_sub(u32::try_from(bits).unwrap_or(64));
                Number::Integer(i128::from((low(8) << unused) as i64 >> unused))
            }
            Form::Integer { .. } => Number::Integer(i128::from(low(8))),
            Form::Boolean => Number::Integer(i128::from(low(1))),
            Form::F16 => Number::Float(f16::from_bits(low(2) as u16).to_f64()),
            Form::BF16 => Number::Float(bf16::from_bits(low(2) as u16).to_f64()),
            Form::F32 => Number::Float(f64::from(f32::from_bits(low(4) as u32))),
            Form::F64 => Number::Float(f64::from_bits(low(8))),
            Form::Float8(_) | Form::Float8E8M0 => {
                let value = self.element_type.class().and_then(|class| float8_to_f32(class, low(1) as u8));
                Number::Float(value.map_or(f64::NAN, f64::from))
            }
            Form::Complex => {
                let (real, imaginary) = bytes.split_at_checked(bits / 16).unwrap_or_default();
                let part = if bits == 64 { ElementType::F32 } else { ElementType::F64 };
                match Self::of(part).map(|codec| (codec.decode(real), codec.decode(imaginary))) {
                    Some((Number::Float(real), Number::Float(imaginary))) => Number::Complex(real, imaginary),
                    _ => Number::Bytes(ElementBytes::from_slice(bytes)),
                }
            }
            Form::Bytes => Number::Bytes(ElementBytes::from_slice(bytes)),
        }
    }
}

/// Element number `index` of a packed array, as the bytes of an element that stands alone.
pub(crate) fn extract(bytes: &[u8], element_type: ElementType, index: usize) -> Option<ElementBytes> {
    let bits = element_type.bits();
    let first = index.checked_mul(bits)?;
    if bits.is_multiple_of(8) {
        return Some(ElementBytes::from_slice(bytes.get(first / 8..)?.get(..bits / 8)?));
    }
    let mut element = ElementBytes::from_elem(0, element_type.dense_bytes());
    for bit in 0..bits {
        let at = first.checked_add(bit)?;
        let set = bytes.get(at / 8)? >> (at % 8) & 1;
        *element.get_mut(bit / 8)? |= set << (bit % 8);
    }
    Some(element)
}

/// Collects elements into a packed array: widths that are no multiple of 8 fill bytes from the lowest bit on.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
    bits: usize,
}

impl Packer {
    /// Appends an element of the given width.
    pub(crate) fn push(&mut self, element: &[u8], bits: usize) {
        if self.bits.is_multiple_of(8) && bits.is_multiple_of(8) {
            self.bytes.extend_from_slice(element);
            self.bits += bits;
            return;
        }
        for bit in 0..bits {
            if self.bits.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let set = element.get(bit / 8).map_or(0, |byte| byte >> (bit % 8) & 1);
            if let Some(last) = self.bytes.last_mut() {
                *last |= set << (self.bits % 8);
            }
            self.bits += 1;
        }
    }

    /// The array.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

fn encode_boolean(text: &str) -> Result<u8, NumberError> {
    match text {
        "0" | "false" => Ok(0),
        "1" | "true" => Ok(1),
        _ => decode_hex_byte(text)
            .ok_or_else(|| NumberError::with_help("is not an i1", "write 0, 1, true or false, or a byte as two hex digits")),
    }
}

/// A byte as two hex digits.
pub(crate) fn decode_hex_byte(text: &str) -> Option<u8> {
    let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u8::from_str_radix(text, 16).ok().filter(|_| plain)
}

/// Splits `1+2i`, `1-2j`, `2i`, `1`, `(1,2)` and `(1+2j)` into the texts of real and imaginary part.
fn split_complex(text: &str) -> Result<(&str, &str), NumberError> {
    let error = || NumberError::with_help("is not a complex number", "write 1+2i or (1,2), or the bytes as hex digits");
    let inner = match text.strip_prefix('(') {
        Some(rest) => rest.strip_suffix(')').ok_or_else(error)?.trim(),
        None => text,
    };
    if let Some((real, imaginary)) = inner.split_once(',') {
        return Ok((real.trim(), imaginary.trim()));
    }
    let Some(body) = inner.strip_suffix(['i', 'j']) else { return Ok((inner, "0")) };
    // The sign between the parts is the last one that is neither the first character nor part of an exponent.
    let hex = body.contains(['x', 'X']);
    let exponent_letter = |byte: u8| matches!(byte, b'p' | b'P') || (!hex && matches!(byte, b'e' | b'E'));
    let bytes = body.as_bytes();
    let split = (1..bytes.len())
        .rev()
        .find(|at| matches!(bytes.get(*at), Some(b'+' | b'-')) && !bytes.get(at - 1).is_some_and(|byte| exponent_letter(*byte)));
    match split.and_then(|at| body.split_at_checked(at)) {
        Some((real, imaginary)) => Ok((real.trim(), imaginary.trim())),
        None => Ok(("0", body)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(element_type: &str, text: &str) -> Result<Vec<u8>, String> {
        let codec = Codec::of(ElementType::from_name(element_type).unwrap()).unwrap();
        codec.encode(text).map(|bytes| bytes.to_vec()).map_err(|error| error.problem)
    }

    #[test]
    fn integers_have_the_range_of_their_type() {
        for (element_type, text, bytes) in [
            ("i8", "200", vec![200]),
            ("i8", "-56", vec![200]),
            ("si8", "-128", vec![128]),
            ("ui8", "255", vec![255]),
            ("i16", "0x1234", vec![0x34, 0x12]),
            ("i32", "4294967295", vec![255; 4]),
            ("i64", "-1", vec![255; 8]),
            ("ui64", "18446744073709551615", vec![255; 8]),
            ("i4", "-8", vec![0xF8]),
            ("i4", "15", vec![15]),
        ] {
            assert_eq!(encode(element_type, text), Ok(bytes), "{element_type} {text}");
        }
        for (element_type, text) in
            [("i8", "256"), ("i8", "-129"), ("si8", "128"), ("ui8", "-1"), ("ui64", "18446744073709551616"), ("i4", "16"), ("i32", "1.5")]
        {
            assert!(encode(element_type, text).is_err(), "{element_type} {text}");
        }
        assert_eq!(encode("i8", "300").unwrap_err(), "is out of the range of i8: -128 to 255");
    }

    #[test]
    fn booleans_are_words_digits_or_hex_bytes() {
        for (text, byte) in [("0", 0), ("1", 1), ("true", 1), ("false", 0), ("00", 0), ("01", 1), ("ff", 255)] {
            assert_eq!(encode("i1", text), Ok(vec![byte]), "{text}");
        }
        for text in ["2", "yes", "+1", "001", ""] {
            assert!(encode("i1", text).is_err(), "{text}");
        }
    }

    #[test]
    fn complex_numbers_are_sums_pairs_or_hex_bytes() {
        let bytes = |real: f32, imaginary: f32| [real.to_le_bytes(), imaginary.to_le_bytes()].concat();
        for (text, real, imaginary) in [
            ("1+2i", 1.0, 2.0),
            ("-1.5e+3-2.5e-1j", -1500.0, -0.25),
            ("2i", 0.0, 2.0),
            ("-2j", 0.0, -2.0),
            ("3", 3.0, 0.0),
            ("(1,2)", 1.0, 2.0),
            ("( 1 , -2 )", 1.0, -2.0),
            ("(1+2j)", 1.0, 2.0),
            ("0x1.8p+1+0xep-1i", 3.0, 7.0),
            ("0000803F00000000", 1.0, 0.0),
        ] {
            assert_eq!(encode("cf64", text), Ok(bytes(real, imaginary)), "{text}");
        }
        for text in ["i", "1+i", "(1,2", "1,2)", "1+2", "", "(1,2,3)"] {
            assert!(encode("cf64", text).is_err(), "{text}");
        }
        assert_eq!(encode("cf128", "1-2i"), Ok([1f64.to_le_bytes(), (-2f64).to_le_bytes()].concat()));
    }

    #[test]
    fn opaque_bytes_are_hex_in_memory_order() {
        assert_eq!(encode("*16", "0aFF"), Ok(vec![0x0A, 0xFF]));
        for text in ["0a", "0x0a", "0aFFF", "+aFF"] {
            assert!(encode("*16", text).is_err(), "{text}");
        }
        assert!(Codec::of(ElementType::from_name("*12").unwrap()).is_none());
        assert!(Codec::of(ElementType(0xFF00_0008)).is_none());
        assert!(Codec::of(ElementType::NONE).is_none());
    }

    #[test]
    fn narrow_elements_are_packed_from_the_low_bits() {
        let mut packer = Packer::default();
        for value in [1u8, 2, 0xF] {
            packer.push(&[value], 4);
        }
        let bytes = packer.into_bytes();
        assert_eq!(bytes, [0x21, 0x0F]);
        let i4 = ElementType::from_name("i4").unwrap();
        let codec = Codec::of(i4).unwrap();
        let values: Vec<Number> = (0..3).map(|index| codec.decode(&extract(&bytes, i4, index).unwrap())).collect();
        assert_eq!(values, [Number::Integer(1), Number::Integer(2), Number::Integer(-1)]);
        assert_eq!(extract(&bytes, i4, 4), None);
    }

    proptest! {
        #[test]
        fn integers_of_every_width_come_back(bits in 1u8..=64, class in 0usize..3, raw: i128) {
            let class = [Class::Integer, Class::SignedInteger, Class::UnsignedInteger][class];
            let element_type = ElementType::new(class, bits);
            let codec = Codec::of(element_type).unwrap();
            let value = if class == Class::UnsignedInteger { raw & ((1 << bits) - 1) } else { raw << (128 - bits) >> (128 - bits) };
            let element = codec.encode(&value.to_string()).unwrap();
            prop_assert_eq!(codec.decode(&element), Number::Integer(value));
            let mut packer = Packer::default();
            for _ in 0..5 {
                packer.push(&element, usize::from(bits));
            }
            let bytes = packer.into_bytes();
            prop_assert_eq!(bytes.len() as u64, element_type.bytes_of(5).unwrap());
            let third = extract(&bytes, element_type, 3).unwrap();
            prop_assert_eq!(codec.decode(&third), Number::Integer(value));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}", name in proptest::sample::select(vec!["i1", "i3", "cf64", "cf128", "bf16", "f16", "*16", "f8E8M0FNU", "i128"])) {
            let codec = Codec::of(ElementType::from_name(name).unwrap()).unwrap();
            let _ = codec.encode(&text);
        }
    }
}
