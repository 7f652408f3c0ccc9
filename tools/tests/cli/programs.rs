//! Small modules that no compiler is needed for.

use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::definition::{BytecodeVersion, Dependency, Import, ModuleDef, Necessity, Signature};
use vmfb_bytecode::isa::{Imm32, MoveList, Op, RefRead, Register, RegisterList, Word, X4};

const VERSION: BytecodeVersion = BytecodeVersion::V17;

fn bytes(module: &ModuleDef) -> Vec<u8> {
    write_module(module, &[] as &[Vec<u8>], ArchiveForm::Plain).unwrap()
}

fn words<const N: usize>(registers: [Register; N]) -> Vec<Word> {
    registers.iter().map(|register| register.to_bytes()).collect()
}

fn export(module: &mut ModuleDef, name: &str, convention: &str, build: impl FnOnce(&mut FunctionBuilder)) {
    let mut builder = FunctionBuilder::new(VERSION, convention);
    builder.start_block();
    build(&mut builder);
    builder.finish().unwrap().export_from(module, name);
}

/// `refs`, which returns its `count` references, and `i32`, `i64`, `f32`, `f64`, which return their number.
pub(crate) fn identity(count: u16) -> Vec<u8> {
    let mut module = empty_module("identity", VERSION);
    module.types = vec!["!hal.buffer_view".to_owned()];
    // The official tool makes tensors only for modules that need this one.
    module.dependencies.push(Dependency { name: "hal_inline".to_owned(), minimum_version: 0, necessity: Necessity::Required });
    let refs = "r".repeat(usize::from(count));
    export(&mut module, "refs", &format!("0{refs}_{refs}"), |f| {
        let values: Vec<Word> = (0..count).map(|ordinal| RefRead::new(ordinal).register().to_bytes()).collect();
        f.push(Op::Return { values: RegisterList::new(&values) });
    });
    for (name, convention) in [("i32", "0i_i"), ("i64", "0I_I"), ("f32", "0f_f"), ("f64", "0F_F")] {
        export(&mut module, name, convention, |f| {
            f.push(Op::Return { values: RegisterList::new(&words([X4(0).register()])) });
        });
    }
    bytes(&module)
}

/// So many functions, which do nothing: `function_0`, `function_1`, …
pub(crate) fn many_functions(count: usize) -> Vec<u8> {
    let mut module = empty_module("many", VERSION);
    for index in 0..count {
        export(&mut module, &format!("function_{index}"), "0v_v", |f| {
            f.push(Op::Return { values: RegisterList::new(&[]) });
        });
    }
    bytes(&module)
}

/// `forever`, which never ends, and `divide`, which divides its arguments.
pub(crate) fn trouble() -> Vec<u8> {
    let mut module = empty_module("trouble", VERSION);
    export(&mut module, "divide", "0ii_i", |f| {
        f.push(Op::DivI32S { a: X4(0), b: X4(1), dst: X4(0) });
        f.push(Op::Return { values: RegisterList::new(&words([X4(0).register()])) });
    });
    export(&mut module, "forever", "0v_v", |f| {
        let head = f.label();
        f.push(Op::Br { to: head.pc(), moves: MoveList::new(&[]) });
        f.place(head);
        f.push(Op::ConstI32 { value: Imm32(1), dst: X4(0) });
        f.push(Op::Br { to: head.pc(), moves: MoveList::new(&[]) });
    });
    bytes(&module)
}

/// `slow`, which never ends and would return its argument.
pub(crate) fn slow() -> Vec<u8> {
    let mut module = empty_module("slow", VERSION);
    export(&mut module, "slow", "0i_i", |f| {
        endless_loop(f);
        f.push(Op::Return { values: RegisterList::new(&words([X4(0).register()])) });
    });
    bytes(&module)
}

/// Three tests: `good`, which passes, `forever`, which never ends, and `late`.
pub(crate) fn tests_then_endless() -> Vec<u8> {
    let mut module = empty_module("tests", VERSION);
    let passes = |f: &mut FunctionBuilder| {
        f.push(Op::Return { values: RegisterList::new(&[]) });
    };
    export(&mut module, "good", "0v_v", passes);
    export(&mut module, "forever", "0v_v", |f| {
        endless_loop(f);
        passes(f);
    });
    export(&mut module, "late", "0v_v", passes);
    bytes(&module)
}

/// Goes round while a register that stays 0 is 0; the next block follows.
fn endless_loop(f: &mut FunctionBuilder) {
    let (head, end) = (f.label(), f.label());
    let moves = MoveList::new(&[]);
    f.push(Op::Br { to: head.pc(), moves }).place(head);
    f.push(Op::ConstI32Zero { dst: X4(1) });
    f.push(Op::CondBr { condition: X4(1), true_to: end.pc(), true_moves: moves, false_to: head.pc(), false_moves: moves }).place(end);
}

/// A module that calls a function of a module that nobody has.
pub(crate) fn missing_import() -> Vec<u8> {
    let mut module = empty_module("lonely", VERSION);
    let signature = Some(Signature { calling_convention: "0i_i".to_owned(), attributes: Vec::new() });
    module.imports.push(Import { full_name: "math.square".to_owned(), signature, necessity: Necessity::Required });
    export(&mut module, "run", "0v_v", |f| {
        f.push(Op::Return { values: RegisterList::new(&[]) });
    });
    bytes(&module)
}

/// A module that was made for a runtime with a newer `hal_loader`.
pub(crate) fn newer_dependency() -> Vec<u8> {
    let mut module = empty_module("newer", VERSION);
    module.dependencies.push(Dependency { name: "hal_loader".to_owned(), minimum_version: 99, necessity: Necessity::Required });
    bytes(&module)
}

/// A module of a bytecode version that does not exist.
pub(crate) fn future_version() -> Vec<u8> {
    let mut module = empty_module("future", VERSION);
    export(&mut module, "run", "0v_v", |f| {
        f.push(Op::Return { values: RegisterList::new(&[]) });
    });
    module.bytecode_version = BytecodeVersion(23 << 16);
    bytes(&module)
}

/// A module whose names steer terminals.
pub(crate) fn hostile_names() -> Vec<u8> {
    let mut module = empty_module("evil\u{1b}[31m", VERSION);
    for name in ["a\u{1b}]0;owned\u{7}", "b\nsecond line"] {
        export(&mut module, name, "0v_v", |f| {
            f.push(Op::Return { values: RegisterList::new(&[]) });
        });
    }
    bytes(&module)
}
