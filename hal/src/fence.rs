//! `!hal.fence`: a moment that work reaches and other work waits for.

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::slice;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use vmfb_bytecode::calling_convention::Kind;
use vmfb_memory::{Charge, MemoryAccount};
use vmfb_vm::{Error, HostType, Meter, Ref, RefObject, Result, Status, Value};

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
    points: Points,
}

/// The points of a fence, all of which must be reached. Cloning never copies them.
#[derive(Clone)]
enum Points {
    One(Arc<Point>),
    Many(Arc<Joined>),
}

/// The points of a joined fence.
struct Joined {
    points: Vec<Arc<Point>>,
    _charge: Charge,
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
        Self { points: Points::One(Arc::new(Point::default())) }
    }

    /// A fence that is not reached yet, of a program that is charged for it.
    pub fn new_in(account: &MemoryAccount) -> Result<Self> {
        let charge = account.hold(POINT_BYTES)?;
        let mut point = Point::default();
        point.charge = Some(charge);
        Ok(Self { points: Points::One(Arc::new(point)) })
    }

    /// A fence that is reached when all of `fences` are, and fails when one does; `None` if there are none. Memory is charged
    /// to the account, one unit of fuel for each point.
    pub fn join<'a>(fences: impl IntoIterator<Item = &'a Fence>, meter: &mut Meter) -> Result<Option<Self>> {
        // What was reached need not be looked at again, but a fence has at least one point.
        let mut reached = None;
        let mut charge = meter.account().hold(JOINED_BYTES)?;
        let mut points: Vec<Arc<Point>> = Vec::new();
        let mut seen = HashSet::new();
        for fence in fences {
            meter.charge(fence.points().len() as u64)?;
            for part in fence.points().chunks(CHUNK) {
                meter.poll()?;
                charge.grow((part.len() as u64).saturating_mul(JOINED_POINT_BYTES))?;
                points.try_reserve(part.len()).map_err(no_memory)?;
                seen.try_reserve(part.len()).map_err(no_memory)?;
                for point in part {
                    if point.stage() == REACHED {
                        reached = Some(point);
                    } else if seen.insert(Arc::as_ptr(point)) {
                        points.push(point.clone());
                    }
                }
            }
        }
        let points = match (points.pop(), reached) {
            (None, None) => return Ok(None),
            (Some(point), _) if points.is_empty() => Points::One(point),
            (Some(point), _) => {
                points.push(point);
                Points::Many(Arc::new(Joined { points, _charge: charge }))
            }
            (None, Some(point)) => Points::One(point.clone()),
        };
        Ok(Some(Self { points }))
    }

    /// Number of moments that must be reached; for a joined fence several.
    pub fn point_count(&self) -> usize {
        self.points().len()
    }

    fn points(&self) -> &[Arc<Point>] {
        match &self.points {
            Points::One(point) => slice::from_ref(point),
            Points::Many(joined) => &joined.points,
        }
    }

    /// Reaches the fence. What waits for it goes on, queued work of programs on the calling thread. Has no effect on a fence
    /// that was reached or failed before.
    pub fn signal(&self) {
        self.points().iter().for_each(|point| point.resolve(None));
    }

    /// Fails the fence: whoever waits for it fails with this error. Has no effect on a fence that was reached or failed before.
    pub fn fail(&self, error: Error) {
        let failure = Arc::new(Failure::new(error, self.points().first().and_then(|point| point.account())));
        self.points().iter().for_each(|point| point.resolve(Some(failure.clone())));
    }

    /// How the fence stands.
    pub fn status(&self) -> FenceStatus {
        let mut status = FenceStatus::Reached;
        for point in self.points() {
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
            let mut pending = self.points().iter().filter(|point| point.stage() == PENDING);
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
        self.subscribe(Box::new(body), None);
    }

    /// As [`Fence::on_ready`], for a program that is charged for what waits.
    pub fn on_ready_in(&self, body: impl FnOnce(Result<()>) + Send + 'static, meter: &mut Meter) -> Result<()> {
        let count = self.points().len() as u64;
        meter.charge(count)?;
        meter.poll()?;
        let charge = meter.account().hold(count.saturating_mul(WAITER_BYTES))?;
        self.points().iter().try_for_each(|point| point.lock().waiting.try_reserve(1)).map_err(no_memory)?;
        self.subscribe(Box::new(body), Some(charge));
        Ok(())
    }

    fn subscribe(&self, body: Body, charge: Option<Charge>) {
        let points = self.points();
        let waiter = Arc::new(Waiter { left: AtomicUsize::new(points.len()), body: Mutex::new(Some(body)), _charge: charge });
        for point in points {
            point.subscribe(waiter.clone());
        }
    }

    /// States that this fence will be signalled only after `other`. Fails if `other` waits for this fence in the same way, as
    /// then neither can ever be reached. Costs memory and fuel for every point that is looked at.
    pub fn follow(&self, other: &Fence, meter: &mut Meter) -> Result<()> {
        let own: HashSet<_> = pending_points(self, meter)?;
        if self.is_awaited() || other.points().iter().any(|point| own.contains(&Arc::as_ptr(point))) {
            check_circle(&own, other, meter)?;
        }
        let (own, others) = (own.len() as u64, other.points().len() as u64);
        meter.charge(own.saturating_add(others))?;
        let bytes = others.saturating_mul(FOLLOWED_BYTES).saturating_add(own.saturating_mul(FOLLOWER_BYTES));
        let charge = meter.account().hold(bytes)?;
        let mut points = Vec::new();
        points.try_reserve_exact(other.points().len()).map_err(no_memory)?;
        points.extend(other.points().iter().map(Arc::downgrade));
        let group = Arc::new(Group { points, _charge: charge });
        for part in self.points().chunks(CHUNK) {
            meter.poll()?;
            for point in part.iter().filter(|point| point.stage() == PENDING) {
                let mut inner = point.lock();
                inner.follows.try_reserve(1).map_err(no_memory)?;
                inner.follows.push(group.clone());
            }
        }
        Ok(())
    }

    fn is_awaited(&self) -> bool {
        self.points().iter().any(|point| point.is_awaited())
    }
}

