//! What the tests of all functions share: buffers, meters, a model of strided matrices.

use crate::matrix::{Placement, Shape};
use proptest::prelude::*;
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Buffer, Error, FuelMetering, Meter, Origin, Status};

/// A buffer that may be written.
pub(crate) fn buffer<T: bytemuck::Pod>(values: &[T]) -> Buffer {
    let span = Span::copy_of(bytemuck::cast_slice(values), &MemoryAccount::default()).unwrap();
    Buffer::new(span, Origin::Guest)
}

/// What a buffer holds.
pub(crate) fn content<T: bytemuck::Pod>(buffer: &Buffer) -> Vec<T> {
    elements(&buffer.span().to_vec().unwrap())
}

/// Bytes as elements; bytes at the end that make no whole element are left out.
pub(crate) fn elements<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// The same bytes, not to be written.
pub(crate) fn read_only(buffer: &Buffer) -> Buffer {
    Buffer::new(buffer.span().clone().read_only(), Origin::Module)
}

/// A meter that counts nothing.
pub(crate) fn free() -> Meter {
    Meter::default()
}

/// A meter with some fuel.
pub(crate) fn fuel(units: u64) -> Meter {
    let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
    meter.set_fuel(units);
    meter
}

/// Asserts that a call failed with this status.
#[track_caller]
pub(crate) fn assert_status(result: Result<(), Error>, status: Status) {
    match result {
        Ok(()) => panic!("the call succeeded, wanted {status}"),
        Err(error) => assert_eq!(error.status(), status, "{error}"),
    }
}

/// A dense row-major matrix at an offset.
pub(crate) fn dense(offset: i64, columns: i64) -> Placement {
    Placement { offset, strides: [columns, 1] }
}

/// Small shapes, with rows longer than a run now and then.
pub(crate) fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![(0..6u64, 0..6u64), (1..4u64, 100..300u64), (100..300u64, 1..4u64)].prop_map(|(rows, columns)| Shape { rows, columns })
}

/// Placements that fit often, and some that never do.
pub(crate) fn placements() -> impl Strategy<Value = Placement> {
    let stride = prop_oneof![8 => 0..5i64, 4 => Just(1), 2 => 5..400i64, 1 => any::<i64>(), 1 => -2..0i64];
    let offset = prop_oneof![8 => 0..9i64, 1 => any::<i64>()];
    (offset, stride.clone(), stride).prop_map(|(offset, outer, inner)| Placement { offset, strides: [outer, inner] })
}

/// Indices of the elements of a matrix in its buffer of `length` elements, row by row, or the status of the refusal.
pub(crate) fn indices(placement: Placement, shape: Shape, length: usize) -> Result<Vec<usize>, Status> {
    let wanted = 0..=(1i64 << 32) - 2;
    if placement.strides.iter().any(|stride| !wanted.contains(stride)) {
        return Err(Status::InvalidArgument);
    }
    let mut indices = Vec::new();
    for row in 0..i128::from(shape.rows) {
        for column in 0..i128::from(shape.columns) {
            let [outer, inner] = placement.strides.map(i128::from);
            let index = i128::from(placement.offset) + row * outer + column * inner;
            if !(0..length as i128).contains(&index) {
                return Err(Status::OutOfRange);
            }
            indices.push(index as usize);
        }
    }
    Ok(indices)
}
