//! Types of list elements and references, as the interpreter compares them.

use crate::Ref;
use std::sync::Arc;

/// What a list holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// i8.
    I8,
    /// i16.
    I16,
    /// i32.
    I32,
    /// i64.
    I64,
    /// f32.
    F32,
    /// f64.
    F64,
    /// References of one type.
    Ref(RefType),
    /// Anything.
    Variant,
}

/// The type of a reference in a module's type table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefType {
    /// `!vm.buffer`.
    Buffer,
    /// `!vm.list<…>` of any element type.
    List,
    /// A type of a native module, named without the exclamation mark.
    Named(Arc<str>),
    /// Not a reference type: only null passes.
    Never,
}

impl RefType {
    /// Whether a reference may be used as this type: null always may.
    #[inline]
    pub fn accepts(&self, reference: &Ref) -> bool {
        match reference {
            Ref::Null => true,
            Ref::Buffer(_) => *self == Self::Buffer,
            Ref::List(_) => *self == Self::List,
            Ref::Object(object) => matches!(self, Self::Named(name) if **name == *object.type_name()),
        }
    }

    /// The name without the exclamation mark.
    pub fn name(&self) -> &str {
        match self {
            Self::Buffer => "vm.buffer",
            Self::List => "vm.list",
            Self::Named(name) => name,
            Self::Never => "vm.opaque",
        }
    }
}
