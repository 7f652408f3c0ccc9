//! The innermost loops of `mmt4d`: a small block of the result, kept in registers, over panels of the factors.

#[cfg(target_arch = "x86_64")]
#[path = "simd/x86_64.rs"]
mod x86_64;

/// Adds the products of two panels to a block of sums. The left panel holds `ROWS` values for each term, the right one
/// `COLUMNS` values.
pub(crate) type Kernel<const ROWS: usize, const COLUMNS: usize> = fn(&[f32], &[f32], &mut [[f32; COLUMNS]; ROWS]);

/// Kernels for one size of registers; the narrow one is for a result of a single row.
pub(crate) enum Kernels {
    /// For registers of four values, which every 64-bit machine has.
    Portable { wide: Kernel<4, 8>, narrow: Kernel<1, 16> },
    /// For registers of eight values.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
    Eight { wide: Kernel<6, 16>, narrow: Kernel<1, 32> },
}

impl Kernels {
    /// The best kernels for this machine.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(kernels) = x86_64::detect() {
            return kernels;
        }
        Self::portable()
    }

    /// Kernels for any machine.
    pub(crate) fn portable() -> Self {
        // On AArch64 every machine multiplies and adds in one step.
        const FUSED: bool = cfg!(target_arch = "aarch64");
        Self::Portable { wide: accumulate::<4, 8, FUSED>, narrow: accumulate::<1, 16, FUSED> }
    }
}

/// The kernel itself. The terms of each sum are added in order.
#[inline(always)]
fn accumulate<const ROWS: usize, const COLUMNS: usize, const FUSED: bool>(left: &[f32], right: &[f32], sums: &mut [[f32; COLUMNS]; ROWS]) {
    let mut block = *sums;
    for (left, right) in left.as_chunks::<ROWS>().0.iter().zip(right.as_chunks::<COLUMNS>().0) {
        for (row, factor) in block.iter_mut().zip(left) {
            for (sum, value) in row.iter_mut().zip(right) {
                *sum = if FUSED { factor.mul_add(*value, *sum) } else { *sum + *factor * *value };
            }
        }
    }
    *sums = block;
}
