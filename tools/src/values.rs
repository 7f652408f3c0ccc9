//! Values on the command line: what `--input` and `--expected_output` accept.
//!
//! | text | value |
//! |---|---|
//! | `7`, `0x10`, `1.5`, `nan` | a number, where the function takes one |
//! | `[dims x]type[=contents]` | a tensor: `2x3xf32=[1 2 3][4 5 6]`, `f32=2`, `4xi1=1,0,1,0`; one element fills it, none is zeros |
//! | `[dims x]type=@file`, `=+file` | the same with raw bytes, or an array file whose type and shape must be these |
//! | `@file.npy`, `+file.npy`, `*file.npy` | the first array of a file, the next one, all that remain |
//! | `@file.safetensors:key`, `@file.npz:key` | the tensor with this key; also behind `type=` |
//! | `&` before a tensor | only its storage buffer |
//! | `(null)`, `(ignored)` | a null reference, or zero |
//! | `auto`, `auto:SEED` | zeros, or pseudo-random values, of the declared type; fills all inputs that remain |

mod archives;
mod element;
mod files;
mod generate;
mod number;
mod small_float;
mod tensor;

pub(crate) use element::{Codec, Number, extract};

use crate::declaration::{DeclaredType, Scalar, Slot};
use crate::failure::{Failure, Result};
use crate::npy::Array;
use files::Files;
use std::ops::Range;
use tensor::Tensor;
use vmfb_bytecode::calling_convention::Kind;
use vmfb_hal::{BufferView, Class, ElementType};
use vmfb_memory::MemoryAccount;
use vmfb_vm::{Handle, Ref, Status, Value};

/// Reads values. Files stay open from one value to the next, for `+file`.
#[derive(Debug, Default)]
pub struct ValueReader {
    account: MemoryAccount,
    files: Files,
}

/// What a result has to be.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// Anything.
    Ignored,
    /// This value.
    Value(Value),
}

impl ValueReader {
    /// A reader that charges the memory of tensors to an account.
    pub fn new(account: MemoryAccount) -> Self {
        Self { account, files: Files::default() }
    }

    /// Reads the inputs of a call: as many values as there are slots.
    pub fn inputs(&mut self, texts: &[impl AsRef<str>], slots: &[Slot]) -> Result<Vec<Value>> {
        let expectations = self.read(texts, slots, "input")?;
        let value = |(expectation, slot): (Expectation, &Slot)| match expectation {
            Expectation::Value(value) => value,
            Expectation::Ignored => zero(slot.kind),
        };
        Ok(expectations.into_iter().zip(slots).map(value).collect())
    }

    /// Reads what results have to be: as many as there are slots.
    pub fn expectations(&mut self, texts: &[impl AsRef<str>], slots: &[Slot]) -> Result<Vec<Expectation>> {
        self.read(texts, slots, "expected output")
    }

    fn read(&mut self, texts: &[impl AsRef<str>], slots: &[Slot], role: &str) -> Result<Vec<Expectation>> {
        let mut values = Vec::new();
        for (index, text) in texts.iter().map(AsRef::as_ref).enumerate() {
            let last = index + 1 == texts.len();
            self.read_one(text, slots, last, role, &mut values).map_err(|failure| {
                let place = if texts.len() == 1 { format!("reading the {role}") } else { format!("reading {role} {index}") };
                failure.context(place)
            })?;
        }
        match slots.get(values.len()) {
            Some(slot) => Err(too_few(role, slots, values.len(), slot)),
            None => Ok(values),
        }
    }

