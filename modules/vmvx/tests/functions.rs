//! Every function of the module, called from bytecode in every signature that a compiler ever wrote.

mod support;

use std::collections::BTreeMap;
use support::forwarder;
use vmfb_memory::{MemoryAccount, Span};
use vmfb_module_vmvx::Vmvx;
use vmfb_vm::{Buffer, Engine, Linker, Module, Origin, Result, Status, Store, Value};

const BINARY: &str = "0rIIIrIIIrIIIII_v";
const UNARY: &str = "0rIIIrIIIII_v";
const MMT4D: &str = "0rIIrIIrIIIIIiiii_v";
const MATMUL: &str = "0rIIrIIrIIIIIi_v";
const PACK: &str = "0rIIIrIIIIIIIIIIi_v";
const OLD_PACK: &str = "0rIIrIIIIIIIIIi_v";
const UNPACK: &str = "0rIIIrIIIIIIIIIi_v";
const OLD_UNPACK: &str = "0rIIrIIIIIIIIi_v";

fn call(name: &str, convention: &str, arguments: &[Value]) -> Result<Vec<Value>> {
    let engine = Engine::default();
    let module = Module::new(&engine, forwarder(name, convention))?;
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new();
    linker.add_native(Vmvx::new())?;
    let instance = linker.instantiate(&mut store, &module)?;
    instance.function(&store, "run")?.call(&mut store, arguments)
}

trait Number: Copy {
    const SIZE: usize;
    fn write(self, bytes: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            const SIZE: usize = size_of::<Self>();
            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}

number!(i8, u16, u32, i32, u64, f32);

fn buffer<T: Number>(values: &[T]) -> Buffer {
    let mut bytes = Vec::new();
    values.iter().for_each(|value| value.write(&mut bytes));
    Buffer::new(Span::copy_of(&bytes, &MemoryAccount::default()).unwrap(), Origin::Host)
}

fn content<T: Number>(buffer: &Buffer) -> Vec<T> {
    buffer.span().to_vec().unwrap().chunks_exact(T::SIZE).map(T::read).collect()
}

/// Arguments in a row; numbers are i64 unless they are given as another value.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { [$(Value::from($argument)),*] };
}

fn binary<T: Number>(name: &str, left: &[T], right: &[T]) -> Vec<T> {
    let (columns, output) = (left.len() as i64, buffer(&vec![T::read(&[0; 8][..T::SIZE]); left.len()]));
    let (left, right) = (buffer(left), buffer(right));
    let arguments = arguments![left, 0i64, columns, 1i64, right, 0i64, columns, 1i64, output.clone(), 0i64, columns, 1i64, 1i64, columns];
    call(name, BINARY, &arguments).unwrap();
    content(&output)
}

fn unary<T: Number>(name: &str, input: &[T]) -> Vec<T> {
    let (columns, output) = (input.len() as i64, buffer(&vec![T::read(&[0; 8][..T::SIZE]); input.len()]));
    let arguments = arguments![buffer(input), 0i64, columns, 1i64, output.clone(), 0i64, columns, 1i64, 1i64, columns];
    call(name, UNARY, &arguments).unwrap();
    content(&output)
}

#[test]
fn functions_of_two_floats() {
    let (a, b) = ([1.5f32, -2.0, 0.0, f32::INFINITY], [0.25f32, 8.0, -0.0, f32::INFINITY]);
    assert_eq!(binary("add.2d.f32", &a, &b), [1.75, 6.0, 0.0, f32::INFINITY]);
    assert_eq!(binary("sub.2d.f32", &a, &b)[..3], [1.25, -10.0, 0.0]);
    assert!(binary("sub.2d.f32", &a, &b)[3].is_nan());
    assert_eq!(binary("mul.2d.f32", &a, &b), [0.375, -16.0, -0.0, f32::INFINITY]);
    assert_eq!(binary("div.2d.f32", &a, &b)[..2], [6.0, -0.25]);
    assert!(binary("div.2d.f32", &a, &b)[2..].iter().all(|value| value.is_nan()));
}

