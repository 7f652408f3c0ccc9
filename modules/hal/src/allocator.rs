//! `allocator.*`: memory for programs.

use crate::State;
use crate::device::Allocator;
use vmfb_hal::{Bytes, HalBuffer, MemoryType, Usage};
use vmfb_memory::{BASE_ALIGNMENT, Span};
use vmfb_vm::{Arguments, Buffer, Call, Error, Handle, Meter, Ref, Result, Status, bulk};

/// Machine code needs bindings at multiples of this; what starts elsewhere cannot be used in place.
const IMPORT_ALIGNMENT: usize = 16;

/// What an imported constant costs besides its object.
const CONSTANT_BYTES: u64 = 512;

/// New zeroed bytes, charged to the store. All memory is good for everything, whatever the program asks for.
pub(crate) fn new_buffer(meter: &mut Meter, length: i64) -> Result<Handle<HalBuffer>> {
    let wanted = u64::try_from(length).map_err(|_| Error::out_of_range(format!("a buffer of {length} bytes; the length is negative")))?;
    let bytes = usize::try_from(wanted).map_err(|_| Error::exhausted(format!("no memory for {wanted} bytes")))?;
    meter.charge_bytes(wanted)?;
    Handle::charged(HalBuffer::allocate(bytes, BASE_ALIGNMENT, meter.account())?, 0, meter.account())
}

/// `riiI_r`: allocator, memory types, usage, size.
pub(crate) fn allocate(call: &mut Call<'_, State>) -> Result<()> {
    call.arguments.object::<Allocator>("the allocator")?;
    allocate_rest(call)
}

/// `rIiiI_r`: allocator, queue affinity, memory types, usage, size.
pub(crate) fn allocate_with_affinity(call: &mut Call<'_, State>) -> Result<()> {
    call.arguments.object::<Allocator>("the allocator")?;
    call.arguments.i64()?;
    allocate_rest(call)
}

fn allocate_rest(call: &mut Call<'_, State>) -> Result<()> {
    call.arguments.i32()?;
    call.arguments.i32()?;
    let buffer = new_buffer(&mut call.context.meter, call.arguments.i64()?)?;
    call.results.push_reference(buffer);
    Ok(())
}

/// `riirII_r`: allocator, memory types, usage, source, offset, length.
pub(crate) fn allocate_initialized(call: &mut Call<'_, State>) -> Result<()> {
    call.arguments.object::<Allocator>("the allocator")?;
    call.arguments.i32()?;
    call.arguments.i32()?;
    let source = source_range(&mut call.arguments)?;
    let meter = &mut call.context.meter;
    let buffer = new_buffer(meter, source.len() as i64)?;
    meter.charge_bytes(source.len() as u64)?;
    bulk::copy(meter, (source.span(), 0), (&buffer.span(), 0), source.len())?;
    call.results.push_reference(buffer);
    Ok(())
}

/// `riiirII_r`: allocator, try, memory types, usage, source, offset, length.
pub(crate) fn map(call: &mut Call<'_, State>) -> Result<()> {
    call.arguments.object::<Allocator>("the allocator")?;
    let attempt = call.arguments.i32()?;
    import_rest(call, attempt)
}

/// `riIiirII_r`: allocator, try, queue affinity, memory types, usage, source, offset, length.
pub(crate) fn import(call: &mut Call<'_, State>) -> Result<()> {
    call.arguments.object::<Allocator>("the allocator")?;
    let attempt = call.arguments.i32()?;
    call.arguments.i64()?;
    import_rest(call, attempt)
}

/// With `attempt` other than 0 a failure is answered with null: the program then copies.
fn import_rest(call: &mut Call<'_, State>, attempt: i32) -> Result<()> {
    let (memory_type, usage) = (MemoryType(call.arguments.u32()?), Usage(call.arguments.u32()?));
    let imported = source_range(&mut call.arguments).and_then(|source| import_span(source.span(), memory_type, usage));
    match imported {
        Ok(buffer) => {
            let buffer = Handle::charged(buffer, CONSTANT_BYTES, call.context.meter.account())?;
            call.results.push_reference(buffer);
        }
        Err(_) if attempt != 0 => call.results.push_reference(Ref::Null),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// A buffer over bytes that are there already. Programs say that they do not write constants, and still do: compilers let some
/// operations work in place. So each call writes on a view of its own.
fn import_span(source: &Span, memory_type: MemoryType, usage: Usage) -> Result<HalBuffer> {
    if !source.is_writable() && usage.0 & Usage::SHARING_IMMUTABLE.0 == 0 {
        return Err(Error::new(Status::PermissionDenied, "a constant can only be imported for uses that do not write it"));
    }
    let address = source.address().addr();
    if !address.is_multiple_of(IMPORT_ALIGNMENT) {
        return Err(Error::new(
            Status::Unavailable,
            format!("memory at the address {address:#x} cannot be imported: kernels need a multiple of {IMPORT_ALIGNMENT}"),
        ));
    }
    let memory_type = MemoryType(memory_type.0 | MemoryType::HOST_LOCAL.0);
    if source.is_writable() {
        return Ok(HalBuffer::with_usage(source.clone(), memory_type, usage));
    }
    Ok(HalBuffer::constant(source.clone(), memory_type, usage))
}

/// Reads source, offset and length: a range of a VM buffer. Length -1 means up to its end.
pub(crate) fn source_range(arguments: &mut Arguments<'_>) -> Result<Buffer> {
    let (source, offset, length) = (arguments.buffer("the source buffer")?, arguments.u64()?, arguments.u64()?);
    let span = slice(source.span(), offset, length)?;
    Ok(Buffer::new(span, source.origin()))
}

/// A part of a span as programs state it: length -1 means up to the end.
pub(crate) fn slice(span: &Span, offset: u64, length: u64) -> Result<Span> {
    let (offset, length) = range(span.len(), offset, length)?;
    Ok(span.slice(offset, length)?)
}

/// A part of a buffer's bytes, stated likewise.
pub(crate) fn part(bytes: &Bytes, offset: u64, length: u64) -> Result<Bytes> {
    let (offset, length) = range(bytes.len(), offset, length)?;
    bytes.slice(offset, length)
}

/// Where a part of so many bytes lies, as programs state it: length -1 means up to the end.
#[inline]
pub(crate) fn range(bytes: usize, offset: u64, length: u64) -> Result<(usize, usize)> {
    let available = bytes as u64;
    let rest = available.checked_sub(offset);
    let length = if length == u64::MAX { rest.unwrap_or(length) } else { length };
    match rest {
        Some(rest) if length <= rest => Ok((offset as usize, length as usize)),
        _ => Err(Error::out_of_range(format!(
            "the range of {length} bytes at offset {offset} does not lie in the buffer of {available} bytes"
        ))),
    }
}

/// `iiICrID_rI`: memory types, usage, flags, pairs of device and queue affinity; the first is as good as any other.
pub(crate) fn select(call: &mut Call<'_, State>) -> Result<()> {
    const MOST: usize = 64;
    call.arguments.i32()?;
    call.arguments.i32()?;
    call.arguments.i64()?;
    let count = call.arguments.span()?;
    if count == 0 || count > MOST {
        return Err(Error::invalid(format!("{count} devices to select from; wanted 1 to {MOST}")));
    }
    let (device, affinity) = (call.arguments.reference()?.clone(), call.arguments.i64()?);
    call.state.check_device(&device)?;
    call.results.push_reference(device);
    call.results.push_i64(affinity);
    Ok(())
}
