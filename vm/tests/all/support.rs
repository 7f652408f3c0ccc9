//! Small programs: assembled, loaded and run in a line or two.

use vmfb_bytecode::assemble::{FunctionBuilder, empty_module};
use vmfb_bytecode::builder::{ArchiveForm, write_module};
use vmfb_bytecode::calling_convention::Kind;
use vmfb_bytecode::definition::{BytecodeVersion, Dependency, Export, Import, ModuleDef, Necessity, Rodata, RodataPlacement, Signature};
use vmfb_bytecode::isa::{
    FunctionRef, Imm32, Imm64, Move, MoveList, Op, RefMove, Register, RegisterList, SegmentList, TypeOrdinal, Word, X4, X8,
};
use vmfb_vm::{Config, Engine, Error, HostType, Instance, IntoValues, Linker, Module, Ref, Result, Status, Store, StoreCore, Value};

/// Every bytecode version, oldest first.
pub const VERSIONS: [BytecodeVersion; 5] =
    [BytecodeVersion::V13, BytecodeVersion::V14, BytecodeVersion::V15, BytecodeVersion::V16, BytecodeVersion::V17];

/// What most tests use.
pub const NEWEST: BytecodeVersion = BytecodeVersion::V17;

/// A module in the making.
pub struct Program {
    pub def: ModuleDef,
    rodata: Vec<Vec<u8>>,
}

impl Program {
    /// An empty module with the name `test`.
    pub fn new(version: BytecodeVersion) -> Self {
        Self::named("test", version)
    }

    /// An empty module.
    pub fn named(name: &str, version: BytecodeVersion) -> Self {
        Self { def: empty_module(name, version), rodata: Vec::new() }
    }

    /// Adds an exported function.
    pub fn export(&mut self, name: &str, convention: &str, build: impl FnOnce(&mut Body)) -> u32 {
        let function = self.function(convention, build);
        self.def.exports.push(Export { name: name.to_owned(), function });
        function
    }

    /// Adds a function that is not exported.
    pub fn function(&mut self, convention: &str, build: impl FnOnce(&mut Body)) -> u32 {
        let version = self.def.bytecode_version;
        let mut body = Body { builder: FunctionBuilder::new(version, convention), version };
        build(&mut body);
        body.builder.finish().expect("the function can be encoded").add_to(&mut self.def)
    }

    /// The ordinal of a type, added if it is new.
    pub fn type_of(&mut self, name: &str) -> TypeOrdinal {
        let known = self.def.types.iter().position(|known| known == name);
        let ordinal = known.unwrap_or_else(|| {
            self.def.types.push(name.to_owned());
            self.def.types.len() - 1
        });
        TypeOrdinal(ordinal as u32)
    }

    /// Adds a required import.
    pub fn import(&mut self, full_name: &str, convention: &str) -> FunctionRef {
        self.import_with(full_name, convention, Necessity::Required)
    }

    /// Adds an import.
    pub fn import_with(&mut self, full_name: &str, convention: &str, necessity: Necessity) -> FunctionRef {
        let signature = Some(Signature { calling_convention: convention.to_owned(), attributes: Vec::new() });
        self.def.imports.push(Import { full_name: full_name.to_owned(), signature, necessity });
        FunctionRef::import(self.def.imports.len() as u32 - 1)
    }

    /// Adds a needed module.
    pub fn depend(&mut self, name: &str, minimum_version: u32, necessity: Necessity) {
        self.def.dependencies.push(Dependency { name: name.to_owned(), minimum_version, necessity });
    }

    /// Adds a constant.
    pub fn rodata(&mut self, bytes: &[u8]) -> vmfb_bytecode::isa::RodataOrdinal {
        self.def.rodata.push(Rodata { range: 0..0, placement: RodataPlacement::Embedded });
        self.rodata.push(bytes.to_vec());
        vmfb_bytecode::isa::RodataOrdinal(self.rodata.len() as u32 - 1)
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        write_module(&self.def, &self.rodata, ArchiveForm::Plain).expect("the module can be written")
    }

    /// The module, loaded.
    pub fn load(&self, engine: &Engine) -> Result<Module> {
        Module::new(engine, self.bytes())
    }

