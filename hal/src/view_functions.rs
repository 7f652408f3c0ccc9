//! The `buffer_view.*` functions, which the modules `hal_inline` and `hal` have in common.

use crate::buffer::for_view;
use crate::{
    BufferView, ElementType, Encoding, Expected, HalBuffer, MAX_RANK, Shape, Trace, TraceSink, ViewText, assert_view, printable, subspan,
};
use smallvec::SmallVec;
use vmfb_vm::{Arguments, Call, Error, Handle, Result};

/// Most views that one trace may show.
const MAXIMUM_TRACED: usize = 128;

/// `rIIiiCID_r`: a view of a range of a buffer.
pub fn create<S>(call: &mut Call<'_, S>) -> Result<()> {
    let buffer = call.arguments.handle::<HalBuffer>("the buffer of a view")?;
    create_of(call, &buffer)
}

/// The same, when the buffer has been read.
pub fn create_of<S>(call: &mut Call<'_, S>, buffer: &Handle<HalBuffer>) -> Result<()> {
    let arguments = &mut call.arguments;
    let buffer = subspan(buffer, arguments.u64()?, arguments.u64()?, call.context.meter.account())?;
    let buffer = for_view(buffer, &call.context.meter)?;
    let (element_type, encoding) = (ElementType(arguments.u32()?), Encoding(arguments.u32()?));
    let dimension = |(index, dimension): (usize, &i64)| {
        u64::try_from(*dimension).map_err(|_| Error::out_of_range(format!("dimension {index} of a view is {dimension}, which is negative")))
    };
    let shape = read_shape(arguments)?.iter().enumerate().map(dimension).collect::<Result<Shape>>()?;
    let view = BufferView::new(buffer, &shape, element_type, encoding)?;
    // Dimensions beyond a few are held elsewhere.
    let extra = if shape.spilled() { (shape.len() as u64).saturating_mul(size_of::<u64>() as u64) } else { 0 };
    call.results.push_reference(Handle::charged(view, extra, call.context.meter.account())?);
    Ok(())
}

/// `rriiCID_v`: fails unless a view is what the program expects.
pub fn assert<S>(call: &mut Call<'_, S>) -> Result<()> {
    let arguments = &mut call.arguments;
    let (view, message) = (arguments.reference()?, arguments.buffer("the message of an assertion")?);
    let (element_type, encoding) = (ElementType(arguments.u32()?), Encoding(arguments.u32()?));
    let shape = read_shape(arguments)?;
    let view: &BufferView = view.object("the asserted buffer view").map_err(|error| error.context(printable(message)))?;
    assert_view(view, &Expected { element_type, encoding, shape: &shape }, || printable(message))
}

/// `r_r`: the buffer of a view.
pub fn buffer<S>(call: &mut Call<'_, S>) -> Result<()> {
    call.results.push_reference(view(&mut call.arguments)?.buffer().clone());
    Ok(())
}

/// `r_i`: the element type.
pub fn element_type<S>(call: &mut Call<'_, S>) -> Result<()> {
    call.results.push_i32(view(&mut call.arguments)?.element_type().0 as i32);
    Ok(())
}

/// `r_i`: the encoding.
pub fn encoding<S>(call: &mut Call<'_, S>) -> Result<()> {
    call.results.push_i32(view(&mut call.arguments)?.encoding().0 as i32);
    Ok(())
}

/// `r_i`: the number of dimensions.
pub fn rank<S>(call: &mut Call<'_, S>) -> Result<()> {
    call.results.push_i32(view(&mut call.arguments)?.shape().len() as i32);
    Ok(())
}

/// `ri_I`: one dimension. The official runtime reads past the shape for some indices; all that are out of range fail here.
pub fn dimension<S>(call: &mut Call<'_, S>) -> Result<()> {
    let shape = view(&mut call.arguments)?.shape();
    let index = call.arguments.i32()?;
    let dimension = usize::try_from(index).ok().and_then(|index| shape.get(index));
    let out_of_range = || Error::out_of_range(format!("dimension {index} of a view of rank {}", shape.len()));
    call.results.push_i64(dimension.copied().ok_or_else(out_of_range)? as i64);
    Ok(())
}

/// `rCrD_v`: shows views. Printing costs fuel, and ends when the deadline passes.
pub fn trace<S>(call: &mut Call<'_, S>, sink: &TraceSink) -> Result<()> {
    let key = printable(call.arguments.buffer("the key of a trace")?);
    let count = call.arguments.span()?;
    if count > MAXIMUM_TRACED {
        return Err(Error::exhausted(format!("{count} views in one trace; at most {MAXIMUM_TRACED} are possible")));
    }
    let mut view = |index: usize| call.arguments.handle::<BufferView>(&format!("view {index} of a trace"));
    let views = (0..count).map(&mut view).collect::<Result<Vec<_>>>()?;
    for view in &views {
        call.context.meter.charge(ViewText::new(view).cost())?;
    }
    let meter = &call.context.meter;
    meter.poll()?;
    sink(&Trace { key: &key, views: &views, meter })?;
    // A sink may not tell why the text was cut.
    meter.poll()
}

fn view<'a>(arguments: &mut Arguments<'a>) -> Result<&'a BufferView> {
    arguments.object("the buffer view")
}

/// The dimensions as the program passes them; OUT_OF_RANGE if there are more than a view can have.
fn read_shape(arguments: &mut Arguments<'_>) -> Result<SmallVec<[i64; 8]>> {
    let rank = arguments.span()?;
    if rank > MAX_RANK {
        return Err(Error::out_of_range(format!("a view has at most {MAX_RANK} dimensions, found {rank}")));
    }
    (0..rank).map(|_| arguments.i64()).collect()
}
