//! The hal_inline native module: buffers and buffer views without a device.
//!
//! Programs that were compiled for an inline execution model import it. Everything is executed at once, on the calling
//! thread. What is not here: executables and dispatches (the hal_loader module), devices and queues (the hal module).
#![forbid(unsafe_code)]

mod buffers;
mod views;

use std::fmt;
use std::sync::Arc;

use vmfb_hal::{ElementType, Encoding, Trace, TraceSink, processor, trace_to_stderr};
use vmfb_vm::{Call, Engine, NativeFunction, NativeModule, Result};

/// The `hal_inline` module.
pub struct HalInline {
    trace_sink: TraceSink,
}

impl HalInline {
    /// The module; traces go to stderr.
    pub fn new() -> Self {
        Self { trace_sink: trace_to_stderr() }
    }

    /// Where traces go.
    #[must_use]
    pub fn trace_sink(mut self, sink: impl Fn(&Trace<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        self.trace_sink = Arc::new(sink);
        self
    }
}

impl Default for HalInline {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HalInline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HalInline").finish_non_exhaustive()
    }
}

impl NativeModule for HalInline {
    type State = ();

    fn name(&self) -> &str {
        "hal_inline"
    }

    fn functions(&self) -> Vec<NativeFunction<()>> {
        let sink = self.trace_sink.clone();
        vec![
            NativeFunction::new("buffer.allocate", "0iI_rr", buffer_allocate),
            NativeFunction::new("buffer.allocate.initialized", "0irII_rr", buffer_allocate_initialized),
            NativeFunction::new("buffer.wrap", "0rII_r", buffer_wrap),
            NativeFunction::new("buffer.subspan", "0rII_r", buffer_subspan),
            NativeFunction::new("buffer.length", "0r_I", buffer_length),
            NativeFunction::new("buffer.storage", "0r_r", buffer_storage),
            NativeFunction::new("buffer_view.create", "0rIIiiCID_r", buffer_view_create),
            NativeFunction::new("buffer_view.assert", "0rriiCID_v", buffer_view_assert),
            NativeFunction::new("buffer_view.buffer", "0r_r", buffer_view_buffer),
            NativeFunction::new("buffer_view.element_type", "0r_i", buffer_view_element_type),
            NativeFunction::new("buffer_view.encoding_type", "0r_i", buffer_view_encoding_type),
            NativeFunction::new("buffer_view.rank", "0r_i", buffer_view_rank),
            NativeFunction::new("buffer_view.dim", "0ri_I", buffer_view_dim),
            NativeFunction::new("buffer_view.trace", "0rCrD_v", move |call| buffer_view_trace(call, &sink)),
            NativeFunction::new("device.query.i64", "0rr_iI", device_query),
        ]
    }

    fn new_state(&self, _engine: &Engine) -> Result<()> {
        Ok(())
    }

    fn fork_state(&self, (): &()) -> Result<()> {
        Ok(())
    }
}

fn buffer_allocate(call: &mut Call<'_, ()>) -> Result<()> {
    let (alignment, length) = (call.arguments.i32()?, call.arguments.i64()?);
    let buffer = buffers::allocate(&mut call.context.meter, alignment, length)?;
    call.results.push_reference(buffer.clone());
    call.results.push_reference(buffer.storage());
    Ok(())
}

fn buffer_allocate_initialized(call: &mut Call<'_, ()>) -> Result<()> {
    let (alignment, source) = (call.arguments.i32()?, call.arguments.reference()?);
    let (offset, length) = (call.arguments.i64()?, call.arguments.i64()?);
    let buffer = buffers::allocate_initialized(&mut call.context.meter, alignment, source, offset, length)?;
    call.results.push_reference(buffer.clone());
    call.results.push_reference(buffer.storage());
    Ok(())
}

fn buffer_wrap(call: &mut Call<'_, ()>) -> Result<()> {
    let source = call.arguments.reference()?;
    let (offset, length) = (call.arguments.i64()?, call.arguments.i64()?);
    call.results.push_reference(buffers::wrap(source, offset, length)?);
    Ok(())
}

fn buffer_subspan(call: &mut Call<'_, ()>) -> Result<()> {
    let buffer = call.arguments.reference()?;
    let (offset, length) = (call.arguments.i64()?, call.arguments.i64()?);
    call.results.push_reference(buffers::subspan(buffer, offset, length)?);
    Ok(())
}

fn buffer_length(call: &mut Call<'_, ()>) -> Result<()> {
    call.results.push_i64(buffers::length(call.arguments.reference()?)?);
    Ok(())
}

fn buffer_storage(call: &mut Call<'_, ()>) -> Result<()> {
    call.results.push_reference(buffers::storage(call.arguments.reference()?)?);
    Ok(())
}

fn buffer_view_create(call: &mut Call<'_, ()>) -> Result<()> {
    let arguments = &mut call.arguments;
    let (buffer, offset, length) = (arguments.reference()?, arguments.i64()?, arguments.i64()?);
    let (element_type, encoding) = (ElementType(arguments.u32()?), Encoding(arguments.u32()?));
    let shape = views::read_shape(arguments)?;
    call.results.push_reference(views::create(buffer, offset, length, element_type, encoding, &shape)?);
    Ok(())
}

fn buffer_view_assert(call: &mut Call<'_, ()>) -> Result<()> {
    let arguments = &mut call.arguments;
    let (view, message) = (arguments.reference()?, arguments.reference()?);
    let (element_type, encoding) = (ElementType(arguments.u32()?), Encoding(arguments.u32()?));
    let shape = views::read_shape(arguments)?;
    views::assert(view, message, element_type, encoding, &shape)
}

fn buffer_view_buffer(call: &mut Call<'_, ()>) -> Result<()> {
    call.results.push_reference(views::view(call.arguments.reference()?)?.buffer().clone());
    Ok(())
}

fn buffer_view_element_type(call: &mut Call<'_, ()>) -> Result<()> {
    call.results.push_i32(views::view(call.arguments.reference()?)?.element_type().0 as i32);
    Ok(())
}

fn buffer_view_encoding_type(call: &mut Call<'_, ()>) -> Result<()> {
    call.results.push_i32(views::view(call.arguments.reference()?)?.encoding().0 as i32);
    Ok(())
}

fn buffer_view_rank(call: &mut Call<'_, ()>) -> Result<()> {
    call.results.push_i32(views::view(call.arguments.reference()?)?.shape().len() as i32);
    Ok(())
}

fn buffer_view_dim(call: &mut Call<'_, ()>) -> Result<()> {
    let (view, index) = (call.arguments.reference()?, call.arguments.i32()?);
    call.results.push_i64(views::dimension(view, index)?);
    Ok(())
}

fn buffer_view_trace(call: &mut Call<'_, ()>, sink: &TraceSink) -> Result<()> {
    let key = call.arguments.reference()?;
    let count = call.arguments.span()?;
    let traced = views::read_traced(count, || call.arguments.reference())?;
    views::trace(&mut call.context.meter, sink, key, &traced)
}

fn device_query(call: &mut Call<'_, ()>) -> Result<()> {
    let (category, key) = (call.arguments.buffer("the query's category")?, call.arguments.buffer("the query's key")?);
    let answer = buffers::query(category, key, processor::query);
    call.results.push_i32(i32::from(answer.is_some()));
    call.results.push_i64(answer.unwrap_or(0));
    Ok(())
}
