//! Tests of dispatches on several threads, with kernels written here.

use super::super::Version;
use super::super::library::{Attributes, ExportEntry, LibraryTables, Sanitizer, WorkgroupOrder};
use super::super::native::{HostConvention, NativeLibrary};
use super::super::state::{DispatchState, Environment, HostKernel, WorkgroupState};
use super::*;
use crate::{Binding, Dispatch, Executable};
use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vmfb_memory::MemoryAccount;
use vmfb_vm::Status;

fn library(kernel: HostKernel, attributes: Attributes, threads: usize) -> NativeLibrary<HostConvention> {
    let function = (kernel as *const c_void).expose_provenance() as u64;
    let exports = vec![ExportEntry { function, name: Some("kernel".to_owned()), attributes }];
    let (name, imports) = ("threads".to_owned(), Vec::new());
    let tables = LibraryTables { version: Version::V0_6, name, sanitizer: Sanitizer::None, imports, exports, constant_count: 0 };
    let workers = Workers::new(threads).worthwhile(Duration::ZERO);
    // SAFETY: the kernels of this file take what their attributes say, on any thread.
    let library = unsafe { NativeLibrary::from_tables(tables, Box::new(()), &[]) }.unwrap();
    library.with_workers(Some(Arc::new(workers)))
}

fn attributes(constants: u8, bindings: u8) -> Attributes {
    Attributes { constant_count: Some(constants), binding_count: Some(bindings), ..Attributes::default() }
}

fn dispatch(library: &NativeLibrary<HostConvention>, count: [u32; 3], constants: &[u32], span: &Span) -> Result<()> {
    let bindings = [Binding { span, offset: 0, length: span.len() }];
    let threads = 8;
    library.dispatch(
        &mut Meter::default(),
        &Dispatch { export: 0, workgroup_count: count, constants, bindings: &bindings, concurrency: threads },
    )
}

/// Counts each workgroup in a word of its own, and itself in local memory; fails on the workgroups of the constants.
unsafe extern "C" fn count(_: *const Environment, dispatch: *const DispatchState, workgroup: *const WorkgroupState) -> i32 {
    // SAFETY: called with one binding of a word for each workgroup, and two constants.
    unsafe {
        let (dispatch, workgroup) = (&*dispatch, &*workgroup);
        let (x, y, z) = (workgroup.workgroup_id_x, workgroup.workgroup_id_y, u32::from(workgroup.workgroup_id_z));
        let index = x + dispatch.workgroup_count_x * (y + dispatch.workgroup_count_y * z);
        let word = (*dispatch.binding_pointers).cast::<u32>().add(index as usize);
        AtomicU32::from_ptr(word).fetch_add(1, Ordering::Relaxed);
        // Nobody else writes to this local memory meanwhile.
        let scratch = workgroup.local_memory.cast::<u32>();
        for at in 0..1024 {
            scratch.add(at).write_volatile(index);
        }
        std::thread::yield_now();
        let disturbed = (0..1024).any(|at| scratch.add(at).read_volatile() != index);
        let (first, second) = (*dispatch.constants, *dispatch.constants.add(1));
        if disturbed { 99 } else { i32::from(index == first || index == second) }
    }
}

fn counting(threads: usize) -> NativeLibrary<HostConvention> {
    library(count, Attributes { local_memory_pages: 1, ..attributes(2, 1) }, threads)
}

const NONE: u32 = u32::MAX;

#[test]
fn every_workgroup_runs_once() {
    for (grid, threads) in [([1, 1, 1], 2), ([7, 1, 1], 3), ([3, 5, 7], 2), ([64, 4, 2], 4), ([1, 1, 300], 3)] {
        let workgroups = grid.iter().product::<u32>() as usize;
        let span = Span::zeroed(workgroups * 4, 1, &MemoryAccount::default()).unwrap();
        let library = counting(threads);
        for _ in 0..5 {
            dispatch(&library, grid, &[NONE, NONE], &span).unwrap();
        }
        assert!((0..workgroups as u64).all(|index| span.load_element_u32(index) == Some(5)), "{grid:?}");
    }
}

