//! Tensors that programs show while they run.

use crate::{BufferView, ViewText};
use std::fmt;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use vmfb_vm::{Handle, Meter, Result};

/// Tensors that a program shows under a key. Its `Display` is the form of the field's tools: `=== key ===`, one view per line,
/// an empty line.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    /// The key; control characters are escaped.
    pub key: &'a str,
    /// The tensors.
    pub views: &'a [Handle<BufferView>],
    /// Limits of the program: the text is cut off where they are reached.
    pub meter: &'a Meter,
}

/// Receives traces. An error ends the program's call.
pub type TraceSink = Arc<dyn Fn(&Trace<'_>) -> Result<()> + Send + Sync>;

/// The sink that prints traces to stderr.
pub fn trace_to_stderr() -> TraceSink {
    Arc::new(|trace| {
        let mut out = BufWriter::new(std::io::stderr().lock());
        // A trace nobody can read is no reason to end the program.
        let _ = write!(out, "{trace}").and_then(|()| out.flush());
        Ok(())
    })
}

impl fmt::Display for Trace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== {} ===", self.key)?;
        self.views.iter().try_for_each(|view| writeln!(f, "{}", ViewText::new(view).within(self.meter)))?;
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The official tool's stderr for the same trace.
    #[test]
    fn a_trace_prints_as_in_the_tools() {
        let view = |values: &[f32]| Handle::new(BufferView::from_f32(&[values.len() as u64], values).unwrap());
        let views = [view(&[2.0, 2.0]), view(&[1.0, 1.0])];
        assert_eq!(Trace { key: "key", views: &views, meter: &Meter::default() }.to_string(), "=== key ===\n2xf32=2 2\n2xf32=1 1\n\n");
    }
}
