//! Calls of every function with arguments that make no sense: they end with an error or a result, and nothing is left.

use crate::support::{Program, buffer, fence, null, text};
use std::time::{Duration, Instant};
use vmfb_bytecode::calling_convention::{CallingConvention, Item, Kind};
use vmfb_hal::{BufferView, Fence};
use vmfb_module_hal::Hal;
use vmfb_vm::{Config, Interruption, Ref, Value};

/// A generator of numbers (xorshift), so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn value(&mut self, kind: Kind, objects: &[Value]) -> Value {
        const INTERESTING: [i64; 14] = [0, 0, 0, 1, 1, 2, 3, 4, 8, 64, -1, i32::MAX as i64, i64::MAX, i64::MIN];
        let number = INTERESTING[self.below(INTERESTING.len())];
        match kind {
            Kind::I32 => (number as i32).into(),
            Kind::I64 => number.into(),
            Kind::Ref => objects[self.below(objects.len())].clone(),
            Kind::F32 => 0f32.into(),
            Kind::F64 => 0f64.into(),
        }
    }
}

fn kinds(convention: &CallingConvention, counts: &[u16]) -> Vec<Kind> {
    let mut counts = counts.iter();
    let fields = |item: &Item| match item {
        Item::Plain(kind) => vec![*kind],
        Item::Span(fields) => fields.repeat(counts.next().copied().unwrap_or(0).into()),
    };
    convention.arguments.iter().flat_map(fields).collect()
}

#[test]
fn any_call_ends() {
    let config = Config::new().interruption(Interruption::On).memory_limit(8 << 20);
    let mut program = Program::with(config);
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let view: Value = Ref::new(BufferView::from_f32(&[2], &[1.0, 2.0]).unwrap()).into();
    let fixed = [null(), program.device(), program.allocator(), buffer(&[7; 64]), view, text("test"), program.executable()];
    let mut made: Vec<Value> = Vec::new();
    let functions: Vec<(&str, &str)> = Hal::function_table().filter(|(name, _)| *name != "buffer_view.trace").collect();
    let (mut succeeded, mut failed) = (0, 0);
    for round in 0..12_000 {
        let (name, convention) = functions[numbers.below(functions.len())];
        let parsed: CallingConvention = convention.parse().unwrap();
        let spans = parsed.arguments.iter().filter(|item| matches!(item, Item::Span(_))).count();
        let counts: Vec<u16> = (0..spans).map(|_| numbers.below(3) as u16).collect();
        let mut objects = fixed.to_vec();
        objects.extend_from_slice(&made);
        let fences = [Fence::new(), Fence::new()];
        fences[0].signal();
        objects.extend(fences.iter().map(fence));
        let arguments: Vec<Value> = kinds(&parsed, &counts).iter().map(|kind| numbers.value(*kind, &objects)).collect();
        // Waits for fences that nobody signals.
        program.store.set_deadline(Some(Instant::now() + Duration::from_millis(5)));
        match program.call(name, convention, &counts, &arguments) {
            Ok(results) => {
                succeeded += 1;
                made.extend(results.into_iter().filter(|result| matches!(result, Value::Ref(_))));
            }
            Err(_) => failed += 1,
        }
        if round % 64 == 0 {
            made.truncate(40);
            made.reverse();
            made.truncate(20);
        }
    }
    assert!(succeeded > 500 && failed > 500, "{succeeded} calls succeeded, {failed} failed");
    drop((made, fixed));
    assert!(program.store.account().used() < 1 << 20);
}
