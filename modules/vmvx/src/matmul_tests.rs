//! Tests of `matmul`, against three loops.

use super::*;
use crate::mmt4d::{Bytes, Floats, Kind};
use crate::test_support::*;
use proptest::prelude::*;
use vmfb_vm::Status;

proptest! {
    /// Small whole numbers, so that sums are exact in any order.
    #[test]
    fn matmul_is_three_loops(
        m in 0..5usize, n in prop_oneof![0..9usize, 250..270usize], k in 0..7usize, gaps in [0..3usize, 0..3, 0..3],
        offsets in [0..3usize, 0..3, 0..3], seed in any::<i8>(), accumulate in any::<bool>(),
    ) {
        let start = if accumulate { Start::Accumulate } else { Start::Zero };
        let strides = [k + gaps[0], n + gaps[1], n + gaps[2]];
        let length = |operand: usize, rows: usize| offsets[operand] + rows * strides[operand];
        let number = |i: usize| (i as i8).wrapping_mul(seed | 1);
        let left: Vec<i8> = (0..length(0, m)).map(number).collect();
        let right: Vec<i8> = (0..length(1, k)).map(|i| number(i + 17)).collect();
        let before: Vec<i32> = (0..length(2, m) as i32).collect();
        let mut expected = before.clone();
        for i in 0..m {
            for j in 0..n {
                let sum = &mut expected[offsets[2] + i * strides[2] + j];
                *sum = if accumulate { *sum } else { 0 };
                for term in 0..k {
                    *sum += i32::from(left[offsets[0] + i * strides[0] + term]) * i32::from(right[offsets[1] + term * strides[1] + j]);
                }
            }
        }
        let (offsets, row_strides) = (offsets.map(|offset| offset as i64), strides.map(|stride| stride as i64));
        let sizes = [m as i64, n as i64, k as i64];
        let output = buffer(&before);
        let buffers = [&buffer(&left), &buffer(&right), &output];
        Matmul { buffers, offsets, row_strides, sizes, start }.run(&mut free(), Bytes::add).unwrap();
        prop_assert_eq!(content::<i32>(&output), expected.clone());

        let floats = |values: &[i8]| buffer(&values.iter().map(|value| f32::from(*value)).collect::<Vec<_>>());
        let output = buffer(&before.iter().map(|value| *value as f32).collect::<Vec<_>>());
        let buffers = [&floats(&left), &floats(&right), &output];
        Matmul { buffers, offsets, row_strides, sizes, start }.run(&mut free(), Floats::add).unwrap();
        prop_assert_eq!(content::<f32>(&output), expected.iter().map(|value| *value as f32).collect::<Vec<_>>());
    }
}

#[test]
fn operands_out_of_range_and_read_only_results_are_refused() {
    let four = buffer(&[1f32; 4]);
    let constant = read_only(&four);
    let run = |buffers, offsets, sizes| {
        Matmul { buffers, offsets, row_strides: [2, 2, 2], sizes, start: Start::Zero }.run(&mut free(), Floats::add)
    };
    let output = buffer(&[0f32; 4]);
    run([&four, &four, &output], [0, 0, 0], [2, 2, 2]).unwrap();
    assert_eq!(content::<f32>(&output), [2.0; 4]);
    for operand in 0..3 {
        let mut offsets = [0; 3];
        offsets[operand] = 1;
        assert_status(run([&four, &four, &output], offsets, [2, 2, 2]), Status::OutOfRange);
        offsets[operand] = -1;
        assert_status(run([&four, &four, &output], offsets, [2, 2, 2]), Status::OutOfRange);
    }
    assert_status(run([&four, &four, &constant], [0, 0, 0], [2, 2, 2]), Status::PermissionDenied);
    assert_status(run([&four, &four, &output], [0, 0, 0], [2, 2, 1 << 32]), Status::InvalidArgument);
}

#[test]
fn a_unit_of_fuel_is_taken_for_each_product() {
    let four = buffer(&[1f32; 4]);
    let run = |meter: &mut Meter, terms| {
        let buffers = [&four, &four, &four];
        Matmul { buffers, offsets: [0; 3], row_strides: [0, 0, 0], sizes: [2, 1, terms], start: Start::Accumulate }.run(meter, Floats::add)
    };
    let mut meter = fuel(8);
    run(&mut meter, 4).unwrap();
    assert_eq!(meter.fuel(), Some(0));
    assert_status(run(&mut fuel(7), 4), Status::ResourceExhausted);
}
