//! Ctrl-C and requests to end: the first interrupts what runs, so that the tool ends with a message and nothing half-written. As
//! machine code may not look, the process ends anyway a few seconds later, or with the second signal.
//!
//! Signals go to processes, so what is known of them is global here, as nothing else is.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;
use vmfb::InterruptHandle;

/// The exit code that a signal asks for: 128 and its number. 0 before the first.
static ASKED: AtomicU8 = AtomicU8::new(0);

/// Ends what runs now.
static RUNNING: Mutex<Option<InterruptHandle>> = Mutex::new(None);

/// From now on the first signal interrupts the computations of a store, instead of those of the store before.
pub fn watch(handle: InterruptHandle) {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(listen);
    let mut running = running();
    if exit_code().is_some() {
        handle.interrupt();
    }
    *running = Some(handle);
}

/// What to exit with if a signal has asked for the end.
pub fn exit_code() -> Option<ExitCode> {
    match ASKED.load(Ordering::Relaxed) {
        0 => None,
        code => Some(ExitCode::from(code)),
    }
}

fn running() -> MutexGuard<'static, Option<InterruptHandle>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So long what was interrupted may take to notice, and the tool to report it.
const GRACE: Duration = Duration::from_secs(5);

/// Called on a thread of its own, not in the signal's handler.
fn asked(code: u8) {
    let running = running();
    let first = ASKED.swap(code, Ordering::Relaxed) == 0;
    match &*running {
        Some(handle) if first => {
            handle.interrupt();
            let end = move || {
                std::thread::sleep(GRACE);
                eprintln!("the interrupted computation does not look for interruptions: ended after {} s", GRACE.as_secs());
                std::process::exit(code.into());
            };
            // Without the thread the second signal still ends the process.
            let _ = std::thread::Builder::new().name("grace".to_owned()).spawn(end);
        }
        _ => std::process::exit(code.into()),
    }
}

/// Without a thread that listens, signals do what they always do.
#[cfg(unix)]
fn listen() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
    let wait = move || signals.forever().for_each(|signal| asked(u8::try_from(128 + signal).unwrap_or(u8::MAX)));
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
}

#[cfg(windows)]
fn listen() {
    let _ = ctrlc::set_handler(|| asked(130));
}

#[cfg(not(any(unix, windows)))]
fn listen() {}
