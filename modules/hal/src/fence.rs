//! `fence.*`.

use crate::State;
use smallvec::SmallVec;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use vmfb_hal::{Fence, FenceStatus};
use vmfb_vm::{Arguments, Call, Completion, Error, Handle, Ref, Result, Status, Wait};

/// Fences of one wait.
const MAXIMUM_FENCES: usize = 32;

/// A timeout that never ends.
const INFINITE: u32 = u32::MAX;

type Fences = SmallVec<[Handle<Fence>; 2]>;

/// Waits with a timeout that are going on. A waiting call is repeated with the same arguments, and must find its deadline again;
/// when it is given up, its entry dies with it.
#[derive(Default)]
pub(crate) struct Awaiting(Vec<Weak<Await>>);

/// One wait with a timeout.
struct Await {
    timeout: u32,
    fences: Fences,
    deadline: Instant,
}

impl Awaiting {
    /// The wait that this call has begun before.
    fn find(&mut self, timeout: u32, fences: &Fences) -> Option<Arc<Await>> {
        let same = |(a, b): (&Handle<Fence>, &Handle<Fence>)| std::ptr::eq(&**a, &**b);
        let fits = |found: &Arc<Await>| {
            found.timeout == timeout && found.fences.len() == fences.len() && found.fences.iter().zip(fences).all(same)
        };
        self.0.retain(|entry| entry.strong_count() > 0);
        self.0.iter().filter_map(Weak::upgrade).find(fits)
    }

    fn remove(&mut self, ended: &Arc<Await>) {
        self.0.retain(|entry| !std::ptr::eq(entry.as_ptr(), Arc::as_ptr(ended)));
    }
}

/// `ri_r`, `rI_r`: device, flags.
pub(crate) fn create(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    let fence = Fence::new_in(call.context.meter.account())?;
    call.results.push_reference(call.context.new_object(fence)?);
    Ok(())
}

/// `CrD_r`: fences, null allowed; a fence that is reached when all are, null if there is nothing to wait for.
pub(crate) fn join(call: &mut Call<'_, State>) -> Result<()> {
    let fences = read_fences(&mut call.arguments)?;
    let joined = match &fences[..] {
        [one] => Some(one.clone()),
        _ => {
            let joined = Fence::join(fences.iter().map(|fence| &**fence), &mut call.context.meter)?;
            joined.map(|fence| call.context.new_object(fence)).transpose()?
        }
    };
    call.results.push_reference(joined.map_or(Ref::Null, Ref::from));
    Ok(())
}

/// `ICrD_r`: flags, fences.
pub(crate) fn join_flags(call: &mut Call<'_, State>) -> Result<()> {
    call.arguments.i64()?;
    join(call)
}

/// `r_i`: the status as a number: 0 reached, 17 pending, others a failure.
pub(crate) fn query(call: &mut Call<'_, State>) -> Result<()> {
    const PENDING: i32 = 17;
    let fence: &Fence = call.arguments.object("the fence")?;
    call.results.push_i32(match fence.status() {
        FenceStatus::Reached => 0,
        FenceStatus::Pending => PENDING,
        FenceStatus::Failed(error) => error.status().code() as i32,
    });
    Ok(())
}

/// `r_v`.
pub(crate) fn signal(call: &mut Call<'_, State>) -> Result<()> {
    let fence: &Fence = call.arguments.object("the fence")?;
    call.context.meter.charge(fence.point_count() as u64)?;
    fence.signal();
    call.context.meter.poll()
}

/// `ri_v`: fence, status code.
pub(crate) fn fail(call: &mut Call<'_, State>) -> Result<()> {
    let fence: &Fence = call.arguments.object("the fence")?;
    let code = call.arguments.u32()? & 31;
    let status = Status::from_code(code).unwrap_or(Status::Unknown);
    call.context.meter.charge(fence.point_count() as u64)?;
    fence.fail(Error::new(status, format!("the program failed a fence with status {code}")));
    Ok(())
}

/// `iCrD_i`: timeout in milliseconds, fences.
pub(crate) fn wait(call: &mut Call<'_, State>) -> Result<Completion> {
    let timeout = call.arguments.u32()?;
    wait_rest(call, timeout)
}

/// `iICrD_i`: timeout in milliseconds, flags, fences.
pub(crate) fn wait_flags(call: &mut Call<'_, State>) -> Result<Completion> {
    let timeout = call.arguments.u32()?;
    call.arguments.i64()?;
    wait_rest(call, timeout)
}

/// The result is 0, or the code of DEADLINE_EXCEEDED; a fence that failed fails the call.
fn wait_rest(call: &mut Call<'_, State>, timeout: u32) -> Result<Completion> {
    let fences = read_fences(&mut call.arguments)?;
    let started = if timeout == INFINITE || timeout == 0 { None } else { call.state.awaiting.find(timeout, &fences) };
    let pending = match first_pending(&fences)? {
        None => return end_wait(call, started, Outcome::Reached),
        Some(_) if timeout == 0 => return end_wait(call, started, Outcome::TimedOut),
        Some(pending) => pending,
    };
    let timed = match started {
        Some(started) if started.deadline <= Instant::now() => return end_wait(call, Some(started), Outcome::TimedOut),
        Some(started) => Some(started),
        None if timeout == INFINITE => None,
        None => {
            let deadline = Instant::now() + Duration::from_millis(timeout.into());
            let timed = Arc::new(Await { timeout, fences: fences.clone(), deadline });
            call.state.awaiting.0.push(Arc::downgrade(&timed));
            Some(timed)
        }
    };
    let block = move |until: Instant| {
        let until = timed.as_ref().map_or(until, |timed| timed.deadline.min(until));
        pending.wait(Some(until));
    };
    Ok(Completion::Wait(Wait { block: Box::new(block), what: "a fence".to_owned() }))
}

/// How a wait ends without an error. The numbers are what programs get.
#[derive(Clone, Copy)]
enum Outcome {
    Reached = 0,
    TimedOut = Status::DeadlineExceeded as isize,
}

fn end_wait(call: &mut Call<'_, State>, started: Option<Arc<Await>>, outcome: Outcome) -> Result<Completion> {
    if let Some(started) = started {
        call.state.awaiting.remove(&started);
    }
    call.state.settle(&mut call.context.meter)?;
    call.results.push_i32(outcome as i32);
    Ok(Completion::Done)
}

/// A fence that is still to be waited for; fails if one has failed.
fn first_pending(fences: &Fences) -> Result<Option<Fence>> {
    let mut pending = None;
    for fence in fences {
        match fence.status() {
            FenceStatus::Reached => {}
            FenceStatus::Pending => pending = pending.or_else(|| Some(Fence::clone(fence))),
            FenceStatus::Failed(error) => return Err(error.context("waiting for a fence")),
        }
    }
    Ok(pending)
}

/// Reads a span of fences; null means nothing to wait for.
fn read_fences(arguments: &mut Arguments<'_>) -> Result<Fences> {
    let count = arguments.span()?;
    if count > MAXIMUM_FENCES {
        return Err(Error::out_of_range(format!("{count} fences at once; at most {MAXIMUM_FENCES} are possible")));
    }
    let mut fences = Fences::new();
    for _ in 0..count {
        let reference = arguments.reference()?;
        if !reference.is_null() {
            fences.push(reference.handle("the fence")?);
        }
    }
    Ok(fences)
}
