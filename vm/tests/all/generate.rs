//! Programs made of choices: mostly valid ones, for property tests.

use crate::raw::{Piece, RawBody};
use crate::support::*;
use vmfb_bytecode::definition::{BytecodeVersion, ModuleDef};
use vmfb_bytecode::isa::{Access, Opcode, OperandInfo, OperandKind};

/// Values of the ref bit of register words.
const REF: u16 = 0x8000;
const MOVE: u16 = 0x4000;

/// Registers of every function.
const VALUES: u16 = 14;
const REFS: u16 = 6;

/// Conventions of the functions. Pairs come first, so that both placements agree.
const CONVENTIONS: [&str; 6] = ["0v_v", "0ii_i", "0Ir_Ir", "0rrf_r", "0FIif_FI", "0v_irIr"];
/// Imports of every program.
pub const IMPORTS: [(&str, &str); 4] = [("host.f", "0ir_ir"), ("host.v", "0iCrID_i"), ("host.w", "0ICiD_v"), ("host.g", "0rI_F")];
const TYPES: [&str; 7] = ["!vm.buffer", "i32", "!vm.opaque", "!vm.list<?>", "f64", "i8", "!test.thing"];

/// Bytes that decide everything; when they are used up, the simplest choice is taken.
pub struct Choices<'a>(std::slice::Iter<'a, u8>);

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.iter())
    }

    pub fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    pub fn below(&mut self, count: usize) -> usize {
        let number = if count > 256 { usize::from(self.byte()) << 8 | usize::from(self.byte()) } else { usize::from(self.byte()) };
        number % count.max(1)
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// Once in about 256 times.
    fn seldom(&mut self) -> bool {
        self.byte() == 0xFF
    }

    /// A number at or near a limit, or a small one.
    fn number(&mut self) -> u64 {
        match self.byte() {
            0..100 => u64::from(self.byte() % 10),
            100..130 => 1 << self.below(64),
            130..160 => (1_u64 << self.below(64)).wrapping_neg(),
            160..190 => self.pick(&[u64::MAX, i64::MAX as u64, u64::from(u32::MAX), i32::MAX as u64, 1 << 31, 1 << 63]),
            190..220 => self.pick(&[1.5_f64, -0.0, f64::NAN, f64::INFINITY, 1e300, -3.0]).to_bits(),
            220..240 => u64::from(self.pick(&[1.5_f32, -0.0, f32::NAN, f32::INFINITY, 1e30, -3.0]).to_bits()),
            _ => (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte())),
        }
    }
}

/// A program; all its functions are exported as `f0`, `f1`, ….
pub fn program(choices: &mut Choices<'_>) -> Program {
    let version = choices.pick(&VERSIONS);
    let mut program = Program::new(version);
    TYPES.iter().for_each(|name| _ = program.type_of(name));
    program.rodata(b"0123456789abcdef");
    program.rodata(&[0xFF; 100]);
    program.def.global_bytes = 20;
    program.def.global_refs = 3;
    IMPORTS.iter().for_each(|(name, convention)| _ = program.import(name, convention));
    let conventions: Vec<&str> = (0..1 + choices.below(3)).map(|_| choices.pick(&CONVENTIONS)).collect();
    for (ordinal, convention) in conventions.iter().enumerate() {
        let function = Function { version, convention, conventions: &conventions, blocks: 1 + choices.below(4) };
        function.body(choices).export_from(&mut program.def, &format!("f{ordinal}"));
    }
    program.def.requirements = vmfb_bytecode::definition::Requirements::NONE;
    requirements(&mut program.def);
    program
}

fn requirements(def: &mut ModuleDef) {
    def.requirements.0 = def.functions.iter().fold(0, |all, function| all | function.requirements.0);
}

/// What the operands of a function may name.
struct Function<'a> {
    version: BytecodeVersion,
    convention: &'a str,
    conventions: &'a [&'a str],
    blocks: usize,
}

/// What is called, for the lists that follow.
#[derive(Clone, Copy)]
struct Callee {
    number: u32,
    convention: &'static str,
}

