//! What running code works on, and the ops on references and whole objects.

use super::steps::global;
use super::{Action, ImportSlot, InstanceState, NativeInstance, Scratch};
use crate::body::{Body, Half};
use crate::code::{Code, Inst, MOVE};
use crate::fault::Fault;
use crate::module::ModuleInner;
use crate::native::{Completion, Context};
use crate::registers::RegisterValue;
use crate::stack::Values;
use crate::{Buffer, Error, List, Ref, RefType, Result, Status};

/// What the ops of one frame work on, beside its value registers.
pub(super) struct Environment<'e> {
    pub(super) module: &'e ModuleInner,
    pub(super) body: &'e Body,
    pub(super) state: &'e mut InstanceState,
    pub(super) natives: &'e mut [NativeInstance],
    pub(super) context: &'e mut Context,
    pub(super) scratch: &'e mut Scratch,
    pub(super) refs: &'e mut [Ref],
}

impl Environment<'_> {
    /// The error that the fault of an op is.
    #[cold]
    pub(super) fn explain(&mut self, fault: Fault, op: &Inst) -> Error {
        if fault == Fault::UpdateOfReadOnly {
            self.scratch.failed = Half::Second;
        }
        fault.explain(op, self.refs)
    }

    /// Does an op on references or whole objects.
    pub(super) fn rare(&mut self, values: &mut Values, op: Inst) -> Result<()> {
        match op.code {
            Code::ConstNull => self.set_ref(op.a, Ref::Null),
            Code::ConstRodata => self.set_ref(op.a, self.module.rodata[op.imm as usize].clone().into()),
            Code::CastRef => return self.assign_checked(op.a, op.b, op.imm),
            Code::GlobalLoadRef => return self.global_load_ref(op, op.imm),
            Code::GlobalStoreRef => return self.global_store_ref(op, op.imm),
            Code::GlobalLoadIndirectRef => return self.global_load_ref(op, u32::get(values, op.imm as u16)),
            Code::GlobalStoreIndirectRef => return self.global_store_ref(op, u32::get(values, op.imm as u16)),
            Code::GlobalLoadIndirect32 => {
                let offset = self.indirect::<4>(u32::get(values, op.b))?;
                u32::from_le_bytes(*global(&mut self.state.globals, offset)).set(values, op.a);
            }
            Code::GlobalLoadIndirect64 => {
                let offset = self.indirect::<8>(u32::get(values, op.b))?;
                u64::from_le_bytes(*global(&mut self.state.globals, offset)).set(values, op.a);
            }
            Code::GlobalStoreIndirect32 => {
                let offset = self.indirect::<4>(u32::get(values, op.b))?;
                *global(&mut self.state.globals, offset) = u32::get(values, op.a).to_le_bytes();
            }
            Code::GlobalStoreIndirect64 => {
                let offset = self.indirect::<8>(u32::get(values, op.b))?;
                *global(&mut self.state.globals, offset) = u64::get(values, op.a).to_le_bytes();
            }
            Code::SelectRef => return self.select_ref(u32::get(values, op.b) != 0, op),
            Code::Switch32 => {
                let register = self.choose(op.imm, u32::get(values, op.b)).unwrap_or(op.c);
                u32::get(values, register).set(values, op.a);
            }
            Code::Switch64 => {
                let register = self.choose(op.imm, u32::get(values, op.b)).unwrap_or(op.c);
                u64::get(values, register).set(values, op.a);
            }
            Code::SwitchRef => {
                let register = self.choose(op.imm, u32::get(values, op.b)).unwrap_or(op.c);
                return self.assign_checked(op.a, register, u32::from(op.d) | u32::from(op.e) << 16);
            }
            Code::CmpEqRef => self.refs[usize::from(op.b)].same(&self.refs[usize::from(op.c)]).set(values, op.a),
            Code::CmpNeRef => (!self.refs[usize::from(op.b)].same(&self.refs[usize::from(op.c)])).set(values, op.a),
            Code::CmpNzRef => (!self.refs[usize::from(op.b)].is_null()).set(values, op.a),
            Code::ImportResolved => {
                let linked = !matches!(self.state.imports[op.imm as usize], ImportSlot::Unresolved);
                linked.set(values, op.a);
            }
            _ => return self.list_or_buffer(values, op),
        }
        Ok(())
    }

    fn list_or_buffer(&mut self, values: &mut Values, op: Inst) -> Result<()> {
        match op.code {
            Code::ListAlloc => {
                let element = self.module.element_kinds[op.imm as usize].clone();
                let capacity = u32::get(values, op.b);
                self.context.meter.charge_bytes(u64::from(capacity))?;
                let list = self.context.new_list(element, capacity)?;
                self.set_ref(op.a, list.into());
            }
            Code::ListReserve => {
                let capacity = u32::get(values, op.b);
                self.context.meter.charge_bytes(u64::from(capacity))?;
                self.list(op.a)?.reserve(capacity)?;
            }
            Code::ListResize => {
                let size = u32::get(values, op.b);
                self.context.meter.charge_bytes(u64::from(size))?;
                self.list(op.a)?.resize_within(&self.context.meter, size)?;
            }
            _ => return self.buffer_op(values, op),
        }
        Ok(())
    }

    /// Reads a reference from a list. One of another type than is wanted reads as null.
    pub(super) fn list_get_ref(&mut self, values: &Values, op: &Inst) -> Result<()> {
        let wanted = &self.module.ref_types[op.imm as usize];
        let list = self.list(op.b)?;
        let index = u32::get(values, op.c);
        let element = if op.a & MOVE != 0 { list.take_ref(index, wanted)? } else { list.get_ref(index)? };
        let element = if wanted.accepts(&element) { element } else { Ref::Null };
        self.set_ref(op.a & !MOVE, element);
        Ok(())
    }

    /// Writes a reference into a list.
    pub(super) fn list_set_ref(&mut self, values: &Values, op: &Inst) -> Result<()> {
        // A list that is moved into itself is still needed to do so.
        let (register, itself) = (op.a & !MOVE, op.a & !MOVE == op.b);
        let value = self.operand(if itself { register } else { op.a });
        self.list(op.b)?.set_ref(u32::get(values, op.c), value)?;
        if itself && op.a & MOVE != 0 {
            self.set_ref(register, Ref::Null);
        }
        Ok(())
    }

    pub(super) fn set_ref(&mut self, register: u16, reference: Ref) {
        self.refs[usize::from(register)] = reference;
    }

    /// Reads a ref operand: takes it if its MOVE bit is set.
    pub(super) fn operand(&mut self, operand: u16) -> Ref {
        let slot = &mut self.refs[usize::from(operand & !MOVE)];
        if operand & MOVE != 0 { std::mem::take(slot) } else { slot.clone() }
    }

    pub(super) fn copy_ref(&mut self, to: u16, from: u16) {
        if to != from & !MOVE {
            let reference = self.operand(from);
            self.set_ref(to, reference);
        }
    }

    /// Assigns a ref operand if the type accepts it; nothing changes otherwise.
    fn assign_checked(&mut self, to: u16, from: u16, type_ordinal: u32) -> Result<()> {
        self.check_type(&self.refs[usize::from(from & !MOVE)], type_ordinal)?;
        self.copy_ref(to, from);
        Ok(())
    }

    pub(super) fn check_type(&self, reference: &Ref, type_ordinal: u32) -> Result<()> {
        let wanted = &self.module.ref_types[type_ordinal as usize];
        if wanted.accepts(reference) { Ok(()) } else { Err(wrong_type(reference, wanted)) }
    }

    fn select_ref(&mut self, condition: bool, op: Inst) -> Result<()> {
        let (chosen, other) = if condition { (op.c, op.d) } else { (op.d, op.c) };
        self.assign_checked(op.a, chosen, op.imm)?;
        // A moved operand that was not chosen is released all the same.
        if other & MOVE != 0 && other & !MOVE != op.a {
            self.set_ref(other & !MOVE, Ref::Null);
        }
        Ok(())
    }

    /// The register of a switch: by a signed index, `None` for the default.
    fn choose(&self, list: u32, index: u32) -> Option<u16> {
        self.body.lists[list as usize].get(index as usize).map(|register| *register as u16)
    }

    fn list(&self, register: u16) -> Result<&List> {
        self.refs[usize::from(register)].list("the list operand")
    }

    pub(super) fn buffer(&self, register: u16) -> Result<&Buffer> {
        self.refs[usize::from(register)].buffer("the buffer operand")
    }

    #[cold]
    pub(super) fn failure(&self, code: u32, message: u32) -> Error {
        let text = String::from_utf8_lossy(&self.body.messages[message as usize]).into_owned();
        match Status::from_code(code & 31) {
            Some(status) => Error::new(status, text),
            None if code & 31 == 0 => Error::internal(format!("the program failed with status OK: {text}")),
            None => Error::new(Status::Unknown, format!("status {}: {text}", code & 31)),
        }
    }

    /// Calls an import. `None`: it returned. Refs that were given away are put back if it has to wait.
    pub(super) fn call_import(&mut self, values: &mut Values, site: u32) -> Result<Option<Action>> {
        let call = &self.body.calls[site as usize];
        match self.state.imports[call.callee as usize] {
            ImportSlot::Native { module, function } => match self.call_native(values, call, module as usize, function as usize)? {
                Completion::Done => Ok(None),
                Completion::Wait(wait) => Ok(Some(Action::Wait(wait))),
            },
            ImportSlot::Bytecode { instance, function } => Ok(Some(Action::CallInstance { site, instance, function })),
            ImportSlot::Unresolved => Err(self.unresolved(call.callee)),
        }
    }

    #[cold]
    fn unresolved(&self, import: u32) -> Error {
        let import = self.module.verified.definition().imports.get(import as usize);
        let name = import.map_or("?", |import| &import.full_name);
        Error::not_found(format!("the optional import {name} is not linked"))
    }

    fn indirect<const SIZE: u64>(&self, offset: u32) -> Result<u32> {
        let capacity = self.state.globals.len() as u64;
        if u64::from(offset) + SIZE <= capacity {
            return Ok(offset);
        }
        Err(Error::out_of_range(format!("{SIZE} bytes at offset {offset} do not lie in the {capacity} bytes of globals")))
    }
}

#[cold]
pub(super) fn wrong_type(reference: &Ref, wanted: &RefType) -> Error {
    Error::invalid(format!("a !{} cannot be used as a !{}", reference.type_name(), wanted.name()))
}
