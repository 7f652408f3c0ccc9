//! The ops that go on with the next one, and how conditional branches decide: shared by the match loop and the threaded core.

use super::environment::Environment;
use super::self_test::stack_address;
use crate::code::Inst;
use crate::engine::TracedInstruction;
use crate::fault::{Fault, Quick};
use crate::math::{sum_f32, sum_f64};
use crate::registers::{RegisterValue, Registers};
use crate::stack::Values;
use crate::{List, Ref, Result, Value};
use vmfb_memory::Span;

/// Hands a table of ops to a macro: `quick` and `slow` with the function that does the op, and `test` with the function that decides a
/// branch. Quick functions are small and call nothing. Tokens behind the consumer's name go in front of the table.
macro_rules! for_each_step {
    ($consumer:ident $($extra:tt)*) => {
        $consumer! {
        $($extra)*
        quick {
            UpdateAddI32 = steps::update_add_i32;
            UpdateAddF32 = steps::update_add_f32;
            UpdateFmaI32 = steps::update_fma_i32;
            UpdateFmaF32 = steps::update_fma_f32;
            SumFmaF32 = steps::sum_fma_f32;
            SumFmaF64 = steps::sum_fma_f64;
            Fuel = steps::fuel;
            Const32 = steps::const_32;
            Const64 = steps::const_64;
            Move32 = steps::move_32;
            Move64 = steps::move_64;
            GlobalLoad32 = steps::global_load_32;
            GlobalStore32 = steps::global_store_32;
            GlobalLoad64 = steps::global_load_64;
            GlobalStore64 = steps::global_store_64;
        }
        slow {
            MoveRef = steps::move_ref;
            DiscardRef = steps::discard_ref;
            ReleaseRefs = steps::release_refs;
            ListSize = steps::list_size;
            ListGetI32 = steps::list_get_i32;
            ListSetI32 = steps::list_set_i32;
            ListGetI64 = steps::list_get_i64;
            ListSetI64 = steps::list_set_i64;
            ListGetF32 = steps::list_get_f32;
            ListSetF32 = steps::list_set_f32;
            ListGetF64 = steps::list_get_f64;
            ListSetF64 = steps::list_set_f64;
            ListGetRef = steps::list_get_ref;
            ListSetRef = steps::list_set_ref;
            Fail = steps::fail;
            Trace = steps::trace;
            ConstNull = steps::rare;
            ConstRodata = steps::rare;
            CastRef = steps::rare;
            GlobalLoadIndirect32 = steps::rare;
            GlobalStoreIndirect32 = steps::rare;
            GlobalLoadIndirect64 = steps::rare;
            GlobalStoreIndirect64 = steps::rare;
            GlobalLoadRef = steps::rare;
            GlobalStoreRef = steps::rare;
            GlobalLoadIndirectRef = steps::rare;
            GlobalStoreIndirectRef = steps::rare;
            ListAlloc = steps::rare;
            ListReserve = steps::rare;
            ListResize = steps::rare;
            SelectRef = steps::rare;
            Switch32 = steps::rare;
            Switch64 = steps::rare;
            SwitchRef = steps::rare;
            CmpEqRef = steps::rare;
            CmpNeRef = steps::rare;
            CmpNzRef = steps::rare;
            ImportResolved = steps::rare;
            BufferAlloc = steps::rare;
            BufferClone = steps::rare;
            BufferLength = steps::rare;
            BufferCopy = steps::rare;
            BufferCompare = steps::rare;
            BufferFill = steps::rare;
            BufferHash = steps::rare;
            Probe = steps::probe;
        }
        test {
            Br = |_, _| true;
            BrIf = |values, op| u32::get(values, op.b) != 0;
            BrUnless = |values, op| u32::get(values, op.b) == 0;
            BrIf64 = |values, op| u64::get(values, op.b) != 0;
            BrUnless64 = |values, op| u64::get(values, op.b) == 0;
            AddBrLtI32S = steps::add_lt_i32;
            AddBrLtI64S = steps::add_lt_i64;
        }
        }
    };
}
pub(super) use for_each_step;

/// How the index of an element is computed.
pub(super) trait Index {
    /// The index. Registers that the computation leaves behind are written.
    fn compute(values: &mut impl Registers, op: &Inst) -> u64;
}

