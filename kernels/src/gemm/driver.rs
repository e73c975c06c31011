//! The loops around the micro-kernel.

use core::marker::PhantomData;

use super::matrix::{GemmError, MatMut, MatRef, step};
use super::pack::{A_TILES, A_WIDTH, BlockOfA, BlockOfB, MAX_LANES};
use super::split::Split;
use super::tile::{LayoutOfA, MAX_NV, MR, Tile, max_vectors};
use super::workspace::Workspace;
use super::{IN_PLACE_ROWS, KC, NC_BYTES, SCRATCH_ROWS, SKINNY_VECTORS, STREAM_BYTES, STREAM_ROWS};
use crate::dispatch::{ElementTask, Isa, isa};
use crate::simd::{Float, Lanes, Vector};

/// Columns of B and C in LOOP 5.
const fn nc<E>() -> usize {
    NC_BYTES / size_of::<E>()
}

/// B as the micro-kernel finds it.
#[derive(Clone, Copy)]
pub(super) enum OperandB<'a, E> {
    /// Rows are contiguous and read where they lie.
    InPlace(MatRef<'a, E>),
    /// Packed block by block into the workspace.
    Strided(MatRef<'a, E>),
    /// Packed as a whole before.
    Packed(&'a PackedB<'a, E>),
}

impl<E> OperandB<'_, E> {
    fn columns(&self) -> usize {
        match self {
            OperandB::InPlace(b) | OperandB::Strided(b) => b.shape[1],
            OperandB::Packed(b) => b.shape[1],
        }
    }
}

/// A product whose shapes were checked: A `[m, k]`, B `[k, n]`, C `[m, n]`.
pub(super) struct Product<'a, E> {
    pub(super) a: MatRef<'a, E>,
    pub(super) b: OperandB<'a, E>,
    pub(super) alpha: E,
    pub(super) beta: E,
    /// Added to every row of C, which is then row-major and not read: n elements, alpha 1, beta 0.
    pub(super) bias: Option<&'a [E]>,
    pub(super) c: MatMut<'a, E>,
}

impl<E: Float> Product<'_, E> {
    /// Computes it, in pieces of [`SCRATCH_ROWS`] rows if partial sums need memory.
    pub(super) fn run(self, workspace: &mut Workspace<E>) {
        let Product { mut a, b, alpha, beta, bias, mut c } = self;
        let k = a.shape[1];
        let scratch = k > KC && (beta != E::ZERO || c.strides[1] != 1);
        while scratch && c.shape[0] > SCRATCH_ROWS {
            let (a_above, a_below) = a.split_rows(SCRATCH_ROWS);
            let (c_above, c_below) = c.split_rows(SCRATCH_ROWS);
            Product { a: a_above, b, alpha, beta, bias, c: c_above }.run_piece(scratch, workspace);
            (a, c) = (a_below, c_below);
        }
        Product { a, b, alpha, beta, bias, c }.run_piece(scratch, workspace);
    }

    fn run_piece(self, scratch: bool, workspace: &mut Workspace<E>) {
        let [m, n] = self.c.shape;
        if m == 0 || n == 0 {
            return;
        }
        let width = self.b.columns().min(nc::<E>()).next_multiple_of(MAX_LANES);
        let packed = match self.b {
            OperandB::Strided(_) => KC.min(self.a.shape[1]) * width,
            OperandB::InPlace(_) | OperandB::Packed(_) => 0,
        };
        let spill = MR * MAX_NV * MAX_LANES;
        let copy = if self.a.strides[1] == 1 { 0 } else { A_WIDTH * KC.min(self.a.shape[1]) };
        let partial = if scratch { m * width } else { 0 };
        let chains = match self.b {
            OperandB::InPlace(b)
                if b.shape[0].saturating_mul(n) > STREAM_BYTES / size_of::<E>() =>
            {
                m * width
            }
            _ => 0,
        };
        let spill_memory = workspace.elements(spill + copy + packed + chains + partial).cast::<E>();
        let copy_memory = spill_memory.wrapping_add(spill);
        let packed_memory = copy_memory.wrapping_add(copy);
        let memory = Memory {
            spill: spill_memory,
            copy_of_a: copy_memory,
            packed: packed_memory,
            chains: (chains > 0).then_some(packed_memory.wrapping_add(packed)),
            partial: packed_memory.wrapping_add(packed + chains),
            has_partial: scratch,
        };
        E::multiply(Piece { product: self, memory });
    }
}

