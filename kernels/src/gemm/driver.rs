//! The loops around the micro-kernel.

use super::epilogue::Epilogue;
use super::factor::Factor;
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

/// A product with checked shapes: A `[m, k]`, B `[k, n]`, C `[m, n]`.
pub(super) struct Product<'a, T: Factor> {
    pub(super) a: MatRef<'a, T>,
    pub(super) b: OperandB<'a, T::Sum>,
    /// Columns of B and C in LOOP 5, whole vectors; for a packed B, those of its panels.
    pub(super) nc: usize,
    pub(super) alpha: T::Sum,
    pub(super) beta: T::Sum,
    /// With a bias, C is row-major and not read: alpha 1, beta 0.
    pub(super) epilogue: Epilogue<'a, T::Sum>,
    pub(super) c: MatMut<'a, T::Sum>,
}

impl<T: Factor> Product<'_, T> {
    /// Computes it, in pieces of [`SCRATCH_ROWS`] rows if partial sums need memory.
    pub(super) fn run(self, workspace: &mut Workspace<T::Sum>) {
        let Product { mut a, b, nc, mut alpha, beta, epilogue, mut c } = self;
        let Epilogue { bias, mut activation } = epilogue;
        if c.is_empty() {
            return;
        }
        if alpha == T::Sum::ZERO {
            // With k = 0, AB is +0, and fma(-0, +0, x) is x, also for -0.
            a = a.split_cols(0).0;
            alpha = if beta == T::Sum::ZERO { T::Sum::ZERO } else { -T::Sum::ZERO };
        }
        let k = a.shape[1];
        let scratch = k > KC && (beta != T::Sum::ZERO || c.strides[1] != 1);
        while scratch && c.shape[0] > SCRATCH_ROWS {
            let (a_above, a_below) = a.split_rows(SCRATCH_ROWS);
            let (c_above, c_below) = c.split_rows(SCRATCH_ROWS);
            let split = activation.map(|activation| activation.split_rows(SCRATCH_ROWS));
            let (above, below) = split.unzip();
            let epilogue = Epilogue { bias, activation: above };
            Product { a: a_above, b, nc, alpha, beta, epilogue, c: c_above }
                .run_piece(scratch, workspace);
            (a, c, activation) = (a_below, c_below, below);
        }
        let epilogue = Epilogue { bias, activation };
        Product { a, b, nc, alpha, beta, epilogue, c }.run_piece(scratch, workspace);
    }

    fn run_piece(self, scratch: bool, workspace: &mut Workspace<T::Sum>) {
        let Product { ref a, b, nc, alpha, beta, epilogue, c } = self;
        let a_in_place = T::as_sums(*a);
        let (k, b) = (a.shape[1], Operands { a, a_in_place, b });
        T::multiply(b.piece(k, nc, (alpha, beta), epilogue, c, scratch, workspace));
    }
}

/// The operands of a product, independent of the type of its factors.
pub(super) struct Operands<'a, E> {
    pub(super) a: &'a dyn Source<E>,
    /// A, if its elements have the type of the sums.
    pub(super) a_in_place: Option<MatRef<'a, E>>,
    pub(super) b: OperandB<'a, E>,
}

impl<'a, E: Float> Operands<'a, E> {
    /// The product of `k` values, with its part of the workspace. `scratch` asks for memory for partial sums.
    #[allow(clippy::too_many_arguments, reason = "those of a `Product`")]
    pub(super) fn piece(
        self,
        k: usize,
        nc: usize,
        (alpha, beta): (E, E),
        epilogue: Epilogue<'a, E>,
        c: MatMut<'a, E>,
        scratch: bool,
        workspace: &mut Workspace<E>,
    ) -> Piece<'a, E> {
        let Operands { a, a_in_place, b } = self;
        let [m, n] = c.shape;
        let width = n.min(nc).next_multiple_of(MAX_LANES);
        let packed = match b {
            OperandB::Strided(_) => KC.min(k) * width,
            OperandB::InPlace(_) | OperandB::Indirect(_) | OperandB::Packed(_) => 0,
        };
        let spill = MR * MAX_NV * MAX_LANES;
        let is_read_in_place = a_in_place.is_some_and(|a| a.strides[1] == 1);
        let copy = if is_read_in_place { 0 } else { copied_len([A_ROWS, KC.min(k)]) };
        let partial = if scratch { m * width } else { 0 };
        let spill_memory = workspace.elements(spill + copy + packed + partial).cast::<E>();
        let copy_memory = spill_memory.wrapping_add(spill);
        let packed_memory = copy_memory.wrapping_add(copy);
        let memory = Memory {
            spill: spill_memory,
            copy_of_a: copy_memory,
            packed: packed_memory,
            partial: packed_memory.wrapping_add(packed),
            has_partial: scratch,
        };
        Piece { a, a_in_place, k, b, nc, alpha, beta, epilogue, c, memory }
    }
}

