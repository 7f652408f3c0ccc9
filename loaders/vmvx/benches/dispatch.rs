//! What a dispatch and a workgroup cost beside the kernel's own work: `cargo bench -p vmfb-loader-vmvx`.
//!
//! Prints the best of several rounds, as the machine may be busy.

use std::sync::Arc;
use std::time::Instant;
use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{Op, RegisterList};
use vmfb_hal::{Binding, Dispatch, Executable, ExecutableLoader, ExecutableParameters, Load};
use vmfb_loader_vmvx::{FORMAT, VmvxLoader};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Engine, Meter};

const ROUNDS: usize = 9;

fn main() {
    let executable = executable();
    let span = Span::zeroed(4096, 64, &MemoryAccount::default()).unwrap();
    let bindings: Vec<_> = (0..8).map(|_| Binding { span: &span, offset: 0, length: 4096 }).collect();
    for (count, constants, workgroups) in [(1, 0, 1), (3, 2, 1), (8, 2, 1), (3, 2, 1000)] {
        let dispatch = Dispatch {
            export: 0,
            workgroup_count: [workgroups, 1, 1],
            constants: &[1; 2][..constants],
            bindings: &bindings[..count],
            concurrency: 1,
        };
        let seconds = best(&*executable, &dispatch, 20_000 / workgroups);
        println!("{count} bindings, {constants} constants, {workgroups} workgroups: {:8.1} ns", seconds * 1e9);
    }
}

/// A kernel that returns at once.
fn executable() -> Arc<dyn Executable> {
    let mut module = empty_module("module", BytecodeVersion::V17);
    let mut builder = FunctionBuilder::new(BytecodeVersion::V17, "0rrriiiiiiiii_v");
    builder.start_block();
    builder.push(Op::Return { values: RegisterList::new(&[]) });
    builder.finish().unwrap().export_from(&mut module, "nothing");
    let bytes = write_module(&module, &[] as &[Vec<u8>], ArchiveForm::Plain).unwrap();
    let engine = Engine::default();
    let parameters = ExecutableParameters {
        format: FORMAT,
        data: &Span::from_vector(bytes),
        constants: &[],
        engine: &engine,
        account: &MemoryAccount::default(),
    };
    match VmvxLoader::new().try_load(&parameters) {
        Ok(Load::Loaded(executable)) => executable,
        Ok(Load::NotMine(error)) | Err(error) => panic!("{error}"),
    }
}

/// Seconds of one dispatch.
fn best(executable: &dyn Executable, dispatch: &Dispatch<'_>, calls: u32) -> f64 {
    let mut meter = Meter::default();
    let mut round = || {
        let start = Instant::now();
        (0..calls).for_each(|_| executable.dispatch(&mut meter, dispatch).unwrap());
        start.elapsed().as_secs_f64() / f64::from(calls)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}