/// The index is in a pair.
pub(super) struct Direct;
/// The sum of two pairs.
pub(super) struct Sum;
/// The sum of three pairs.
pub(super) struct Sum3;
/// A product plus a pair.
pub(super) struct Fma;
/// A product plus two pairs.
pub(super) struct FmaSum;
/// Two pairs, bitwise and.
pub(super) struct And;

impl Index for Direct {
    #[inline(always)]
    fn compute(values: &mut impl Registers, op: &Inst) -> u64 {
        u64::get_settled(values, op.c)
    }
}

impl Index for Sum {
    #[inline(always)]
    fn compute(values: &mut impl Registers, op: &Inst) -> u64 {
        let index = u64::get_settled(values, op.c).wrapping_add(u64::get_settled(values, op.d));
        index.set(values, op.e);
        index
    }
}

impl Index for Sum3 {
    #[inline(always)]
    fn compute(values: &mut impl Registers, op: &Inst) -> u64 {
        let index =
            u64::get_settled(values, op.c).wrapping_add(u64::get_settled(values, op.d)).wrapping_add(u64::get_settled(values, op.e));
        index.set(values, op.imm as u16);
        index
    }
}

impl Index for Fma {
    #[inline(always)]
    fn compute(values: &mut impl Registers, op: &Inst) -> u64 {
        let index =
            u64::get_settled(values, op.c).wrapping_mul(u64::get_settled(values, op.d)).wrapping_add(u64::get_settled(values, op.e));
        index.set(values, op.imm as u16);
        index
    }
}

impl Index for FmaSum {
    #[inline(always)]
    fn compute(values: &mut impl Registers, op: &Inst) -> u64 {
        let product =
            u64::get_settled(values, op.c).wrapping_mul(u64::get_settled(values, op.d)).wrapping_add(u64::get_settled(values, op.e));
        let index = product.wrapping_add(u64::get_settled(values, (op.imm >> 16) as u16));
        index.set(values, op.imm as u16);
        index
    }
}

impl Index for And {
    #[inline(always)]
    fn compute(values: &mut impl Registers, op: &Inst) -> u64 {
        let index = u64::get_settled(values, op.c) & u64::get_settled(values, op.d);
        index.set(values, op.e);
        index
    }
}

/// Reads an element.
#[inline(always)]
pub(super) fn load<I: Index, T, R: RegisterValue, V: Registers>(
    environment: &mut Environment<'_>,
    values: &mut V,
    op: &Inst,
    load: impl Fn(&Span, u64) -> Option<T>,
    convert: impl Fn(T) -> R,
) -> Quick {
    let index = I::compute(values, op);
    let value = load(span(environment.refs, op.b)?, index).ok_or(Fault::OutOfRange(index))?;
    convert(value).set(values, op.a);
    Ok(())
}

/// Writes an element.
#[inline(always)]
pub(super) fn store<I: Index, T, R: RegisterValue, V: Registers>(
    environment: &mut Environment<'_>,
    values: &mut V,
    op: &Inst,
    store: impl Fn(&Span, u64, T) -> vmfb_memory::Result<()>,
    convert: impl Fn(R) -> T,
) -> Quick {
    let index = I::compute(values, op);
    let span = span(environment.refs, op.b)?;
    if !span.is_writable() {
        return Err(Fault::ReadOnly);
    }
    store(span, index, convert(R::get(values, op.a))).map_err(|_| Fault::OutOfRange(index))
}

/// The bytes of a buffer operand.
#[inline(always)]
fn span(refs: &[Ref], register: u16) -> Quick<&Span> {
    match refs.get(usize::from(register)) {
        Some(Ref::Buffer(buffer)) => Ok(buffer.span()),
        _ => Err(Fault::NotABuffer),
    }
}

/// Reads an element, computes, writes the element.
#[inline(always)]
fn update<V: Registers>(environment: &mut Environment<'_>, values: &mut V, op: &Inst, compute: impl Fn(&V, u32) -> u32) -> Quick {
    let index = u64::get_settled(values, op.c);
    let span = span(environment.refs, op.b)?;
    let loaded = span.load_element_u32(index).ok_or(Fault::OutOfRange(index))?;
    loaded.set(values, op.imm as u16);
    let result = compute(values, loaded);
    result.set(values, op.a);
    if !span.is_writable() {
        return Err(Fault::UpdateOfReadOnly);
    }
    span.store_element_u32(index, result).map_err(|_| Fault::OutOfRange(index))
}

