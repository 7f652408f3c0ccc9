//! Calling conventions of the functions of 13.0 modules that have none.
//!
//! 13.0 states signatures of exports only. Calls tell how many values go in and out and in which bank; whether a value has 32 or 64
//! bits is taken from what the function itself does: an argument is as wide as its first read, a result as its last write. What the
//! callers do is a hint where that says nothing. When nothing is known or sites contradict each other, the module is refused.

use super::access::{AccessSink, Width, each_access};
use super::usage::{Exposed, WINDOW, explains, exposed};
use super::{Context, FunctionInfo};
use crate::calling_convention::{CallingConvention, Item, Kind, PlacementRule, Placer};
use crate::definition::ModuleDef;
use crate::isa::RegisterList;
use crate::{Error, Result, Status};

/// Fills in every convention that is missing.
pub(super) fn resolve(definition: &ModuleDef, imports: &[CallingConvention], functions: &mut [FunctionInfo]) -> Result<()> {
    let Survey { mut unknowns, calls, .. } = survey(&Context { definition, imports, functions })?;
    let mut returns = Returns::default();
    for ordinal in callees_first(&unknowns, calls) {
        let Some(Some(unknown)) = unknowns.get_mut(ordinal) else { continue };
        let context = Context { definition, imports, functions };
        let convention = unknown.infer(&context, u32::try_from(ordinal).unwrap_or(u32::MAX), &mut returns)?;
        if let Some(info) = functions.get_mut(ordinal) {
            (info.convention, info.is_resolved) = (convention, true);
        }
    }
    Ok(())
}

#[cold]
fn unknown_width(message: impl Into<String>) -> Error {
    Error::new(Status::Unimplemented, message)
}

/// Which widths were seen.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    four: bool,
    eight: bool,
}

impl Evidence {
    fn add(&mut self, width: Width) {
        match width {
            Width::Four => self.four = true,
            Width::Eight => self.eight = true,
            Width::Unknown => {}
        }
    }

    /// The kind that all evidence points at.
    fn kind(self) -> Option<Kind> {
        match (self.four, self.eight) {
            (true, false) => Some(Kind::I32),
            (false, true) => Some(Kind::I64),
            _ => None,
        }
    }
}

/// A value of an unknown signature.
#[derive(Clone, Copy, Debug)]
enum Value {
    Ref,
    Number(Evidence),
}

/// What is known about a function without a convention.
#[derive(Debug, Default)]
struct Unknown {
    /// From its callers; `None` if nobody calls it.
    arguments: Option<Vec<Value>>,
    /// From its callers and its own returns.
    results: Option<Vec<Value>>,
    is_called: bool,
}

impl Unknown {
    /// Takes note of a list of registers; lists must agree in number and banks.
    fn note<'v>(values: &'v mut Option<Vec<Value>>, list: RegisterList<'_>, what: &str) -> Result<&'v mut Vec<Value>> {
        let shape = |is_ref| if is_ref { Value::Ref } else { Value::Number(Evidence::default()) };
        let values = values.get_or_insert_with(|| list.iter().map(|register| shape(register.is_ref())).collect());
        let same = values.len() == list.len()
            && values.iter().zip(list.iter()).all(|(value, register)| matches!(value, Value::Ref) == register.is_ref());
        match same {
            true => Ok(values),
            false => Err(unknown_width(format!("{what} differ in number or bank from those elsewhere; the function has no signature"))),
        }
    }

    fn infer(&mut self, context: &Context<'_>, ordinal: u32, returns: &mut Returns) -> Result<CallingConvention> {
        let at = |error: Error| error.at(ordinal, 0);
        let exposed = exposed(context, ordinal)?;
        let arguments = self.arguments.take().unwrap_or_default();
        let mut convention = infer_arguments(&arguments, &exposed).map_err(at)?;
        let returned = returns.widths(context, ordinal, &convention)?;
        let consumed = self.results.take().unwrap_or_default();
        for (index, consumed) in consumed.into_iter().enumerate() {
            let kind = result_kind(consumed, returned.get(index).copied(), self.is_called);
            convention.results.push(kind.ok_or_else(|| at(unknown_width(format!("the width of result {index} cannot be told"))))?);
        }
        Ok(convention)
    }
}

