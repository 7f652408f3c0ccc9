//! FatELF: several ELF files for different machines in one.

use crate::architecture::Architecture;
use crate::file::describe_machine;
use crate::records::Class;
use vmfb_vm::{Error, Result};

const MAGIC: [u8; 4] = [0xFA, 0x70, 0x0E, 0x1F];
const HEADER_BYTES: usize = 8;
const RECORD_BYTES: usize = 24;

/// One file inside.
struct Record {
    machine: u16,
    os_abi: u8,
    class: Option<Class>,
    little_endian: bool,
    offset: u64,
    size: u64,
}

/// The ELF file for an architecture; any other kind of bytes is returned as it is.
pub fn select<'a>(bytes: &'a [u8], architecture: &Architecture) -> Result<&'a [u8]> {
    // A shorter file has no room for a header and a record: it is left to the ELF reader.
    if !bytes.starts_with(&MAGIC) || bytes.len() < HEADER_BYTES + RECORD_BYTES {
        return Ok(bytes);
    }
    let records = read_records(bytes)?;
    check_overlaps(&records)?;
    let fits = |record: &&Record| {
        let os_abi = [0, 3, 255].contains(&record.os_abi);
        record.machine == architecture.machine && record.class == Some(architecture.class) && record.little_endian && os_abi
    };
    match records.iter().find(fits) {
        // Checked to lie in the file.
        Some(record) => Ok(bytes.get(record.offset as usize..).and_then(|rest| rest.get(..record.size as usize)).unwrap_or_default()),
        None => {
            let found: Vec<String> = records.iter().map(describe).collect();
            let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
            Err(Error::invalid(format!("the FatELF file has code for {found}; this machine runs {}", architecture.name)))
        }
    }
}

fn read_records(bytes: &[u8]) -> Result<Vec<Record>> {
    let (version, count) = match bytes {
        [_, _, _, _, low, high, count, _, ..] => (u16::from_le_bytes([*low, *high]), usize::from(*count)),
        _ => return Err(Error::out_of_range("the FatELF header is cut off")),
    };
    if version != 1 {
        return Err(Error::unimplemented(format!("FatELF version is {version}; 1 is known")));
    }
    let end = HEADER_BYTES + count * RECORD_BYTES;
    let Some(table) = bytes.get(HEADER_BYTES..end) else {
        return Err(Error::out_of_range(format!("FatELF: {count} records do not fit in a file of {} bytes", bytes.len())));
    };
    let records: Vec<Record> = table.chunks_exact(RECORD_BYTES).filter_map(read_record).collect();
    for (index, record) in records.iter().enumerate() {
        let range_end = record.offset.checked_add(record.size);
        if record.offset < end as u64 || range_end.is_none_or(|end| end > bytes.len() as u64) {
            return Err(Error::out_of_range(format!(
                "FatELF record {index}: {} bytes (size) at {} (offset) do not lie between the records' end {end} and the file's end {}",
                record.size,
                record.offset,
                bytes.len()
            )));
        }
    }
    Ok(records)
}

fn read_record(bytes: &[u8]) -> Option<Record> {
    let [m0, m1, os_abi, _, word_size, byte_order, _, _, rest @ ..] = bytes else { return None };
    let (offset, size) = rest.split_at_checked(8)?;
    Some(Record {
        machine: u16::from_le_bytes([*m0, *m1]),
        os_abi: *os_abi,
        class: match word_size {
            1 => Some(Class::Elf32),
            2 => Some(Class::Elf64),
            _ => None,
        },
        little_endian: *byte_order == 1,
        offset: u64::from_le_bytes(offset.try_into().ok()?),
        size: u64::from_le_bytes(size.try_into().ok()?),
    })
}

/// No byte belongs to two files.
fn check_overlaps(records: &[Record]) -> Result<()> {
    let mut ranges: Vec<(u64, u64)> = records.iter().map(|record| (record.offset, record.offset + record.size)).collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        if let [(_, first_end), (second, _)] = pair
            && second < first_end
        {
            return Err(Error::out_of_range(format!("FatELF: two records overlap at the file offset {second}")));
        }
    }
    Ok(())
}

fn describe(record: &Record) -> String {
    let order = if record.little_endian { "" } else { ", big-endian" };
    let machine = match record.class {
        Some(class) => describe_machine(record.machine, class),
        None => format!("the machine {} (unknown word size)", record.machine),
    };
    format!("{machine}{order}")
}
