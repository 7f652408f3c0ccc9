//! What the processor can do: the data words that kernels select code by, and the names that programs ask for.
//!
//! A bit that is zero means absent or unknown, which is always safe; a bit that is set is true for this process. Features that
//! need more than the processor (AMX tiles need a permission from the system) count as absent.

mod feature;

use std::sync::OnceLock;

pub use feature::has;

/// Number of data words.
pub const WORDS: usize = 8;

/// A feature that programs can ask for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Feature {
    name: &'static str,
    /// Bit of data word 0.
    bit: u32,
}

/// The data words of this machine; words 1 to 7 are zero.
pub fn words() -> &'static [u64; WORDS] {
    static WORDS_HERE: OnceLock<[u64; WORDS]> = OnceLock::new();
    WORDS_HERE.get_or_init(|| {
        let mut words = [0; WORDS];
        words[0] = detect();
        words
    })
}

/// Whether the processor has the feature of this name; `None` for names that mean nothing on this architecture.
pub fn query(name: &str) -> Option<bool> {
    // The one name that ever changed, in 2023-11.
    let name = if cfg!(target_arch = "aarch64") && name == "fp16" { "fullfp16" } else { name };
    let feature = FEATURES.iter().find(|feature| feature.name == name)?;
    Some(words()[0] >> feature.bit & 1 == 1)
}

/// The architecture's name in executable formats, where the compiler has one for it.
pub const fn architecture() -> Option<&'static str> {
    if cfg!(target_arch = "x86_64") {
        Some("x86_64")
    } else if cfg!(target_arch = "aarch64") {
        Some("arm_64")
    } else if cfg!(target_arch = "riscv64") {
        Some("riscv_64")
    } else if cfg!(target_arch = "x86") {
        Some("x86_32")
    } else if cfg!(target_arch = "arm") {
        Some("arm_32")
    } else if cfg!(target_arch = "riscv32") {
        Some("riscv_32")
    } else if cfg!(target_arch = "wasm32") {
        Some("wasm_32")
    } else if cfg!(target_arch = "wasm64") {
        Some("wasm_64")
    } else {
        None
    }
}

/// The common name of the architecture at the end of an executable format.
pub fn architecture_of(format: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 8] = [
        ("x86_64", "x86_64"),
        ("arm_64", "aarch64"),
        ("riscv_64", "riscv64"),
        ("x86_32", "x86"),
        ("arm_32", "arm"),
        ("riscv_32", "riscv32"),
        ("wasm_32", "wasm32"),
        ("wasm_64", "wasm64"),
    ];
    NAMES.iter().find(|(end, _)| format.ends_with(end)).map(|(_, name)| *name)
}

/// Defines the table of names and the function that detects them, each feature stated once: `bit name => how to detect`.
#[allow(unused_macros)]
macro_rules! features {
    ($($bit:literal $name:literal => $present:expr),+ $(,)?) => {
        const FEATURES: &[Feature] = &[$(Feature { name: $name, bit: $bit }),+];

        fn detect() -> u64 {
            0 $(| u64::from($present) << $bit)+
        }
    };
}

#[cfg(target_arch = "x86_64")]
features! {
    0 "sse3" => is_x86_feature_detected!("sse3"),
    1 "ssse3" => is_x86_feature_detected!("ssse3"),
    2 "sse4.1" => is_x86_feature_detected!("sse4.1"),
    3 "sse4.2" => is_x86_feature_detected!("sse4.2"),
    4 "sse4a" => is_x86_feature_detected!("sse4a"),
    10 "avx" => is_x86_feature_detected!("avx"),
    11 "fma" => is_x86_feature_detected!("fma"),
    12 "fma4" => false,
    13 "xop" => false,
    14 "f16c" => is_x86_feature_detected!("f16c"),
    15 "avx2" => is_x86_feature_detected!("avx2"),
    20 "avx512f" => is_x86_feature_detected!("avx512f"),
    21 "avx512cd" => is_x86_feature_detected!("avx512cd"),
    22 "avx512vl" => is_x86_feature_detected!("avx512vl"),
    23 "avx512dq" => is_x86_feature_detected!("avx512dq"),
    24 "avx512bw" => is_x86_feature_detected!("avx512bw"),
    25 "avx512ifma" => is_x86_feature_detected!("avx512ifma"),
    26 "avx512vbmi" => is_x86_feature_detected!("avx512vbmi"),
    27 "avx512vpopcntdq" => is_x86_feature_detected!("avx512vpopcntdq"),
    28 "avx512vnni" => is_x86_feature_detected!("avx512vnni"),
    29 "avx512vbmi2" => is_x86_feature_detected!("avx512vbmi2"),
    30 "avx512bitalg" => is_x86_feature_detected!("avx512bitalg"),
    31 "avx512bf16" => is_x86_feature_detected!("avx512bf16"),
    32 "avx512fp16" => is_x86_feature_detected!("avx512fp16"),
    50 "amx-tile" => false,
    51 "amx-int8" => false,
    52 "amx-bf16" => false,
}

