//! A lock for values that are held for a moment and nearly always by one thread.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::yield_now;

/// A value behind a lock that costs one atomic exchange, half of what the standard mutex costs when nobody else wants it.
///
/// Whoever waits for it keeps running, so it suits short uses alone. A holder that panics releases it; the value is then as
/// the holder left it.
pub struct Exclusive<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by shared references through `lock` alone, which lets one thread in at a time and orders its
// accesses after those of the one before (acquire on entry, release on exit). So threads hand the value to each other, which
// `Send` allows.
unsafe impl<T: Send> Sync for Exclusive<T> {}

/// Access to the value, until it is dropped.
pub struct Guard<'a, T> {
    lock: &'a Exclusive<T>,
}

impl<T> Exclusive<T> {
    /// A value that nobody holds.
    pub fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until nobody holds the value, and holds it. The thread that holds it already must not ask again.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Guard { lock: self }
    }

    #[cold]
    fn wait(&self) {
        const SPINS: u32 = 100;
        let mut spins = 0;
        while self.taken.load(Ordering::Relaxed) || self.taken.swap(true, Ordering::Acquire) {
            if spins < SPINS {
                spins += 1;
                spin_loop();
            } else {
                // The holder may have been stopped by the scheduler.
                yield_now();
            }
        }
    }

    /// The value of a lock that is not shared.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so its thread alone may reach the value, and the borrow ends before the guard does.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably, so no other borrow of the value is alive.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn threads_take_turns() {
        let count = Exclusive::new((0_u32, 0_u32));
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let mut pair = count.lock();
                        assert_eq!(pair.0, pair.1);
                        pair.0 += 1;
                        spin_loop();
                        pair.1 += 1;
                    }
                });
            }
        });
        assert_eq!(*count.lock(), (4 * rounds, 4 * rounds));
    }

    #[test]
    fn a_panic_releases_the_lock() {
        let value = Exclusive::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut guard = value.lock();
            *guard = 2;
            panic!("while holding");
        }));
        assert!(panicked.is_err());
        assert_eq!(*value.lock(), 2);
    }
}
