//! What only older programs call: state of command buffers, layouts, other operand orders.

use crate::support::{LOG, Program, buffer, bytes_of, null, number, status, text, words};
use vmfb_memory::Span;
use vmfb_vm::{Buffer, Origin, Status, Value};

/// A command buffer and an executable of the generation before 2024-08.
struct Old {
    program: Program,
    commands: Value,
}

impl Old {
    fn new() -> Self {
        let mut program = Program::new();
        let device = program.get("ex.shared_device", "0v_r", &[]);
        let commands = program.get("command_buffer.create", "0riii_r", &[device, 1.into(), 3.into(), 0.into()]);
        Self { program, commands }
    }

    fn set_layout(&mut self, ordinals: &[i32]) -> vmfb_vm::Result<Value> {
        let mut arguments = vec![self.program.device(), 0.into()];
        for ordinal in ordinals {
            arguments.extend([(*ordinal).into(), 7.into(), 0.into()]);
        }
        let counts = [ordinals.len() as u16];
        Ok(self.program.call("descriptor_set_layout.create", "0riCiiiD_r", &counts, &arguments)?.remove(0))
    }

    fn layout(&mut self, constants: i32, sets: &[&[i32]]) -> vmfb_vm::Result<Value> {
        let mut arguments = vec![self.program.device(), constants.into()];
        for set in sets {
            arguments.push(self.set_layout(set)?);
        }
        let counts = [sets.len() as u16];
        Ok(self.program.call("pipeline_layout.create", "0riCrD_r", &counts, &arguments)?.remove(0))
    }

    fn executable(&mut self, layouts: &[Value]) -> Value {
        let mut arguments = vec![self.program.device(), text("test"), text("data"), null()];
        arguments.extend_from_slice(layouts);
        let counts = [layouts.len() as u16];
        self.program.call("executable.create", "0rrrrCrD_r", &counts, &arguments).unwrap().remove(0)
    }

    fn push_constants(&mut self, layout: &Value, first: i32, values: &[i32]) -> vmfb_vm::Result<()> {
        let mut arguments = vec![self.commands.clone(), layout.clone(), first.into()];
        arguments.extend(values.iter().map(|value| Value::from(*value)));
        let counts = [values.len() as u16];
        self.program.call("command_buffer.push_constants", "0rriCiD_v", &counts, &arguments).map(drop)
    }

    fn push_set(&mut self, layout: &Value, set: i32, bindings: &[(i32, &Value, i64, i64)]) -> vmfb_vm::Result<()> {
        let mut arguments = vec![self.commands.clone(), layout.clone(), set.into()];
        for (ordinal, buffer, offset, length) in bindings {
            arguments.extend([(*ordinal).into(), 0.into(), (*buffer).clone(), (*offset).into(), (*length).into()]);
        }
        let counts = [bindings.len() as u16];
        self.program.call("command_buffer.push_descriptor_set", "0rriCiirIID_v", &counts, &arguments).map(drop)
    }

    fn dispatch(&mut self, executable: &Value, entry: i32) -> vmfb_vm::Result<()> {
        let arguments = [self.commands.clone(), executable.clone(), entry.into(), 1.into(), 2.into(), 3.into()];
        self.program.call("command_buffer.dispatch", "0rriiii_v", &[], &arguments).map(drop)
    }

    fn execute(&mut self) -> vmfb_vm::Result<()> {
        let commands = self.commands.clone();
        self.program.finish(&commands);
        let arguments = [self.program.device(), (-1i64).into(), null(), null(), commands];
        self.program.call("device.queue.execute", "0rIrrCrD_v", &[1], &arguments).map(drop)
    }
}

