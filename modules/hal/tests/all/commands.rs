//! Recording command buffers and executing them.

use crate::support::{ADD, Called, FAIL, LOG, Program, buffer, bytes_of, null, status, text, words, words_of};
use std::sync::Arc;
use vmfb_hal::HalBuffer;
use vmfb_memory::Span;
use vmfb_vm::{Buffer, Origin, Ref, Status, Value};

const ONE_SHOT: i32 = 1;
const REUSABLE: i32 = 0;
const REST: i64 = -1;

/// Records a fill of the newest generation.
fn fill(program: &mut Program, commands: &Value, target: &Value, range: (i64, i64), pattern: (i64, i32)) -> vmfb_vm::Result<()> {
    let arguments =
        [commands.clone(), target.clone(), range.0.into(), range.1.into(), 0.into(), pattern.0.into(), pattern.1.into(), 0i64.into()];
    program.call("command_buffer.fill_buffer", "0rrIIiIiI_v", &[], &arguments).map(drop)
}

fn copy(program: &mut Program, commands: &Value, from: (&Value, i64), to: (&Value, i64), length: i64) -> vmfb_vm::Result<()> {
    let arguments =
        [commands.clone(), 0.into(), 0.into(), from.0.clone(), from.1.into(), to.0.clone(), to.1.into(), length.into(), 0i64.into()];
    program.call("command_buffer.copy_buffer", "0riirIrIII_v", &[], &arguments).map(drop)
}

/// Records, finishes and executes.
fn run(record: impl FnOnce(&mut Program, &Value) -> vmfb_vm::Result<()>) -> vmfb_vm::Result<Vec<Called>> {
    let mut program = Program::new();
    let commands = program.command_buffer(ONE_SHOT);
    record(&mut program, &commands)?;
    program.finish(&commands);
    program.execute(&commands, null(), null())?;
    Ok(program.called())
}

#[test]
fn fills_repeat_patterns_of_every_length() {
    for (length, expected) in [(1, [0x44; 8]), (2, [0x44, 0x33, 0x44, 0x33, 0x44, 0x33, 0x44, 0x33])] {
        let target = buffer(&[0; 10]);
        run(|program, commands| fill(program, commands, &target, (1, 8), (0x1122_3344, length))).unwrap();
        assert_eq!(bytes_of(&target), [&[0], &expected[..], &[0]].concat());
    }
    let target = buffer(&[0; 8]);
    run(|program, commands| fill(program, commands, &target, (0, REST), (0x0102_0304_0506_0708, 8))).unwrap();
    assert_eq!(bytes_of(&target), [8, 7, 6, 5, 4, 3, 2, 1]);
    run(|program, commands| fill(program, commands, &target, (4, REST), (-1, 4))).unwrap();
    assert_eq!(bytes_of(&target), [8, 7, 6, 5, 255, 255, 255, 255]);
}

#[test]
fn wrong_fills_are_refused() {
    let target = buffer(&[0; 10]);
    let attempt = |range, pattern| status(run(|program, commands| fill(program, commands, &target, range, pattern)));
    assert_eq!(attempt((0, 9), (0, 2)), Status::InvalidArgument, "no whole number of patterns");
    assert_eq!(attempt((0, 9), (0, 3)), Status::InvalidArgument, "no pattern length");
    assert_eq!(attempt((0, 9), (0, -1)), Status::InvalidArgument);
    assert_eq!(attempt((4, 8), (0, 4)), Status::OutOfRange);
    assert_eq!(attempt((-4, 4), (0, 4)), Status::OutOfRange);
    assert_eq!(attempt((i64::MAX, i64::MAX), (0, 1)), Status::OutOfRange);
    let constant: Value = Ref::new(HalBuffer::new(Span::from_vector(vec![0; 4])).in_place()).into();
    let outcome = run(|program, commands| fill(program, commands, &constant, (0, 4), (0, 4)));
    assert_eq!(status(outcome), Status::PermissionDenied);
}

#[test]
fn copies_may_overlap() {
    let both = buffer(&[1, 2, 3, 4, 5]);
    run(|program, commands| copy(program, commands, (&both, 0), (&both, 1), 4)).unwrap();
    assert_eq!(bytes_of(&both), [1, 1, 2, 3, 4]);
    assert_eq!(status(run(|program, commands| copy(program, commands, (&both, 2), (&both, 0), 4))), Status::OutOfRange);
    assert_eq!(status(run(|program, commands| copy(program, commands, (&both, 0), (&both, -1), 1))), Status::OutOfRange);
}

