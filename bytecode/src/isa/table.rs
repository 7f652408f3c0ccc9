//! The op table: every opcode of every bytecode version, stated once.

/// Hands the whole op table to the macro named by the argument, as three sets: `core`, `f32` (behind prefix `E0`) and `f64` (behind
/// prefix `E1`).
///
/// A row is: documentation, opcode byte, mnemonic, `since` the bytecode major that first had the opcode (and the month of the first
/// compiler that wrote it, where that was later), name, `{ operands }`, `-> { results }`, and `terminator` for ops that end a block.
/// Operands stand in the order of their encoding and results come last; the type of an operand decides how it is encoded, what the
/// verifier checks and how the disassembler writes it (see [`super::operands`]).
macro_rules! for_each_op {
    ($consumer:ident) => {
        $consumer! {
        core {
            /// Reads an i32 global.
            0x00 "global.load.i32" since 13 GlobalLoadI32 { offset: GlobalOffset<4> } -> { dst: X4 };
            /// Writes an i32 global.
            0x01 "global.store.i32" since 13 GlobalStoreI32 { offset: GlobalOffset<4>, value: X4 };
            /// Reads an i32 global whose position is in a register.
            0x02 "global.load.indirect.i32" since 13 GlobalLoadIndirectI32 { offset: X4 } -> { dst: X4 };
            /// Writes an i32 global whose position is in a register.
            0x03 "global.store.indirect.i32" since 13 GlobalStoreIndirectI32 { offset: X4, value: X4 };
            /// Reads an i64 global.
            0x04 "global.load.i64" since 13 GlobalLoadI64 { offset: GlobalOffset<8> } -> { dst: X8 };
            /// Writes an i64 global.
            0x05 "global.store.i64" since 13 GlobalStoreI64 { offset: GlobalOffset<8>, value: X8 };
            /// Reads an i64 global whose position is in a register.
            0x06 "global.load.indirect.i64" since 13 GlobalLoadIndirectI64 { offset: X4 } -> { dst: X8 };
            /// Writes an i64 global whose position is in a register.
            0x07 "global.store.indirect.i64" since 13 GlobalStoreIndirectI64 { offset: X4, value: X8 };
            /// Reads a ref global.
            0x08 "global.load.ref" since 13 GlobalLoadRef { slot: GlobalSlot, type_ordinal: TypeOrdinal } -> { dst: RefMove };
            /// Writes a ref global.
            0x09 "global.store.ref" since 13 GlobalStoreRef { slot: GlobalSlot, type_ordinal: TypeOrdinal, value: RefMove };
            /// Reads a ref global whose position is in a register.
            0x0A "global.load.indirect.ref" since 13 GlobalLoadIndirectRef { slot: X4, type_ordinal: TypeOrdinal } -> { dst: RefMove };
            /// Writes a ref global whose position is in a register.
            0x0B "global.store.indirect.ref" since 13 GlobalStoreIndirectRef { slot: X4, type_ordinal: TypeOrdinal, value: RefMove };
            /// i32 zero.
            0x0C "const.i32.zero" since 13 ConstI32Zero {} -> { dst: X4 };
            /// i32 literal.
            0x0D "const.i32" since 13 ConstI32 { value: Imm32 } -> { dst: X4 };
            /// i64 zero.
            0x0E "const.i64.zero" since 13 ConstI64Zero {} -> { dst: X8 };
            /// i64 literal.
            0x0F "const.i64" since 13 ConstI64 { value: Imm64 } -> { dst: X8 };
            /// Null.
            0x10 "const.ref.zero" since 13 ConstRefZero {} -> { dst: RefMove };
            /// The buffer of a rodata segment.
            0x11 "const.ref.rodata" since 13 ConstRefRodata { rodata: RodataOrdinal } -> { dst: RefMove };
            /// A new list of size 0.
            0x12 "list.alloc" since 13 ListAlloc { element: TypeOrdinal, capacity: X4 } -> { dst: RefMove };
            /// Makes room for at least that many elements.
            0x13 "list.reserve" since 13 ListReserve { list: RefRead, capacity: X4 };
            /// Number of elements.
            0x14 "list.size" since 13 ListSize { list: RefRead } -> { dst: X4 };
            /// Cuts off elements or appends empty ones.
            0x15 "list.resize" since 13 ListResize { list: RefRead, size: X4 };
            /// Reads an element as i32.
            0x16 "list.get.i32" since 13 ListGetI32 { list: RefRead, index: X4 } -> { dst: X4 };
            /// Writes an element as i32.
            0x17 "list.set.i32" since 13 ListSetI32 { list: RefRead, index: X4, value: X4 };
            /// Reads an element as i64.
            0x18 "list.get.i64" since 13 ListGetI64 { list: RefRead, index: X4 } -> { dst: X8 };
            /// Writes an element as i64.
            0x19 "list.set.i64" since 13 ListSetI64 { list: RefRead, index: X4, value: X8 };
            /// Reads an element; null if it is of another type.
            0x1A "list.get.ref" since 13 ListGetRef { list: RefRead, index: X4, type_ordinal: TypeOrdinal } -> { dst: RefMove };
            /// Writes an element.
            0x1B "list.set.ref" since 13 ListSetRef { list: RefRead, index: X4, value: RefMove };
            /// One of two i32 values.
            0x1C "select.i32" since 13 SelectI32 { condition: X4, if_true: X4, if_false: X4 } -> { dst: X4 };
            /// One of two i64 values.
            0x1D "select.i64" since 13 SelectI64 { condition: X4, if_true: X8, if_false: X8 } -> { dst: X8 };
            /// One of two references; type-checked.
            0x1E "select.ref" since 13 SelectRef
                { condition: X4, type_ordinal: TypeOrdinal, if_true: RefMove, if_false: RefMove } -> { dst: RefMove };
            /// The i32 value at the signed index, or the default.
            0x1F "switch.i32" since 13 SwitchI32 { index: X4, default: X4, values: X4List<'a> } -> { dst: X4 };
            /// The i64 value at the signed index, or the default.
            0x20 "switch.i64" since 13 SwitchI64 { index: X4, default: X8, values: X8List<'a> } -> { dst: X8 };
            /// The value at the signed index, or the default; type-checked.
            0x21 "switch.ref" since 13 SwitchRef
                { index: X4, type_ordinal: TypeOrdinal, default: RefMove, values: RefList<'a> } -> { dst: RefMove };
            /// a + b, i32, wrapping.
            0x22 "add.i32" since 13 AddI32 { a: X4, b: X4 } -> { dst: X4 };
            /// a - b, i32, wrapping.
            0x23 "sub.i32" since 13 SubI32 { a: X4, b: X4 } -> { dst: X4 };
            /// a * b, i32, wrapping.
            0x24 "mul.i32" since 13 MulI32 { a: X4, b: X4 } -> { dst: X4 };
            /// a / b, i32, signed.
            0x25 "div.i32.s" since 13 DivI32S { a: X4, b: X4 } -> { dst: X4 };
            /// a / b, i32, unsigned.
            0x26 "div.i32.u" since 13 DivI32U { a: X4, b: X4 } -> { dst: X4 };
            /// a % b, i32, signed.
            0x27 "rem.i32.s" since 13 RemI32S { a: X4, b: X4 } -> { dst: X4 };
            /// a % b, i32, unsigned.
            0x28 "rem.i32.u" since 13 RemI32U { a: X4, b: X4 } -> { dst: X4 };
            /// a * b + c, i32, wrapping.
            0x29 "fma.i32" since 13 FmaI32 { a: X4, b: X4, c: X4 } -> { dst: X4 };
            /// a + b, i64, wrapping.
            0x2A "add.i64" since 13 AddI64 { a: X8, b: X8 } -> { dst: X8 };
            /// a - b, i64, wrapping.
            0x2B "sub.i64" since 13 SubI64 { a: X8, b: X8 } -> { dst: X8 };
            /// a * b, i64, wrapping.
            0x2C "mul.i64" since 13 MulI64 { a: X8, b: X8 } -> { dst: X8 };
            /// a / b, i64, signed.
            0x2D "div.i64.s" since 13 DivI64S { a: X8, b: X8 } -> { dst: X8 };
            /// a / b, i64, unsigned.
            0x2E "div.i64.u" since 13 DivI64U { a: X8, b: X8 } -> { dst: X8 };
            /// a % b, i64, signed.
            0x2F "rem.i64.s" since 13 RemI64S { a: X8, b: X8 } -> { dst: X8 };
            /// a % b, i64, unsigned.
            0x30 "rem.i64.u" since 13 RemI64U { a: X8, b: X8 } -> { dst: X8 };
            /// a * b + c, i64, wrapping.
            0x31 "fma.i64" since 13 FmaI64 { a: X8, b: X8, c: X8 } -> { dst: X8 };
            /// Inverted bits, i32.
            0x32 "not.i32" since 13 NotI32 { a: X4 } -> { dst: X4 };
            /// a and b, bitwise, i32.
            0x33 "and.i32" since 13 AndI32 { a: X4, b: X4 } -> { dst: X4 };
            /// a or b, bitwise, i32.
            0x34 "or.i32" since 13 OrI32 { a: X4, b: X4 } -> { dst: X4 };
            /// a exclusive-or b, bitwise, i32.
            0x35 "xor.i32" since 13 XorI32 { a: X4, b: X4 } -> { dst: X4 };
            /// Inverted bits, i64.
            0x36 "not.i64" since 13 NotI64 { a: X8 } -> { dst: X8 };
            /// a and b, bitwise, i64.
            0x37 "and.i64" since 13 AndI64 { a: X8, b: X8 } -> { dst: X8 };
            /// a or b, bitwise, i64.
            0x38 "or.i64" since 13 OrI64 { a: X8, b: X8 } -> { dst: X8 };
            /// a exclusive-or b, bitwise, i64.
            0x39 "xor.i64" since 13 XorI64 { a: X8, b: X8 } -> { dst: X8 };
            /// Shift left, i32.
            0x3A "shl.i32" since 13 ShlI32 { a: X4, amount: X4 } -> { dst: X4 };
            /// Shift right, i32, arithmetic.
            0x3B "shr.i32.s" since 13 ShrI32S { a: X4, amount: X4 } -> { dst: X4 };
            /// Shift right, i32, logical.
            0x3C "shr.i32.u" since 13 ShrI32U { a: X4, amount: X4 } -> { dst: X4 };
            /// Shift left, i64.
            0x3D "shl.i64" since 13 ShlI64 { a: X8, amount: X4 } -> { dst: X8 };
            /// Shift right, i64, arithmetic.
            0x3E "shr.i64.s" since 13 ShrI64S { a: X8, amount: X4 } -> { dst: X8 };
            /// Shift right, i64, logical.
            0x3F "shr.i64.u" since 13 ShrI64U { a: X8, amount: X4 } -> { dst: X8 };
            /// Keeps the low bits: i32 to i8, zero-extended in the register.
            0x40 "trunc.i32.i8" since 13 TruncI32I8 { a: X4 } -> { dst: X4 };
            /// Keeps the low bits: i32 to i16, zero-extended in the register.
            0x41 "trunc.i32.i16" since 13 TruncI32I16 { a: X4 } -> { dst: X4 };
            /// Keeps the low bits: i64 to i32.
            0x42 "trunc.i64.i32" since 13 TruncI64I32 { a: X8 } -> { dst: X4 };
            /// Extends i8 to i32, signed.
            0x43 "ext.i8.i32.s" since 13 ExtI8I32S { a: X4 } -> { dst: X4 };
            /// Extends i8 to i32, unsigned.
            0x44 "ext.i8.i32.u" since 13 ExtI8I32U { a: X4 } -> { dst: X4 };
            /// Extends i16 to i32, signed.
            0x45 "ext.i16.i32.s" since 13 ExtI16I32S { a: X4 } -> { dst: X4 };
            /// Extends i16 to i32, unsigned.
            0x46 "ext.i16.i32.u" since 13 ExtI16I32U { a: X4 } -> { dst: X4 };
            /// Extends i32 to i64, signed.
            0x47 "ext.i32.i64.s" since 13 ExtI32I64S { a: X4 } -> { dst: X8 };
            /// Extends i32 to i64, unsigned.
            0x48 "ext.i32.i64.u" since 13 ExtI32I64U { a: X4 } -> { dst: X8 };
            /// 1 if a = b, else 0; i32.
            0x49 "cmp.eq.i32" since 13 CmpEqI32 { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a ≠ b, else 0; i32.
            0x4A "cmp.ne.i32" since 13 CmpNeI32 { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a < b, else 0; i32, signed.
            0x4B "cmp.lt.i32.s" since 13 CmpLtI32S { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a < b, else 0; i32, unsigned.
            0x4C "cmp.lt.i32.u" since 13 CmpLtI32U { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if i32 is not 0, else 0.
            0x4D "cmp.nz.i32" since 13 CmpNzI32 { a: X4 } -> { dst: X4 };
            /// 1 if a = b, else 0; i64.
            0x4E "cmp.eq.i64" since 13 CmpEqI64 { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a ≠ b, else 0; i64.
            0x4F "cmp.ne.i64" since 13 CmpNeI64 { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a < b, else 0; i64, signed.
            0x50 "cmp.lt.i64.s" since 13 CmpLtI64S { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a < b, else 0; i64, unsigned.
            0x51 "cmp.lt.i64.u" since 13 CmpLtI64U { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if i64 is not 0, else 0.
            0x52 "cmp.nz.i64" since 13 CmpNzI64 { a: X8 } -> { dst: X4 };
            /// 1 if both are the same object, else 0.
            0x53 "cmp.eq.ref" since 13 CmpEqRef { a: RefRead, b: RefRead } -> { dst: X4 };
            /// 0 if both are the same object, else 1.
            0x54 "cmp.ne.ref" since 13 CmpNeRef { a: RefRead, b: RefRead } -> { dst: X4 };
            /// 1 if ref is not null, else 0.
            0x55 "cmp.nz.ref" since 13 CmpNzRef { a: RefRead } -> { dst: X4 };
            /// Jumps.
            0x56 "br" since 13 Br { to: Pc, moves: MoveList<'a> } terminator;
            /// Jumps to one of two blocks; only the moves of the taken side happen.
            0x57 "cond_br" since 13 CondBr
                { condition: X4, true_to: Pc, true_moves: MoveList<'a>, false_to: Pc, false_moves: MoveList<'a> } terminator;
            /// Calls a function without spans.
            0x58 "call" since 13 Call { callee: FunctionRef, arguments: RegisterList<'a> } -> { results: RegisterList<'a> };
            /// Calls an import; the segments give the tuple count of each span.
            0x59 "call.variadic" since 13 CallVariadic
                { callee: FunctionRef, segments: SegmentList<'a>, arguments: RegisterList<'a> } -> { results: RegisterList<'a> };
            /// Returns the values.
            0x5A "return" since 13 Return { values: RegisterList<'a> } terminator;
            /// Fails the invocation with the status code and message.
            0x5B "fail" since 13 Fail { code: X4, message: Text<'a> } terminator;
            /// 1 if the optional import was linked, else 0.
            0x5C "import.resolved" since 13 ImportResolved { callee: FunctionRef } -> { dst: X4 };
            /// Suspends the invocation; it continues at the target.
            0x5D "yield" since 13 Yield { to: Pc, moves: MoveList<'a> } terminator;
            /// Debug aid without an effect on values.
            0x5E "trace" since 13 Trace { message: Text<'a>, values: RegisterList<'a> };
            /// Debug aid without an effect on values.
            0x5F "print" since 13 Print { message: Text<'a>, values: RegisterList<'a> };
            /// Debug aid: jumps whatever the condition says.
            0x60 "cond_break" since 13 CondBreak { condition: X4, to: Pc, moves: MoveList<'a> } terminator;
            /// Debug aid: jumps.
            0x61 "break" since 13 Break { to: Pc, moves: MoveList<'a> } terminator;
            /// Reads the i8 element at an element offset, zero-extended.
            0x62 "buffer.load.i8.u" since 13 BufferLoadI8U { source: RefRead, source_offset: X8 } -> { dst: X4 };
            /// Reads the i8 element at an element offset, sign-extended.
            0x63 "buffer.load.i8.s" since 13 BufferLoadI8S { source: RefRead, source_offset: X8 } -> { dst: X4 };
            /// Reads the i16 element at an element offset, zero-extended.
            0x64 "buffer.load.i16.u" since 13 BufferLoadI16U { source: RefRead, source_offset: X8 } -> { dst: X4 };
            /// Reads the i16 element at an element offset, sign-extended.
            0x65 "buffer.load.i16.s" since 13 BufferLoadI16S { source: RefRead, source_offset: X8 } -> { dst: X4 };
            /// Reads the i32 element at an element offset.
            0x66 "buffer.load.i32" since 13 BufferLoadI32 { source: RefRead, source_offset: X8 } -> { dst: X4 };
            /// Reads the i64 element at an element offset.
            0x67 "buffer.load.i64" since 13 BufferLoadI64 { source: RefRead, source_offset: X8 } -> { dst: X8 };
            /// Writes the i8 element at an element offset.
            0x68 "buffer.store.i8" since 13 BufferStoreI8 { target: RefRead, target_offset: X8, value: X4 };
            /// Writes the i16 element at an element offset.
            0x69 "buffer.store.i16" since 13 BufferStoreI16 { target: RefRead, target_offset: X8, value: X4 };
            /// Writes the i32 element at an element offset.
            0x6A "buffer.store.i32" since 13 BufferStoreI32 { target: RefRead, target_offset: X8, value: X4 };
            /// Writes the i64 element at an element offset.
            0x6B "buffer.store.i64" since 13 BufferStoreI64 { target: RefRead, target_offset: X8, value: X8 };
            /// A new buffer of zeros.
            0x6C "buffer.alloc" since 13 BufferAlloc { length: X8, alignment: Option<X4> } -> { dst: RefMove };
            /// A new buffer with a copy of a byte range.
            0x6D "buffer.clone" since 13 BufferClone { source: RefRead, offset: X8, length: X8, alignment: Option<X4> } -> { dst: RefMove };
            /// Length in bytes.
            0x6E "buffer.length" since 13 BufferLength { buffer: RefRead } -> { dst: X8 };
            /// Copies a byte range.
            0x6F "buffer.copy" since 13 BufferCopy { source: RefRead, source_offset: X8, target: RefRead, target_offset: X8, length: X8 };
            /// 1 if two byte ranges are equal, else 0.
            0x70 "buffer.compare" since 13 BufferCompare { a: RefRead, a_offset: X8, b: RefRead, b_offset: X8, length: X8 } -> { dst: X4 };
            /// Fills a range of i8 elements (13: the range is in bytes).
            0x71 "buffer.fill.i8" since 13 BufferFillI8 { target: RefRead, target_offset: X8, length: X8, value: X4 };
            /// Fills a range of i16 elements (13: the range is in bytes).
            0x72 "buffer.fill.i16" since 13 BufferFillI16 { target: RefRead, target_offset: X8, length: X8, value: X4 };
            /// Fills a range of i32 elements (13: the range is in bytes).
            0x73 "buffer.fill.i32" since 13 BufferFillI32 { target: RefRead, target_offset: X8, length: X8, value: X4 };
            /// Fills a range of i64 elements (13: the range is in bytes).
            0x74 "buffer.fill.i64" since 13 BufferFillI64 { target: RefRead, target_offset: X8, length: X8, value: X8 };
            /// Number of leading zero bits, i32.
            0x75 "ctlz.i32" since 13 CtlzI32 { a: X4 } -> { dst: X4 };
            /// Number of leading zero bits, i64.
            0x76 "ctlz.i64" since 13 CtlzI64 { a: X8 } -> { dst: X8 };
            /// Absolute value, i32.
            0x77 "abs.i32" since 13 AbsI32 { a: X4 } -> { dst: X4 };
            /// Absolute value, i64.
            0x78 "abs.i64" since 13 AbsI64 { a: X8 } -> { dst: X8 };
            /// Marks the start of a basic block; does nothing.
            0x79 "block" since 14 Block {};
            /// Smaller value, i32, signed.
            0x7A "min.i32.s" since 15 MinI32S { a: X4, b: X4 } -> { dst: X4 };
            /// Smaller value, i32, unsigned.
            0x7B "min.i32.u" since 15 MinI32U { a: X4, b: X4 } -> { dst: X4 };
            /// Larger value, i32, signed.
            0x7C "max.i32.s" since 15 MaxI32S { a: X4, b: X4 } -> { dst: X4 };
            /// Larger value, i32, unsigned.
            0x7D "max.i32.u" since 15 MaxI32U { a: X4, b: X4 } -> { dst: X4 };
            /// Smaller value, i64, signed.
            0x7E "min.i64.s" since 15 MinI64S { a: X8, b: X8 } -> { dst: X8 };
            /// Smaller value, i64, unsigned.
            0x7F "min.i64.u" since 15 MinI64U { a: X8, b: X8 } -> { dst: X8 };
            /// Larger value, i64, signed.
            0x80 "max.i64.s" since 15 MaxI64S { a: X8, b: X8 } -> { dst: X8 };
            /// Larger value, i64, unsigned.
            0x81 "max.i64.u" since 15 MaxI64U { a: X8, b: X8 } -> { dst: X8 };
            /// Reference of any type to a reference of a certain type.
            0x82 "cast.any.ref" since 15 "2023-05" CastAnyRef { a: RefMove, type_ordinal: TypeOrdinal } -> { dst: RefMove };
            /// Jumps to the case at the signed index, or to the default.
            0x83 "br_table" since 15 "2023-10" BrTable
                { index: X4, default_to: Pc, default_moves: MoveList<'a>, cases: CaseList<'a> } terminator;
            /// SipHash-2-4 of a byte range.
            0x84 "buffer.hash" since 15 "2024-01" BufferHash { source: RefRead, source_offset: X8, length: X8 } -> { dst: X8 };
            /// Releases the registers.
            0x85 "discard.refs" since 16 DiscardRefs { refs: RefList<'a> };
            /// Copies or moves a reference.
            0x86 "assign.ref" since 16 AssignRef { source: RefMove } -> { dst: RefMove };
            /// Calls a function that may yield and continues in the resume block.
            0x87 "call.yieldable" since 17 CallYieldable
                { callee: FunctionRef, arguments: RegisterList<'a>, resume: Pc } -> { results: RegisterList<'a> } terminator;
            /// Calls an import that may yield and continues in the resume block.
            0x88 "call.variadic.yieldable" since 17 CallVariadicYieldable
                { callee: FunctionRef, segments: SegmentList<'a>, arguments: RegisterList<'a>, resume: Pc }
                -> { results: RegisterList<'a> } terminator;
        }
        f32 {
            /// Reads an f32 global.
            0x00 "global.load.f32" since 13 GlobalLoadF32 { offset: GlobalOffset<4> } -> { dst: X4 };
            /// Writes an f32 global.
            0x01 "global.store.f32" since 13 GlobalStoreF32 { offset: GlobalOffset<4>, value: X4 };
            /// Reads an f32 global whose position is in a register.
            0x02 "global.load.indirect.f32" since 13 GlobalLoadIndirectF32 { offset: X4 } -> { dst: X4 };
            /// Writes an f32 global whose position is in a register.
            0x03 "global.store.indirect.f32" since 13 GlobalStoreIndirectF32 { offset: X4, value: X4 };
            /// f32 zero.
            0x04 "const.f32.zero" since 13 ConstF32Zero {} -> { dst: X4 };
            /// f32 literal.
            0x05 "const.f32" since 13 ConstF32 { value: Imm32 } -> { dst: X4 };
            /// Reads an element as f32.
            0x06 "list.get.f32" since 13 ListGetF32 { list: RefRead, index: X4 } -> { dst: X4 };
            /// Writes an element as f32.
            0x07 "list.set.f32" since 13 ListSetF32 { list: RefRead, index: X4, value: X4 };
            /// One of two f32 values.
            0x08 "select.f32" since 13 SelectF32 { condition: X4, if_true: X4, if_false: X4 } -> { dst: X4 };
            /// The f32 value at the signed index, or the default.
            0x09 "switch.f32" since 13 SwitchF32 { index: X4, default: X4, values: X4List<'a> } -> { dst: X4 };
            /// a + b, f32.
            0x0A "add.f32" since 13 AddF32 { a: X4, b: X4 } -> { dst: X4 };
            /// a - b, f32.
            0x0B "sub.f32" since 13 SubF32 { a: X4, b: X4 } -> { dst: X4 };
            /// a * b, f32.
            0x0C "mul.f32" since 13 MulF32 { a: X4, b: X4 } -> { dst: X4 };
            /// a / b, f32.
            0x0D "div.f32" since 13 DivF32 { a: X4, b: X4 } -> { dst: X4 };
            /// IEEE remainder (quotient to nearest even), f32.
            0x0E "rem.f32" since 13 RemF32 { a: X4, b: X4 } -> { dst: X4 };
            /// a * b + c, f32, rounded twice.
            0x0F "fma.f32" since 13 FmaF32 { a: X4, b: X4, c: X4 } -> { dst: X4 };
            /// Absolute value, f32.
            0x10 "abs.f32" since 13 AbsF32 { a: X4 } -> { dst: X4 };
            /// Negated value, f32.
            0x11 "neg.f32" since 13 NegF32 { a: X4 } -> { dst: X4 };
            /// Rounded up, f32.
            0x12 "ceil.f32" since 13 CeilF32 { a: X4 } -> { dst: X4 };
            /// Rounded down, f32.
            0x13 "floor.f32" since 13 FloorF32 { a: X4 } -> { dst: X4 };
            /// Converts si32 to f32, half to even.
            0x14 "cast.si32.f32" since 13 CastSi32F32 { a: X4 } -> { dst: X4 };
            /// Converts ui32 to f32, half to even.
            0x15 "cast.ui32.f32" since 13 CastUi32F32 { a: X4 } -> { dst: X4 };
            /// Converts f32 to si32, half away from zero.
            0x16 "cast.f32.si32" since 13 CastF32Si32 { a: X4 } -> { dst: X4 };
            /// Converts f32 to ui32, half away from zero.
            0x17 "cast.f32.ui32" since 13 CastF32Ui32 { a: X4 } -> { dst: X4 };
            /// The same bits: i32 to f32.
            0x18 "bitcast.i32.f32" since 13 BitcastI32F32 { a: X4 } -> { dst: X4 };
            /// The same bits: f32 to i32.
            0x19 "bitcast.f32.i32" since 13 BitcastF32I32 { a: X4 } -> { dst: X4 };
            /// Arc tangent, f32.
            0x1A "atan.f32" since 13 AtanF32 { a: X4 } -> { dst: X4 };
            /// Arc tangent of a / b by quadrant, f32.
            0x1B "atan2.f32" since 13 Atan2F32 { a: X4, b: X4 } -> { dst: X4 };
            /// Cosine, f32.
            0x1C "cos.f32" since 13 CosF32 { a: X4 } -> { dst: X4 };
            /// Sine, f32.
            0x1D "sin.f32" since 13 SinF32 { a: X4 } -> { dst: X4 };
            /// e to the power a, f32.
            0x1E "exp.f32" since 13 ExpF32 { a: X4 } -> { dst: X4 };
            /// 2 to the power a, f32.
            0x1F "exp2.f32" since 13 Exp2F32 { a: X4 } -> { dst: X4 };
            /// e to the power a, minus 1, f32.
            0x20 "expm1.f32" since 13 Expm1F32 { a: X4 } -> { dst: X4 };
            /// Natural logarithm, f32.
            0x21 "log.f32" since 13 LogF32 { a: X4 } -> { dst: X4 };
            /// Logarithm to base 10, f32.
            0x22 "log10.f32" since 13 Log10F32 { a: X4 } -> { dst: X4 };
            /// Natural logarithm of 1 + a, f32.
            0x23 "log1p.f32" since 13 Log1pF32 { a: X4 } -> { dst: X4 };
            /// Logarithm to base 2, f32.
            0x24 "log2.f32" since 13 Log2F32 { a: X4 } -> { dst: X4 };
            /// a to the power b, f32.
            0x25 "pow.f32" since 13 PowF32 { a: X4, b: X4 } -> { dst: X4 };
            /// 1 / square root, f32.
            0x26 "rsqrt.f32" since 13 RsqrtF32 { a: X4 } -> { dst: X4 };
            /// Square root, f32.
            0x27 "sqrt.f32" since 13 SqrtF32 { a: X4 } -> { dst: X4 };
            /// Hyperbolic tangent, f32.
            0x28 "tanh.f32" since 13 TanhF32 { a: X4 } -> { dst: X4 };
            /// Error function, f32.
            0x29 "erf.f32" since 13 ErfF32 { a: X4 } -> { dst: X4 };
            /// 1 if a = b, else 0; f32, plain compare.
            0x2A "cmp.eq.f32.o" since 13 CmpEqF32O { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a = b, else 0; f32, 1 if either is NaN.
            0x2B "cmp.eq.f32.u" since 13 CmpEqF32U { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a ≠ b, else 0; f32, plain compare.
            0x2C "cmp.ne.f32.o" since 13 CmpNeF32O { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a ≠ b, else 0; f32, 1 if either is NaN.
            0x2D "cmp.ne.f32.u" since 13 CmpNeF32U { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a < b, else 0; f32, plain compare.
            0x2E "cmp.lt.f32.o" since 13 CmpLtF32O { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a < b, else 0; f32, 1 if either is NaN.
            0x2F "cmp.lt.f32.u" since 13 CmpLtF32U { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a ≤ b, else 0; f32, plain compare.
            0x30 "cmp.lte.f32.o" since 13 CmpLteF32O { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if a ≤ b, else 0; f32, 1 if either is NaN.
            0x31 "cmp.lte.f32.u" since 13 CmpLteF32U { a: X4, b: X4 } -> { dst: X4 };
            /// 1 if f32 is NaN, else 0.
            0x32 "cmp.nan.f32" since 13 CmpNanF32 { a: X4 } -> { dst: X4 };
            /// Reads the f32 element at an element offset.
            0x33 "buffer.load.f32" since 13 BufferLoadF32 { source: RefRead, source_offset: X8 } -> { dst: X4 };
            /// Writes the f32 element at an element offset.
            0x34 "buffer.store.f32" since 13 BufferStoreF32 { target: RefRead, target_offset: X8, value: X4 };
            /// Fills a range of f32 elements (13: the range is in bytes).
            0x35 "buffer.fill.f32" since 13 BufferFillF32 { target: RefRead, target_offset: X8, length: X8, value: X4 };
            /// Rounded, half away from zero, f32.
            0x36 "round.f32" since 13 RoundF32 { a: X4 } -> { dst: X4 };
            /// Smaller value, f32.
            0x37 "min.f32" since 15 MinF32 { a: X4, b: X4 } -> { dst: X4 };
            /// Larger value, f32.
            0x38 "max.f32" since 15 MaxF32 { a: X4, b: X4 } -> { dst: X4 };
            /// Rounded, half to even, f32.
            0x39 "round.f32.even" since 15 "2023-05" RoundF32Even { a: X4 } -> { dst: X4 };
            /// Converts f32 to si64, half away from zero.
            0x3A "cast.f32.si64" since 15 "2024-10" CastF32Si64 { a: X4 } -> { dst: X8 };
            /// Converts f32 to ui64, half away from zero.
            0x3B "cast.f32.ui64" since 15 "2024-10" CastF32Ui64 { a: X4 } -> { dst: X8 };
            /// Converts si64 to f32, half to even.
            0x3C "cast.si64.f32" since 15 "2024-12" CastSi64F32 { a: X8 } -> { dst: X4 };
            /// Converts ui64 to f32, half to even.
            0x3D "cast.ui64.f32" since 15 "2025-02" CastUi64F32 { a: X8 } -> { dst: X4 };
            /// a to an integer power (low 32 bits, signed), f32.
            0x3E "fpowi.f32" since 17 "2026-09" FpowiF32 { a: X4, exponent: X8 } -> { dst: X4 };
        }
        f64 {
            /// Reads an f64 global.
            0x00 "global.load.f64" since 13 GlobalLoadF64 { offset: GlobalOffset<8> } -> { dst: X8 };
            /// Writes an f64 global.
            0x01 "global.store.f64" since 13 GlobalStoreF64 { offset: GlobalOffset<8>, value: X8 };
            /// Reads an f64 global whose position is in a register.
            0x02 "global.load.indirect.f64" since 13 GlobalLoadIndirectF64 { offset: X4 } -> { dst: X8 };
            /// Writes an f64 global whose position is in a register.
            0x03 "global.store.indirect.f64" since 13 GlobalStoreIndirectF64 { offset: X4, value: X8 };
            /// f64 zero.
            0x04 "const.f64.zero" since 13 ConstF64Zero {} -> { dst: X8 };
            /// f64 literal.
            0x05 "const.f64" since 13 ConstF64 { value: Imm64 } -> { dst: X8 };
            /// Reads an element as f64.
            0x06 "list.get.f64" since 13 ListGetF64 { list: RefRead, index: X4 } -> { dst: X8 };
            /// Writes an element as f64.
            0x07 "list.set.f64" since 13 ListSetF64 { list: RefRead, index: X4, value: X8 };
            /// One of two f64 values.
            0x08 "select.f64" since 13 SelectF64 { condition: X4, if_true: X8, if_false: X8 } -> { dst: X8 };
            /// The f64 value at the signed index, or the default.
            0x09 "switch.f64" since 13 SwitchF64 { index: X4, default: X8, values: X8List<'a> } -> { dst: X8 };
            /// a + b, f64.
            0x0A "add.f64" since 13 AddF64 { a: X8, b: X8 } -> { dst: X8 };
            /// a - b, f64.
            0x0B "sub.f64" since 13 SubF64 { a: X8, b: X8 } -> { dst: X8 };
            /// a * b, f64.
            0x0C "mul.f64" since 13 MulF64 { a: X8, b: X8 } -> { dst: X8 };
            /// a / b, f64.
            0x0D "div.f64" since 13 DivF64 { a: X8, b: X8 } -> { dst: X8 };
            /// IEEE remainder (quotient to nearest even), f64.
            0x0E "rem.f64" since 13 RemF64 { a: X8, b: X8 } -> { dst: X8 };
            /// a * b + c, f64, rounded twice.
            0x0F "fma.f64" since 13 FmaF64 { a: X8, b: X8, c: X8 } -> { dst: X8 };
            /// Absolute value, f64.
            0x10 "abs.f64" since 13 AbsF64 { a: X8 } -> { dst: X8 };
            /// Negated value, f64.
            0x11 "neg.f64" since 13 NegF64 { a: X8 } -> { dst: X8 };
            /// Rounded up, f64.
            0x12 "ceil.f64" since 13 CeilF64 { a: X8 } -> { dst: X8 };
            /// Rounded down, f64.
            0x13 "floor.f64" since 13 FloorF64 { a: X8 } -> { dst: X8 };
            /// Nearest f32.
            0x14 "trunc.f64.f32" since 13 TruncF64F32 { a: X8 } -> { dst: X4 };
            /// The same value as f64.
            0x15 "ext.f32.f64" since 13 ExtF32F64 { a: X4 } -> { dst: X8 };
            /// Converts si32 to f64, half to even.
            0x16 "cast.si32.f64" since 13 CastSi32F64 { a: X4 } -> { dst: X8 };
            /// Converts ui32 to f64, half to even.
            0x17 "cast.ui32.f64" since 13 CastUi32F64 { a: X4 } -> { dst: X8 };
            /// Converts f64 to si32, half away from zero.
            0x18 "cast.f64.si32" since 13 CastF64Si32 { a: X8 } -> { dst: X4 };
            /// Converts f64 to ui32, half away from zero.
            0x19 "cast.f64.ui32" since 13 CastF64Ui32 { a: X8 } -> { dst: X4 };
            /// Converts si64 to f64, half to even.
            0x1A "cast.si64.f64" since 13 CastSi64F64 { a: X8 } -> { dst: X8 };
            /// Converts ui64 to f64, half to even.
            0x1B "cast.ui64.f64" since 13 CastUi64F64 { a: X8 } -> { dst: X8 };
            /// Converts f64 to si64, half away from zero.
            0x1C "cast.f64.si64" since 13 CastF64Si64 { a: X8 } -> { dst: X8 };
            /// Converts f64 to ui64, half away from zero.
            0x1D "cast.f64.ui64" since 13 CastF64Ui64 { a: X8 } -> { dst: X8 };
            /// The same bits: i64 to f64.
            0x1E "bitcast.i64.f64" since 13 BitcastI64F64 { a: X8 } -> { dst: X8 };
            /// The same bits: f64 to i64.
            0x1F "bitcast.f64.i64" since 13 BitcastF64I64 { a: X8 } -> { dst: X8 };
            /// Arc tangent, f64.
            0x20 "atan.f64" since 13 AtanF64 { a: X8 } -> { dst: X8 };
            /// Arc tangent of a / b by quadrant, f64.
            0x21 "atan2.f64" since 13 Atan2F64 { a: X8, b: X8 } -> { dst: X8 };
            /// Cosine, f64.
            0x22 "cos.f64" since 13 CosF64 { a: X8 } -> { dst: X8 };
            /// Sine, f64.
            0x23 "sin.f64" since 13 SinF64 { a: X8 } -> { dst: X8 };
            /// e to the power a, f64.
            0x24 "exp.f64" since 13 ExpF64 { a: X8 } -> { dst: X8 };
            /// 2 to the power a, f64.
            0x25 "exp2.f64" since 13 Exp2F64 { a: X8 } -> { dst: X8 };
            /// e to the power a, minus 1, f64.
            0x26 "expm1.f64" since 13 Expm1F64 { a: X8 } -> { dst: X8 };
            /// Natural logarithm, f64.
            0x27 "log.f64" since 13 LogF64 { a: X8 } -> { dst: X8 };
            /// Logarithm to base 10, f64.
            0x28 "log10.f64" since 13 Log10F64 { a: X8 } -> { dst: X8 };
            /// Natural logarithm of 1 + a, f64.
            0x29 "log1p.f64" since 13 Log1pF64 { a: X8 } -> { dst: X8 };
            /// Logarithm to base 2, f64.
            0x2A "log2.f64" since 13 Log2F64 { a: X8 } -> { dst: X8 };
            /// a to the power b, f64.
            0x2B "pow.f64" since 13 PowF64 { a: X8, b: X8 } -> { dst: X8 };
            /// 1 / square root, f64.
            0x2C "rsqrt.f64" since 13 RsqrtF64 { a: X8 } -> { dst: X8 };
            /// Square root, f64.
            0x2D "sqrt.f64" since 13 SqrtF64 { a: X8 } -> { dst: X8 };
            /// Hyperbolic tangent, f64.
            0x2E "tanh.f64" since 13 TanhF64 { a: X8 } -> { dst: X8 };
            /// Error function, f64.
            0x2F "erf.f64" since 13 ErfF64 { a: X8 } -> { dst: X8 };
            /// 1 if a = b, else 0; f64, plain compare.
            0x30 "cmp.eq.f64.o" since 13 CmpEqF64O { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a = b, else 0; f64, 1 if either is NaN.
            0x31 "cmp.eq.f64.u" since 13 CmpEqF64U { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a ≠ b, else 0; f64, plain compare.
            0x32 "cmp.ne.f64.o" since 13 CmpNeF64O { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a ≠ b, else 0; f64, 1 if either is NaN.
            0x33 "cmp.ne.f64.u" since 13 CmpNeF64U { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a < b, else 0; f64, plain compare.
            0x34 "cmp.lt.f64.o" since 13 CmpLtF64O { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a < b, else 0; f64, 1 if either is NaN.
            0x35 "cmp.lt.f64.u" since 13 CmpLtF64U { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a ≤ b, else 0; f64, plain compare.
            0x36 "cmp.lte.f64.o" since 13 CmpLteF64O { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if a ≤ b, else 0; f64, 1 if either is NaN.
            0x37 "cmp.lte.f64.u" since 13 CmpLteF64U { a: X8, b: X8 } -> { dst: X4 };
            /// 1 if f64 is NaN, else 0.
            0x38 "cmp.nan.f64" since 13 CmpNanF64 { a: X8 } -> { dst: X4 };
            /// Reads the f64 element at an element offset.
            0x39 "buffer.load.f64" since 13 BufferLoadF64 { source: RefRead, source_offset: X8 } -> { dst: X8 };
            /// Writes the f64 element at an element offset.
            0x3A "buffer.store.f64" since 13 BufferStoreF64 { target: RefRead, target_offset: X8, value: X8 };
            /// Fills a range of f64 elements (13: the range is in bytes).
            0x3B "buffer.fill.f64" since 13 BufferFillF64 { target: RefRead, target_offset: X8, length: X8, value: X8 };
            /// Rounded, half away from zero, f64.
            0x3C "round.f64" since 13 RoundF64 { a: X8 } -> { dst: X8 };
            /// Smaller value, f64.
            0x3D "min.f64" since 15 MinF64 { a: X8, b: X8 } -> { dst: X8 };
            /// Larger value, f64.
            0x3E "max.f64" since 15 MaxF64 { a: X8, b: X8 } -> { dst: X8 };
            /// Rounded, half to even, f64.
            0x3F "round.f64.even" since 15 "2023-05" RoundF64Even { a: X8 } -> { dst: X8 };
            /// a to an integer power (low 32 bits, signed), f64.
            0x40 "fpowi.f64" since 17 "2026-09" FpowiF64 { a: X8, exponent: X8 } -> { dst: X8 };
        }
        }
    };
}

pub(crate) use for_each_op;
