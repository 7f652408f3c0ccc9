//! Kernels that the host program registers: closures, tables of functions, query functions.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use vmfb_hal::abi::{DispatchState, Environment, WorkgroupState};
use vmfb_hal::{Binding, Dispatch, Executable, ExecutableLoader, ExecutableParameters, Load};
use vmfb_loader_native::{BindingView, ClosureLibrary, Kernel, RegisteredLoader, StaticLibrary, Workgroup};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Config, Engine, Error, FuelMetering, Meter, NativeCode, Result, Status};

fn load_with(loader: &RegisteredLoader, format: &str, data: &[u8], constants: &[u32], engine: &Engine) -> Result<Arc<dyn Executable>> {
    let data = Span::from_vector(data.to_vec());
    match loader.try_load(&ExecutableParameters { format, data: &data, constants, engine, account: &MemoryAccount::default() })? {
        Load::Loaded(executable) => Ok(executable),
        Load::NotMine(error) => Err(error.context("not mine")),
    }
}

fn load(loader: &RegisteredLoader, format: &str, data: &[u8]) -> Result<Arc<dyn Executable>> {
    load_with(loader, format, data, &[], &Engine::default())
}

/// Two bindings: each u32 of the first times the constant, into the second; one workgroup for each element.
fn scale() -> ClosureLibrary {
    ClosureLibrary::builder("my_kernels")
        .export_counted("scale", 1, 2, |group: &Workgroup<'_>, constants: &[u32], bindings: &[BindingView<'_>]| {
            let index = group.id[0] as usize;
            bindings[1].set(index, bindings[0].get::<u32>(index)? * constants[0])
        })
        .build()
}

fn words(values: &[u32]) -> Span {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Span::copy_of(&bytes, &MemoryAccount::default()).unwrap()
}

fn run(executable: &dyn Executable, meter: &mut Meter, count: [u32; 3], constants: &[u32], spans: &[&Span]) -> Result<()> {
    let bindings: Vec<Binding<'_>> = spans.iter().map(|span| Binding { span, offset: 0, length: span.len() }).collect();
    executable.dispatch(meter, &Dispatch { export: 0, workgroup_count: count, constants, bindings: &bindings, concurrency: 1 })
}

#[test]
fn a_closure_library_is_found_by_its_name() {
    let loader = RegisteredLoader::new().with(scale());
    assert!(loader.query_support("static") && !loader.query_support("static-x") && !RegisteredLoader::new().query_support("static"));
    for data in [b"my_kernels\0".as_slice(), b"my_kernels"] {
        let executable = load(&loader, "static", data).unwrap();
        assert_eq!((executable.export_count(), executable.lookup("scale"), executable.lookup("other")), (1, Some(0), None));
        let export = executable.export(0).unwrap();
        assert_eq!((export.name, export.constant_count, export.binding_count), (Some("scale"), Some(1), Some(2)));
        let (source, target) = (words(&[1, 2, 3]), words(&[0; 3]));
        run(&*executable, &mut Meter::default(), [3, 1, 1], &[7], &[&source, &target]).unwrap();
        assert_eq!([0, 4, 8].map(|at| target.load_u32(at).unwrap()), [7, 14, 21]);
    }
}

#[test]
fn an_unknown_name_is_left_to_other_loaders() {
    let loader = RegisteredLoader::new().with(scale());
    for data in [b"other\0".as_slice(), b"", b"\0"] {
        let error = load(&loader, "static", data).err().unwrap();
        assert_eq!(error.status(), Status::NotFound);
        assert!(error.message().contains("there are: my_kernels"), "{error}");
    }
}

#[test]
fn a_format_of_its_own_takes_any_data() {
    let loader = RegisteredLoader::new().with_format("my-format", scale());
    assert!(loader.query_support("my-format") && !loader.query_support("static"));
    assert_eq!(loader.formats(), ["my-format"]);
    assert_eq!(load(&loader, "my-format", b"anything").unwrap().export_count(), 1);
}

