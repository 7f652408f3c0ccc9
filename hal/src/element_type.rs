//! Element types and their 32-bit encoding: numerical class in the top byte, bit count in the lowest.

use std::fmt;

/// An element type, encoded as programs pass it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementType(pub u32);

/// Numerical class of an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Bits without meaning.
    Opaque,
    /// Integer without sign of its own.
    Integer,
    /// Signed integer.
    SignedInteger,
    /// Unsigned integer.
    UnsignedInteger,
    /// Truth value.
    Boolean,
    /// IEEE float.
    Float,
    /// bfloat.
    BrainFloat,
    /// Complex number of two floats.
    Complex,
    /// 8-bit float f8E5M2.
    Float8E5M2,
    /// 8-bit float f8E4M3FN.
    Float8E4M3FN,
    /// 8-bit float f8E5M2FNUZ.
    Float8E5M2FNUZ,
    /// 8-bit float f8E4M3FNUZ.
    Float8E4M3FNUZ,
    /// 8-bit float f8E8M0FNU.
    Float8E8M0FNU,
}

/// Class, its code in the top byte, the prefix of its names. The one place that lists them.
const CLASSES: [(Class, u8, &str); 13] = [
    (Class::Opaque, 0x00, "*"),
    (Class::Integer, 0x10, "i"),
    (Class::SignedInteger, 0x11, "si"),
    (Class::UnsignedInteger, 0x12, "ui"),
    (Class::Boolean, 0x13, "i1"),
    (Class::Float, 0x21, "f"),
    (Class::BrainFloat, 0x22, "bf"),
    (Class::Complex, 0x23, "cf"),
    (Class::Float8E5M2, 0x24, "f8E5M2"),
    (Class::Float8E4M3FN, 0x25, "f8E4M3FN"),
    (Class::Float8E5M2FNUZ, 0x26, "f8E5M2FNUZ"),
    (Class::Float8E4M3FNUZ, 0x27, "f8E4M3FNUZ"),
    (Class::Float8E8M0FNU, 0x28, "f8E8M0FNU"),
];

impl ElementType {
    /// No type.
    pub const NONE: Self = Self(0);
    /// i1, stored in a byte.
    pub const I1: Self = Self(0x1300_0008);
    /// i8.
    pub const I8: Self = Self(0x1000_0008);
    /// i16.
    pub const I16: Self = Self(0x1000_0010);
    /// i32.
    pub const I32: Self = Self(0x1000_0020);
    /// i64.
    pub const I64: Self = Self(0x1000_0040);
    /// si8.
    pub const SI8: Self = Self(0x1100_0008);
    /// si16.
    pub const SI16: Self = Self(0x1100_0010);
    /// si32.
    pub const SI32: Self = Self(0x1100_0020);
    /// si64.
    pub const SI64: Self = Self(0x1100_0040);
    /// ui8.
    pub const UI8: Self = Self(0x1200_0008);
    /// ui16.
    pub const UI16: Self = Self(0x1200_0010);
    /// ui32.
    pub const UI32: Self = Self(0x1200_0020);
    /// ui64.
    pub const UI64: Self = Self(0x1200_0040);
    /// f16.
    pub const F16: Self = Self(0x2100_0010);
    /// f32.
    pub const F32: Self = Self(0x2100_0020);
    /// f64.
    pub const F64: Self = Self(0x2100_0040);
    /// bf16.
    pub const BF16: Self = Self(0x2200_0010);
    /// `complex<f32>`.
    pub const COMPLEX64: Self = Self(0x2300_0040);
    /// `complex<f64>`.
    pub const COMPLEX128: Self = Self(0x2300_0080);

    /// The type of a class and width.
    pub fn new(class: Class, bits: u8) -> Self {
        let code = CLASSES.iter().find(|(candidate, ..)| *candidate == class).map_or(0, |(_, code, _)| *code);
        Self(u32::from(code) << 24 | u32::from(bits))
    }

    /// The class; `None` for codes without a name.
    pub fn class(self) -> Option<Class> {
        CLASSES.iter().find(|(_, code, _)| *code == self.class_code()).map(|(class, ..)| *class)
    }

