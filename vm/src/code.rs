//! Internal ops: 16 bytes each, without ages, with targets resolved.

use crate::access_ops::for_each_access_op;
use crate::interpreter::ThreadedOp;
use crate::value_ops::for_each_value_op;

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

impl Inst {
    /// An op with operands `a` to `e` and the immediate.
    pub(crate) const fn new(code: Code, [a, b, c, d, e]: [u16; 5], imm: u32) -> Self {
        Self { code, a, b, c, d, e, imm }
    }

    /// How far a branch goes, in ops from itself.
    #[inline(always)]
    pub(crate) const fn distance(&self) -> isize {
        distance(self.imm)
    }
}

/// A distance as branches and branch tables have it: in bytes, so that going there takes no multiplication.
pub(crate) const fn encode_distance(ops: isize) -> u32 {
    (ops * size_of::<ThreadedOp>() as isize) as u32
}

/// The distance in ops that is encoded.
#[inline(always)]
pub(crate) const fn distance(encoded: u32) -> isize {
    encoded.cast_signed() as isize / size_of::<ThreadedOp>() as isize
}

macro_rules! define_code {
    (
        load { $($load:ident $load_sum:ident $load_sum3:ident $load_fma:ident $load_fma_sum:ident $load_and:ident
            = $load_method:ident -> $load_type:ty = $load_by:expr;)* }
        store { $($store:ident $store_sum:ident $store_sum3:ident $store_fma:ident $store_fma_sum:ident $store_and:ident
            = $store_method:ident <- $store_type:ty = $store_by:expr;)* }
        unary { $($unary:ident { $($unary_rest:tt)* } -> $unary_type:ty = $unary_body:expr;)* }
        binary { $($binary:ident { $($binary_rest:tt)* } -> $binary_type:ty = $binary_body:expr;)* }
        ternary { $($ternary:ident { $($ternary_rest:tt)* } -> $ternary_type:ty = $ternary_body:expr;)* }
        fallible { $($fallible:ident { $($fallible_rest:tt)* } -> $fallible_type:ty = $fallible_body:expr;)* }
        compare { $($compare:ident branch $branch:ident unless $unless:ident { $($compare_rest:tt)* } = $compare_body:expr;)* }
    ) => {
        /// Internal opcodes. Unless said otherwise `a` is the result and `b`, `c`, `d` are the operands in order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Code {
            $($unary,)* $($binary,)* $($ternary,)* $($fallible,)* $($compare,)*
            /// Compares `b` with `c`; if it holds goes on at the distance `imm`.
            $($branch,)*
            /// As above, if it does not hold.
            $($unless,)*
            /// Value `a` = element of buffer `b` with the index in pair `c`.
            $($load,)*
            /// As above, with the index pair `e` = pair `c` + pair `d`.
            $($load_sum,)*
            /// As above, with the index pair `imm` = pair `c` + pair `d` + pair `e`.
            $($load_sum3,)*
            /// As above, with the index pair `imm` = pair `c` * pair `d` + pair `e`.
            $($load_fma,)*
            /// As above, with the index pair `imm` (low half) = pair `c` * pair `d` + pair `e` + pair `imm` (high half).
            $($load_fma_sum,)*
            /// As above, with the index pair `e` = pair `c` and pair `d`.
            $($load_and,)*
            /// Element of buffer `b` with the index in pair `c` = value `a`.
            $($store,)*
            /// With an index as loads have it.
            $($store_sum,)*
            /// With an index as loads have it.
            $($store_sum3,)*
            /// With an index as loads have it.
            $($store_fma,)*
            /// With an index as loads have it.
            $($store_fma_sum,)*
            /// With an index as loads have it.
            $($store_and,)*
            /// Value `imm` = element of buffer `b` with the index in pair `c`; value `a` = that + value `d`; the element = value `a`.
            /// For floats bit 16 of `imm` says that the element is the second summand.
            UpdateAddI32,
            /// As above.
            UpdateAddF32,
            /// As above, with value `d` * value `e` + the element.
            UpdateFmaI32,
            /// As above.
            UpdateFmaF32,
            /// Value `a` = value `d` + value `b` * value `c`, floats; as `FmaF32` but for the payloads of NaNs.
            SumFmaF32,
            /// As above, 64 bits.
            SumFmaF64,
            /// Takes `imm` units of fuel for the block that follows.
            Fuel,
            /// Tells the engine's tracer of the instruction at `imm` of function `a` (low half), `b` (high half).
            Trace,
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
            /// Releases all refs of the frame.
            ReleaseRefs,
            /// Goes on at the distance `imm`.
            Br,
            /// As above, if value `b` is not 0.
            BrIf,
            /// As above, if value `b` is 0.
            BrUnless,
            /// As above, if pair `b` is not 0.
            BrIf64,
            /// As above, if pair `b` is 0.
            BrUnless64,
            /// Adds value `b` to value `a`; goes on at the distance `imm` if the sum is less than value `c`, signed.
            AddBrLtI32S,
            /// As above, with pairs.
            AddBrLtI64S,
            /// Goes on at the distance in list `imm` at the index in value `a`; its last entry is the default.
            BrTable,
            /// Suspends, then goes on at the distance `imm`.
            Yield,
            /// Calls what call site `imm` says; values stand in the callee's registers already, a single result goes to `a`.
            Call,
            /// As above, with refs among arguments or results, or with several results.
            CallGeneral,
            /// Calls the import that call site `imm` says.
            CallImport,
            /// Returns the registers in list `imm`.
            Return,
            /// As above: none, from a frame without refs.
            Return0,
            /// As above: value `a` alone, from a frame without refs.
            Return32,
            /// As above, a pair.
            Return64,
            /// Fails with the code in value `a` and message `imm`.
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
            /// Notes how deep the processor's stack is, for the self-test.
            Probe,
        }

        impl Code {
            /// The opcode that compares and branches in one, if the compare holds.
            pub(crate) const fn branch(self) -> Option<Self> {
                match self {
                    $(Self::$compare => Some(Self::$branch),)*
                    _ => None,
                }
            }

            /// The conditional branch that is taken when this one is not.
            pub(crate) const fn negated(self) -> Option<Self> {
                match self {
                    $(Self::$branch => Some(Self::$unless),)*
                    $(Self::$unless => Some(Self::$branch),)*
                    Self::BrIf => Some(Self::BrUnless),
                    Self::BrUnless => Some(Self::BrIf),
                    Self::BrIf64 => Some(Self::BrUnless64),
                    Self::BrUnless64 => Some(Self::BrIf64),
                    _ => None,
                }
            }

            /// The forms of an access to an element that compute its index.
            pub(crate) const fn index_forms(self) -> Option<IndexForms> {
                match self {
                    $(Self::$load => Some(IndexForms {
                        sum: Self::$load_sum,
                        sum3: Self::$load_sum3,
                        fma: Self::$load_fma,
                        fma_sum: Self::$load_fma_sum,
                        and: Self::$load_and,
                    }),)*
                    $(Self::$store => Some(IndexForms {
                        sum: Self::$store_sum,
                        sum3: Self::$store_sum3,
                        fma: Self::$store_fma,
                        fma_sum: Self::$store_fma_sum,
                        and: Self::$store_and,
                    }),)*
                    _ => None,
                }
            }
        }
    };
}

macro_rules! define_with_accesses {
    ($($accesses:tt)*) => {
        for_each_value_op!(define_code $($accesses)*);
    };
}

for_each_access_op!(define_with_accesses);

impl Code {
    /// How many opcodes there are.
    pub(crate) const COUNT: usize = Self::Probe as usize + 1;
}

/// The opcodes of one access with an index that is computed in various ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexForms {
    pub(crate) sum: Code,
    pub(crate) sum3: Code,
    pub(crate) fma: Code,
    pub(crate) fma_sum: Code,
    pub(crate) and: Code,
}
