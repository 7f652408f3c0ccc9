//! Calls between functions of one module: widths, placement of arguments by age, many results, depth, frames.

use crate::support::*;
use vmfb_bytecode::definition::BytecodeVersion;
use vmfb_bytecode::isa::{FunctionRef, Op, RefMove, RefRead, Register, Word, X4, X8};
use vmfb_vm::{Buffer, Config, Linker, Ref, Status, Value};

/// Adds `triple(i64) -> i64`, not exported.
fn triple(program: &mut Program) -> FunctionRef {
    FunctionRef::internal(program.function("0I_I", |f| {
        f.start_block();
        f.op(Op::AddI64 { a: X8(0), b: X8(0), dst: X8(2) }).op(Op::AddI64 { a: X8(2), b: X8(0), dst: X8(2) }).ret([v(2)]);
    }))
}

/// Official runtimes before 3.13.0 gave 50529024 or 4345496320 here.
#[test]
fn internal_calls_pass_all_64_bits() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let triple = triple(&mut program);
        program.export("run", "0I_I", |f| {
            f.start_block();
            f.call(triple, [v(0)], [v(4)]).ret([v(4)]);
        });
        let mut running = program.start();
        assert_eq!(running.call_one::<i64>("run", (4_311_810_304_i64,)).unwrap(), 12_935_430_912);
        assert_eq!(running.call_one::<i64>("run", (-1_i64,)).unwrap(), -3);
    }
}

/// Every kind through an internal call; results in another order. Each is changed a little, which tells 13.0 its width.
#[test]
fn internal_calls_pass_every_kind() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let callee = FunctionRef::internal(program.function("0IFifr_FrfIi", |f| {
            f.start_block();
            f.op(Op::NotI64 { a: X8(0), dst: X8(0) }).op(Op::NegF64 { a: X8(2), dst: X8(2) });
            f.op(Op::NotI32 { a: X4(4), dst: X4(4) }).op(Op::NegF32 { a: X4(5), dst: X4(5) });
            f.ret([v(2), moved(0), v(5), v(0), v(4)]);
        }));
        program.export("run", "0IFifr_FrfIi", |f| {
            f.start_block();
            f.call(callee, [v(0), v(2), v(4), v(5), r(0)], [v(8), r(1), v(11), v(6), v(10)]);
            f.ret([v(8), r(1), v(11), v(6), v(10)]);
        });
        let buffer = Buffer::constant(vec![1]);
        let arguments = [0x1122_3344_5566_7788_i64.into(), 2.5.into(), 7.into(), 1.5_f32.into(), buffer.clone().into()];
        let results = program.start().call("run", &arguments).unwrap();
        assert!(results[1].as_ref().unwrap().same(&buffer.into()));
        let numbers: Vec<u64> = [0, 2, 3, 4].map(|at| bits(&results[at])).to_vec();
        let wanted = [(-2.5_f64).to_bits(), u64::from((-1.5_f32).to_bits()), !0x1122_3344_5566_7788, u64::from(!7_u32)];
        assert_eq!(numbers, wanted);
    }
}

/// The sum of the four arguments of `0iIiI_I` that stand at the given slots, with as many registers as stated.
fn sum_body(f: &mut Body, [a, b, c, d]: [u16; 4], registers: u16) {
    f.start_block();
    // The pairs first; then each i32 is widened into the place of the second pair.
    f.op(Op::AddI64 { a: X8(b), b: X8(d), dst: X8(b) });
    f.op(Op::ExtI32I64S { a: X4(a), dst: X8(d) }).op(Op::AddI64 { a: X8(b), b: X8(d), dst: X8(b) });
    f.op(Op::ExtI32I64S { a: X4(c), dst: X8(d) }).op(Op::AddI64 { a: X8(b), b: X8(d), dst: X8(b) });
    f.ret([v(b)]);
    f.value_registers(registers);
}

