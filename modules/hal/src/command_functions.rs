//! `command_buffer.*`.

use crate::State;
use crate::command::{CommandBuffer, Target};
use crate::executable::LoadedExecutable;
use crate::layout::PipelineLayout;
use crate::program::{Command, Nested, Pattern, Slice, Workgroups, read_buffer, read_table};
use smallvec::SmallVec;
use vmfb_hal::Bytes;
use vmfb_memory::Span;
use vmfb_vm::{Arguments, Call, Error, Meter, Result, bulk};

/// Bindings of one dispatch.
const MAXIMUM_BINDINGS: usize = 32;

/// `riii_r`: device, mode, categories, binding capacity.
pub(crate) fn create(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    create_rest(call)
}

/// `riiIi_r`: device, mode, categories, queue affinity, binding capacity.
pub(crate) fn create_with_affinity(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    create_rest(call)
}

/// Categories, affinity and capacity mean nothing here.
fn create_rest(call: &mut Call<'_, State>) -> Result<()> {
    let mode = call.arguments.u32()?;
    let buffer = CommandBuffer::new(mode, call.context.meter.account())?;
    call.results.push_reference(call.context.new_object(buffer)?);
    Ok(())
}

/// `r_v`: ends recording.
pub(crate) fn finalize(call: &mut Call<'_, State>) -> Result<()> {
    command_buffer(&mut call.arguments)?.finish()
}

/// `riii_v`, `riiI_v`: command buffer, source stage, target stage, flags. Every barrier holds back all that stands behind it.
pub(crate) fn barrier(call: &mut Call<'_, State>) -> Result<()> {
    command_buffer(&mut call.arguments)?.barrier()
}

/// `rr_v`, `r_v`, `rrIIIi_v`: debug groups and advice. There is nothing to do.
pub(crate) fn ignored(call: &mut Call<'_, State>) -> Result<()> {
    command_buffer(&mut call.arguments)?.check_recording()
}

/// `rrIIii_v`: command buffer, target, offset, length, pattern, pattern length.
pub(crate) fn fill(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let (target, offset, length) = (read_buffer(&mut call.arguments)?, call.arguments.u64()?, call.arguments.u64()?);
    let pattern = Pattern::new(call.arguments.u32()?.into(), call.arguments.i32()?)?;
    commands.push(Command::Fill { target: Slice::new(target, 0, offset, length)?, pattern })
}

/// `rrIIiii_v`: command buffer, target, offset, length, slot, pattern, pattern length.
pub(crate) fn fill_slot(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let target = slice_slot_last(&mut call.arguments)?;
    let pattern = Pattern::new(call.arguments.u32()?.into(), call.arguments.i32()?)?;
    commands.push(Command::Fill { target, pattern })
}

/// `rrIIiIiI_v`: command buffer, target, offset, length, slot, pattern, pattern length, flags.
pub(crate) fn fill_wide(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let target = slice_slot_last(&mut call.arguments)?;
    let pattern = Pattern::new(call.arguments.u64()?, call.arguments.i32()?)?;
    commands.push(Command::Fill { target, pattern })
}

/// `rrIrIIi_v`, `rrIrIIiI_v`: command buffer, source, source offset, target, target offset, length, target slot, flags. The
/// bytes are those of now.
pub(crate) fn update(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let (source, source_offset) = (call.arguments.buffer("the source buffer")?, call.arguments.u64()?);
    let (target, target_offset) = (read_buffer(&mut call.arguments)?, call.arguments.u64()?);
    let (length, slot) = (call.arguments.u64()?, call.arguments.u32()?);
    let source = crate::allocator::slice(source.span(), source_offset, length)?;
    let target = Slice::new(target, slot, target_offset, source.len() as u64)?;
    let source = Slice::Direct(Bytes::own(snapshot(source, &mut call.context.meter)?));
    commands.push(Command::Copy { source, target })
}

