//! What the code of a function demands of its arguments, for modules without declarations.
//!
//! Programs begin with calls of `buffer_view.assert`, with element type and dimensions as constants. They are read from the
//! first block, through calls of other functions of the module.

use crate::declaration::DeclaredType;
use std::collections::HashMap;
use vmfb_bytecode::decode::Instructions;
use vmfb_bytecode::definition::ModuleDef;
use vmfb_bytecode::isa::{Access, Callee, Op, OperandVisitor, RefMove, RegisterList, X4, X8};
use vmfb_hal::{ElementType, MAX_RANK};

/// Calls are followed to this depth.
const MAX_DEPTH: usize = 4;

/// Shape and element type of each reference among the arguments, in order; `None` where the code asserts nothing.
pub fn reference_types(definition: &ModuleDef, function: u32, references: usize) -> Vec<Option<DeclaredType>> {
    let mut found = vec![None; references];
    let arguments: Vec<Option<usize>> = (0..references).map(Some).collect();
    follow(definition, function, &arguments, MAX_DEPTH, &mut found);
    found
}

/// Reads the first block of a function whose references are the arguments of the first one that `arguments` names.
fn follow(definition: &ModuleDef, function: u32, arguments: &[Option<usize>], depth: usize, found: &mut [Option<DeclaredType>]) {
    let mut known = Registers::default();
    for (register, argument) in (0u16..).zip(arguments) {
        known.references.extend(argument.map(|argument| (register, argument)));
    }
    for instruction in Instructions::new(definition.body(function), definition.bytecode_version) {
        let Ok(instruction) = instruction else { return };
        let call = match &instruction.op {
            Op::Call { callee, arguments, .. } | Op::CallVariadic { callee, arguments, .. } => Some((callee.callee(), *arguments)),
            _ => None,
        };
        match call {
            Some((Callee::Import(ordinal), list)) if is_assert(definition, ordinal) => known.read_assert(list, found),
            Some((Callee::Internal(callee), list)) if depth > 0 => {
                let references: Vec<Option<usize>> = list
                    .iter()
                    .filter(|register| register.is_ref())
                    .map(|register| known.references.get(&register.ordinal()).copied())
                    .collect();
                follow(definition, callee, &references, depth - 1, found);
            }
            _ => {}
        }
        if instruction.op.is_terminator() {
            return;
        }
        instruction.op.visit(&mut known);
        known.learn(&instruction.op);
    }
}

fn is_assert(definition: &ModuleDef, import: u32) -> bool {
    let import = definition.imports.get(import as usize);
    import.is_some_and(|import| matches!(import.full_name.as_str(), "hal.buffer_view.assert" | "hal_inline.buffer_view.assert"))
}

/// What is known of the registers.
#[derive(Default)]
struct Registers {
    /// Constants by slot; 64-bit ones take two.
    words: HashMap<u16, u32>,
    /// Arguments of the first function by ref register.
    references: HashMap<u16, usize>,
}

impl Registers {
    fn long(&self, register: u16) -> Option<u64> {
        let (low, high) = (self.words.get(&register)?, self.words.get(&register.checked_add(1)?)?);
        Some(u64::from(*high) << 32 | u64::from(*low))
    }

    /// Takes shape and type from `assert(view, message, element type, encoding, dimensions…)`.
    fn read_assert(&self, list: RegisterList<'_>, found: &mut [Option<DeclaredType>]) {
        let registers: Vec<_> = list.iter().collect();
        let [view, _message, element_type, _encoding, dimensions @ ..] = registers.as_slice() else { return };
        let Some(place) = self.references.get(&view.ordinal()).and_then(|argument| found.get_mut(*argument)) else { return };
        let element_type = self.words.get(&element_type.ordinal()).map(|code| ElementType(*code));
        let Some(element_type) = element_type.filter(|element_type| element_type.class().is_some()) else { return };
        if place.is_none() && dimensions.len() <= MAX_RANK {
            let shape = dimensions.iter().map(|dimension| self.long(dimension.ordinal())).collect();
            *place = Some(DeclaredType::Tensor { shape, element_type });
        }
    }

    fn learn(&mut self, op: &Op<'_>) {
        match op {
            Op::ConstI32 { value, dst } => self.set(dst.0, value.0),
            Op::ConstI32Zero { dst } => self.set(dst.0, 0),
            Op::ConstI64 { value, dst } => self.set_long(dst.0, value.0),
            Op::ConstI64Zero { dst } => self.set_long(dst.0, 0),
            _ => {}
        }
    }

    fn set(&mut self, register: u16, word: u32) {
        self.words.insert(register, word);
    }

    fn set_long(&mut self, register: u16, value: u64) {
        self.words.insert(register, value as u32);
        self.words.insert(register.saturating_add(1), (value >> 32) as u32);
    }
}

/// Forgets what an instruction overwrites.
impl<'a> OperandVisitor<'a> for Registers {
    fn x4(&mut self, register: X4, access: Access) {
        if access == Access::Write {
            self.words.remove(&register.0);
        }
    }

    fn x8(&mut self, register: X8, access: Access) {
        if access == Access::Write {
            self.words.remove(&register.0);
            self.words.remove(&register.0.saturating_add(1));
        }
    }

    fn ref_move(&mut self, register: RefMove, access: Access) {
        if access == Access::Write || register.is_move() {
            self.references.remove(&register.ordinal());
        }
    }

    fn registers(&mut self, list: RegisterList<'a>, access: Access) {
        for register in list.iter() {
            match (register.is_ref(), access) {
                (true, Access::Write) => drop(self.references.remove(&register.ordinal())),
                (true, Access::Read) if register.is_move() => drop(self.references.remove(&register.ordinal())),
                (false, Access::Write) => {
                    // A result may have 64 bits.
                    self.words.remove(&register.ordinal());
                    self.words.remove(&register.ordinal().saturating_add(1));
                }
                _ => {}
            }
        }
    }
}
