//! How each operand type is encoded, and the visitor that sees the operands of an instruction.

use super::operands::CaseSource;
use super::{
    CaseList, FunctionRef, GlobalOffset, GlobalSlot, Imm32, Imm64, MoveList, Opcode, Pc, RefList, RefMove, RefRead, RegisterList,
    RodataOrdinal, SegmentList, SwitchCase, Text, TypeOrdinal, X4, X4List, X8, X8List,
};
use crate::Error;
use crate::decode::{Cursor, Failure};
use crate::encode::Encoder;

/// Whether an instruction reads or writes an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It stands among the operands.
    Read,
    /// It stands among the results.
    Write,
}

/// The kinds of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperandKind {
    /// [`X4`].
    X4,
    /// [`X8`].
    X8,
    /// `Option<X4>`: present from 15.0 on.
    AlignmentX4,
    /// [`RefRead`].
    RefRead,
    /// [`RefMove`].
    RefMove,
    /// [`Imm32`].
    Imm32,
    /// [`Imm64`].
    Imm64,
    /// [`GlobalOffset`] of this many bytes.
    GlobalOffset(u32),
    /// [`GlobalSlot`].
    GlobalSlot,
    /// [`RodataOrdinal`].
    Rodata,
    /// [`TypeOrdinal`].
    Type,
    /// [`FunctionRef`].
    Function,
    /// [`Pc`].
    Pc,
    /// [`RegisterList`].
    Registers,
    /// [`X4List`].
    X4List,
    /// [`X8List`].
    X8List,
    /// [`RefList`].
    RefList,
    /// [`SegmentList`].
    Segments,
    /// [`MoveList`].
    Moves,
    /// [`CaseList`].
    Cases,
    /// [`Text`].
    Text,
}

impl OperandKind {
    /// The encoded size in bytes at least.
    const fn minimum_size(self) -> usize {
        match self {
            Self::AlignmentX4 => 0,
            Self::X4 | Self::X8 | Self::RefRead | Self::RefMove => 2,
            Self::Registers | Self::X4List | Self::X8List | Self::RefList | Self::Segments | Self::Moves | Self::Cases | Self::Text => 2,
            Self::Imm32 | Self::GlobalOffset(_) | Self::GlobalSlot | Self::Rodata | Self::Type | Self::Function | Self::Pc => 4,
            Self::Imm64 => 8,
        }
    }

    /// The encoded size in bytes of several operands at least.
    pub(crate) const fn total(kinds: &[Self]) -> usize {
        let (mut total, mut index) = (0, 0);
        while index < kinds.len() {
            total += kinds[index].minimum_size();
            index += 1;
        }
        total
    }
}

