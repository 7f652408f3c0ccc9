//! Programs imported from PyTorch: each function is exported twice, with fences and as a twin that waits.

use std::path::Path;
use std::time::{Duration, Instant};
use vmfb::hal::{Fence, FenceStatus, coarse_fences};
use vmfb::{BufferView, Engine, Error, Instance, Module, Ref, Status, Store, Value};

const WAITING: &str = "square_sum";
const WITH_FENCES: &str = "square_sum$async";

fn program() -> (Store, Instance) {
    let engine = Engine::default();
    let module = Module::from_file(&engine, Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/twins/twins.vmfb")).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = vmfb::linker().unwrap().instantiate(&mut store, &module).unwrap();
    (store, instance)
}

fn inputs() -> [Value; 2] {
    [[1.0, 2.0, 3.0, -4.0], [10.0, 20.0, 30.0, 40.0]].map(|values| Ref::new(BufferView::from_f32(&[4], &values).unwrap()).into())
}

/// a * a + b
const EXPECTED: [f32; 4] = [11.0, 24.0, 39.0, 56.0];

fn values(value: &Value) -> Vec<f32> {
    value.as_ref().unwrap().object::<BufferView>("the result").unwrap().to_f32().unwrap()
}

#[test]
fn both_twins_are_called_alike() {
    let (mut store, instance) = program();
    for name in [WAITING, WITH_FENCES] {
        let results = coarse_fences::call(&mut store, instance, name, &inputs()).unwrap();
        assert_eq!(values(&results[0]), EXPECTED, "{name}");
    }
    assert!(coarse_fences::takes_coarse_fences(instance.module(&store).unwrap(), WITH_FENCES));
    assert!(!coarse_fences::takes_coarse_fences(instance.module(&store).unwrap(), WAITING));
}

#[test]
fn the_waiting_twin_is_an_ordinary_function() {
    let (mut store, instance) = program();
    let function = instance.function(&store, WAITING).unwrap();
    assert_eq!(values(&function.call(&mut store, &inputs()).unwrap()[0]), EXPECTED);
    let typed = instance.typed_function::<(BufferView, BufferView), BufferView>(&store, WAITING).unwrap();
    let view = |values: &[f32]| BufferView::from_f32(&[4], values).unwrap();
    assert_eq!(typed.call(&mut store, (view(&[2.0; 4]), view(&[1.0; 4]))).unwrap().to_f32().unwrap(), [5.0; 4]);
}

#[test]
fn the_twin_with_fences_waits_for_another_thread() {
    let (mut store, instance) = program();
    let (start, end) = (Fence::new(), Fence::new());
    let function = instance.function(&store, WITH_FENCES).unwrap();
    let arguments = coarse_fences::with_fences(&inputs(), Ref::new(start.clone()), &end);
    let results = function.call(&mut store, &arguments).unwrap();
    drop((store, arguments));
    assert!(matches!(end.status(), FenceStatus::Pending));
    let signaller = std::thread::spawn(move || start.signal());
    let status = end.wait(Some(Instant::now() + Duration::from_secs(120)));
    assert!(matches!(status, FenceStatus::Reached), "{status:?}");
    assert_eq!(values(&results[0]), EXPECTED);
    signaller.join().unwrap();
}

/// The twins can be mixed: what one has begun, the other takes as its input.
#[test]
fn a_chain_of_twins_fails_as_its_first_fence() {
    let (mut store, instance) = program();
    let start = Fence::new();
    let (first, middle) = coarse_fences::submit(&mut store, instance, WITH_FENCES, &inputs(), Some(&start)).unwrap();
    let (second, end) =
        coarse_fences::submit(&mut store, instance, WITH_FENCES, &[first[0].clone(), first[0].clone()], Some(&middle)).unwrap();
    assert!(matches!(end.status(), FenceStatus::Pending));
    start.fail(Error::new(Status::DataLoss, "the input is lost"));
    let FenceStatus::Failed(error) = end.wait(Some(Instant::now() + Duration::from_secs(120))) else { panic!("the work does not fail") };
    assert_eq!(error.status(), Status::DataLoss);
    assert!(error.to_string().contains("the input is lost"), "{error}");
    drop(second);
    let results = coarse_fences::call(&mut store, instance, WAITING, &inputs()).unwrap();
    assert_eq!(values(&results[0]), EXPECTED, "the program is usable afterwards");
}