fn infer_arguments(arguments: &[Value], exposed: &Exposed) -> Result<CallingConvention> {
    let mut placer = Placer::new(PlacementRule::LowestFree);
    let mut convention = CallingConvention::default();
    for (index, value) in arguments.iter().enumerate() {
        let kind = match value {
            Value::Ref => Some(Kind::Ref),
            Value::Number(hint) => argument_kind(&placer, *hint, exposed),
        };
        let kind = kind.ok_or_else(|| unknown_width(format!("the width of argument {index} cannot be told")))?;
        placer.place(kind)?;
        convention.arguments.push(Item::Plain(kind));
    }
    if placer.placement.value_slots > WINDOW || !explains(&placer.placement, &convention, exposed) {
        return Err(unknown_width(format!("{convention}, as its callers have it, does not explain what the function reads")));
    }
    Ok(convention)
}

/// The kind of the next argument, from the reads of the slots that it would stand at.
fn argument_kind(placer: &Placer, hint: Evidence, exposed: &Exposed) -> Option<Kind> {
    let (single, pair) = (placer.slot(Kind::I32), placer.slot(Kind::I64));
    let as_single = exposed.four(single) || single != pair && exposed.moved(single);
    match (as_single, exposed.eight(pair)) {
        // A pair at the same place may well be read by its low half, too.
        (_, true) if single == pair => Some(Kind::I64),
        (false, true) => Some(Kind::I64),
        (true, false) => Some(Kind::I32),
        // `i32, i32, i64` and `i32, i64, i32` look alike to the callee.
        _ => hint.kind(),
    }
}

fn result_kind(consumed: Value, returned: Option<Value>, is_called: bool) -> Option<Kind> {
    match (consumed, returned) {
        (Value::Ref, _) => Some(Kind::Ref),
        (Value::Number(consumed), Some(Value::Number(returned))) if returned.four || returned.eight => {
            let kind = returned.kind()?;
            let contradicted = if kind == Kind::I64 { consumed.four && !consumed.eight } else { consumed.eight };
            (!contradicted || !is_called).then_some(kind)
        }
        // A 32-bit read may be the low half of a pair, a 64-bit read cannot be anything else.
        (Value::Number(consumed), _) if consumed.eight => Some(Kind::I64),
        (Value::Number(consumed), _) if consumed.four || !is_called => Some(Kind::I32),
        _ => None,
    }
}

/// Looks at every call of a function without a convention.
fn survey(context: &Context<'_>) -> Result<Survey> {
    let unknown = |info: &FunctionInfo| (!info.is_resolved).then(Unknown::default);
    let mut survey = Survey {
        unknowns: context.functions.iter().map(unknown).collect(),
        calls: Vec::new(),
        caller: 0,
        pc: 0,
        entry: Vec::new(),
        slots: Slots::default(),
    };
    for (caller, function) in (0..).zip(&context.definition.functions) {
        survey.caller = caller;
        survey.slots.make_room(function.value_registers);
        survey.entry = match context.convention(caller) {
            Some(convention) => argument_widths(convention)?,
            None => Vec::new(),
        };
        each_access(context, caller, &mut survey).map_err(|error| error.at(caller, survey.pc))?;
    }
    Ok(survey)
}

/// The slots and widths of the arguments, where both placements agree on them well enough for a hint.
fn argument_widths(convention: &CallingConvention) -> Result<Vec<(u16, Width)>> {
    let placement = convention.placement(PlacementRule::LowestFree)?;
    let kinds = convention.plain_arguments().unwrap_or_default();
    let width = |kind: &Kind| match kind.value_slots() {
        0 => Width::Unknown,
        1 => Width::Four,
        _ => Width::Eight,
    };
    Ok(placement.slots.iter().copied().zip(kinds.iter().map(width)).filter(|(_, width)| *width != Width::Unknown).collect())
}

/// A pass over all callers.
struct Survey {
    unknowns: Vec<Option<Unknown>>,
    /// Who calls whom of the unknown ones.
    calls: Vec<(u32, u32)>,
    caller: u32,
    pc: u32,
    /// What the caller's entry block starts with.
    entry: Vec<(u16, Width)>,
    slots: Slots,
}

