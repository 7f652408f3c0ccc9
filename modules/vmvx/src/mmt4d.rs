//! `mmt4d`: the product of a tiled matrix with the transpose of another.
//!
//! Blocks of both factors are copied out of their buffers and rearranged to panels, the result is summed up in a block
//! beside them and copied back: the buffers may be shared, the innermost loops see plain slices.

use crate::kernel::{Kernel, Kernels};
use crate::matrix::{Element, Matrix, Pace, Placement, Shape, product, size};
use vmfb_vm::{Buffer, Error, Meter, Result};

/// The most rows, columns and terms of a block.
const BLOCK_ROWS: usize = 96;
const BLOCK_COLUMNS: usize = 256;
const BLOCK_TERMS: usize = 256;

/// What the sums start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Zero.
    Zero,
    /// What the result holds.
    Accumulate,
}

/// The operands as a program gives them. In the buffers, rows of tiles stand at a stride; inside them all is dense.
pub(crate) struct Mmt4d<'a> {
    /// Left factor, right factor, result.
    pub(crate) buffers: [&'a Buffer; 3],
    pub(crate) offsets: [i64; 3],
    pub(crate) row_strides: [i64; 3],
    /// Tiles: rows of the left factor, rows of the right factor, columns of both.
    pub(crate) sizes: [i64; 3],
    /// Elements of a tile: rows of the left factor, rows of the right factor, columns of both.
    pub(crate) tile: [i32; 3],
    pub(crate) start: Start,
}

/// Blocks that are kept from call to call.
#[derive(Default)]
pub(crate) struct Scratch {
    copied: Vec<u32>,
    left: Vec<f32>,
    right: Vec<f32>,
    sums: Vec<u32>,
}

/// Element types of factors and result.
pub(crate) trait Kind {
    type Factor: Element;
    type Sum: Element;

    /// A factor as the kernels take it.
    fn widen(factor: Self::Factor) -> f32;

    /// `sum + a * b`.
    fn add(sum: Self::Sum, left: Self::Factor, right: Self::Factor) -> Self::Sum;

    /// Adds the products of two panels to a block of `sums`, which has rows of `width` values.
    fn accumulate<const ROWS: usize, const COLUMNS: usize>(
        kernel: Kernel<ROWS, COLUMNS>,
        left: &[f32],
        right: &[f32],
        sums: &mut [Self::Sum],
        width: usize,
    );
}

/// f32 · f32 → f32.
pub(crate) struct Floats;

impl Kind for Floats {
    type Factor = f32;
    type Sum = f32;

    fn widen(factor: f32) -> f32 {
        factor
    }

    fn add(sum: f32, left: f32, right: f32) -> f32 {
        sum + left * right
    }

    fn accumulate<const ROWS: usize, const COLUMNS: usize>(
        kernel: Kernel<ROWS, COLUMNS>,
        left: &[f32],
        right: &[f32],
        sums: &mut [f32],
        width: usize,
    ) {
        let mut block = [[0.0; COLUMNS]; ROWS];
        for (row, sums) in block.iter_mut().zip(sums.chunks(width)) {
            row.copy_from_slice(&sums[..COLUMNS]);
        }
        kernel(left, right, &mut block);
        for (row, sums) in block.iter().zip(sums.chunks_mut(width)) {
            sums[..COLUMNS].copy_from_slice(row);
        }
    }
}

/// s8 · s8 → s32, wrapping.
pub(crate) struct Bytes;

impl Kind for Bytes {
    type Factor = i8;
    type Sum = i32;

    fn widen(factor: i8) -> f32 {
        factor.into()
    }

    fn add(sum: i32, left: i8, right: i8) -> i32 {
        sum.wrapping_add(i32::from(left) * i32::from(right))
    }

    /// Products are at most 2^14, so sums of `BLOCK_TERMS` of them are exact as floats, which count to 2^24.
    fn accumulate<const ROWS: usize, const COLUMNS: usize>(
        kernel: Kernel<ROWS, COLUMNS>,
        left: &[f32],
        right: &[f32],
        sums: &mut [i32],
        width: usize,
    ) {
        const { assert!(BLOCK_TERMS <= 1 << 10) };
        let mut block = [[0.0; COLUMNS]; ROWS];
        kernel(left, right, &mut block);
        for (row, sums) in block.iter().zip(sums.chunks_mut(width)) {
            for (value, sum) in row.iter().zip(sums) {
                *sum = sum.wrapping_add(*value as i32);
            }
        }
    }
}

