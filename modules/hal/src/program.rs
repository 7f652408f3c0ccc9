//! What a command buffer holds when it is finished, and how it is executed.

use crate::allocator::{part, range};
use crate::batch::Threads;
use crate::executable::Kernels;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use vmfb_hal::{Binding, Bytes, Dispatch, Executable, HalBuffer, Writer};
use vmfb_memory::{Charge, ChargedVec, MemoryAccount, Span};
use vmfb_vm::{Arguments, Error, Meter, Result, ResultExt, bulk};

/// A range of bytes that a command works on.
#[derive(Clone)]
pub(crate) enum Slice {
    /// Bytes that were known when the command was recorded.
    Direct(Bytes),
    /// A part of an entry of the binding table that comes with a submission.
    Slot { slot: u32, offset: u64, length: u64 },
}

/// Buffers that come with a submission; null entries are allowed, unless a command uses them.
pub(crate) type BindingTable = SmallVec<[Option<Bytes>; 4]>;

/// One recorded command.
pub(crate) enum Command {
    Fill {
        target: Slice,
        pattern: Pattern,
    },
    Copy {
        source: Slice,
        target: Slice,
    },
    Dispatch(Box<RecordedDispatch>),
    /// Another command buffer with bindings of its own.
    Nested(Box<Nested>),
    /// What stands in front is done before what stands behind begins. Other commands are independent of each other.
    Barrier,
}

/// A command buffer in a command buffer.
pub(crate) struct Nested {
    pub(crate) program: Arc<Program>,
    pub(crate) table: BindingTable,
}

/// A pattern of 1, 2, 4 or 8 bytes.
#[derive(Clone, Copy)]
pub(crate) struct Pattern {
    bytes: [u8; 8],
    length: u8,
}

/// A dispatch whose constants and bindings stand in its program.
pub(crate) struct RecordedDispatch {
    pub(crate) kernels: Arc<Kernels>,
    pub(crate) export: usize,
    pub(crate) workgroups: Workgroups,
    pub(crate) constants: Range<usize>,
    pub(crate) bindings: Range<usize>,
}

/// The size of a grid.
pub(crate) enum Workgroups {
    Count([u32; 3]),
    /// Three words that are read when the dispatch is executed.
    Indirect(Slice),
}

/// Commands in the order in which they are executed.
pub(crate) struct Program {
    pub(crate) commands: ChargedVec<Command>,
    pub(crate) constants: ChargedVec<u32>,
    pub(crate) bindings: ChargedVec<Slice>,
    /// Levels of command buffers inside.
    pub(crate) depth: u32,
    /// Pays for what commands refer to.
    pub(crate) charge: Charge,
}

impl Slice {
    /// A range of a buffer, or of the binding table's entry `slot` where the buffer is null.
    pub(crate) fn new(buffer: Option<&HalBuffer>, slot: u32, offset: u64, length: u64) -> Result<Self> {
        match buffer {
            Some(buffer) => Ok(Self::Direct(part(buffer.bytes(), offset, length)?)),
            None => Ok(Self::Slot { slot, offset, length }),
        }
    }

    /// Reads slot, buffer, offset and length.
    pub(crate) fn read_slot_first(arguments: &mut Arguments<'_>) -> Result<Self> {
        let (slot, buffer) = (arguments.u32()?, read_buffer(arguments)?);
        Self::new(buffer, slot, arguments.u64()?, arguments.u64()?)
    }

    /// The bytes, with the binding table of a submission.
    fn resolve<'a>(&'a self, table: &'a BindingTable) -> Result<Cow<'a, Bytes>> {
        let (slot, offset, length) = match self {
            Self::Direct(bytes) => return Ok(Cow::Borrowed(bytes)),
            Self::Slot { slot, offset, length } => (*slot, *offset, *length),
        };
        if table.is_empty() {
            return Err(Error::precondition(format!("the buffer is null, and there is no binding table for slot {slot}")));
        }
        let count = table.len();
        let entry = table.get(slot as usize);
        let entry = entry.ok_or_else(|| Error::out_of_range(format!("slot {slot} of a binding table with {count} entries")))?;
        let entry = entry.as_ref().ok_or_else(|| Error::precondition(format!("entry {slot} of the binding table is null")))?;
        let (offset, length) = range(entry.len(), offset, length).context(|| format!("entry {slot} of the binding table"))?;
        Ok(Cow::Owned(entry.slice(offset, length)?))
    }
}

