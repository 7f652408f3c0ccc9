//! Tests of `mmt4d`, against loops over tiles.

use super::*;
use crate::test_support::*;
use proptest::prelude::*;
use vmfb_vm::Status;

/// Sizes, and gaps between rows of tiles.
#[derive(Clone, Debug)]
struct Case {
    tiles: [usize; 3],
    tile: [usize; 3],
    gaps: [usize; 3],
    offsets: [usize; 3],
    start: Start,
}

fn cases() -> impl Strategy<Value = Case> {
    let tiles = prop_oneof![
        8 => [0..5usize, 0..5, 0..5],
        2 => [1..4usize, 30..40, 1..3],
        2 => [10..20usize, 1..3, 1..3],
        1 => [1..3usize, 1..3, 60..70],
    ];
    let tile = prop_oneof![
        4 => [1..9usize, 1..9, 1..9],
        2 => Just([8, 8, 4]),
        1 => Just([1, 8, 1]),
        1 => Just([1, 1, 1]),
        1 => Just([97, 3, 2]),
        1 => Just([2, 257, 1]),
        1 => Just([2, 2, 257]),
        1 => [0..2usize, 0..2, 0..2],
    ];
    let start = prop_oneof![Just(Start::Zero), Just(Start::Accumulate)];
    (tiles, tile, [0..5usize, 0..5, 0..5], [0..5usize, 0..5, 0..5], start).prop_map(|(tiles, tile, gaps, offsets, start)| Case {
        tiles,
        tile,
        gaps,
        offsets,
        start,
    })
}

impl Case {
    fn strides(&self) -> [usize; 3] {
        let ([_, n, k], [m0, n0, k0]) = (self.tiles, self.tile);
        [k * m0 * k0 + self.gaps[0], k * n0 * k0 + self.gaps[1], n * m0 * n0 + self.gaps[2]]
    }

    /// The number of elements that an operand needs at least.
    fn lengths(&self) -> [usize; 3] {
        let rows = [self.tiles[0], self.tiles[1], self.tiles[0]];
        let strides = self.strides();
        std::array::from_fn(|i| match rows[i].checked_sub(1) {
            Some(before) if strides[i] > self.gaps[i] => self.offsets[i] + before * strides[i] + strides[i] - self.gaps[i],
            _ => 0,
        })
    }

    fn call<'a>(&self, buffers: [&'a Buffer; 3]) -> Mmt4d<'a> {
        Mmt4d {
            buffers,
            offsets: self.offsets.map(|value| value as i64),
            row_strides: self.strides().map(|value| value as i64),
            sizes: self.tiles.map(|value| value as i64),
            tile: self.tile.map(|value| value as i32),
            start: self.start,
        }
    }

    /// The definition, with `add(sum, a, b)` as `sum + a * b`.
    fn reference<F: Copy, S: Copy>(&self, left: &[F], right: &[F], output: &mut [S], zero: S, add: impl Fn(S, F, F) -> S) {
        let ([m, n, k], [m0, n0, k0], strides, offsets) = (self.tiles, self.tile, self.strides(), self.offsets);
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            for (row, column) in (0..m0).flat_map(|row| (0..n0).map(move |column| (row, column))) {
                let sum = &mut output[offsets[2] + i * strides[2] + (j * m0 + row) * n0 + column];
                if self.start == Start::Zero {
                    *sum = zero;
                }
                for (tile, term) in (0..k).flat_map(|tile| (0..k0).map(move |term| (tile, term))) {
                    let left = left[offsets[0] + i * strides[0] + (tile * m0 + row) * k0 + term];
                    let right = right[offsets[1] + j * strides[1] + (tile * n0 + column) * k0 + term];
                    *sum = add(*sum, left, right);
                }
            }
        }
    }
}

