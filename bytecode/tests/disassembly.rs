//! The disassembler against lines that IREE's own tool printed for the same bytes.

use vmfb_bytecode::Status;
use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::definition::{BytecodeVersion, Import, ModuleDef, Necessity, Requirements, Rodata, RodataPlacement, Signature};
use vmfb_bytecode::disassemble::{ByteOffsets, Disassembler};
use vmfb_bytecode::isa::{
    CaseList, FunctionRef, Imm32, Imm64, Move, MoveList, Op, Opcode, Pc, RefList, RefMove, Register, RegisterList, SegmentList, SwitchCase,
    Text, TypeOrdinal, X4, X4List, X8, X8List, words,
};

fn module(version: BytecodeVersion) -> ModuleDef {
    let import = |name: &str, convention: &str, necessity| Import {
        full_name: name.to_owned(),
        signature: Some(Signature { calling_convention: convention.to_owned(), attributes: Vec::new() }),
        necessity,
    };
    let mut module = empty_module("all", version);
    module.types = vec!["i32".to_owned(), "!vm.buffer".to_owned(), "!vm.list<i32>".to_owned()];
    module.imports = vec![import("native.variadic", "0iCrID_I", Necessity::Required), import("native.plain", "0rI_i", Necessity::Optional)];
    module.rodata = [0..3, 0..6].map(|range| Rodata { range, placement: RodataPlacement::Embedded }).to_vec();
    module
}

/// An instruction whose bytes are the opcode and these words.
#[track_caller]
fn shows(opcode: Opcode, operands: &[u16], expected: &str) {
    let version = BytecodeVersion::V17;
    let mut builder = FunctionBuilder::new(version, "0v_v");
    builder.start_block();
    if let prefix @ 1.. = (opcode as u16 >> 8) as u8 {
        builder.push_bytes(&[prefix]);
    }
    builder.push_bytes(&[opcode.info().byte]);
    for word in operands {
        builder.push_bytes(&word.to_le_bytes());
    }
    let mut module = module(version);
    builder.finish().unwrap().add_to(&mut module);
    let listing = Disassembler::new(&module, ByteOffsets::Hidden).function(0);
    assert_eq!(listing.error, None, "{expected}");
    assert_eq!(listing.text.lines().nth(3), Some(format!("  {expected}").as_str()));
}

