//! Commands between two barriers: they are independent, and run side by side on the engine's threads where that is worthwhile.

use crate::executable::Kernels;
use crate::program::{BindingTable, Command, Program, RecordedDispatch, Workgroups};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vmfb_hal::{Pieces, Task, Workers, workgroups};
use vmfb_vm::{Engine, Error, Meter, Result};

/// Threads that queued commands may use.
#[derive(Clone)]
pub(crate) struct Threads(Option<Arc<Workers>>);

impl Threads {
    /// Those of an engine.
    pub(crate) fn of(engine: &Engine) -> Self {
        Self(Workers::of(engine))
    }

    /// Threads that may work on one grid, the calling one included.
    pub(crate) fn count(&self) -> usize {
        self.0.as_ref().map_or(1, |workers| workers.threads())
    }

    /// The pool for independent commands. Fuel is counted on the calling thread alone.
    fn for_commands(&self, meter: &Meter) -> Option<&Workers> {
        self.0.as_deref().filter(|_| meter.fuel().is_none())
    }
}

impl Program {
    /// Executes all commands. Where one fails, those behind the next barrier do not run; of several failures between two
    /// barriers, that of the first command counts.
    pub(crate) fn run(self: &Arc<Self>, table: &BindingTable, threads: &Threads, meter: &mut Meter) -> Result<()> {
        let mut batch = self.batch(0);
        while !batch.is_empty() {
            let next = batch.end;
            match threads.for_commands(meter).filter(|_| batch.len() > 1) {
                None => batch.clone().try_for_each(|index| self.run_command(index, table, threads, meter))?,
                Some(workers) if workers.is_worthwhile(self.estimate(batch.clone())) => {
                    let batch = Batch { program: self.clone(), first: batch.start, length: batch.len() };
                    batch.run_side_by_side(table, threads, meter, workers)?;
                }
                Some(_) => batch.clone().try_for_each(|index| self.run_measured(index, table, threads, meter))?,
            }
            batch = self.batch(next);
        }
        Ok(())
    }

    /// The commands from here to the next barrier, without barriers in front of them. Nested command buffers have barriers of
    /// their own, so each stands alone.
    fn batch(&self, from: usize) -> Range<usize> {
        let is_barrier = |index: &usize| matches!(self.commands.get(*index), Some(Command::Barrier));
        let is_nested = |index: &usize| matches!(self.commands.get(*index), Some(Command::Nested(_)));
        let end = self.commands.len();
        let first = (from..end).find(|index| !is_barrier(index)).unwrap_or(end);
        let last = if is_nested(&first) { first + 1 } else { (first..end).find(|i| is_barrier(i) || is_nested(i)).unwrap_or(end) };
        first..last
    }

    /// How long commands take one after the other, as far as that is known.
    fn estimate(&self, batch: Range<usize>) -> Duration {
        let commands = self.commands.get(batch).unwrap_or_default();
        commands.iter().filter_map(known_size).fold(Duration::ZERO, |sum, (dispatch, workgroups)| {
            let pace = dispatch.kernels.pace(dispatch.export);
            sum.saturating_add(pace.map_or(Duration::ZERO, |pace| pace.estimate(workgroups)))
        })
    }

    /// Runs a command and learns how long it takes.
    fn run_measured(self: &Arc<Self>, index: usize, table: &BindingTable, threads: &Threads, meter: &mut Meter) -> Result<()> {
        let sized = self.commands.get(index).and_then(known_size);
        let Some((pace, workgroups)) = sized.and_then(|(dispatch, count)| Some((dispatch.kernels.pace(dispatch.export)?, count))) else {
            return self.run_command(index, table, threads, meter);
        };
        let start = Instant::now();
        let outcome = self.run_command(index, table, threads, meter);
        pace.learn(start, workgroups);
        outcome
    }
}

/// A dispatch whose grid is known before it is executed, and its workgroups.
fn known_size(command: &Command) -> Option<(&RecordedDispatch, u64)> {
    let Command::Dispatch(dispatch) = command else { return None };
    let Workgroups::Count(count) = dispatch.workgroups else { return None };
    Some((dispatch, workgroups(count)?))
}

impl Kernels {
    fn pace(&self, export: usize) -> Option<&vmfb_hal::Pace> {
        self.paces.get(export)
    }
}

/// Commands without a barrier between them.
struct Batch {
    program: Arc<Program>,
    first: usize,
    length: usize,
}

impl Batch {
    fn run_side_by_side(self, table: &BindingTable, threads: &Threads, meter: &Meter, workers: &Workers) -> Result<()> {
        let (concurrency, pieces) = (workers.threads().min(self.length), Pieces::one_by_one(self.length as u64));
        let (table, threads, meter) = (table.clone(), threads.clone(), meter.for_worker());
        let task = Arc::new(BatchTask { batch: self, table, threads, meter, pieces });
        workers.run(concurrency, task.clone());
        task.pieces.outcome()
    }
}

/// A batch that threads take commands of.
struct BatchTask {
    batch: Batch,
    table: BindingTable,
    threads: Threads,
    meter: Meter,
    pieces: Pieces<Error>,
}

impl Task for BatchTask {
    fn work(&self, _worker: usize) {
        let Batch { program, first, .. } = &self.batch;
        let mut meter = self.meter.for_worker();
        self.pieces.work(|piece| {
            // There are no more pieces than commands.
            let index = first.saturating_add(piece.start as usize);
            program.run_measured(index, &self.table, &self.threads, &mut meter)
        });
    }
}
