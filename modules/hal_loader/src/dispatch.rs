//! `executable.dispatch`: checks what the arguments name and runs the grid.

use crate::constants::Constants as KnownConstants;
use crate::shim::{DispatchArguments, MAXIMUM_BINDINGS, Signature, Target, unpack};
use smallvec::SmallVec;
use vmfb_hal::{Binding, Dispatch, Executable, ExecutableReference, LOST_CONSTANT_HINT};
use vmfb_memory::Span;
use vmfb_vm::abi::{Layout, resolve_reference};
use vmfb_vm::{Error, Meter, Ref, Result};

/// Most workgroups of one dispatch. No compiled grid comes near; a count that wrapped does.
const MAXIMUM_WORKGROUPS: u64 = u32::MAX as u64;

/// Constants of a dispatch that cannot be read in place; more are allocated.
type Constants = SmallVec<[u32; 64]>;

/// Bindings of a dispatch.
type Bindings<'a> = SmallVec<[Binding<'a>; MAXIMUM_BINDINGS]>;

/// Private views of constants, and which bindings they stand for.
type Views = SmallVec<[(usize, Span); 4]>;

/// Unpacks the arguments of a dispatch, checks them and runs its grid.
pub(crate) fn dispatch(
    signature: Signature,
    buffer: &[u8],
    references: &[Ref],
    known: &mut KnownConstants,
    meter: &mut Meter,
    concurrency: usize,
) -> Result<()> {
    let arguments = unpack(signature, Layout::Aligned, buffer)?;
    let executable = resolve_reference(arguments.executable, references)?;
    let executable = &*executable.object::<ExecutableReference>("the executable of a dispatch")?.0;
    let workgroup_count = workgroup_count(arguments.workgroup_count)?;
    let Some(export) = export(executable, arguments.target, workgroup_count)? else { return Ok(()) };
    let private;
    let mut bindings = Bindings::new();
    collect_bindings(executable, export, &arguments, references, &mut bindings)?;
    check_counts(executable, export, arguments.constants().len(), bindings.len())?;
    let mut copied = Constants::new();
    let constants = arguments.constants_in_place().unwrap_or_else(|| {
        copied.extend(arguments.constants());
        &copied
    });
    let [x, y, z] = workgroup_count;
    let _entered = tracing::debug_span!(
        "dispatch",
        export,
        name = executable.export(export).and_then(|export| export.name).unwrap_or(""),
        x,
        y,
        z,
        constants = constants.len(),
        bindings = bindings.len()
    )
    .entered();
    if workgroup_count.contains(&0) {
        return Ok(());
    }
    private = private_views(executable, &bindings, known, meter)?;
    for (index, span) in &private {
        if let Some(binding) = bindings.get_mut(*index) {
            *binding = Binding { span, offset: 0, length: span.len() };
        }
    }
    executable.dispatch(meter, &Dispatch { export, workgroup_count, constants, bindings: &bindings, concurrency })
}

/// The counts if they are counts, and the grid is not absurdly large.
fn workgroup_count(count: [i32; 3]) -> Result<[u32; 3]> {
    let [x, y, z] = count;
    let ([Ok(a), Ok(b), Ok(c)], true) = (count.map(u32::try_from), count.iter().all(|count| *count >= 0)) else {
        return Err(Error::invalid(format!("a dispatch of {x} x {y} x {z} workgroups; a count is negative")));
    };
    // Two counts below 2^31 do not overflow; the third may.
    let product = (u64::from(a) * u64::from(b)).checked_mul(u64::from(c));
    if product.is_none_or(|product| product > MAXIMUM_WORKGROUPS) {
        return Err(Error::exhausted(format!("a dispatch of {x} x {y} x {z} workgroups; at most {MAXIMUM_WORKGROUPS} are possible")));
    }
    Ok([a, b, c])
}

