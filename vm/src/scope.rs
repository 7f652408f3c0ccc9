//! Calls from outside, told apart: what a program writes into a constant is seen until the call ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The calls of one store.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    running: AtomicUsize,
    started: AtomicU64,
}

/// Which call work is done for. Work done for initialisers, and for the host itself, belongs to no call.
#[derive(Clone, Debug, Default)]
pub struct CallScope {
    calls: Arc<Calls>,
    call: u64,
}

/// No code of a program runs.
const OUTSIDE: u64 = 0;
/// The initialiser of a module runs.
const INITIALISER: u64 = 1;

impl Calls {
    /// Counts a call that begins, and returns its number.
    pub(crate) fn begin(&self) -> u64 {
        self.running.fetch_add(1, Ordering::Relaxed);
        self.started.fetch_add(1, Ordering::Relaxed) + INITIALISER + 1
    }

    /// Counts a call that ends.
    pub(crate) fn end(&self) {
        self.running.fetch_sub(1, Ordering::Release);
    }
}

impl CallScope {
    pub(crate) fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    /// Enters a call, unless one was entered already, and returns what [`CallScope::leave`] takes.
    #[inline]
    pub(crate) fn enter(&mut self, call: u64) -> u64 {
        let before = self.call;
        if before == OUTSIDE {
            self.call = call;
        }
        before
    }

    /// Enters an initialiser.
    pub(crate) fn enter_initialiser(&mut self) -> u64 {
        self.enter(INITIALISER)
    }

    #[inline]
    pub(crate) fn leave(&mut self, before: u64) {
        self.call = before;
    }

    /// Whether this is a call, and not an initialiser or the host.
    pub fn is_call(&self) -> bool {
        self.call > INITIALISER
    }

    /// Whether both are the same call.
    pub fn same(&self, other: &Self) -> bool {
        self.call == other.call && Arc::ptr_eq(&self.calls, &other.calls)
    }

    /// Whether this call has ended, as seen from a call that runs. Of two calls that run in one store at the same time, neither
    /// has ended to the other.
    pub fn has_ended(&self, running: &Self) -> bool {
        let others = if Arc::ptr_eq(&self.calls, &running.calls) { usize::from(running.is_call()) } else { 0 };
        !self.same(running) && self.calls.running.load(Ordering::Acquire) <= others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(scope: &CallScope) -> CallScope {
        let mut scope = scope.clone();
        let call = scope.calls().begin();
        scope.enter(call);
        scope
    }

    #[test]
    fn a_call_has_ended_when_no_other_runs() {
        let store = CallScope::default();
        assert!(!store.is_call());
        let first = entered(&store);
        assert!(first.is_call() && first.same(&first.clone()) && !first.has_ended(&first));
        let second = entered(&store);
        assert!(!first.has_ended(&second) && !second.has_ended(&first));
        first.calls().end();
        assert!(first.has_ended(&second));
        let elsewhere = entered(&CallScope::default());
        assert!(!second.has_ended(&elsewhere));
        second.calls().end();
        assert!(second.has_ended(&elsewhere) && !elsewhere.has_ended(&second));
    }

    #[test]
    fn nested_code_belongs_to_the_outer_call() {
        let mut scope = CallScope::default();
        let before = scope.enter_initialiser();
        let inner = scope.enter(7);
        assert!(!scope.is_call());
        scope.leave(inner);
        scope.leave(before);
        assert!(scope.same(&CallScope { calls: scope.calls().clone(), call: OUTSIDE }));
    }
}
