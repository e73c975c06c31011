//! Sets of elements and of slices: the distinct ones, membership, repetitions, and differences of neighbours.

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, reserved};
use crate::shape::{Axis, Shape};

use super::base::Tensor;
use super::operators::Operand;
use super::order::ASCENDING;

/// Distinct elements of a tensor, or distinct slices along an axis, and where they occur. Equal ones are a *group*: all
/// of them for [`Tensor::unique_along`], those that follow one another for [`Tensor::unique_consecutive`].
#[derive(Clone, Debug)]
pub struct Unique<B: Backend> {
    /// The first of each group: `[k]`, or slices along the axis. Its gradient flows to where it was copied from.
    pub values: Tensor<B>,
    /// Index of the first of each group, along the axis or in row-major order: `[k]`, `I64`.
    pub indices: Tensor<B>,
    /// Group of each slice, `[n]`, or of each element, in the shape of the tensor; `I64`.
    pub inverse: Tensor<B>,
    /// Number of members of each group: `[k]`, `I64`.
    pub counts: Tensor<B>,
}

/// Largest set whose members are compared with every element; a larger one is sorted and searched.
const FEW: usize = 16;

/// Members of a set that are compared at once, so that the loop over the elements is vectorized.
const AT_ONCE: usize = 4;

/// Elements that are compared with all members of a set while they are in the first cache.
const TILE: usize = 2048;

/// # Sets
///
/// Distinct elements and slices. NaN equals NaN, and −0 equals +0, in [`unique`](Tensor::unique) and its kin; in
/// [`isin`](Tensor::isin) NaN equals nothing.
impl<B: Backend> Tensor<B> {
    /// Returns the distinct elements in ascending order; the index of each element's value among them, in the shape of
    /// this tensor; and the count of each value. Indices and counts are `I64`. NaN equals itself, and −0 equals +0. A
    /// value is copied from the first of equal elements, and its gradient flows there.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[3.0, 1.0], [1.0, 2.0]];
    /// let (values, inverse, counts) = x.unique()?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// assert_eq!(counts.to_vec::<i64>()?, [2, 1, 1]);
    /// let again = values.index_select(0, &inverse.reshape(4)?)?;
    /// assert_eq!(again.to_vec::<f32>()?, [3.0, 1.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the backend, such as [`Error::OutOfMemory`].
    pub fn unique(&self) -> Result<(Self, Self, Self)> {
        let Unique { values, inverse, counts, .. } = B::engine_unique(self, "unique", None, true)?;
        Ok((values, inverse, counts))
    }

    /// [`unique`](Tensor::unique) with the row-major index of the first of equal elements: NumPy's `unique` with
    /// `return_index`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let unique = tensor![3.0, 1.0, 3.0, 2.0, 1.0].unique_with_indices()?;
    /// assert_eq!(unique.values.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// assert_eq!(unique.indices.to_vec::<i64>()?, [1, 3, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the backend, such as [`Error::OutOfMemory`].
    pub fn unique_with_indices(&self) -> Result<Unique<B>> {
        B::engine_unique(self, "unique_with_indices", None, true)
    }

