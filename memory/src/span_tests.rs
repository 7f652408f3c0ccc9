//! Tests of spans against plain vectors.

use super::*;
use proptest::prelude::*;

fn span_of(bytes: &[u8]) -> Span {
    Span::copy_of(bytes, &MemoryAccount::default()).unwrap()
}

#[test]
fn allocations_are_zeroed_aligned_and_charged() {
    let account = MemoryAccount::with_limit(1000);
    let span = Span::zeroed(100, 1, &account).unwrap();
    assert_eq!(span.address().addr() % 64, 0);
    assert_eq!(span.to_vec().unwrap(), vec![0; 100]);
    assert_eq!(account.used(), 100 + crate::STORAGE_OVERHEAD);
    let part = span.slice(40, 10).unwrap();
    drop(span);
    assert_eq!(account.used(), 100 + crate::STORAGE_OVERHEAD, "a part keeps the whole storage alive");
    drop(part);
    assert_eq!(account.used(), 0);
}

#[test]
fn impossible_allocations_are_errors() {
    let account = MemoryAccount::default();
    assert_eq!(Span::zeroed(1, 3, &account).unwrap_err(), Error::BadAlignment(3));
    assert_eq!(Span::zeroed(1, 0, &account).unwrap_err(), Error::BadAlignment(0));
    assert!(matches!(Span::zeroed(usize::MAX, 64, &account), Err(Error::OutOfMemory { .. })));
    assert!(matches!(Span::zeroed(1 << 20, 64, &MemoryAccount::with_limit(1 << 19)), Err(Error::OverLimit { .. })));
    assert_eq!(account.used(), 0);
}

#[test]
fn offsets_that_wrap_are_out_of_range() {
    let span = span_of(&[1; 16]);
    assert_eq!(span.load_u32(usize::MAX), None);
    assert_eq!(span.load_u32(usize::MAX - 3), None);
    assert_eq!(span.load_element_u32(1 << 62), None);
    assert_eq!(span.load_element_u64(u64::MAX), None);
    assert!(span.slice(usize::MAX, 2).is_err());
    assert!(span.slice(17, 0).is_err());
    assert!(span.slice(16, 0).unwrap().is_empty());
    assert!(span.fill(usize::MAX, 2, &[0]).is_err());
    assert!(span.store_element_u16(u64::MAX, 0).is_err());
}

#[test]
fn constant_bytes_cannot_be_written() {
    for span in [Span::from_vector(vec![1, 2, 3, 4]), Span::from_static(&[1, 2, 3, 4]), Span::from_shared(Arc::from([1, 2, 3, 4]))] {
        assert_eq!(span.store_u8(0, 9), Err(Error::ReadOnly));
        assert_eq!(span.write(0, &[9]), Err(Error::ReadOnly));
        assert_eq!(span.fill(0, 1, &[9]), Err(Error::ReadOnly));
        assert_eq!(span.copy_from(0, &span, 1, 1), Err(Error::ReadOnly));
        assert_eq!(span.slice(1, 2).unwrap().constant_bytes(), Some(&[2, 3][..]));
    }
    let span = span_of(&[1]);
    assert_eq!(span.constant_bytes(), None);
    assert_eq!(span.read_only().store_u8(0, 1), Err(Error::ReadOnly));
}

