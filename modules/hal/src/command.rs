//! `!hal.command_buffer`: recording commands, and handing them to a queue.

use crate::executable::Kernels;
use crate::layout::{BoundState, PipelineLayout};
use crate::program::{Command, Nested, Program, RecordedDispatch, Slice, Workgroups};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vmfb_hal::Bytes;
use vmfb_memory::{Charge, MemoryAccount};
use vmfb_vm::{Error, RefObject, Result};

/// `!hal.command_buffer`.
pub(crate) struct CommandBuffer {
    uses: Uses,
    account: MemoryAccount,
    stage: Mutex<Stage>,
}

impl RefObject for CommandBuffer {
    const TYPE_NAME: &'static str = "hal.command_buffer";
}

/// How often a command buffer may be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uses {
    /// Once; what it refers to is released when it was executed.
    Once,
    /// Any number of times.
    Many,
}

enum Stage {
    Recording(Recording),
    Final(Arc<Program>),
    /// Submitted, and not to be submitted again.
    Spent,
}

/// A command buffer that takes commands.
pub(crate) struct Recording {
    program: Program,
    /// For programs before 2024-08, and what pays for it.
    bound: Option<(Box<BoundState>, Charge)>,
}

/// What a dispatch is recorded with, besides constants and bindings.
pub(crate) struct Target {
    pub(crate) kernels: Arc<Kernels>,
    pub(crate) export: usize,
    pub(crate) workgroups: Workgroups,
}

/// Mode bit: submitted once.
const ONE_SHOT: u32 = 1;

/// Command buffers may contain command buffers, to this depth.
const MAXIMUM_DEPTH: u32 = 8;

impl CommandBuffer {
    /// A command buffer that takes commands. Its memory is charged to the account.
    pub(crate) fn new(mode: u32, account: &MemoryAccount) -> Result<Self> {
        let uses = if mode & ONE_SHOT == 0 { Uses::Many } else { Uses::Once };
        let recording = Recording { program: Program::new(account)?, bound: None };
        Ok(Self { uses, account: account.clone(), stage: Mutex::new(Stage::Recording(recording)) })
    }

    /// Records something.
    fn record(&self, body: impl FnOnce(&mut Recording) -> Result<()>) -> Result<()> {
        match &mut *self.lock() {
            Stage::Recording(recording) => body(recording),
            _ => Err(Error::precondition("the command buffer is final and takes no more commands")),
        }
    }

    /// Fails if the command buffer takes no more commands.
    pub(crate) fn check_recording(&self) -> Result<()> {
        self.record(|_| Ok(()))
    }

    /// Records constants or bindings that are kept from dispatch to dispatch.
    pub(crate) fn bind(&self, body: impl FnOnce(&mut BoundState) -> Result<()>) -> Result<()> {
        self.record(|recording| body(recording.bound(&self.account)?))
    }

    /// Records a command.
    pub(crate) fn push(&self, command: Command) -> Result<()> {
        self.record(|recording| recording.push(command))
    }

    /// Records a barrier. Several in a row, and one at the start, are as good as one and none.
    pub(crate) fn barrier(&self) -> Result<()> {
        self.record(|recording| match recording.program.commands.last() {
            None | Some(Command::Barrier) => Ok(()),
            Some(_) => recording.push(Command::Barrier),
        })
    }

    /// Records a dispatch.
    pub(crate) fn dispatch(
        &self,
        target: Target,
        constants: impl IntoIterator<Item = u32>,
        bindings: impl IntoIterator<Item = Slice>,
    ) -> Result<()> {
        self.record(|recording| recording.dispatch(target, constants, bindings))
    }

    /// Records a dispatch with the constants and bindings that were pushed before.
    pub(crate) fn dispatch_bound(&self, target: Target, layout: &PipelineLayout) -> Result<()> {
        self.record(|recording| {
            let bound = recording.bound(&self.account)?;
            let bindings = bound.bindings(layout)?;
            let constants: SmallVec<[u32; 64]> = SmallVec::from_slice(bound.constants(layout));
            recording.dispatch(target, constants, bindings)
        })
    }

    /// Ends recording.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut stage = self.lock();
        match std::mem::replace(&mut *stage, Stage::Spent) {
            Stage::Recording(recording) => {
                *stage = Stage::Final(Arc::new(recording.program));
                Ok(())
            }
            before => {
                *stage = before;
                Err(Error::precondition("the command buffer is final already"))
            }
        }
    }

    /// The commands, for a submission.
    pub(crate) fn submit(&self) -> Result<Arc<Program>> {
        let mut stage = self.lock();
        match &*stage {
            Stage::Recording(_) => Err(Error::precondition("the command buffer is submitted before it is final")),
            Stage::Spent => Err(Error::precondition("a command buffer for one submission is submitted again")),
            Stage::Final(program) => {
                let program = program.clone();
                if self.uses == Uses::Once {
                    *stage = Stage::Spent;
                }
                Ok(program)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    /// Constants and bindings that are kept from dispatch to dispatch.
    fn bound(&mut self, account: &MemoryAccount) -> Result<&mut BoundState> {
        let bound = match self.bound.take() {
            Some(bound) => bound,
            None => {
                let charge = account.hold(size_of::<BoundState>() as u64)?;
                (Box::default(), charge)
            }
        };
        Ok(&mut self.bound.insert(bound).0)
    }

    fn push(&mut self, command: Command) -> Result<()> {
        let extra = match &command {
            Command::Nested(nested) => {
                let depth = nested.program.depth.saturating_add(1);
                if depth > MAXIMUM_DEPTH {
                    return Err(Error::exhausted(format!("command buffers in command buffers more than {MAXIMUM_DEPTH} deep")));
                }
                self.program.depth = self.program.depth.max(depth);
                size_of::<Nested>().saturating_add(nested.table.capacity().saturating_mul(size_of::<Option<Bytes>>()))
            }
            _ => 0,
        };
        self.program.charge.grow(extra as u64)?;
        Ok(self.program.commands.push(command)?)
    }

    fn dispatch(
        &mut self,
        target: Target,
        constants: impl IntoIterator<Item = u32>,
        bindings: impl IntoIterator<Item = Slice>,
    ) -> Result<()> {
        let program = &mut self.program;
        let (first_constant, first_binding) = (program.constants.len(), program.bindings.len());
        program.constants.extend(constants)?;
        program.bindings.extend(bindings)?;
        let (constants, bindings) = (first_constant..program.constants.len(), first_binding..program.bindings.len());
        program.charge.grow(size_of::<RecordedDispatch>() as u64)?;
        let Target { kernels, export, workgroups } = target;
        self.push(Command::Dispatch(Box::new(RecordedDispatch { kernels, export, workgroups, constants, bindings })))
    }
}
