//! Batched matrix products: layouts become matrix strides, batches and large products are shared by
//! the threads.
//!
//! 1. Nothing is copied: a transposed, sliced, flipped or repeated operand is a matrix with other
//!    strides.
//! 2. A batch whose right side is one matrix (stride 0 over the batch) and whose left side lies as
//!    one stack of rows is one product.
//! 3. Small products are shared whole, a large one is cut along its rows or columns; neither changes
//!    a bit, since an element depends on its row and its column alone.
//! 4. 16-bit operands are converted to `f32`, multiplied, and rounded once.
//! 5. A bias is added to the tiles of C as they are written.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};
use std::thread::LocalKey;

use bytemuck::Pod;
use smallvec::SmallVec;
use swath_kernels::{self as kernels, Gemm, GemmError, MatMut, MatRef, Workspace};

use super::parallel::{self, Cost};
use super::{CpuTensor, Output, blas};
use crate::backend::{Arg, TensorData};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::BinaryOp;
use crate::shape::Shape;

/// Picoseconds for a multiplication and an addition: 180 GFLOP/s.
const COST_PER_TERM: usize = 11;

/// Rows, and columns, that parts of a product are multiples of: whole tiles of every micro-kernel.
const ROW_UNIT: usize = 24;
const COL_UNIT: usize = 64;

/// An element type with a product.
pub(super) trait Product: Element<Stored = Self> + kernels::Float + Pod {
    /// This thread's memory for packing, kept from product to product.
    fn workspace() -> &'static LocalKey<RefCell<Workspace<Self>>>;
}

macro_rules! product {
    ($($t:ty, $name:ident;)*) => {$(
        thread_local! {
            static $name: RefCell<Workspace<$t>> = const { RefCell::new(Workspace::new()) };
        }
        impl Product for $t {
            fn workspace() -> &'static LocalKey<RefCell<Workspace<Self>>> {
                &$name
            }
        }
    )*};
}
product! { f32, WORKSPACE_F32; f64, WORKSPACE_F64; }

/// Memory for this thread's products, before the first one.
pub(super) fn warm_up() {
    WORKSPACE_F32.with_borrow_mut(Workspace::reserve_panel);
    WORKSPACE_F64.with_borrow_mut(Workspace::reserve_panel);
}

pub(super) fn matmul(a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
    let op = "matmul";
    let (lhs, rhs) = (a.dtype(), b.dtype());
    if lhs != rhs {
        return Err(Error::DTypeMismatch { op, lhs, rhs, shape: *a.shape() });
    }
    match lhs {
        DType::F32 => typed::<f32>(op, a, b, None),
        DType::F64 => typed::<f64>(op, a, b, None),
        DType::F16 | DType::BF16 => {
            let widen = |x| super::cast::cast(x, DType::F32);
            super::cast::cast(&typed::<f32>(op, &widen(a)?, &widen(b)?, None)?, lhs)
        }
        dtype => Err(Error::UnsupportedDType { op, dtype, shape: *a.shape() }),
    }
}

/// `[…, m, k] × […, k, n]` and `bias` `[n]` added to every row: the bits of [`matmul`] and an addition.
pub(super) fn matmul_bias(
    op: &'static str,
    a: &CpuTensor,
    b: &CpuTensor,
    bias: Option<&CpuTensor>,
) -> Result<CpuTensor> {
    let bias = bias.map(|bias| super::copy::contiguous(op, bias)).transpose()?;
    match a.dtype() {
        DType::F32 => typed::<f32>(op, a, b, bias.as_ref().map(|bias| bias.run())),
        DType::F64 => typed::<f64>(op, a, b, bias.as_ref().map(|bias| bias.run())),
        _ => {
            let y = matmul(a, b)?;
            let Some(bias) = bias else { return Ok(y) };
            let layout = bias.layout().broadcast_to(op, y.shape())?;
            let bias = bias.with_layout(layout);
            super::elementwise::binary(BinaryOp::Add, Arg::Owned(y), Arg::Ref(&bias))
        }
    }
}

/// One operand: a matrix at each position of its batch.
pub(super) struct Stack<'a, E> {
    data: &'a [E],
    /// The layout of the leading axes.
    batch: Layout,
    shape: [usize; 2],
    strides: [isize; 2],
}

