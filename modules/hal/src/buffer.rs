//! `buffer.*`: parts, lengths, single values and owners of buffers.

use crate::State;
use crate::device::Allocator;
use vmfb_hal::{HalBuffer, Writer, printable, subspan};
use vmfb_vm::{Call, Error, Result, Status};

/// `rrrIii_v`: buffer, message, allocator, least length, memory types, usage.
pub(crate) fn assert(call: &mut Call<'_, State>) -> Result<()> {
    let arguments = &mut call.arguments;
    let (buffer, message) = (arguments.reference()?, arguments.buffer("the message of an assertion")?);
    let label = || printable(message);
    let buffer: &HalBuffer = buffer.object("the asserted buffer").map_err(|error| error.context(label()))?;
    arguments.object::<Allocator>("the allocator")?;
    let (least, memory_type, usage) = (arguments.u64()?, arguments.u32()?, arguments.u32()?);
    if (buffer.len() as u64) < least {
        return Err(Error::invalid(format!("{}: the buffer has {} bytes, wanted at least {least}", label(), buffer.len())));
    }
    let denied = |what: &str, found: u32, wanted: u32| {
        let message = format!("{}: the buffer's {what} is {found:#x}, wanted {wanted:#x}", label());
        Err(Error::new(Status::PermissionDenied, message))
    };
    if memory_type & !buffer.memory_type.0 != 0 {
        return denied("memory type", buffer.memory_type.0, memory_type);
    }
    if usage & !buffer.usage.0 != 0 {
        return denied("usage", buffer.usage.0, usage);
    }
    Ok(())
}

/// `rII_r`: buffer, offset, length.
pub(crate) fn part(call: &mut Call<'_, State>) -> Result<()> {
    let buffer = call.arguments.handle::<HalBuffer>("the buffer")?;
    let (offset, length) = (call.arguments.u64()?, call.arguments.u64()?);
    call.results.push_reference(subspan(&buffer, offset, length, call.context.meter.account())?);
    Ok(())
}

/// `r_I`: length in bytes.
pub(crate) fn length(call: &mut Call<'_, State>) -> Result<()> {
    call.results.push_i64(call.arguments.object::<HalBuffer>("the buffer")?.len() as i64);
    Ok(())
}

/// `rIi_i`: buffer, offset, byte length; the value, upper bytes zero.
pub(crate) fn load(call: &mut Call<'_, State>) -> Result<()> {
    let buffer = call.arguments.object::<HalBuffer>("the buffer")?;
    let (offset, length) = value_range(buffer, call.arguments.u64()?, call.arguments.i32()?)?;
    let mut bytes = [0; 4];
    if let Some(target) = bytes.get_mut(..length) {
        buffer.bytes().readable(&call.context.meter)?.read(offset, target)?;
    }
    call.results.push_i32(i32::from_le_bytes(bytes));
    Ok(())
}

/// `irIi_v`: value, buffer, offset, byte length.
pub(crate) fn store(call: &mut Call<'_, State>) -> Result<()> {
    let (value, buffer) = (call.arguments.i32()?, call.arguments.object::<HalBuffer>("the buffer")?);
    let (offset, length) = value_range(buffer, call.arguments.u64()?, call.arguments.i32()?)?;
    if let Some(bytes) = value.to_le_bytes().get(..length) {
        buffer.bytes().writable(Writer::Checked, &mut call.context.meter)?.write(offset, bytes)?;
    }
    Ok(())
}

/// Where a value of up to four bytes stands.
fn value_range(buffer: &HalBuffer, offset: u64, length: i32) -> Result<(usize, usize)> {
    if !(0..=4).contains(&length) {
        return Err(Error::invalid(format!("a value of {length} bytes; wanted up to 4")));
    }
    buffer.resolve_range(offset, length as u64)
}

/// `r_v`: one more owner of the allocation.
pub(crate) fn preserve(call: &mut Call<'_, State>) -> Result<()> {
    call.arguments.object::<HalBuffer>("the buffer")?.preserve();
    Ok(())
}

/// `r_i`: one owner less; whether it was the last.
pub(crate) fn discard(call: &mut Call<'_, State>) -> Result<()> {
    let last = call.arguments.object::<HalBuffer>("the buffer")?.discard();
    call.results.push_i32(last.into());
    Ok(())
}

/// `r_i`: whether the allocation has one owner.
pub(crate) fn is_terminal(call: &mut Call<'_, State>) -> Result<()> {
    let terminal = call.arguments.object::<HalBuffer>("the buffer")?.is_terminal();
    call.results.push_i32(terminal.into());
    Ok(())
}