/// The points of a fence that are pending. The set takes less memory than the fence is charged for.
fn pending_points(fence: &Fence, meter: &mut Meter) -> Result<HashSet<*const Point>> {
    let mut set = HashSet::new();
    for part in fence.points().chunks(CHUNK) {
        meter.poll()?;
        set.try_reserve(part.len()).map_err(no_memory)?;
        set.extend(part.iter().filter(|point| point.stage() == PENDING).map(Arc::as_ptr));
    }
    Ok(set)
}

/// Fails if one of the points comes before the fence. Every point and every group is visited once.
fn check_circle(own: &HashSet<*const Point>, fence: &Fence, meter: &mut Meter) -> Result<()> {
    let circle = || Error::invalid("the work would signal a fence that it waits for itself");
    let mut charge = meter.account().hold(0)?;
    let mut visit = |points: &mut dyn Iterator<Item = Arc<Point>>, seen: &mut HashSet<_>, pending: &mut Vec<_>| -> Result<()> {
        for point in points {
            if own.contains(&Arc::as_ptr(&point)) && point.stage() == PENDING {
                return Err(circle());
            }
            meter.charge(1)?;
            if seen.contains(&Arc::as_ptr(&point)) {
                continue;
            }
            charge.grow(VISITED_BYTES)?;
            seen.try_reserve(1).map_err(no_memory)?;
            pending.try_reserve(1).map_err(no_memory)?;
            seen.insert(Arc::as_ptr(&point));
            pending.push(point);
            if pending.len().is_multiple_of(CHUNK) {
                meter.poll()?;
            }
        }
        meter.poll()
    };
    let (mut pending, mut seen, mut groups) = (Vec::new(), HashSet::new(), HashSet::new());
    visit(&mut fence.points().iter().cloned(), &mut seen, &mut pending)?;
    while let Some(point) = pending.pop() {
        let count = point.lock().follows.len();
        for index in 0..count {
            let Some(group) = point.lock().follows.get(index).cloned() else { break };
            groups.try_reserve(1).map_err(no_memory)?;
            if groups.insert(Arc::as_ptr(&group)) {
                visit(&mut group.points.iter().filter_map(Weak::upgrade), &mut seen, &mut pending)?;
            }
        }
    }
    Ok(())
}

