//! Worker threads of an engine: parked until there is work, and never needed to end it.
//!
//! The thread that has work to spread always takes part, and does not wait for workers that have not begun: on a busy machine
//! a worker that wakes too late finds nothing and costs nothing.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use vmfb_vm::Engine;

/// Work that several threads can take part in.
pub trait Task: Send + Sync {
    /// Takes pieces of the work until none is left. `worker` is another number on each thread, 0 on the one that called
    /// [`Workers::run`].
    fn work(&self, worker: usize);
}

/// Parked threads. They are made when they are first needed, and end when the last handle of the pool is gone.
pub struct Workers {
    shared: Arc<Shared>,
    threads: usize,
    worthwhile: Duration,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

/// Work that would take less time than this on one thread is not spread.
const WORTHWHILE: Duration = Duration::from_micros(100);

impl Workers {
    /// The pool of an engine; `None` if it is configured to have one thread.
    pub fn of(engine: &Engine) -> Option<Arc<Self>> {
        match engine.worker_threads() {
            0 | 1 => None,
            threads => Some(engine.shared(|| Self::new(threads))),
        }
    }

    /// A pool for work on so many threads, the calling one included.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new() });
        Self { shared, threads, worthwhile: WORTHWHILE, handles: Mutex::default() }
    }

    /// Changes how long work must take on one thread to be spread.
    #[must_use]
    pub fn worthwhile(mut self, time: Duration) -> Self {
        self.worthwhile = time;
        self
    }

    /// The most threads that work on one task, the calling one included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Whether work that takes this long on one thread is worth spreading.
    pub fn is_worthwhile(&self, time: Duration) -> bool {
        time >= self.worthwhile
    }

    /// Does a task on up to `concurrency` threads, the calling one included.
    ///
    /// When this returns, no thread is in [`Task::work`] of this task, none will enter it again, and none refers to it; also
    /// when a thread panics, in which case the calling one goes on with the panic after that.
    pub fn run(&self, concurrency: usize, task: Arc<dyn Task>) {
        let helpers = concurrency.min(self.threads).saturating_sub(1);
        if helpers == 0 {
            return task.work(0);
        }
        self.start();
        let state = JobState { task: Some(task.clone()), wanted: helpers, ..JobState::default() };
        let job = Arc::new(Job { state: Mutex::new(state), idle: Condvar::new() });
        lock(&self.shared.queue).jobs.push(job.clone());
        (0..helpers).for_each(|_| self.shared.wake.notify_one());
        let own = catch_unwind(AssertUnwindSafe(|| task.work(0)));
        lock(&self.shared.queue).jobs.retain(|queued| !Arc::ptr_eq(queued, &job));
        let panic = job.close();
        if let Some(panic) = own.err().or(panic) {
            resume_unwind(panic);
        }
    }

