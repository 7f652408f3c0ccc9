//! Output within the limits of a store: what a program returns decides how much there is to print.

use std::io::{self, Write};
use vmfb_vm::Meter;

/// Bytes that cost no fuel, so that ordinary results can be printed when a program has used all of it.
const FREE: u64 = 1 << 16;

/// Bytes that a unit of fuel pays for: about what an element takes.
const BYTES_PER_UNIT: u64 = 8;

/// Passes bytes on until the deadline passes, the run is interrupted or fuel runs out.
pub struct Limited<'a, W> {
    out: W,
    meter: &'a mut Meter,
    free: u64,
}

impl<'a, W> Limited<'a, W> {
    /// Output to `out` within the limits of a meter.
    pub fn new(out: W, meter: &'a mut Meter) -> Self {
        Self { out, meter, free: FREE }
    }

    fn pay(&mut self, bytes: u64) -> vmfb_vm::Result<()> {
        let paid = bytes.saturating_sub(self.free);
        self.free = self.free.saturating_sub(bytes);
        self.meter.poll()?;
        self.meter.charge(paid / BYTES_PER_UNIT)
    }
}

impl<W: Write> Write for Limited<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pay(bytes.len() as u64).map_err(io::Error::other)?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use vmfb_memory::MemoryAccount;
    use vmfb_vm::{FuelMetering, Status};

    fn status(error: &io::Error) -> Option<Status> {
        error.get_ref()?.downcast_ref::<vmfb_vm::Error>().map(vmfb_vm::Error::status)
    }

    #[test]
    fn much_output_costs_fuel_and_little_does_not() {
        let mut meter = Meter::new(FuelMetering::On, MemoryAccount::default());
        meter.set_fuel(1024);
        let mut bytes = Vec::new();
        let mut out = Limited::new(&mut bytes, &mut meter);
        let error = loop {
            if let Err(error) = out.write_all(&[b'x'; 4096]) {
                break error;
            }
        };
        assert_eq!((status(&error), bytes.len()), (Some(Status::ResourceExhausted), (1 << 16) + 2 * 4096));
    }

    #[test]
    fn nothing_is_written_behind_the_deadline() {
        let mut meter = Meter::default();
        meter.set_deadline(Some(Instant::now()));
        let mut bytes = Vec::new();
        let error = Limited::new(&mut bytes, &mut meter).write_all(b"x").unwrap_err();
        assert_eq!((status(&error), bytes.len()), (Some(Status::DeadlineExceeded), 0));
    }
}
