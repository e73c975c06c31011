//! Batched matrix products. Layouts become matrix strides, and threads share batches and large products.
//!
//! 1. No operand is copied: a transposed, sliced, flipped or broadcast operand is a matrix with other strides.
//! 2. A batch whose right side is one matrix (stride 0 over the batch) and whose left side is one stack of
//!    rows is computed as one product.
//! 3. Threads share whole small products, with a right side packed once if it is the same for all
//!    (`batch.rs`). A large product is cut along its rows or columns (`part.rs`).
//! 4. The kernels widen 16-bit operands as they read them, and the sums in `f32` are rounded once: parts by the
//!    thread that computed them, batches as a whole. For a BLAS library, whole operands are widened, unless
//!    the product has few rows or is a batch that is not a stack of rows.
//! 5. The bias is added as the tiles of C are written, and the activation is applied in the cache.
//! 6. If C is too small to be cut, threads share k (`along_k.rs`).
//! 7. Products of `I64` are plain loops (`integers.rs`).

mod along_k;
mod batch;
mod integers;
mod part;

use bytemuck::Pod;
use half::{bf16, f16};
use part::output;
pub(super) use part::{Outcome, Part, Pieces, Task, share};
use swath_kernels::{self as kernels, Bias, Epilogue, GemmError, GemmPath, MatRef};

use super::blas::Blas;
use super::cast::cast;
use super::table::unary_kernel;
use super::tensor::{CpuTensor, Output};
use super::working::Wide;
use crate::backend::{Arg, Results, TensorData, check_dtype};
use crate::blas::trace::{self, Path, Traced};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::{BinaryOp, UnaryOp};
use crate::runtime::parallel::{self, Cost};
use crate::shape::Shape;

/// Picoseconds per multiply-add: 180 GFLOP/s.
pub(super) const COST_PER_TERM: usize = 11;

/// Picoseconds per `f32` of a bias and an activation; an `f64` takes about twice as long.
pub(super) const ACTIVATION_COST: usize = 500;

/// Cost of an element of a product with its epilogue.
fn cost<E>(k: usize, epilogue: &Epilogue<'_, E>) -> Cost {
    let function = if epilogue.function.is_some() { ACTIVATION_COST } else { 0 };
    Cost(COST_PER_TERM.saturating_mul(k).saturating_add(function))
}

/// Rounds sums to results.
type Round<T> = fn(&[<T as kernels::Factor>::Sum], &mut [T]);

/// An element type of factors and results.
pub(super) trait Factor:
    kernels::Factor<Sum: Wide> + kernels::Convert<<Self as kernels::Factor>::Sum> + Element + Pod
{
    /// Rounding of the sums, if they have another type.
    const ROUND: Option<Round<Self>>;
}

macro_rules! factor {
    ($($t:ty, $round:expr;)*) => {$(
        impl Factor for $t {
            const ROUND: Option<Round<Self>> = $round;
        }
    )*};
}
factor! { f32, None; f64, None; f16, Some(kernels::convert); bf16, Some(kernels::convert); }

pub(super) fn matmul(a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
    let op = "matmul";
    check_dtype(op, a, b.dtype())?;
    if a.dtype() == DType::I64 {
        return integers::matmul(op, a, b);
    }
    Ok(product(op, a, b, After::default())?.0)
}

/// Maximum k for which [`matmul_add`] adds tiles from registers: one block of k. That takes 0.82 to 0.93 of
/// the time of a product and an addition; longer sums take 1.03.
const MAX_ADDED_TERMS: usize = kernels::gemm::KC;

/// Minimum bytes of a result to which longer sums are added in place too, to avoid a second buffer.
const MIN_ADDED_BYTES: usize = 4 << 20;

