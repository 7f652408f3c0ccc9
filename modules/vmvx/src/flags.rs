//! The flag words of `mmt4d`, `matmul`, `pack`, `unpack` and `query_tile_sizes`. Their bits changed with the functions.

use crate::mmt4d::Start;
use crate::pack::Order;
use vmfb_vm::{Error, Result};

/// Which bits a function uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// Functions with types in their names, up to 2023-04: no types in the flags, low bits shared by all functions, others from bit 16.
    TypedNames,
    /// One function for all types: type in the low byte, other bits from bit 8. Bits without a meaning are ignored.
    TypedFlags,
}

/// Element types of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProductType {
    /// f32 · f32 → f32.
    Floats,
    /// s8 · s8 → s32.
    Bytes,
}

/// Size of the elements that are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementSize {
    /// One byte.
    One,
    /// Four bytes.
    Four,
}

/// What `mmt4d` is asked for.
pub(crate) fn product(flags: u32) -> Result<(ProductType, Start)> {
    let kind = match flags & 0xFF {
        1 => ProductType::Floats,
        2 => ProductType::Bytes,
        other => return Err(unknown_type(other, flags, "1 (f32) or 2 (s8 to s32)")),
    };
    Ok((kind, if flags & 0x100 != 0 { Start::Accumulate } else { Start::Zero }))
}

/// What functions with types in their names are asked for.
pub(crate) fn typed_product(flags: u32) -> Result<Start> {
    match flags {
        0 => Ok(Start::Zero),
        1 => Ok(Start::Accumulate),
        _ => Err(Error::invalid(format!("flags {flags:#x}, wanted 0 or 1 (accumulate)"))),
    }
}

/// Element size of `pack`.
pub(crate) fn packed_element(flags: u32) -> Result<ElementSize> {
    match flags & 0xFF {
        1 | 3 => Ok(ElementSize::Four),
        2 => Ok(ElementSize::One),
        other => Err(unknown_type(other, flags, "1 (f32), 2 (i8) or 3 (i32)")),
    }
}

/// Element size of `unpack`. Up to 2023-06 the code of i32 was 2, since then it is 3, as for `pack`; i8 was never possible.
pub(crate) fn unpacked_element(flags: u32) -> Result<ElementSize> {
    match flags & 0xFF {
        1..=3 => Ok(ElementSize::Four),
        other => Err(unknown_type(other, flags, "1 (f32) or 3 (i32)")),
    }
}

/// Order of tiles, and order of elements in tiles.
pub(crate) fn orders(flags: u32, age: Age) -> Result<[Order; 2]> {
    let (inner, outer) = match age {
        Age::TypedNames => (0x1_0000, 0x2_0000),
        Age::TypedFlags => (0x100, 0x200),
    };
    if age == Age::TypedNames && flags & !(inner | outer) != 0 {
        return Err(Error::invalid(format!("flags {flags:#x}, wanted no bits but {inner:#x} and {outer:#x} (transpose)")));
    }
    let order = |bit: u32| if flags & bit != 0 { Order::Columns } else { Order::Rows };
    Ok([order(outer), order(inner)])
}

/// Tile sizes for one operand of a product. Packing and products read the answer when they run, so any is right on which all
/// operands agree.
pub(crate) fn tile_sizes(flags: u32) -> Result<[i64; 2]> {
    const ROWS: i64 = 8;
    const COLUMNS: i64 = 8;
    const TERMS: i64 = 4;
    if flags & 0xFFFF == 0 {
        // Bits 16 to 19 are the operand, those above the operation, up to 2023-04. The numbers of the operands changed on
        // the way, so every operand gets the same square tile.
        return match (flags >> 20, flags >> 16 & 0xF) {
            (0 | 1, 0..=3) => Ok([ROWS, COLUMNS]),
            (operation, operand) => {
                Err(Error::invalid(format!("flags {flags:#x} ask for operand {operand} of operation {operation}, wanted 0 to 3 of 0 or 1")))
            }
        };
    }
    match (flags >> 8 & 0xFF, flags & 0xFF) {
        (1..=6, 1) => Ok([ROWS, TERMS]),
        (1..=6, 2) => Ok([COLUMNS, TERMS]),
        (1..=6, 3) => Ok([ROWS, COLUMNS]),
        (operation, operand) => {
            Err(Error::invalid(format!("flags {flags:#x} ask for operand {operand} of operation {operation}, wanted 1 to 3 of 1 to 6")))
        }
    }
}

#[cold]
fn unknown_type(found: u32, flags: u32, wanted: &str) -> Error {
    Error::invalid(format!("element type {found} in flags {flags:#x}, wanted {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmfb_vm::Status;

    /// Flag words as compilers of 2023-05 and later write them.
    #[test]
    fn flags_with_types() {
        assert_eq!(product(0x1).unwrap(), (ProductType::Floats, Start::Zero));
        assert_eq!(product(0x701).unwrap(), (ProductType::Floats, Start::Accumulate));
        assert_eq!(product(0x102).unwrap(), (ProductType::Bytes, Start::Accumulate));
        assert_eq!(packed_element(0x103).unwrap(), ElementSize::Four);
        assert_eq!(packed_element(0x2).unwrap(), ElementSize::One);
        assert_eq!(unpacked_element(0x2).unwrap(), ElementSize::Four);
        assert_eq!(orders(0x101, Age::TypedFlags).unwrap(), [Order::Rows, Order::Columns]);
        assert_eq!(orders(0x203, Age::TypedFlags).unwrap(), [Order::Columns, Order::Rows]);
    }

    /// Flag words as compilers of 2023-02 and 2023-03 write them.
    #[test]
    fn flags_of_functions_with_types_in_their_names() {
        assert_eq!(typed_product(1).unwrap(), Start::Accumulate);
        assert_eq!(orders(0x3_0000, Age::TypedNames).unwrap(), [Order::Columns, Order::Columns]);
        assert_eq!(orders(0, Age::TypedNames).unwrap(), [Order::Rows, Order::Rows]);
    }

    #[test]
    fn unknown_types_and_bits_are_invalid_arguments() {
        let errors = [
            product(0x100).unwrap_err(),
            product(0x3).unwrap_err(),
            packed_element(0x4).unwrap_err(),
            unpacked_element(0x5).unwrap_err(),
            typed_product(2).unwrap_err(),
            orders(0x100, Age::TypedNames).unwrap_err(),
            tile_sizes(0x700 | 1).unwrap_err(),
            tile_sizes(0x104).unwrap_err(),
            tile_sizes(0x20_0000).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.status(), Status::InvalidArgument, "{error}");
        }
    }

    /// The columns of both factors must be cut alike, and the result like their rows.
    #[test]
    fn operands_of_one_operation_agree_on_tile_sizes() {
        for operation in 1..=6 {
            let [left, right, result] = [1, 2, 3].map(|operand| tile_sizes(operation << 8 | operand).unwrap());
            assert_eq!((left[1], result), (right[1], [left[0], right[0]]));
        }
        for operation in 0..2 {
            let all: Vec<_> = (0..4).map(|operand| tile_sizes(operation << 20 | operand << 16).unwrap()).collect();
            assert!(all.iter().all(|sizes| *sizes == [8, 8]));
        }
    }
}
