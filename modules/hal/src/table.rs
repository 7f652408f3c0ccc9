//! The table of functions: every name in every form that a compiler release has used.
//!
//! Forms of one function stand together, oldest first. A comment names the module versions (0 to 7) that have the form; where
//! there is none, all have it. "Nightly" forms lived for some weeks of 2024 between the versions 2 and 5.

use crate::{State, allocator, buffer, channel, command_functions as command, device, executable, fence, layout, queue_functions as queue};
use vmfb_hal::view_functions as view;
use vmfb_vm::{Call, Completion, NativeFunction, Result};

/// One function.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) convention: &'static str,
    body: Body,
}

enum Body {
    Plain(fn(&mut Call<'_, State>) -> Result<()>),
    Waiting(fn(&mut Call<'_, State>) -> Result<Completion>),
}

const fn row(name: &'static str, convention: &'static str, body: fn(&mut Call<'_, State>) -> Result<()>) -> Row {
    Row { name, convention, body: Body::Plain(body) }
}

const fn waiting(name: &'static str, convention: &'static str, body: fn(&mut Call<'_, State>) -> Result<Completion>) -> Row {
    Row { name, convention, body: Body::Waiting(body) }
}

/// The functions for a linker.
pub(crate) fn functions() -> Vec<NativeFunction<State>> {
    let function = |row: &Row| match row.body {
        Body::Plain(body) => NativeFunction::new(row.name, row.convention, body),
        Body::Waiting(body) => NativeFunction::waiting(row.name, row.convention, body),
    };
    TABLE.iter().map(function).collect()
}

fn trace(call: &mut Call<'_, State>) -> Result<()> {
    let sink = call.state.trace_sink.clone();
    view::trace(call, &sink)
}

#[rustfmt::skip]
pub(crate) static TABLE: &[Row] = &[
    row("allocator.allocate", "0riiI_r", allocator::allocate), // 0
    row("allocator.allocate", "0rIiiI_r", allocator::allocate_with_affinity), // 1..7
    row("allocator.allocate.initialized", "0riirII_r", allocator::allocate_initialized), // 0
    row("allocator.import", "0riIiirII_r", allocator::import), // 1..7
    row("allocator.map.byte_buffer", "0riiirII_r", allocator::map), // 0
    row("allocator.select", "0iiICrID_rI", allocator::select), // 6..7
    row("buffer.allocation.discard", "0r_i", buffer::discard), // 6..7
    row("buffer.allocation.is_terminal", "0r_i", buffer::is_terminal), // 6..7
    row("buffer.allocation.preserve", "0r_v", buffer::preserve), // 6..7
    row("buffer.assert", "0rrrIii_v", buffer::assert),
    row("buffer.length", "0r_I", buffer::length),
    row("buffer.load", "0rIi_i", buffer::load),
    row("buffer.store", "0irIi_v", buffer::store),
    row("buffer.subspan", "0rII_r", buffer::part),
    row("buffer_view.assert", "0rriiCID_v", view::assert),
    row("buffer_view.buffer", "0r_r", view::buffer),
    row("buffer_view.create", "0rIIiiCID_r", view::create),
    row("buffer_view.dim", "0ri_I", view::dimension),
    row("buffer_view.element_type", "0r_i", view::element_type),
    row("buffer_view.encoding_type", "0r_i", view::encoding),
    row("buffer_view.rank", "0r_i", view::rank),
    row("buffer_view.trace", "0rCrD_v", trace),
    row("channel.create", "0rIii_r", channel::create), // 0, until 2023-03
    row("channel.create", "0rIirrii_r", channel::create), // 0..5
    row("channel.create", "0rIIrrii_r", channel::create), // 6..7
    row("channel.rank_and_count", "0r_ii", channel::rank_and_count),
    row("channel.split", "0riii_r", channel::split), // 0..5
    row("channel.split", "0riiI_r", channel::split), // 6..7
    row("command_buffer.advise_buffer", "0rrIIIi_v", command::ignored), // 6..7
    row("command_buffer.begin_debug_group", "0rr_v", command::ignored),
    row("command_buffer.collective", "0rriirIIrIII_v", channel::collective), // 0..2
    row("command_buffer.collective", "0rriiiirrIIIII_v", channel::collective), // 5..7
    row("command_buffer.copy_buffer", "0rrIrII_v", command::copy), // 0..2
    row("command_buffer.copy_buffer", "0riirIrII_v", command::copy_slots), // 5
    row("command_buffer.copy_buffer", "0riirIrIII_v", command::copy_slots), // 6..7
    row("command_buffer.create", "0riii_r", command::create), // 0..2
    row("command_buffer.create", "0riiIi_r", command::create_with_affinity), // 5..7
    row("command_buffer.dispatch", "0rriiii_v", command::dispatch_bound), // 0..2
    row("command_buffer.dispatch", "0rriiiiI_v", command::dispatch_bound), // nightly
    row("command_buffer.dispatch", "0rriiiiICiDCiirIID_v", command::dispatch), // 5..6
    row("command_buffer.dispatch", "0rrIiiiICiDCiirIID_v", command::dispatch_token), // 7
    row("command_buffer.dispatch.indirect", "0rrirI_v", command::dispatch_bound_indirect), // 0..2
    row("command_buffer.dispatch.indirect", "0rriirII_v", command::dispatch_bound_indirect_slot), // nightly
    row("command_buffer.dispatch.indirect", "0rriirIICiDCiirIID_v", command::dispatch_indirect), // 5..6
    row("command_buffer.dispatch.indirect", "0rrIirIICiDCiirIID_v", command::dispatch_token_indirect), // 7
    row("command_buffer.dispatch2", "0rriiiiICiDCiirIID_v", command::dispatch), // nightly
    row("command_buffer.dispatch2.indirect", "0rriirIICiDCiirIID_v", command::dispatch_indirect), // nightly
    row("command_buffer.end_debug_group", "0r_v", command::ignored),
    row("command_buffer.execute.commands", "0rrCrIID_v", command::execute_commands), // 0..2, until 2024-07
    row("command_buffer.execution_barrier", "0riii_v", command::barrier), // 0..5
    row("command_buffer.execution_barrier", "0riiI_v", command::barrier), // 6..7
    row("command_buffer.fill_buffer", "0rrIIii_v", command::fill), // 0..2
    row("command_buffer.fill_buffer", "0rrIIiii_v", command::fill_slot), // 5
    row("command_buffer.fill_buffer", "0rrIIiIiI_v", command::fill_wide), // 6..7
    row("command_buffer.finalize", "0r_v", command::finalize),
    row("command_buffer.push_constants", "0rriCiD_v", command::push_constants), // 0..2
    row("command_buffer.push_descriptor_set", "0rriCiirIID_v", command::push_descriptor_set), // 0..2
    row("command_buffer.update_buffer", "0rrIrIIi_v", command::update), // 5
    row("command_buffer.update_buffer", "0rrIrIIiI_v", command::update), // 6..7
    row("descriptor_set_layout.create", "0riCiiiD_r", layout::create_set), // 0..2
    row("device.allocator", "0r_r", device::allocator),
    row("device.query.i64", "0rrr_iI", device::query),
    row("device.queue.alloca", "0rIrriiiI_r", queue::alloca), // 0..5
    row("device.queue.alloca", "0rIrrIiiII_r", queue::alloca_wide), // 6..7
    row("device.queue.barrier", "0rIrrI_v", queue::barrier), // 6..7
    row("device.queue.copy", "0rIrrrIrIII_v", queue::copy), // 5..7
    row("device.queue.dealloca", "0rIrrr_v", queue::dealloca), // 0..5
    row("device.queue.dealloca", "0rIrrrI_v", queue::dealloca), // 6..7
    row("device.queue.execute", "0rIrrCrD_v", queue::execute_many), // 0..5
    row("device.queue.execute", "0rIrrrI_v", queue::execute), // 6..7
    row("device.queue.execute.indirect", "0rIrrrCrIID_v", queue::execute_indirect), // 2, from 2024-07; 5
    row("device.queue.execute.indirect", "0rIrrrICrIID_v", queue::execute_indirect_flags), // 6..7
    row("device.queue.fill", "0rIrrrIIIiI_v", queue::fill), // 5..7
    row("device.queue.flush", "0rI_v", queue::flush),
    row("device.queue.read", "0rIrrrIrIIi_v", queue::read), // 1..5
    row("device.queue.read", "0rIrrrIrIII_v", queue::read), // 6..7
    row("device.queue.update", "0rIrrrIrIII_v", queue::update), // 5..7
    row("device.queue.write", "0rIrrrIrIIi_v", queue::write), // 1..5
    row("device.queue.write", "0rIrrrIrIII_v", queue::write), // 6..7
    row("devices.count", "0v_i", device::count), // 2..7
    row("devices.get", "0i_r", device::get), // 2..7
    row("ex.file.from_memory", "0rIirIIi_r", queue::file_from_memory), // 1..7
    row("ex.shared_device", "0v_r", device::shared), // 0..1
    row("executable.create", "0rrrrCrD_r", executable::create_with_layouts), // 0..2
    row("executable.create", "0rrrr_r", executable::create), // 5
    row("executable.create", "0rIrrr_r", executable::create_with_affinity), // 6..7
    row("executable.create2", "0rrrr_r", executable::create), // nightly
    row("executable.lookup.function", "0rr_I", executable::lookup), // 7
    waiting("fence.await", "0iCrD_i", fence::wait), // 0..5
    waiting("fence.await", "0iICrD_i", fence::wait_flags), // 6..7
    row("fence.create", "0ri_r", fence::create), // 0..5
    row("fence.create", "0rI_r", fence::create), // 6..7
    row("fence.fail", "0ri_v", fence::fail),
    row("fence.join", "0CrD_r", fence::join), // 0..5
    row("fence.join", "0ICrD_r", fence::join_flags), // 6..7
    row("fence.query", "0r_i", fence::query),
    row("fence.signal", "0r_v", fence::signal),
    row("pipeline_layout.create", "0riCrD_r", layout::create_pipeline), // 0..2
];

#[cfg(test)]
mod tests {
    use super::TABLE;
    use std::collections::HashSet;

    #[test]
    fn every_form_stands_once() {
        let mut seen = HashSet::new();
        for row in TABLE {
            assert!(seen.insert((row.name, row.convention)), "{} {}", row.name, row.convention);
        }
    }

    /// Against what real modules of all releases import.
    #[test]
    fn every_import_of_the_corpus_is_there() {
        let index = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/index.json")).unwrap();
        let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
        let known: HashSet<(&str, &str)> = TABLE.iter().map(|row| (row.name, row.convention)).collect();
        let mut checked = HashSet::new();
        for module in index["modules"].as_array().unwrap() {
            for import in module["imports"].as_array().into_iter().flatten() {
                let Some(name) = import["name"].as_str().unwrap().strip_prefix("hal.") else { continue };
                let convention = import["cconv"].as_str().unwrap();
                assert!(known.contains(&(name, convention)), "{name} {convention} of {}", module["file"]);
                checked.insert((name, convention));
            }
        }
        assert!(checked.len() >= 57, "{} forms are imported", checked.len());
    }
}