/// Parts of the workspace, each as long as `run_piece` reckoned.
struct Memory<E> {
    /// One tile of sums, where C cannot be written directly.
    spill: *mut E,
    /// [KC, A_WIDTH] of A.
    copy_of_a: *mut E,
    /// [KC, NC] of B.
    packed: *mut E,
    /// [m, NC] sums over a part of a block of k, if B is streamed.
    chains: Option<*mut E>,
    /// [m, NC] sums over the blocks of k so far.
    partial: *mut E,
    has_partial: bool,
}

/// A product with its memory.
pub struct Piece<'a, E> {
    product: Product<'a, E>,
    memory: Memory<E>,
}

impl<E: Float> ElementTask<E> for Piece<'_, E> {
    type Home = Self;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Product { a, ref b, alpha, beta, bias, ref c } = self.product;
        let ([m, n], k) = (c.shape, a.shape[1]);
        let panel_vectors = match b {
            OperandB::Strided(b) if m <= IN_PLACE_ROWS && b.strides[0] == 1 => SKINNY_VECTORS,
            _ => nc::<E>() / S::LANES,
        };
        let panels = Split::new(n.div_ceil(S::LANES), panel_vectors);
        let in_place = matches!(b, OperandB::InPlace(_));
        // Streaming takes STREAM_ROWS of k at a time and keeps the chains in memory meanwhile.
        let stream = self.memory.chains.is_some();
        let rows = Split::new(m, MR);
        let plain = alpha == E::ONE && c.strides[1] == 1;

        // LOOP 5: a panel of B and C
        for panel in 0..panels.parts() {
            let left = panels.start(panel) * S::LANES;
            let width = panels.len(panel) * S::LANES;
            let columns = width.min(n - left);
            let tiles = Split::new(panels.len(panel), const { max_vectors(S::ISA) });
            let c_panel = step(c.data, left, c.strides[1]);

            // LOOP 4: a block of k; once, empty, if k = 0
            let mut from = 0;
            loop {
                let depth = KC.min(k - from);
                let (first, last) = (from == 0, from + depth == k);
                // Rows of B are this far apart, or a tile's width where it is packed.
                let (b_block, b_step) = match *b {
                    OperandB::InPlace(b) => (
                        step(b.data.cast_mut(), from, b.strides[0]).wrapping_add(left),
                        b.strides[0],
                    ),
                    OperandB::Strided(b) => {
                        let corner = step(b.data.cast_mut(), from, b.strides[0]);
                        let data = step(corner, left, b.strides[1]);
                        let block = BlockOfB { data, strides: b.strides, depth, columns, tiles };
                        // SAFETY: rows `from..from + depth` and columns `left..left + columns` are
                        // in B; `packed` holds KC x NC elements.
                        unsafe { block.pack(simd, self.memory.packed) };
                        (self.memory.packed, 0)
                    }
                    OperandB::Packed(b) => {
                        (b.data.cast_mut().wrapping_add(left * k + from * width), 0)
                    }
                };
                // Where sums over the blocks so far are kept, and where this block's go.
                let (sums, sums_row) = if self.memory.has_partial {
                    (self.memory.partial, width as isize)
                } else {
                    (c_panel, c.strides[0])
                };
                let direct = !last || plain && (beta == E::ZERO || beta == E::ONE && first);
                let (out, out_row) = if last { (c_panel, c.strides[0]) } else { (sums, sums_row) };
                let add = !first || last && beta != E::ZERO;
                let bias = bias.filter(|_| last).map(|bias| bias.as_ptr().wrapping_add(left));
                let layout = match a.strides {
                    [stride, 1] => Some(LayoutOfA::Rows(stride)),
                    [1, stride] if tiles.parts() == 1 => Some(LayoutOfA::Columns(stride)),
                    _ => None,
                };

                // Chains grow where they end up, unless they are to be added there.
                let chains = if add || !direct { self.memory.chains } else { None };
                let mut at = 0;
                loop {
                    let steps = if stream { STREAM_ROWS.min(depth - at) } else { depth };
                    // LOOP 3: a tile's rows of A
                    let corner = step(a.data.cast_mut(), from + at, a.strides[1]);
                    for row in 0..rows.parts() {
                        let (top, height) = (rows.start(row), rows.len(row));
                        let (a_tile, a_layout) = if let Some(layout) = layout {
                            (step(corner, top, a.strides[0]), layout)
                        } else {
                            let group = row - row % A_TILES;
                            let group_top = rows.start(group);
                            if row == group {
                                let next = rows.parts().min(group + A_TILES);
                                let block = BlockOfA {
                                    data: step(corner, top, a.strides[0]),
                                    strides: a.strides,
                                    rows: rows.start(next) - top,
                                    depth: steps,
                                };
                                // SAFETY: the rows and `steps` of k from `from + at` are in A; the
                                // memory holds KC x A_WIDTH elements.
                                unsafe { block.pack(simd, self.memory.copy_of_a) };
                            }
                            let layout = LayoutOfA::Columns(A_WIDTH as isize);
                            (self.memory.copy_of_a.wrapping_add(top - group_top), layout)
                        };

                        // LOOP 2: a tile of C
                        for tile in 0..tiles.parts() {
                            let start = tiles.start(tile) * S::LANES;
                            let vectors = tiles.len(tile);
                            let end = columns - start - (vectors - 1) * S::LANES;
                            let end = if end < S::LANES { end } else { S::LANES };
                            let spill_row = (vectors * S::LANES) as isize;
                            let (b, b_step, b_last) = if in_place {
                                (step(b_block, at, b_step).wrapping_add(start), b_step, end)
                            } else {
                                (b_block.wrapping_add(start * depth), spill_row, S::LANES)
                            };
                            let mut tile_bias = None;
                            let (out, out_row, out_last, add) = if let Some(chains) = chains {
                                let chain = chains.wrapping_add(top * width + start);
                                (chain, width as isize, S::LANES, false)
                            } else if direct {
                                // A streamed tile is finished by its last steps.
                                tile_bias = bias
                                    .filter(|_| at + steps == depth)
                                    .map(|bias| bias.wrapping_add(start));
                                (step(out, top, out_row).wrapping_add(start), out_row, end, add)
                            } else {
                                (self.memory.spill, spill_row, S::LANES, false)
                            };
                            // SAFETY: rows and vectors come from splits by MR and max_vectors. Rows
                            // `top..top + height` over the block's k are in A (or in its copy), the
                            // tile's columns in B (or its panel), and `direct` says that C or the
                            // partial sums have contiguous columns, as chains have; `add` reads what the
                            // block before wrote, or a C that beta requires to be initialised,
                            // `resume` what the steps before wrote. A bias has an element a column.
                            unsafe {
                                Tile {
                                    rows: height,
                                    vectors,
                                    depth: steps,
                                    resume: at > 0,
                                    a: a_tile.cast_const(),
                                    a_layout,
                                    b,
                                    b_step,
                                    b_last,
                                    out,
                                    out_row,
                                    out_last,
                                    add,
                                    bias: tile_bias,
                                }
                                .run(simd);
                            }
                            if !direct && !stream {
                                let finish = Finish {
                                    shape: [
                                        height,
                                        columns.min(start + vectors * S::LANES) - start,
                                    ],
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
                                // first block, in the partial sums that the block before wrote.
                                unsafe { finish.run(simd) };
                            }
                        }
                    }

                    at += steps;
                    if at == depth {
                        break;
                    }
                }
                if let Some(chains) = chains {
                    let finish = Finish {
                        shape: [m, columns],
                        acc: chains.cast_const(),
                        acc_row: width as isize,
                        sums,
                        sums_row,
                        first,
                        last,
                        c: c_panel,
                        c_strides: c.strides,
                        alpha,
                        beta,
                        bias,
                    };
                    // SAFETY: as for a tile, for all rows of the panel; a bias has all its columns.
                    unsafe { finish.run(simd) };
                }

                from += depth;
                if last {
                    break;
                }
            }
        }
    }
}

