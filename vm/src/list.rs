//! `!vm.list`: growable lists, dense values, references or anything.
//!
//! Lists may hold lists, also themselves, to any depth; dropping one does not recurse.

mod scalar;

pub use scalar::Scalar;

use crate::cycles::Place;
use crate::types::{ElementKind, RefType};
use crate::{Buffer, Error, Meter, Ref, Result, Value};
use std::fmt;
use std::sync::{Arc, Weak};
use vmfb_memory::{Exclusive, Guard, MemoryAccount};

/// A list. Clones are the same list.
#[derive(Clone)]
pub struct List(Arc<Inner>);

/// A list that is not kept alive.
#[derive(Clone)]
pub(crate) struct WeakList(Weak<Inner>);

struct Inner {
    element: ElementKind,
    account: MemoryAccount,
    items: Exclusive<Items>,
    /// The place among the lists of the store that made it.
    place: Option<Place>,
}

/// Elements and what was charged for them.
struct Items {
    elements: Elements,
    charged: u64,
}

enum Elements {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Ref(Vec<Ref>),
    Variant(Vec<Slot>),
}

/// An element of a variant list; `Value(Ref(Null))` does not occur.
#[derive(Clone, Default)]
enum Slot {
    #[default]
    Empty,
    Value(Value),
}

macro_rules! for_elements {
    ($elements:expr, $vector:ident => $body:expr) => {
        match $elements {
            Elements::I8($vector) => $body,
            Elements::I16($vector) => $body,
            Elements::I32($vector) => $body,
            Elements::I64($vector) => $body,
            Elements::F32($vector) => $body,
            Elements::F64($vector) => $body,
            Elements::Ref($vector) => $body,
            Elements::Variant($vector) => $body,
        }
    };
}

/// What a list costs beside its elements.
const LIST_OVERHEAD: u64 = 144;

impl List {
    /// An empty list with room for `capacity` elements, charged to the account.
    pub fn new(element: ElementKind, capacity: u32, account: &MemoryAccount) -> Result<Self> {
        Self::new_in(element, capacity, account, None)
    }

    /// The same with a place among the lists of a store.
    pub(crate) fn new_in(element: ElementKind, capacity: u32, account: &MemoryAccount, place: Option<Place>) -> Result<Self> {
        account.charge(LIST_OVERHEAD)?;
        let elements = match element {
            ElementKind::I8 => Elements::I8(Vec::new()),
            ElementKind::I16 => Elements::I16(Vec::new()),
            ElementKind::I32 => Elements::I32(Vec::new()),
            ElementKind::I64 => Elements::I64(Vec::new()),
            ElementKind::F32 => Elements::F32(Vec::new()),
            ElementKind::F64 => Elements::F64(Vec::new()),
            ElementKind::Ref(_) => Elements::Ref(Vec::new()),
            ElementKind::Variant => Elements::Variant(Vec::new()),
        };
        let items = Exclusive::new(Items { elements, charged: LIST_OVERHEAD });
        let list = Self(Arc::new(Inner { element, account: account.clone(), items, place }));
        if let Some(place) = &list.0.place {
            place.enter(&list);
        }
        list.reserve(capacity)?;
        Ok(list)
    }

    /// A list of anything with the given values, not charged to any limit.
    pub fn of_values(values: impl IntoIterator<Item = Value>) -> Result<Self> {
        let list = Self::new(ElementKind::Variant, 0, &MemoryAccount::default())?;
        for value in values {
            list.push(value)?;
        }
        Ok(list)
    }

    /// A list of buffers, charged to the account; what a kernel's bindings come in.
    pub fn of_buffers(buffers: impl ExactSizeIterator<Item = Result<Buffer>>, account: &MemoryAccount) -> Result<Self> {
        let count = u32::try_from(buffers.len()).map_err(|_| Error::exhausted("a list holds at most 2^32 - 1 elements"))?;
        let list = Self::new(ElementKind::Ref(RefType::Buffer), count, account)?;
        if let Elements::Ref(vector) = &mut list.lock().elements {
            // No more than there is room for, whatever the iterator does.
            for buffer in buffers.take(count as usize) {
                vector.push(Ref::Buffer(buffer?));
            }
        }
        Ok(list)
    }

