//! Linking: names, signatures, dependencies, shadowing, and what is said when something is missing.

use crate::imports::{forwarder, with};
use crate::natives::{Native, native};
use crate::support::*;
use vmfb_bytecode::definition::Necessity;
use vmfb_bytecode::isa::{Op, X4};
use vmfb_vm::{Config, Engine, Error, Linker, NativeFunction, Status, Store};

#[test]
fn optional_imports_may_be_missing() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let there = program.import_with("host.f", "0v_v", Necessity::Optional);
        let other_function = program.import_with("host.g", "0v_v", Necessity::Optional);
        let other_module = program.import_with("nowhere.f", "0v_v", Necessity::Optional);
        program.export("resolved", "0v_iii", |f| {
            f.start_block();
            for (register, callee) in (0..).zip([there, other_function, other_module]) {
                f.op(Op::ImportResolved { callee, dst: X4(register) });
            }
            f.ret([v(0), v(1), v(2)]);
        });
        program.export("call", "0v_v", |f| {
            f.start_block();
            f.call(there, [], []).call(other_module, [], []).ret([]);
        });
        let linker = with(|| vec![NativeFunction::new("f", "0v_v", |_| Ok(()))]);
        let mut running = program.start_with(&linker, Config::new());
        assert_eq!(running.call("resolved", &[]).unwrap().iter().map(bits).collect::<Vec<_>>(), [1, 0, 0]);
        let error = running.call("call", &[]).unwrap_err();
        assert_eq!(error.status(), Status::NotFound);
        assert!(error.message().contains("nowhere.f"), "{error}");
    }
}

/// Why an import cannot be linked.
fn refusal(import: &str, convention: &str, necessity: Necessity) -> Error {
    let mut program = Program::new(NEWEST);
    program.import_with(import, convention, necessity);
    let linker = with(|| vec![NativeFunction::new("f", "0i_i", |_| Ok(())), NativeFunction::new("f", "0I_I", |_| Ok(()))]);
    let mut store = Store::new(&Engine::default(), ());
    match program.instantiate_with(&linker, &mut store) {
        Ok(_) => panic!("{import} was linked"),
        Err(error) => error,
    }
}

#[test]
fn imports_that_cannot_be_linked() {
    for necessity in [Necessity::Required, Necessity::Optional] {
        // A function of another signature is an error even where a missing one is none.
        let error = refusal("host.f", "0f_f", necessity);
        assert_eq!(error.status(), Status::Internal);
        for part in ["host.f", "0f_f", "0i_i", "0I_I"] {
            assert!(error.to_string().contains(part), "{part} is missing in {error}");
        }
        let error = refusal("f", "0v_v", necessity);
        assert_eq!(error.status(), Status::InvalidArgument);
    }
    for (import, named) in [("host.g", "host.g"), ("nowhere.f", "nowhere.f"), ("host.f.g", "host.f.g")] {
        let error = refusal(import, "0v_v", Necessity::Required);
        assert_eq!(error.status(), Status::NotFound);
        assert!(error.to_string().contains(named) && error.to_string().contains("test"), "{error}");
    }
    // Arguments and results of an import are bounded; 1024 references fill 16 KiB.
    let wide = |count: usize| format!("0{}_v", "r".repeat(count));
    assert_eq!(refusal("nowhere.f", &wide(1024), Necessity::Required).status(), Status::NotFound);
    assert_eq!(refusal("nowhere.f", &wide(1025), Necessity::Required).status(), Status::InvalidArgument);
    assert_eq!(refusal("nowhere.f", &format!("0v_{}", "I".repeat(2049)), Necessity::Optional).status(), Status::InvalidArgument);
}

#[test]
fn an_import_without_a_signature_is_refused() {
    let mut program = Program::new(NEWEST);
    program.import("host.f", "0v_v");
    program.def.imports[0].signature = None;
    assert_eq!(status(program.load(&Engine::default())), Status::InvalidArgument);
}

/// Function names may have dots; the module is what stands before the first.
#[test]
fn names_are_split_at_the_first_dot() {
    let mut program = Program::new(NEWEST);
    let callee = program.import("host.a.b.c", "0v_i");
    program.export("run", "0v_i", |f| {
        f.start_block();
        f.call(callee, [], [v(0)]).ret([v(0)]);
    });
    let linker = with(|| {
        vec![NativeFunction::new("a.b.c", "0v_i", |call| {
            call.results.push_i32(5);
            Ok(())
        })]
    });
    assert_eq!(program.start_with(&linker, Config::new()).call_one::<i32>("run", ()).unwrap(), 5);
}

