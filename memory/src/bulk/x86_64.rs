//! Element access and bulk operations on x86-64: plain moves, string instructions and 16-byte vectors, written as inline assembly.
//!
//! Races with other threads are allowed on these bytes. That is why there are no calls of `memcpy` and its like here, for which a
//! race would be undefined behaviour: to the compiler an assembly block is a run of accesses to single bytes, in some order.

use std::arch::asm;
use std::arch::x86_64::{__m128i, _mm_set1_epi64x};

/// From this length on string instructions are faster than a loop of vectors, in spite of their long start.
const STRING: usize = 768;

/// Bytes of a vector.
const VECTOR: usize = size_of::<__m128i>();

/// Bytes of one round of the vector loops.
const ROUND: usize = 4 * VECTOR;

/// From this length on comparing with AVX2 is worth the question whether the processor has it.
const WIDE: usize = 256;

/// Bytes of one round of the AVX2 loop.
const WIDE_ROUND: usize = 128;

/// Defines an unaligned load and an unaligned store.
macro_rules! access {
    ($load:ident, $store:ident, $type:ty, $class:ident, $load_text:literal, $store_text:literal) => {
        /// Reads an element, aligned or not.
        ///
        /// # Safety
        /// The bytes at `address` are live.
        #[inline(always)]
        pub(crate) unsafe fn $load(address: *const u8) -> $type {
            let value: $type;
            // SAFETY: live bytes, by the contract of this function; nothing but the result changes.
            unsafe { asm!($load_text, value = out($class) value, at = in(reg) address, options(nostack, preserves_flags, readonly)) };
            value
        }

        /// Writes an element, aligned or not.
        ///
        /// # Safety
        /// The bytes at `address` are live and writable.
        #[inline(always)]
        pub(crate) unsafe fn $store(address: *mut u8, value: $type) {
            // SAFETY: live and writable bytes, by the contract of this function; nothing else changes.
            unsafe { asm!($store_text, value = in($class) value, at = in(reg) address, options(nostack, preserves_flags)) };
        }
    };
}

access!(load_1, store_1, u8, reg_byte, "mov {value}, byte ptr [{at}]", "mov byte ptr [{at}], {value}");
access!(load_2, store_2, u16, reg, "mov {value:x}, word ptr [{at}]", "mov word ptr [{at}], {value:x}");
access!(load_4, store_4, u32, reg, "mov {value:e}, dword ptr [{at}]", "mov dword ptr [{at}], {value:e}");
access!(load_8, store_8, u64, reg, "mov {value}, qword ptr [{at}]", "mov qword ptr [{at}], {value}");
access!(load_vector, store_vector, __m128i, xmm_reg, "movdqu {value}, xmmword ptr [{at}]", "movdqu xmmword ptr [{at}], {value}");

/// Copies out of a storage.
///
/// # Safety
/// `target.len()` live bytes of a storage stand at `source`.
#[inline]
pub(crate) unsafe fn read_bytes(source: *mut u8, target: &mut [u8]) {
    // SAFETY: by the contract of this function; the target is exclusively borrowed, so the ranges do not overlap.
    unsafe { copy(source, target.as_mut_ptr(), target.len()) };
}

/// Copies into a storage.
///
/// # Safety
/// `source.len()` live, writable bytes of a storage stand at `target`.
#[inline]
pub(crate) unsafe fn write_bytes(target: *mut u8, source: &[u8]) {
    // SAFETY: by the contract of this function; the source is only read.
    unsafe { copy(source.as_ptr().cast_mut(), target, source.len()) };
}

/// Copies between storages; the ranges may overlap, the result is as if the source had been read first.
///
/// # Safety
/// `length` live bytes stand at both addresses, and those at `target` are writable.
#[inline]
pub(crate) unsafe fn copy(source: *mut u8, target: *mut u8, length: usize) {
    // SAFETY: by the contract of this function; every branch stays in the two ranges.
    unsafe {
        match length {
            0 => {}
            1 => store_1(target, load_1(source)),
            2..4 => {
                let (first, last) = (load_2(source), load_2(source.add(length - 2)));
                store_2(target, first);
                store_2(target.add(length - 2), last);
            }
            4..8 => {
                let (first, last) = (load_4(source), load_4(source.add(length - 4)));
                store_4(target, first);
                store_4(target.add(length - 4), last);
            }
            8..16 => {
                let (first, last) = (load_8(source), load_8(source.add(length - 8)));
                store_8(target, first);
                store_8(target.add(length - 8), last);
            }
            _ => copy_vectors(source, target, length),
        }
    }
}

