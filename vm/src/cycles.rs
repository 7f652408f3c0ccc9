//! The lists of a store, and the search for those that only cycles among them keep alive.

use crate::list::WeakList;
use crate::{Error, List, Result};
use std::collections::{HashMap, HashSet};
use vmfb_memory::{Charge, MemoryAccount};

/// What a place costs: a weak reference, the allocation of a list that is dropped while its place is not, and what the search
/// takes for a list.
const PLACE_BYTES: u64 = 256;

/// Room for so many lists at first.
const LEAST_PLACES: usize = 16;

/// The lists that a store has made.
#[derive(Default)]
pub(crate) struct Registry {
    lists: Vec<WeakList>,
    /// Pays for all places.
    charge: Option<Charge>,
}

impl Registry {
    /// Makes room for one more list.
    pub(crate) fn make_room(&mut self, account: &MemoryAccount) -> Result<()> {
        if self.lists.len() < self.lists.capacity() {
            return Ok(());
        }
        self.lists.retain(|list| !list.is_dead());
        // Room for as many again, so that the search is rare however many stay alive.
        let more = self.lists.len().max(LEAST_PLACES);
        let bytes = more as u64 * PLACE_BYTES;
        let places = (self.lists.len() + more).saturating_sub(self.lists.capacity());
        if places == 0 {
            return Ok(());
        }
        let bytes = bytes.min(places as u64 * PLACE_BYTES);
        match &mut self.charge {
            Some(charge) => charge.grow(bytes)?,
            none => *none = Some(account.hold(bytes)?),
        }
        self.lists.try_reserve_exact(more).map_err(|_| Error::exhausted("no memory for lists"))
    }

    /// Adds a list for which there is room.
    pub(crate) fn add(&mut self, list: &List) {
        self.lists.push(list.downgrade());
    }

    /// The lists that are alive, for a fork of the store, which pays for its own places.
    pub(crate) fn fork(&self, account: &MemoryAccount) -> Result<Self> {
        let mut copy = Self::default();
        for list in &self.lists {
            copy.make_room(account)?;
            copy.lists.push(list.clone());
        }
        Ok(copy)
    }

    /// Clears lists that nothing but cycles among them keeps alive.
    pub(crate) fn clear_cycles(&mut self) {
        let lists: Vec<List> = std::mem::take(&mut self.lists).iter().filter_map(WeakList::upgrade).collect();
        let known: HashMap<usize, &List> = lists.iter().map(|list| (list.identity().0, list)).collect();
        let mut inner: HashMap<usize, usize> = HashMap::new();
        lists.iter().for_each(|list| list.for_each_list(|child| *inner.entry(child).or_default() += 1));
        // One reference is ours; more than the lists' own come from outside, and keep what they reach.
        let outside = |list: &&List| {
            let (identity, count) = list.identity();
            count > 1 + inner.get(&identity).copied().unwrap_or_default()
        };
        let mut pending: Vec<&List> = lists.iter().filter(outside).collect();
        let mut kept: HashSet<usize> = pending.iter().map(|list| list.identity().0).collect();
        while let Some(list) = pending.pop() {
            list.for_each_list(|child| {
                if kept.insert(child) {
                    pending.extend(known.get(&child));
                }
            });
        }
        lists.iter().filter(|list| !kept.contains(&list.identity().0)).for_each(List::clear);
    }
}
