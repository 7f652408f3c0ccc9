//! Typed operands: what the words of an instruction mean.

use std::fmt;

/// A little-endian `u16` as it stands in a list.
pub type Word = [u8; 2];

const REF_BIT: u16 = 0x8000;
const MOVE_BIT: u16 = 0x4000;
const VALUE_MASK: u16 = 0x7FFF;
const REF_MASK: u16 = 0x3FFF;

/// Bit 31 of a function operand: set for imports.
const IMPORT_BIT: u32 = 0x8000_0000;

/// The ordinal of a value register that holds 32 bits (i32 or f32).
///
/// A verified module has it in range and bit 15 clear. It may name one half of a 64-bit pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct X4(pub u16);

/// The ordinal of the low half of a 64-bit pair of value registers (i64 or f64); even in a verified module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct X8(pub u16);

/// The word of a ref operand that is only looked at.
///
/// A MOVE bit means nothing here; from 16.0 on it is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RefRead(pub u16);

/// The word of a ref operand or ref result that may carry the MOVE bit.
///
/// The bit is kept as the file has it; it means something only where [`crate::definition::BytecodeVersion::honours_move`] says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RefMove(pub u16);

/// Literal bits of an i32 or f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Imm32(pub u32);

/// Literal bits of an i64 or f64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Imm64(pub u64);

/// Byte offset in the primitive global area of a value of `SIZE` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalOffset<const SIZE: u32>(pub u32);

/// Ordinal of a ref global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalSlot(pub u32);

/// Ordinal of a rodata segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RodataOrdinal(pub u32);

/// Index into the type table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeOrdinal(pub u32);

/// A branch target: the byte offset of a block in its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pc(pub u32);

/// The function operand of a call, as encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionRef(pub u32);

/// What a call calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// The import with this ordinal.
    Import(u32),
    /// The function of the same module with this ordinal.
    Internal(u32),
}

impl X4 {
    /// The register.
    pub const fn register(self) -> Register {
        Register(self.0)
    }
}

impl X8 {
    /// The register that names the pair in a list.
    pub const fn register(self) -> Register {
        Register(self.0)
    }
}

impl RefRead {
    /// The operand for the ref register with this ordinal.
    pub const fn new(ordinal: u16) -> Self {
        Self(REF_BIT | ordinal)
    }

    /// The register ordinal.
    pub const fn ordinal(self) -> u16 {
        self.0 & REF_MASK
    }

    /// The register word.
    pub const fn register(self) -> Register {
        Register(self.0)
    }
}

impl RefMove {
    /// The operand for the ref register with this ordinal, without MOVE.
    pub const fn new(ordinal: u16) -> Self {
        Self(REF_BIT | ordinal)
    }

    /// The operand for the ref register with this ordinal, with MOVE.
    pub const fn moved(ordinal: u16) -> Self {
        Self(REF_BIT | MOVE_BIT | ordinal)
    }

    /// The register ordinal.
    pub const fn ordinal(self) -> u16 {
        self.0 & REF_MASK
    }

    /// Whether the MOVE bit is set.
    pub const fn is_move(self) -> bool {
        self.0 & MOVE_BIT != 0
    }

    /// The register word.
    pub const fn register(self) -> Register {
        Register(self.0)
    }
}

impl FunctionRef {
    /// The import with this ordinal.
    pub const fn import(ordinal: u32) -> Self {
        Self(IMPORT_BIT | ordinal)
    }

    /// The internal function with this ordinal.
    pub const fn internal(ordinal: u32) -> Self {
        Self(ordinal & !IMPORT_BIT)
    }

    /// What it refers to.
    pub const fn callee(self) -> Callee {
        if self.0 & IMPORT_BIT != 0 { Callee::Import(self.0 & !IMPORT_BIT) } else { Callee::Internal(self.0) }
    }
}

/// A register word of a list: a value register, or a ref register that may carry the MOVE bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(u16);

impl Register {
    /// The value register with this ordinal; for a 64-bit value the even ordinal of the pair.
    pub const fn value(ordinal: u16) -> Self {
        Self(ordinal & VALUE_MASK)
    }

    /// The ref register with this ordinal, without MOVE.
    pub const fn reference(ordinal: u16) -> Self {
        Self(REF_BIT | ordinal & REF_MASK)
    }

    /// The ref register with this ordinal, with MOVE.
    pub const fn moved(ordinal: u16) -> Self {
        Self(REF_BIT | MOVE_BIT | ordinal & REF_MASK)
    }

    /// The register with this encoding.
    pub const fn from_word(word: u16) -> Self {
        Self(word)
    }

    /// The encoding.
    pub const fn word(self) -> u16 {
        self.0
    }

    /// The encoding as bytes, as lists are made of.
    pub const fn to_bytes(self) -> Word {
        self.0.to_le_bytes()
    }

    /// Whether it is in the ref bank.
    pub const fn is_ref(self) -> bool {
        self.0 & REF_BIT != 0
    }

    /// Whether it is a ref register with MOVE.
    pub const fn is_move(self) -> bool {
        self.0 & (REF_BIT | MOVE_BIT) == REF_BIT | MOVE_BIT
    }