#[test]
fn counts_are_checked_before_the_closure_runs() {
    let executable = load(&RegisteredLoader::new().with(scale()), "static", b"my_kernels").unwrap();
    let span = words(&[0]);
    let error = run(&*executable, &mut Meter::default(), [1; 3], &[], &[&span, &span]).unwrap_err();
    assert_eq!(error.message(), "scale of my_kernels takes 1 constants, 0 were given");
    let error = run(&*executable, &mut Meter::default(), [1; 3], &[1], &[&span]).unwrap_err();
    assert_eq!(error.message(), "scale of my_kernels takes 2 bindings, 1 were given");
    let dispatch = Dispatch { export: 1, workgroup_count: [1; 3], constants: &[], bindings: &[], concurrency: 1 };
    assert_eq!(executable.dispatch(&mut Meter::default(), &dispatch).unwrap_err().status(), Status::OutOfRange);
}

#[test]
fn the_grid_runs_x_first_and_stops_at_the_first_failure() {
    static RAN: AtomicU32 = AtomicU32::new(0);
    let library = ClosureLibrary::builder("order").export("check", |group, _, _| {
        let linear = (group.id[2] * group.count[1] + group.id[1]) * group.count[0] + group.id[0];
        if RAN.fetch_add(1, Ordering::Relaxed) != linear {
            return Err(Error::internal("out of order"));
        }
        if linear == 7 { Err(Error::invalid("seven")) } else { Ok(()) }
    });
    let executable = load(&RegisteredLoader::new().with(library.build()), "static", b"order").unwrap();
    let error = run(&*executable, &mut Meter::default(), [2, 3, 4], &[], &[]).unwrap_err();
    assert_eq!((error.status(), error.message()), (Status::InvalidArgument, "seven"));
    assert!(error.to_string().contains("workgroup (1, 0, 1) of check of order"), "{error}");
    assert_eq!(RAN.load(Ordering::Relaxed), 8);
}

#[test]
fn grids_are_metered() {
    let library = ClosureLibrary::builder("idle").export("idle", |_, _, _| Ok(())).build();
    let executable = load(&RegisteredLoader::new().with(library), "static", b"idle").unwrap();
    let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
    meter.set_fuel(10);
    run(&*executable, &mut meter, [2, 2, 2], &[], &[]).unwrap();
    assert_eq!(meter.fuel(), Some(2));
    assert_eq!(run(&*executable, &mut meter, [u32::MAX; 3], &[], &[]).unwrap_err().status(), Status::ResourceExhausted);
    let mut meter = Meter::default();
    meter.interrupt_handle().interrupt();
    assert_eq!(run(&*executable, &mut meter, [u32::MAX; 3], &[], &[]).unwrap_err().status(), Status::Cancelled);
}

#[test]
fn views_stay_inside_their_binding() {
    let library = ClosureLibrary::builder("views").export("views", |_, _, bindings| {
        let [view, constant] = bindings else { return Err(Error::internal("two bindings")) };
        assert_eq!((view.len(), view.elements::<f32>(), view.elements::<u64>(), view.is_empty()), (12, 3, 1, false));
        view.set(0, 1.5f32)?;
        view.set(2, -2i32)?;
        assert_eq!((view.get::<u32>(0)?, view.get::<f32>(0)?, view.get::<i16>(4)?), (0x3FC0_0000, 1.5, -2));
        let out_of_range = |result: Result<()>| assert_eq!(result.unwrap_err().status(), Status::OutOfRange);
        out_of_range(view.get::<f32>(3).map(drop));
        out_of_range(view.get::<u64>(1).map(drop));
        out_of_range(view.get::<u8>(usize::MAX).map(drop));
        out_of_range(view.set(usize::MAX / 4, 0u32));
        out_of_range(view.read(8, &mut [0; 5]));
        out_of_range(view.write(usize::MAX, &[0; 2]));
        out_of_range(view.fill(0, 13, &[1]));
        out_of_range(view.copy_from(0, constant, 4, 5));
        view.fill(4, 4, &[9])?;
        view.copy_from(6, constant, 2, 2)?;
        assert!(!constant.is_writable() && view.is_writable());
        assert_eq!(constant.set(0, 1u8).unwrap_err().status(), Status::PermissionDenied);
        Ok(())
    });
    let executable = load(&RegisteredLoader::new().with(library.build()), "static", b"views").unwrap();
    // The binding is the middle of a larger buffer.
    let (buffer, constant) = (Span::zeroed(32, 64, &MemoryAccount::default()).unwrap(), Span::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]));
    let bindings = [Binding { span: &buffer, offset: 8, length: 12 }, Binding { span: &constant, offset: 0, length: 8 }];
    let dispatch = Dispatch { export: 0, workgroup_count: [1; 3], constants: &[], bindings: &bindings, concurrency: 1 };
    executable.dispatch(&mut Meter::default(), &dispatch).unwrap();
    let expected = [&[0; 8][..], &1.5f32.to_le_bytes(), &[9, 9, 3, 4], &(-2i32).to_le_bytes(), &[0; 12]].concat();
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

