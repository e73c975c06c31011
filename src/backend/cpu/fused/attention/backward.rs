//! Backward pass of attention.

use swath_kernels as kernels;

use super::super::super::copy::contiguous;
use super::head::{
    Arena, contiguous_rows, copy_rows, multiply, panel_rows, panels_len, product,
    product_with_panels, transposed_panels,
};
use super::parts::Heads;
use super::*;
use crate::dtype::Element;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel;

/// Upstream gradient, and the saved tensors of the forward pass: y, the largest score m of each row, and
/// 1/Σ e^(score − m) of each row.
struct Saved<'a, E> {
    g: Stack<'a, E>,
    y: Stack<'a, E>,
    largest: &'a [E],
    inverse: &'a [E],
}

/// dq, dk and dv.
type Gradients<'a, E> = (Heads<'a, E>, (Heads<'a, E>, Heads<'a, E>));

pub(super) fn run<E: Real>(
    op: &'static str,
    operands: &Operands<'_>,
    [g, y]: [&CpuTensor; 2],
    [largest, inverse]: [&CpuTensor; 2],
) -> Result<Results<CpuTensor>> {
    let problem = operands.problem::<E>();
    let shape = problem.shape;
    let Extents { batches, heads, t, s, d, e } = shape;
    let (largest, inverse) = (contiguous(op, largest)?, contiguous(op, inverse)?);
    let saved = Saved {
        g: Stack::new(g, g.layout()),
        y: Stack::new(y, y.layout()),
        largest: largest.run(),
        inverse: inverse.run(),
    };
    let output = |size| HeadsOutput::new::<E>(op, operands.q, size);
    let (mut dq, mut dk, mut dv) = (output([t, d])?, output([s, d])?, output([s, e])?);
    if batches * heads > 0 {
        let (dq, of_dq) = dq.heads::<E>(op, &shape, [t, d])?;
        let (dk, of_dk) = dk.heads(op, &shape, [s, d])?;
        let (dv, of_dv) = dv.heads(op, &shape, [s, e])?;
        let (results, written) = ((dq, (dk, dv)), [of_dq, of_dk, of_dv]);
        let parts = parallel::parts(batches * heads, problem.cost(3 * d + 2 * e, 2));
        let parts = parts::cut(results, [batches, heads], parts);
        let bytes = Arena::<E>::bytes(op, operands.k, &slices(&shape, &operands.parameters))?;
        share(parts, (), |part: parts::Part<Gradients<'_, E>>| {
            let mut memory = Buffer::scratch(bytes);
            let memory = memory.as_slice_mut::<E>();
            E::with_workspace(|workspace| {
                part.each(heads, |head, (dq, (dk, dv))| {
                    let results = [dq.matrix, dk.matrix, dv.matrix];
                    let arena = Arena(&mut *memory);
                    problem.backward(&saved, head, results, written, arena, workspace)
                })
            })
            .map_err(refused(op))
        })?;
    }
    Ok(smallvec![dq.finish(), dk.finish(), dv.finish()])
}

/// Shapes of the slices of scratch memory per head.
fn slices(shape: &Extents, parameters: &AttentionParameters) -> [[usize; 2]; 10] {
    let &Extents { s, d, e, .. } = shape;
    let (panels, scores) = (panel_rows(s), [ROWS, shape.scores_stride()]);
    let factors = if parameters.dropout.is_some() { scores } else { [0; 2] };
    let [q, g, y] = [[ROWS, d], [ROWS, e], [ROWS, e]];
    [[panels, d], [s, d], [panels, e], scores, scores, factors, [ROWS, 1], q, g, y]
}

