//! Calls of hal_inline's functions by a program: each import is forwarded by an exported function of a module made here.

#[path = "../../../tests/support/forward.rs"]
mod forward;

use forward::forwarding_module;
use std::sync::{Arc, Mutex};
use vmfb_hal::{BufferView, ElementType, HalBuffer};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_module_hal_inline::HalInline;
use vmfb_vm::{Buffer, Config, Engine, FuelMetering, Linker, Module, Ref, Result, Status, Store, Value};

/// A program with one function that calls one import of hal_inline with its arguments and returns the results. `counts` are the
/// tuple counts of the import's spans.
struct Program {
    store: Store,
    function: vmfb_vm::Func,
}

impl Program {
    fn new(import: &str, convention: &str, counts: &[u16]) -> Result<Self> {
        Self::with(HalInline::new(), Config::new(), import, convention, counts)
    }

    fn with(hal_inline: HalInline, config: Config, import: &str, convention: &str, counts: &[u16]) -> Result<Self> {
        let engine = Engine::new(config);
        let mut linker = Linker::new();
        linker.add_native(hal_inline)?;
        let module = Module::new(&engine, forwarding_module(&format!("hal_inline.{import}"), convention, counts)?)?;
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module)?;
        let function = instance.function(&store, "forward")?;
        Ok(Self { store, function })
    }

    fn call(&mut self, arguments: &[Value]) -> Result<Vec<Value>> {
        self.function.call(&mut self.store, arguments)
    }
}

fn text(text: &str) -> Value {
    Buffer::constant(text.as_bytes()).into()
}

fn f32_view(shape: &[u64], values: &[f32]) -> Value {
    Ref::new(BufferView::from_f32(shape, values).unwrap()).into()
}

fn numbers(values: &[Value]) -> Vec<i64> {
    let number = |value: &Value| match value {
        Value::I32(value) => i64::from(*value),
        Value::I64(value) => *value,
        other => panic!("{other:?} is no integer"),
    };
    values.iter().map(number).collect()
}

fn reference(value: &Value) -> &Ref {
    value.as_ref().unwrap()
}

fn bytes_of(buffer: &Value) -> Vec<u8> {
    reference(buffer).downcast::<HalBuffer>().unwrap().span().to_vec().unwrap()
}

#[test]
fn allocation_gives_a_buffer_and_its_storage() {
    let results = Program::new("buffer.allocate", "0iI_rr", &[]).unwrap().call(&[64.into(), 8i64.into()]).unwrap();
    let [buffer, storage] = &results[..] else { panic!("{results:?}") };
    reference(storage).buffer("storage").unwrap().writable().unwrap().store_u32(4, 0x0102_0304).unwrap();
    assert_eq!(bytes_of(buffer), [0, 0, 0, 0, 4, 3, 2, 1]);

    let mut initialized = Program::new("buffer.allocate.initialized", "0irII_rr", &[]).unwrap();
    let results = initialized.call(&[64.into(), text("abcdef"), 2i64.into(), 3i64.into()]).unwrap();
    assert_eq!(bytes_of(&results[0]), b"cde");
    assert_eq!(reference(&results[1]).buffer("storage").unwrap().span().to_vec().unwrap(), b"cde");

    let error = Program::new("buffer.allocate", "0iI_rr", &[]).unwrap().call(&[64.into(), (-1i64).into()]).unwrap_err();
    assert_eq!(error.status(), Status::OutOfRange);
}

#[test]
fn buffers_are_wrapped_cut_and_measured() {
    let wrapped = Program::new("buffer.wrap", "0rII_r", &[]).unwrap().call(&[text("abcdef"), 1i64.into(), 4i64.into()]).unwrap();
    assert_eq!(bytes_of(&wrapped[0]), b"bcde");
    let mut subspan = Program::new("buffer.subspan", "0rII_r", &[]).unwrap();
    let part = subspan.call(&[wrapped[0].clone(), 1i64.into(), (-1i64).into()]).unwrap();
    assert_eq!(bytes_of(&part[0]), b"cde");
    assert_eq!(numbers(&Program::new("buffer.length", "0r_I", &[]).unwrap().call(&part).unwrap()), [3]);
    let storage = Program::new("buffer.storage", "0r_r", &[]).unwrap().call(&part).unwrap();
    assert_eq!(reference(&storage[0]).buffer("storage").unwrap().span().to_vec().unwrap(), b"cde");
}

#[test]
fn a_lost_constant_is_explained() {
    let error = Program::new("buffer.storage", "0r_r", &[]).unwrap().call(&[Ref::Null.into()]).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.to_string().contains("--iree-flow-inline-constants-max-byte-length=268435456"), "{error}");
}

