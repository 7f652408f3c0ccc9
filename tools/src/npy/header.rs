//! The dictionary in the header of an array file: a small, fixed part of Python's literals.

use crate::failure::{Failure, Result};
use vmfb_hal::MAX_RANK;

/// What the header says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Dictionary {
    /// The element type string.
    pub(super) descr: String,
    /// Whether the first dimension varies fastest.
    pub(super) fortran_order: bool,
    /// Dimensions.
    pub(super) shape: Vec<u64>,
}

impl Dictionary {
    /// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, keys in any order.
    pub(super) fn parse(text: &[u8]) -> Result<Self> {
        let mut cursor = Cursor { text, at: 0 };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        cursor.expect(b'{')?;
        while !cursor.take_if(b'}') {
            let key = cursor.string()?;
            cursor.expect(b':')?;
            match key.as_str() {
                "descr" if cursor.peek() == Some(b'[') => {
                    return Err(Failure::invalid("the elements of the array are records, wanted plain numbers"));
                }
                "descr" => descr = Some(cursor.string()?),
                "fortran_order" => fortran_order = Some(cursor.boolean()?),
                "shape" => shape = Some(cursor.tuple()?),
                _ => return Err(cursor.error(&format!("the unknown key '{key}'"), "'descr', 'fortran_order' or 'shape'")),
            }
            if !cursor.take_if(b',') {
                cursor.expect(b'}')?;
                break;
            }
        }
        if cursor.peek().is_some() {
            return Err(cursor.error("more text", "the end"));
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Self { descr, fortran_order, shape }),
            (descr, order, _) => {
                let missing = if descr.is_none() { "'descr'" } else { if order.is_none() { "'fortran_order'" } else { "'shape'" } };
                Err(cursor.error("the end", &format!("the key {missing}")))
            }
        }
    }
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take_if(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: u8) -> Result<()> {
        if self.take_if(wanted) {
            return Ok(());
        }
        let found = self.found();
        Err(self.error(&found, &format!("'{}'", char::from(wanted))))
    }

    fn string(&mut self) -> Result<String> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else {
            let found = self.found();
            return Err(self.error(&found, "a string"));
        };
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == quote);
        let content = length.and_then(|length| rest.get(..length));
        let Some(content) = content.filter(|content| content.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\')) else {
            return Err(self.error("a string with unusual characters or no end", "a short plain string"));
        };
        self.at += content.len() + 2;
        Ok(content.iter().map(|byte| char::from(*byte)).collect())
    }

    fn boolean(&mut self) -> Result<bool> {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        for (word, value) in [("False", false), ("True", true)] {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        let found = self.found();
        Err(self.error(&found, "True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<u64>> {
        let mut dimensions = Vec::new();
        self.expect(b'(')?;
        while !self.take_if(b')') {
            if dimensions.len() > MAX_RANK {
                return Err(Failure::invalid(format!("the array has more than {MAX_RANK} dimensions")));
            }
            dimensions.push(self.integer()?);
            if !self.take_if(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(dimensions)
    }

    fn integer(&mut self) -> Result<u64> {
        self.peek();
        let start = self.at;
        let mut value = Some(0u64);
        while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
            self.at += 1;
        }
        if self.at == start {
            let found = self.found();
            return Err(self.error(&found, "a dimension"));
        }
        // Python 2 wrote long integers with an L.
        self.at += usize::from(self.text.get(self.at) == Some(&b'L'));
        value.ok_or_else(|| self.error("a dimension that does not fit in 64 bits", "a smaller one"))
    }

    fn found(&mut self) -> String {
        match self.peek() {
            Some(byte) if byte.is_ascii_graphic() => format!("'{}'", char::from(byte)),
            Some(byte) => format!("the byte {byte:#04x}"),
            None => "the end".to_owned(),
        }
    }

    fn error(&self, found: &str, wanted: &str) -> Failure {
        Failure::invalid(format!("the header of the array file has {found} at byte {} of its dictionary, wanted {wanted}", self.at))
    }
}
