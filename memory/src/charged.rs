//! A vector that is charged for all the room it has.

use crate::{Charge, Error, MemoryAccount, Result};
use std::ops::Deref;

/// A vector whose capacity is charged to an account before it is allocated, and returned when it is dropped.
///
/// A failed allocation is an error, and changes nothing.
#[derive(Debug)]
pub struct ChargedVec<T> {
    items: Vec<T>,
    charge: Charge,
}

impl<T> ChargedVec<T> {
    /// An empty vector without room.
    pub fn new(account: &MemoryAccount) -> Result<Self> {
        Ok(Self { items: Vec::new(), charge: account.hold(0)? })
    }

    /// Adds an item. Room grows by doubling.
    pub fn push(&mut self, item: T) -> Result<()> {
        if self.items.len() == self.items.capacity() {
            self.grow(self.items.capacity().max(4))?;
        }
        self.items.push(item);
        Ok(())
    }

    /// Adds items, or as many of them as there is room for before it fails.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) -> Result<()> {
        items.into_iter().try_for_each(|item| self.push(item))
    }

    /// Forgets the items behind this length.
    pub fn truncate(&mut self, length: usize) {
        self.items.truncate(length);
    }

    fn grow(&mut self, more: usize) -> Result<()> {
        let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
        self.charge.grow(bytes)?;
        if self.items.try_reserve_exact(more).is_err() {
            self.charge.shrink(bytes);
            return Err(Error::OutOfMemory { requested: bytes });
        }
        Ok(())
    }
}

impl<T> Deref for ChargedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capacity_is_charged() {
        let account = MemoryAccount::with_limit(100);
        let mut bytes = ChargedVec::new(&account).unwrap();
        bytes.extend(0..60_u8).unwrap();
        assert_eq!((bytes.len(), account.used()), (60, 64));
        assert!(bytes.extend(0..5).is_err());
        assert_eq!((bytes.len(), account.used()), (64, 64));
        bytes.truncate(1);
        assert_eq!((&bytes[..], account.used()), (&[0][..], 64));
        drop(bytes);
        assert_eq!(account.used(), 0);
    }
}
