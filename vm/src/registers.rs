//! Registers as typed values.

use crate::stack::Values;

/// How many slots a value takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// One slot.
    One,
    /// An even slot and the one behind it.
    Pair,
}

/// The value registers of a frame.
pub(crate) trait Registers {
    /// Reads a register.
    fn read_32(&self, at: u16) -> u32;
    /// Reads the pair that starts at a register.
    fn read_64(&self, at: u16) -> u64;
    /// Reads a register that was written some time ago, most likely.
    #[inline(always)]
    fn read_settled_32(&self, at: u16) -> u32 {
        self.read_32(at)
    }
    /// Reads a pair that was written some time ago, most likely.
    #[inline(always)]
    fn read_settled_64(&self, at: u16) -> u64 {
        self.read_64(at)
    }
    /// Writes a register.
    fn write_32(&mut self, at: u16, value: u32);
    /// Writes the pair that starts at a register.
    fn write_64(&mut self, at: u16, value: u64);
}

impl Registers for Values {
    #[inline(always)]
    fn read_32(&self, at: u16) -> u32 {
        self[usize::from(at)]
    }

    #[inline(always)]
    fn read_64(&self, at: u16) -> u64 {
        let at = usize::from(at);
        u64::from(self[at]) | u64::from(self[at + 1]) << 32
    }

    #[inline(always)]
    fn write_32(&mut self, at: u16, value: u32) {
        self[usize::from(at)] = value;
    }

    #[inline(always)]
    fn write_64(&mut self, at: u16, value: u64) {
        let at = usize::from(at);
        self[at] = value as u32;
        self[at + 1] = (value >> 32) as u32;
    }
}

/// A type that value registers hold.
pub(crate) trait RegisterValue: Copy {
    /// How many slots it takes.
    const WIDTH: Width;
    /// Reads a register, or the pair that starts there.
    fn get(values: &impl Registers, at: u16) -> Self;
    /// Reads a register, or the pair that starts there, that was written some time ago, most likely: constants and limits of loops.
    /// Compilers put them last.
    fn get_settled(values: &impl Registers, at: u16) -> Self;
    /// Writes a register, or the pair that starts there.
    fn set(self, values: &mut impl Registers, at: u16);
}

macro_rules! as_bits {
    ($type:ty, $width:ident, $read:ident, $read_settled:ident, $write:ident, $from:expr, $to:expr) => {
        impl RegisterValue for $type {
            const WIDTH: Width = Width::$width;

            #[inline(always)]
            fn get(values: &impl Registers, at: u16) -> Self {
                $from(values.$read(at))
            }

            #[inline(always)]
            fn get_settled(values: &impl Registers, at: u16) -> Self {
                $from(values.$read_settled(at))
            }

            #[inline(always)]
            fn set(self, values: &mut impl Registers, at: u16) {
                values.$write(at, $to(self));
            }
        }
    };
}

as_bits!(u32, One, read_32, read_settled_32, write_32, |bits| bits, |value| value);
as_bits!(i32, One, read_32, read_settled_32, write_32, |bits| bits as i32, |value| value as u32);
as_bits!(f32, One, read_32, read_settled_32, write_32, f32::from_bits, f32::to_bits);
as_bits!(bool, One, read_32, read_settled_32, write_32, |bits| bits != 0, u32::from);
as_bits!(u64, Pair, read_64, read_settled_64, write_64, |bits| bits, |value| value);
as_bits!(i64, Pair, read_64, read_settled_64, write_64, |bits| bits as i64, |value| value as u64);
as_bits!(f64, Pair, read_64, read_settled_64, write_64, f64::from_bits, f64::to_bits);
