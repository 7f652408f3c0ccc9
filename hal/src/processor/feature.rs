//! Features by the names that the compiler states them under: more than programs can ask for.

/// Whether this process can use a feature; `None` where that is not known: names of other architectures, names that only
/// steer the compiler (`+reserve-x18`, `+prfchw`), and what this system does not tell.
pub fn has(name: &str) -> Option<bool> {
    detect(name).or_else(|| super::query(name))
}

#[cfg(target_arch = "x86_64")]
fn detect(name: &str) -> Option<bool> {
    macro_rules! standard {
        ($($name:literal = $feature:tt),+ $(,)?) => {
            match name {
                $($name => return Some(is_x86_feature_detected!($feature)),)+
                _ => {}
            }
        };
    }
    standard! {
        "adx" = "adx", "aes" = "aes", "bmi" = "bmi1", "bmi2" = "bmi2", "cx16" = "cmpxchg16b", "fxsr" = "fxsr",
        "gfni" = "gfni", "lzcnt" = "lzcnt", "movbe" = "movbe", "pclmul" = "pclmulqdq", "popcnt" = "popcnt",
        "rdrnd" = "rdrand", "rdseed" = "rdseed", "sha" = "sha", "sse" = "sse", "sse2" = "sse2", "tbm" = "tbm",
        "vaes" = "vaes", "vpclmulqdq" = "vpclmulqdq", "xsave" = "xsave", "xsavec" = "xsavec",
        "xsaveopt" = "xsaveopt", "xsaves" = "xsaves",
    }
    let leaf = crate::abi::cpuid::Leaf::of(name)?;
    Some(is_x86_feature_detected!("avx") && leaf.is_set())
}

#[cfg(target_arch = "aarch64")]
fn detect(name: &str) -> Option<bool> {
    use std::arch::is_aarch64_feature_detected;
    macro_rules! standard {
        ($($name:literal = $feature:tt),+ $(,)?) => {
            match name {
                $($name => Some(is_aarch64_feature_detected!($feature)),)+
                // The system tells nothing of these in a way that the standard library has.
                _ if name.starts_with("sme") || ["lse128", "sve2p1"].contains(&name) => None,
                _ => super::query(name),
            }
        };
    }
    standard! {
        "neon" = "neon", "aes" = "aes", "sha2" = "sha2", "sha3" = "sha3", "sm4" = "sm4", "crc" = "crc", "rdm" = "rdm",
        "rcpc" = "rcpc", "jsconv" = "jsconv", "complxnum" = "fcma", "lse2" = "lse2", "sve2-aes" = "sve2-aes",
        "sve2-sha3" = "sve2-sha3", "sve2-sm4" = "sve2-sm4",
    }
}

#[cfg(target_arch = "riscv64")]
fn detect(name: &str) -> Option<bool> {
    super::riscv::known(super::riscv::info(), name)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
fn detect(_name: &str) -> Option<bool> {
    None
}

#[cfg(test)]
mod tests {
    use super::has;

    #[test]
    fn unknown_names_are_neither_there_nor_absent() {
        for name in ["", "no-such-feature", "reserve-x18", "prfchw", "tuning"] {
            assert_eq!(has(name), None, "{name}");
        }
    }

    /// Against what the kernel says.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn features_agree_with_the_kernel() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags: Vec<&str> = info.lines().find(|line| line.starts_with("flags")).unwrap().split_whitespace().collect();
        let same = ["sse2", "avx", "avx2", "fma", "f16c", "bmi2", "aes", "adx", "gfni", "vaes", "movbe", "fma4", "xop", "tbm"];
        let renamed = [("bmi", "bmi1"), ("lzcnt", "abm"), ("pclmul", "pclmulqdq"), ("cx16", "cx16"), ("avxvnni", "avx_vnni")];
        for (name, flag) in same.into_iter().zip(same).chain(renamed) {
            assert_eq!(has(name), Some(flags.contains(&flag)), "{name}");
        }
    }
}
