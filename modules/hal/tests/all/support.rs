//! A program that calls single functions of the module, and kernels written here.

use crate::forward::forwarding_module;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vmfb_hal::{Dispatch, Executable, ExecutableLoader, ExecutableParameters, Export, Fence, HalBuffer, Load, Workers};
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
/// Waits until as many threads as its constant says have come to the word that is bound.
pub(crate) const MEET: i64 = 4;
/// Fails if a worker thread runs it.
pub(crate) const HERE: i64 = 5;

const KERNELS: [&str; 6] = ["log", "add", "fail", "spend", "meet", "here"];

impl Program {
    pub(crate) fn new() -> Self {
        Self::with(Config::new())
    }

    pub(crate) fn with(config: Config) -> Self {
        Self::in_engine(&Engine::new(config))
    }

    /// A program whose independent commands run on so many threads, however short they are.
    pub(crate) fn on_threads(threads: usize, config: Config) -> Self {
        let engine = Engine::new(config.worker_threads(threads));
        engine.shared(|| Workers::new(threads).worthwhile(Duration::ZERO));
        Self::in_engine(&engine)
    }

    pub(crate) fn in_engine(engine: &Engine) -> Self {
        let log = Log::default();
        let mut linker = Linker::new();
        linker.add_native(Hal::new(vec![Arc::new(TestLoader(log.clone()))])).unwrap();
        Self { store: Store::new(engine, ()), log, linker, functions: HashMap::new() }
    }

    /// The function of a program that calls the import. `counts` are the tuple counts of its spans.
    pub(crate) fn function(&mut self, name: &str, convention: &str, counts: &[u16]) -> Func {
        let key = (name.to_owned(), convention.to_owned(), counts.to_vec());
        if let Some(function) = self.functions.get(&key) {
            return *function;
        }
        let bytes = forwarding_module(&format!("hal.{name}"), convention, counts).unwrap();
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

    /// Records a barrier of the newest generation.
    pub(crate) fn barrier(&mut self, commands: &Value) {
        let arguments = [commands.clone(), 0.into(), 0.into(), 0i64.into()];
        self.call("command_buffer.execution_barrier", "0riiI_v", &[], &arguments).unwrap();
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
        KERNELS.len()
    }

    fn lookup(&self, name: &str) -> Option<usize> {
        KERNELS.iter().position(|known| *known == name)
    }

    fn export(&self, ordinal: usize) -> Option<Export<'_>> {
        let name = *KERNELS.get(ordinal)?;
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
            FAIL => {
                let code = dispatch.constants.first().copied().unwrap_or(7);
                return Err(Error::internal(format!("a workgroup returned {code}")));
            }
            MEET => meet(&spans[0], dispatch.constants[0])?,
            HERE if std::thread::current().name() == Some("vmfb worker") => return Err(Error::internal("this is a worker thread")),
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

/// Adds 1 to the number of those who have come, and waits for the others, but not for ever.
fn meet(word: &Span, wanted: u32) -> Result<()> {
    static ARRIVAL: Mutex<()> = Mutex::new(());
    let come = || word.load_element_u32(0).unwrap();
    {
        let _one_at_a_time = ARRIVAL.lock().unwrap();
        word.store_element_u32(0, come() + 1)?;
    }
    let start = Instant::now();
    while come() < wanted {
        if start.elapsed() > Duration::from_secs(120) {
            return Err(Error::internal("nobody else has come"));
        }
        std::thread::yield_now();
    }
    Ok(())
}

pub(crate) fn null() -> Value {
    Ref::Null.into()
}

pub(crate) fn text(text: &str) -> Value {
    Buffer::constant(text.as_bytes()).into()
}

/// A buffer with the given content.
pub(crate) fn buffer(bytes: &[u8]) -> Value {
    // Tests look at what programs have written.
    Ref::new(HalBuffer::new(Span::copy_of(bytes, &Default::default()).unwrap()).in_place()).into()
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
