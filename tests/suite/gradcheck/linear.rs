//! Cases of distances, products of vectors and matrices, covariances, and forms of other ops.

use super::cases::{ALL, DENSE, Suite, T};
use swath::prelude::*;

pub fn linear(op: &str, s: &mut Suite) {
    match op {
        "cosine_similarity" => {
            let f = |xs: &[T]| xs[0].cosine_similarity(&xs[1], 1, 1e-8);
            s.add("columns", &[&[2, 3, 2], &[3, 1]], &ALL, f);
            // Both lengths are below the bound.
            let f = |xs: &[T]| xs[0].cosine_similarity(&xs[1], -1, 100.0);
            s.add("bound", &[&[2, 3], &[2, 3]], &ALL, f);
        }
        "pairwise_distance" => {
            let f = |xs: &[T]| xs[0].pairwise_distance(&xs[1], 2.0, 1e-6, false);
            s.add("Euclidean", &[&[2, 3, 4], &[3, 4]], &ALL, f);
            let f = |xs: &[T]| xs[0].pairwise_distance(&xs[1], 3.0, 0.5, true);
            s.add("kept", &[&[3, 4], &[4]], &ALL, f);
        }
        "cdist" => {
            let f = |p| move |xs: &[T]| xs[0].cdist(&xs[1], p);
            s.add("sums", &[&[2, 3, 4], &[2, 4]], &ALL, f(1.0));
            s.add("products", &[&[27, 5], &[2, 1, 5]], &DENSE, f(2.0));
            s.add("near points", &[&[27, 5]], &DENSE, |xs| {
                xs[0].cdist(&xs[0].narrow(0, 1, 2)?.add(0.05)?, 2.0)
            });
            s.add("blocks", &[&[3, 2], &[70000, 2]], &[ALL[0]], |xs| {
                xs[0].cdist(&xs[1], 4.0)?.mean_axis(-1, false)
            });
            s.add("few points", &[&[2, 3, 4], &[2, 4]], &ALL, f(2.0));
            s.add("cubes", &[&[2, 3, 4], &[2, 4]], &ALL, f(3.0));
        }
        "cross" => {
            s.add("rows", &[&[2, 3], &[3]], &ALL, |xs| xs[0].cross(&xs[1], -1));
            s.add("columns", &[&[3, 2], &[2, 3, 1]], &ALL, |xs| xs[0].cross(&xs[1], 1));
        }
        "kron" => {
            s.add("matrices", &[&[2, 3], &[3, 2]], &ALL, |xs| xs[0].kron(&xs[1]));
            s.add("ranks", &[&[2], &[2, 1, 3]], &ALL, |xs| xs[0].kron(&xs[1]));
        }
        "cov" => {
            s.add("cov", &[&[3, 4]], &ALL, |xs| xs[0].cov(1, None, None));
            s.add("one variable", &[&[4]], &DENSE, |xs| xs[0].cov(0, None, None));
            let often = tensor![i64; 1, 0, 3, 2];
            s.add("weighted", &[&[3, 4], &[4]], &ALL, move |xs| {
                xs[0].cov(1, Some(&often), Some(&xs[1].square()?))
            });
        }
        "corrcoef" => s.add("corrcoef", &[&[3, 5]], &DENSE, |xs| xs[0].corrcoef()),
        "trapezoid" => {
            s.one("distance", |x| x.trapezoid(0.5, 1));
            s.add("points", &[&[2, 3, 2], &[3]], &ALL, |xs| xs[0].trapezoid(&xs[1], 1));
            let f = |xs: &[T]| xs[0].cumulative_trapezoid(&xs[1], -1);
            s.add("cumulative", &[&[3, 4], &[3, 4]], &ALL, f);
        }
        "matrix_power" => {
            s.add("fifth", &[&[2, 3, 3]], &ALL, |xs| xs[0].mul(0.5)?.matrix_power(5));
            s.add("square", &[&[3, 3]], &ALL, |xs| xs[0].matrix_power(2));
        }
        "diag_embed" => {
            s.one("last", |x| x.diag_embed(1, -2, -1));
            s.one("apart", |x| x.diag_embed(-2, 2, 0));
        }
        "block_diag" => {
            let f = |xs: &[T]| T::block_diag(&[&xs[0], &xs[1], &xs[0]]);
            s.add("block_diag", &[&[2, 1], &[3]], &ALL, f);
        }
        "cartesian_prod" => {
            let f = |xs: &[T]| T::cartesian_prod(&[&xs[0], &xs[1], &xs[0]]);
            s.add("cartesian_prod", &[&[2], &[3]], &ALL, f);
        }
        "vander" => {
            s.add("increasing", &[&[2, 3]], &ALL, |xs| xs[0].vander(4, true));
            s.add("decreasing", &[&[3]], &ALL, |xs| xs[0].vander(None, false));
        }
        "add_scaled" => {
            let f = |xs: &[T]| xs[0].add_scaled(&xs[1], -3);
            s.add("add_scaled", &[&[2, 3], &[2, 1]], &ALL, f);
        }
        "layer_norm_with_statistics" => {
            s.add("all", &[&[2, 4], &[4]], &ALL, |xs| {
                let (y, mean, scale) = xs[0].layer_norm_with_statistics(Some(&xs[1]), None, 0.1)?;
                let sum = mean.mul(2.0)?.add(scale.mul(3.0)?)?;
                y.add(sum.to_dtype(y.dtype())?)
            });
        }
        "embedding_with_padding" => {
            let ids = tensor![i64; [0, 2], [2, 1]];
            s.add("embedding_with_padding", &[&[3, 2]], &ALL, move |xs| {
                // The padding row has no gradient: it is a constant.
                xs[0].slice_assign(s![1], 2)?.embedding_with_padding(&ids, 1)
            });
        }
        _ => {}
    }
}
