//! Commands between two barriers on several threads.

use crate::support::{ADD, FAIL, HERE, LOG, MEET, Program, buffer, bytes_of, fence, null, words, words_of};
use std::time::Duration;
use vmfb_hal::{Fence, FenceStatus};
use vmfb_vm::{Config, FuelMetering, Interruption, Status, Value};

const THREADS: [usize; 3] = [1, 2, 4];

fn whole(buffer: &Value) -> (i32, Value, i64, i64) {
    (0, buffer.clone(), 0, -1)
}

/// Executes commands that are recorded by `record`, once.
fn execute(program: &mut Program, record: impl FnOnce(&mut Program, &Value)) -> vmfb_vm::Result<()> {
    let commands = program.command_buffer(1);
    record(program, &commands);
    program.finish(&commands);
    program.execute(&commands, null(), null())
}

#[test]
fn independent_commands_run_at_the_same_time() {
    let mut program = Program::on_threads(2, Config::new());
    let place = words(&[0]);
    execute(&mut program, |program, commands| {
        program.barrier(commands);
        program.dispatch(commands, MEET, &[2], &[whole(&place)]).unwrap();
        program.dispatch(commands, MEET, &[2], &[whole(&place)]).unwrap();
    })
    .unwrap();
    assert_eq!(words_of(&place), [2]);
}

#[test]
fn queued_commands_run_at_the_same_time_on_the_thread_that_signals_and_others() {
    let mut program = Program::on_threads(2, Config::new());
    let (place, start, end) = (words(&[0]), Fence::new(), Fence::new());
    let commands = program.command_buffer(1);
    for _ in 0..2 {
        program.dispatch(&commands, MEET, &[2], &[whole(&place)]).unwrap();
    }
    program.finish(&commands);
    program.execute(&commands, fence(&start), fence(&end)).unwrap();
    drop((program, commands));
    std::thread::spawn(move || start.signal()).join().unwrap();
    assert!(matches!(end.status(), FenceStatus::Reached));
    assert_eq!(words_of(&place), [2]);
}

/// Rounds of eight additions, each of which reads what the round before has written.
#[test]
fn nothing_passes_a_barrier() {
    const ROUNDS: usize = 20;
    let mut expected = [[0u32; 8], [0; 8]];
    for round in 0..ROUNDS {
        let from = expected[round % 2];
        for index in 0..8 {
            expected[(round + 1) % 2][index] = from[index] + from[(index + 1) % 8] + index as u32 % 3;
        }
    }
    for threads in THREADS {
        let mut program = Program::on_threads(threads, Config::new());
        for _ in 0..5 {
            let banks = [[0; 8], [0; 8]].map(|bank| bank.map(|value| words(&[value])));
            execute(&mut program, |program, commands| {
                for round in 0..ROUNDS {
                    let (from, to) = (&banks[round % 2], &banks[(round + 1) % 2]);
                    for index in 0..8 {
                        let (left, right) = (whole(&from[index]), whole(&from[(index + 1) % 8]));
                        program.dispatch(commands, ADD, &[index as i32 % 3], &[left, right, whole(&to[index])]).unwrap();
                    }
                    program.barrier(commands);
                    program.barrier(commands);
                }
            })
            .unwrap();
            let found = banks.each_ref().map(|bank| bank.each_ref().map(|word| words_of(word)[0]));
            assert_eq!(found, expected, "{threads} threads");
        }
    }
}

#[test]
fn of_several_failures_the_first_command_counts_and_nothing_behind_the_barrier_runs() {
    for threads in THREADS {
        let mut program = Program::on_threads(threads, Config::new());
        for _ in 0..20 {
            let outcome = execute(&mut program, |program, commands| {
                for code in [3, 5, 9, 11] {
                    program.dispatch(commands, LOG, &[1], &[]).unwrap();
                    program.dispatch(commands, FAIL, &[code], &[]).unwrap();
                }
                program.barrier(commands);
                program.dispatch(commands, LOG, &[2], &[]).unwrap();
            });
            let error = outcome.unwrap_err();
            assert_eq!((error.status(), error.message()), (Status::Internal, "a workgroup returned 3"), "{threads} threads");
            assert!(error.context_chain().any(|text| text == "executing command 1 of a command buffer"), "{error}");
            let called = program.called();
            assert!(!called.is_empty() && called.iter().all(|called| called.constants == [1]), "{called:?}");
        }
        execute(&mut program, |program, commands| program.dispatch(commands, LOG, &[], &[]).unwrap()).expect("usable afterwards");
    }
}

