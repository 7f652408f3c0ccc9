//! Damaged functions: whatever the bytes are, verification and disassembly end without a panic, and what is accepted is well-formed.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;
use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::definition::{BytecodeVersion, Import, ModuleDef, Necessity, Requirements, Rodata, RodataPlacement, Signature};
use vmfb_bytecode::disassemble::{ByteOffsets, Disassembler};
use vmfb_bytecode::encode::reencode_body;
use vmfb_bytecode::isa::{
    Access, CaseList, FunctionRef, Imm32, Move, MoveList, Op, OperandVisitor, RefMove, RefRead, Register, RegisterList, SegmentList,
    SwitchCase, Text, X4, X8, words,
};
use vmfb_bytecode::verify::{VerifiedModule, verify};

const VERSIONS: [BytecodeVersion; 5] =
    [BytecodeVersion::V13, BytecodeVersion::V14, BytecodeVersion::V15, BytecodeVersion::V16, BytecodeVersion::V17];

fn i(ordinal: u16) -> Register {
    Register::value(ordinal)
}

/// Two functions that use most kinds of operands; the second has no signature in 13.0.
fn module(version: BytecodeVersion) -> ModuleDef {
    let mut module = empty_module("damaged", version);
    module.types = vec!["i32".to_owned(), "!vm.buffer".to_owned()];
    let signature = Some(Signature { calling_convention: "0iCrID_I".to_owned(), attributes: Vec::new() });
    module.imports = vec![Import { full_name: "native.variadic".to_owned(), signature, necessity: Necessity::Required }];
    module.rodata = vec![Rodata { range: 0..4, placement: RodataPlacement::Embedded }];
    (module.global_bytes, module.global_refs) = (16, 2);

    let mut first = FunctionBuilder::new(version, "0iIi_I");
    let entry = first.start_block();
    let next = first.label();
    let moves = [Move { source: i(2), destination: i(6) }.to_bytes(), Move { source: i(3), destination: i(7) }.to_bytes()];
    let moves = MoveList::new(&moves);
    let none = MoveList::EMPTY;
    first.push(Op::ConstI32 { value: Imm32(3), dst: X4(1) }).push(Op::BufferLength { buffer: RefRead::new(0), dst: X8(4) });
    let (segments, arguments, results) = ([[0xFF, 0xFF], [1, 0]], words([i(0), Register::moved(1), i(4)]), words([i(6)]));
    let (arguments, results) = (RegisterList::new(&arguments), RegisterList::new(&results));
    first.push(Op::CallVariadic { callee: FunctionRef::import(0), segments: SegmentList::new(&segments), arguments, results });
    let (arguments, results) = (words([i(0), i(4)]), words([i(4)]));
    let (arguments, results) = (RegisterList::new(&arguments), RegisterList::new(&results));
    first.push(Op::Call { callee: FunctionRef::internal(1), arguments, results });
    first.push(Op::CondBr { condition: X4(1), true_to: next.pc(), true_moves: moves, false_to: entry.pc(), false_moves: none });
    first.place(next);
    if version.major() >= 15 {
        let cases = [SwitchCase { to: entry.pc(), moves }, SwitchCase { to: next.pc(), moves: none }];
        let (cases, default_to) = (CaseList::new(&cases), next.pc());
        first.push(Op::BrTable { index: X4(1), default_to, default_moves: none, cases });
        first.start_block();
    }
    first.push(Op::Return { values: RegisterList::new(&words([i(6)])) });
    first.start_block();
    first.push(Op::Fail { code: X4(0), message: Text(b"damaged") });
    first.finish().unwrap().export_from(&mut module, "first");

    let mut second = FunctionBuilder::new(version, "0iI_I");
    second.start_block();
    second.push(Op::AddI32 { a: X4(0), b: X4(0), dst: X4(4) }).push(Op::MulI64 { a: X8(2), b: X8(2), dst: X8(6) });
    second.push(Op::Return { values: RegisterList::new(&words([i(6)])) });
    if version == BytecodeVersion::V13 {
        second.without_signature();
    }
    second.finish().unwrap().add_to(&mut module);
    module
}

/// Asserts on its own, simply and slowly, what an interpreter relies on.
struct Bounds<'m> {
    module: &'m ModuleDef,
    values: u16,
    refs: u16,
    starts: &'m [u32],
}

