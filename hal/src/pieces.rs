//! Work in pieces that threads take in order.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Threads take this many pieces each, if there are so many: enough to even out, few enough to cost nothing.
const PIECES_PER_THREAD: u64 = 8;

/// Numbered work, 0 and up, in pieces that threads take in order.
///
/// When a piece fails, no more are taken. As pieces are taken in order and each is carried through, those in front of the first
/// failure have been done whatever the number of threads, and [`Pieces::outcome`] is that failure.
#[derive(Debug)]
pub struct Pieces<E> {
    total: u64,
    piece: u64,
    /// First number that nobody has taken.
    next: AtomicU64,
    /// First number of the first piece that failed.
    failed: AtomicU64,
    /// Written together with `failed`.
    failure: Mutex<Option<E>>,
}

const NONE: u64 = u64::MAX;

impl<E> Pieces<E> {
    /// A few pieces for each thread. `total` has at most 63 bits.
    pub fn for_threads(total: u64, threads: usize) -> Self {
        let pieces = (threads as u64).saturating_mul(PIECES_PER_THREAD).max(1);
        Self::of_length(total, total.div_ceil(pieces).max(1))
    }

    /// Each number is a piece. `total` has at most 63 bits.
    pub fn one_by_one(total: u64) -> Self {
        Self::of_length(total, 1)
    }

    fn of_length(total: u64, piece: u64) -> Self {
        Self { total, piece, next: AtomicU64::new(0), failed: AtomicU64::new(NONE), failure: Mutex::new(None) }
    }

    /// Does pieces until none is left or one has failed. To be called on every thread that takes part.
    pub fn work(&self, mut body: impl FnMut(Range<u64>) -> Result<(), E>) {
        while self.failed.load(Ordering::Relaxed) == NONE {
            let first = self.next.fetch_add(self.piece, Ordering::Relaxed);
            if first >= self.total {
                return;
            }
            let end = first.saturating_add(self.piece).min(self.total);
            if let Err(failure) = body(first..end) {
                self.fail(first, failure);
            }
        }
    }

    /// Whether a piece in front of this number has failed, so that nobody will ask for it.
    pub fn is_moot(&self, number: u64) -> bool {
        self.failed.load(Ordering::Relaxed).saturating_add(self.piece) <= number
    }

    fn fail(&self, first: u64, failure: E) {
        let mut known = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if first < self.failed.load(Ordering::Relaxed) {
            self.failed.store(first, Ordering::Relaxed);
            *known = Some(failure);
        }
    }

    /// The first failure in the order of the work. To be asked when all threads have returned.
    pub fn outcome(&self) -> Result<(), E> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_done_once() {
        for (total, threads) in [(0, 1), (1, 4), (31, 2), (32, 2), (1000, 3), (1 << 20, 64)] {
            let pieces = Pieces::<()>::for_threads(total, threads);
            let mut next = 0;
            pieces.work(|range| {
                assert_eq!(range.start, next);
                assert!(range.end > range.start);
                next = range.end;
                Ok(())
            });
            assert_eq!(next, total);
        }
    }

    #[test]
    fn the_first_failure_in_order_counts_on_any_number_of_threads() {
        for threads in [1, 2, 4, 16] {
            for _ in 0..50 {
                let pieces = Pieces::one_by_one(1000);
                let done: Vec<AtomicU64> = (0..1000).map(|_| AtomicU64::new(0)).collect();
                std::thread::scope(|scope| {
                    for _ in 0..threads {
                        scope.spawn(|| {
                            pieces.work(|range| {
                                done[range.start as usize].fetch_add(1, Ordering::Relaxed);
                                if range.start >= 20 { Err(range.start) } else { Ok(()) }
                            });
                        });
                    }
                });
                assert_eq!(pieces.outcome(), Err(20));
                assert!(done[..=20].iter().all(|count| count.load(Ordering::Relaxed) == 1));
                let begun = done.iter().filter(|count| count.load(Ordering::Relaxed) > 0).count();
                assert!(begun <= 20 + threads, "each thread may have one piece behind the failure");
            }
        }
    }

    #[test]
    fn what_lies_behind_a_failed_piece_is_moot() {
        let pieces = Pieces::for_threads(160, 2);
        assert!(!pieces.is_moot(159));
        pieces.work(|range| if range.start == 20 { Err(()) } else { Ok(()) });
        assert_eq!((pieces.is_moot(19), pieces.is_moot(20), pieces.is_moot(29), pieces.is_moot(30)), (false, false, false, true));
    }
}