#[test]
fn constants_and_bindings_outlive_a_dispatch() {
    let mut old = Old::new();
    let layout = old.layout(2, &[&[0, 1]]).unwrap();
    let executable = old.executable(std::slice::from_ref(&layout));
    let (a, b, c) = (buffer(&[1, 2]), buffer(&[3, 4]), buffer(&[5, 6]));
    old.push_constants(&layout, 0, &[10, 11]).unwrap();
    old.push_set(&layout, 0, &[(0, &a, 0, 2), (1, &b, 1, 1)]).unwrap();
    old.dispatch(&executable, 0).unwrap();
    old.push_constants(&layout, 1, &[12, 13]).unwrap();
    old.push_set(&layout, 0, &[(1, &c, 0, -1)]).unwrap();
    old.dispatch(&executable, 0).unwrap();
    old.execute().unwrap();
    let called = old.program.called();
    assert_eq!((&called[0].constants[..], &called[0].bindings[..]), (&[10, 11][..], &[vec![1, 2], vec![4]][..]));
    assert_eq!((&called[1].constants[..], &called[1].bindings[..]), (&[10, 12][..], &[vec![1, 2], vec![5, 6]][..]));
    assert_eq!(called[0].workgroups, [1, 2, 3]);
}

#[test]
fn the_layout_of_the_entry_point_decides() {
    let mut old = Old::new();
    let small = old.layout(1, &[&[3]]).unwrap();
    let large = old.layout(3, &[&[1], &[5, 0]]).unwrap();
    let executable = old.executable(&[small.clone(), large.clone(), small.clone(), small]);
    let buffers: Vec<Value> = (0..4).map(|byte| buffer(&[byte])).collect();
    old.push_constants(&large, 0, &[1, 2, 3]).unwrap();
    old.push_set(&large, 0, &[(1, &buffers[0], 0, 1), (3, &buffers[1], 0, 1)]).unwrap();
    old.push_set(&large, 1, &[(0, &buffers[2], 0, 1), (5, &buffers[3], 0, 1)]).unwrap();
    old.dispatch(&executable, LOG as i32).unwrap();
    old.execute().unwrap();
    let called = old.program.called();
    assert_eq!((&called[0].constants[..], &called[0].bindings[..]), (&[1][..], &[vec![1]][..]));

    let mut old = Old::new();
    let large = old.layout(3, &[&[1], &[5, 0]]).unwrap();
    let executable = old.executable(std::slice::from_ref(&large));
    old.push_constants(&large, 0, &[1, 2, 3]).unwrap();
    old.push_set(&large, 0, &[(1, &buffers[0], 0, 1)]).unwrap();
    old.push_set(&large, 1, &[(0, &buffers[2], 0, 1), (5, &buffers[3], 0, 1)]).unwrap();
    old.dispatch(&executable, 0).unwrap();
    old.execute().unwrap();
    let called = old.program.called();
    assert_eq!((&called[0].constants[..], &called[0].bindings[..]), (&[1, 2, 3][..], &[vec![0], vec![3], vec![2]][..]));
}

#[test]
fn what_was_not_pushed_cannot_be_dispatched() {
    let mut old = Old::new();
    let layout = old.layout(0, &[&[0, 1]]).unwrap();
    let executable = old.executable(std::slice::from_ref(&layout));
    old.push_set(&layout, 0, &[(0, &buffer(&[1]), 0, 1)]).unwrap();
    assert_eq!(status(old.dispatch(&executable, 0)), Status::FailedPrecondition);
    old.push_set(&layout, 0, &[(1, &null(), 0, 1)]).unwrap();
    old.dispatch(&executable, 0).unwrap();
    assert_eq!(status(old.execute()), Status::FailedPrecondition, "null, and no binding table");
}

#[test]
fn limits_of_layouts_and_pushes() {
    let mut old = Old::new();
    assert_eq!(status(old.set_layout(&[32])), Status::OutOfRange);
    assert_eq!(status(old.set_layout(&[-1])), Status::OutOfRange);
    assert_eq!(status(old.set_layout(&[1, 1])), Status::InvalidArgument);
    assert_eq!(status(old.layout(65, &[])), Status::OutOfRange);
    assert_eq!(status(old.layout(0, &[&[0], &[0], &[0]])), Status::OutOfRange);
    let layout = old.layout(64, &[&[0]]).unwrap();
    old.push_constants(&layout, 62, &[1, 2]).unwrap();
    assert_eq!(status(old.push_constants(&layout, 63, &[1, 2])), Status::OutOfRange);
    assert_eq!(status(old.push_constants(&layout, -1, &[1])), Status::OutOfRange);
    let data = buffer(&[1]);
    assert_eq!(status(old.push_set(&layout, 2, &[(0, &data, 0, 1)])), Status::OutOfRange);
    assert_eq!(status(old.push_set(&layout, 0, &[(32, &data, 0, 1)])), Status::OutOfRange);
    assert_eq!(status(old.push_set(&layout, 0, &[(0, &data, 1, 1)])), Status::OutOfRange);
    let executable = old.executable(&[layout]);
    assert_eq!(status(old.dispatch(&executable, 1)), Status::OutOfRange, "no layout for this entry point");
}

