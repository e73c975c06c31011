//! Reductions, scans and products that several workgroups compute in parts.

use super::driver::Driver;
use super::kernel::Kernel;
use super::plan::reduce::{ACCUMULATOR, Pass, Reduction, Stage};
use super::plan::{Plan, index, matmul};
use super::tensor::{Gpu, GpuTensor, run};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{ReduceOp, ScanOp};
use crate::shape::Shape;

/// Allocates the accumulators that a dispatch writes.
fn accumulators<D: Driver>(op: &'static str, plan: &Plan<Reduction>) -> Result<GpuTensor<D>> {
    let bytes = (plan.words[0] as usize).saturating_mul(ACCUMULATOR);
    GpuTensor::new(op, &Shape::from(bytes), DType::U8)
}

/// Reduces `x` over sorted axes into `out`.
pub(super) fn reduce<D: Driver>(
    op: ReduceOp,
    x: &GpuTensor<D>,
    axes: &[usize],
    out: &GpuTensor<D>,
) -> Result<()> {
    let name = op.name();
    // The accumulators that the previous dispatch wrote, and those of the first pass.
    let (mut parts, mut first): (Option<GpuTensor<D>>, Option<GpuTensor<D>>) = (None, None);
    for plan in Reduction::plans(op, x.store(name)?, &x.0.layout, axes)? {
        let stage = plan.kernel.stage;
        let to = match stage {
            Stage::Parts(_) | Stage::Joined(Pass::First) => accumulators(name, &plan)?,
            _ => out.clone(),
        };
        let from = if let Stage::Joined(_) = stage { parts.as_ref().unwrap_or(x) } else { x };
        let operands: Vec<&GpuTensor<D>> = [from].into_iter().chain(&first).collect();
        run(name, plan, &operands, &[&to], None)?;
        match stage {
            Stage::Joined(Pass::First) => first = Some(to),
            _ => parts = Some(to),
        }
    }
    Ok(())
}

/// Scans `x` along an axis into `out`.
pub(super) fn scan<D: Driver>(
    op: ScanOp,
    x: &GpuTensor<D>,
    axis: usize,
    out: &GpuTensor<D>,
) -> Result<()> {
    let (name, store) = (op.name(), x.store(op.name())?);
    let plan = index::scan(op, store, &x.0.layout, axis)?;
    if !plan.kernel.reads_parts() {
        return run(name, plan, &[x], &[out], None);
    }
    let whole = match op {
        ScanOp::Sum => ReduceOp::Sum,
        ScanOp::Product => ReduceOp::Prod,
    };
    let totals = Reduction::plans(whole, store, &x.0.layout, &[axis])?.swap_remove(0);
    let parts = accumulators(name, &totals)?;
    run(name, totals, &[x], &[&parts], None)?;
    run(name, plan, &[x, &parts], &[out], None)
}

/// Returns the matrix products of `a` and `b`.
pub(super) fn matmul<D: Driver>(a: &GpuTensor<D>, b: &GpuTensor<D>) -> Result<GpuTensor<D>> {
    let op = "matmul";
    let products = matmul::Product::plans(a.store(op)?, &a.0.layout, &b.0.layout)?;
    in_parts(op, products, &[a, b], &matmul::shape_of(&a.0.layout, &b.0.layout), a.0.dtype)
}

/// Runs the dispatches of products. The parts of each product are added in `F32`.
pub(super) fn in_parts<D: Driver, K: Into<Kernel>>(
    op: &'static str,
    matmul::Products { plans, count, parts }: matmul::Products<K>,
    operands: &[&GpuTensor<D>],
    shape: &Shape,
    dtype: DType,
) -> Result<GpuTensor<D>> {
    let to = match parts {
        1 => GpuTensor::new(op, shape, dtype)?,
        _ => {
            let each = shape.numel().checked_div(count).unwrap_or(0);
            GpuTensor::new(op, &Shape::new([count, parts, each]), DType::F32)?
        }
    };
    for plan in plans {
        run(op, plan, operands, &[&to], None)?;
    }
    if parts == 1 {
        return Ok(to);
    }
    let sums = Gpu::<D>::reduce(ReduceOp::Sum, &to, &[1])?;
    Gpu::<D>::reshape(&Gpu::<D>::cast(&sums, dtype)?, *shape)
}