/// What the current block did to each value register.
#[derive(Debug, Default)]
struct Slots {
    /// Number of the block; entries of other blocks are void.
    block: u64,
    slots: Vec<SlotState>,
}

#[derive(Clone, Copy, Debug)]
struct SlotState {
    block: u64,
    width: Width,
    /// The function without a convention whose result this is, and which.
    result: Option<(u32, usize)>,
}

impl Slots {
    fn make_room(&mut self, count: u16) {
        if self.slots.len() < usize::from(count) {
            self.slots.resize(usize::from(count), SlotState { block: 0, width: Width::Unknown, result: None });
        }
    }

    fn next_block(&mut self) {
        self.block += 1;
    }

    /// The last write of this block.
    fn last(&self, slot: u16) -> Option<&SlotState> {
        self.slots.get(usize::from(slot)).filter(|state| state.block == self.block)
    }

    fn write(&mut self, slot: u16, width: Width, result: Option<(u32, usize)>) {
        if let Some(state) = self.slots.get_mut(usize::from(slot)) {
            *state = SlotState { block: self.block, width, result };
        }
        if width == Width::Eight
            && let Some(high) = self.slots.get_mut(usize::from(slot) + 1)
        {
            high.block = 0;
        }
    }
}

impl Survey {
    fn unknown(&mut self, function: u32) -> Option<&mut Unknown> {
        self.unknowns.get_mut(function as usize).and_then(Option::as_mut)
    }
}

impl<'m> AccessSink<'m> for Survey {
    fn block(&mut self, pc: u32) {
        self.slots.next_block();
        if pc == 0 {
            self.entry.iter().for_each(|&(slot, width)| self.slots.write(slot, width, None));
        }
    }

    fn instruction(&mut self, pc: u32) {
        self.pc = pc;
    }

    fn read(&mut self, slot: u16, width: Width) {
        let Some((function, index)) = self.slots.last(slot).and_then(|state| state.result) else { return };
        let results = self.unknown(function).and_then(|unknown| unknown.results.as_mut());
        if let Some(Value::Number(evidence)) = results.and_then(|results| results.get_mut(index)) {
            evidence.add(width);
        }
    }

    fn write(&mut self, slot: u16, width: Width) {
        self.slots.write(slot, width, None);
    }

    fn unknown_call(&mut self, function: u32, arguments: RegisterList<'m>) -> Result<()> {
        self.calls.push((self.caller, function));
        let Self { unknowns, slots, .. } = self;
        let Some(Some(unknown)) = unknowns.get_mut(function as usize) else { return Ok(()) };
        let values = Unknown::note(&mut unknown.arguments, arguments, "arguments")?;
        for (value, register) in values.iter_mut().zip(arguments.iter()) {
            if let Value::Number(evidence) = value {
                evidence.add(word_width(slots, register.ordinal()));
            }
        }
        Ok(())
    }

    fn unknown_results(&mut self, function: u32, results: RegisterList<'m>) -> Result<()> {
        let Self { unknowns, slots, .. } = self;
        let Some(Some(unknown)) = unknowns.get_mut(function as usize) else { return Ok(()) };
        unknown.is_called = true;
        let values = Unknown::note(&mut unknown.results, results, "results")?;
        for (index, (value, register)) in values.iter_mut().zip(results.iter()).enumerate() {
            if let Value::Number(evidence) = value {
                slots.write(register.ordinal(), Width::Unknown, Some((function, index)));
                if !register.ordinal().is_multiple_of(2) {
                    evidence.add(Width::Four);
                }
            }
        }
        Ok(())
    }

    fn unknown_return(&mut self, values: RegisterList<'m>) -> Result<()> {
        let caller = self.caller;
        self.unknown(caller).map_or(Ok(()), |unknown| Unknown::note(&mut unknown.results, values, "returned values").map(|_| ()))
    }
}