#[test]
fn a_failure_ends_the_grid() {
    let span = Span::zeroed(4 * 4000, 1, &MemoryAccount::default()).unwrap();
    let library = counting(2);
    let error = dispatch(&library, [4000, 1, 1], &[3, 3], &span).unwrap_err();
    assert_eq!(error.status(), Status::Internal);
    assert!(error.message().contains("workgroup (3, 0, 0)") && error.message().contains("kernel"), "{error}");
    let ran = (0..4000).filter(|index| span.load_element_u32(*index) == Some(1)).count();
    assert!(ran < 4000, "no new pieces are taken");
    dispatch(&library, [4000, 1, 1], &[NONE, NONE], &span).expect("the library is usable afterwards");
}

#[test]
fn several_threads_take_part() {
    static SEEN: Mutex<Option<HashSet<std::thread::ThreadId>>> = Mutex::new(None);
    static ARRIVED: AtomicU32 = AtomicU32::new(0);
    /// Waits until two threads are in it.
    unsafe extern "C" fn meet(_: *const Environment, _: *const DispatchState, _: *const WorkgroupState) -> i32 {
        SEEN.lock().unwrap().get_or_insert_default().insert(std::thread::current().id());
        ARRIVED.fetch_add(1, Ordering::Relaxed);
        let start = Instant::now();
        while ARRIVED.load(Ordering::Relaxed) < 2 && start.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        0
    }
    let span = Span::zeroed(4, 1, &MemoryAccount::default()).unwrap();
    dispatch(&library(meet, attributes(0, 1), 2), [2, 1, 1], &[], &span).unwrap();
    assert_eq!(SEEN.lock().unwrap().as_ref().map(HashSet::len), Some(2));
}

#[test]
fn sequential_exports_stay_on_the_calling_thread() {
    /// Fails on other threads than the first that comes.
    unsafe extern "C" fn same(_: *const Environment, _: *const DispatchState, _: *const WorkgroupState) -> i32 {
        static FIRST: Mutex<Option<std::thread::ThreadId>> = Mutex::new(None);
        let here = std::thread::current().id();
        i32::from(*FIRST.lock().unwrap().get_or_insert(here) != here)
    }
    let span = Span::zeroed(4, 1, &MemoryAccount::default()).unwrap();
    let sequential = Attributes { order: WorkgroupOrder::Sequential, ..attributes(0, 1) };
    dispatch(&library(same, sequential, 4), [1000, 1, 1], &[], &span).unwrap();
}

#[test]
fn an_interruption_ends_all_threads() {
    unsafe extern "C" fn nothing(_: *const Environment, _: *const DispatchState, _: *const WorkgroupState) -> i32 {
        0
    }
    let span = Span::zeroed(4, 1, &MemoryAccount::default()).unwrap();
    let library = library(nothing, attributes(0, 1), 2);
    let mut meter = Meter::default();
    meter.set_deadline(Some(Instant::now() + Duration::from_millis(20)));
    let bindings = [Binding { span: &span, offset: 0, length: 4 }];
    let grid = Dispatch { export: 0, workgroup_count: [u32::MAX, 1 << 16, 1], constants: &[], bindings: &bindings, concurrency: 2 };
    assert_eq!(library.dispatch(&mut meter, &grid).unwrap_err().status(), Status::DeadlineExceeded);
}

#[test]
fn local_memory_is_charged_for_each_thread_and_returned() {
    let span = Span::zeroed(4 * 100, 1, &MemoryAccount::default()).unwrap();
    let bindings = [Binding { span: &span, offset: 0, length: span.len() }];
    let grid = Dispatch { export: 0, workgroup_count: [100, 1, 1], constants: &[NONE; 2], bindings: &bindings, concurrency: 3 };
    let library = counting(3);
    let account = MemoryAccount::default();
    library.dispatch(&mut Meter::new(Default::default(), account.clone()), &grid).unwrap();
    assert!(account.peak() >= 3 * 4096);
    assert_eq!(account.used(), 0);
    // What fits on one thread does not fail on several; what does not fit fails.
    let one = MemoryAccount::default();
    let alone = Dispatch { concurrency: 1, ..grid };
    library.dispatch(&mut Meter::new(Default::default(), one.clone()), &alone).unwrap();
    let need = one.peak();
    for (limit, status) in [(3 * need - 1, None), (need, None), (need - 1, Some(Status::ResourceExhausted))] {
        let small = MemoryAccount::with_limit(limit);
        let outcome = library.dispatch(&mut Meter::new(Default::default(), small), &grid);
        assert_eq!(outcome.err().map(|error| error.status()), status);
    }
}