/// `c + a·b`, in place if nothing else shares the storage of `c`, with the bits of [`matmul`] and an addition.
pub(super) fn matmul_add(a: &CpuTensor, b: &CpuTensor, c: CpuTensor) -> Result<CpuTensor> {
    let add = |c: Arg<'_, CpuTensor>| {
        super::elementwise::binary(BinaryOp::Add, [c, Arg::Ref(&matmul(a, b)?)])
    };
    let dtypes = [a.dtype(), b.dtype(), c.dtype()];
    let is_wide = matches!(dtypes[0], DType::F32 | DType::F64) && dtypes == [dtypes[0]; 3];
    let [rows, columns] = [a, b].map(|x| x.shape().dims());
    let (Some((&k, lead)), Some(&n)) = (rows.split_last(), columns.last()) else {
        return add(Arg::Owned(c));
    };
    let fits = c.shape().dims().split_last() == Some((&n, lead));
    // A library that fails midway would leave an unknown part of the product added to c.
    let pays = k <= MAX_ADDED_TERMS || c.numel() * dtypes[0].size() >= MIN_ADDED_BYTES;
    if !is_wide || !fits || !pays || k == 0 || c.numel() == 0 || Blas::current()?.is_present() {
        return add(Arg::Owned(c));
    }
    let mut c = Arg::Owned(c);
    let Some(out) = Output::reuse(&mut c) else { return add(c) };
    let sum = match dtypes[0] {
        DType::F64 => typed::<f64>("matmul", a, b, After::default(), Some(out)),
        _ => typed::<f32>("matmul", a, b, After::default(), Some(out)),
    };
    Ok(sum?.0)
}

/// Epilogue of a product, as tensors.
#[derive(Default)]
pub(super) struct After<'a> {
    /// Added to every row: `[n]`.
    pub bias: Option<&'a CpuTensor>,
    /// Applied to every element after the bias.
    pub function: Option<UnaryOp>,
    /// True if the function's input is a second result.
    pub keep_sums: bool,
}

/// The product after its epilogue, and the activation's input if kept.
type Both = (CpuTensor, Option<CpuTensor>);

/// `[…, m, k] × […, k, n]` with an epilogue. The bits are those of [`matmul`], an addition and the
/// activation, except that 16-bit floats are rounded once.
pub(super) fn matmul_then(
    op: &'static str,
    a: &CpuTensor,
    b: &CpuTensor,
    after: After<'_>,
) -> Result<Results<CpuTensor>> {
    let (y, sums) = product(op, a, b, after)?;
    Ok([Some(y), sums].into_iter().flatten().collect())
}

fn product(op: &'static str, a: &CpuTensor, b: &CpuTensor, after: After<'_>) -> Result<Both> {
    let dtype = a.dtype();
    match dtype {
        DType::F32 => typed::<f32>(op, a, b, after, None),
        DType::F64 => typed::<f64>(op, a, b, after, None),
        DType::F16 | DType::BF16 => {
            let widen = |x| cast(x, DType::F32);
            let bias = after.bias.map(widen).transpose()?;
            let after = After { bias: bias.as_ref(), ..after };
            match dtype {
                DType::F16 => halves::<f16>(op, a, b, after),
                _ => halves::<bf16>(op, a, b, after),
            }
        }
        _ => Err(Error::UnsupportedDType { op, dtype, shape: *a.shape() }),
    }
}

/// Maximum rows or columns of a result for which reading a factor takes longer than the arithmetic, so that
/// widening it for a BLAS library does not pay.
const FEW_ROWS: usize = 48;

/// Product of 16-bit floats with an epilogue, whose bias is in `f32`.
fn halves<T: Factor<Sum = f32>>(
    op: &'static str,
    a: &CpuTensor,
    b: &CpuTensor,
    after: After<'_>,
) -> Result<Both> {
    let (dims, dims_b) = (a.shape().dims(), b.shape().dims());
    let lead = dims.len().saturating_sub(2);
    let agree = dims.len() >= 2
        && dims.len() == dims_b.len()
        && dims[..lead] == dims_b[..lead]
        && dims[lead + 1] == dims_b[lead];
    let is_empty = dims.iter().chain(dims_b).any(|&extent| extent == 0);
    if !agree || is_empty || !Blas::current()?.is_present() {
        return typed::<T>(op, a, b, after, None);
    }
    let n = dims_b[lead + 1];
    let batch: usize = dims[..lead].iter().product();
    let is_memory_bound = batch * dims[lead] <= FEW_ROWS || n <= FEW_ROWS;
    let Some((rows, matrix)) =
        folded(op, a.layout(), b.layout(), batch)?.filter(|_| !is_memory_bound)
    else {
        return typed::<T>(op, a, b, after, None);
    };
    let [a, b] = [a.with_layout(rows), b.with_layout(matrix)].map(|x| cast(&x, DType::F32));
    let (y, sums) = typed::<f32>(op, &a?, &b?, after, None)?;
    let shape = Shape::from(dims).with_axis(lead + 1, Some(n));
    let narrow = |x: CpuTensor| -> Result<CpuTensor> {
        let x = cast(&x, T::DTYPE)?;
        let layout = x.layout().reshape(op, &shape)?.expect("a cast result is contiguous");
        Ok(x.with_layout(layout))
    };
    Ok((narrow(y)?, sums.map(narrow).transpose()?))
}

