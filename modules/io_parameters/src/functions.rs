//! The functions of the module.

use crate::index::Parameter;
use crate::provider::{Providers, Scope};
use crate::request::{Request, Requests, read_text};
use vmfb_hal::{Fence, FenceStatus, HalBuffer, MemoryType, Usage, Writer};
use vmfb_memory::{BASE_ALIGNMENT, ChargedVec, Span};
use vmfb_vm::{Arguments, Call, ElementKind, Error, Handle, Meter, RefType, Result, ResultExt, Status, Value};

/// Uses that write a buffer: by transfers, dispatches, images.
const WRITING: u32 = 0x2 | 0x800 | 0x2000;

/// What work that waits costs besides what it refers to, its copies among that.
const WAITING_BYTES: u64 = 512;

/// What a parameter that is used in place costs besides its object.
const CONSTANT_BYTES: u64 = 512;

/// What a call waits for and signals; null means nothing.
pub(crate) struct Fences<'a> {
    pub(crate) wait: Option<&'a Fence>,
    pub(crate) signal: Option<&'a Fence>,
}

/// A range of a parameter that goes into a range of a buffer.
pub(crate) struct Copy {
    parameter: Parameter,
    offset: u64,
    target: Span,
}

/// `rIrrrIiirrr_r`: header, scope, target affinity, memory types, usage, keys and spans; a list of buffers, one per span.
pub(crate) fn load(call: &mut Call<'_, ()>, providers: &Providers) -> Result<()> {
    let fences = header(&mut call.arguments)?;
    let scope = scope(&mut call.arguments, providers)?;
    call.arguments.i64()?;
    let target = Target::read(&mut call.arguments)?;
    let requests = Requests::read(&mut call.arguments)?;
    let count = u32::try_from(requests.len()).map_err(|_| Error::exhausted(format!("{} parameters in one call", requests.len())))?;
    let list = call.context.new_list(ElementKind::Ref(RefType::Named("hal.buffer".into())), count)?;
    for index in 0..requests.len() {
        let request = requests.get(index, &mut call.context.meter)?;
        let buffer = target.load(&scope, &request, &mut call.context.meter)?;
        list.push(Value::Ref(buffer.into()))?;
    }
    let nothing = ChargedVec::new(call.context.meter.account())?;
    finish(&mut call.context.meter, &fences, nothing)?;
    call.results.push_reference(list);
    Ok(())
}

/// `rIrrrrIIiiI_r`: header, scope, key, offset, target affinity, memory types, usage, length; a buffer.
pub(crate) fn load_one(call: &mut Call<'_, ()>, providers: &Providers) -> Result<()> {
    let fences = header(&mut call.arguments)?;
    let scope = scope(&mut call.arguments, providers)?;
    let key = read_text(call.arguments.reference()?, "the key")?;
    let parameter_offset = call.arguments.u64()?;
    call.arguments.i64()?;
    let target = Target::read(&mut call.arguments)?;
    let request = Request { key, parameter_offset, buffer_offset: 0, length: call.arguments.u64()? };
    let buffer = target.load(&scope, &request, &mut call.context.meter)?;
    let nothing = ChargedVec::new(call.context.meter.account())?;
    finish(&mut call.context.meter, &fences, nothing)?;
    call.results.push_reference(buffer);
    Ok(())
}

/// `rIrrrrrrr_v`: header, scope, target buffer, keys and spans.
pub(crate) fn gather(call: &mut Call<'_, ()>, providers: &Providers) -> Result<()> {
    let fences = header(&mut call.arguments)?;
    let scope = scope(&mut call.arguments, providers)?;
    let target: &HalBuffer = call.arguments.object("the target buffer")?;
    let requests = Requests::read(&mut call.arguments)?;
    let meter = &mut call.context.meter;
    let mut copies = ChargedVec::new(meter.account())?;
    for index in 0..requests.len() {
        let request = requests.get(index, meter)?;
        copies.push(copy_into(target, &scope, &request, meter)?)?;
    }
    finish(meter, &fences, copies)
}

