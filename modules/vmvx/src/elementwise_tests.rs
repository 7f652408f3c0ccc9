//! Tests of functions that work element by element, against plain loops over vectors.

use super::*;
use crate::matrix::Placement;
use crate::test_support::*;
use proptest::prelude::*;
use vmfb_vm::{Buffer, Status};

fn run_unary(meter: &mut Meter, shape: Shape, input: (&Buffer, Placement), output: (&Buffer, Placement)) -> Result<()> {
    let input = Matrix::<u32>::input(input.0, input.1, shape, "the input")?;
    let output = Matrix::output(output.0, output.1, shape, "the output")?;
    unary(meter, shape, input, output, |values| values.iter_mut().for_each(|value| *value = value.wrapping_mul(3)))
}

proptest! {
    #[test]
    fn unary_is_a_loop_over_elements(
        shape in shapes(), from in placements(), to in placements(),
        values in prop::collection::vec(any::<u32>(), 0..700), target in prop::collection::vec(any::<u32>(), 0..700),
    ) {
        let (input, output) = (buffer(&values), buffer(&target));
        let result = run_unary(&mut free(), shape, (&input, from), (&output, to));
        let mut expected = target.clone();
        match indices(from, shape, values.len()).and_then(|from| Ok((from, indices(to, shape, target.len())?))) {
            Ok((from, to)) => {
                result.unwrap();
                for (from, to) in from.into_iter().zip(to) {
                    expected[to] = values[from].wrapping_mul(3);
                }
            }
            Err(status) => assert_status(result, status),
        }
        prop_assert_eq!(content::<u32>(&output), expected);
    }

    #[test]
    fn binary_is_a_loop_over_elements(
        shape in shapes(), left in placements(), right in placements(), to in placements(),
        values in prop::collection::vec(any::<u32>(), 300..700), others in prop::collection::vec(any::<u32>(), 300..700),
        length in 0..700usize,
    ) {
        let (a, b, output) = (buffer(&values), buffer(&others), buffer(&vec![7u32; length]));
        let run = || {
            let a = Matrix::input(&a, left, shape, "the left operand")?;
            let b = Matrix::input(&b, right, shape, "the right operand")?;
            let output = Matrix::output(&output, to, shape, "the output")?;
            binary(&mut free(), shape, [a, b], output, integers(|a, b| a.wrapping_sub(b.rotate_left(1))))
        };
        let result = run();
        let mut expected = vec![7u32; length];
        let all = || Ok((indices(left, shape, values.len())?, indices(right, shape, others.len())?, indices(to, shape, length)?));
        match all() {
            Ok((left, right, to)) => {
                result.unwrap();
                for ((left, right), to) in left.into_iter().zip(right).zip(to) {
                    expected[to] = values[left].wrapping_sub(others[right].rotate_left(1));
                }
            }
            Err(status) => assert_status(result, status),
        }
        prop_assert_eq!(content::<u32>(&output), expected);
    }

    #[test]
    fn fill_sets_every_element(shape in shapes(), to in placements(), length in 0..700usize, value in any::<u32>()) {
        let output = buffer(&vec![7u32; length]);
        let run = || fill(&mut free(), shape, Matrix::output(&output, to, shape, "the output")?, value);
        let result = run();
        let mut expected = vec![7; length];
        match indices(to, shape, length) {
            Ok(to) => {
                result.unwrap();
                to.into_iter().for_each(|to| expected[to] = value);
            }
            Err(status) => assert_status(result, status),
        }
        prop_assert_eq!(content::<u32>(&output), expected);
    }

    #[test]
    fn an_output_may_be_the_input(rows in 1..5u64, columns in 1..300u64, seed in any::<u32>()) {
        let values: Vec<u32> = (0..rows * columns).map(|i| (i as u32).wrapping_mul(seed)).collect();
        let shared = buffer(&values);
        let place = dense(0, columns as i64);
        run_unary(&mut free(), Shape { rows, columns }, (&shared, place), (&shared, place)).unwrap();
        let expected: Vec<u32> = values.iter().map(|value| value.wrapping_mul(3)).collect();
        prop_assert_eq!(content::<u32>(&shared), expected);
    }

    #[test]
    fn copies_move_elements_of_every_size(
        shape in shapes(), from in placements(), to in placements(), bytes in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        copy::<u8>(shape, from, to, &bytes)?;
        copy::<u16>(shape, from, to, &bytes)?;
        copy::<u32>(shape, from, to, &bytes)?;
        copy::<u64>(shape, from, to, &bytes)?;
    }
}

