//! Rules about descriptors and the tables of a module.

use super::*;

#[test]
fn requirements_are_known() {
    let mut builder = body(V17, |_| {});
    builder.requirements(Requirements(16));
    let mut module = module(V17);
    builder.finish().unwrap().add_to(&mut module);
    module.requirements = Requirements::NONE;
    let error = verify(module).unwrap_err();
    assert_eq!((error.status, error.function, error.pc), (InvalidArgument, Some(TESTED), Some(0)));
    let mut builder = body(V17, |_| {});
    builder.requirements(Requirements(1 | 2 | 4 | 8));
    assert!(verified(V17, builder).is_ok());
}

#[test]
fn register_counts_are_limited() {
    for (values, refs, status) in [
        (0x7FFF, 0x3FFF, None),
        (0x8000, 0, Some(ResourceExhausted)),
        (0xFFFF, 0, Some(ResourceExhausted)),
        (0, 0x4000, Some(ResourceExhausted)),
    ] {
        let mut builder = body(V15, |_| {});
        builder.value_registers(values).ref_registers(refs);
        let expected = status.map_or(Ok(()), |status| Err((status, Some(TESTED), Some(0))));
        assert_eq!(verified(V15, builder).map(|_| ()), expected, "{values} {refs}");
    }
}

#[test]
fn calling_conventions_are_known() {
    for (text, status) in [("1v_v", Unimplemented), ("0x_v", InvalidArgument), ("0CiD_v", InvalidArgument), ("0i_CiD", InvalidArgument)] {
        for version in VERSIONS {
            let mut builder = FunctionBuilder::new(version, text);
            builder.value_registers(8).start_block();
            builder.push(Op::Return { values: RegisterList::new(&[]) });
            refused(version, builder, status, 0);
        }
    }
    for version in VERSIONS.into_iter().skip(1) {
        let mut builder = body(version, |_| {});
        builder.without_signature();
        refused(version, builder, InvalidArgument, 0);
    }
}

#[test]
fn unused_arguments_enlarge_the_frame() {
    for (text, values, refs, frame) in [
        ("0i_v", 0, 0, (2, 0)),
        ("0ii_v", 1, 0, (2, 0)),
        ("0iI_v", 3, 0, (4, 0)),
        ("0iII_v", 0, 0, (6, 0)),
        ("0rr_v", 0, 1, (0, 2)),
        ("0F_v", 1, 0, (2, 0)),
        ("0ir_v", 7, 5, (8, 5)),
    ] {
        for version in VERSIONS {
            let mut builder = FunctionBuilder::new(version, text);
            builder.value_registers(values).ref_registers(refs).start_block();
            builder.push(Op::Return { values: RegisterList::new(&[]) });
            let info = verified(version, builder).unwrap().functions()[TESTED as usize].clone();
            assert_eq!((info.value_registers, info.ref_registers), frame, "{version} {text}");
            assert!(info.placement.value_slots <= info.value_registers && info.placement.ref_slots <= info.ref_registers);
        }
    }
}

/// What the descriptor says is still what operands are checked against.
#[test]
fn registers_of_unused_arguments_are_not_named() {
    for version in VERSIONS {
        let refused = |values: &[Register]| {
            let mut builder = FunctionBuilder::new(version, "0iir_ir");
            builder.value_registers(1).ref_registers(0).start_block();
            let values: Vec<_> = values.iter().map(|register| register.to_bytes()).collect();
            builder.push(Op::Return { values: RegisterList::new(&values) });
            verified(version, builder).map(|_| ()).unwrap_err().0
        };
        assert_eq!(refused(&[i(2), r(0)]), OutOfRange);
        assert_eq!(refused(&[i(0), r(0)]), OutOfRange);
    }
}

#[test]
fn bodies_lie_in_the_bytecode() {
    for range in [0..1000, 5..5, usize::MAX - 1..usize::MAX] {
        let mut module = module(V17);
        body(V17, |_| {}).finish().unwrap().add_to(&mut module);
        module.functions[1].bytecode = range;
        let error = verify(module).unwrap_err();
        assert_eq!((error.status, error.function, error.pc), (InvalidArgument, Some(1), Some(0)));
    }
}

#[test]
fn module_tables_are_checked() {
    let refused = |change: fn(&mut ModuleDef)| {
        let mut module = module(V17);
        change(&mut module);
        let error = verify(module).unwrap_err();
        assert_eq!(error.function, None, "{error}");
        error.status
    };
    assert_eq!(refused(|module| module.bytecode_version = BytecodeVersion(18 << 16)), InvalidArgument);
    assert_eq!(refused(|module| module.bytecode_version = BytecodeVersion(12 << 16)), InvalidArgument);
    assert_eq!(refused(|module| module.bytecode_version = BytecodeVersion(17 << 16 | 1)), InvalidArgument);
    assert_eq!(refused(|module| module.requirements = Requirements(32)), InvalidArgument);
    assert_eq!(refused(|module| module.imports[0].signature = None), InvalidArgument);
    assert_eq!(refused(|module| module.imports[0].signature.as_mut().unwrap().calling_convention = "0CCD_v".to_owned()), InvalidArgument);
    assert_eq!(refused(|module| module.imports[0].signature.as_mut().unwrap().calling_convention = "2v_v".to_owned()), Unimplemented);
    assert_eq!(refused(|module| module.exports.push(Export { name: "x".to_owned(), function: 1 })), InvalidArgument);
}

#[test]
fn functions_do_not_share_bytes() {
    let repeated = |count: usize| {
        let mut module = module(V17);
        let function = module.functions[0].clone();
        module.functions = vec![function; count];
        verify(module).map(|_| ()).map_err(|error| error.status)
    };
    assert_eq!(repeated(1), Ok(()));
    assert_eq!(repeated(2), Err(ResourceExhausted));
}