#[test]
fn a_view_is_made_and_asked() {
    let mut wrap = Program::new("buffer.wrap", "0rII_r", &[]).unwrap();
    let buffer = wrap.call(&[Buffer::constant([7; 24]).into(), 0i64.into(), 24i64.into()]).unwrap().remove(0);
    let mut create = Program::new("buffer_view.create", "0rIIiiCID_r", &[2]).unwrap();
    let (element_type, encoding) = (ElementType::SI32.0 as i32, 1);
    let view = create
        .call(&[buffer.clone(), 4i64.into(), 16i64.into(), element_type.into(), encoding.into(), 2i64.into(), 2i64.into()])
        .unwrap()
        .remove(0);
    let ask = |import: &str, convention: &str, more: &[Value]| {
        let arguments: Vec<Value> = std::iter::once(&view).chain(more).cloned().collect();
        Program::new(import, convention, &[]).unwrap().call(&arguments).unwrap()
    };
    assert_eq!(numbers(&ask("buffer_view.rank", "0r_i", &[])), [2]);
    assert_eq!(numbers(&ask("buffer_view.dim", "0ri_I", &[1.into()])), [2]);
    assert_eq!(numbers(&ask("buffer_view.element_type", "0r_i", &[])), [0x1100_0020]);
    assert_eq!(numbers(&ask("buffer_view.encoding_type", "0r_i", &[])), [1]);
    assert_eq!(bytes_of(&ask("buffer_view.buffer", "0r_r", &[])[0]), [7; 16]);

    let mut scalar = Program::new("buffer_view.create", "0rIIiiCID_r", &[0]).unwrap();
    let result = scalar.call(&[buffer, 0i64.into(), 4i64.into(), element_type.into(), encoding.into()]).unwrap();
    assert_eq!(reference(&result[0]).downcast::<BufferView>().unwrap().type_text(), "si32");
}

/// A HAL buffer of 16 bytes that count up.
fn sixteen_bytes() -> Value {
    let bytes: Vec<u8> = (0..16).collect();
    Ref::new(HalBuffer::new(Span::copy_of(&bytes, &MemoryAccount::default()).unwrap()).in_place()).into()
}

fn create_f32(buffer: &Value, range: [i64; 2], shape: &[i64]) -> Result<Value> {
    let mut create = Program::new("buffer_view.create", "0rIIiiCID_r", &[shape.len() as u16])?;
    let mut arguments = vec![buffer.clone(), range[0].into(), range[1].into(), (ElementType::F32.0 as i32).into(), 1.into()];
    arguments.extend(shape.iter().map(|dimension| Value::from(*dimension)));
    create.call(&arguments).map(|mut results| results.remove(0))
}

#[test]
fn a_view_must_fit_its_buffer() {
    let buffer = sixteen_bytes();
    for (range, shape) in [
        ([0, 16], &[5i64][..]),
        ([0, 16], &[i64::MAX, i64::MAX]),
        ([0, 16], &[1 << 32, 1 << 32]),
        ([0, 16], &[-1]),
        ([0, 16], &[0, -1]),
        ([4, 16], &[]),
        ([-16, 16], &[]),
        ([13, 3], &[]),
        ([0, 16], &[0; 129]),
    ] {
        assert_eq!(create_f32(&buffer, range, shape).unwrap_err().status(), Status::OutOfRange, "{range:?} {shape:?}");
    }
    let shape_of = |view: &Value| reference(view).downcast::<BufferView>().unwrap().shape().to_vec();
    assert_eq!(shape_of(&create_f32(&buffer, [0, 16], &[0, 1 << 40]).unwrap()), [0, 1 << 40]);
    assert_eq!(shape_of(&create_f32(&buffer, [0, 16], &[1; 128]).unwrap()), [1; 128]);
    let last = create_f32(&buffer, [12, -1], &[]).unwrap();
    assert_eq!(reference(&last).downcast::<BufferView>().unwrap().to_bytes().unwrap(), [12, 13, 14, 15]);
    let whole = create_f32(&buffer, [0, 16], &[4]).unwrap();
    let whole = reference(&whole).downcast::<BufferView>().unwrap().buffer().clone();
    assert!(Ref::from(whole).same(reference(&buffer)), "a whole buffer is not cut");

    let error = create_f32(&Ref::Null.into(), [0, 16], &[4]).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.to_string().contains("--iree-flow-inline-constants-max-byte-length"), "{error}");
    assert_eq!(create_f32(&text("no HAL buffer"), [0, 4], &[]).unwrap_err().status(), Status::InvalidArgument);
}