    /// Distinct slices along an axis in lexicographic order: `unique` of NumPy and PyTorch with an axis.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[2.0, 1.0], [0.0, 5.0], [2.0, 1.0]];
    /// let rows = x.unique_along(0)?;
    /// assert_eq!(rows.values.to_vec::<f32>()?, [0.0, 5.0, 2.0, 1.0]);
    /// assert_eq!(rows.indices.to_vec::<i64>()?, [1, 0]);
    /// assert_eq!(rows.inverse.to_vec::<i64>()?, [1, 0, 1]);
    /// assert_eq!(rows.counts.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    pub fn unique_along(&self, axis: impl Into<Axis>) -> Result<Unique<B>> {
        B::engine_unique(self, "unique_along", Some(axis.into()), true)
    }

    /// The first of each run of equal elements in row-major order, or for `Some(axis)` of equal slices along an axis:
    /// PyTorch's `unique_consecutive`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let runs = tensor![1.0, 1.0, 2.0, 1.0].unique_consecutive(None)?;
    /// assert_eq!(runs.values.to_vec::<f32>()?, [1.0, 2.0, 1.0]);
    /// assert_eq!(runs.counts.to_vec::<i64>()?, [2, 1, 1]);
    /// assert_eq!(tensor![[1.0, 1.0, 2.0]].unique_consecutive(Some(-1))?.values.dims(), [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    pub fn unique_consecutive(&self, axis: Option<isize>) -> Result<Unique<B>> {
        B::engine_unique(self, "unique_consecutive", axis.map(Axis::from), false)
    }

    pub(crate) fn unique_body(
        x: &Tensor<B>,
        op: &'static str,
        axis: Option<Axis>,
        sorts: bool,
    ) -> Result<Unique<B>> {
        let axis = axis.map(|axis| axis.resolve(op, x.shape())).transpose()?;
        let n = axis.map_or(x.numel(), |axis| x.dims()[axis]);
        let groups = || {
            // The slices as rows.
            let (width, rows) = match axis {
                Some(axis) => {
                    (x.shape().with_axis(axis, None).numel(), x.detach().movedim(axis, 0)?)
                }
                None => (1, x.detach()),
            };
            let rows = rows.reshape((n, width))?;
            let (rows, order) = match width {
                _ if !sorts => (rows, numbered(op, n)?),
                1 => {
                    let (rows, order) = B::order(ASCENDING, rows.data(), 0)?;
                    (Tensor::from_data(rows), Tensor::<B>::from_data(order).to_vec()?)
                }
                _ => rows.lexicographic(op)?,
            };
            let pairs = n.saturating_sub(1);
            let (here, next) = (rows.narrow(0, 0, pairs)?, rows.narrow(0, n - pairs, pairs)?);
            let mut differs = here.ne(&next)?;
            if x.dtype().is_float() {
                differs = differs.gt(&here.isnan()?.logical_and(&next.isnan()?)?)?;
            }
            if width != 1 {
                differs = differs.any(Some(&[1]), false)?;
            }
            let starts = [true].into_iter().chain(differs.to_vec::<bool>()?);
            let (mut firsts, mut counts, mut inverse) = (Vec::new(), Vec::new(), reserved(op, n)?);
            inverse.resize(n, 0i64);
            for (at, starts) in order.into_iter().zip(starts) {
                if starts {
                    firsts.push(at);
                    counts.push(0i64);
                }
                if let Some(count) = counts.last_mut() {
                    *count += 1;
                }
                if let Some(number) = inverse.get_mut(at as usize) {
                    *number = firsts.len() as i64 - 1;
                }
            }
            let distinct = firsts.len();
            let indices = Tensor::from_vec(firsts, distinct)?;
            let values = match axis {
                Some(axis) => x.index_select(axis, &indices)?,
                None => x.reshape(n)?.index_select(0, &indices)?,
            };
            let shape = if axis.is_some() { n.into() } else { *x.shape() };
            let inverse = Tensor::from_vec(inverse, shape)?;
            Ok(Unique { values, indices, inverse, counts: Tensor::from_vec(counts, distinct)? })
        };
        groups().map_err(|error: Error| error.named(op))
    }

    /// Rows in lexicographic order and their indices. Rows are compared by the ranks of their elements.
    fn lexicographic(&self, op: &'static str) -> Result<(Self, Vec<i64>)> {
        let width = self.dims()[1];
        let ranks = self.unique()?.1.to_vec::<i64>()?;
        let mut order = numbered(op, self.dims()[0])?;
        order.sort_by_key(|&row| &ranks[row as usize * width..][..width]);
        let index = Tensor::from_slice(&order, order.len())?;
        Ok((self.index_select(0, &index)?, order))
    }

    /// True where the element is among the elements of `test`, which may have any shape: NumPy's and PyTorch's `isin`.
    /// NaN is in no set. One pass for a small set, else a search in the sorted one.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, f32::NAN], [3.0, -0.0]];
    /// let found = x.isin(&tensor![0.0, 3.0, f32::NAN])?;
    /// assert_eq!(found.to_vec::<bool>()?, [false, false, true, true]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`].
    pub fn isin(&self, test: &Tensor<B>) -> Result<Tensor<B>> {
        let op = "isin";
        self.check_beside(op, test)?;
        self.check_dtype(op, test.dtype())?;
        let search = || {
            let mut set = test.detach().reshape(test.numel())?;
            if set.dtype().is_float() {
                set = set.masked_select(&set.eq(&set)?)?;
            }
            let (n, x) = (set.numel(), self.detach().contiguous()?);
            if n == 0 {
                return Tensor::zeros(*self.shape(), DType::Bool);
            }
            if n <= FEW
                && let (Some(x), Some(set)) = (B::host_bytes(x.data()), B::host_bytes(set.data()))
            {
                let is_float = self.dtype().is_float();
                let found = match self.dtype().size() {
                    1 => among::<1>(op, x, set, is_float),
                    2 => among::<2>(op, x, set, is_float),
                    4 => among::<4>(op, x, set, is_float),
                    _ => among::<8>(op, x, set, is_float),
                };
                return Tensor::from_vec(found?, *self.shape());
            }
            let (x, sorted) = (x.reshape(x.numel())?, set.sort(0, false)?.0);
            let nearest = x.searchsorted(&sorted)?.clamp_max(n as i64 - 1)?;
            sorted.index_select(0, &nearest)?.eq(&x)?.reshape(*self.shape())
        };
        search().map_err(|error: Error| error.named(op))
    }

    /// Repeats each element along an axis: `repeats` times, or as often as a tensor of integers says, which has one for
    /// each element of the axis, or one for all. NumPy's `repeat`, PyTorch's `repeat_interleave`, which without an axis
    /// are `x.reshape(-1)?.repeat_interleave(repeats, 0)`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(x.repeat_interleave(2, 1)?.slice(s![0])?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// let y = x.repeat_interleave(tensor![i64; 0, 2], 0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 4.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a negative number, or for another count of them; [`Error::DTypeMismatch`] unless
    /// they are integers; [`Error::AxisOutOfRange`]; [`Error::Overflow`] if the result is too large.
    pub fn repeat_interleave(
        &self,
        repeats: impl Operand<B>,
        axis: impl Into<Axis>,
    ) -> Result<Self> {
        let (op, shape) = ("repeat_interleave", *self.shape());
        let axis = axis.into().resolve(op, &shape)?;
        let n = shape.dim(axis);
        let beside = self.number(Scalar::Int(0), DType::I64)?.broadcast_to(shape)?;
        let repeats = repeats.with(|repeats| repeats.into_tensor(op, &beside)?.as_index(op))?;
        self.check_beside(op, &repeats)?;
        let (counts, given) = (repeats.to_vec::<i64>()?, repeats.numel());
        let least = counts.iter().min().copied().unwrap_or(0);
        if repeats.rank() > 1 || (given != 1 && given != n) || least < 0 {
            let reason = format!(
                "expected 1 or {n} numbers from 0 for axis {axis} of shape {shape}, got {given} of shape {}, the \
                 smallest {least}",
                repeats.shape()
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        let total = counts.iter().fold(0usize, |sum, &count| sum.saturating_add(count as usize));
        if given == 1 {
            let out = shape.with_axis(axis, Some(n.saturating_mul(total)));
            out.validate(op)?;
            let [above, below] = [&shape.dims()[..axis], &shape.dims()[axis + 1..]]
                .map(|axes| axes.iter().product::<usize>());
            let repeated = Shape::from([above, n, total, below]);
            return self.reshape((above, n, 1, below))?.broadcast_to(repeated)?.reshape(out);
        }
        shape.with_axis(axis, Some(total)).validate(op)?;
        let mut index = reserved(op, total)?;
        for (i, &count) in counts.iter().enumerate() {
            index.extend(std::iter::repeat_n(i as i64, count as usize));
        }
        self.index_select(axis, &Tensor::from_vec(index, total)?).map_err(|error| error.named(op))
    }

    /// Differences of neighbours along an axis, `out[i] = self[i + 1] - self[i]`, taken `n` times: each time the axis
    /// gets shorter by one, until it is empty. Of booleans, whether neighbours differ.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 4.0, 9.0, 16.0];
    /// assert_eq!(x.diff(1, 0)?.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
    /// assert_eq!(x.diff(2, -1)?.to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    pub fn diff(&self, n: usize, axis: impl Into<Axis>) -> Result<Self> {
        let op = "diff";
        let axis = axis.into().resolve(op, self.shape())?;
        let rest = self.dims()[axis].saturating_sub(n);
        if rest == 0 || self.numel() == 0 {
            return self.narrow(axis, 0, rest);
        }
        let mut y = self.clone();
        for _ in 0..n {
            let pairs = y.dims()[axis] - 1;
            let (here, next) = (y.narrow(axis, 0, pairs)?, y.narrow(axis, 1, pairs)?);
            let differences = match y.dtype() {
                DType::Bool => next.ne(&here),
                _ => next.sub(&here),
            };
            y = differences.map_err(|error| error.named(op))?;
        }
        Ok(y)
    }
}

