//! The threaded core: every op is a function that ends with a call of the next op's function, which optimised builds make a jump.
//!
//! What is unsafe is here, and it is small: where execution stands is a pointer to an op, and the registers of a frame are a pointer
//! to a window of the stack, so that neither is looked up or checked again for every op. The match loop does without both; it runs in
//! builds where calls in tail position are not jumps, which a self-test finds out.

#![allow(unsafe_code)]

mod handlers;

use super::environment::Environment;
use super::{Action, Machine};
use crate::body::Body;
use crate::code::Inst;
use crate::fault::{Fault, Quick};
use crate::registers::{RegisterValue, Registers};
use crate::stack::{Frame, Stack, Values};
use crate::{Error, Result};
use handlers::HANDLERS;

/// Whether this is the threaded core, not what stands for it.
pub(super) const BUILT: bool = true;

/// The function of an op. It does what the op says and calls the function of the op to run next, or ends the run.
///
/// The arguments are passed in registers. A handler must not keep anything on the stack across its last call: nothing to drop, no
/// local whose address is taken.
type Handler = for<'c, 'e> fn(Ip, Window, &'c mut Core<'e>) -> Ended;

/// An op together with its handler.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ThreadedOp {
    handler: Handler,
    pub(crate) inst: Inst,
}

/// The run is over. What ended it is in the core.
struct Ended;

/// Where execution stands: at an op of the body that the core runs.
#[derive(Clone, Copy)]
struct Ip(*const ThreadedOp);

/// The value registers of the frame that the core runs.
#[derive(Clone, Copy)]
struct Window(*mut Values);

/// What handlers work on.
///
/// In a handler `environment.body` is the body of the stack's last frame, which is one of the instance with number `instance`, and
/// `environment.refs` are the refs of that frame.
struct Core<'e> {
    environment: Environment<'e>,
    stack: &'e mut Stack,
    instance: u32,
    /// How many frames stay when the run is over.
    floor: usize,
    outcome: Result<Action>,
}

/// Runs the last frame, and those that it calls in its instance, until something is to be done that only the machine can do.
pub(super) fn execute(machine: &mut Machine<'_>, frame: Frame, floor: usize) -> Result<Action> {
    let module = &*machine.modules[frame.instance as usize];
    let body = module.body(frame.function)?;
    let mut core = Core {
        environment: Environment {
            module,
            body,
            state: &mut machine.instances[frame.instance as usize],
            natives: machine.natives,
            context: machine.context,
            scratch: machine.scratch,
            refs: &mut [],
        },
        stack: machine.stack,
        instance: frame.instance,
        floor,
        outcome: Ok(Action::Yield),
    };
    let (ip, window) = core.resume(frame, body);
    let Ended = ip.run(window, &mut core);
    core.outcome
}

impl ThreadedOp {
    /// An op with its handler.
    pub(crate) fn new(inst: Inst) -> Self {
        Self { handler: HANDLERS[inst.code as usize], inst }
    }
}

impl std::fmt::Debug for ThreadedOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inst.fmt(f)
    }
}

impl Ip {
    /// The op with this index.
    #[inline(always)]
    fn at(body: &Body, index: usize) -> Self {
        assert!(index < body.code.len());
        // SAFETY: the op exists.
        Self(unsafe { body.code.as_ptr().add(index) })
    }

    /// The index of the op in the body that it is of.
    #[inline(always)]
    fn index(self, body: &Body) -> usize {
        (self.0.addr() - body.code.as_ptr().addr()) / size_of::<ThreadedOp>()
    }

    /// The op.
    #[inline(always)]
    fn op<'e>(self) -> &'e Inst {
        // SAFETY: a position is made of ops alone: by `at`, which checks it, and by `next`, `previous` and `jump`, which stay within
        // the body as its check says. Bodies live as long as their module, which the machine borrows for the whole run.
        unsafe { &(*self.0).inst }
    }

    /// The op behind this one. For handlers of ops that go on.
    #[inline(always)]
    fn next(self) -> Self {
        debug_assert!(crate::body::falls_through(self.op().code));
        // SAFETY: the last op of a body does not go on, as `Body::check` has found, so there is a next one.
        Self(unsafe { self.0.add(1) })
    }

    /// The op before this one. For what stands behind a call.
    #[inline(always)]
    fn previous(self) -> Self {
        // SAFETY: by contract there is an op before it.
        Self(unsafe { self.0.sub(1) })
    }

    /// The op to which this branch leads. For handlers of branches.
    #[inline(always)]
    fn jump(self) -> Self {
        self.go(self.op().imm)
    }

