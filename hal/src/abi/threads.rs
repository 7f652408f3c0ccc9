//! One dispatch of a native kernel on several threads.

use super::grid::{Block, Kernel, Stop, run};
use super::native::CallingConvention;
use super::state::{DispatchState, Environment};
use crate::{Task, Workers};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use vmfb_memory::{BASE_ALIGNMENT, MemoryAccount, Span};
use vmfb_vm::{Meter, Result};

/// Threads take this many pieces each, if there are so many workgroups: enough to even out, few enough to cost nothing.
const PIECES_PER_THREAD: u64 = 8;

/// How long one workgroup of an export takes, learned from dispatches on one thread.
#[derive(Debug, Default)]
pub(super) struct Pace(AtomicU64);

impl Pace {
    /// The time of a dispatch on one thread; zero if there was none yet.
    pub(super) fn estimate(&self, workgroups: u64) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed).saturating_mul(workgroups))
    }

    /// Learns from a dispatch on one thread. Old measurements count for three quarters.
    pub(super) fn learn(&self, start: Instant, workgroups: u64) {
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let new = (nanoseconds / workgroups.max(1)).max(1);
        let old = self.0.load(Ordering::Relaxed);
        let mean = if old == 0 { new } else { (old / 4).saturating_mul(3).saturating_add(new / 4).max(1) };
        self.0.store(mean, Ordering::Relaxed);
    }
}

/// Number of workgroups; `None` if it has more than 63 bits.
pub(super) fn workgroups(count: [u32; 3]) -> Option<u64> {
    let product = count.iter().try_fold(1u64, |product, count| product.checked_mul(u64::from(*count)))?;
    (product < 1 << 63).then_some(product)
}

/// Local memory for each thread.
pub(super) fn local_memory(bytes: usize, threads: usize, account: &MemoryAccount) -> Result<Vec<Option<Span>>> {
    let one = || match bytes {
        0 => Ok(None),
        bytes => Span::zeroed(bytes, BASE_ALIGNMENT, account).map(Some),
    };
    Ok((0..threads).map(|_| one()).collect::<std::result::Result<_, _>>()?)
}

/// Runs a grid on the threads of a pool. `local_memory` has an entry for each thread that may take part.
///
/// # Safety
/// As for [`run`], on any thread, until this returns.
pub(super) unsafe fn run_on_threads<C: CallingConvention>(
    kernel: &Kernel<'_>,
    workgroups: u64,
    local_memory: Vec<Option<Span>>,
    meter: &Meter,
    workers: &Workers,
) -> Result<(), Stop> {
    let threads = local_memory.len();
    let pieces = (threads as u64).saturating_mul(PIECES_PER_THREAD).max(1);
    let task = Arc::new(Grid::<C> {
        function: kernel.function,
        environment: kernel.environment,
        state: kernel.state,
        workgroups,
        piece: workgroups.div_ceil(pieces).max(1),
        next: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        stop: Mutex::default(),
        local_memory,
        meter: meter.for_worker(),
        convention: PhantomData,
    });
    workers.run(threads, task.clone());
    let stop = task.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
    stop.map_or(Ok(()), |(_, stop)| Err(stop))
}

/// A grid that threads take pieces of.
struct Grid<C> {
    function: usize,
    environment: *const Environment,
    state: *const DispatchState,
    workgroups: u64,
    /// Workgroups that a thread takes at once.
    piece: u64,
    /// The first workgroup that nobody has taken.
    next: AtomicU64,
    stopped: AtomicBool,
    /// The failure with the lowest piece.
    stop: Mutex<Option<(u64, Stop)>>,
    local_memory: Vec<Option<Span>>,
    meter: Meter,
    convention: PhantomData<fn() -> C>,
}

// SAFETY: the pointers are read by `work` alone, while `run_on_threads` has not returned: then they are alive, and what they
// point at is not changed.
unsafe impl<C> Send for Grid<C> {}
// SAFETY: as above; everything else is `Sync` itself.
unsafe impl<C> Sync for Grid<C> {}

impl<C: CallingConvention> Task for Grid<C> {
    fn work(&self, worker: usize) {
        let Some(local_memory) = self.local_memory.get(worker) else { return };
        // SAFETY: `Workers::run` lets nobody enter this function or stay in it when it returns, and `run_on_threads`, which
        // calls it, has both for that long.
        let kernel = unsafe { Kernel { function: self.function, environment: &*self.environment, state: &*self.state } };
        let (x, y) = (u64::from(kernel.state.workgroup_count_x), u64::from(kernel.state.workgroup_count_y));
        while !self.stopped.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(self.piece, Ordering::Relaxed);
            if first >= self.workgroups {
                return;
            }
            // Each is less than its count, which has 32 bits.
            let start = [first % x, first / x % y, first / x / y].map(|number| number as u32);
            let block = Block { start, workgroups: self.piece };
            // SAFETY: the caller of `run_on_threads` vouches for the kernel.
            let outcome = unsafe { run::<C>(&kernel, block, local_memory.as_ref(), &self.meter) };
            if let Err(stop) = outcome {
                self.stopped.store(true, Ordering::Relaxed);
                let mut lowest = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
                if lowest.as_ref().is_none_or(|(other, _)| first < *other) {
                    *lowest = Some((first, stop));
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
