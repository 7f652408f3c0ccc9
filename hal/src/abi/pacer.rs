//! How often a grid looks at the clock: often enough to end in time, seldom enough to cost nothing.

use std::time::{Duration, Instant};
use vmfb_vm::{Meter, Result};

/// Polls a meter between workgroups, about every 50 microseconds.
pub(crate) struct Pacer {
    /// Workgroups until the next poll.
    countdown: u32,
    /// Workgroups between polls.
    stride: u32,
    last: Option<Instant>,
}

const WANTED: Duration = Duration::from_micros(50);
const LONGEST_STRIDE: u32 = 4096;

impl Pacer {
    pub(crate) const fn new() -> Self {
        Self { countdown: 1, stride: 1, last: None }
    }

    /// To be called before every workgroup but the first.
    #[inline]
    pub(crate) fn between_workgroups(&mut self, meter: &Meter) -> Result<()> {
        self.countdown -= 1;
        if self.countdown > 0 { Ok(()) } else { self.poll(meter) }
    }

    #[cold]
    fn poll(&mut self, meter: &Meter) -> Result<()> {
        meter.poll()?;
        let now = Instant::now();
        if let Some(last) = self.last {
            let elapsed = now.saturating_duration_since(last);
            if elapsed < WANTED / 2 {
                self.stride = (self.stride * 2).min(LONGEST_STRIDE);
            } else if elapsed > WANTED * 2 {
                // Workgroups may become slow all at once, so the way down is short.
                self.stride = (self.stride / 8).max(1);
            }
        }
        self.last = Some(now);
        self.countdown = self.stride;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_is_seen_within_the_longest_stride() {
        let meter = Meter::default();
        let mut pacer = Pacer::new();
        for _ in 0..100_000 {
            pacer.between_workgroups(&meter).unwrap();
        }
        meter.interrupt_handle().interrupt();
        assert!((0..LONGEST_STRIDE).any(|_| pacer.between_workgroups(&meter).is_err()));
    }

    #[test]
    fn slow_workgroups_are_polled_one_by_one() {
        let meter = Meter::default();
        let mut pacer = Pacer::new();
        for _ in 0..8 {
            pacer.between_workgroups(&meter).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        meter.interrupt_handle().interrupt();
        assert!(pacer.between_workgroups(&meter).is_err());
    }
}