/// Sees the operands of an instruction in the order of their encoding. Every method does nothing unless it is overridden.
///
/// The cases of a branch table arrive as [`OperandVisitor::target`] and [`OperandVisitor::moves`], one pair per case.
#[allow(unused_variables)]
pub trait OperandVisitor<'a> {
    /// The opcode, before any operand.
    fn opcode(&mut self, opcode: Opcode) {}
    /// Every operand was shown.
    fn end(&mut self, opcode: Opcode) {}
    /// A 32-bit register.
    fn x4(&mut self, register: X4, access: Access) {}
    /// A 64-bit pair.
    fn x8(&mut self, register: X8, access: Access) {}
    /// A ref operand without MOVE.
    fn ref_read(&mut self, register: RefRead) {}
    /// A ref operand or result with MOVE.
    fn ref_move(&mut self, register: RefMove, access: Access) {}
    /// A 32-bit literal.
    fn imm32(&mut self, literal: Imm32) {}
    /// A 64-bit literal.
    fn imm64(&mut self, literal: Imm64) {}
    /// A value of `size` bytes in the primitive global area.
    fn global_offset(&mut self, offset: u32, size: u32) {}
    /// A ref global.
    fn global_slot(&mut self, slot: GlobalSlot) {}
    /// A rodata segment.
    fn rodata(&mut self, ordinal: RodataOrdinal) {}
    /// A type.
    fn type_ordinal(&mut self, ordinal: TypeOrdinal) {}
    /// A function.
    fn function(&mut self, function: FunctionRef) {}
    /// A branch target.
    fn target(&mut self, pc: Pc) {}
    /// Arguments (read) or results (written) of a call, or returned or traced values.
    fn registers(&mut self, list: RegisterList<'a>, access: Access) {}
    /// 32-bit registers.
    fn x4_list(&mut self, list: X4List<'a>) {}
    /// 64-bit pairs.
    fn x8_list(&mut self, list: X8List<'a>) {}
    /// Ref registers.
    fn ref_list(&mut self, list: RefList<'a>) {}
    /// Segments of a variadic call.
    fn segments(&mut self, list: SegmentList<'a>) {}
    /// Moves on the way to the target before them.
    fn moves(&mut self, list: MoveList<'a>) {}
    /// Number of cases of a branch table, before the cases.
    fn cases(&mut self, count: usize) {}
    /// A message.
    fn text(&mut self, text: Text<'a>) {}
}

/// An operand type: its kind, its encoding, and the visitor method that it goes to.
pub trait Operand<'a>: Copy {
    /// The kind.
    const KIND: OperandKind;
    /// Reads it.
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Failure>;
    /// Appends it. A failure is remembered by the encoder.
    fn encode(self, encoder: &mut Encoder);
    /// Shows it to the visitor.
    fn visit<V: OperandVisitor<'a> + ?Sized>(self, access: Access, visitor: &mut V);
}

/// Implements [`Operand`] for a newtype over an integer.
macro_rules! integer_operand {
    ($ty:ident, $kind:ident, $integer:ty, |$value:ident, $access:ident, $visitor:ident| $visit:expr) => {
        impl<'a> Operand<'a> for $ty {
            const KIND: OperandKind = OperandKind::$kind;
            #[inline(always)]
            fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Failure> {
                Ok(Self(<$integer>::from_le_bytes(cursor.array()?)))
            }
            fn encode(self, encoder: &mut Encoder) {
                encoder.raw(&self.0.to_le_bytes());
            }
            #[inline(always)]
            fn visit<V: OperandVisitor<'a> + ?Sized>(self, $access: Access, $visitor: &mut V) {
                let $value = self;
                $visit
            }
        }
    };
}

integer_operand!(X4, X4, u16, |value, access, visitor| visitor.x4(value, access));
integer_operand!(X8, X8, u16, |value, access, visitor| visitor.x8(value, access));
integer_operand!(RefRead, RefRead, u16, |value, _access, visitor| visitor.ref_read(value));
integer_operand!(RefMove, RefMove, u16, |value, access, visitor| visitor.ref_move(value, access));
integer_operand!(Imm32, Imm32, u32, |value, _access, visitor| visitor.imm32(value));
integer_operand!(Imm64, Imm64, u64, |value, _access, visitor| visitor.imm64(value));
integer_operand!(GlobalSlot, GlobalSlot, u32, |value, _access, visitor| visitor.global_slot(value));
integer_operand!(RodataOrdinal, Rodata, u32, |value, _access, visitor| visitor.rodata(value));
integer_operand!(TypeOrdinal, Type, u32, |value, _access, visitor| visitor.type_ordinal(value));
integer_operand!(FunctionRef, Function, u32, |value, _access, visitor| visitor.function(value));

impl<'a> Operand<'a> for Pc {
    const KIND: OperandKind = OperandKind::Pc;
    #[inline(always)]
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Failure> {
        Ok(Self(u32::from_le_bytes(cursor.array()?)))
    }
    fn encode(self, encoder: &mut Encoder) {
        encoder.target(self);
    }
    #[inline(always)]
    fn visit<V: OperandVisitor<'a> + ?Sized>(self, _access: Access, visitor: &mut V) {
        visitor.target(self);
    }
}

impl<'a, const SIZE: u32> Operand<'a> for GlobalOffset<SIZE> {
    const KIND: OperandKind = OperandKind::GlobalOffset(SIZE);
    #[inline(always)]
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Failure> {
        Ok(Self(u32::from_le_bytes(cursor.array()?)))
    }
    fn encode(self, encoder: &mut Encoder) {
        encoder.raw(&self.0.to_le_bytes());
    }
    #[inline(always)]
    fn visit<V: OperandVisitor<'a> + ?Sized>(self, _access: Access, visitor: &mut V) {
        visitor.global_offset(self.0, SIZE);
    }
}

/// The alignment of a new buffer, which 13 and 14 do not have.
impl<'a> Operand<'a> for Option<X4> {
    const KIND: OperandKind = OperandKind::AlignmentX4;
    #[inline(always)]
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Failure> {
        if cursor.version().major() >= 15 { X4::decode(cursor).map(Some) } else { Ok(None) }
    }
    fn encode(self, encoder: &mut Encoder) {
        match (self, encoder.version().major() >= 15) {
            (Some(register), true) => register.encode(encoder),
            (None, false) => {}
            (Some(_), false) => encoder.fail(Error::invalid("an alignment operand exists from bytecode 15.0 on only")),
            (None, true) => encoder.fail(Error::invalid("the alignment operand is missing; it is needed from bytecode 15.0 on")),
        }
    }
    #[inline(always)]
    fn visit<V: OperandVisitor<'a> + ?Sized>(self, access: Access, visitor: &mut V) {
        if let Some(register) = self {
            visitor.x4(register, access);
        }
    }
}

/// Implements [`Operand`] for a list of words.
macro_rules! list_operand {
    ($ty:ident, $kind:ident, |$value:ident, $access:ident, $visitor:ident| $visit:expr) => {
        impl<'a> Operand<'a> for $ty<'a> {
            const KIND: OperandKind = OperandKind::$kind;
            #[inline(always)]
            fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Failure> {
                cursor.list().map(Self::new)
            }
            fn encode(self, encoder: &mut Encoder) {
                encoder.list(self.words());
            }
            #[inline(always)]
            fn visit<V: OperandVisitor<'a> + ?Sized>(self, $access: Access, $visitor: &mut V) {
                let $value = self;
                $visit
            }
        }
    };
}

