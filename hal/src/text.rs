//! Names and messages that programs pass as buffers.

use smallvec::SmallVec;
use std::ops::Deref;
use vmfb_vm::Buffer;

/// What users of compilers 3.11 to 3.13 can do about a null reference in place of a tensor constant.
pub const LOST_CONSTANT_HINT: &str = "the compilers 3.11 to 3.13 lose tensor constants in the inline modes; compile with \
--iree-opt-const-expr-hoisting=false and --iree-flow-inline-constants-max-byte-length=268435456, or in the default execution model";

/// Names of functions and formats are far shorter.
const MAXIMUM_NAME: usize = 64 << 10;

/// Longest part of a message that is shown.
const MAXIMUM_MESSAGE: usize = 1024;

/// A name read from a buffer; up to 128 bytes are not allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(SmallVec<[u8; 128]>);

impl Name {
    /// The text of a buffer; `None` if it is no UTF-8 or too long for a name. A NUL at the end is dropped.
    pub fn read(buffer: &Buffer) -> Option<Self> {
        let bytes = read_bytes(buffer, MAXIMUM_NAME).filter(|bytes| bytes.len() == buffer.len())?;
        let mut bytes = bytes;
        if bytes.last() == Some(&0) {
            bytes.pop();
        }
        std::str::from_utf8(&bytes).is_ok().then_some(Self(bytes))
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// The text of a buffer for messages and traces: what is no UTF-8 is replaced, control characters are escaped, what is long is
/// cut.
pub fn printable(buffer: &Buffer) -> String {
    let bytes = read_bytes(buffer, MAXIMUM_MESSAGE).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(&bytes));
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    if buffer.len() > MAXIMUM_MESSAGE {
        printable.push_str("...");
    }
    printable
}

/// The first bytes of a buffer, at most `limit`.
fn read_bytes(buffer: &Buffer, limit: usize) -> Option<SmallVec<[u8; 128]>> {
    let mut bytes = SmallVec::from_elem(0, buffer.len().min(limit));
    buffer.span().read(0, &mut bytes).ok().map(|()| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_exactly() {
        let name = |bytes: &[u8]| Name::read(&Buffer::constant(bytes));
        assert_eq!(name(b"embedded-elf-x86_64").as_deref(), Some("embedded-elf-x86_64"));
        assert_eq!(name(b"main\0").as_deref(), Some("main"));
        assert_eq!(name(b"").as_deref(), Some(""));
        assert_eq!(name(b"\xFF\xFE"), None);
        let long = vec![b'a'; 1000];
        assert_eq!(name(&long).as_deref(), std::str::from_utf8(&long).ok());
        assert_eq!(name(&vec![b'a'; MAXIMUM_NAME + 1]), None);
    }

    #[test]
    fn messages_cannot_control_a_terminal() {
        assert_eq!(printable(&Buffer::constant(*b"a\x1B[1m\n\xFFb\0")), "a\\u{1b}[1m\\n\u{FFFD}b");
        assert_eq!(printable(&Buffer::constant(vec![b'x'; 2000])).len(), MAXIMUM_MESSAGE + 3);
    }
}
