//! The check native module: expectations of test programs.
//!
//! An expectation that is not met does not stop the program; it is added to a [`CheckReport`], which the host looks at when the
//! program has ended. Programs import the functions as optional: without this module they run, and check nothing.
//!
//! ```
//! use vmfb_module_check::{Check, CheckReport};
//!
//! # fn main() -> vmfb_vm::Result<()> {
//! let report = CheckReport::new();
//! let mut linker = vmfb_vm::Linker::new();
//! linker.add_native(Check::new(report.clone()))?;
//! // … instantiate a module, call its functions …
//! assert!(report.take().is_empty());
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod compare;
mod report;

pub use report::{CheckReport, Failure};

use compare::Tolerance;
use std::fmt;
use vmfb_hal::BufferView;
use vmfb_vm::{Call, Engine, NativeFunction, NativeModule, Result};

/// The `check` module.
#[derive(Clone)]
pub struct Check {
    report: CheckReport,
}

impl Check {
    /// The module; failures go to this report.
    pub fn new(report: CheckReport) -> Self {
        Self { report }
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").finish_non_exhaustive()
    }
}

impl NativeModule for Check {
    type State = CheckReport;

    fn name(&self) -> &str {
        "check"
    }

    /// All forms since 2023: without a device, with one (since 2023-11), with tolerances (since 2025-03).
    fn functions(&self) -> Vec<NativeFunction<CheckReport>> {
        vec![
            NativeFunction::new("expect_true", "0i_v", expect_true),
            NativeFunction::new("expect_false", "0i_v", expect_false),
            NativeFunction::new("expect_all_true", "0r_v", expect_all_true),
            NativeFunction::new("expect_all_true", "0rr_v", |call| after_device(call, expect_all_true)),
            NativeFunction::new("expect_eq", "0rr_v", expect_equal),
            NativeFunction::new("expect_eq", "0rrr_v", |call| after_device(call, expect_equal)),
            NativeFunction::new("expect_almost_eq", "0rr_v", expect_almost_equal),
            NativeFunction::new("expect_almost_eq", "0rrr_v", |call| after_device(call, expect_almost_equal)),
            NativeFunction::new("expect_almost_eq", "0rrrf_v", |call| after_device(call, expect_within)),
            NativeFunction::new("expect_almost_eq", "0rrrff_v", |call| after_device(call, expect_within_both)),
        ]
    }

    fn new_state(&self, _engine: &Engine) -> Result<CheckReport> {
        Ok(self.report.clone())
    }

    fn fork_state(&self, state: &CheckReport) -> Result<CheckReport> {
        Ok(state.clone())
    }
}

/// All buffers are in memory, so that the device says nothing.
fn after_device(call: &mut Call<'_, CheckReport>, body: fn(&mut Call<'_, CheckReport>) -> Result<()>) -> Result<()> {
    call.arguments.reference()?;
    body(call)
}

fn expect_true(call: &mut Call<'_, CheckReport>) -> Result<()> {
    if call.arguments.i32()? == 0 {
        call.state.add("expect_true", "the value is 0".into());
    }
    Ok(())
}

fn expect_false(call: &mut Call<'_, CheckReport>) -> Result<()> {
    match call.arguments.i32()? {
        0 => {}
        value => call.state.add("expect_false", format!("the value is {value}")),
    }
    Ok(())
}

fn expect_all_true(call: &mut Call<'_, CheckReport>) -> Result<()> {
    let view: &BufferView = call.arguments.object("the tensor of expect_all_true")?;
    if let Some(difference) = compare::all_true(view, &mut call.context.meter)? {
        call.state.add("expect_all_true", difference);
    }
    Ok(())
}

fn expect_equal(call: &mut Call<'_, CheckReport>) -> Result<()> {
    let found: &BufferView = call.arguments.object("the first tensor of expect_eq")?;
    let wanted: &BufferView = call.arguments.object("the second tensor of expect_eq")?;
    if let Some(difference) = compare::equal(found, wanted, &mut call.context.meter)? {
        call.state.add("expect_eq", difference);
    }
    Ok(())
}

/// Two tensors, and a tolerance that is fixed.
fn expect_almost_equal(call: &mut Call<'_, CheckReport>) -> Result<()> {
    expect_near(call, |_, found| Ok(Tolerance::of_old(found.element_type())))
}

/// Two tensors and the absolute tolerance.
fn expect_within(call: &mut Call<'_, CheckReport>) -> Result<()> {
    expect_near(call, |call, _| Ok(Tolerance { absolute: call.arguments.f32()?.into(), relative: 0.0 }))
}

/// Two tensors, the absolute and the relative tolerance.
fn expect_within_both(call: &mut Call<'_, CheckReport>) -> Result<()> {
    expect_near(call, |call, _| Ok(Tolerance { absolute: call.arguments.f32()?.into(), relative: call.arguments.f32()?.into() }))
}

fn expect_near(
    call: &mut Call<'_, CheckReport>,
    tolerance: fn(&mut Call<'_, CheckReport>, &BufferView) -> Result<Tolerance>,
) -> Result<()> {
    let found: &BufferView = call.arguments.object("the first tensor of expect_almost_eq")?;
    let wanted: &BufferView = call.arguments.object("the second tensor of expect_almost_eq")?;
    let tolerance = tolerance(call, found)?;
    if let Some(difference) = compare::almost_equal(found, wanted, &tolerance, &mut call.context.meter)? {
        call.state.add("expect_almost_eq", difference);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
