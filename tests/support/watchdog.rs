//! Tests of things that might never end.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// So long may a test take on any machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs a test on a thread of its own, and fails if it does not end.
#[track_caller]
pub fn watched(body: impl FnOnce() + Send + 'static) {
    let (done, end) = channel();
    let test = thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        panic!("the test has not ended after {PATIENCE:?}");
    }
    if let Err(panic) = test.join() {
        std::panic::resume_unwind(panic);
    }
}
