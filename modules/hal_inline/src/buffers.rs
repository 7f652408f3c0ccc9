//! `buffer.*` and `device.query.i64`.

use vmfb_hal::{HalBuffer, LOST_CONSTANT_HINT, Name};
use vmfb_vm::{Buffer, Error, Handle, Meter, Ref, Result, ResultExt, bulk};

/// The HAL buffer that an argument refers to. A null one is most likely a constant that the compiler lost.
pub(crate) fn hal_buffer(reference: &Ref) -> Result<Handle<HalBuffer>> {
    reference.handle::<HalBuffer>("the buffer").map_err(|error| hint(reference, error))
}

#[cold]
fn hint(reference: &Ref, error: Error) -> Error {
    if reference.is_null() { error.context(LOST_CONSTANT_HINT) } else { error }
}

/// New zeroed bytes.
pub(crate) fn allocate(meter: &mut Meter, alignment: i32, length: i64) -> Result<Handle<HalBuffer>> {
    let wanted = u64::try_from(length).map_err(|_| Error::out_of_range(format!("a buffer of {length} bytes; the length is negative")))?;
    let bytes = usize::try_from(wanted).map_err(|_| Error::exhausted(format!("no memory for {wanted} bytes")))?;
    let alignment = power_of_two(alignment)?;
    meter.charge_bytes(wanted)?;
    Handle::charged(HalBuffer::allocate(bytes, alignment, meter.account())?, 0, meter.account())
}

/// The official runtime accepts alignments that are no powers of two; the next power is at least as good where it is a multiple.
fn power_of_two(alignment: i32) -> Result<usize> {
    let wanted = u32::try_from(alignment).map_err(|_| Error::invalid(format!("an alignment of {alignment} bytes; it is negative")))?;
    // At most 2^31.
    Ok(wanted.next_power_of_two() as usize)
}

/// New bytes with the content of a range of a VM buffer.
pub(crate) fn allocate_initialized(meter: &mut Meter, alignment: i32, source: &Ref, offset: i64, length: i64) -> Result<Handle<HalBuffer>> {
    let source = source_buffer(source)?;
    let (from, bytes) = range(source, offset, length)?;
    let buffer = allocate(meter, alignment, bytes as i64)?;
    meter.charge_bytes(bytes as u64)?;
    bulk::copy(meter, (source.span(), from), (&buffer.span(), 0), bytes)?;
    Ok(buffer)
}

/// A HAL buffer over a range of a VM buffer, as writable as that is. The official runtime cannot do this.
pub(crate) fn wrap(meter: &Meter, source: &Ref, offset: i64, length: i64) -> Result<Handle<HalBuffer>> {
    let source = source_buffer(source)?;
    let (offset, length) = range(source, offset, length)?;
    Handle::charged(HalBuffer::new(source.span().slice(offset, length)?), 0, meter.account())
}

fn source_buffer(reference: &Ref) -> Result<&Buffer> {
    reference.buffer("the source buffer").map_err(|error| hint(reference, error))
}

fn range(source: &Buffer, offset: i64, length: i64) -> Result<(usize, usize)> {
    let available = source.len();
    let checked = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    checked.filter(|(offset, length)| available.checked_sub(*offset).is_some_and(|rest| *length <= rest)).ok_or_else(|| {
        Error::out_of_range(format!("the range of {length} bytes at offset {offset} does not lie in the buffer of {available} bytes"))
    })
}

/// A part of a buffer; length -1 means up to its end.
pub(crate) fn subspan(meter: &Meter, buffer: &Ref, offset: i64, length: i64) -> Result<Handle<HalBuffer>> {
    vmfb_hal::subspan(&hal_buffer(buffer)?, offset as u64, length as u64, meter.account())
}

/// Length in bytes.
pub(crate) fn length(buffer: &Ref) -> Result<i64> {
    hal_buffer(buffer).map(|buffer| buffer.len() as i64)
}

/// A VM buffer over the same bytes. A tensor that the host keeps is copied now.
pub(crate) fn storage(meter: &mut Meter, buffer: &Ref) -> Result<Buffer> {
    hal_buffer(buffer).and_then(|buffer| buffer.storage(meter)).context(|| "asking for a buffer's storage".to_owned())
}

/// The answer to a query; `None` for what is not known. `feature` says whether the processor has a feature.
pub(crate) fn query(category: &Buffer, key: &Buffer, feature: impl Fn(&str) -> Option<bool>) -> Option<i64> {
    let (category, key) = (Name::read(category)?, Name::read(key)?);
    if *category == *"hal.cpu" { feature(&key).map(i64::from) } else { None }
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
