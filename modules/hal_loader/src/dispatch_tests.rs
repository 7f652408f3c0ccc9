//! Tests of what a dispatch is checked for.

use super::*;
use crate::test_support::{Kernels, Seen};
use std::sync::Arc;
use vmfb_hal::Export;
use vmfb_vm::abi::ArgumentLayout;
use vmfb_vm::{Buffer, List, Status};

/// A dispatch to make: executable, target, grid, constants, bindings.
struct Case {
    executable: Ref,
    kernels: Arc<Kernels>,
    target: Target,
    grid: [i32; 3],
    constants: Vec<u32>,
    bindings: Vec<(Ref, i64, i64)>,
}

fn buffer(length: u8) -> Ref {
    let bytes: Vec<u8> = (0..length).collect();
    let span = vmfb_memory::Span::copy_of(&bytes, &Default::default()).unwrap();
    Buffer::new(span, vmfb_vm::Origin::Guest).into()
}

/// A dispatch that succeeds: export 1 ("multiply") of two, 2 constants and 3 bindings declared and given.
fn case() -> Case {
    let declared = |name| Export { name: Some(name), constant_count: Some(2), binding_count: Some(3), local_memory: 0 };
    let kernels = Kernels::new(&[declared("add"), declared("multiply")]);
    Case {
        executable: Ref::new(ExecutableReference(kernels.clone())),
        kernels,
        target: Target::Function(1),
        grid: [4, 2, 1],
        constants: vec![7, 8],
        bindings: vec![(buffer(16), 0, 16), (buffer(16), 8, 4), (buffer(0), 0, 0)],
    }
}

impl Case {
    fn run(&self) -> Result<Option<Seen>> {
        let words = |value: i64| [value as u32, (value as u64 >> 32) as u32];
        let (signature, mut values) = match self.target {
            Target::Ordinal(ordinal) => (Signature::Ordinal, vec![ordinal as u32]),
            Target::Function(function) => (Signature::Function, words(function).to_vec()),
        };
        values.extend(self.grid.map(|count| count as u32));
        values.extend(&self.constants);
        values.extend(self.bindings.iter().flat_map(|(_, offset, length)| [words(*offset), words(*length)].concat()));
        let references: Vec<Ref> =
            std::iter::once(&self.executable).chain(self.bindings.iter().map(|(buffer, ..)| buffer)).cloned().collect();
        let mut bytes = Vec::new();
        ArgumentLayout::new(&signature.convention().parse()?, Layout::Aligned).write(
            &values,
            &references,
            &[self.constants.len() as u16, self.bindings.len() as u16],
            &mut bytes,
        )?;
        dispatch(signature, &bytes, &references, &mut KnownConstants::default(), &mut Meter::default(), 1)?;
        Ok(self.kernels.seen.lock().unwrap().pop())
    }

    fn error(&self) -> Error {
        let error = self.run().unwrap_err();
        assert!(self.kernels.seen.lock().unwrap().is_empty(), "nothing may run: {error}");
        error
    }

    fn status(&self) -> Status {
        self.error().status()
    }
}

#[test]
fn arguments_reach_the_executable() {
    let bytes = (0..16).collect::<Vec<u8>>();
    let wanted = (1, [4, 2, 1], vec![7, 8], vec![(bytes, 0), (vec![8, 9, 10, 11], 8), (vec![], 0)]);
    assert_eq!(case().run().unwrap(), Some(wanted.clone()));
    assert_eq!(Case { target: Target::Ordinal(1), ..case() }.run().unwrap(), Some(wanted));
}

/// Every number of constants with every number of bindings, so that the spans start at every alignment.
#[test]
fn every_combination_of_counts_arrives() {
    for constants in 0..=3u32 {
        for bindings in 0..=3usize {
            for target in [Target::Function(0), Target::Ordinal(0)] {
                let export = Export { constant_count: Some(constants as usize), binding_count: Some(bindings), ..Export::default() };
                let kernels = Kernels::new(&[export]);
                let case = Case {
                    executable: Ref::new(ExecutableReference(kernels.clone())),
                    kernels,
                    target,
                    constants: (1..=constants).collect(),
                    bindings: (0..bindings).map(|index| (buffer(8), index as i64, 2)).collect(),
                    ..case()
                };
                let wanted: Vec<_> = (0..bindings as u8).map(|index| (vec![index, index + 1], index.into())).collect();
                assert_eq!(case.run().unwrap(), Some((0, [4, 2, 1], (1..=constants).collect(), wanted)));
            }
        }
    }
}

#[test]
fn ranges_must_lie_in_their_buffers() {
    for (offset, length) in
        [(-16, 16), (-32, 16), (0, 17), (16, 1), (17, 0), (0, -1), (-1, 1), (i64::MAX, i64::MAX), (8, i64::MAX), (1 << 32, 0)]
    {
        let mut case = case();
        case.bindings[1] = (buffer(16), offset, length);
        let error = case.error();
        assert_eq!(error.status(), Status::OutOfRange);
        for part in ["binding 1", "multiply", &format!("{length} bytes"), &format!("offset {offset}"), "16 bytes"] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }
    let mut whole = case();
    whole.bindings[1] = (buffer(16), 16, 0);
    assert!(whole.run().is_ok());
}