#[test]
fn an_update_has_the_bytes_of_its_recording() {
    let source = Buffer::new(Span::copy_of(&[1, 2, 3, 4], &Default::default()).unwrap(), Origin::Guest);
    let target = buffer(&[0; 6]);
    let mut program = Program::new();
    let commands = program.command_buffer(REUSABLE);
    let arguments = [commands.clone(), source.clone().into(), 1i64.into(), target.clone(), 2i64.into(), 2i64.into(), 0.into(), 0i64.into()];
    program.call("command_buffer.update_buffer", "0rrIrIIiI_v", &[], &arguments).unwrap();
    program.finish(&commands);
    source.span().write(0, &[9; 4]).unwrap();
    program.execute(&commands, null(), null()).unwrap();
    assert_eq!(bytes_of(&target), [0, 0, 2, 3, 0, 0]);
}

#[test]
fn commands_are_executed_in_order() {
    let (a, b, c) = (words(&[1, 2]), words(&[10, 20]), words(&[0, 0]));
    let whole = |buffer: &Value| (0, buffer.clone(), 0, REST);
    let called = run(|program, commands| {
        fill(program, commands, &b, (4, 4), (7, 4))?;
        program.dispatch(commands, ADD, &[100], &[whole(&a), whole(&b), whole(&c)])?;
        copy(program, commands, (&c, 0), (&a, 4), 4)?;
        program.dispatch(commands, LOG, &[], &[whole(&a)])
    });
    assert_eq!(words_of(&c), [111, 109]);
    assert_eq!(called.unwrap()[1].bindings, [bytes_of(&words(&[1, 111]))]);
}

#[test]
fn a_dispatch_has_what_was_recorded() {
    let data = buffer(&[1, 2, 3, 4, 5, 6]);
    let called = run(|program, commands| {
        let executable = program.executable();
        let mut arguments = vec![commands.clone(), executable, LOG.into(), 2.into(), 3.into(), (-1).into(), 0i64.into()];
        arguments.extend([5.into(), (-6).into()]);
        arguments.extend([0.into(), 0.into(), data.clone(), 1i64.into(), 3i64.into()]);
        arguments.extend([0.into(), 0.into(), data.clone(), 4i64.into(), REST.into()]);
        program.call("command_buffer.dispatch", "0rrIiiiICiDCiirIID_v", &[2, 2], &arguments).map(drop)
    });
    let expected = Called {
        export: 0,
        workgroups: [2, 3, u32::MAX],
        constants: vec![5, 6u32.wrapping_neg()],
        bindings: vec![vec![2, 3, 4], vec![5, 6]],
    };
    assert_eq!(called.unwrap(), [expected]);
}

#[test]
fn an_indirect_count_is_read_when_the_dispatch_is_executed() {
    let mut program = Program::new();
    let (counts, executable, commands) = (words(&[9, 1, 2, 3]), program.executable(), program.command_buffer(REUSABLE));
    let arguments = [commands.clone(), executable.clone(), LOG.into(), 0.into(), counts.clone(), 4i64.into(), 0i64.into()];
    program.call("command_buffer.dispatch.indirect", "0rrIirIICiDCiirIID_v", &[0, 0], &arguments).unwrap();
    program.finish(&commands);
    program.execute(&commands, null(), null()).unwrap();
    crate::support::handle::<HalBuffer>(&counts).span().store_u32(4, 50).unwrap();
    program.execute(&commands, null(), null()).unwrap();
    let called = program.called();
    assert_eq!([called[0].workgroups, called[1].workgroups], [[1, 2, 3], [50, 2, 3]]);

    let short = program.command_buffer(REUSABLE);
    let arguments = [short, executable, LOG.into(), 0.into(), counts, 8i64.into(), 0i64.into()];
    let outcome = program.call("command_buffer.dispatch.indirect", "0rrIirIICiDCiirIID_v", &[0, 0], &arguments);
    assert_eq!(status(outcome), Status::OutOfRange);
}