/// The bytes of a binding, writable unless the executable fails where it writes what it must not: then a constant for which the
/// account has no room is bound as it is.
fn bind(bytes: &Bytes, executable: &dyn Executable, meter: &mut Meter) -> Result<Span> {
    if !executable.checks_writes() {
        return bytes.writable(Writer::MachineCode, meter);
    }
    bytes.writable(Writer::Checked, meter).or_else(|_| bytes.readable(meter))
}

/// All of a span.
fn whole(span: &Span) -> Binding<'_> {
    Binding { span, offset: 0, length: span.len() }
}

/// The next argument, a buffer; null allowed.
pub(crate) fn read_buffer<'a>(arguments: &mut Arguments<'a>) -> Result<Option<&'a HalBuffer>> {
    let reference = arguments.reference()?;
    if reference.is_null() { Ok(None) } else { reference.object("the buffer").map(Some) }
}

/// Reads a binding table: a span of buffer, offset and length.
pub(crate) fn read_table(arguments: &mut Arguments<'_>) -> Result<BindingTable> {
    let mut table = BindingTable::new();
    for index in 0..arguments.span()? {
        let buffer = read_buffer(arguments)?;
        let (offset, length) = (arguments.u64()?, arguments.u64()?);
        let bytes = buffer.map(|buffer| part(buffer.bytes(), offset, length)).transpose();
        table.push(bytes.context(|| format!("entry {index} of the binding table"))?);
    }
    Ok(table)
}

impl Pattern {
    /// The lowest `length` bytes of a value.
    pub(crate) fn new(value: u64, length: i32) -> Result<Self> {
        match length {
            1 | 2 | 4 | 8 => Ok(Self { bytes: value.to_le_bytes(), length: length as u8 }),
            _ => Err(Error::invalid(format!("a pattern of {length} bytes; wanted 1, 2, 4 or 8"))),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&self.bytes)
    }

    /// Fills bytes, whose number must be a multiple of the pattern's.
    pub(crate) fn fill(&self, target: &Bytes, meter: &mut Meter) -> Result<()> {
        let (length, unit) = (target.len(), self.length);
        if !length.is_multiple_of(usize::from(unit)) {
            return Err(Error::invalid(format!("{length} bytes cannot be filled with a pattern of {unit} bytes")));
        }
        meter.charge_bytes(length as u64)?;
        let target = target.writable(Writer::Checked, meter)?;
        bulk::fill(meter, (&target, 0), length, self.bytes())
    }
}

/// Copies bytes; where a length was given as "the rest", the shorter range counts.
pub(crate) fn copy(source: &Bytes, target: &Bytes, meter: &mut Meter) -> Result<()> {
    let length = source.len().min(target.len());
    meter.charge_bytes(length as u64)?;
    // The target first: the source may be the same constant.
    let target = target.writable(Writer::Checked, meter)?;
    let source = source.readable(meter)?;
    bulk::copy(meter, (&source, 0), (&target, 0), length)
}

impl Program {
    /// No commands yet. What is added is charged to the account.
    pub(crate) fn new(account: &MemoryAccount) -> Result<Self> {
        Ok(Self {
            commands: ChargedVec::new(account)?,
            constants: ChargedVec::new(account)?,
            bindings: ChargedVec::new(account)?,
            depth: 0,
            charge: account.hold(0)?,
        })
    }

