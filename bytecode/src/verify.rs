//! The verifier: a module definition to a module that an interpreter may trust.
//!
//! What is checked: every byte of every function, every operand against the module's tables and the function's register counts,
//! every call against its callee's calling convention, every branch against the blocks. What is left to run time is what depends on
//! data: indirect globals, buffers, lists, types of references, division, allocation, stack depth.
//!
//! All passes are linear in the size of the bytecode and none recurses.

mod access;
mod calls;
mod function;
mod infer;
mod operands;
mod usage;

use std::ops::Range;

use crate::calling_convention::{CallingConvention, Placement, PlacementRule};
use crate::decode::Instructions;
use crate::definition::{BytecodeVersion, Function, ModuleDef, Requirements};
use crate::{Error, Result, Status};

/// A module whose bytecode was verified. It cannot be changed, so it stays so.
#[derive(Clone, Debug)]
pub struct VerifiedModule {
    definition: ModuleDef,
    functions: Vec<FunctionInfo>,
    imports: Vec<CallingConvention>,
    block_starts: Vec<u32>,
}

/// What verification found out about a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// Arguments and results; never with spans. Inferred for functions of 13.0 without a signature.
    pub convention: CallingConvention,
    /// The rule by which its compiler placed the arguments.
    pub placement_rule: PlacementRule,
    /// Where the arguments stand in its frame.
    pub placement: Placement,
    /// Number of value registers of a frame: what the descriptor says, rounded up to pairs, or what the arguments need where that
    /// is more. Every operand and every argument is below it.
    pub value_registers: u16,
    /// Number of ref registers of a frame. Every operand and every argument is below it.
    pub ref_registers: u16,
    /// Number of instructions, block markers not counted.
    pub instructions: u32,
    blocks: Range<u32>,
    /// Whether the convention was stated or, by now, inferred.
    is_resolved: bool,
}

impl VerifiedModule {
    /// The definition.
    pub fn definition(&self) -> &ModuleDef {
        &self.definition
    }

    /// Gives the definition back.
    pub fn into_definition(self) -> ModuleDef {
        self.definition
    }

    /// The bytecode version.
    pub fn version(&self) -> BytecodeVersion {
        self.definition.bytecode_version
    }

    /// What is known about each function, by ordinal.
    pub fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// The calling convention of each import, by ordinal.
    pub fn imports(&self) -> &[CallingConvention] {
        &self.imports
    }

    /// Where the blocks of a function start, ascending: the pcs that branches may name. From 14.0 on these are the pcs of the
    /// block markers. Empty when the ordinal is out of range.
    pub fn block_starts(&self, function: u32) -> &[u32] {
        let blocks = self.functions.get(function as usize).map(|info| info.blocks.start as usize..info.blocks.end as usize);
        blocks.and_then(|blocks| self.block_starts.get(blocks)).unwrap_or_default()
    }

    /// The instructions of a function, block markers included.
    pub fn instructions(&self, function: u32) -> Instructions<'_> {
        Instructions::new(self.definition.body(function), self.version())
    }
}

/// A function cannot have more value registers.
const MAXIMUM_VALUE_REGISTERS: u16 = 0x7FFF;
/// A function cannot have more ref registers.
const MAXIMUM_REF_REGISTERS: u16 = 0x3FFF;

/// Verifies a module.
///
/// # Errors
/// The first rule that the module breaks, with function and pc where it is about a function.
pub fn verify(definition: ModuleDef) -> Result<VerifiedModule> {
    check_module(&definition)?;
    let imports = import_conventions(&definition)?;
    let mut functions = stated_conventions(&definition)?;
    let mut pass = Pass::default();
    pass.run(&Context { definition: &definition, imports: &imports, functions: &functions })?;
    if functions.iter().any(|info| !info.is_resolved) {
        infer::resolve(&definition, &imports, &mut functions)?;
        pass = Pass::default();
        pass.run(&Context { definition: &definition, imports: &imports, functions: &functions })?;
    }
    for (ordinal, (function, checked)) in (0..).zip(definition.functions.iter().zip(pass.functions)) {
        let context = Context { definition: &definition, imports: &imports, functions: &functions };
        let rule = usage::placement_rule(&context, ordinal, function).map_err(|error| error.at(ordinal, 0))?;
        if let Some(info) = functions.get_mut(ordinal as usize) {
            info.place(rule).map_err(|error| error.at(ordinal, 0))?;
            (info.instructions, info.blocks) = (checked.instructions, checked.blocks);
        }
    }
    Ok(VerifiedModule { functions, imports, block_starts: pass.block_starts, definition })
}

impl FunctionInfo {
    /// What the descriptor of a function says; what verification finds out is filled in later.
    fn new(function: &Function, convention: Option<CallingConvention>) -> Self {
        Self {
            is_resolved: convention.is_some(),
            convention: convention.unwrap_or_default(),
            placement_rule: PlacementRule::NextFree,
            placement: Placement::default(),
            value_registers: operands::frame_values(function),
            ref_registers: function.ref_registers,
            instructions: 0,
            blocks: 0..0,
        }
    }

