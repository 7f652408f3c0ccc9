//! Element access and bulk operations by relaxed atomics: words, and bytes at the unaligned ends.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

const WORD: usize = 8;

/// # Safety
/// `address` points at a live byte of a storage.
unsafe fn byte<'a>(address: *mut u8) -> &'a AtomicU8 {
    // SAFETY: by the contract of this function; a byte is always aligned.
    unsafe { AtomicU8::from_ptr(address) }
}

/// # Safety
/// `address` points at 8 live bytes of a storage and is a multiple of 8.
unsafe fn word<'a>(address: *mut u8) -> &'a AtomicU64 {
    // SAFETY: by the contract of this function.
    unsafe { AtomicU64::from_ptr(address.cast()) }
}

macro_rules! access {
    ($load:ident, $store:ident, $integer:ty, $atomic:ty) => {
        /// Reads an element, byte by byte if it is not aligned.
        ///
        /// # Safety
        /// The bytes at `address` are live bytes of a storage.
        #[inline(always)]
        pub(crate) unsafe fn $load(address: *mut u8) -> $integer {
            if address.addr().is_multiple_of(align_of::<$atomic>()) {
                // SAFETY: by the contract of this function, and aligned.
                return unsafe { <$atomic>::from_ptr(address.cast()) }.load(Relaxed);
            }
            let mut bytes = [0; size_of::<$integer>()];
            // SAFETY: by the contract of this function.
            unsafe { read_bytes(address, &mut bytes) };
            <$integer>::from_ne_bytes(bytes)
        }

        /// Writes an element, byte by byte if it is not aligned.
        ///
        /// # Safety
        /// The bytes at `address` are live, writable bytes of a storage.
        #[inline(always)]
        pub(crate) unsafe fn $store(address: *mut u8, value: $integer) {
            if address.addr().is_multiple_of(align_of::<$atomic>()) {
                // SAFETY: by the contract of this function, and aligned.
                unsafe { <$atomic>::from_ptr(address.cast()) }.store(value, Relaxed);
            } else {
                // SAFETY: by the contract of this function.
                unsafe { write_bytes(address, &value.to_ne_bytes()) };
            }
        }
    };
}

access!(load_1, store_1, u8, AtomicU8);
access!(load_2, store_2, u16, AtomicU16);
access!(load_4, store_4, u32, AtomicU32);
access!(load_8, store_8, u64, AtomicU64);

/// Bytes up to the next multiple of 8, at most `length`.
fn head(address: *mut u8, length: usize) -> usize {
    (address.addr().wrapping_neg() % WORD).min(length)
}

/// Copies out of a storage.
///
/// # Safety
/// `target.len()` live bytes of a storage stand at `source`.
pub(crate) unsafe fn read_bytes(source: *mut u8, target: &mut [u8]) {
    let start = head(source, target.len());
    let (first, rest) = target.split_at_mut(start);
    for (i, value) in first.iter_mut().enumerate() {
        // SAFETY: `i` is less than the number of live bytes.
        *value = unsafe { byte(source.add(i)) }.load(Relaxed);
    }
    let mut words = rest.chunks_exact_mut(WORD);
    let mut at = start;
    for chunk in &mut words {
        // SAFETY: `at` is aligned, as `head` made it so, and 8 bytes follow.
        chunk.copy_from_slice(&unsafe { word(source.add(at)) }.load(Relaxed).to_ne_bytes());
        at += WORD;
    }
    for (i, value) in words.into_remainder().iter_mut().enumerate() {
        // SAFETY: `at + i` is less than the number of live bytes.
        *value = unsafe { byte(source.add(at + i)) }.load(Relaxed);
    }
}