/// The numbers below `n`.
fn numbered(op: &'static str, n: usize) -> Result<Vec<i64>> {
    let mut numbers = reserved(op, n)?;
    numbers.extend(0..n as i64);
    Ok(numbers)
}

/// Whether elements of `N` bytes are among those of a set, which is not empty. Floats are equal if their bits are, but
/// for zeros.
fn among<const N: usize>(
    op: &'static str,
    x: &[u8],
    set: &[u8],
    is_float: bool,
) -> Result<Vec<bool>> {
    let (x, mut set) = (x.as_chunks::<N>().0, set.as_chunks::<N>().0.to_vec());
    let mut negative_zero = [0; N];
    negative_zero[N - 1] = 0x80;
    if is_float && set.iter().any(|member| *member == [0; N] || *member == negative_zero) {
        set.extend([[0; N], negative_zero]);
    }
    let last = set[set.len() - 1];
    set.resize(set.len().next_multiple_of(AT_ONCE), last);
    let mut found = reserved(op, x.len())?;
    found.resize(x.len(), false);
    for (x, found) in x.chunks(TILE).zip(found.chunks_mut(TILE)) {
        for &[a, b, c, d] in set.as_chunks::<AT_ONCE>().0 {
            for (x, found) in x.iter().zip(found.iter_mut()) {
                *found |= (*x == a) | (*x == b) | (*x == c) | (*x == d);
            }
        }
    }
    Ok(found)
}
