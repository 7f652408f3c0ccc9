//! A program that calls single functions of the module, and kernels written here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind, PlacementRule};
use vmfb_bytecode::definition::{BytecodeVersion, Dependency, Import, Necessity, Signature};
use vmfb_bytecode::isa::{FunctionRef, Op, Register, RegisterList, SegmentList, Word};
use vmfb_hal::{Dispatch, Executable, ExecutableLoader, ExecutableParameters, Export, Fence, HalBuffer, Load};
use vmfb_memory::Span;
use vmfb_module_hal::Hal;
use vmfb_vm::{Buffer, Config, Engine, Error, Func, Handle, Linker, Meter, Module, Ref, Result, Status, Store, Value};

/// A store in which every function of the module can be called.
pub(crate) struct Program {
    pub(crate) store: Store,
    pub(crate) log: Log,
    linker: Linker,
    functions: HashMap<(String, String, Vec<u16>), Func>,
}

/// What kernels were called with.
pub(crate) type Log = Arc<Mutex<Vec<Called>>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) export: usize,
    pub(crate) workgroups: [u32; 3],
    pub(crate) constants: Vec<u32>,
    /// Content of the bindings.
    pub(crate) bindings: Vec<Vec<u8>>,
}

/// Kernels of the test executable.
pub(crate) const LOG: i64 = 0;
pub(crate) const ADD: i64 = 1;
pub(crate) const FAIL: i64 = 2;
pub(crate) const SPEND: i64 = 3;

impl Program {
    pub(crate) fn new() -> Self {
        Self::with(Config::new())
    }

    pub(crate) fn with(config: Config) -> Self {
        let engine = Engine::new(config);
        let log = Log::default();
        let mut linker = Linker::new();
        linker.add_native(Hal::new(vec![Arc::new(TestLoader(log.clone()))])).unwrap();
        Self { store: Store::new(&engine, ()), log, linker, functions: HashMap::new() }
    }

    /// The function of a program that calls the import. `counts` are the tuple counts of its spans.
    pub(crate) fn function(&mut self, name: &str, convention: &str, counts: &[u16]) -> Func {
        let key = (name.to_owned(), convention.to_owned(), counts.to_vec());
        if let Some(function) = self.functions.get(&key) {
            return *function;
        }
        let bytes = forwarding_module(name, convention, counts).unwrap();
        let module = Module::new(self.store.engine(), bytes).unwrap();
        let instance = self.linker.instantiate(&mut self.store, &module).unwrap();
        let function = instance.function(&self.store, "forward").unwrap();
        self.functions.insert(key, function);
        function
    }

    pub(crate) fn call(&mut self, name: &str, convention: &str, counts: &[u16], arguments: &[Value]) -> Result<Vec<Value>> {
        self.function(name, convention, counts).call(&mut self.store, arguments)
    }

    /// Calls a function without spans that has one result.
    pub(crate) fn get(&mut self, name: &str, convention: &str, arguments: &[Value]) -> Value {
        self.call(name, convention, &[], arguments).unwrap().remove(0)
    }

    pub(crate) fn device(&mut self) -> Value {
        self.get("devices.get", "0i_r", &[0.into()])
    }

    pub(crate) fn allocator(&mut self) -> Value {
        let device = self.device();
        self.get("device.allocator", "0r_r", &[device])
    }

    /// A command buffer of the newest generation.
    pub(crate) fn command_buffer(&mut self, mode: i32) -> Value {
        let device = self.device();
        self.get("command_buffer.create", "0riiIi_r", &[device, mode.into(), 3.into(), (-1i64).into(), 0.into()])
    }

    pub(crate) fn finish(&mut self, commands: &Value) {
        self.call("command_buffer.finalize", "0r_v", &[], std::slice::from_ref(commands)).unwrap();
    }

    pub(crate) fn executable(&mut self) -> Value {
        let device = self.device();
        let arguments = [device, (-1i64).into(), text("test"), text("data"), null()];
        self.get("executable.create", "0rIrrr_r", &arguments)
    }

