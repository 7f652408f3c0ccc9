//! Every form of every function of `check` and `io_parameters`, called by programs that are built for it.

#[path = "support/forward.rs"]
mod forward;

use forward::forwarding_module;
use std::path::Path;
use vmfb::hal::{Fence, FenceStatus};
use vmfb::modules::check::{Check, CheckReport};
use vmfb::modules::io_parameters::{IoParameters, ParameterIndex, ParameterProvider};
use vmfb::{Buffer, BufferView, ElementType, Engine, Error, HalBuffer, Linker, List, Module, Ref, Result, Status, Store, Value};

/// A store in which any import can be called.
struct Program {
    engine: Engine,
    store: Store,
    linker: Linker,
    report: CheckReport,
}

impl Program {
    /// The scope `s` has the digit classifier's weights, the scope `other` nothing of that.
    fn new() -> Self {
        let engine = Engine::default();
        let report = CheckReport::new();
        let index = |file: &str| ParameterIndex::from_file(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let weights = ParameterProvider::new("s", index("samples/digits/digits.irpa"));
        let others = ParameterProvider::new("other", index("modules/io_parameters/tests/data/tensors.gguf"));
        let mut linker = vmfb::linker().unwrap();
        linker.add_native(Check::new(report.clone())).unwrap();
        linker.add_native(IoParameters::new(vec![weights, others])).unwrap();
        Self { store: Store::new(&engine, ()), engine, linker, report }
    }

    fn call(&mut self, import: &str, convention: &str, arguments: &[Value]) -> Result<Vec<Value>> {
        let module = Module::new(&self.engine, forwarding_module(import, convention, &[])?)?;
        let instance = self.linker.instantiate(&mut self.store, &module)?;
        instance.function(&self.store, "forward")?.call(&mut self.store, arguments)
    }

    fn device(&mut self) -> Value {
        self.call("hal.devices.get", "0i_r", &[0.into()]).unwrap().remove(0)
    }

    /// Calls a function of `check` and says whether its expectation was met.
    fn is_met(&mut self, function: &str, convention: &str, arguments: &[Value]) -> bool {
        self.call(&format!("check.{function}"), convention, arguments).unwrap();
        let failures = self.report.take();
        assert!(failures.iter().all(|failure| failure.to_string().starts_with(&format!("check.{function}: "))), "{failures:?}");
        failures.is_empty()
    }
}

fn null() -> Value {
    Ref::Null.into()
}

fn tensor(values: &[f32]) -> Value {
    Ref::new(BufferView::from_f32(&[values.len() as u64], values).unwrap()).into()
}

fn truths(values: &[u8]) -> Value {
    Ref::new(BufferView::from_bytes(&[values.len() as u64], ElementType::I1, values).unwrap()).into()
}

#[test]
fn expectations_of_numbers() {
    let mut program = Program::new();
    for (value, truth) in [(1, true), (-5, true), (0, false)] {
        assert_eq!(program.is_met("expect_true", "0i_v", &[value.into()]), truth, "{value}");
        assert_eq!(program.is_met("expect_false", "0i_v", &[value.into()]), !truth, "{value}");
    }
}

/// Without a device until 2023-10, with one since.
#[test]
fn expectations_of_tensors() {
    let mut program = Program::new();
    let device = program.device();
    let after_device = |arguments: &[Value]| [std::slice::from_ref(&device), arguments].concat();
    for (values, truth) in [([1, 1], true), ([1, 0], false)] {
        let arguments = [truths(&values)];
        assert_eq!(program.is_met("expect_all_true", "0r_v", &arguments), truth, "{values:?}");
        assert_eq!(program.is_met("expect_all_true", "0rr_v", &after_device(&arguments)), truth, "{values:?}");
    }
    for (values, equal) in [([1.0, 2.0], true), ([1.0, 2.000_001], false)] {
        let arguments = [tensor(&[1.0, 2.0]), tensor(&values)];
        assert_eq!(program.is_met("expect_eq", "0rr_v", &arguments), equal, "{values:?}");
        assert_eq!(program.is_met("expect_eq", "0rrr_v", &after_device(&arguments)), equal, "{values:?}");
    }
}

/// A fixed tolerance of 1e-4 until 2025-03, then an absolute and a relative one; for some days the absolute one alone.
#[test]
fn expectations_of_nearness() {
    let mut program = Program::new();
    let device = program.device();
    let pair = |difference: f32| [tensor(&[10.0 + difference]), tensor(&[10.0])];
    let mut near = |convention: &str, arguments: &[Value]| program.is_met("expect_almost_eq", convention, arguments);
    for (difference, met) in [(0.000_05, true), (0.001, false)] {
        assert_eq!(near("0rr_v", &pair(difference)), met, "{difference}");
        assert_eq!(near("0rrr_v", &[&[device.clone()][..], &pair(difference)].concat()), met, "{difference}");
    }
    for (difference, absolute, relative, met) in [
        (0.25, 0.5f32, 0.0f32, true),
        (0.75, 0.5, 0.0, false),
        (0.75, 0.0, 0.125, true),
        (0.75, 0.5, 0.03125, true),
        (1.5, 0.0, 0.125, false),
    ] {
        let arguments = [&[device.clone()][..], &pair(difference), &[absolute.into()]].concat();
        if relative == 0.0 {
            assert_eq!(near("0rrrf_v", &arguments), met, "{difference} {absolute}");
        }
        let arguments = [&arguments[..], &[relative.into()]].concat();
        assert_eq!(near("0rrrff_v", &arguments), met, "{difference} {absolute} {relative}");
    }
}

#[test]
fn what_is_no_tensor_is_an_error_and_no_failed_expectation() {
    let mut program = Program::new();
    for arguments in [[null(), tensor(&[1.0])], [tensor(&[1.0]), text("no tensor")]] {
        let error = program.call("check.expect_eq", "0rr_v", &arguments).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument, "{error}");
    }
    assert_eq!(program.report.count(), 0);
}

