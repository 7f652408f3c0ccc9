//! Submissions: order, fences, failures, memory, limits.

use crate::support::{ADD, FAIL, LOG, Program, SPEND, buffer, bytes_of, fence, null, status, words, words_of};
use vmfb_hal::{Fence, FenceStatus, HalBuffer};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Buffer, Config, Error, FuelMetering, Interruption, Origin, Ref, Status, Value};

fn is_pending(fence: &Fence) -> bool {
    matches!(fence.status(), FenceStatus::Pending)
}

fn is_reached(fence: &Fence) -> bool {
    matches!(fence.status(), FenceStatus::Reached)
}

fn failure(fence: &Fence) -> Error {
    match fence.status() {
        FenceStatus::Failed(error) => error,
        other => panic!("{other:?}, a failure was expected"),
    }
}

/// A final command buffer that computes `c = a + b + 1`.
fn addition(program: &mut Program, a: &Value, b: &Value, c: &Value) -> Value {
    let commands = program.command_buffer(1);
    let whole = |buffer: &Value| (0, buffer.clone(), 0, -1);
    program.dispatch(&commands, ADD, &[1], &[whole(a), whole(b), whole(c)]).unwrap();
    program.finish(&commands);
    commands
}

fn failing(program: &mut Program) -> Value {
    let commands = program.command_buffer(1);
    program.dispatch(&commands, FAIL, &[], &[]).unwrap();
    program.finish(&commands);
    commands
}

fn alloca(program: &mut Program, wait: Value, signal: Value, size: i64) -> vmfb_vm::Result<Value> {
    let device = program.device();
    let arguments = [device, (-1i64).into(), wait, signal, 0i64.into(), 48.into(), 0xC03.into(), size.into(), 0i64.into()];
    Ok(program.call("device.queue.alloca", "0rIrrIiiII_r", &[], &arguments)?.remove(0))
}

fn dealloca(program: &mut Program, wait: Value, signal: Value, buffer: Value) -> vmfb_vm::Result<()> {
    let device = program.device();
    let arguments = [device, (-1i64).into(), wait, signal, buffer, 0i64.into()];
    program.call("device.queue.dealloca", "0rIrrrI_v", &[], &arguments).map(drop)
}

#[test]
fn work_is_executed_when_the_host_signals() {
    let mut program = Program::new();
    let (a, b, c, d) = (words(&[1]), words(&[2]), words(&[0]), words(&[0]));
    let (start, middle, end) = (Fence::new(), Fence::new(), Fence::new());
    let second = addition(&mut program, &c, &b, &d);
    program.execute(&second, fence(&middle), fence(&end)).unwrap();
    let first = addition(&mut program, &a, &b, &c);
    program.execute(&first, fence(&start), fence(&middle)).unwrap();
    assert!(program.called().is_empty() && is_pending(&middle) && is_pending(&end));
    start.signal();
    assert!(is_reached(&end));
    assert_eq!((words_of(&c), words_of(&d)), (vec![4], vec![7]), "in the order of the fences, not of the submissions");
}

#[test]
fn another_thread_executes_what_it_signals() {
    let mut program = Program::new();
    let (a, b, c) = (words(&[1]), words(&[2]), words(&[0]));
    let (start, end) = (Fence::new(), Fence::new());
    let commands = addition(&mut program, &a, &b, &c);
    program.execute(&commands, fence(&start), fence(&end)).unwrap();
    let thread = std::thread::spawn(move || start.signal());
    assert!(matches!(end.wait(None), FenceStatus::Reached));
    thread.join().unwrap();
    assert_eq!(words_of(&c), [4]);
}

#[test]
fn queued_work_owns_what_it_uses() {
    let account = MemoryAccount::default();
    let (start, end) = (Fence::new(), Fence::new());
    let result = Span::zeroed(4, 1, &account).unwrap();
    let log = {
        let mut program = Program::new();
        let data = |value: u32| Value::from(Ref::new(HalBuffer::new(Span::copy_of(&value.to_le_bytes(), &account).unwrap())));
        let output: Value = Ref::new(HalBuffer::new(result.clone()).in_place()).into();
        let commands = addition(&mut program, &data(40), &data(1), &output);
        program.execute(&commands, fence(&start), fence(&end)).unwrap();
        program.log.clone()
    };
    start.signal();
    assert!(is_reached(&end));
    assert_eq!((result.load_u32(0), log.lock().unwrap().len()), (Some(42), 1), "store, engine and inputs are gone");
    assert_eq!(account.used(), 4 + vmfb_memory::STORAGE_OVERHEAD, "the inputs are returned");
}

