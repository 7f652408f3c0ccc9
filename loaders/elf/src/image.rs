//! An image in executable memory: written, relocated, then protected, never writable and executable at once.

use crate::file::{ElfFile, Placed, Target};
use crate::layout::{Layout, Protection};
use crate::sys::{Mapping, page_size};
use crate::{Architecture, CodePages};
use std::io;
use std::ptr;
use std::sync::Arc;
use vmfb_hal::abi::AddressSpace;
use vmfb_memory::{Charge, MemoryAccount};
use vmfb_vm::{Error, Result, ResultExt, Status};

/// What is charged for an image beside its pages: the tables that are made of it.
const TABLE_BYTES: u64 = 4096;

/// A loaded image. Clones are the same image; it is unmapped with the last of them.
#[derive(Clone, Debug)]
pub(crate) struct Image(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    mapping: Mapping,
    layout: Layout,
    placed: Placed,
    _charge: Charge,
}

impl Image {
    /// Maps, relocates and protects a file for this machine. The account is charged for as long as the image is mapped.
    pub(crate) fn load(file: &[u8], architecture: &'static Architecture, code_pages: CodePages, account: &MemoryAccount) -> Result<Self> {
        let elf = ElfFile::parse(file, Target { architecture, page: page_size() })?;
        let layout = elf.layout().clone();
        let (Ok(size), Ok(alignment)) = (usize::try_from(layout.size()), usize::try_from(layout.alignment())) else {
            return Err(Error::exhausted(format!("an image of {:#x} bytes does not fit in the address space", layout.size())));
        };
        // Segments may be larger in memory than in the file.
        let charge = account.hold((size as u64).saturating_add(TABLE_BYTES)).context(|| format!("mapping an image of {size} bytes"))?;
        let mut mapping = Mapping::writable(size, alignment)
            .map_err(|error| Error::exhausted(format!("no memory for an image of {size} bytes: {error}")))?;
        let base = mapping.base().expose_provenance() as u64;
        let placed = elf.place(mapping.bytes_mut(), base)?;
        protect(&mut mapping, &layout, code_pages).map_err(may_not_execute)?;
        Ok(Self(Arc::new(Inner { mapping, layout, placed, _charge: charge })))
    }

    /// Address of the library query function.
    pub(crate) fn query(&self) -> usize {
        self.0.placed.query as usize
    }

    /// Address before the load bias, for an address in memory.
    fn unbiased(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.0.mapping.base().addr() as u64)?;
        self.0.layout.start().checked_add(offset)
    }
}

impl AddressSpace for Image {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let range = self.unbiased(address).and_then(|address| self.0.layout.image_range(address, target.len() as u64));
        let Some(range) = range else { return false };
        // SAFETY: the range lies in a segment, which lies in the mapping and is readable for as long as `self` lives.
        unsafe { ptr::copy_nonoverlapping(self.0.mapping.base().add(range.start), target.as_mut_ptr(), target.len()) };
        true
    }

    fn is_executable(&self, address: u64) -> bool {
        let segment = self.unbiased(address).and_then(|address| self.0.layout.segment_of(address, 1));
        segment.is_some_and(|segment| segment.protection == Protection::ReadExecute)
    }

    fn describe(&self) -> &str {
        "the ELF image"
    }
}

/// Gives every segment its protection; what lies between segments becomes inaccessible.
fn protect(mapping: &mut Mapping, layout: &Layout, code_pages: CodePages) -> io::Result<()> {
    let offsets = |start: u64, end: u64| (start - layout.start()) as usize..(end - layout.start()) as usize;
    let mut gap_start = layout.start();
    for (pages, protection) in layout.pages() {
        if gap_start < pages.start {
            mapping.close(offsets(gap_start, pages.start))?;
        }
        gap_start = pages.end;
        if protection == Protection::ReadExecute && code_pages == CodePages::Refused {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        mapping.protect(offsets(pages.start, pages.end), protection)?;
    }
    if let Some(relro) = layout.relro() {
        mapping.protect(offsets(relro.start, relro.end), Protection::Read)?;
    }
    Ok(())
}

#[cold]
fn may_not_execute(error: io::Error) -> Error {
    Error::new(
        Status::PermissionDenied,
        format!(
            "this process may not map executable pages ({error}): compile for VMVX (--iree-hal-target-backends=vmvx), which needs none, \
             or for a system library (--iree-llvmcpu-link-embedded=false), which the system's own loader maps"
        ),
    )
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::support::corpus_image;
    use super::*;

    /// What the kernel says of the page at an address.
    fn rights(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let covers = |line: &&str| {
            let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            (usize::from_str_radix(start, 16).unwrap()..usize::from_str_radix(end, 16).unwrap()).contains(&address)
        };
        maps.lines().find(covers).unwrap().split(' ').nth(1).unwrap().to_owned()
    }

    /// The segments of this image take the pages 0, 1 and 3.
    #[test]
    fn pages_between_segments_are_closed() {
        let image = corpus_image("20240226.813", "inline-elf", "gather");
        let loaded = Image::load(&image.bytes, Architecture::host().unwrap(), CodePages::Allowed, &MemoryAccount::default()).unwrap();
        let page = |number: usize| rights(loaded.0.mapping.base().addr() + number * 4096 + 8);
        assert_eq!([page(0), page(1), page(2)], ["r--p", "r-xp", "---p"]);
        assert!(["r--p", "rw-p"].contains(&page(3).as_str()));
    }
}
