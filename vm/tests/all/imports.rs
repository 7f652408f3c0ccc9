//! Imports: linking, native functions of all forms, calls between modules.

use crate::calls::Many;
use crate::natives::native;
use crate::support::*;
use std::task::Poll;
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{FunctionRef, MoveList, Op, RegisterList, SegmentList, Text, X4, X8};
use vmfb_vm::abi::{REFERENCE_BYTES, resolve_reference};
use vmfb_vm::{Buffer, Config, Engine, Linker, NativeFunction, Ref, Status, Store, Value};

const PLAIN: u16 = SegmentList::PLAIN;

/// A linker with one native module `host` of these functions.
pub fn with(functions: impl Fn() -> Vec<NativeFunction<i64>> + Send + Sync + 'static) -> Linker {
    let mut linker = Linker::new();
    linker.add_native(native("host", functions)).unwrap();
    linker
}

/// A program that passes its arguments on to the import `host.f` and returns its results, for conventions without pairs behind
/// single slots.
pub fn forwarder(
    version: BytecodeVersion,
    convention: &str,
    arguments: &[vmfb_bytecode::isa::Register],
    results: &[vmfb_bytecode::isa::Register],
) -> Program {
    let mut program = Program::new(version);
    let callee = program.import("host.f", convention);
    program.export("run", convention, |f| {
        f.start_block();
        let words = |registers: &[vmfb_bytecode::isa::Register]| registers.iter().map(|register| register.to_bytes()).collect::<Vec<_>>();
        let (arguments, results) = (words(arguments), words(results));
        f.op(Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) }).ret_list(&results);
    });
    program
}

#[test]
fn typed_natives_take_and_give_every_kind() {
    for version in VERSIONS {
        let linker = with(|| {
            vec![NativeFunction::new("f", "0IFifr_rfiFI", |call| {
                let (long, double, int, float) =
                    (call.arguments.i64()?, call.arguments.f64()?, call.arguments.i32()?, call.arguments.f32()?);
                let reference = call.arguments.reference()?.clone();
                call.results.push_reference(reference);
                call.results.push_f32(-float);
                call.results.push_i32(!int);
                call.results.push_f64(-double);
                call.results.push_i64(!long);
                Ok(())
            })]
        });
        let program = forwarder(version, "0IFifr_rfiFI", &[v(0), v(2), v(4), v(5), r(0)], &[r(1), v(12), v(13), v(8), v(10)]);
        let buffer = Buffer::constant(vec![1]);
        let arguments = [0x1122_3344_5566_7788_i64.into(), 2.5.into(), 7.into(), 1.5_f32.into(), buffer.clone().into()];
        let results = program.start_with(&linker, Config::new()).call("run", &arguments).unwrap();
        assert!(results[0].as_ref().unwrap().same(&buffer.into()));
        let wanted = [u64::from((-1.5_f32).to_bits()), u64::from(!7_u32), (-2.5_f64).to_bits(), !0x1122_3344_5566_7788];
        assert_eq!(results[1..].iter().map(bits).collect::<Vec<_>>(), wanted);
    }
}

/// The argument buffer of `rIf`: a slot of 16 bytes, then 8, then 4, and padding to a multiple of 8.
#[test]
fn raw_natives_get_an_aligned_argument_buffer() {
    for version in VERSIONS {
        let linker = with(|| {
            vec![NativeFunction::raw("f", "0rIf_Ir", |call| {
                assert_eq!(call.arguments.len(), 32);
                let slot: [u8; REFERENCE_BYTES] = call.arguments[..16].try_into().unwrap();
                let reference = resolve_reference(&slot, call.references)?.clone();
                let long = i64::from_le_bytes(call.arguments[16..24].try_into().unwrap());
                let float = f32::from_le_bytes(call.arguments[24..28].try_into().unwrap());
                assert_eq!(call.arguments[28..], [0; 4]);
                call.results.push_i64(long + float as i64);
                call.results.push_reference(reference);
                Ok(())
            })]
        });
        let program = forwarder(version, "0rIf_Ir", &[r(0), v(0), v(2)], &[v(4), r(1)]);
        let mut running = program.start_with(&linker, Config::new());
        let buffer = Ref::from(Buffer::constant(vec![1]));
        for reference in [buffer, Ref::Null] {
            let arguments = [Value::Ref(reference.clone()), (1_i64 << 40).into(), 3.0_f32.into()];
            let results = running.call("run", &arguments).unwrap();
            assert_eq!(bits(&results[0]), (1 << 40) + 3);
            assert!(results[1].as_ref().unwrap().same(&reference));
        }
    }
}

