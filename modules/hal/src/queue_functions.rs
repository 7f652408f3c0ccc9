//! `device.queue.*` and `ex.file.from_memory`.

use crate::State;
use crate::allocator::{new_buffer, part, source_range};
use crate::command::CommandBuffer;
use crate::command_functions::snapshot;
use crate::program::{BindingTable, Pattern, read_table};
use crate::queue::Work;
use smallvec::SmallVec;
use vmfb_hal::{Bytes, Fence, HalBuffer};
use vmfb_memory::Span;
use vmfb_vm::{Arguments, Call, Error, Ref, RefObject, Result, Status};

/// `!hal.file`: bytes that are read on a queue.
pub(crate) struct File(Span);

impl RefObject for File {
    const TYPE_NAME: &'static str = "hal.file";
}

/// Command buffers in one submission.
const MAXIMUM_COMMAND_BUFFERS: usize = 32;

/// What a submission waits for and signals; null means nothing.
struct Fences<'a> {
    wait: Option<&'a Fence>,
    signal: Option<&'a Fence>,
}

/// Reads device, queue affinity, wait fence and signal fence.
fn header<'a>(state: &State, arguments: &mut Arguments<'a>) -> Result<Fences<'a>> {
    state.check_device(arguments.reference()?)?;
    arguments.i64()?;
    Ok(Fences { wait: fence(arguments, "the wait fence")?, signal: fence(arguments, "the signal fence")? })
}

fn fence<'a>(arguments: &mut Arguments<'a>, what: &str) -> Result<Option<&'a Fence>> {
    let reference = arguments.reference()?;
    if reference.is_null() { Ok(None) } else { reference.object(what).map(Some) }
}

fn submit(call: &mut Call<'_, State>, fences: &Fences<'_>, work: Work) -> Result<()> {
    call.state.submit(&mut call.context.meter, fences.wait, fences.signal, work)
}

/// `rIrriiiI_r`: header, pool, memory types, usage, size.
pub(crate) fn alloca(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let pool = i64::from(call.arguments.i32()?);
    alloca_rest(call, &fences, pool)
}

/// `rIrrIiiII_r`: header, pool, memory types, usage, size, flags.
pub(crate) fn alloca_wide(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let pool = call.arguments.i64()?;
    alloca_rest(call, &fences, pool)
}

/// The memory is there at once, whatever is waited for.
fn alloca_rest(call: &mut Call<'_, State>, fences: &Fences<'_>, pool: i64) -> Result<()> {
    if pool != 0 {
        return Err(Error::unimplemented(format!("the local device has no memory pool {pool}, but the default pool 0 alone")));
    }
    call.arguments.i32()?;
    call.arguments.i32()?;
    let size = call.arguments.i64()?;
    let buffer = new_buffer(&mut call.context.meter, size)?;
    submit(call, fences, Work::Nothing)?;
    call.results.push_reference(buffer);
    Ok(())
}

/// `rIrrr_v`, `rIrrrI_v`: header, buffer, flags.
pub(crate) fn dealloca(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let buffer = call.arguments.handle::<HalBuffer>("the buffer")?;
    submit(call, &fences, Work::Release(buffer))
}

/// `rIrrrIIIiI_v`: header, target, offset, length, pattern, pattern length, flags.
pub(crate) fn fill(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let target = buffer_slice(&mut call.arguments)?;
    let pattern = Pattern::new(call.arguments.u64()?, call.arguments.i32()?)?;
    submit(call, &fences, Work::Fill { target, pattern })
}

/// `rIrrrIrIII_v`: header, source VM buffer, source offset, target, target offset, length, flags. The bytes are those of now.
pub(crate) fn update(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let (source, source_offset) = (call.arguments.buffer("the source buffer")?, call.arguments.u64()?);
    let (source, target) = transfer(&Bytes::own(source.span().clone()), source_offset, &mut call.arguments)?;
    let source = Bytes::own(snapshot(source.current(), &mut call.context.meter)?);
    submit(call, &fences, Work::Copy { source, target })
}

/// `rIrrrIrIII_v`: header, source, source offset, target, target offset, length, flags.
pub(crate) fn copy(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let (source, source_offset) = (call.arguments.object::<HalBuffer>("the source buffer")?, call.arguments.u64()?);
    let (source, target) = transfer(source.bytes(), source_offset, &mut call.arguments)?;
    submit(call, &fences, Work::Copy { source, target })
}