impl Mmt4d<'_> {
    /// Computes the result.
    pub(crate) fn run<K: Kind>(&self, meter: &mut Meter, kernels: &Kernels, scratch: &mut Scratch) -> Result<()> {
        let problem = self.check::<K>()?;
        let Problem { tiles: [m, n, k], tile: [m0, n0, k0], .. } = problem;
        meter.charge_product(&[m, n, m0, n0])?;
        meter.charge_product(&[m, n, k, m0, n0, k0])?;
        if [m, n, m0, n0].contains(&0) {
            return Ok(());
        }
        let mut pace = Pace::new(meter)?;
        let Some(blocks) = problem.blocks() else { return problem.run_elements(&mut pace, self.start) };
        let narrow = m * m0 == 1;
        match kernels {
            Kernels::Portable { narrow: kernel, .. } if narrow => problem.run_blocks(&mut pace, *kernel, scratch, blocks, self.start),
            Kernels::Portable { wide: kernel, .. } => problem.run_blocks(&mut pace, *kernel, scratch, blocks, self.start),
            Kernels::Eight { narrow: kernel, .. } if narrow => problem.run_blocks(&mut pace, *kernel, scratch, blocks, self.start),
            Kernels::Eight { wide: kernel, .. } => problem.run_blocks(&mut pace, *kernel, scratch, blocks, self.start),
        }
    }

    fn check<K: Kind>(&self) -> Result<Problem<'_, K>> {
        let mut tiles = [size(self.sizes[0], "m")?, size(self.sizes[1], "n")?, size(self.sizes[2], "k")?];
        let tile = [size(self.tile[0].into(), "m0")?, size(self.tile[1].into(), "n0")?, size(self.tile[2].into(), "k0")?];
        if tile[2] == 0 {
            // Tiles without columns are no work, however many they are.
            tiles[2] = 0;
        }
        let ([m, n, k], [m0, n0, k0]) = (tiles, tile);
        let left = Shape { rows: m, columns: product(&[k, m0, k0], "the size of a row of left tiles")? };
        let right = Shape { rows: n, columns: product(&[k, n0, k0], "the size of a row of right tiles")? };
        let output = Shape { rows: m, columns: product(&[n, m0, n0], "the size of a row of result tiles")? };
        let placement = |operand: usize| Placement { offset: self.offsets[operand], strides: [self.row_strides[operand], 1] };
        Ok(Problem {
            left: Matrix::input(self.buffers[0], placement(0), left, "the left factor")?,
            right: Matrix::input(self.buffers[1], placement(1), right, "the right factor")?,
            output: Matrix::output(self.buffers[2], placement(2), output, "the result")?,
            tiles,
            tile,
        })
    }
}

/// Checked operands.
struct Problem<'a, K: Kind> {
    left: Matrix<'a, K::Factor>,
    right: Matrix<'a, K::Factor>,
    output: Matrix<'a, K::Sum>,
    tiles: [u64; 3],
    tile: [u64; 3],
}

/// Tiles in a block and elements in a tile, in rows of the left factor, rows of the right factor, columns of both.
#[derive(Clone, Copy)]
struct Blocks {
    tiles: [usize; 3],
    tile: [usize; 3],
}

/// Where a block begins and how many tiles it has, as [`Blocks::tiles`].
#[derive(Clone, Copy)]
struct Block {
    first: [u64; 3],
    count: [usize; 3],
}