/// The ordinal of the export. `None` where an entry point is not there but no workgroup asks for it: the official runtime
/// notices only when it calls.
fn export(executable: &dyn Executable, target: Target, workgroup_count: [u32; 3]) -> Result<Option<usize>> {
    let count = executable.export_count();
    match target {
        Target::Function(function) => match usize::try_from(function as u64) {
            Ok(export) if export < count => Ok(Some(export)),
            _ => Err(Error::out_of_range(format!("function {} of an executable with {count} exports", function as u64))),
        },
        Target::Ordinal(ordinal) => match usize::try_from(ordinal) {
            Ok(export) if export < count => Ok(Some(export)),
            _ if workgroup_count.contains(&0) => Ok(None),
            _ => Err(Error::invalid(format!("entry point {ordinal} of an executable with {count} exports"))),
        },
    }
}

/// Collects the bound ranges, each in its buffer; into place, as they are too large to be moved on every dispatch.
#[inline]
fn collect_bindings<'a>(
    executable: &dyn Executable,
    export: usize,
    arguments: &DispatchArguments<'_>,
    references: &'a [Ref],
    bindings: &mut Bindings<'a>,
) -> Result<()> {
    for (index, binding) in arguments.bindings().enumerate() {
        let Ref::Buffer(buffer) = resolve_reference(binding.buffer, references)? else {
            return Err(no_buffer(executable, export, index, resolve_reference(binding.buffer, references)?));
        };
        let available = buffer.len();
        let range = usize::try_from(binding.offset).ok().zip(usize::try_from(binding.length).ok());
        match range {
            Some((offset, length)) if available.checked_sub(offset).is_some_and(|rest| length <= rest) => {
                bindings.push(Binding { span: buffer.span(), offset, length });
            }
            _ => return Err(out_of_range(executable, export, index, (binding.offset, binding.length), available)),
        }
    }
    Ok(())
}

/// What machine code gets in place of constants, by index of the binding. Kernels whose writes are checked get the constants.
#[inline]
fn private_views(executable: &dyn Executable, bindings: &Bindings<'_>, known: &mut KnownConstants, meter: &mut Meter) -> Result<Views> {
    let mut views = Views::new();
    if executable.checks_writes() {
        return Ok(views);
    }
    for (index, binding) in bindings.iter().enumerate().filter(|(_, binding)| !binding.span.is_writable()) {
        views.push((index, known.writable(binding, meter)?));
    }
    Ok(views)
}

/// Compares with what the export declares, where it does.
fn check_counts(executable: &dyn Executable, export: usize, constants: usize, bindings: usize) -> Result<()> {
    let Some(declared) = executable.export(export) else { return Ok(()) };
    for (declared, given, what) in [(declared.constant_count, constants, "constants"), (declared.binding_count, bindings, "bindings")] {
        if declared.is_some_and(|declared| declared != given) {
            let wanted = declared.unwrap_or_default();
            return Err(Error::invalid(format!("{} takes {wanted} {what}, {given} were given", describe(executable, export))));
        }
    }
    Ok(())
}

#[cold]
fn no_buffer(executable: &dyn Executable, export: usize, index: usize, reference: &Ref) -> Error {
    let export = describe(executable, export);
    if reference.is_null() {
        return Error::invalid(format!("binding {index} of {export} is null; {LOST_CONSTANT_HINT}"));
    }
    Error::invalid(format!("binding {index} of {export} is a !{}, wanted a !vm.buffer", reference.type_name()))
}

#[cold]
fn out_of_range(executable: &dyn Executable, export: usize, index: usize, (offset, length): (i64, i64), available: usize) -> Error {
    let export = describe(executable, export);
    Error::out_of_range(format!(
        "binding {index} of {export}: the range of {length} bytes at offset {offset} does not lie in the buffer of {available} bytes"
    ))
}

/// An export for messages: its number, and its name where it has one.
fn describe(executable: &dyn Executable, export: usize) -> String {
    match executable.export(export).and_then(|export| export.name) {
        Some(name) => format!("export {export} ({})", name.escape_debug()),
        None => format!("export {export}"),
    }
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