#[test]
fn older_operand_orders() {
    let mut program = Program::new();
    let commands = program.command_buffer(1);
    let (a, b) = (buffer(&[0; 4]), buffer(&[0; 4]));
    let fill_0 = [commands.clone(), a.clone(), 0i64.into(), 2i64.into(), 0x0201.into(), 2.into()];
    program.call("command_buffer.fill_buffer", "0rrIIii_v", &[], &fill_0).unwrap();
    let fill_5 = [commands.clone(), a.clone(), 2i64.into(), 2i64.into(), 9.into(), 0x0403.into(), 2.into()];
    program.call("command_buffer.fill_buffer", "0rrIIiii_v", &[], &fill_5).unwrap();
    let copy_0 = [commands.clone(), a.clone(), 1i64.into(), b.clone(), 0i64.into(), 2i64.into()];
    program.call("command_buffer.copy_buffer", "0rrIrII_v", &[], &copy_0).unwrap();
    let copy_5 = [commands.clone(), 8.into(), 9.into(), a.clone(), 0i64.into(), b.clone(), 2i64.into(), 2i64.into()];
    program.call("command_buffer.copy_buffer", "0riirIrII_v", &[], &copy_5).unwrap();
    let barrier = [commands.clone(), 4.into(), 4.into(), 0.into()];
    program.call("command_buffer.execution_barrier", "0riii_v", &[], &barrier).unwrap();
    program.finish(&commands);
    program.execute(&commands, null(), null()).unwrap();
    assert_eq!((bytes_of(&a), bytes_of(&b)), (vec![1, 2, 3, 4], vec![2, 3, 1, 2]));
}

#[test]
fn an_old_indirect_count() {
    let mut old = Old::new();
    let layout = old.layout(0, &[]).unwrap();
    let executable = old.executable(&[layout]);
    let arguments = [old.commands.clone(), executable, 0.into(), words(&[0, 4, 5, 6]), 4i64.into()];
    old.program.call("command_buffer.dispatch.indirect", "0rrirI_v", &[], &arguments).unwrap();
    old.execute().unwrap();
    assert_eq!(old.program.called()[0].workgroups, [4, 5, 6]);
}

#[test]
fn allocations_of_the_first_generation() {
    let mut program = Program::new();
    let allocator = program.allocator();
    let data = Buffer::new(Span::copy_of(&[1, 2, 3, 4], &Default::default()).unwrap(), Origin::Guest);
    let arguments = [allocator.clone(), 48.into(), 0xC03.into(), data.clone().into(), 1i64.into(), (-1i64).into()];
    let copied = program.get("allocator.allocate.initialized", "0riirII_r", &arguments);
    let arguments = [allocator.clone(), 0.into(), 48.into(), 0xC03.into(), data.clone().into(), 0i64.into(), 2i64.into()];
    let mapped = program.get("allocator.map.byte_buffer", "0riiirII_r", &arguments);
    data.span().write(0, &[9, 9, 9, 9]).unwrap();
    assert_eq!((bytes_of(&copied), bytes_of(&mapped)), (vec![2, 3, 4], vec![9, 9]));
    let new = program.get("allocator.allocate", "0riiI_r", &[allocator.clone(), 48.into(), 0xC03.into(), 5i64.into()]);
    assert_eq!(number(&program.get("buffer.length", "0r_I", &[new])), 5);
    let negative = program.call("allocator.allocate", "0riiI_r", &[], &[allocator, 48.into(), 0xC03.into(), (-1i64).into()]);
    assert_eq!(status(negative), Status::OutOfRange);
}