    /// Makes the threads, if that has not happened. A system that has none left gives fewer.
    fn start(&self) {
        let mut handles = lock(&self.handles);
        while handles.len() + 1 < self.threads {
            let shared = self.shared.clone();
            match std::thread::Builder::new().name("vmfb worker".to_owned()).spawn(move || shared.serve()) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    tracing::warn!(%error, "a worker thread could not be made");
                    return;
                }
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        lock(&self.shared.queue).ended = true;
        self.shared.wake.notify_all();
        for handle in std::mem::take(&mut *lock(&self.handles)) {
            // Panics were caught, and given to callers.
            let _ = handle.join();
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// What the threads share.
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Jobs that want workers, oldest first.
    jobs: Vec<Arc<Job>>,
    ended: bool,
}

/// A task that is being done.
struct Job {
    state: Mutex<JobState>,
    idle: Condvar,
}

#[derive(Default)]
struct JobState {
    /// The task, until it is done.
    task: Option<Arc<dyn Task>>,
    /// Workers that may still begin.
    wanted: usize,
    /// Workers that have begun.
    begun: usize,
    /// Workers that are at it.
    active: usize,
    /// What the first worker that panicked left.
    panic: Option<Box<dyn Any + Send>>,
}

impl Shared {
    /// The life of a worker.
    fn serve(&self) {
        let mut queue = lock(&self.queue);
        while !queue.ended {
            let begun = queue.jobs.iter().find_map(|job| Some((job.clone(), job.begin()?)));
            let Some((job, begun)) = begun else {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queue);
            job.work(begun);
            queue = lock(&self.queue);
        }
    }
}

impl Job {
    /// The task and the number of a worker that may begin; `None` if no more are wanted.
    fn begin(&self) -> Option<(Arc<dyn Task>, usize)> {
        let mut state = lock(&self.state);
        let task = state.task.clone()?;
        state.wanted = state.wanted.checked_sub(1)?;
        state.active += 1;
        state.begun += 1;
        Some((task, state.begun))
    }

    fn work(&self, (task, worker): (Arc<dyn Task>, usize)) {
        let outcome = catch_unwind(AssertUnwindSafe(|| task.work(worker)));
        // Whoever waits for the task may count on being the only one who has it.
        drop(task);
        let mut state = lock(&self.state);
        if let Err(panic) = outcome {
            state.panic.get_or_insert(panic);
        }
        state.active -= 1;
        if state.active == 0 {
            self.idle.notify_all();
        }
    }

    /// Lets nobody begin any more, and waits for those who have begun.
    fn close(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = lock(&self.state);
        state.wanted = 0;
        state.task = None;
        while state.active > 0 {
            state = self.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.panic.take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use vmfb_vm::Config;

    struct Sum {
        next: AtomicUsize,
        sum: AtomicUsize,
        workers: Mutex<Vec<usize>>,
        /// Everybody must have come before anybody goes on.
        gate: Option<Barrier>,
    }

    impl Sum {
        fn new(gate: Option<usize>) -> Arc<Self> {
            let (next, sum, workers) = Default::default();
            Arc::new(Self { next, sum, workers, gate: gate.map(Barrier::new) })
        }
    }

    impl Task for Sum {
        fn work(&self, worker: usize) {
            self.workers.lock().unwrap().push(worker);
            if let Some(gate) = &self.gate {
                gate.wait();
            }
            loop {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                if number > 1000 {
                    return;
                }
                self.sum.fetch_add(number, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn every_piece_is_done_once() {
        let pool = Workers::new(3);
        for _ in 0..200 {
            let task = Sum::new(None);
            pool.run(3, task.clone());
            assert_eq!(task.sum.load(Ordering::Relaxed), 500_500);
        }
    }

    #[test]
    fn threads_have_different_numbers() {
        let pool = Workers::new(4);
        let task = Sum::new(Some(3));
        pool.run(3, task.clone());
        let mut workers = task.workers.lock().unwrap().clone();
        workers.sort_unstable();
        assert_eq!(workers, [0, 1, 2]);
        assert_eq!(task.sum.load(Ordering::Relaxed), 500_500);
    }

    #[test]
    fn one_thread_makes_no_other() {
        let pool = Workers::new(4);
        let task = Sum::new(None);
        pool.run(1, task.clone());
        assert_eq!(*task.workers.lock().unwrap(), [0]);
        assert!(pool.handles.lock().unwrap().is_empty());
        assert!(Workers::of(&Engine::default()).is_none());
    }

    #[test]
    fn an_engine_has_one_pool() {
        let engine = Engine::new(Config::new().worker_threads(2));
        let (a, b) = (Workers::of(&engine).unwrap(), Workers::of(&engine).unwrap());
        assert!(Arc::ptr_eq(&a, &b));
        let other = Workers::of(&Engine::new(Config::new().worker_threads(2))).unwrap();
        assert!(!Arc::ptr_eq(&a, &other));
    }

    #[test]
    fn two_callers_share_the_threads() {
        let pool = Arc::new(Workers::new(2));
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let pool = pool.clone();
                std::thread::spawn(move || {
                    for _ in 0..50 {
                        let task = Sum::new(None);
                        pool.run(2, task.clone());
                        assert_eq!(task.sum.load(Ordering::Relaxed), 500_500);
                    }
                })
            })
            .collect();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    }

    struct Panics {
        on: usize,
        gate: Barrier,
    }

    impl Task for Panics {
        fn work(&self, worker: usize) {
            self.gate.wait();
            assert_ne!(worker, self.on, "expected by the test");
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let pool = Workers::new(2);
        for on in [0, 1] {
            let task = Arc::new(Panics { on, gate: Barrier::new(2) });
            assert!(catch_unwind(AssertUnwindSafe(|| pool.run(2, task))).is_err());
        }
        let task = Sum::new(Some(2));
        pool.run(2, task.clone());
        assert_eq!(task.sum.load(Ordering::Relaxed), 500_500);
    }

    #[test]
    fn the_task_belongs_to_the_caller_again() {
        let pool = Workers::new(2);
        for _ in 0..500 {
            let mut task = Sum::new(None);
            pool.run(2, task.clone());
            assert!(Arc::get_mut(&mut task).is_some());
        }
    }

    #[test]
    fn threads_end_with_the_pool() {
        let pool = Workers::new(3);
        pool.run(3, Sum::new(Some(3)));
        let shared = Arc::downgrade(&pool.shared);
        drop(pool);
        assert_eq!(shared.strong_count(), 0);
    }
}
