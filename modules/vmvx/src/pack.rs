//! `pack` and `unpack`: a matrix to and from a matrix of tiles.

use crate::matrix::{Element, Matrix, Pace, Placement, Shape, product, size};
use vmfb_vm::{Buffer, Error, Meter, Result};

/// Elements of the strip of tiles that is rearranged at once. Tiles that are larger take the slow way.
const STRIP: usize = 1024;

/// How tiles are ordered, and the elements in a tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Row by row.
    #[default]
    Rows,
    /// Column by column.
    Columns,
}

/// A matrix cut into equal tiles. In the buffer, rows (or columns) of tiles stand at a stride; inside them all is dense.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiling {
    /// Number of tiles that lie below each other, and beside each other.
    tiles: [u64; 2],
    /// Rows and columns of a tile.
    tile: [u64; 2],
    outer: Order,
    inner: Order,
}

impl Tiling {
    /// A tiling from the four sizes of the packed form, as a program gives them.
    pub(crate) fn new(sizes: [i64; 4], outer: Order, inner: Order) -> Result<Self> {
        let mut tiles = [size(sizes[0], "packed size 0")?, size(sizes[1], "packed size 1")?];
        let mut tile = [size(sizes[2], "packed size 2")?, size(sizes[3], "packed size 3")?];
        if outer == Order::Columns {
            tiles.reverse();
        }
        if inner == Order::Columns {
            tile.reverse();
        }
        Ok(Self { tiles, tile, outer, inner })
    }

    /// The packed form as a matrix of rows (or columns) of tiles.
    pub(crate) fn shape(&self) -> Result<Shape> {
        let [below, beside] = self.tiles;
        let (rows, tiles) = if self.outer == Order::Rows { (below, beside) } else { (beside, below) };
        Ok(Shape { rows, columns: product(&[tiles, self.tile[0], self.tile[1]], "the size of a row of tiles")? })
    }

    fn is_empty(&self) -> bool {
        self.tiles.contains(&0) || self.tile.contains(&0)
    }

    /// INVALID_ARGUMENT unless the tiles cover a matrix.
    fn check_cover(&self, shape: Shape) -> Result<()> {
        // Both factors are below 2^32.
        let covered = [self.tiles[0] * self.tile[0], self.tiles[1] * self.tile[1]];
        if covered[0] >= shape.rows && covered[1] >= shape.columns {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{} x {} tiles of {} x {} elements do not cover a matrix of {} x {}",
            self.tiles[0], self.tiles[1], self.tile[0], self.tile[1], shape.rows, shape.columns
        )))
    }

    /// Row and column in [`Tiling::shape`] of the first element of a tile.
    fn tile_position(&self, below: u64, beside: u64) -> (u64, u64) {
        let elements = self.tile[0] * self.tile[1];
        if self.outer == Order::Rows { (below, beside * elements) } else { (beside, below * elements) }
    }

    /// Position in its tile of an element.
    fn position_in_tile(&self, row: u64, column: u64) -> u64 {
        if self.inner == Order::Rows { row * self.tile[1] + column } else { column * self.tile[0] + row }
    }

    /// Row and column in [`Tiling::shape`] of the element that stands at (row, column) of the matrix.
    fn position(&self, row: u64, column: u64) -> (u64, u64) {
        let [height, width] = self.tile;
        let (line, start) = self.tile_position(row / height, column / width);
        (line, start + self.position_in_tile(row % height, column % width))
    }

    /// A strip of tiles that is rearranged at once, if tiles are small enough.
    fn strip(&self) -> Option<Strip> {
        let [height, width] = self.tile.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let elements = height.checked_mul(width).filter(|elements| *elements <= STRIP)?;
        Some(Strip { height, width, elements, tiles: STRIP / elements, inner: self.inner })
    }
}

/// One operand of `pack` and `unpack`, as programs give it.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) buffer: &'a Buffer,
    pub(crate) placement: Placement,
}

