//! `!hal.fence`: a moment that work reaches and other work waits for.

use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use vmfb_bytecode::calling_convention::Kind;
use vmfb_memory::{Charge, MemoryAccount};
use vmfb_vm::{Error, HostType, Ref, RefObject, Result, Status, Value};

/// A moment that is reached once, or that fails. Clones are the same fence, on any thread.
///
/// Programs that were compiled with fences in their signatures take one to wait for and one to signal:
///
/// ```
/// use vmfb_hal::{Fence, FenceStatus};
///
/// let fence = Fence::new();
/// let signaller = fence.clone();
/// std::thread::spawn(move || signaller.signal());
/// assert!(matches!(fence.wait(None), FenceStatus::Reached));
/// ```
#[derive(Clone)]
pub struct Fence {
    /// All must be reached. Most fences have one; joining adds up.
    points: SmallVec<[Arc<Point>; 1]>,
    /// Pays for the points of a program's fence.
    _charge: Option<Arc<Charge>>,
}

impl RefObject for Fence {
    const TYPE_NAME: &'static str = "hal.fence";
}

/// How a fence stands.
#[derive(Debug)]
pub enum FenceStatus {
    /// Neither reached nor failed.
    Pending,
    /// Reached.
    Reached,
    /// It will never be reached, and why.
    Failed(Error),
}

/// Waiting for several points looks at all of them at this interval, so that an early failure is noticed.
const LOOK_AROUND: Duration = Duration::from_millis(5);

impl Fence {
    /// A fence that is not reached yet.
    pub fn new() -> Self {
        Self { points: SmallVec::from_buf([Arc::new(Point::default())]), _charge: None }
    }

    /// A fence that is not reached yet, of a program that is charged for it.
    pub fn new_in(account: &MemoryAccount) -> Result<Self> {
        let charge = account.hold(size_of::<Point>() as u64 + POINT_BYTES)?;
        Ok(Self { _charge: Some(Arc::new(charge)), ..Self::new() })
    }

    /// A fence that is reached when all of `fences` are, and fails when one does; `None` if there are none. The memory that it
    /// takes is charged to the account.
    pub fn join<'a>(fences: impl IntoIterator<Item = &'a Fence>, account: &MemoryAccount) -> Result<Option<Self>> {
        let mut points: SmallVec<[Arc<Point>; 1]> = SmallVec::new();
        let mut seen = HashSet::new();
        for point in fences.into_iter().flat_map(|fence| &fence.points) {
            if seen.insert(Arc::as_ptr(point)) {
                points.push(point.clone());
            }
        }
        // What was reached need not be looked at again, but a fence has at least one point.
        if let Some(pending) = points.iter().position(|point| point.stage() != REACHED) {
            points.swap(0, pending);
            let mut first = true;
            points.retain(|point| std::mem::take(&mut first) || point.stage() != REACHED);
        } else {
            points.truncate(1);
        }
        if points.is_empty() {
            return Ok(None);
        }
        let charge = account.hold((points.len() as u64).saturating_mul(POINT_BYTES))?;
        Ok(Some(Self { points, _charge: Some(Arc::new(charge)) }))
    }

    /// Reaches the fence. What waits for it goes on, queued work of programs on the calling thread. Has no effect on a fence
    /// that was reached or failed before.
    pub fn signal(&self) {
        self.points.iter().for_each(|point| point.resolve(None));
    }

    /// Fails the fence: whoever waits for it fails with this error. Has no effect on a fence that was reached or failed before.
    pub fn fail(&self, error: Error) {
        let error = Arc::new(error);
        self.points.iter().for_each(|point| point.resolve(Some(error.clone())));
    }

    /// How the fence stands.
    pub fn status(&self) -> FenceStatus {
        let mut status = FenceStatus::Reached;
        for point in &self.points {
            match point.stage() {
                REACHED => {}
                PENDING => status = FenceStatus::Pending,
                _ => return FenceStatus::Failed(point.failure()),
            }
        }
        status
    }

    /// Blocks until the fence is reached or fails, or until the deadline: then the status is [`FenceStatus::Pending`].
    pub fn wait(&self, deadline: Option<Instant>) -> FenceStatus {
        loop {
            let status = self.status();
            let mut pending = self.points.iter().filter(|point| point.stage() == PENDING);
            let (FenceStatus::Pending, Some(first)) = (&status, pending.next()) else { return self.status() };
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return status;
            }
            if pending.next().is_none() {
                first.wait(deadline);
            } else {
                let look = now + LOOK_AROUND;
                first.wait(Some(deadline.map_or(look, |deadline| deadline.min(look))));
            }
        }
    }

    /// Calls `body` once: when the fence is reached or fails, on the thread that signals it, or at once if that has happened.
    /// A fence that is dropped everywhere before counts as failed with ABORTED.
    pub fn on_ready(&self, body: impl FnOnce(Result<()>) + Send + 'static) {
        if let [point] = &self.points[..] {
            return point.subscribe(Box::new(body));
        }
        let joint = Arc::new(Joint { left: AtomicUsize::new(self.points.len()), body: Mutex::new(Some(Box::new(body))) });
        for point in &self.points {
            let joint = joint.clone();
            point.subscribe(Box::new(move |result| joint.arrive(result)));
        }
    }

    /// States that this fence will be signalled only after `other`. Fails if `other` waits for this fence in the same way, as
    /// then neither can ever be reached.
    pub fn follow(&self, other: &Fence) -> Result<()> {
        if self.points.iter().any(|point| point.is_awaited()) || self.shares_a_point(other) {
            let mut pending: Vec<Arc<Point>> = other.points.to_vec();
            let mut seen = HashSet::new();
            while let Some(point) = pending.pop() {
                if self.points.iter().any(|own| Arc::ptr_eq(own, &point)) && point.stage() == PENDING {
                    return Err(Error::invalid("the work would signal a fence that it waits for itself"));
                }
                if seen.insert(Arc::as_ptr(&point)) {
                    pending.extend(point.lock().follows.iter().filter_map(Weak::upgrade));
                }
            }
        }
        for point in self.points.iter().filter(|point| point.stage() == PENDING) {
            point.lock().follows.extend(other.points.iter().map(Arc::downgrade));
        }
        Ok(())
    }

    fn shares_a_point(&self, other: &Fence) -> bool {
        self.points.iter().any(|own| other.points.iter().any(|point| Arc::ptr_eq(own, point)))
    }
}

