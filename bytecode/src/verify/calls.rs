//! The checks of calls and returns: register words against calling conventions.

use super::operands::Checker;
use crate::calling_convention::{CallingConvention, Item, Kind};
use crate::isa::{Callee, FunctionRef, Opcode, Register, RegisterList, SegmentList};
use crate::{Error, Result, Status};

/// What the operands of a call say, collected until the whole instruction was read.
pub(super) struct Calls<'m> {
    pub(super) callee: FunctionRef,
    pub(super) segments: SegmentList<'m>,
    pub(super) arguments: RegisterList<'m>,
    pub(super) results: RegisterList<'m>,
}

impl Default for Calls<'_> {
    fn default() -> Self {
        Self { callee: FunctionRef(0), segments: SegmentList::new(&[]), arguments: RegisterList::new(&[]), results: RegisterList::new(&[]) }
    }
}

impl<'m> Checker<'_, 'm> {
    /// Checks what needs the whole instruction.
    #[inline(always)]
    pub(super) fn finish(&mut self, opcode: Opcode) {
        let result = match opcode {
            Opcode::Call | Opcode::CallYieldable => self.call(),
            Opcode::CallVariadic | Opcode::CallVariadicYieldable => self.variadic_call(),
            Opcode::Return => self.return_values(),
            Opcode::Trace | Opcode::Print => {
                self.any_words(self.calls.arguments);
                return;
            }
            Opcode::ImportResolved => self.import_resolved(),
            _ => return,
        };
        if let Err(error) = result {
            self.fail(error);
        }
    }

    fn call(&mut self) -> Result<()> {
        match self.callee_convention()? {
            Some(convention) => {
                self.plain_arguments(convention).map_err(|error| self.of_call("arguments", error))?;
                self.words(self.calls.results, &convention.results).map_err(|error| self.of_call("results", error))?;
            }
            None => {
                // A function of 13.0 without a signature, before inference.
                self.any_words(self.calls.arguments);
                self.any_words(self.calls.results);
            }
        }
        Ok(())
    }

    fn variadic_call(&mut self) -> Result<()> {
        if let Callee::Internal(ordinal) = self.calls.callee.callee() {
            let message = format!("variadic call of internal function {ordinal}; only imports are variadic");
            return Err(Error::new(Status::FailedPrecondition, message));
        }
        let convention = self.callee_convention()?.ok_or_else(|| Error::new(Status::Internal, "import without a calling convention"))?;
        self.variadic_arguments(convention).map_err(|error| self.of_call("arguments", error))?;
        self.words(self.calls.results, &convention.results).map_err(|error| self.of_call("results", error))
    }

    fn return_values(&mut self) -> Result<()> {
        match self.context.functions.get(self.ordinal as usize) {
            Some(Some(convention)) => self.words(self.calls.arguments, &convention.results),
            _ => {
                self.any_words(self.calls.arguments);
                Ok(())
            }
        }
    }

    fn import_resolved(&self) -> Result<()> {
        match self.calls.callee.callee() {
            Callee::Import(_) => self.callee_convention().map(|_| ()),
            Callee::Internal(ordinal) => Err(Error::invalid(format!("import.resolved of internal function {ordinal}; an import wanted"))),
        }
    }

    /// The convention of the callee, `None` if it is a function whose convention is not known yet.
    fn callee_convention(&self) -> Result<Option<&'m CallingConvention>> {
        match self.calls.callee.callee() {
            Callee::Import(ordinal) => {
                let count = self.context.imports.len();
                let convention = self.context.imports.get(ordinal as usize);
                convention.map(Some).ok_or_else(|| Error::invalid(format!("import {ordinal}; there are {count}")))
            }
            Callee::Internal(ordinal) => {
                let count = self.context.functions.len();
                let convention = self.context.functions.get(ordinal as usize);
                convention.map(Option::as_ref).ok_or_else(|| Error::invalid(format!("internal function {ordinal}; there are {count}")))
            }
        }
    }

    /// Arguments of a call without segments.
    fn plain_arguments(&mut self, convention: &CallingConvention) -> Result<()> {
        let words = self.calls.arguments;
        check_count(words.len() as u64, convention.arguments.len() as u64)?;
        for (register, item) in words.iter().zip(&convention.arguments) {
            match item {
                Item::Plain(kind) => self.word(register, *kind),
                Item::Span(_) => return Err(Error::invalid(format!("{convention} has a span, which needs a variadic call"))),
            }
        }
        Ok(())
    }

    fn variadic_arguments(&mut self, convention: &CallingConvention) -> Result<()> {
        let segments = self.calls.segments;
        if segments.len() != convention.arguments.len() {
            let (found, wanted) = (segments.len(), convention.arguments.len());
            return Err(Error::invalid(format!("{found} segments; {convention} has {wanted} items")));
        }
        check_count(self.calls.arguments.len() as u64, flat_count(convention, segments)?)?;
        // The counts agree, so every item finds its words.
        let mut words = self.calls.arguments.iter();
        for (item, count) in convention.arguments.iter().zip(segments.iter()) {
            match item {
                Item::Plain(kind) => words.next().into_iter().for_each(|register| self.word(register, *kind)),
                Item::Span(kinds) => {
                    let flat = words.by_ref().take(usize::from(count) * kinds.len());
                    flat.zip(kinds.iter().cycle()).for_each(|(register, kind)| self.word(register, *kind));
                }
            }
        }
        Ok(())
    }

    /// A list with one word per kind.
    fn words(&mut self, list: RegisterList<'m>, kinds: &[Kind]) -> Result<()> {
        check_count(list.len() as u64, kinds.len() as u64)?;
        list.iter().zip(kinds).for_each(|(register, kind)| self.word(register, *kind));
        Ok(())
    }

    #[inline(always)]
    fn word(&mut self, register: Register, kind: Kind) {
        match kind {
            Kind::I32 | Kind::F32 => self.value(register.word()),
            Kind::I64 | Kind::F64 => self.pair(register.word()),
            Kind::Ref => self.reference(register.word()),
        }
    }

    fn any_words(&mut self, list: RegisterList<'m>) {
        list.iter().for_each(|register| self.register(register));
    }

    #[cold]
    fn of_call(&self, what: &str, error: Error) -> Error {
        let callee = match self.calls.callee.callee() {
            Callee::Import(ordinal) => match self.context.definition.imports.get(ordinal as usize) {
                Some(import) => format!("import {:?}", import.full_name),
                None => format!("import {ordinal}"),
            },
            Callee::Internal(ordinal) => format!("function {ordinal}"),
        };
        Error::new(error.status, format!("{what} of the call of {callee}: {}", error.message))
    }
}

/// The kinds of one tuple of an item.
pub(super) fn item_kinds(item: &Item) -> &[Kind] {
    match item {
        Item::Plain(kind) => std::slice::from_ref(kind),
        Item::Span(kinds) => kinds,
    }
}

/// How many words a variadic call must have, after a check of its segments.
fn flat_count(convention: &CallingConvention, segments: SegmentList<'_>) -> Result<u64> {
    let mut total = 0_u64;
    for (item, count) in convention.arguments.iter().zip(segments.iter()) {
        total = total.saturating_add(match item {
            Item::Plain(_) if count == SegmentList::PLAIN => 1,
            Item::Plain(_) => return Err(Error::invalid(format!("segment {count} for a plain argument; 65535 wanted"))),
            Item::Span(kinds) => u64::from(count).saturating_mul(kinds.len() as u64),
        });
    }
    Ok(total)
}

fn check_count(found: u64, wanted: u64) -> Result<()> {
    match found.cmp(&wanted) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(Error::out_of_range(format!("{found} registers; {wanted} wanted"))),
        std::cmp::Ordering::Greater => Err(Error::invalid(format!("{found} registers; {wanted} wanted"))),
    }
}
