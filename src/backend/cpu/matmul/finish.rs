//! Epilogues and outputs of products.

use swath_kernels::{self as kernels, Kernel};

use super::super::Written;
use super::Factor;
use crate::runtime::parallel::{self, Band, Cost};

/// Picoseconds per multiply-add: 180 GFLOP/s.
pub const COST_PER_TERM: usize = 11;

/// Picoseconds per `f32` of a bias and an activation; an `f64` takes about twice as long.
pub const ACTIVATION_COST: usize = 500;

/// Cost of an element of a product with its epilogue.
pub fn cost<E>(k: usize, finish: Finish<'_, E>) -> Cost {
    let function = if finish.function.is_some() { ACTIVATION_COST } else { 0 };
    Cost(COST_PER_TERM.saturating_mul(k).saturating_add(function))
}

/// Epilogue of a product, as slices and kernels.
#[derive(Clone, Copy)]
pub struct Finish<'a, E> {
    /// Name of the operation for errors.
    pub op: &'static str,
    /// Added to every row.
    pub bias: Option<&'a [E]>,
    /// Applied to every element after the bias.
    pub function: Option<&'static Kernel<1>>,
    /// True if the product is added to the content of the output, without bias and function.
    pub add: bool,
}

impl<E: kernels::Float + kernels::Stored> Finish<'_, E> {
    /// True if the epilogue is empty.
    pub fn is_nothing(&self) -> bool {
        self.bias.is_none() && self.function.is_none() && !self.add
    }

    /// Applies the epilogue to a part of a row that begins at column `from`. `sums` has the same length or is
    /// empty.
    pub fn finish(&self, from: usize, row: &mut [E], sums: &mut [E]) {
        if let Some(bias) = self.bias {
            row.iter_mut().zip(&bias[from..]).for_each(|(y, &bias)| *y = *y + bias);
        }
        if !sums.is_empty() {
            sums.copy_from_slice(row);
        }
        if let Some(function) = self.function {
            function.run_in_place([None], row);
        }
    }

    /// Applies the epilogue to all rows of a product with `n` columns, which threads share. `sums` has the same
    /// length or is empty.
    pub fn rows(&self, c: &mut [E], sums: &mut [E], n: usize) {
        if self.is_nothing() && sums.is_empty() {
            return;
        }
        let (rows, cost) = (c.len() / n, cost(0, *self).times(n));
        parallel::for_each_band(
            rows,
            cost,
            [Band::new(c, n), Band::new(sums, n)],
            |_, [c, sums]| {
                let mut kept = sums.chunks_exact_mut(n);
                for row in c.chunks_exact_mut(n) {
                    self.finish(0, row, kept.next().unwrap_or_default());
                }
            },
        );
    }
}

/// Contiguous outputs of a product.
pub struct Places<'a, E> {
    /// The result after the epilogue.
    pub c: &'a mut [E],
    /// The activation's input if kept, else empty.
    pub sums: &'a mut [E],
    /// Counts the elements of `c`.
    pub written: &'a Written,
}

/// Rounded outputs for the elements of [`Places`]; empty if not rounded.
pub struct Rounded<'a, T> {
    pub c: &'a mut [T],
    pub sums: &'a mut [T],
}

impl<T: Factor> Rounded<'_, T> {
    pub fn none() -> Self {
        Rounded { c: &mut [], sums: &mut [] }
    }

    /// Rounds all elements.
    pub fn of(self, places: &Places<'_, T::Sum>) {
        if let Some(round) = T::ROUND {
            for (wide, rounded) in [(&*places.c, self.c), (&*places.sums, self.sums)] {
                if !rounded.is_empty() {
                    round(wide, rounded);
                }
            }
        }
    }
}