impl Operand<'_> {
    /// The placement of a packed form, which is dense inside its rows of tiles whatever its inner stride says; the official
    /// runtime does not look at that stride either.
    fn packed(&self) -> Placement {
        Placement { offset: self.placement.offset, strides: [self.placement.strides[0], 1] }
    }
}

/// Cuts a matrix into tiles; tile elements outside the matrix become `padding`.
pub(crate) fn pack<T: Element>(
    meter: &mut Meter,
    input: Operand<'_>,
    output: Operand<'_>,
    shape: Shape,
    tiling: &Tiling,
    padding: T,
) -> Result<()> {
    let input = Matrix::<T>::input(input.buffer, input.placement, shape, "the matrix")?;
    let output = Matrix::<T>::output(output.buffer, output.packed(), tiling.shape()?, "the packed form")?;
    let ([below, beside], [height, width]) = (tiling.tiles, tiling.tile);
    meter.charge_product(&[below, beside, height, width])?;
    if tiling.is_empty() {
        return Ok(());
    }
    tiling.check_cover(shape)?;
    let mut pace = Pace::new(meter)?;
    let Some(strip) = tiling.strip() else { return pack_elements(&mut pace, input, output, shape, tiling, padding) };
    let (mut lines, mut tiles) = ([padding; STRIP], [padding; STRIP]);
    for tile_row in 0..below {
        let first_row = tile_row * height;
        let lines_inside = shape.rows.saturating_sub(first_row).min(height);
        let mut tile_column = 0;
        while tile_column < beside {
            let count = (beside - tile_column).min(strip.tiles as u64);
            let (first_column, strip_width) = (tile_column * width, count * width);
            let columns_inside = shape.columns.saturating_sub(first_column).min(strip_width);
            if lines_inside < height || columns_inside < strip_width {
                lines.fill(padding);
            }
            for (line, values) in (0..lines_inside).zip(lines.chunks_exact_mut(strip_width as usize)) {
                if columns_inside > 0 {
                    input.read(first_row + line, first_column, &mut values[..columns_inside as usize])?;
                }
            }
            strip.cut(&lines, &mut tiles, count as usize);
            write_tiles(output, tiling, &strip, &mut tiles[..count as usize * strip.elements], tile_row, tile_column)?;
            tile_column += count;
            pace.step(count * height * width)?;
        }
    }
    Ok(())
}

/// Puts tiles together to a matrix; what lies outside the matrix is dropped.
pub(crate) fn unpack<T: Element>(meter: &mut Meter, input: Operand<'_>, output: Operand<'_>, shape: Shape, tiling: &Tiling) -> Result<()> {
    let input = Matrix::<T>::input(input.buffer, input.packed(), tiling.shape()?, "the packed form")?;
    let output = Matrix::<T>::output(output.buffer, output.placement, shape, "the matrix")?;
    if shape.is_empty() {
        return Ok(());
    }
    tiling.check_cover(shape)?;
    let [height, width] = tiling.tile;
    let (below, beside) = (shape.rows.div_ceil(height), shape.columns.div_ceil(width));
    meter.charge_product(&[below, beside, height, width])?;
    let mut pace = Pace::new(meter)?;
    let Some(strip) = tiling.strip() else { return unpack_elements(&mut pace, input, output, shape, tiling) };
    let (mut lines, mut tiles) = ([T::zeroed(); STRIP], [T::zeroed(); STRIP]);
    for tile_row in 0..below {
        let first_row = tile_row * height;
        let lines_inside = (shape.rows - first_row).min(height);
        let mut tile_column = 0;
        while tile_column < beside {
            let count = (beside - tile_column).min(strip.tiles as u64);
            let (first_column, strip_width) = (tile_column * width, count * width);
            let columns_inside = (shape.columns - first_column).min(strip_width);
            read_tiles(input, tiling, &strip, &mut tiles[..count as usize * strip.elements], tile_row, tile_column)?;
            strip.join(&tiles, &mut lines, count as usize);
            for (line, values) in (0..lines_inside).zip(lines.chunks_exact_mut(strip_width as usize)) {
                output.write(first_row + line, first_column, &mut values[..columns_inside as usize])?;
            }
            tile_column += count;
            pace.step(count * height * width)?;
        }
    }
    Ok(())
}