/// Compilers up to 3.4.0 put each argument into the lowest free slot, later ones behind the one before.
#[test]
fn arguments_stand_where_the_compiler_of_the_age_put_them() {
    let (old, new) = ([0, 2, 1, 4], [0, 2, 4, 6]);
    let call = |version: BytecodeVersion, slots, registers, internal: bool| -> i64 {
        let mut program = Program::new(version);
        let convention = "0iIiI_I";
        let callee = program.export("sum", convention, |f| sum_body(f, slots, registers));
        program.export("call", "0v_I", |f| {
            f.start_block();
            f.i32(0, 1).i64(2, 20).i32(1, 300).i64(4, -4000);
            f.call(FunctionRef::internal(callee), [v(0), v(2), v(1), v(4)], [v(6)]).ret([v(6)]);
        });
        let mut running = program.start();
        match internal {
            true => running.call_one("call", ()).unwrap(),
            false => running.call_one("sum", (1, 20_i64, 300, -4000_i64)).unwrap(),
        }
    };
    for internal in [false, true] {
        for version in [BytecodeVersion::V13, BytecodeVersion::V15] {
            // Too few registers for the new placement: it is the old one.
            assert_eq!(call(version, old, 6, internal), -3679, "{version}: old, 6 registers");
            // Enough for both: what the body reads decides.
            assert_eq!(call(version, old, 12, internal), -3679, "{version}: old, 12 registers");
            assert_eq!(call(version, new, 8, internal), -3679, "{version}: new, 8 registers");
            assert_eq!(call(version, new, 12, internal), -3679, "{version}: new, 12 registers");
        }
        for version in [BytecodeVersion::V16, BytecodeVersion::V17] {
            assert_eq!(call(version, new, 8, internal), -3679);
            // No compiler of this age uses the old placement: i1 is 0, i4:5 is the third argument.
            assert_eq!(call(version, old, 8, internal), 321);
        }
    }
}

/// A callee of 13.0 that says nothing about its argument, called with two different widths or with an unknown one.
#[test]
fn unknown_widths_of_13_are_refused() {
    let refused = |build: &dyn Fn(&mut Body, FunctionRef)| {
        let mut program = Program::new(BytecodeVersion::V13);
        let ignores = FunctionRef::internal(program.function("0i_v", |f| {
            f.start_block();
            f.ret([]);
        }));
        program.export("run", "0v_v", |f| {
            f.start_block();
            build(f, ignores);
            f.ret([]);
        });
        program.load(&Default::default()).map(|_| ()).unwrap_err()
    };
    let contradicting = refused(&|f, ignores| {
        f.i32(0, 1).i64(2, 1).call(ignores, [v(0)], []).call(ignores, [v(2)], []);
    });
    let unknown = refused(&|f, ignores| {
        f.call(ignores, [v(4)], []);
    });
    for error in [contradicting, unknown] {
        assert_eq!(error.status(), Status::Unimplemented, "{error}");
        assert!(error.to_string().contains("function 0 at pc 0x0"), "{error}");
    }
    // Calls that differ in the number of their arguments name the call.
    let error = refused(&|f, ignores| {
        f.i32(0, 1).call(ignores, [v(0)], []).call(ignores, [v(0), v(0)], []);
    });
    assert_eq!(error.status(), Status::Unimplemented, "{error}");
    assert!(error.to_string().contains("function 1 at pc"), "{error}");
}

/// The callee reads all 64 bits of what its caller wrote in two halves.
#[test]
fn the_callee_of_13_decides_the_width() {
    let mut program = Program::new(BytecodeVersion::V13);
    let triple = triple(&mut program);
    program.export("run", "0ii_I", |f| {
        f.start_block();
        f.op(Op::AddI32 { a: X4(0), b: X4(ZERO), dst: X4(4) }).op(Op::AddI32 { a: X4(1), b: X4(ZERO), dst: X4(5) });
        f.call(triple, [v(4)], [v(6)]).ret([v(6)]);
    });
    assert_eq!(program.start().call_one::<i64>("run", (5, 1)).unwrap(), 3 * ((1 << 32) + 5));
}

/// `f(n) = n == 0 ? 0 : f(n - 1) + 1`, and each frame holds a buffer.
fn recursive(version: BytecodeVersion) -> Program {
    let mut program = Program::new(version);
    program.export("count", "0i_i", |f| {
        f.start_block();
        let (deeper, end) = (f.label(), f.label());
        f.op(Op::CmpNzI32 { a: X4(0), dst: X4(1) });
        f.op(Op::CondBr { condition: X4(1), true_to: deeper.pc(), true_moves: NO_MOVES, false_to: end.pc(), false_moves: NO_MOVES });
        f.place(deeper);
        f.alloc(4, 0).i32(2, -1).op(Op::AddI32 { a: X4(0), b: X4(2), dst: X4(0) });
        f.call(FunctionRef::internal(0), [v(0)], [v(0)]);
        f.i32(2, 1).op(Op::AddI32 { a: X4(0), b: X4(2), dst: X4(0) }).op(Op::Br { to: end.pc(), moves: NO_MOVES });
        f.place(end);
        f.ret([v(0)]);
    });
    program
}