#[test]
fn a_failure_goes_to_the_signal_fence_and_what_waits_for_it() {
    let mut program = Program::new();
    let (first, second, third) = (Fence::new(), Fence::new(), Fence::new());
    let waiting = failing(&mut program);
    program.execute(&waiting, fence(&first), fence(&second)).unwrap();
    let behind = addition(&mut program, &words(&[1]), &words(&[1]), &words(&[1]));
    program.execute(&behind, fence(&second), fence(&third)).unwrap();
    let now = failing(&mut program);
    let signal = Fence::new();
    program.execute(&now, null(), fence(&signal)).expect("the fence tells of the failure");
    assert_eq!((failure(&signal).status(), failure(&signal).message()), (Status::Internal, "a workgroup returned 7"));
    first.signal();
    assert_eq!(failure(&third).message(), "a workgroup returned 7");
    assert!(program.called().is_empty());

    let late = Fence::new();
    program.execute(&null(), fence(&third), fence(&late)).unwrap();
    assert_eq!(failure(&late).status(), Status::Internal, "behind a fence that has failed already");
}

#[test]
fn a_fence_that_the_host_fails_fails_the_work() {
    let mut program = Program::new();
    let (start, end) = (Fence::new(), Fence::new());
    let target = words(&[0]);
    let commands = addition(&mut program, &words(&[1]), &words(&[2]), &target);
    program.execute(&commands, fence(&start), fence(&end)).unwrap();
    start.fail(Error::new(Status::DataLoss, "the host lost its input"));
    assert_eq!((failure(&end).status(), failure(&end).message()), (Status::DataLoss, "the host lost its input"));
    assert_eq!(words_of(&target), [0]);
}

#[test]
fn a_fence_that_is_dropped_aborts_the_work() {
    let mut program = Program::new();
    let (start, end) = (Fence::new(), Fence::new());
    program.execute(&null(), fence(&start), fence(&end)).unwrap();
    drop(start);
    assert_eq!(failure(&end).status(), Status::Aborted);
}

#[test]
fn a_failure_without_a_fence_is_not_lost() {
    let mut program = Program::new();
    let commands = failing(&mut program);
    assert_eq!(status(program.execute(&commands, null(), null())), Status::Internal);
    let start = Fence::new();
    let commands = failing(&mut program);
    program.execute(&commands, fence(&start), null()).unwrap();
    start.signal();
    let error = program.execute(&null(), null(), null()).unwrap_err();
    assert_eq!(error.message(), "a workgroup returned 7");
    program.execute(&null(), null(), null()).expect("it is told once");
}

#[test]
fn work_cannot_wait_for_itself() {
    let mut program = Program::new();
    let (a, b) = (Fence::new(), Fence::new());
    assert_eq!(status(program.execute(&null(), fence(&a), fence(&a))), Status::InvalidArgument);
    program.execute(&null(), fence(&a), fence(&b)).unwrap();
    assert_eq!(status(program.execute(&null(), fence(&b), fence(&a))), Status::InvalidArgument);
    a.signal();
    assert!(is_reached(&b));
}

#[test]
fn memory_is_there_at_once_and_returned_after_its_last_use() {
    let mut program = Program::new();
    program.function("device.queue.alloca", "0rIrrIiiII_r", &[]);
    let used = program.store.account().used();
    let (start, allocated, freed) = (Fence::new(), Fence::new(), Fence::new());
    let memory = alloca(&mut program, fence(&start), fence(&allocated), 1 << 20).unwrap();
    assert_eq!(bytes_of(&memory), vec![0; 1 << 20]);
    let queued = program.store.account().used();
    assert!(queued > used + (1 << 20) && is_pending(&allocated));
    dealloca(&mut program, fence(&allocated), fence(&freed), memory).unwrap();
    assert!(program.store.account().used() > queued, "queued work is charged too");
    start.signal();
    assert!(is_reached(&freed));
    assert_eq!(program.store.account().used(), used);
}

