//! Segments: where each part of the file goes in memory, with every program header checked.

use crate::records::{Class, FileHeader, ProgramHeader, refused, refused_with};
use object::elf;
use std::ops::Range;
use vmfb_vm::{Result, Status};

/// Most program headers that are read; compilers write 7 to 9.
const MAX_PROGRAM_HEADERS: u16 = 64;

/// Largest segment alignment that is honoured.
const MAX_ALIGNMENT: u64 = 1 << 21;

/// How much larger than its file an image may be: gaps between segments and zeroed memory.
const MAX_EXTRA: u64 = 16 << 20;

/// What may be done with the memory of a segment. Writing and executing exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
    /// Reading and executing.
    ReadExecute,
}

/// A PT_LOAD segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the program header, for messages.
    pub index: usize,
    /// The part of the file that is copied.
    pub file: Range<usize>,
    /// First address, before the load bias.
    pub address: u64,
    /// Bytes in memory; those behind the file's part are zero.
    pub memory_size: u64,
    /// Protection once the image is ready.
    pub protection: Protection,
}

impl Segment {
    /// Address past the last byte.
    pub fn end(&self) -> u64 {
        // Checked when the segment was made.
        self.address + self.memory_size
    }

    /// Whether the range lies in this segment.
    pub fn contains(&self, address: u64, length: u64) -> bool {
        address >= self.address && address.checked_add(length).is_some_and(|end| end <= self.end())
    }
}

/// The image that the segments of a file make.
#[derive(Clone, Debug)]
pub struct Layout {
    segments: Vec<Segment>,
    start: u64,
    size: u64,
    alignment: u64,
    page: u64,
    dynamic: Range<u64>,
    relro: Option<Range<u64>>,
}

impl Layout {
    /// Reads and checks all program headers, for memory with pages of `page` bytes.
    pub(crate) fn new(file: &[u8], class: Class, header: &FileHeader, page: u64) -> Result<Self> {
        let headers = program_headers(file, class, header)?;
        let mut layout = Self { segments: Vec::new(), start: 0, size: 0, alignment: page, page, dynamic: 0..0, relro: None };
        for (index, header) in headers.iter().enumerate() {
            match elf::ProgramType(header.kind) {
                elf::PT_LOAD => layout.add_segment(file, class, index, header)?,
                elf::PT_GNU_STACK if header.flags & elf::PF_X.0 != 0 => {
                    return Err(writable_code(index, "an executable stack is asked for"));
                }
                elf::PT_TLS => return Err(refused(&field(index, "p_type"), "PT_TLS: thread-local storage is not supported")),
                elf::PT_INTERP => return Err(refused(&field(index, "p_type"), "PT_INTERP: embedded images have no interpreter")),
                _ => {}
            }
        }
        layout.close(file)?;
        layout.dynamic = layout.dynamic_range(file, &headers)?;
        layout.relro = layout.relro_range(&headers)?;
        Ok(layout)
    }

    /// Segments in ascending order of addresses; their pages do not overlap.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Address of the image's first byte before the load bias, a multiple of the page size.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes of the image, a multiple of the page size.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Alignment that the image's first byte needs in memory.
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Addresses of the dynamic table.
    pub(crate) fn dynamic(&self) -> &Range<u64> {
        &self.dynamic
    }

    /// Addresses, whole pages, that become read-only once relocations are done.
    pub fn relro(&self) -> Option<&Range<u64>> {
        self.relro.as_ref()
    }

    /// The segment in which the whole range lies.
    pub fn segment_of(&self, address: u64, length: u64) -> Option<&Segment> {
        let after = self.segments.partition_point(|segment| segment.address <= address);
        self.segments.get(after.checked_sub(1)?).filter(|segment| segment.contains(address, length))
    }

    /// Whether the address is in a segment or just past the end of one, where pointers may point.
    pub(crate) fn is_pointee(&self, address: u64) -> bool {
        self.segment_of(address, 0).is_some()
    }

    /// Where the range stands in the image, if it lies in one segment.
    pub fn image_range(&self, address: u64, length: u64) -> Option<Range<usize>> {
        self.segment_of(address, length)?;
        let start = usize::try_from(address - self.start).ok()?;
        Some(start..start + usize::try_from(length).ok()?)
    }

    /// Address ranges of whole pages, with their final protection.
    pub fn pages(&self) -> impl Iterator<Item = (Range<u64>, Protection)> {
        self.segments.iter().map(|segment| (self.page_range(segment), segment.protection))
    }

