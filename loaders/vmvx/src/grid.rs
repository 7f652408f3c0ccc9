//! Workgroups of a dispatch in their order, and a dispatch on several threads.

use crate::executable::{Inner, Lane};
use std::sync::{Arc, Mutex, PoisonError};
use vmfb_hal::{Pieces, Task, Workers};
use vmfb_memory::Span;
use vmfb_vm::{Error, Meter, Result};

/// Workgroups in their order, x fastest.
pub(crate) struct Walk {
    next: Option<[u32; 3]>,
    count: [u32; 3],
}

impl Walk {
    /// All workgroups of a grid.
    pub(crate) fn all(count: [u32; 3]) -> Self {
        Self { next: (!count.contains(&0)).then_some([0; 3]), count }
    }

    /// The workgroups from a number on.
    pub(crate) fn from(first: u64, count: [u32; 3]) -> Self {
        Self { next: position(first, count), count }
    }
}

/// Where the workgroup with this number stands; `None` behind the last one.
fn position(number: u64, count: [u32; 3]) -> Option<[u32; 3]> {
    let [count_x, count_y, _] = count.map(u64::from);
    let row = number.checked_div(count_x)?;
    let z = u32::try_from(row.checked_div(count_y)?).ok().filter(|z| *z < count[2])?;
    // Each of these is less than its count.
    Some([number.checked_rem(count_x)? as u32, row.checked_rem(count_y)? as u32, z])
}

impl Iterator for Walk {
    type Item = [u32; 3];

    fn next(&mut self) -> Option<[u32; 3]> {
        let here = self.next?;
        let [count_x, count_y, count_z] = self.count;
        let [x, y, z] = here;
        // A number below its count can be raised by one.
        self.next = if x + 1 < count_x {
            Some([x + 1, y, z])
        } else if y + 1 < count_y {
            Some([0, y + 1, z])
        } else {
            (z + 1 < count_z).then_some([0, 0, z + 1])
        };
        Some(here)
    }
}

/// What a dispatch on several threads owns.
pub(crate) struct Grid {
    pub(crate) executable: Arc<Inner>,
    pub(crate) export: usize,
    pub(crate) workgroup_count: [u32; 3],
    pub(crate) constants: Vec<u32>,
    /// The bound ranges.
    pub(crate) bindings: Vec<Span>,
    /// Limits of the caller. Fuel is not counted: then nothing is spread.
    pub(crate) meter: Meter,
}

/// A grid that threads take pieces of.
struct GridTask {
    grid: Grid,
    pieces: Pieces<Error>,
    /// What the calling thread runs workgroups in. It was made before others began, so that they cannot take what it needs.
    own: Mutex<Option<Lane>>,
}

impl Grid {
    /// Runs so many workgroups, all of them, on the threads of a pool.
    pub(crate) fn run(self, workgroups: u64, threads: usize, workers: &Workers) -> Result<()> {
        let own = Lane::new(&self.executable, &self)?;
        let task = Arc::new(GridTask { pieces: Pieces::for_threads(workgroups, threads), own: Mutex::new(Some(own)), grid: self });
        workers.run(threads, task.clone());
        task.pieces.outcome()
    }
}

impl Task for GridTask {
    fn work(&self, worker: usize) {
        let lane = match worker {
            0 => self.own.lock().unwrap_or_else(PoisonError::into_inner).take(),
            // Whoever lacks memory to take part does not: what runs on one thread must not fail on several.
            _ => Lane::new(&self.grid.executable, &self.grid).ok(),
        };
        let Some(mut lane) = lane else { return };
        self.pieces.work(|piece| {
            let length = usize::try_from(piece.end - piece.start).unwrap_or(usize::MAX);
            let numbers = piece.start..piece.end;
            for (number, workgroup) in numbers.zip(Walk::from(piece.start, self.grid.workgroup_count).take(length)) {
                if self.pieces.is_moot(number) {
                    return Ok(());
                }
                lane.run(workgroup)?;
            }
            Ok(())
        });
        lane.finish(&self.grid.executable);
    }
}

#[cfg(test)]
mod tests {
    use super::Walk;

    #[test]
    fn workgroups_are_walked_from_any_number() {
        for count in [[1, 1, 1], [3, 1, 1], [2, 3, 4], [1, 5, 2], [4, 1, 3]] {
            let [count_x, count_y, count_z] = count;
            let rows = (0..count_z).flat_map(|z| (0..count_y).map(move |y| (y, z)));
            let expected: Vec<_> = rows.flat_map(|(y, z)| (0..count_x).map(move |x| [x, y, z])).collect();
            for first in 0..=expected.len() {
                assert_eq!(Walk::from(first as u64, count).collect::<Vec<_>>(), expected[first..], "{count:?} from {first}");
            }
            assert_eq!(Walk::all(count).collect::<Vec<_>>(), expected);
        }
        for count in [[0, 1, 1], [1, 0, 1], [1, 1, 0]] {
            assert_eq!((Walk::all(count).next(), Walk::from(0, count).next()), (None, None));
        }
        let most = [u32::MAX; 3];
        let last = Walk::from(u64::MAX, most).next().unwrap();
        assert!(last.iter().zip(most).all(|(number, count)| *number < count));
    }
}
