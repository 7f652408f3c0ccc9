//! A loaded executable: a pool of stores to run its kernels in, and the grid loop.

use crate::entry::{Entries, Entry};
use std::sync::{Mutex, PoisonError};
use vmfb_hal::{Dispatch, Executable, Export};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_module_vmvx::Vmvx;
use vmfb_vm::{Buffer, Error, Func, Instance, Linker, List, Meter, Module, Origin, Ref, Result, ResultExt, Store};

/// What is charged for a store of the pool: its VM stack, as small as stacks are.
const WORKER_BYTES: u64 = 256 << 10;

pub(crate) struct VmvxExecutable {
    module: Module,
    linker: Linker,
    entries: Entries,
    /// The executable's constants, if it takes any.
    constants: Option<Buffer>,
    /// Stores that no dispatch uses. One dispatch uses one, so as many are made as dispatches run at once.
    workers: Mutex<Vec<Worker>>,
    /// Stands for scratch memory and constants that a kernel does not have.
    nothing: Buffer,
}

/// A store with an instance of the module in it.
struct Worker {
    store: Store,
    instance: Instance,
    /// Set when the worker is first used, as only a caller has limits to run and charge it under.
    readiness: Option<Charge>,
}

impl VmvxExecutable {
    /// An executable of a module. No code of the module runs before its first dispatch.
    pub(crate) fn new(module: Module, constants: &[u32]) -> Result<Self> {
        let entries = Entries::new(&module)?;
        let constants = match (entries.set_constants, constants) {
            (None, []) => None,
            (Some(_), [_, ..]) => Some(constant_buffer(constants)),
            (None, _) => {
                let count = constants.len();
                return Err(Error::invalid(format!("the executable takes no constants (it has no __set_constants), found {count}")));
            }
            (Some(_), []) => return Err(Error::invalid("the executable takes constants (it has __set_constants), found none")),
        };
        let mut linker = Linker::new();
        linker.add_native(Vmvx::new())?;
        let nothing = Buffer::allocate(0, 1, &MemoryAccount::default())?;
        let executable = Self { module, linker, entries, constants, workers: Mutex::default(), nothing };
        // Shows imports that are not there when the executable is loaded.
        let worker = executable.new_worker()?;
        executable.give(worker);
        Ok(executable)
    }

    fn new_worker(&self) -> Result<Worker> {
        let mut store = Store::new(self.module.engine(), ());
        let instance = self.linker.instantiate(&mut store, &self.module)?;
        Ok(Worker { store, instance, readiness: None })
    }

    fn take(&self) -> Result<Worker> {
        let free = self.workers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(|| self.new_worker(), Ok)
    }

    fn give(&self, worker: Worker) {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    }

    fn entry(&self, ordinal: usize) -> Result<&Entry> {
        let count = self.entries.kernels.len();
        let entry = self.entries.kernels.get(ordinal);
        entry.ok_or_else(|| Error::invalid(format!("the executable has {count} exports, wanted number {ordinal}")))
    }

    /// Runs the grid on a worker, which has the caller's meter.
    fn run(&self, worker: &mut Worker, entry: &Entry, dispatch: &Dispatch<'_>) -> Result<()> {
        self.make_ready(worker)?;
        let function = Func::by_ordinal(&worker.store, worker.instance, entry.function)?;
        let refs = self.arguments(worker.store.meter(), entry, dispatch)?;
        let [x_count, y_count, z_count] = dispatch.workgroup_count;
        let mut values = [0, 0, 0, 1, 1, 1, x_count, y_count, z_count];
        for z in 0..z_count {
            for y in 0..y_count {
                for x in 0..x_count {
                    worker.store.meter().poll()?;
                    values[..3].copy_from_slice(&[x, y, z]);
                    let result = function.call_raw(&mut worker.store, &values, &refs);
                    result.context(|| format!("in workgroup ({x}, {y}, {z}) of ({x_count}, {y_count}, {z_count})"))?;
                }
            }
        }
        Ok(())
    }