list_operand!(RegisterList, Registers, |value, access, visitor| visitor.registers(value, access));
list_operand!(X4List, X4List, |value, _access, visitor| visitor.x4_list(value));
list_operand!(X8List, X8List, |value, _access, visitor| visitor.x8_list(value));
list_operand!(RefList, RefList, |value, _access, visitor| visitor.ref_list(value));
list_operand!(SegmentList, Segments, |value, _access, visitor| visitor.segments(value));
list_operand!(MoveList, Moves, |value, _access, visitor| visitor.moves(value));

impl<'a> Operand<'a> for Text<'a> {
    const KIND: OperandKind = OperandKind::Text;
    #[inline(always)]
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Failure> {
        let length = u16::from_le_bytes(cursor.array()?);
        cursor.bytes(usize::from(length)).map(Self)
    }
    fn encode(self, encoder: &mut Encoder) {
        encoder.count(self.0.len());
        encoder.raw(self.0);
    }
    fn visit<V: OperandVisitor<'a> + ?Sized>(self, _access: Access, visitor: &mut V) {
        visitor.text(self);
    }
}

impl<'a> Operand<'a> for CaseList<'a> {
    const KIND: OperandKind = OperandKind::Cases;
    #[inline(always)]
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Failure> {
        let count = u16::from_le_bytes(cursor.array()?);
        let cases = Self(CaseSource::Encoded { count, body: cursor.body(), start: cursor.position() });
        for _ in 0..count {
            decode_case(cursor)?;
        }
        Ok(cases)
    }
    fn encode(self, encoder: &mut Encoder) {
        encoder.count(self.len());
        for case in self.iter() {
            case.to.encode(encoder);
            case.moves.encode(encoder);
        }
    }
    fn visit<V: OperandVisitor<'a> + ?Sized>(self, _access: Access, visitor: &mut V) {
        visitor.cases(self.len());
        for case in self.iter() {
            visitor.target(case.to);
            visitor.moves(case.moves);
        }
    }
}

#[inline(always)]
fn decode_case<'a>(cursor: &mut Cursor<'a>) -> Result<SwitchCase<'a>, Failure> {
    Ok(SwitchCase { to: Pc::decode(cursor)?, moves: MoveList::decode(cursor)? })
}

impl<'a> CaseList<'a> {
    /// The cases in order.
    pub fn iter(self) -> impl Iterator<Item = SwitchCase<'a>> + Clone + 'a {
        // Cases are of variable length, so an encoded list is decoded again; it was well-formed when it was decoded first.
        let (mut encoded, slice) = match self.0 {
            CaseSource::Encoded { count, body, start } => (Some((Cursor::unversioned(body, start), count)), Default::default()),
            CaseSource::Slice(cases) => (None, cases),
        };
        let mut slice = slice.iter();
        std::iter::from_fn(move || match &mut encoded {
            None => slice.next().copied(),
            Some((_, 0)) => None,
            Some((cursor, left)) => {
                *left -= 1;
                decode_case(cursor).ok()
            }
        })
    }
}