#[test]
fn plain_operations() {
    shows(Opcode::GlobalLoadI32, &[8, 0, 1], "%i1 = vm.global.load.i32 .rwdata[8]");
    shows(Opcode::GlobalStoreI64, &[8, 0, 4], "vm.global.store.i64 %i4:5, .rwdata[8]");
    shows(Opcode::GlobalLoadIndirectI64, &[1, 4], "%i4:5 = vm.global.load.indirect.i64 .rwdata[%i1]");
    shows(Opcode::GlobalStoreIndirectF32, &[1, 3], "vm.global.store.indirect.f32 %i3, .rwdata[%i1]");
    shows(Opcode::GlobalLoadRef, &[3, 0, 2, 0, 0x8000], "%r0 = vm.global.load.ref .refs[3] : !vm.list<i32>");
    shows(Opcode::GlobalStoreRef, &[3, 0, 2, 0, 0xC000], "vm.global.store.ref %R0, .refs[3] : !vm.list<i32>");
    shows(Opcode::GlobalLoadIndirectRef, &[1, 2, 0, 0x8000], "%r0 = vm.global.load.indirect.ref .refs[%i1] : !vm.list<i32>");
    shows(Opcode::GlobalStoreIndirectRef, &[1, 2, 0, 0xC000], "vm.global.store.indirect.ref %R0, .refs[%i1] : !vm.list<i32>");
    shows(Opcode::ConstI32Zero, &[1], "%i1 = vm.const.i32.zero");
    shows(Opcode::ConstI32, &[0xFFFB, 0xFFFF, 1], "%i1 = vm.const.i32 -5  // 0xFFFFFFFB");
    shows(Opcode::ConstI64, &[0xFFFB, 0xFFFF, 0xFFFF, 0xFFFF, 4], "%i4:5 = vm.const.i64 -5  // 0xFFFFFFFFFFFFFFFB");
    shows(Opcode::ConstRefZero, &[0x8000], "%r0 = vm.const.ref.zero");
    shows(Opcode::ConstRefRodata, &[1, 0, 0x8000], "%r0 = vm.const.ref.rodata 1  // 6b");
    shows(Opcode::ListAlloc, &[2, 0, 1, 0x8000], "%r0 = vm.list.alloc %i1 : !vm.list<!vm.list<i32>>");
    shows(Opcode::ListReserve, &[0x8000, 1], "vm.list.reserve %r0, %i1");
    shows(Opcode::ListGetI64, &[0x8000, 1, 4], "%i4:5 = vm.list.get.i64 %r0, %i1");
    shows(Opcode::ListGetRef, &[0x8000, 1, 2, 0, 0x8001], "%r1 = vm.list.get.ref %r0, %i1 : !vm.list<i32>");
    shows(Opcode::ListSetRef, &[0x8000, 1, 0xC001], "vm.list.set.ref %r0, %i1, %R1");
    shows(Opcode::SelectI64, &[1, 4, 6, 8], "%i8:9 = vm.select.i64 %i1 ? %i4:5 : %i6:7");
    shows(Opcode::SelectRef, &[1, 2, 0, 0xC000, 0x8001, 0x8002], "%r2 = vm.select.ref %i1 ? %R0 : %r1 -> !vm.list<i32>");
    shows(Opcode::FmaI64, &[4, 6, 8, 10], "%i10:11 = vm.fma.i64 %i4:5, %i6:7, %i8:9");
    shows(Opcode::ShlI64, &[4, 1, 6], "%i6:7 = vm.shl.i64 %i4:5, %i1");
    shows(Opcode::CmpLtI64S, &[4, 6, 1], "%i1 = vm.cmp.lt.i64.s %i4:5, %i6:7");
    shows(Opcode::CmpEqRef, &[0x8000, 0x8001, 1], "%i1 = vm.cmp.eq.ref %r0, %r1");
    shows(Opcode::BufferLoadI64, &[0x8000, 4, 6], "%i6:7 = vm.buffer.load.i64 %r0, %i4:5");
    shows(Opcode::BufferStoreI8, &[0x8000, 4, 1], "vm.buffer.store.i8 %i1, %r0, %i4:5");
    shows(Opcode::BufferAlloc, &[4, 1, 0x8000], "%r0 = vm.buffer.alloc %i4:5, %i1");
    shows(Opcode::BufferClone, &[0x8000, 4, 6, 1, 0x8001], "%r1 = vm.buffer.clone %r0, %i4:5, %i6:7, %i1");
    shows(Opcode::BufferCompare, &[0x8000, 4, 0x8001, 6, 8, 1], "%i1 = vm.buffer.compare %r0, %i4:5, %r1, %i6:7, %i8:9");
    shows(Opcode::BufferFillI64, &[0x8000, 4, 6, 8], "vm.buffer.fill.i64 %r0, %i4:5, %i6:7, %i8:9");
    shows(Opcode::CastAnyRef, &[0xC000, 2, 0, 0x8001], "%r1 = vm.cast.any.ref %R0 : !vm.ref<?> -> !vm.list<i32>");
    shows(Opcode::BufferHash, &[0x8000, 4, 6, 8], "%i8:9 = vm.buffer.hash %r0, %i4:5, %i6:7");
    shows(Opcode::AssignRef, &[0xC000, 0x8001], "%r1 = vm.assign.ref %R0");
    shows(Opcode::ImportResolved, &[1, 0x8000, 1], "%i1 = vm.import.resolved @native.plain");
    shows(Opcode::Atan2F32, &[1, 3, 5], "%i5 = vm.atan2.f32 %i1, %i3");
    shows(Opcode::CastSi64F32, &[4, 1], "%i1 = vm.cast.si64.f32 %i4:5");
    shows(Opcode::FpowiF64, &[4, 6, 8], "%i8:9 = vm.fpowi.f64 %i4:5, %i6:7");
}

fn text_of(op: Op<'_>) -> String {
    Disassembler::new(&module(BytecodeVersion::V17), ByteOffsets::Hidden).instruction(&op)
}

#[test]
fn lists() {
    let (values, pairs, refs) =
        (words([3, 5].map(Register::value)), words([8, 10].map(Register::value)), words([Register::reference(4), Register::moved(5)]));
    let op = Op::SwitchI32 { index: X4(1), default: X4(3), values: X4List::new(&values), dst: X4(5) };
    assert_eq!(text_of(op), "%i5 = vm.switch.i32 %i1[%i3, %i5] else %i3");
    let op = Op::SwitchI64 { index: X4(1), default: X8(4), values: X8List::new(&pairs), dst: X8(6) };
    assert_eq!(text_of(op), "%i6:7 = vm.switch.i64 %i1[%i8, %i10] else %i4:5");
    // The official tool cannot print this one.
    let op = Op::SwitchRef {
        index: X4(1),
        type_ordinal: TypeOrdinal(2),
        default: RefMove::moved(0),
        values: RefList::new(&refs),
        dst: RefMove::new(1),
    };
    assert_eq!(text_of(op), "%r1 = vm.switch.ref %i1[%r4, %R5] else %R0 -> !vm.list<i32>");
    assert_eq!(text_of(Op::DiscardRefs { refs: RefList::new(&refs) }), "vm.discard.refs %r4, %R5");
    let returned = words([Register::value(0), Register::moved(3)]);
    assert_eq!(text_of(Op::Return { values: RegisterList::new(&returned) }), "vm.return %i0, %R3");
    assert_eq!(text_of(Op::Return { values: RegisterList::new(&[]) }), "vm.return");
}

