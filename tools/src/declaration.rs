//! The declaration of a function as its program had it, which modules carry as `iree.abi.declaration`.
//!
//! It is informative: it labels arguments, gives ranges to narrow integers and shapes to generated inputs. A declaration
//! that cannot be read is as good as none.

use std::fmt;
use vmfb_bytecode::calling_convention::{CallingConvention, Kind};
use vmfb_hal::{Class, ElementType, MAX_RANK};

/// A declaration, for example `sync func @mul(%input0: tensor<4xf32>) -> (%output0: tensor<4xf32>)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// Arguments.
    pub inputs: Vec<Field>,
    /// Results.
    pub outputs: Vec<Field>,
}

/// One argument or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name without the percent sign; empty where there is none.
    pub name: String,
    /// Type.
    pub declared: DeclaredType,
}

/// A type as programs write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredType {
    /// A number.
    Scalar(Scalar),
    /// `tensor<…>` with elements of a known type.
    Tensor {
        /// Dimensions, outermost first; `None` for `?`.
        shape: Vec<Option<u64>>,
        /// Element type.
        element_type: ElementType,
    },
    /// Anything else, as it is written.
    Other(String),
}

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A type that tensors can have, too.
    Element(ElementType),
    /// An index: as wide as the module made it.
    Index,
}

/// What is known of an argument or result that values are read for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What the calling convention says.
    pub kind: Kind,
    /// What the declaration says.
    pub declared: Option<DeclaredType>,
}

impl Declaration {
    /// Reads a declaration; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once('@')?;
        // The name may be quoted and may hold anything then.
        let rest = match rest.strip_prefix('"') {
            Some(quoted) => quoted.get(end_of_string(quoted)?..)?,
            None => rest,
        };
        let rest = rest.get(rest.find('(')? + 1..)?;
        let (inputs, rest) = fields(rest)?;
        let outputs = match rest.trim_start().strip_prefix("->") {
            Some(rest) => match rest.trim_start().strip_prefix('(') {
                Some(rest) => fields(rest)?.0,
                None => vec![field(rest.trim())],
            },
            None => Vec::new(),
        };
        Some(Self { inputs, outputs })
    }
}

/// Slots for the arguments of a function. A declaration with another number of inputs is ignored.
pub fn input_slots(convention: &CallingConvention, declaration: Option<&Declaration>) -> Vec<Slot> {
    let kinds = convention.plain_arguments().unwrap_or_default();
    slots(&kinds, declaration.map(|declaration| declaration.inputs.as_slice()))
}

/// Slots for the arguments of a function that takes two fences behind those it declares.
pub fn input_slots_before_fences(convention: &CallingConvention, declaration: Option<&Declaration>) -> Vec<Slot> {
    let mut kinds = convention.plain_arguments().unwrap_or_default();
    kinds.truncate(kinds.len().saturating_sub(2));
    slots(&kinds, declaration.map(|declaration| declaration.inputs.as_slice()))
}

/// Slots for the results of a function. A declaration with another number of outputs is ignored.
pub fn output_slots(convention: &CallingConvention, declaration: Option<&Declaration>) -> Vec<Slot> {
    slots(&convention.results, declaration.map(|declaration| declaration.outputs.as_slice()))
}

fn slots(kinds: &[Kind], fields: Option<&[Field]>) -> Vec<Slot> {
    let fields = fields.filter(|fields| fields.len() == kinds.len());
    let declared = |index: usize| fields?.get(index).map(|field| field.declared.clone());
    kinds.iter().enumerate().map(|(index, kind)| Slot { kind: *kind, declared: declared(index) }).collect()
}

impl DeclaredType {
    /// Reads a type. Whatever is not understood becomes [`DeclaredType::Other`].
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if text == "index" {
            return Self::Scalar(Scalar::Index);
        }
        if let Some(element_type) = element(text) {
            return Self::Scalar(Scalar::Element(element_type));
        }
        tensor(text).unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    /// How a value of this type begins on the command line, for example `4xf32`; `None` for other types. Unknown dimensions
    /// become the given one.
    pub fn prefix(&self, unknown: u64) -> Option<String> {
        let Self::Tensor { shape, element_type } = self else { return None };
        let dimensions: Vec<u64> = shape.iter().map(|dimension| dimension.unwrap_or(unknown)).collect();
        Some(crate::values::type_text(&dimensions, *element_type))
    }
}

impl fmt::Display for DeclaredType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(Scalar::Index) => f.write_str("index"),
            Self::Scalar(Scalar::Element(element_type)) => write!(f, "{element_type}"),
            Self::Tensor { shape, element_type } => {
                f.write_str("tensor<")?;
                for dimension in shape {
                    match dimension {
                        Some(dimension) => write!(f, "{dimension}x")?,
                        None => f.write_str("?x")?,
                    }
                }
                write!(f, "{element_type}>")
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.declared, self.kind) {
            (Some(declared), _) => write!(f, "{declared}"),
            (None, Kind::I32) => f.write_str("i32"),
            (None, Kind::I64) => f.write_str("i64"),
            (None, Kind::F32) => f.write_str("f32"),
            (None, Kind::F64) => f.write_str("f64"),
            (None, Kind::Ref) => f.write_str("reference"),
        }
    }
}

