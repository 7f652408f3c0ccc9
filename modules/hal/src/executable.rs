//! `executable.*`: kernels, and finding them by name.

use crate::State;
use crate::layout::PipelineLayout;
use std::sync::Arc;
use vmfb_hal::{Executable, ExecutableParameters, Name, Pace, load_executable, printable};
use vmfb_vm::{Buffer, Call, Error, Handle, Meter, RefObject, Result, bulk};

/// Kernels, and what is known of how long they take.
pub(crate) struct Kernels {
    pub(crate) executable: Arc<dyn Executable>,
    /// One for each export; none where there is one thread.
    pub(crate) paces: Box<[Pace]>,
}

/// `!hal.executable`.
pub(crate) struct LoadedExecutable {
    pub(crate) kernels: Arc<Kernels>,
    /// One for each export, in programs before 2024-08.
    layouts: Vec<Handle<PipelineLayout>>,
}

impl RefObject for LoadedExecutable {
    const TYPE_NAME: &'static str = "hal.executable";
}

impl LoadedExecutable {
    /// The layout of an export.
    pub(crate) fn layout(&self, export: u32) -> Result<&Handle<PipelineLayout>> {
        let count = self.layouts.len();
        let layout = self.layouts.get(export as usize);
        layout.ok_or_else(|| Error::out_of_range(format!("entry point {export} has no pipeline layout; there are {count}")))
    }
}

/// `rrrrCrD_r`: device, format, data, constants, a pipeline layout for each export.
pub(crate) fn create_with_layouts(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    let kernels = load(call)?;
    let count = call.arguments.span()?;
    let layouts: Vec<_> = (0..count).map(|_| call.arguments.handle("the pipeline layout")).collect::<Result<_>>()?;
    let extra = (layouts.len() as u64).saturating_mul(size_of::<Handle<PipelineLayout>>() as u64);
    let executable = Handle::charged(LoadedExecutable { kernels, layouts }, extra, call.context.meter.account())?;
    call.results.push_reference(executable);
    Ok(())
}

/// `rrrr_r`: device, format, data, constants.
pub(crate) fn create(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    create_rest(call)
}

/// `rIrrr_r`: device, queue affinity, format, data, constants.
pub(crate) fn create_with_affinity(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    call.arguments.i64()?;
    create_rest(call)
}

fn create_rest(call: &mut Call<'_, State>) -> Result<()> {
    let kernels = load(call)?;
    call.results.push_reference(call.context.new_object(LoadedExecutable { kernels, layouts: Vec::new() })?);
    Ok(())
}

/// Reads format, data and constants.
fn load(call: &mut Call<'_, State>) -> Result<Arc<Kernels>> {
    let format = call.arguments.buffer("the executable format")?;
    let data = call.arguments.buffer("the executable data")?;
    let constants = call.arguments.reference()?;
    let constants =
        if constants.is_null() { Vec::new() } else { words(&mut call.context.meter, constants.buffer("the executable constants")?)? };
    let format = Name::read(format).ok_or_else(|| Error::invalid(format!("the executable format {:?} is no name", printable(format))))?;
    call.context.meter.charge_bytes(data.len() as u64)?;
    let device = &call.state.device;
    let account = call.context.meter.account();
    let parameters = ExecutableParameters { format: &format, data: data.span(), constants: &constants, engine: &device.engine, account };
    let executable = load_executable(&device.loaders, &parameters)?;
    let timed = if device.threads.count() > 1 { executable.export_count() } else { 0 };
    Ok(Arc::new(Kernels { executable, paces: (0..timed).map(|_| Pace::default()).collect() }))
}

fn words(meter: &mut Meter, buffer: &Buffer) -> Result<Vec<u32>> {
    if !buffer.len().is_multiple_of(4) {
        return Err(Error::invalid(format!("executable constants of {} bytes; the length is not a multiple of 4", buffer.len())));
    }
    meter.charge_bytes(buffer.len() as u64)?;
    let bytes = bulk::to_vec(meter, buffer.span())?;
    Ok(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// `rr_I`: executable, name; a token for dispatches, which is the ordinal of the export.
pub(crate) fn lookup(call: &mut Call<'_, State>) -> Result<()> {
    let executable: &LoadedExecutable = call.arguments.object("the executable")?;
    let name = call.arguments.buffer("the function name")?;
    let found = Name::read(name).and_then(|name| executable.kernels.executable.lookup(&name));
    let missing = || {
        let count = executable.kernels.executable.export_count();
        Error::not_found(format!("the executable has no function {:?}; it has {count}", printable(name)))
    };
    call.results.push_i64(found.ok_or_else(missing)? as i64);
    Ok(())
}