impl<K: Kind> Problem<'_, K> {
    /// The size of blocks, if tiles are small enough for them.
    fn blocks(&self) -> Option<Blocks> {
        let limits = [BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_TERMS];
        let (mut tiles, mut tile) = ([0; 3], [0; 3]);
        for axis in 0..3 {
            tile[axis] = usize::try_from(self.tile[axis]).ok().filter(|size| *size <= limits[axis])?;
            tiles[axis] = limits[axis].checked_div(tile[axis]).unwrap_or(1);
        }
        Some(Blocks { tiles, tile })
    }

    /// Element by element, for tiles of unusual size.
    fn run_elements(&self, pace: &mut Pace<'_>, start: Start) -> Result<()> {
        let ([m, n, k], [m0, n0, k0]) = (self.tiles, self.tile);
        for (i, j) in pairs(m, n) {
            for (row, column) in pairs(m0, n0) {
                let position = (j * m0 + row) * n0 + column;
                let mut sum = match start {
                    Start::Zero => bytemuck::Zeroable::zeroed(),
                    Start::Accumulate => self.output.get(i, position)?,
                };
                for (tile, term) in pairs(k, k0) {
                    let left = self.left.get(i, (tile * m0 + row) * k0 + term)?;
                    let right = self.right.get(j, (tile * n0 + column) * k0 + term)?;
                    sum = K::add(sum, left, right);
                    pace.step(1)?;
                }
                self.output.set(i, position, sum)?;
                pace.step(1)?;
            }
        }
        Ok(())
    }

    /// Block by block.
    fn run_blocks<const ROWS: usize, const COLUMNS: usize>(
        &self,
        pace: &mut Pace<'_>,
        kernel: Kernel<ROWS, COLUMNS>,
        scratch: &mut Scratch,
        blocks: Blocks,
        start: Start,
    ) -> Result<()> {
        let most = |axis: usize, unit: usize| {
            let tiles = usize::try_from(self.tiles[axis]).unwrap_or(usize::MAX).min(blocks.tiles[axis]);
            (tiles * blocks.tile[axis]).next_multiple_of(unit)
        };
        let (rows, columns, terms) = (most(0, ROWS), most(1, COLUMNS), most(2, 1));
        let copied = [rows * columns, rows * terms, columns * terms].into_iter().max().unwrap_or(0);
        grow(&mut scratch.copied, copied)?;
        grow(&mut scratch.left, rows * terms)?;
        grow(&mut scratch.right, columns * terms)?;
        grow(&mut scratch.sums, rows * columns)?;

        for i in steps(self.tiles[0], blocks.tiles[0]) {
            for j in steps(self.tiles[1], blocks.tiles[1]) {
                let mut block = Block { first: [i.0, j.0, 0], count: [i.1, j.1, 0] };
                let sums = bytemuck::cast_slice_mut(&mut scratch.sums);
                let width = (j.1 * blocks.tile[1]).next_multiple_of(COLUMNS);
                match start {
                    Start::Zero => sums.fill(bytemuck::Zeroable::zeroed()),
                    Start::Accumulate => self.load_sums(&block, &blocks, &mut scratch.copied, sums, width)?,
                }
                for k in steps(self.tiles[2], blocks.tiles[2]) {
                    (block.first[2], block.count[2]) = k;
                    let terms = k.1 * blocks.tile[2];
                    let copied = &mut scratch.copied;
                    let left = load_panels::<K, ROWS>(self.left, &block, &blocks, 0, copied, &mut scratch.left)?;
                    let right = load_panels::<K, COLUMNS>(self.right, &block, &blocks, 1, copied, &mut scratch.right)?;
                    for (column, right) in (0..).step_by(COLUMNS).zip(right.chunks_exact(COLUMNS * terms)) {
                        for (row, left) in (0..).step_by(ROWS).zip(left.chunks_exact(ROWS * terms)) {
                            K::accumulate(kernel, left, right, &mut sums[row * width + column..], width);
                        }
                    }
                    pace.step((left.len() * right.len() / terms) as u64)?;
                }
                self.store_sums(&block, &blocks, &mut scratch.copied, sums, width)?;
                pace.step((i.1 * width) as u64)?;
            }
        }
        Ok(())
    }

    /// Copies a block of the result out of its buffer.
    fn load_sums(&self, block: &Block, blocks: &Blocks, copied: &mut [u32], sums: &mut [K::Sum], width: usize) -> Result<()> {
        let [m0, n0, _] = blocks.tile;
        let copied = &mut bytemuck::cast_slice_mut(copied)[..block.count[1] * m0 * n0];
        for (i, sums) in (block.first[0]..).zip(sums.chunks_mut(m0 * width)).take(block.count[0]) {
            self.output.read(i, block.first[1] * (m0 * n0) as u64, copied)?;
            for (tile, values) in copied.chunks_exact(m0 * n0).enumerate() {
                for (line, values) in sums.chunks_mut(width).zip(values.chunks_exact(n0)) {
                    line[tile * n0..][..n0].copy_from_slice(values);
                }
            }
        }
        Ok(())
    }

    /// Copies a block of the result into its buffer.
    fn store_sums(&self, block: &Block, blocks: &Blocks, copied: &mut [u32], sums: &[K::Sum], width: usize) -> Result<()> {
        let [m0, n0, _] = blocks.tile;
        let copied = &mut bytemuck::cast_slice_mut(copied)[..block.count[1] * m0 * n0];
        for (i, sums) in (block.first[0]..).zip(sums.chunks(m0 * width)).take(block.count[0]) {
            for (tile, values) in copied.chunks_exact_mut(m0 * n0).enumerate() {
                for (line, values) in sums.chunks(width).zip(values.chunks_exact_mut(n0)) {
                    values.copy_from_slice(&line[tile * n0..][..n0]);
                }
            }
            self.output.write(i, block.first[1] * (m0 * n0) as u64, copied)?;
        }
        Ok(())
    }
}

