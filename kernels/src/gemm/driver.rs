//! The loops around the micro-kernel.

use super::epilogue::Epilogue;
use super::indirect::Indirect;
use super::matrix::{MatMut, MatRef, step};
use super::pack::{A_ROWS, A_TILES, Source, copied_len, copied_row};
use super::packed::PackedB;
use super::split::Split;
use super::tile::{MAX_NV, MR, Tile, max_vectors, row_offsets, tiles_of_b_stay};
use super::workspace::Workspace;
use super::{FEW_ROWS, FEW_ROWS_BYTES, IN_PLACE_ROWS, KC, SCRATCH_ROWS, SKINNY_VECTORS};
use crate::simd::{Float, Lanes, MAX_LANES, Task, Vector};

/// The forms in which B is read.
#[derive(Clone, Copy)]
pub(super) enum OperandB<'a, E> {
    /// Rows are contiguous and read in place.
    InPlace(MatRef<'a, E>),
    /// Rows are contiguous, begin anywhere, and are read in place.
    Indirect(&'a Indirect<'a, E>),
    /// Packed block by block into the workspace.
    Strided(&'a dyn Source<E>),
    /// Packed as a whole, in advance.
    Packed(&'a PackedB<'a, E>),
}

/// The operands of a product, independent of the type of its factors: A `[m, k]` and B `[k, n]`.
pub(super) struct Operands<'a, E> {
    pub(super) a: &'a dyn Source<E>,
    /// A, if its elements have the type of the sums.
    pub(super) a_in_place: Option<MatRef<'a, E>>,
    pub(super) b: OperandB<'a, E>,
    pub(super) k: usize,
    /// Columns of B and C in LOOP 5, whole vectors; for a packed B, those of its panels.
    pub(super) nc: usize,
}

/// A product in blocks, with a C `[m, n]` that is not empty.
pub struct Blocked<'a, E> {
    operands: Operands<'a, E>,
    alpha: E,
    beta: E,
    /// Added to each row, if alpha = 1, beta = 0 and rows of C are contiguous.
    bias: Option<&'a [E]>,
    epilogue: Epilogue<'a, E>,
    c: MatMut<'a, E>,
    memory: Memory<E>,
}

/// Parts of the workspace.
struct Memory<E> {
    /// One tile of sums, if C cannot be written directly.
    spill: *mut E,
    /// [A_ROWS, KC] of A.
    copy_of_a: *mut E,
    /// [KC, NC] of B.
    packed: *mut E,
    /// [SCRATCH_ROWS, NC] sums over the blocks of k so far, if C cannot hold them.
    partial: Option<*mut E>,
}

impl<'a, E: Float> Blocked<'a, E> {
    /// The product of operands that fit C, with its part of the workspace.
    pub(super) fn new(
        mut operands: Operands<'a, E>,
        (mut alpha, beta): (E, E),
        bias: Option<&'a [E]>,
        epilogue: Epilogue<'a, E>,
        c: MatMut<'a, E>,
        workspace: &mut Workspace<E>,
    ) -> Self {
        if alpha == E::ZERO {
            // With k = 0, AB is +0, and fma(-0, +0, x) is x, also for -0.
            operands.k = 0;
            alpha = if beta == E::ZERO { E::ZERO } else { -E::ZERO };
        }
        let Operands { a_in_place, ref b, k, nc, .. } = operands;
        let ([m, n], depth) = (c.shape, KC.min(k));
        let width = n.min(nc).next_multiple_of(MAX_LANES);
        let is_read_in_place = a_in_place.is_some_and(|a| a.strides[1] == 1);
        let is_kept_in_c = k <= KC || beta == E::ZERO && c.strides[1] == 1;
        let spill = MR * MAX_NV * MAX_LANES;
        let copy = if is_read_in_place { 0 } else { copied_len([A_ROWS, depth]) };
        let packed = if let OperandB::Strided(_) = b { depth * width } else { 0 };
        let partial = if is_kept_in_c { 0 } else { m.min(SCRATCH_ROWS) * width };
        let memory = workspace.elements(spill + copy + packed + partial).cast::<E>();
        let memory = Memory {
            spill: memory,
            copy_of_a: memory.wrapping_add(spill),
            packed: memory.wrapping_add(spill + copy),
            partial: (!is_kept_in_c).then(|| memory.wrapping_add(spill + copy + packed)),
        };
        Blocked { operands, alpha, beta, bias, epilogue, c, memory }
    }

