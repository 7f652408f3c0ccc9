//! Dispatches on several threads give what they give on one.

use std::sync::Arc;
use std::time::{Duration, Instant};
use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::definition::{Attribute, BytecodeVersion, ModuleDef};
use vmfb_bytecode::isa::*;
use vmfb_hal::{Binding, Dispatch, Executable, ExecutableLoader, ExecutableParameters, Load, Workers};
use vmfb_loader_vmvx::{FORMAT, VmvxLoader};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Config, Engine, FuelMetering, Interruption, Meter, Result, Status};

const ENTRY: &str = "0rrriiiiiiiii_v";
const VERSION: BytecodeVersion = BytecodeVersion::V17;

// Registers of a kernel: scratch memory, constants, bindings; workgroup id x, y, z, size, count; then free ones.
const LOCAL: RefRead = RefRead::new(0);
const CONSTANTS: RefRead = RefRead::new(1);
const BINDINGS: RefRead = RefRead::new(2);
const WORDS: RefRead = RefRead::new(3);
const BUFFER: TypeOrdinal = TypeOrdinal(2);
const ZERO: X8 = X8(10);
const INDEX: X8 = X8(12);
const VALUE: X4 = X4(14);
const NUMBER: X4 = X4(15);

/// Binds registers: binding 0 to `WORDS`, the number of the workgroup, x fastest, to `INDEX` and `NUMBER`.
fn kernel() -> FunctionBuilder {
    let (count_x, count_y) = (X4(6), X4(7));
    let mut builder = FunctionBuilder::new(VERSION, ENTRY);
    builder.value_registers(20).ref_registers(4).start_block();
    builder.push(Op::ConstI64Zero { dst: ZERO }).push(Op::ConstI32Zero { dst: NUMBER });
    builder.push(Op::ListGetRef { list: BINDINGS, index: NUMBER, type_ordinal: BUFFER, dst: RefMove::new(3) });
    builder.push(Op::MulI32 { a: X4(2), b: count_y, dst: NUMBER });
    builder.push(Op::AddI32 { a: NUMBER, b: X4(1), dst: NUMBER });
    builder.push(Op::MulI32 { a: NUMBER, b: count_x, dst: NUMBER });
    builder.push(Op::AddI32 { a: NUMBER, b: X4(0), dst: NUMBER });
    builder.push(Op::ExtI32I64U { a: NUMBER, dst: INDEX });
    builder
}

fn module(mut kernel: FunctionBuilder, attributes: &[(&str, &str)]) -> ModuleDef {
    let mut module = empty_module("module", VERSION);
    module.types.extend(["i32", "i64", "!vm.buffer", "!vm.list<!vm.buffer>"].map(String::from));
    kernel.push(Op::Return { values: RegisterList::new(&[]) });
    let function = kernel.finish().unwrap().export_from(&mut module, "kernel");
    let attributes = attributes.iter().map(|(key, value)| Attribute { key: (*key).into(), value: (*value).into() });
    module.functions[function as usize].signature.get_or_insert_default().attributes = attributes.collect();
    module
}

/// Adds the number of the workgroup, a constant, and what scratch memory held last, which this workgroup has just written, to
/// the word of the workgroup.
fn counting() -> ModuleDef {
    let mut builder = kernel();
    builder.push(Op::BufferLoadI32 { source: WORDS, source_offset: INDEX, dst: VALUE });
    builder.push(Op::BufferStoreI32 { target: LOCAL, target_offset: ZERO, value: NUMBER });
    builder.push(Op::BufferLoadI32 { source: LOCAL, source_offset: ZERO, dst: NUMBER });
    builder.push(Op::AddI32 { a: VALUE, b: NUMBER, dst: VALUE });
    builder.push(Op::BufferLoadI32 { source: CONSTANTS, source_offset: ZERO, dst: NUMBER });
    builder.push(Op::AddI32 { a: VALUE, b: NUMBER, dst: VALUE });
    builder.push(Op::BufferStoreI32 { target: WORDS, target_offset: INDEX, value: VALUE });
    module(builder, &[("binding_count", "1"), ("constant_count", "1"), ("local_memory", "4096")])
}

/// An engine whose threads take part in every dispatch, however short it is.
fn engine(threads: usize, config: Config) -> Engine {
    let engine = Engine::new(config.worker_threads(threads));
    engine.shared(|| Workers::new(threads).worthwhile(Duration::ZERO));
    engine
}

