//! Constants that machine code is given as bindings.
//!
//! Inline programs of 2023 and 2024 bind the constants of their module directly, and only read them. Nothing says so, though: a
//! binding of machine code may be an output. So machine code gets private views of constants, one for each call.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use vmfb_hal::{Binding, Bytes, Writer};
use vmfb_memory::{Charge, Span};
use vmfb_vm::{Meter, Result};

/// Constants that are remembered; no module has as many tensors.
const MOST: usize = 1 << 14;

/// What a constant costs besides its view.
const CONSTANT_BYTES: u64 = 512;

/// The constants that were bound in a store, by address and length.
#[derive(Default)]
pub(crate) struct Constants {
    known: HashMap<(usize, usize), Known>,
}

struct Known {
    /// Refers to the constant, so that its address stays its own.
    bytes: Bytes,
    _charge: Charge,
}

impl Constants {
    /// What machine code may write in place of a bound range of a constant.
    pub(crate) fn writable(&mut self, binding: &Binding<'_>, meter: &mut Meter) -> Result<Span> {
        let constant = binding.span;
        let key = (constant.address().addr(), constant.len());
        if self.known.len() >= MOST && !self.known.contains_key(&key) {
            self.known.clear();
        }
        let known = match self.known.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let charge = meter.account().hold(CONSTANT_BYTES)?;
                vacant.insert(Known { bytes: Bytes::constant(constant.clone()), _charge: charge })
            }
        };
        known.bytes.slice(binding.offset, binding.length)?.writable(Writer::MachineCode, meter)
    }

    /// Forgets all constants.
    pub(crate) fn clear(&mut self) {
        self.known = HashMap::new();
    }
}