impl Bounds<'_> {
    fn register(&self, register: Register) {
        assert!(register.ordinal() < if register.is_ref() { self.refs } else { self.values });
    }
}

impl<'a> OperandVisitor<'a> for Bounds<'_> {
    fn x4(&mut self, register: X4, _access: Access) {
        assert!(register.0 < self.values);
    }
    fn x8(&mut self, register: X8, _access: Access) {
        assert!(register.0.is_multiple_of(2) && register.0 + 1 < self.values);
    }
    fn ref_read(&mut self, register: RefRead) {
        assert!(register.register().is_ref() && register.ordinal() < self.refs);
    }
    fn ref_move(&mut self, register: RefMove, _access: Access) {
        assert!(register.register().is_ref() && register.ordinal() < self.refs);
    }
    fn registers(&mut self, list: RegisterList<'a>, _access: Access) {
        list.iter().for_each(|register| self.register(register));
    }
    fn moves(&mut self, list: MoveList<'a>) {
        for step in list.iter() {
            assert_eq!(step.source.is_ref(), step.destination.is_ref());
            self.register(step.source);
            self.register(step.destination);
        }
    }
    fn target(&mut self, pc: vmfb_bytecode::isa::Pc) {
        assert!(self.starts.contains(&pc.0));
    }
    fn global_offset(&mut self, offset: u32, size: u32) {
        assert!(u64::from(offset) + u64::from(size) <= u64::from(self.module.global_bytes));
    }
    fn type_ordinal(&mut self, ordinal: vmfb_bytecode::isa::TypeOrdinal) {
        assert!((ordinal.0 as usize) < self.module.types.len());
    }
    fn rodata(&mut self, ordinal: vmfb_bytecode::isa::RodataOrdinal) {
        assert!((ordinal.0 as usize) < self.module.rodata.len());
    }
}

fn check(verified: &VerifiedModule) -> Result<(), TestCaseError> {
    let module = verified.definition();
    for (ordinal, info) in (0..).zip(verified.functions()) {
        let starts = verified.block_starts(ordinal);
        let mut bounds = Bounds { module, values: info.value_registers, refs: info.ref_registers, starts };
        let mut instructions = 0;
        for instruction in verified.instructions(ordinal) {
            let instruction = instruction.map_err(|error| TestCaseError::fail(error.to_string()))?;
            instruction.op.visit(&mut bounds);
            instructions += u32::from(instruction.op != Op::Block {});
        }
        let body = module.body(ordinal);
        let encoded = reencode_body(body, module.bytecode_version).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(encoded, body);
        prop_assert_eq!(instructions, info.instructions);
        prop_assert!(info.placement.value_slots <= info.value_registers && info.placement.ref_slots <= info.ref_registers);
    }
    Ok(())
}

#[test]
fn the_undamaged_modules_are_good() {
    for version in VERSIONS {
        let verified = verify(module(version)).unwrap_or_else(|error| panic!("{version}: {error}"));
        check(&verified).unwrap();
        assert_eq!(verified.functions()[1].convention.to_string(), "0iI_I");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn damaged_modules_are_refused_or_well_formed(
        changes in proptest::collection::vec((any::<Index>(), prop_oneof![any::<u8>(), 0..4_u8, 0x56..0x62_u8, Just(0x79), Just(0x83)]), 1..4),
        registers in 0..20_u16,
        end in any::<Index>(),
        cut in any::<bool>(),
    ) {
        for version in VERSIONS {
            let mut module = module(version);
            module.requirements = Requirements::NONE;
            for (place, byte) in &changes {
                *place.get_mut(&mut module.bytecode) = *byte;
            }
            if registers < 10 {
                module.functions[1].value_registers = registers;
            }
            if cut {
                let range = &mut module.functions[0].bytecode;
                range.end = range.start + end.index(range.len() + 1);
            }
            let disassembler = Disassembler::new(&module, ByteOffsets::Shown);
            for ordinal in 0..2 {
                let text = disassembler.function(ordinal).text;
                let whole = text.ends_with("}\n") && !text.contains('\u{1b}');
                prop_assert!(whole, "{}", text);
            }
            if let Ok(verified) = verify(module) {
                check(&verified)?;
            }
        }
    }
}