/// `rCiDCrIID_I` with any number of tuples: the sum of everything, references count their length.
#[test]
fn variadic_calls_with_any_number_of_tuples() {
    let sum = |call: &mut vmfb_vm::Call<'_, i64>| {
        let mut sum = call.arguments.buffer("the first argument")?.len() as i64;
        for _ in 0..call.arguments.span()? {
            sum += i64::from(call.arguments.i32()?);
        }
        for _ in 0..call.arguments.span()? {
            sum += call.arguments.buffer("a tuple's buffer")?.len() as i64 + call.arguments.i64()? + call.arguments.i64()?;
        }
        call.results.push_i64(sum);
        Ok(())
    };
    for version in VERSIONS {
        // What stands at a plain argument says nothing: compilers write 65535, the official test suite 1.
        for (constants, bindings, plain) in [(0, 0, PLAIN), (1, 0, 1), (0, 1, PLAIN), (3, 2, 1), (2, 3, 0), (40, 40, PLAIN)] {
            let linker = with(move || vec![NativeFunction::new("f", "0rCiDCrIID_I", sum)]);
            let mut program = Program::new(version);
            let callee = program.import("host.f", "0rCiDCrIID_I");
            program.export("run", "0r_I", |f| {
                f.start_block();
                f.i32(0, 7).i64(2, 1 << 33).i64(4, -3);
                let mut arguments = vec![r(0)];
                arguments.extend(std::iter::repeat_n(v(0), constants));
                (0..bindings).for_each(|_| arguments.extend([r(0), v(2), v(4)]));
                f.call_variadic(callee, &[plain, constants as u16, bindings as u16], &arguments, [v(6)]).ret([v(6)]);
            });
            let mut running = program.start_with(&linker, Config::new());
            let found: i64 = running.call_one("run", (Buffer::constant(vec![0; 10]),)).unwrap();
            let (constants, bindings) = (constants as i64, bindings as i64);
            assert_eq!(found, 10 + 7 * constants + bindings * (10 + (1 << 33) - 3), "{constants} constants, {bindings} bindings");
        }
    }
}

/// A raw variadic native sees the bytes of a dispatch: 4 constants and 3 bindings start at 40, 60 → 64, and end at 160.
#[test]
fn raw_variadic_natives_get_the_layout_of_dispatches() {
    let convention = "0rIiiiCiDCrIID_v";
    let linker = with(move || {
        vec![NativeFunction::raw("f", convention, |call| {
            let word = |at: usize| u32::from_le_bytes(call.arguments[at..at + 4].try_into().unwrap());
            let long = |at: usize| u64::from_le_bytes(call.arguments[at..at + 8].try_into().unwrap());
            assert_eq!(call.arguments.len(), 160);
            assert_eq!(call.references.len(), 4);
            assert_eq!((long(16), word(24), word(28), word(32)), (1 << 33, 7, 7, 7));
            assert_eq!((word(36), [40, 44, 48, 52].map(word), word(56)), (4, [7; 4], 3));
            for binding in 0..3 {
                let at = 64 + binding * 32;
                let slot: [u8; REFERENCE_BYTES] = call.arguments[at..at + 16].try_into().unwrap();
                assert!(resolve_reference(&slot, call.references)?.same(&call.references[0]));
                assert_eq!((long(at + 16), long(at + 24)), (1 << 33, -3_i64 as u64));
            }
            *call.state += 1;
            Ok(())
        })]
    });
    for version in VERSIONS {
        let mut program = Program::new(version);
        let callee = program.import("host.f", convention);
        program.export("run", "0r_v", |f| {
            f.start_block();
            f.i32(0, 7).i64(2, 1 << 33).i64(4, -3);
            let binding = [r(0), v(2), v(4)];
            let arguments: Vec<_> = [&[r(0), v(2), v(0), v(0), v(0)][..], &[v(0); 4], &binding, &binding, &binding].concat();
            f.call_variadic(callee, &[PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, 4, 3], &arguments, []).ret([]);
        });
        program.start_with(&linker, Config::new()).call("run", &[Buffer::constant(vec![0; 8]).into()]).unwrap();
    }
}

