//! What `executable.lookup.function` found before: compiled code asks before every dispatch.

use std::sync::Arc;
use vmfb_hal::ExecutableReference;
use vmfb_vm::{Buffer, Origin, Ref};

/// Answers that are kept.
const SLOTS: usize = 64;

/// Answers by executable and name, where the name is a constant of a module. Each answer has one slot to be in; a later one
/// replaces an earlier one.
#[derive(Default)]
pub(crate) struct LookupCache {
    /// Empty, or [`SLOTS`] long.
    slots: Vec<Option<Answer>>,
}

struct Answer {
    executable: Ref,
    name: Buffer,
    function: i64,
}

impl LookupCache {
    /// The answer, if it is known.
    #[inline]
    pub(crate) fn get(&self, executable: &Ref, key: &ExecutableReference, name: &Buffer) -> Option<i64> {
        let answer = self.slots.get(slot(key, name))?.as_ref()?;
        (answer.executable.same(executable) && answer.name.same(name)).then_some(answer.function)
    }

    /// Keeps an answer, if the name can never change.
    pub(crate) fn insert(&mut self, executable: &Ref, key: &ExecutableReference, name: &Buffer, function: i64) {
        if name.origin() != Origin::Module || name.span().is_writable() {
            return;
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        if let Some(slot) = self.slots.get_mut(slot(key, name)) {
            *slot = Some(Answer { executable: executable.clone(), name: name.clone(), function });
        }
    }

    /// Forgets all answers.
    pub(crate) fn clear(&mut self) {
        self.slots = Vec::new();
    }
}

/// Mixes the addresses of both; which slot it is decides nothing but speed.
fn slot(executable: &ExecutableReference, name: &Buffer) -> usize {
    let executable = Arc::as_ptr(&executable.0).cast::<()>().addr();
    let mixed = (executable ^ name.span().address().addr()).wrapping_mul(0x9E37_79B1);
    (mixed >> 12) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::Kernels;
    use vmfb_memory::{MemoryAccount, Span};

    fn executable() -> Ref {
        Ref::new(ExecutableReference(Kernels::new(&[])))
    }

    fn name() -> Buffer {
        Buffer::new(Span::from_static(b"main"), Origin::Module)
    }

    fn get(cache: &LookupCache, executable: &Ref, name: &Buffer) -> Option<i64> {
        cache.get(executable, executable.object("").unwrap(), name)
    }

    fn insert(cache: &mut LookupCache, executable: &Ref, name: &Buffer, function: i64) {
        cache.insert(executable, executable.object("").unwrap(), name, function);
    }

    #[test]
    fn an_answer_is_for_one_executable_and_one_name() {
        let mut cache = LookupCache::default();
        let (executable, name) = (executable(), name());
        assert_eq!(get(&cache, &executable, &name), None);
        insert(&mut cache, &executable, &name, 5);
        assert_eq!(get(&cache, &executable, &name), Some(5));
        assert_eq!(get(&cache, &self::executable(), &name), None);
        assert_eq!(get(&cache, &executable, &self::name()), None);
        cache.clear();
        assert_eq!(get(&cache, &executable, &name), None);
    }

    #[test]
    fn names_that_may_change_are_not_kept() {
        let mut cache = LookupCache::default();
        let executable = executable();
        let account = MemoryAccount::default();
        let writable = Span::copy_of(b"main", &account).unwrap();
        for name in [Buffer::new(writable.clone(), Origin::Module), Buffer::new(writable.read_only(), Origin::Guest)] {
            insert(&mut cache, &executable, &name, 5);
            assert_eq!(get(&cache, &executable, &name), None);
        }
    }

    #[test]
    fn many_answers_stay_right() {
        let mut cache = LookupCache::default();
        let executable = executable();
        let names: Vec<Buffer> = (0..500).map(|_| name()).collect();
        for (function, name) in names.iter().enumerate() {
            insert(&mut cache, &executable, name, function as i64);
            assert_eq!(get(&cache, &executable, name), Some(function as i64));
        }
        for (function, name) in names.iter().enumerate() {
            assert!(get(&cache, &executable, name).is_none_or(|found| found == function as i64));
        }
    }
}
