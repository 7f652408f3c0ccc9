//! Processor features that the standard library does not name, by the processor's own word.

use std::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};

/// Where the processor states a feature. All of these need the vector registers of AVX as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    leaf: u32,
    subleaf: u32,
    register: fn(CpuidResult) -> u32,
    bit: u32,
}

impl Leaf {
    /// The place of a feature, by the compiler's name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let extended = |bit| Self { leaf: 0x8000_0001, subleaf: 0, register: |result| result.ecx, bit };
        let seven = |register, bit| Self { leaf: 7, subleaf: 1, register, bit };
        Some(match name {
            "xop" => extended(11),
            "fma4" => extended(16),
            "avxvnni" => seven(|result| result.eax, 4),
            "avxifma" => seven(|result| result.eax, 23),
            "avxvnniint8" => seven(|result| result.edx, 4),
            "avxneconvert" => seven(|result| result.edx, 5),
            "avxvnniint16" => seven(|result| result.edx, 10),
            _ => return None,
        })
    }

    /// Whether the processor has it.
    pub(crate) fn is_set(self) -> bool {
        let base = self.leaf & 0x8000_0000;
        // SAFETY: every processor of this architecture has the instruction; the first leaf of a range states its last one.
        #[allow(unused_unsafe, reason = "a safe function in newer compilers")]
        let last = unsafe { __cpuid(base) }.eax;
        if self.leaf > last {
            return false;
        }
        // SAFETY: as above. Subleaves that are not there are zero.
        #[allow(unused_unsafe, reason = "a safe function in newer compilers")]
        let result = unsafe { __cpuid_count(self.leaf, self.subleaf) };
        (self.register)(result) >> self.bit & 1 == 1
    }
}