    /// The most vectors of a panel.
    #[inline(always)]
    fn panel_vectors<S: Lanes<E>>(&self) -> usize {
        let (m, nc) = (self.c.shape[0], self.operands.nc);
        match self.operands.b {
            OperandB::Strided(b) if m <= IN_PLACE_ROWS && b.strides()[0] == 1 => SKINNY_VECTORS,
            OperandB::Strided(_) if m <= FEW_ROWS => {
                (nc / S::LANES).min(FEW_ROWS_BYTES / (KC * S::LANES * size_of::<E>()))
            }
            _ => nc / S::LANES,
        }
    }
}

impl<E: Float> Task<E> for Blocked<'_, E> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<E>>(mut self, simd: S) {
        let [m, n] = self.c.shape;
        let panels = Split::new(n.div_ceil(S::LANES), self.panel_vectors::<S>());
        // With few rows, the epilogue waits until they are one long run.
        let at_once = m <= IN_PLACE_ROWS;
        // All rows, or as many as the memory of partial sums has.
        let most = if self.memory.partial.is_some() { SCRATCH_ROWS } else { m };
        for top in (0..m).step_by(most) {
            let rows = Split::new(most.min(m - top), MR);
            // LOOP 5: a panel of B and C
            for panel in 0..panels.parts() {
                let (left, vectors) = (panels.start(panel) * S::LANES, panels.len(panel));
                let tiles = Split::new(vectors, const { max_vectors(S::ISA) });
                let columns = (vectors * S::LANES).min(n - left);
                // LOOP 4: a block of k; one empty block if k = 0
                let mut from = 0;
                loop {
                    let at = [top, left, from];
                    let block = self.block(at, vectors * S::LANES, columns, tiles);
                    // LOOP 3: a group of rows of A
                    for group in (0..rows.parts()).step_by(A_TILES) {
                        let end = rows.parts().min(group + A_TILES);
                        let (start, stop) = (rows.start(group), rows.start(end));
                        self.group(simd, &block, &rows, group..end);
                        if block.last && !at_once {
                            let corner = [top + start, left];
                            let part = self.c.part(corner, [stop - start, columns]);
                            self.epilogue.finish(part, corner);
                        }
                    }
                    from += block.depth;
                    if block.last {
                        break;
                    }
                }
            }
        }
        if at_once {
            self.epilogue.finish(self.c, [0, 0]);
        }
    }
}

/// A block of k of a panel of B and C.
struct Block<'a, E> {
    /// The first row of C, the first value of k.
    top: usize,
    from: usize,
    depth: usize,
    /// True if it is the first, the last block of k.
    first: bool,
    last: bool,
    columns: usize,
    tiles: Split,
    a_in_place: Option<MatRef<'a, E>>,
    b: *const E,
    /// The distance between rows of B, or its offsets from `b`; a packed B has rows of a tile's width.
    b_step: isize,
    b_rows: Option<&'a [usize]>,
    b_is_packed: bool,
    /// The panel of C.
    c: *mut E,
    /// The sums over the blocks so far.
    sums: *mut E,
    sums_row: isize,
    /// True if tiles are written, or added, to `c` or `sums`.
    direct: bool,
    bias: Option<*const E>,
}

