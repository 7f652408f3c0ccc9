//! Times of the functions, called from bytecode: `cargo bench -p vmfb-module-vmvx [FILTER]`.
//!
//! Prints the best of several rounds, as the machine may be busy.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_module_vmvx::Vmvx;
use vmfb_vm::{Buffer, Engine, Func, Linker, Module, Origin, Ref, Store};

const ROUND: Duration = Duration::from_millis(30);
const ROUNDS: usize = 7;

/// A function to call, as its calling convention orders the arguments; integers are 64 bits wide but for the last `short` ones.
struct Case {
    title: String,
    name: &'static str,
    convention: &'static str,
    buffers: Vec<Buffer>,
    numbers: Vec<i64>,
    short: usize,
    /// Work of one call, and its unit.
    work: f64,
    unit: &'static str,
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for case in cases().into_iter().filter(|case| case.title.contains(&filter)) {
        let seconds = best(&case);
        println!("{:40} {:12.1} ns per call {:9.3} {}", case.title, seconds * 1e9, case.work / seconds / 1e9, case.unit);
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for columns in [4i64, 64, 65_536] {
        cases.push(binary(format!("add.2d.f32 {columns}"), "add.2d.f32", columns, [1, 1]));
    }
    cases.push(binary("mul.2d.f32 65536, broadcast".into(), "mul.2d.f32", 65_536, [1, 0]));
    cases.push(binary("add.2d.i32 65536, stride 2".into(), "add.2d.i32", 65_536, [2, 2]));
    for name in ["copy.2d.x32", "exp.2d.f32", "rsqrt.2d.f32"] {
        cases.push(unary(name, 65_536));
    }
    for size in [64i64, 128, 256, 1024] {
        cases.push(product(size, [8, 8, 4], 1));
    }
    cases.push(product(256, [8, 8, 1], 1));
    cases.push(product(256, [16, 16, 1], 1));
    cases.push(product(256, [8, 8, 4], 2));
    cases.push(product(256, [8, 8, 2], 2));
    cases.push(row(1024));
    cases.push(pack("pack", [8, 4]));
    cases.push(pack("pack", [8, 1]));
    cases.push(unpack([8, 8]));
    cases
}

fn buffer(bytes: i64) -> Buffer {
    Buffer::new(Span::zeroed(bytes as usize, 64, &MemoryAccount::default()).unwrap(), Origin::Host)
}

fn binary(title: String, name: &'static str, columns: i64, [left, right]: [i64; 2]) -> Case {
    let buffers = vec![buffer(columns * left.max(1) * 4), buffer(columns * right.max(1) * 4), buffer(columns * 4)];
    let numbers = vec![0, columns * left, left, 0, columns * right, right, 0, columns, 1, 1, columns];
    Case { title, name, convention: "0rIIIrIIIrIIIII_v", buffers, numbers, short: 0, work: columns as f64, unit: "elements/ns" }
}

fn unary(name: &'static str, columns: i64) -> Case {
    let buffers = vec![buffer(columns * 4), buffer(columns * 4)];
    let numbers = vec![0, columns, 1, 0, columns, 1, 1, columns];
    let title = format!("{name} {columns}");
    Case { title, name, convention: "0rIIIrIIIII_v", buffers, numbers, short: 0, work: columns as f64, unit: "elements/ns" }
}

/// A product of square matrices.
fn product(size: i64, [m0, n0, k0]: [i64; 3], flags: i64) -> Case {
    let buffers = vec![buffer(size * size * 4), buffer(size * size * 4), buffer(size * size * 4)];
    let numbers = vec![0, m0 * size, 0, n0 * size, 0, m0 * size, size / m0, size / n0, size / k0, m0, n0, k0, flags];
    let kind = if flags == 1 { "f32" } else { "s8" };
    let title = format!("mmt4d {kind} {size}, tiles {m0} x {n0} x {k0}");
    let work = 2.0 * (size as f64).powi(3);
    Case { title, name: "mmt4d", convention: "0rIIrIIrIIIIIiiii_v", buffers, numbers, short: 4, work, unit: "Gop/s" }
}

/// A row times a matrix.
fn row(size: i64) -> Case {
    let mut case = product(size, [1, 8, 1], 1);
    case.title = format!("mmt4d f32 1 x {size} x {size}, tiles 1 x 8 x 1");
    (case.numbers[6], case.work) = (1, 2.0 * (size as f64).powi(2));
    case
}

fn pack(name: &'static str, [height, width]: [i64; 2]) -> Case {
    let size = 512;
    let buffers = vec![buffer(size * size * 4), buffer(size * size * 4)];
    let numbers = vec![0, size, 1, 0, height * size, height * width, size, size, size / height, size / width, height, width, 0, 1];
    let title = format!("{name} 512 x 512, tiles {height} x {width}");
    let work = (size * size) as f64;
    Case { title, name, convention: "0rIIIrIIIIIIIIIIi_v", buffers, numbers, short: 1, work, unit: "elements/ns" }
}

fn unpack([height, width]: [i64; 2]) -> Case {
    let mut case = pack("unpack", [height, width]);
    let size = 512;
    (case.name, case.convention) = ("unpack", "0rIIIrIIIIIIIIIi_v");
    case.numbers = vec![0, height * size, height * width, 0, size, 1, size / height, size / width, height, width, size, size, 1];
    case
}

/// Seconds of one call.
fn best(case: &Case) -> f64 {
    let engine = Engine::default();
    let module = Module::new(&engine, support::forwarder(case.name, case.convention)).unwrap();
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new();
    linker.add_native(Vmvx::new()).unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let run: Func = instance.function(&store, "run").unwrap();
    let refs: Vec<Ref> = case.buffers.iter().cloned().map(Ref::from).collect();
    let (long, short) = case.numbers.split_at(case.numbers.len() - case.short);
    let mut values: Vec<u32> = long.iter().flat_map(|value| [*value as u32, (*value >> 32) as u32]).collect();
    values.extend(short.iter().map(|value| *value as u32));
    let mut time = |calls: u32| {
        let start = Instant::now();
        (0..calls).for_each(|_| run.call_raw(&mut store, &values, &refs).unwrap());
        start.elapsed()
    };
    let once = time(1).min(time(1)).max(Duration::from_nanos(20));
    let calls = (ROUND.as_secs_f64() / once.as_secs_f64()).clamp(1.0, 1e6) as u32;
    (0..ROUNDS).map(|_| time(calls).as_secs_f64() / f64::from(calls)).fold(f64::INFINITY, f64::min)
}
