//! One dispatch of a native kernel on several threads.

use super::grid::{Block, Kernel, Stop, run};
use super::native::CallingConvention;
use super::state::{DispatchState, Environment};
use crate::{Pieces, Task, Workers};
use std::marker::PhantomData;
use std::sync::Arc;
use vmfb_memory::{BASE_ALIGNMENT, MemoryAccount, Span};
use vmfb_vm::{Meter, Result};

/// Local memory for each thread. Where memory lacks, fewer threads take part: what fits on one must not fail on several.
pub(super) fn local_memory(bytes: usize, threads: usize, account: &MemoryAccount) -> Result<Vec<Option<Span>>> {
    if bytes == 0 {
        return Ok(vec![None; threads]);
    }
    let one = || Span::zeroed(bytes, BASE_ALIGNMENT, account);
    let first = one()?;
    let others = (1..threads).map_while(|_| one().ok());
    Ok(std::iter::once(first).chain(others).map(Some).collect())
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
    let task = Arc::new(Grid::<C> {
        function: kernel.function,
        environment: kernel.environment,
        state: kernel.state,
        stack_size: kernel.stack_size,
        pieces: Pieces::for_threads(workgroups, threads),
        local_memory,
        meter: meter.for_worker(),
        convention: PhantomData,
    });
    workers.run(threads, task.clone());
    task.pieces.outcome()
}

/// A grid that threads take pieces of.
struct Grid<C> {
    function: usize,
    environment: *const Environment,
    state: *const DispatchState,
    stack_size: usize,
    pieces: Pieces<Stop>,
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
        let kernel = unsafe {
            Kernel { function: self.function, environment: &*self.environment, state: &*self.state, stack_size: self.stack_size }
        };
        let (x, y) = (u64::from(kernel.state.workgroup_count_x), u64::from(kernel.state.workgroup_count_y));
        self.pieces.work(|piece| {
            // Each is less than its count, which has 32 bits.
            let start = [piece.start % x, piece.start / x % y, piece.start / x / y].map(|number| number as u32);
            let block = Block { start, workgroups: piece.end - piece.start };
            // SAFETY: the caller of `run_on_threads` vouches for the kernel.
            unsafe { run::<C>(&kernel, block, local_memory.as_ref(), &self.meter) }
        });
    }
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
