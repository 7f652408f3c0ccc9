//! Accounting: memory is charged on allocation and returned on drop.

use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A shared count of bytes in use, with a limit. Clones are the same account.
#[derive(Clone, Debug)]
pub struct MemoryAccount(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    used: AtomicU64,
    peak: AtomicU64,
    limit: AtomicU64,
}

impl Default for MemoryAccount {
    fn default() -> Self {
        Self::with_limit(u64::MAX)
    }
}

impl MemoryAccount {
    /// An account that refuses charges beyond `limit` bytes.
    pub fn with_limit(limit: u64) -> Self {
        Self(Arc::new(Counters { used: AtomicU64::new(0), peak: AtomicU64::new(0), limit: AtomicU64::new(limit) }))
    }

    /// The limit in bytes; `u64::MAX` means none.
    pub fn limit(&self) -> u64 {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit; what is charged already stays charged.
    pub fn set_limit(&self, limit: u64) {
        self.0.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes charged now.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// The largest number of bytes that was ever charged at once.
    pub fn peak(&self) -> u64 {
        self.0.peak.load(Ordering::Relaxed)
    }

    /// Charges `bytes`, or changes nothing and fails when that passes the limit.
    pub fn charge(&self, bytes: u64) -> Result<()> {
        let limit = self.limit();
        let mut used = self.used();
        loop {
            let sum = used.checked_add(bytes).filter(|sum| *sum <= limit);
            let Some(sum) = sum else { return Err(Error::OverLimit { requested: bytes, used, limit }) };
            match self.0.used.compare_exchange_weak(used, sum, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    if sum > self.peak() {
                        self.0.peak.fetch_max(sum, Ordering::Relaxed);
                    }
                    return Ok(());
                }
                Err(now) => used = now,
            }
        }
    }

    /// Returns what [`MemoryAccount::charge`] took. Returning more than was charged leaves the account at zero.
    pub fn refund(&self, bytes: u64) {
        let mut used = self.used();
        while let Err(now) = self.0.used.compare_exchange_weak(used, used.saturating_sub(bytes), Ordering::Relaxed, Ordering::Relaxed) {
            used = now;
        }
    }
}

/// A charge that is returned when it is dropped: for memory that is not a storage.
#[derive(Debug)]
pub struct Charge {
    account: MemoryAccount,
    bytes: u64,
}

impl MemoryAccount {
    /// Charges `bytes` until the result is dropped.
    pub fn hold(&self, bytes: u64) -> Result<Charge> {
        self.charge(bytes)?;
        Ok(Charge { account: self.clone(), bytes })
    }
}

impl Charge {
    /// The account that is charged.
    pub fn account(&self) -> &MemoryAccount {
        &self.account
    }

    /// Charges more to the same account.
    pub fn grow(&mut self, bytes: u64) -> Result<()> {
        self.account.charge(bytes)?;
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Returns a part of what is held.
    pub fn shrink(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.account.refund(bytes);
        self.bytes -= bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.refund(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_over_the_limit_changes_nothing() {
        let account = MemoryAccount::with_limit(100);
        account.charge(60).unwrap();
        assert_eq!(account.charge(41), Err(Error::OverLimit { requested: 41, used: 60, limit: 100 }));
        assert_eq!(account.used(), 60);
        account.charge(40).unwrap();
        account.refund(100);
        assert_eq!((account.used(), account.peak()), (0, 100));
    }

    #[test]
    fn a_held_charge_is_returned_on_drop() {
        let account = MemoryAccount::with_limit(100);
        let mut charge = account.hold(40).unwrap();
        charge.grow(50).unwrap();
        assert!(charge.grow(11).is_err());
        assert_eq!(account.used(), 90);
        drop(charge);
        assert_eq!(account.used(), 0);
    }

    #[test]
    fn a_charge_that_wraps_is_refused() {
        let account = MemoryAccount::default();
        account.charge(1).unwrap();
        assert!(account.charge(u64::MAX).is_err());
    }
}
