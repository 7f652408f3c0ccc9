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
        match opcode {
            Opcode::Call | Opcode::CallYieldable => self.call(),
            Opcode::CallVariadic | Opcode::CallVariadicYieldable => self.variadic_call(),
            Opcode::Return => self.return_values(),
            Opcode::Trace | Opcode::Print => self.any_words(self.calls.arguments),
            Opcode::ImportResolved => self.import_resolved(),
            _ => {}
        }
    }

    fn call(&mut self) {
        match self.callee_convention() {
            Ok(Some(convention)) => {
                self.plain_arguments(convention);
                self.words(self.calls.results, &convention.results, "results of the call of");
            }
            // A function of 13.0 without a signature, before inference.
            Ok(None) => {
                self.any_words(self.calls.arguments);
                self.any_words(self.calls.results);
            }
            Err(NoCallee) => self.fail_callee(),
        }
    }

    fn variadic_call(&mut self) {
        if let Callee::Internal(ordinal) = self.calls.callee.callee() {
            let message = format!("variadic call of internal function {ordinal}; only imports are variadic");
            return self.fail(Error::new(Status::FailedPrecondition, message));
        }
        match self.callee_convention() {
            Ok(Some(convention)) => {
                self.variadic_arguments(convention);
                self.words(self.calls.results, &convention.results, "results of the call of");
            }
            _ => self.fail_callee(),
        }
    }

    fn return_values(&mut self) {
        match self.context.convention(self.ordinal) {
            Some(convention) => {
                // For the message.
                self.calls.callee = FunctionRef::internal(self.ordinal);
                self.words(self.calls.arguments, &convention.results, "values returned from");
            }
            None => self.any_words(self.calls.arguments),
        }
    }

    fn import_resolved(&mut self) {
        match self.calls.callee.callee() {
            Callee::Import(ordinal) if (ordinal as usize) < self.context.imports.len() => {}
            Callee::Import(_) => self.fail_callee(),
            Callee::Internal(ordinal) => {
                self.fail(Error::invalid(format!("import.resolved of internal function {ordinal}; an import wanted")));
            }
        }
    }

    /// The convention of the callee, `None` if it is a function whose convention is not known yet.
    #[inline(always)]
    fn callee_convention(&self) -> Result<Option<&'m CallingConvention>, NoCallee> {
        match self.calls.callee.callee() {
            Callee::Import(ordinal) => self.context.imports.get(ordinal as usize).map(Some).ok_or(NoCallee),
            Callee::Internal(ordinal) => match self.context.functions.get(ordinal as usize) {
                Some(info) => Ok(info.is_resolved.then_some(&info.convention)),
                None => Err(NoCallee),
            },
        }
    }

    #[cold]
    fn fail_callee(&mut self) {
        let message = match self.calls.callee.callee() {
            Callee::Import(ordinal) => format!("import {ordinal}; there are {}", self.context.imports.len()),
            Callee::Internal(ordinal) => format!("internal function {ordinal}; there are {}", self.context.functions.len()),
        };
        self.fail(Error::invalid(message));
    }

    /// Arguments of a call without segments.
    fn plain_arguments(&mut self, convention: &CallingConvention) {
        let words = self.calls.arguments;
        if words.len() != convention.arguments.len() {
            return self.fail_count("arguments of the call of", words.len() as u64, convention.arguments.len() as u64);
        }
        for (register, item) in words.iter().zip(&convention.arguments) {
            match item {
                Item::Plain(kind) => self.word(register, *kind),
                Item::Span(_) => return self.fail(Error::invalid(format!("{convention} has a span, which needs a variadic call"))),
            }
        }
    }

    fn variadic_arguments(&mut self, convention: &CallingConvention) {
        let segments = self.calls.segments;
        if segments.len() > convention.arguments.len() {
            let (found, wanted) = (segments.len(), convention.arguments.len());
            return self.fail(Error::invalid(format!("{found} segments; {convention} has {wanted} items")));
        }
        let found = self.calls.arguments.len() as u64;
        match flat_count(convention, segments) {
            Ok(wanted) if wanted == found => {}
            Ok(wanted) => return self.fail_count("arguments of the call of", found, wanted),
            Err(error) => return self.fail(error),
        }
        // The counts agree, so every item finds its words.
        let mut words = self.calls.arguments.iter();
        for (index, item) in convention.arguments.iter().enumerate() {
            match item {
                Item::Plain(kind) => words.next().into_iter().for_each(|register| self.word(register, *kind)),
                Item::Span(kinds) => {
                    let count = usize::from(segments.get(index).unwrap_or(0));
                    let flat = words.by_ref().take(count * kinds.len());
                    flat.zip(kinds.iter().cycle()).for_each(|(register, kind)| self.word(register, *kind));
                }
            }
        }
    }

    /// A list with one word per kind.
    #[inline]
    fn words(&mut self, list: RegisterList<'m>, kinds: &[Kind], what: &str) {
        if list.len() != kinds.len() {
            return self.fail_count(what, list.len() as u64, kinds.len() as u64);
        }
        list.iter().zip(kinds).for_each(|(register, kind)| self.word(register, *kind));
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
    fn fail_count(&mut self, what: &str, found: u64, wanted: u64) {
        let callee = match self.calls.callee.callee() {
            Callee::Import(ordinal) => match self.context.definition.imports.get(ordinal as usize) {
                Some(import) => format!("import {:?}", import.full_name),
                None => format!("import {ordinal}"),
            },
            Callee::Internal(ordinal) => format!("function {ordinal}"),
        };
        let status = if found < wanted { Status::OutOfRange } else { Status::InvalidArgument };
        self.fail(Error::new(status, format!("{what} {callee}: {found} registers; {wanted} wanted")));
    }
}

/// The callee's ordinal is out of range.
struct NoCallee;

/// The kinds of one tuple of an item.
pub(super) fn item_kinds(item: &Item) -> &[Kind] {
    match item {
        Item::Plain(kind) => std::slice::from_ref(kind),
        Item::Span(kinds) => kinds,
    }
}

/// How many words a variadic call must have. What stands at a plain argument does not matter, as in the official runtime: compilers
/// write 65535 there, people who write assembly 1 or, behind the last span, nothing.
fn flat_count(convention: &CallingConvention, segments: SegmentList<'_>) -> Result<u64> {
    let mut total = 0_u64;
    for (index, item) in convention.arguments.iter().enumerate() {
        total = total.saturating_add(match (item, segments.get(index)) {
            (Item::Plain(_), _) => 1,
            (Item::Span(kinds), Some(count)) => u64::from(count).saturating_mul(kinds.len() as u64),
            (Item::Span(_), None) => {
                let found = segments.len();
                return Err(Error::new(Status::OutOfRange, format!("{found} segments; item {index} of {convention} is a span")));
            }
        });
    }
    Ok(total)
}