    /// Reads one text and appends its values: one, or as many as a file holds.
    fn read_one(&mut self, text: &str, slots: &[Slot], last: bool, role: &str, values: &mut Vec<Expectation>) -> Result<()> {
        let part = text.trim();
        let position = values.len();
        if let Some(path) = part.strip_prefix('*') {
            while let Some(array) = self.next_array(text, path, &Slot { kind: Kind::Ref, declared: None })? {
                wanted_slot(text, slots, values.len(), role)?;
                values.push(Expectation::Value(Handle::new(Tensor::of_array(array).into_view(&self.account)?).into()));
            }
            return Ok(());
        }
        let slot = wanted_slot(text, slots, position, role)?;
        if part.is_empty() {
            return Err(Failure::invalid("the value is empty").help(format!("write {}", example(slot))));
        }
        if let Some(seed) = generate::seed(part).map_err(|failure| failure.at(text, span(text, part), ""))? {
            let end = if last { slots.len() } else { position + 1 };
            for (index, slot) in slots.iter().enumerate().take(end).skip(position) {
                values.push(Expectation::Value(generate::value(slot, index, seed, &self.account)?));
            }
            return Ok(());
        }
        values.push(match part {
            "(ignored)" => Expectation::Ignored,
            "(null)" => Expectation::Value(zero(slot.kind)),
            _ => Expectation::Value(self.value(text, part, slot)?),
        });
        Ok(())
    }

    fn value(&mut self, text: &str, part: &str, slot: &Slot) -> Result<Value> {
        if slot.kind != Kind::Ref {
            return scalar(text, part, slot);
        }
        if let Some(tensor) = part.strip_prefix('&') {
            let view = self.tensor(text, tensor.trim(), slot)?;
            return Ok(Value::Ref(view.buffer().clone().into()));
        }
        Ok(Handle::new(self.tensor(text, part, slot)?).into())
    }

    fn tensor(&mut self, text: &str, part: &str, slot: &Slot) -> Result<BufferView> {
        let limit = budget(&self.account);
        let Some(path) = part.strip_prefix(['@', '+']) else {
            return tensor::parse(text, part, slot, &mut self.files, limit)?.into_view(&self.account);
        };
        if part.starts_with('@') {
            self.files.rewind(path);
        }
        let array = self.next_array(text, path, slot)?;
        let array = array
            .ok_or_else(|| Failure::new(Status::OutOfRange, format!("{path} holds no further array")).at(text, span(text, path), ""))?;
        Tensor::of_array(array).into_view(&self.account)
    }

    fn next_array(&mut self, text: &str, path: &str, slot: &Slot) -> Result<Option<Array>> {
        let limit = budget(&self.account);
        let place = |failure: Failure| failure.at(text, span(text, path), "");
        if let (file, Some(key)) = archives::split_key(path) {
            return archives::read(file, key, limit).map(Some).map_err(place);
        }
        let is_array = path.ends_with(".npy") || self.files.is_at_array(path).map_err(|failure| failure.at(text, span(text, path), ""))?;
        if !is_array {
            archives::refuse(path).map_err(place)?;
            let prefix = slot.declared.as_ref().and_then(|declared| declared.prefix(1)).unwrap_or_else(|| "4xf32".to_owned());
            return Err(Failure::invalid(format!("{path} is not an array file, and raw bytes need a shape and type"))
                .at(text, span(text, path), "")
                .help(format!("write {prefix}=@{path}")));
        }
        self.files.next_array(path, limit).map_err(|failure| failure.at(text, span(text, path), ""))
    }
}

/// A number. Ranges come from the declaration where it is narrower than the calling convention.
fn scalar(text: &str, part: &str, slot: &Slot) -> Result<Value> {
    let error = |error: number::NumberError| {
        let failure = Failure::invalid(format!("'{part}' {}", error.problem)).at(text, span(text, part), "");
        match (error.help, part.contains('=')) {
            (Some(help), _) => failure.help(help),
            (None, true) => failure.help(format!("the function takes a plain number here: write {}", example(slot))),
            (None, false) => failure.help(format!("the function takes {slot} here")),
        }
    };
    // The type in front, as results are printed, says nothing new.
    let part = match part.split_once('=') {
        Some((name, value)) if is_scalar_type(name.trim(), slot) => value.trim(),
        _ => part,
    };
    match slot.kind {
        Kind::F32 => number::parse_f32(part).map(Value::F32).map_err(error),
        Kind::F64 => number::parse_f64(part).map(Value::F64).map_err(error),
        Kind::I64 => integer(part, slot, ElementType::I64).map(|value| Value::I64(value as i64)).map_err(error),
        _ => integer(part, slot, ElementType::I32).map(|value| Value::I32(value as i32)).map_err(error),
    }
}

