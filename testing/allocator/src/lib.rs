//! Measures from outside what a computation takes: bytes of the process and processor time.
//!
//! Limits are promises about the process. A test that reads the account of a store compares the account with itself; this
//! crate counts what the process really allocates. A test binary or fuzz target makes [`Counting`] its allocator:
//!
//! ```
//! use vmfb_testing_allocator::{Alone, Counting};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! let (bytes, usage) = Alone::wait().measure(|| vec![0_u8; 1 << 20]);
//! assert!(usage.peak_bytes >= bytes.len());
//! ```

mod counting;

pub use counting::Counting;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a computation took.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The most bytes that were allocated at once, less those that were allocated before.
    pub peak_bytes: usize,
    /// Processor time of the process, of all its threads.
    pub cpu: Duration,
}

/// The right to measure. The counts are those of the process, so one test has it at a time, from before it allocates anything.
#[derive(Debug)]
pub struct Alone {
    _guard: MutexGuard<'static, ()>,
}

static MEASURING: Mutex<()> = Mutex::new(());

impl Alone {
    /// Waits until no other thread has the right.
    pub fn wait() -> Self {
        Self { _guard: MEASURING.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Runs something and says what the process took for it.
    pub fn measure<R>(&self, run: impl FnOnce() -> R) -> (R, Usage) {
        let (before, start) = (counting::restart_peak(), cpu_time());
        let result = run();
        let usage = Usage { peak_bytes: counting::peak().saturating_sub(before), cpu: cpu_time().saturating_sub(start) };
        (result, usage)
    }
}

/// Whether [`Counting`] is the allocator of this process.
pub fn is_counting() -> bool {
    // Other threads may free something at the same moment.
    (0..100).any(|_| {
        let before = counting::live();
        let bytes = std::hint::black_box(vec![0_u8; 4096]);
        counting::live() >= before + bytes.len()
    })
}

/// Processor time that the process has used. Where the system cannot say, the time on the clock.
#[cfg(unix)]
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Processor time that the process has used. Where the system cannot say, the time on the clock.
#[cfg(not(unix))]
pub fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn peaks_are_those_of_the_computation() {
        let alone = Alone::wait();
        assert!(is_counting());
        let kept = vec![1_u8; 10 << 20];
        let ((), usage) = alone.measure(|| {
            let mut bytes = vec![1_u8; 1 << 20];
            bytes.reserve_exact(2 << 20);
            drop(std::hint::black_box(bytes));
            drop(std::hint::black_box(vec![0_u8; 2 << 20]));
        });
        // What grows may be copied: old and new stand side by side.
        assert!((3 << 20..(4 << 20) + 4096).contains(&usage.peak_bytes), "{usage:?}");
        drop(kept);
    }

    #[test]
    fn processor_time_passes_while_the_process_works() {
        let mut sum = 0_u64;
        let (_, usage) = Alone::wait().measure(|| {
            while sum < 50_000_000 {
                sum = std::hint::black_box(sum + 1);
            }
        });
        assert!(usage.cpu > Duration::ZERO, "{usage:?}");
    }
}