    /// An instance in a store, without any natives.
    pub fn instantiate(&self, store: &mut StoreCore) -> Result<Instance> {
        self.instantiate_with(&Linker::new(), store)
    }

    /// An instance in a store.
    pub fn instantiate_with(&self, linker: &Linker, store: &mut StoreCore) -> Result<Instance> {
        let module = self.load(store.engine())?;
        linker.instantiate(store, &module)
    }

    /// A store of its own with an instance of the program.
    pub fn start(&self) -> Running {
        self.start_with(&Linker::new(), Config::new())
    }

    /// As above, with natives and a configuration.
    pub fn start_with(&self, linker: &Linker, config: Config) -> Running {
        let mut store = Store::new(&Engine::new(config), ());
        let instance = self.instantiate_with(linker, &mut store).unwrap_or_else(|error| panic!("{error}"));
        Running { store, instance }
    }
}

/// A store with an instance.
pub struct Running {
    pub store: Store,
    pub instance: Instance,
}

impl Running {
    /// Calls an exported function.
    pub fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Vec<Value>> {
        self.instance.function(&self.store, name)?.call(&mut self.store, arguments)
    }

    /// Calls an exported function with one result.
    pub fn call_one<R: HostType>(&mut self, name: &str, arguments: impl IntoValues) -> Result<R> {
        let mut results = self.call(name, &arguments.into_values())?;
        assert_eq!(results.len(), 1, "one result is wanted");
        R::from_value(results.remove(0))
    }

    /// Bytes that the store's programs hold.
    pub fn used(&self) -> u64 {
        self.store.account().used()
    }
}

/// A function in the making: the builder and shorthands for what nearly every function has.
pub struct Body {
    pub builder: FunctionBuilder,
    pub version: BytecodeVersion,
}

impl std::ops::Deref for Body {
    type Target = FunctionBuilder;

    fn deref(&self) -> &FunctionBuilder {
        &self.builder
    }
}

impl std::ops::DerefMut for Body {
    fn deref_mut(&mut self) -> &mut FunctionBuilder {
        &mut self.builder
    }
}

impl Body {
    /// Appends an i32 literal.
    pub fn i32(&mut self, register: u16, value: i32) -> &mut Self {
        self.op(Op::ConstI32 { value: Imm32(value as u32), dst: X4(register) })
    }

    /// Appends an i64 literal.
    pub fn i64(&mut self, register: u16, value: i64) -> &mut Self {
        self.op(Op::ConstI64 { value: Imm64(value as u64), dst: X8(register) })
    }

    /// Appends an op.
    pub fn op(&mut self, op: Op<'_>) -> &mut Self {
        self.builder.push(op);
        self
    }

    /// Appends a return.
    pub fn ret<const N: usize>(&mut self, registers: [Register; N]) -> &mut Self {
        self.ret_list(&list(registers))
    }

    /// Appends a return of any number of registers.
    pub fn ret_list(&mut self, registers: &[Word]) -> &mut Self {
        self.op(Op::Return { values: RegisterList::new(registers) })
    }

    /// Appends a call.
    pub fn call<const A: usize, const R: usize>(
        &mut self,
        callee: FunctionRef,
        arguments: [Register; A],
        results: [Register; R],
    ) -> &mut Self {
        let (arguments, results) = (list(arguments), list(results));
        self.op(Op::Call { callee, arguments: RegisterList::new(&arguments), results: RegisterList::new(&results) })
    }

    /// Appends a variadic call. `segments` has `SegmentList::PLAIN` for arguments that are no spans.
    pub fn call_variadic<const R: usize>(
        &mut self,
        callee: FunctionRef,
        segments: &[u16],
        arguments: &[Register],
        results: [Register; R],
    ) -> &mut Self {
        let segments: Vec<Word> = segments.iter().map(|count| count.to_le_bytes()).collect();
        let arguments: Vec<Word> = arguments.iter().map(|register| register.to_bytes()).collect();
        let results = list(results);
        let (segments, arguments) = (SegmentList::new(&segments), RegisterList::new(&arguments));
        self.op(Op::CallVariadic { callee, segments, arguments, results: RegisterList::new(&results) })
    }

    /// Appends a buffer allocation with the default alignment; `length` is a pair that holds the length.
    pub fn alloc(&mut self, length: u16, register: u16) -> &mut Self {
        self.alloc_aligned(length, ZERO, register)
    }

