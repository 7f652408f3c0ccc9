//! Tests of the unpacker: the published example, a reference unpacker, arbitrary bytes.

use super::*;
use proptest::prelude::*;
use vmfb_vm::abi::{Argument, ArgumentLayout, reference_slot};
use vmfb_vm::{Buffer, Ref, Status};

const SIGNATURES: [Signature; 2] = [Signature::Ordinal, Signature::Function];
const LAYOUTS: [Layout; 2] = [Layout::Packed, Layout::Aligned];

/// A dispatch in plain Rust.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    executable: ReferenceSlot,
    target: i64,
    workgroup_count: [i32; 3],
    constants: Vec<u32>,
    bindings: Vec<(ReferenceSlot, i64, i64)>,
}

fn plain(arguments: &DispatchArguments<'_>) -> Plain {
    Plain {
        executable: *arguments.executable,
        target: match arguments.target {
            Target::Ordinal(ordinal) => ordinal.into(),
            Target::Function(function) => function,
        },
        workgroup_count: arguments.workgroup_count,
        constants: arguments.constants().collect(),
        bindings: arguments.bindings().map(|binding| (*binding.buffer, binding.offset, binding.length)).collect(),
    }
}

/// The reference unpacker: walks the positions of the published table, in 128-bit arithmetic, and copies.
fn reference(signature: Signature, layout: Layout, buffer: &[u8]) -> Result<Plain, Status> {
    let slice = |at: i128, length: i128| -> Result<Vec<u8>, Status> {
        if at < 0 || length < 0 || at + length > buffer.len() as i128 {
            return Err(Status::InvalidArgument);
        }
        Ok(buffer[at as usize..(at + length) as usize].to_vec())
    };
    let i32_at = |at: i128| slice(at, 4).map(|bytes| i32::from_le_bytes(bytes.try_into().unwrap()));
    let i64_at = |at: i128| slice(at, 8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()));
    let slot_at = |at: i128| slice(at, 16).map(|bytes| ReferenceSlot::try_from(bytes).unwrap());
    let (fixed, target) = match signature {
        Signature::Ordinal => (20, i64::from(i32_at(16)?)),
        Signature::Function => (24, i64_at(16)?),
    };
    let constant_count = i128::from(i32_at(fixed + 12)?);
    let binding_count_at = fixed + 16 + 4 * constant_count;
    let binding_count = i128::from(i32_at(binding_count_at)?);
    let mut first_binding = binding_count_at + 4;
    if layout == Layout::Aligned {
        first_binding = (first_binding + 7) / 8 * 8;
    }
    if constant_count < 0 || binding_count < 0 || first_binding + 32 * binding_count != buffer.len() as i128 {
        return Err(Status::InvalidArgument);
    }
    if binding_count > 32 {
        return Err(Status::ResourceExhausted);
    }
    let binding = |index: i128| {
        let at = first_binding + 32 * index;
        Ok((slot_at(at)?, i64_at(at + 16)?, i64_at(at + 24)?))
    };
    Ok(Plain {
        executable: slot_at(0)?,
        target,
        workgroup_count: [i32_at(fixed)?, i32_at(fixed + 4)?, i32_at(fixed + 8)?],
        constants: (0..constant_count).map(|index| i32_at(fixed + 16 + 4 * index).map(|value| value as u32)).collect::<Result<_, _>>()?,
        bindings: (0..binding_count).map(binding).collect::<Result<_, _>>()?,
    })
}

fn unpacked(signature: Signature, layout: Layout, buffer: &[u8]) -> Result<Plain, Status> {
    unpack(signature, layout, buffer).map(|arguments| plain(&arguments)).map_err(|error| error.status())
}

