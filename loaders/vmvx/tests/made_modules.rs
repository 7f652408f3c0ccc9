//! Executables that these tests write themselves: every rule of the loader, and every limit.

use std::sync::Arc;
use std::time::{Duration, Instant};
use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::definition::{Attribute, BytecodeVersion, Import, ModuleDef, Necessity, Signature};
use vmfb_bytecode::isa::*;
use vmfb_hal::{Binding, Dispatch, Executable, ExecutableLoader, ExecutableParameters, Load};
use vmfb_loader_vmvx::{FORMAT, VmvxLoader};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Config, Engine, Error, FuelMetering, Interruption, Meter, NativeCode, Result, Status};

const ENTRY: &str = "0rrriiiiiiiii_v";
const VERSION: BytecodeVersion = BytecodeVersion::V17;

// Registers of an entry: scratch memory, constants, bindings; workgroup id x, y, z, size, count; then free ones.
const LOCAL: RefRead = RefRead::new(0);
const CONSTANTS: RefRead = RefRead::new(1);
const BINDINGS: RefRead = RefRead::new(2);
const ID_X: X4 = X4(0);
const ZERO: X8 = X8(10);
const INDEX: X8 = X8(12);
const VALUE: X4 = X4(14);
const NUMBER: X4 = X4(15);
const LONG: X8 = X8(16);

/// A module with the types that kernels need.
fn module() -> ModuleDef {
    let mut module = empty_module("module", VERSION);
    module.types.extend(["i32", "i64", "!vm.buffer", "!vm.list<!vm.buffer>"].map(String::from));
    module
}

const BUFFER: TypeOrdinal = TypeOrdinal(2);

/// Starts a kernel: the index of the workgroup along x in `INDEX`, binding 0 in ref register 3, if asked for.
fn kernel() -> FunctionBuilder {
    let mut builder = FunctionBuilder::new(VERSION, ENTRY);
    builder.value_registers(18).ref_registers(5).start_block();
    builder.push(Op::ExtI32I64U { a: ID_X, dst: INDEX }).push(Op::ConstI64Zero { dst: ZERO });
    builder
}

fn binding(builder: &mut FunctionBuilder, index: u32, register: u16) {
    builder.push(Op::ConstI32 { value: Imm32(index), dst: NUMBER });
    builder.push(Op::ListGetRef { list: BINDINGS, index: NUMBER, type_ordinal: BUFFER, dst: RefMove::new(register) });
}

fn finish(mut builder: FunctionBuilder, module: &mut ModuleDef, name: &str, attributes: &[(&str, &str)]) {
    builder.push(Op::Return { values: RegisterList::new(&[]) });
    let function = builder.finish().unwrap().export_from(module, name);
    let attributes = attributes.iter().map(|(key, value)| Attribute { key: (*key).into(), value: (*value).into() });
    module.functions[function as usize].signature.get_or_insert_default().attributes = attributes.collect();
}

/// `binding 1 [x] = binding 0 [x] + constant 0`.
fn add_constant() -> ModuleDef {
    let mut module = module();
    add_constant_to(&mut module, "add", &[("binding_count", "2"), ("constant_count", "1")]);
    module
}

fn add_constant_to(module: &mut ModuleDef, name: &str, attributes: &[(&str, &str)]) {
    let mut builder = kernel();
    binding(&mut builder, 0, 3);
    binding(&mut builder, 1, 4);
    builder.push(Op::BufferLoadI32 { source: CONSTANTS, source_offset: ZERO, dst: VALUE });
    builder.push(Op::BufferLoadI32 { source: RefRead::new(3), source_offset: INDEX, dst: NUMBER });
    builder.push(Op::AddI32 { a: VALUE, b: NUMBER, dst: VALUE });
    builder.push(Op::BufferStoreI32 { target: RefRead::new(4), target_offset: INDEX, value: VALUE });
    finish(builder, module, name, attributes);
}