impl<'a, E: Pod> Stack<'a, E> {
    pub fn new(x: &'a CpuTensor, layout: &Layout) -> Self {
        let rank = layout.dims().len();
        let (dims, strides) = (layout.dims(), layout.strides());
        Stack {
            data: x.elements(),
            batch: layout.without_axis(rank - 1).without_axis(rank - 2),
            shape: [dims[rank - 2], dims[rank - 1]],
            strides: [strides[rank - 2], strides[rank - 1]],
        }
    }

    /// Where matrix `i` of the batch begins.
    fn offset(&self, mut i: usize) -> usize {
        let mut offset = self.batch.offset();
        for (&dim, &stride) in self.batch.dims().iter().zip(self.batch.strides()).rev() {
            offset = offset.wrapping_add_signed((i % dim) as isize * stride);
            i /= dim;
        }
        offset
    }

    pub fn matrix(&self, i: usize) -> Matrix<'a, E> {
        let offset = self.offset(i);
        Matrix { data: self.data, offset, shape: self.shape, strides: self.strides }
    }
}

/// A matrix: element `(i, j)` is `data[offset + i · strides[0] + j · strides[1]]`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, E> {
    pub data: &'a [E],
    pub offset: usize,
    pub shape: [usize; 2],
    pub strides: [isize; 2],
}

impl<'a, E> Matrix<'a, E> {
    /// The matrix for the kernels; an error if an element lies outside `data`.
    pub fn view(&self) -> Result<MatRef<'a, E>> {
        MatRef::new(self.data, self.offset, self.shape, self.strides).map_err(refused)
    }
}

/// The kernel refuses what the checks above it have let through: a defect, told instead of hidden.
pub(super) fn refused(error: GemmError) -> Error {
    Error::InvalidArgument { op: "matmul", reason: error.to_string() }
}

fn typed<E: Product>(
    op: &'static str,
    a: &CpuTensor,
    b: &CpuTensor,
    bias: Option<&[E]>,
) -> Result<CpuTensor> {
    let mismatch = || Error::ShapeMismatch { op, lhs: *a.shape(), rhs: *b.shape() };
    let (rank, rank_b) = (a.shape().ndim(), b.shape().ndim());
    if rank < 2 || rank != rank_b {
        return Err(mismatch());
    }
    let lead = rank - 2;
    let [m, k] = [a.shape().dim(lead), a.shape().dim(lead + 1)];
    let [k_b, n] = [b.shape().dim(lead), b.shape().dim(lead + 1)];
    if k != k_b || a.shape().dims()[..lead] != b.shape().dims()[..lead] {
        return Err(mismatch());
    }
    let shape = a.shape().with_axis(lead + 1, Some(n));
    let mut out = Output::new(op, &shape, E::DTYPE)?;
    let batch: usize = shape.dims()[..lead].iter().product();
    if out.numel() == 0 {
        return Ok(out.finish());
    }
    if k == 0 {
        let c = out.elements::<E>();
        c.fill(E::default());
        if let Some(bias) = bias {
            c.chunks_exact_mut(n).for_each(|row| {
                row.iter_mut().zip(bias).for_each(|(y, &bias)| *y = *y + bias);
            });
        }
        return Ok(out.finish());
    }
    let c = out.elements::<E>();
    match folded(a.layout(), b.layout(), batch)? {
        Some((a_rows, b_matrix)) => {
            let (a, b) = (Stack::<E>::new(a, &a_rows), Stack::<E>::new(b, &b_matrix));
            one(a.matrix(0), b.matrix(0), bias, c, [batch * m, n])?;
        }
        None => {
            let (a, b) = (Stack::<E>::new(a, a.layout()), Stack::<E>::new(b, b.layout()));
            many(&a, &b, bias, c, [m, k, n])?;
        }
    }
    Ok(out.finish())
}

/// The layouts of a batch that is one product `[batch · m, k] × [k, n]`.
fn folded(a: &Layout, b: &Layout, batch: usize) -> Result<Option<(Layout, Layout)>> {
    let lead = a.dims().len() - 2;
    let mut b_matrix = *b;
    for (&dim, &stride) in b.dims()[..lead].iter().zip(b.strides()) {
        if dim > 1 && stride != 0 {
            return Ok(None);
        }
        b_matrix = b_matrix.without_axis(0);
    }
    let [m, k] = [a.dims()[lead], a.dims()[lead + 1]];
    let rows = a.reshape("matmul", &Shape::from([batch * m, k]))?;
    Ok(rows.map(|rows| (rows, b_matrix)))
}

