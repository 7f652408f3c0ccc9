//! The internal form of a function: 16-byte ops without ages, targets resolved, lists in side tables.

use crate::value_ops::for_each_value_op;
use vmfb_bytecode::calling_convention::Kind;
use vmfb_bytecode::isa::Register;

/// One internal op: an opcode, up to five register operands, one immediate. What they mean is said at [`Code`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Inst {
    pub(crate) code: Code,
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: u16,
    pub(crate) d: u16,
    pub(crate) e: u16,
    pub(crate) imm: u32,
}

const _: () = assert!(size_of::<Inst>() == 16);

/// Set in a ref operand that gives its reference away.
pub(crate) const MOVE: u16 = 0x4000;

macro_rules! define_code {
    (
        unary { $($unary:ident { $($unary_rest:tt)* } -> $unary_type:ty = $unary_body:expr;)* }
        binary { $($binary:ident { $($binary_rest:tt)* } -> $binary_type:ty = $binary_body:expr;)* }
        ternary { $($ternary:ident { $($ternary_rest:tt)* } -> $ternary_type:ty = $ternary_body:expr;)* }
        fallible { $($fallible:ident { $($fallible_rest:tt)* } -> $fallible_type:ty = $fallible_body:expr;)* }
        compare { $($compare:ident branch $branch:ident { $($compare_rest:tt)* } = $compare_body:expr;)* }
    ) => {
        /// Internal opcodes. Unless said otherwise `a` is the result and `b`, `c`, `d` are the operands in order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Code {
            $($unary,)* $($binary,)* $($ternary,)* $($fallible,)* $($compare,)*
            /// `a` = compare `b` with `c`; if true go to `imm`.
            $($branch,)*
            /// Takes `imm` units of fuel for the block that follows.
            Fuel,
            /// Looks whether somebody ended the computation.
            Poll,
            /// `a` = imm.
            Const32,
            /// `a` pair = `imm` (low), `b` and `c` (high).
            Const64,
            /// Ref `a` = null.
            ConstNull,
            /// Ref `a` = rodata buffer `imm`.
            ConstRodata,
            /// Value `a` = value `b`.
            Move32,
            /// Pair `a` = pair `b`, read before written.
            Move64,
            /// Ref `a` = ref `b` (with [`MOVE`]: taken).
            MoveRef,
            /// Ref `a` = ref `b` checked against type `imm`.
            CastRef,
            /// Value `a` = global at byte `imm`.
            GlobalLoad32,
            /// Global at byte `imm` = value `a`.
            GlobalStore32,
            /// As above, 64 bits.
            GlobalLoad64,
            /// As above, 64 bits.
            GlobalStore64,
            /// Value `a` = global at the byte in value `b`.
            GlobalLoadIndirect32,
            /// Global at the byte in value `b` = value `a`.
            GlobalStoreIndirect32,
            /// As above, 64 bits.
            GlobalLoadIndirect64,
            /// As above, 64 bits.
            GlobalStoreIndirect64,
            /// Ref `a` (with [`MOVE`]: taken out) = ref global `imm` of type `b` + `c` << 16.
            GlobalLoadRef,
            /// Ref global `imm` of type `b` + `c` << 16 = ref `a`.
            GlobalStoreRef,
            /// As above, the slot in value `imm`.
            GlobalLoadIndirectRef,
            /// As above, the slot in value `imm`.
            GlobalStoreIndirectRef,
            /// Ref `a` = new list of type `imm` with capacity in value `b`.
            ListAlloc,
            /// List in ref `a`, number in value `b`.
            ListReserve,
            /// Value `a` = size of list in ref `b`.
            ListSize,
            /// List in ref `a`, number in value `b`.
            ListResize,
            /// Value `a` = element of list in ref `b` at the index in value `c`.
            ListGetI32,
            /// Element of list in ref `b` at the index in value `c` = value `a`.
            ListSetI32,
            /// As above.
            ListGetI64,
            /// As above.
            ListSetI64,
            /// As above.
            ListGetF32,
            /// As above.
            ListSetF32,
            /// As above.
            ListGetF64,
            /// As above.
            ListSetF64,
            /// Ref `a` = element of list in ref `b` at the index in value `c`, type `imm`.
            ListGetRef,
            /// Element of list in ref `b` at the index in value `c` = ref `a`.
            ListSetRef,
            /// Ref `a` = value `b` is not 0 ? ref `c` : ref `d`, of type `imm`.
            SelectRef,
            /// Value `a` = value of list `imm` at the index in value `b`, else value `c`.
            Switch32,
            /// As above, 64 bits.
            Switch64,
            /// As above; ref, of type `d` + `e` << 16.
            SwitchRef,
            /// Value `a` = refs `b` and `c` are the same object.
            CmpEqRef,
            /// Value `a` = refs `b` and `c` are not the same object.
            CmpNeRef,
            /// Value `a` = ref `b` is not null.
            CmpNzRef,
            /// Releases ref `a`.
            DiscardRef,
            /// Goes to `imm`.
            Br,
            /// Goes to `imm` if value `a` is not 0.
            BrIf,
            /// Goes to the target in list `imm` at the index in value `a`; its last entry is the default.
            BrTable,
            /// Suspends, then goes to `imm`.
            Yield,
            /// Calls what call site `imm` says.
            CallInternal,
            /// As above, an import.
            CallImport,
            /// Returns the registers in list `imm`.
            Return,
            /// Fails with the code in value `a` and message `imm`; goes on if the code is 0.
            Fail,
            /// Value `a` = import `imm` is linked.
            ImportResolved,
            /// Ref `a` = new buffer, length in pair `b`, alignment in value `c` (`d` = 0: none).
            BufferAlloc,
            /// Ref `a` = copy of buffer `b` from pair `c`, length in pair `d`, alignment in value `e` (`imm` = 0: none).
            BufferClone,
            /// Pair `a` = length of buffer `b`.
            BufferLength,
            /// Copies from buffer `a` at pair `b` to buffer `c` at pair `d`, length in pair `e`.
            BufferCopy,
            /// Value `imm` = buffer `a` at pair `b` equals buffer `c` at pair `d`, length in pair `e`.
            BufferCompare,
            /// Fills buffer `a` from pair `b`, length in pair `c`, with value or pair `d`, element size `e`, unit of the range `imm`.
            BufferFill,
            /// Pair `a` = hash of buffer `b` from pair `c`, length in pair `d`.
            BufferHash,
            /// Value `a` = element of buffer `b` with the index in pair `c`.
            BufferLoadI8U,
            /// As above.
            BufferLoadI8S,
            /// As above.
            BufferLoadI16U,
            /// As above.
            BufferLoadI16S,
            /// As above.
            BufferLoad32,
            /// As above.
            BufferLoad64,
            /// Element of buffer `b` with the index in pair `c` = value `a`.
            BufferStore8,
            /// As above.
            BufferStore16,
            /// As above.
            BufferStore32,
            /// As above.
            BufferStore64,
        }
    };
}

