//! Strided matrices in buffers: checked once against their buffer, then read and written in runs.

use std::marker::PhantomData;
use vmfb_memory::Span;
use vmfb_vm::{Buffer, Error, Meter, Result};

/// Sizes and strides are below this.
const LIMIT: u64 = 1 << 32;

/// Elements of work between two looks at deadline and interruption.
const WORK_BETWEEN_POLLS: u64 = 1 << 16;

/// A value as buffers hold it: little-endian.
pub(crate) trait Element: bytemuck::Pod {
    /// Reads the element with this index; `None` past the end.
    fn load(span: &Span, index: u64) -> Option<Self>;

    /// Writes the element with this index.
    fn store(self, span: &Span, index: u64) -> vmfb_memory::Result<()>;

    /// Turns a value in memory order into a value in the machine's order, and back.
    fn reorder(self) -> Self;
}

macro_rules! element {
    ($type:ty, $load:ident, $store:ident) => {
        impl Element for $type {
            fn load(span: &Span, index: u64) -> Option<Self> {
                span.$load(index)
            }

            fn store(self, span: &Span, index: u64) -> vmfb_memory::Result<()> {
                span.$store(index, self)
            }

            fn reorder(self) -> Self {
                self.to_le()
            }
        }
    };
}

element!(u8, load_element_u8, store_element_u8);
element!(u16, load_element_u16, store_element_u16);
element!(u32, load_element_u32, store_element_u32);
element!(u64, load_element_u64, store_element_u64);

/// Same bits as another element type.
macro_rules! element_as {
    ($type:ty, $bits:ty) => {
        impl Element for $type {
            fn load(span: &Span, index: u64) -> Option<Self> {
                <$bits>::load(span, index).map(bytemuck::cast)
            }

            fn store(self, span: &Span, index: u64) -> vmfb_memory::Result<()> {
                bytemuck::cast::<Self, $bits>(self).store(span, index)
            }

            fn reorder(self) -> Self {
                bytemuck::cast(bytemuck::cast::<Self, $bits>(self).reorder())
            }
        }
    };
}

element_as!(i8, u8);
element_as!(i32, u32);
element_as!(f32, u32);

/// Number of rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) rows: u64,
    pub(crate) columns: u64,
}

impl Shape {
    /// The shape that a program gives: INVALID_ARGUMENT unless both sizes lie in `0..2^32`.
    pub(crate) fn new(rows: i64, columns: i64) -> Result<Self> {
        Ok(Self { rows: size(rows, "the number of rows")?, columns: size(columns, "the number of columns")? })
    }

    /// Whether there are no elements.
    pub(crate) fn is_empty(self) -> bool {
        self.rows == 0 || self.columns == 0
    }
}

/// A size that a program gives: INVALID_ARGUMENT unless it lies in `0..2^32`.
pub(crate) fn size(value: i64, what: &str) -> Result<u64> {
    u64::try_from(value)
        .ok()
        .filter(|value| *value < LIMIT)
        .ok_or_else(|| Error::invalid(format!("{what} is {value}, wanted 0 to {}", LIMIT - 1)))
}

/// The product of sizes: INVALID_ARGUMENT unless it is below 2^32 itself.
pub(crate) fn product(sizes: &[u64], what: &str) -> Result<u64> {
    sizes
        .iter()
        .try_fold(1u64, |product, size| product.checked_mul(*size))
        .filter(|product| *product < LIMIT)
        .ok_or_else(|| Error::invalid(format!("{what} is the product of {sizes:?}, wanted at most {}", LIMIT - 1)))
}

/// Where the elements of a matrix stand in its buffer, as a program says it, counted in elements: element (i, j) stands at
/// `offset + i * strides[0] + j * strides[1]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) offset: i64,
    pub(crate) strides: [i64; 2],
}

/// A matrix whose every element lies in its buffer.
pub(crate) struct Matrix<'a, T> {
    span: &'a Span,
    offset: u64,
    strides: [u64; 2],
    of: PhantomData<T>,
}

impl<T> Clone for Matrix<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Matrix<'_, T> {}

impl<'a, T: Element> Matrix<'a, T> {
    /// A matrix to read. INVALID_ARGUMENT for strides outside `0..2^32 - 1`, OUT_OF_RANGE if an element is not in the buffer.
    pub(crate) fn input(buffer: &'a Buffer, placement: Placement, shape: Shape, what: &str) -> Result<Self> {
        Self::new(buffer.span(), placement, shape, what)
    }

    /// A matrix to write; PERMISSION_DENIED if the buffer is read-only, else as [`Matrix::input`].
    pub(crate) fn output(buffer: &'a Buffer, placement: Placement, shape: Shape, what: &str) -> Result<Self> {
        let span = buffer.writable().map_err(|error| error.context(format!("for {what}")))?;
        Self::new(span, placement, shape, what)
    }