/// A dispatch as the VM packs it, and the same in plain Rust.
fn packed(signature: Signature, layout: Layout, constant_count: u16, binding_count: u16) -> (Vec<u8>, Plain) {
    let references: Vec<Ref> =
        (0..=binding_count).map(|index| if index % 5 == 4 { Ref::Null } else { Buffer::constant([]).into() }).collect();
    let slot = |index: u16| reference_slot(index.into(), &references[usize::from(index)]);
    let constants: Vec<u32> = (0..constant_count).map(|index| 0xC000_0000 | u32::from(index)).collect();
    let binding = |index: u16| (slot(index + 1), 0x0000_0001_0000_0001 * i64::from(index) - 5, i64::MAX - i64::from(index));
    let bindings: Vec<_> = (0..binding_count).map(binding).collect();
    let (function, grid) = (0x7000_0002_8000_0001u64, [-1i32, 2, i32::MAX]);
    let mut values = match signature {
        Signature::Ordinal => vec![function as u32],
        Signature::Function => vec![function as u32, (function >> 32) as u32],
    };
    values.extend(grid.map(|count| count as u32));
    values.extend(&constants);
    values.extend(
        bindings
            .iter()
            .flat_map(|(_, offset, length)| [*offset as u32, (*offset as u64 >> 32) as u32, *length as u32, (*length as u64 >> 32) as u32]),
    );
    let layout = ArgumentLayout::new(&signature.convention().parse().unwrap(), layout);
    let mut buffer = Vec::new();
    layout.write(&values, &references, &[constant_count, binding_count], &mut buffer).unwrap();
    let target = match signature {
        Signature::Ordinal => i64::from(function as u32 as i32),
        Signature::Function => function as i64,
    };
    (buffer, Plain { executable: slot(0), target, workgroup_count: grid, constants, bindings })
}

/// `0rIiiiCiDCrIID_v` with 4 constants and 3 bindings, aligned: positions 0, 16, 24, 28, 32, count 36, constants 40 to 55, count
/// 56, bindings 64, 96, 128, end 160. Written by hand.
#[test]
fn the_published_example_is_unpacked() {
    let mut buffer = vec![0u8; 160];
    let mut put = |at: usize, bytes: &[u8]| buffer[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[1, 0, 0, 0, 3]);
    put(16, &[2]);
    put(24, &[5]);
    put(28, &[6]);
    put(32, &[7]);
    put(36, &[4]);
    for index in 0..4 {
        put(40 + 4 * index, &[10 + index as u8]);
    }
    put(56, &[3]);
    for index in 0..3 {
        put(64 + 32 * index, &[2 + index as u8, 0, 0, 0, 1]);
        put(80 + 32 * index, &[20 + index as u8]);
        put(88 + 32 * index, &[30 + index as u8]);
    }
    let arguments = unpack(Signature::Function, Layout::Aligned, &buffer).unwrap();
    assert_eq!((arguments.target, arguments.workgroup_count), (Target::Function(2), [5, 6, 7]));
    assert_eq!(arguments.executable[..5], [1, 0, 0, 0, 3]);
    assert_eq!(arguments.constants().collect::<Vec<_>>(), [10, 11, 12, 13]);
    let bindings: Vec<_> = arguments.bindings().map(|binding| (binding.buffer[0], binding.offset, binding.length)).collect();
    assert_eq!(bindings, [(2, 20, 30), (3, 21, 31), (4, 22, 32)]);
}

/// Steps through counts and lengths. Miri, some thousand times slower, looks at some of them.
const STEP: usize = if cfg!(miri) { 13 } else { 1 };

#[test]
fn every_count_is_unpacked_in_every_form() {
    for signature in SIGNATURES {
        for layout in LAYOUTS {
            let counts = || (0..=40).step_by(STEP);
            for (constants, bindings) in counts().flat_map(|constants| counts().map(move |bindings| (constants, bindings))) {
                let (buffer, wanted) = packed(signature, layout, constants, bindings);
                let found = unpacked(signature, layout, &buffer);
                assert_eq!(found, reference(signature, layout, &buffer), "{signature:?} {layout:?} {constants} {bindings}");
                let wanted = if bindings > 32 { Err(Status::ResourceExhausted) } else { Ok(wanted) };
                assert_eq!(found, wanted, "{signature:?} {layout:?} {constants} {bindings}");
            }
        }
    }
}