/// Copies into a storage.
///
/// # Safety
/// `source.len()` live, writable bytes of a storage stand at `target`.
pub(crate) unsafe fn write_bytes(target: *mut u8, source: &[u8]) {
    let start = head(target, source.len());
    let (first, rest) = source.split_at(start);
    for (i, value) in first.iter().enumerate() {
        // SAFETY: `i` is less than the number of live bytes.
        unsafe { byte(target.add(i)) }.store(*value, Relaxed);
    }
    let words = rest.chunks_exact(WORD);
    let mut at = start;
    for chunk in words.clone() {
        let mut bytes = [0; WORD];
        bytes.copy_from_slice(chunk);
        // SAFETY: `at` is aligned, as `head` made it so, and 8 bytes follow.
        unsafe { word(target.add(at)) }.store(u64::from_ne_bytes(bytes), Relaxed);
        at += WORD;
    }
    for (i, value) in words.remainder().iter().enumerate() {
        // SAFETY: `at + i` is less than the number of live bytes.
        unsafe { byte(target.add(at + i)) }.store(*value, Relaxed);
    }
}

/// Copies between storages; the ranges may overlap, the result is as if the source had been read first.
///
/// # Safety
/// `length` live bytes stand at both addresses, and those at `target` are writable.
pub(crate) unsafe fn copy(source: *mut u8, target: *mut u8, length: usize) {
    let backwards = target.addr() > source.addr() && target.addr() - source.addr() < length;
    let same_phase = source.addr() % WORD == target.addr() % WORD;
    let start = if same_phase { head(target, length) } else { length };
    let words = (length - start) / WORD * WORD;
    // SAFETY: all indices below are less than `length`; words start at multiples of 8 in both, as the phases are equal.
    unsafe {
        let copy_byte = |i: usize| byte(target.add(i)).store(byte(source.add(i)).load(Relaxed), Relaxed);
        let copy_word = |i: usize| word(target.add(i)).store(word(source.add(i)).load(Relaxed), Relaxed);
        if backwards {
            (start + words..length).rev().for_each(copy_byte);
            (start..start + words).step_by(WORD).rev().for_each(copy_word);
            (0..start).rev().for_each(copy_byte);
        } else {
            (0..start).for_each(copy_byte);
            (start..start + words).step_by(WORD).for_each(copy_word);
            (start + words..length).for_each(copy_byte);
        }
    }
}

/// Whether two ranges hold the same bytes.
///
/// # Safety
/// `length` live bytes stand at both addresses.
pub(crate) unsafe fn equal(a: *mut u8, b: *mut u8, length: usize) -> bool {
    let same_phase = a.addr() % WORD == b.addr() % WORD;
    let start = if same_phase { head(a, length) } else { length };
    let words = (length - start) / WORD * WORD;
    // SAFETY: all indices below are less than `length`; words start at multiples of 8 in both, as the phases are equal.
    unsafe {
        let same_byte = |i: usize| byte(a.add(i)).load(Relaxed) == byte(b.add(i)).load(Relaxed);
        let same_word = |i: usize| word(a.add(i)).load(Relaxed) == word(b.add(i)).load(Relaxed);
        (0..start).all(same_byte) && (start..start + words).step_by(WORD).all(same_word) && (start + words..length).all(same_byte)
    }
}

/// Fills a range with a pattern of 8 bytes, starting with its first byte.
///
/// # Safety
/// `length` live, writable bytes of a storage stand at `target`.
pub(crate) unsafe fn fill(target: *mut u8, length: usize, pattern: [u8; 8]) {
    let start = head(target, length);
    let words = (length - start) / WORD * WORD;
    let mut turned = pattern;
    turned.rotate_left(start % WORD);
    let value = u64::from_ne_bytes(turned);
    // SAFETY: all indices below are less than `length`, words start at multiples of 8.
    unsafe {
        let fill_byte = |i: usize| byte(target.add(i)).store(pattern[i % WORD], Relaxed);
        (0..start).for_each(fill_byte);
        (start..start + words).step_by(WORD).for_each(|i| word(target.add(i)).store(value, Relaxed));
        (start + words..length).for_each(fill_byte);
    }
}
