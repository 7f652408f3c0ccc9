//! The checks of one function: descriptor, blocks, branches.

use super::operands::Checker;
use super::{Context, MAXIMUM_REF_REGISTERS, MAXIMUM_VALUE_REGISTERS, check_requirements};
use crate::decode::{BodyEnd, Cursor};
use crate::definition::Function;
use crate::isa::{BlockFlow, Op};
use crate::{Error, Result, Status};

/// The marker of a block.
const BLOCK: u8 = 0x79;

/// Memory that the checks of all functions share.
#[derive(Default)]
pub(super) struct Scratch {
    /// One bit per byte of the function: whether a block starts there.
    starts: Vec<u64>,
    /// Branch targets and the pcs of their branches.
    targets: Vec<(u32, u32)>,
}

/// Checks a function, appends its block starts and gives its number of instructions.
pub(super) fn check(
    context: &Context<'_>,
    ordinal: u32,
    function: &Function,
    scratch: &mut Scratch,
    block_starts: &mut Vec<u32>,
) -> Result<u32> {
    let body = check_descriptor(context, function).map_err(|error| error.at(ordinal, 0))?;
    scratch.targets.clear();
    scratch.starts.clear();
    scratch.starts.resize(body.len() / 64 + 1, 0);
    let first = block_starts.len();
    let mut checker = Checker::new(*context, ordinal, function, &mut scratch.targets);
    let instructions = check_body(&mut checker, body, &mut scratch.starts, block_starts)
        .map_err(|(error, pc)| error.at(ordinal, u32::try_from(pc).unwrap_or(u32::MAX)))?;
    check_block_count(function, block_starts.len() - first).map_err(|error| error.at(ordinal, 0))?;
    for &(target, pc) in &scratch.targets {
        check_target(&scratch.starts, target).map_err(|error| error.at(ordinal, pc))?;
    }
    Ok(instructions)
}

fn check_descriptor<'m>(context: &Context<'m>, function: &Function) -> Result<&'m [u8]> {
    let bytecode = &context.definition.bytecode;
    let body = bytecode.get(function.bytecode.clone()).filter(|body| !body.is_empty()).ok_or_else(|| {
        Error::invalid(format!("bytes {:?} of the bytecode are not a function body; it has {} bytes", function.bytecode, bytecode.len()))
    })?;
    if u32::try_from(body.len()).is_err() {
        return Err(Error::invalid(format!("the function has {} bytes; at most 4 GiB", body.len())));
    }
    check_requirements(function.requirements)?;
    let (values, refs) = (function.value_registers, function.ref_registers);
    if values > MAXIMUM_VALUE_REGISTERS || refs > MAXIMUM_REF_REGISTERS {
        return Err(Error::new(
            Status::ResourceExhausted,
            format!("{values} value and {refs} ref registers; at most {MAXIMUM_VALUE_REGISTERS} and {MAXIMUM_REF_REGISTERS}"),
        ));
    }
    Ok(body)
}

/// Checks block after block; errors come with their pc. Gives the number of instructions.
fn check_body<'m>(
    checker: &mut Checker<'_, 'm>,
    body: &'m [u8],
    starts: &mut [u64],
    block_starts: &mut Vec<u32>,
) -> Result<u32, (Error, usize)> {
    let version = checker.context.definition.bytecode_version;
    let end = BodyEnd::new(body, version);
    let mut cursor = Cursor::new(body, 0, version);
    let mut instructions = 0;
    while !end.reached(cursor.position(), AFTER_TERMINATOR) {
        let position = cursor.position();
        if let Some(word) = starts.get_mut(position / 64) {
            *word |= 1 << (position % 64);
        }
        // `check_descriptor` refused bodies whose pcs do not fit.
        block_starts.push(position as u32);
        if version.has_block_markers() {
            cursor = check_marker(cursor).map_err(|error| (error, position))?;
        }
        let (behind, count) = check_block(checker, cursor)?;
        cursor = behind;
        instructions += count;
    }
    Ok(instructions)
}

/// [`check_body`] looks for the end between blocks only.
const AFTER_TERMINATOR: bool = true;

/// Checks the instructions of a block up to its terminator. Gives the cursor behind it and the number of instructions.
fn check_block<'m>(checker: &mut Checker<'_, 'm>, mut cursor: Cursor<'m>) -> Result<(Cursor<'m>, u32), (Error, usize)> {
    let mut instructions = 0;
    // Operands that break a rule are remembered, and looked at when the block ends: the loop stays small.
    let flow = loop {
        let (rest, flow) = checker.instruction(cursor);
        if flow == BlockFlow::Fails {
            break flow;
        }
        instructions += 1;
        cursor = cursor.with_rest(rest);
        if flow == BlockFlow::Ends {
            break flow;
        }
    };
    if let Some(error) = checker.take_error() {
        return Err(error);
    }
    match flow {
        BlockFlow::Fails => Err((instruction_error(cursor), cursor.position())),
        _ => Ok((cursor, instructions)),
    }
}

/// Why there is no instruction at the cursor.
#[cold]
fn instruction_error(mut cursor: Cursor<'_>) -> Error {
    if cursor.rest().is_empty() {
        return Error::invalid("the last block has no terminator");
    }
    match Op::decode(&mut cursor) {
        Err(failure) => cursor.error(failure),
        Ok(op) => Error::new(Status::Internal, format!("{} was not decoded the same way twice", op.mnemonic())),
    }
}

#[inline(always)]
fn check_marker(mut cursor: Cursor<'_>) -> Result<Cursor<'_>> {
    match cursor.array() {
        Ok([BLOCK]) => Ok(cursor),
        Err(failure) => Err(cursor.error(failure)),
        Ok([other]) => Err(Error::invalid(format!("byte {other:02X} outside of a block; a block marker (79) wanted"))),
    }
}

fn check_block_count(function: &Function, found: usize) -> Result<()> {
    match function.block_count {
        Some(stated) if usize::from(stated) != found => {
            Err(Error::invalid(format!("the function has {found} blocks; its descriptor says {stated}")))
        }
        _ => Ok(()),
    }
}

fn check_target(starts: &[u64], target: u32) -> Result<()> {
    let word = starts.get(target as usize / 64).copied().unwrap_or(0);
    match word >> (target % 64) & 1 {
        1 => Ok(()),
        _ => Err(Error::invalid(format!("branch to {target:#x}, where no block starts"))),
    }
}