    /// Copies the file's part of each segment into an image of zeros.
    pub(crate) fn fill(&self, file: &[u8], image: &mut [u8]) -> Result<()> {
        for segment in &self.segments {
            let target = self.image_range(segment.address, segment.file.len() as u64).and_then(|range| image.get_mut(range));
            match (target, file.get(segment.file.clone())) {
                (Some(target), Some(source)) => target.copy_from_slice(source),
                _ => return Err(refused(&field(segment.index, "p_vaddr"), "the segment does not lie in the image")),
            }
        }
        Ok(())
    }

    fn page_range(&self, segment: &Segment) -> Range<u64> {
        // `add_segment` checked that rounding up does not overflow.
        segment.address / self.page * self.page..segment.end().next_multiple_of(self.page)
    }

    fn add_segment(&mut self, file: &[u8], class: Class, index: usize, header: &ProgramHeader) -> Result<()> {
        check_alignment(index, header)?;
        self.alignment = self.alignment.max(header.alignment);
        let segment = Segment {
            index,
            file: file_range(file, index, header)?,
            address: header.address,
            memory_size: header.memory_size,
            protection: protection(index, header.flags)?,
        };
        if header.file_size > header.memory_size {
            let why = format!("{:#x} is larger than p_memsz {:#x}", header.file_size, header.memory_size);
            return Err(refused(&field(index, "p_filesz"), why));
        }
        let end = header.address.checked_add(header.memory_size).and_then(|end| end.checked_next_multiple_of(self.page));
        if end.is_none_or(|end| end.saturating_sub(1) > class.address_limit()) {
            let why = format!("{:#x} bytes (p_memsz) from {:#x} on wrap around the address space", header.memory_size, header.address);
            return Err(refused(&field(index, "p_vaddr"), why));
        }
        if header.memory_size == 0 {
            return Ok(());
        }
        if let Some(last) = self.segments.last() {
            let (last_pages, pages) = (self.page_range(last), self.page_range(&segment));
            if pages.start < last_pages.end {
                let why = format!(
                    "{:#x} lies before the end of the pages of the segment of program header {} ({:#x}, pages of {:#x} bytes)",
                    segment.address, last.index, last_pages.end, self.page
                );
                return Err(refused(&field(index, "p_vaddr"), why));
            }
        }
        self.segments.push(segment);
        Ok(())
    }

    /// Computes the image's extent once all segments are there.
    fn close(&mut self, file: &[u8]) -> Result<()> {
        let (Some(first), Some(last)) = (self.segments.first(), self.segments.last()) else {
            return Err(refused("e_phnum", "there is no PT_LOAD segment"));
        };
        self.start = self.page_range(first).start;
        self.size = self.page_range(last).end - self.start;
        let most = file.len() as u64 + MAX_EXTRA;
        // Alignment gaps come from the linker, not from what is in the file.
        let gaps = self.alignment.saturating_mul(self.segments.len() as u64 + 1);
        if self.size > most.saturating_add(gaps) {
            let why = format!("the image would take {:#x} bytes for a file of {:#x}", self.size, file.len());
            return Err(refused(&field(last.index, "p_vaddr/p_memsz"), why));
        }
        Ok(())
    }

    fn dynamic_range(&self, file: &[u8], headers: &[ProgramHeader]) -> Result<Range<u64>> {
        let mut found = of_type(headers, elf::PT_DYNAMIC);
        let Some((index, header)) = found.next() else { return Err(refused("PT_DYNAMIC", "there is none")) };
        if let Some((other, _)) = found.next() {
            return Err(refused(&field(other, "p_type"), "a second PT_DYNAMIC"));
        }
        file_range(file, index, header)?;
        check_alignment(index, header)?;
        let Some(segment) = self.segment_of(header.address, header.memory_size) else {
            let why = format!("the dynamic table, {:#x} bytes (p_memsz) at {:#x}, lies in no segment", header.memory_size, header.address);
            return Err(refused(&field(index, "p_vaddr"), why));
        };
        let in_file = (header.address - segment.address).checked_add(segment.file.start as u64);
        if in_file != Some(header.offset) {
            let why = format!("{:#x} is not where p_vaddr {:#x} comes from", header.offset, header.address);
            return Err(refused(&field(index, "p_offset"), why));
        }
        if header.file_size != header.memory_size {
            let why = format!("{:#x} differs from p_memsz {:#x}", header.file_size, header.memory_size);
            return Err(refused(&field(index, "p_filesz"), why));
        }
        Ok(header.address..header.address + header.memory_size)
    }

