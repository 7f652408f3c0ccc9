//! `buffer_view.assert`: what a program wants of a view that it was given.

use crate::view::TypeText;
use crate::{BufferView, ElementType, Encoding};
use std::fmt;
use vmfb_vm::{Error, Result};

/// What a view must be.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Element type; opaque views and integers of the same width pass as well.
    pub element_type: ElementType,
    /// Encoding; views that do not state theirs pass as well.
    pub encoding: Encoding,
    /// Dimensions as the program passes them.
    pub shape: &'a [i64],
}

/// Fails with INVALID_ARGUMENT if a view is not what a program expects: encoding first, then element type, rank and dimensions.
/// `label` says which view this is, and is only asked then.
pub fn assert_view(view: &BufferView, expected: &Expected<'_>, label: impl FnOnce() -> String) -> Result<()> {
    match difference(view, expected) {
        None => Ok(()),
        Some(difference) => Err(refused(view, expected, difference, label())),
    }
}

/// The first way in which a view is not what is expected.
enum Difference {
    Encoding,
    ElementType,
    Rank,
    Dimension(usize),
}

fn difference(view: &BufferView, expected: &Expected<'_>) -> Option<Difference> {
    let encoding = view.encoding();
    if encoding != Encoding::OPAQUE && encoding != expected.encoding {
        return Some(Difference::Encoding);
    }
    if !view.element_type().may_stand_for(expected.element_type) {
        return Some(Difference::ElementType);
    }
    if view.shape().len() != expected.shape.len() {
        return Some(Difference::Rank);
    }
    let differs = |(found, wanted): (&u64, &i64)| *found != *wanted as u64;
    view.shape().iter().zip(expected.shape).position(differs).map(Difference::Dimension)
}

#[cold]
fn refused(view: &BufferView, expected: &Expected<'_>, difference: Difference, label: String) -> Error {
    let shapes = || {
        let wanted = ExpectedText(expected);
        format!("it is {}, wanted {wanted}", TypeText { shape: view.shape(), element_type: view.element_type() })
    };
    Error::invalid(match difference {
        Difference::Encoding => format!("{label}: the encoding is {:#x}, wanted {:#x}", view.encoding().0, expected.encoding.0),
        Difference::ElementType => format!("{label}: the element type is {}, wanted {}", view.element_type(), expected.element_type),
        Difference::Rank => {
            let (found, wanted) = (rank(view.shape().len()), rank(expected.shape.len()));
            format!("{label}: the rank is {found}, wanted {wanted}; {}", shapes())
        }
        Difference::Dimension(index) => {
            let at = |shape: Option<String>| shape.unwrap_or_default();
            let found = at(view.shape().get(index).map(u64::to_string));
            let wanted = at(expected.shape.get(index).map(i64::to_string));
            format!("{label}: dimension {index} is {found}, wanted {wanted}; {}", shapes())
        }
    })
}

fn rank(rank: usize) -> String {
    if rank == 0 { "0 (a scalar)".to_owned() } else { rank.to_string() }
}

/// Shape and type that are expected.
struct ExpectedText<'a>(&'a Expected<'a>);

impl fmt::Display for ExpectedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.shape.iter().try_for_each(|dimension| write!(f, "{dimension}x"))?;
        write!(f, "{}", self.0.element_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmfb_vm::Status;

    fn view(shape: &[u64], element_type: ElementType, encoding: Encoding) -> BufferView {
        let bytes = element_type.bytes_of(shape.iter().product()).unwrap();
        let dense = BufferView::from_bytes(shape, element_type, &vec![0; bytes as usize]).unwrap();
        BufferView::new(dense.buffer().clone(), shape, element_type, encoding).unwrap()
    }

    fn check(view: &BufferView, shape: &[i64], element_type: ElementType, encoding: Encoding) -> Result<()> {
        assert_view(view, &Expected { element_type, encoding, shape }, || "input0".to_owned())
    }

    fn message(view: &BufferView, shape: &[i64], element_type: ElementType) -> String {
        let error = check(view, shape, element_type, Encoding::DENSE).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument);
        error.message().to_owned()
    }

    #[test]
    fn what_fits_passes() {
        let dense = view(&[2, 3], ElementType::I32, Encoding::DENSE);
        for element_type in [ElementType::I32, ElementType::SI32, ElementType::UI32] {
            assert!(check(&dense, &[2, 3], element_type, Encoding::DENSE).is_ok());
        }
        let boolean = view(&[2], ElementType::I1, Encoding::DENSE);
        assert!(check(&boolean, &[2], ElementType::I8, Encoding::DENSE).is_ok());
        let opaque = view(&[2], ElementType(0x20), Encoding::OPAQUE);
        assert!(check(&opaque, &[2], ElementType::F64, Encoding(7)).is_ok());
        let scalar = view(&[], ElementType::F32, Encoding::DENSE);
        assert!(check(&scalar, &[], ElementType::F32, Encoding::DENSE).is_ok());
    }

    #[test]
    fn a_refusal_says_what_was_found_and_wanted() {
        let found = view(&[2, 3], ElementType::F64, Encoding::DENSE);
        assert_eq!(message(&found, &[2, 3], ElementType::F32), "input0: the element type is f64, wanted f32");
        let shapes = "; it is 2x3xf64, wanted 2x4xf64";
        assert_eq!(message(&found, &[2, 4], ElementType::F64), format!("input0: dimension 1 is 3, wanted 4{shapes}"));
        assert_eq!(message(&found, &[], ElementType::F64), "input0: the rank is 2, wanted 0 (a scalar); it is 2x3xf64, wanted f64");
        assert_eq!(message(&found, &[2, -3], ElementType::F64), "input0: dimension 1 is 3, wanted -3; it is 2x3xf64, wanted 2x-3xf64");
        let odd = view(&[2], ElementType::F32, Encoding(2));
        assert_eq!(message(&odd, &[2], ElementType::F32), "input0: the encoding is 0x2, wanted 0x1");
    }

    #[test]
    fn the_first_difference_is_reported() {
        let found = view(&[2, 3], ElementType::F64, Encoding(2));
        assert!(message(&found, &[9], ElementType::F32).contains("encoding"));
        let found = view(&[2, 3], ElementType::F64, Encoding::DENSE);
        assert!(message(&found, &[9], ElementType::F32).contains("element type"));
        assert!(message(&found, &[9], ElementType::F64).contains("rank"));
        assert!(message(&found, &[9, 9], ElementType::F64).contains("dimension 0"));
    }
}