const TRANSFER: i32 = 3;
const DEVICE_LOCAL: i32 = 48;

fn text(text: &str) -> Value {
    Buffer::constant(text.as_bytes()).into()
}

/// The tables that name parameters: keys, their text, and spans of parameter offset, buffer offset, length.
fn requests(requests: &[(&str, u64, u64, u64)]) -> [Value; 3] {
    let (mut keys, mut names, mut spans) = (Vec::new(), String::new(), Vec::new());
    for (name, parameter_offset, buffer_offset, length) in requests {
        keys.extend([names.len() as u32, name.len() as u32].iter().flat_map(|word| word.to_le_bytes()));
        names.push_str(name);
        spans.extend([parameter_offset, buffer_offset, length].iter().flat_map(|word| word.to_le_bytes()));
    }
    [Buffer::constant(keys).into(), Buffer::constant(names.as_bytes()).into(), Buffer::constant(spans).into()]
}

fn buffer(bytes: usize) -> Value {
    // Tests look at what programs have written.
    Ref::new(HalBuffer::allocate(bytes, 64, &Default::default()).unwrap().in_place()).into()
}

fn bytes_of(buffer: &Value) -> Vec<u8> {
    buffer.as_ref().unwrap().object::<HalBuffer>("the buffer").unwrap().span().to_vec().unwrap()
}

/// What the file holds, read by its other form.
fn weights(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/digits/digits.safetensors");
    ParameterIndex::read_file(path).unwrap().get(name).unwrap().bytes().unwrap().to_vec().unwrap()
}

fn is_reached(fence: &Fence) -> bool {
    matches!(fence.status(), FenceStatus::Reached)
}

/// Since 2023-12: several parameters, a list of buffers.
#[test]
fn parameters_are_loaded_into_a_list() {
    let mut program = Program::new();
    let signal = Fence::new();
    let header = [program.device(), (-1i64).into(), null(), Ref::new(signal.clone()).into(), text("s")];
    let wanted = [("hidden.bias", 0, 0, 128), ("scores.bias", 8, 0, 12), ("hidden.bias", 128, 0, 0)];
    let arguments = [&header[..], &[(-1i64).into(), DEVICE_LOCAL.into(), TRANSFER.into()], &requests(&wanted)].concat();
    let results = program.call("io_parameters.load", "0rIrrrIiirrr_r", &arguments).unwrap();
    assert!(is_reached(&signal));
    let list: &List = results[0].as_ref().unwrap().list("the result").unwrap();
    let loaded: Vec<Vec<u8>> = (0..list.len() as u32).map(|index| bytes_of(&list.get(index).unwrap())).collect();
    assert_eq!(loaded, [weights("hidden.bias"), weights("scores.bias")[8..20].to_vec(), Vec::new()]);
}