/// An operand as a batch of matrices.
pub(super) struct Stack<'a, E> {
    data: &'a [E],
    /// Layout of the leading axes.
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

    /// True if all matrices of the batch are the same.
    fn is_one_matrix(&self) -> bool {
        let steps = self.batch.dims().iter().zip(self.batch.strides());
        steps.into_iter().all(|(&dim, &stride)| dim <= 1 || stride == 0)
    }

    pub fn matrix(&self, i: usize) -> Matrix<'a, E> {
        let offset = self.batch.position_of(i);
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

impl<'a, E: Pod> Matrix<'a, E> {
    /// Makes a matrix from a tensor of two axes.
    fn new(x: &'a CpuTensor) -> Self {
        let layout = x.layout();
        let (dims, strides) = (layout.dims(), layout.strides());
        let (shape, strides) = ([dims[0], dims[1]], [strides[0], strides[1]]);
        Matrix { data: x.elements(), offset: layout.offset(), shape, strides }
    }
}

impl<'a, E> Matrix<'a, E> {
    /// The matrix for the kernels; an error if an element is outside `data`.
    pub fn view(&self) -> std::result::Result<MatRef<'a, E>, GemmError> {
        MatRef::new(self.data, self.offset, self.shape, self.strides)
    }
}

/// Converts an error of a kernel. The checks before it make this unreachable.
pub(super) fn refused(op: &'static str) -> impl Fn(GemmError) -> Error + Copy {
    move |error| Error::InvalidArgument { op, reason: error.to_string() }
}

/// Number of leading axes, and the extents m, k and n.
fn extents(op: &'static str, a: &CpuTensor, b: &CpuTensor) -> Result<(usize, [usize; 3])> {
    let (lhs, rhs) = (*a.shape(), *b.shape());
    let mismatch = Err(Error::ShapeMismatch { op, lhs, rhs });
    if lhs.ndim() < 2 || lhs.ndim() != rhs.ndim() {
        return mismatch;
    }
    let lead = lhs.ndim() - 2;
    let [m, k] = [lhs.dim(lead), lhs.dim(lead + 1)];
    let [k_b, n] = [rhs.dim(lead), rhs.dim(lead + 1)];
    if k != k_b || lhs.dims()[..lead] != rhs.dims()[..lead] {
        return mismatch;
    }
    Ok((lead, [m, k, n]))
}

