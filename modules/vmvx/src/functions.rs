//! The table of functions, and how their arguments are read.

use crate::State;
use crate::elementwise::{binary, divide_signed, divide_unsigned, each_float, fill, floats, integers, unary};
use crate::flags::{self, Age, ElementSize, ProductType};
use crate::matmul::Matmul;
use crate::matrix::{Element, Matrix, Placement, Shape};
use crate::mmt4d::{Bytes, Floats, Kind, Mmt4d, Start};
use crate::pack::{self, Operand, Tiling};
use vmfb_vm::{Arguments, Buffer, Call, NativeFunction, Result, ResultExt};

type Body = fn(&mut Call<'_, State>) -> Result<()>;

const UNARY: &str = "0rIIIrIIIII_v";
const BINARY: &str = "0rIIIrIIIrIIIII_v";
const MMT4D: &str = "0rIIrIIrIIIIIiiii_v";
const MATMUL: &str = "0rIIrIIrIIIIIi_v";

/// Every function in every signature: name, calling convention, body.
#[rustfmt::skip]
const FUNCTIONS: &[(&str, &str, Body)] = &[
    ("add.2d.f32",  BINARY, |call| call_binary(call, floats(|a, b| a + b))),
    ("sub.2d.f32",  BINARY, |call| call_binary(call, floats(|a, b| a - b))),
    ("mul.2d.f32",  BINARY, |call| call_binary(call, floats(|a, b| a * b))),
    ("div.2d.f32",  BINARY, |call| call_binary(call, floats(|a, b| a / b))),
    ("add.2d.i32",  BINARY, |call| call_binary(call, integers(u32::wrapping_add))),
    ("sub.2d.i32",  BINARY, |call| call_binary(call, integers(u32::wrapping_sub))),
    ("mul.2d.i32",  BINARY, |call| call_binary(call, integers(u32::wrapping_mul))),
    ("divs.2d.i32", BINARY, |call| call_binary(call, divide_signed)),
    ("divu.2d.i32", BINARY, |call| call_binary(call, divide_unsigned)),
    ("and.2d.i32",  BINARY, |call| call_binary(call, integers(|a, b| a & b))),
    ("or.2d.i32",   BINARY, |call| call_binary(call, integers(|a, b| a | b))),
    ("xor.2d.i32",  BINARY, |call| call_binary(call, integers(|a, b| a ^ b))),
    // The low five bits of the count are used, as processors do it.
    ("shl.2d.i32",  BINARY, |call| call_binary(call, integers(u32::wrapping_shl))),
    ("shrs.2d.i32", BINARY, |call| call_binary(call, integers(|a, b| (a as i32).wrapping_shr(b) as u32))),
    ("shru.2d.i32", BINARY, |call| call_binary(call, integers(u32::wrapping_shr))),

    ("abs.2d.f32",   UNARY, |call| call_unary(call, each_float(f32::abs))),
    ("ceil.2d.f32",  UNARY, |call| call_unary(call, each_float(f32::ceil))),
    ("exp.2d.f32",   UNARY, |call| call_unary(call, each_float(f32::exp))),
    ("floor.2d.f32", UNARY, |call| call_unary(call, each_float(f32::floor))),
    ("log.2d.f32",   UNARY, |call| call_unary(call, each_float(f32::ln))),
    ("neg.2d.f32",   UNARY, |call| call_unary(call, each_float(|a| -a))),
    ("rsqrt.2d.f32", UNARY, |call| call_unary(call, each_float(|a| 1.0 / a.sqrt()))),
    ("ctlz.2d.i32",  UNARY, |call| call_unary(call, |values: &mut [u32]| values.iter_mut().for_each(|a| *a = a.leading_zeros()))),

    ("copy.2d.x8",  UNARY, |call| call_unary(call, |_: &mut [u8]| ())),
    ("copy.2d.x16", UNARY, |call| call_unary(call, |_: &mut [u16]| ())),
    ("copy.2d.x32", UNARY, |call| call_unary(call, |_: &mut [u32]| ())),
    ("copy.2d.x64", UNARY, |call| call_unary(call, |_: &mut [u64]| ())),
    ("fill.2d.x32", "0irIIII_v", call_fill),

    ("query_tile_sizes.2d", "0IIi_II", call_query_tile_sizes),

    ("mmt4d",           MMT4D, |call| call_mmt4d(call, flags::product)),
    ("mmt4d.f32f32f32", MMT4D, |call| call_mmt4d(call, |flags| Ok((ProductType::Floats, flags::typed_product(flags)?)))),
    ("mmt4d.i8i8i32",   MMT4D, |call| call_mmt4d(call, |flags| Ok((ProductType::Bytes, flags::typed_product(flags)?)))),
    ("matmul.f32f32f32", MATMUL, |call| call_matmul::<Floats>(call)),
    ("matmul.i8i8i32",   MATMUL, |call| call_matmul::<Bytes>(call)),

    ("pack", "0rIIIrIIIIIIIIIIi_v", |call| call_pack(call, InnerStrides::Given)),
    ("pack", "0rIIrIIIIIIIIIi_v",   |call| call_pack(call, InnerStrides::One)),
    ("pack.f32f32", "0rIIrIIIIIIIIfi_v", |call| call_typed_pack(call, ElementSize::Four)),
    ("pack.i32i32", "0rIIrIIIIIIIIii_v", |call| call_typed_pack(call, ElementSize::Four)),
    ("pack.i8i8",   "0rIIrIIIIIIIIii_v", |call| call_typed_pack(call, ElementSize::One)),

    ("unpack", "0rIIIrIIIIIIIIIi_v", |call| call_unpack(call, InnerStrides::Given)),
    ("unpack", "0rIIrIIIIIIIIi_v",   |call| call_unpack(call, InnerStrides::One)),
    ("unpack.f32f32", "0rIIrIIIIIIIIi_v", |call| call_typed_unpack(call, ElementSize::Four)),
    ("unpack.i32i32", "0rIIrIIIIIIIIi_v", |call| call_typed_unpack(call, ElementSize::Four)),
    ("unpack.i8i8",   "0rIIrIIIIIIIIi_v", |call| call_typed_unpack(call, ElementSize::One)),
];

/// All functions of the module.
pub(crate) fn all() -> Vec<NativeFunction<State>> {
    let function = |(name, convention, body): &(&'static str, &'static str, Body)| {
        let (name, body) = (*name, *body);
        NativeFunction::new(name, *convention, move |call| body(call).context(|| format!("in vmvx.{name}")))
    };
    FUNCTIONS.iter().map(function).collect()
}

/// Whether inner strides are among the arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InnerStrides {
    Given,
    One,
}