#[test]
fn ranges_of_a_binding_table_add_up() {
    let mut program = Program::new();
    let commands = program.command_buffer(REUSABLE);
    let bindings = [(1, null(), 2, 3), (0, null(), 1, REST), (1, null(), 0, 0)];
    program.dispatch(&commands, LOG, &[], &bindings).unwrap();
    program.finish(&commands);
    let (a, b) = (buffer(&[1, 2, 3, 4]), buffer(&[10, 11, 12, 13, 14, 15, 16, 17]));
    program.execute_with(&commands, &[(a.clone(), 1, 2), (b.clone(), 2, REST)]).unwrap();
    program.execute_with(&commands, &[(b.clone(), 0, 2), (b.clone(), 3, 5)]).unwrap();
    let called = program.called();
    assert_eq!(called[0].bindings, [&[14, 15, 16][..], &[3], &[]]);
    assert_eq!(called[1].bindings, [&[15, 16, 17][..], &[11], &[]]);

    let attempt = |program: &mut Program, table: &[(Value, i64, i64)]| status(program.execute_with(&commands, table));
    assert_eq!(attempt(&mut program, &[(a.clone(), 0, REST), (b.clone(), 0, 4)]), Status::OutOfRange, "3 bytes at 2 of 4");
    assert_eq!(attempt(&mut program, &[(a.clone(), 0, 0), (b.clone(), 0, 8)]), Status::OutOfRange, "offset 1 of nothing");
    assert_eq!(attempt(&mut program, &[(a.clone(), 0, 4)]), Status::OutOfRange, "slot 1 of one entry");
    assert_eq!(attempt(&mut program, &[(a.clone(), 0, 5), (b.clone(), 0, 8)]), Status::OutOfRange, "the entry itself");
    assert_eq!(attempt(&mut program, &[(a, 0, 4), (null(), 0, 0)]), Status::FailedPrecondition, "a null entry");
    assert_eq!(attempt(&mut program, &[]), Status::FailedPrecondition, "no table");
    assert!(program.called().is_empty());
}

#[test]
fn a_direct_buffer_ignores_its_slot() {
    let mut program = Program::new();
    let commands = program.command_buffer(REUSABLE);
    program.dispatch(&commands, LOG, &[], &[(7, buffer(&[1]), 0, 1)]).unwrap();
    program.finish(&commands);
    program.execute(&commands, null(), null()).unwrap();
    assert_eq!(program.called()[0].bindings, [[1]]);
}

#[test]
fn a_failing_kernel_ends_the_submission_with_its_cause() {
    let mut program = Program::new();
    let commands = program.command_buffer(ONE_SHOT);
    program.dispatch(&commands, FAIL, &[], &[]).unwrap();
    program.dispatch(&commands, LOG, &[], &[]).unwrap();
    program.finish(&commands);
    let error = program.execute(&commands, null(), null()).unwrap_err();
    assert_eq!((error.status(), error.message()), (Status::Internal, "a workgroup returned 7"));
    assert!(error.context_chain().any(|text| text == "dispatching fail"), "{error}");
    assert!(program.called().is_empty());

    let commands = program.command_buffer(ONE_SHOT);
    program.dispatch(&commands, LOG, &[], &[]).unwrap();
    program.finish(&commands);
    program.execute(&commands, null(), null()).unwrap();
    assert_eq!(program.called().len(), 1, "the program is usable afterwards");
}

#[test]
fn the_life_of_a_command_buffer() {
    let mut program = Program::new();
    let commands = program.command_buffer(ONE_SHOT);
    assert_eq!(status(program.execute(&commands, null(), null())), Status::FailedPrecondition, "still recording");
    program.finish(&commands);
    assert_eq!(status(program.dispatch(&commands, LOG, &[], &[])), Status::FailedPrecondition, "final");
    let again = program.call("command_buffer.finalize", "0r_v", &[], std::slice::from_ref(&commands));
    assert_eq!(status(again), Status::FailedPrecondition);
    program.execute(&commands, null(), null()).unwrap();
    assert_eq!(status(program.execute(&commands, null(), null())), Status::FailedPrecondition, "submitted once");
    program.execute(&null(), null(), null()).expect("nothing to execute is no mistake");
}

#[test]
fn a_spent_command_buffer_holds_nothing_but_itself() {
    let mut program = Program::new();
    let span = Span::zeroed(64, 1, &Default::default()).unwrap();
    let data: Value = Ref::new(HalBuffer::new(span.clone()).in_place()).into();
    let commands = program.command_buffer(ONE_SHOT);
    let used = program.store.account().used();
    program.dispatch(&commands, LOG, &[], &[(0, data, 0, REST)]).unwrap();
    assert!(program.store.account().used() > used, "recorded commands are charged");
    program.finish(&commands);
    program.execute(&commands, null(), null()).unwrap();
    assert_eq!(program.store.account().used(), used);
}