fn number(index: usize, seed: u32) -> u32 {
    (index as u32 ^ seed).wrapping_mul(0x9E37_79B9).rotate_left(13).wrapping_mul(0x85EB_CA6B)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bytes_are_loops_over_tiles(case in cases(), seed in any::<u32>()) {
        let [left, right, output] = case.lengths();
        let left: Vec<i8> = (0..left).map(|i| number(i, seed) as i8).collect();
        let right: Vec<i8> = (0..right).map(|i| number(i + 999, seed) as i8).collect();
        let before: Vec<i32> = (0..output).map(|i| number(i, !seed) as i32).collect();
        let mut expected = before.clone();
        case.reference(&left, &right, &mut expected, 0, |sum, a, b| sum.wrapping_add(i32::from(a) * i32::from(b)));
        for kernels in [Kernels::detect(), Kernels::portable()] {
            let output = buffer(&before);
            let buffers = [&buffer(&left), &buffer(&right), &output];
            case.call(buffers).run::<Bytes>(&mut free(), &kernels, &mut Scratch::default()).unwrap();
            prop_assert_eq!(&content::<i32>(&output), &expected);
        }
    }

    /// Within 1e-5 of the sum of the absolute values of the terms, computed in f64.
    #[test]
    fn floats_are_loops_over_tiles(case in cases(), seed in any::<u32>()) {
        let float = |index, seed| (number(index, seed) as i32 as f32) / (1u32 << 31) as f32;
        let [left, right, output] = case.lengths();
        let left: Vec<f32> = (0..left).map(|i| float(i, seed)).collect();
        let right: Vec<f32> = (0..right).map(|i| float(i + 999, seed)).collect();
        let before: Vec<f32> = (0..output).map(|i| float(i, !seed)).collect();
        let mut expected: Vec<[f64; 2]> = before.iter().map(|value| [f64::from(*value), f64::from(value.abs())]).collect();
        case.reference(&left, &right, &mut expected, [0.0; 2], |sum, a, b| {
            let product = f64::from(a) * f64::from(b);
            [sum[0] + product, sum[1] + product.abs()]
        });
        for kernels in [Kernels::detect(), Kernels::portable()] {
            let output = buffer(&before);
            let buffers = [&buffer(&left), &buffer(&right), &output];
            case.call(buffers).run::<Floats>(&mut free(), &kernels, &mut Scratch::default()).unwrap();
            for (value, [wanted, magnitude]) in content::<f32>(&output).iter().zip(&expected) {
                prop_assert!((f64::from(*value) - wanted).abs() <= 1e-5 * magnitude, "{value} is not {wanted}");
            }
        }
    }

    #[test]
    fn a_buffer_that_is_too_short_by_one_element_is_out_of_range(case in cases()) {
        let lengths = case.lengths();
        for short in (0..3).filter(|operand| lengths[*operand] > 0) {
            let buffers: [Buffer; 3] = std::array::from_fn(|operand| buffer(&vec![0f32; lengths[operand] - usize::from(operand == short)]));
            let buffers = buffers.each_ref();
            let result = case.call(buffers).run::<Floats>(&mut free(), &Kernels::detect(), &mut Scratch::default());
            assert_status(result, Status::OutOfRange);
        }
    }
}

/// Extremes of s8 in sums longer than floats could count: 70,000 * 2^14 = 2^30 and more.
#[test]
fn long_sums_of_extreme_bytes_are_exact() {
    let terms = 70_000;
    let factor = buffer(&vec![-128i8; terms]);
    let output = buffer(&[i32::MAX - 1]);
    let call = Mmt4d {
        buffers: [&factor, &factor, &output],
        offsets: [0; 3],
        row_strides: [0; 3],
        sizes: [1, 1, terms as i64],
        tile: [1, 1, 1],
        start: Start::Accumulate,
    };
    call.run::<Bytes>(&mut free(), &Kernels::detect(), &mut Scratch::default()).unwrap();
    assert_eq!(content::<i32>(&output), [(i32::MAX - 1).wrapping_add(70_000 << 14)]);
}

