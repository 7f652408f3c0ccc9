//! A loaded executable: a pool of stores to run its kernels in.

use crate::entry::{Entries, Entry};
use crate::grid::{Grid, Walk};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use vmfb_hal::{Dispatch, Executable, ExecutableParameters, Export, Workers, workgroups};
use vmfb_memory::{BASE_ALIGNMENT, Charge, MemoryAccount, Span};
use vmfb_module_vmvx::Vmvx;
use vmfb_vm::{Buffer, Error, FuelMetering, Func, Instance, Linker, List, Meter, Module, Origin, Ref, Result, ResultExt, Store};

/// What is charged for a store of the pool: its VM stack, as small as stacks are.
const ROOM_BYTES: u64 = 256 << 10;

pub(crate) struct VmvxExecutable {
    inner: Arc<Inner>,
    /// Threads that dispatches may be spread over.
    workers: Option<Arc<Workers>>,
    /// Pays for the module.
    _charge: Charge,
}

/// What the threads of a dispatch share.
pub(crate) struct Inner {
    module: Module,
    linker: Linker,
    entries: Entries,
    /// The executable's constants, if it takes any.
    constants: Option<Buffer>,
    /// Rooms that no dispatch uses. Each thread of a dispatch uses one, so as many are made as are used at once.
    rooms: Mutex<Vec<Room>>,
    /// Stands for scratch memory and constants that a kernel does not have.
    nothing: Buffer,
}

/// A store with an instance of the module in it.
struct Room {
    store: Store,
    instance: Instance,
    /// Set when the room is first used, as only a caller has limits to run and charge it under.
    readiness: Option<Charge>,
}

impl VmvxExecutable {
    /// An executable of a module. No code of the module runs before its first dispatch.
    pub(crate) fn new(module: Module, parameters: &ExecutableParameters<'_>, charge: Charge) -> Result<Self> {
        let account = parameters.account;
        let entries = Entries::new(&module)?;
        let constants = match (entries.set_constants, parameters.constants) {
            (None, []) => None,
            (Some(_), constants @ [_, ..]) => Some(constant_buffer(constants, account)?),
            (None, constants) => {
                let count = constants.len();
                return Err(Error::invalid(format!("the executable takes no constants (it has no __set_constants), found {count}")));
            }
            (Some(_), []) => return Err(Error::invalid("the executable takes constants (it has __set_constants), found none")),
        };
        let workers = Workers::of(module.engine());
        let mut linker = Linker::new();
        linker.add_native(Vmvx::new())?;
        let nothing = Buffer::allocate(0, 1, &MemoryAccount::default())?;
        let inner = Inner { module, linker, entries, constants, rooms: Mutex::default(), nothing };
        // Shows imports that are not there when the executable is loaded.
        let room = inner.new_room(&mut Meter::new(FuelMetering::Off, account.clone()))?;
        inner.give(room);
        Ok(Self { inner: Arc::new(inner), workers, _charge: charge })
    }

    /// The threads and the size of a grid that is worth spreading over them. Fuel is counted on the calling thread alone.
    fn spread(&self, entry: &Entry, dispatch: &Dispatch<'_>, meter: &Meter) -> Option<(&Workers, u64, usize)> {
        let workers = self.workers.as_deref().filter(|_| dispatch.concurrency > 1 && meter.fuel().is_none())?;
        let workgroups = workgroups(dispatch.workgroup_count).filter(|workgroups| *workgroups > 1)?;
        let threads = workers.threads().min(dispatch.concurrency).min(usize::try_from(workgroups).unwrap_or(usize::MAX));
        workers.is_worthwhile(entry.pace.estimate(workgroups)).then_some((workers, workgroups, threads))
    }

    fn run_on_threads(&self, dispatch: &Dispatch<'_>, meter: &Meter, spread: (&Workers, u64, usize)) -> Result<()> {
        let (workers, workgroups, threads) = spread;
        let grid = Grid {
            executable: self.inner.clone(),
            export: dispatch.export,
            workgroup_count: dispatch.workgroup_count,
            constants: dispatch.constants.to_vec(),
            bindings: bound(dispatch).collect::<Result<_>>()?,
            meter: meter.for_worker(),
        };
        grid.run(workgroups, threads, workers)
    }