/// Bytes of a quoted string up to and with its closing quote.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The fields up to a closing parenthesis, and what follows it.
fn fields(text: &str) -> Option<(Vec<Field>, &str)> {
    let mut list = Vec::new();
    let (mut depth, mut start, mut previous, mut quoted) = (0u32, 0, 0u8, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if previous != b'\\' => quoted = !quoted,
            _ if quoted => {}
            b')' | b',' if depth == 0 => {
                let part = text.get(start..at)?.trim();
                if !part.is_empty() {
                    list.push(field(part));
                }
                if byte == b')' {
                    return Some((list, text.get(at + 1..)?));
                }
                start = at + 1;
            }
            b'(' | b'<' | b'[' | b'{' => depth = depth.saturating_add(1),
            b')' | b'>' | b']' | b'}' if previous != b'-' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        previous = byte;
    }
    None
}

/// `%name: type {attributes}`; name and attributes may be missing.
fn field(text: &str) -> Field {
    let (name, declared) = match text.strip_prefix('%').and_then(|rest| rest.split_once(':')) {
        Some((name, declared)) => (name.trim(), declared),
        None => ("", text),
    };
    let declared = declared.split_once(" {").map_or(declared, |(declared, _)| declared);
    Field { name: name.to_owned(), declared: DeclaredType::parse(declared) }
}

fn element(text: &str) -> Option<ElementType> {
    match text.strip_prefix("complex<").and_then(|rest| rest.strip_suffix('>')) {
        Some("f32") => Some(ElementType::COMPLEX64),
        Some("f64") => Some(ElementType::COMPLEX128),
        Some(_) => None,
        None => {
            ElementType::from_name(text).filter(|element_type| !element_type.is_opaque() && element_type.class() != Some(Class::Complex))
        }
    }
}

fn tensor(text: &str) -> Option<DeclaredType> {
    let inner = text.strip_prefix("tensor<")?.strip_suffix('>')?;
    // An encoding may follow behind a comma.
    let mut rest = inner.split_once(',').map_or(inner, |(inner, _)| inner).trim();
    let mut shape = Vec::new();
    loop {
        if let Some(element_type) = element(rest) {
            return Some(DeclaredType::Tensor { shape, element_type });
        }
        let (dimension, tail) = rest.split_once('x')?;
        shape.push(if dimension == "?" { None } else { Some(dimension.parse().ok()?) });
        if shape.len() > MAX_RANK {
            return None;
        }
        rest = tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn types(fields: &[Field]) -> Vec<String> {
        fields.iter().map(|field| field.declared.to_string()).collect()
    }

    #[test]
    fn declarations_of_compiled_modules_are_read() {
        let text =
            "sync func @f(%input0: tensor<?x3x?xf32>, %input1: index, %input2: !hal.buffer_view) -> (%output0: tensor<i1>, %output1: i64)";
        let declaration = Declaration::parse(text).unwrap();
        assert_eq!(types(&declaration.inputs), ["tensor<?x3x?xf32>", "index", "!hal.buffer_view"]);
        assert_eq!(types(&declaration.outputs), ["tensor<i1>", "i64"]);
        assert_eq!(declaration.inputs[1].name, "input1");
        let DeclaredType::Tensor { shape, element_type } = &declaration.inputs[0].declared else { panic!() };
        assert_eq!((shape.as_slice(), *element_type), ([None, Some(3), None].as_slice(), ElementType::F32));
        assert_eq!(declaration.inputs[0].declared.prefix(5).as_deref(), Some("5x3x5xf32"));
        let empty = Declaration::parse("sync func @f() -> ()").unwrap();
        assert_eq!((empty.inputs.len(), empty.outputs.len()), (0, 0));
    }

    #[test]
    fn unusual_declarations_are_read_as_far_as_they_go() {
        let text = "async func @\"a, (b) -> c\"(%a: tensor<2xcomplex<f32>, #e<1>> {iree.abi.output = 0 : index}, %g: (i32) -> i32, !x<\")\">) -> i32";
        let declaration = Declaration::parse(text).unwrap();
        assert_eq!(types(&declaration.inputs), ["tensor<2xcf64>", "(i32) -> i32", "!x<\")\">"]);
        assert_eq!(types(&declaration.outputs), ["i32"]);
        for text in ["", "f", "@f", "@f(", "@f(i32", "@\"f", "@f(>) -> ()"] {
            assert_eq!(Declaration::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_declaration_that_does_not_fit_is_ignored() {
        let convention: CallingConvention = "0rI_i".parse().unwrap();
        let declaration = Declaration::parse("sync func @f(%a: tensor<4xf32>) -> (%b: i8)").unwrap();
        let inputs = input_slots(&convention, Some(&declaration));
        assert_eq!(inputs.iter().map(ToString::to_string).collect::<Vec<_>>(), ["reference", "i64"]);
        let outputs = output_slots(&convention, Some(&declaration));
        assert_eq!(outputs.iter().map(ToString::to_string).collect::<Vec<_>>(), ["i8"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_ignored(text in ".{0,60}", shaped in "(sync )?func @f\\([-%a-z0-9:<>(){},x? \"]{0,40}\\)? -> [(<>) x?a-z0-9]{0,20}") {
            let _ = (Declaration::parse(&text), Declaration::parse(&shaped), DeclaredType::parse(&text));
        }
    }
}