/// `rIrrrrIrII_v`: header, scope, key, offset, target buffer, target offset, length.
pub(crate) fn read(call: &mut Call<'_, ()>, providers: &Providers) -> Result<()> {
    let fences = header(&mut call.arguments)?;
    let scope = scope(&mut call.arguments, providers)?;
    let key = read_text(call.arguments.reference()?, "the key")?;
    let parameter_offset = call.arguments.u64()?;
    let target: &HalBuffer = call.arguments.object("the target buffer")?;
    let request = Request { key, parameter_offset, buffer_offset: call.arguments.u64()?, length: call.arguments.u64()? };
    let meter = &mut call.context.meter;
    let copy = copy_into(target, &scope, &request, meter)?;
    let mut copies = ChargedVec::new(meter.account())?;
    copies.push(copy)?;
    finish(meter, &fences, copies)
}

/// `scatter` and `write`: files are open for reading alone.
pub(crate) fn write(_call: &mut Call<'_, ()>) -> Result<()> {
    Err(Error::new(Status::PermissionDenied, "parameter files are read-only in this runtime, a program cannot write its parameters"))
}

/// Reads device, queue affinity, wait fence and signal fence. There is one device, so the affinity says nothing.
fn header<'a>(arguments: &mut Arguments<'a>) -> Result<Fences<'a>> {
    let device = arguments.reference()?;
    if device.type_name() != "hal.device" {
        return Err(Error::invalid(format!("the device is a {}", device.type_name())));
    }
    arguments.i64()?;
    Ok(Fences { wait: fence(arguments, "the wait fence")?, signal: fence(arguments, "the signal fence")? })
}

fn fence<'a>(arguments: &mut Arguments<'a>, what: &str) -> Result<Option<&'a Fence>> {
    let reference = arguments.reference()?;
    if reference.is_null() { Ok(None) } else { reference.object(what).map(Some) }
}

fn scope<'p>(arguments: &mut Arguments<'_>, providers: &'p Providers) -> Result<Scope<'p>> {
    let name = read_text(arguments.reference()?, "the scope")?;
    providers.scope(String::from_utf8_lossy(&name).into_owned())
}

/// What loaded buffers are for.
struct Target {
    memory_type: MemoryType,
    usage: Usage,
}

impl Target {
    fn read(arguments: &mut Arguments<'_>) -> Result<Self> {
        Ok(Self { memory_type: MemoryType(arguments.u32()?), usage: Usage(arguments.u32()?) })
    }

    /// A buffer with a range of a parameter: the file itself, or a copy where the program may write it or kernels cannot use it
    /// in place. A parameter never changes, so nothing needs to be waited for.
    fn load(&self, scope: &Scope<'_>, request: &Request, meter: &mut Meter) -> Result<Handle<HalBuffer>> {
        let parameter = scope.find(&request.key)?;
        self.load_range(parameter, request, meter).context(|| format!("loading the parameter {}", shown(&request.key)))
    }

    fn load_range(&self, parameter: &Parameter, request: &Request, meter: &mut Meter) -> Result<Handle<HalBuffer>> {
        let Request { parameter_offset, buffer_offset, length, .. } = *request;
        if buffer_offset != 0 {
            return Err(Error::out_of_range(format!("the offset {buffer_offset} in a buffer that has the length of the parameter")));
        }
        parameter.check(parameter_offset, length)?;
        let memory_type = MemoryType(self.memory_type.0 | MemoryType::HOST_LOCAL.0);
        if let Some(bytes) = parameter.bytes().filter(|_| self.shares()) {
            // In range, as checked.
            let bytes = bytes.slice(parameter_offset as usize, length as usize)?;
            if bytes.address().addr().is_multiple_of(BASE_ALIGNMENT) {
                return Handle::charged(HalBuffer::constant(bytes, memory_type, self.usage), CONSTANT_BYTES, meter.account());
            }
        }
        let bytes = usize::try_from(length).map_err(|_| Error::exhausted(format!("no memory for {length} bytes")))?;
        // Once for the allocation, once for the copy.
        meter.charge_bytes(length)?;
        meter.charge_bytes(length)?;
        let target = Span::zeroed(bytes, BASE_ALIGNMENT, meter.account())?;
        parameter.copy_within(meter, parameter_offset, &target)?;
        Handle::charged(HalBuffer::with_usage(target, memory_type, self.usage), 0, meter.account())
    }

