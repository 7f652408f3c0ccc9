//! Which pages of a private map were written, as far as the system tells.

/// Whether any page of a range of a private map of a file was written since it was mapped. `None` where the system does not say.
pub(crate) fn any_written(address: usize, length: usize) -> Option<bool> {
    system::any_written(address, length)
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn any_written(_: usize, _: usize) -> Option<bool> {
        None
    }
}

/// `/proc/self/pagemap` has 64 bits for each page. A written page of a private map is a page of the process; one that was not
/// written is a page of the file, or not there at all.
#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::{Mutex, PoisonError};

    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const OF_A_FILE: u64 = 1 << 61;

    /// Bytes of an entry, and entries that are read at once.
    const ENTRY: usize = 8;
    const ENTRIES: usize = 512;

    /// The table of this process.
    enum Table {
        Unknown,
        /// The process that it was opened in: after a fork it is still the parent's.
        Open(File, u32),
        Unusable,
    }

    static TABLE: Mutex<Table> = Mutex::new(Table::Unknown);

    pub(super) fn any_written(address: usize, length: usize) -> Option<bool> {
        let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if !matches!(&*table, Table::Unusable) && !matches!(&*table, Table::Open(_, of) if *of == process) {
            *table = match File::open("/proc/self/pagemap") {
                Ok(file) if tells_the_truth(&file) => Table::Open(file, process),
                _ => Table::Unusable,
            };
        }
        let Table::Open(file, _) = &*table else { return None };
        scan(file, address, length)
    }

    fn scan(file: &File, address: usize, length: usize) -> Option<bool> {
        if length == 0 {
            return Some(false);
        }
        let page = rustix::param::page_size();
        let (mut at, end) = (address / page, (address + length).div_ceil(page));
        let mut bytes = [0; ENTRIES * ENTRY];
        while at < end {
            let bytes = bytes.get_mut(..(end - at).min(ENTRIES) * ENTRY)?;
            file.read_exact_at(bytes, (at * ENTRY) as u64).ok()?;
            let (entries, _) = bytes.as_chunks::<ENTRY>();
            let written = |entry: &[u8; ENTRY]| {
                let entry = u64::from_ne_bytes(*entry);
                entry & (PRESENT | SWAPPED) != 0 && entry & OF_A_FILE == 0
            };
            if entries.iter().any(written) {
                return Some(true);
            }
            at += entries.len();
        }
        Some(false)
    }

    /// Tries a map with one page that is written and one that is read: systems that imitate Linux may not have all of it.
    fn tells_the_truth(file: &File) -> bool {
        let page = rustix::param::page_size();
        let attempt = || {
            let memory = File::from(rustix::fs::memfd_create("vmfb", rustix::fs::MemfdFlags::CLOEXEC).ok()?);
            memory.set_len(2 * page as u64).ok()?;
            // SAFETY: nothing else has the file.
            let mut map = unsafe { memmap2::MmapOptions::new().map_copy(&memory) }.ok()?;
            *map.get_mut(0)? = 1;
            std::hint::black_box(*map.get(page)?);
            let address = map.as_ptr().addr();
            Some((scan(file, address, page)?, scan(file, address + page, page)?))
        };
        attempt() == Some((true, false))
    }
}
