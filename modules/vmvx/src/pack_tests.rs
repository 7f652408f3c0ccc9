//! Tests of `pack` and `unpack`, against index arithmetic on vectors.

use super::*;
use crate::test_support::*;
use proptest::prelude::*;
use vmfb_vm::Status;

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Rows), Just(Order::Columns)]
}

/// A matrix, the tiles that cover it, and gaps in both buffers.
#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    sizes: [i64; 4],
    outer: Order,
    inner: Order,
    matrix: Placement,
    packed: Placement,
}

impl Case {
    fn row_of_tiles(&self) -> i64 {
        self.sizes[1] * self.sizes[2] * self.sizes[3]
    }

    fn matrix_length(&self) -> usize {
        let [outer, inner] = self.matrix.strides;
        let last = (self.shape.rows as i64 - 1).max(0) * outer + (self.shape.columns as i64 - 1).max(0) * inner;
        (self.matrix.offset + last + 1) as usize
    }

    fn packed_length(&self) -> usize {
        (self.packed.offset + (self.sizes[0] - 1).max(0) * self.packed.strides[0] + self.row_of_tiles()) as usize
    }

    /// Where the element (row, column) of the matrix stands in the packed buffer, by the definition of the operation.
    fn position(&self, row: i64, column: i64) -> usize {
        let inner_sizes = [self.sizes[2], self.sizes[3]];
        let [height, width] = if self.inner == Order::Rows { inner_sizes } else { [inner_sizes[1], inner_sizes[0]] };
        let mut outer = [row / height, column / width];
        let mut inner = [row % height, column % width];
        if self.outer == Order::Columns {
            outer.reverse();
        }
        if self.inner == Order::Columns {
            inner.reverse();
        }
        let inside = outer[1] * self.sizes[2] * self.sizes[3] + inner[0] * self.sizes[3] + inner[1];
        (self.packed.offset + outer[0] * self.packed.strides[0] + inside) as usize
    }

    fn matrix_position(&self, row: i64, column: i64) -> usize {
        (self.matrix.offset + row * self.matrix.strides[0] + column * self.matrix.strides[1]) as usize
    }

    /// Rows and columns that the tiles cover.
    fn covered(&self) -> [i64; 2] {
        let mut tiles = [self.sizes[0], self.sizes[1]];
        let mut tile = [self.sizes[2], self.sizes[3]];
        if self.outer == Order::Columns {
            tiles.reverse();
        }
        if self.inner == Order::Columns {
            tile.reverse();
        }
        [tiles[0] * tile[0], tiles[1] * tile[1]]
    }

