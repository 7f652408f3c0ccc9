//! Array files: read or refused; what was read has as many bytes as its shape says.

use vmfb_tools::npy::{header, read};

/// No array in an input of the fuzzer is larger.
const LIMIT: u64 = 1 << 24;

/// Reads arrays to the end, and writes the header of each.
pub fn check(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some(array)) = read(&mut rest, LIMIT) {
        let count: u64 = array.shape.iter().product();
        assert_eq!(array.element_type.bytes_of(count), Some(array.bytes.len() as u64));
        if let Ok(text) = header(&array.shape, array.element_type) {
            let mut copy = text;
            copy.extend_from_slice(&array.bytes);
            let again = read(&mut copy.as_slice(), LIMIT);
            assert_eq!(again.expect("what was written can be read"), Some(array));
        }
    }
}
