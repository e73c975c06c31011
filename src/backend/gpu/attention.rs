//! Attention. Operands that are not contiguous are copied; a mask may have any layout.

use smallvec::{SmallVec, smallvec};

use super::driver::Driver;
use super::plan::attention::{Attention, Extents, MOST, Part};
use super::shader::GROUP;
use super::tensor::{Gpu, GpuTensor, contiguous, from_start, run};
use crate::backend::{Backend, Results, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{AttentionParameters, FusedOp};
use crate::shape::Shape;

/// A call of attention under construction.
struct Call<'a, D: Driver> {
    op: &'static str,
    /// Queries, keys and values, then the other operands that are bound before the mask.
    operands: SmallVec<[GpuTensor<D>; 5]>,
    mask: Option<GpuTensor<D>>,
    parameters: &'a AttentionParameters,
    extents: Extents,
}

impl<'a, D: Driver> Call<'a, D> {
    /// # Errors
    /// [`Error::Unsupported`] if queries or values are too long for the kernels, or too many for the device.
    fn new(
        op: &'static str,
        operands: [&GpuTensor<D>; 3],
        mask: Option<&GpuTensor<D>>,
        parameters: &'a AttentionParameters,
    ) -> Result<Self> {
        let [q, k, v] = operands.map(TensorData::shape);
        let lead = q.ndim() - 2;
        let extents = Extents {
            batches: q.dims()[..lead].iter().product(),
            queries: q.dim(lead),
            keys: k.dim(lead),
            depth: q.dim(lead + 1),
            width: v.dim(lead + 1),
        };
        if extents.depth.max(extents.width) > MOST {
            return Err(Error::Unsupported { op, backend: D::NAME });
        }
        let blocks = extents.queries.max(extents.keys).div_ceil(GROUP);
        D::device()?.check_rounds(op, blocks * (3 * (extents.depth + extents.width) + 32))?;
        let operands = operands.into_iter().map(|x| from_start(op, x)).collect::<Result<_>>()?;
        Ok(Call { op, operands, mask: mask.cloned(), parameters, extents })
    }

    fn run(&mut self, part: Part, results: &[&GpuTensor<D>]) -> Result<()> {
        let op = self.op;
        let kernel = Attention {
            part,
            store: self.operands[0].store(op)?,
            mask: self.mask.as_ref().map(|mask| mask.store(op)).transpose()?,
            drops: self.parameters.dropout.is_some(),
        };
        let shape = self.operands[0].0.layout.shape();
        let plan = |mask: Option<&GpuTensor<D>>| {
            let mask = mask.map(|mask| &mask.0.layout);
            kernel.plan(op, shape, self.extents, mask, self.parameters)
        };
        let plan = match plan(self.mask.as_ref())? {
            Some(plan) => plan,
            None => {
                self.mask = self.mask.as_ref().map(|mask| contiguous(op, mask)).transpose()?;
                plan(self.mask.as_ref())?.expect("a contiguous mask has one batch axis")
            }
        };
        let bound: SmallVec<[&GpuTensor<D>; 6]> = self.operands.iter().chain(&self.mask).collect();
        run(op, plan, &bound, results, None)
    }
}

/// [`FusedOp::Attention`].
pub(super) fn attention<D: Driver>(
    op: &'static str,
    operands: [&GpuTensor<D>; 3],
    mask: Option<&GpuTensor<D>>,
    parameters: &AttentionParameters,
) -> Result<Results<GpuTensor<D>>> {
    let [q, _, v] = operands;
    let mut call = Call::new(op, operands, mask, parameters)?;
    let last = q.shape().ndim() - 1;
    let rows = q.shape().with_axis(last, None);
    let y = GpuTensor::new(op, &q.shape().with_axis(last, Some(v.shape().dim(last))), DType::F32)?;
    let [largest, inverse] =
        [GpuTensor::new(op, &rows, DType::F32)?, GpuTensor::new(op, &rows, DType::F32)?];
    call.run(Part::Forward, &[&y, &largest, &inverse])?;
    let rounded = Gpu::<D>::cast(&y, q.0.dtype)?;
    Ok(smallvec![rounded, largest, inverse, y])
}

/// [`FusedOp::AttentionGrad`]. `operands` are queries, keys and values.
pub(super) fn attention_grad<D: Driver>(
    op: &'static str,
    operands: [&GpuTensor<D>; 3],
    [g, y]: [&GpuTensor<D>; 2],
    [largest, inverse]: [&GpuTensor<D>; 2],
    mask: Option<&GpuTensor<D>>,
    parameters: &AttentionParameters,
) -> Result<Results<GpuTensor<D>>> {
    let mut call = Call::new(op, operands, mask, parameters)?;
    let wide = Gpu::<D>::cast(g, DType::F32)?;
    let products = Gpu::<D>::fused(&FusedOp::Dot { a: &wide, b: y })?;
    let row = |x: &GpuTensor<D>| Gpu::<D>::reshape(x, Shape::new([1, x.shape().numel()]));
    let statistics = [row(largest)?, row(inverse)?, row(&products[0])?];
    call.operands.push(from_start(op, g)?);
    call.operands.push(Gpu::<D>::cat(&statistics.each_ref(), 0)?);
    let mut results = Results::new();
    for x in operands {
        results.push(GpuTensor::new(op, x.shape(), x.0.dtype)?);
    }
    call.run(Part::Queries, &[&results[0]])?;
    call.run(Part::Keys, &[&results[1], &results[2]])?;
    Ok(results)
}