#[test]
fn command_buffers_in_command_buffers() {
    let mut program = Program::new();
    let inner = program.command_buffer(REUSABLE);
    program.dispatch(&inner, LOG, &[], &[(0, null(), 1, 1)]).unwrap();
    let outer = program.command_buffer(REUSABLE);
    let nest = |program: &mut Program, outer: &Value, inner: &Value, data: Value| {
        let arguments = [outer.clone(), inner.clone(), data, 1i64.into(), 2i64.into()];
        program.call("command_buffer.execute.commands", "0rrCrIID_v", &[1], &arguments)
    };
    let data = buffer(&[1, 2, 3]);
    assert_eq!(status(nest(&mut program, &outer, &inner, data.clone())), Status::FailedPrecondition, "not final");
    assert_eq!(status(nest(&mut program, &outer, &outer, data.clone())), Status::InvalidArgument);
    program.finish(&inner);
    nest(&mut program, &outer, &inner, data).unwrap();
    nest(&mut program, &outer, &inner, buffer(&[7, 8, 9])).unwrap();
    program.finish(&outer);
    program.execute(&outer, null(), null()).unwrap();
    let called = program.called();
    assert_eq!([&called[0].bindings, &called[1].bindings], [&[[3]], &[[9]]]);

    let mut deepest = outer;
    let outcome = (0..100).find_map(|_| {
        let next = program.command_buffer(REUSABLE);
        let outcome = nest(&mut program, &next, &deepest, buffer(&[0; 4]));
        program.finish(&next);
        deepest = next;
        outcome.err()
    });
    assert_eq!(outcome.unwrap().status(), Status::ResourceExhausted);
}

#[test]
fn bindings_are_counted() {
    let mut program = Program::new();
    let commands = program.command_buffer(REUSABLE);
    let bindings: Vec<_> = (0..33).map(|_| (0, buffer(&[1]), 0, 1)).collect();
    assert_eq!(status(program.dispatch(&commands, LOG, &[], &bindings)), Status::OutOfRange);
    program.dispatch(&commands, LOG, &[], &bindings[..32]).unwrap();
    program.finish(&commands);
    program.execute(&commands, null(), null()).unwrap();
    assert_eq!(program.called()[0].bindings.len(), 32);
}

#[test]
fn functions_are_found_by_name() {
    let mut program = Program::new();
    let executable = program.executable();
    let token = program.get("executable.lookup.function", "0rr_I", &[executable.clone(), text("fail")]);
    assert_eq!(crate::support::number(&token), FAIL);
    let missing = program.call("executable.lookup.function", "0rr_I", &[], &[executable, text("nothing")]);
    assert_eq!(status(missing), Status::NotFound);
    let commands = program.command_buffer(REUSABLE);
    for token in [6, -1] {
        assert_eq!(status(program.dispatch(&commands, token, &[], &[])), Status::OutOfRange);
    }
}

#[test]
fn arguments_of_the_wrong_type_are_refused() {
    let mut program = Program::new();
    let device = program.device();
    for wrong in [null(), text("no command buffer"), device] {
        let outcome = program.call("command_buffer.finalize", "0r_v", &[], &[wrong]);
        assert_eq!(status(outcome), Status::InvalidArgument);
    }
    let commands = program.command_buffer(REUSABLE);
    let outcome = program.dispatch(&commands, LOG, &[], &[(0, commands.clone(), 0, 1)]);
    assert_eq!(status(outcome), Status::InvalidArgument);
}

#[test]
fn recording_is_limited_by_memory() {
    let mut program = Program::with(vmfb_vm::Config::new().memory_limit(1 << 20));
    let commands = program.command_buffer(REUSABLE);
    let target = buffer(&[0; 4]);
    let outcome = (0..1_000_000).find_map(|_| fill(&mut program, &commands, &target, (0, 4), (0, 4)).err());
    assert_eq!(outcome.unwrap().status(), Status::ResourceExhausted);
    assert!(program.store.account().used() <= 1 << 20);
    drop(Arc::new(commands));
}
