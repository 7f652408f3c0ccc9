//! `matmul`: the product of two row-major matrices, in modules of compilers up to 2023-04.

use crate::matrix::{Element, Matrix, Pace, Placement, Shape, size};
use crate::mmt4d::Start;
use vmfb_vm::{Buffer, Meter, Result};

/// Columns of the result that are computed at once.
const RUN: usize = 256;

/// The operands as a program gives them; inner strides are 1.
pub(crate) struct Matmul<'a> {
    /// Left factor, right factor, result.
    pub(crate) buffers: [&'a Buffer; 3],
    pub(crate) offsets: [i64; 3],
    pub(crate) row_strides: [i64; 3],
    /// Rows of the result, columns of the result, terms of each sum.
    pub(crate) sizes: [i64; 3],
    pub(crate) start: Start,
}

impl Matmul<'_> {
    /// `result (+)= left * right`, adding the terms of a sum in order. `add(sum, a, b)` is `sum + a * b`.
    pub(crate) fn run<I: Element, O: Element>(&self, meter: &mut Meter, add: impl Fn(O, I, I) -> O) -> Result<()> {
        let rows = size(self.sizes[0], "m")?;
        let columns = size(self.sizes[1], "n")?;
        let terms = size(self.sizes[2], "k")?;
        let left = Matrix::<I>::input(self.buffers[0], self.placement(0), Shape { rows, columns: terms }, "the left factor")?;
        let right = Matrix::<I>::input(self.buffers[1], self.placement(1), Shape { rows: terms, columns }, "the right factor")?;
        let output = Matrix::<O>::output(self.buffers[2], self.placement(2), Shape { rows, columns }, "the result")?;
        meter.charge_product(&[rows, columns, terms.max(1)])?;
        if rows == 0 || columns == 0 {
            return Ok(());
        }
        let mut pace = Pace::new(meter)?;
        let (mut sums, mut values) = ([O::zeroed(); RUN], [I::zeroed(); RUN]);
        for row in 0..rows {
            let mut column = 0;
            while column < columns {
                let length = (columns - column).min(RUN as u64);
                let (sums, values) = (&mut sums[..length as usize], &mut values[..length as usize]);
                match self.start {
                    Start::Zero => sums.fill(O::zeroed()),
                    Start::Accumulate => output.read(row, column, sums)?,
                }
                for term in 0..terms {
                    let factor = left.get(row, term)?;
                    right.read(term, column, values)?;
                    for (sum, value) in sums.iter_mut().zip(&*values) {
                        *sum = add(*sum, factor, *value);
                    }
                    pace.step(length)?;
                }
                output.write(row, column, sums)?;
                pace.step(length)?;
                column += length;
            }
        }
        Ok(())
    }

    fn placement(&self, operand: usize) -> Placement {
        Placement { offset: self.offsets[operand], strides: [self.row_strides[operand], 1] }
    }
}

#[cfg(test)]
#[path = "matmul_tests.rs"]
mod tests;
