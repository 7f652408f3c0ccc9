//! Registers as typed values.

use crate::stack::Values;

/// A type that value registers hold.
pub(super) trait RegisterValue: Copy {
    /// Reads a register, or the pair that starts there.
    fn get(values: &Values, at: u16) -> Self;
    /// Writes a register, or the pair that starts there.
    fn set(self, values: &mut Values, at: u16);
}

impl RegisterValue for u32 {
    #[inline(always)]
    fn get(values: &Values, at: u16) -> Self {
        values[usize::from(at)]
    }

    #[inline(always)]
    fn set(self, values: &mut Values, at: u16) {
        values[usize::from(at)] = self;
    }
}

impl RegisterValue for u64 {
    #[inline(always)]
    fn get(values: &Values, at: u16) -> Self {
        let at = usize::from(at);
        u64::from(values[at]) | u64::from(values[at + 1]) << 32
    }

    #[inline(always)]
    fn set(self, values: &mut Values, at: u16) {
        let at = usize::from(at);
        values[at] = self as u32;
        values[at + 1] = (self >> 32) as u32;
    }
}

macro_rules! as_bits {
    ($type:ty, $bits:ty, $from:expr, $to:expr) => {
        impl RegisterValue for $type {
            #[inline(always)]
            fn get(values: &Values, at: u16) -> Self {
                $from(<$bits>::get(values, at))
            }

            #[inline(always)]
            fn set(self, values: &mut Values, at: u16) {
                $to(self).set(values, at);
            }
        }
    };
}

as_bits!(i32, u32, |bits| bits as i32, |value| value as u32);
as_bits!(i64, u64, |bits| bits as i64, |value| value as u64);
as_bits!(f32, u32, f32::from_bits, f32::to_bits);
as_bits!(f64, u64, f64::from_bits, f64::to_bits);
as_bits!(bool, u32, |bits| bits != 0, u32::from);