    fn class_code(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// Bits of one element in a packed array.
    pub fn bits(self) -> usize {
        (self.0 & 0xFF) as usize
    }

    /// Bytes of one element that stands alone.
    pub fn dense_bytes(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// Bytes of `count` elements, packed; `None` when that does not fit in 64 bits.
    pub fn bytes_of(self, count: u64) -> Option<u64> {
        count.checked_mul(self.bits() as u64).map(|bits| bits.div_ceil(8))
    }

    /// Whether this is any integer, booleans included.
    pub fn is_integer(self) -> bool {
        self.class_code() & 0x10 != 0
    }

    /// Whether this is any float.
    pub fn is_float(self) -> bool {
        self.class_code() & 0x20 != 0
    }

    /// Whether the elements are bits without meaning.
    pub fn is_opaque(self) -> bool {
        self.class_code() == 0
    }

    /// Whether a value of this type may be passed where `wanted` is declared: opaque values and integers of the same width
    /// may, whatever their sign.
    pub fn may_stand_for(self, wanted: Self) -> bool {
        self == wanted || self.is_opaque() || (self.is_integer() && wanted.is_integer() && self.bits() == wanted.bits())
    }

    /// The type with this name (`f32`, `si8`, `i1`, `bf16`, `cf64`, `f8E4M3FN`, `*16`, …).
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some((class, ..)) = CLASSES.iter().find(|(class, _, prefix)| *prefix == name && class.has_one_width()) {
            return Some(Self::new(*class, 8));
        }
        let digits = name.find(|c: char| c.is_ascii_digit())?;
        let (prefix, digits) = name.split_at_checked(digits)?;
        let bits: u8 = if digits.starts_with(['+', '0']) { None } else { digits.parse().ok() }?;
        let (class, ..) = CLASSES.iter().find(|(class, _, candidate)| *candidate == prefix && !class.has_one_width())?;
        let known = match class {
            Class::Float => matches!(bits, 16 | 32 | 64),
            Class::BrainFloat => bits == 16,
            Class::Complex => matches!(bits, 64 | 128),
            _ => true,
        };
        known.then(|| Self::new(*class, bits))
    }
}

impl Class {
    fn has_one_width(self) -> bool {
        use Class::{Boolean, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0FNU};
        matches!(self, Boolean | Float8E5M2 | Float8E4M3FN | Float8E5M2FNUZ | Float8E4M3FNUZ | Float8E8M0FNU)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match CLASSES.iter().find(|(_, code, _)| *code == self.class_code()) {
            Some((class, _, prefix)) if class.has_one_width() => f.write_str(prefix),
            Some((_, _, prefix)) => write!(f, "{prefix}{}", self.bits()),
            None => write!(f, "unknown type {:#010x}", self.0),
        }
    }
}

impl fmt::Debug for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_those_of_the_field() {
        for (name, code) in [
            ("i1", 0x1300_0008),
            ("i4", 0x1000_0004),
            ("i32", 0x1000_0020),
            ("si64", 0x1100_0040),
            ("ui8", 0x1200_0008),
            ("f16", 0x2100_0010),
            ("bf16", 0x2200_0010),
            ("cf128", 0x2300_0080),
            ("f8E5M2", 0x2400_0008),
            ("f8E8M0FNU", 0x2800_0008),
            ("*16", 0x0000_0010),
        ] {
            assert_eq!(ElementType::from_name(name), Some(ElementType(code)), "{name}");
            assert_eq!(ElementType(code).to_string(), name);
        }
        for name in ["", "f", "i", "f33", "i256", "x32", "index", "i-1", "i+8", "i08"] {
            assert_eq!(ElementType::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn integers_of_one_width_stand_for_each_other() {
        assert!(ElementType::SI8.may_stand_for(ElementType::I1));
        assert!(ElementType(8).may_stand_for(ElementType::F32));
        assert!(!ElementType::I32.may_stand_for(ElementType::F32));
        assert!(!ElementType::I32.may_stand_for(ElementType::I64));
    }
}