#[test]
fn a_binding_outside_its_span_is_refused() {
    let library = ClosureLibrary::builder("any").export("any", |_, _, _| Ok(())).build();
    let executable = load(&RegisteredLoader::new().with(library), "static", b"any").unwrap();
    let span = words(&[0; 4]);
    let bindings = [Binding { span: &span, offset: 8, length: 9 }];
    let dispatch = Dispatch { export: 0, workgroup_count: [1; 3], constants: &[], bindings: &bindings, concurrency: 1 };
    assert_eq!(executable.dispatch(&mut Meter::default(), &dispatch).unwrap_err().status(), Status::OutOfRange);
}

#[test]
fn executable_constants_reach_closures() {
    let library = ClosureLibrary::builder("constants")
        .executable_constants(2)
        .export("sum", |group, _, bindings| bindings[0].set(0, group.executable_constants.iter().sum::<u32>()));
    let loader = RegisteredLoader::new().with(library.build());
    let executable = load_with(&loader, "static", b"constants", &[40, 2], &Engine::default()).unwrap();
    let target = words(&[0]);
    run(&*executable, &mut Meter::default(), [1; 3], &[], &[&target]).unwrap();
    assert_eq!(target.load_u32(0), Some(42));
    let error = load(&loader, "static", b"constants").err().unwrap();
    assert_eq!(error.message(), "the library constants wants 2 executable constants, 0 were given");
}

/// Adds the constant to each u32 of binding 0.
unsafe extern "C" fn add(_: *const Environment, dispatch: *const DispatchState, _: *const WorkgroupState) -> i32 {
    // SAFETY: called with one binding and one constant, as declared.
    unsafe {
        let dispatch = &*dispatch;
        let values = (*dispatch.binding_pointers).cast::<u32>();
        for i in 0..*dispatch.binding_lengths / 4 {
            *values.add(i) += *dispatch.constants;
        }
    }
    0
}

unsafe extern "C" fn fail(_: *const Environment, _: *const DispatchState, _: *const WorkgroupState) -> i32 {
    13
}

#[test]
fn a_table_of_functions_is_a_library() {
    let kernel = |name, function| Kernel { name, function, constant_count: 1, binding_count: 1, local_memory_pages: 0 };
    // SAFETY: the functions read what they declare.
    let library = unsafe { StaticLibrary::from_kernels("table", [kernel("add", add), kernel("fail", fail)]) };
    let executable = load(&RegisteredLoader::new().with(library), "static", b"table\0").unwrap();
    assert_eq!((executable.lookup("add"), executable.lookup("fail"), executable.export_count()), (Some(0), Some(1), 2));
    let target = words(&[1, 2]);
    run(&*executable, &mut Meter::default(), [2, 1, 1], &[10], &[&target]).unwrap();
    assert_eq!([0, 4].map(|at| target.load_u32(at).unwrap()), [21, 22]);
    let bindings = [Binding { span: &target, offset: 0, length: 8 }];
    let dispatch = Dispatch { export: 1, workgroup_count: [1; 3], constants: &[0], bindings: &bindings, concurrency: 1 };
    let error = executable.dispatch(&mut Meter::default(), &dispatch).unwrap_err();
    assert_eq!(error.message(), "workgroup (0, 0, 0) of export 1 (fail) of table failed with the code 13");
    let error = run(&*executable, &mut Meter::default(), [1; 3], &[], &[&target]).unwrap_err();
    assert_eq!(error.message(), "export 0 (add) of table takes 1 constants, 0 were given");
}

/// Writes what the processor can do into binding 0, as the kernel is told.
unsafe extern "C" fn tell_features(environment: *const Environment, dispatch: *const DispatchState, _: *const WorkgroupState) -> i32 {
    // SAFETY: called with an environment and with one binding of 64 bytes, whose address is a multiple of 64.
    unsafe { (*(*dispatch).binding_pointers).cast::<[u64; 8]>().write((*environment).processor_data) };
    0
}