#[test]
fn deep_recursion_ends_with_an_error_and_the_store_goes_on() {
    for version in VERSIONS {
        let mut running = recursive(version).start();
        assert_eq!(running.call_one::<i32>("count", (1000,)).unwrap(), 1000);
        for depth in [1_000_000, -1] {
            let error = running.call("count", &[depth.into()]).unwrap_err();
            assert_eq!(error.status(), Status::ResourceExhausted);
            // Whoever reads the error gets the inner end of the stack, not a million lines.
            assert!((1..1000).contains(&error.frames().len()));
            assert_eq!(error.frames()[0].name.as_deref(), Some("count"));
            assert_eq!(running.used(), 0, "frames have released their buffers");
        }
        assert_eq!(running.call_one::<i32>("count", (1000,)).unwrap(), 1000);
    }
}

#[test]
fn the_size_of_the_stack_is_configured() {
    let program = recursive(NEWEST);
    let mut small = program.start_with(&Linker::new(), Config::new().stack_bytes(64 << 10));
    assert_eq!(status(small.call("count", &[5000.into()])), Status::ResourceExhausted);
    let mut large = program.start_with(&Linker::new(), Config::new().stack_bytes(64 << 20));
    assert_eq!(large.call_one::<i32>("count", (50_000,)).unwrap(), 50_000);
    // A frame that cannot fit at all.
    let mut tiny = program.start_with(&Linker::new(), Config::new().stack_bytes(16));
    assert_eq!(status(tiny.call("count", &[0.into()])), Status::ResourceExhausted);
}

/// A return of `count` results of all kinds in turn. Constants are numbers that depend on the place.
pub struct Many {
    pub letters: String,
    pub registers: Vec<Word>,
}

impl Many {
    pub fn new(count: usize) -> Self {
        let (mut value, mut reference) = (0, 0);
        let mut many = Self { letters: String::new(), registers: Vec::new() };
        for index in 0..count {
            let letter = b"iIfFr"[index % 5] as char;
            many.letters.push(letter);
            let register = match letter {
                'r' => Register::reference(reference),
                'i' | 'f' => Register::value(value),
                _ => {
                    value = u16::next_multiple_of(value, 2);
                    Register::value(value)
                }
            };
            match letter {
                'r' => reference += 1,
                'i' | 'f' => value += 1,
                _ => value += 2,
            }
            many.registers.push(register.to_bytes());
        }
        many
    }

    /// Sets all registers: references are buffers whose length is the place.
    pub fn fill(&self, f: &mut Body) {
        let (scratch, zero) = (500, 502);
        for (index, (letter, word)) in self.letters.chars().zip(&self.registers).enumerate() {
            let register = Register::from_word(u16::from_le_bytes(*word)).ordinal();
            match letter {
                'r' => _ = f.i64(scratch, index as i64).alloc_aligned(scratch, zero, register),
                'i' => _ = f.i32(register, index as i32 - 1000),
                'f' => _ = f.i32(register, (index as f32).to_bits() as i32),
                'I' => _ = f.i64(register, -(index as i64) << 33),
                _ => _ = f.i64(register, (index as f64 / 3.0).to_bits() as i64),
            }
        }
    }

    /// Whether these are the values that [`Many::fill`] sets.
    pub fn check(&self, results: &[Value]) {
        assert_eq!(results.len(), self.letters.len());
        for (index, result) in results.iter().enumerate() {
            let right = match result {
                Value::I32(value) => *value == index as i32 - 1000,
                Value::I64(value) => *value == -(index as i64) << 33,
                Value::F32(value) => *value == index as f32,
                Value::F64(value) => *value == index as f64 / 3.0,
                Value::Ref(reference) => reference.buffer("the result").unwrap().len() == index,
                other => panic!("{other:?}"),
            };
            assert!(right, "result {index} of {} is {result:?}", results.len());
        }
    }
}

#[test]
fn any_number_of_results() {
    for version in VERSIONS {
        for count in [1, 31, 32, 33, 64, 200] {
            let many = Many::new(count);
            let convention = format!("0v_{}", many.letters);
            let mut program = Program::new(version);
            let callee = program.export("callee", &convention, |f| {
                f.start_block();
                many.fill(f);
                f.ret_list(&many.registers);
            });
            program.export("caller", &convention, |f| {
                f.start_block();
                let results = vmfb_bytecode::isa::RegisterList::new(&many.registers);
                let arguments = vmfb_bytecode::isa::RegisterList::new(&[]);
                f.op(Op::Call { callee: FunctionRef::internal(callee), arguments, results }).ret_list(&many.registers);
            });
            let mut running = program.start();
            many.check(&running.call("callee", &[]).unwrap());
            many.check(&running.call("caller", &[]).unwrap());
            assert_eq!(running.used(), 0);
        }
    }
}