/// `rIrrrIrIIi_v`, `rIrrrIrIII_v`: header, source file, source offset, target, target offset, length, flags.
pub(crate) fn read(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let (source, source_offset) = (call.arguments.object::<File>("the source file")?, call.arguments.u64()?);
    let (source, target) = transfer(&Bytes::own(source.0.clone()), source_offset, &mut call.arguments)?;
    submit(call, &fences, Work::Copy { source, target })
}

/// `rIrrrIrIIi_v`, `rIrrrIrIII_v`: header, source, source offset, target file, target offset, length, flags. Files of this module
/// are read-only.
pub(crate) fn write(call: &mut Call<'_, State>) -> Result<()> {
    header(call.state, &mut call.arguments)?;
    call.arguments.object::<HalBuffer>("the source buffer")?;
    call.arguments.i64()?;
    call.arguments.object::<File>("the target file")?;
    Err(Error::new(Status::PermissionDenied, "the target file is read-only"))
}

/// `rIrrI_v`: header, flags.
pub(crate) fn barrier(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    submit(call, &fences, Work::Nothing)
}

/// `rIrrCrD_v`: header, command buffers.
pub(crate) fn execute_many(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let count = call.arguments.span()?;
    if count > MAXIMUM_COMMAND_BUFFERS {
        return Err(Error::out_of_range(format!(
            "{count} command buffers in one submission; at most {MAXIMUM_COMMAND_BUFFERS} are possible"
        )));
    }
    let mut programs = SmallVec::new();
    for _ in 0..count {
        programs.push(call.arguments.object::<CommandBuffer>("the command buffer")?.submit()?);
    }
    submit(call, &fences, Work::Execute { programs, table: BindingTable::new() })
}

/// `rIrrrI_v`: header, command buffer or null, flags.
pub(crate) fn execute(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let programs = programs(call.arguments.reference()?)?;
    submit(call, &fences, Work::Execute { programs, table: BindingTable::new() })
}

/// `rIrrrCrIID_v`: header, command buffer, binding table.
pub(crate) fn execute_indirect(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let commands = call.arguments.reference()?;
    execute_indirect_rest(call, &fences, commands)
}

/// `rIrrrICrIID_v`: header, command buffer, flags, binding table.
pub(crate) fn execute_indirect_flags(call: &mut Call<'_, State>) -> Result<()> {
    let fences = header(call.state, &mut call.arguments)?;
    let commands = call.arguments.reference()?;
    call.arguments.i64()?;
    execute_indirect_rest(call, &fences, commands)
}

fn execute_indirect_rest(call: &mut Call<'_, State>, fences: &Fences<'_>, commands: &Ref) -> Result<()> {
    let table = read_table(&mut call.arguments)?;
    let programs = programs(commands)?;
    submit(call, fences, Work::Execute { programs, table })
}

/// The commands of a command buffer; null means none.
fn programs(commands: &Ref) -> Result<SmallVec<[std::sync::Arc<crate::program::Program>; 1]>> {
    let mut programs = SmallVec::new();
    if !commands.is_null() {
        programs.push(commands.object::<CommandBuffer>("the command buffer")?.submit()?);
    }
    Ok(programs)
}

/// `rI_v`: nothing is ever held back.
pub(crate) fn flush(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)
}

/// `rIirIIi_r`: device, queue affinity, access, VM buffer, offset, length, flags.
pub(crate) fn file_from_memory(call: &mut Call<'_, State>) -> Result<()> {
    const READ: i32 = 1;
    call.state.check_device(call.arguments.reference()?)?;
    call.arguments.i64()?;
    let access = call.arguments.i32()?;
    if access != READ {
        return Err(Error::new(
            Status::PermissionDenied,
            format!("a file in memory can only be read; the access asked for is {access:#x}"),
        ));
    }
    let source = source_range(&mut call.arguments)?;
    call.results.push_reference(call.context.new_object(File(source.span().clone().read_only()))?);
    Ok(())
}

/// Reads buffer, offset and length.
fn buffer_slice(arguments: &mut Arguments<'_>) -> Result<Bytes> {
    let buffer: &HalBuffer = arguments.object("the target buffer")?;
    part(buffer.bytes(), arguments.u64()?, arguments.u64()?)
}

/// Reads target, target offset and length, and gives the ranges of source and target.
fn transfer(source: &Bytes, source_offset: u64, arguments: &mut Arguments<'_>) -> Result<(Bytes, Bytes)> {
    let (target, target_offset) = (arguments.object::<HalBuffer>("the target buffer")?, arguments.u64()?);
    let length = arguments.u64()?;
    Ok((part(source, source_offset, length)?, part(target.bytes(), target_offset, length)?))
}