    fn tiling(&self) -> Tiling {
        Tiling::new(self.sizes, self.outer, self.inner).unwrap()
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let tile = prop_oneof![(1..9i64, 1..9i64), (1..3i64, 30..80i64), (40..60i64, 25..40i64)];
    let numbers = ((0..20u64, 0..40u64), tile, (0..2i64, 0..2i64), (0..5i64, 0..5i64, 1..3i64), (0..5i64, 0..5i64), (orders(), orders()));
    numbers.prop_map(|((rows, columns), (height, width), (below, beside), from, to, (outer, inner))| {
        // Tiles beyond the matrix are allowed, they hold padding.
        let tiles = [(rows as i64 + height - 1) / height + below, (columns as i64 + width - 1) / width + beside];
        let [below, beside] = if outer == Order::Rows { tiles } else { [tiles[1], tiles[0]] };
        let [p2, p3] = if inner == Order::Rows { [height, width] } else { [width, height] };
        let sizes = [below, beside, p2, p3];
        let matrix = Placement { offset: from.0, strides: [columns as i64 * from.2 + from.1, from.2] };
        // What the inner stride of the packed form says does not matter.
        let packed = Placement { offset: to.0, strides: [beside * p2 * p3 + to.1, 12345] };
        Case { shape: Shape { rows, columns }, sizes, outer, inner, matrix, packed }
    })
}

proptest! {
    #[test]
    fn pack_is_its_definition(case in cases(), seed in any::<u32>(), padding in any::<u32>()) {
        let values: Vec<u32> = (0..case.matrix_length() as u32).map(|i| i.wrapping_mul(seed | 1)).collect();
        let (input, output) = (buffer(&values), buffer(&vec![7u32; case.packed_length()]));
        let (from, to) = (Operand { buffer: &input, placement: case.matrix }, Operand { buffer: &output, placement: case.packed });
        pack(&mut free(), from, to, case.shape, &case.tiling(), padding).unwrap();
        let mut expected = vec![7u32; case.packed_length()];
        let [rows, columns] = case.covered();
        for row in 0..rows {
            for column in 0..columns {
                let inside = row < case.shape.rows as i64 && column < case.shape.columns as i64;
                expected[case.position(row, column)] = if inside { values[case.matrix_position(row, column)] } else { padding };
            }
        }
        prop_assert_eq!(content::<u32>(&output), expected);
    }

    #[test]
    fn unpack_is_its_definition(case in cases(), seed in any::<u32>()) {
        let values: Vec<u32> = (0..case.packed_length() as u32).map(|i| i.wrapping_mul(seed | 1)).collect();
        let (input, output) = (buffer(&values), buffer(&vec![7u32; case.matrix_length()]));
        let (from, to) = (Operand { buffer: &input, placement: case.packed }, Operand { buffer: &output, placement: case.matrix });
        unpack::<u32>(&mut free(), from, to, case.shape, &case.tiling()).unwrap();
        let mut expected = vec![7u32; case.matrix_length()];
        for row in 0..case.shape.rows as i64 {
            for column in 0..case.shape.columns as i64 {
                expected[case.matrix_position(row, column)] = values[case.position(row, column)];
            }
        }
        prop_assert_eq!(content::<u32>(&output), expected);
    }

    #[test]
    fn bytes_are_packed_and_unpacked(case in cases(), seed in any::<u8>()) {
        let values: Vec<u8> = (0..case.matrix_length()).map(|i| (i as u8).wrapping_mul(seed | 1)).collect();
        let (matrix, packed, back) = (buffer(&values), buffer(&vec![7u8; case.packed_length()]), buffer(&vec![0u8; values.len()]));
        let at = |buffer, placement| Operand { buffer, placement };
        pack(&mut free(), at(&matrix, case.matrix), at(&packed, case.packed), case.shape, &case.tiling(), 9u8).unwrap();
        unpack::<u8>(&mut free(), at(&packed, case.packed), at(&back, case.matrix), case.shape, &case.tiling()).unwrap();
        let back = content::<u8>(&back);
        for row in 0..case.shape.rows as i64 {
            for column in 0..case.shape.columns as i64 {
                let position = case.matrix_position(row, column);
                prop_assert_eq!(back[position], values[position]);
            }
        }
    }

    #[test]
    fn a_buffer_that_is_too_short_by_one_element_is_out_of_range(case in cases()) {
        prop_assume!(!case.shape.is_empty());
        let matrix = buffer(&vec![1u32; case.matrix_length()]);
        let packed = buffer(&vec![2u32; case.packed_length()]);
        let short_matrix = buffer(&vec![1u32; case.matrix_length() - 1]);
        let short_packed = buffer(&vec![2u32; case.packed_length() - 1]);
        let at = |buffer, placement| Operand { buffer, placement };
        let tiling = case.tiling();
        for (matrix, packed) in [(&short_matrix, &packed), (&matrix, &short_packed)] {
            let result = pack(&mut free(), at(matrix, case.matrix), at(packed, case.packed), case.shape, &tiling, 0u32);
            assert_status(result, Status::OutOfRange);
            let result = unpack::<u32>(&mut free(), at(packed, case.packed), at(matrix, case.matrix), case.shape, &tiling);
            assert_status(result, Status::OutOfRange);
        }
        prop_assert_eq!(content::<u32>(&packed), vec![2; case.packed_length()]);
        prop_assert_eq!(content::<u32>(&matrix), vec![1; case.matrix_length()]);
    }
}

/// A 3 x 5 matrix in 2 x 4 tiles, written out by hand.
#[test]
fn a_small_matrix_in_all_four_orders() {
    let matrix = buffer(&[11u32, 12, 13, 14, 15, 21, 22, 23, 24, 25, 31, 32, 33, 34, 35]);
    let run = |sizes, outer, inner| {
        let packed = buffer(&[0u32; 32]);
        let from = Operand { buffer: &matrix, placement: dense(0, 5) };
        let to = Operand { buffer: &packed, placement: dense(0, 16) };
        let tiling = Tiling::new(sizes, outer, inner).unwrap();
        pack(&mut free(), from, to, Shape { rows: 3, columns: 5 }, &tiling, 99).unwrap();
        content::<u32>(&packed)
    };
    let [a, b, c, d] = [
        [11, 12, 13, 14, 21, 22, 23, 24],
        [15, 99, 99, 99, 25, 99, 99, 99],
        [31, 32, 33, 34, 99, 99, 99, 99],
        [35, 99, 99, 99, 99, 99, 99, 99],
    ];
    assert_eq!(run([2, 2, 2, 4], Order::Rows, Order::Rows), [a, b, c, d].concat());
    assert_eq!(run([2, 2, 2, 4], Order::Columns, Order::Rows), [a, c, b, d].concat());
    let transposed = |tile: [u32; 8]| [0, 4, 1, 5, 2, 6, 3, 7].map(|i| tile[i]);
    assert_eq!(run([2, 2, 4, 2], Order::Rows, Order::Columns), [a, b, c, d].map(transposed).concat());
    assert_eq!(run([2, 2, 4, 2], Order::Columns, Order::Columns), [a, c, b, d].map(transposed).concat());
}

#[test]
fn tiles_that_do_not_cover_the_matrix_are_invalid_arguments() {
    let (matrix, packed) = (buffer(&[1u32; 64]), buffer(&[2u32; 64]));
    let (matrix, packed) = (Operand { buffer: &matrix, placement: dense(0, 8) }, Operand { buffer: &packed, placement: dense(0, 16) });
    let tiling = Tiling::new([1, 2, 4, 4], Order::Rows, Order::Rows).unwrap();
    let shape = Shape { rows: 5, columns: 8 };
    assert_status(pack(&mut free(), matrix, packed, shape, &tiling, 0u32), Status::InvalidArgument);
    assert_status(unpack::<u32>(&mut free(), packed, matrix, shape, &tiling), Status::InvalidArgument);
    let no_tiles = Tiling::new([1, 1, 0, 4], Order::Rows, Order::Rows).unwrap();
    assert_status(unpack::<u32>(&mut free(), packed, matrix, shape, &no_tiles), Status::InvalidArgument);
}

#[test]
fn sizes_that_multiply_to_more_than_a_size_are_invalid_arguments() {
    for sizes in [[1, 1 << 31, 2, 1], [1, 1 << 20, 1 << 20, 1 << 31], [1 << 32, 1, 1, 1], [1, -1, 1, 1]] {
        let result = Tiling::new(sizes, Order::Rows, Order::Rows).and_then(|tiling| tiling.shape()).map(|_| ());
        assert_status(result, Status::InvalidArgument);
    }
}

#[test]
fn a_unit_of_fuel_is_taken_for_each_packed_element() {
    let (matrix, packed) = (buffer(&[1u32; 16]), buffer(&[2u32; 64]));
    let tiling = Tiling::new([4, 1, 2, 8], Order::Rows, Order::Rows).unwrap();
    let shape = Shape { rows: 2, columns: 8 };
    let at = |buffer, placement| Operand { buffer, placement };
    let mut meter = fuel(64 + 16);
    pack(&mut meter, at(&matrix, dense(0, 8)), at(&packed, dense(0, 16)), shape, &tiling, 0u32).unwrap();
    unpack::<u32>(&mut meter, at(&packed, dense(0, 16)), at(&matrix, dense(0, 8)), shape, &tiling).unwrap();
    assert_eq!(meter.fuel(), Some(0));
    let mut meter = fuel(63);
    assert_status(pack(&mut meter, at(&matrix, dense(0, 8)), at(&packed, dense(0, 16)), shape, &tiling, 0u32), Status::ResourceExhausted);
}

/// All rows of tiles at the same place, all rows of the matrix too: 2^64 elements of work on two.
#[test]
fn endless_work_ends_under_a_deadline() {
    let (matrix, packed) = (buffer(&[1u32]), buffer(&[2u32]));
    let sizes = [(1 << 32) - 1, 1, 1, 1];
    let tiling = Tiling::new(sizes, Order::Rows, Order::Rows).unwrap();
    let shape = Shape { rows: (1 << 32) - 1, columns: 1 };
    let at = |buffer, placement| Operand { buffer, placement };
    let run = |meter: &mut Meter| pack(meter, at(&matrix, dense(0, 0)), at(&packed, dense(0, 0)), shape, &tiling, 0u32);
    assert_status(run(&mut fuel(1 << 31)), Status::ResourceExhausted);
    let mut meter = free();
    meter.set_deadline(Some(std::time::Instant::now() + std::time::Duration::from_millis(20)));
    assert_status(run(&mut meter), Status::DeadlineExceeded);
}
