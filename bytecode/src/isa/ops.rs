//! `Op` and `Opcode`: what the op table generates.

use super::table::for_each_op;
use super::visit::{Access, Operand, OperandKind, OperandVisitor};
use super::{
    CaseList, FunctionRef, GlobalOffset, GlobalSlot, Imm32, Imm64, MoveList, PREFIX_F32, PREFIX_F64, Pc, RefList, RefMove, RefRead,
    RegisterList, RodataOrdinal, SegmentList, Text, TypeOrdinal, X4, X4List, X8, X8List,
};
use crate::Error;
use crate::decode::{Cursor, Failure};
use crate::encode::Encoder;

/// The three opcode sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpSet {
    /// Single-byte opcodes.
    Core,
    /// Behind the prefix [`PREFIX_F32`].
    F32,
    /// Behind the prefix [`PREFIX_F64`].
    F64,
}

/// What the op table says about an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeInfo {
    /// Name of the [`Op`] variant.
    pub name: &'static str,
    /// Mnemonic, for example `add.i32`.
    pub mnemonic: &'static str,
    /// What it does.
    pub documentation: &'static str,
    /// The set.
    pub set: OpSet,
    /// The opcode byte in its set.
    pub byte: u8,
    /// The first bytecode major that has it.
    pub since_major: u32,
    /// The month of the first compiler that wrote it, where the major did not change for it.
    pub since_month: Option<&'static str>,
    /// Whether it ends a block.
    pub is_terminator: bool,
    /// Operands and results in the order of their encoding.
    pub operands: &'static [OperandInfo],
}

/// An operand of an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandInfo {
    /// Name of the field.
    pub name: &'static str,
    /// Kind.
    pub kind: OperandKind,
    /// Operand or result.
    pub access: Access,
}

const UNASSIGNED: u8 = 0xFF;