    fn run_here(&self, entry: &Entry, dispatch: &Dispatch<'_>, meter: &mut Meter) -> Result<()> {
        let mut room = self.inner.take(meter)?;
        let start = self.workers.is_some().then(Instant::now);
        let result = with_meter(&mut room, meter, |room| {
            let kernel = self.inner.prepare(room, entry, dispatch.workgroup_count, dispatch.constants, bound(dispatch))?;
            Walk::all(dispatch.workgroup_count).try_for_each(|workgroup| kernel.run(room, workgroup))
        });
        self.inner.give(room);
        if let (Some(start), Some(workgroups), Ok(())) = (start, workgroups(dispatch.workgroup_count), &result) {
            entry.pace.learn(start, workgroups);
        }
        result
    }
}

/// The bound ranges. A read-only span gives a read-only buffer.
fn bound(dispatch: &Dispatch<'_>) -> impl ExactSizeIterator<Item = Result<Span>> {
    dispatch.bindings.iter().map(|binding| Ok(binding.span.slice(binding.offset, binding.length)?))
}

impl Inner {
    /// A room, and what its globals take, at the expense of whoever needs it.
    fn new_room(&self, meter: &mut Meter) -> Result<Room> {
        let mut store = Store::new(self.module.engine(), ());
        store.swap_meter(meter);
        let instance = self.linker.instantiate(&mut store, &self.module);
        store.swap_meter(meter);
        Ok(Room { instance: instance?, store, readiness: None })
    }

    fn take(&self, meter: &mut Meter) -> Result<Room> {
        let free = self.rooms.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(|| self.new_room(meter), Ok)
    }

    /// Rooms that are ready are taken first: they need no more memory.
    fn give(&self, room: Room) {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let end = if room.readiness.is_some() { rooms.len() } else { 0 };
        rooms.insert(end, room);
    }

    fn entry(&self, ordinal: usize) -> Result<&Entry> {
        let count = self.entries.kernels.len();
        let entry = self.entries.kernels.get(ordinal);
        entry.ok_or_else(|| Error::invalid(format!("the executable has {count} exports, wanted number {ordinal}")))
    }

    /// Makes a kernel ready to run in a room that has the caller's meter.
    fn prepare(
        &self,
        room: &mut Room,
        entry: &Entry,
        workgroup_count: [u32; 3],
        constants: &[u32],
        bindings: impl ExactSizeIterator<Item = Result<Span>>,
    ) -> Result<Kernel> {
        self.make_ready(room)?;
        let function = Func::by_ordinal(&room.store, room.instance, entry.function)?;
        let account = room.store.account();
        let local_memory = match entry.local_memory {
            0 => self.nothing.clone(),
            bytes => Buffer::allocate(bytes, 1, account).context(|| "allocating local memory".to_owned())?,
        };
        let constants = match constants {
            [] => self.nothing.clone(),
            constants => constant_buffer(constants, account)?,
        };
        let bindings = List::of_buffers(bindings.map(|span| Ok(Buffer::new(span?, Origin::Host))), account)?;
        Ok(Kernel { function, refs: [local_memory.into(), constants.into(), bindings.into()], workgroup_count })
    }

    /// Charges the room to the caller that uses it first, and gives it the executable's constants.
    fn make_ready(&self, room: &mut Room) -> Result<()> {
        if room.readiness.is_some() {
            return Ok(());
        }
        let charge = room.store.account().hold(ROOM_BYTES)?;
        if let (Some(function), Some(constants)) = (self.entries.set_constants, &self.constants) {
            let function = Func::by_ordinal(&room.store, room.instance, function)?;
            let result = function.call_raw(&mut room.store, &[], &[Ref::from(constants.clone())]);
            result.context(|| "setting the executable's constants".to_owned())?;
        }
        room.readiness = Some(charge);
        Ok(())
    }
}

/// A function of a room, and the references that it is called with: scratch memory, constants, bindings.
struct Kernel {
    function: Func,
    refs: [Ref; 3],
    workgroup_count: [u32; 3],
}

impl Kernel {
    fn run(&self, room: &mut Room, [x, y, z]: [u32; 3]) -> Result<()> {
        let [count_x, count_y, count_z] = self.workgroup_count;
        room.store.meter().poll()?;
        let values = [x, y, z, 1, 1, 1, count_x, count_y, count_z];
        let result = self.function.call_raw(&mut room.store, &values, &self.refs);
        result.context(|| format!("in workgroup ({x}, {y}, {z}) of ({count_x}, {count_y}, {count_z})"))
    }
}

