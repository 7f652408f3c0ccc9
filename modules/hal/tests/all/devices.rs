//! Devices, their allocators, buffers and executables.

use crate::support::{Program, buffer, bytes_of, handle, null, number, status, text};
use vmfb_hal::{HalBuffer, MemoryType, Usage};
use vmfb_memory::Span;
use vmfb_module_hal::Hal;
use vmfb_vm::{Buffer, Config, Origin, Ref, Status, Value};

#[test]
fn imports_share_memory_or_say_no() {
    let mut program = Program::new();
    let allocator = program.allocator();
    let import = |program: &mut Program, attempt: i32, usage: i32, source: &Buffer, offset: i64| {
        let mut arguments = vec![allocator.clone(), attempt.into(), (-1i64).into(), 48.into(), usage.into()];
        arguments.extend([source.clone().into(), offset.into(), (-1i64).into()]);
        program.call("allocator.import", "0riIiirII_r", &[], &arguments)
    };
    const IMMUTABLE: i32 = 0x8_0000;
    let constant = Buffer::new(Span::copy_of(&[7; 64], &Default::default()).unwrap().read_only(), Origin::Module);
    let imported = import(&mut program, 0, IMMUTABLE, &constant, 16).unwrap().remove(0);
    let imported = handle::<HalBuffer>(&imported);
    assert!(imported.span().same_storage(constant.span()) && !imported.span().is_writable());
    assert_eq!(imported.len(), 48);
    assert_eq!(status(import(&mut program, 0, 0xC03, &constant, 0)), Status::PermissionDenied);
    assert!(import(&mut program, 1, 0xC03, &constant, 0).unwrap()[0].as_ref().unwrap().is_null());
    assert!(import(&mut program, 1, IMMUTABLE, &constant, 4).unwrap()[0].as_ref().unwrap().is_null(), "misaligned");
    assert_eq!(status(import(&mut program, 0, IMMUTABLE, &constant, 4)), Status::Unavailable);
    assert_eq!(status(import(&mut program, 0, IMMUTABLE, &constant, 65)), Status::OutOfRange);
}

#[test]
fn buffers_have_values_lengths_and_owners() {
    let mut program = Program::new();
    let data = buffer(&[1, 2, 0xFF, 0xFF, 0xFF, 0xFF]);
    let load = |program: &mut Program, offset: i64, length: i32| {
        program.call("buffer.load", "0rIi_i", &[], &[data.clone(), offset.into(), length.into()]).map(|values| number(&values[0]))
    };
    assert_eq!(load(&mut program, 0, 2).unwrap(), 0x0201);
    assert_eq!(load(&mut program, 2, 1).unwrap(), 0xFF, "upper bytes are zero");
    assert_eq!(load(&mut program, 2, 4).unwrap(), -1);
    assert_eq!(status(load(&mut program, 3, 4)), Status::OutOfRange);
    assert_eq!(status(load(&mut program, 0, 5)), Status::InvalidArgument);
    assert_eq!(status(load(&mut program, 0, -1)), Status::InvalidArgument);
    program.call("buffer.store", "0irIi_v", &[], &[0x0807.into(), data.clone(), 2i64.into(), 2.into()]).unwrap();
    assert_eq!(bytes_of(&data), [1, 2, 7, 8, 0xFF, 0xFF]);
    let part = program.get("buffer.subspan", "0rII_r", &[data.clone(), 2i64.into(), (-1i64).into()]);
    assert_eq!(bytes_of(&part), [7, 8, 0xFF, 0xFF]);
    let whole = program.get("buffer.subspan", "0rII_r", &[data.clone(), 0i64.into(), 6i64.into()]);
    assert!(whole.as_ref().unwrap().same(data.as_ref().unwrap()));

    program.call("buffer.allocation.preserve", "0r_v", &[], std::slice::from_ref(&part)).unwrap();
    let ask = |program: &mut Program, name: &str, buffer: &Value| number(&program.get(name, "0r_i", std::slice::from_ref(buffer)));
    assert_eq!(ask(&mut program, "buffer.allocation.is_terminal", &data), 0, "parts count on the allocation");
    assert_eq!(ask(&mut program, "buffer.allocation.discard", &data), 0);
    assert_eq!(ask(&mut program, "buffer.allocation.is_terminal", &part), 1);
    assert_eq!(ask(&mut program, "buffer.allocation.discard", &part), 1);
}

#[test]
fn buffers_are_asserted() {
    let mut program = Program::new();
    let allocator = program.allocator();
    let limited: Value =
        Ref::new(HalBuffer::with_usage(Span::copy_of(&[0; 8], &Default::default()).unwrap(), MemoryType(2), Usage(3))).into();
    let assert = |program: &mut Program, length: i64, memory: i32, usage: i32| {
        let arguments = [limited.clone(), text("input0"), allocator.clone(), length.into(), memory.into(), usage.into()];
        program.call("buffer.assert", "0rrrIii_v", &[], &arguments)
    };
    assert(&mut program, 8, 2, 1).unwrap();
    let error = assert(&mut program, 9, 2, 1).unwrap_err();
    assert_eq!(error.status(), Status::InvalidArgument);
    assert!(error.message().contains("input0") && error.message().contains("8 bytes") && error.message().contains('9'), "{error}");
    assert_eq!(status(assert(&mut program, 8, 16, 1)), Status::PermissionDenied);
    assert_eq!(status(assert(&mut program, 8, 2, 0x800)), Status::PermissionDenied);
}