#[cfg(not(miri))]
#[test]
fn a_mapped_file_is_read_in_place() {
    let path = std::env::temp_dir().join(format!("vmfb-memory-{}", std::process::id()));
    std::fs::write(&path, [1u8, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
    let span = Span::map_file(&File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(span.load_u64(1), Some(0x0908_0706_0504_0302));
    assert_eq!(span.constant_bytes(), None);
    assert_eq!(span.store_u8(0, 0), Err(Error::ReadOnly));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 8 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn elements_are_little_endian_at_every_offset(bytes in prop::collection::vec(any::<u8>(), 0..40), offset in 0usize..48) {
        let span = span_of(&bytes);
        let at = |n: usize| bytes.get(offset..offset + n);
        prop_assert_eq!(span.load_u8(offset), at(1).map(|b| b[0]));
        prop_assert_eq!(span.load_u16(offset), at(2).map(|b| u16::from_le_bytes(b.try_into().unwrap())));
        prop_assert_eq!(span.load_u32(offset), at(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())));
        prop_assert_eq!(span.load_u64(offset), at(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())));
    }

    #[test]
    fn stores_touch_their_bytes_alone(length in 0usize..40, offset in 0usize..48, value: u64) {
        let span = span_of(&vec![0xAA; length]);
        let mut expected = vec![0xAA; length];
        let stored = span.store_u32(offset, value as u32);
        if let Some(bytes) = expected.get_mut(offset..offset + 4) {
            bytes.copy_from_slice(&(value as u32).to_le_bytes());
        }
        prop_assert_eq!(stored.is_ok(), offset + 4 <= length);
        prop_assert_eq!(span.to_vec().unwrap(), expected.clone());
        let stored = span.store_u64(offset, value);
        if let Some(bytes) = expected.get_mut(offset..offset + 8) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        prop_assert_eq!(stored.is_ok(), offset + 8 <= length);
        prop_assert_eq!(span.to_vec().unwrap(), expected);
    }

    #[test]
    fn copies_are_as_if_the_source_was_read_first(bytes in prop::collection::vec(any::<u8>(), 1..80), from in 0usize..80, to in 0usize..80, n in 0usize..80) {
        let span = span_of(&bytes);
        let done = span.copy_from(to, &span, from, n);
        prop_assert_eq!(done.is_ok(), from + n <= bytes.len() && to + n <= bytes.len());
        let mut expected = bytes.clone();
        if done.is_ok() {
            expected.copy_within(from..from + n, to);
        }
        prop_assert_eq!(span.to_vec().unwrap(), expected);
    }

    #[test]
    fn fill_and_compare_follow_the_bytes(length in 1usize..60, at in 0usize..60, n in 0usize..60, pattern: u64, size in 0usize..4) {
        let span = span_of(&vec![0x55; length]);
        let pattern = &pattern.to_le_bytes()[..1 << size];
        let done = span.fill(at, n, pattern);
        prop_assert_eq!(done.is_ok(), at + n <= length);
        let mut expected = vec![0x55; length];
        if done.is_ok() {
            for (i, byte) in expected[at..at + n].iter_mut().enumerate() {
                *byte = pattern[i % pattern.len()];
            }
        }
        prop_assert_eq!(span.to_vec().unwrap(), expected.clone());
        let other = span_of(&expected);
        let shift = at.min(length - 1);
        prop_assert_eq!(
            span.equals(0, &other, shift, length - shift).unwrap(),
            expected[..length - shift] == expected[shift..]
        );
    }
}

/// From a mebibyte on the pages are those of the system, aligned by hand.
#[test]
fn large_allocations_are_zeroed_and_aligned_too() {
    for length in [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20] {
        for alignment in [1, 64, 4096, 1 << 16] {
            let account = MemoryAccount::default();
            let span = Span::zeroed(length, alignment, &account).unwrap();
            assert_eq!((span.address().addr() % alignment.max(64), span.len()), (0, length));
            let ends = [span.load_u8(0), span.load_u64(length - 8).map(|word| word as u8), span.load_u8(length)];
            assert_eq!(ends, [Some(0), Some(0), None]);
            span.fill(0, length, &[7]).unwrap();
            assert_eq!(span.load_u8(length - 1), Some(7));
            drop(span);
            assert_eq!(account.used(), 0);
        }
    }
    assert!(matches!(Span::zeroed(usize::MAX - 63, 64, &MemoryAccount::default()), Err(Error::OutOfMemory { .. })));
    assert!(matches!(Span::zeroed(isize::MAX as usize - 63, 64, &MemoryAccount::default()), Err(Error::OutOfMemory { .. })));
}

/// Every way to write a span.
fn writes(span: &Span) -> [Result<()>; 11] {
    [
        span.store_u8(0, 1),
        span.store_u16(0, 1),
        span.store_u32(0, 1),
        span.store_u64(0, 1),
        span.store_element_u8(0, 1),
        span.store_element_u16(0, 1),
        span.store_element_u32(0, 1),
        span.store_element_u64(0, 1),
        span.write(0, &[1]),
        span.fill(0, 1, &[1]),
        span.copy_from(0, span, 4, 1),
    ]
}

#[test]
fn nothing_writes_a_read_only_span() {
    let writable = span_of(&[0; 16]);
    let read_only = writable.clone().read_only();
    for (index, result) in writes(&read_only).into_iter().enumerate() {
        assert_eq!(result, Err(Error::ReadOnly), "way {index}");
    }
    assert_eq!(writable.to_vec().unwrap(), [0; 16]);
    for (index, result) in writes(&writable).into_iter().enumerate() {
        assert_eq!(result, Ok(()), "way {index}");
    }
}

#[test]
fn the_whole_storage_of_a_read_only_part_is_read_only() {
    let writable = span_of(&[0; 16]);
    let part = writable.slice(4, 4).unwrap();
    assert!(part.whole_storage().is_writable());
    let whole = part.read_only().whole_storage();
    assert_eq!((whole.len(), whole.is_writable()), (16, false));
    for result in writes(&whole) {
        assert_eq!(result, Err(Error::ReadOnly));
    }
}

/// No system has so much memory; the account would allow it.
#[test]
fn an_allocation_that_fails_costs_nothing() {
    let account = MemoryAccount::default();
    let result = Span::zeroed(isize::MAX as usize - (1 << 16), 64, &account);
    assert!(matches!(result, Err(Error::OutOfMemory { .. })), "{result:?}");
    assert_eq!(account.used(), 0);
}
