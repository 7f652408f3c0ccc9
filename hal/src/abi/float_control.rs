//! The floating-point control register: kernels may change it, their callers must not notice.

/// Rounding mode, denormal handling and trap masks as they were.
pub(super) struct FloatControl(Word);

impl FloatControl {
    /// Notes the current settings.
    #[inline]
    pub(super) fn save() -> Self {
        Self(read())
    }

    /// Puts the noted settings back if they differ. Sticky exception flags belong to nobody and stay.
    #[inline]
    pub(super) fn restore(&self) {
        if (read() ^ self.0) & SETTINGS != 0 {
            write(self.0);
        }
    }
}

// Miri interprets no assembly.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod register {
    pub(super) type Word = u32;
    /// All but the six sticky flags.
    pub(super) const SETTINGS: Word = 0xFFC0;

    #[inline]
    pub(super) fn read() -> Word {
        let mut word: Word = 0;
        // SAFETY: stores the 32 bits of MXCSR to the given place and changes nothing else; SSE is part of x86-64.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    #[cold]
    pub(super) fn write(word: Word) {
        // SAFETY: the value was read from MXCSR before, so no reserved bit is set; the Rust code around runs with the
        // settings that it had when the value was read.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags, readonly)) };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod register {
    pub(super) type Word = u64;
    pub(super) const SETTINGS: Word = u64::MAX;

    #[inline]
    pub(super) fn read() -> Word {
        let word: Word;
        // SAFETY: reads FPCR, which every AArch64 program may.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack, preserves_flags)) };
        word
    }

    #[cold]
    pub(super) fn write(word: Word) {
        // SAFETY: the value was read from FPCR before.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
    }
}

#[cfg(all(target_arch = "riscv64", not(miri)))]
mod register {
    pub(super) type Word = u64;
    pub(super) const SETTINGS: Word = u64::MAX;

    #[inline]
    pub(super) fn read() -> Word {
        let word: Word;
        // SAFETY: reads the rounding mode; every target with a standard library has floating point.
        unsafe { std::arch::asm!("frrm {}", out(reg) word, options(nomem, nostack)) };
        word
    }

    #[cold]
    pub(super) fn write(word: Word) {
        // SAFETY: the value was read from the same field before.
        unsafe { std::arch::asm!("fsrm {}", in(reg) word, options(nostack)) };
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
mod register {
    pub(super) type Word = u32;
    pub(super) const SETTINGS: Word = 0;

    #[inline]
    pub(super) fn read() -> Word {
        0
    }

    pub(super) fn write(_word: Word) {}
}

use register::{SETTINGS, Word, read, write};