#[test]
fn dimensions_that_are_not_there_are_refused() {
    let view = create_f32(&sixteen_bytes(), [0, 16], &[2, 2]).unwrap();
    let mut dimension = Program::new("buffer_view.dim", "0ri_I", &[]).unwrap();
    for index in [2, 3, i32::MAX, -1, i32::MIN] {
        let error = dimension.call(&[view.clone(), index.into()]).unwrap_err();
        assert_eq!(error.status(), Status::OutOfRange, "{index}");
    }
    assert_eq!(dimension.call(&[Ref::Null.into(), 0.into()]).unwrap_err().status(), Status::InvalidArgument);
}

#[test]
fn assertions_pass_and_fail() {
    let mut assert = Program::new("buffer_view.assert", "0rriiCID_v", &[2]).unwrap();
    let view = f32_view(&[2, 3], &[0.0; 6]);
    let mut check = |label: &str, dimensions: [i64; 2]| {
        let [a, b] = dimensions.map(Value::from);
        assert.call(&[view.clone(), text(label), (ElementType::F32.0 as i32).into(), 1.into(), a, b])
    };
    assert!(check("input0", [2, 3]).unwrap().is_empty());
    let error = check("input0", [2, 4]).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert_eq!(error.message(), "input0: dimension 1 is 3, wanted 4; it is 2x3xf32, wanted 2x4xf32");
    let null = assert.call(&[Ref::Null.into(), text("input0"), (ElementType::F32.0 as i32).into(), 1.into(), 2i64.into(), 3i64.into()]);
    let error = null.unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.to_string().contains("input0"), "{error}");
}

#[test]
fn traces_go_to_the_sink() {
    let seen = Arc::new(Mutex::new(String::new()));
    let lines = seen.clone();
    let hal_inline = HalInline::new().trace_sink(move |trace| {
        lines.lock().unwrap().push_str(&trace.to_string());
        Ok(())
    });
    let mut trace = Program::with(hal_inline, Config::new(), "buffer_view.trace", "0rCrD_v", &[2]).unwrap();
    trace.call(&[text("sum"), f32_view(&[2], &[1.5, -0.0]), f32_view(&[], &[3.0])]).unwrap();
    assert_eq!(*seen.lock().unwrap(), "=== sum ===\n2xf32=1.5 -0\nf32=3\n\n");
    let error = trace.call(&[text("sum"), Ref::Null.into(), Ref::Null.into()]).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
}

#[test]
fn a_trace_takes_128_views_and_fuel() {
    let run = |count: u16, fuel: u64| {
        let hal_inline = HalInline::new().trace_sink(|_| Ok(()));
        let config = Config::new().fuel(FuelMetering::On);
        let mut trace = Program::with(hal_inline, config, "buffer_view.trace", "0rCrD_v", &[count])?;
        trace.store.set_fuel(fuel);
        let mut arguments = vec![text("key")];
        arguments.extend(std::iter::repeat_n(f32_view(&[100], &[0.0; 100]), count.into()));
        trace.call(&arguments)
    };
    assert!(run(128, 20_000).is_ok());
    assert_eq!(run(129, 20_000).unwrap_err().status(), Status::ResourceExhausted);
    assert_eq!(run(128, 10_000).unwrap_err().status(), Status::ResourceExhausted, "12,800 elements are printed");
}

#[test]
fn queries_never_fail() {
    let mut query = Program::new("device.query.i64", "0rr_iI", &[]).unwrap();
    let mut ask = |category: &str, key: &str| numbers(&query.call(&[text(category), text(key)]).unwrap());
    assert_eq!(ask("hal.cpu", "no such feature"), [0, 0]);
    assert_eq!(ask("hal.device", "concurrency"), [0, 0]);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(ask("hal.cpu", "avx2"), [1, i64::from(std::arch::is_x86_feature_detected!("avx2"))]);
}

#[test]
fn nothing_stays_behind() {
    let mut allocate = Program::new("buffer.allocate", "0iI_rr", &[]).unwrap();
    let mut storage = Program::new("buffer.storage", "0r_r", &[]).unwrap();
    allocate.call(&[64.into(), 100i64.into()]).unwrap();
    let before = (allocate.store.account().used(), storage.store.account().used());
    for _ in 0..10_000 {
        let results = allocate.call(&[64.into(), 100i64.into()]).unwrap();
        storage.call(&results[..1]).unwrap();
    }
    assert_eq!((allocate.store.account().used(), storage.store.account().used()), before);
}

#[test]
fn memory_is_bounded_by_the_store() {
    let limited = || Config::new().memory_limit(1 << 20);
    let mut allocate = Program::with(HalInline::new(), limited(), "buffer.allocate", "0iI_rr", &[]).unwrap();
    assert!(allocate.call(&[64.into(), (1i64 << 19).into()]).is_ok());
    let error = allocate.call(&[64.into(), (1i64 << 20).into()]).unwrap_err();
    assert_eq!(error.status(), Status::ResourceExhausted);
}
