//! The ops: one match over the internal opcodes.

use super::operands::RegisterValue;
use super::{Action, ImportSlot, InstanceState, NativeInstance, Scratch};
use crate::code::{Body, Code, Inst, MOVE};
use crate::math;
use crate::module::ModuleInner;
use crate::native::{Completion, Context};
use crate::stack::Values;
use crate::value_ops::for_each_value_op;
use crate::{Buffer, Error, List, Ref, RefType, Result, Status, Value};

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
    /// Runs ops from `next` on until the frame calls, returns, suspends or fails; `next` is then behind the last op.
    pub(super) fn execute(&mut self, values: &mut Values, next: &mut usize) -> Result<Action> {
        let code: &[Inst] = &self.body.code;
        let mut at = *next;
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(error) => {
                        *next = at;
                        return Err(error);
                    }
                }
            };
        }
        macro_rules! stop {
            ($action:expr) => {{
                *next = at;
                return Ok($action);
            }};
        }
        macro_rules! load {
            ($op:ident, $load:ident, $convert:expr) => {{
                let index = u64::get(values, $op.c);
                match &self.refs[usize::from($op.b)] {
                    Ref::Buffer(buffer) => match buffer.span().$load(index) {
                        Some(value) => RegisterValue::set($convert(value), values, $op.a),
                        None => attempt!(Err(element_out_of_range(buffer, index))),
                    },
                    other => attempt!(Err(not_a_buffer(other))),
                }
            }};
        }
        macro_rules! store {
            ($op:ident, $store:ident, $type:ty as $narrow:ty) => {{
                let index = u64::get(values, $op.c);
                match &self.refs[usize::from($op.b)] {
                    Ref::Buffer(buffer) => {
                        attempt!(buffer.span().$store(index, <$type>::get(values, $op.a) as $narrow).map_err(Error::from));
                    }
                    other => attempt!(Err(not_a_buffer(other))),
                }
            }};
        }
        macro_rules! run {
            (
                unary { $($unary:ident { $ua:ident: $ut:ty } -> $ur:ty = $ub:expr;)* }
                binary { $($binary:ident { $ba:ident: $bt:ty, $bb:ident: $bu:ty } -> $br:ty = $bf:expr;)* }
                ternary { $($ternary:ident { $ta:ident: $tt:ty, $tb:ident: $tu:ty, $tc:ident: $tv:ty } -> $tr:ty = $tf:expr;)* }
                fallible { $($fallible:ident { $fa:ident: $ft:ty, $fb:ident: $fu:ty } -> $fr:ty = $ff:expr;)* }
                compare { $($compare:ident branch $branch:ident { $ca:ident: $ct:ty, $cb:ident: $cu:ty } = $cf:expr;)* }
            ) => {
                loop {
                    let op = &code[at];
                    at += 1;
                    match op.code {
                        $(Code::$unary => {
                            let function: fn($ut) -> $ur = $ub;
                            function(<$ut>::get(values, op.b)).set(values, op.a);
                        })*
                        $(Code::$binary => {
                            let function: fn($bt, $bu) -> $br = $bf;
                            function(<$bt>::get(values, op.b), <$bu>::get(values, op.c)).set(values, op.a);
                        })*
                        $(Code::$ternary => {
                            let function: fn($tt, $tu, $tv) -> $tr = $tf;
                            let (b, c, d) = (<$tt>::get(values, op.b), <$tu>::get(values, op.c), <$tv>::get(values, op.d));
                            function(b, c, d).set(values, op.a);
                        })*
                        $(Code::$fallible => {
                            let function: fn($ft, $fu) -> Result<$fr> = $ff;
                            attempt!(function(<$ft>::get(values, op.b), <$fu>::get(values, op.c))).set(values, op.a);
                        })*
                        $(Code::$compare => {
                            let function: fn($ct, $cu) -> bool = $cf;
                            function(<$ct>::get(values, op.b), <$cu>::get(values, op.c)).set(values, op.a);
                        })*
                        $(Code::$branch => {
                            let function: fn($ct, $cu) -> bool = $cf;
                            let holds = function(<$ct>::get(values, op.b), <$cu>::get(values, op.c));
                            holds.set(values, op.a);
                            if holds {
                                at = op.imm as usize;
                            }
                        })*
                        Code::Br => at = op.imm as usize,
                        Code::BrIf => {
                            if bool::get(values, op.a) {
                                at = op.imm as usize;
                            }
                        }
                        Code::BrTable => {
                            let table = &self.body.lists[op.imm as usize];
                            let default = table.len() - 1;
                            let index = u32::get(values, op.a) as usize;
                            at = table[index.min(default)] as usize;
                        }
                        Code::Const32 => op.imm.set(values, op.a),
                        Code::Const64 => {
                            (u64::from(op.imm) | u64::from(op.b) << 32 | u64::from(op.c) << 48).set(values, op.a);
                        }
                        Code::Move32 => u32::get(values, op.b).set(values, op.a),
                        Code::Move64 => u64::get(values, op.b).set(values, op.a),
                        Code::BufferLoadI8U => load!(op, load_element_u8, u32::from),
                        Code::BufferLoadI8S => load!(op, load_element_u8, |value: u8| i32::from(value as i8)),
                        Code::BufferLoadI16U => load!(op, load_element_u16, u32::from),
                        Code::BufferLoadI16S => load!(op, load_element_u16, |value: u16| i32::from(value as i16)),
                        Code::BufferLoad32 => load!(op, load_element_u32, |value: u32| value),
                        Code::BufferLoad64 => load!(op, load_element_u64, |value: u64| value),
                        Code::BufferStore8 => store!(op, store_element_u8, u32 as u8),
                        Code::BufferStore16 => store!(op, store_element_u16, u32 as u16),
                        Code::BufferStore32 => store!(op, store_element_u32, u32 as u32),
                        Code::BufferStore64 => store!(op, store_element_u64, u64 as u64),
                        Code::GlobalLoad32 => u32::from_le_bytes(global(&self.state.globals, op.imm)).set(values, op.a),
                        Code::GlobalLoad64 => u64::from_le_bytes(global(&self.state.globals, op.imm)).set(values, op.a),
                        Code::GlobalStore32 => *global_mut(&mut self.state.globals, op.imm) = u32::get(values, op.a).to_le_bytes(),
                        Code::GlobalStore64 => *global_mut(&mut self.state.globals, op.imm) = u64::get(values, op.a).to_le_bytes(),
                        Code::Return => stop!(Action::Return(op.imm)),
                        Code::CallInternal => stop!(Action::Call(op.imm)),
                        Code::CallImport => match attempt!(self.call_import(values, op.imm)) {
                            None => {}
                            Some(Action::Wait(wait)) => {
                                // The call is repeated when the wait is over.
                                at -= 1;
                                stop!(Action::Wait(wait))
                            }
                            Some(action) => stop!(action),
                        },
                        Code::Yield => {
                            at = op.imm as usize;
                            stop!(Action::Yield)
                        }
                        Code::Fuel => attempt!(self.context.meter.charge(u64::from(op.imm))),
                        Code::Poll => attempt!(self.poll()),
                        Code::Fail => attempt!(Err(self.failure(u32::get(values, op.a), op.imm))),
                        _ => attempt!(self.rare(values, *op)),
                    }
                }
            };
        }
        for_each_value_op!(run)
    }

    /// Ops on references and whole objects: out of the way of the hot ones.
    #[inline(never)]
    fn rare(&mut self, values: &mut Values, op: Inst) -> Result<()> {
        match op.code {
            Code::ConstNull | Code::DiscardRef => self.set_ref(op.a, Ref::Null),
            Code::ConstRodata => self.set_ref(op.a, self.module.rodata[op.imm as usize].clone().into()),
            Code::MoveRef => self.copy_ref(op.a, op.b),
            Code::CastRef => return self.assign_checked(op.a, op.b, op.imm),
            Code::GlobalLoadRef => return self.global_load_ref(op, op.imm),
            Code::GlobalStoreRef => return self.global_store_ref(op, op.imm),
            Code::GlobalLoadIndirectRef => return self.global_load_ref(op, u32::get(values, op.imm as u16)),
            Code::GlobalStoreIndirectRef => return self.global_store_ref(op, u32::get(values, op.imm as u16)),
            Code::GlobalLoadIndirect32 => {
                let offset = self.indirect::<4>(u32::get(values, op.b))?;
                u32::from_le_bytes(global(&self.state.globals, offset)).set(values, op.a);
            }
            Code::GlobalLoadIndirect64 => {
                let offset = self.indirect::<8>(u32::get(values, op.b))?;
                u64::from_le_bytes(global(&self.state.globals, offset)).set(values, op.a);
            }
            Code::GlobalStoreIndirect32 => {
                let offset = self.indirect::<4>(u32::get(values, op.b))?;
                *global_mut(&mut self.state.globals, offset) = u32::get(values, op.a).to_le_bytes();
            }
            Code::GlobalStoreIndirect64 => {
                let offset = self.indirect::<8>(u32::get(values, op.b))?;
                *global_mut(&mut self.state.globals, offset) = u64::get(values, op.a).to_le_bytes();
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
            Code::ListSize => (self.list(op.b)?.len() as u32).set(values, op.a),
            Code::ListResize => {
                let size = u32::get(values, op.b);
                self.context.meter.charge_bytes(u64::from(size))?;
                self.list(op.a)?.resize(size)?;
            }
            Code::ListGetI32 => (self.list(op.b)?.get_scalar(u32::get(values, op.c))?.integer() as i32).set(values, op.a),
            Code::ListGetI64 => self.list(op.b)?.get_scalar(u32::get(values, op.c))?.integer().set(values, op.a),
            Code::ListGetF32 => (self.list(op.b)?.get_scalar(u32::get(values, op.c))?.float() as f32).set(values, op.a),
            Code::ListGetF64 => self.list(op.b)?.get_scalar(u32::get(values, op.c))?.float().set(values, op.a),
            Code::ListSetI32 => self.list(op.b)?.set(u32::get(values, op.c), Value::I32(i32::get(values, op.a)))?,
            Code::ListSetI64 => self.list(op.b)?.set(u32::get(values, op.c), Value::I64(i64::get(values, op.a)))?,
            Code::ListSetF32 => self.list(op.b)?.set(u32::get(values, op.c), Value::F32(f32::get(values, op.a)))?,
            Code::ListSetF64 => self.list(op.b)?.set(u32::get(values, op.c), Value::F64(f64::get(values, op.a)))?,
            Code::ListGetRef => {
                let wanted = &self.module.ref_types[op.imm as usize];
                let list = self.list(op.b)?;
                let index = u32::get(values, op.c);
                let element = if op.a & MOVE != 0 { list.take_ref(index, wanted)? } else { list.get_ref(index)? };
                let element = if wanted.accepts(&element) { element } else { Ref::Null };
                self.set_ref(op.a & !MOVE, element);
            }
            Code::ListSetRef => {
                let value = self.refs[usize::from(op.a & !MOVE)].clone();
                self.list(op.b)?.set(u32::get(values, op.c), Value::Ref(value))?;
                if op.a & MOVE != 0 {
                    self.set_ref(op.a & !MOVE, Ref::Null);
                }
            }
            _ => return self.buffer_op(values, op),
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

    fn copy_ref(&mut self, to: u16, from: u16) {
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
        match &self.refs[usize::from(register)] {
            Ref::Buffer(buffer) => Ok(buffer),
            other => Err(not_a_buffer(other)),
        }
    }

    #[inline(never)]
    fn poll(&mut self) -> Result<()> {
        // Reading the clock costs as much as hundreds of ops.
        const BETWEEN: u32 = 256;
        self.scratch.polls = self.scratch.polls.wrapping_sub(1);
        if self.scratch.polls >= BETWEEN {
            self.scratch.polls = BETWEEN;
            self.context.meter.poll()?;
        }
        Ok(())
    }

    #[cold]
    fn failure(&self, code: u32, message: u32) -> Error {
        let text = String::from_utf8_lossy(&self.body.messages[message as usize]).into_owned();
        match Status::from_code(code & 31) {
            Some(status) => Error::new(status, text),
            None if code & 31 == 0 => Error::internal(format!("the program failed with status OK: {text}")),
            None => Error::new(Status::Unknown, format!("status {}: {text}", code & 31)),
        }
    }

    /// Calls an import. `None`: it returned. Refs that were given away are put back if it has to wait.
    #[inline(never)]
    fn call_import(&mut self, values: &mut Values, site: u32) -> Result<Option<Action>> {
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

/// Reads from the global area; the verifier, or [`Environment::indirect`], has checked the offset.
#[inline(always)]
fn global<const SIZE: usize>(globals: &[u8], offset: u32) -> [u8; SIZE] {
    globals.get(offset as usize..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; SIZE])
}

#[inline(always)]
fn global_mut<const SIZE: usize>(globals: &mut [u8], offset: u32) -> &mut [u8; SIZE] {
    match globals.get_mut(offset as usize..).and_then(|bytes| bytes.first_chunk_mut()) {
        Some(bytes) => bytes,
        None => unreachable!("verified offsets lie in the global area"),
    }
}

#[cold]
pub(super) fn wrong_type(reference: &Ref, wanted: &RefType) -> Error {
    Error::invalid(format!("a !{} cannot be used as a !{}", reference.type_name(), wanted.name()))
}

#[cold]
fn not_a_buffer(reference: &Ref) -> Error {
    let found = reference.type_name();
    Error::invalid(if reference.is_null() { "the buffer operand is null".into() } else { format!("the buffer operand is a !{found}") })
}

#[cold]
fn element_out_of_range(buffer: &Buffer, index: u64) -> Error {
    Error::out_of_range(format!("the element with index {index} does not lie in the buffer of {} bytes", buffer.len()))
}