#[inline(always)]
pub(super) fn update_add_i32(environment: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    update(environment, values, op, |values, loaded| loaded.wrapping_add(u32::get(values, op.d)))
}

#[inline(always)]
pub(super) fn update_add_f32(environment: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    update(environment, values, op, |values, loaded| sum_f32(f32::from_bits(loaded), f32::get(values, op.d), is_second(op)).to_bits())
}

#[inline(always)]
pub(super) fn update_fma_i32(environment: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    update(environment, values, op, |values, loaded| u32::get(values, op.d).wrapping_mul(u32::get(values, op.e)).wrapping_add(loaded))
}

#[inline(always)]
pub(super) fn update_fma_f32(environment: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    update(environment, values, op, |values, loaded| {
        let product = f32::get(values, op.d) * f32::get(values, op.e);
        sum_f32(f32::from_bits(loaded), product, is_second(op)).to_bits()
    })
}

/// Whether the element of an update is the second summand.
#[inline(always)]
fn is_second(op: &Inst) -> bool {
    op.imm >> 16 != 0
}

/// A number plus a product.
#[inline(always)]
pub(super) fn sum_fma_f32(_: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    let product = f32::get(values, op.b) * f32::get_settled(values, op.c);
    sum_f32(product, f32::get(values, op.d), true).set(values, op.a);
    Ok(())
}

/// As above.
#[inline(always)]
pub(super) fn sum_fma_f64(_: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    let product = f64::get(values, op.b) * f64::get_settled(values, op.c);
    sum_f64(product, f64::get(values, op.d), true).set(values, op.a);
    Ok(())
}

/// Adds, and compares the sum with a limit.
#[inline(always)]
pub(super) fn add_lt_i32(values: &mut impl Registers, op: &Inst) -> bool {
    let sum = i32::get(values, op.a).wrapping_add(i32::get_settled(values, op.b));
    sum.set(values, op.a);
    sum < i32::get_settled(values, op.c)
}

/// As above.
#[inline(always)]
pub(super) fn add_lt_i64(values: &mut impl Registers, op: &Inst) -> bool {
    let sum = i64::get(values, op.a).wrapping_add(i64::get_settled(values, op.b));
    sum.set(values, op.a);
    sum < i64::get_settled(values, op.c)
}

#[inline(always)]
pub(super) fn fuel(environment: &mut Environment<'_>, _: &mut impl Registers, op: &Inst) -> Quick {
    if environment.context.meter.take(u64::from(op.imm)) { Ok(()) } else { Err(Fault::OutOfFuel) }
}

/// Looks at the clock once in a while.
pub(super) fn poll(environment: &mut Environment<'_>) -> Result<()> {
    if poll_is_due(environment) { environment.context.meter.poll() } else { Ok(()) }
}

/// Whether it is time to look at the clock.
#[inline(always)]
pub(super) fn poll_is_due(environment: &mut Environment<'_>) -> bool {
    // Reading the clock costs as much as hundreds of ops.
    const BETWEEN: u32 = 256;
    let polls = &mut environment.scratch.polls;
    let left = polls.wrapping_sub(1);
    let due = left >= BETWEEN;
    *polls = if due { BETWEEN } else { left };
    due
}

#[inline(always)]
pub(super) fn const_32(_: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    op.imm.set(values, op.a);
    Ok(())
}

#[inline(always)]
pub(super) fn const_64(_: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    (u64::from(op.imm) | u64::from(op.b) << 32 | u64::from(op.c) << 48).set(values, op.a);
    Ok(())
}

#[inline(always)]
pub(super) fn move_32(_: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    u32::get(values, op.b).set(values, op.a);
    Ok(())
}

#[inline(always)]
pub(super) fn move_64(_: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    u64::get(values, op.b).set(values, op.a);
    Ok(())
}

/// Bytes of the global area; the verifier has checked the offset.
#[inline(always)]
pub(super) fn global<const SIZE: usize>(globals: &mut [u8], offset: u32) -> &mut [u8; SIZE] {
    match globals.get_mut(offset as usize..offset as usize + SIZE).and_then(|bytes| bytes.first_chunk_mut()) {
        Some(bytes) => bytes,
        None => unreachable!("verified offsets lie in the global area"),
    }
}

#[inline(always)]
pub(super) fn global_load_32(environment: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    u32::from_le_bytes(*global(&mut environment.state.globals, op.imm)).set(values, op.a);
    Ok(())
}