#[test]
fn yieldable_calls_of_natives() {
    let mut program = Program::new(NEWEST);
    let plain = program.import("host.plain", "0I_I");
    let variadic = program.import("host.variadic", "0iCID_I");
    program.export("run", "0I_I", |f| {
        f.start_block();
        let (second, last) = (f.label(), f.label());
        let (arguments, results) = (list([v(0)]), list([v(2)]));
        let (arguments, results) = (RegisterList::new(&arguments), RegisterList::new(&results));
        f.op(Op::CallYieldable { callee: plain, arguments, resume: last.pc(), results });
        f.place(second);
        f.ret([v(4)]);
        f.place(last);
        let segments = [PLAIN.to_le_bytes(), 2_u16.to_le_bytes()];
        let (arguments, results) = (list([v(6), v(0), v(2)]), list([v(4)]));
        let (arguments, results) = (RegisterList::new(&arguments), RegisterList::new(&results));
        f.op(Op::CallVariadicYieldable {
            callee: variadic,
            segments: SegmentList::new(&segments),
            arguments,
            resume: second.pc(),
            results,
        });
    });
    let linker = with(|| {
        let plain = NativeFunction::new("plain", "0I_I", |call: &mut vmfb_vm::Call<'_, i64>| {
            let value = call.arguments.i64()?;
            call.results.push_i64(value * 2);
            Ok(())
        });
        let variadic = NativeFunction::new("variadic", "0iCID_I", |call: &mut vmfb_vm::Call<'_, i64>| {
            let mut sum = i64::from(call.arguments.i32()?);
            for _ in 0..call.arguments.span()? {
                sum += call.arguments.i64()?;
            }
            call.results.push_i64(sum);
            Ok(())
        });
        vec![plain, variadic]
    });
    assert_eq!(program.start_with(&linker, Config::new()).call_one::<i64>("run", (1_i64 << 40,)).unwrap(), 3 << 40);
}

/// References are lent up to 15, and given away with MOVE since 16; either way nothing leaks.
#[test]
fn references_of_import_calls() {
    for version in VERSIONS {
        let linker = with(|| {
            vec![NativeFunction::new("f", "0rr_i", |call| {
                let nonnull = [call.arguments.reference()?, call.arguments.reference()?].iter().filter(|one| !one.is_null()).count();
                call.results.push_i32(nonnull as i32);
                Ok(())
            })]
        });
        let mut program = Program::new(version);
        let callee = program.import("host.f", "0rr_i");
        program.export("run", "0v_ir", |f| {
            f.start_block();
            f.i64(0, 1000).alloc(0, 0).call(callee, [r(0), moved(0)], [v(2)]).ret([v(2), r(0)]);
        });
        let mut running = program.start_with(&linker, Config::new());
        let results = running.call("run", &[]).unwrap();
        assert_eq!(bits(&results[0]), 2);
        assert_eq!(results[1].as_ref().unwrap().is_null(), version.honours_move());
        drop(results);
        assert_eq!(running.used(), 0);
    }
}