    /// Appends a buffer allocation with the alignment in a register, where the version has one.
    pub fn alloc_aligned(&mut self, length: u16, alignment: u16, register: u16) -> &mut Self {
        let alignment = self.alignment(alignment);
        self.op(Op::BufferAlloc { length: X8(length), alignment, dst: RefMove::new(register) })
    }

    /// The alignment operand, where the version has one.
    pub fn alignment(&self, register: u16) -> Option<X4> {
        (self.version.major() >= 15).then_some(X4(register))
    }
}

/// A register that no test writes.
pub const ZERO: u16 = 60;

/// Registers as words of a list.
pub fn list<const N: usize>(registers: [Register; N]) -> [Word; N] {
    vmfb_bytecode::isa::words(registers)
}

/// Value registers by ordinal.
pub fn v(ordinal: u16) -> Register {
    Register::value(ordinal)
}

/// Ref registers by ordinal.
pub fn r(ordinal: u16) -> Register {
    Register::reference(ordinal)
}

/// Ref registers by ordinal, with MOVE.
pub fn moved(ordinal: u16) -> Register {
    Register::moved(ordinal)
}

/// Moves of a branch as they are encoded.
pub fn moves<const N: usize>(pairs: [(Register, Register); N]) -> [[u8; 4]; N] {
    pairs.map(|(source, destination)| Move { source, destination }.to_bytes())
}

/// No moves.
pub const NO_MOVES: MoveList<'static> = MoveList::EMPTY;

/// The first three arguments of 32 bits, and of 64 bits; and where results go.
pub const A4: X4 = X4(0);
pub const B4: X4 = X4(1);
pub const C4: X4 = X4(2);
pub const A8: X8 = X8(0);
pub const B8: X8 = X8(2);
pub const C8: X8 = X8(4);
pub const D4: X4 = X4(16);
pub const D8: X8 = X8(16);

/// The letters of kinds.
pub fn letters(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| kind.letter()).collect()
}

/// Runs one op on arguments, in every version that has it, and makes sure that all give the same. The result is in [`D4`] or
/// [`D8`]; arguments stand where calling conventions put them.
pub fn run_op<A: IntoValues, R: HostType>(arguments: A, op: Op<'_>) -> Result<R> {
    let convention = format!("0{}_{}", letters(A::KINDS), R::KIND.letter());
    run_op_everywhere(&convention, &arguments.into_values(), op).and_then(R::from_value)
}

/// As [`run_op`], for ops that cannot fail.
pub fn op<A: IntoValues, R: HostType>(arguments: A, op: Op<'_>) -> R {
    run_op(arguments, op).unwrap_or_else(|error| panic!("{op:?}: {error}"))
}

fn run_op_everywhere(convention: &str, arguments: &[Value], op: Op<'_>) -> Result<Value> {
    let outcome = |result: &Result<Value>| result.as_ref().map(bits).map_err(Error::status);
    let mut first: Option<Result<Value>> = None;
    for version in VERSIONS.into_iter().filter(|version| version.major() >= op.opcode().info().since_major) {
        let mut program = Program::new(version);
        program.export("run", convention, |f| {
            f.start_block();
            f.op(op).ret([v(D4.0)]);
        });
        let result = program.start().call("run", arguments).map(|mut results| results.remove(0));
        match &first {
            None => first = Some(result),
            Some(first) => assert_eq!(outcome(first), outcome(&result), "{op:?} differs in {version}"),
        }
    }
    first.expect("some version has the op")
}

/// The bits of a number.
pub fn bits(value: &Value) -> u64 {
    match value {
        Value::I32(value) => u64::from(*value as u32),
        Value::I64(value) => *value as u64,
        Value::F32(value) => u64::from(value.to_bits()),
        Value::F64(value) => value.to_bits(),
        other => panic!("{other:?} is no number"),
    }
}

/// The status of a failure.
pub fn status<T>(result: Result<T>) -> Status {
    match result {
        Ok(_) => panic!("a failure was expected"),
        Err(error) => error.status(),
    }
}

/// A null reference as a value.
pub fn null() -> Value {
    Value::Ref(Ref::Null)
}