#[cfg(target_arch = "aarch64")]
features! {
    0 "fp-armv8" => std::arch::is_aarch64_feature_detected!("fp"),
    1 "lse" => std::arch::is_aarch64_feature_detected!("lse"),
    2 "lse128" => false,
    10 "fullfp16" => std::arch::is_aarch64_feature_detected!("fp16"),
    11 "fp16fml" => std::arch::is_aarch64_feature_detected!("fhm"),
    12 "dotprod" => std::arch::is_aarch64_feature_detected!("dotprod"),
    13 "i8mm" => std::arch::is_aarch64_feature_detected!("i8mm"),
    14 "bf16" => std::arch::is_aarch64_feature_detected!("bf16"),
    20 "sve" => std::arch::is_aarch64_feature_detected!("sve"),
    21 "sve2" => std::arch::is_aarch64_feature_detected!("sve2"),
    22 "sve2p1" => false,
    23 "sve2-bitperm" => std::arch::is_aarch64_feature_detected!("sve2-bitperm"),
    24 "f32mm" => std::arch::is_aarch64_feature_detected!("f32mm"),
    25 "f64mm" => std::arch::is_aarch64_feature_detected!("f64mm"),
    30 "sme" => false,
    31 "sme2" => false,
    32 "sme2p1" => false,
    33 "sme-f16f16" => false,
    34 "sme-f64f64" => false,
    35 "sme-i16i64" => false,
}

#[cfg(target_arch = "riscv64")]
features! {
    0 "v" => riscv::has("v"),
    1 "zvfhmin" => riscv::has("zvfhmin"),
    2 "zvfh" => riscv::has("zvfh"),
    3 "zvfbfwma" => riscv::has("zvfbfwma"),
    4 "xsmtvdot" => riscv::has("xsmtvdot"),
    5 "zvl256b" => riscv::has("zvl256b"),
    6 "zvl1024b" => riscv::has("zvl1024b"),
    7 "zvl4096b" => riscv::has("zvl4096b"),
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const FEATURES: &[Feature] = &[];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
fn detect() -> u64 {
    0
}

/// RISC-V extensions as the kernel lists them; the standard library has no stable way to ask.
#[cfg(any(target_arch = "riscv64", test))]
mod riscv {
    #[cfg(target_arch = "riscv64")]
    pub(super) fn has(extension: &str) -> bool {
        all_processors_have(info(), extension)
    }

    #[cfg(target_arch = "riscv64")]
    pub(super) fn info() -> &'static str {
        static INFO: std::sync::OnceLock<String> = std::sync::OnceLock::new();
        INFO.get_or_init(|| std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
    }

    /// As [`all_processors_have`]; `None` where a name that is not listed may be one that the system does not know. Systems
    /// list the single letters since ever.
    pub(super) fn known(info: &str, extension: &str) -> Option<bool> {
        let listed = all_processors_have(info, extension);
        let letter = extension.len() == 1 && "mafdcv".contains(extension) && all_processors_have(info, "i");
        (listed || letter).then_some(listed)
    }

    /// Whether every `isa` line of `/proc/cpuinfo` names the extension, and there is one.
    pub(super) fn all_processors_have(info: &str, extension: &str) -> bool {
        let mut lines = info.lines().filter_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == "isa").then(|| value.trim())
        });
        let has = |line: &str| {
            let mut parts = line.split('_');
            // "rv64imafdcv": one letter each behind the base.
            let letters = parts.next().and_then(|base| base.strip_prefix("rv64")).unwrap_or("");
            if extension.len() == 1 { letters.contains(extension) } else { parts.any(|part| part == extension) }
        };
        lines.next().is_some_and(has) && lines.all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bits_are_unique() {
        for (i, a) in FEATURES.iter().enumerate() {
            assert!(FEATURES[..i].iter().all(|b| a.name != b.name && a.bit < 64 && a.bit > b.bit), "{a:?}");
        }
    }

    #[test]
    fn an_unknown_name_is_no_feature() {
        assert_eq!(query("no-such-feature"), None);
        assert_eq!(words()[1..], [0; 7]);
    }

    /// Against what the kernel says.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn features_agree_with_the_kernel() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags: Vec<&str> = info.lines().find(|line| line.starts_with("flags")).unwrap().split_whitespace().collect();
        let names = [("sse3", "pni"), ("ssse3", "ssse3"), ("sse4.1", "sse4_1"), ("avx", "avx"), ("fma", "fma"), ("avx2", "avx2")];
        let wide = [("avx512f", "avx512f"), ("avx512vnni", "avx512_vnni"), ("avx512bf16", "avx512_bf16"), ("f16c", "f16c")];
        for (name, flag) in names.into_iter().chain(wide) {
            assert_eq!(query(name), Some(flags.contains(&flag)), "{name}");
        }
    }

    #[test]
    fn riscv_extensions_must_be_on_every_processor() {
        let one = "processor\t: 0\nisa\t\t: rv64imafdcv_zicsr_zvfh\nmmu\t: sv39\n";
        let two = "processor\t: 1\nisa\t\t: rv64imafdc_zicsr\n";
        assert!(riscv::all_processors_have(one, "v") && riscv::all_processors_have(one, "zvfh"));
        assert!(!riscv::all_processors_have(one, "zvfhmin"));
        assert!(!riscv::all_processors_have(&format!("{one}{two}"), "v"));
        assert!(!riscv::all_processors_have("flags : v zvfh\n", "v"));
        assert_eq!([riscv::known(one, "v"), riscv::known(two, "v")], [Some(true), Some(false)]);
        assert_eq!([riscv::known(one, "zvfh"), riscv::known(one, "zba"), riscv::known("", "v")], [Some(true), None, None]);
    }
}
