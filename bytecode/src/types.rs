//! Names of the type table as types.

use crate::{Error, Result, Status};
use std::fmt;

/// A type that type operands name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeDef {
    /// `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `!vm.opaque`, and `?` as the element of a list: any value.
    Variant,
    /// `!vm.buffer`
    Buffer,
    /// `!vm.list<…>`. Lists of all element types are one type; the element is kept as text, so nesting costs nothing.
    List(Box<str>),
    /// Any other type behind a `!`, without it. Whether somebody registers it shows later; until then its only value is null.
    Ref(Box<str>),
}

impl TypeDef {
    /// Reads the full name of a type.
    pub fn parse(name: &str) -> Result<Self> {
        if let Some(name) = name.strip_prefix('!') {
            return Self::parse_ref(name);
        }
        Ok(match name {
            "i8" => Self::I8,
            "i16" => Self::I16,
            "i32" => Self::I32,
            "i64" => Self::I64,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "" => return Err(Error::invalid("a type has an empty name")),
            _ => {
                return Err(Error::new(
                    Status::NotFound,
                    format!("type {name:?} is neither one of i8, i16, i32, i64, f32, f64 nor a reference type, which starts with '!'"),
                ));
            }
        })
    }

    fn parse_ref(name: &str) -> Result<Self> {
        Ok(match name {
            "" => return Err(Error::invalid("a reference type has an empty name")),
            "vm.opaque" => Self::Variant,
            "vm.buffer" => Self::Buffer,
            _ => match name.strip_prefix("vm.list<").and_then(|rest| rest.strip_suffix('>')) {
                Some(element) => Self::List(element.into()),
                None => Self::Ref(name.into()),
            },
        })
    }

    /// The element type of a list: `?` is [`TypeDef::Variant`]; `None` for other types and for texts that are no type.
    pub fn element(&self) -> Option<Self> {
        match self {
            Self::List(element) if &**element == "?" => Some(Self::Variant),
            Self::List(element) => Self::parse(element).ok(),
            _ => None,
        }
    }

    /// Whether values of this type live in ref registers.
    pub fn is_ref(&self) -> bool {
        matches!(self, Self::Buffer | Self::List(_) | Self::Ref(_))
    }
}

impl fmt::Display for TypeDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::I8 => f.write_str("i8"),
            Self::I16 => f.write_str("i16"),
            Self::I32 => f.write_str("i32"),
            Self::I64 => f.write_str("i64"),
            Self::F32 => f.write_str("f32"),
            Self::F64 => f.write_str("f64"),
            Self::Variant => f.write_str("!vm.opaque"),
            Self::Buffer => f.write_str("!vm.buffer"),
            Self::List(element) => write!(f, "!vm.list<{element}>"),
            Self::Ref(name) => write!(f, "!{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_compilers_write() {
        let cases = [
            ("i8", TypeDef::I8),
            ("i64", TypeDef::I64),
            ("f32", TypeDef::F32),
            ("!vm.opaque", TypeDef::Variant),
            ("!vm.buffer", TypeDef::Buffer),
            ("!vm.list<?>", TypeDef::List("?".into())),
            ("!vm.list<!vm.list<i32>>", TypeDef::List("!vm.list<i32>".into())),
            ("!hal.buffer_view", TypeDef::Ref("hal.buffer_view".into())),
            ("!custom.string", TypeDef::Ref("custom.string".into())),
        ];
        for (name, wanted) in cases {
            let found = TypeDef::parse(name).unwrap();
            assert_eq!(found, wanted);
            assert_eq!(found.to_string(), name);
        }
    }

    #[test]
    fn elements() {
        let element = |name| TypeDef::parse(name).unwrap().element();
        assert_eq!(element("!vm.list<?>"), Some(TypeDef::Variant));
        assert_eq!(element("!vm.list<!vm.list<i32>>"), Some(TypeDef::List("i32".into())));
        assert_eq!(element("!vm.list<nonsense>"), None);
        assert_eq!(element("i32"), None);
    }

    #[test]
    fn deep_nesting_costs_nothing() {
        // Less under Miri, which is slow.
        let depth = if cfg!(miri) { 1000 } else { 1_000_000 };
        let name = format!("{}i8{}", "!vm.list<".repeat(depth), ">".repeat(depth));
        assert!(matches!(TypeDef::parse(&name).unwrap(), TypeDef::List(_)));
    }

    #[test]
    fn refused_names() {
        assert_eq!(TypeDef::parse("").unwrap_err().status, Status::InvalidArgument);
        assert_eq!(TypeDef::parse("!").unwrap_err().status, Status::InvalidArgument);
        let unknown = TypeDef::parse("index").unwrap_err();
        assert_eq!(unknown.status, Status::NotFound);
        assert!(unknown.message.contains("\"index\""), "{unknown}");
    }
}