/// [`copy`] of at least one vector.
///
/// # Safety
/// As for [`copy`], and `length` is at least [`VECTOR`].
unsafe fn copy_vectors(source: *mut u8, target: *mut u8, length: usize) {
    let (ahead, behind) = (source.addr().wrapping_sub(target.addr()), target.addr().wrapping_sub(source.addr()));
    // SAFETY: by the contract of this function. Each vector starts at `length - VECTOR` at most. What a store overwrites of the
    // source was loaded before: front to back the target does not lie behind the source within its range, back to front it
    // does; the vector at the far end is loaded first of all and stored last.
    unsafe {
        if behind >= length {
            // Short distances make string instructions go byte by byte.
            if length >= STRING && ahead >= ROUND {
                asm!("rep movsb", inout("rsi") source => _, inout("rdi") target => _, inout("rcx") length => _, options(nostack, preserves_flags));
                return;
            }
            let last = load_vector(source.add(length - VECTOR));
            let mut at = 0;
            while length - at > ROUND {
                copy_round(source.add(at), target.add(at));
                at += ROUND;
            }
            while length - at > VECTOR {
                store_vector(target.add(at), load_vector(source.add(at)));
                at += VECTOR;
            }
            store_vector(target.add(length - VECTOR), last);
        } else {
            let first = load_vector(source);
            let mut end = length;
            while end > ROUND {
                end -= ROUND;
                copy_round(source.add(end), target.add(end));
            }
            while end > VECTOR {
                end -= VECTOR;
                store_vector(target.add(end), load_vector(source.add(end)));
            }
            store_vector(target, first);
        }
    }
}

/// Copies [`ROUND`] bytes: all loads, then all stores.
///
/// # Safety
/// As for [`copy`] of that many bytes.
#[inline(always)]
unsafe fn copy_round(source: *mut u8, target: *mut u8) {
    // SAFETY: by the contract of this function.
    unsafe {
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| load_vector(source.add(i * VECTOR)));
        store_vector(target, a);
        store_vector(target.add(VECTOR), b);
        store_vector(target.add(2 * VECTOR), c);
        store_vector(target.add(3 * VECTOR), d);
    }
}

/// Whether two ranges hold the same bytes.
///
/// # Safety
/// `length` live bytes stand at both addresses.
pub(crate) unsafe fn equal(a: *mut u8, b: *mut u8, length: usize) -> bool {
    // SAFETY: by the contract of this function; every access starts early enough to end in the ranges.
    unsafe {
        if length < VECTOR {
            return equal_short(a, b, length);
        }
        let mut at = 0;
        if length >= WIDE && is_x86_feature_detected!("avx2") {
            let rounds = length / WIDE_ROUND;
            if !equal_wide(a, b, rounds) {
                return false;
            }
            at = rounds * WIDE_ROUND;
        }
        while length - at >= ROUND {
            if !equal_round(a.add(at), b.add(at)) {
                return false;
            }
            at += ROUND;
        }
        while length - at > VECTOR {
            if !equal_vector(a.add(at), b.add(at)) {
                return false;
            }
            at += VECTOR;
        }
        equal_vector(a.add(length - VECTOR), b.add(length - VECTOR))
    }
}

/// Whether two runs of `rounds` times [`WIDE_ROUND`] bytes are the same.
///
/// # Safety
/// So many live bytes stand at both addresses, `rounds` is not 0, and the processor has AVX2.
unsafe fn equal_wide(a: *mut u8, b: *mut u8, rounds: usize) -> bool {
    let left: usize;
    // SAFETY: live bytes, by the contract of this function; only registers change, all of them named.
    unsafe {
        asm!(
            "2:",
            "vmovdqu ymm0, [{a}]",
            "vmovdqu ymm1, [{a} + 32]",
            "vmovdqu ymm2, [{a} + 64]",
            "vmovdqu ymm3, [{a} + 96]",
            "vpcmpeqb ymm0, ymm0, [{b}]",
            "vpcmpeqb ymm1, ymm1, [{b} + 32]",
            "vpcmpeqb ymm2, ymm2, [{b} + 64]",
            "vpcmpeqb ymm3, ymm3, [{b} + 96]",
            "vpand ymm0, ymm0, ymm1",
            "vpand ymm2, ymm2, ymm3",
            "vpand ymm0, ymm0, ymm2",
            "vpmovmskb {mask:e}, ymm0",
            "inc {mask:e}",
            "jnz 3f",
            "add {a}, 128",
            "add {b}, 128",
            "dec {left}",
            "jnz 2b",
            "3:",
            "vzeroupper",
            a = inout(reg) a => _,
            b = inout(reg) b => _,
            left = inout(reg) rounds => left,
            mask = out(reg) _,
            // `vzeroupper` clears the upper halves of these sixteen.
            out("ymm0") _,
            out("ymm1") _,
            out("ymm2") _,
            out("ymm3") _,
            out("ymm4") _,
            out("ymm5") _,
            out("ymm6") _,
            out("ymm7") _,
            out("ymm8") _,
            out("ymm9") _,
            out("ymm10") _,
            out("ymm11") _,
            out("ymm12") _,
            out("ymm13") _,
            out("ymm14") _,
            out("ymm15") _,
            options(nostack, readonly)
        );
    }
    left == 0
}

