//! Writes FlatBuffers from a tree of nodes. Nothing is checked against a schema, so tests can write what no compiler would.

use crate::flatbuffer::Slot;
use crate::{Error, Result, Status};
use std::collections::{HashMap, VecDeque};

/// Scalars are aligned relative to the 4-byte size prefix before the buffer.
const PREFIX: usize = 4;
/// Offsets are 32 bits wide, and readers may take them for signed.
const MAXIMUM_LENGTH: usize = i32::MAX as usize;

/// Something that an offset points to.
#[derive(Clone, Debug)]
pub enum Node<'a> {
    /// A table; fields that are not named are absent.
    Table(Vec<(Slot, Field<'a>)>),
    /// A string. Equal strings are written once.
    Text(&'a str),
    /// A vector of bytes whose first element has the given alignment.
    Bytes(&'a [u8], usize),
    /// A vector of `count` elements that are aligned to 4, as they are stored.
    Structs(usize, Vec<u8>),
    /// A vector of offsets. `None` is the offset 0, which only the value of a union may have.
    Offsets(Vec<Option<Node<'a>>>),
}

/// A field of a table.
#[derive(Clone, Debug)]
pub enum Field<'a> {
    /// An 8-bit scalar.
    U8(u8),
    /// A 32-bit scalar.
    U32(u32),
    /// A 64-bit scalar.
    U64(u64),
    /// An offset to something.
    Node(Node<'a>),
}

/// Writes a buffer, without a size prefix.
pub fn write(root: &Node<'_>, identifier: &[u8; 4]) -> Result<Vec<u8>> {
    let mut writer = Writer::default();
    writer.bytes.extend_from_slice(&[0; 4]);
    writer.bytes.extend_from_slice(identifier);
    writer.pending.push_back((0, root));
    while let Some((field, node)) = writer.pending.pop_front() {
        writer.node(field, node)?;
    }
    for (text, fields) in writer.texts_in_order() {
        let position = writer.align(4, 4)?;
        writer.count(text.len())?;
        writer.bytes.extend_from_slice(text.as_bytes());
        writer.bytes.push(0);
        fields.into_iter().for_each(|field| writer.patch(field, position));
    }
    writer.align(4, 0)?;
    Ok(writer.bytes)
}

#[derive(Default)]
struct Writer<'a, 'n> {
    bytes: Vec<u8>,
    /// Offset fields that wait for their nodes. Offsets point forward, so a node is written after what refers to it.
    pending: VecDeque<(usize, &'n Node<'a>)>,
    /// Strings come last, for only then can all offsets to one string point forward.
    texts: HashMap<&'a str, Vec<usize>>,
}

impl<'a, 'n> Writer<'a, 'n> {
    fn texts_in_order(&mut self) -> Vec<(&'a str, Vec<usize>)> {
        let mut texts: Vec<_> = std::mem::take(&mut self.texts).into_iter().collect();
        texts.sort_by(|a, b| a.1.cmp(&b.1));
        texts
    }

    fn node(&mut self, field: usize, node: &'n Node<'a>) -> Result<()> {
        match node {
            Node::Text(text) => self.texts.entry(text).or_default().push(field),
            Node::Table(fields) => {
                let position = self.table(fields)?;
                self.patch(field, position);
            }
            Node::Bytes(data, alignment) => {
                let position = self.align((*alignment).max(4), 4)?;
                self.count(data.len())?;
                self.bytes.extend_from_slice(data);
                self.patch(field, position);
            }
            Node::Structs(count, data) => {
                let position = self.align(4, 4)?;
                self.count(*count)?;
                self.bytes.extend_from_slice(data);
                self.patch(field, position);
            }
            Node::Offsets(nodes) => {
                let position = self.align(4, 4)?;
                self.count(nodes.len())?;
                for node in nodes {
                    self.pending.extend(node.as_ref().map(|node| (self.bytes.len(), node)));
                    self.bytes.extend_from_slice(&[0; 4]);
                }
                self.patch(field, position);
            }
        }
        Ok(())
    }

    /// Writes the vtable, then the table; returns the table's position.
    fn table(&mut self, fields: &'n [(Slot, Field<'a>)]) -> Result<usize> {
        let slots = fields.iter().map(|(slot, _)| slot.0 + 1).max().unwrap_or(0);
        let mut vtable = vec![0_u16; slots];
        let mut size = 4_usize;
        let mut alignment = 4_usize;
        for (slot, field) in fields {
            let width = field.width();
            let offset = size.next_multiple_of(width);
            vtable[slot.0] = offset as u16;
            size = offset + width;
            alignment = alignment.max(width);
        }
        let start = self.align(alignment, 4 + 2 * slots)?;
        for entry in [4 + 2 * slots as u16, size as u16].into_iter().chain(vtable) {
            self.bytes.extend_from_slice(&entry.to_le_bytes());
        }
        let position = self.bytes.len();
        self.bytes.extend_from_slice(&((position - start) as i32).to_le_bytes());
        for (_, field) in fields {
            while !(self.bytes.len() - position).is_multiple_of(field.width()) {
                self.bytes.push(0);
            }
            match field {
                Field::U8(value) => self.bytes.push(*value),
                Field::U32(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                Field::U64(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
                Field::Node(node) => {
                    self.pending.push_back((self.bytes.len(), node));
                    self.bytes.extend_from_slice(&[0; 4]);
                }
            }
        }
        Ok(position)
    }

    /// Adds zeros until what stands `ahead` bytes further is aligned; returns the position then.
    fn align(&mut self, alignment: usize, ahead: usize) -> Result<usize> {
        while !(self.bytes.len() + PREFIX + ahead).is_multiple_of(alignment) {
            self.bytes.push(0);
        }
        if self.bytes.len() > MAXIMUM_LENGTH {
            return Err(too_large(self.bytes.len()));
        }
        Ok(self.bytes.len())
    }

    fn count(&mut self, count: usize) -> Result<()> {
        let count = u32::try_from(count).map_err(|_| too_large(count))?;
        self.bytes.extend_from_slice(&count.to_le_bytes());
        Ok(())
    }

    fn patch(&mut self, field: usize, position: usize) {
        let offset = (position - field) as u32;
        self.bytes[field..field + 4].copy_from_slice(&offset.to_le_bytes());
    }
}

impl Field<'_> {
    fn width(&self) -> usize {
        match self {
            Self::U8(_) => 1,
            Self::U32(_) | Self::Node(_) => 4,
            Self::U64(_) => 8,
        }
    }
}

fn too_large(length: usize) -> Error {
    Error::new(Status::ResourceExhausted, format!("a FlatBuffer has at most {MAXIMUM_LENGTH} bytes, this one would have {length} or more"))
}