    /// The references that a kernel is called with: scratch memory, constants, bindings.
    fn arguments(&self, meter: &Meter, entry: &Entry, dispatch: &Dispatch<'_>) -> Result<[Ref; 3]> {
        let account = meter.account();
        let local_memory = match entry.local_memory {
            0 => self.nothing.clone(),
            bytes => Buffer::allocate(bytes, 1, account).context(|| "allocating local memory".to_owned())?,
        };
        let constants = match dispatch.constants {
            [] => self.nothing.clone(),
            constants => constant_buffer(constants),
        };
        let buffers = dispatch.bindings.iter().map(|binding| {
            // A read-only span gives a read-only buffer.
            let span = binding.span.slice(binding.offset, binding.length)?;
            Ok(Buffer::new(span, Origin::Host))
        });
        let bindings = List::of_buffers(buffers, account)?;
        Ok([local_memory.into(), constants.into(), bindings.into()])
    }

    /// Charges the worker to the caller that uses it first, and gives it the executable's constants.
    fn make_ready(&self, worker: &mut Worker) -> Result<()> {
        if worker.readiness.is_some() {
            return Ok(());
        }
        let charge = Charge::new(worker.store.account().clone(), WORKER_BYTES)?;
        if let (Some(function), Some(constants)) = (self.entries.set_constants, &self.constants) {
            let function = Func::by_ordinal(&worker.store, worker.instance, function)?;
            let result = function.call_raw(&mut worker.store, &[], &[Ref::from(constants.clone())]);
            result.context(|| "setting the executable's constants".to_owned())?;
        }
        worker.readiness = Some(charge);
        Ok(())
    }
}

impl Executable for VmvxExecutable {
    fn export_count(&self) -> usize {
        self.entries.kernels.len()
    }

    fn lookup(&self, name: &str) -> Option<usize> {
        self.entries.names.get(name).copied()
    }

    fn export(&self, ordinal: usize) -> Option<Export<'_>> {
        let entry = self.entries.kernels.get(ordinal)?;
        Some(Export {
            name: Some(&entry.name),
            constant_count: entry.constant_count,
            binding_count: entry.binding_count,
            local_memory: entry.local_memory,
        })
    }

    fn dispatch(&self, meter: &mut Meter, dispatch: &Dispatch<'_>) -> Result<()> {
        let entry = self.entry(dispatch.export)?;
        let counts = check_count("bindings", entry.binding_count, dispatch.bindings.len())
            .and_then(|()| check_count("constants", entry.constant_count, dispatch.constants.len()));
        counts.context(|| format!("dispatching {}", entry.name))?;
        meter.charge_product(&dispatch.workgroup_count.map(u64::from))?;
        let mut worker = self.take()?;
        let result = with_meter(&mut worker, meter, |worker| self.run(worker, entry, dispatch));
        self.give(worker);
        result.context(|| format!("dispatching {}", entry.name))
    }
}

/// Runs something while a worker has the caller's limits.
fn with_meter<R>(worker: &mut Worker, meter: &mut Meter, run: impl FnOnce(&mut Worker) -> R) -> R {
    /// Gives the limits back in any case, as a panic of a native function may go on to the caller's caller.
    struct Lent<'a> {
        worker: &'a mut Worker,
        meter: &'a mut Meter,
    }
    impl Drop for Lent<'_> {
        fn drop(&mut self) {
            self.worker.store.swap_meter(self.meter);
        }
    }
    worker.store.swap_meter(meter);
    let lent = Lent { worker, meter };
    run(lent.worker)
}

fn check_count(what: &str, declared: Option<usize>, found: usize) -> Result<()> {
    match declared {
        Some(wanted) if wanted != found => Err(Error::invalid(format!("{found} {what} were given, the kernel declares {wanted}"))),
        _ => Ok(()),
    }
}

/// Constants as kernels read them.
fn constant_buffer(constants: &[u32]) -> Buffer {
    let bytes: Vec<u8> = constants.iter().flat_map(|word| word.to_le_bytes()).collect();
    Buffer::new(Span::from_vector(bytes), Origin::Host)
}

/// Bytes charged to an account until this is dropped.
struct Charge {
    account: MemoryAccount,
    bytes: u64,
}

impl Charge {
    fn new(account: MemoryAccount, bytes: u64) -> Result<Self> {
        account.charge(bytes)?;
        Ok(Self { account, bytes })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.refund(self.bytes);
    }
}