fn call_unary<T: Element>(call: &mut Call<'_, State>, apply: impl Fn(&mut [T])) -> Result<()> {
    let input = operand(&mut call.arguments, "the input", InnerStrides::Given)?;
    let output = operand(&mut call.arguments, "the output", InnerStrides::Given)?;
    let shape = shape(&mut call.arguments)?;
    let input = Matrix::input(input.buffer, input.placement, shape, "the input")?;
    let output = Matrix::output(output.buffer, output.placement, shape, "the output")?;
    unary(&mut call.context.meter, shape, input, output, apply)
}

fn call_binary(call: &mut Call<'_, State>, apply: impl Fn(&mut [u32], &[u32]) -> Result<()>) -> Result<()> {
    let left = operand(&mut call.arguments, "the left operand", InnerStrides::Given)?;
    let right = operand(&mut call.arguments, "the right operand", InnerStrides::Given)?;
    let output = operand(&mut call.arguments, "the output", InnerStrides::Given)?;
    let shape = shape(&mut call.arguments)?;
    let left = Matrix::input(left.buffer, left.placement, shape, "the left operand")?;
    let right = Matrix::input(right.buffer, right.placement, shape, "the right operand")?;
    let output = Matrix::output(output.buffer, output.placement, shape, "the output")?;
    binary(&mut call.context.meter, shape, [left, right], output, apply)
}

fn call_fill(call: &mut Call<'_, State>) -> Result<()> {
    let value = call.arguments.u32()?;
    let output = operand(&mut call.arguments, "the output", InnerStrides::One)?;
    let shape = shape(&mut call.arguments)?;
    let output = Matrix::output(output.buffer, output.placement, shape, "the output")?;
    fill(&mut call.context.meter, shape, output, value)
}

fn call_query_tile_sizes(call: &mut Call<'_, State>) -> Result<()> {
    let _sizes: [i64; 2] = integers_of(&mut call.arguments)?;
    for size in flags::tile_sizes(call.arguments.u32()?)? {
        call.results.push_i64(size);
    }
    Ok(())
}

fn call_mmt4d(call: &mut Call<'_, State>, read: impl Fn(u32) -> Result<(ProductType, Start)>) -> Result<()> {
    let (buffers, offsets, row_strides) = factors(&mut call.arguments)?;
    let sizes = integers_of(&mut call.arguments)?;
    let tile = [call.arguments.i32()?, call.arguments.i32()?, call.arguments.i32()?];
    let (product, start) = read(call.arguments.u32()?)?;
    let mmt4d = Mmt4d { buffers, offsets, row_strides, sizes, tile, start };
    let State { kernels, scratch } = &mut *call.state;
    match product {
        ProductType::Floats => mmt4d.run::<Floats>(&mut call.context.meter, kernels, scratch),
        ProductType::Bytes => mmt4d.run::<Bytes>(&mut call.context.meter, kernels, scratch),
    }
}

fn call_matmul<K: Kind>(call: &mut Call<'_, State>) -> Result<()> {
    let (buffers, offsets, row_strides) = factors(&mut call.arguments)?;
    let sizes = integers_of(&mut call.arguments)?;
    let start = flags::typed_product(call.arguments.u32()?)?;
    Matmul { buffers, offsets, row_strides, sizes, start }.run(&mut call.context.meter, K::add)
}