#[cold]
fn no_memory(_: std::collections::TryReserveError) -> Error {
    Error::exhausted("no memory for fences")
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

/// Points between two looks at the limits.
const CHUNK: usize = 1024;

/// What a point costs, with its allocation and the object that refers to it.
const POINT_BYTES: u64 = 256;

/// What a joined fence costs beside its points.
const JOINED_BYTES: u64 = 128;

/// What one more point of a joined fence costs: its place, and what sets of points take while they are used.
const JOINED_POINT_BYTES: u64 = 64;

/// What waiting costs for each point: its place in the point's list, which grows by doubling.
const WAITER_BYTES: u64 = 64;

/// What a point costs in a group: its place, and the allocation of a point that is dropped meanwhile.
const FOLLOWED_BYTES: u64 = size_of::<Weak<Point>>() as u64 + size_of::<Point>() as u64 + 32;

/// What a point costs that follows a group.
const FOLLOWER_BYTES: u64 = 64;

/// What the search for circles takes for each point.
const VISITED_BYTES: u64 = 64;

/// One moment.
#[derive(Default)]
struct Point {
    /// Written under the lock.
    stage: AtomicU8,
    inner: Mutex<PointInner>,
    changed: Condvar,
    /// Pays for the point of a program's fence.
    charge: Option<Charge>,
}

#[derive(Default)]
struct PointInner {
    failure: Option<Arc<Failure>>,
    waiting: Vec<Arc<Waiter>>,
    /// Threads that are blocked here: waking nobody costs a system call too.
    sleepers: usize,
    /// Points that come before this one.
    follows: Vec<Arc<Group>>,
}

/// Points that come before others. It is made once for all that follow.
struct Group {
    points: Vec<Weak<Point>>,
    _charge: Charge,
}

/// Why a fence failed, and what pays for the text.
struct Failure {
    error: Error,
    _charge: Option<Charge>,
}

impl Failure {
    /// Where the limit leaves no room for the error, its status is kept and its texts are not.
    fn new(error: Error, account: Option<MemoryAccount>) -> Self {
        let Some(account) = account else { return Self { error, _charge: None } };
        match account.hold(error.size()) {
            Ok(charge) => Self { error, _charge: Some(charge) },
            Err(_) => Self { error: Error::new(error.status(), "the memory limit leaves no room for the reason"), _charge: None },
        }
    }
}

/// What waits for one or several points, all of which must be reached.
struct Waiter {
    left: AtomicUsize,
    body: Mutex<Option<Body>>,
    /// Held as long as a point refers to the waiter.
    _charge: Option<Charge>,
}

impl Waiter {
    /// A point was reached, or has failed: the body if it is due.
    fn arrive(&self, failed: bool) -> Option<Body> {
        let last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        if failed || last { self.body.lock().unwrap_or_else(PoisonError::into_inner).take() } else { None }
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
            Some(failure) => repeat_error(&failure.error),
            None => Error::internal("a fence failed without a reason"),
        }
    }

    fn is_awaited(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    fn account(&self) -> Option<MemoryAccount> {
        self.charge.as_ref().map(|charge| charge.account().clone())
    }

    fn resolve(&self, failure: Option<Arc<Failure>>) {
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
        arrive_all(waiting, failure);
    }

    fn subscribe(&self, waiter: Arc<Waiter>) {
        let failure = {
            let mut inner = self.lock();
            if self.stage() == PENDING {
                inner.waiting.push(waiter);
                return;
            }
            inner.failure.clone()
        };
        arrive_all(vec![waiter], failure);
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
            let error = Error::new(Status::Aborted, "a fence was dropped before it was signalled");
            arrive_all(waiting, Some(Arc::new(Failure { error, _charge: None })));
        }
    }
}

/// Calls what waits for nothing else than the point that was reached, or that has failed.
fn arrive_all(waiting: Vec<Arc<Waiter>>, failure: Option<Arc<Failure>>) {
    let due = waiting.iter().filter_map(|waiter| Some((waiter.arrive(failure.is_some())?, failure.clone())));
    let due: Vec<Due> = due.collect();
    if !due.is_empty() {
        call_all(due);
    }
}

type Due = (Body, Option<Arc<Failure>>);

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
            Some(failure) => Err(repeat_error(&failure.error)),
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
