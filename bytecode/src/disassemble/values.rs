//! How operands look as text.

use std::fmt::{self, Write};

use crate::isa::{RefMove, RefRead, Register, X4, X8};

/// Text of a module with everything escaped that is not printable, and with quotes and backslashes escaped.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0)
    }
}

/// A name that is repeated wherever it is used: escaped, and cut where it is long, so that a listing stays in proportion to the code.
pub(super) struct Name<'a>(pub(super) &'a str);

/// No real name comes near.
const LONGEST_NAME: usize = 200;

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(LONGEST_NAME) {
            None => escape(f, self.0),
            Some((end, _)) => {
                escape(f, self.0.get(..end).unwrap_or_default())?;
                f.write_char('…')
            }
        }
    }
}

/// Bytes of a module as escaped text; what is not UTF-8 is shown byte by byte.
pub(super) struct EscapedBytes<'a>(pub(super) &'a [u8]);

impl fmt::Display for EscapedBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            escape(f, chunk.valid())?;
            write!(f, "{}", chunk.invalid().escape_ascii())?;
        }
        Ok(())
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|character| match character {
        // Quotes of texts are double ones.
        '\'' => f.write_char(character),
        _ => write!(f, "{}", character.escape_debug()),
    })
}

/// A 32-bit value register.
pub(super) struct Slot(pub(super) u16);

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%i{}", self.0)
    }
}

/// A pair of value registers.
pub(super) struct Pair(pub(super) u16);

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%i{}:{}", self.0, u32::from(self.0) + 1)
    }
}

/// A register word of any bank.
struct Word(Register);

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{:?}", self.0)
    }
}

/// An operand that is one register.
pub(super) trait Operand: Copy {
    /// Its text.
    fn text(self) -> String;
}

impl Operand for X4 {
    fn text(self) -> String {
        Slot(self.0).to_string()
    }
}

impl Operand for X8 {
    fn text(self) -> String {
        Pair(self.0).to_string()
    }
}

impl Operand for RefRead {
    fn text(self) -> String {
        Word(self.register()).to_string()
    }
}

impl Operand for RefMove {
    fn text(self) -> String {
        Word(self.register()).to_string()
    }
}

impl Operand for Register {
    fn text(self) -> String {
        Word(self).to_string()
    }
}

/// Registers with commas between them.
pub(super) fn list<T: Operand>(registers: impl IntoIterator<Item = T>) -> String {
    registers.into_iter().map(T::text).collect::<Vec<_>>().join(", ")
}
