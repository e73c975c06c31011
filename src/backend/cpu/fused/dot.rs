//! The inner product, in the tree of a sum: threads take subtrees.

use smallvec::{SmallVec, smallvec};
use swath_kernels::PairwiseSum;

use super::super::fold::Loaded;
use super::super::parallel::{self, Cost};
use super::super::{CpuTensor, Output, Results, copy};
use super::working::for_float;
use super::{check_dtype, check_shape, operand};
use crate::backend::TensorData;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::shape::Shape;

const BLOCK: usize = PairwiseSum::BLOCK;

/// Of multiplying and adding one byte of either operand.
const COST_PER_BYTE: usize = 80;

pub(super) fn dot(operands: &[Option<&CpuTensor>]) -> Result<Results<CpuTensor>> {
    let op = "dot";
    let (a, b) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    if a.shape().ndim() != 1 {
        return Err(Error::ShapeMismatch { op, lhs: *a.shape(), rhs: *b.shape() });
    }
    check_shape(op, b, a.shape())?;
    check_dtype(op, b, a.dtype())?;
    for_float!(op, a, T => {
        let mut out = Output::new(op, &Shape::scalar(), a.dtype())?;
        let (a, b) = (copy::contiguous(op, a)?, copy::contiguous(op, b)?);
        out.elements::<T>()[0] = T::from_f64(product(a.run::<T>(), b.run::<T>()).finish());
        Ok(smallvec![out.finish()])
    })
}

fn product<T: Loaded>(a: &[T], b: &[T]) -> PairwiseSum {
    let blocks = a.len().div_ceil(BLOCK);
    let parts = parallel::parts(blocks, Cost(COST_PER_BYTE * size_of::<T>()).times(BLOCK));
    let part_len = blocks.div_ceil(parts).next_power_of_two() * BLOCK;
    let pieces: SmallVec<[_; 16]> = a.chunks(part_len).zip(b.chunks(part_len)).collect();
    let mut sums: SmallVec<[PairwiseSum; 16]> = pieces.iter().map(|_| PairwiseSum::new()).collect();
    parallel::for_each_part_mut(&mut sums, pieces.len(), &|part| part, &|part, sum| {
        let (a, mut b) = pieces[part];
        T::feed(a, |a| {
            let (here, after) = b.split_at(a.len());
            T::feed(here, |here| sum[0].push_products(a, here));
            b = after;
        });
    });
    let mut whole = PairwiseSum::new();
    for part in &sums {
        whole.append(part);
    }
    whole
}