/// Every kind, many results, both ways of reaching another instance.
#[test]
fn calls_between_instances() {
    for (caller_version, callee_version) in VERSIONS.into_iter().zip(VERSIONS.into_iter().rev()) {
        let many = Many::new(33);
        let mut library = Program::named("library", callee_version);
        library.export("swap", "0IFifr_rfiFI", |f| {
            f.start_block();
            f.op(Op::NotI64 { a: X8(0), dst: X8(0) }).ret([moved(0), v(5), v(4), v(2), v(0)]);
        });
        library.export("many", &format!("0v_{}", many.letters), |f| {
            f.start_block();
            many.fill(f);
            f.ret_list(&many.registers);
        });
        let mut program = Program::named("caller", caller_version);
        let swap = program.import("library.swap", "0IFifr_rfiFI");
        let callee = program.import("library.many", &format!("0v_{}", many.letters));
        program.export("swap", "0IFifr_rfiFI", |f| {
            f.start_block();
            f.call(swap, [v(0), v(2), v(4), v(5), r(0)], [r(1), v(12), v(13), v(8), v(10)]).ret([r(1), v(12), v(13), v(8), v(10)]);
        });
        program.export("many", &format!("0v_{}", many.letters), |f| {
            f.start_block();
            let results = RegisterList::new(&many.registers);
            f.op(Op::Call { callee, arguments: RegisterList::new(&[]), results }).ret_list(&many.registers);
        });
        let mut store = Store::new(&Engine::default(), ());
        library.instantiate(&mut store).unwrap();
        let instance = program.instantiate(&mut store).unwrap();
        let mut running = Running { store, instance };
        let buffer = Buffer::constant(vec![1]);
        let arguments = [0x1122_3344_5566_7788_i64.into(), 2.5.into(), 7.into(), 1.5_f32.into(), buffer.clone().into()];
        let results = running.call("swap", &arguments).unwrap();
        assert!(results[0].as_ref().unwrap().same(&buffer.into()));
        let wanted = [u64::from(1.5_f32.to_bits()), 7, 2.5_f64.to_bits(), !0x1122_3344_5566_7788];
        assert_eq!(results[1..].iter().map(bits).collect::<Vec<_>>(), wanted);
        many.check(&running.call("many", &[]).unwrap());
    }
}

/// The callee's age decides where its arguments stand, whoever calls.
#[test]
fn calls_between_instances_of_different_ages() {
    let mut library = Program::named("library", BytecodeVersion::V15);
    library.export("sum", "0iIiI_I", |f| {
        f.start_block();
        f.op(Op::AddI64 { a: X8(2), b: X8(4), dst: X8(2) });
        f.op(Op::ExtI32I64S { a: X4(0), dst: X8(4) }).op(Op::AddI64 { a: X8(2), b: X8(4), dst: X8(2) });
        f.op(Op::ExtI32I64S { a: X4(1), dst: X8(4) }).op(Op::AddI64 { a: X8(2), b: X8(4), dst: X8(2) }).ret([v(2)]);
        f.value_registers(6);
    });
    let mut program = Program::named("caller", NEWEST);
    let callee = program.import("library.sum", "0iIiI_I");
    program.export("run", "0iIiI_I", |f| {
        f.start_block();
        f.call(callee, [v(0), v(2), v(4), v(6)], [v(8)]).ret([v(8)]);
    });
    let mut store = Store::new(&Engine::default(), ());
    library.instantiate(&mut store).unwrap();
    let instance = program.instantiate(&mut store).unwrap();
    let sum: i64 = Running { store, instance }.call_one("run", (1, 20_i64, 300, -4000_i64)).unwrap();
    assert_eq!(sum, -3679);
}

