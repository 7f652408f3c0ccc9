//! The lists of a store, and the search for those that only cycles among them keep alive.

use crate::list::WeakList;
use crate::{Error, List, Result};
use std::collections::{HashMap, HashSet, TryReserveError};
use std::sync::Arc;
use vmfb_memory::{Charge, Exclusive, MemoryAccount};

/// What a place costs: its entries, and what the search takes for a list.
const PLACE_BYTES: u64 = 160;

/// What the place of an inherited list costs: it keeps the allocation of a list that is dropped meanwhile, too.
const INHERITED_BYTES: u64 = 288;

/// Room for so many lists at first.
const LEAST_PLACES: usize = 4;

/// The lists that a store has made, and those of the store that it was forked from.
pub(crate) struct Registry {
    own: Arc<Exclusive<Places>>,
    inherited: Vec<WeakList>,
    _charge: Option<Charge>,
}

/// Places of lists. A list gives its place back when it is dropped.
#[derive(Default)]
struct Places {
    entries: Vec<Option<WeakList>>,
    free: Vec<u32>,
    /// Pays for the capacity.
    charge: Option<Charge>,
}

/// The place of one list, which is free when this is dropped.
pub(crate) struct Place {
    places: Arc<Exclusive<Places>>,
    index: u32,
}

impl Default for Registry {
    fn default() -> Self {
        Self { own: Arc::new(Exclusive::new(Places::default())), inherited: Vec::new(), _charge: None }
    }
}

impl Registry {
    /// A place for a list that is made next.
    pub(crate) fn reserve(&self, account: &MemoryAccount) -> Result<Place> {
        let index = self.own.lock().reserve(account)?;
        Ok(Place { places: self.own.clone(), index })
    }

    /// The lists that are alive, for a fork of the store, which pays for them as well.
    pub(crate) fn fork(&self, account: &MemoryAccount) -> Result<Self> {
        let own: Vec<WeakList> = self.own.lock().entries.iter().flatten().cloned().collect();
        let inherited: Vec<WeakList> = own.into_iter().chain(self.inherited.iter().cloned()).filter(|list| !list.is_dead()).collect();
        let charge = account.hold(inherited.len() as u64 * INHERITED_BYTES)?;
        Ok(Self { inherited, _charge: Some(charge), ..Self::default() })
    }

    /// Clears lists that nothing but cycles among them keeps alive. Without memory for the search they are left as they are.
    pub(crate) fn clear_cycles(&mut self) {
        if self.search().is_err() {
            tracing::warn!("no memory to search for lists that only cycles keep alive");
        }
    }

    fn search(&mut self) -> Result<(), TryReserveError> {
        let (mut lists, mut known) = (Vec::new(), HashMap::new());
        let (mut inner, mut kept, mut pending) = (HashMap::<usize, usize>::new(), HashSet::new(), Vec::new());
        let most = self.own.lock().entries.len() + self.inherited.len();
        lists.try_reserve_exact(most)?;
        lists.extend(self.own.lock().entries.iter().flatten().filter_map(WeakList::upgrade).take(most));
        let most_inherited = most - lists.len().min(most);
        lists.extend(std::mem::take(&mut self.inherited).iter().filter_map(WeakList::upgrade).take(most_inherited));
        // Lists of other stores may be elements, but only lists that are known are entered.
        known.try_reserve(most)?;
        inner.try_reserve(most)?;
        kept.try_reserve(most)?;
        pending.try_reserve_exact(most)?;
        known.extend(lists.iter().map(|list| (list.identity().0, list)));
        for list in &lists {
            list.for_each_list(|child| {
                if known.contains_key(&child) {
                    *inner.entry(child).or_default() += 1;
                }
            });
        }
        // One reference is ours; more than the lists' own come from outside, and keep what they reach.
        let outside = |list: &&List| {
            let (identity, count) = list.identity();
            count > 1 + inner.get(&identity).copied().unwrap_or_default()
        };
        pending.extend(lists.iter().filter(outside));
        kept.extend(pending.iter().map(|list| list.identity().0));
        while let Some(list) = pending.pop() {
            list.for_each_list(|child| {
                if let Some(list) = known.get(&child)
                    && kept.insert(child)
                {
                    pending.push(list);
                }
            });
        }
        lists.iter().filter(|list| !kept.contains(&list.identity().0)).for_each(List::clear);
        Ok(())
    }
}

impl Places {
    fn reserve(&mut self, account: &MemoryAccount) -> Result<u32> {
        if let Some(index) = self.free.pop() {
            return Ok(index);
        }
        let length = self.entries.len();
        let index = u32::try_from(length).map_err(|_| Error::exhausted("more than 2^32 lists"))?;
        if length == self.entries.capacity() {
            let more = length.max(LEAST_PLACES);
            let bytes = more as u64 * PLACE_BYTES;
            match &mut self.charge {
                Some(charge) => charge.grow(bytes)?,
                none => *none = Some(account.hold(bytes)?),
            }
            let no_memory = |_| Error::exhausted("no memory for lists");
            // Every place may be free once.
            self.free.try_reserve_exact(length + more).map_err(no_memory)?;
            self.entries.try_reserve_exact(more).map_err(no_memory)?;
        }
        self.entries.push(None);
        Ok(index)
    }

    fn release(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            *entry = None;
            self.free.push(index);
        }
        if self.free.len() == self.entries.len() {
            *self = Self::default();
        }
    }
}

impl Place {
    /// Enters the list that has this place.
    pub(crate) fn enter(&self, list: &List) {
        if let Some(entry) = self.places.lock().entries.get_mut(self.index as usize) {
            *entry = Some(list.downgrade());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().release(self.index);
    }
}