/// A function that returns registers which it never wrote, called where another frame has just been.
#[test]
fn frames_start_with_zeros_and_nulls() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let dirty = program.export("dirty", "0v_v", |f| {
            f.start_block();
            for register in (0..40).step_by(2) {
                f.i64(register, -1);
            }
            f.i64(0, 8).alloc(0, 0).alloc(0, 1).alloc(0, 2).ret([]);
        });
        let fresh = program.export("fresh", "0v_iIrr", |f| {
            f.start_block();
            f.ret([v(7), v(20), r(0), r(2)]);
        });
        program.export("run", "0v_iIrr", |f| {
            f.start_block();
            f.call(FunctionRef::internal(dirty), [], []);
            f.call(FunctionRef::internal(fresh), [], [v(0), v(2), r(0), r(1)]).ret([v(0), v(2), r(0), r(1)]);
        });
        let mut running = program.start();
        running.call("dirty", &[]).unwrap();
        for name in ["fresh", "run"] {
            let results = running.call(name, &[]).unwrap();
            assert_eq!((bits(&results[0]), bits(&results[1])), (0, 0));
            assert!(matches!(results[2..], [Value::Ref(Ref::Null), Value::Ref(Ref::Null)]));
        }
    }
}

/// What a callee leaves in its registers is gone when it returns, and when it fails.
#[test]
fn frames_release_their_references() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let callee = program.export("callee", "0i_v", |f| {
            f.start_block();
            let (fail, end) = (f.label(), f.label());
            f.i64(2, 1000).alloc(2, 0).alloc(2, 1);
            f.op(Op::CondBr { condition: X4(0), true_to: fail.pc(), true_moves: NO_MOVES, false_to: end.pc(), false_moves: NO_MOVES });
            f.place(fail);
            f.op(Op::Fail { code: X4(0), message: vmfb_bytecode::isa::Text(b"stop") });
            f.place(end);
            f.ret([]);
        });
        program.export("run", "0i_v", |f| {
            f.start_block();
            f.i64(2, 1000).alloc(2, 0).call(FunctionRef::internal(callee), [v(0)], []).ret([]);
        });
        let mut running = program.start();
        running.call("run", &[0.into()]).unwrap();
        assert_eq!(running.used(), 0);
        assert_eq!(status(running.call("run", &[1.into()])), Status::Cancelled);
        assert_eq!(running.used(), 0);
    }
}

/// References are lent or given to internal calls as their words say, in every version.
#[test]
fn move_bits_of_internal_calls_are_honoured() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let callee = FunctionRef::internal(program.function("0rr_i", |f| {
            f.start_block();
            f.op(Op::CmpNzRef { a: RefRead::new(0), dst: X4(0) }).op(Op::CmpNzRef { a: RefRead::new(1), dst: X4(1) });
            f.op(Op::AddI32 { a: X4(0), b: X4(1), dst: X4(0) }).ret([v(0)]);
        }));
        program.export("run", "0rr_irr", |f| {
            f.start_block();
            f.call(callee, [r(0), moved(1)], [v(0)]).ret([v(0), r(0), r(1)]);
        });
        program.export("twice", "0r_ir", |f| {
            f.start_block();
            f.call(callee, [moved(0), moved(0)], [v(0)]).ret([v(0), r(0)]);
        });
        let mut running = program.start();
        let buffer = Value::from(Buffer::constant(vec![]));
        let results = running.call("run", &[buffer.clone(), buffer.clone()]).unwrap();
        assert_eq!(bits(&results[0]), 2);
        assert!(!results[1].as_ref().unwrap().is_null() && results[2].as_ref().unwrap().is_null());
        let results = running.call("twice", &[buffer]).unwrap();
        assert_eq!(bits(&results[0]), 1);
        assert!(results[1].as_ref().unwrap().is_null());
    }
}

