//! Comparison of tensors. A difference is told as text that names the first element that differs.

use half::{bf16, f16};
use vmfb_hal::{BufferView, Class, ElementType, Encoding, ViewText, float8_to_f32, subspan};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Error, Meter, Result, bulk};

/// Elements of each tensor that a message shows.
const SHOWN: u64 = 16;

/// How far two numbers may be apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    pub(crate) absolute: f64,
    /// In addition, as a fraction of what is wanted.
    pub(crate) relative: f64,
}

impl Tolerance {
    /// What was tolerated before programs could say it.
    pub(crate) fn of_old(element_type: ElementType) -> Self {
        Self { absolute: if element_type == ElementType::F16 { 1e-3 } else { 1e-4 }, relative: 0.0 }
    }

    fn accepts(&self, found: f64, wanted: f64) -> bool {
        found == wanted
            || (found.is_nan() && wanted.is_nan())
            || (wanted.is_finite() && (found - wanted).abs() <= self.absolute + self.relative * wanted.abs())
    }
}

/// Same type, same shape, same bytes.
pub(crate) fn equal(found: &BufferView, wanted: &BufferView, meter: &mut Meter) -> Result<Option<String>> {
    if let Some(difference) = differing_types(found, wanted) {
        return Ok(Some(difference));
    }
    let bytes = charge(found, meter)?;
    let (left, right) = (found.buffer().span(), wanted.buffer().span());
    let Some((start, part)) = bulk::first_difference(meter, (&left, 0), (&right, 0), bytes)? else { return Ok(None) };
    let byte = (start..start + part).find(|offset| left.load_u8(*offset) != right.load_u8(*offset)).unwrap_or(start);
    // Packed elements: the first that has a bit in the byte.
    let index = (byte as u64).saturating_mul(8) / (found.element_type().bits().max(1) as u64);
    Ok(Some(difference_at(index, found, wanted)))
}

/// Same type, same shape, each number within the tolerance.
pub(crate) fn almost_equal(found: &BufferView, wanted: &BufferView, tolerance: &Tolerance, meter: &mut Meter) -> Result<Option<String>> {
    if let Some(difference) = differing_types(found, wanted) {
        return Ok(Some(difference));
    }
    let number = number_reader(found.element_type())?;
    charge(found, meter)?;
    let (left, right) = (found.buffer().span(), wanted.buffer().span());
    for index in 0..found.element_count().unwrap_or(0) {
        poll_now_and_then(meter, index)?;
        let (Some(a), Some(b)) = (number(&left, index), number(&right, index)) else { return Err(lost(index)) };
        if !tolerance.accepts(a, b) {
            let Tolerance { absolute, relative } = tolerance;
            let by = (a - b).abs();
            return Ok(Some(format!(
                "{}\n  the difference is {by}, tolerated are {absolute} and {relative} of the expected value",
                difference_at(index, found, wanted)
            )));
        }
    }
    Ok(None)
}

/// No element is zero.
pub(crate) fn all_true(view: &BufferView, meter: &mut Meter) -> Result<Option<String>> {
    charge(view, meter)?;
    let is_zero = zero_test(view.element_type())?;
    let span = view.buffer().span();
    for index in 0..view.element_count().unwrap_or(0) {
        poll_now_and_then(meter, index)?;
        if is_zero(&span, index).ok_or_else(|| lost(index))? {
            return Ok(Some(format!("element {index} is zero in {}", ViewText::with_limit(view, SHOWN))));
        }
    }
    Ok(None)
}

/// Looks at the clock before every so many elements.
#[inline]
fn poll_now_and_then(meter: &Meter, index: u64) -> Result<()> {
    const BETWEEN: u64 = 1 << 16;
    if index % BETWEEN == BETWEEN - 1 { meter.poll() } else { Ok(()) }
}

fn differing_types(found: &BufferView, wanted: &BufferView) -> Option<String> {
    let differ = found.element_type() != wanted.element_type() || found.shape() != wanted.shape();
    differ.then(|| format!("found a {}, wanted a {}", found.type_text(), wanted.type_text()))
}