/// A kernel that never ends.
fn endless() -> ModuleDef {
    let (mut module, mut builder) = (module(), FunctionBuilder::new(VERSION, ENTRY));
    let start = builder.start_block();
    builder.push(Op::Br { to: start.pc(), moves: MoveList::new(&[]) });
    builder.finish().unwrap().export_from(&mut module, "endless");
    module
}

fn write(module: &ModuleDef) -> Span {
    Span::from_vector(write_module(module, &[] as &[Vec<u8>], ArchiveForm::Plain).unwrap())
}

fn try_load(engine: &Engine, module: &ModuleDef, constants: &[u32]) -> Result<Arc<dyn Executable>> {
    let parameters = ExecutableParameters { format: FORMAT, data: &write(module), constants, engine, account: &MemoryAccount::default() };
    match VmvxLoader::new().try_load(&parameters)? {
        Load::Loaded(executable) => Ok(executable),
        Load::NotMine(reason) => Err(reason),
    }
}

fn load(module: &ModuleDef) -> Arc<dyn Executable> {
    try_load(&Engine::default(), module, &[]).unwrap()
}

fn refusal(module: &ModuleDef, constants: &[u32]) -> Error {
    try_load(&Engine::default(), module, constants).err().expect("the module is refused")
}

fn words(values: &[u32]) -> Span {
    Span::copy_of(&bytes_of(values), &MemoryAccount::default()).unwrap()
}

fn bytes_of(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn content(span: &Span) -> Vec<u32> {
    (0..(span.len() / 4) as u64).map(|index| span.load_element_u32(index).unwrap()).collect()
}

fn whole(spans: &[Span]) -> Vec<Binding<'_>> {
    spans.iter().map(|span| Binding { span, offset: 0, length: span.len() }).collect()
}

