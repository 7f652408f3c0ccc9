//! `buffer_view.*`.

use crate::buffers::hal_buffer;
use smallvec::SmallVec;
use vmfb_hal::{BufferView, ElementType, Encoding, Expected, MAX_RANK, Shape, Trace, TraceSink, assert_view, printable};
use vmfb_vm::{Arguments, Error, Handle, Meter, Ref, Result};

/// Most views that one trace may show.
const MAXIMUM_TRACED: usize = 128;

/// Dimensions as programs pass them.
pub(crate) type GuestShape = SmallVec<[i64; 8]>;

/// The view that an argument refers to.
pub(crate) fn view(reference: &Ref) -> Result<&BufferView> {
    reference.object("the buffer view")
}

/// Reads the span of dimensions; OUT_OF_RANGE if there are more than a view can have.
pub(crate) fn read_shape(arguments: &mut Arguments<'_>) -> Result<GuestShape> {
    let rank = arguments.span()?;
    if rank > MAX_RANK {
        return Err(Error::out_of_range(format!("a view has at most {MAX_RANK} dimensions, found {rank}")));
    }
    (0..rank).map(|_| arguments.i64()).collect()
}

/// A view of a range of a buffer.
pub(crate) fn create(
    buffer: &Ref,
    offset: i64,
    length: i64,
    element_type: ElementType,
    encoding: Encoding,
    shape: &[i64],
) -> Result<Handle<BufferView>> {
    let buffer = vmfb_hal::subspan(&hal_buffer(buffer)?, offset as u64, length as u64)?;
    let dimension = |(index, dimension): (usize, &i64)| {
        u64::try_from(*dimension).map_err(|_| Error::out_of_range(format!("dimension {index} of a view is {dimension}, which is negative")))
    };
    let shape = shape.iter().enumerate().map(dimension).collect::<Result<Shape>>()?;
    BufferView::new(buffer, &shape, element_type, encoding).map(Handle::new)
}

/// Fails unless a view is what the program expects.
pub(crate) fn assert(reference: &Ref, message: &Ref, element_type: ElementType, encoding: Encoding, shape: &[i64]) -> Result<()> {
    let message = message.buffer("the message of an assertion")?;
    let view: &BufferView = reference.object("the asserted buffer view").map_err(|error| error.context(printable(message)))?;
    assert_view(view, &Expected { element_type, encoding, shape }, || printable(message))
}

/// One dimension. The official runtime reads past the shape for some indices; all that are out of range fail here.
pub(crate) fn dimension(reference: &Ref, index: i32) -> Result<i64> {
    let shape = view(reference)?.shape();
    let dimension = usize::try_from(index).ok().and_then(|index| shape.get(index));
    let out_of_range = || Error::out_of_range(format!("dimension {index} of a view of rank {}", shape.len()));
    dimension.map(|dimension| *dimension as i64).ok_or_else(out_of_range)
}

/// Reads the views of a trace.
pub(crate) fn read_traced<'a>(count: usize, mut next: impl FnMut() -> Result<&'a Ref>) -> Result<Vec<Handle<BufferView>>> {
    if count > MAXIMUM_TRACED {
        return Err(Error::exhausted(format!("{count} views in one trace; at most {MAXIMUM_TRACED} are possible")));
    }
    (0..count).map(|index| next()?.handle(&format!("view {index} of a trace"))).collect()
}

/// Shows views. Printing an element costs a unit of fuel.
pub(crate) fn trace(meter: &mut Meter, sink: &TraceSink, key: &Ref, views: &[Handle<BufferView>]) -> Result<()> {
    let key = printable(key.buffer("the key of a trace")?);
    for view in views {
        meter.charge(view.element_count().unwrap_or(u64::MAX))?;
    }
    sink(&Trace { key: &key, views })
}

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;