/// A function of another instance may yield within a plain call and within one that says so.
#[test]
fn functions_of_other_instances_may_yield() {
    let mut library = Program::named("library", NEWEST);
    library.export("f", "0Ir_Ir", |f| {
        f.start_block();
        let next = f.label();
        f.op(Op::Yield { to: next.pc(), moves: MoveList::EMPTY });
        f.place(next);
        f.op(Op::NotI64 { a: X8(0), dst: X8(0) }).ret([v(0), moved(0)]);
    });
    let mut program = Program::named("caller", NEWEST);
    let callee = program.import("library.f", "0Ir_Ir");
    program.export("plain", "0Ir_Ir", |f| {
        f.start_block();
        f.call(callee, [v(0), r(0)], [v(2), r(1)]).ret([v(2), r(1)]);
    });
    program.export("yieldable", "0Ir_Ir", |f| {
        f.start_block();
        let resume = f.label();
        let (arguments, results) = (list([v(0), moved(0)]), list([v(2), r(1)]));
        let (arguments, results) = (RegisterList::new(&arguments), RegisterList::new(&results));
        f.op(Op::CallYieldable { callee, arguments, resume: resume.pc(), results });
        f.place(resume);
        f.ret([v(2), r(1)]);
    });
    let mut store = Store::new(&Engine::default(), ());
    library.instantiate(&mut store).unwrap();
    let instance = program.instantiate(&mut store).unwrap();
    let mut running = Running { store, instance };
    let buffer = Buffer::constant(vec![1]);
    for name in ["plain", "yieldable"] {
        let arguments = [(1_i64 << 40).into(), buffer.clone().into()];
        let function = running.instance.function(&running.store, name).unwrap();
        let mut started = function.start(&mut running.store, &arguments).unwrap();
        assert!(matches!(started.poll(&mut running.store, None), Ok(Poll::Pending)));
        let Poll::Ready(results) = started.poll(&mut running.store, None).unwrap() else { panic!("there is one yield") };
        assert_eq!(bits(&results[0]), !(1 << 40));
        assert!(results[1].as_ref().unwrap().same(&buffer.clone().into()));
    }
}

#[test]
fn errors_name_the_frames_of_both_instances() {
    let mut library = Program::named("library", NEWEST);
    library.export("fail", "0i_v", |f| {
        f.start_block();
        f.op(Op::Fail { code: X4(0), message: Text(b"no luck") });
    });
    let mut program = Program::named("caller", NEWEST);
    let callee = program.import("library.fail", "0i_v");
    let inner = program.function("0i_v", |f| {
        f.start_block();
        f.call(callee, [v(0)], []).ret([]);
    });
    program.export("run", "0i_v", |f| {
        f.start_block();
        f.i32(1, 0).call(FunctionRef::internal(inner), [v(0)], []).ret([]);
    });
    let mut store = Store::new(&Engine::default(), ());
    library.instantiate(&mut store).unwrap();
    let instance = program.instantiate(&mut store).unwrap();
    let error = Running { store, instance }.call("run", &[5.into()]).unwrap_err();
    assert_eq!((error.status(), error.message()), (Status::NotFound, "no luck"));
    let frames: Vec<(&str, u32, Option<&str>, u32)> =
        error.frames().iter().map(|frame| (frame.module.as_str(), frame.function, frame.name.as_deref(), frame.pc)).collect();
    // Behind the marker at pc 0 stands the first op; `const.i32` takes 7 bytes.
    assert_eq!(frames, [("library", 0, Some("fail"), 1), ("caller", 0, None, 1), ("caller", 1, Some("run"), 8)]);
}

#[test]
fn natives_that_break_their_own_convention_are_reported() {
    type Body = fn(&mut vmfb_vm::Call<'_, i64>) -> vmfb_vm::Result<()>;
    let bodies: [Body; 6] = [
        |_| Ok(()),
        |call| {
            call.results.push_i64(1);
            Ok(())
        },
        |call| {
            call.results.push_i32(1);
            call.results.push_reference(Ref::Null);
            Ok(())
        },
        |call| {
            call.results.push_reference(Ref::Null);
            Ok(())
        },
        |call| call.arguments.i64().map(|_| ()),
        |call| call.arguments.reference().map(|_| ()),
    ];
    for body in bodies {
        let linker = with(move || vec![NativeFunction::new("f", "0i_i", body)]);
        let mut running = forwarder(NEWEST, "0i_i", &[v(0)], &[v(1)]).start_with(&linker, Config::new());
        let error = running.call("run", &[1.into()]).unwrap_err();
        assert_eq!(error.status(), Status::Internal);
    }
}