/// Whether this is the declared type of a number, or the type in which it travels.
fn is_scalar_type(name: &str, slot: &Slot) -> bool {
    let travels_as = Slot { kind: slot.kind, declared: None };
    name == slot.to_string() || name == travels_as.to_string()
}

/// A whole number in the range of the declared type, or else of the type in which it travels.
fn integer(text: &str, slot: &Slot, travels_as: ElementType) -> Result<i128, number::NumberError> {
    let declared = match &slot.declared {
        Some(DeclaredType::Scalar(Scalar::Element(element_type)))
            if element_type.is_integer() && element_type.bits() <= travels_as.bits() =>
        {
            *element_type
        }
        _ => travels_as,
    };
    if declared == ElementType::I1 {
        return match text {
            "true" => Ok(1),
            "false" => Ok(0),
            _ => number::parse_integer(text).and_then(|value| match value {
                0 | 1 => Ok(value),
                _ => Err(number::NumberError::new("is not an i1: 0, 1, true or false")),
            }),
        };
    }
    let value = number::parse_integer(text)?;
    let bits = declared.bits();
    let unsigned = declared.class() == Some(Class::UnsignedInteger);
    let signed = declared.class() == Some(Class::SignedInteger);
    let low = if unsigned { 0 } else { -(1i128 << (bits - 1)) };
    let high = if signed { (1i128 << (bits - 1)) - 1 } else { (1i128 << bits) - 1 };
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(number::NumberError::new(format!("is out of the range of {declared}: {low} to {high}")))
}

/// A null reference, or zero.
fn zero(kind: Kind) -> Value {
    match kind {
        Kind::I32 => Value::I32(0),
        Kind::I64 => Value::I64(0),
        Kind::F32 => Value::F32(0.0),
        Kind::F64 => Value::F64(0.0),
        Kind::Ref => Value::Ref(Ref::Null),
    }
}

fn wanted_slot<'a>(text: &str, slots: &'a [Slot], index: usize, role: &str) -> Result<&'a Slot> {
    slots.get(index).ok_or_else(|| {
        Failure::invalid(format!("there are more {role}s than the function has: {}", listing(slots))).at(
            text,
            0..text.len(),
            "one too many",
        )
    })
}

fn too_few(role: &str, slots: &[Slot], found: usize, missing: &Slot) -> Failure {
    let message = format!("the function has {} ({}), got {found}", counted(slots.len(), role), listing(slots));
    let flag = role.replace(' ', "_");
    Failure::invalid(message).help(format!("add --{flag}={}", example(missing)))
}

fn listing(slots: &[Slot]) -> String {
    match slots {
        [] => "none".to_owned(),
        _ => slots.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// A number of things: `1 result`, `2 results`.
pub(crate) fn counted(count: usize, name: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {name}{plural}")
}

/// A text that is right for a slot, for messages.
fn example(slot: &Slot) -> String {
    match slot.kind {
        Kind::I32 | Kind::I64 => "7".to_owned(),
        Kind::F32 | Kind::F64 => "1.5".to_owned(),
        Kind::Ref => match slot.declared.as_ref().and_then(|declared| declared.prefix(2)) {
            Some(prefix) => format!("\"{prefix}=…\""),
            None => "\"4xf32=1 2 3 4\"".to_owned(),
        },
    }
}

/// Shape and type: `2x3xf32`, `f32` for a scalar.
pub(crate) fn type_text(shape: &[u64], element_type: ElementType) -> String {
    let mut text = String::new();
    for dimension in shape {
        text.push_str(&format!("{dimension}x"));
    }
    text + &element_type.to_string()
}

/// Where a part of a text stands in it. A part of another text is taken as the whole.
fn span(text: &str, part: &str) -> Range<usize> {
    match part.as_ptr().addr().checked_sub(text.as_ptr().addr()) {
        Some(start) if start + part.len() <= text.len() => start..start + part.len(),
        _ => 0..text.len(),
    }
}

/// Bytes that the account still allows.
fn budget(account: &MemoryAccount) -> u64 {
    account.limit().saturating_sub(account.used())
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
