//! Buffer views and scalars as text, in the form of the field's tools.

use crate::float8::float8_to_f32;
use crate::number::{General, Letters};
use crate::view::TypeText;
use crate::{BufferView, Class, ElementType};
use half::{bf16, f16};
use std::fmt;
use vmfb_memory::Span;
use vmfb_vm::{Meter, Value};

/// Rows without elements that are printed before the rest is cut: a view of 2^40x0 elements takes no bytes but many brackets.
const EMPTY_ROWS: u64 = 1024;

/// As above, of rows whose elements lie beyond the limit of a text. The official tools print all of them.
const CUT_ROWS: u64 = 1 << 20;

/// Rows and elements that are printed between two looks at the clock: some 100 µs, or 1 ms where each row has 127 brackets.
const BETWEEN_POLLS: u32 = 1024;

/// A view as text: `2x2xi32=[1 2][3 4]`, with `...` in place of elements beyond a limit.
#[derive(Clone, Copy, Debug)]
pub struct ViewText<'a> {
    view: &'a BufferView,
    limit: u64,
    meter: Option<&'a Meter>,
}

impl<'a> ViewText<'a> {
    /// All elements.
    pub fn new(view: &'a BufferView) -> Self {
        Self::with_limit(view, u64::MAX)
    }

    /// At most `limit` elements.
    pub fn with_limit(view: &'a BufferView, limit: u64) -> Self {
        Self { view, limit, meter: None }
    }

    /// Cut off with `...` when the deadline passes or the computation is interrupted; [`Meter::poll`] then gives the reason.
    #[must_use]
    pub fn within(self, meter: &'a Meter) -> Self {
        Self { meter: Some(meter), ..self }
    }

    /// What printing costs in fuel: a unit for each element, and one for each bracket that may stand around it.
    pub fn cost(&self) -> u64 {
        let elements = match self.view.element_count() {
            Some(0) => EMPTY_ROWS,
            // Where elements are cut off, the brackets of their rows are printed all the same.
            count => count.unwrap_or(u64::MAX),
        };
        elements.saturating_mul(self.view.shape().len().max(1) as u64)
    }
}

impl fmt::Display for ViewText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (view, element_type) = (self.view, self.view.element_type());
        write!(f, "{}=", TypeText { shape: view.shape(), element_type })?;
        let span = view.buffer().span();
        let mut elements = Elements { span: &span, element_type, next: 0, left: self.limit, meter: self.meter, steps: 0, stopped: false };
        match Rows::new(view.shape()) {
            None => elements.write_row(f, 1),
            Some(mut rows) => rows.write(f, &mut elements),
        }
    }
}

/// A number as the tools print a result: `i32=7`, `f32=1.5e-07`; `None` for references.
pub fn format_scalar(value: &Value) -> Option<String> {
    Some(match value {
        Value::I32(value) => format!("i32={value}"),
        Value::I64(value) => format!("i64={value}"),
        Value::F32(value) => format!("f32={}", General::from_f32(*value, Letters::Lower)),
        Value::F64(value) => format!("f64={}", General(*value, Letters::Lower)),
        _ => return None,
    })
}

/// The rows of a view of rank 1 or more, in order.
struct Rows<'a> {
    /// Dimensions that get brackets: all but the last, up to the first that is zero.
    outer: &'a [u64],
    /// Elements of a row.
    length: u64,
    /// Index of the current row.
    index: Vec<u64>,
}

impl<'a> Rows<'a> {
    /// `None` for a scalar.
    fn new(shape: &'a [u64]) -> Option<Self> {
        let (last, outer) = shape.split_last()?;
        let (outer, length) = match shape.iter().position(|dimension| *dimension == 0) {
            Some(first_zero) => (shape.get(..first_zero)?, 0),
            None => (outer, *last),
        };
        Some(Self { outer, length, index: vec![0; outer.len()] })
    }

    fn write(&mut self, f: &mut fmt::Formatter<'_>, elements: &mut Elements<'_>) -> fmt::Result {
        let mut without_elements = 0;
        let most = if self.length == 0 { EMPTY_ROWS } else { CUT_ROWS };
        loop {
            if without_elements == most || !elements.goes_on() {
                return f.write_str("...");
            }
            without_elements += u64::from(self.length == 0 || elements.left == 0);
            // A dimension's bracket opens where all dimensions inside it stand at their first index, and closes at their last.
            let opened = 1 + self.index.iter().rev().take_while(|index| **index == 0).count();
            (0..opened.min(self.outer.len())).try_for_each(|_| f.write_str("["))?;
            elements.write_row(f, self.length)?;
            let closed = self.advance();
            (0..closed).try_for_each(|_| f.write_str("]"))?;
            if closed == self.outer.len() && self.index.first().is_none_or(|index| *index == 0) {
                return Ok(());
            }
            if elements.stopped {
                return Ok(());
            }
        }
    }