/// What an earlier call left in the scratch blocks does not show.
#[test]
fn scratch_is_shared_between_calls_of_all_sizes_and_types() {
    let mut scratch = Scratch::default();
    let kernels = Kernels::detect();
    let many = buffer(&[f32::NAN; 64 * 64]);
    let sizes = |sizes| move |buffers| Mmt4d { buffers, offsets: [0; 3], row_strides: [64; 3], sizes, tile: [8, 8, 1], start: Start::Zero };
    sizes([8, 8, 8])([&many, &many, &many]).run::<Floats>(&mut free(), &kernels, &mut scratch).unwrap();
    let ones = buffer(&[1i8; 64]);
    let output = buffer(&[-1i32; 9]);
    let call = Mmt4d {
        buffers: [&ones, &ones, &output],
        offsets: [0; 3],
        row_strides: [12; 3],
        sizes: [1, 1, 4],
        tile: [3, 3, 1],
        start: Start::Zero,
    };
    call.run::<Bytes>(&mut free(), &kernels, &mut scratch).unwrap();
    assert_eq!(content::<i32>(&output), [4; 9]);
}

#[test]
fn wrong_sizes_and_read_only_results_are_refused() {
    let values = buffer(&[1f32; 64]);
    let constant = read_only(&values);
    let run = |output, sizes, tile, row_strides| {
        let call = Mmt4d { buffers: [&values, &values, output], offsets: [0; 3], row_strides, sizes, tile, start: Start::Zero };
        call.run::<Floats>(&mut free(), &Kernels::detect(), &mut Scratch::default())
    };
    assert_status(run(&constant, [1, 1, 1], [8, 8, 1], [0; 3]), Status::PermissionDenied);
    assert_status(run(&values, [1, 1, 1 << 32], [8, 8, 1], [0; 3]), Status::InvalidArgument);
    assert_status(run(&values, [1, -1, 1], [8, 8, 1], [0; 3]), Status::InvalidArgument);
    assert_status(run(&values, [1, 1, 1], [8, 8, -1], [0; 3]), Status::InvalidArgument);
    assert_status(run(&values, [1, 1, 1 << 31], [i32::MAX; 3], [0; 3]), Status::InvalidArgument);
    assert_status(run(&values, [1, 1, 1], [8, 8, 1], [-1, 0, 0]), Status::InvalidArgument);
    assert_status(run(&values, [2, 1, 1], [8, 8, 1], [0, 0, 1]), Status::OutOfRange);
}

#[test]
fn endless_work_ends_under_every_limit() {
    let values = buffer(&[1f32; 64]);
    let most = (1 << 32) - 1;
    for (sizes, tile) in [([most, 1, 1], [1, 1, 1]), ([most, 1, 1], [1, 1, 0]), ([most, 1, 1], [8, 8, 1]), ([most, most, most], [1, 0, 0])]
    {
        let output = buffer(&[0f32; 64]);
        let call = Mmt4d { buffers: [&values, &values, &output], offsets: [0; 3], row_strides: [0; 3], sizes, tile, start: Start::Zero };
        let run = |meter: &mut Meter| call.run::<Floats>(meter, &Kernels::detect(), &mut Scratch::default());
        let wanted = if tile[1] == 0 { Ok(()) } else { Err(Status::ResourceExhausted) };
        assert_eq!(run(&mut fuel(1 << 31)).map_err(|error| error.status()), wanted);
        let mut meter = free();
        meter.set_deadline(Some(std::time::Instant::now() + std::time::Duration::from_millis(20)));
        let wanted = if tile[1] == 0 { Ok(()) } else { Err(Status::DeadlineExceeded) };
        assert_eq!(run(&mut meter).map_err(|error| error.status()), wanted);
    }
}

#[test]
fn a_unit_of_fuel_is_taken_for_each_product_and_each_result() {
    let values = buffer(&[1f32; 64]);
    let output = buffer(&[0f32; 4]);
    let run = |meter: &mut Meter| {
        let call = Mmt4d {
            buffers: [&values, &values, &output],
            offsets: [0; 3],
            row_strides: [6; 3],
            sizes: [1, 1, 3],
            tile: [2, 2, 1],
            start: Start::Zero,
        };
        call.run::<Floats>(meter, &Kernels::detect(), &mut Scratch::default())
    };
    let mut meter = fuel(4 + 12);
    run(&mut meter).unwrap();
    assert_eq!(meter.fuel(), Some(0));
    assert_status(run(&mut fuel(15)), Status::ResourceExhausted);
}