impl<'a, E: Float> Blocked<'a, E> {
    /// The block of the panel of `columns` columns, `width` with the padding, that begins at row `top`, column `left` and
    /// value `from` of k. Packs its part of B.
    #[inline(always)]
    fn block(
        &self,
        [top, left, from]: [usize; 3],
        width: usize,
        columns: usize,
        tiles: Split,
    ) -> Block<'a, E> {
        let Blocked { ref operands, alpha, beta, ref c, ref memory, .. } = *self;
        let k = operands.k;
        let depth = KC.min(k - from);
        let (first, last) = (from == 0, from + depth == k);
        let (mut b_step, mut b_rows, mut b_is_packed) = (0, None, false);
        let b = match operands.b {
            OperandB::InPlace(b) => {
                b_step = b.strides[0];
                step(b.data.cast_mut(), from, b_step).wrapping_add(left)
            }
            OperandB::Indirect(b) => {
                b_rows = Some(&b.offsets[from..from + depth]);
                b.data.cast_mut().wrapping_add(left)
            }
            OperandB::Strided(b) => {
                b_is_packed = true;
                // SAFETY: `packed` holds KC x NC elements.
                unsafe { b.pack((from, left), (depth, columns), memory.packed) };
                memory.packed
            }
            OperandB::Packed(b) => {
                b_is_packed = true;
                b.data.cast_mut().wrapping_add(left * k + from * width)
            }
        };
        let c_panel = step(step(c.data, top, c.strides[0]), left, c.strides[1]);
        let (sums, sums_row) =
            memory.partial.map_or((c_panel, c.strides[0]), |sums| (sums, width as isize));
        let is_plain = alpha == E::ONE && c.strides[1] == 1;
        Block {
            top,
            from,
            depth,
            first,
            last,
            columns,
            tiles,
            // Columns of A are read in place if they are read once.
            a_in_place: operands
                .a_in_place
                .filter(|a| a.strides[1] == 1 || a.strides[0] == 1 && tiles.parts() == 1),
            b: b.cast_const(),
            b_step,
            b_rows,
            b_is_packed,
            c: c_panel,
            sums,
            sums_row,
            direct: !last || is_plain && (beta == E::ZERO || beta == E::ONE && first),
            bias: self.bias.filter(|_| last).map(|bias| bias.as_ptr().wrapping_add(left)),
        }
    }

    /// LOOP 2 and LOOP 1: tiles of C, in a group of the splits of rows. Those that share a tile of B come one after
    /// the other if it stays in L1.
    #[inline(always)]
    fn group<S: Lanes<E>>(
        &self,
        simd: S,
        block: &Block<'_, E>,
        rows: &Split,
        group: core::ops::Range<usize>,
    ) {
        let Block { depth, from, .. } = *block;
        let group_top = rows.start(group.start);
        let a_top = block.top + group_top;
        let (a, a_strides) = match block.a_in_place {
            Some(a) => {
                let corner = step(a.data.cast_mut(), from, a.strides[1]);
                (step(corner, a_top, a.strides[0]), a.strides)
            }
            None => {
                let shape = (rows.start(group.end) - group_top, depth);
                // SAFETY: the memory holds A_ROWS rows of KC elements.
                unsafe { self.operands.a.copy((a_top, from), shape, self.memory.copy_of_a) };
                (self.memory.copy_of_a, [copied_row(depth) as isize, 1])
            }
        };
        let rows_first = const { tiles_of_b_stay(S::ISA) };
        let (mut row, mut tile) = (group.start, 0);
        while row < group.end && tile < block.tiles.parts() {
            let (top, height) = (rows.start(row), rows.len(row));
            let a = step(a, top - group_top, a_strides[0]).cast_const();
            self.tile(simd, block, (a, a_strides), (top, height), tile);
            if rows_first {
                row += 1;
                if row == group.end {
                    (row, tile) = (group.start, tile + 1);
                }
            } else {
                tile += 1;
                if tile == block.tiles.parts() {
                    (row, tile) = (row + 1, 0);
                }
            }
        }
    }

    /// Computes a tile of `height` rows from `top` on of the block.
    #[inline(always)]
    fn tile<S: Lanes<E>>(
        &self,
        simd: S,
        block: &Block<'_, E>,
        (a, a_strides): (*const E, [isize; 2]),
        (top, height): (usize, usize),
        tile: usize,
    ) {
        let Blocked { alpha, beta, ref c, ref memory, .. } = *self;
        let &Block { first, last, depth, columns, direct, sums, sums_row, .. } = block;
        let (start, vectors) = (block.tiles.start(tile) * S::LANES, block.tiles.len(tile));
        let width = (vectors * S::LANES) as isize;
        let (b, b_step) = if block.b_is_packed {
            (block.b.wrapping_add(start * depth), width)
        } else {
            (block.b.wrapping_add(start), block.b_step)
        };
        let (out, out_row) = match (direct, last) {
            (false, _) => (memory.spill, width),
            (true, true) => (step(block.c, top, c.strides[0]).wrapping_add(start), c.strides[0]),
            (true, false) => (step(sums, top, sums_row).wrapping_add(start), sums_row),
        };
        // SAFETY: rows and vectors come from splits by MR and max_vectors. Rows `top..top + height` over
        // the block's k are in A (or its copy), and the tile's columns in B (or its panel). If `direct`, C
        // or the partial sums have contiguous columns. `add` reads what the previous block wrote, or a C
        // that is initialised because beta is not 0. A bias has one element per column.
        unsafe {
            Tile {
                rows: height,
                vectors,
                depth,
                resume: false,
                a,
                a_rows: row_offsets(a_strides[0]),
                a_step: a_strides[1],
                b,
                b_step,
                b_rows: block.b_rows,
                out,
                out_row,
                last: S::LANES.min(columns - start - (vectors - 1) * S::LANES),
                add: direct && (!first || last && beta != E::ZERO),
                bias: block.bias.map(|bias| bias.wrapping_add(start)),
            }
            .run(simd);
        }
        if !direct {
            let combine = Combine {
                shape: [height, (columns - start).min(vectors * S::LANES)],
                acc: out.cast_const(),
                acc_row: out_row,
                sums: step(sums, top, sums_row).wrapping_add(start),
                sums_row,
                first,
                last,
                c: step(step(block.c, top, c.strides[0]), start, c.strides[1]),
                c_strides: c.strides,
                alpha,
                beta,
                bias: None,
            };
            // SAFETY: the tile's rows and columns are in C and, unless this is the first block, in the
            // partial sums that the previous block wrote.
            unsafe { combine.run(simd) };
        }
    }
}

