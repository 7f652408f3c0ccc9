//! `!hal.command_buffer`: recording commands, and handing them to a queue.

use crate::executable::Kernels;
use crate::layout::{BoundState, PipelineLayout};
use crate::program::{Command, Nested, Program, RecordedDispatch, Slice, Workgroups};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vmfb_memory::MemoryAccount;
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
#[derive(Default)]
pub(crate) struct Recording {
    program: Program,
    /// For programs before 2024-08.
    bound: Option<Box<BoundState>>,
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
    pub(crate) fn new(mode: u32, account: &MemoryAccount) -> Self {
        let uses = if mode & ONE_SHOT == 0 { Uses::Many } else { Uses::Once };
        Self { uses, account: account.clone(), stage: Mutex::new(Stage::Recording(Recording::default())) }
    }

    /// Records something.
    pub(crate) fn record(&self, body: impl FnOnce(&mut Recording) -> Result<()>) -> Result<()> {
        match &mut *self.lock() {
            Stage::Recording(recording) => body(recording),
            _ => Err(Error::precondition("the command buffer is final and takes no more commands")),
        }
    }

    /// Records a command.
    pub(crate) fn push(&self, command: Command) -> Result<()> {
        self.record(|recording| recording.push(command, &self.account))
    }

    /// Records a barrier. Several in a row, and one at the start, are as good as one and none.
    pub(crate) fn barrier(&self) -> Result<()> {
        self.record(|recording| match recording.program.commands.last() {
            None | Some(Command::Barrier) => Ok(()),
            Some(_) => recording.push(Command::Barrier, &self.account),
        })
    }

    /// Records a dispatch.
    pub(crate) fn dispatch(
        &self,
        target: Target,
        constants: impl IntoIterator<Item = u32>,
        bindings: impl IntoIterator<Item = Slice>,
    ) -> Result<()> {
        self.record(|recording| recording.dispatch(target, constants, bindings, &self.account))
    }

    /// Records a dispatch with the constants and bindings that were pushed before.
    pub(crate) fn dispatch_bound(&self, target: Target, layout: &PipelineLayout) -> Result<()> {
        self.record(|recording| {
            let bound = recording.bound();
            let bindings = bound.bindings(layout)?;
            let constants: SmallVec<[u32; 64]> = SmallVec::from_slice(bound.constants(layout));
            recording.dispatch(target, constants, bindings, &self.account)
        })
    }

    /// Ends recording.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut stage = self.lock();
        match &mut *stage {
            Stage::Recording(recording) => {
                let program = Arc::new(std::mem::take(&mut recording.program));
                *stage = Stage::Final(program);
                Ok(())
            }
            _ => Err(Error::precondition("the command buffer is final already")),
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
    pub(crate) fn bound(&mut self) -> &mut BoundState {
        self.bound.get_or_insert_default()
    }

    fn push(&mut self, command: Command, account: &MemoryAccount) -> Result<()> {
        let extra = match &command {
            Command::Nested(nested) => {
                let depth = nested.program.depth.saturating_add(1);
                if depth > MAXIMUM_DEPTH {
                    return Err(Error::exhausted(format!("command buffers in command buffers more than {MAXIMUM_DEPTH} deep")));
                }
                self.program.depth = self.program.depth.max(depth);
                size_of::<Nested>().saturating_add(nested.table.len().saturating_mul(size_of::<Slice>()))
            }
            _ => 0,
        };
        self.charge(size_of::<Command>().saturating_add(extra), account)?;
        self.program.commands.push(command);
        Ok(())
    }

    fn dispatch(
        &mut self,
        target: Target,
        constants: impl IntoIterator<Item = u32>,
        bindings: impl IntoIterator<Item = Slice>,
        account: &MemoryAccount,
    ) -> Result<()> {
        let program = &mut self.program;
        let (first_constant, first_binding) = (program.constants.len(), program.bindings.len());
        program.constants.extend(constants);
        program.bindings.extend(bindings);
        let (constants, bindings) = (first_constant..program.constants.len(), first_binding..program.bindings.len());
        let bytes = constants.len() * size_of::<u32>() + bindings.len() * size_of::<Slice>() + size_of::<RecordedDispatch>();
        self.charge(bytes, account)?;
        let Target { kernels, export, workgroups } = target;
        self.push(Command::Dispatch(Box::new(RecordedDispatch { kernels, export, workgroups, constants, bindings })), account)
    }

    fn charge(&mut self, bytes: usize, account: &MemoryAccount) -> Result<()> {
        match &mut self.program.charge {
            Some(charge) => charge.grow(bytes as u64)?,
            none => *none = Some(account.hold(bytes as u64)?),
        }
        Ok(())
    }
}
