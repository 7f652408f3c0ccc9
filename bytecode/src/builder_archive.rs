//! A FlatBuffer and external constants as an archive: plain, or a ZIP64 archive whose members are stored.

use super::ArchiveForm;
use crate::archive::{RODATA_ALIGNMENT, ZIP_LOCAL_HEADER, ZIP_LOCAL_HEADER_SIZE};
use crate::{Error, Result};
use std::ops::Range;

const MODULE_NAME: &str = "module.fb";
/// Extra field that carries padding, and the size of its head.
const PADDING_FIELD: u16 = 0xFECA;
const FIELD_HEAD: usize = 4;
/// Extra field with 64-bit sizes, and its size in a local header.
const ZIP64_FIELD: u16 = 1;
const ZIP64_LOCAL: usize = FIELD_HEAD + 16;
const VERSION: u16 = 45;
/// 1980-01-01, the first day that the format knows.
const DATE: u16 = 0x21;
/// Says that a 32-bit field stands in the ZIP64 part.
const IN_ZIP64: [u8; 4] = [0xFF; 4];

/// Ranges of the external constants, counted from the start of the external area.
pub(super) fn external_layout(external: &[&[u8]], form: ArchiveForm) -> Vec<Range<u64>> {
    let mut cursor = 0_usize;
    let mut ranges = Vec::with_capacity(external.len());
    for (index, bytes) in external.iter().enumerate() {
        cursor = match form {
            ArchiveForm::Plain => cursor.next_multiple_of(RODATA_ALIGNMENT),
            ArchiveForm::Zip => cursor + local_header_size(cursor, &constant_name(index)),
        };
        ranges.push(cursor as u64..(cursor + bytes.len()) as u64);
        cursor += bytes.len();
    }
    ranges
}

/// Puts an archive together. The constants come to lie where [`external_layout`] says.
pub(super) fn assemble(flatbuffer: &[u8], external: &[&[u8]], form: ArchiveForm) -> Result<Vec<u8>> {
    match form {
        ArchiveForm::Plain => plain(flatbuffer, external),
        ArchiveForm::Zip => zip(flatbuffer, external),
    }
}

fn plain(flatbuffer: &[u8], external: &[&[u8]]) -> Result<Vec<u8>> {
    let mut bytes = size_prefix(flatbuffer.len())?.to_vec();
    bytes.extend_from_slice(flatbuffer);
    bytes.resize(bytes.len().next_multiple_of(RODATA_ALIGNMENT), 0);
    for constant in external {
        bytes.resize(bytes.len().next_multiple_of(RODATA_ALIGNMENT), 0);
        bytes.extend_from_slice(constant);
    }
    Ok(bytes)
}

/// The module member has its size prefix and its padding in it, so that it is a module by itself.
fn zip(flatbuffer: &[u8], external: &[&[u8]]) -> Result<Vec<u8>> {
    let padded = (4 + flatbuffer.len()).next_multiple_of(RODATA_ALIGNMENT);
    let mut module = size_prefix(padded - 4)?.to_vec();
    module.extend_from_slice(flatbuffer);
    module.resize(padded, 0);

    let mut zip = Zip::default();
    zip.member(MODULE_NAME, &module)?;
    for (index, constant) in external.iter().enumerate() {
        zip.member(&constant_name(index), constant)?;
    }
    Ok(zip.finish())
}

fn size_prefix(length: usize) -> Result<[u8; 4]> {
    let length = u32::try_from(length).map_err(|_| Error::invalid(format!("a module definition of {length} bytes is too large")))?;
    Ok(length.to_le_bytes())
}

fn constant_name(index: usize) -> String {
    format!("rodata_{index}.bin")
}

/// Size of a local header at `position` with padding that aligns the member's content.
fn local_header_size(position: usize, name: &str) -> usize {
    let bare = position + ZIP_LOCAL_HEADER_SIZE + name.len() + FIELD_HEAD + ZIP64_LOCAL;
    bare.next_multiple_of(RODATA_ALIGNMENT) - position
}

#[derive(Default)]
struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    members: u64,
}

