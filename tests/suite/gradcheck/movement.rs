//! Cases of ops that move elements.

use super::cases::{ALL, Suite, T};
use swath::prelude::*;

pub fn movement(op: &str, s: &mut Suite) {
    match op {
        "scatter" => {
            let index = tensor![i64; [0, 2, 2, 1], [1, 1, 0, 0]];
            let f = move |xs: &[T]| xs[0].scatter(1, &index, &xs[1]);
            s.add("elements", &[&[2, 4], &[2, 4]], &ALL, f);
            let index = tensor![i64; [1], [1], [0]].broadcast_to((3, 4)).unwrap();
            let f = move |xs: &[T]| xs[0].scatter(0, &index, &xs[1]);
            s.add("rows", &[&[2, 4], &[3, 4]], &ALL, f);
        }
        "slice_assign" => {
            let f = |xs: &[T]| xs[0].slice_assign(s![1, 3..;-2], &xs[1]);
            s.add("slice_assign", &[&[2, 4], &[2]], &ALL, f);
            let f = |xs: &[T]| xs[0].slice_assign(s![.., ..2], &xs[1]);
            s.add("broadcast", &[&[2, 4], &[2, 1]], &ALL, f);
        }
        "roll" => {
            s.one("one axis", |x| x.roll(-1, 2));
            s.one("two axes", |x| x.roll([2, 1], [1, 0]));
        }
        "stack" => {
            let f = |xs: &[T]| T::stack(&[&xs[0], &xs[1], &xs[0]], 1);
            s.add("stack", &[&[2, 3], &[2, 3]], &ALL, f);
        }
        "split" => {
            s.one("split", |x| T::cat(&[&x.split([1, 2], 1)?[1], &x.chunk(3, 1)?[0]], 1));
            s.one("unbind", |x| x.unbind(0)?[1].mul(&x.unbind(0)?[0]));
        }
        "repeat" => {
            s.one("repeat", |x| x.repeat((2, 1, 3, 2)));
            s.one("tile", |x| x.tile((2, 3)));
        }
        "movedim" => s.one("movedim", |x| x.movedim([0, 2], [1, 0])),
        "tril" => {
            s.one("tril", |x| x.tril(-1));
            s.one("triu", |x| x.triu(1));
        }
        "diag" => {
            s.add("above", &[&[3]], &ALL, |xs| xs[0].diag(1));
            s.add("below", &[&[3]], &ALL, |xs| xs[0].diag(-2));
            s.one("of matrices", |x| x.diag(2));
        }
        "meshgrid" => {
            s.add("ij", &[&[2], &[3]], &ALL, |xs| {
                let grid = T::meshgrid(&[&xs[0], &xs[1]])?;
                T::stack(&[&grid[0], &grid[1]], 0)
            });
            let f = |xs: &[T]| Ok(T::meshgrid_xy(&[&xs[0], &xs[0]])?.swap_remove(0));
            s.add("xy", &[&[3]], &ALL, f);
        }
        "index" => {
            let (rows, columns) = (tensor![i64; [1], [0]], tensor![i64; 2, 2, -4]);
            let (i, j) = (rows.clone(), columns.clone());
            s.one("adjacent", move |x| x.index(&[None, Some(&i), Some(&j)]));
            s.one("apart", move |x| x.index(&[Some(&rows), None, Some(&columns)]));
        }
        "index_put" => {
            let (rows, columns) = (tensor![i64; 1, 0, 1], tensor![i64; 2, 2, -2]);
            let (i, j) = (rows.clone(), columns.clone());
            let f = move |xs: &[T]| xs[0].index_put(&[None, Some(&i), Some(&j)], &xs[1]);
            s.add("adjacent", &[&[2, 3, 4], &[2, 3]], &ALL, f);
            let f = move |xs: &[T]| xs[0].index_put(&[Some(&rows), None, Some(&columns)], &xs[1]);
            s.add("apart", &[&[2, 3, 4], &[3]], &ALL, f);
        }
        "masked_select" => {
            s.one("masked_select", |x| x.masked_select(&tensor![1.0, 0.0, 0.0, 2.0]));
        }
        "masked_scatter" => {
            let f = |xs: &[T]| xs[0].masked_scatter(&tensor![1.0, 0.0, 2.0], &xs[1]);
            s.add("masked_scatter", &[&[2, 3], &[5]], &ALL, f);
        }
        _ => super::order::orders(op, s),
    }
}