    /// Runs one command.
    pub(crate) fn run_command(&self, index: usize, table: &BindingTable, threads: &Threads, meter: &mut Meter) -> Result<()> {
        let Some(command) = self.commands.get(index) else { return Ok(()) };
        meter.poll()?;
        self.run_one(command, table, threads, meter).context(|| format!("executing command {index} of a command buffer"))
    }

    fn run_one(&self, command: &Command, table: &BindingTable, threads: &Threads, meter: &mut Meter) -> Result<()> {
        match command {
            Command::Fill { target, pattern } => pattern.fill(&*target.resolve(table)?, meter).context(|| "filling a buffer".into()),
            Command::Copy { source, target } => {
                copy(&*source.resolve(table)?, &*target.resolve(table)?, meter).context(|| "copying between buffers".into())
            }
            Command::Dispatch(dispatch) => self.dispatch(dispatch, table, threads, meter).context(|| describe(dispatch)),
            Command::Nested(nested) => {
                meter.charge(1)?;
                nested.program.run(&nested.table, threads, meter)
            }
            Command::Barrier => Ok(()),
        }
    }

    fn dispatch(&self, dispatch: &RecordedDispatch, table: &BindingTable, threads: &Threads, meter: &mut Meter) -> Result<()> {
        let recorded = self.bindings.get(dispatch.bindings.clone()).unwrap_or_default();
        let executable = &*dispatch.kernels.executable;
        let mut spans: SmallVec<[Span; 8]> = SmallVec::new();
        for (index, slice) in recorded.iter().enumerate() {
            let bound = slice.resolve(table).and_then(|bytes| bind(&bytes, executable, meter));
            spans.push(bound.context(|| format!("binding {index}"))?);
        }
        let bindings: SmallVec<[Binding<'_>; 8]> = spans.iter().map(whole).collect();
        let workgroup_count = match &dispatch.workgroups {
            Workgroups::Count(count) => *count,
            Workgroups::Indirect(slice) => {
                let words = slice.resolve(table).and_then(|bytes| bytes.readable(meter));
                read_count(&words.context(|| "the workgroup count".into())?)?
            }
        };
        let constants = self.constants.get(dispatch.constants.clone()).unwrap_or_default();
        let concurrency = threads.count();
        let grid = Dispatch { export: dispatch.export, workgroup_count, constants, bindings: &bindings, concurrency };
        executable.dispatch(meter, &grid)
    }

    /// Keeps what a call sees of the constants that the program refers to, for execution after the call has ended.
    pub(crate) fn hold(&self, table: &BindingTable, meter: &mut Meter, held: &mut ChargedVec<Span>) -> Result<()> {
        let bindings = self.bindings.iter();
        let others = self.commands.iter().flat_map(|command| match command {
            Command::Fill { target, .. } => [Some(target), None],
            Command::Copy { source, target } => [Some(source), Some(target)],
            _ => [None, None],
        });
        for slice in bindings.chain(others.flatten()) {
            if let Slice::Direct(bytes) = slice {
                held.extend(bytes.hold(meter)?)?;
            }
        }
        for bytes in table.iter().flatten() {
            held.extend(bytes.hold(meter)?)?;
        }
        for command in self.commands.iter() {
            if let Command::Nested(nested) = command {
                nested.program.hold(&nested.table, meter, held)?;
            }
        }
        Ok(())
    }
}

fn read_count(words: &Span) -> Result<[u32; 3]> {
    let word = |index: usize| {
        let word = words.load_u32(index * 4);
        word.ok_or_else(|| Error::out_of_range(format!("a workgroup count takes 12 bytes, there are {}", words.len())))
    };
    Ok([word(0)?, word(1)?, word(2)?])
}

#[cold]
fn describe(dispatch: &RecordedDispatch) -> String {
    match dispatch.kernels.executable.export(dispatch.export).and_then(|export| export.name.map(str::to_owned)) {
        Some(name) => format!("dispatching {name}"),
        None => format!("dispatching export {}", dispatch.export),
    }
}