/// Parts of the workspace, with the lengths that `run_piece` computed.
struct Memory<E> {
    /// One tile of sums, if C cannot be written directly.
    spill: *mut E,
    /// [A_ROWS, KC] of A.
    copy_of_a: *mut E,
    /// [KC, NC] of B.
    packed: *mut E,
    /// [m, NC] sums over the blocks of k so far.
    partial: *mut E,
    has_partial: bool,
}

/// A product with its memory, independent of the type of its factors.
pub struct Piece<'a, E> {
    a: &'a dyn Source<E>,
    /// A, if its elements have the type of the sums.
    a_in_place: Option<MatRef<'a, E>>,
    k: usize,
    b: OperandB<'a, E>,
    nc: usize,
    alpha: E,
    beta: E,
    epilogue: Epilogue<'a, E>,
    c: MatMut<'a, E>,
    memory: Memory<E>,
}

impl<E: Float> Task<E> for Piece<'_, E> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Piece { a, a_in_place, k, b, nc, alpha, beta, epilogue, mut c, memory } = self;
        let Epilogue { bias, mut activation } = epilogue;
        let [m, n] = c.shape;
        let panel_vectors = match b {
            OperandB::Strided(b) if m <= IN_PLACE_ROWS && b.strides()[0] == 1 => SKINNY_VECTORS,
            OperandB::Strided(_) if m <= FEW_ROWS => {
                (nc / S::LANES).min(FEW_ROWS_BYTES / (KC * S::LANES * size_of::<E>()))
            }
            _ => nc / S::LANES,
        };
        let panels = Split::new(n.div_ceil(S::LANES), panel_vectors);
        let in_place = matches!(b, OperandB::InPlace(_) | OperandB::Indirect(_));
        let rows = Split::new(m, MR);
        let plain = alpha == E::ONE && c.strides[1] == 1;
        // With few rows, wait until they are one long run.
        let at_once = m <= IN_PLACE_ROWS;

        // LOOP 5: a panel of B and C
        for panel in 0..panels.parts() {
            let left = panels.start(panel) * S::LANES;
            let width = panels.len(panel) * S::LANES;
            let columns = width.min(n - left);
            let tiles = Split::new(panels.len(panel), const { max_vectors(S::ISA) });
            let c_panel = step(c.data, left, c.strides[1]);

            // LOOP 4: a block of k; one empty block if k = 0
            let mut from = 0;
            loop {
                let depth = KC.min(k - from);
                let (first, last) = (from == 0, from + depth == k);
                // The distance between rows of B; 0 stands for a tile's width if B is packed.
                let (b_block, b_step) = match b {
                    OperandB::InPlace(b) => (
                        step(b.data.cast_mut(), from, b.strides[0]).wrapping_add(left),
                        b.strides[0],
                    ),
                    OperandB::Indirect(b) => (b.data.cast_mut().wrapping_add(left), 0),
                    OperandB::Strided(b) => {
                        // SAFETY: `packed` holds KC x NC elements.
                        unsafe { b.pack((from, left), (depth, columns), memory.packed) };
                        (memory.packed, 0)
                    }
                    OperandB::Packed(b) => {
                        (b.data.cast_mut().wrapping_add(left * k + from * width), 0)
                    }
                };
                let b_rows = match b {
                    OperandB::Indirect(b) => Some(&b.offsets[from..from + depth]),
                    _ => None,
                };
                // The sums over the blocks so far, and the output of this block.
                let (sums, sums_row) = if memory.has_partial {
                    (memory.partial, width as isize)
                } else {
                    (c_panel, c.strides[0])
                };
                let direct = !last || plain && (beta == E::ZERO || beta == E::ONE && first);
                let (out, out_row) = if last { (c_panel, c.strides[0]) } else { (sums, sums_row) };
                let add = !first || last && beta != E::ZERO;
                let bias = bias.filter(|_| last).map(|bias| bias.as_ptr().wrapping_add(left));
                // Columns of A are read in place if they are read once.
                let a_in_place = a_in_place
                    .filter(|a| a.strides[1] == 1 || a.strides[0] == 1 && tiles.parts() == 1);

                // LOOP 3: a group of rows of A
                for group in (0..rows.parts()).step_by(A_TILES) {
                    let group_rows = A_TILES.min(rows.parts() - group);
                    let group_top = rows.start(group);
                    let end = group + group_rows - 1;
                    let group_height = rows.start(end) + rows.len(end) - group_top;
                    let (a_group, a_strides) = match a_in_place {
                        Some(a) => {
                            let corner = step(a.data.cast_mut(), from, a.strides[1]);
                            (step(corner, group_top, a.strides[0]), a.strides)
                        }
                        None => {
                            let shape = (group_height, depth);
                            // SAFETY: the memory holds A_ROWS rows of KC elements.
                            unsafe { a.copy((group_top, from), shape, memory.copy_of_a) };
                            (memory.copy_of_a, [copied_row(depth) as isize, 1])
                        }
                    };

                    // LOOP 2 and LOOP 1: tiles of C; those that share a tile of B come one after
                    // the other if it stays in L1.
                    let rows_first = const { tiles_of_b_stay(S::ISA) };
                    let (mut row, mut tile) = (group, 0);
                    while row - group < group_rows && tile < tiles.parts() {
                        let (top, height) = (rows.start(row), rows.len(row));
                        let start = tiles.start(tile) * S::LANES;
                        let vectors = tiles.len(tile);
                        let end = S::LANES.min(columns - start - (vectors - 1) * S::LANES);
                        let spill_row = (vectors * S::LANES) as isize;
                        let (b, b_step) = if in_place {
                            (b_block.wrapping_add(start), b_step)
                        } else {
                            (b_block.wrapping_add(start * depth), spill_row)
                        };
                        let (out, out_row, add, tile_bias) = if direct {
                            let bias = bias.map(|bias| bias.wrapping_add(start));
                            (step(out, top, out_row).wrapping_add(start), out_row, add, bias)
                        } else {
                            (memory.spill, spill_row, false, None)
                        };
                        // SAFETY: rows and vectors come from splits by MR and max_vectors. Rows
                        // `top..top + height` over the block's k are in A (or its copy), and the
                        // tile's columns in B (or its panel). If `direct`, C or the partial sums
                        // have contiguous columns. `add` reads what the previous block wrote, or a
                        // C that is initialised because beta is not 0. A bias has one element per
                        // column.
                        unsafe {
                            Tile {
                                rows: height,
                                vectors,
                                depth,
                                resume: false,
                                a: step(a_group, top - group_top, a_strides[0]).cast_const(),
                                a_rows: row_offsets(a_strides[0]),
                                a_step: a_strides[1],
                                b,
                                b_step,
                                b_rows,
                                out,
                                out_row,
                                last: end,
                                add,
                                bias: tile_bias,
                            }
                            .run(simd);
                        }
                        if !direct {
                            let finish = Finish {
                                shape: [height, columns.min(start + vectors * S::LANES) - start],
                                acc: out.cast_const(),
                                acc_row: out_row,
                                sums: step(sums, top, sums_row).wrapping_add(start),
                                sums_row,
                                first,
                                last,
                                c: step(step(c_panel, top, c.strides[0]), start, c.strides[1]),
                                c_strides: c.strides,
                                alpha,
                                beta,
                                bias: None,
                            };
                            // SAFETY: the tile's rows and columns are in C and, unless this is the
                            // first block, in the partial sums that the previous block wrote.
                            unsafe { finish.run(simd) };
                        }
                        if rows_first {
                            row += 1;
                            if row == group + group_rows {
                                (row, tile) = (group, tile + 1);
                            }
                        } else {
                            tile += 1;
                            if tile == tiles.parts() {
                                (row, tile) = (row + 1, 0);
                            }
                        }
                    }
                    if let Some(activation) = &mut activation
                        && last
                        && !at_once
                    {
                        let corner = [group_top, left];
                        activation.finish(c.part(corner, [group_height, columns]), corner);
                    }
                }

                from += depth;
                if last {
                    break;
                }
            }
        }
        if let Some(activation) = &mut activation
            && at_once
        {
            activation.finish(c, [0, 0]);
        }
    }
}

/// Finishes a block's sums if they cannot be written or added directly.
pub(super) struct Finish<E> {
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

impl<E: Float> Finish<E> {
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
