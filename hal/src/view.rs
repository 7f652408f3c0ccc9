//! `!hal.buffer_view`: a buffer with shape and element type.

use crate::{ElementType, HalBuffer};
use smallvec::SmallVec;
use std::fmt;
use vmfb_bytecode::calling_convention::Kind;
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Error, Handle, Holders, HostType, Ref, RefObject, Result, Value};

/// Most dimensions that a view may have.
pub const MAX_RANK: usize = 128;

/// Dimensions, outermost first.
pub type Shape = SmallVec<[u64; 4]>;

/// How elements are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(pub u32);

impl Encoding {
    /// Not stated.
    pub const OPAQUE: Self = Self(0);
    /// Row-major without gaps.
    pub const DENSE: Self = Self(1);
}

/// A buffer with shape and element type: a tensor.
#[derive(Clone, Debug)]
pub struct BufferView {
    buffer: Handle<HalBuffer>,
    shape: Shape,
    element_type: ElementType,
    encoding: Encoding,
}

impl RefObject for BufferView {
    const TYPE_NAME: &'static str = "hal.buffer_view";

    fn lent(&self, holders: Holders) -> Option<Self> {
        let handed_over = holders == Holders::Call && self.buffer.has_sole_bytes() && Handle::is_sole(&self.buffer);
        if handed_over || self.buffer.is_in_place() {
            return None;
        }
        Some(Self { buffer: Handle::new(self.buffer.to_lent()), ..self.clone() })
    }
}

impl BufferView {
    /// A view of a whole buffer. The buffer must hold as many bytes as shape and type ask for (OUT_OF_RANGE with both sizes), and
    /// elements must have bits (INVALID_ARGUMENT).
    pub fn new(buffer: Handle<HalBuffer>, shape: &[u64], element_type: ElementType, encoding: Encoding) -> Result<Self> {
        if shape.len() > MAX_RANK {
            return Err(Error::out_of_range(format!("a view has at most {MAX_RANK} dimensions, found {}", shape.len())));
        }
        // Any number of such elements would take no bytes, but time and output.
        if element_type.bits() == 0 {
            return Err(Error::invalid(format!("elements of a view have at least one bit; the element type is {:#010x}", element_type.0)));
        }
        let view = Self { buffer, shape: Shape::from_slice(shape), element_type, encoding };
        let wanted = view.byte_length();
        if wanted.is_none_or(|wanted| wanted > view.buffer.len() as u64) {
            let wanted = wanted.map_or_else(|| "more than 2^64".to_owned(), |wanted| wanted.to_string());
            let found = view.buffer.len();
            return Err(Error::out_of_range(format!("a view of {} needs {wanted} bytes, the buffer has {found}", view.type_text())));
        }
        Ok(view)
    }

    /// A dense view of new bytes with the given content, in row-major order, little-endian.
    pub fn from_bytes(shape: &[u64], element_type: ElementType, bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_in(shape, element_type, bytes, &MemoryAccount::default())
    }

    /// As [`BufferView::from_bytes`], charged to an account.
    pub fn from_bytes_in(shape: &[u64], element_type: ElementType, bytes: &[u8], account: &MemoryAccount) -> Result<Self> {
        let buffer = Handle::new(HalBuffer::new(Span::copy_of(bytes, account)?));
        let view = Self::new(buffer, shape, element_type, Encoding::DENSE)?;
        match view.byte_length() {
            Some(wanted) if wanted == bytes.len() as u64 => Ok(view),
            _ => Err(Error::out_of_range(format!("{} bytes are too many for {}", bytes.len(), view.type_text()))),
        }
    }

    /// A dense view of f32 values.
    pub fn from_f32(shape: &[u64], values: &[f32]) -> Result<Self> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::from_bytes(shape, ElementType::F32, &bytes)
    }

    /// A dense view of i32 values.
    pub fn from_i32(shape: &[u64], values: &[i32]) -> Result<Self> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::from_bytes(shape, ElementType::I32, &bytes)
    }

    /// The values, if the element type is f32.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        self.expect_type(ElementType::F32)?;
        Ok(self.to_bytes()?.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    /// The values, if the element type is i32.
    pub fn to_i32(&self) -> Result<Vec<i32>> {
        self.expect_type(ElementType::I32)?;
        Ok(self.to_bytes()?.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    fn expect_type(&self, wanted: ElementType) -> Result<()> {
        if self.element_type.may_stand_for(wanted) {
            return Ok(());
        }
        Err(Error::invalid(format!("the elements are {}, wanted {wanted}", self.element_type)))
    }

    /// The bytes of the elements, row-major, little-endian.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let length = self.byte_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
        Ok(self.buffer.span().slice(0, length)?.to_vec()?)
    }

    /// A view of a copy of the elements, which shares nothing with this one.
    pub fn deep_clone(&self) -> Result<Self> {
        let copy = Self::from_bytes(&self.shape, self.element_type, &self.to_bytes()?)?;
        Ok(Self { encoding: self.encoding, ..copy })
    }

    /// A view of the same bytes into which programs may write although the caller keeps it, as the official runtime does: calls
    /// then copy nothing, and the values after a call are what the program left there. The bytes must be writable.
    pub fn in_place(&self) -> Result<Self> {
        let span = self.buffer.span();
        if !span.is_writable() {
            return Err(Error::precondition("the bytes of the view cannot be written in place"));
        }
        Ok(Self { buffer: Handle::new(HalBuffer::new(span).in_place()), ..self.clone() })
    }

    /// The buffer.
    pub fn buffer(&self) -> &Handle<HalBuffer> {
        &self.buffer
    }

    /// Dimensions, outermost first.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Element type.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Encoding.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Number of elements; `None` when it does not fit in 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1u64, |product, dimension| product.checked_mul(*dimension))
    }

    /// Bytes of all elements; `None` when they do not fit in 64 bits.
    pub fn byte_length(&self) -> Option<u64> {
        self.element_type.bytes_of(self.element_count()?)
    }

    /// Shape and type as text: `2x3xf32`, `f32` for a scalar.
    pub fn type_text(&self) -> String {
        TypeText { shape: &self.shape, element_type: self.element_type }.to_string()
    }
}

/// Shape and element type as text.
pub(crate) struct TypeText<'a> {
    pub(crate) shape: &'a [u64],
    pub(crate) element_type: ElementType,
}

impl fmt::Display for TypeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for dimension in self.shape {
            write!(f, "{dimension}x")?;
        }
        write!(f, "{}", self.element_type)
    }
}

impl HostType for BufferView {
    const KIND: Kind = Kind::Ref;

    fn into_value(self) -> Value {
        Value::Ref(Ref::new(self))
    }

    fn from_value(value: Value) -> Result<Self> {
        Ref::from_value(value)?.object::<Self>("the value").cloned()
    }
}