#[test]
fn every_other_length_is_refused() {
    for signature in SIGNATURES {
        for layout in LAYOUTS {
            for (constants, bindings) in [(0, 0), (1, 0), (0, 1), (3, 2), (4, 3)] {
                let (mut buffer, _) = packed(signature, layout, constants, bindings);
                for length in (0..buffer.len()).step_by(STEP) {
                    assert_eq!(unpacked(signature, layout, &buffer[..length]), Err(Status::InvalidArgument), "cut to {length}");
                }
                for _ in 0..40 {
                    buffer.push(0);
                    assert_eq!(unpacked(signature, layout, &buffer), Err(Status::InvalidArgument), "extended to {}", buffer.len());
                }
            }
        }
    }
}

#[test]
fn negative_and_absurd_counts_are_refused() {
    for (signature, count_at) in [(Signature::Ordinal, 32), (Signature::Function, 36)] {
        for layout in LAYOUTS {
            let (buffer, _) = packed(signature, layout, 2, 1);
            for at in [count_at, count_at + 4 + 2 * 4] {
                for count in [-1, -2, i32::MIN, i32::MAX, 1 << 30, 3, 0] {
                    let mut buffer = buffer.clone();
                    buffer[at..at + 4].copy_from_slice(&i32::to_le_bytes(count));
                    let found = unpacked(signature, layout, &buffer);
                    assert_eq!(found, Err(Status::InvalidArgument), "{signature:?} {layout:?} {count} at {at}");
                }
            }
        }
    }
}

/// In the aligned layout a dispatch without bindings ends at a multiple of 8 too, so that an odd number of constants (an even
/// one in the old form) leaves 4 bytes.
#[test]
fn a_dispatch_without_bindings_is_padded_to_its_alignment() {
    let length = |signature, layout, constants| packed(signature, layout, constants, 0).0.len();
    for (constants, ordinal, function) in [(0, 40, 48), (1, 48, 48), (2, 48, 56), (3, 56, 56)] {
        assert_eq!(length(Signature::Ordinal, Layout::Aligned, constants), ordinal);
        assert_eq!(length(Signature::Function, Layout::Aligned, constants), function);
        assert_eq!(length(Signature::Ordinal, Layout::Packed, constants), 40 + 4 * usize::from(constants));
        assert_eq!(length(Signature::Function, Layout::Packed, constants), 44 + 4 * usize::from(constants));
    }
}

fn forms() -> impl Strategy<Value = (Signature, Layout)> {
    (proptest::sample::select(&SIGNATURES[..]), proptest::sample::select(&LAYOUTS[..]))
}

/// Bytes with small counts where the counts stand, so that many of them are well-formed.
fn nearly_well_formed() -> impl Strategy<Value = (Signature, Layout, Vec<u8>)> {
    let change = (any::<prop::sample::Index>(), any::<u8>());
    (forms(), 0u16..8, 0u16..36, proptest::collection::vec(change, 0..4), -40i32..40).prop_map(
        |((signature, layout), constants, bindings, changes, resize)| {
            let (mut buffer, _) = packed(signature, layout, constants, bindings);
            for (index, byte) in changes {
                let at = index.index(buffer.len());
                buffer[at] = byte;
            }
            // One time in two the length stays.
            if resize > 0 {
                buffer.resize(buffer.len().saturating_add_signed(resize as isize - 20), 0);
            }
            (signature, layout, buffer)
        },
    )
}

proptest! {
    #[test]
    fn any_bytes_are_unpacked_or_refused((signature, layout) in forms(), buffer in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(unpacked(signature, layout, &buffer), reference(signature, layout, &buffer));
    }

    #[test]
    fn changed_dispatches_are_unpacked_or_refused((signature, layout, buffer) in nearly_well_formed()) {
        let found = unpacked(signature, layout, &buffer);
        prop_assert_eq!(&found, &reference(signature, layout, &buffer));
        if found.is_ok() {
            let general = ArgumentLayout::new(&signature.convention().parse().unwrap(), layout).read(&buffer).unwrap();
            prop_assert!(matches!(&general[..], [Argument::Reference(slot), ..] if *slot == found.unwrap().executable));
        }
    }
}