    /// Submits a command buffer.
    pub(crate) fn execute(&mut self, commands: &Value, wait: Value, signal: Value) -> Result<()> {
        let device = self.device();
        let arguments = [device, (-1i64).into(), wait, signal, commands.clone(), 0i64.into()];
        self.call("device.queue.execute", "0rIrrrI_v", &[], &arguments).map(drop)
    }

    /// Submits a command buffer with a binding table.
    pub(crate) fn execute_with(&mut self, commands: &Value, table: &[(Value, i64, i64)]) -> Result<()> {
        let mut arguments = vec![self.device(), (-1i64).into(), null(), null(), commands.clone(), 0i64.into()];
        for (buffer, offset, length) in table {
            arguments.extend([buffer.clone(), (*offset).into(), (*length).into()]);
        }
        self.call("device.queue.execute.indirect", "0rIrrrICrIID_v", &[table.len() as u16], &arguments).map(drop)
    }

    /// Records a dispatch of one workgroup of the newest generation. A binding is slot, buffer, offset, length.
    pub(crate) fn dispatch(
        &mut self,
        commands: &Value,
        function: i64,
        constants: &[i32],
        bindings: &[(i32, Value, i64, i64)],
    ) -> Result<()> {
        let mut arguments = vec![commands.clone(), self.executable(), function.into(), 1.into(), 1.into(), 1.into(), 0i64.into()];
        arguments.extend(constants.iter().map(|constant| Value::from(*constant)));
        for (slot, buffer, offset, length) in bindings {
            arguments.extend([0.into(), (*slot).into(), buffer.clone(), (*offset).into(), (*length).into()]);
        }
        let counts = [constants.len() as u16, bindings.len() as u16];
        self.call("command_buffer.dispatch", "0rrIiiiICiDCiirIID_v", &counts, &arguments).map(drop)
    }

    /// What kernels were called with since the last time.
    pub(crate) fn called(&self) -> Vec<Called> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

/// A module with one function that calls one import with its arguments and returns the results.
fn forwarding_module(import: &str, convention: &str, counts: &[u16]) -> Result<Vec<u8>> {
    let imported: CallingConvention = convention.parse()?;
    let mut module = empty_module("program", BytecodeVersion::V17);
    module.dependencies.push(Dependency { name: "hal".to_owned(), minimum_version: 7, necessity: Necessity::Required });
    let signature = Some(Signature { calling_convention: convention.to_owned(), attributes: Vec::new() });
    module.imports.push(Import { full_name: format!("hal.{import}"), signature, necessity: Necessity::Required });

    let (mut kinds, mut segments, mut counts) = (Vec::new(), Vec::<Word>::new(), counts.iter());
    for item in &imported.arguments {
        match item {
            Item::Plain(kind) => {
                kinds.push(*kind);
                segments.push(SegmentList::PLAIN.to_le_bytes());
            }
            Item::Span(fields) => {
                let count = counts.next().copied().unwrap_or(0);
                kinds.extend(fields.repeat(count.into()));
                segments.push(count.to_le_bytes());
            }
        }
    }
    let forwarded = CallingConvention { arguments: kinds.iter().copied().map(Item::Plain).collect(), results: imported.results.clone() };
    let placement = forwarded.placement(PlacementRule::NextFree)?;
    let word = |kind: Kind, slot: u16| if kind == Kind::Ref { Register::reference(slot) } else { Register::value(slot) }.to_bytes();
    let arguments: Vec<Word> = kinds.iter().zip(&placement.slots).map(|(kind, slot)| word(*kind, *slot)).collect();
    // Results stand behind the arguments, each value in a pair of its own.
    let (mut value, mut reference) = (placement.value_slots.next_multiple_of(2), placement.ref_slots);
    let mut results = Vec::<Word>::new();
    for kind in &imported.results {
        let next = if *kind == Kind::Ref { &mut reference } else { &mut value };
        results.push(word(*kind, *next));
        *next += kind.value_slots().next_multiple_of(2).max(1);
    }

    let mut builder = FunctionBuilder::new(BytecodeVersion::V17, &forwarded.to_string());
    builder.start_block();
    let (callee, arguments, results) = (FunctionRef::import(0), RegisterList::new(&arguments), RegisterList::new(&results));
    if imported.has_spans() {
        builder.push(Op::CallVariadic { callee, segments: SegmentList::new(&segments), arguments, results });
    } else {
        builder.push(Op::Call { callee, arguments, results });
    }
    builder.push(Op::Return { values: results });
    builder.value_registers(value + 2).ref_registers(reference + 1);
    builder.finish()?.export_from(&mut module, "forward");
    Ok(write_module(&module, &[] as &[&[u8]], ArchiveForm::Plain)?)
}

/// Loads the test executable for the format `test`.
struct TestLoader(Log);

impl ExecutableLoader for TestLoader {
    fn name(&self) -> &str {
        "test"
    }

