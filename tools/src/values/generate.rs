//! Inputs made from a declaration: zeros, or pseudo-random values that a seed repeats.

use crate::declaration::{DeclaredType, Scalar, Slot};
use crate::failure::{Failure, Result};
use crate::values::element::{Codec, Packer};
use crate::values::tensor::{Contents, Tensor};
use vmfb_bytecode::calling_convention::Kind;
use vmfb_hal::{Class, ElementType};
use vmfb_memory::MemoryAccount;
use vmfb_vm::{Handle, Status, Value};

/// What the elements of generated values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seed {
    /// Zero.
    Zeros,
    /// Pseudo-random numbers of this sequence.
    Random(u64),
}

/// The size of dimensions that the declaration leaves open.
const OPEN_DIMENSION: u64 = 1;

/// `auto` or `auto:SEED`; `None` for other texts.
pub(crate) fn seed(text: &str) -> Result<Option<Seed>> {
    let Some(rest) = text.strip_prefix("auto") else { return Ok(None) };
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok(Some(Seed::Zeros)),
        None => Ok(None),
        Some(number) => match number.parse() {
            Ok(seed) => Ok(Some(Seed::Random(seed))),
            Err(_) => Err(Failure::invalid(format!("'{number}' is not a seed")).help("write auto:7, or auto for zeros")),
        },
    }
}

/// A value for the slot with this index.
pub(crate) fn value(slot: &Slot, index: usize, seed: Seed, account: &MemoryAccount) -> Result<Value> {
    let mut numbers = Numbers { seed, state: (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) };
    if let Seed::Random(seed) = seed {
        numbers.state = numbers.state.wrapping_add(seed);
    }
    let declared = match &slot.declared {
        Some(DeclaredType::Scalar(Scalar::Element(element_type))) => Some(*element_type),
        _ => None,
    };
    Ok(match slot.kind {
        Kind::I32 => Value::I32(numbers.integer(declared.unwrap_or(ElementType::I32)) as i32),
        Kind::I64 => Value::I64(numbers.integer(declared.unwrap_or(ElementType::I64))),
        Kind::F32 => Value::F32(numbers.unit() as f32),
        Kind::F64 => Value::F64(numbers.unit()),
        Kind::Ref => {
            let Some(DeclaredType::Tensor { shape, element_type }) = &slot.declared else {
                let text = format!("input {index} cannot be generated: the module says neither its shape nor its element type");
                let help = format!("write shape and type in place of auto, for example --input=4xf32 for zeros; this is input {index}");
                return Err(Failure::new(Status::FailedPrecondition, text).help(help));
            };
            let shape: Vec<u64> = shape.iter().map(|dimension| dimension.unwrap_or(OPEN_DIMENSION)).collect();
            let tensor = Tensor { contents: numbers.contents(&shape, *element_type, account)?, shape, element_type: *element_type };
            Handle::new(tensor.into_view(account)?).into()
        }
    })
}

struct Numbers {
    seed: Seed,
    state: u64,
}

impl Numbers {
    fn contents(&mut self, shape: &[u64], element_type: ElementType, account: &MemoryAccount) -> Result<Contents> {
        let Some(codec) = Codec::of(element_type).filter(|_| self.seed != Seed::Zeros) else { return Ok(Contents::Zeros) };
        // Refuse what the limit refuses before the work is done.
        let length = crate::npy::byte_length(shape, element_type).unwrap_or(u64::MAX);
        account.charge(length)?;
        account.refund(length);
        let count = shape.iter().product::<u64>();
        let mut packer = Packer::default();
        for _ in 0..count {
            let text = self.element(element_type);
            let element = codec.encode(&text).map_err(|error| Failure::new(Status::Internal, format!("{text} {}", error.problem)))?;
            packer.push(&element, element_type.bits());
        }
        Ok(Contents::Bytes(packer.into_bytes()))
    }

    fn element(&mut self, element_type: ElementType) -> String {
        match element_type.class() {
            Some(Class::Boolean | Class::Integer | Class::SignedInteger | Class::UnsignedInteger) if element_type.bits() <= 64 => {
                self.integer(element_type).to_string()
            }
            Some(Class::Boolean | Class::Integer | Class::SignedInteger | Class::UnsignedInteger | Class::Opaque) | None => {
                "00".repeat(element_type.dense_bytes())
            }
            Some(Class::Complex) => format!("({},{})", self.unit(), self.unit()),
            Some(_) => self.unit().to_string(),
        }
    }

    /// A whole number that the type can hold: 0 or 1 for i1, from 0 to 15 for unsigned types, else from -8 to 7, or as
    /// much of that as fits.
    fn integer(&mut self, element_type: ElementType) -> i64 {
        if self.seed == Seed::Zeros {
            return 0;
        }
        let class = element_type.class();
        let bits = element_type.bits().clamp(1, 4);
        if class == Some(Class::Boolean) {
            return (self.next() >> 63) as i64;
        }
        let value = (self.next() >> (64 - bits)) as i64;
        if class == Some(Class::UnsignedInteger) { value } else { value - (1 << (bits - 1)) }
    }

    /// A number from -1 to 1 with few digits, exact in f32.
    fn unit(&mut self) -> f64 {
        match self.seed {
            Seed::Zeros => 0.0,
            Seed::Random(_) => (self.next() >> 44) as f64 / f64::from(1 << 19) - 1.0,
        }
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}