/// Tiles that lie beside each other, as tiles and as lines of the matrix.
struct Strip {
    height: usize,
    width: usize,
    elements: usize,
    /// The most tiles that are rearranged at once.
    tiles: usize,
    inner: Order,
}

impl Strip {
    /// Lines to tiles.
    fn cut<T: Copy>(&self, lines: &[T], tiles: &mut [T], count: usize) {
        self.each(count, |in_lines, in_tiles| tiles[in_tiles] = lines[in_lines]);
    }

    /// Tiles to lines.
    fn join<T: Copy>(&self, tiles: &[T], lines: &mut [T], count: usize) {
        self.each(count, |in_lines, in_tiles| lines[in_lines] = tiles[in_tiles]);
    }

    /// Calls `work` with every position in the lines and in the tiles.
    #[inline(always)]
    fn each(&self, count: usize, mut work: impl FnMut(usize, usize)) {
        let strip_width = count * self.width;
        let (row_step, column_step) = if self.inner == Order::Rows { (self.width, 1) } else { (1, self.height) };
        for row in 0..self.height {
            for tile in 0..count {
                let line = row * strip_width + tile * self.width;
                let start = tile * self.elements + row * row_step;
                for column in 0..self.width {
                    work(line + column, start + column * column_step);
                }
            }
        }
    }
}

/// Writes tiles that lie beside each other in the matrix.
fn write_tiles<T: Element>(
    packed: Matrix<'_, T>,
    tiling: &Tiling,
    strip: &Strip,
    tiles: &mut [T],
    tile_row: u64,
    tile_column: u64,
) -> Result<()> {
    if tiling.outer == Order::Rows {
        let (line, start) = tiling.tile_position(tile_row, tile_column);
        return packed.write(line, start, tiles);
    }
    for (beside, tile) in (tile_column..).zip(tiles.chunks_exact_mut(strip.elements)) {
        let (line, start) = tiling.tile_position(tile_row, beside);
        packed.write(line, start, tile)?;
    }
    Ok(())
}

/// Reads tiles that lie beside each other in the matrix.
fn read_tiles<T: Element>(
    packed: Matrix<'_, T>,
    tiling: &Tiling,
    strip: &Strip,
    tiles: &mut [T],
    tile_row: u64,
    tile_column: u64,
) -> Result<()> {
    if tiling.outer == Order::Rows {
        let (line, start) = tiling.tile_position(tile_row, tile_column);
        return packed.read(line, start, tiles);
    }
    for (beside, tile) in (tile_column..).zip(tiles.chunks_exact_mut(strip.elements)) {
        let (line, start) = tiling.tile_position(tile_row, beside);
        packed.read(line, start, tile)?;
    }
    Ok(())
}

fn pack_elements<T: Element>(
    pace: &mut Pace<'_>,
    input: Matrix<'_, T>,
    output: Matrix<'_, T>,
    shape: Shape,
    tiling: &Tiling,
    padding: T,
) -> Result<()> {
    for row in 0..tiling.tiles[0] * tiling.tile[0] {
        for column in 0..tiling.tiles[1] * tiling.tile[1] {
            let inside = row < shape.rows && column < shape.columns;
            let value = if inside { input.get(row, column)? } else { padding };
            let (line, position) = tiling.position(row, column);
            output.set(line, position, value)?;
            pace.step(1)?;
        }
    }
    Ok(())
}

fn unpack_elements<T: Element>(
    pace: &mut Pace<'_>,
    input: Matrix<'_, T>,
    output: Matrix<'_, T>,
    shape: Shape,
    tiling: &Tiling,
) -> Result<()> {
    for row in 0..shape.rows {
        for column in 0..shape.columns {
            let (line, position) = tiling.position(row, column);
            output.set(row, column, input.get(line, position)?)?;
            pace.step(1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "pack_tests.rs"]
mod tests;