/// A module built for another machine may ask before it uses an instruction: the feature words are the real ones.
#[test]
fn c12_kernels_are_told_what_the_processor_can_do() {
    let kernel = Kernel { name: "features", function: tell_features, constant_count: 0, binding_count: 1, local_memory_pages: 0 };
    // SAFETY: the function writes the binding that it declares.
    let library = unsafe { StaticLibrary::from_kernels("table", [kernel]) };
    let executable = load(&RegisteredLoader::new().with(library), "static", b"table").unwrap();
    let target = Span::zeroed(64, 64, &MemoryAccount::default()).unwrap();
    run(&*executable, &mut Meter::default(), [1; 3], &[], &[&target]).unwrap();
    let told: Vec<u64> = (0..8).map(|index| target.load_element_u64(index).unwrap()).collect();
    assert_eq!(told, vmfb_hal::processor::words());
}

#[test]
fn a_kernel_that_declares_too_much_is_refused() {
    let kernel = Kernel { name: "add", function: add, constant_count: 65, binding_count: 0, local_memory_pages: 0 };
    // SAFETY: never called.
    let library = unsafe { StaticLibrary::from_kernels("table", [kernel]) };
    assert_eq!(load(&RegisteredLoader::new().with(library), "static", b"table").err().unwrap().status(), Status::OutOfRange);
}

/// A library as a compiler of v0_3 writes it for static linking, by hand: header, imports, exports, constants.
#[cfg(target_pointer_width = "64")]
mod by_query {
    use super::*;

    #[repr(C)]
    struct Header(u32, *const c_char, u32, u32);

    #[repr(C)]
    struct Library {
        header: *const Header,
        imports: (u32, *const c_void),
        export_count: u32,
        functions: *const [unsafe extern "C" fn(*const Environment, *const DispatchState, *const WorkgroupState) -> i32; 1],
        attributes: *const [u16; 2],
        names: *const [*const c_char; 1],
        tags: *const c_void,
        source_locations: *const c_void,
        constant_count: u32,
    }

    struct Shared<T>(T);
    // SAFETY: the statics are never changed.
    unsafe impl<T> Sync for Shared<T> {}

    static HEADER: Header = Header(3, c"by_query".as_ptr(), 0, 0);
    // SAFETY: never changed.
    unsafe impl Sync for Header {}
    static NAMES: Shared<[*const c_char; 1]> = Shared([c"add_dispatch_0".as_ptr()]);
    static LIBRARY: Shared<Library> = Shared(Library {
        header: &raw const HEADER,
        imports: (0, std::ptr::null()),
        export_count: 1,
        functions: &[add],
        attributes: &[0, 0],
        names: &raw const NAMES.0,
        tags: std::ptr::null(),
        source_locations: std::ptr::null(),
        constant_count: 0,
    });

    extern "C" fn query(version: u32, _: *const Environment) -> *const c_void {
        if version == 3 { (&raw const LIBRARY.0).cast() } else { std::ptr::null() }
    }

    extern "C" fn nothing(_: u32, _: *const Environment) -> *const c_void {
        std::ptr::null()
    }

    #[test]
    fn a_query_function_is_a_library() {
        // SAFETY: the library is well-formed, and its kernel reads one constant and one binding.
        let library = unsafe { StaticLibrary::from_query(query) }.unwrap();
        assert_eq!(library.name(), "by_query");
        let executable = load(&RegisteredLoader::new().with(library), "static", b"by_query\0").unwrap();
        assert_eq!(executable.lookup("add_dispatch_0"), Some(0));
        let target = words(&[5]);
        run(&*executable, &mut Meter::default(), [1; 3], &[6], &[&target]).unwrap();
        assert_eq!(target.load_u32(0), Some(11));
    }

    #[test]
    fn a_query_function_without_an_answer_is_refused() {
        // SAFETY: returns null.
        let error = unsafe { StaticLibrary::from_query(nothing) }.unwrap_err();
        assert_eq!(error.status(), Status::FailedPrecondition);
    }

    #[test]
    fn an_engine_that_denies_machine_code_takes_closures_only() {
        // SAFETY: as above.
        let library = unsafe { StaticLibrary::from_query(query) }.unwrap();
        let loader = RegisteredLoader::new().with(library).with(scale());
        let engine = Engine::new(Config::new().native_code(NativeCode::Deny));
        let error = load_with(&loader, "static", b"by_query", &[], &engine).err().unwrap();
        assert_eq!(error.status(), Status::PermissionDenied);
        load_with(&loader, "static", b"my_kernels", &[], &engine).unwrap();
    }
}