/// Copies a block of a factor out of its buffer and rearranges it to panels: for every `LANES` rows of the factor, the
/// values of these rows for each term. Rows that the block does not have keep arbitrary values, and so do sums that depend on them.
fn load_panels<'p, K: Kind, const LANES: usize>(
    factor: Matrix<'_, K::Factor>,
    block: &Block,
    blocks: &Blocks,
    axis: usize,
    copied: &mut [u32],
    panels: &'p mut [f32],
) -> Result<&'p [f32]> {
    let (rows, columns) = (blocks.tile[axis], blocks.tile[2]);
    let (tiles, terms) = (block.count[2], block.count[2] * columns);
    let copied = &mut bytemuck::cast_slice_mut::<u32, K::Factor>(copied)[..tiles * rows * columns];
    let panels = &mut panels[..(block.count[axis] * rows).next_multiple_of(LANES) * terms];
    for (index, line) in (0..block.count[axis]).zip(block.first[axis]..) {
        factor.read(line, block.first[2] * (rows * columns) as u64, copied)?;
        for row in 0..rows {
            let lane = index * rows + row;
            let panel = &mut panels[lane / LANES * LANES * terms..][..LANES * terms];
            let rows_of_tiles = copied.chunks_exact(rows * columns).map(|tile| &tile[row * columns..][..columns]);
            match columns {
                1 => scatter::<K, LANES, 1>(panel, lane % LANES, rows_of_tiles),
                2 => scatter::<K, LANES, 2>(panel, lane % LANES, rows_of_tiles),
                4 => scatter::<K, LANES, 4>(panel, lane % LANES, rows_of_tiles),
                8 => scatter::<K, LANES, 8>(panel, lane % LANES, rows_of_tiles),
                _ => {
                    let slots = panel.chunks_exact_mut(LANES);
                    for (slots, value) in slots.zip(rows_of_tiles.flatten()) {
                        slots[lane % LANES] = K::widen(*value);
                    }
                }
            }
        }
    }
    Ok(panels)
}

/// Writes one row of a factor into its lane of a panel; each tile has `COLUMNS` values of the row.
fn scatter<'v, K: Kind<Factor: 'v>, const LANES: usize, const COLUMNS: usize>(
    panel: &mut [f32],
    lane: usize,
    tiles: impl Iterator<Item = &'v [K::Factor]>,
) {
    for (slots, values) in panel.chunks_exact_mut(LANES * COLUMNS).zip(tiles) {
        let Some(values) = values.first_chunk::<COLUMNS>() else { return };
        for (slots, value) in slots.chunks_exact_mut(LANES).zip(values) {
            slots[lane] = K::widen(*value);
        }
    }
}

/// First and length of each step of at most `step` that together make `total`.
fn steps(total: u64, step: usize) -> impl Iterator<Item = (u64, usize)> {
    (0..total).step_by(step).map(move |first| (first, (total - first).min(step as u64) as usize))
}

/// Every pair of indices.
fn pairs(outer: u64, inner: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..outer).flat_map(move |outer| (0..inner).map(move |inner| (outer, inner)))
}

/// Makes a block at least `length` values long.
fn grow<T: bytemuck::Zeroable + Clone>(values: &mut Vec<T>, length: usize) -> Result<()> {
    if let Some(more) = length.checked_sub(values.len()) {
        values.try_reserve(more).map_err(|_| Error::exhausted(format!("no memory for {length} values")))?;
        values.resize(length, T::zeroed());
    }
    Ok(())
}

#[cfg(test)]
#[path = "mmt4d_tests.rs"]
mod tests;