    fn query_support(&self, format: &str) -> bool {
        format == "test"
    }

    fn formats(&self) -> Vec<String> {
        vec!["test".to_owned()]
    }

    fn try_load(&self, _parameters: &ExecutableParameters<'_>) -> Result<Load> {
        Ok(Load::Loaded(Arc::new(TestExecutable(self.0.clone()))))
    }
}

struct TestExecutable(Log);

impl Executable for TestExecutable {
    fn export_count(&self) -> usize {
        4
    }

    fn lookup(&self, name: &str) -> Option<usize> {
        ["log", "add", "fail", "spend"].iter().position(|known| *known == name)
    }

    fn export(&self, ordinal: usize) -> Option<Export<'_>> {
        let name = *["log", "add", "fail", "spend"].get(ordinal)?;
        Some(Export { name: Some(name), ..Export::default() })
    }

    fn dispatch(&self, meter: &mut Meter, dispatch: &Dispatch<'_>) -> Result<()> {
        let spans: Vec<Span> = dispatch.bindings.iter().map(|b| b.span.slice(b.offset, b.length).unwrap()).collect();
        match dispatch.export as i64 {
            ADD => {
                for index in 0..spans[2].len() as u64 / 4 {
                    let word = |span: &Span| span.load_element_u32(index).unwrap();
                    let sum = word(&spans[0]) + word(&spans[1]) + dispatch.constants[0];
                    spans[2].store_element_u32(index, sum)?;
                }
            }
            FAIL => return Err(Error::internal("a workgroup returned 7")),
            SPEND => meter.charge(dispatch.constants[0].into())?,
            _ => {}
        }
        self.0.lock().unwrap().push(Called {
            export: dispatch.export,
            workgroups: dispatch.workgroup_count,
            constants: dispatch.constants.to_vec(),
            bindings: spans.iter().map(|span| span.to_vec().unwrap()).collect(),
        });
        Ok(())
    }
}

pub(crate) fn null() -> Value {
    Ref::Null.into()
}

pub(crate) fn text(text: &str) -> Value {
    Buffer::constant(text.as_bytes()).into()
}

/// A buffer with the given content.
pub(crate) fn buffer(bytes: &[u8]) -> Value {
    Ref::new(HalBuffer::new(Span::copy_of(bytes, &Default::default()).unwrap())).into()
}

/// A buffer of 32-bit values.
pub(crate) fn words(values: &[u32]) -> Value {
    buffer(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
}

pub(crate) fn bytes_of(buffer: &Value) -> Vec<u8> {
    buffer.as_ref().unwrap().object::<HalBuffer>("the buffer").unwrap().span().to_vec().unwrap()
}

pub(crate) fn words_of(buffer: &Value) -> Vec<u32> {
    bytes_of(buffer).chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

pub(crate) fn fence(fence: &Fence) -> Value {
    Ref::new(fence.clone()).into()
}

pub(crate) fn number(value: &Value) -> i64 {
    match value {
        Value::I32(value) => i64::from(*value),
        Value::I64(value) => *value,
        other => panic!("{other:?} is no integer"),
    }
}

pub(crate) fn status<T>(result: Result<T>) -> Status {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(error) => error.status(),
    }
}

/// A handle of what a reference refers to.
pub(crate) fn handle<T: vmfb_vm::RefObject>(value: &Value) -> Handle<T> {
    value.as_ref().unwrap().handle("the value").unwrap()
}
