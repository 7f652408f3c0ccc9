//! What `-v` shows: spans and events of the runtime, on the standard error.

use crate::failure::printable;
use std::io::Write;
use tracing::Level;
use tracing_subscriber::fmt::format::FmtSpan;
use vmfb_bytecode::decode::decode_op;
use vmfb_bytecode::disassemble::{ByteOffsets, Disassembler};
use vmfb_vm::{TracedInstruction, Tracer};

/// What `--trace_execution` does: writes each instruction to the standard error before it runs, with the function that it is in
/// and its byte offset there.
pub fn tracer() -> Tracer {
    Tracer::new(|instruction| {
        // Nothing is left to do if even this cannot be written.
        let _ = std::io::stderr().lock().write_all(line(instruction).as_bytes());
    })
}

fn line(TracedInstruction { module, function, pc }: TracedInstruction<'_>) -> String {
    let name = module.function_name(function).map_or_else(|| format!("@{function}"), str::to_owned);
    let text = match decode_op(module.body(function), pc, module.bytecode_version) {
        Ok((op, _)) => Disassembler::new(module, ByteOffsets::Hidden).instruction(&op),
        Err(error) => format!("// {error}"),
    };
    format!("[{}.{}+{pc:08X}]    {}\n", printable(&module.name), printable(&name), printable(text.trim()))
}

/// Shows warnings; with `-v` what happens and how long it takes, with `-vv` all there is.
pub fn start(verbosity: u8) {
    let (level, spans) = match verbosity {
        0 => (Level::WARN, FmtSpan::NONE),
        1 => (Level::DEBUG, FmtSpan::CLOSE),
        _ => (Level::TRACE, FmtSpan::NEW | FmtSpan::CLOSE),
    };
    let subscriber = tracing_subscriber::fmt().with_max_level(level).with_span_events(spans).with_writer(std::io::stderr).finish();
    // A process that has a subscriber keeps it.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