/// Bytes that stay as they are: constants are shared, others copied.
pub(crate) fn snapshot(source: Span, meter: &mut Meter) -> Result<Span> {
    if !source.is_writable() {
        return Ok(source);
    }
    meter.charge_bytes(source.len() as u64)?;
    let copy = Span::zeroed(source.len(), 1, meter.account())?;
    bulk::copy(meter, (&source, 0), (&copy, 0), source.len())?;
    Ok(copy)
}

/// `rrIrII_v`: command buffer, source, source offset, target, target offset, length.
pub(crate) fn copy(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    copy_rest(commands, [0, 0], &mut call.arguments)
}

/// `riirIrII_v`, `riirIrIII_v`: command buffer, source slot, target slot, source, source offset, target, target offset, length,
/// flags.
pub(crate) fn copy_slots(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let slots = [call.arguments.u32()?, call.arguments.u32()?];
    copy_rest(commands, slots, &mut call.arguments)
}

fn copy_rest(commands: &CommandBuffer, slots: [u32; 2], arguments: &mut Arguments<'_>) -> Result<()> {
    let (source, source_offset) = (read_buffer(arguments)?, arguments.u64()?);
    let (target, target_offset, length) = (read_buffer(arguments)?, arguments.u64()?, arguments.u64()?);
    let source = Slice::new(source, slots[0], source_offset, length)?;
    let target = Slice::new(target, slots[1], target_offset, length)?;
    commands.push(Command::Copy { source, target })
}

/// `rriCiD_v`: command buffer, layout, index of the first constant, values.
pub(crate) fn push_constants(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    call.arguments.object::<PipelineLayout>("the pipeline layout")?;
    let first = call.arguments.u32()?;
    commands.bind(|bound| bound.push_constants(first, &mut call.arguments))
}

/// `rriCiirIID_v`: command buffer, layout, set, tuples of ordinal, slot, buffer, offset, length.
pub(crate) fn push_descriptor_set(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    call.arguments.object::<PipelineLayout>("the pipeline layout")?;
    let set = call.arguments.u32()?;
    commands.bind(|bound| bound.push_descriptor_set(set, &mut call.arguments))
}

/// `rriiii_v`, `rriiiiI_v`: command buffer, executable, entry point, x, y, z, flags; constants and bindings were pushed.
pub(crate) fn dispatch_bound(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let (executable, entry) = entry_point(&mut call.arguments)?;
    let workgroups = count(&mut call.arguments)?;
    commands.dispatch_bound(target(executable, entry.into(), workgroups)?, executable.layout(entry)?)
}

/// `rrirI_v`: command buffer, executable, entry point, buffer, offset; constants and bindings were pushed.
pub(crate) fn dispatch_bound_indirect(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let (executable, entry) = entry_point(&mut call.arguments)?;
    let workgroups = indirect(0, &mut call.arguments)?;
    commands.dispatch_bound(target(executable, entry.into(), workgroups)?, executable.layout(entry)?)
}

/// `rriirII_v`: command buffer, executable, entry point, slot, buffer, offset, flags; constants and bindings were pushed.
pub(crate) fn dispatch_bound_indirect_slot(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let (executable, entry) = entry_point(&mut call.arguments)?;
    let slot = call.arguments.u32()?;
    let workgroups = indirect(slot, &mut call.arguments)?;
    commands.dispatch_bound(target(executable, entry.into(), workgroups)?, executable.layout(entry)?)
}

/// `rriiiiICiDCiirIID_v`: command buffer, executable, entry point, x, y, z, flags, constants, bindings.
pub(crate) fn dispatch(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let (executable, entry) = entry_point(&mut call.arguments)?;
    let workgroups = count(&mut call.arguments)?;
    record_dispatch(commands, target(executable, entry.into(), workgroups)?, &mut call.arguments)
}

/// `rriirIICiDCiirIID_v`: command buffer, executable, entry point, slot, buffer, offset, flags, constants, bindings.
pub(crate) fn dispatch_indirect(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let (executable, entry) = entry_point(&mut call.arguments)?;
    let slot = call.arguments.u32()?;
    let workgroups = indirect(slot, &mut call.arguments)?;
    record_dispatch(commands, target(executable, entry.into(), workgroups)?, &mut call.arguments)
}