    /// The op at a distance that a branch or its table says.
    #[inline(always)]
    fn go(self, distance: u32) -> Self {
        // SAFETY: `Body::check` has found that there is an op at this distance.
        Self(unsafe { self.0.byte_offset(distance.cast_signed() as isize) })
    }

    /// Runs from here on.
    #[inline(always)]
    fn run(self, window: Window, core: &mut Core<'_>) -> Ended {
        self.handler()(self, window, core)
    }

    #[inline(always)]
    fn handler(self) -> Handler {
        // SAFETY: as for `op`.
        unsafe { (*self.0).handler }
    }
}

impl Window {
    /// The registers, for ops that are not hot.
    #[inline(always)]
    fn values<'e>(self) -> &'e mut Values {
        // SAFETY: the window is of the stack of the running core, which nothing else uses during the run, and whose memory does
        // not move while a frame runs: `Core::call` and `Core::back` return the window that is valid after them. No two references
        // made here live at the same time: each ends with the work of one handler.
        unsafe { &mut *self.0 }
    }

    /// The place of a register, as an address that compilers write as `[window + 4 * register]`.
    #[inline(always)]
    fn indexed(self, at: u16) -> *mut u32 {
        // SAFETY: a window has a slot for each 16-bit number, and one more.
        unsafe { self.0.cast::<u32>().add(usize::from(at)) }
    }

    /// The place of a register, as an address that is one plain processor register.
    ///
    /// Several processors forward what was stored to a load at once if both have such addresses, otherwise after some five cycles; and
    /// most ops load what one before them has stored.
    #[inline(always)]
    #[allow(clippy::pointers_in_nomem_asm_block, reason = "there is no instruction that could touch memory")]
    fn plain(self, at: u16) -> *mut u32 {
        let mut slot = self.indexed(at);
        // SAFETY: no instruction at all. It hides from the compiler how the address was computed.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) slot, options(pure, nomem, nostack, preserves_flags)) };
        slot
    }
}

impl Registers for Window {
    #[inline(always)]
    fn read_32(&self, at: u16) -> u32 {
        // SAFETY: a slot of the window, as for `values`.
        unsafe { self.plain(at).read() }
    }

    #[inline(always)]
    fn read_64(&self, at: u16) -> u64 {
        // SAFETY: two slots of the window.
        u64::from_le(unsafe { self.plain(at).cast::<u64>().read_unaligned() })
    }

    #[inline(always)]
    fn read_settled_32(&self, at: u16) -> u32 {
        // SAFETY: a slot of the window.
        unsafe { self.indexed(at).read() }
    }

    #[inline(always)]
    fn read_settled_64(&self, at: u16) -> u64 {
        // SAFETY: two slots of the window.
        u64::from_le(unsafe { self.indexed(at).cast::<u64>().read_unaligned() })
    }

    #[inline(always)]
    fn write_32(&mut self, at: u16, value: u32) {
        // SAFETY: a slot of the window.
        unsafe { self.plain(at).write(value) };
    }

    #[inline(always)]
    fn write_64(&mut self, at: u16, value: u64) {
        // SAFETY: two slots of the window.
        unsafe { self.plain(at).cast::<u64>().write_unaligned(value.to_le()) };
    }
}

impl<'e> Core<'e> {
    /// Goes on with a frame, which is the stack's last.
    #[inline(always)]
    fn resume(&mut self, frame: Frame, body: &'e Body) -> (Ip, Window) {
        let refs = &raw mut self.stack.refs[frame.refs..frame.refs + body.ref_slots];
        // SAFETY: the slice lives in the stack, which the core borrows for `'e`; it does not move while the frame runs. Of the stack's
        // refs none but these are used then, and before others are, or the stack grows, this function replaces them.
        self.environment.refs = unsafe { &mut *refs };
        self.environment.body = body;
        (Ip::at(body, frame.next), Window(Stack::window(&mut self.stack.values, frame.values)))
    }

    /// Enters the function that a call op calls. `None`, and nothing done, if that needs more than is at hand: translation, memory for
    /// the stack, an error.
    #[inline(always)]
    fn call(&mut self, ip: Ip) -> Option<(Ip, Window)> {
        let callee = self.environment.body.calls[ip.op().imm as usize].callee;
        let body = self.environment.module.translated(callee)?;
        let next = ip.index(self.environment.body) + 1;
        let frame = self.stack.push_at_hand(self.instance, callee, body, next)?;
        Some(self.resume(frame, body))
    }