/// Computes a product with an epilogue; adds it to `onto` if present.
fn typed<T: Factor>(
    op: &'static str,
    a: &CpuTensor,
    b: &CpuTensor,
    after: After<'_>,
    onto: Option<Output>,
) -> Result<Both> {
    let (lead, [m, k, n]) = extents(op, a, b)?;
    let After { bias, function, keep_sums } = after;
    let bias = bias.map(|bias| super::copy::contiguous(op, bias)).transpose()?;
    let bias = bias.as_ref().map(|bias| Bias::PerColumn(bias.run::<T::Sum>()));
    let function = function.map(unary_kernel);
    let function = function.map(|f| move |z: &mut [T::Sum]| f.run_in_place([None], z));
    let function = function.as_ref().map(|f| f as kernels::InPlace<'_, T::Sum>);
    let (add, epilogue) = (onto.is_some(), Epilogue { bias, function, sums: None });
    let shape = a.shape().with_axis(lead + 1, Some(n));
    let mut out = match onto {
        Some(out) => out,
        None => Output::new(op, &shape, T::Sum::DTYPE)?,
    };
    let mut sums = keep_sums.then(|| Output::new(op, &shape, T::Sum::DTYPE)).transpose()?;
    let finished = |out: Output, sums: Option<Output>| {
        let finished = |out: Output| match T::ROUND {
            None => Ok(out.finish()),
            Some(_) => cast(&out.finish(), T::DTYPE),
        };
        Ok((finished(out)?, sums.map(finished).transpose()?))
    };
    let batch: usize = shape.dims()[..lead].iter().product();
    if out.numel() == 0 {
        return finished(out, sums);
    }
    let (c, written) = out.parts::<T::Sum>(op);
    let task = Task { op, add, epilogue, written };
    let z = sums.as_mut().map(Output::elements::<T::Sum>).unwrap_or_default();
    let blas = Blas::current()?;
    let record = |batch: usize, shape: [usize; 3], path: Path| {
        trace::record(|| Traced { dtype: T::Sum::DTYPE, batch, shape, path });
    };
    let (a, b, rows) = if lead == 0 {
        (Matrix::<T>::new(a), Matrix::new(b), m)
    } else if let Some((a_rows, b_matrix)) = folded(op, a.layout(), b.layout(), batch)? {
        let (a, b) = (Stack::new(a, &a_rows), Stack::new(b, &b_matrix));
        (a.matrix(0), b.matrix(0), batch * m)
    } else {
        let (a, b) = (Stack::<T>::new(a, a.layout()), Stack::new(b, b.layout()));
        record(batch, [m, k, n], batch::many(blas, &task, [&a, &b], [c, z])?);
        return finished(out, sums);
    };
    let narrow = || T::ROUND.map(|_| Output::new(op, &shape, T::DTYPE)).transpose();
    let mut rounded = [narrow()?, if keep_sums { narrow()? } else { None }];
    // Not by `map` of arrays, which copies each matrix several times.
    let operands = [a.view().map_err(refused(op))?, b.view().map_err(refused(op))?];
    let mut part = Part::new(&task, operands, c, z).map_err(refused(op))?;
    for (part, out) in part.rounded.iter_mut().zip(&mut rounded) {
        let Some(out) = out else { continue };
        *part = output(out.elements::<T>(), [rows, n]).map_err(refused(op))?;
    }
    record(1, [rows, k, n], one(blas, &mut part)?);
    let [y, y_sums] = rounded;
    let out = out.finish();
    Ok((y.map_or(out, Output::finish), y_sums.or(sums).map(Output::finish)))
}

/// Layouts of a batch as one product `[batch · m, k] × [k, n]`; `None` if it is not one.
fn folded(
    op: &'static str,
    a: &Layout,
    b: &Layout,
    batch: usize,
) -> Result<Option<(Layout, Layout)>> {
    let lead = a.dims().len() - 2;
    let mut b_matrix = *b;
    for (&dim, &stride) in b.dims()[..lead].iter().zip(b.strides()) {
        if dim > 1 && stride != 0 {
            return Ok(None);
        }
        b_matrix = b_matrix.without_axis(0);
    }
    let [m, k] = [a.dims()[lead], a.dims()[lead + 1]];
    let rows = a.reshape(op, &Shape::from([batch * m, k]))?;
    Ok(rows.map(|rows| (rows, b_matrix)))
}

/// Computes one product, which threads share if it is large.
fn one<T: Factor>(blas: Blas, part: &mut Part<'_, T>) -> Result<Path> {
    let ([m, k, n], task) = (part.shape(), part.task);
    if !task.add && blas.gemm(part) {
        return Ok(Path::Provider);
    }
    let parts = parallel::parts(m.saturating_mul(n), cost(k, &task.epilogue));
    let threads = if parts == 1 { 1 } else { parallel::threads().min(parts) };
    if threads == 1 {
        return Ok(Path::Embedded(part.run()?));
    }
    let along_k = along_k::fits([m, n], k, threads).then(|| along_k::sums(part)).transpose()?;
    let mut pieces = Pieces::new();
    part.reborrow().split(threads, &mut pieces);
    Ok(match along_k {
        Some(path) => {
            share(pieces, (), |mut part| part.finish())?;
            Path::EmbeddedAlongK(path)
        }
        None => Path::Embedded(share(pieces, GemmPath::Blocked, |mut part| part.run())?),
    })
}
