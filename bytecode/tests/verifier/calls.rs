//! Rules about calls and returns.

use super::*;

#[test]
fn callees_exist() {
    for version in VERSIONS {
        for callee in [FunctionRef::import(2), FunctionRef::internal(2), FunctionRef(u32::MAX), FunctionRef(0x7FFF_FFFF)] {
            refuses(version, Op::Call { callee, arguments: RegisterList::new(&[]), results: RegisterList::new(&[]) }, InvalidArgument);
        }
    }
}

fn call(callee: FunctionRef, arguments: &[Register], results: &[Register]) -> (FunctionRef, Vec<[u8; 2]>, Vec<[u8; 2]>) {
    let bytes = |registers: &[Register]| registers.iter().map(|register| register.to_bytes()).collect();
    (callee, bytes(arguments), bytes(results))
}

#[test]
fn call_words() {
    for version in VERSIONS {
        for (arguments, results, status) in [
            (&[i(1), i(2)][..], &[i(4)][..], None),
            (&[i(1)], &[i(4)], Some(OutOfRange)),
            (&[i(1), i(2)], &[], Some(OutOfRange)),
            (&[i(1), i(2), i(3)], &[i(4)], Some(InvalidArgument)),
            (&[i(1), i(2)], &[i(4), i(6)], Some(InvalidArgument)),
            (&[r(1), i(2)], &[i(4)], Some(InvalidArgument)),
            (&[i(1), r(2)], &[i(4)], Some(InvalidArgument)),
            (&[i(1), i(3)], &[i(4)], Some(InvalidArgument)),
            (&[i(1), i(8)], &[i(4)], Some(OutOfRange)),
            (&[i(8), i(2)], &[i(4)], Some(OutOfRange)),
            (&[i(1), i(2)], &[i(5)], Some(InvalidArgument)),
            (&[i(1), i(2)], &[r(0)], Some(InvalidArgument)),
            (&[i(1), i(2)], &[i(8)], Some(OutOfRange)),
        ] {
            let (callee, arguments, results) = call(HELPER, arguments, results);
            let op = Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) };
            status.map_or_else(|| accepts(version, op), |status| refuses(version, op, status));
        }
        let (callee, arguments, results) = call(PLAIN, &[i(1), i(2)], &[i(4)]);
        refuses(
            version,
            Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) },
            InvalidArgument,
        );
        // A span needs segments.
        let (callee, arguments, results) = call(VARIADIC, &[i(1), r(2)], &[i(4)]);
        refuses(
            version,
            Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) },
            InvalidArgument,
        );
    }
}

#[test]
fn segments() {
    const PLAIN: u16 = SegmentList::PLAIN;
    for version in VERSIONS {
        for (segments, arguments, status) in [
            (&[PLAIN, 0][..], &[i(1)][..], None),
            (&[PLAIN, 2], &[i(1), r(0), i(2), Register::moved(1), i(4)], None),
            (&[PLAIN, 2], &[i(1), r(0), i(2)], Some(OutOfRange)),
            (&[PLAIN, 0], &[i(1), r(0), i(2)], Some(InvalidArgument)),
            (&[PLAIN, 1], &[i(1), i(0), i(2)], Some(InvalidArgument)),
            (&[PLAIN, 1], &[i(1), r(0), i(3)], Some(InvalidArgument)),
            (&[PLAIN, 1], &[i(1), r(4), i(2)], Some(OutOfRange)),
            (&[PLAIN], &[i(1)], Some(OutOfRange)),
            (&[PLAIN, 0, 0], &[i(1)], Some(InvalidArgument)),
            // A plain argument has one register, whatever its segment says.
            (&[1, 0], &[i(1)], None),
            (&[0, 1], &[i(1), r(0), i(2)], None),
            (&[2, 0], &[i(1), i(2)], Some(InvalidArgument)),
            (&[1, 1], &[i(1), i(0), i(2)], Some(InvalidArgument)),
            (&[0, 0], &[], Some(OutOfRange)),
            (&[PLAIN, PLAIN], &[i(1)], Some(OutOfRange)),
            (&[], &[], Some(OutOfRange)),
        ] {
            let segments: Vec<_> = segments.iter().map(|count| count.to_le_bytes()).collect();
            let (callee, arguments, results) = call(VARIADIC, arguments, &[i(6)]);
            let op = Op::CallVariadic {
                callee,
                segments: SegmentList::new(&segments),
                arguments: RegisterList::new(&arguments),
                results: RegisterList::new(&results),
            };
            status.map_or_else(|| accepts(version, op), |status| refuses(version, op, status));
        }
    }
}

#[test]
fn import_only() {
    for version in VERSIONS {
        let (arguments, results) = (words([i(1), i(2)]), words([i(4)]));
        let op = Op::CallVariadic {
            callee: HELPER,
            segments: SegmentList::new(&[[0xFF, 0xFF], [0xFF, 0xFF]]),
            arguments: RegisterList::new(&arguments),
            results: RegisterList::new(&results),
        };
        refuses(version, op, FailedPrecondition);
        accepts(version, Op::ImportResolved { callee: PLAIN, dst: X4(0) });
        refuses(version, Op::ImportResolved { callee: HELPER, dst: X4(0) }, InvalidArgument);
        refuses(version, Op::ImportResolved { callee: FunctionRef::import(2), dst: X4(0) }, InvalidArgument);
    }
    let builder = body(V17, |builder| {
        let next = builder.label();
        builder.push(Op::CallVariadicYieldable {
            callee: HELPER,
            segments: SegmentList::new(&[]),
            arguments: RegisterList::new(&[]),
            resume: next.pc(),
            results: RegisterList::new(&[]),
        });
        builder.place(next);
    });
    refused(V17, builder, FailedPrecondition, 1);
}

#[test]
fn returned_words() {
    for version in VERSIONS {
        for (values, status) in [
            (&[i(0), i(2), r(0)][..], None),
            (&[i(0), i(2)], Some(OutOfRange)),
            (&[i(0), i(2), r(0), r(0)], Some(InvalidArgument)),
            (&[i(0), i(3), r(0)], Some(InvalidArgument)),
            (&[r(0), i(2), r(0)], Some(InvalidArgument)),
            (&[i(0), i(2), i(4)], Some(InvalidArgument)),
            (&[i(8), i(2), r(0)], Some(OutOfRange)),
        ] {
            let mut builder = FunctionBuilder::new(version, "0v_iIr");
            builder.value_registers(8).ref_registers(4).start_block();
            let values: Vec<_> = values.iter().map(|register| register.to_bytes()).collect();
            builder.push(Op::Return { values: RegisterList::new(&values) });
            let pc = u32::from(version.has_block_markers());
            let expected = status.map_or(Ok(()), |status| Err((status, Some(TESTED), Some(pc))));
            assert_eq!(verified(version, builder).map(|_| ()), expected, "{version} {values:?}");
        }
    }
}