    fn new(span: &'a Span, placement: Placement, shape: Shape, what: &str) -> Result<Self> {
        let stride = |axis: usize| {
            let value = placement.strides[axis];
            u64::try_from(value)
                .ok()
                .filter(|value| *value < LIMIT - 1)
                .ok_or_else(|| Error::invalid(format!("stride {axis} of {what} is {value}, wanted 0 to {}", LIMIT - 2)))
        };
        let strides = [stride(0)?, stride(1)?];
        if shape.is_empty() {
            return Ok(Self { span, offset: 0, strides, of: PhantomData });
        }
        let last = u128::from(shape.rows - 1) * u128::from(strides[0]) + u128::from(shape.columns - 1) * u128::from(strides[1]);
        let available = (span.len() / size_of::<T>()) as u64;
        match u64::try_from(placement.offset) {
            Ok(offset) if u128::from(offset) + last < u128::from(available) => Ok(Self { span, offset, strides, of: PhantomData }),
            _ => Err(Error::out_of_range(format!(
                "{what} has elements {} to {} of {} bytes each, its buffer has {} bytes",
                placement.offset,
                i128::from(placement.offset).saturating_add(i128::try_from(last).unwrap_or(i128::MAX)),
                size_of::<T>(),
                span.len()
            ))),
        }
    }

    /// Copies elements of one row, starting at a column, into `target`.
    pub(crate) fn read(&self, row: u64, column: u64, target: &mut [T]) -> Result<()> {
        let start = self.index(row, column);
        match self.strides[1] {
            1 => {
                self.span.read(byte_offset::<T>(start), bytemuck::cast_slice_mut(target))?;
                reorder(target);
            }
            0 => target.fill(self.load(start)?),
            stride => {
                for (at, value) in (0..).zip(target) {
                    *value = self.load(start + at * stride)?;
                }
            }
        }
        Ok(())
    }

    /// Writes elements of one row, starting at a column. The values are in memory order afterwards.
    pub(crate) fn write(&self, row: u64, column: u64, source: &mut [T]) -> Result<()> {
        let start = self.index(row, column);
        if self.strides[1] == 1 {
            reorder(source);
            self.span.write(byte_offset::<T>(start), bytemuck::cast_slice(source))?;
        } else {
            for (at, value) in (0..).zip(source) {
                value.store(self.span, start + at * self.strides[1])?;
            }
        }
        Ok(())
    }

    /// Fills elements of one row, starting at a column.
    pub(crate) fn fill(&self, row: u64, column: u64, length: u64, value: T) -> Result<()> {
        if self.strides[1] == 1 {
            let start = byte_offset::<T>(self.index(row, column));
            self.span.fill(start, byte_offset::<T>(length), bytemuck::bytes_of(&value.reorder()))?;
        } else {
            for column in column..column + length {
                self.set(row, column, value)?;
            }
        }
        Ok(())
    }

    /// One element.
    pub(crate) fn get(&self, row: u64, column: u64) -> Result<T> {
        self.load(self.index(row, column))
    }

    /// Changes one element.
    pub(crate) fn set(&self, row: u64, column: u64, value: T) -> Result<()> {
        Ok(value.store(self.span, self.index(row, column))?)
    }

    /// Whether the next row goes on where a row ends, in equal steps.
    fn is_flat(&self, shape: Shape) -> bool {
        self.strides[0] == self.strides[1] * shape.columns
    }

    /// Rows as columns.
    fn transposed(mut self) -> Self {
        self.strides.swap(0, 1);
        self
    }

    /// Index of an element of the matrix in the buffer. The sum does not overflow: it was checked for the last element.
    fn index(&self, row: u64, column: u64) -> u64 {
        self.offset + row * self.strides[0] + column * self.strides[1]
    }

    fn load(&self, index: u64) -> Result<T> {
        T::load(self.span, index).ok_or_else(|| Error::out_of_range(format!("element {index} is not in {} bytes", self.span.len())))
    }
}

/// The same elements in longer rows where the operands allow it: matrices without gaps become one row, a column becomes a row.
pub(crate) fn lengthened<'a, T: Element, const N: usize>(shape: Shape, operands: [Matrix<'a, T>; N]) -> (Shape, [Matrix<'a, T>; N]) {
    if operands.iter().all(|operand| operand.is_flat(shape)) {
        (Shape { rows: 1, columns: shape.rows * shape.columns }, operands)
    } else if shape.columns == 1 {
        (Shape { rows: 1, columns: shape.rows }, operands.map(Matrix::transposed))
    } else {
        (shape, operands)
    }
}

/// Looks at deadline and interruption from time to time.
pub(crate) struct Pace<'a> {
    meter: &'a Meter,
    work: u64,
}

impl<'a> Pace<'a> {
    /// A pace that looks at once, and then after each 65,536 elements.
    pub(crate) fn new(meter: &'a Meter) -> Result<Self> {
        meter.poll()?;
        Ok(Self { meter, work: 0 })
    }

    /// Counts elements of work that were done.
    pub(crate) fn step(&mut self, elements: u64) -> Result<()> {
        self.work = self.work.saturating_add(elements);
        if self.work < WORK_BETWEEN_POLLS {
            return Ok(());
        }
        self.work = 0;
        self.meter.poll()
    }
}

/// Byte offset of an element that lies in a buffer, whose length is a `usize`.
fn byte_offset<T>(index: u64) -> usize {
    index as usize * size_of::<T>()
}

fn reorder<T: Element>(values: &mut [T]) {
    if cfg!(target_endian = "big") {
        for value in values {
            *value = value.reorder();
        }
    }
}