/// [`equal`] for less than a vector.
///
/// # Safety
/// As for [`equal`].
unsafe fn equal_short(a: *mut u8, b: *mut u8, length: usize) -> bool {
    // SAFETY: by the contract of this function.
    unsafe {
        match length {
            8.. => load_8(a) == load_8(b) && load_8(a.add(length - 8)) == load_8(b.add(length - 8)),
            4.. => load_4(a) == load_4(b) && load_4(a.add(length - 4)) == load_4(b.add(length - 4)),
            _ => (0..length).all(|i| load_1(a.add(i)) == load_1(b.add(i))),
        }
    }
}

/// Whether two runs of [`ROUND`] bytes are the same.
///
/// # Safety
/// [`ROUND`] live bytes stand at both addresses.
#[inline(always)]
unsafe fn equal_round(a: *mut u8, b: *mut u8) -> bool {
    let same: u32;
    // SAFETY: live bytes, by the contract of this function; only the named registers change.
    unsafe {
        asm!(
            "movdqu {v0}, [{a}]",
            "movdqu {w0}, [{b}]",
            "movdqu {v1}, [{a} + 16]",
            "movdqu {w1}, [{b} + 16]",
            "pcmpeqb {v0}, {w0}",
            "pcmpeqb {v1}, {w1}",
            "movdqu {w0}, [{a} + 32]",
            "movdqu {w1}, [{b} + 32]",
            "pand {v0}, {v1}",
            "movdqu {v1}, [{a} + 48]",
            "pcmpeqb {w0}, {w1}",
            "movdqu {w1}, [{b} + 48]",
            "pand {v0}, {w0}",
            "pcmpeqb {v1}, {w1}",
            "pand {v0}, {v1}",
            "pmovmskb {same:e}, {v0}",
            a = in(reg) a,
            b = in(reg) b,
            v0 = out(xmm_reg) _,
            v1 = out(xmm_reg) _,
            w0 = out(xmm_reg) _,
            w1 = out(xmm_reg) _,
            same = out(reg) same,
            options(nostack, preserves_flags, readonly)
        );
    }
    same == 0xFFFF
}

/// Whether two runs of [`VECTOR`] bytes are the same.
///
/// # Safety
/// [`VECTOR`] live bytes stand at both addresses.
#[inline(always)]
unsafe fn equal_vector(a: *mut u8, b: *mut u8) -> bool {
    // SAFETY: by the contract of this function.
    unsafe { load_8(a) == load_8(b) && load_8(a.add(8)) == load_8(b.add(8)) }
}

/// Fills a range with a pattern of 8 bytes, starting with its first byte.
///
/// # Safety
/// `length` live, writable bytes of a storage stand at `target`.
pub(crate) unsafe fn fill(target: *mut u8, length: usize, pattern: [u8; 8]) {
    let word = u64::from_ne_bytes(pattern);
    // The pattern as it stands in the last bytes of the range.
    let last = word.rotate_right((length % 8 * 8) as u32);
    // SAFETY: by the contract of this function; every store starts early enough to end in the range.
    unsafe {
        if length < 8 {
            pattern[..length].iter().enumerate().for_each(|(i, value)| store_1(target.add(i), *value));
            return;
        }
        if length >= STRING {
            asm!("rep stosq", inout("rdi") target => _, inout("rcx") length / 8 => _, in("rax") word, options(nostack, preserves_flags));
        } else {
            fill_vectors(target, length, word);
        }
        store_8(target.add(length - 8), last);
    }
}

/// Fills all of a range but what is left behind the last whole word.
///
/// # Safety
/// As for [`fill`].
#[inline(always)]
unsafe fn fill_vectors(target: *mut u8, length: usize, word: u64) {
    // SAFETY: by the contract of this function; every store starts early enough to end in the range.
    unsafe {
        let vector = _mm_set1_epi64x(word.cast_signed());
        let mut at = 0;
        while length - at >= ROUND {
            (0..4).for_each(|i| store_vector(target.add(at + i * VECTOR), vector));
            at += ROUND;
        }
        while length - at >= VECTOR {
            store_vector(target.add(at), vector);
            at += VECTOR;
        }
        if length - at >= 8 {
            store_8(target.add(at), word);
        }
    }
}
