//! How long work takes, learned from doing it: whether it is worth spreading over threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long one workgroup of a kernel takes, learned from dispatches on one thread.
#[derive(Debug, Default)]
pub struct Pace(AtomicU64);

impl Pace {
    /// The time of so many workgroups on one thread; zero if nothing was learned yet.
    pub fn estimate(&self, workgroups: u64) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed).saturating_mul(workgroups))
    }

    /// Learns from workgroups that one thread has run since `start`. Old measurements count for three quarters.
    pub fn learn(&self, start: Instant, workgroups: u64) {
        self.learn_duration(start.elapsed(), workgroups);
    }

    /// Learns from workgroups that took this long on one thread.
    pub fn learn_duration(&self, duration: Duration, workgroups: u64) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let new = (nanoseconds / workgroups.max(1)).max(1);
        let old = self.0.load(Ordering::Relaxed);
        let mean = if old == 0 { new } else { (old / 4).saturating_mul(3).saturating_add(new / 4).max(1) };
        self.0.store(mean, Ordering::Relaxed);
    }
}

/// Number of workgroups of a grid; `None` if it has more than 63 bits.
pub fn workgroups(count: [u32; 3]) -> Option<u64> {
    let product = count.iter().try_fold(1u64, |product, count| product.checked_mul(u64::from(*count)))?;
    (product < 1 << 63).then_some(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_beyond_63_bits_are_not_counted() {
        assert_eq!(workgroups([2, 3, 4]), Some(24));
        assert_eq!(workgroups([u32::MAX, u32::MAX, 1]), None);
        assert_eq!(workgroups([1 << 31, 1 << 31, 1]), Some(1 << 62));
        assert_eq!(workgroups([u32::MAX, u32::MAX, u32::MAX]), None);
    }

    #[test]
    fn the_pace_follows_measurements() {
        let pace = Pace::default();
        assert_eq!(pace.estimate(1000), Duration::ZERO);
        pace.learn_duration(Duration::from_millis(10), 10);
        assert_eq!(pace.estimate(10), Duration::from_millis(10));
        for _ in 0..100 {
            pace.learn(Instant::now(), 1_000_000);
        }
        assert!(pace.estimate(10) < Duration::from_millis(1));
    }
}
