//! The unpacker of dispatch arguments: total on any bytes, and it accepts exactly the buffers whose length follows from their
//! counts.

use vmfb_module_hal_loader::shim::{MAXIMUM_BINDINGS, Signature, unpack};
use vmfb_vm::abi::Layout;

/// The first byte chooses signature and layout, the rest is the buffer.
pub fn check(bytes: &[u8]) {
    let Some((choice, buffer)) = bytes.split_first() else { return };
    let signature = if choice & 1 == 0 { Signature::Ordinal } else { Signature::Function };
    let layout = if choice & 2 == 0 { Layout::Packed } else { Layout::Aligned };
    let unpacked = unpack(signature, layout, buffer);
    let expected = expected_counts(signature, layout, buffer);
    match unpacked {
        Ok(arguments) => {
            let counts = (arguments.constants().len(), arguments.bindings().len());
            assert_eq!(Some(counts), expected);
            let constants = arguments.constants().map(u64::from).sum::<u64>();
            let bindings = arguments.bindings().fold(0_i64, |sum, binding| sum.wrapping_add(binding.offset).wrapping_add(binding.length));
            std::hint::black_box((constants, bindings));
        }
        Err(error) => assert_eq!(expected, None, "{error}"),
    }
}

/// Numbers of constants and bindings by the published positions, in arithmetic that cannot wrap; `None` if they do not fit.
fn expected_counts(signature: Signature, layout: Layout, buffer: &[u8]) -> Option<(usize, usize)> {
    let count_at = |at: i128| {
        let at = usize::try_from(at).ok()?;
        let bytes = buffer.get(at..at.checked_add(4)?)?;
        Some(i128::from(i32::from_le_bytes(bytes.try_into().ok()?))).filter(|count| *count >= 0)
    };
    let first = if signature == Signature::Ordinal { 32 } else { 36 };
    let constants = count_at(first)?;
    let bindings = count_at(first + 4 + 4 * constants)?;
    let mut end = first + 8 + 4 * constants;
    if layout == Layout::Aligned {
        end = (end + 7) / 8 * 8;
    }
    let fits = end + 32 * bindings == buffer.len() as i128 && bindings <= MAXIMUM_BINDINGS as i128;
    fits.then_some((constants as usize, bindings as usize))
}
