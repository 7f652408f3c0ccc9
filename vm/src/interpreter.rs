//! The interpreter: frames, calls and returns. The ops themselves are in [`execute`].
//!
//! Calls between functions and modules of bytecode push frames on the VM stack; nothing here recurses. Bytecode was verified, so
//! register operands, constants, targets and ordinals are in range.

mod calls;
mod environment;
mod execute;
mod self_test;
mod steps;
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), path = "interpreter/unthreaded.rs")]
mod threaded;

pub(crate) use self_test::threaded_works;
pub(crate) use threaded::ThreadedOp;

use crate::body::{CallSite, Half, Moves};
use crate::module::ModuleInner;
use crate::native::{Context, Results, Wait};
use crate::registry::{ErasedNative, NativeState};
use crate::stack::{Frame, Stack, Values};
use crate::{Error, FrameTrace, Ref, Result};
use environment::Environment;
use std::sync::Arc;
use vmfb_bytecode::calling_convention::Kind;
use vmfb_bytecode::isa::Register;
use vmfb_memory::{Charge, MemoryAccount};

/// State of one bytecode module in a store.
pub(crate) struct InstanceState {
    pub(crate) globals: Vec<u8>,
    pub(crate) refs: Vec<Ref>,
    pub(crate) imports: Vec<ImportSlot>,
    /// What the globals take of the store's memory.
    _charge: Charge,
}

impl InstanceState {
    /// Zero globals, charged to the account.
    pub(crate) fn new(bytes: usize, refs: usize, imports: Vec<ImportSlot>, account: &MemoryAccount) -> Result<Self> {
        let charge = account.hold((bytes as u64).saturating_add((refs as u64).saturating_mul(size_of::<Ref>() as u64)))?;
        let exhausted = |_| Error::exhausted(format!("no memory for {bytes} bytes and {refs} references of globals"));
        let mut state = Self { globals: Vec::new(), refs: Vec::new(), imports, _charge: charge };
        state.globals.try_reserve_exact(bytes).map_err(exhausted)?;
        state.globals.resize(bytes, 0);
        state.refs.try_reserve_exact(refs).map_err(exhausted)?;
        state.refs.resize(refs, Ref::Null);
        Ok(state)
    }

    /// The same state for a fork: numbers are copied, references shared.
    pub(crate) fn fork(&self, account: &MemoryAccount) -> Result<Self> {
        let mut copy = Self::new(self.globals.len(), self.refs.len(), self.imports.clone(), account)?;
        copy.globals.copy_from_slice(&self.globals);
        copy.refs.clone_from_slice(&self.refs);
        Ok(copy)
    }
}

/// What an import is linked to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ImportSlot {
    /// Nothing: it is optional.
    Unresolved,
    /// A function of a native module of the store.
    Native { module: u32, function: u32 },
    /// A function of another instance of the store.
    Bytecode { instance: u32, function: u32 },
}

/// A native module in a store.
pub(crate) struct NativeInstance {
    pub(crate) module: Arc<dyn ErasedNative>,
    pub(crate) state: NativeState,
}

/// Everything that running code needs.
pub(crate) struct Machine<'s> {
    pub(crate) modules: &'s [Arc<ModuleInner>],
    pub(crate) instances: &'s mut [InstanceState],
    pub(crate) natives: &'s mut [NativeInstance],
    pub(crate) context: &'s mut Context,
    pub(crate) stack: &'s mut Stack,
    pub(crate) scratch: &'s mut Scratch,
}

/// Memory that native calls reuse.
#[derive(Default)]
pub(crate) struct Scratch {
    values: Vec<u32>,
    refs: Vec<Ref>,
    buffer: Vec<u8>,
    pub(crate) results: Results,
    /// Counts down to the next look at the clock.
    polls: u32,
    /// Which half of the op failed that ended the last run.
    failed: Half,
    /// What the self-test has seen.
    depths: Vec<usize>,
}

/// Why a run ended without failing.
pub(crate) enum Exit {
    /// The entry function returned; its results are in the scratch.
    Returned,
    /// The program yielded.
    Yielded,
    /// A native function waits; the call is repeated when the run goes on.
    Waiting(Wait),
}

/// Why the ops of one frame stopped.
enum Action {
    /// Internal call at this site.
    Call(u32),
    /// Call of another instance's function at this site.
    CallInstance { site: u32, instance: u32, function: u32 },
    /// Return of the registers in this list.
    Return(u32),
    /// The program yielded.
    Yield,
    /// A native function waits.
    Wait(Wait),
}