#[test]
fn allocation_is_limited() {
    let mut program = Program::with(Config::new().memory_limit(1 << 20));
    for size in [2 << 20, i64::MAX] {
        assert_eq!(status(alloca(&mut program, null(), null(), size)), Status::ResourceExhausted);
    }
    assert_eq!(status(alloca(&mut program, null(), null(), -1)), Status::OutOfRange);
    alloca(&mut program, null(), null(), 1 << 19).expect("the program goes on");
    let device = program.device();
    let pool = [device, (-1i64).into(), null(), null(), 3i64.into(), 48.into(), 0xC03.into(), 1i64.into(), 0i64.into()];
    assert_eq!(status(program.call("device.queue.alloca", "0rIrrIiiII_r", &[], &pool)), Status::Unimplemented);
}

#[test]
fn queued_submissions_are_limited_by_memory() {
    let mut program = Program::with(Config::new().memory_limit(1 << 20));
    let start = Fence::new();
    let outcome = (0..100_000).find_map(|_| program.execute(&null(), fence(&start), null()).err());
    assert_eq!(outcome.unwrap().status(), Status::ResourceExhausted);
    start.signal();
    program.execute(&null(), fence(&Fence::new()), null()).unwrap();
}

#[test]
fn long_chains_of_submissions_resolve() {
    let mut program = Program::new();
    let start = Fence::new();
    let mut last = start.clone();
    for _ in 0..20_000 {
        let next = Fence::new();
        program.execute(&null(), fence(&last), fence(&next)).unwrap();
        last = next;
    }
    start.signal();
    assert!(is_reached(&last));
}

fn spending(program: &mut Program, units: i32) -> Value {
    let commands = program.command_buffer(1);
    program.dispatch(&commands, SPEND, &[units], &[]).unwrap();
    program.finish(&commands);
    commands
}

#[test]
fn queued_work_uses_the_fuel_of_its_store() {
    let mut program = Program::with(Config::new().fuel(FuelMetering::On));
    program.store.set_fuel(1_000_000);
    let (start, end, too_much) = (Fence::new(), Fence::new(), Fence::new());
    let some = spending(&mut program, 50_000);
    let more = spending(&mut program, 60_000);
    program.store.set_fuel(100_000);
    program.execute(&some, fence(&start), fence(&end)).unwrap();
    program.execute(&more, fence(&start), fence(&too_much)).unwrap();
    let before = program.store.fuel().unwrap();
    assert!(before > 99_000);
    start.signal();
    assert!(is_reached(&end));
    assert_eq!(failure(&too_much).status(), Status::ResourceExhausted);
    program.execute(&null(), null(), null()).unwrap();
    let after = program.store.fuel().unwrap();
    assert!(after <= before - 50_000 && after > before - 51_000, "{before} {after}");
}

#[test]
fn a_store_whose_queued_work_has_used_its_fuel_is_out_of_fuel() {
    let mut program = Program::with(Config::new().fuel(FuelMetering::On));
    program.store.set_fuel(1_000_000);
    let start = Fence::new();
    let all = spending(&mut program, 900_000);
    program.execute(&all, fence(&start), null()).unwrap();
    start.signal();
    program.store.set_fuel(1000);
    assert_eq!(status(program.execute(&null(), null(), null())), Status::ResourceExhausted);
    assert_eq!(program.store.fuel(), Some(0));
}

#[test]
fn an_interruption_reaches_queued_work() {
    let mut program = Program::with(Config::new().interruption(Interruption::On));
    let (start, end) = (Fence::new(), Fence::new());
    let commands = addition(&mut program, &words(&[1]), &words(&[1]), &words(&[1]));
    program.execute(&commands, fence(&start), fence(&end)).unwrap();
    program.store.interrupt_handle().interrupt();
    start.signal();
    assert_eq!(failure(&end).status(), Status::Cancelled);
}

#[test]
fn transfers_on_the_queue() {
    let mut program = Program::new();
    let device = program.device();
    let (source, target) = (buffer(&[1, 2, 3, 4]), buffer(&[0; 8]));
    let header = [device, (-1i64).into(), null(), null()];
    let call = |program: &mut Program, name: &str, convention: &str, rest: &[Value]| {
        program.call(name, convention, &[], &[&header[..], rest].concat())
    };
    let range = [1i64.into(), target.clone(), 0i64.into(), 2i64.into(), 0i64.into()];
    call(&mut program, "device.queue.copy", "0rIrrrIrIII_v", &[&[source], &range[..]].concat()).unwrap();
    let fill = [target.clone(), 2i64.into(), 2i64.into(), 7i64.into(), 1.into(), 0i64.into()];
    call(&mut program, "device.queue.fill", "0rIrrrIIIiI_v", &fill).unwrap();
    let bytes: Value = Buffer::constant(*b"abcd").into();
    let range = [2i64.into(), target.clone(), 4i64.into(), 2i64.into(), 0i64.into()];
    call(&mut program, "device.queue.update", "0rIrrrIrIII_v", &[&[bytes], &range[..]].concat()).unwrap();
    assert_eq!(bytes_of(&target), [2, 3, 7, 7, b'c', b'd', 0, 0]);
    call(&mut program, "device.queue.barrier", "0rIrrI_v", &[0i64.into()]).unwrap();
    let flush = [header[0].clone(), (-1i64).into()];
    program.call("device.queue.flush", "0rI_v", &[], &flush).unwrap();
}

