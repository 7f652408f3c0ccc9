//! The hal_inline native module: buffers and buffer views without a device.
//!
//! Programs that were compiled for an inline execution model import it. Everything is executed at once, on the calling
//! thread. What is not here: executables and dispatches (the hal_loader module), devices and queues (the hal module).
#![forbid(unsafe_code)]

mod buffers;

use std::fmt;
use std::sync::Arc;

use vmfb_hal::{Trace, TraceSink, processor, trace_to_stderr, view_functions};
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
            NativeFunction::new("buffer_view.assert", "0rriiCID_v", view_functions::assert),
            NativeFunction::new("buffer_view.buffer", "0r_r", view_functions::buffer),
            NativeFunction::new("buffer_view.element_type", "0r_i", view_functions::element_type),
            NativeFunction::new("buffer_view.encoding_type", "0r_i", view_functions::encoding),
            NativeFunction::new("buffer_view.rank", "0r_i", view_functions::rank),
            NativeFunction::new("buffer_view.dim", "0ri_I", view_functions::dimension),
            NativeFunction::new("buffer_view.trace", "0rCrD_v", move |call| view_functions::trace(call, &sink)),
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
    let storage = buffer.storage(&mut call.context.meter)?;
    call.results.push_reference(buffer);
    call.results.push_reference(storage);
    Ok(())
}

fn buffer_allocate_initialized(call: &mut Call<'_, ()>) -> Result<()> {
    let (alignment, source) = (call.arguments.i32()?, call.arguments.reference()?);
    let (offset, length) = (call.arguments.i64()?, call.arguments.i64()?);
    let buffer = buffers::allocate_initialized(&mut call.context.meter, alignment, source, offset, length)?;
    let storage = buffer.storage(&mut call.context.meter)?;
    call.results.push_reference(buffer);
    call.results.push_reference(storage);
    Ok(())
}

fn buffer_wrap(call: &mut Call<'_, ()>) -> Result<()> {
    let source = call.arguments.reference()?;
    let (offset, length) = (call.arguments.i64()?, call.arguments.i64()?);
    call.results.push_reference(buffers::wrap(&call.context.meter, source, offset, length)?);
    Ok(())
}

fn buffer_subspan(call: &mut Call<'_, ()>) -> Result<()> {
    let buffer = call.arguments.reference()?;
    let (offset, length) = (call.arguments.i64()?, call.arguments.i64()?);
    call.results.push_reference(buffers::subspan(&call.context.meter, buffer, offset, length)?);
    Ok(())
}

fn buffer_length(call: &mut Call<'_, ()>) -> Result<()> {
    call.results.push_i64(buffers::length(call.arguments.reference()?)?);
    Ok(())
}

fn buffer_storage(call: &mut Call<'_, ()>) -> Result<()> {
    call.results.push_reference(buffers::storage(&mut call.context.meter, call.arguments.reference()?)?);
    Ok(())
}

fn buffer_view_create(call: &mut Call<'_, ()>) -> Result<()> {
    let buffer = buffers::hal_buffer(call.arguments.reference()?)?;
    view_functions::create_of(call, &buffer)
}

fn device_query(call: &mut Call<'_, ()>) -> Result<()> {
    let (category, key) = (call.arguments.buffer("the query's category")?, call.arguments.buffer("the query's key")?);
    let answer = buffers::query(category, key, processor::query);
    call.results.push_i32(i32::from(answer.is_some()));
    call.results.push_i64(answer.unwrap_or(0));
    Ok(())
}