impl Zip {
    fn member(&mut self, name: &str, content: &[u8]) -> Result<()> {
        let name_length = u16::try_from(name.len()).map_err(|_| Error::invalid("a member name is too long"))?;
        let position = self.bytes.len();
        let header = local_header_size(position, name);
        let extra = header - ZIP_LOCAL_HEADER_SIZE - name.len();
        let padding = extra - FIELD_HEAD - ZIP64_LOCAL;
        let sizes = [(content.len() as u64).to_le_bytes(); 2].concat();
        let common = common_header(crc32(content), name_length);

        self.bytes.extend_from_slice(&ZIP_LOCAL_HEADER.to_le_bytes());
        self.bytes.extend_from_slice(&common);
        self.bytes.extend_from_slice(&(extra as u16).to_le_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(&field_head(PADDING_FIELD, padding));
        self.bytes.resize(self.bytes.len() + padding, 0);
        self.bytes.extend_from_slice(&field_head(ZIP64_FIELD, sizes.len()));
        self.bytes.extend_from_slice(&sizes);
        self.bytes.extend_from_slice(content);

        self.directory.extend_from_slice(b"PK\x01\x02");
        self.directory.extend_from_slice(&VERSION.to_le_bytes());
        self.directory.extend_from_slice(&common);
        self.directory.extend_from_slice(&(FIELD_HEAD as u16 + 24).to_le_bytes());
        // Comment length, disk number, internal and external attributes.
        self.directory.extend_from_slice(&[0; 10]);
        self.directory.extend_from_slice(&IN_ZIP64);
        self.directory.extend_from_slice(name.as_bytes());
        self.directory.extend_from_slice(&field_head(ZIP64_FIELD, 24));
        self.directory.extend_from_slice(&sizes);
        self.directory.extend_from_slice(&(position as u64).to_le_bytes());
        self.members += 1;
        Ok(())
    }

    fn finish(mut self) -> Vec<u8> {
        let directory = self.bytes.len() as u64;
        let size = self.directory.len() as u64;
        self.bytes.append(&mut self.directory);
        let end = self.bytes.len() as u64;
        let counts = [self.members.to_le_bytes(); 2].concat();

        self.bytes.extend_from_slice(b"PK\x06\x06");
        // Size of the rest of this record, versions made by and needed, disk numbers.
        self.bytes.extend_from_slice(&44_u64.to_le_bytes());
        self.bytes.extend_from_slice(&[VERSION.to_le_bytes(); 2].concat());
        self.bytes.extend_from_slice(&[0; 8]);
        self.bytes.extend_from_slice(&counts);
        self.bytes.extend_from_slice(&size.to_le_bytes());
        self.bytes.extend_from_slice(&directory.to_le_bytes());

        self.bytes.extend_from_slice(b"PK\x06\x07\0\0\0\0");
        self.bytes.extend_from_slice(&end.to_le_bytes());
        self.bytes.extend_from_slice(&1_u32.to_le_bytes());

        self.bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        let count = u16::try_from(self.members).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&[count.to_le_bytes(); 2].concat());
        self.bytes.extend_from_slice(&u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend_from_slice(&IN_ZIP64);
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes
    }
}

/// What local headers and directory entries have in common: from the version to the name length.
fn common_header(crc: u32, name_length: u16) -> Vec<u8> {
    let mut bytes = VERSION.to_le_bytes().to_vec();
    // Flags, method (stored), time.
    bytes.extend_from_slice(&[0; 6]);
    bytes.extend_from_slice(&DATE.to_le_bytes());
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(&IN_ZIP64);
    bytes.extend_from_slice(&IN_ZIP64);
    bytes.extend_from_slice(&name_length.to_le_bytes());
    bytes
}

fn field_head(id: u16, size: usize) -> Vec<u8> {
    [id.to_le_bytes(), (size as u16).to_le_bytes()].concat()
}

/// The CRC of ZIP: polynomial 0xEDB88320, reflected, inverted at both ends.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(u32::MAX, |crc, byte| TABLE[((crc ^ u32::from(*byte)) & 0xFF) as usize] ^ (crc >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_the_usual_check_string() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
