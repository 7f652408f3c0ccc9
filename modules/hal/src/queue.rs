//! Submissions: work that waits for a fence and signals one.

use crate::State;
use crate::batch::Threads;
use crate::program::{BindingTable, Pattern, Program, copy};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vmfb_hal::{Bytes, Fence, FenceStatus, HalBuffer};
use vmfb_memory::{Charge, ChargedVec, Span};
use vmfb_vm::{Error, Handle, Meter, Result, ResultExt};

/// What is done between a wait and a signal. It owns everything that it uses.
pub(crate) enum Work {
    Nothing,
    /// The last use of a buffer is over.
    Release(#[expect(dead_code, reason = "held until it is dropped")] Handle<HalBuffer>),
    Fill {
        target: Bytes,
        pattern: Pattern,
    },
    Copy {
        source: Bytes,
        target: Bytes,
    },
    Execute {
        programs: SmallVec<[Arc<Program>; 1]>,
        table: BindingTable,
    },
}

/// What deferred work did on behalf of a store, to be settled when its program next comes to the queue.
#[derive(Default)]
pub(crate) struct Tab {
    /// Set when there is something to settle.
    open: AtomicBool,
    /// Fuel that deferred work has used. Held while deferred work runs in a store that counts fuel.
    owed: Mutex<u64>,
    /// A failure that no fence could tell of.
    failure: Mutex<Option<Error>>,
}

/// What a deferred submission costs besides what it refers to.
const SUBMISSION_BYTES: u64 = 512;

impl State {
    /// Executes work when `wait` is reached, at once if it is, and then signals `signal`. A failure goes to the signal fence.
    pub(crate) fn submit(&self, meter: &mut Meter, wait: Option<&Fence>, signal: Option<&Fence>, work: Work) -> Result<()> {
        self.settle(meter)?;
        let outcome = match wait.map_or(FenceStatus::Reached, Fence::status) {
            FenceStatus::Reached => {
                let mut unsignalled = Unsignalled(signal.cloned());
                let outcome = work.run(&self.device.threads, meter);
                unsignalled.0 = None;
                drop(work);
                outcome
            }
            FenceStatus::Failed(error) => Err(waited_in_vain(error)),
            FenceStatus::Pending => return self.defer(meter, wait, signal, work),
        };
        match (signal, outcome) {
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

    fn defer(&self, meter: &mut Meter, wait: Option<&Fence>, signal: Option<&Fence>, work: Work) -> Result<()> {
        let Some(wait) = wait else { return Err(Error::internal("work without a wait cannot be pending")) };
        let charge = meter.account().hold(SUBMISSION_BYTES.saturating_add(work.table_bytes()))?;
        if let Some(signal) = signal {
            signal.follow(wait, meter)?;
        }
        let deferred = Deferred {
            _held: work.hold(meter)?,
            work,
            signal: Unsignalled(signal.cloned()),
            tab: self.tab.clone(),
            threads: self.device.threads.clone(),
            meter: meter.with_tank(meter.fuel().unwrap_or(0)),
            _charge: charge,
        };
        wait.on_ready_in(move |result| deferred.resolve(result), meter)
    }

    /// Charges what deferred work has used, and fails as it has failed.
    pub(crate) fn settle(&self, meter: &mut Meter) -> Result<()> {
        if !self.tab.open.load(Ordering::Acquire) {
            return Ok(());
        }
        self.tab.open.store(false, Ordering::Release);
        let owed = std::mem::take(&mut *lock(&self.tab.owed));
        let failure = lock(&self.tab.failure).take();
        if meter.fuel().is_some_and(|fuel| fuel < owed) {
            meter.set_fuel(0);
        }
        meter.charge(owed)?;
        failure.map_or(Ok(()), |error| Err(error.context("in work that was queued before")))
    }
}

impl Work {
    /// What a binding table takes outside of the submission.
    fn table_bytes(&self) -> u64 {
        match self {
            Self::Execute { programs, table } => {
                let programs = programs.capacity().saturating_mul(size_of::<Arc<Program>>());
                table.capacity().saturating_mul(size_of::<Option<Bytes>>()).saturating_add(programs) as u64
            }
            _ => 0,
        }
    }

    fn run(&self, threads: &Threads, meter: &mut Meter) -> Result<()> {
        match self {
            Self::Nothing | Self::Release(_) => Ok(()),
            Self::Fill { target, pattern } => pattern.fill(target, meter).context(|| "filling a buffer".into()),
            Self::Copy { source, target } => copy(source, target, meter).context(|| "copying between buffers".into()),
            Self::Execute { programs, table } => programs.iter().try_for_each(|program| program.run(table, threads, meter)),
        }
    }
}

impl Work {
    fn hold(&self, meter: &mut Meter) -> Result<ChargedVec<Span>> {
        let mut held = ChargedVec::new(meter.account())?;
        match self {
            Self::Nothing | Self::Release(_) => {}
            Self::Fill { target, .. } => held.extend(target.hold(meter)?)?,
            Self::Copy { source, target } => held.extend([source.hold(meter)?, target.hold(meter)?].into_iter().flatten())?,
            Self::Execute { programs, table } => programs.iter().try_for_each(|program| program.hold(table, meter, &mut held))?,
        }
        Ok(held)
    }
}

/// A submission that waits.
struct Deferred {
    work: Work,
    /// What the call sees of constants.
    _held: ChargedVec<Span>,
    signal: Unsignalled,
    tab: Arc<Tab>,
    threads: Threads,
    meter: Meter,
    _charge: Charge,
}

impl Deferred {
    /// Called when the wait is over.
    fn resolve(mut self, waited: Result<()>) {
        let outcome = match waited {
            Ok(()) => self.run(),
            Err(error) => Err(waited_in_vain(error)),
        };
        // Memory is returned before anybody who waits goes on.
        self.work = Work::Nothing;
        match (self.signal.0.take(), outcome) {
            (Some(signal), Ok(())) => signal.signal(),
            (Some(signal), Err(error)) => signal.fail(error),
            (None, Ok(())) => {}
            (None, Err(error)) => {
                tracing::warn!(%error, "queued work failed");
                lock(&self.tab.failure).get_or_insert(error);
                self.tab.open.store(true, Ordering::Release);
            }
        }
    }

    /// Work may use as much fuel as the store had when it was submitted, less what other deferred work has used since.
    fn run(&mut self) -> Result<()> {
        let Some(fuel) = self.meter.fuel() else { return self.work.run(&self.threads, &mut self.meter) };
        let mut owed = lock(&self.tab.owed);
        let tank = fuel.saturating_sub(*owed);
        self.meter.set_fuel(tank);
        let outcome = self.work.run(&self.threads, &mut self.meter);
        let used = tank.saturating_sub(self.meter.fuel().unwrap_or(0));
        *owed = owed.saturating_add(used);
        self.tab.open.store(true, Ordering::Release);
        outcome
    }
}

/// The fence of work that is not done. If a kernel panics, nobody else is left to tell.
struct Unsignalled(Option<Fence>);

impl Drop for Unsignalled {
    fn drop(&mut self) {
        if let Some(signal) = self.0.take() {
            signal.fail(Error::internal("queued work was given up, or ended in a panic"));
        }
    }
}

#[cold]
fn waited_in_vain(error: Error) -> Error {
    const REASON: &str = "work was queued behind a fence that failed";
    // Once for a chain of fences of any length.
    if error.context_chain().last() == Some(REASON) { error } else { error.context(REASON) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