impl Function<'_> {
    fn body(&self, choices: &mut Choices<'_>) -> vmfb_bytecode::assemble::Assembled {
        let mut body = RawBody::default();
        for block in 0..self.blocks {
            body.block(self.version);
            if block == 0 {
                self.set_up(&mut body, choices);
            }
            for _ in 0..choices.below(9) {
                let opcode = self.opcode(choices, |opcode| !opcode.is_terminator() && opcode != Opcode::Block);
                self.op(&mut body, choices, opcode);
            }
            let simple = choices.byte() < 100;
            let opcode = self.opcode(choices, |opcode| opcode.is_terminator() && (!simple || opcode == Opcode::Return));
            self.op(&mut body, choices, opcode);
        }
        body.finish(self.version, self.convention, VALUES, REFS)
    }

    /// r0 becomes a list with three elements, r1 and r2 buffers, the last value registers small numbers.
    fn set_up(&self, body: &mut RawBody, choices: &mut Choices<'_>) {
        if choices.byte() < 50 {
            return;
        }
        let mut op = |opcode, pieces: &[Piece]| {
            let mut pieces = pieces.iter();
            body.op(self.version, opcode, |_| pieces.next().cloned().unwrap_or(Piece::U16(0)));
        };
        let last = VALUES - 2;
        op(Opcode::ConstI64, &[Piece::U64(3), Piece::U16(last)]);
        op(Opcode::ListAlloc, &[Piece::U32(2), Piece::U16(last), Piece::U16(REF)]);
        op(Opcode::ListResize, &[Piece::U16(REF), Piece::U16(last)]);
        op(Opcode::ConstI64, &[Piece::U64(40), Piece::U16(last)]);
        let alignment = (self.version.major() >= 15).then_some(Piece::U16(last + 1));
        for register in [1, 2] {
            let pieces: Vec<Piece> =
                [Some(Piece::U16(last)), alignment.clone(), Some(Piece::U16(REF | register))].into_iter().flatten().collect();
            op(Opcode::BufferAlloc, &pieces);
        }
        op(Opcode::ConstI64, &[Piece::U64(1), Piece::U16(last)]);
    }

    fn opcode(&self, choices: &mut Choices<'_>, fits: impl Fn(Opcode) -> bool) -> Opcode {
        let fitting: Vec<Opcode> =
            Opcode::ALL.iter().copied().filter(|opcode| opcode.info().since_major <= self.version.major() && fits(*opcode)).collect();
        choices.pick(&fitting)
    }

    fn op(&self, body: &mut RawBody, choices: &mut Choices<'_>, opcode: Opcode) {
        let mut callee = Callee { number: 0, convention: self.leaked() };
        let mut tuples = 0;
        body.op(self.version, opcode, |operand| self.operand(choices, opcode, operand, &mut callee, &mut tuples));
    }

    /// The own convention, for returns.
    fn leaked(&self) -> &'static str {
        CONVENTIONS.iter().copied().find(|convention| *convention == self.convention).unwrap_or("0v_v")
    }

    fn operand(&self, choices: &mut Choices<'_>, opcode: Opcode, operand: &OperandInfo, callee: &mut Callee, tuples: &mut u16) -> Piece {
        match operand.kind {
            OperandKind::X4 | OperandKind::AlignmentX4 => Piece::U16(value(choices)),
            OperandKind::X8 => Piece::U16(pair(choices)),
            OperandKind::RefRead => Piece::U16(self.container(choices, opcode)),
            OperandKind::RefMove => Piece::U16(reference(choices)),
            OperandKind::Imm32 => Piece::U32(choices.number() as u32),
            OperandKind::Imm64 => Piece::U64(choices.number()),
            OperandKind::GlobalOffset(size) => {
                Piece::U32(choices.below(21 - size as usize) as u32 + if choices.seldom() { size } else { 0 })
            }
            OperandKind::GlobalSlot => Piece::U32(index(choices, 3)),
            OperandKind::Rodata => Piece::U32(index(choices, 2)),
            OperandKind::Type => Piece::U32(index(choices, TYPES.len())),
            OperandKind::Function => {
                *callee = self.callee(choices, opcode);
                Piece::U32(callee.number)
            }
            OperandKind::Pc => Piece::Target(self.target(choices)),
            OperandKind::Registers => Piece::List(self.registers(choices, opcode, operand.access, *callee, *tuples)),
            OperandKind::X4List => Piece::List((0..choices.below(4)).map(|_| value(choices)).collect()),
            OperandKind::X8List => Piece::List((0..choices.below(4)).map(|_| pair(choices)).collect()),
            OperandKind::RefList => Piece::List((0..choices.below(4)).map(|_| reference(choices)).collect()),
            OperandKind::Segments => {
                *tuples = choices.below(4) as u16;
                let (arguments, _) = sides(callee.convention);
                let plain = arguments.split('C').next().map_or(0, str::len);
                let spans = usize::from(arguments.contains('C'));
                Piece::List(std::iter::repeat_n(0xFFFF, plain).chain(std::iter::repeat_n(*tuples, spans)).collect())
            }
            OperandKind::Moves => Piece::Moves(moves(choices)),
            OperandKind::Cases => Piece::Cases((0..choices.below(4)).map(|_| (self.target(choices), moves(choices))).collect()),
            OperandKind::Text => Piece::Text((0..choices.below(5)).map(|_| choices.byte()).collect()),
            other => panic!("operand kind {other:?} is new"),
        }
    }

    /// The register of a list or a buffer, mostly where one is.
    fn container(&self, choices: &mut Choices<'_>, opcode: Opcode) -> u16 {
        match choices.byte() {
            0..200 if opcode.mnemonic().starts_with("list") => REF,
            0..200 => REF | (1 + choices.below(2) as u16),
            _ => reference(choices) & !if self.version.honours_move() { MOVE } else { 0 },
        }
    }

    fn target(&self, choices: &mut Choices<'_>) -> usize {
        if choices.seldom() { self.blocks + 1 } else { choices.below(self.blocks) }
    }

    fn callee(&self, choices: &mut Choices<'_>, opcode: Opcode) -> Callee {
        let variadic = matches!(opcode, Opcode::CallVariadic | Opcode::CallVariadicYieldable);
        if variadic || opcode == Opcode::ImportResolved || choices.byte() < 100 {
            let fitting: Vec<usize> = (0..IMPORTS.len()).filter(|import| !IMPORTS[*import].1.contains('C') || variadic).collect();
            let import = choices.pick(&fitting);
            return Callee { number: 1 << 31 | import as u32, convention: IMPORTS[import].1 };
        }
        let function = choices.below(self.conventions.len());
        let convention = CONVENTIONS.iter().copied().find(|convention| *convention == self.conventions[function]).unwrap_or("0v_v");
        Callee { number: function as u32, convention }
    }

    fn registers(&self, choices: &mut Choices<'_>, opcode: Opcode, access: Access, callee: Callee, tuples: u16) -> Vec<u16> {
        if matches!(opcode, Opcode::Trace | Opcode::Print) {
            return (0..choices.below(4)).map(|_| if choices.byte() < 128 { value(choices) } else { reference(choices) }).collect();
        }
        let (arguments, results) = sides(callee.convention);
        // A return's operands are the results of its own function.
        let side = if access == Access::Write || opcode == Opcode::Return { results } else { arguments };
        let (plain, span) = side.split_once('C').unwrap_or((side, ""));
        let letters = plain.chars().chain((0..tuples).flat_map(|_| span.trim_end_matches('D').chars()));
        letters
            .filter_map(|letter| match letter {
                'r' => Some(reference(choices) & !if access == Access::Write { MOVE } else { 0 }),
                'i' | 'f' => Some(value(choices)),
                'I' | 'F' => Some(pair(choices)),
                _ => None,
            })
            .collect()
    }
}

