//! What follows a product, and where it goes.

use swath_kernels::{self as kernels, Kernel};

use super::Factor;
use crate::runtime::parallel::{self, Band, Cost};

/// Picoseconds for a multiplication and an addition: 180 GFLOP/s.
const COST_PER_TERM: usize = 11;

/// Picoseconds for a bias and a function of an `f32`; an `f64` takes about twice as long.
pub const ACTIVATION_COST: usize = 500;

/// Picoseconds for a sum of k products, and what follows it.
pub fn cost<E>(k: usize, finish: Finish<'_, E>) -> Cost {
    let function = if finish.function.is_some() { ACTIVATION_COST } else { 0 };
    Cost(COST_PER_TERM.saturating_mul(k).saturating_add(function))
}

/// What follows a product, as the kernels take it.
pub struct Finish<'a, E> {
    /// The operation, for errors.
    pub op: &'static str,
    /// Added to every row.
    pub bias: Option<&'a [E]>,
    /// Then applied to every element.
    pub function: Option<&'static Kernel<1>>,
    /// Instead of both the product is added to what its place holds.
    pub add: bool,
}

impl<E> Clone for Finish<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Finish<'_, E> {}

impl<E: kernels::Float + kernels::Stored> Finish<'_, E> {
    /// True if nothing follows.
    pub fn is_nothing(&self) -> bool {
        self.bias.is_none() && self.function.is_none() && !self.add
    }

    /// Of a part of a row of the product that begins at column `from`; `sums` is as long, or empty.
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

    /// Of all rows of a product with `n` columns, shared by threads; `sums` has as many elements, or none.
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

/// Where a product goes, row-major without gaps.
pub struct Places<'a, E> {
    /// What the function makes of the sums.
    pub c: &'a mut [E],
    /// The sums, if they are kept; else nothing.
    pub sums: &'a mut [E],
}

/// Where the elements of [`Places`] are rounded to, if they are; else nothing.
pub struct Rounded<'a, T> {
    pub c: &'a mut [T],
    pub sums: &'a mut [T],
}

impl<T: Factor> Rounded<'_, T> {
    pub fn nowhere() -> Self {
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