#[test]
fn calls() {
    let arguments = words([Register::value(1), Register::value(4), Register::moved(0)]);
    let results = words([Register::value(8), Register::reference(3)]);
    let (arguments, results) = (RegisterList::new(&arguments), RegisterList::new(&results));
    let op = Op::Call { callee: FunctionRef::internal(0), arguments, results };
    assert_eq!(text_of(op), "%i8, %r3 = vm.call @all:0(%i1, %i4, %R0)");
    let segments = [[0xFF, 0xFF], [2, 0]];
    let op = Op::CallVariadic { callee: FunctionRef::import(0), segments: SegmentList::new(&segments), arguments, results };
    assert_eq!(text_of(op), "%i8, %r3 = vm.call.variadic @native.variadic segments[65535, 2](%i1, %i4, %R0)");
    let op = Op::CallYieldable { callee: FunctionRef::import(1), arguments, resume: Pc(0x1F), results };
    assert_eq!(text_of(op), "vm.call.yieldable @native.plain(%i1, %i4, %R0) -> ^pc_1F(%i8, %r3)");
    // What is out of range has no name.
    let op = Op::ImportResolved { callee: FunctionRef::import(7), dst: X4(0) };
    assert_eq!(text_of(op), "%i0 = vm.import.resolved @import_7");
}

#[test]
fn branches_name_blocks() {
    let moves = [
        Move { source: Register::value(1), destination: Register::value(7) }.to_bytes(),
        Move { source: Register::moved(1), destination: Register::reference(2) }.to_bytes(),
    ];
    let moves = MoveList::new(&moves);
    for version in [BytecodeVersion::V13, BytecodeVersion::V17] {
        let mut builder = FunctionBuilder::new(version, "0v_v");
        let first = builder.start_block();
        let second = builder.label();
        builder.push(Op::Br { to: second.pc(), moves }).place(second);
        builder.push(Op::CondBr {
            condition: X4(1),
            true_to: first.pc(),
            true_moves: moves,
            false_to: second.pc(),
            false_moves: MoveList::EMPTY,
        });
        let mut module = module(version);
        builder.finish().unwrap().export_from(&mut module, "loops");
        let listing = Disassembler::new(&module, ByteOffsets::Hidden).function(0);
        let lines: Vec<_> = listing.text.lines().collect();
        assert_eq!(
            lines[1..],
            [
                "vm.export @loops",
                "vm.func @loops() -> () {",
                "^bb0:",
                "  vm.br ^bb1(%i1->%i7, %R1->%r2)",
                "^bb1:",
                "  vm.cond_br %i1, ^bb0(%i1->%i7, %R1->%r2), ^bb1()",
                "}",
            ]
        );
    }
    let cases = [SwitchCase { to: Pc(0), moves: MoveList::EMPTY }, SwitchCase { to: Pc(0), moves }];
    let op = Op::BrTable { index: X4(1), default_to: Pc(0), default_moves: moves, cases: CaseList::new(&cases) };
    let expected = "vm.br_table %i1 { default: ^pc_0(%i1->%i7, %R1->%r2), 0: ^pc_0(), 1: ^pc_0(%i1->%i7, %R1->%r2) }";
    assert_eq!(text_of(op), expected);
}