/// The width of a word of a list, as far as its own block tells.
fn word_width(slots: &Slots, ordinal: u16) -> Width {
    if !ordinal.is_multiple_of(2) {
        return Width::Four;
    }
    slots.last(ordinal).map_or(Width::Unknown, |state| state.width)
}

/// The functions without a convention, each after those that it calls (but for recursion).
fn callees_first(unknowns: &[Option<Unknown>], mut calls: Vec<(u32, u32)>) -> Vec<usize> {
    calls.sort_unstable();
    calls.dedup();
    let first_call = |caller: usize| calls.partition_point(|&(other, _)| (other as usize) < caller);
    let mut order = Vec::new();
    let mut seen: Vec<bool> = unknowns.iter().map(Option::is_none).collect();
    let mut path: Vec<(usize, usize)> = Vec::new();
    for root in 0..unknowns.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        path.push((root, first_call(root)));
        while let Some((function, next)) = path.last_mut() {
            match calls.get(*next) {
                Some(&(caller, callee)) if caller as usize == *function => {
                    *next += 1;
                    let callee = callee as usize;
                    if seen.get_mut(callee).is_some_and(|seen| !std::mem::replace(seen, true)) {
                        path.push((callee, first_call(callee)));
                    }
                }
                _ => {
                    order.push(*function);
                    path.pop();
                }
            }
        }
    }
    order
}

/// Finds the widths of the values that a function returns; used for one function after another.
#[derive(Default)]
struct Returns {
    entry: Vec<(u16, Width)>,
    slots: Slots,
    /// How each register is used in the whole function, and which registers those are.
    anywhere: Vec<Evidence>,
    used: Vec<u16>,
    values: Option<Vec<Value>>,
    /// Results that were not written in the block that returns them.
    open: Vec<(usize, u16)>,
}

impl Returns {
    fn widths(&mut self, context: &Context<'_>, ordinal: u32, convention: &CallingConvention) -> Result<Vec<Value>> {
        let registers = context.definition.functions.get(ordinal as usize).map_or(0, |function| function.value_registers);
        self.slots.make_room(registers);
        if self.anywhere.len() < usize::from(registers) {
            self.anywhere.resize(usize::from(registers), Evidence::default());
        }
        self.entry = argument_widths(convention)?;
        each_access(context, ordinal, self)?;
        let mut values = self.values.take().unwrap_or_default();
        for (index, slot) in self.open.drain(..) {
            let (Some(Value::Number(evidence)), Some(anywhere)) = (values.get_mut(index), self.anywhere.get(usize::from(slot))) else {
                continue;
            };
            match anywhere.kind() {
                Some(Kind::I64) => evidence.add(Width::Eight),
                Some(_) => evidence.add(Width::Four),
                None => {}
            }
        }
        for slot in self.used.drain(..) {
            if let Some(evidence) = self.anywhere.get_mut(usize::from(slot)) {
                *evidence = Evidence::default();
            }
        }
        Ok(values)
    }

    fn use_anywhere(&mut self, slot: u16, width: Width) {
        if let Some(evidence) = self.anywhere.get_mut(usize::from(slot)) {
            if !evidence.four && !evidence.eight {
                self.used.push(slot);
            }
            evidence.add(width);
        }
    }
}

impl<'m> AccessSink<'m> for Returns {
    fn block(&mut self, pc: u32) {
        self.slots.next_block();
        if pc == 0 {
            for (slot, width) in std::mem::take(&mut self.entry) {
                self.write(slot, width);
            }
        }
    }

    fn read(&mut self, slot: u16, width: Width) {
        self.use_anywhere(slot, width);
    }

    fn write(&mut self, slot: u16, width: Width) {
        self.slots.write(slot, width, None);
        self.use_anywhere(slot, width);
    }

    fn unknown_return(&mut self, values: RegisterList<'m>) -> Result<()> {
        let noted = Unknown::note(&mut self.values, values, "returned values")?;
        for (index, (value, register)) in noted.iter_mut().zip(values.iter()).enumerate() {
            let Value::Number(evidence) = value else { continue };
            match word_width(&self.slots, register.ordinal()) {
                Width::Unknown => self.open.push((index, register.ordinal())),
                width => evidence.add(width),
            }
        }
        Ok(())
    }
}