    /// Places the arguments. The frame grows where they do not fit: the official assembler counts the registers that instructions
    /// name, which those of unused arguments are not. Operands were checked against the descriptor, so they stay below it.
    fn place(&mut self, rule: PlacementRule) -> Result<()> {
        self.placement_rule = rule;
        self.placement = self.convention.placement(rule)?;
        let (values, refs) = (self.placement.value_slots, self.placement.ref_slots);
        if values > MAXIMUM_VALUE_REGISTERS || refs > MAXIMUM_REF_REGISTERS {
            return Err(Error::invalid(format!(
                "the arguments of {} need {values} value and {refs} ref registers; a frame has {MAXIMUM_VALUE_REGISTERS} and {MAXIMUM_REF_REGISTERS}",
                self.convention
            )));
        }
        self.value_registers = self.value_registers.max(operands::whole_pairs(values));
        self.ref_registers = self.ref_registers.max(refs);
        Ok(())
    }
}

/// What the checks of a function look things up in.
#[derive(Clone, Copy)]
struct Context<'m> {
    definition: &'m ModuleDef,
    imports: &'m [CallingConvention],
    functions: &'m [FunctionInfo],
}

impl<'m> Context<'m> {
    /// The convention of a function; `None` if it is not known (yet), or if there is no such function.
    fn convention(&self, function: u32) -> Option<&'m CallingConvention> {
        self.functions.get(function as usize).filter(|info| info.is_resolved).map(|info| &info.convention)
    }
}

/// One pass over all functions.
#[derive(Default)]
struct Pass {
    functions: Vec<Checked>,
    block_starts: Vec<u32>,
}

/// The result of checking one function.
struct Checked {
    instructions: u32,
    blocks: Range<u32>,
}

impl Pass {
    fn run(&mut self, context: &Context<'_>) -> Result<()> {
        let mut scratch = function::Scratch::default();
        self.functions.reserve(context.definition.functions.len());
        let mut first = 0;
        for (ordinal, function) in (0..).zip(&context.definition.functions) {
            let instructions = function::check(context, ordinal, function, &mut scratch, &mut self.block_starts)?;
            let end = u32::try_from(self.block_starts.len())
                .map_err(|_| Error::new(Status::ResourceExhausted, "more than 2^32 blocks").at(ordinal, 0))?;
            self.functions.push(Checked { instructions, blocks: first..end });
            first = end;
        }
        Ok(())
    }
}

fn check_module(definition: &ModuleDef) -> Result<()> {
    let version = definition.bytecode_version;
    if !(13..=17).contains(&version.major()) || version.minor() != 0 {
        return Err(Error::invalid(format!("bytecode version {version} is not known; 13.0 to 17.0 are")));
    }
    check_requirements(definition.requirements)?;
    for export in &definition.exports {
        if export.function as usize >= definition.functions.len() {
            let count = definition.functions.len();
            return Err(Error::invalid(format!("export {:?} is function {}, the module has {count}", export.name, export.function)));
        }
    }
    // A range that reaches out of the bytecode is refused with its function. Compilers write one function behind the other; functions
    // that share bytes would make a small file ask for the verification and translation of much code.
    let length = definition.bytecode.len();
    let within = definition.functions.iter().filter(|function| function.bytecode.end <= length);
    let total = within.map(|function| function.bytecode.len() as u64).fold(0, u64::saturating_add);
    if total > length as u64 {
        return Err(Error::new(
            Status::ResourceExhausted,
            format!("the functions overlap: {total} bytes of code in {length} bytes of bytecode"),
        ));
    }
    Ok(())
}

/// Refuses requirement bits that mean something unknown.
fn check_requirements(requirements: Requirements) -> Result<()> {
    let known = Requirements::F32 | Requirements::F64 | Requirements::YIELD | Requirements::UNWIND;
    match requirements.0 & !known {
        0 => Ok(()),
        unknown => Err(Error::invalid(format!("requirement bits {unknown:#x} are not known"))),
    }
}

fn import_conventions(definition: &ModuleDef) -> Result<Vec<CallingConvention>> {
    let imports = definition.imports.iter();
    let convention = imports.map(|import| {
        let named = |error: Error| Error::new(error.status, format!("import {:?}: {}", import.full_name, error.message));
        let signature = import.signature.as_ref().ok_or_else(|| named(Error::invalid("it has no signature")))?;
        signature.calling_convention.parse().map_err(named)
    });
    convention.collect()
}

/// The functions with the conventions that the module states.
fn stated_conventions(definition: &ModuleDef) -> Result<Vec<FunctionInfo>> {
    let needed = definition.bytecode_version.has_block_markers();
    let mut infos = Vec::with_capacity(definition.functions.len());
    for (ordinal, function) in (0..).zip(&definition.functions) {
        let convention = match &function.signature {
            Some(signature) => Some(parse_function_convention(&signature.calling_convention).map_err(|error| error.at(ordinal, 0))?),
            None if needed => return Err(Error::invalid("the function has no signature").at(ordinal, 0)),
            None => None,
        };
        infos.push(FunctionInfo::new(function, convention));
    }
    Ok(infos)
}

fn parse_function_convention(text: &str) -> Result<CallingConvention> {
    let convention: CallingConvention = text.parse()?;
    if convention.has_spans() {
        return Err(Error::invalid(format!("calling convention {text:?} of a defined function has a span")));
    }
    Ok(convention)
}