/// Yieldable calls continue in their resume block, which may be any block, and results arrive before it.
#[test]
fn yieldable_calls_to_internal_functions() {
    for yields in [false, true] {
        let mut program = Program::new(NEWEST);
        let callee = FunctionRef::internal(program.function("0I_Ir", |f| {
            f.start_block();
            let next = f.label();
            f.i64(2, 10).alloc(2, 0).op(if yields {
                Op::Yield { to: next.pc(), moves: NO_MOVES }
            } else {
                Op::Br { to: next.pc(), moves: NO_MOVES }
            });
            f.place(next);
            f.op(Op::AddI64 { a: X8(0), b: X8(2), dst: X8(0) }).ret([v(0), moved(0)]);
        }));
        program.export("run", "0I_Ir", |f| {
            f.start_block();
            let (other, resume) = (f.label(), f.label());
            let (arguments, results) = (list([v(0)]), list([v(4), r(3)]));
            let (arguments, results) = (vmfb_bytecode::isa::RegisterList::new(&arguments), vmfb_bytecode::isa::RegisterList::new(&results));
            f.op(Op::CallYieldable { callee, arguments, resume: resume.pc(), results });
            f.place(other);
            f.i64(4, -1).op(Op::Br { to: resume.pc(), moves: NO_MOVES });
            f.place(resume);
            f.ret([v(4), r(3)]);
        });
        let mut running = program.start();
        let results = running.call("run", &[(1_i64 << 40).into()]).unwrap();
        assert_eq!(bits(&results[0]), (1 << 40) + 10);
        assert_eq!(results[1].as_ref().unwrap().buffer("the result").unwrap().len(), 10);
    }
}

/// What the host gives is converted within integers and within floats, and refused otherwise.
#[test]
fn arguments_from_the_host_convert_to_the_declared_width() {
    let mut program = Program::new(NEWEST);
    for (name, convention, result) in [("i", "0i_i", 0), ("I", "0I_I", 0), ("f", "0f_f", 0), ("F", "0F_F", 0)] {
        program.export(name, convention, |f| {
            f.start_block();
            f.ret([v(result)]);
        });
    }
    program.export("r", "0r_r", |f| {
        f.start_block();
        f.op(Op::AssignRef { source: RefMove::new(0), dst: RefMove::new(0) }).ret([r(0)]);
    });
    let mut running = program.start();
    let mut call = |name: &str, argument: Value| running.call(name, &[argument]).map(|results| bits(&results[0]));
    assert_eq!(call("i", ((1_i64 << 32) + 5).into()).unwrap(), 5);
    assert_eq!(call("I", (-2).into()).unwrap(), -2_i64 as u64);
    assert_eq!(call("f", 0.1_f64.into()).unwrap(), u64::from(0.1_f32.to_bits()));
    assert_eq!(call("F", 0.5_f32.into()).unwrap(), 0.5_f64.to_bits());
    for (name, argument) in
        [("i", 1.0_f32.into()), ("I", 1.0_f64.into()), ("f", 1.into()), ("F", 1_i64.into()), ("i", null()), ("r", 1.into())]
    {
        let error = call(name, argument).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(error.message().contains("argument 0"), "{error}");
    }
    for arguments in [vec![], vec![1.into(), 2.into()]] {
        assert_eq!(status(running.call("i", &arguments)), Status::InvalidArgument);
    }
    assert_eq!(status(running.call("nothing", &[])), Status::NotFound);
}

/// As the official assembler writes it: the descriptor counts the registers that instructions name, and those of unused arguments
/// are not among them. The caller's registers must stay as they are.
#[test]
fn unused_arguments_need_no_registers_of_the_descriptor() {
    for version in VERSIONS {
        let mut program = Program::new(version);
        let nothing = FunctionRef::internal(program.function("0iIrir_v", |f| {
            f.builder.value_registers(0).ref_registers(0);
            f.start_block();
            f.ret([]);
        }));
        let second = FunctionRef::internal(program.function("0iiir_i", |f| {
            f.builder.value_registers(2).ref_registers(0);
            f.start_block();
            f.ret([v(1)]);
        }));
        program.export("run", "0iIr_iIr", |f| {
            f.start_block();
            f.call(nothing, [v(0), v(2), r(0), v(0), r(0)], []);
            f.call(second, [v(0), v(0), v(2), r(0)], [v(5)]);
            f.ret([v(5), v(2), r(0)]);
        });
        let buffer = Buffer::constant(vec![1]);
        let arguments = [7.into(), 0x1122_3344_5566_7788_i64.into(), buffer.clone().into()];
        let results = program.start().call("run", &arguments).unwrap();
        assert_eq!((bits(&results[0]), bits(&results[1])), (7, 0x1122_3344_5566_7788), "{version}");
        assert!(results[2].as_ref().unwrap().same(&buffer.into()));
    }
}