fn sides(convention: &str) -> (&str, &str) {
    let (arguments, results) = convention.trim_start_matches('0').split_once('_').unwrap_or_default();
    (arguments.trim_start_matches('v'), results.trim_start_matches('v'))
}

fn value(choices: &mut Choices<'_>) -> u16 {
    if choices.seldom() { VALUES + u16::from(choices.byte()) } else { choices.below(usize::from(VALUES)) as u16 }
}

fn pair(choices: &mut Choices<'_>) -> u16 {
    if choices.seldom() { u16::from(choices.byte()) } else { choices.below(usize::from(VALUES) / 2) as u16 * 2 }
}

fn reference(choices: &mut Choices<'_>) -> u16 {
    let register = choices.below(usize::from(REFS)) as u16 + if choices.seldom() { REFS } else { 0 };
    REF | register | if choices.byte() < 80 { MOVE } else { 0 }
}

fn index(choices: &mut Choices<'_>, count: usize) -> u32 {
    (choices.below(count) + if choices.seldom() { count } else { 0 }) as u32
}

fn moves(choices: &mut Choices<'_>) -> Vec<(u16, u16)> {
    let one = |choices: &mut Choices<'_>| match choices.byte() {
        0..170 => (value(choices), value(choices)),
        _ => (reference(choices), reference(choices) & !MOVE),
    };
    (0..choices.below(4)).map(|_| one(choices)).collect()
}