#[test]
fn a_queued_update_has_the_bytes_of_its_call() {
    let mut program = Program::new();
    let (start, device) = (Fence::new(), program.device());
    let source = Buffer::new(Span::copy_of(&[1, 2], &Default::default()).unwrap(), Origin::Guest);
    let target = buffer(&[0; 2]);
    let mut arguments = vec![device, (-1i64).into(), fence(&start), null(), source.clone().into(), 0i64.into()];
    arguments.extend([target.clone(), 0i64.into(), 2i64.into(), 0i64.into()]);
    program.call("device.queue.update", "0rIrrrIrIII_v", &[], &arguments).unwrap();
    source.span().write(0, &[9, 9]).unwrap();
    start.signal();
    assert_eq!(bytes_of(&target), [1, 2]);
}

#[test]
fn files_in_memory_are_read_only() {
    let mut program = Program::new();
    let device = program.device();
    let bytes: Value = Buffer::constant(*b"0123456789").into();
    let open = |program: &mut Program, access: i32, offset: i64, length: i64| {
        let arguments = [device.clone(), (-1i64).into(), access.into(), bytes.clone(), offset.into(), length.into(), 0.into()];
        program.call("ex.file.from_memory", "0rIirIIi_r", &[], &arguments)
    };
    assert_eq!(status(open(&mut program, 3, 0, 10)), Status::PermissionDenied);
    assert_eq!(status(open(&mut program, 1, 5, 6)), Status::OutOfRange);
    let file = open(&mut program, 1, 2, 6).unwrap().remove(0);
    let target = buffer(&[0; 4]);
    let read = |program: &mut Program, offset: i64, length: i64| {
        let mut arguments = vec![device.clone(), (-1i64).into(), null(), null(), file.clone(), offset.into()];
        arguments.extend([target.clone(), 1i64.into(), length.into(), 0.into()]);
        program.call("device.queue.read", "0rIrrrIrIIi_v", &[], &arguments)
    };
    read(&mut program, 3, 3).unwrap();
    assert_eq!(bytes_of(&target), *b"\x00567");
    assert_eq!(status(read(&mut program, 4, 3)), Status::OutOfRange);
    assert_eq!(status(read(&mut program, 0, 4)), Status::OutOfRange);
    let mut arguments = vec![device.clone(), (-1i64).into(), null(), null(), target.clone(), 0i64.into()];
    arguments.extend([file.clone(), 0i64.into(), 1i64.into(), 0i64.into()]);
    assert_eq!(status(program.call("device.queue.write", "0rIrrrIrIII_v", &[], &arguments)), Status::PermissionDenied);
}

#[test]
fn a_panicking_kernel_fails_its_fence() {
    let mut program = Program::new();
    let (start, end) = (Fence::new(), Fence::new());
    let panicking = |program: &mut Program| {
        let commands = program.command_buffer(1);
        // The kernel has no constant to add.
        let data = || (0, words(&[1]), 0, -1);
        program.dispatch(&commands, ADD, &[], &[data(), data(), data()]).unwrap();
        program.dispatch(&commands, LOG, &[], &[]).unwrap();
        program.finish(&commands);
        commands
    };
    let commands = panicking(&mut program);
    program.execute(&commands, fence(&start), fence(&end)).unwrap();
    let signaller = start.clone();
    assert!(std::thread::spawn(move || signaller.signal()).join().is_err());
    assert_eq!(failure(&end).status(), Status::Internal);

    let at_once = Fence::new();
    let signal = at_once.clone();
    let commands = panicking(&mut program);
    let thread = std::thread::spawn(move || program.execute(&commands, null(), fence(&signal)));
    assert!(thread.join().is_err());
    assert_eq!(failure(&at_once).status(), Status::Internal);
}