/// One product, cut over the threads if it is large.
fn one<E: Product>(
    a: Matrix<'_, E>,
    b: Matrix<'_, E>,
    bias: Option<&[E]>,
    c: &mut [E],
    [m, n]: [usize; 2],
) -> Result<()> {
    if blas::gemm(&a, &b, bias, c) {
        return Ok(());
    }
    let k = a.shape[1];
    let (a, b) = (a.view()?, b.view()?);
    let c = MatMut::row_major(c, [m, n]).map_err(refused)?;
    let parts = parallel::parts(m.saturating_mul(n), Cost(COST_PER_TERM.saturating_mul(k)));
    if parts == 1 {
        return run(Part { a, b, bias, c }).map_err(refused);
    }
    let mut pieces = SmallVec::new();
    split(Part { a, b, bias, c }, parallel::threads().min(parts), &mut pieces);
    let failure = Mutex::new(None);
    parallel::for_each_index(pieces.len(), |i| {
        let piece = pieces[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(part) = piece
            && let Err(error) = run(part)
        {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(refused(error)),
        None => Ok(()),
    }
}

/// A part of a product.
struct Part<'a, E> {
    a: MatRef<'a, E>,
    b: MatRef<'a, E>,
    bias: Option<&'a [E]>,
    c: MatMut<'a, E>,
}

/// Pieces of a product, each taken by the thread that computes it.
type Pieces<'a, E> = SmallVec<[Mutex<Option<Part<'a, E>>>; 8]>;

/// Cuts C in two, again and again, into `parts` of about the same size.
fn split<'a, E: Product>(part: Part<'a, E>, parts: usize, pieces: &mut Pieces<'a, E>) {
    let [m, n] = part.c.shape();
    let (before, after) = (parts / 2, parts - parts / 2);
    let cut = |extent: usize, unit: usize| (extent / parts * before).max(1).next_multiple_of(unit);
    let (row, col) = (cut(m, ROW_UNIT), cut(n, COL_UNIT));
    let Part { a, b, bias, c } = part;
    if parts > 1 && m >= n && row < m {
        let (a_above, a_below) = a.split_rows(row);
        let (c_above, c_below) = c.split_rows(row);
        split(Part { a: a_above, b, bias, c: c_above }, before, pieces);
        split(Part { a: a_below, b, bias, c: c_below }, after, pieces);
    } else if parts > 1 && col < n {
        let (b_left, b_right) = b.split_cols(col);
        let (c_left, c_right) = c.split_cols(col);
        let (bias_left, bias_right) = bias.map(|bias| bias.split_at(col)).unzip();
        split(Part { a, b: b_left, bias: bias_left, c: c_left }, before, pieces);
        split(Part { a, b: b_right, bias: bias_right, c: c_right }, after, pieces);
    } else {
        pieces.push(Mutex::new(Some(Part { a, b, bias, c })));
    }
}

fn run<E: Product>(part: Part<'_, E>) -> Result<(), GemmError> {
    let Part { a, b, bias, c } = part;
    E::workspace().with_borrow_mut(|workspace| match bias {
        Some(bias) => kernels::gemm_bias(a, b, bias, c, workspace),
        None => kernels::gemm(Gemm { a, b, alpha: E::ONE, beta: E::ZERO }, c, workspace),
    })
}

/// A batch of products, shared whole if there are enough of them.
fn many<E: Product>(
    a: &Stack<'_, E>,
    b: &Stack<'_, E>,
    bias: Option<&[E]>,
    c: &mut [E],
    [m, k, n]: [usize; 3],
) -> Result<()> {
    let area = m * n;
    let batch = c.len() / area;
    let cost = Cost(COST_PER_TERM.saturating_mul(k)).times(area);
    if batch < parallel::threads() && parallel::parts(2, cost) > 1 {
        for (i, c) in c.chunks_exact_mut(area).enumerate() {
            one(a.matrix(i), b.matrix(i), bias, c, [m, n])?;
        }
        return Ok(());
    }
    let failure = Mutex::new(None);
    parallel::for_each_chunk_mut(c, area, Cost(COST_PER_TERM.saturating_mul(k)), &|first, c| {
        for (i, c) in c.chunks_exact_mut(area).enumerate() {
            // One product a thread: `one` finds no further thread idle, or too little to share.
            if let Err(error) = one(a.matrix(first + i), b.matrix(first + i), bias, c, [m, n]) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