    /// What the list holds.
    pub fn element(&self) -> &ElementKind {
        &self.0.element
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        for_elements!(&self.lock().elements, vector => vector.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both are the same list.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Makes room for `capacity` elements in all.
    pub fn reserve(&self, capacity: u32) -> Result<()> {
        reserve(&mut self.lock(), &self.0.account, capacity as usize)
    }

    /// Changes the length: dropped elements are released, new ones are zero, null or empty.
    pub fn resize(&self, length: u32) -> Result<()> {
        self.resize_in_pieces(length, || Ok(()))
    }

    /// As [`List::resize`], looking at the deadline and interruption on the way. Ended early, the list
    /// has a length between the two.
    pub fn resize_within(&self, meter: &Meter, length: u32) -> Result<()> {
        self.resize_in_pieces(length, || meter.poll())
    }

    fn resize_in_pieces(&self, length: u32, poll: impl Fn() -> Result<()>) -> Result<()> {
        while self.resize_piece(length as usize)? != length as usize {
            poll()?;
        }
        Ok(())
    }

    /// Brings the length nearer to what is wanted; gives the new one.
    fn resize_piece(&self, length: usize) -> Result<usize> {
        /// Elements that are added at once, 3 MiB at most.
        const ADDED: usize = 1 << 17;
        /// Elements that are dropped at once.
        const DROPPED: usize = 1 << 12;
        let mut dropped = None;
        let reached = {
            let mut items = self.lock();
            reserve(&mut items, &self.0.account, length)?;
            let before = for_elements!(&items.elements, vector => vector.len());
            let reached = length.clamp(before.saturating_sub(DROPPED), before.saturating_add(ADDED));
            match &mut items.elements {
                Elements::Ref(vector) if reached < before => dropped = Some(Elements::Ref(vector.drain(reached..).collect())),
                Elements::Variant(vector) if reached < before => dropped = Some(Elements::Variant(vector.drain(reached..).collect())),
                // Numbers need no dropping.
                elements if length < before => for_elements!(elements, vector => vector.truncate(length)),
                elements => for_elements!(elements, vector => vector.resize(reached, Default::default())),
            }
            for_elements!(&items.elements, vector => vector.len())
        };
        if let Some(dropped) = dropped {
            drop_iteratively(dropped);
        }
        Ok(reached)
    }

    /// Appends a value, converted to the element type.
    pub fn push(&self, value: Value) -> Result<()> {
        let length = u32::try_from(self.len()).ok().and_then(|length| length.checked_add(1));
        let length = length.ok_or_else(|| Error::exhausted("a list holds at most 2^32 - 1 elements"))?;
        self.resize(length)?;
        self.set(length - 1, value)
    }

    /// The number at an index: OUT_OF_RANGE past the end, FAILED_PRECONDITION when the element is no number.
    #[inline]
    pub fn get_scalar(&self, index: u32) -> Result<Scalar> {
        let items = self.lock();
        let at = index as usize;
        let scalar = match &items.elements {
            Elements::I8(vector) => vector.get(at).map(|value| Scalar::Integer(i64::from(*value))),
            Elements::I16(vector) => vector.get(at).map(|value| Scalar::Integer(i64::from(*value))),
            Elements::I32(vector) => vector.get(at).map(|value| Scalar::Integer(i64::from(*value))),
            Elements::I64(vector) => vector.get(at).map(|value| Scalar::Integer(*value)),
            Elements::F32(vector) => vector.get(at).map(|value| Scalar::Single(*value)),
            Elements::F64(vector) => vector.get(at).map(|value| Scalar::Double(*value)),
            Elements::Ref(vector) => match vector.get(at) {
                Some(_) => return Err(not_a("number", "a list of references")),
                None => None,
            },
            Elements::Variant(vector) => match vector.get(at) {
                Some(Slot::Value(value)) => Some(Scalar::of(value).ok_or_else(|| not_a("number", "a reference"))?),
                Some(Slot::Empty) => return Err(not_a("number", "an empty element")),
                None => None,
            },
        };
        scalar.ok_or_else(|| past_the_end(index, &items.elements))
    }

    /// The reference at an index; empty elements are null. FAILED_PRECONDITION when the element is a number.
    pub fn get_ref(&self, index: u32) -> Result<Ref> {
        let items = self.lock();
        match &items.elements {
            Elements::Ref(vector) => vector.get(index as usize).cloned().ok_or_else(|| past_the_end(index, &items.elements)),
            Elements::Variant(vector) => match vector.get(index as usize) {
                Some(Slot::Empty) => Ok(Ref::Null),
                Some(Slot::Value(Value::Ref(reference))) => Ok(reference.clone()),
                Some(Slot::Value(_)) => Err(not_a("reference", "a number")),
                None => Err(past_the_end(index, &items.elements)),
            },
            elements if index as usize >= for_elements!(elements, vector => vector.len()) => Err(past_the_end(index, elements)),
            _ => Err(not_a("reference", "a list of numbers")),
        }
    }

    /// Takes the reference at an index out of the list and leaves null, if `wanted` accepts it; else leaves it and gives null.
    pub(crate) fn take_ref(&self, index: u32, wanted: &RefType) -> Result<Ref> {
        let mut items = self.lock();
        let at = index as usize;
        match &mut items.elements {
            Elements::Ref(vector) => match vector.get_mut(at) {
                Some(reference) if wanted.accepts(reference) => return Ok(std::mem::take(reference)),
                Some(_) => return Ok(Ref::Null),
                None => {}
            },
            Elements::Variant(vector) => match vector.get_mut(at) {
                Some(slot @ Slot::Value(Value::Ref(_))) => return Ok(take_accepted(slot, wanted)),
                Some(Slot::Empty) => return Ok(Ref::Null),
                Some(Slot::Value(_)) | None => {}
            },
            _ => {}
        }
        drop(items);
        // What is left is an error, which reading finds as well.
        self.get_ref(index)
    }

    /// The value at an index; empty elements are null references.
    pub fn get(&self, index: u32) -> Result<Value> {
        match &self.lock().elements {
            Elements::I32(vector) => {
                return vector.get(index as usize).map(|v| Value::I32(*v)).ok_or_else(|| index_error(index, vector.len()));
            }
            Elements::F32(vector) => {
                return vector.get(index as usize).map(|v| Value::F32(*v)).ok_or_else(|| index_error(index, vector.len()));
            }
            Elements::Variant(vector) => {
                return match vector.get(index as usize) {
                    Some(Slot::Empty) => Ok(Value::Ref(Ref::Null)),
                    Some(Slot::Value(value)) => Ok(value.clone()),
                    None => Err(index_error(index, vector.len())),
                };
            }
            _ => {}
        }
        match self.0.element {
            ElementKind::I8 | ElementKind::I16 => Ok(Value::I32(self.get_scalar(index)?.integer() as i32)),
            ElementKind::F64 => Ok(Value::F64(self.get_scalar(index)?.double())),
            ElementKind::Ref(_) => Ok(Value::Ref(self.get_ref(index)?)),
            _ => Ok(Value::I64(self.get_scalar(index)?.integer())),
        }
    }

    /// Replaces the value at an index. Numbers are converted to the element type; a reference must have the element type
    /// (INVALID_ARGUMENT); a value in a list of references, or the other way round, is FAILED_PRECONDITION.
    pub fn set(&self, index: u32, value: Value) -> Result<()> {
        match value {
            Value::Ref(reference) => self.set_ref(index, reference),
            number => self.set_number(index, number),
        }
    }

    /// Replaces the reference at an index.
    #[inline]
    pub(crate) fn set_ref(&self, index: u32, reference: Ref) -> Result<()> {
        let mut items = self.lock();
        let at = index as usize;
        // The old element may be the last reference to a list, maybe this one: it is released without the lock.
        match &mut items.elements {
            Elements::Ref(vector) if at < vector.len() => {
                if let ElementKind::Ref(wanted) = &self.0.element
                    && !wanted.accepts(&reference)
                {
                    return Err(wrong_element(&reference, wanted));
                }
                let old = vector.get_mut(at).map(|slot| std::mem::replace(slot, reference));
                drop(items);
                drop(old);
                Ok(())
            }
            Elements::Variant(vector) if at < vector.len() => {
                let slot = if reference.is_null() { Slot::Empty } else { Slot::Value(Value::Ref(reference)) };
                let old = vector.get_mut(at).map(|place| std::mem::replace(place, slot));
                drop(items);
                drop(old);
                Ok(())
            }
            elements if at < for_elements!(&*elements, vector => vector.len()) => Err(not_a("number", "a reference")),
            elements => Err(past_the_end(index, elements)),
        }
    }

    /// Replaces the number at an index; a reference is not taken.
    #[inline]
    pub(crate) fn set_number(&self, index: u32, number: Value) -> Result<()> {
        let scalar = Scalar::of(&number).ok_or_else(|| not_a("number", "a reference"))?;
        let mut items = self.lock();
        let at = index as usize;
        match &mut items.elements {
            Elements::I32(vector) if at < vector.len() => put(vector, at, scalar.integer() as i32),
            Elements::I8(vector) if at < vector.len() => put(vector, at, scalar.integer() as i8),
            Elements::I16(vector) if at < vector.len() => put(vector, at, scalar.integer() as i16),
            Elements::I64(vector) if at < vector.len() => put(vector, at, scalar.integer()),
            Elements::F32(vector) if at < vector.len() => put(vector, at, scalar.single()),
            Elements::F64(vector) if at < vector.len() => put(vector, at, scalar.double()),
            Elements::Variant(vector) if at < vector.len() => {
                let old = vector.get_mut(at).map(|place| std::mem::replace(place, Slot::Value(number)));
                drop(items);
                drop(old);
            }
            Elements::Ref(vector) if at < vector.len() => return Err(not_a("reference", "a number")),
            elements => return Err(past_the_end(index, elements)),
        }
        Ok(())
    }

    /// A copy of all values.
    pub fn values(&self) -> Vec<Value> {
        (0..self.len()).map_while(|index| self.get(index as u32).ok()).collect()
    }

    /// Releases all elements.
    pub fn clear(&self) {
        let dropped = {
            let mut items = self.lock();
            take_references(&mut items.elements)
        };
        drop_iteratively(dropped);
    }

    pub(crate) fn downgrade(&self) -> WeakList {
        WeakList(Arc::downgrade(&self.0))
    }

    /// Identity and number of references, for the search for unreachable cycles.
    pub(crate) fn identity(&self) -> (usize, usize) {
        (Arc::as_ptr(&self.0).addr(), Arc::strong_count(&self.0))
    }

    /// Names the lists that are elements of this one, each as often as it is one.
    pub(crate) fn for_each_list(&self, mut body: impl FnMut(usize)) {
        let mut name = |reference: &Ref| {
            if let Ref::List(list) = reference {
                body(list.identity().0);
            }
        };
        match &self.lock().elements {
            Elements::Ref(vector) => vector.iter().for_each(name),
            Elements::Variant(vector) => {
                for slot in vector {
                    if let Slot::Value(Value::Ref(reference)) = slot {
                        name(reference);
                    }
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn lock(&self) -> Guard<'_, Items> {
        self.0.items.lock()
    }
}

impl WeakList {
    pub(crate) fn upgrade(&self) -> Option<List> {
        self.0.upgrade().map(List)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// The reference of a slot, which is empty afterwards; null and no change if it is of another type.
fn take_accepted(slot: &mut Slot, wanted: &RefType) -> Ref {
    match std::mem::take(slot) {
        Slot::Value(Value::Ref(reference)) if wanted.accepts(&reference) => reference,
        other => {
            *slot = other;
            Ref::Null
        }
    }
}

fn put<T>(vector: &mut [T], at: usize, value: T) {
    if let Some(slot) = vector.get_mut(at) {
        *slot = value;
    }
}

/// Grows the capacity, at least doubling it, and charges what is added.
fn reserve(items: &mut Items, account: &MemoryAccount, capacity: usize) -> Result<()> {
    fn grow<T>(vector: &mut Vec<T>, charged: &mut u64, account: &MemoryAccount, capacity: usize) -> Result<()> {
        if capacity <= vector.capacity() {
            return Ok(());
        }
        let wanted = capacity.max(vector.capacity().saturating_mul(2));
        let bytes = ((wanted - vector.capacity()) as u64).saturating_mul(size_of::<T>() as u64);
        account.charge(bytes)?;
        let additional = wanted - vector.len();
        if vector.try_reserve_exact(additional).is_err() {
            account.refund(bytes);
            return Err(Error::exhausted(format!("no memory for a list of {wanted} elements")));
        }
        *charged += bytes;
        Ok(())
    }
    let Items { elements, charged } = items;
    for_elements!(elements, vector => grow(vector, charged, account, capacity))
}

impl Slot {
    /// The reference in the slot.
    fn reference(self) -> Option<Ref> {
        match self {
            Slot::Value(Value::Ref(reference)) => Some(reference),
            _ => None,
        }
    }
}

/// The elements if they may be references; numbers stay.
fn take_references(elements: &mut Elements) -> Elements {
    match elements {
        Elements::Ref(vector) => Elements::Ref(std::mem::take(vector)),
        Elements::Variant(vector) => Elements::Variant(std::mem::take(vector)),
        _ => Elements::I8(Vec::new()),
    }
}

/// Drops elements; lists that end with them give up their elements first, so that nesting does not become recursion.
fn drop_iteratively(elements: Elements) {
    let mut last = elements;
    let mut pending: Vec<Elements> = Vec::new();
    loop {
        let (reference, is_empty) = match &mut last {
            Elements::Ref(vector) => (vector.pop(), vector.is_empty()),
            Elements::Variant(vector) => (vector.pop().and_then(Slot::reference), vector.is_empty()),
            _ => (None, true),
        };
        let inner = match reference {
            Some(Ref::List(list)) => Arc::into_inner(list.0),
            _ => None,
        };
        let inner = inner.map(|mut inner| take_references(&mut inner.items.get_mut().elements));
        match inner {
            // Nothing is left to come back to, so chains of lists take no room here.
            Some(inner) if is_empty => last = inner,
            Some(inner) => {
                let outer = std::mem::replace(&mut last, inner);
                if pending.try_reserve(1).is_ok() {
                    pending.push(outer);
                } else {
                    // Without memory to remember them by, elements are leaked and not dropped by recursion.
                    std::mem::forget(outer);
                }
            }
            None if is_empty => match pending.pop() {
                Some(outer) => last = outer,
                None => return,
            },
            None => {}
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let items = self.items.get_mut();
        self.account.refund(items.charged);
        drop_iteratively(take_references(&mut items.elements));
    }
}

#[cold]
fn past_the_end(index: u32, elements: &Elements) -> Error {
    index_error(index, for_elements!(elements, vector => vector.len()))
}

#[cold]
fn index_error(index: u32, length: usize) -> Error {
    Error::out_of_range(format!("list index {index} is not below the size {length}"))
}

#[cold]
fn wrong_element(reference: &Ref, wanted: &RefType) -> Error {
    Error::invalid(format!("a !{} cannot be an element of a list of !{}", reference.type_name(), wanted.name()))
}

#[cold]
fn not_a(wanted: &str, found: &str) -> Error {
    Error::precondition(format!("the list element is {found}, wanted a {wanted}"))
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "!vm.list of {} elements", self.len())
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
