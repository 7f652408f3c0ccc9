//! Functions that work element by element on 32-bit values, copies and fills.

use crate::matrix::{Element, Matrix, Pace, Shape, lengthened};
use vmfb_vm::{Error, Meter, Result};

/// Elements that are read, computed and written at once.
const RUN: usize = 128;

/// Elements that are filled at once.
const FILL_RUN: usize = 1 << 16;

/// `output = apply(input)`, in runs along the rows: a run is read as a whole before it is written.
pub(crate) fn unary<T: Element>(
    meter: &mut Meter,
    shape: Shape,
    input: Matrix<'_, T>,
    output: Matrix<'_, T>,
    apply: impl Fn(&mut [T]),
) -> Result<()> {
    meter.charge_product(&[shape.rows, shape.columns])?;
    if shape.is_empty() {
        return Ok(());
    }
    let (shape, [input, output]) = lengthened(shape, [input, output]);
    let mut values = [T::zeroed(); RUN];
    runs(meter, shape, RUN, |row, column, length| {
        let values = &mut values[..length];
        input.read(row, column, values)?;
        apply(values);
        output.write(row, column, values)
    })
}

/// `output = apply(left, right)`, in runs along the rows; `apply` leaves its result in the left values.
pub(crate) fn binary(
    meter: &mut Meter,
    shape: Shape,
    operands: [Matrix<'_, u32>; 2],
    output: Matrix<'_, u32>,
    apply: impl Fn(&mut [u32], &[u32]) -> Result<()>,
) -> Result<()> {
    meter.charge_product(&[shape.rows, shape.columns])?;
    if shape.is_empty() {
        return Ok(());
    }
    let [left, right] = operands;
    let (shape, [left, right, output]) = lengthened(shape, [left, right, output]);
    let (mut left_values, mut right_values) = ([0; RUN], [0; RUN]);
    runs(meter, shape, RUN, |row, column, length| {
        let (left_values, right_values) = (&mut left_values[..length], &mut right_values[..length]);
        left.read(row, column, left_values)?;
        right.read(row, column, right_values)?;
        apply(left_values, right_values)?;
        output.write(row, column, left_values)
    })
}

/// Sets every element to one value.
pub(crate) fn fill<T: Element>(meter: &mut Meter, shape: Shape, output: Matrix<'_, T>, value: T) -> Result<()> {
    meter.charge_product(&[shape.rows, shape.columns])?;
    if shape.is_empty() {
        return Ok(());
    }
    let (shape, [output]) = lengthened(shape, [output]);
    runs(meter, shape, FILL_RUN, |row, column, length| output.fill(row, column, length as u64, value))
}

/// An operation on floats that always has a result.
pub(crate) fn floats(operation: impl Fn(f32, f32) -> f32) -> impl Fn(&mut [u32], &[u32]) -> Result<()> {
    integers(move |left, right| operation(f32::from_bits(left), f32::from_bits(right)).to_bits())
}

/// An operation on integers that always has a result.
pub(crate) fn integers(operation: impl Fn(u32, u32) -> u32) -> impl Fn(&mut [u32], &[u32]) -> Result<()> {
    move |left, right| {
        for (left, right) in left.iter_mut().zip(right) {
            *left = operation(*left, *right);
        }
        Ok(())
    }
}

/// Signed division; INVALID_ARGUMENT for a zero divisor and for a quotient that is too large.
pub(crate) fn divide_signed(left: &mut [u32], right: &[u32]) -> Result<()> {
    for (left, right) in left.iter_mut().zip(right) {
        let (dividend, divisor) = (*left as i32, *right as i32);
        *left = dividend.checked_div(divisor).ok_or_else(|| division(dividend.into(), divisor.into()))? as u32;
    }
    Ok(())
}

/// Unsigned division; INVALID_ARGUMENT for a zero divisor.
pub(crate) fn divide_unsigned(left: &mut [u32], right: &[u32]) -> Result<()> {
    for (left, right) in left.iter_mut().zip(right) {
        *left = left.checked_div(*right).ok_or_else(|| division((*left).into(), (*right).into()))?;
    }
    Ok(())
}

/// A function of one float.
pub(crate) fn each_float(operation: impl Fn(f32) -> f32) -> impl Fn(&mut [f32]) {
    move |values| {
        for value in values {
            *value = operation(*value);
        }
    }
}

/// Calls `work(row, column, length)` for every run of every row.
fn runs(meter: &Meter, shape: Shape, longest: usize, mut work: impl FnMut(u64, u64, usize) -> Result<()>) -> Result<()> {
    let mut pace = Pace::new(meter)?;
    for row in 0..shape.rows {
        let mut column = 0;
        while column < shape.columns {
            let length = (shape.columns - column).min(longest as u64);
            work(row, column, length as usize)?;
            pace.step(length)?;
            column += length;
        }
    }
    Ok(())
}

#[cold]
fn division(dividend: i64, divisor: i64) -> Error {
    let reason = if divisor == 0 { "division by zero" } else { "the quotient is too large" };
    Error::invalid(format!("{dividend} / {divisor}: {reason}"))
}

#[cfg(test)]
#[path = "elementwise_tests.rs"]
mod tests;