fn copy<T: Element + PartialEq + std::fmt::Debug>(
    shape: Shape,
    from: Placement,
    to: Placement,
    bytes: &[u8],
) -> std::result::Result<(), TestCaseError> {
    let (input, output) = (buffer(bytes), buffer(&vec![0xA5u8; bytes.len()]));
    let run = || {
        let input = Matrix::<T>::input(&input, from, shape, "the input")?;
        unary(&mut free(), shape, input, Matrix::output(&output, to, shape, "the output")?, |_| ())
    };
    let result = run();
    // The last bytes that make no whole element are out of reach.
    let values: Vec<T> = elements(bytes);
    let mut expected: Vec<T> = elements(&vec![0xA5u8; bytes.len()]);
    match indices(from, shape, values.len()).and_then(|from| Ok((from, indices(to, shape, values.len())?))) {
        Ok((from, to)) => {
            result.unwrap();
            for (from, to) in from.into_iter().zip(to) {
                expected[to] = values[from];
            }
        }
        Err(status) => assert_status(result, status),
    }
    prop_assert_eq!(content::<T>(&output), expected);
    Ok(())
}

#[test]
fn division_by_zero_and_quotients_that_are_too_large_are_invalid_arguments() {
    let cases: [(u32, u32); 3] = [(7, 0), (0, 0), (i32::MIN as u32, -1i32 as u32)];
    for (dividend, divisor) in cases {
        assert_status(divide_signed(&mut [6, dividend], &[3, divisor]), Status::InvalidArgument);
    }
    assert_status(divide_unsigned(&mut [7], &[0]), Status::InvalidArgument);

    let mut values = [-7i32 as u32, 7];
    divide_signed(&mut values, &[2, -2i32 as u32]).unwrap();
    assert_eq!(values, [-3i32 as u32, -3i32 as u32]);
    let mut values = [i32::MIN as u32];
    divide_unsigned(&mut values, &[u32::MAX]).unwrap();
    assert_eq!(values, [0]);
}

#[test]
fn a_read_only_output_is_a_denied_permission() {
    let shape = Shape { rows: 1, columns: 2 };
    let shared = buffer(&[1u32, 2]);
    let constant = read_only(&shared);
    assert_status(run_unary(&mut free(), shape, (&shared, dense(0, 2)), (&constant, dense(0, 2))), Status::PermissionDenied);
    run_unary(&mut free(), shape, (&constant, dense(0, 2)), (&shared, dense(0, 2))).unwrap();
    assert_eq!(content::<u32>(&shared), [3, 6]);
}

#[test]
fn sizes_from_2_to_the_32_are_invalid_arguments() {
    for (rows, columns) in [(1 << 32, 1), (1, 1 << 32), (-1, 1), (1, i64::MIN)] {
        assert_status(Shape::new(rows, columns).map(|_| ()), Status::InvalidArgument);
    }
    assert_eq!(Shape::new(0, (1 << 32) - 1).unwrap(), Shape { rows: 0, columns: (1 << 32) - 1 });
}

/// A call that touches one element 2^64 times ends where its fuel, its deadline or an interruption ends it.
#[test]
fn endless_work_on_one_element_ends_under_every_limit() {
    let shape = Shape { rows: (1 << 32) - 1, columns: (1 << 32) - 1 };
    let nowhere = Placement { offset: 0, strides: [0, 0] };
    let run = |meter: &mut Meter| {
        let shared = buffer(&[1u32]);
        run_unary(meter, shape, (&shared, nowhere), (&shared, nowhere))
    };
    assert_status(run(&mut fuel(u64::MAX / 4)), Status::ResourceExhausted);

    let mut meter = free();
    meter.set_deadline(Some(std::time::Instant::now() + std::time::Duration::from_millis(20)));
    assert_status(run(&mut meter), Status::DeadlineExceeded);

    let mut meter = free();
    let handle = meter.interrupt_handle();
    let other = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        handle.interrupt();
    });
    assert_status(run(&mut meter), Status::Cancelled);
    other.join().unwrap();
}

#[test]
fn a_unit_of_fuel_is_taken_for_each_element_before_the_first_is_touched() {
    let shape = Shape { rows: 3, columns: 4 };
    let (input, output) = (buffer(&[5u32; 12]), buffer(&[0u32; 12]));
    let mut meter = fuel(11);
    assert_status(run_unary(&mut meter, shape, (&input, dense(0, 4)), (&output, dense(0, 4))), Status::ResourceExhausted);
    assert_eq!(content::<u32>(&output), [0; 12]);
    let mut meter = fuel(12);
    run_unary(&mut meter, shape, (&input, dense(0, 4)), (&output, dense(0, 4))).unwrap();
    assert_eq!((meter.fuel(), content::<u32>(&output)), (Some(0), vec![15; 12]));
}
