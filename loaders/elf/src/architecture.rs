//! Architectures of embedded ELF images: names, machine numbers, relocation tables.

use crate::records::Class;
use object::elf;

/// An architecture that executables are compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Architecture {
    /// Name in format strings, for example `x86_64`.
    pub name: &'static str,
    /// `e_machine`.
    pub machine: u16,
    /// Width of addresses.
    pub class: Class,
    /// Form of relocations; the other one is refused.
    pub form: RelocationForm,
    /// Relocation types that are applied; all others are refused.
    pub types: &'static [RelocationType],
}

/// Where the addend of a relocation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationForm {
    /// In the word that is relocated.
    Rel,
    /// In the entry.
    Rela,
}

/// A relocation type of one architecture.
#[derive(Clone, Copy, Debug)]
pub struct RelocationType {
    /// Number in `r_info`.
    pub number: u32,
    /// What is written.
    pub formula: Formula,
    /// How it is written.
    pub field: Field,
}

/// What a relocation writes: A is the addend, B the load bias, P the place, S the symbol's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// Nothing.
    Nothing,
    /// B + A.
    Relative,
    /// S.
    Symbol,
    /// S + A.
    SymbolAddend,
    /// S + A - P.
    PlaceRelative,
}

/// The word that a relocation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// 64 bits.
    Word64,
    /// 32 bits, no sign: an address of a 32-bit machine or of the low 4 GiB.
    Word32,
    /// 32 bits with a sign.
    Signed32,
}

impl Field {
    /// Bytes of the word.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Word64 => 8,
            Self::Word32 | Self::Signed32 => 4,
        }
    }
}

const fn rule(number: u32, formula: Formula, field: Field) -> RelocationType {
    RelocationType { number, formula, field }
}

use Field::{Signed32, Word32, Word64};
use Formula::{Nothing, PlaceRelative, Relative, Symbol, SymbolAddend};

/// All architectures.
pub static ARCHITECTURES: [Architecture; 6] = [
    Architecture {
        name: "x86_64",
        machine: elf::EM_X86_64.0,
        class: Class::Elf64,
        form: RelocationForm::Rela,
        types: &[
            rule(0, Nothing, Word64),
            rule(1, SymbolAddend, Word64),
            rule(2, PlaceRelative, Signed32),
            rule(6, Symbol, Word64),
            rule(7, Symbol, Word64),
            rule(8, Relative, Word64),
            rule(10, SymbolAddend, Word32),
            rule(11, SymbolAddend, Signed32),
        ],
    },
    Architecture {
        name: "arm_64",
        machine: elf::EM_AARCH64.0,
        class: Class::Elf64,
        form: RelocationForm::Rela,
        types: &[
            rule(0, Nothing, Word64),
            rule(257, SymbolAddend, Word64),
            rule(1025, SymbolAddend, Word64),
            rule(1026, SymbolAddend, Word64),
            rule(1027, Relative, Word64),
        ],
    },
    Architecture {
        name: "riscv_64",
        machine: elf::EM_RISCV.0,
        class: Class::Elf64,
        form: RelocationForm::Rela,
        types: &[
            rule(0, Nothing, Word64),
            rule(1, SymbolAddend, Word32),
            rule(2, SymbolAddend, Word64),
            rule(3, Relative, Word64),
            rule(5, Symbol, Word64),
        ],
    },
    Architecture {
        name: "riscv_32",
        machine: elf::EM_RISCV.0,
        class: Class::Elf32,
        form: RelocationForm::Rela,
        types: &[rule(0, Nothing, Word32), rule(1, SymbolAddend, Word32), rule(3, Relative, Word32), rule(5, Symbol, Word32)],
    },
    Architecture {
        name: "arm_32",
        machine: elf::EM_ARM.0,
        class: Class::Elf32,
        form: RelocationForm::Rel,
        types: &[
            rule(0, Nothing, Word32),
            rule(2, SymbolAddend, Word32),
            rule(3, PlaceRelative, Word32),
            rule(21, Symbol, Word32),
            rule(22, Symbol, Word32),
            rule(23, Relative, Word32),
        ],
    },
    Architecture {
        name: "x86_32",
        machine: elf::EM_386.0,
        class: Class::Elf32,
        form: RelocationForm::Rel,
        types: &[
            rule(0, Nothing, Word32),
            rule(1, SymbolAddend, Word32),
            rule(2, PlaceRelative, Word32),
            rule(6, Symbol, Word32),
            rule(7, Symbol, Word32),
            rule(8, Relative, Word32),
        ],
    },
];

impl Architecture {
    /// The architecture with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ARCHITECTURES.iter().find(|architecture| architecture.name == name)
    }

    /// The architecture of this process, if embedded ELF images exist for it.
    pub fn host() -> Option<&'static Self> {
        Self::named(vmfb_hal::processor::architecture()?)
    }

    /// The architecture with this machine number and class.
    pub fn of(machine: u16, class: Class) -> Option<&'static Self> {
        ARCHITECTURES.iter().find(|architecture| architecture.machine == machine && architecture.class == class)
    }

    /// The relocation type with this number.
    pub fn relocation_type(&self, number: u32) -> Option<&'static RelocationType> {
        self.types.iter().find(|kind| kind.number == number)
    }
}