/// Charges for looking at all bytes; gives their number, which the buffer is known to have.
fn charge(view: &BufferView, meter: &mut Meter) -> Result<usize> {
    let bytes = view.byte_length().filter(|bytes| *bytes <= view.buffer().len() as u64).unwrap_or(0);
    meter.charge_bytes(bytes)?;
    meter.charge(view.element_count().unwrap_or(0))?;
    Ok(bytes as usize)
}

fn difference_at(index: u64, found: &BufferView, wanted: &BufferView) -> String {
    let elements = match (element(found, index), element(wanted, index)) {
        (Some(found), Some(wanted)) => format!(": found {found}, wanted {wanted}"),
        _ => String::new(),
    };
    format!(
        "element {index} differs{elements}\n  found {}\n  wanted {}",
        ViewText::with_limit(found, SHOWN),
        ViewText::with_limit(wanted, SHOWN)
    )
}

/// One element as text; `None` for those that are no whole bytes.
fn element(view: &BufferView, index: u64) -> Option<String> {
    let bits = view.element_type().bits();
    let bytes = (bits.is_multiple_of(8) && bits != 0).then_some(bits as u64 / 8)?;
    let buffer = subspan(view.buffer(), index.checked_mul(bytes)?, bytes, &MemoryAccount::default()).ok()?;
    let scalar = BufferView::new(buffer, &[], view.element_type(), Encoding::DENSE).ok()?;
    let text = ViewText::new(&scalar).to_string();
    text.split_once('=').map(|(_, value)| value.to_owned())
}

type NumberReader = Box<dyn Fn(&Span, u64) -> Option<f64>>;

/// Reads elements of a float type as numbers.
fn number_reader(element_type: ElementType) -> Result<NumberReader> {
    Ok(match (element_type, element_type.class()) {
        (ElementType::F64, _) => Box::new(|span, index| span.load_element_u64(index).map(f64::from_bits)),
        (ElementType::F32, _) => Box::new(|span, index| span.load_element_u32(index).map(|bits| f32::from_bits(bits).into())),
        (ElementType::F16, _) => Box::new(|span, index| span.load_element_u16(index).map(|bits| f16::from_bits(bits).to_f64())),
        (ElementType::BF16, _) => Box::new(|span, index| span.load_element_u16(index).map(|bits| bf16::from_bits(bits).to_f64())),
        (_, Some(class)) if is_float8(class) && element_type.bits() == 8 => {
            Box::new(move |span, index| float8_to_f32(class, span.load_element_u8(index)?).map(f64::from))
        }
        _ => return Err(Error::unimplemented(format!("expect_almost_eq compares floats, not {element_type}"))),
    })
}

fn is_float8(class: Class) -> bool {
    float8_to_f32(class, 0).is_some()
}

type ZeroTest = Box<dyn Fn(&Span, u64) -> Option<bool>>;

fn zero_test(element_type: ElementType) -> Result<ZeroTest> {
    if let Ok(number) = number_reader(element_type) {
        return Ok(Box::new(move |span, index| number(span, index).map(|number| number == 0.0)));
    }
    Ok(match (element_type.is_integer(), element_type.bits()) {
        (true, 8) => Box::new(|span, index| span.load_element_u8(index).map(|value| value == 0)),
        (true, 16) => Box::new(|span, index| span.load_element_u16(index).map(|value| value == 0)),
        (true, 32) => Box::new(|span, index| span.load_element_u32(index).map(|value| value == 0)),
        (true, 64) => Box::new(|span, index| span.load_element_u64(index).map(|value| value == 0)),
        _ => return Err(Error::unimplemented(format!("expect_all_true knows integers of whole bytes and floats, not {element_type}"))),
    })
}

#[cold]
fn lost(index: u64) -> Error {
    Error::out_of_range(format!("element {index} lies outside of its buffer"))
}
