//! Values as the corpus writes them: `KIND=VALUES`. Written apart from the tools, whose grammar has tests of its own.

use half::{bf16, f16};
use vmfb::{BufferView, ElementType, Error, Result, Value};

/// A value of a kind from its text.
pub(crate) fn parse(text: &str, kind: &str) -> Result<Value> {
    let Some((view, elements)) = text.split_once('=') else { return scalar(text, kind) };
    let (shape, element) = split_kind(view);
    let bytes: Vec<u8> = tokens(elements).flat_map(|token| encode(token, element)).collect();
    let element_type = ElementType::from_name(element).ok_or_else(|| Error::invalid(format!("unknown type {element}")))?;
    let count: u64 = shape.iter().product();
    let bytes = if bytes.len() == element_type.dense_bytes() { bytes.repeat(count as usize) } else { bytes };
    Ok(Value::Ref(vmfb::Ref::new(BufferView::from_bytes(&shape, element_type, &bytes)?)))
}

fn scalar(text: &str, kind: &str) -> Result<Value> {
    let invalid = || Error::invalid(format!("{text:?} is no {kind}"));
    Ok(match kind {
        "i64" => Value::I64(text.parse().map_err(|_| invalid())?),
        "f32" => Value::F32(text.parse().map_err(|_| invalid())?),
        "f64" => Value::F64(text.parse().map_err(|_| invalid())?),
        _ => Value::I32(text.parse::<i64>().map_err(|_| invalid())? as i32),
    })
}

fn split_kind(kind: &str) -> (Vec<u64>, &str) {
    let (dimensions, element) = kind.rsplit_once('x').unwrap_or(("", kind));
    (dimensions.split('x').filter_map(|dimension| dimension.parse().ok()).collect(), element)
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "[],".contains(c)).filter(|token| !token.is_empty())
}

fn encode(token: &str, element: &str) -> Vec<u8> {
    let float = || token.parse::<f64>().expect("a number");
    let integer = || token.parse::<i128>().expect("an integer");
    match element {
        "f16" => f16::from_f64(float()).to_le_bytes().to_vec(),
        "bf16" => bf16::from_f64(float()).to_le_bytes().to_vec(),
        "f32" => (float() as f32).to_le_bytes().to_vec(),
        "f64" => float().to_le_bytes().to_vec(),
        _ => {
            let bytes = ElementType::from_name(element).expect("an element type").dense_bytes();
            integer().to_le_bytes()[..bytes].to_vec()
        }
    }
}

/// A result as text.
pub(crate) fn print(value: &Value) -> Result<String> {
    Ok(match value {
        Value::I32(value) => format!("i32={value}"),
        Value::I64(value) => format!("i64={value}"),
        Value::F32(value) => format!("f32={value:?}"),
        Value::F64(value) => format!("f64={value:?}"),
        Value::Ref(reference) => {
            let view = reference.object::<BufferView>("the result")?;
            let bytes = view.to_bytes()?;
            let size = view.element_type().dense_bytes();
            let elements: Vec<String> = bytes.chunks_exact(size).map(|bytes| decode(bytes, view.element_type())).collect();
            format!("{}={}", view.type_text(), elements.join(" "))
        }
        _ => return Err(Error::invalid("unknown value")),
    })
}

fn decode(bytes: &[u8], element: ElementType) -> String {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let word = u64::from_le_bytes(wide);
    let unused = 64 - 8 * bytes.len();
    match element {
        ElementType::F16 => f16::from_bits(word as u16).to_f64().to_string(),
        ElementType::BF16 => bf16::from_bits(word as u16).to_f64().to_string(),
        ElementType::F32 => f32::from_bits(word as u32).to_string(),
        ElementType::F64 => f64::from_bits(word).to_string(),
        element if element.to_string().starts_with("ui") => word.to_string(),
        _ => ((word << unused) as i64 >> unused).to_string(),
    }
}

/// Compares two texts of a value: kinds, then elements. Expectations have six digits, so floats may differ by 1e-5 relative.
pub(crate) fn same(found: &str, wanted: &str, (relative, absolute): (f64, f64)) -> Result<(), String> {
    let ((found_kind, found), (wanted_kind, wanted)) = (halves(found), halves(wanted));
    if found_kind != wanted_kind {
        return Err(format!("kind {found_kind}, expected {wanted_kind}"));
    }
    let (found, wanted): (Vec<&str>, Vec<&str>) = (tokens(found).collect(), tokens(wanted).collect());
    if found.len() != wanted.len() {
        return Err(format!("{} elements, expected {}", found.len(), wanted.len()));
    }
    let element = split_kind(wanted_kind).1;
    for (index, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let equal = if element.contains('f') {
            let (found, wanted) = (number(found, element), number(wanted, element));
            let near = (found - wanted).abs() <= absolute + 1e-9 * f64::from(u8::from(relative > 0.0)) + relative.max(1e-5) * wanted.abs();
            found == wanted || near || (found.is_nan() && wanted.is_nan())
        } else {
            found.parse::<i128>().ok() == wanted.parse::<i128>().ok()
        };
        if !equal {
            return Err(format!("element {index} is {found}, expected {wanted}"));
        }
    }
    Ok(())
}

fn halves(text: &str) -> (&str, &str) {
    text.split_once('=').unwrap_or((text, ""))
}

/// A float; tools of 2023 print bf16 as four hex digits.
fn number(token: &str, element: &str) -> f64 {
    if element == "bf16"
        && token.len() == 4
        && !token.contains('.')
        && let Ok(bits) = u16::from_str_radix(token, 16)
    {
        return bf16::from_bits(bits).to_f64();
    }
    token.parse().unwrap_or_else(|_| panic!("{token:?} is no number"))
}