#[test]
fn texts_are_escaped() {
    let fail = text_of(Op::Fail { code: X4(1), message: Text(b"a \"b\" \\ it's\n\x1B[2J\xC3\xA9\xFF") });
    assert_eq!(fail, r#"vm.fail %i1, "a \"b\" \\ it's\n\u{1b}[2Jé\xff""#);
    let values = words([Register::value(1), Register::moved(1)]);
    let trace = text_of(Op::Trace { message: Text(b"x"), values: RegisterList::new(&values) });
    assert_eq!(trace, r#"vm.trace "x"(%i1, %R1)"#);
    let mut module = module(BytecodeVersion::V17);
    module.name = "evil\u{1b}[31m\n".to_owned();
    module.types.push("!a\u{202e}b".to_owned());
    let header = Disassembler::new(&module, ByteOffsets::Hidden).header();
    assert!(header.starts_with("vm.module @evil\\u{1b}[31m\\n version 0\nvm.type i32\n"), "{header}");
    assert!(header.chars().all(|character| character == '\n' || !character.is_control() && character != '\u{202e}'), "{header}");
    assert!(header.ends_with("vm.import optional @native.plain cconv \"0rI_i\"\n"), "{header}");
}

#[test]
fn floats_show_their_value_and_bits() {
    assert_eq!(text_of(Op::ConstF32 { value: Imm32(0x3FC0_0000), dst: X4(1) }), "%i1 = vm.const.f32 1.5  // 0x3FC00000");
    assert_eq!(
        text_of(Op::ConstF64 { value: Imm64(0x7FF8_0000_0000_0001), dst: X8(2) }),
        "%i2:3 = vm.const.f64 NaN  // 0x7FF8000000000001"
    );
}

#[test]
fn functions_have_a_header_and_offsets() {
    let mut module = module(BytecodeVersion::V17);
    let mut builder = FunctionBuilder::new(BytecodeVersion::V17, "0iIfFrr_Ir");
    builder.start_block();
    let returned = words([Register::value(2), Register::reference(1)]);
    builder.push(Op::AddF32 { a: X4(0), b: X4(0), dst: X4(8) }).push(Op::Return { values: RegisterList::new(&returned) });
    builder.finish().unwrap().add_to(&mut module);
    module.functions[0].requirements.0 |= Requirements::YIELD;
    let text = Disassembler::new(&module, ByteOffsets::Shown).function(0).text;
    let expected = "// function 0: 16 bytes, 9 value registers, 2 ref registers, 1 blocks, requires f32, yield\n\
        vm.func @fn0(%i0: i32, %i2:3: i64, %i4: f32, %i6:7: f64, %r0: !vm.ref<?>, %r1: !vm.ref<?>) -> (i64, !vm.ref<?>) {\n\
        [00000000]^bb0:\n\
        [00000001]  %i8 = vm.add.f32 %i0, %i0\n\
        [00000009]  vm.return %i2, %r1\n\
        }\n";
    assert_eq!(text, expected);
}

#[test]
fn a_listing_ends_where_the_bytes_stop_making_sense() {
    let mut module = module(BytecodeVersion::V17);
    let mut builder = FunctionBuilder::new(BytecodeVersion::V17, "0v_v");
    builder.start_block();
    builder.push(Op::ConstI32Zero { dst: X4(0) }).push_bytes(&[0xDF]);
    builder.finish().unwrap().add_to(&mut module);
    let disassembler = Disassembler::new(&module, ByteOffsets::Hidden);
    let listing = disassembler.function(0);
    let error = listing.error.unwrap();
    assert_eq!((error.status, error.function, error.pc), (Status::InvalidArgument, Some(0), Some(4)));
    assert!(
        listing.text.ends_with("  %i0 = vm.const.i32.zero\n  // INVALID_ARGUMENT: opcode DF is not assigned (function 0 at pc 0x4)\n}\n"),
        "{}",
        listing.text
    );
    let missing = disassembler.function(1);
    assert_eq!((missing.text.as_str(), missing.error.unwrap().status), ("", Status::OutOfRange));
}

/// A file may describe any number of functions that are all the same large part of its bytecode.
#[test]
fn functions_that_overlap_too_much_are_not_listed() {
    let mut module = module(BytecodeVersion::V17);
    let mut builder = FunctionBuilder::new(BytecodeVersion::V17, "0v_v");
    builder.start_block();
    for _ in 0..1000 {
        builder.push(Op::ConstI32Zero { dst: X4(0) });
    }
    builder.push(Op::Return { values: RegisterList::new(&[]) });
    builder.finish().unwrap().add_to(&mut module);
    module.functions = vec![module.functions[0].clone(); 1000];
    let disassembler = Disassembler::new(&module, ByteOffsets::Hidden);
    assert_eq!(disassembler.function(0).error, None);
    assert_eq!(disassembler.function(15).error, None);
    let total: usize = (0..1000).map(|ordinal| disassembler.function(ordinal).text.len()).sum();
    let refused = disassembler.function(16);
    assert_eq!(refused.error.unwrap().status, Status::ResourceExhausted);
    assert!(refused.text.contains("overlap too much"), "{}", refused.text);
    assert!(total < 17 * disassembler.function(0).text.len() + 1000 * 500, "{total} bytes of text");
}

/// One long name, and a call of the function that has it in every few bytes.
#[test]
fn long_names_are_cut_where_they_are_used() {
    let mut module = module(BytecodeVersion::V17);
    module.imports[1].full_name = format!("native.{}", "x".repeat(50_000));
    let mut builder = FunctionBuilder::new(BytecodeVersion::V17, "0v_v");
    builder.start_block();
    for _ in 0..1000 {
        builder.push(Op::ImportResolved { callee: FunctionRef::import(1), dst: X4(0) });
    }
    builder.push(Op::Return { values: RegisterList::new(&[]) });
    builder.finish().unwrap().add_to(&mut module);
    let listing = Disassembler::new(&module, ByteOffsets::Hidden).function(0);
    assert_eq!(listing.error, None);
    assert!(listing.text.len() < 1_000_000 && listing.text.ends_with("}\n"), "{} bytes of text", listing.text.len());
}