/// What becomes of a block's sums where they are not simply written or added to their place.
struct Finish<E> {
    shape: [usize; 2],
    /// This block's sums.
    acc: *const E,
    acc_row: isize,
    /// Sums of the blocks before, unless this is the first.
    sums: *mut E,
    sums_row: isize,
    first: bool,
    /// There is no block after this one.
    last: bool,
    c: *mut E,
    c_strides: [isize; 2],
    alpha: E,
    beta: E,
    /// Added to each row of a C whose columns are contiguous.
    bias: Option<*const E>,
}

impl<E: Float> Finish<E> {
    /// AB += acc; after the last block C = alpha · AB (+ bias), or fma(alpha, AB, beta · C).
    ///
    /// # Safety
    /// For `shape` rows and columns `acc` and, unless `first`, `sums` are valid for reads with
    /// contiguous columns; if `last`, `c` for writes and, unless beta = 0, reads; else `sums` for
    /// writes; `bias` for reads of a row.
    #[inline(always)]
    unsafe fn run<S: Lanes<E>>(&self, simd: S) {
        let [rows, columns] = self.shape;
        let (alpha, beta) = (simd.splat(self.alpha), simd.splat(self.beta));
        let whole = if self.c_strides[1] == 1 { columns - columns % S::LANES } else { 0 };
        for i in 0..rows {
            let acc = step(self.acc.cast_mut(), i, self.acc_row);
            let sums = step(self.sums, i, self.sums_row);
            let c = step(self.c, i, self.c_strides[0]);
            // SAFETY: i < rows and all indices are below `columns`.
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

/// All of B, packed once, to be multiplied many times or by many threads.
#[derive(Debug)]
pub struct PackedB<'w, E> {
    /// Panel after panel, each block of k after block, each tile after tile.
    data: *const E,
    shape: [usize; 2],
    isa: Isa,
    borrow: PhantomData<&'w [E]>,
}

// SAFETY: a PackedB is a shared borrow of elements, as `&[E]` is.
unsafe impl<E: Sync> Send for PackedB<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Sync for PackedB<'_, E> {}

impl<'w, E: Float> PackedB<'w, E> {
    /// Packs `b`, `[k, n]`, into `buffer`, which grows to `k * n` elements and some padding.
    ///
    /// # Panics
    /// If that is more than memory can hold.
    pub fn pack(b: MatRef<'_, E>, buffer: &'w mut Workspace<E>) -> Self {
        let [k, n] = b.shape;
        let columns = n.checked_next_multiple_of(MAX_LANES).unwrap_or(usize::MAX);
        let data = buffer.elements(k.saturating_mul(columns)).cast::<E>();
        let isa = if k > 0 && n > 0 { E::pack(Pack { b, data }) } else { isa() };
        PackedB { data, shape: b.shape, isa, borrow: PhantomData }
    }

    pub(super) fn check_isa(&self) -> Result<(), GemmError> {
        let running = isa();
        if self.isa == running {
            return Ok(());
        }
        Err(GemmError::PackedForOtherIsa { packed: self.isa, running })
    }
}

impl<E> PackedB<'_, E> {
    /// `[k, n]`.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }
}

pub struct Pack<'a, E> {
    b: MatRef<'a, E>,
    data: *mut E,
}

impl<E: Float> ElementTask<E> for Pack<'_, E> {
    type Home = Self;
    type Output = Isa;

    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) -> Isa {
        let ([k, n], b) = (self.b.shape, self.b);
        let panels = Split::new(n.div_ceil(S::LANES), nc::<E>() / S::LANES);
        for panel in 0..panels.parts() {
            let (left, width) = (panels.start(panel) * S::LANES, panels.len(panel) * S::LANES);
            for from in (0..k).step_by(KC) {
                let block = BlockOfB {
                    data: step(step(b.data.cast_mut(), from, b.strides[0]), left, b.strides[1]),
                    strides: b.strides,
                    depth: KC.min(k - from),
                    columns: width.min(n - left),
                    tiles: Split::new(panels.len(panel), const { max_vectors(S::ISA) }),
                };
                // SAFETY: the block is a part of B; panels before it took `left * k` elements and
                // blocks before it in this panel `from * width`.
                unsafe { block.pack(simd, self.data.wrapping_add(left * k + from * width)) };
            }
        }
        S::ISA
    }
}