fn call_pack(call: &mut Call<'_, State>, strides: InnerStrides) -> Result<()> {
    let (input, output) = matrix_and_tiles(&mut call.arguments, strides)?;
    let shape = shape(&mut call.arguments)?;
    let sizes = integers_of(&mut call.arguments)?;
    let padding = call.arguments.u64()? as u32;
    let flags = call.arguments.u32()?;
    run_pack(call, input, output, shape, sizes, padding, flags, flags::packed_element(flags)?, Age::TypedFlags)
}

fn call_typed_pack(call: &mut Call<'_, State>, element: ElementSize) -> Result<()> {
    let (input, output) = matrix_and_tiles(&mut call.arguments, InnerStrides::One)?;
    let shape = shape(&mut call.arguments)?;
    let sizes = integers_of(&mut call.arguments)?;
    // An f32 travels as its bits.
    let padding = call.arguments.u32()?;
    let flags = call.arguments.u32()?;
    run_pack(call, input, output, shape, sizes, padding, flags, element, Age::TypedNames)
}

#[expect(clippy::too_many_arguments, reason = "these are the arguments of the function that is called")]
fn run_pack(
    call: &mut Call<'_, State>,
    input: Operand<'_>,
    output: Operand<'_>,
    shape: Shape,
    sizes: [i64; 4],
    padding: u32,
    flags: u32,
    element: ElementSize,
    age: Age,
) -> Result<()> {
    let [outer, inner] = flags::orders(flags, age)?;
    let tiling = Tiling::new(sizes, outer, inner)?;
    let meter = &mut call.context.meter;
    match element {
        ElementSize::One => pack::pack(meter, input, output, shape, &tiling, padding as u8),
        ElementSize::Four => pack::pack(meter, input, output, shape, &tiling, padding),
    }
}

fn call_unpack(call: &mut Call<'_, State>, strides: InnerStrides) -> Result<()> {
    let (input, output) = matrix_and_tiles(&mut call.arguments, strides)?;
    let sizes = integers_of(&mut call.arguments)?;
    let shape = shape(&mut call.arguments)?;
    let flags = call.arguments.u32()?;
    run_unpack(call, input, output, shape, sizes, flags, flags::unpacked_element(flags)?, Age::TypedFlags)
}

fn call_typed_unpack(call: &mut Call<'_, State>, element: ElementSize) -> Result<()> {
    let (input, output) = matrix_and_tiles(&mut call.arguments, InnerStrides::One)?;
    let sizes = integers_of(&mut call.arguments)?;
    let shape = shape(&mut call.arguments)?;
    let flags = call.arguments.u32()?;
    run_unpack(call, input, output, shape, sizes, flags, element, Age::TypedNames)
}

#[expect(clippy::too_many_arguments, reason = "these are the arguments of the function that is called")]
fn run_unpack(
    call: &mut Call<'_, State>,
    input: Operand<'_>,
    output: Operand<'_>,
    shape: Shape,
    sizes: [i64; 4],
    flags: u32,
    element: ElementSize,
    age: Age,
) -> Result<()> {
    let [outer, inner] = flags::orders(flags, age)?;
    let tiling = Tiling::new(sizes, outer, inner)?;
    let meter = &mut call.context.meter;
    match element {
        ElementSize::One => pack::unpack::<u8>(meter, input, output, shape, &tiling),
        ElementSize::Four => pack::unpack::<u32>(meter, input, output, shape, &tiling),
    }
}

/// The buffers of `pack` and `unpack`.
fn matrix_and_tiles<'a>(arguments: &mut Arguments<'a>, strides: InnerStrides) -> Result<(Operand<'a>, Operand<'a>)> {
    Ok((operand(arguments, "the input", strides)?, operand(arguments, "the output", strides)?))
}

/// A buffer, an offset, and strides.
fn operand<'a>(arguments: &mut Arguments<'a>, what: &str, strides: InnerStrides) -> Result<Operand<'a>> {
    let buffer = arguments.buffer(what)?;
    let offset = arguments.i64()?;
    let outer = arguments.i64()?;
    let inner = if strides == InnerStrides::Given { arguments.i64()? } else { 1 };
    Ok(Operand { buffer, placement: Placement { offset, strides: [outer, inner] } })
}

/// Buffers, offsets and row strides of two factors and a result.
type Factors<'a> = ([&'a Buffer; 3], [i64; 3], [i64; 3]);

fn factors<'a>(arguments: &mut Arguments<'a>) -> Result<Factors<'a>> {
    let left = operand(arguments, "the left factor", InnerStrides::One)?;
    let right = operand(arguments, "the right factor", InnerStrides::One)?;
    let output = operand(arguments, "the result", InnerStrides::One)?;
    let all = [left, right, output];
    Ok((all.map(|it| it.buffer), all.map(|it| it.placement.offset), all.map(|it| it.placement.strides[0])))
}

fn shape(arguments: &mut Arguments<'_>) -> Result<Shape> {
    let [rows, columns] = integers_of(arguments)?;
    Shape::new(rows, columns)
}

fn integers_of<const N: usize>(arguments: &mut Arguments<'_>) -> Result<[i64; N]> {
    let mut values = [0; N];
    for value in &mut values {
        *value = arguments.i64()?;
    }
    Ok(values)
}