#[test]
fn a_device_of_another_program_is_refused() {
    let (mut one, mut other) = (Program::new(), Program::new());
    let foreign = other.device();
    let outcome = one.call("device.allocator", "0r_r", &[], std::slice::from_ref(&foreign));
    assert_eq!(status(outcome), Status::InvalidArgument);
    let arguments = [foreign, (-1i64).into(), null(), null(), null(), 0i64.into()];
    assert_eq!(status(one.call("device.queue.execute", "0rIrrrI_v", &[], &arguments)), Status::InvalidArgument);
}

#[test]
fn a_fork_has_the_device_of_its_parent() {
    let mut program = Program::new();
    let device = program.device();
    let function = program.function("device.allocator", "0r_r", &[]);
    let mut fork = program.store.fork(()).unwrap();
    function.call(&mut fork, &[device]).unwrap();
}

#[test]
fn devices_answer_queries() {
    let mut program = Program::with(Config::new().worker_threads(3));
    let device = program.device();
    let query = |program: &mut Program, category: &str, key: &str| {
        let arguments = [device.clone(), text(category), text(key)];
        let answer = program.call("device.query.i64", "0rrr_iI", &[], &arguments).unwrap();
        (number(&answer[0]), number(&answer[1]))
    };
    assert_eq!(query(&mut program, "hal.device.id", "local*"), (1, 1));
    assert_eq!(query(&mut program, "hal.device.id", "cuda*"), (1, 0));
    assert_eq!(query(&mut program, "hal.executable.format", "test"), (1, 1));
    assert_eq!(query(&mut program, "hal.executable.format", "embedded-elf-x86_64"), (1, 0));
    assert_eq!(query(&mut program, "hal.device", "concurrency"), (1, 1));
    assert_eq!(query(&mut program, "hal.dispatch", "concurrency"), (1, 3));
    assert_eq!(query(&mut program, "hal.cpu", "no such feature"), (0, 0));
    assert_eq!(query(&mut program, "nothing", "at all"), (0, 0));
    assert_eq!(number(&program.get("devices.count", "0v_i", &[])), 1);
    assert!(program.get("devices.get", "0i_r", &[1.into()]).as_ref().unwrap().is_null());
    assert!(program.get("devices.get", "0i_r", &[(-1).into()]).as_ref().unwrap().is_null());
}

#[test]
fn selection_takes_the_first_device() {
    let mut program = Program::new();
    let device = program.device();
    let arguments = [48.into(), 0xC03.into(), 0i64.into(), device.clone(), 5i64.into(), device.clone(), 6i64.into()];
    let selected = program.call("allocator.select", "0iiICrID_rI", &[2], &arguments).unwrap();
    assert!(selected[0].as_ref().unwrap().same(device.as_ref().unwrap()));
    assert_eq!(number(&selected[1]), 5);
    let none = program.call("allocator.select", "0iiICrID_rI", &[0], &arguments[..3]);
    assert_eq!(status(none), Status::InvalidArgument);
}

#[test]
fn collectives_are_unimplemented_in_every_form() {
    let mut program = Program::new();
    let of_collectives = |(name, _): &(&str, &str)| name.starts_with("channel.") || *name == "command_buffer.collective";
    let forms: Vec<_> = Hal::function_table().filter(of_collectives).collect();
    assert_eq!(forms.len(), 8, "{forms:?}");
    for (name, convention) in forms {
        let arguments = convention.split('_').next().unwrap_or_default().trim_start_matches('0');
        let arguments: Vec<Value> = arguments
            .chars()
            .map(|kind| match kind {
                'r' => null(),
                'I' => 0i64.into(),
                _ => 0.into(),
            })
            .collect();
        let error = program.call(name, convention, &[], &arguments).unwrap_err();
        assert_eq!(error.status(), Status::Unimplemented, "{name} {convention}");
        assert!(error.message().contains(name) && error.message().contains("no channels"), "{error}");
    }
}

#[test]
fn executables_are_loaded_by_format() {
    let mut program = Program::new();
    let device = program.device();
    let create = |program: &mut Program, format: Value, constants: Value| {
        let arguments = [device.clone(), format, text("data"), constants];
        program.call("executable.create", "0rrrr_r", &[], &arguments)
    };
    create(&mut program, text("test"), null()).unwrap();
    create(&mut program, text("test"), text("12345678")).unwrap();
    assert_eq!(status(create(&mut program, text("test"), text("123"))), Status::InvalidArgument);
    assert_eq!(status(create(&mut program, text("other"), null())), Status::NotFound);
    assert_eq!(status(create(&mut program, null(), null())), Status::InvalidArgument);
}