#[test]
fn dependencies_state_versions() {
    let instantiate = |name: &str, minimum: u32, necessity| {
        let mut program = Program::new(NEWEST);
        program.depend(name, minimum, necessity);
        let mut linker = Linker::new();
        linker.add_native(Native { version: 5, ..native("host", Vec::new) }).unwrap();
        program.instantiate_with(&linker, &mut Store::new(&Engine::default(), ())).map(|_| ())
    };
    for minimum in [0, 4, 5] {
        instantiate("host", minimum, Necessity::Required).unwrap();
    }
    let error = instantiate("host", 6, Necessity::Required).unwrap_err();
    assert_eq!(error.status(), Status::NotFound);
    for part in ["host", "6", "5", "test"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    // An optional one may have any version, or be missing.
    instantiate("host", 6, Necessity::Optional).unwrap();
    instantiate("nowhere", 0, Necessity::Optional).unwrap();
    let error = instantiate("nowhere", 0, Necessity::Required).unwrap_err();
    assert_eq!(error.status(), Status::NotFound);
    assert!(error.to_string().contains("nowhere") && error.to_string().contains("host"), "{error}");
}

/// The importer's string chooses among the ages of one function.
#[test]
fn one_name_in_several_signatures() {
    let linker = with(|| {
        let narrow = NativeFunction::new("f", "0i_i", |call: &mut vmfb_vm::Call<'_, i64>| {
            let value = call.arguments.i32()?;
            call.results.push_i32(value + 1);
            Ok(())
        });
        let wide = NativeFunction::new("f", "0I_I", |call: &mut vmfb_vm::Call<'_, i64>| {
            let value = call.arguments.i64()?;
            call.results.push_i64(value + 2);
            Ok(())
        });
        vec![narrow, wide]
    });
    let mut narrow = forwarder(NEWEST, "0i_i", &[v(0)], &[v(2)]).start_with(&linker, Config::new());
    assert_eq!(narrow.call_one::<i32>("run", (1,)).unwrap(), 2);
    let mut wide = forwarder(NEWEST, "0I_I", &[v(0)], &[v(2)]).start_with(&linker, Config::new());
    assert_eq!(wide.call_one::<i64>("run", (1_i64 << 40,)).unwrap(), (1 << 40) + 2);
}

/// A module that exports `f() -> i32`.
fn constant(name: &str, value: i32) -> Program {
    let mut program = Program::named(name, NEWEST);
    program.export("f", "0v_i", |f| {
        f.start_block();
        f.i32(0, value).ret([v(0)]);
    });
    program
}

#[test]
fn later_modules_shadow_earlier_ones() {
    let mut importer = Program::named("importer", NEWEST);
    let callee = importer.import("host.f", "0v_i");
    importer.export("run", "0v_i", |f| {
        f.start_block();
        f.call(callee, [], [v(0)]).ret([v(0)]);
    });
    let mut linker = Linker::new();
    let mut store = Store::new(&Engine::default(), ());
    let run = |linker: &Linker, store: &mut Store| {
        let instance = importer.instantiate_with(linker, store).unwrap();
        let result = instance.function(store, "run").unwrap().call(store, &[]).unwrap();
        bits(&result[0])
    };
    linker.func_wrap("host", "f", || Ok(1)).unwrap();
    assert_eq!(run(&linker, &mut store), 1);
    linker.func_wrap("host", "f", || Ok(2)).unwrap();
    assert_eq!(run(&linker, &mut store), 2);
    // Functions of one module may be added one by one.
    linker.func_wrap("host", "g", || Ok(3)).unwrap();
    assert_eq!(run(&linker, &mut store), 2);
    // Instances of the store come before natives, the last one first.
    constant("host", 4).instantiate(&mut store).unwrap();
    assert_eq!(run(&linker, &mut store), 4);
    constant("host", 5).instantiate(&mut store).unwrap();
    assert_eq!(run(&linker, &mut store), 5);
}

/// An export of another signature is found, but not linked.
#[test]
fn exports_of_other_signatures_are_refused() {
    let mut store = Store::new(&Engine::default(), ());
    constant("library", 1).instantiate(&mut store).unwrap();
    let mut program = Program::new(NEWEST);
    program.import("library.f", "0v_I");
    let error = program.instantiate(&mut store).unwrap_err();
    assert_eq!(error.status(), Status::Internal);
    assert!(error.to_string().contains("0v_i") && error.to_string().contains("0v_I"), "{error}");
}

#[test]
fn a_malformed_convention_of_a_native_is_refused_when_it_is_added() {
    let add = |convention: &'static str| {
        Linker::new().add_native(native("host", move || vec![NativeFunction::new("f", convention, |_| Ok(()))])).map(|_| ())
    };
    for convention in ["1v_v", "0x_v", "0v_CiD", "0CCiDD_v", "0CiD_i_i"] {
        assert!(add(convention).is_err(), "{convention}");
    }
    // Without a half of results there are none.
    add("0CiD").unwrap();
}

#[test]
fn a_module_belongs_to_its_engine() {
    let module = constant("library", 1).load(&Engine::default()).unwrap();
    let mut store = Store::new(&Engine::default(), ());
    assert_eq!(status(Linker::new().instantiate(&mut store, &module)), Status::InvalidArgument);
}