/// What one thread of a dispatch runs workgroups in.
pub(crate) struct Lane {
    room: Room,
    kernel: Kernel,
    /// What the room has when no dispatch uses it.
    meter: Meter,
}

impl Lane {
    /// Takes a room, and makes the kernel of a grid ready in it.
    pub(crate) fn new(executable: &Inner, grid: &Grid) -> Result<Self> {
        let entry = executable.entry(grid.export)?;
        let mut meter = grid.meter.for_worker();
        let mut room = executable.take(&mut meter)?;
        room.store.swap_meter(&mut meter);
        let bindings = grid.bindings.iter().map(|span| Ok(span.clone()));
        match executable.prepare(&mut room, entry, grid.workgroup_count, &grid.constants, bindings) {
            Ok(kernel) => Ok(Self { room, kernel, meter }),
            Err(error) => {
                room.store.swap_meter(&mut meter);
                executable.give(room);
                Err(error)
            }
        }
    }

    pub(crate) fn run(&mut self, workgroup: [u32; 3]) -> Result<()> {
        self.kernel.run(&mut self.room, workgroup)
    }

    /// Gives the room back.
    pub(crate) fn finish(mut self, executable: &Inner) {
        self.room.store.swap_meter(&mut self.meter);
        executable.give(self.room);
    }
}

impl Executable for VmvxExecutable {
    fn export_count(&self) -> usize {
        self.inner.entries.kernels.len()
    }

    fn lookup(&self, name: &str) -> Option<usize> {
        self.inner.entries.names.get(name).copied()
    }

    fn export(&self, ordinal: usize) -> Option<Export<'_>> {
        let entry = self.inner.entries.kernels.get(ordinal)?;
        Some(Export {
            name: Some(&entry.name),
            constant_count: entry.constant_count,
            binding_count: entry.binding_count,
            local_memory: entry.local_memory,
        })
    }

    fn checks_writes(&self) -> bool {
        true
    }

    fn dispatch(&self, meter: &mut Meter, dispatch: &Dispatch<'_>) -> Result<()> {
        let entry = self.inner.entry(dispatch.export)?;
        let counts = check_count("bindings", entry.binding_count, dispatch.bindings.len())
            .and_then(|()| check_count("constants", entry.constant_count, dispatch.constants.len()));
        counts.context(|| format!("dispatching {}", entry.name))?;
        if dispatch.workgroup_count.contains(&0) {
            return Ok(());
        }
        meter.charge_product(&dispatch.workgroup_count.map(u64::from))?;
        let result = match self.spread(entry, dispatch, meter) {
            Some(spread) => self.run_on_threads(dispatch, meter, spread),
            None => self.run_here(entry, dispatch, meter),
        };
        result.context(|| format!("dispatching {}", entry.name))
    }
}

/// Runs something while a room has the caller's limits.
fn with_meter<R>(room: &mut Room, meter: &mut Meter, run: impl FnOnce(&mut Room) -> R) -> R {
    /// Gives the limits back in any case, as a panic of a native function may go on to the caller's caller.
    struct Lent<'a> {
        room: &'a mut Room,
        meter: &'a mut Meter,
    }
    impl Drop for Lent<'_> {
        fn drop(&mut self) {
            self.room.store.swap_meter(self.meter);
        }
    }
    room.store.swap_meter(meter);
    let lent = Lent { room, meter };
    run(lent.room)
}

fn check_count(what: &str, declared: Option<usize>, found: usize) -> Result<()> {
    match declared {
        Some(wanted) if wanted != found => Err(Error::invalid(format!("{found} {what} were given, the kernel declares {wanted}"))),
        _ => Ok(()),
    }
}

/// Constants as kernels read them.
fn constant_buffer(constants: &[u32], account: &MemoryAccount) -> Result<Buffer> {
    let span = Span::zeroed(size_of_val(constants), BASE_ALIGNMENT, account)?;
    for (index, word) in constants.iter().enumerate() {
        span.write(index * size_of::<u32>(), &word.to_le_bytes())?;
    }
    Ok(Buffer::new(span.read_only(), Origin::Host))
}
