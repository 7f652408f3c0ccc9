//! Which memory of this process is readable and which is executable, where the system tells.

use std::ops::Range;

/// The address ranges of this process, as they were when it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessMap {
    readable: Vec<Range<u64>>,
    executable: Vec<Range<u64>>,
}

impl ProcessMap {
    /// Asks the system; `None` where it does not tell.
    pub(crate) fn now() -> Option<Self> {
        if cfg!(any(target_os = "linux", target_os = "android")) {
            Self::parse(&std::fs::read_to_string("/proc/self/maps").ok()?)
        } else {
            None
        }
    }

    /// Whether the whole range is readable.
    pub(crate) fn is_readable(&self, address: u64, length: u64) -> bool {
        contains(&self.readable, address, length)
    }

    /// Whether there is code at the address.
    pub(crate) fn is_executable(&self, address: u64) -> bool {
        contains(&self.executable, address, 1)
    }

    /// Lines like `7f00-7f10 r-xp 00000000 08:01 1234 /lib/x.so`, in ascending order; neighbours are joined.
    fn parse(text: &str) -> Option<Self> {
        let mut map = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
            let rights = words.next()?.as_bytes();
            // Device memory and what the kernel shares may fault although it is mapped.
            let special = words.nth(3).is_some_and(|name| name.starts_with("[v"));
            if rights.first() == Some(&b'r') && !special {
                push(&mut map.readable, range.clone());
            }
            if rights.get(2) == Some(&b'x') {
                push(&mut map.executable, range);
            }
        }
        Some(map)
    }
}

fn push(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

fn contains(ranges: &[Range<u64>], address: u64, length: u64) -> bool {
    let after = ranges.partition_point(|range| range.start <= address);
    let range = after.checked_sub(1).and_then(|index| ranges.get(index));
    range.is_some_and(|range| address.checked_add(length).is_some_and(|end| end <= range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
1000-2000 r--p 00000000 08:01 1 /lib/x.so
2000-3000 r-xp 00001000 08:01 1 /lib/x.so
3000-4000 rw-p 00002000 08:01 1 /lib/x.so
5000-6000 ---p 00000000 00:00 0
7000-8000 r--p 00000000 00:00 0                                  [vvar]
";

    #[test]
    fn neighbouring_ranges_are_one() {
        let map = ProcessMap::parse(TEXT).unwrap();
        assert!(map.is_readable(0x1FF0, 0x20) && map.is_readable(0x1000, 0x3000));
        assert!(!map.is_readable(0x3FFF, 2) && !map.is_readable(0xFFF, 2) && !map.is_readable(0x5000, 1) && !map.is_readable(0x7000, 1));
        assert!(!map.is_readable(u64::MAX, 2) && !map.is_readable(0, 1));
        assert!(map.is_executable(0x2000) && !map.is_executable(0x3000) && !map.is_executable(0x1FFF));
    }

    #[test]
    fn an_unknown_form_is_no_map() {
        assert_eq!(ProcessMap::parse("1000-2000\n"), None);
        assert_eq!(ProcessMap::parse("no map at all\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_function_is_code_and_its_locals_are_data() {
        let map = ProcessMap::now().unwrap();
        let code = (this_function_is_code_and_its_locals_are_data as fn()) as usize as u64;
        let local = (&raw const code).addr() as u64;
        assert!(map.is_executable(code) && map.is_readable(local, 8) && !map.is_executable(local) && !map.is_readable(0, 1));
    }
}