#[inline(always)]
pub(super) fn global_store_32(environment: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    *global(&mut environment.state.globals, op.imm) = u32::get(values, op.a).to_le_bytes();
    Ok(())
}

#[inline(always)]
pub(super) fn global_load_64(environment: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    u64::from_le_bytes(*global(&mut environment.state.globals, op.imm)).set(values, op.a);
    Ok(())
}

#[inline(always)]
pub(super) fn global_store_64(environment: &mut Environment<'_>, values: &mut impl Registers, op: &Inst) -> Quick {
    *global(&mut environment.state.globals, op.imm) = u64::get(values, op.a).to_le_bytes();
    Ok(())
}

#[inline(never)]
pub(super) fn move_ref(environment: &mut Environment<'_>, _: &mut Values, op: &Inst) -> Result<()> {
    environment.copy_ref(op.a, op.b);
    Ok(())
}

#[inline(never)]
pub(super) fn discard_ref(environment: &mut Environment<'_>, _: &mut Values, op: &Inst) -> Result<()> {
    environment.set_ref(op.a, Ref::Null);
    Ok(())
}

#[inline(never)]
pub(super) fn release_refs(environment: &mut Environment<'_>, _: &mut Values, _: &Inst) -> Result<()> {
    environment.refs.fill(Ref::Null);
    Ok(())
}

fn list<'a>(environment: &'a Environment<'_>, register: u16) -> Result<&'a List> {
    environment.refs[usize::from(register)].list("the list operand")
}

#[inline(never)]
pub(super) fn list_size(environment: &mut Environment<'_>, values: &mut Values, op: &Inst) -> Result<()> {
    (list(environment, op.b)?.len() as u32).set(values, op.a);
    Ok(())
}

macro_rules! list_access {
    ($get:ident, $set:ident, $type:ty, $value:ident, |$scalar:ident| $convert:expr) => {
        #[inline(never)]
        pub(super) fn $get(environment: &mut Environment<'_>, values: &mut Values, op: &Inst) -> Result<()> {
            let $scalar = list(environment, op.b)?.get_scalar(u32::get(values, op.c))?;
            <$type>::set($convert, values, op.a);
            Ok(())
        }

        #[inline(never)]
        pub(super) fn $set(environment: &mut Environment<'_>, values: &mut Values, op: &Inst) -> Result<()> {
            list(environment, op.b)?.set_number(u32::get(values, op.c), Value::$value(<$type>::get(values, op.a)))
        }
    };
}

list_access!(list_get_i32, list_set_i32, i32, I32, |scalar| scalar.integer() as i32);
list_access!(list_get_i64, list_set_i64, i64, I64, |scalar| scalar.integer());
list_access!(list_get_f32, list_set_f32, f32, F32, |scalar| scalar.single());
list_access!(list_get_f64, list_set_f64, f64, F64, |scalar| scalar.double());

#[inline(never)]
pub(super) fn list_get_ref(environment: &mut Environment<'_>, values: &mut Values, op: &Inst) -> Result<()> {
    environment.list_get_ref(values, op)
}

#[inline(never)]
pub(super) fn list_set_ref(environment: &mut Environment<'_>, values: &mut Values, op: &Inst) -> Result<()> {
    environment.list_set_ref(values, op)
}

#[cold]
#[inline(never)]
pub(super) fn trace(environment: &mut Environment<'_>, _: &mut Values, op: &Inst) -> Result<()> {
    let function = u32::from(op.a) | u32::from(op.b) << 16;
    if let Some(tracer) = &environment.context.engine().config().tracer {
        tracer.instruction(TracedInstruction { module: environment.module.verified.definition(), function, pc: op.imm });
    }
    Ok(())
}

#[cold]
#[inline(never)]
pub(super) fn fail(environment: &mut Environment<'_>, values: &mut Values, op: &Inst) -> Result<()> {
    Err(environment.failure(u32::get(values, op.a), op.imm))
}

/// Notes how deep the processor's stack is.
#[inline(never)]
pub(super) fn probe(environment: &mut Environment<'_>, _: &mut Values, _: &Inst) -> Result<()> {
    environment.scratch.depths.push(stack_address());
    Ok(())
}

/// Ops on references and whole objects: out of the way of the hot ones.
#[inline(never)]
pub(super) fn rare(environment: &mut Environment<'_>, values: &mut Values, op: &Inst) -> Result<()> {
    environment.rare(values, *op)
}