#[test]
fn functions_of_two_integers() {
    let (a, b) = ([7, -7, i32::MAX, i32::MIN], [2, 2, 1, 31]);
    assert_eq!(binary("add.2d.i32", &a, &b), [9, -5, i32::MIN, i32::MIN + 31]);
    assert_eq!(binary("sub.2d.i32", &a, &b), [5, -9, i32::MAX - 1, i32::MAX - 30]);
    assert_eq!(binary("mul.2d.i32", &a, &b), [14, -14, i32::MAX, i32::MIN]);
    assert_eq!(binary("divs.2d.i32", &a, &b), [3, -3, i32::MAX, -69_273_666]);
    assert_eq!(binary("divu.2d.i32", &a, &b), [3, 2_147_483_644, i32::MAX, 69_273_666]);
    assert_eq!(binary("and.2d.i32", &a, &b), [2, 0, 1, 0]);
    assert_eq!(binary("or.2d.i32", &a, &b), [7, -5, i32::MAX, i32::MIN + 31]);
    assert_eq!(binary("xor.2d.i32", &a, &b), [5, -5, i32::MAX - 1, i32::MIN + 31]);
    // Counts from 32 on are masked, as processors do it.
    let (a, b) = ([1, -8, -8, 3], [31, 1, 33, 32]);
    assert_eq!(binary("shl.2d.i32", &a, &b), [i32::MIN, -16, -16, 3]);
    assert_eq!(binary("shrs.2d.i32", &a, &b), [0, -4, -4, 3]);
    assert_eq!(binary("shru.2d.i32", &a, &b), [0, 0x7FFF_FFFC, 0x7FFF_FFFC, 3]);
}

#[test]
fn functions_of_one_float() {
    let values = [-1.5f32, 2.25, 0.0, 100.0];
    assert_eq!(unary("abs.2d.f32", &values), [1.5, 2.25, 0.0, 100.0]);
    assert_eq!(unary("ceil.2d.f32", &values), [-1.0, 3.0, 0.0, 100.0]);
    assert_eq!(unary("floor.2d.f32", &values), [-2.0, 2.0, 0.0, 100.0]);
    assert_eq!(unary("neg.2d.f32", &values), [1.5, -2.25, -0.0, -100.0]);
    let near = |found: Vec<f32>, wanted: [f64; 4]| {
        for (found, wanted) in found.into_iter().zip(wanted) {
            let error = (f64::from(found) - wanted).abs();
            assert!(f64::from(found) == wanted || error <= 2.0 * wanted.abs() * f64::from(f32::EPSILON), "{found} is not {wanted}");
        }
    };
    // Computed with 50 digits.
    near(unary("exp.2d.f32", &values), [0.223_130_160_148_429_83, 9.487_735_836_358_526, 1.0, f64::INFINITY]);
    near(
        unary("exp.2d.f32", &[-80.0, 1.0, 88.0, 10.0]),
        [1.804_851_387_845_415_3e-35, std::f64::consts::E, 1.651_636_254_994_002e38, 22_026.465_794_806_718],
    );
    near(
        unary("log.2d.f32", &[0.5, 2.25, 0.0, 100.0]),
        [-std::f64::consts::LN_2, 0.810_930_216_216_328_8, f64::NEG_INFINITY, 4.605_170_185_988_092],
    );
    near(unary("rsqrt.2d.f32", &[0.25, 2.25, 0.0, 100.0]), [2.0, 2.0 / 3.0, f64::INFINITY, 0.1]);
    assert!(unary("log.2d.f32", &values)[0].is_nan());
    assert!(unary("rsqrt.2d.f32", &values)[0].is_nan());
}

#[test]
fn leading_zeros_of_zero_are_32() {
    assert_eq!(unary("ctlz.2d.i32", &[0, 1, -1, 0x8000]), [32, 31, 0, 16]);
}

#[test]
fn copies_of_every_size() {
    assert_eq!(unary("copy.2d.x8", &[1i8, -2, 3]), [1, -2, 3]);
    assert_eq!(unary("copy.2d.x16", &[1u16, 0x1234, 3]), [1, 0x1234, 3]);
    assert_eq!(unary("copy.2d.x32", &[1u32, 0x1234_5678, 3]), [1, 0x1234_5678, 3]);
    assert_eq!(unary("copy.2d.x64", &[1u64, 0x1234_5678_9ABC_DEF0, 3]), [1, 0x1234_5678_9ABC_DEF0, 3]);
}

