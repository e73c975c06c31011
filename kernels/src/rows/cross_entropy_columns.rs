//! Cross-entropy of the columns of a matrix of logits, as of images of classes, and its gradient:
//! the formulas of `cross_entropy.rs` with vectors across columns, and the same bits.

use crate::fold::Widen;
use crate::fold::strips::{
    Strip, StripMut, TILE_COLS, logs, map, round, shifted_sums, sums, tiles,
};
use crate::map::Map;
use crate::map::rows;
use crate::math::{Exp, Expm1};
use crate::simd::{Float, Lanes, Simd, Task, Vector};

/// Arguments of [`cross_entropy_columns`](crate::cross_entropy_columns): logits, targets and options.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropyColumns<'a, E> {
    /// Logits, `[n, m]`: row-major, with rows `stride` elements apart.
    pub logits: &'a [E],
    /// Elements from the start of one row to the start of the next.
    pub stride: usize,
    /// The number of classes n.
    pub classes: usize,
    /// Class index of each column, `[m]`: in `0..n`, or `ignore_index`.
    pub targets: &'a [i64],
    /// Target of the columns to ignore: their loss and their gradient are 0.
    pub ignore_index: Option<i64>,
    /// ε: the target has probability `1 - ε + ε/n`, every other class `ε/n`.
    pub label_smoothing: f64,
}

/// A tile of the logits.
struct Tile<'a, E> {
    logits: Strip<'a, E>,
    targets: &'a [i64],
}

impl<'a, E: Float> CrossEntropyColumns<'a, E> {
    #[inline(always)]
    fn tile(&self, logits: Strip<'a, E>, (from, cols): (usize, usize)) -> Tile<'a, E> {
        Tile { logits: logits.columns(from, cols), targets: &self.targets[from..from + cols] }
    }

    /// The target of a column, if it is not ignored.
    #[inline(always)]
    fn class(&self, target: i64) -> Option<usize> {
        if self.ignore_index == Some(target) { None } else { Some(target as usize) }
    }

    /// Copies the logit of each column's target; 0 where it is ignored.
    #[inline(always)]
    fn at_targets(&self, tile: &Tile<'_, E>, y: &mut [E]) {
        for (c, (y, &target)) in y.iter_mut().zip(tile.targets).enumerate() {
            *y = match self.class(target) {
                Some(class) => tile.logits.get(class, c),
                None => E::ZERO,
            };
        }
    }
}

/// The task of [`cross_entropy_columns`](crate::cross_entropy_columns).
pub(crate) struct CrossEntropyColumnsTask<'a, E> {
    pub columns: CrossEntropyColumns<'a, E>,
    pub logits: Strip<'a, E>,
    pub losses: &'a mut [E],
    pub largest: &'a mut [E],
    pub rest: &'a mut [E],
}

impl<E: Float + Widen> Task<E> for CrossEntropyColumnsTask<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let CrossEntropyColumnsTask { columns, logits, losses, largest, rest } = self;
        let smoothing = columns.label_smoothing;
        let (mut totals, mut means) = ([0.0; TILE_COLS], [0.0; TILE_COLS]);
        let mut at_targets = [E::ZERO; TILE_COLS];
        for (from, cols) in tiles(columns.classes, losses.len()) {
            let tile = columns.tile(logits, (from, cols));
            let (totals, means) = (&mut totals[..cols], &mut means[..cols]);
            let (at_targets, largest) = (&mut at_targets[..cols], &mut largest[from..][..cols]);
            let (losses, rest) = (&mut losses[from..][..cols], &mut rest[from..][..cols]);
            shifted_sums(simd, tile.logits, largest, totals);
            round(totals, rest, |sum| sum - 1.0);
            logs(simd, totals);
            columns.at_targets(&tile, at_targets);
            if smoothing != 0.0 {
                sums(
                    simd,
                    [tile.logits],
                    means,
                    #[inline(always)]
                    |[x]| x,
                );
            }
            for c in 0..cols {
                let at_target = at_targets[c].to_f64();
                let mut value = (largest[c].to_f64() - at_target) + totals[c];
                // See the rows' loss.
                if smoothing != 0.0 && at_target != f64::NEG_INFINITY {
                    value += smoothing * (at_target - means[c] / columns.classes as f64);
                }
                let counts = columns.ignore_index != Some(tile.targets[c]);
                losses[c] = if counts { E::from_f64(value) } else { E::ZERO };
            }
        }
    }
}

/// The task of [`cross_entropy_grad_columns`](crate::cross_entropy_grad_columns).
pub(crate) struct CrossEntropyGradColumnsTask<'a, E> {
    pub columns: CrossEntropyColumns<'a, E>,
    pub logits: Strip<'a, E>,
    pub g: &'a [E],
    pub largest: &'a [E],
    pub rest: &'a [E],
    pub dx: StripMut<'a, E>,
}

impl<E: Float + Widen> Task<E> for CrossEntropyGradColumnsTask<'_, E>
where
    Exp: Map<E, 1>,
    Expm1: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let CrossEntropyGradColumnsTask { columns, logits, g, largest, rest, mut dx } = self;
        let smoothing = columns.label_smoothing;
        let uniform = smoothing / columns.classes as f64;
        let target_near_one = smoothing < 0.5;
        let target_term = if target_near_one { smoothing } else { smoothing - 1.0 } - uniform;
        let [minus_uniform, target_term] =
            Lanes::<E>::splat_all(simd, [E::from_f64(-uniform), E::from_f64(target_term)]);
        let mut at_targets = [E::ZERO; TILE_COLS];
        let (mut wide, mut inverse) = ([0.0; TILE_COLS], [E::ZERO; TILE_COLS]);
        for (from, cols) in tiles(columns.classes, g.len()) {
            let tile = columns.tile(logits, (from, cols));
            let [g, largest, rest] =
                [&g[from..][..cols], &largest[from..][..cols], &rest[from..][..cols]];
            let (wide, inverse) = (&mut wide[..cols], &mut inverse[..cols]);
            let at_targets = &mut at_targets[..cols];
            let mut dx = dx.columns(from, cols);
            for (wide, rest) in wide.iter_mut().zip(rest) {
                *wide = 1.0 + rest.to_f64();
            }
            round(wide, inverse, |x| 1.0 / x);
            map(
                simd,
                [tile.logits],
                [largest, inverse, g],
                &mut dx,
                #[inline(always)]
                |[x], [max, inverse, g]| {
                    Exp::apply(simd, [x - max]).mul_add(inverse, minus_uniform) * g
                },
            );
            columns.at_targets(&tile, at_targets);
            rows::change(
                simd,
                [largest, rest, inverse, g],
                [&mut *at_targets],
                #[inline(always)]
                |[max, rest, inverse, g], [x]| {
                    let e = match target_near_one {
                        true => Expm1::apply(simd, [x - max]) - rest,
                        false => Exp::apply(simd, [x - max]),
                    };
                    [e.mul_add(inverse, target_term) * g]
                },
            );
            for (c, (&target, &at_target)) in tile.targets.iter().zip(&*at_targets).enumerate() {
                match columns.class(target) {
                    Some(class) => dx.set(class, c, at_target),
                    None => (0..columns.classes).for_each(|class| dx.set(class, c, E::ZERO)),
                }
            }
        }
    }
}