fn dispatch(executable: &dyn Executable, meter: &mut Meter, count: [u32; 3], constants: &[u32], bindings: &[Binding<'_>]) -> Result<()> {
    executable.dispatch(meter, &Dispatch { export: 0, workgroup_count: count, constants, bindings, concurrency: 1 })
}

#[track_caller]
fn assert_error(result: Result<()>, status: Status, parts: &[&str]) {
    let error = result.expect_err("an error is wanted");
    let text = error.to_string();
    assert_eq!(error.status(), status, "{text}");
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in {text:?}"));
}

#[test]
fn a_kernel_runs_once_for_each_workgroup() {
    let executable = load(&add_constant());
    let spans = [words(&[1, 2, 3, 4]), words(&[0; 4])];
    dispatch(&*executable, &mut Meter::default(), [4, 1, 1], &[10], &whole(&spans)).unwrap();
    assert_eq!(content(&spans[1]), [11, 12, 13, 14]);
    // Nothing runs in an empty grid.
    dispatch(&*executable, &mut Meter::default(), [4, 0, 1], &[20], &whole(&spans)).unwrap();
    assert_eq!(content(&spans[1]), [11, 12, 13, 14]);
    // A binding is a range of a buffer, and nothing outside can be touched.
    let part = [Binding { span: &spans[0], offset: 4, length: 8 }, Binding { span: &spans[1], offset: 8, length: 8 }];
    dispatch(&*executable, &mut Meter::default(), [2, 1, 1], &[100], &part).unwrap();
    assert_eq!(content(&spans[1]), [11, 12, 102, 103]);
    let result = dispatch(&*executable, &mut Meter::default(), [3, 1, 1], &[100], &part);
    assert_error(result, Status::OutOfRange, &["workgroup (2, 0, 0) of (3, 1, 1)", "dispatching add"]);
    assert_eq!(content(&spans[0]), [1, 2, 3, 4]);
}

/// Ids, sizes and counts of a 2 x 3 x 2 grid, in the order x fastest, collected in a log whose length is in its first word.
#[test]
fn workgroups_are_numbered_with_x_fastest() {
    let mut module = module();
    let mut builder = kernel();
    binding(&mut builder, 0, 3);
    builder.push(Op::BufferLoadI32 { source: RefRead::new(3), source_offset: ZERO, dst: VALUE });
    for register in 0..9 {
        builder.push(Op::ConstI32 { value: Imm32(1), dst: NUMBER });
        builder.push(Op::AddI32 { a: VALUE, b: NUMBER, dst: VALUE });
        builder.push(Op::ExtI32I64U { a: VALUE, dst: INDEX });
        builder.push(Op::BufferStoreI32 { target: RefRead::new(3), target_offset: INDEX, value: X4(register) });
    }
    builder.push(Op::BufferStoreI32 { target: RefRead::new(3), target_offset: ZERO, value: VALUE });
    finish(builder, &mut module, "log", &[]);
    let log = [words(&[0; 1 + 12 * 9])];
    dispatch(&*load(&module), &mut Meter::default(), [2, 3, 2], &[], &whole(&log)).unwrap();
    let mut expected = vec![12 * 9];
    for (z, y, x) in (0..2).flat_map(|z| (0..3).flat_map(move |y| (0..2).map(move |x| (z, y, x)))) {
        expected.extend([x, y, z, 1, 1, 1, 2, 3, 2]);
    }
    assert_eq!(content(&log[0]), expected);
}

#[test]
fn exports_have_names_and_declared_counts() {
    let mut module = add_constant();
    add_constant_to(&mut module, "unknown", &[]);
    add_constant_to(&mut module, "none", &[("binding_count", "3"), ("local_memory", "4097")]);
    let executable = load(&module);
    assert_eq!(executable.export_count(), 3);
    assert_eq!((executable.lookup("none"), executable.lookup("missing")), (Some(2), None));
    let export = |ordinal| executable.export(ordinal).unwrap();
    assert_eq!((export(0).name, export(0).binding_count, export(0).constant_count), (Some("add"), Some(2), Some(1)));
    // Without attributes nothing is known; with a count of bindings, no count of constants means none.
    assert_eq!((export(1).binding_count, export(1).constant_count, export(1).local_memory), (None, None, 0));
    assert_eq!((export(2).binding_count, export(2).constant_count, export(2).local_memory), (Some(3), Some(0), 8192));
    assert!(executable.export(3).is_none());
    let past = Dispatch { export: 3, workgroup_count: [1; 3], constants: &[], bindings: &[], concurrency: 1 };
    assert_error(executable.dispatch(&mut Meter::default(), &past), Status::InvalidArgument, &["3 exports"]);
}

#[test]
fn counts_that_differ_from_the_declared_ones_are_invalid_arguments() {
    let executable = load(&add_constant());
    let spans = [words(&[1]), words(&[0]), words(&[0])];
    let bindings = whole(&spans);
    let run = |constants: &[u32], bindings: &[Binding<'_>]| dispatch(&*executable, &mut Meter::default(), [1; 3], constants, bindings);
    assert_error(run(&[1], &bindings), Status::InvalidArgument, &["3 bindings were given", "declares 2"]);
    assert_error(run(&[], &bindings[..2]), Status::InvalidArgument, &["0 constants were given", "declares 1"]);
    // Where no counts are declared, the kernel finds out itself.
    let mut module = module();
    add_constant_to(&mut module, "add", &[]);
    let executable = load(&module);
    let run = |constants: &[u32], bindings: &[Binding<'_>]| dispatch(&*executable, &mut Meter::default(), [1; 3], constants, bindings);
    run(&[1], &bindings).unwrap();
    assert_error(run(&[1], &bindings[..1]), Status::OutOfRange, &["workgroup"]);
    assert_error(run(&[], &bindings), Status::OutOfRange, &["workgroup"]);
}

#[test]
fn a_store_to_a_read_only_binding_is_a_denied_permission() {
    let executable = load(&add_constant());
    let spans = [words(&[1]), words(&[0]).read_only()];
    let result = dispatch(&*executable, &mut Meter::default(), [1; 3], &[1], &whole(&spans));
    assert_error(result, Status::PermissionDenied, &["read-only"]);
    assert_eq!(content(&spans[1]), [0]);
}

#[test]
fn local_memory_has_whole_pages_and_is_charged_to_the_caller() {
    let mut module = module();
    let mut builder = kernel();
    binding(&mut builder, 0, 3);
    builder.push(Op::BufferLength { buffer: LOCAL, dst: LONG });
    builder.push(Op::BufferStoreI64 { target: RefRead::new(3), target_offset: ZERO, value: LONG });
    builder.push(Op::BufferStoreI64 { target: LOCAL, target_offset: ZERO, value: LONG });
    finish(builder, &mut module, "length", &[("binding_count", "1"), ("local_memory", "5000")]);
    let executable = load(&module);
    let spans = [words(&[0, 0])];
    dispatch(&*executable, &mut Meter::default(), [1; 3], &[], &whole(&spans)).unwrap();
    assert_eq!(content(&spans[0]), [8192, 0]);

    let account = MemoryAccount::with_limit(1 << 20);
    let mut meter = Meter::new(FuelMetering::Off, account.clone());
    dispatch(&*executable, &mut meter, [1; 3], &[], &whole(&spans)).unwrap();
    assert!(account.peak() >= 8192);
    account.set_limit(account.used() + 8000);
    assert_error(dispatch(&*executable, &mut meter, [1; 3], &[], &whole(&spans)), Status::ResourceExhausted, &["local memory"]);
    drop((executable, meter));
    assert_eq!(account.used(), 0);
}

#[test]
fn local_memory_beyond_all_memory_is_refused() {
    let mut module = module();
    add_constant_to(&mut module, "add", &[("binding_count", "2"), ("local_memory", &usize::MAX.to_string())]);
    assert_eq!(refusal(&module, &[]).status(), Status::ResourceExhausted);
    for text in ["-1", "1.0", "", "99999999999999999999999"] {
        let mut module = self::module();
        add_constant_to(&mut module, "add", &[("binding_count", text)]);
        assert_error(Err(refusal(&module, &[])), Status::InvalidArgument, &["binding_count", "decimal"]);
    }
}

#[test]
fn every_export_must_have_the_calling_convention_of_kernels() {
    let mut module = add_constant();
    let mut builder = FunctionBuilder::new(VERSION, "0rri_v");
    builder.start_block();
    finish(builder, &mut module, "other", &[]);
    assert_error(Err(refusal(&module, &[])), Status::InvalidArgument, &["\"other\"", "\"0rri_v\"", ENTRY]);
}

/// `__set_constants` keeps word 0 in a global; the kernel stores it.
fn with_constants(convention: &str) -> ModuleDef {
    let mut module = module();
    module.global_bytes = 4;
    let mut builder = FunctionBuilder::new(VERSION, convention);
    builder.start_block();
    if convention == "0r_v" {
        builder.push(Op::ConstI64Zero { dst: X8(0) });
        builder.push(Op::BufferLoadI32 { source: RefRead::new(0), source_offset: X8(0), dst: X4(2) });
        builder.push(Op::GlobalStoreI32 { offset: GlobalOffset(0), value: X4(2) });
    }
    finish(builder, &mut module, "__set_constants", &[]);
    let mut builder = kernel();
    binding(&mut builder, 0, 3);
    builder.push(Op::GlobalLoadI32 { offset: GlobalOffset(0), dst: VALUE });
    builder.push(Op::BufferStoreI32 { target: RefRead::new(3), target_offset: ZERO, value: VALUE });
    finish(builder, &mut module, "show", &[("binding_count", "1")]);
    module
}

#[test]
fn executable_constants_are_set_before_the_first_kernel() {
    let executable = try_load(&Engine::default(), &with_constants("0r_v"), &[77, 78]).unwrap();
    assert_eq!((executable.export_count(), executable.lookup("show"), executable.lookup("__set_constants")), (1, Some(0), None));
    let spans = [words(&[0])];
    dispatch(&*executable, &mut Meter::default(), [1; 3], &[], &whole(&spans)).unwrap();
    assert_eq!(content(&spans[0]), [77]);
}

#[test]
fn executable_constants_go_to_executables_that_take_some() {
    assert_error(Err(refusal(&with_constants("0r_v"), &[])), Status::InvalidArgument, &["found none"]);
    assert_error(Err(refusal(&add_constant(), &[1, 2])), Status::InvalidArgument, &["found 2"]);
    assert_error(Err(refusal(&with_constants("0rr_v"), &[1])), Status::InvalidArgument, &["0rr_v", "0r_v"]);
}

#[test]
fn kernels_that_may_suspend_are_refused() {
    let (mut module, mut builder) = (module(), FunctionBuilder::new(VERSION, ENTRY));
    builder.start_block();
    let next = builder.label();
    builder.push(Op::Yield { to: next.pc(), moves: MoveList::new(&[]) });
    builder.place(next);
    finish(builder, &mut module, "waits", &[]);
    assert_error(Err(refusal(&module, &[])), Status::InvalidArgument, &["suspend", "function 0"]);
}

/// NOT_FOUND lets the search go on; the reason names the import.
#[test]
fn imports_other_than_vmvx_are_not_found() {
    let mut module = add_constant();
    let signature = Some(Signature { calling_convention: "0r_v".into(), attributes: Vec::new() });
    module.imports.push(Import { full_name: "hal_loader.executable.load".into(), signature, necessity: Necessity::Required });
    assert_error(Err(refusal(&module, &[])), Status::NotFound, &["hal_loader"]);
}

#[test]
fn other_formats_are_for_other_loaders() {
    let loader = VmvxLoader::new();
    assert!(loader.query_support("vmvx-bytecode-fb") && !loader.query_support("vmvx-bytecode-fb2"));
    let engine = Engine::default();
    let data = write(&add_constant());
    let parameters = ExecutableParameters {
        format: "embedded-elf-x86_64",
        data: &data,
        constants: &[],
        engine: &engine,
        account: &MemoryAccount::default(),
    };
    assert!(matches!(loader.try_load(&parameters), Ok(Load::NotMine(_))));
    // Bytes that are no module are an error, as the format says that they are ours.
    let data = Span::from_static(b"\x7FELF, really; long enough to be looked at by somebody else");
    let parameters =
        ExecutableParameters { format: FORMAT, data: &data, constants: &[], engine: &engine, account: &MemoryAccount::default() };
    assert_eq!(loader.try_load(&parameters).err().unwrap().status(), Status::InvalidArgument);
}

#[test]
fn executables_load_and_run_where_machine_code_is_denied() {
    let engine = Engine::new(Config::new().native_code(NativeCode::Deny));
    let executable = try_load(&engine, &add_constant(), &[]).unwrap();
    let spans = [words(&[1]), words(&[0])];
    dispatch(&*executable, &mut Meter::default(), [1; 3], &[1], &whole(&spans)).unwrap();
    assert_eq!(content(&spans[1]), [2]);
}

#[test]
fn kernels_use_the_fuel_of_the_caller() {
    let engine = Engine::new(Config::new().fuel(FuelMetering::On));
    let executable = try_load(&engine, &add_constant(), &[]).unwrap();
    let spans = [words(&[1, 2, 3]), words(&[0; 3])];
    let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
    meter.set_fuel(1000);
    dispatch(&*executable, &mut meter, [3, 1, 1], &[1], &whole(&spans)).unwrap();
    // Eleven instructions and one unit for each workgroup; block markers are free.
    assert_eq!(meter.fuel(), Some(1000 - 3 * (11 + 1)));
    meter.set_fuel(3 + 2 * 11 + 10);
    let result = dispatch(&*executable, &mut meter, [3, 1, 1], &[1], &whole(&spans));
    assert_error(result, Status::ResourceExhausted, &["fuel", "workgroup (2, 0, 0)"]);

    let executable = try_load(&engine, &endless(), &[]).unwrap();
    meter.set_fuel(1_000_000);
    assert_error(dispatch(&*executable, &mut meter, [1; 3], &[], &[]), Status::ResourceExhausted, &["fuel"]);
    // The executable is usable afterwards.
    meter.set_fuel(1_000_000);
    assert_error(dispatch(&*executable, &mut meter, [1; 3], &[], &[]), Status::ResourceExhausted, &["fuel"]);
}

#[test]
fn a_grid_of_all_workgroups_ends_under_every_limit() {
    let mut module = module();
    finish(kernel(), &mut module, "nothing", &[]);
    let most = [u32::MAX; 3];
    let engine = Engine::new(Config::new().fuel(FuelMetering::On));
    let executable = try_load(&engine, &module, &[]).unwrap();
    let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
    meter.set_fuel(u64::MAX);
    assert_error(dispatch(&*executable, &mut meter, most, &[], &[]), Status::ResourceExhausted, &["fuel"]);

    let executable = load(&module);
    let mut meter = Meter::default();
    meter.set_deadline(Some(Instant::now() + Duration::from_millis(20)));
    assert_error(dispatch(&*executable, &mut meter, most, &[], &[]), Status::DeadlineExceeded, &["time"]);

    let mut meter = Meter::default();
    meter.interrupt_handle().interrupt();
    assert_error(dispatch(&*executable, &mut meter, most, &[], &[]), Status::Cancelled, &["interrupted"]);
}

#[test]
fn an_endless_kernel_ends_at_the_deadline_and_when_it_is_interrupted() {
    let engine = Engine::new(Config::new().interruption(Interruption::On));
    let executable = try_load(&engine, &endless(), &[]).unwrap();
    let mut meter = Meter::default();
    meter.set_deadline(Some(Instant::now() + Duration::from_millis(20)));
    assert_error(dispatch(&*executable, &mut meter, [1; 3], &[], &[]), Status::DeadlineExceeded, &["time"]);

    let mut meter = Meter::default();
    let handle = meter.interrupt_handle();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        handle.interrupt();
    });
    assert_error(dispatch(&*executable, &mut meter, [1; 3], &[], &[]), Status::Cancelled, &["interrupted"]);
    other.join().unwrap();
}

#[test]
fn threads_dispatch_at_once() {
    let executable = load(&add_constant());
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let executable = &executable;
            scope.spawn(move || {
                for round in 0..200 {
                    let spans = [words(&[thread, round]), words(&[0, 0])];
                    dispatch(&**executable, &mut Meter::default(), [2, 1, 1], &[1000], &whole(&spans)).unwrap();
                    assert_eq!(content(&spans[1]), [1000 + thread, 1000 + round]);
                }
            });
        }
    });
}

/// The data may change after loading, and between a check and a use: what runs is a copy.
#[test]
fn the_executable_is_a_copy_of_its_data() {
    let original = write(&add_constant());
    let shared = Span::copy_of(&original.to_vec().unwrap(), &MemoryAccount::default()).unwrap();
    let engine = Engine::default();
    let parameters =
        ExecutableParameters { format: FORMAT, data: &shared, constants: &[], engine: &engine, account: &MemoryAccount::default() };
    let Load::Loaded(executable) = VmvxLoader::new().try_load(&parameters).unwrap() else { panic!("refused") };
    shared.fill(0, shared.len(), &[0xFF]).unwrap();
    let spans = [words(&[1]), words(&[0])];
    dispatch(&*executable, &mut Meter::default(), [1; 3], &[1], &whole(&spans)).unwrap();
    assert_eq!(content(&spans[1]), [2]);
}
