//! Executables, and a program that loads one and dispatches its first kernel.

use crate::program::{NEWEST, Program, r, v};
use vmfb::bytecode::isa::{Op, RefMove, SegmentList};

/// Calling convention of VMVX kernels: scratch memory, constants, bindings; workgroup id, size and count in x, y, z.
pub const ENTRY: &str = "0rrriiiiiiiii_v";

/// An executable and its format.
pub struct Executable {
    /// The format, as programs name it.
    pub format: &'static str,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A VMVX executable: a module of its own, whose exports are the kernels.
pub fn vmvx(build: impl FnOnce(&mut Program)) -> Executable {
    let mut module = Program::named("module", NEWEST);
    build(&mut module);
    Executable { format: "vmvx-bytecode-fb", bytes: module.bytes() }
}

/// The native executable of a sample. Its kernel multiplies four f32 of the first two bindings into the third, whichever
/// workgroup it runs for, and touches nothing else.
#[cfg(all(feature = "elf", target_arch = "x86_64"))]
pub fn elf() -> Executable {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/hello/mul.vmfb");
    let module = vmfb::Module::from_file(&vmfb::Engine::default(), path).expect("the sample");
    let constants = module.constants().iter().map(|constant| constant.span().to_vec().expect("bytes"));
    let bytes = constants.into_iter().find(|bytes| bytes.starts_with(b"\x7FELF")).expect("an ELF image");
    Executable { format: "embedded-elf-x86_64", bytes }
}

/// A program whose `dispatch(x, y, z)` loads the executable and dispatches kernel 0 with three bindings of 16 bytes, all the
/// same; and whose `load` loads it and gives it.
pub fn dispatching(executable: &Executable) -> Program {
    const PLAIN: u16 = SegmentList::PLAIN;
    let mut program = Program::new(NEWEST);
    let (format, data) = (program.rodata(executable.format.as_bytes()), program.rodata(&executable.bytes));
    let load = program.import("hal_loader.executable.load", "0rrr_r");
    let dispatch = program.import("hal_loader.executable.dispatch", "0rIiiiCiDCrIID_v");
    for (name, convention) in [("dispatch", "0iii_v"), ("load", "0v_r")] {
        program.export(name, convention, |f| {
            f.start_block();
            f.op(Op::ConstRefRodata { rodata: format, dst: RefMove::new(0) }).op(Op::ConstRefRodata { rodata: data, dst: RefMove::new(1) });
            f.op(Op::ConstRefZero { dst: RefMove::new(2) }).call(load, [r(0), r(1), r(2)], [r(3)]);
            if name == "load" {
                f.ret([r(3)]);
                return;
            }
            f.i64(4, 0).i64(6, 16).alloc(6, 4);
            let binding = [r(4), v(4), v(6)];
            let arguments = [&[r(3), v(4), v(0), v(1), v(2)][..], &binding, &binding, &binding].concat();
            f.call_variadic(dispatch, &[PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, 0, 3], &arguments, []).ret([]);
        });
    }
    program
}