for_each_value_op!(define_code);

/// A translated function.
#[derive(Debug)]
pub(crate) struct Body {
    /// The ops. The last one never falls through.
    pub(crate) code: Box<[Inst]>,
    /// Byte offset in the bytecode of each op, for error traces.
    pub(crate) pcs: Box<[u32]>,
    /// Register lists of switches and returns, branch tables.
    pub(crate) lists: Box<[Box<[u32]>]>,
    /// Messages of `fail`.
    pub(crate) messages: Box<[Box<[u8]>]>,
    /// Call sites.
    pub(crate) calls: Box<[CallSite]>,
    /// Value slots of a frame, rounded up to even so that pairs of the next frame stay even.
    pub(crate) value_slots: usize,
    /// Ref slots of a frame.
    pub(crate) ref_slots: usize,
}

/// A call, with everything that is known of it before it happens.
#[derive(Debug)]
pub(crate) struct CallSite {
    /// Ordinal of the import or of the function.
    pub(crate) callee: u32,
    /// The argument registers with their kinds, spans flattened.
    pub(crate) arguments: Box<[(Kind, Register)]>,
    /// Where internal calls put their arguments: the slot in the callee's frame, in the bank of the kind.
    pub(crate) placement: Box<[u16]>,
    /// Number of tuples of each span.
    pub(crate) segments: Box<[u16]>,
    /// The result registers with their kinds.
    pub(crate) results: Box<[(Kind, Register)]>,
    /// Whether MOVE bits of arguments are honoured.
    pub(crate) moves: Moves,
}

/// What MOVE bits mean in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// The reference is taken.
    Honoured,
    /// The bit is ignored: the reference is retained.
    Ignored,
}