/// `rrIiiiICiDCiirIID_v`: command buffer, executable, function token, x, y, z, flags, constants, bindings.
pub(crate) fn dispatch_token(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let (executable, token) = (call.arguments.object::<LoadedExecutable>("the executable")?, call.arguments.u64()?);
    let workgroups = count(&mut call.arguments)?;
    record_dispatch(commands, target(executable, token, workgroups)?, &mut call.arguments)
}

/// `rrIirIICiDCiirIID_v`: command buffer, executable, function token, slot, buffer, offset, flags, constants, bindings.
pub(crate) fn dispatch_token_indirect(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let (executable, token) = (call.arguments.object::<LoadedExecutable>("the executable")?, call.arguments.u64()?);
    let slot = call.arguments.u32()?;
    let workgroups = indirect(slot, &mut call.arguments)?;
    record_dispatch(commands, target(executable, token, workgroups)?, &mut call.arguments)
}

/// `rrCrIID_v`: command buffer, another one that is final, its binding table.
pub(crate) fn execute_commands(call: &mut Call<'_, State>) -> Result<()> {
    let commands = command_buffer(&mut call.arguments)?;
    let nested = command_buffer(&mut call.arguments)?;
    let table = read_table(&mut call.arguments)?;
    if std::ptr::eq(commands, nested) {
        return Err(Error::invalid("a command buffer cannot contain itself"));
    }
    commands.push(Command::Nested(Box::new(Nested { program: nested.submit()?, table })))
}

fn command_buffer<'a>(arguments: &mut Arguments<'a>) -> Result<&'a CommandBuffer> {
    arguments.object("the command buffer")
}

fn entry_point<'a>(arguments: &mut Arguments<'a>) -> Result<(&'a LoadedExecutable, u32)> {
    Ok((arguments.object("the executable")?, arguments.u32()?))
}

/// Reads x, y and z.
fn count(arguments: &mut Arguments<'_>) -> Result<Workgroups> {
    Ok(Workgroups::Count([arguments.u32()?, arguments.u32()?, arguments.u32()?]))
}

/// Reads the buffer and the offset of three words.
fn indirect(slot: u32, arguments: &mut Arguments<'_>) -> Result<Workgroups> {
    const COUNT_BYTES: u64 = 12;
    let buffer = read_buffer(arguments)?;
    Slice::new(buffer, slot, arguments.u64()?, COUNT_BYTES).map(Workgroups::Indirect)
}

fn target(executable: &LoadedExecutable, function: u64, workgroups: Workgroups) -> Result<Target> {
    let count = executable.kernels.executable.export_count();
    let export = usize::try_from(function).ok().filter(|export| *export < count);
    let out_of_range = || Error::out_of_range(format!("function {function} of an executable with {count} functions"));
    Ok(Target { kernels: executable.kernels.clone(), export: export.ok_or_else(out_of_range)?, workgroups })
}

/// Reads a slice whose slot stands behind the range: target, offset, length, slot.
fn slice_slot_last(arguments: &mut Arguments<'_>) -> Result<Slice> {
    let (buffer, offset, length) = (read_buffer(arguments)?, arguments.u64()?, arguments.u64()?);
    Slice::new(buffer, arguments.u32()?, offset, length)
}

/// Reads flags, constants and bindings, and records.
fn record_dispatch(commands: &CommandBuffer, target: Target, arguments: &mut Arguments<'_>) -> Result<()> {
    arguments.i64()?;
    let constants = (0..arguments.span()?).map(|_| arguments.u32()).collect::<Result<SmallVec<[u32; 16]>>>()?;
    let count = arguments.span()?;
    if count > MAXIMUM_BINDINGS {
        return Err(Error::out_of_range(format!("{count} bindings in one dispatch; at most {MAXIMUM_BINDINGS} are possible")));
    }
    let mut bindings: SmallVec<[Slice; 8]> = SmallVec::new();
    for _ in 0..count {
        arguments.i32()?;
        bindings.push(Slice::read_slot_first(arguments)?);
    }
    commands.dispatch(target, constants, bindings)
}
