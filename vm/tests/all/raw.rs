//! Function bodies made from the op table alone: opcode bytes, then operands by their kinds. Shares no code with the encoder.

use vmfb_bytecode::assemble::Assembled;
use vmfb_bytecode::definition::{BytecodeVersion, Function, Requirements, Signature};
use vmfb_bytecode::isa::{OpSet, Opcode, OperandInfo, OperandKind, PREFIX_F32, PREFIX_F64};

/// What stands in the place of one operand.
#[derive(Clone, Debug)]
pub enum Piece {
    U16(u16),
    U32(u32),
    U64(u64),
    List(Vec<u16>),
    /// A block by number.
    Target(usize),
    Moves(Vec<(u16, u16)>),
    /// Cases: block number and moves.
    Cases(Vec<(usize, Vec<(u16, u16)>)>),
    Text(Vec<u8>),
}

/// A body in the making.
#[derive(Default)]
pub struct RawBody {
    bytes: Vec<u8>,
    blocks: Vec<u32>,
    targets: Vec<(usize, usize)>,
}

impl RawBody {
    /// Starts the next block.
    pub fn block(&mut self, version: BytecodeVersion) {
        self.blocks.push(self.bytes.len() as u32);
        if version.major() >= 14 {
            self.bytes.push(0x79);
        }
    }

    /// Appends an op; `choose` gives its operands.
    pub fn op(&mut self, version: BytecodeVersion, opcode: Opcode, mut choose: impl FnMut(&OperandInfo) -> Piece) {
        let info = opcode.info();
        match info.set {
            OpSet::Core => {}
            OpSet::F32 => self.bytes.push(PREFIX_F32),
            OpSet::F64 => self.bytes.push(PREFIX_F64),
        }
        self.bytes.push(info.byte);
        for operand in info.operands {
            if operand.kind == OperandKind::AlignmentX4 && version.major() < 15 {
                continue;
            }
            let piece = choose(operand);
            self.piece(piece);
        }
    }

    /// The function, with its descriptor. Branches to blocks that do not exist go to pc 0xFFFFFF.
    pub fn finish(mut self, version: BytecodeVersion, convention: &str, value_registers: u16, ref_registers: u16) -> Assembled {
        for (at, block) in self.targets {
            let pc = self.blocks.get(block).copied().unwrap_or(0xFF_FFFF);
            self.bytes[at..at + 4].copy_from_slice(&pc.to_le_bytes());
        }
        let new = version.major() >= 14;
        if !new {
            self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        }
        let function = Function {
            bytecode: 0..self.bytes.len(),
            requirements: Requirements(if new { Requirements::F32 | Requirements::F64 } else { 0 }),
            block_count: new.then_some(self.blocks.len() as u16),
            value_registers,
            ref_registers,
            signature: Some(Signature { calling_convention: convention.to_owned(), attributes: Vec::new() }),
        };
        Assembled { bytecode: self.bytes, function }
    }

    fn u16(&mut self, value: u16) {
        self.bytes.extend(value.to_le_bytes());
    }

    fn align(&mut self) {
        if self.bytes.len() % 2 == 1 {
            self.bytes.push(0);
        }
    }

    fn target(&mut self, block: usize) {
        self.targets.push((self.bytes.len(), block));
        self.bytes.extend([0; 4]);
    }

    fn moves(&mut self, moves: &[(u16, u16)]) {
        self.align();
        self.u16(moves.len() as u16);
        moves.iter().for_each(|(source, destination)| {
            self.u16(*source);
            self.u16(*destination);
        });
    }

    fn piece(&mut self, piece: Piece) {
        match piece {
            Piece::U16(value) => self.u16(value),
            Piece::U32(value) => self.bytes.extend(value.to_le_bytes()),
            Piece::U64(value) => self.bytes.extend(value.to_le_bytes()),
            Piece::List(words) => {
                self.align();
                self.u16(words.len() as u16);
                words.iter().for_each(|word| self.u16(*word));
            }
            Piece::Target(block) => self.target(block),
            Piece::Moves(moves) => self.moves(&moves),
            Piece::Cases(cases) => {
                self.u16(cases.len() as u16);
                for (block, moves) in cases {
                    self.target(block);
                    self.moves(&moves);
                }
            }
            Piece::Text(text) => {
                self.u16(text.len() as u16);
                self.bytes.extend(text);
            }
        }
    }
}