fn load(engine: &Engine, module: &ModuleDef) -> Arc<dyn Executable> {
    let data = Span::from_vector(write_module(module, &[] as &[Vec<u8>], ArchiveForm::Plain).unwrap());
    let parameters = ExecutableParameters { format: FORMAT, data: &data, constants: &[], engine, account: &MemoryAccount::default() };
    match VmvxLoader::new().try_load(&parameters).unwrap() {
        Load::Loaded(executable) => executable,
        Load::NotMine(reason) => panic!("{reason}"),
    }
}

fn dispatch(executable: &dyn Executable, meter: &mut Meter, count: [u32; 3], constants: &[u32], span: &Span) -> Result<()> {
    let bindings = [Binding { span, offset: 0, length: span.len() }];
    executable.dispatch(meter, &Dispatch { export: 0, workgroup_count: count, constants, bindings: &bindings, concurrency: 8 })
}

fn zeros(words: usize) -> Span {
    Span::zeroed(words * 4, 64, &MemoryAccount::default()).unwrap()
}

const THREADS: [usize; 3] = [1, 2, 4];

#[test]
fn every_workgroup_runs_once_on_any_number_of_threads() {
    for threads in THREADS {
        let executable = load(&engine(threads, Config::new()), &counting());
        for grid in [[1, 1, 1], [2, 1, 1], [7, 1, 1], [3, 5, 7], [1, 1, 300], [64, 4, 2]] {
            let workgroups = grid.iter().product::<u32>();
            let span = zeros(workgroups as usize);
            for _ in 0..10 {
                dispatch(&*executable, &mut Meter::default(), grid, &[1000], &span).unwrap();
            }
            let right = (0..workgroups).all(|number| span.load_element_u32(number.into()) == Some(10 * (1000 + number)));
            assert!(right, "{grid:?} on {threads} threads");
        }
        dispatch(&*executable, &mut Meter::default(), [4, 0, 1], &[1], &zeros(1)).expect("nothing runs in an empty grid");
    }
}

/// Each of two workgroups says that it has come, and waits for the other.
#[test]
fn workgroups_run_at_the_same_time() {
    let mut builder = kernel();
    let (one, other, other_index) = (X4(14), X4(16), X8(18));
    builder.push(Op::ConstI32 { value: Imm32(1), dst: one });
    builder.push(Op::BufferStoreI32 { target: WORDS, target_offset: INDEX, value: one });
    builder.push(Op::XorI32 { a: NUMBER, b: one, dst: other });
    builder.push(Op::ExtI32I64U { a: other, dst: other_index });
    let again = builder.label();
    let done = builder.label();
    builder.push(Op::Br { to: again.pc(), moves: MoveList::new(&[]) });
    builder.place(again);
    builder.push(Op::BufferLoadI32 { source: WORDS, source_offset: other_index, dst: other });
    builder.push(Op::CondBr {
        condition: other,
        true_to: done.pc(),
        true_moves: MoveList::new(&[]),
        false_to: again.pc(),
        false_moves: MoveList::new(&[]),
    });
    builder.place(done);
    let executable = load(&engine(2, Config::new().interruption(Interruption::On)), &module(builder, &[]));
    let mut meter = Meter::default();
    meter.set_deadline(Some(Instant::now() + Duration::from_secs(120)));
    dispatch(&*executable, &mut meter, [2, 1, 1], &[], &zeros(2)).unwrap();
}

/// The binding has words for a part of the workgroups only.
#[test]
fn the_first_workgroup_that_fails_is_named_on_any_number_of_threads() {
    let mut texts = Vec::new();
    for threads in THREADS {
        let executable = load(&engine(threads, Config::new()), &counting());
        for _ in 0..20 {
            let span = zeros(37);
            let error = dispatch(&*executable, &mut Meter::default(), [10, 100, 1], &[1], &span).unwrap_err();
            assert_eq!(error.status(), Status::OutOfRange);
            texts.push(error.to_string());
            assert!((0..37).all(|number| span.load_element_u32(number) == Some(1 + number as u32)), "all before it have run");
        }
        dispatch(&*executable, &mut Meter::default(), [37, 1, 1], &[1], &zeros(37)).expect("the executable is usable afterwards");
    }
    assert!(texts[0].contains("workgroup (7, 3, 0) of (10, 100, 1)"), "{}", texts[0]);
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

fn endless() -> ModuleDef {
    let mut builder = FunctionBuilder::new(VERSION, ENTRY);
    let start = builder.start_block();
    builder.push(Op::Br { to: start.pc(), moves: MoveList::new(&[]) });
    let mut module = empty_module("module", VERSION);
    builder.finish().unwrap().export_from(&mut module, "endless");
    module
}

#[test]
fn interruption_and_deadline_end_all_threads() {
    for threads in THREADS {
        let executable = load(&engine(threads, Config::new().interruption(Interruption::On)), &endless());
        let mut meter = Meter::default();
        let handle = meter.interrupt_handle();
        let other = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            handle.interrupt();
        });
        assert_eq!(dispatch(&*executable, &mut meter, [16, 1, 1], &[], &zeros(1)).unwrap_err().status(), Status::Cancelled);
        other.join().unwrap();
        let mut meter = Meter::default();
        meter.set_deadline(Some(Instant::now() + Duration::from_millis(20)));
        assert_eq!(dispatch(&*executable, &mut meter, [16, 1, 1], &[], &zeros(1)).unwrap_err().status(), Status::DeadlineExceeded);
    }
}

