//! Translated functions: ops, and the lists that they refer to.

use crate::code::{Code, distance, encode_distance};
use crate::interpreter::ThreadedOp;
use crate::{Error, Result};
use std::ops::Range;
use vmfb_bytecode::calling_convention::Kind;
use vmfb_bytecode::isa::Register;

/// A translated function. [`Body::check`] holds for every one that runs.
#[derive(Debug)]
pub(crate) struct Body {
    /// The ops. The last one never falls through, and all distances of branches lead to ops.
    pub(crate) code: Box<[ThreadedOp]>,
    /// Byte offset in the bytecode of each op, for error traces.
    pub(crate) pcs: Box<[u32]>,
    /// Ops whose second half comes from elsewhere: index and byte offset, ascending.
    pub(crate) late_pcs: Box<[(u32, u32)]>,
    /// Register lists of switches and returns, branch tables.
    pub(crate) lists: Box<[Box<[u32]>]>,
    /// Messages of `fail`.
    pub(crate) messages: Box<[Box<[u8]>]>,
    /// Call sites.
    pub(crate) calls: Box<[CallSite]>,
    /// Value slots that may be read before they are written; they are zero when the function starts.
    pub(crate) zeroed: Box<[Range<usize>]>,
    /// Value slots of a frame, rounded up to even so that pairs of the next frame stay even.
    pub(crate) value_slots: usize,
    /// Ref slots of a frame.
    pub(crate) ref_slots: usize,
}

/// A call, with everything that is known of it before it happens.
#[derive(Debug)]
pub(crate) struct CallSite {
    /// Ordinal of the import or of the function.
    pub(crate) callee: u32,
    /// The argument registers with their kinds, spans flattened. Internal calls have only refs here: values are moved into the
    /// callee's registers by ops before the call.
    pub(crate) arguments: Box<[(Kind, Register)]>,
    /// Where internal calls put these arguments: the slot in the callee's frame, in the bank of the kind.
    pub(crate) placement: Box<[u16]>,
    /// Number of tuples of each span.
    pub(crate) segments: Box<[u16]>,
    /// The result registers with their kinds.
    pub(crate) results: Box<[(Kind, Register)]>,
    /// Whether MOVE bits of arguments are honoured.
    pub(crate) moves: Moves,
}

/// What MOVE bits mean in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// The reference is taken.
    Honoured,
    /// The bit is ignored: the reference is retained.
    Ignored,
}

impl Body {
    /// Fails unless execution that starts at the first op stays within the ops.
    pub(crate) fn check(&self) -> Result<()> {
        let broken = |at: usize| Error::internal(format!("translation: op {at} ({:?}) leads out of the function", self.code.get(at)));
        let Some(last) = self.code.last() else { return Err(broken(0)) };
        if falls_through(last.inst.code) || self.pcs.len() != self.code.len() {
            return Err(broken(self.code.len() - 1));
        }
        for (at, op) in self.code.iter().enumerate() {
            let reaches = |encoded: u32| {
                let whole = encode_distance(distance(encoded)) == encoded;
                whole && at.checked_add_signed(distance(encoded)).is_some_and(|to| to < self.code.len())
            };
            let valid = match op.inst.code {
                Code::BrTable => match self.lists.get(op.inst.imm as usize) {
                    Some(table) => !table.is_empty() && table.iter().all(|distance| reaches(*distance)),
                    None => false,
                },
                code if branches(code) => reaches(op.inst.imm),
                _ => true,
            };
            if !valid {
                return Err(broken(at));
            }
        }
        Ok(())
    }

    /// Byte offset in the bytecode of what the op at this index does first, or last.
    pub(crate) fn pc(&self, at: usize, half: Half) -> u32 {
        let late = || self.late_pcs.binary_search_by_key(&(at as u32), |late| late.0).ok().map(|index| self.late_pcs[index].1);
        let late = if half == Half::Second { late() } else { None };
        late.or_else(|| self.pcs.get(at).copied()).unwrap_or_default()
    }
}

/// A part of an op that stands for several instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Half {
    /// What comes first, or all.
    #[default]
    First,
    /// What comes last.
    Second,
}

/// Whether the immediate is a distance.
fn branches(code: Code) -> bool {
    matches!(code, Code::Br | Code::Yield | Code::AddBrLtI32S | Code::AddBrLtI64S) || code.negated().is_some()
}

/// Whether the next op may follow.
pub(crate) fn falls_through(code: Code) -> bool {
    !matches!(code, Code::Br | Code::BrTable | Code::Yield | Code::Return | Code::Return0 | Code::Return32 | Code::Return64 | Code::Fail)
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