/// In 2023-11: one parameter, one buffer.
#[test]
fn one_parameter_is_loaded_into_a_buffer() {
    let mut program = Program::new();
    let mut load = |scope: &str, key: &str, offset: i64, length: i64| {
        let signal = Fence::new();
        let header = [program.device(), (-1i64).into(), null(), Ref::new(signal.clone()).into(), text(scope), text(key)];
        let rest = [offset.into(), (-1i64).into(), DEVICE_LOCAL.into(), TRANSFER.into(), length.into()];
        let result = program.call("io_parameters.load", "0rIrrrrIIiiI_r", &[&header[..], &rest].concat())?;
        assert!(is_reached(&signal));
        Ok::<_, Error>(bytes_of(&result[0]))
    };
    assert_eq!(load("s", "scores.weights", 0, 1280).unwrap(), weights("scores.weights"));
    assert_eq!(load("s", "scores.weights", 256, 64).unwrap(), weights("scores.weights")[256..320]);
    for (scope, key, offset, length, status) in [
        ("none", "scores.weights", 0, 4, Status::NotFound),
        ("other", "scores.weights", 0, 4, Status::NotFound),
        ("s", "scores.weights", 1277, 4, Status::OutOfRange),
        ("s", "scores.weights", -1, 4, Status::OutOfRange),
        ("s", "scores.weights", 0, -1, Status::OutOfRange),
    ] {
        assert_eq!(load(scope, key, offset, length).unwrap_err().status(), status, "{scope} {key} {offset} {length}");
    }
}

#[test]
fn parameters_are_gathered_when_the_fence_is_reached() {
    let mut program = Program::new();
    let (wait, signal, target) = (Fence::new(), Fence::new(), buffer(64));
    let fences = [Ref::new(wait.clone()).into(), Ref::new(signal.clone()).into()];
    let header = [program.device(), (-1i64).into()];
    let wanted = [("scores.bias", 0, 8, 16), ("hidden.bias", 64, 40, 24)];
    let arguments = [&header[..], &fences, &[text("s"), target.clone()], &requests(&wanted)].concat();
    program.call("io_parameters.gather", "0rIrrrrrrr_v", &arguments).unwrap();
    assert!(matches!(signal.status(), FenceStatus::Pending));
    assert_eq!(bytes_of(&target), [0; 64]);
    wait.signal();
    assert!(is_reached(&signal));
    let zeros = |count| vec![0; count];
    let expected = [zeros(8), weights("scores.bias")[..16].to_vec(), zeros(16), weights("hidden.bias")[64..88].to_vec()].concat();
    assert_eq!(bytes_of(&target), expected);
}

/// In 2023-11: one parameter into a buffer that is there.
#[test]
fn one_parameter_is_read_into_a_buffer() {
    let mut program = Program::new();
    let target = buffer(32);
    let header = [program.device(), (-1i64).into(), null(), null(), text("other"), text("plain.i32")];
    let mut read = |rest: [Value; 4]| program.call("io_parameters.read", "0rIrrrrIrII_v", &[&header[..], &rest].concat());
    read([4i64.into(), target.clone(), 20i64.into(), 8i64.into()]).unwrap();
    // The tensor holds 1, -2, 3, 4.
    let expected = [&[0; 20][..], &(-2i32).to_le_bytes(), &3i32.to_le_bytes(), &[0; 4]].concat();
    assert_eq!(bytes_of(&target), expected);
    let error = read([4i64.into(), target.clone(), 28i64.into(), 8i64.into()]).unwrap_err();
    assert_eq!(error.status(), Status::OutOfRange, "{error}");
}

#[test]
fn parameters_are_read_only() {
    let mut program = Program::new();
    let header = [program.device(), (-1i64).into(), null(), null()];
    let scatter = [&header[..], &[buffer(16), text("s")], &requests(&[("scores.bias", 0, 0, 16)])].concat();
    let write = [&header[..], &[text("s"), text("scores.bias"), 0i64.into(), buffer(16), 0i64.into(), 16i64.into()]].concat();
    for (function, convention, arguments) in [("scatter", "0rIrrrrrrr_v", scatter), ("write", "0rIrrrrIrII_v", write)] {
        let error = program.call(&format!("io_parameters.{function}"), convention, &arguments).unwrap_err();
        assert_eq!(error.status(), Status::PermissionDenied, "{error}");
        assert!(error.to_string().contains("read-only"), "{error}");
    }
}