#[test]
fn a_null_binding_is_named_with_the_cure() {
    let mut case = case();
    case.bindings[2].0 = Ref::Null;
    let error = case.error();
    assert_eq!(error.status(), Status::InvalidArgument);
    for part in ["binding 2", "export 1 (multiply)", "null", "--iree-flow-inline-constants-max-byte-length=268435456"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    case.bindings[2].0 = List::of_values([]).unwrap().into();
    let error = case.error();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.to_string().contains("vm.list") && !error.to_string().contains("--iree"), "{error}");
}

#[test]
fn counts_must_be_those_that_are_declared() {
    let mut fewer = case();
    fewer.bindings.pop();
    let mut more = case();
    more.constants.extend([1, 2]);
    for (case, part) in [(fewer, "takes 3 bindings, 2 were given"), (more, "takes 2 constants, 4 were given")] {
        let error = case.error();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(error.to_string().contains(part), "{error}");
    }
    let kernels = Kernels::new(&[Export::default()]);
    let undeclared = Case { executable: Ref::new(ExecutableReference(kernels.clone())), kernels, target: Target::Function(0), ..case() };
    assert!(undeclared.run().unwrap().is_some(), "old executables declare nothing");
}

#[test]
fn thirty_two_bindings_are_the_most() {
    let kernels = Kernels::new(&[Export::default()]);
    let with = |count| Case {
        executable: Ref::new(ExecutableReference(kernels.clone())),
        kernels: kernels.clone(),
        target: Target::Function(0),
        bindings: vec![(buffer(4), 0, 4); count],
        ..case()
    };
    assert!(with(32).run().is_ok());
    assert_eq!(with(33).status(), Status::ResourceExhausted);
}

#[test]
fn the_export_must_be_there() {
    for function in [2, -1, i64::MIN, i64::MAX, 1 << 32] {
        let error = Case { target: Target::Function(function), ..case() }.error();
        assert_eq!(error.status(), Status::OutOfRange);
        assert!(error.to_string().contains(&(function as u64).to_string()) && error.to_string().contains("2 exports"), "{error}");
    }
    for ordinal in [2, -1, i32::MIN, i32::MAX] {
        assert_eq!(Case { target: Target::Ordinal(ordinal), ..case() }.status(), Status::InvalidArgument);
    }
}

#[test]
fn the_executable_must_be_one() {
    assert_eq!(Case { executable: Ref::Null, ..case() }.status(), Status::InvalidArgument);
    let error = Case { executable: buffer(4), ..case() }.error();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.to_string().contains("vm.buffer"), "{error}");
}

#[test]
fn an_empty_grid_runs_nothing() {
    for grid in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0, i32::MAX, i32::MAX]] {
        assert_eq!(Case { grid, ..case() }.run().unwrap(), None);
        assert_eq!(Case { grid, target: Target::Ordinal(9), ..case() }.run().unwrap(), None, "noticed only by a workgroup");
        assert_eq!(Case { grid, target: Target::Function(9), ..case() }.status(), Status::OutOfRange);
        let mut null = Case { grid, ..case() };
        null.bindings[0].0 = Ref::Null;
        assert_eq!(null.status(), Status::InvalidArgument);
    }
}

#[test]
fn absurd_grids_are_refused() {
    for grid in [[-1, 1, 1], [1, -1, 1], [1, 1, i32::MIN], [0, -1, 0]] {
        let error = Case { grid, ..case() }.error();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(error.to_string().contains("negative"), "{error}");
    }
    for grid in [[i32::MAX, 3, 1], [1 << 16, 1 << 16, 1], [i32::MAX, i32::MAX, i32::MAX], [1 << 11, 1 << 11, 1 << 11]] {
        assert_eq!(Case { grid, ..case() }.status(), Status::ResourceExhausted);
    }
    assert!(Case { grid: [i32::MAX, 2, 1], ..case() }.run().is_ok());
}

#[test]
fn many_constants_arrive() {
    let kernels = Kernels::new(&[Export::default()]);
    let constants: Vec<u32> = (0..1000).collect();
    let case = Case {
        executable: Ref::new(ExecutableReference(kernels.clone())),
        kernels,
        target: Target::Ordinal(0),
        constants: constants.clone(),
        ..case()
    };
    assert_eq!(case.run().unwrap().map(|seen| seen.2), Some(constants));
}

#[test]
fn slots_that_refer_to_nothing_are_refused() {
    let references = [case().executable, buffer(4)];
    let mut bytes = Vec::new();
    let layout = ArgumentLayout::new(&Signature::Function.convention().parse().unwrap(), Layout::Aligned);
    layout.write(&[1, 0, 1, 1, 1, 0, 0, 4, 0], &references, &[0, 1], &mut bytes).unwrap();
    for at in [0, 48] {
        for slot in [[9u8, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 2, 0, 0, 0]] {
            let mut bytes = bytes.clone();
            bytes[at..at + 8].copy_from_slice(&slot);
            let error = {
                let known = &mut KnownConstants::default();
                dispatch(Signature::Function, &bytes, &references, known, &mut Meter::default(), 1).unwrap_err()
            };
            assert_eq!(error.status(), Status::InvalidArgument);
        }
    }
}