    /// Linkers let the range end with a page, which may be behind the end of its segment. Data that shares the last page of a
    /// range that does not end with one stays writable.
    fn relro_range(&self, headers: &[ProgramHeader]) -> Result<Option<Range<u64>>> {
        let mut found = of_type(headers, elf::PT_GNU_RELRO);
        let Some((index, header)) = found.next() else { return Ok(None) };
        if let Some((other, _)) = found.next() {
            return Err(refused(&field(other, "p_type"), "a second PT_GNU_RELRO"));
        }
        let end = header.address.checked_add(header.memory_size);
        let segment = self.segment_of(header.address, 0).filter(|segment| segment.protection == Protection::ReadWrite);
        match (segment, end) {
            (Some(segment), Some(end)) if end <= self.page_range(segment).end => {
                let (start, end) = (header.address / self.page * self.page, end / self.page * self.page);
                Ok((start < end).then_some(start..end))
            }
            _ => {
                let why = format!("{:#x} bytes (p_memsz) at {:#x} do not lie in a writable segment", header.memory_size, header.address);
                Err(refused(&field(index, "p_vaddr"), why))
            }
        }
    }
}

/// Reads the program header table.
fn program_headers(file: &[u8], class: Class, header: &FileHeader) -> Result<Vec<ProgramHeader>> {
    let size = class.program_header_bytes();
    if usize::from(header.program_header_size) != size {
        return Err(refused("e_phentsize", format!("{} instead of {size}", header.program_header_size)));
    }
    let count = header.program_header_count;
    if count == 0 || count > MAX_PROGRAM_HEADERS {
        return Err(refused("e_phnum", format!("{count} program headers; 1 to {MAX_PROGRAM_HEADERS} are taken")));
    }
    let bytes = usize::from(count) * size;
    let table = usize::try_from(header.program_headers).ok().filter(|offset| *offset >= class.file_header_bytes());
    let table = table.and_then(|offset| file.get(offset..)?.get(..bytes));
    let Some(table) = table else {
        let why = format!(
            "{count} program headers at {:#x} do not lie behind the header in a file of {:#x} bytes",
            header.program_headers,
            file.len()
        );
        return Err(refused("e_phoff", why));
    };
    Ok(table.chunks_exact(size).filter_map(|bytes| class.program_header(bytes)).collect())
}

fn of_type(headers: &[ProgramHeader], kind: elf::ProgramType) -> impl Iterator<Item = (usize, &ProgramHeader)> {
    headers.iter().enumerate().filter(move |(_, header)| header.kind == kind.0)
}

fn field(index: usize, name: &str) -> String {
    format!("program header {index}: {name}")
}

fn file_range(file: &[u8], index: usize, header: &ProgramHeader) -> Result<Range<usize>> {
    let Some(end) = header.offset.checked_add(header.file_size) else {
        let why = format!("{:#x} bytes (p_filesz) from {:#x} on wrap around", header.file_size, header.offset);
        return Err(refused(&field(index, "p_offset"), why));
    };
    if end > file.len() as u64 {
        let why =
            format!("{:#x} bytes (p_filesz) at {:#x} end behind the file of {:#x} bytes", header.file_size, header.offset, file.len());
        return Err(refused(&field(index, "p_offset"), why));
    }
    // Both fit in a `usize`, as the file's length does.
    Ok(header.offset as usize..end as usize)
}

fn check_alignment(index: usize, header: &ProgramHeader) -> Result<()> {
    let alignment = header.alignment;
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        let why = format!("{alignment:#x} is not a power of two up to {MAX_ALIGNMENT:#x}");
        return Err(refused(&field(index, "p_align"), why));
    }
    if header.address % alignment != header.offset % alignment {
        let why = format!("{:#x} and p_offset {:#x} differ modulo p_align {alignment:#x}", header.address, header.offset);
        return Err(refused(&field(index, "p_vaddr"), why));
    }
    Ok(())
}

fn protection(index: usize, flags: u32) -> Result<Protection> {
    let has = |flag: elf::ProgramFlags| flags & flag.0 != 0;
    match (has(elf::PF_R), has(elf::PF_W), has(elf::PF_X)) {
        (_, true, true) => Err(writable_code(index, "the segment is both writable and executable")),
        (_, true, false) => Ok(Protection::ReadWrite),
        (_, false, true) => Ok(Protection::ReadExecute),
        (true, false, false) => Ok(Protection::Read),
        (false, false, false) => Err(refused(&field(index, "p_flags"), format!("{flags:#x} allows no access at all"))),
    }
}

#[cold]
fn writable_code(index: usize, why: &str) -> vmfb_vm::Error {
    refused_with(Status::PermissionDenied, &field(index, "p_flags"), why)
}
