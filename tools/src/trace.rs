//! What `-v` shows: spans and events of the runtime, on the standard error.

use tracing::Level;
use tracing_subscriber::fmt::format::FmtSpan;

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