#[test]
fn fuel_is_counted_the_same_on_any_number_of_threads() {
    let used = THREADS.map(|threads| {
        let executable = load(&engine(threads, Config::new().fuel(FuelMetering::On)), &counting());
        let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
        meter.set_fuel(1_000_000);
        dispatch(&*executable, &mut meter, [100, 1, 1], &[1], &zeros(100)).unwrap();
        1_000_000 - meter.fuel().unwrap()
    });
    assert!(used[0] > 100 * 10);
    assert_eq!(used, [used[0]; 3]);
}

/// Each thread needs memory of its own. Where there is none, it does not take part, and what runs on one thread runs on several.
#[test]
fn memory_for_one_thread_is_enough() {
    let need = {
        let account = MemoryAccount::default();
        let executable = load(&engine(1, Config::new()), &counting());
        let mut meter = Meter::new(FuelMetering::Off, account.clone());
        dispatch(&*executable, &mut meter, [50, 1, 1], &[1], &zeros(50)).unwrap();
        account.peak()
    };
    for threads in THREADS {
        let account = MemoryAccount::with_limit(need);
        let executable = load(&engine(threads, Config::new()), &counting());
        let mut meter = Meter::new(FuelMetering::Off, account.clone());
        for _ in 0..20 {
            dispatch(&*executable, &mut meter, [50, 1, 1], &[1], &zeros(50)).unwrap();
        }
        account.set_limit(account.used() + 100);
        let error = dispatch(&*executable, &mut meter, [50, 1, 1], &[1], &zeros(50)).unwrap_err();
        assert_eq!(error.status(), Status::ResourceExhausted, "{error}");
        drop((executable, meter));
        assert_eq!(account.used(), 0);
    }
}

/// `__set_constants` keeps a number in a global, and each thread has a global of its own.
#[test]
fn every_thread_knows_the_constants_of_the_executable() {
    let mut builder = kernel();
    builder.push(Op::GlobalLoadI32 { offset: GlobalOffset(0), dst: VALUE });
    builder.push(Op::BufferStoreI32 { target: WORDS, target_offset: INDEX, value: VALUE });
    let mut module = module(builder, &[]);
    module.global_bytes = 4;
    let mut setter = FunctionBuilder::new(VERSION, "0r_v");
    setter.value_registers(4).ref_registers(1).start_block();
    setter.push(Op::ConstI64Zero { dst: X8(0) });
    setter.push(Op::BufferLoadI32 { source: RefRead::new(0), source_offset: X8(0), dst: X4(2) });
    setter.push(Op::GlobalStoreI32 { offset: GlobalOffset(0), value: X4(2) });
    setter.push(Op::Return { values: RegisterList::new(&[]) });
    setter.finish().unwrap().export_from(&mut module, "__set_constants");

    let data = Span::from_vector(write_module(&module, &[] as &[Vec<u8>], ArchiveForm::Plain).unwrap());
    let engine = engine(4, Config::new());
    let parameters =
        ExecutableParameters { format: FORMAT, data: &data, constants: &[77], engine: &engine, account: &MemoryAccount::default() };
    let Load::Loaded(executable) = VmvxLoader::new().try_load(&parameters).unwrap() else { panic!("refused") };
    for _ in 0..20 {
        let span = zeros(500);
        dispatch(&*executable, &mut Meter::default(), [500, 1, 1], &[], &span).unwrap();
        assert!((0..500).all(|number| span.load_element_u32(number) == Some(77)));
    }
}
