//! `descriptor_set_layout.create` and `pipeline_layout.create`: what entry points of programs before 2024-08 are bound to.

use crate::State;
use crate::program::Slice;
use smallvec::SmallVec;
use vmfb_vm::{Arguments, Call, Error, Handle, RefObject, Result};

/// Descriptor sets of a pipeline layout.
const MAXIMUM_SETS: usize = 2;

/// Bindings of a descriptor set.
const MAXIMUM_BINDINGS: usize = 32;

/// 32-bit constants of a pipeline layout.
const MAXIMUM_CONSTANTS: usize = 64;

/// `!hal.descriptor_set_layout`: the bindings of one set.
pub(crate) struct DescriptorSetLayout {
    /// Ordinals of the bindings, in the order in which kernels see them.
    ordinals: SmallVec<[u8; 8]>,
}

impl RefObject for DescriptorSetLayout {
    const TYPE_NAME: &'static str = "hal.descriptor_set_layout";
}

/// `!hal.pipeline_layout`: the constants and sets of one entry point.
pub(crate) struct PipelineLayout {
    constants: usize,
    sets: SmallVec<[Handle<DescriptorSetLayout>; 1]>,
}

impl RefObject for PipelineLayout {
    const TYPE_NAME: &'static str = "hal.pipeline_layout";
}

/// Constants and bindings that a command buffer keeps from dispatch to dispatch.
pub(crate) struct BoundState {
    constants: [u32; MAXIMUM_CONSTANTS],
    cells: [[Option<Slice>; MAXIMUM_BINDINGS]; MAXIMUM_SETS],
}

impl Default for BoundState {
    fn default() -> Self {
        Self { constants: [0; MAXIMUM_CONSTANTS], cells: Default::default() }
    }
}

impl BoundState {
    /// Replaces constants from the one with this index on.
    pub(crate) fn push_constants(&mut self, first: u32, arguments: &mut Arguments<'_>) -> Result<()> {
        let count = arguments.span()?;
        let first = first as usize;
        let range = first.checked_add(count).and_then(|end| self.constants.get_mut(first..end));
        let out_of_range = || Error::out_of_range(format!("{count} constants from constant {first} on; there are {MAXIMUM_CONSTANTS}"));
        for constant in range.ok_or_else(out_of_range)? {
            *constant = arguments.u32()?;
        }
        Ok(())
    }

    /// Replaces the bindings of a set that the arguments name.
    pub(crate) fn push_descriptor_set(&mut self, set: u32, arguments: &mut Arguments<'_>) -> Result<()> {
        let cells = self.cells.get_mut(set as usize);
        let cells = cells.ok_or_else(|| Error::out_of_range(format!("descriptor set {set}; there are {MAXIMUM_SETS}")))?;
        for _ in 0..arguments.span()? {
            let ordinal = arguments.u32()?;
            let cell = cells.get_mut(ordinal as usize);
            let cell = cell.ok_or_else(|| Error::out_of_range(format!("binding {ordinal} of a set; there are {MAXIMUM_BINDINGS}")))?;
            *cell = Some(Slice::read_slot_first(arguments)?);
        }
        Ok(())
    }

    /// The constants that a dispatch with this layout gets.
    pub(crate) fn constants(&self, layout: &PipelineLayout) -> &[u32] {
        self.constants.get(..layout.constants).unwrap_or(&self.constants)
    }

    /// The bindings that a dispatch with this layout gets, densely packed.
    pub(crate) fn bindings(&self, layout: &PipelineLayout) -> Result<SmallVec<[Slice; 16]>> {
        let mut bindings = SmallVec::new();
        for (number, (set, cells)) in layout.sets.iter().zip(&self.cells).enumerate() {
            for ordinal in &set.ordinals {
                let cell = cells.get(usize::from(*ordinal)).and_then(Option::as_ref);
                let unset = || Error::precondition(format!("binding {ordinal} of descriptor set {number} was never pushed"));
                bindings.push(cell.ok_or_else(unset)?.clone());
            }
        }
        Ok(bindings)
    }
}

/// `riCiiiD_r`: device, flags, tuples of ordinal, descriptor type and flags.
pub(crate) fn create_set(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    call.arguments.i32()?;
    let mut ordinals = SmallVec::new();
    for _ in 0..call.arguments.span()? {
        let ordinal = call.arguments.u32()?;
        // Kernels of the host do not tell types of bindings apart, nor enforce their flags.
        call.arguments.i32()?;
        call.arguments.i32()?;
        let small = u8::try_from(ordinal).ok().filter(|ordinal| usize::from(*ordinal) < MAXIMUM_BINDINGS);
        let small = small.ok_or_else(|| Error::out_of_range(format!("binding {ordinal} of a set; there are {MAXIMUM_BINDINGS}")))?;
        if ordinals.contains(&small) {
            return Err(Error::invalid(format!("binding {ordinal} stands twice in a descriptor set layout")));
        }
        ordinals.push(small);
    }
    call.results.push_reference(call.context.new_object(DescriptorSetLayout { ordinals })?);
    Ok(())
}

/// `riCrD_r`: device, number of constants, descriptor set layouts.
pub(crate) fn create_pipeline(call: &mut Call<'_, State>) -> Result<()> {
    call.state.check_device(call.arguments.reference()?)?;
    let constants = call.arguments.u32()? as usize;
    if constants > MAXIMUM_CONSTANTS {
        return Err(Error::out_of_range(format!("{constants} constants in a pipeline layout; at most {MAXIMUM_CONSTANTS} are possible")));
    }
    let count = call.arguments.span()?;
    if count > MAXIMUM_SETS {
        return Err(Error::out_of_range(format!("{count} descriptor sets in a pipeline layout; at most {MAXIMUM_SETS} are possible")));
    }
    let mut sets = SmallVec::new();
    for _ in 0..count {
        sets.push(call.arguments.handle("the descriptor set layout")?);
    }
    call.results.push_reference(call.context.new_object(PipelineLayout { constants, sets })?);
    Ok(())
}