impl Machine<'_> {
    /// Enters a function with arguments in the order of its convention, 64-bit values as low and high half.
    pub(crate) fn enter(&mut self, instance: u32, function: u32, values: &[u32], refs: &[Ref]) -> Result<()> {
        let module = &self.modules[instance as usize];
        let body = module.body(function)?;
        let info = &module.verified.functions()[function as usize];
        self.stack.push(instance, function, body)?;
        let Some(frame) = self.stack.frames.last().copied() else { return Ok(()) };
        let (mut values, mut refs) = (values.iter(), refs.iter());
        let kinds = info.convention.plain_arguments().unwrap_or_default();
        for (kind, slot) in kinds.iter().zip(&info.placement.slots) {
            let slot = usize::from(*slot);
            for half in 0..usize::from(kind.value_slots()) {
                self.stack.values[frame.values + slot + half] = values.next().copied().unwrap_or_default();
            }
            if *kind == Kind::Ref {
                self.stack.refs[frame.refs + slot] = refs.next().cloned().unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Runs the last frame, and those that it calls, until the frame at `floor` has returned.
    pub(crate) fn run(&mut self, floor: usize) -> Result<Exit> {
        match self.run_frames(floor) {
            Ok(exit) => Ok(exit),
            Err(error) => Err(self.unwind(error, floor)),
        }
    }

    fn run_frames(&mut self, floor: usize) -> Result<Exit> {
        loop {
            let Some(frame) = self.stack.frames.last().copied() else { return Ok(Exit::Returned) };
            let action = if self.context.engine().is_threaded() { threaded::execute(self, frame, floor)? } else { self.execute(frame)? };
            let Some(frame) = self.stack.frames.last().copied() else { return Ok(Exit::Returned) };
            match action {
                Action::Call(site) => self.call(frame, site)?,
                Action::CallInstance { site, instance, function } => self.call_instance(frame, site, instance, function)?,
                Action::Return(list) => {
                    if self.return_values(frame, list, floor) {
                        return Ok(Exit::Returned);
                    }
                }
                Action::Yield => return Ok(Exit::Yielded),
                Action::Wait(wait) => return Ok(Exit::Waiting(wait)),
            }
        }
    }

    /// Runs the last frame by the match loop, until it calls, returns, suspends or fails.
    fn execute(&mut self, frame: Frame) -> Result<Action> {
        let module = &*self.modules[frame.instance as usize];
        let body = module.body(frame.function)?;
        let mut environment = Environment {
            module,
            body,
            state: &mut self.instances[frame.instance as usize],
            natives: self.natives,
            context: self.context,
            scratch: self.scratch,
            refs: &mut self.stack.refs[frame.refs..frame.refs + body.ref_slots],
        };
        let values: &mut Values = Stack::window(&mut self.stack.values, frame.values);
        let mut next = frame.next;
        let action = environment.execute(values, &mut next);
        if let Some(frame) = self.stack.frames.last_mut() {
            frame.next = next;
        }
        action
    }

    /// Pushes the frame of an internal call and moves the arguments into it.
    #[inline]
    fn call(&mut self, caller: Frame, site: u32) -> Result<()> {
        let module = &*self.modules[caller.instance as usize];
        let site = &module.body(caller.function)?.calls[site as usize];
        self.stack.push(caller.instance, site.callee, module.body(site.callee)?)?;
        self.move_arguments(caller, site, &site.placement);
        Ok(())
    }

    /// Pushes the frame of a call into another instance and moves the arguments into it.
    fn call_instance(&mut self, caller: Frame, site: u32, instance: u32, function: u32) -> Result<()> {
        let site = &self.modules[caller.instance as usize].body(caller.function)?.calls[site as usize];
        let module = &self.modules[instance as usize];
        self.stack.push(instance, function, module.body(function)?)?;
        self.move_arguments(caller, site, &module.verified.functions()[function as usize].placement.slots);
        Ok(())
    }

    #[inline]
    fn move_arguments(&mut self, caller: Frame, site: &CallSite, placement: &[u16]) {
        let Some(callee) = self.stack.frames.last().copied() else { return };
        for ((kind, register), slot) in site.arguments.iter().zip(placement) {
            let to = callee.values + usize::from(*slot);
            match kind {
                Kind::Ref => {
                    let taken = register.is_move() && site.moves == Moves::Honoured;
                    let reference = read_ref(&mut self.stack.refs[caller.refs..], *register, taken);
                    self.stack.refs[callee.refs + usize::from(*slot)] = reference;
                }
                _ => {
                    let from = caller.values + usize::from(register.ordinal());
                    self.stack.values.copy_within(from..from + usize::from(kind.value_slots()), to);
                }
            }
        }
    }

    /// Leaves a frame. True if the run is over: then the returned values are in the scratch's results.
    #[inline]
    fn return_values(&mut self, callee: Frame, list: u32, floor: usize) -> bool {
        let module = &self.modules[callee.instance as usize];
        let Ok(body) = module.body(callee.function) else { return true };
        let words = &body.lists[list as usize];
        let depth = self.stack.frames.len();
        if depth <= floor + 1 {
            let kinds = &module.verified.functions()[callee.function as usize].convention.results;
            self.scratch.results.clear();
            for (kind, word) in kinds.iter().zip(words) {
                self.push_result(callee, *kind, Register::from_word(*word as u16));
            }
            self.stack.pop();
            return true;
        }
        let caller = self.stack.frames[depth - 2];
        let Some(site) = call_site(self.modules, caller) else { return true };
        for ((kind, register), word) in site.results.iter().zip(words) {
            let source = Register::from_word(*word as u16);
            if *kind == Kind::Ref {
                let reference = read_ref(&mut self.stack.refs[callee.refs..], source, source.is_move());
                self.stack.refs[caller.refs + usize::from(register.ordinal())] = reference;
            } else {
                let from = callee.values + usize::from(source.ordinal());
                let to = caller.values + usize::from(register.ordinal());
                self.stack.values.copy_within(from..from + usize::from(kind.value_slots()), to);
            }
        }
        self.stack.pop();
        false
    }

    fn push_result(&mut self, frame: Frame, kind: Kind, register: Register) {
        if kind == Kind::Ref {
            let reference = read_ref(&mut self.stack.refs[frame.refs..], register, register.is_move());
            self.scratch.results.references.push(reference);
        } else {
            let from = frame.values + usize::from(register.ordinal());
            self.scratch.results.values.extend_from_slice(&self.stack.values[from..from + usize::from(kind.value_slots())]);
        }
    }

    /// Leaves all frames because the wait of the last one ended with an error.
    #[cold]
    pub(crate) fn end_wait(&mut self, error: Error) -> Error {
        if let Some(frame) = self.stack.frames.last_mut() {
            // A frame that waits is to repeat its call; the trace is about that call.
            frame.next += 1;
        }
        self.unwind(error, 0)
    }

    /// Leaves all frames above `floor` and writes them into the error.
    #[cold]
    fn unwind(&mut self, mut error: Error, floor: usize) -> Error {
        const MOST: usize = 64;
        let mut traced = 0;
        let mut half = std::mem::take(&mut self.scratch.failed);
        while self.stack.frames.len() > floor {
            let Some(frame) = self.stack.pop() else { break };
            traced += 1;
            if traced <= MOST {
                error = error.frame(self.trace(frame, std::mem::take(&mut half)));
            }
        }
        error
    }

    fn trace(&self, frame: Frame, half: Half) -> FrameTrace {
        let module = &self.modules[frame.instance as usize];
        let definition = module.verified.definition();
        let pc = module.body(frame.function).map(|body| body.pc(frame.next.saturating_sub(1), half)).unwrap_or_default();
        FrameTrace {
            module: definition.name.clone(),
            function: frame.function,
            name: definition.function_name(frame.function).map(str::to_owned),
            pc,
            source: definition.source_location(frame.function, pc).iter().map(ToString::to_string).collect(),
        }
    }
}

/// The call that a frame is in the middle of.
#[inline]
fn call_site(modules: &[Arc<ModuleInner>], frame: Frame) -> Option<&CallSite> {
    let body = modules.get(frame.instance as usize)?.body(frame.function).ok()?;
    let call = body.code.get(frame.next.checked_sub(1)?)?;
    body.calls.get(call.inst.imm as usize)
}

/// Reads a ref register, or takes it and leaves null.
#[inline]
fn read_ref(refs: &mut [Ref], register: Register, taken: bool) -> Ref {
    let slot = &mut refs[usize::from(register.ordinal())];
    if taken { std::mem::take(slot) } else { slot.clone() }
}