/// Whether the flag is there.
macro_rules! is_terminator {
    () => {
        false
    };
    (terminator) => {
        true
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($value:literal) => {
        Some($value)
    };
}

macro_rules! define_ops {
    ($($set:ident { $(
        $(#[doc = $doc:literal])*
        $byte:literal $mnemonic:literal since $major:literal $($month:literal)? $name:ident
        { $($field:ident : $ty:ty),* } $(-> { $($result:ident : $result_ty:ty),* })? $($flag:ident)?;
    )* })*) => {
        /// A decoded instruction. Lists and texts are borrowed from the bytecode (or from what a builder made).
        // The fields are what they are called; the variants say what is done with them.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Op<'a> {
            $($($(#[doc = $doc])* $name { $($field: $ty,)* $($($result: $result_ty,)*)? },)*)*
        }

        /// An opcode. The number is the opcode byte, with the prefix byte in the high half where there is one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Opcode {
            $($($(#[doc = $doc])* $name = prefix!($set) | $byte,)*)*
        }

        impl Opcode {
            /// Every opcode, in the order of the table.
            pub const ALL: &'static [Self] = &[$($(Self::$name,)*)*];

            /// Whether it ends a block.
            #[inline]
            pub const fn is_terminator(self) -> bool {
                match self {
                    $($(Self::$name => is_terminator!($($flag)?),)*)*
                }
            }

            /// What the op table says.
            pub const fn info(self) -> &'static OpcodeInfo {
                match self {
                    $($(Self::$name => Op::info_of(self),)*)*
                }
            }
        }

        impl<'a> Op<'a> {
            /// The opcode.
            pub const fn opcode(&self) -> Opcode {
                match self {
                    $($(Self::$name { .. } => Opcode::$name,)*)*
                }
            }

            /// Whether it ends a block.
            #[inline]
            pub const fn is_terminator(&self) -> bool {
                match self {
                    $($(Self::$name { .. } => is_terminator!($($flag)?),)*)*
                }
            }

            /// What the op table says about an opcode (here because operand types borrow).
            const fn info_of(opcode: Opcode) -> &'static OpcodeInfo {
                match opcode {
                    $($(Opcode::$name => const {
                        &OpcodeInfo {
                            name: stringify!($name),
                            mnemonic: $mnemonic,
                            documentation: concat!($($doc),*).trim_ascii(),
                            set: set!($set),
                            byte: $byte,
                            since_major: $major,
                            since_month: optional!($($month)?),
                            is_terminator: is_terminator!($($flag)?),
                            operands: &[
                                $(OperandInfo {
                                    name: stringify!($field),
                                    kind: <$ty as Operand<'a>>::KIND,
                                    access: Access::Read,
                                },)*
                                $($(OperandInfo {
                                    name: stringify!($result),
                                    kind: <$result_ty as Operand<'a>>::KIND,
                                    access: Access::Write,
                                },)*)?
                            ],
                        }
                    },)*)*
                }
            }

            /// Reads the instruction at the cursor.
            pub(crate) fn decode(cursor: &mut Cursor<'a>) -> Result<Self, Failure> {
                match cursor.opcode()? {
                    $($(Opcode::$name => {
                        $(let $field = <$ty as Operand<'a>>::decode(cursor)?;)*
                        $($(let $result = <$result_ty as Operand<'a>>::decode(cursor)?;)*)?
                        Ok(Self::$name { $($field,)* $($($result,)*)? })
                    })*)*
                }
            }

            /// Appends the operands; the opcode is already there.
            pub(crate) fn encode_operands(&self, encoder: &mut Encoder) {
                match *self {
                    $($(Self::$name { $($field,)* $($($result,)*)? } => {
                        $($field.encode(encoder);)*
                        $($($result.encode(encoder);)*)?
                    })*)*
                }
            }

            /// Shows the operands to a visitor.
            pub fn visit(&self, visitor: &mut dyn OperandVisitor<'a>) {
                visitor.opcode(self.opcode());
                match *self {
                    $($(Self::$name { $($field,)* $($($result,)*)? } => {
                        $($field.visit(Access::Read, visitor);)*
                        $($($result.visit(Access::Write, visitor);)*)?
                    })*)*
                }
            }
        }

        /// Shows the operands of the instruction at the cursor to a visitor, without building an [`Op`]: one dispatch and one bounds
        /// check per instruction, which is what makes verification fast. Gives
        /// what is left of the body. All of that goes through machine registers: a `Result` with contents would go through memory.
        #[inline(always)]
        pub(crate) fn walk<'a, V: OperandVisitor<'a>>(cursor: Cursor<'a>, visitor: &mut V) -> (&'a [u8], BlockFlow) {
            $(set_walker! { $set { $(
                $byte $major $name { $($field : $ty,)* } { $($($result : $result_ty,)*)? } is_terminator!($($flag)?);
            )* } })*
            walk_core(cursor, visitor)
        }

        $(impl SetTable<{ prefix!($set) }> {
            /// The opcode of each byte of this set.
            const OPCODES: [Option<Opcode>; 256] = {
                let mut table = [None; 256];
                $(table[$byte] = Some(Opcode::$name);)*
                table
            };
            /// The first major that has the opcode of each byte of this set.
            const SINCE: [u8; 256] = {
                let mut table = [UNASSIGNED; 256];
                $(table[$byte] = $major;)*
                table
            };
        })*
    };
}

/// Defines the walker of one opcode set.
macro_rules! set_walker {
    (core $arms:tt) => {
        set_walker! { #[inline(always)] walk_core core $arms
            PREFIX_F32 => walk_f32,
            PREFIX_F64 => walk_f64,
        }
    };
    (f32 $arms:tt) => {
        set_walker! { #[inline(never)] walk_f32 f32 $arms }
    };
    (f64 $arms:tt) => {
        set_walker! { #[inline(never)] walk_f64 f64 $arms }
    };
    (#[$inline:meta] $walker:ident $set:ident { $(
        $byte:literal $major:literal $name:ident { $($field:ident : $ty:ty,)* } { $($result:ident : $result_ty:ty,)* } $is_terminator:expr;
    )* } $($prefix:path => $next:ident,)*) => {
        #[$inline]
        fn $walker<'a, V: OperandVisitor<'a>>(mut cursor: Cursor<'a>, visitor: &mut V) -> (&'a [u8], BlockFlow) {
            /// Leaves with [`BlockFlow::Fails`].
            macro_rules! get {
                ($decoded:expr) => {
                    match $decoded {
                        Ok(decoded) => decoded,
                        Err(_) => return (&[], BlockFlow::Fails),
                    }
                };
            }
            let [byte] = get!(cursor.array());
            match byte {
                $($prefix => $next(cursor, visitor),)*
                $($byte if $major == 13 || $major <= cursor.version().major() => {
                    visitor.opcode(Opcode::$name);
                    get!(cursor.reserve(const {
                        OperandKind::total(&[$(<$ty as Operand<'a>>::KIND,)* $(<$result_ty as Operand<'a>>::KIND,)*])
                    }));
                    $(get!(<$ty as Operand<'a>>::decode(&mut cursor)).visit(Access::Read, visitor);)*
                    $(get!(<$result_ty as Operand<'a>>::decode(&mut cursor)).visit(Access::Write, visitor);)*
                    visitor.end(Opcode::$name);
                    (cursor.rest(), if $is_terminator { BlockFlow::Ends } else { BlockFlow::Continues })
                })*
                _ => (&[], BlockFlow::Fails),
            }
        }
    };
}

/// Whether the block goes on after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockFlow {
    /// It does.
    Continues,
    /// The instruction was a terminator.
    Ends,
    /// There is no instruction; [`Op::decode`] tells why.
    Fails,
}

/// The prefix of a set, as it stands in [`Opcode`].
macro_rules! prefix {
    (core) => {
        0
    };
    (f32) => {
        (PREFIX_F32 as u16) << 8
    };
    (f64) => {
        (PREFIX_F64 as u16) << 8
    };
}

macro_rules! set {
    (core) => {
        OpSet::Core
    };
    (f32) => {
        OpSet::F32
    };
    (f64) => {
        OpSet::F64
    };
}

struct SetTable<const PREFIX: u16>;

for_each_op!(define_ops);

static OPCODES: [[Option<Opcode>; 256]; 3] =
    [SetTable::<0>::OPCODES, SetTable::<{ prefix!(f32) }>::OPCODES, SetTable::<{ prefix!(f64) }>::OPCODES];
static SINCE: [[u8; 256]; 3] = [SetTable::<0>::SINCE, SetTable::<{ prefix!(f32) }>::SINCE, SetTable::<{ prefix!(f64) }>::SINCE];

impl Opcode {
    /// The opcode with this byte in this set, if one is assigned in bytecode of this major.
    #[inline]
    pub fn find(set: OpSet, byte: u8, major: u32) -> Option<Self> {
        let (set, byte) = (set as usize, usize::from(byte));
        if u32::from(SINCE[set][byte]) <= major { OPCODES[set][byte] } else { None }
    }

    /// The set that it belongs to.
    pub const fn set(self) -> OpSet {
        match (self as u16 >> 8) as u8 {
            PREFIX_F32 => OpSet::F32,
            PREFIX_F64 => OpSet::F64,
            _ => OpSet::Core,
        }
    }

    /// The mnemonic, for example `add.i32`.
    pub const fn mnemonic(self) -> &'static str {
        self.info().mnemonic
    }
}

impl Op<'_> {
    /// The mnemonic, for example `add.i32`.
    pub const fn mnemonic(&self) -> &'static str {
        self.opcode().mnemonic()
    }
}

/// The refusal of a byte that is no opcode.
#[cold]
pub(crate) fn unknown_opcode(set: OpSet, byte: u8, major: u32) -> Error {
    let prefix = match set {
        OpSet::Core => "",
        OpSet::F32 => "E0 ",
        OpSet::F64 => "E1 ",
    };
    match OPCODES[set as usize][usize::from(byte)] {
        Some(newer) => Error::invalid(format!(
            "opcode {prefix}{byte:02X} ({}) exists from bytecode {}.0 on, the module is {major}.0",
            newer.mnemonic(),
            newer.info().since_major
        )),
        None => Error::invalid(format!("opcode {prefix}{byte:02X} is not assigned")),
    }
}