    /// Goes to the next row, after the last to the first; the number of brackets that close behind the current one.
    fn advance(&mut self) -> usize {
        let mut closed = 0;
        for (index, dimension) in self.index.iter_mut().zip(self.outer).rev() {
            closed += 1;
            *index += 1;
            if *index < *dimension {
                break;
            }
            *index = 0;
        }
        closed
    }
}

/// Elements that have not been printed.
struct Elements<'a> {
    span: &'a Span,
    element_type: ElementType,
    next: u64,
    left: u64,
    meter: Option<&'a Meter>,
    /// Rows and elements so far.
    steps: u32,
    /// Whether a limit of the meter was reached.
    stopped: bool,
}

impl Elements<'_> {
    fn write_row(&mut self, f: &mut fmt::Formatter<'_>, length: u64) -> fmt::Result {
        let shown = length.min(self.left);
        self.left -= shown;
        for position in 0..shown {
            if position > 0 {
                f.write_str(" ")?;
            }
            if !self.goes_on() {
                return f.write_str("...");
            }
            self.write_element(f, self.next)?;
            self.next += 1;
        }
        if shown < length { f.write_str("...") } else { Ok(()) }
    }

    /// Before each row and each element: whether to go on. Looks at the clock once in a while.
    fn goes_on(&mut self) -> bool {
        self.steps = self.steps.wrapping_add(1);
        if let Some(meter) = self.meter
            && self.steps.is_multiple_of(BETWEEN_POLLS)
        {
            self.stopped |= meter.poll().is_err();
        }
        !self.stopped
    }

    fn write_element(&self, f: &mut fmt::Formatter<'_>, index: u64) -> fmt::Result {
        let (class, width) = (self.element_type.class(), self.element_type.bits());
        let upper = |f: &mut fmt::Formatter<'_>, value: f64| fmt::Display::fmt(&General(value, Letters::Upper), f);
        // The tools widen small floats by a conversion that drops the sign of NaN.
        let widened = |f: &mut fmt::Formatter<'_>, value: f32| upper(f, if value.is_nan() { f64::NAN.copysign(1.0) } else { value.into() });
        match (class, width) {
            (Some(Class::Float), 64) => upper(f, f64::from_bits(self.bits(index, 0, 64))),
            (Some(Class::Float), 32) => {
                let value = f32::from_bits(self.bits(index, 0, 32) as u32);
                fmt::Display::fmt(&General::from_f32(value, Letters::Upper), f)
            }
            (Some(Class::Float), 16) => widened(f, f16::from_bits(self.bits(index, 0, 16) as u16).into()),
            (Some(Class::BrainFloat), 16) => widened(f, bf16::from_bits(self.bits(index, 0, 16) as u16).into()),
            (Some(Class::Integer | Class::SignedInteger), 1..=64) => {
                let unused = 64 - width;
                write!(f, "{}", ((self.bits(index, 0, width) << unused) as i64) >> unused)
            }
            (Some(Class::UnsignedInteger), 1..=64) => write!(f, "{}", self.bits(index, 0, width)),
            (Some(class), 8) => match float8_to_f32(class, self.bits(index, 0, 8) as u8) {
                Some(value) => widened(f, value),
                None => self.write_hex(f, index),
            },
            _ => self.write_hex(f, index),
        }
    }

    /// Two digits per byte, in the order of memory.
    fn write_hex(&self, f: &mut fmt::Formatter<'_>, index: u64) -> fmt::Result {
        let width = self.element_type.bits();
        (0..width).step_by(8).try_for_each(|first| write!(f, "{:02X}", self.bits(index, first, (width - first).min(8))))
    }

    /// `count` (at most 64) bits of an element from bit `first` on. A view holds all its elements, so that nothing is out of range.
    fn bits(&self, index: u64, first: usize, count: usize) -> u64 {
        let width = self.element_type.bits();
        let loaded = match (width, count) {
            (8, 8) => self.span.load_element_u8(index).map(u64::from),
            (16, 16) => self.span.load_element_u16(index).map(u64::from),
            (32, 32) => self.span.load_element_u32(index).map(u64::from),
            (64, 64) => self.span.load_element_u64(index),
            _ => self.packed_bits(u128::from(index) * width as u128 + first as u128, count),
        };
        loaded.unwrap_or_default()
    }

    /// Bits of a packed array; the first element has the lowest bits of the first byte.
    fn packed_bits(&self, first: u128, count: usize) -> Option<u64> {
        let (byte, shift) = (usize::try_from(first / 8).ok()?, (first % 8) as usize);
        let mut value = 0u128;
        for position in 0..(shift + count).div_ceil(8) {
            value |= u128::from(self.span.load_u8(byte.checked_add(position)?)?) << (8 * position);
        }
        Some((value >> shift) as u64 & (u64::MAX >> (64 - count)))
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