    /// Leaves a frame without refs for the one that called it: behind its call op. `None`, and nothing done, if that is not for the
    /// core.
    #[inline(always)]
    fn back(&mut self) -> Option<(Ip, Window)> {
        let depth = self.stack.frames.len();
        if depth <= self.floor + 1 {
            return None;
        }
        let caller = self.stack.frames[depth - 2];
        if caller.instance != self.instance {
            return None;
        }
        let body = self.environment.module.translated(caller.function)?;
        self.stack.pop_without_refs();
        Some(self.resume(caller, body))
    }

    /// Calls an import. False if the run is over.
    #[inline(never)]
    fn import(&mut self, ip: Ip, window: Window) -> bool {
        let at = ip.index(self.environment.body);
        self.outcome = match self.environment.call_import(window.values(), ip.op().imm) {
            Ok(None) => return true,
            Ok(Some(action)) => {
                // After a wait the call is repeated.
                self.stand_at(if matches!(action, Action::Wait(_)) { at } else { at + 1 });
                Ok(action)
            }
            Err(error) => {
                self.stand_at(at + 1);
                Err(error)
            }
        };
        false
    }

    /// Ends the run behind an op.
    #[inline(never)]
    fn leave(&mut self, ip: Ip, why: Leave) -> Ended {
        let number = ip.op().imm;
        self.stand_at(ip.index(self.environment.body) + 1);
        self.outcome = Ok(match why {
            Leave::Call => Action::Call(number),
            Leave::Return => Action::Return(number),
        });
        Ended
    }

    /// Suspends the run.
    #[inline(never)]
    fn suspend(&mut self, at: Ip) -> Ended {
        self.stand_at(at.index(self.environment.body));
        self.outcome = Ok(Action::Yield);
        Ended
    }

    /// Ends the run with the fault of an op.
    #[cold]
    #[inline(never)]
    fn fault(&mut self, ip: Ip, fault: Fault) -> Ended {
        let error = self.environment.explain(fault, ip.op());
        self.fail(ip, error)
    }

    /// Ends the run with the error of an op.
    #[cold]
    #[inline(never)]
    fn fail(&mut self, ip: Ip, error: Error) -> Ended {
        self.stand_at(ip.index(self.environment.body) + 1);
        self.outcome = Err(error);
        Ended
    }

    /// Notes where the last frame goes on.
    fn stand_at(&mut self, index: usize) {
        if let Some(frame) = self.stack.frames.last_mut() {
            frame.next = index;
        }
    }
}

/// What ends a run behind an op.
#[derive(Clone, Copy)]
enum Leave {
    Call,
    Return,
}

/// Does a small op that goes on with the next one.
#[inline(always)]
fn quick(ip: Ip, window: Window, core: &mut Core<'_>, work: impl Fn(&mut Environment<'_>, &mut Window, &Inst) -> Quick) -> Ended {
    match work(&mut core.environment, &mut { window }, ip.op()) {
        Ok(()) => ip.next().run(window, core),
        Err(fault) => core.fault(ip, fault),
    }
}

/// Does an op that goes on with the next one.
#[inline(always)]
fn slow(ip: Ip, window: Window, core: &mut Core<'_>, work: impl Fn(&mut Environment<'_>, &mut Values, &Inst) -> Result<()>) -> Ended {
    match work(&mut core.environment, window.values(), ip.op()) {
        Ok(()) => ip.next().run(window, core),
        Err(error) => core.fail(ip, error),
    }
}

/// Does an op that branches or goes on.
#[inline(always)]
fn branch(ip: Ip, window: Window, core: &mut Core<'_>, test: impl Fn(&mut Window, &Inst) -> bool) -> Ended {
    if test(&mut { window }, ip.op()) {
        let next = ip.jump();
        keep_branch(next.handler())(next, window, core)
    } else {
        ip.next().run(window, core)
    }
}

/// Keeps the two ways of a branch apart, which end alike. Compilers would make one jump of them whose target depends on data, which
/// processors predict worse than a branch.
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block, reason = "there is no instruction that could touch memory")]
fn keep_branch(mut handler: Handler) -> Handler {
    // SAFETY: no instruction at all.
    unsafe { std::arch::asm!("/* {0} */", inout(reg) handler, options(pure, nomem, nostack, preserves_flags)) };
    handler
}

/// Returns one value.
#[inline(always)]
fn return_value<R: RegisterValue>(ip: Ip, window: Window, core: &mut Core<'_>) -> Ended {
    let value = R::get(&window, ip.op().a);
    match core.back() {
        Some((next, mut window)) => {
            // Behind a call, so there is an op before it.
            let call = next.previous().op();
            value.set(&mut window, call.a);
            next.run(window, core)
        }
        None => core.leave(ip, Leave::Return),
    }
}