    /// Whether the program will not write the buffer.
    fn shares(&self) -> bool {
        self.usage.0 & Usage::SHARING_IMMUTABLE.0 != 0 || self.usage.0 & WRITING == 0
    }
}

/// Finds a parameter and the part of the target that it goes to. Copying it cannot fail then.
pub(crate) fn copy_into(target: &HalBuffer, scope: &Scope<'_>, request: &Request, meter: &mut Meter) -> Result<Copy> {
    let parameter = scope.find(&request.key)?;
    let mut checked = || -> Result<Copy> {
        parameter.check(request.parameter_offset, request.length)?;
        let (start, length) = match target.resolve_range(request.buffer_offset, request.length)? {
            (start, length) if length as u64 == request.length => (start, length),
            (_, length) => return Err(Error::out_of_range(format!("the buffer has room for {length} bytes only"))),
        };
        let target = target.bytes().slice(start, length)?.writable(Writer::Checked, meter)?;
        if !target.is_writable() && !target.is_empty() {
            return Err(Error::new(Status::PermissionDenied, "the target buffer is read-only"));
        }
        Ok(Copy { parameter: parameter.clone(), offset: request.parameter_offset, target })
    };
    let copy = checked().context(|| format!("reading the parameter {}", shown(&request.key)))?;
    meter.charge_bytes(request.length)?;
    Ok(copy)
}

/// Copies when the wait fence is reached, at once if it is, and then signals. A failure goes to the signal fence.
pub(crate) fn finish(meter: &mut Meter, fences: &Fences<'_>, copies: ChargedVec<Copy>) -> Result<()> {
    let outcome = match fences.wait.map_or(FenceStatus::Reached, Fence::status) {
        FenceStatus::Reached => run(meter, &copies),
        FenceStatus::Failed(error) => Err(waited_in_vain(error)),
        FenceStatus::Pending => return defer(meter, fences, copies),
    };
    match (fences.signal, outcome) {
        (None, outcome) => outcome,
        (Some(signal), Ok(())) => {
            signal.signal();
            Ok(())
        }
        (Some(signal), Err(error)) => {
            signal.fail(error);
            Ok(())
        }
    }
}

fn defer(meter: &mut Meter, fences: &Fences<'_>, copies: ChargedVec<Copy>) -> Result<()> {
    let Some(wait) = fences.wait else { return Err(Error::internal("work without a wait cannot be pending")) };
    let charge = meter.account().hold(WAITING_BYTES)?;
    if let Some(signal) = fences.signal {
        signal.follow(wait, meter)?;
    }
    let signal = fences.signal.cloned();
    let worker = meter.for_worker();
    let body = move |waited: Result<()>| {
        let outcome = waited.map_err(waited_in_vain).and_then(|()| run(&worker, &copies));
        // Memory is returned before anybody who waits goes on.
        drop((copies, charge));
        match (signal, outcome) {
            (Some(signal), Ok(())) => signal.signal(),
            (Some(signal), Err(error)) => signal.fail(error),
            (None, Ok(())) => {}
            (None, Err(error)) => tracing::warn!(%error, "parameters were not read"),
        }
    };
    wait.on_ready_in(body, meter)
}

fn run(meter: &Meter, copies: &[Copy]) -> Result<()> {
    copies.iter().try_for_each(|copy| {
        meter.poll()?;
        copy.parameter.copy_within(meter, copy.offset, &copy.target)
    })
}

#[cold]
fn waited_in_vain(error: Error) -> Error {
    const REASON: &str = "parameters were to be read behind a fence that failed";
    if error.context_chain().last() == Some(REASON) { error } else { error.context(REASON) }
}

fn shown(key: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(key))
}
