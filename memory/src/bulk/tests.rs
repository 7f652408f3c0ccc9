//! Bulk operations against plain slices, in every alignment and for lengths on both sides of each change of method.

use proptest::prelude::*;

/// Lengths around the limits of the methods, and any.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..100, 700usize..900, 0usize..5000]
}

/// Bytes that differ from their neighbours for some hundred bytes.
fn bytes(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ seed).collect()
}

macro_rules! properties {
    ($module:ident) => {
        mod $module {
            use super::super::$module as bulk;
            use super::{bytes, length};
            use proptest::prelude::*;

            proptest! {
                #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 1000 }, failure_persistence: None, ..ProptestConfig::default() })]

                #[test]
                fn copies_equal_those_of_slices(n in length(), from in 0usize..80, to in 0usize..80, apart in prop_oneof![0usize..1, 0usize..6000]) {
                    // `apart` 0: the ranges overlap closely; otherwise one starts that far behind the other.
                    for (from, to) in [(from, to + apart), (from + apart, to)] {
                        let mut space = bytes(n + 80 + apart, 1);
                        let mut expected = space.clone();
                        expected.copy_within(from..from + n, to);
                        // SAFETY: both ranges lie in the vector.
                        unsafe { bulk::copy(space.as_mut_ptr().add(from), space.as_mut_ptr().add(to), n) };
                        prop_assert!(space == expected, "{n} bytes from {from} to {to}");
                    }
                }

                #[test]
                fn bytes_come_out_as_they_went_in(n in length(), at in 0usize..20) {
                    let mut space = vec![0xEE; n + 40];
                    let written = bytes(n, 3);
                    let mut read = vec![0; n];
                    // SAFETY: the range lies in the vector.
                    unsafe {
                        bulk::write_bytes(space.as_mut_ptr().add(at), &written);
                        bulk::read_bytes(space.as_mut_ptr().add(at), &mut read);
                    }
                    prop_assert_eq!(&read, &written);
                    prop_assert!(space[..at].iter().chain(&space[at + n..]).all(|byte| *byte == 0xEE));
                }

                #[test]
                fn one_different_byte_is_found(n in length(), a in 0usize..20, b in 0usize..20, place: prop::sample::Index) {
                    let (mut left, mut right) = (vec![0x11; a], vec![0x22; b]);
                    left.extend(bytes(n, 9));
                    right.extend(bytes(n, 9));
                    left.push(0);
                    right.push(1);
                    // SAFETY: both ranges lie in their vectors.
                    let equal = |left: &mut Vec<u8>, right: &mut Vec<u8>| unsafe { bulk::equal(left.as_mut_ptr().add(a), right.as_mut_ptr().add(b), n) };
                    prop_assert!(equal(&mut left, &mut right));
                    if n > 0 {
                        left[a + place.index(n)] ^= 0x40;
                        prop_assert!(!equal(&mut left, &mut right));
                    }
                }

                #[test]
                fn patterns_start_with_their_first_byte(n in length(), at in 0usize..20, pattern: [u8; 8]) {
                    let mut space = vec![0xEE; n + 40];
                    let mut expected = space.clone();
                    for (byte, value) in expected[at..at + n].iter_mut().zip(pattern.iter().cycle()) {
                        *byte = *value;
                    }
                    // SAFETY: the range lies in the vector.
                    unsafe { bulk::fill(space.as_mut_ptr().add(at), n, pattern) };
                    prop_assert!(space == expected);
                }
            }
        }
    };
}

properties!(block);
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
properties!(portable);
