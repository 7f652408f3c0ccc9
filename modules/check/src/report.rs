//! Where failed expectations are kept.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Failures that are kept word by word; of the rest only the number is.
const MOST_KEPT: usize = 100;

/// An expectation that was not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the function, for example `expect_eq`.
    pub function: &'static str,
    /// What was found and what was wanted.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "check.{}: {}", self.function, self.message)
    }
}

/// Failed expectations of the stores that use one [`crate::Check`]. Clones are the same report.
#[derive(Clone, Debug, Default)]
pub struct CheckReport(Arc<Mutex<Failures>>);

#[derive(Debug, Default)]
struct Failures {
    kept: Vec<Failure>,
    count: u64,
}

impl CheckReport {
    /// A report without failures.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many expectations were not met, since the failures were last taken.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// The failures, in the order in which they happened, which are then forgotten. At most 100 are kept; [`CheckReport::count`]
    /// tells of more.
    pub fn take(&self) -> Vec<Failure> {
        let mut failures = self.lock();
        failures.count = 0;
        std::mem::take(&mut failures.kept)
    }

    pub(crate) fn add(&self, function: &'static str, message: String) {
        let mut failures = self.lock();
        failures.count = failures.count.saturating_add(1);
        if failures.kept.len() < MOST_KEPT {
            failures.kept.push(Failure { function, message });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
