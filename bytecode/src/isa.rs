//! The instruction set: ops, opcodes and typed operands, all generated from one table.
//!
//! [`Op`] has one variant with named fields per op; [`Opcode`] names the ops without operands and knows their documentation,
//! mnemonic, version and operand kinds. Bytes become ops in [`crate::decode`] and ops become bytes in [`crate::encode`].

mod operands;
mod ops;
mod table;
mod visit;

pub use operands::{
    Callee, CaseList, FunctionRef, GlobalOffset, GlobalSlot, Imm32, Imm64, Move, MoveList, Pc, RefList, RefMove, RefRead, Register,
    RegisterList, RodataOrdinal, SegmentList, SwitchCase, Text, TypeOrdinal, Word, X4, X4List, X8, X8List, words,
};
pub(crate) use ops::{BlockFlow, unknown_opcode, walk};
pub use ops::{Op, OpSet, Opcode, OpcodeInfo, OperandInfo};
pub use visit::{Access, Operand, OperandKind, OperandVisitor};

/// The prefix byte of the f32 set.
pub const PREFIX_F32: u8 = 0xE0;
/// The prefix byte of the f64 set.
pub const PREFIX_F64: u8 = 0xE1;