    /// The ordinal in its bank.
    pub const fn ordinal(self) -> u16 {
        if self.is_ref() { self.0 & REF_MASK } else { self.0 }
    }
}

/// The words of a list of registers: `RegisterList::new(&words([Register::value(0)]))`.
pub fn words<const N: usize>(registers: [Register; N]) -> [Word; N] {
    registers.map(Register::to_bytes)
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bank = match (self.is_ref(), self.is_move()) {
            (false, _) => 'i',
            (true, false) => 'r',
            (true, true) => 'R',
        };
        write!(f, "{bank}{}", self.ordinal())
    }
}

/// Defines a list type over little-endian words.
macro_rules! word_list {
    ($(#[$doc:meta])* $name:ident, $item:ty, $word:ident => $decode:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name<'a>(&'a [Word]);

        impl<'a> $name<'a> {
            /// A list of encoded words.
            pub const fn new(words: &'a [Word]) -> Self {
                Self(words)
            }

            /// The encoded words.
            pub const fn words(self) -> &'a [Word] {
                self.0
            }

            /// Number of entries.
            pub const fn len(self) -> usize {
                self.0.len()
            }

            /// Whether there is no entry.
            pub const fn is_empty(self) -> bool {
                self.0.is_empty()
            }

            /// The entry at the position.
            pub fn get(self, index: usize) -> Option<$item> {
                self.0.get(index).map(|&bytes| {
                    let $word = u16::from_le_bytes(bytes);
                    $decode
                })
            }

            /// The entries in order.
            pub fn iter(self) -> impl ExactSizeIterator<Item = $item> + DoubleEndedIterator + Clone + 'a {
                self.0.iter().map(|&bytes| {
                    let $word = u16::from_le_bytes(bytes);
                    $decode
                })
            }
        }

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.iter()).finish()
            }
        }
    };
}

word_list!(
    /// Registers of any bank: arguments, results, returned values.
    ///
    /// A 64-bit value is one entry, the even ordinal of its pair.
    RegisterList, Register, word => Register(word)
);
word_list!(
    /// 32-bit value registers.
    X4List, X4, word => X4(word)
);
word_list!(
    /// 64-bit pairs of value registers.
    X8List, X8, word => X8(word)
);
word_list!(
    /// Ref registers.
    RefList, RefMove, word => RefMove(word)
);
word_list!(
    /// Segments of a variadic call: [`SegmentList::PLAIN`] for a plain argument, the number of tuples for a span.
    SegmentList, u16, word => word
);

impl SegmentList<'_> {
    /// The entry for an argument that is not a span.
    pub const PLAIN: u16 = 0xFFFF;
}

/// One move of a [`MoveList`]: a 32-bit value or a ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// Where the value comes from; a ref with MOVE becomes null (in every version).
    pub source: Register,
    /// Where it goes.
    pub destination: Register,
}

impl Move {
    /// The encoding, as move lists are made of.
    pub const fn to_bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.source.to_bytes(), self.destination.to_bytes());
        [a, b, c, d]
    }

    const fn from_bytes([a, b, c, d]: [u8; 4]) -> Self {
        Self { source: Register(u16::from_le_bytes([a, b])), destination: Register(u16::from_le_bytes([c, d])) }
    }
}

/// Moves on the way to a block, performed one after another. A 64-bit value is two moves, low half first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MoveList<'a>(&'a [[u8; 4]]);

impl<'a> MoveList<'a> {
    /// No moves.
    pub const EMPTY: Self = Self(&[]);

    /// A list of encoded moves.
    pub const fn new(moves: &'a [[u8; 4]]) -> Self {
        Self(moves)
    }

    /// The encoded moves.
    pub const fn words(self) -> &'a [[u8; 4]] {
        self.0
    }

    /// Number of moves.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there is no move.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The moves in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Move> + Clone + 'a {
        self.0.iter().map(|&bytes| Move::from_bytes(bytes))
    }
}

impl fmt::Debug for MoveList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// One case of a branch table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SwitchCase<'a> {
    /// The target.
    pub to: Pc,
    /// The moves on the way to it.
    pub moves: MoveList<'a>,
}

/// The cases of a branch table, encoded or as a slice.
#[derive(Clone, Copy)]
pub struct CaseList<'a>(pub(super) CaseSource<'a>);

#[derive(Clone, Copy)]
pub(super) enum CaseSource<'a> {
    /// As the bytes of a function have them, from the first case on; checked when decoded.
    Encoded { count: u16, body: &'a [u8], start: usize },
    /// As a builder has them.
    Slice(&'a [SwitchCase<'a>]),
}

impl<'a> CaseList<'a> {
    /// The cases of a slice.
    pub const fn new(cases: &'a [SwitchCase<'a>]) -> Self {
        Self(CaseSource::Slice(cases))
    }

    /// Number of cases.
    pub const fn len(self) -> usize {
        match self.0 {
            CaseSource::Encoded { count, .. } => count as usize,
            CaseSource::Slice(cases) => cases.len(),
        }
    }

    /// Whether there is no case.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl PartialEq for CaseList<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for CaseList<'_> {}

impl fmt::Debug for CaseList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A message: bytes without a terminator, not necessarily UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}