impl<E: Real> Problem<'_, E> {
    /// Computes dq `[t, d]`, dk `[s, d]` and dv `[s, e]` of one head.
    fn backward(
        &self,
        saved: &Saved<'_, E>,
        head: usize,
        [mut dq, mut dk, mut dv]: [MatMut<'_, E>; 3],
        [of_dq, of_dk, of_dv]: [&Written; 3],
        mut arena: Arena<'_, E>,
        workspace: &mut Workspace<E>,
    ) -> std::result::Result<(), GemmError> {
        let Extents { t, s, d, e, .. } = self.shape;
        let stride = self.shape.scores_stride();
        let (q, k, v) = (self.q.matrix(head), self.k.matrix(head), self.v.matrix(head));
        let (g, y) = (saved.g.matrix(head), saved.y.matrix(head));
        let keys_t = arena.take(panels_len(s, d));
        let keys = arena.take(s * d);
        let values_t = arena.take(panels_len(s, e));
        let weights = arena.take(ROWS * stride);
        let slopes = arena.take(ROWS * stride);
        let dropout = self.parameters.dropout;
        let factors = arena.take(if dropout.is_some() { ROWS * stride } else { 0 });
        let means = arena.take(ROWS);
        let (q_copy, g_copy) = (arena.take(ROWS * d), arena.take(ROWS * e));
        let y_copy = arena.take(ROWS * e);

        transposed_panels(&k, s, keys_t);
        copy_rows(&k, 0, keys);
        transposed_panels(&v, s, values_t);
        for i in 0..s {
            dk.row_mut(i).fill(E::ZERO);
            dv.row_mut(i).fill(E::ZERO);
            of_dk.add(d);
            of_dv.add(e);
        }
        for first in (0..t).step_by(ROWS) {
            let rows = ROWS.min(t - first);
            let columns = self.visible(first + rows - 1);
            of_dq.add(rows * d);
            if columns == 0 {
                (first..first + rows).for_each(|i| dq.row_mut(i).fill(E::ZERO));
                continue;
            }
            let (weights, slopes) = (&mut weights[..rows * stride], &mut slopes[..rows * stride]);
            let means = &mut means[..rows];
            let [largest, inverse] =
                [saved.largest, saved.inverse].map(|x| &x[head * t + first..][..rows]);
            let q_rows = contiguous_rows(&q, first, rows, q_copy);
            let g_rows = contiguous_rows(&g, first, rows, g_copy);
            let y_rows = contiguous_rows(&y, first, rows, y_copy);
            let q_block = MatRef::new(q_rows.0, 0, [rows, d], [q_rows.1 as isize, 1])?;
            let g_block = MatRef::new(g_rows.0, 0, [rows, e], [g_rows.1 as isize, 1])?;

            product_with_panels(q_block, keys_t, columns, weights, stride, workspace)?;
            product_with_panels(g_block, values_t, columns, slopes, stride, workspace)?;
            kernels::row_dots(e, g_rows, y_rows, means);
            let masked = self.mask_scores(head, first, columns, stride, weights);
            if let Some(dropout) = &dropout {
                let rows = factors.chunks_mut(stride).zip(slopes.chunks_mut(stride));
                for (i, (factors, slopes)) in rows.enumerate() {
                    let visible = self.visible(first + i);
                    self.dropout_factors(dropout, head, first + i, &mut factors[..visible]);
                    multiply(&mut slopes[..visible], &factors[..visible]);
                }
            }
            let scale = self.parameters.scale;
            let block = self.block(first, rows, columns, if masked { 1.0 } else { scale });
            let scale = <E as Element>::from_f64(scale);
            kernels::attention_weights_grad(weights, slopes, block, largest, inverse, means, scale);
            if dropout.is_some() {
                let rows = weights.chunks_mut(stride).zip(factors.chunks(stride));
                for (i, (weights, factors)) in rows.enumerate() {
                    let visible = self.visible(first + i);
                    multiply(&mut weights[..visible], &factors[..visible]);
                }
            }

            let block = |x| MatRef::new(x, 0, [rows, columns], [stride as isize, 1]);
            let (weights, slopes) = (block(&*weights)?, block(&*slopes)?);
            for from in (0..columns).step_by(VALUES) {
                let count = VALUES.min(columns - from);
                let (a, _) = slopes.split_cols(from).1.split_cols(count);
                let b = MatRef::new(keys, from * d, [count, d], [d as isize, 1])?;
                let (_, c) = dq.reborrow().split_rows(first);
                product(a, b, c.split_rows(rows).0, from > 0, workspace)?;
            }
            let (dk, dv) =
                (dk.reborrow().split_rows(columns).0, dv.reborrow().split_rows(columns).0);
            product(slopes.t(), q_block, dk, true, workspace)?;
            product(weights.t(), g_block, dv, true, workspace)?;
        }
        Ok(())
    }
}