impl HostType for Fence {
    const KIND: Kind = Kind::Ref;

    fn into_value(self) -> Value {
        Value::Ref(Ref::new(self))
    }

    fn from_value(value: Value) -> Result<Self> {
        Ref::from_value(value)?.object::<Self>("the value").cloned()
    }
}

impl Default for Fence {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fence").field(&self.status()).finish()
    }
}

/// The same error once more: whoever waits for a fence gets one of its own.
pub fn repeat_error(error: &Error) -> Error {
    let mut again = Error::new(error.status(), error.message());
    for text in error.context_chain() {
        again = again.context(text);
    }
    error.frames().iter().fold(again, |error, frame| error.frame(frame.clone()))
}

type Body = Box<dyn FnOnce(Result<()>) + Send>;

const PENDING: u8 = 0;
const REACHED: u8 = 1;
const FAILED: u8 = 2;

/// What one more point of a joined fence costs, with what waits for it.
const POINT_BYTES: u64 = 64;

/// One moment.
#[derive(Default)]
struct Point {
    /// Written under the lock.
    stage: AtomicU8,
    inner: Mutex<PointInner>,
    changed: Condvar,
}

#[derive(Default)]
struct PointInner {
    failure: Option<Arc<Error>>,
    waiting: Vec<Body>,
    /// Threads that are blocked here: waking nobody costs a system call too.
    sleepers: usize,
    /// Points that come before this one.
    follows: Vec<Weak<Point>>,
}

/// Several points of which all must be reached.
struct Joint {
    left: AtomicUsize,
    body: Mutex<Option<Body>>,
}

impl Joint {
    fn arrive(&self, result: Result<()>) {
        let last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        if result.is_err() || last {
            let body = self.body.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(body) = body {
                body(result);
            }
        }
    }
}

impl Point {
    fn stage(&self) -> u8 {
        self.stage.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, PointInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> Error {
        match &self.lock().failure {
            Some(error) => repeat_error(error),
            None => Error::internal("a fence failed without a reason"),
        }
    }

    fn is_awaited(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    fn resolve(&self, failure: Option<Arc<Error>>) {
        let (waiting, sleepers) = {
            let mut inner = self.lock();
            if self.stage() != PENDING {
                return;
            }
            inner.follows = Vec::new();
            inner.failure = failure.clone();
            self.stage.store(if failure.is_some() { FAILED } else { REACHED }, Ordering::Release);
            (std::mem::take(&mut inner.waiting), inner.sleepers)
        };
        if sleepers > 0 {
            self.changed.notify_all();
        }
        if !waiting.is_empty() {
            call_all(waiting.into_iter().map(|body| (body, failure.clone())));
        }
    }

    fn subscribe(&self, body: Body) {
        let failure = {
            let mut inner = self.lock();
            if self.stage() == PENDING {
                inner.waiting.push(body);
                return;
            }
            inner.failure.clone()
        };
        call_all([(body, failure)]);
    }

    fn wait(&self, deadline: Option<Instant>) {
        let mut inner = self.lock();
        inner.sleepers += 1;
        while self.stage() == PENDING {
            let Some(deadline) = deadline else {
                inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else { break };
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        inner.sleepers -= 1;
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        let waiting = std::mem::take(&mut self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).waiting);
        if !waiting.is_empty() {
            let error = Arc::new(Error::new(Status::Aborted, "a fence was dropped before it was signalled"));
            call_all(waiting.into_iter().map(|body| (body, Some(error.clone()))));
        }
    }
}

type Due = (Body, Option<Arc<Error>>);

thread_local! {
    /// Bodies that are due on this thread, while one of them runs.
    static DUE: RefCell<Option<VecDeque<Due>>> = const { RefCell::new(None) };
}

/// Calls bodies. One that resolves another fence does not call what waits for that, but leaves it to the loop here: chains of
/// fences may be of any length.
fn call_all(bodies: impl IntoIterator<Item = Due>) {
    let outermost = DUE.with_borrow_mut(|due| match due {
        Some(due) => {
            due.extend(bodies);
            false
        }
        None => {
            *due = Some(bodies.into_iter().collect());
            true
        }
    });
    if !outermost {
        return;
    }
    let _reset = ResetOnDrop;
    while let Some((body, failure)) = DUE.with_borrow_mut(|due| due.as_mut().and_then(VecDeque::pop_front)) {
        body(match failure {
            Some(error) => Err(repeat_error(&error)),
            None => Ok(()),
        });
    }
}

/// Ends the loop of [`call_all`], also when a body panics: then what is due is dropped uncalled.
struct ResetOnDrop;

impl Drop for ResetOnDrop {
    fn drop(&mut self) {
        // Dropping bodies may resolve fences, so the cell must not be borrowed meanwhile, and must look empty.
        let due = DUE.with_borrow_mut(Option::take);
        drop(due);
    }
}

#[cfg(test)]
#[path = "fence_tests.rs"]
mod tests;
