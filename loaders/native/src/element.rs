//! Elements that closure kernels read and write.

use vmfb_memory::Span;
use vmfb_vm::Result;

/// A number in a binding, little-endian.
pub trait Element: Copy + sealed::Sealed {
    /// Reads an element at a byte offset of a span, if it lies in it.
    fn load(span: &Span, offset: usize) -> Option<Self>;

    /// Writes an element at a byte offset of a span.
    fn store(self, span: &Span, offset: usize) -> Result<()>;
}

mod sealed {
    /// Keeps the set of elements closed.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($element:ty: $load:ident $store:ident |$bits:ident| $from:expr, |$value:ident| $to:expr;)+) => {$(
        impl sealed::Sealed for $element {}

        impl Element for $element {
            #[inline]
            fn load(span: &Span, offset: usize) -> Option<Self> {
                span.$load(offset).map(|$bits| $from)
            }

            #[inline]
            fn store(self, span: &Span, offset: usize) -> Result<()> {
                let $value = self;
                Ok(span.$store(offset, $to)?)
            }
        }
    )+};
}

elements! {
    u8: load_u8 store_u8 |bits| bits, |value| value;
    u16: load_u16 store_u16 |bits| bits, |value| value;
    u32: load_u32 store_u32 |bits| bits, |value| value;
    u64: load_u64 store_u64 |bits| bits, |value| value;
    i8: load_u8 store_u8 |bits| bits as i8, |value| value as u8;
    i16: load_u16 store_u16 |bits| bits as i16, |value| value as u16;
    i32: load_u32 store_u32 |bits| bits as i32, |value| value as u32;
    i64: load_u64 store_u64 |bits| bits as i64, |value| value as u64;
    f32: load_u32 store_u32 |bits| f32::from_bits(bits), |value| value.to_bits();
    f64: load_u64 store_u64 |bits| f64::from_bits(bits), |value| value.to_bits();
}