/// Offsets and strides are in the places where the compiler writes them: a 2 x 3 matrix out of the middle, transposed.
#[test]
fn offsets_and_strides_count_elements() {
    let input = buffer(&[0u32, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let output = buffer(&[99u32; 8]);
    let arguments = arguments![input.clone(), 1i64, 4i64, 1i64, output.clone(), 2i64, 1i64, 2i64, 2i64, 3i64];
    call("copy.2d.x32", UNARY, &arguments).unwrap();
    assert_eq!(content::<u32>(&output), [99, 99, 1, 5, 2, 6, 3, 7]);

    let other = buffer(&[100u32, 200]);
    let output = buffer(&[99u32; 8]);
    // The right operand is a column that is used for each of three columns.
    let arguments = arguments![input, 1i64, 4i64, 1i64, other, 0i64, 1i64, 0i64, output.clone(), 1i64, 4i64, 1i64, 2i64, 3i64];
    call("add.2d.i32", BINARY, &arguments).unwrap();
    assert_eq!(content::<u32>(&output), [99, 101, 102, 103, 99, 205, 206, 207]);
}

#[test]
fn fills() {
    let output = buffer(&[0u32; 8]);
    call("fill.2d.x32", "0irIIII_v", &arguments![7, output.clone(), 1i64, 4i64, 2i64, 2i64]).unwrap();
    assert_eq!(content::<u32>(&output), [0, 7, 7, 0, 0, 7, 7, 0]);
}

#[test]
fn tile_sizes_agree_on_all_operands() {
    let ask = |flags: i32| -> [i64; 2] {
        let results = call("query_tile_sizes.2d", "0IIi_II", &arguments![i64::MIN, 16i64, flags]).unwrap();
        let [Value::I64(first), Value::I64(second)] = results[..] else { panic!("{results:?}") };
        [first, second]
    };
    for operation in [0x100, 0x200, 0x300, 0x400, 0x500, 0x600] {
        let [left, right, result] = [1, 2, 3].map(|operand| ask(operation | operand));
        assert_eq!(left[1], right[1]);
        assert_eq!(result, [left[0], right[0]]);
        assert!(result.iter().chain(&left).all(|size| (1..=16).contains(size)));
    }
}

/// [[1, 2], [3, 4], [5, 6]] times the transpose of [[1, 0], [0, 1], [1, 1], [2, -1]], in one tile each.
#[test]
fn products_of_tiles() {
    let wanted = [1, 2, 3, 0, 3, 4, 7, 2, 5, 6, 11, 4];
    let (left, right) = ([1i8, 2, 3, 4, 5, 6], [1i8, 0, 0, 1, 1, 1, 2, -1]);
    let mut output = buffer(&[0i32; 12]);
    let run = |name: &str, left: &Buffer, right: &Buffer, output: &Buffer, flags: i32| {
        let arguments = arguments![
            left.clone(),
            0i64,
            2i64 * 3,
            right.clone(),
            0i64,
            2i64 * 4,
            output.clone(),
            0i64,
            12i64,
            1i64,
            1i64,
            1i64,
            3,
            4,
            2,
            flags
        ];
        call(name, MMT4D, &arguments).unwrap();
    };
    for (name, overwrite, accumulate) in [("mmt4d", 0x202, 0x102), ("mmt4d.i8i8i32", 0, 1)] {
        run(name, &buffer(&left), &buffer(&right), &output, overwrite);
        assert_eq!(content::<i32>(&output), wanted);
        run(name, &buffer(&left), &buffer(&right), &output, accumulate);
        assert_eq!(content::<i32>(&output), wanted.map(|value| value * 2));
    }
    let floats = |values: &[i8]| buffer(&values.iter().map(|value| f32::from(*value)).collect::<Vec<_>>());
    output = floats(&[0; 12]);
    for (name, overwrite, accumulate) in [("mmt4d", 0x401, 0x701), ("mmt4d.f32f32f32", 0, 1)] {
        run(name, &floats(&left), &floats(&right), &output, overwrite);
        assert_eq!(content::<f32>(&output), wanted.map(|value| value as f32));
        run(name, &floats(&left), &floats(&right), &output, accumulate);
        assert_eq!(content::<f32>(&output), wanted.map(|value| 2.0 * value as f32));
    }
}

/// [[1, 2], [3, 4], [5, 6]] times [[1, 0, 1], [0, 1, -1]].
#[test]
fn products_of_rows_and_columns() {
    let (left, right, wanted) = ([1i8, 2, 3, 4, 5, 6], [1i8, 0, 1, 0, 1, -1], [1, 2, -1, 3, 4, -1, 5, 6, -1]);
    let run = |name: &str, left: Buffer, right: Buffer, output: &Buffer, flags: i32| {
        let arguments = arguments![left, 0i64, 2i64, right, 0i64, 3i64, output.clone(), 0i64, 3i64, 3i64, 3i64, 2i64, flags];
        call(name, MATMUL, &arguments)
    };
    let output = buffer(&[7i32; 9]);
    run("matmul.i8i8i32", buffer(&left), buffer(&right), &output, 0).unwrap();
    assert_eq!(content::<i32>(&output), wanted);
    run("matmul.i8i8i32", buffer(&left), buffer(&right), &output, 1).unwrap();
    assert_eq!(content::<i32>(&output), wanted.map(|value| value * 2));
    let floats = |values: &[i8]| buffer(&values.iter().map(|value| f32::from(*value)).collect::<Vec<_>>());
    let output = floats(&[7; 9]);
    run("matmul.f32f32f32", floats(&left), floats(&right), &output, 0).unwrap();
    assert_eq!(content::<f32>(&output), wanted.map(|value| value as f32));
    let refused = run("matmul.f32f32f32", floats(&left), floats(&right), &output, 2);
    assert_eq!(refused.unwrap_err().status(), Status::InvalidArgument);
}

/// A 2 x 3 matrix in 2 x 2 tiles, padded with 9, tiles or their elements transposed, and back.
#[test]
fn tiles_in_every_signature() {
    let plain = [1, 2, 4, 5, 3, 9, 6, 9];
    let inner = [1, 4, 2, 5, 3, 6, 9, 9];
    // Name, signature, flags of pack, flags of unpack, what is packed.
    type Case = (&'static str, [&'static str; 2], [i32; 2], [i32; 8]);
    let words: [Case; 8] = [
        ("", [PACK, UNPACK], [0x3, 0x3], plain),
        ("", [PACK, UNPACK], [0x1, 0x1], plain),
        ("", [PACK, UNPACK], [0x103, 0x103], inner),
        ("", [OLD_PACK, OLD_UNPACK], [0x3, 0x2], plain),
        ("", [OLD_PACK, OLD_UNPACK], [0x101, 0x101], inner),
        (".i32i32", ["0rIIrIIIIIIIIii_v", OLD_UNPACK], [0, 0], plain),
        (".i32i32", ["0rIIrIIIIIIIIii_v", OLD_UNPACK], [0x1_0000, 0x1_0000], inner),
        (".i32i32", ["0rIIrIIIIIIIIii_v", OLD_UNPACK], [0x2_0000, 0x2_0000], plain),
    ];
    for (suffix, conventions, flags, wanted) in words {
        round_trip(suffix, conventions, flags, &[1, 2, 3, 4, 5, 6], Value::I32(9), &wanted);
    }
    let floats = |values: &[i32]| values.iter().map(|value| *value as f32).collect::<Vec<_>>();
    let conventions = ["0rIIrIIIIIIIIfi_v", OLD_UNPACK];
    round_trip(".f32f32", conventions, [0, 0], &floats(&[1, 2, 3, 4, 5, 6]), Value::F32(9.0), &floats(&plain));
    let conventions = ["0rIIrIIIIIIIIii_v", OLD_UNPACK];
    round_trip(".i8i8", conventions, [0, 0], &[1i8, 2, 3, 4, 5, 6], Value::I32(9), &plain.map(|value| value as i8));
}

fn round_trip<T: Number + PartialEq + std::fmt::Debug>(
    suffix: &str,
    [pack, unpack]: [&str; 2],
    [pack_flags, unpack_flags]: [i32; 2],
    values: &[T],
    padding: Value,
    wanted: &[T],
) {
    let zero = T::read(&[0; 8][..T::SIZE]);
    let (input, packed, output) = (buffer(values), buffer(&[zero; 8]), buffer(&[zero; 6]));
    // Outer tiles transposed are one above the other; the others one beside the other.
    let outer_transposed = (pack_flags & 0x2_0200) != 0;
    let (outer, row_of_tiles) = if outer_transposed { ([2i64, 1], 4i64) } else { ([1, 2], 8) };
    let sizes = arguments![outer[0], outer[1], 2i64, 2i64];
    let strided = |old: &str| pack != old && unpack != OLD_UNPACK;
    let mut arguments = arguments![input, 0i64, 3i64].to_vec();
    if strided(OLD_PACK) {
        arguments.push(Value::I64(1));
    }
    arguments.extend(arguments![packed.clone(), 0i64, row_of_tiles]);
    if strided(OLD_PACK) {
        arguments.push(Value::I64(4));
    }
    arguments.extend(arguments![2i64, 3i64]);
    arguments.extend(sizes.clone());
    // The functions for all types take the padding as an i64.
    arguments.push(match padding {
        Value::I32(value) if suffix.is_empty() => Value::I64(value.into()),
        other => other,
    });
    arguments.push(Value::I32(pack_flags));
    call(&format!("pack{suffix}"), pack, &arguments).unwrap();
    assert_eq!(content::<T>(&packed), wanted, "pack{suffix} {pack} {pack_flags:#x}");

    let mut arguments = arguments![packed, 0i64, row_of_tiles].to_vec();
    if strided(OLD_PACK) {
        arguments.push(Value::I64(4));
    }
    arguments.extend(arguments![output.clone(), 0i64, 3i64]);
    if strided(OLD_PACK) {
        arguments.push(Value::I64(1));
    }
    arguments.extend(sizes);
    arguments.extend(arguments![2i64, 3i64, unpack_flags]);
    call(&format!("unpack{suffix}"), unpack, &arguments).unwrap();
    assert_eq!(content::<T>(&output), values, "unpack{suffix} {unpack} {unpack_flags:#x}");
}

#[test]
fn errors_name_the_function_and_the_operand() {
    let short = buffer(&[1f32; 3]);
    let arguments = |output: Buffer| arguments![short.clone(), 0i64, 4i64, 1i64, output, 0i64, 4i64, 1i64, 1i64, 4i64];
    let error = call("exp.2d.f32", UNARY, &arguments(buffer(&[0f32; 4]))).unwrap_err();
    assert_eq!(error.status(), Status::OutOfRange);
    let text = error.to_string();
    assert!(text.contains("the input") && text.contains("vmvx.exp.2d.f32") && text.contains("12 bytes"), "{text}");

    let constant = Buffer::new(buffer(&[0f32; 4]).span().clone().read_only(), Origin::Module);
    let arguments = arguments![buffer(&[0f32; 4]), 0i64, 4i64, 1i64, constant, 0i64, 4i64, 1i64, 1i64, 4i64];
    assert_eq!(call("exp.2d.f32", UNARY, &arguments).unwrap_err().status(), Status::PermissionDenied);

    let null = arguments![vmfb_vm::Ref::Null, 0i64, 4i64, 1i64, buffer(&[0f32; 4]), 0i64, 4i64, 1i64, 1i64, 4i64];
    assert_eq!(call("exp.2d.f32", UNARY, &null).unwrap_err().status(), Status::InvalidArgument);
}

/// The table is complete: names and signatures from the history of the interface, each linked to once.
#[test]
fn every_signature_links() {
    let mut table: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut add = |convention, names: &str| {
        names.split_whitespace().for_each(|name| table.entry(name.into()).or_default().push(convention));
    };
    add(BINARY, "add.2d.f32 sub.2d.f32 mul.2d.f32 div.2d.f32");
    add(BINARY, "add.2d.i32 sub.2d.i32 mul.2d.i32 divs.2d.i32 divu.2d.i32 and.2d.i32 or.2d.i32 xor.2d.i32");
    add(BINARY, "shl.2d.i32 shrs.2d.i32 shru.2d.i32");
    add(UNARY, "abs.2d.f32 ceil.2d.f32 exp.2d.f32 floor.2d.f32 log.2d.f32 neg.2d.f32 rsqrt.2d.f32 ctlz.2d.i32");
    add(UNARY, "copy.2d.x8 copy.2d.x16 copy.2d.x32 copy.2d.x64");
    add("0irIIII_v", "fill.2d.x32");
    add("0IIi_II", "query_tile_sizes.2d");
    add(MMT4D, "mmt4d mmt4d.f32f32f32 mmt4d.i8i8i32");
    add(MATMUL, "matmul.f32f32f32 matmul.i8i8i32");
    add(PACK, "pack");
    add(OLD_PACK, "pack");
    add("0rIIrIIIIIIIIfi_v", "pack.f32f32");
    add("0rIIrIIIIIIIIii_v", "pack.i8i8 pack.i32i32");
    add(UNPACK, "unpack");
    add(OLD_UNPACK, "unpack unpack.f32f32 unpack.i32i32 unpack.i8i8");

    let mut linker = Linker::new();
    linker.add_native(Vmvx::new()).unwrap();
    let engine = Engine::default();
    for (name, conventions) in table {
        for convention in conventions {
            let module = Module::new(&engine, forwarder(&name, convention)).unwrap();
            let linked = linker.instantiate(&mut Store::new(&engine, ()), &module);
            assert!(linked.is_ok(), "{name} {convention}: {:?}", linked.err());
        }
    }
}