/// Adds the sums of a block of k to those of the blocks before, if the tile cannot.
pub(super) struct Combine<E> {
    pub(super) shape: [usize; 2],
    /// The sums of this block.
    pub(super) acc: *const E,
    pub(super) acc_row: isize,
    /// The sums of the previous blocks, unless this is the first.
    pub(super) sums: *mut E,
    pub(super) sums_row: isize,
    pub(super) first: bool,
    /// True if this is the last block.
    pub(super) last: bool,
    pub(super) c: *mut E,
    pub(super) c_strides: [isize; 2],
    pub(super) alpha: E,
    pub(super) beta: E,
    /// Added to each row of a C whose columns are contiguous.
    pub(super) bias: Option<*const E>,
}

impl<E: Float> Combine<E> {
    /// AB += acc; after the last block C = alpha · AB, or AB + bias, or fma(alpha, AB, beta · C).
    ///
    /// # Safety
    /// For `shape` rows and columns with contiguous columns: `acc` and, unless `first`, `sums` are
    /// valid for reads. If `last`, `c` is valid for writes and, unless beta = 0, for reads; else
    /// `sums` for writes. `bias` is valid for reads of a row.
    #[inline(always)]
    pub(super) unsafe fn run<S: Lanes<E>>(&self, simd: S) {
        let [rows, columns] = self.shape;
        let (alpha, beta) = (simd.splat(self.alpha), simd.splat(self.beta));
        let whole = if self.c_strides[1] == 1 { columns - columns % S::LANES } else { 0 };
        for i in 0..rows {
            let acc = step(self.acc.cast_mut(), i, self.acc_row);
            let sums = step(self.sums, i, self.sums_row);
            let c = step(self.c, i, self.c_strides[0]);
            // SAFETY: i < rows, and all column indices are below `columns`.
            unsafe {
                for j in (0..whole).step_by(S::LANES) {
                    let mut ab = simd.load(acc.wrapping_add(j));
                    if !self.first {
                        ab = simd.load(sums.wrapping_add(j)) + ab;
                    }
                    if !self.last {
                        simd.store(sums.wrapping_add(j), ab);
                        continue;
                    }
                    let c = c.wrapping_add(j);
                    let result = if let Some(bias) = self.bias {
                        ab + simd.load(bias.wrapping_add(j))
                    } else if self.beta == E::ZERO {
                        alpha * ab
                    } else {
                        alpha.mul_add(ab, beta * simd.load(c))
                    };
                    simd.store(c, result);
                }
                for j in whole..columns {
                    let mut ab = *acc.wrapping_add(j);
                    if !self.first {
                        ab = *sums.wrapping_add(j) + ab;
                    }
                    if !self.last {
                        sums.wrapping_add(j).write(ab);
                        continue;
                    }
                    let c = step(c, j, self.c_strides[1]);
                    c.write(if let Some(bias) = self.bias {
                        ab + *bias.wrapping_add(j)
                    } else if self.beta == E::ZERO {
                        self.alpha * ab
                    } else {
                        self.alpha.mul_add(ab, self.beta * *c)
                    });
                }
            }
        }
    }
}
