//! Calls of native functions, ranges of buffers, ref globals.

use super::environment::{Environment, wrong_type};
use super::read_ref;
use crate::body::{CallSite, Moves};
use crate::code::{Code, Inst, MOVE};
use crate::native::Completion;
use crate::registers::RegisterValue;
use crate::registry::NativeArguments;
use crate::stack::Values;
use crate::{Buffer, Error, Origin, Result, ResultExt, bulk, siphash};
use vmfb_bytecode::calling_convention::Kind;
use vmfb_memory::Span;

impl Environment<'_> {
    /// Calls a native function: arguments are copied out of the registers, results into them. Nothing is allocated once the
    /// scratch has grown.
    pub(super) fn call_native(&mut self, values: &mut Values, call: &CallSite, module: usize, function: usize) -> Result<Completion> {
        let scratch = &mut *self.scratch;
        scratch.values.clear();
        scratch.results.clear();
        // Nobody knows how long the function takes, so the next look at the clock comes nearer.
        scratch.polls = scratch.polls.saturating_sub(32);
        for (kind, register) in &call.arguments {
            let at = register.ordinal();
            match kind {
                Kind::Ref => {
                    let taken = register.is_move() && call.moves == Moves::Honoured;
                    scratch.refs.push(read_ref(self.refs, *register, taken));
                }
                Kind::I32 | Kind::F32 => scratch.values.push(u32::get(values, at)),
                Kind::I64 | Kind::F64 => scratch.values.extend([u32::get(values, at), u32::get(values, at.wrapping_add(1))]),
            }
        }
        let native = &mut self.natives[module];
        let arguments = NativeArguments {
            context: self.context,
            values: &scratch.values,
            references: &scratch.refs,
            segments: &call.segments,
            buffer: &mut scratch.buffer,
            results: &mut scratch.results,
        };
        let completion = native.module.call(function, &mut native.state, arguments);
        if let Ok(Completion::Wait(_)) = completion {
            self.put_back(call);
            return completion;
        }
        self.scratch.refs.clear();
        if completion.is_ok() {
            self.store_results(values, call)?;
        }
        completion.context(|| format!("calling {}", self.import_name(call.callee)))
    }

    /// Gives moved arguments back to their registers, as the call will be made again.
    #[cold]
    fn put_back(&mut self, call: &CallSite) {
        let refs = self.scratch.refs.drain(..);
        let registers = call.arguments.iter().filter(|(kind, _)| *kind == Kind::Ref);
        for (reference, (_, register)) in refs.zip(registers) {
            // A register that stands there twice was null the second time.
            if !reference.is_null() {
                self.refs[usize::from(register.ordinal())] = reference;
            }
        }
    }

    fn store_results(&mut self, values: &mut Values, call: &CallSite) -> Result<()> {
        let results = &mut self.scratch.results;
        let mut slots = results.values.iter().copied();
        let mut references = results.references.drain(..);
        let missing = || Error::internal("a native function returned fewer results than its calling convention has");
        let excess = || Error::internal("a native function returned more results than its calling convention has");
        for (kind, register) in &call.results {
            let at = register.ordinal();
            match kind {
                Kind::Ref => self.refs[usize::from(at)] = references.next().ok_or_else(missing)?,
                Kind::I32 | Kind::F32 => slots.next().ok_or_else(missing)?.set(values, at),
                Kind::I64 | Kind::F64 => {
                    let (low, high) = (slots.next().ok_or_else(missing)?, slots.next().ok_or_else(missing)?);
                    (u64::from(low) | u64::from(high) << 32).set(values, at);
                }
            }
        }
        if slots.next().is_some() || references.next().is_some() { Err(excess()) } else { Ok(()) }
    }

    #[cold]
    fn import_name(&self, import: u32) -> &str {
        self.module.verified.definition().imports.get(import as usize).map_or("?", |import| &import.full_name)
    }

    pub(super) fn global_load_ref(&mut self, op: Inst, slot: u32) -> Result<()> {
        let wanted = u32::from(op.b) | u32::from(op.c) << 16;
        let count = self.state.refs.len();
        let global = self.state.refs.get_mut(slot as usize).ok_or_else(|| no_such_global(slot, count))?;
        let wanted = &self.module.ref_types[wanted as usize];
        if !wanted.accepts(global) {
            return Err(wrong_type(global, wanted));
        }
        let reference = if op.a & MOVE != 0 { std::mem::take(global) } else { global.clone() };
        self.set_ref(op.a & !MOVE, reference);
        Ok(())
    }

    pub(super) fn global_store_ref(&mut self, op: Inst, slot: u32) -> Result<()> {
        let count = self.state.refs.len();
        if slot as usize >= count {
            return Err(no_such_global(slot, count));
        }
        self.check_type(&self.refs[usize::from(op.a & !MOVE)], u32::from(op.b) | u32::from(op.c) << 16)?;
        let reference = self.operand(op.a);
        self.state.refs[slot as usize] = reference;
        Ok(())
    }

    /// Ops on whole buffers and ranges of them. Access rights are checked before ranges.
    pub(super) fn buffer_op(&mut self, values: &mut Values, op: Inst) -> Result<()> {
        match op.code {
            Code::BufferAlloc => {
                let alignment = if op.d == 0 { 0 } else { i32::get(values, op.c) };
                let buffer = self.context.allocate(u64::get(values, op.b), checked_alignment(alignment)?)?;
                self.set_ref(op.a, buffer.into());
            }
            Code::BufferClone => {
                let alignment = if op.imm == 0 { 0 } else { i32::get(values, op.e) };
                let source = self.buffer(op.b)?.span().clone();
                let (offset, length) = range(&source, u64::get(values, op.c), u64::get(values, op.d))?;
                let buffer = self.context.allocate(length as u64, checked_alignment(alignment)?)?;
                bulk::copy(&self.context.meter, (&source, offset), (buffer.span(), 0), length)?;
                self.set_ref(op.a, Buffer::new(buffer.span().clone(), Origin::Guest).into());
            }
            Code::BufferLength => (self.buffer(op.b)?.len() as u64).set(values, op.a),
            Code::BufferCopy => {
                let length = u64::get(values, op.e);
                let target = self.buffer(op.c)?.writable()?;
                let source = self.buffer(op.a)?.span();
                let (from, length) = range(source, u64::get(values, op.b), length)?;
                let (to, _) = range(target, u64::get(values, op.d), length as u64)?;
                self.context.meter.charge_bytes(length as u64)?;
                let (source, target) = (self.buffer(op.a)?.span(), self.buffer(op.c)?.span());
                bulk::copy(&self.context.meter, (source, from), (target, to), length)?;
            }
            Code::BufferCompare => {
                let (a, b) = (self.buffer(op.a)?.span(), self.buffer(op.c)?.span());
                let (a_offset, length) = range(a, u64::get(values, op.b), u64::get(values, op.e))?;
                let (b_offset, _) = range(b, u64::get(values, op.d), length as u64)?;
                self.context.meter.charge_bytes(length as u64)?;
                let (a, b) = (self.buffer(op.a)?.span(), self.buffer(op.c)?.span());
                let equal = bulk::equals(&self.context.meter, (a, a_offset), (b, b_offset), length)?;
                equal.set(values, op.imm as u16);
            }
            Code::BufferFill => self.fill(values, op)?,
            Code::BufferHash => {
                let span = self.buffer(op.b)?.span();
                let (offset, length) = range(span, u64::get(values, op.c), u64::get(values, op.d))?;
                self.context.meter.charge_bytes(length as u64)?;
                let hash = siphash::hash(&self.context.meter, self.buffer(op.b)?.span(), offset, length)?;
                hash.set(values, op.a);
            }
            other => return Err(Error::internal(format!("{other:?} has no execution"))),
        }
        Ok(())
    }

    fn fill(&mut self, values: &mut Values, op: Inst) -> Result<()> {
        let (size, unit) = (u64::from(op.e), u64::from(op.imm));
        let target = self.buffer(op.a)?.writable()?;
        let (offset, length) = (u64::get(values, op.b), u64::get(values, op.c));
        // Up to 13.0 bytes are given, of which those beyond whole elements are ignored.
        let scale = |count: u64| if unit == 1 { Some(count / size * size) } else { count.checked_mul(unit) };
        let bytes = scale(offset).zip(scale(length)).ok_or_else(|| out_of_range(target, offset, length))?;
        let (offset, length) = range(target, bytes.0, bytes.1)?;
        let value = if size == 8 { u64::get(values, op.d) } else { u64::from(u32::get(values, op.d)) };
        self.context.meter.charge_bytes(length as u64)?;
        let pattern = value.to_le_bytes();
        let target = self.buffer(op.a)?.span();
        bulk::fill(&self.context.meter, (target, offset), length, &pattern[..usize::from(op.e)])
    }
}

fn range(span: &Span, offset: u64, length: u64) -> Result<(usize, usize)> {
    let available = span.len() as u64;
    if length <= available && offset <= available - length {
        Ok((offset as usize, length as usize))
    } else {
        Err(out_of_range(span, offset, length))
    }
}

/// The alignment of a new buffer: 0 means the default.
fn checked_alignment(alignment: i32) -> Result<u64> {
    match alignment {
        0 => Ok(16),
        1.. if (alignment as u32).is_power_of_two() => Ok(alignment as u64),
        _ => Err(Error::invalid(format!("buffer alignment {alignment} is not a power of two"))),
    }
}

#[cold]
fn out_of_range(span: &Span, offset: u64, length: u64) -> Error {
    Error::out_of_range(format!("the range of {length} at offset {offset} does not lie in the buffer of {} bytes", span.len()))
}

#[cold]
fn no_such_global(slot: u32, count: usize) -> Error {
    Error::out_of_range(format!("ref global {slot} does not exist, the module has {count}"))
}