/// Fuel is counted in order, so that it runs out at the same command every time.
#[test]
fn commands_stay_on_the_calling_thread_while_fuel_is_counted() {
    let mut program = Program::on_threads(4, Config::new().fuel(FuelMetering::On));
    program.store.set_fuel(1_000_000);
    for _ in 0..20 {
        execute(&mut program, |program, commands| {
            (0..20).for_each(|_| program.dispatch(commands, HERE, &[], &[]).unwrap());
        })
        .unwrap();
    }
}

#[test]
fn an_interruption_ends_commands_on_all_threads() {
    let mut program = Program::on_threads(2, Config::new().interruption(Interruption::On));
    let (start, end) = (Fence::new(), Fence::new());
    let commands = program.command_buffer(1);
    (0..50).for_each(|_| program.dispatch(&commands, LOG, &[], &[]).unwrap());
    program.finish(&commands);
    program.execute(&commands, fence(&start), fence(&end)).unwrap();
    program.store.interrupt_handle().interrupt();
    start.signal();
    let FenceStatus::Failed(error) = end.wait(Some(std::time::Instant::now() + Duration::from_secs(120))) else {
        panic!("the fence does not fail")
    };
    assert_eq!(error.status(), Status::Cancelled);
    assert!(program.called().is_empty());
}

#[test]
fn a_panic_on_a_worker_thread_fails_the_fence() {
    for _ in 0..10 {
        let mut program = Program::on_threads(2, Config::new());
        let (start, end) = (Fence::new(), Fence::new());
        let commands = program.command_buffer(1);
        let place = words(&[0]);
        for _ in 0..2 {
            program.dispatch(&commands, MEET, &[2], &[whole(&place)]).unwrap();
        }
        // The kernel has no constant to add.
        let data = || (0, words(&[1]), 0, -1);
        program.dispatch(&commands, ADD, &[], &[data(), data(), data()]).unwrap();
        program.finish(&commands);
        program.execute(&commands, fence(&start), fence(&end)).unwrap();
        assert!(std::thread::spawn(move || start.signal()).join().is_err());
        let FenceStatus::Failed(error) = end.status() else { panic!("the fence does not fail") };
        assert_eq!(error.status(), Status::Internal);
    }
}

/// A command buffer inside another has barriers of its own, and stands between what is recorded before and behind it.
#[test]
fn nested_command_buffers_keep_their_place() {
    for threads in THREADS {
        let mut program = Program::on_threads(threads, Config::new());
        let data = buffer(&[0; 8]);
        let fill = |program: &mut Program, commands: &Value, value: i64| {
            let arguments = [commands.clone(), data.clone(), 0i64.into(), 8i64.into(), 0.into(), value.into(), 1.into(), 0i64.into()];
            program.call("command_buffer.fill_buffer", "0rrIIiIiI_v", &[], &arguments).unwrap();
        };
        for _ in 0..50 {
            let inner = program.command_buffer(0);
            fill(&mut program, &inner, 2);
            program.finish(&inner);
            execute(&mut program, |program, commands| {
                fill(program, commands, 1);
                program.call("command_buffer.execute.commands", "0rrCrIID_v", &[0], &[commands.clone(), inner]).unwrap();
                program.barrier(commands);
                program.dispatch(commands, LOG, &[], &[whole(&data)]).unwrap();
            })
            .unwrap();
            assert_eq!(program.called()[0].bindings, [[2; 8]]);
        }
        assert_eq!(bytes_of(&data), [2; 8]);
    }
}

#[test]
fn many_programs_share_the_threads() {
    let engine = vmfb_vm::Engine::new(Config::new().worker_threads(3));
    engine.shared(|| vmfb_hal::Workers::new(3).worthwhile(Duration::ZERO));
    std::thread::scope(|scope| {
        for number in 0..4u32 {
            let engine = &engine;
            scope.spawn(move || {
                let mut program = Program::in_engine(engine);
                for round in 0..50 {
                    let sums = [0; 6].map(|value| words(&[value]));
                    let (a, b) = (words(&[number]), words(&[round]));
                    execute(&mut program, |program, commands| {
                        for (index, sum) in sums.iter().enumerate() {
                            program.dispatch(commands, ADD, &[index as i32], &[whole(&a), whole(&b), whole(sum)]).unwrap();
                        }
                    })
                    .unwrap();
                    let found = sums.each_ref().map(|sum| words_of(sum)[0]);
                    assert_eq!(found, [0, 1, 2, 3, 4, 5].map(|index| number + round + index));
                }
            });
        }
    });
}
