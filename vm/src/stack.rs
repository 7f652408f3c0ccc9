//! The VM stack: register windows of all frames of one invocation, and the frames themselves.

use crate::body::Body;
use crate::scope::Calls;
use crate::{Error, Ref, Result};
use std::sync::Arc;

/// Values that a frame can address: every 16-bit ordinal, and the high half of the last pair. A window of this size needs no
/// bounds check for 16-bit register operands.
pub(crate) const WINDOW: usize = (1 << 16) + 1;

/// Slots in front of the last window when a stack first grows.
const LEAST_SLOTS: usize = 1 << 10;

/// The value registers that are reachable from a frame.
pub(crate) type Values = [u32; WINDOW];

/// One activation of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Index of the instance in its store.
    pub(crate) instance: u32,
    /// Ordinal of the function.
    pub(crate) function: u32,
    /// Index of the op to run next; while a call runs, the op behind it.
    pub(crate) next: usize,
    /// Start of the value registers.
    pub(crate) values: usize,
    /// Start of the ref registers.
    pub(crate) refs: usize,
}

/// Frames and registers of one invocation.
///
/// Ref slots behind the last frame are always null.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) values: Vec<u32>,
    pub(crate) refs: Vec<Ref>,
    pub(crate) frames: Vec<Frame>,
    /// End of the registers of the last frame: values, refs.
    top: (usize, usize),
    limit: usize,
    /// The calls of the store.
    calls: Arc<Calls>,
    /// The call that uses the stack.
    call: Option<u64>,
}

impl Stack {
    /// An empty stack that may hold `limit` bytes.
    pub(crate) fn new(limit: usize, calls: Arc<Calls>) -> Self {
        Self { values: Vec::new(), refs: Vec::new(), frames: Vec::new(), top: (0, 0), limit, calls, call: None }
    }

    /// Begins a call.
    pub(crate) fn begin_call(&mut self) {
        self.call = Some(self.calls.begin());
    }

    /// The number of the call.
    pub(crate) fn call(&self) -> u64 {
        self.call.unwrap_or_default()
    }

    /// Ends the call and releases what it holds.
    pub(crate) fn end_call(&mut self) {
        while self.pop().is_some() {}
        if self.call.take().is_some() {
            self.calls.end();
        }
    }

    /// Makes room for a frame of a function and enters it: refs are null, and zero what may be read before it is written.
    #[inline]
    pub(crate) fn push(&mut self, instance: u32, function: u32, body: &Body) -> Result<()> {
        let (values, refs) = self.top;
        let top = (values + body.value_slots, refs + body.ref_slots);
        let bytes = top.0 * size_of::<u32>() + top.1 * size_of::<Ref>() + (self.frames.len() + 1) * size_of::<Frame>();
        if bytes > self.limit {
            return Err(self.overflow());
        }
        if self.values.len() < top.0 + WINDOW || self.refs.len() < top.1 {
            self.grow(top)?;
        }
        for range in &body.zeroed {
            self.values[values + range.start..values + range.end].fill(0);
        }
        self.frames.try_reserve(1).map_err(|_| Error::exhausted("no memory for the VM stack"))?;
        self.frames.push(Frame { instance, function, next: 0, values, refs });
        self.top = top;
        Ok(())
    }

    /// As [`Stack::push`], and notes where the caller goes on; but only if nothing has to grow and no limit is met.
    #[inline(always)]
    pub(crate) fn push_at_hand(&mut self, instance: u32, function: u32, body: &Body, next: usize) -> Option<Frame> {
        let (values, refs) = self.top;
        let top = (values + body.value_slots, refs + body.ref_slots);
        let bytes = top.0 * size_of::<u32>() + top.1 * size_of::<Ref>() + (self.frames.len() + 1) * size_of::<Frame>();
        let fits = bytes <= self.limit && self.values.len() >= top.0 + WINDOW && self.refs.len() >= top.1;
        if !fits || self.frames.len() == self.frames.capacity() {
            return None;
        }
        for range in &body.zeroed {
            self.values[values + range.start..values + range.end].fill(0);
        }
        self.frames.last_mut()?.next = next;
        let frame = Frame { instance, function, next: 0, values, refs };
        self.frames.push(frame);
        self.top = top;
        Some(frame)
    }

    /// Leaves the last frame, all of whose refs are null.
    #[inline(always)]
    pub(crate) fn pop_without_refs(&mut self) {
        if let Some(frame) = self.frames.pop() {
            self.top = (frame.values, frame.refs);
        }
    }

    /// Leaves the last frame and releases its references.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        for reference in &mut self.refs[frame.refs..self.top.1] {
            *reference = Ref::Null;
        }
        self.top = (frame.values, frame.refs);
        Some(frame)
    }

    /// The value window of a frame.
    #[inline]
    pub(crate) fn window(values: &mut [u32], base: usize) -> &mut Values {
        match values.get_mut(base..).and_then(<[u32]>::first_chunk_mut) {
            Some(window) => window,
            None => unreachable!("the stack keeps a whole window behind every frame"),
        }
    }

    #[cold]
    fn grow(&mut self, (values, refs): (usize, usize)) -> Result<()> {
        let exhausted = |_| Error::exhausted("no memory for the VM stack");
        // Most of a window is never touched, and the system provides only what is. So the stack grows by what is filled here,
        // and not by a second window.
        let values = (values.next_power_of_two().max(LEAST_SLOTS) + WINDOW).max(self.values.len());
        self.values.try_reserve_exact(values - self.values.len()).map_err(exhausted)?;
        self.values.resize(values, 0);
        let refs = refs.next_power_of_two().max(self.refs.len());
        self.refs.try_reserve_exact(refs - self.refs.len()).map_err(exhausted)?;
        self.refs.resize(refs, Ref::Null);
        Ok(())
    }

    #[cold]
    fn overflow(&self) -> Error {
        Error::exhausted(format!("the VM stack of {} bytes is full at a depth of {} calls", self.limit, self.frames.len()))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.end_call();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value_slots: usize) -> Body {
        Body {
            code: Box::default(),
            pcs: Box::default(),
            late_pcs: Box::default(),
            lists: Box::default(),
            messages: Box::default(),
            calls: Box::default(),
            zeroed: Box::default(),
            value_slots,
            ref_slots: 0,
        }
    }

    /// Room for three frames by the limit; in memory there is more, as the stack grows by powers of two.
    #[test]
    fn what_is_at_hand_ends_at_the_limit_too() {
        const SLOTS: usize = 8;
        let limit = 3 * (SLOTS * size_of::<u32>() + size_of::<Frame>());
        let mut stack = Stack::new(limit, Arc::default());
        stack.frames.reserve(16);
        stack.push(0, 0, &body(SLOTS)).unwrap();
        assert!(stack.push_at_hand(0, 0, &body(SLOTS), 1).is_some());
        assert!(stack.push_at_hand(0, 0, &body(SLOTS + 1), 1).is_none());
        assert!(stack.push_at_hand(0, 0, &body(SLOTS), 1).is_some());
        assert!(stack.push_at_hand(0, 0, &body(0), 1).is_none());
        assert!(stack.push(0, 0, &body(0)).is_err());
        assert_eq!((stack.frames.len(), stack.top), (3, (3 * SLOTS, 0)));
    }
}
