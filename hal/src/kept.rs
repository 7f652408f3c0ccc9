//! Bytes that keep their value although a program may write them: tensors of the host, and constants.
//!
//! Compiled programs work in place on both, and no metadata says which kernels do. A tensor that the host keeps is copied once,
//! when it may first be written. A constant has a private view for each call that may write it: what a call writes is seen by
//! what follows in it, and by nothing else. Views are used again by later calls if they were not written.

use crate::Writer;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use vmfb_memory::{BASE_ALIGNMENT, Charge, MemoryAccount, PrivateView, Span};
use vmfb_vm::{CallScope, Meter, Result};

/// A tensor that the host passed to a call and keeps a reference to.
#[derive(Debug)]
pub(crate) struct KeptArgument {
    /// The host's bytes, until there is a copy.
    span: Mutex<Current>,
}

#[derive(Debug)]
enum Current {
    Original(Span),
    Copy(Span),
}

impl KeptArgument {
    pub(crate) fn new(span: Span) -> Self {
        Self { span: Mutex::new(Current::Original(span.read_only())) }
    }

    pub(crate) fn current(&self) -> Span {
        match &*lock(&self.span) {
            Current::Original(span) | Current::Copy(span) => span.clone(),
        }
    }

    /// The copy; made now if there is none.
    pub(crate) fn copied(&self, meter: &mut Meter) -> Result<Span> {
        let mut current = lock(&self.span);
        let original = match &*current {
            Current::Copy(span) => return Ok(span.clone()),
            Current::Original(span) => span,
        };
        meter.charge_bytes(original.len() as u64)?;
        let copy = Span::zeroed(original.len(), BASE_ALIGNMENT, meter.account())?;
        copy.copy_from(0, original, 0, original.len())?;
        *current = Current::Copy(copy.clone());
        Ok(copy)
    }
}

/// A constant that a program uses as a buffer.
#[derive(Debug)]
pub(crate) struct KeptConstant {
    state: Mutex<Constant>,
}

#[derive(Debug)]
struct Constant {
    /// What every call finds: the constant, with what initialisers wrote into it.
    base: Span,
    /// Pays for pages of the base that an initialiser may have written.
    _charge: Option<Charge>,
    /// The views of calls, and of the initialiser.
    views: SmallVec<[CallView; 1]>,
}

/// What one call sees of a constant that it may have written.
#[derive(Debug)]
struct CallView {
    scope: CallScope,
    view: PrivateView,
    /// Bytes that were handed out for writing.
    handed_out: Range<usize>,
    /// Pays for pages that a checked writer may have copied.
    charge: Option<Charge>,
}

impl KeptConstant {
    pub(crate) fn new(span: Span) -> Self {
        Self { state: Mutex::new(Constant { base: span.read_only(), _charge: None, views: SmallVec::new() }) }
    }

    /// The constant as a call sees it.
    pub(crate) fn current(&self, scope: &CallScope) -> Result<Span> {
        let mut state = lock(&self.state);
        state.settle(scope)?;
        let view = state.views.iter().find(|view| view.is_of(scope));
        Ok(view.map_or(&state.base, |view| view.view.span()).clone())
    }

    /// The constant as it is between two calls.
    pub(crate) fn between_calls(&self) -> Span {
        let state = lock(&self.state);
        let initialiser = state.views.iter().find(|view| !view.scope.is_call());
        initialiser.map_or(&state.base, |view| view.view.span()).clone()
    }

    /// A part of what a call sees, if it has written that.
    pub(crate) fn written_by(&self, scope: &CallScope, offset: usize, length: usize) -> Result<Option<Span>> {
        let state = lock(&self.state);
        match state.views.iter().find(|view| view.scope.is_call() && view.is_of(scope)) {
            Some(view) if !view.view.is_unchanged(offset, length)? => Ok(Some(view.view.span().slice(offset, length)?)),
            _ => Ok(None),
        }
    }

    /// A part of the constant for a call to write.
    pub(crate) fn writable(&self, offset: usize, length: usize, writer: Writer, meter: &mut Meter) -> Result<Span> {
        let mut state = lock(&self.state);
        state.settle(meter.scope())?;
        let view = state.view_for(length, meter)?;
        if writer == Writer::Checked && view.view.is_mapped() && view.charge.is_none() {
            view.charge = Some(meter.account().hold(view.view.span().len() as u64)?);
        }
        let end = offset.saturating_add(length);
        view.handed_out = match view.handed_out.is_empty() {
            true => offset..end,
            false => view.handed_out.start.min(offset)..view.handed_out.end.max(end),
        };
        Ok(view.view.span().slice(offset, length)?)
    }
}

impl Constant {
    /// What initialisers wrote stays, from the first call on.
    fn settle(&mut self, scope: &CallScope) -> Result<()> {
        if !scope.is_call() {
            return Ok(());
        }
        if let Some(index) = self.views.iter().position(|view| !view.scope.is_call()) {
            let written = self.views.remove(index);
            if !written.is_unused()? {
                self.base = written.view.span().clone().read_only();
                self._charge = written.charge;
            }
        }
        Ok(())
    }

    /// The view of a call: its own, one of an earlier call, or a new one. The call pays for as many bytes as it asks for first.
    fn view_for(&mut self, length: usize, meter: &mut Meter) -> Result<&mut CallView> {
        let index = match self.views.iter().position(|view| view.is_of(meter.scope())) {
            Some(index) => index,
            None => {
                meter.charge_bytes(length as u64)?;
                let scope = meter.scope().clone();
                let view = match self.take_free(&scope, meter.account())? {
                    Some(view) => CallView { scope, ..view },
                    None => CallView { scope, view: PrivateView::of(&self.base, meter.account())?, handed_out: 0..0, charge: None },
                };
                self.views.push(view);
                self.views.len() - 1
            }
        };
        match self.views.get_mut(index) {
            Some(view) => Ok(view),
            None => unreachable!("the index is that of a view"),
        }
    }

    /// A view of a call that has ended, as good as new. Others of ended calls are dropped.
    fn take_free(&mut self, scope: &CallScope, account: &MemoryAccount) -> Result<Option<CallView>> {
        let mut free = None;
        let mut index = 0;
        while let Some(view) = self.views.get(index) {
            // Queued work of an ended call may still hold its view.
            if !view.scope.is_call() || !view.scope.has_ended(scope) || view.view.span().holders() > 1 {
                index += 1;
                continue;
            }
            let mut view = self.views.remove(index);
            if free.is_none() {
                let written = view.handed_out.clone();
                if !view.is_unused()? {
                    view.view.restore(written.start, written.len(), account)?;
                }
                free = Some(CallView { handed_out: 0..0, ..view });
            }
        }
        Ok(free)
    }
}

impl CallView {
    /// Whether this is what a call sees. Initialisers and the host see the same.
    fn is_of(&self, scope: &CallScope) -> bool {
        if scope.is_call() { self.scope.same(scope) } else { !self.scope.is_call() }
    }

    /// Whether nothing uses the view and nothing was written to it.
    fn is_unused(&self) -> Result<bool> {
        Ok(self.view.span().holders() == 1 && self.view.is_unchanged(self.handed_out.start, self.handed_out.len())?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
