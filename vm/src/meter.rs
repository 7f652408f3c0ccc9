//! Limits: fuel, memory, deadline, interruption.

use crate::{CallScope, Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use vmfb_bytecode::Status;
use vmfb_memory::MemoryAccount;

/// What a computation may use. A store lends its meter to every native call and dispatch, and nested modules share it.
#[derive(Debug)]
pub struct Meter {
    fuel: u64,
    metering: FuelMetering,
    account: MemoryAccount,
    interrupt: InterruptHandle,
    deadline: Option<Instant>,
    pub(crate) scope: CallScope,
}

/// Whether fuel is counted. Chosen when an engine is made and compiled into the translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FuelMetering {
    /// Not counted: programs may run for ever.
    #[default]
    Off,
    /// One unit per instruction, and what native functions charge.
    On,
}

/// Ends a computation from another thread or a signal handler. Clones are the same handle.
#[derive(Clone, Debug, Default)]
pub struct InterruptHandle(Arc<AtomicBool>);

impl InterruptHandle {
    /// Asks the computation to end with CANCELLED at its next check.
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Forgets an earlier request.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether an end was asked for.
    pub fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(FuelMetering::Off, MemoryAccount::default())
    }
}

impl Meter {
    /// A meter without deadline; with fuel metering on, the tank is empty.
    pub fn new(metering: FuelMetering, account: MemoryAccount) -> Self {
        Self { fuel: 0, metering, account, interrupt: InterruptHandle::default(), deadline: None, scope: CallScope::default() }
    }

    /// Whether fuel is counted.
    pub fn metering(&self) -> FuelMetering {
        self.metering
    }

    /// Fuel left; `None` when fuel is not counted.
    pub fn fuel(&self) -> Option<u64> {
        (self.metering == FuelMetering::On).then_some(self.fuel)
    }

    /// Sets the fuel that is left.
    pub fn set_fuel(&mut self, units: u64) {
        self.fuel = units;
    }

    /// Sets the moment at which computations end with DEADLINE_EXCEEDED.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// The moment at which computations end.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The handle that ends computations from outside.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.interrupt.clone()
    }

    /// Where memory is charged.
    pub fn account(&self) -> &MemoryAccount {
        &self.account
    }

    /// The call that work is done for.
    pub fn scope(&self) -> &CallScope {
        &self.scope
    }

    /// Begins a call of its own, for work that a host does without a store. Returns what [`Meter::end_call`] takes.
    pub fn begin_call(&mut self) -> u64 {
        let call = self.scope.calls().begin();
        self.scope.enter(call)
    }

    /// Ends the call.
    pub fn end_call(&mut self, before: u64) {
        self.scope.calls().end();
        self.scope.leave(before);
    }

    /// Takes fuel before work is done; RESOURCE_EXHAUSTED when there is not enough. Free when fuel is not counted.
    #[inline]
    pub fn charge(&mut self, units: u64) -> Result<()> {
        if self.metering == FuelMetering::Off {
            return Ok(());
        }
        match self.fuel.checked_sub(units) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => Err(out_of_fuel()),
        }
    }

    /// Takes fuel for ops of a program; false when there is not enough.
    #[inline(always)]
    pub(crate) fn take(&mut self, units: u64) -> bool {
        let left = self.fuel.checked_sub(units);
        if self.metering == FuelMetering::On {
            self.fuel = left.unwrap_or(self.fuel);
        }
        left.is_some() || self.metering == FuelMetering::Off
    }

    /// Takes fuel for a bulk operation: one unit per 64 bytes. Polls where that is many bytes, as a
    /// program's own polls count its jumps and not the time that each round takes; what is longer than
    /// a piece polls again in between ([`crate::bulk`]).
    #[inline]
    pub fn charge_bytes(&mut self, bytes: u64) -> Result<()> {
        const MANY: u64 = 1 << 16;
        if bytes >= MANY {
            self.poll()?;
        }
        self.charge(bytes / 64)
    }

    /// Takes fuel for a product of counts; a product that does not fit in 64 bits is more than any tank holds.
    pub fn charge_product(&mut self, counts: &[u64]) -> Result<()> {
        if self.metering == FuelMetering::Off {
            return Ok(());
        }
        let units = counts.iter().try_fold(1u64, |product, count| product.checked_mul(*count));
        self.charge(units.ok_or_else(out_of_fuel)?)
    }

    /// Fails when the computation was interrupted or its deadline has passed. To be called between workgroups, at back edges
    /// and in waits.
    #[inline]
    pub fn poll(&self) -> Result<()> {
        if self.interrupt.is_interrupted() {
            return Err(Error::new(Status::Cancelled, "the computation was interrupted"));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::new(Status::DeadlineExceeded, "the time limit was reached")),
            _ => Ok(()),
        }
    }

    /// A meter for work on another thread: same account, deadline and interruption; fuel is not counted there, so work is
    /// spread only where it is not counted here either.
    pub fn for_worker(&self) -> Self {
        Self {
            fuel: 0,
            metering: FuelMetering::Off,
            account: self.account.clone(),
            interrupt: self.interrupt.clone(),
            deadline: self.deadline,
            scope: self.scope.clone(),
        }
    }

    /// A meter for work that is done later: same account, deadline and interruption, a tank of its own.
    pub fn with_tank(&self, fuel: u64) -> Self {
        Self { fuel, metering: self.metering, ..self.for_worker() }
    }
}

#[cold]
fn out_of_fuel() -> Error {
    Error::exhausted("out of fuel")
}
