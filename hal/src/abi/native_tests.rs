//! Tests of loading and dispatching with kernels written here.

use super::super::test_library::{TestExport, TestLibrary};
use super::*;
use crate::Binding;
use std::cell::{Cell, RefCell};
use vmfb_memory::MemoryAccount;
use vmfb_vm::FuelMetering;

thread_local! {
    /// What the query function of this thread answers, and to which number.
    static ANSWER: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
    /// Workgroups that ran.
    static SEEN: RefCell<Vec<[u32; 3]>> = const { RefCell::new(Vec::new()) };
}

extern "C" fn query(version: u32, _: *const Environment) -> *const c_void {
    let (number, library) = ANSWER.get();
    if number == version { ptr::with_exposed_provenance(library) } else { ptr::null() }
}

/// Memory of this process, as far as the test made it.
struct Process;

impl AddressSpace for Process {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        // SAFETY: the tables were written by these tests and point at nothing but themselves.
        unsafe { ptr::copy_nonoverlapping(ptr::with_exposed_provenance(address as usize), target.as_mut_ptr(), target.len()) };
        true
    }

    fn is_executable(&self, address: u64) -> bool {
        address != 0
    }

    fn describe(&self) -> &str {
        "this process"
    }
}

fn load_library(library: &TestLibrary, constants: &[u32]) -> Result<NativeLibrary<HostConvention>> {
    let bytes = library.write(0).len();
    let mut memory = vec![0u64; bytes.div_ceil(8)];
    let base = memory.as_mut_ptr().expose_provenance();
    for (word, chunk) in memory.iter_mut().zip(library.write(base as u64).chunks(8)) {
        let mut word_bytes = [0; 8];
        word_bytes[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(word_bytes);
    }
    ANSWER.set((library.version.number(), base));
    // SAFETY: the tables name kernels of this file with their true counts, and live as long as the library, which owns them.
    unsafe { NativeLibrary::load(query as *const c_void as usize, &Process, Box::new(memory), constants) }
}

fn load_kernel(version: Version, kernel: HostKernel, constants: u8, bindings: u8) -> NativeLibrary<HostConvention> {
    let function = kernel as *const c_void as usize as u64;
    let export = TestExport { function, name: Some("kernel"), constants, bindings, pages: 0 };
    load_library(&TestLibrary::new(version, vec![export]), &[]).unwrap()
}

/// Notes the workgroup, and fails on the one that the first constant names.
unsafe extern "C" fn note(_: *const Environment, dispatch: *const DispatchState, workgroup: *const WorkgroupState) -> i32 {
    // SAFETY: the tests call with valid states.
    let (dispatch, workgroup) = unsafe { (&*dispatch, &*workgroup) };
    assert!(on_64_bytes(dispatch) && on_64_bytes(workgroup));
    let id = [workgroup.workgroup_id_x, workgroup.workgroup_id_y, workgroup.workgroup_id_z.into()];
    SEEN.with_borrow_mut(|seen| seen.push(id));
    // SAFETY: there are at least 64 constants or the declared one.
    let failing = unsafe { dispatch.constants.read() };
    if failing == SEEN.with_borrow(|seen| seen.len()) as u32 { 7 } else { 0 }
}

fn on_64_bytes<T>(pointer: *const T) -> bool {
    pointer.addr().is_multiple_of(64)
}

/// Adds the constant to each u32 of binding 0 and writes binding 1.
unsafe extern "C" fn add(_: *const Environment, dispatch: *const DispatchState, _: *const WorkgroupState) -> i32 {
    // SAFETY: called with two bindings of equal length and one constant.
    unsafe {
        let dispatch = &*dispatch;
        assert_eq!((dispatch.constant_count, dispatch.binding_count), (1, 2));
        let (source, target) = (*dispatch.binding_pointers, *dispatch.binding_pointers.add(1));
        for i in 0..*dispatch.binding_lengths / 4 {
            let value = source.cast::<u32>().add(i).read();
            target.cast::<u32>().add(i).write(value + *dispatch.constants);
        }
    }
    0
}

/// Looks into the guarded slots.
unsafe extern "C" fn inspect_guard(_: *const Environment, dispatch: *const DispatchState, _: *const WorkgroupState) -> i32 {
    // SAFETY: the tables have 64 entries.
    unsafe {
        let dispatch = &*dispatch;
        for slot in usize::from(dispatch.binding_count)..64 {
            if *dispatch.binding_lengths.add(slot) != 0 || (*dispatch.binding_pointers.add(slot)).addr() < 1 << 57 {
                return 1;
            }
        }
        let constants = (usize::from(dispatch.constant_count)..64).map(|slot| *dispatch.constants.add(slot));
        i32::from(constants.sum::<u32>() != 0)
    }
}

/// Fills its local memory and checks that it is there.
unsafe extern "C" fn use_local_memory(_: *const Environment, _: *const DispatchState, workgroup: *const WorkgroupState) -> i32 {
    // SAFETY: the state says how much there is.
    unsafe {
        let workgroup = &*workgroup;
        if workgroup.local_memory_size < 2 * 4096 || !on_64_bytes(workgroup.local_memory) {
            return 1;
        }
        workgroup.local_memory.cast::<u8>().write_bytes(0xAA, workgroup.local_memory_size as usize);
    }
    0
}

fn run_grid(library: &NativeLibrary<HostConvention>, meter: &mut Meter, count: [u32; 3], constants: &[u32]) -> Result<Vec<[u32; 3]>> {
    SEEN.take();
    let result = library.dispatch(meter, &Dispatch { export: 0, workgroup_count: count, constants, bindings: &[], concurrency: 1 });
    result.map(|()| SEEN.take())
}

#[test]
fn every_version_runs() {
    for version in Version::NEWEST_FIRST {
        let library = load_kernel(version, add, 1, 2);
        assert_eq!((library.version(), library.name()), (version, "test_library"));
        let account = MemoryAccount::default();
        let source = Span::copy_of(&[1, 0, 0, 0, 2, 0, 0, 0], &account).unwrap();
        let target = Span::zeroed(8, 64, &account).unwrap();
        let bindings = [Binding { span: &source, offset: 0, length: 8 }, Binding { span: &target, offset: 0, length: 8 }];
        let dispatch = Dispatch { export: 0, workgroup_count: [1; 3], constants: &[40], bindings: &bindings, concurrency: 1 };
        library.dispatch(&mut Meter::default(), &dispatch).unwrap();
        assert_eq!((target.load_u32(0), target.load_u32(4)), (Some(41), Some(42)));
    }
}

#[test]
fn the_grid_runs_x_first_and_z_last() {
    let library = load_kernel(Version::V0_6, note, 1, 0);
    let seen = run_grid(&library, &mut Meter::default(), [3, 2, 2], &[0]).unwrap();
    let expected: Vec<_> = (0..2).flat_map(|z| (0..2).flat_map(move |y| (0..3).map(move |x| [x, y, z]))).collect();
    assert_eq!(seen, expected);
}

#[test]
fn an_empty_grid_calls_nothing() {
    let library = load_kernel(Version::V0_6, note, 1, 0);
    for count in [[0, 1, 1], [1, 0, 1], [1, 1, 0], [u32::MAX, 0, 9]] {
        assert_eq!(run_grid(&library, &mut Meter::default(), count, &[0]).unwrap(), Vec::<[u32; 3]>::new());
    }
}

#[test]
fn the_first_failing_workgroup_ends_the_dispatch() {
    let library = load_kernel(Version::V0_5, note, 1, 0);
    let error = run_grid(&library, &mut Meter::default(), [3, 4, 2], &[5]).unwrap_err();
    assert_eq!(error.status(), Status::Internal);
    assert_eq!(error.message(), "workgroup (1, 1, 0) of export 0 (kernel) of test_library failed with the code 7");
    assert_eq!(SEEN.take().len(), 5);
}

#[test]
fn counts_are_compared_with_what_is_declared() {
    let library = load_kernel(Version::V0_6, note, 1, 0);
    let error = run_grid(&library, &mut Meter::default(), [1; 3], &[0, 0, 0]).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert_eq!(error.message(), "export 0 (kernel) of test_library takes 1 constants, 3 were given");
    let span = Span::from_static(&[0; 64]);
    let bindings = [Binding { span: &span, offset: 0, length: 0 }];
    let dispatch = Dispatch { export: 0, workgroup_count: [1; 3], constants: &[0], bindings: &bindings, concurrency: 1 };
    let error = library.dispatch(&mut Meter::default(), &dispatch).unwrap_err();
    assert_eq!(error.message(), "export 0 (kernel) of test_library takes 0 bindings, 1 were given");
}

#[test]
fn old_libraries_get_guarded_slots_and_the_abi_limits() {
    for version in [Version::V0_3, Version::V0_4] {
        let library = load_kernel(version, inspect_guard, 0, 0);
        run_grid(&library, &mut Meter::default(), [1; 3], &[1, 2]).unwrap();
        let error = run_grid(&library, &mut Meter::default(), [1; 3], &[0; 65]).unwrap_err();
        assert_eq!(error.status(), Status::OutOfRange);
    }
}

/// C3: an ordinal past the end must not be called.
#[test]
fn c3_an_ordinal_past_the_end_is_out_of_range() {
    let library = load_kernel(Version::V0_6, note, 1, 0);
    for export in [1, 2, 1 << 32, usize::MAX] {
        let dispatch = Dispatch { export, workgroup_count: [1; 3], constants: &[0], bindings: &[], concurrency: 1 };
        let error = library.dispatch(&mut Meter::default(), &dispatch).unwrap_err();
        assert_eq!(error.status(), Status::OutOfRange);
        assert!(error.message().contains(&export.to_string()) && error.message().contains("has 1 exports"), "{error}");
        assert_eq!(library.export(export), None);
    }
    assert_eq!((library.lookup("kernel"), library.lookup("other")), (Some(0), None));
}

#[test]
fn a_misaligned_binding_is_refused_unless_it_is_empty() {
    let library = load_kernel(Version::V0_6, inspect_guard, 0, 1);
    let span = Span::zeroed(64, 64, &MemoryAccount::default()).unwrap();
    let run = |offset, length| {
        let bindings = [Binding { span: &span, offset, length }];
        let dispatch = Dispatch { export: 0, workgroup_count: [0, 1, 1], constants: &[], bindings: &bindings, concurrency: 1 };
        library.dispatch(&mut Meter::default(), &Dispatch { workgroup_count: [1; 3], ..dispatch }).map_err(|error| error.status())
    };
    // The kernel of this test returns 1 as there is no guard in this version: the call itself was made.
    assert_eq!(run(16, 4), Err(Status::Internal));
    assert_eq!(run(4, 0), Err(Status::Internal));
    assert_eq!(run(4, 4), Err(Status::InvalidArgument));
    assert_eq!(run(48, 17), Err(Status::OutOfRange));
    assert_eq!(run(usize::MAX, 16), Err(Status::OutOfRange));
}

#[test]
fn too_many_workgroups_along_z_are_refused() {
    let library = load_kernel(Version::V0_6, note, 1, 0);
    let error = run_grid(&library, &mut Meter::default(), [1, 1, 65_536], &[0]).unwrap_err();
    assert_eq!(error.status(), Status::OutOfRange);
    assert!(error.message().contains("65536 workgroups along z; at most 65535"), "{error}");
}

#[test]
fn local_memory_is_given_charged_and_returned() {
    let function = use_local_memory as *const c_void as usize as u64;
    let export = TestExport { function, name: None, constants: 0, bindings: 0, pages: 2 };
    let library = load_library(&TestLibrary::new(Version::V0_5, vec![export]), &[]).unwrap();
    assert_eq!(library.export(0).unwrap().local_memory, 8192);
    let account = MemoryAccount::default();
    let mut meter = Meter::new(FuelMetering::Off, account.clone());
    run_grid(&library, &mut meter, [4, 1, 1], &[]).unwrap();
    assert_eq!(account.used(), 0);
    assert!(account.peak() >= 8192);
    account.set_limit(8000);
    assert_eq!(run_grid(&library, &mut meter, [4, 1, 1], &[]).unwrap_err().status(), Status::ResourceExhausted);
}

#[test]
fn a_workgroup_costs_one_unit_of_fuel_paid_in_advance() {
    let library = load_kernel(Version::V0_6, note, 1, 0);
    let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
    meter.set_fuel(25);
    run_grid(&library, &mut meter, [3, 2, 4], &[0]).unwrap();
    assert_eq!(meter.fuel(), Some(1));
    let error = run_grid(&library, &mut meter, [u32::MAX, u32::MAX, 65_535], &[0]).unwrap_err();
    assert_eq!(error.status(), Status::ResourceExhausted);
    assert_eq!(SEEN.take().len(), 0);
}

#[test]
fn an_interruption_ends_a_grid_that_would_take_for_ever() {
    unsafe extern "C" fn nothing(_: *const Environment, _: *const DispatchState, _: *const WorkgroupState) -> i32 {
        0
    }
    let library = load_kernel(Version::V0_6, nothing, 0, 0);
    let mut meter = Meter::default();
    meter.set_deadline(Some(std::time::Instant::now() + std::time::Duration::from_millis(20)));
    let error = run_grid(&library, &mut meter, [u32::MAX, u32::MAX, 65_535], &[]).unwrap_err();
    assert_eq!(error.status(), Status::DeadlineExceeded);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[test]
fn the_rounding_mode_is_put_back() {
    /// Sets flush-to-zero and rounding towards zero.
    unsafe extern "C" fn disturb(_: *const Environment, _: *const DispatchState, _: *const WorkgroupState) -> i32 {
        let word: u32 = 0xFF80;
        // SAFETY: sets documented bits of MXCSR.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
        0
    }
    let library = load_kernel(Version::V0_6, disturb, 0, 0);
    run_grid(&library, &mut Meter::default(), [2, 1, 1], &[]).unwrap();
    let mut word: u32 = 0;
    // SAFETY: stores MXCSR.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack)) };
    assert_eq!(word & 0xFFC0, 0x1F80);
}

#[test]
fn executable_constants_must_match_in_number() {
    let mut library = TestLibrary::new(Version::V0_6, Vec::new());
    library.constants = 2;
    let error = load_library(&library, &[1]).err().unwrap();
    assert_eq!(error.status(), Status::FailedPrecondition);
    assert_eq!(error.message(), "the executable library wants 2 executable constants, 1 were given");
    load_library(&library, &[1, 2]).unwrap();
}

#[test]
fn optional_imports_are_null_and_required_ones_are_named() {
    unsafe extern "C" fn check(environment: *const Environment, _: *const DispatchState, _: *const WorkgroupState) -> i32 {
        // SAFETY: the environment is valid and the library has one import.
        i32::from(unsafe { !(*(*environment).import_functions).is_null() || (*environment).import_thunk.is_null() })
    }
    let function = check as *const c_void as usize as u64;
    let export = TestExport { function, name: None, constants: 0, bindings: 0, pages: 0 };
    let mut library = TestLibrary::new(Version::V0_3, vec![export]);
    library.imports = vec!["?fast_path"];
    run_grid(&load_library(&library, &[]).unwrap(), &mut Meter::default(), [1; 3], &[]).unwrap();
    library.imports = vec!["?fast_path", "needed_function"];
    let error = load_library(&library, &[]).err().unwrap();
    assert_eq!(error.status(), Status::Unavailable);
    assert!(error.message().contains("needed_function"), "{error}");
}

#[test]
fn a_sanitizer_build_is_refused() {
    let mut library = TestLibrary::new(Version::V0_6, Vec::new());
    library.sanitizer = 1;
    let error = load_library(&library, &[]).err().unwrap();
    assert_eq!(error.status(), Status::Unavailable);
    assert!(error.message().contains("Address"), "{error}");
}

#[test]
fn a_library_of_no_known_version_is_refused() {
    ANSWER.set((2, 0));
    // SAFETY: the query function of these tests answers null here.
    let error = unsafe { NativeLibrary::<HostConvention>::load(query as *const c_void as usize, &Process, Box::new(()), &[]) };
    let error = error.err().unwrap();
    assert_eq!(error.status(), Status::FailedPrecondition);
    assert!(error.message().contains("6, 5, 4 and 3"), "{error}");
}

/// A library that answers to every number from its own on, as one written by hand may.
#[test]
fn a_library_that_answers_to_newer_numbers_too_is_found() {
    extern "C" fn generous(version: u32, _: *const Environment) -> *const c_void {
        let (number, library) = ANSWER.get();
        if version >= number { ptr::with_exposed_provenance(library) } else { ptr::null() }
    }
    let _tables = load_kernel(Version::V0_4, note, 0, 0);
    // SAFETY: the answer is the library that was just written.
    let library = unsafe { NativeLibrary::<HostConvention>::load(generous as *const c_void as usize, &Process, Box::new(()), &[]) };
    assert_eq!(library.unwrap().version(), Version::V0_4);
}
