//! Indices. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    let ids = tensor![i64; 1, 1];
    let i = tensor![i64; [1, 0], [0, 0]];
    let y = tensor![[10.0, 10.0], [1.0, 1.0]];
    let highest = x.scatter_reduce(1, &i, &y, ReduceMode::Max, true)?;
    let products = x.index_reduce(0, &ids, &y, ReduceMode::Prod, false)?;
    let counts = tensor![i64; 0, 2];
    let cols = tensor![i64; 0, 1];
    let mask = tensor![bool; true, true];
    let v = tensor![7.0, 8.0];
    let mut z = x.zeros_like()?;
    let m = x.gt(2.5)?;
    row(
        "`x[ids]` `x.index_select(0, ids)` `x.index_select(0, &ids)?`",
        &[found(&(x.index_select(0, &ids)?))],
        &["[2, 2]: 3 4 3 4", "[2, 2]: 3 4 3 4"],
    );
    row(
        "`np.take_along_axis(x, i, 1)` `x.gather(1, i)` `x.gather(1, &i)?`",
        &[found(&(x.gather(1, &i)?))],
        &["[2, 2]: 2 1 3 3", "[2, 2]: 2 1 3 3"],
    );
    row(
        "`np.add.at(x, ids, y)` `x.index_add(0, ids, y)` `x.index_add(0, &ids, &y)?`",
        &[found(&(x.index_add(0, &ids, &y)?))],
        &["[2, 2]: 1 2 14 15"],
    );
    row(
        "`x.scatter_add(1, i, y)` `x.scatter_add(1, &i, &y)?`",
        &[found(&(x.scatter_add(1, &i, &y)?))],
        &["[2, 2]: 11 12 5 4"],
    );
    row(
        "`x.scatter(1, i, y)` `x.scatter(1, &i, &y)?`",
        &[found(&(x.scatter(1, &i, &y)?))],
        &["[2, 2]: 10 10 1 4"],
    );
    row(
        "`x.scatter_reduce(1, i, y, \"amax\")` `np.maximum.at` `x.scatter_reduce(1, &i, &y, ReduceMode::Max, true)?`",
        &[found(&(x.scatter_reduce(1, &i, &y, ReduceMode::Max, true)?))],
        &["[2, 2]: 10 10 3 4"],
    );
    row(
        "`x.index_reduce(0, ids, y, \"prod\", include_self=False)` `x.index_reduce(0, &ids, &y, ReduceMode::Prod, false)?`",
        &[found(&(x.index_reduce(0, &ids, &y, ReduceMode::Prod, false)?))],
        &["[2, 2]: 1 2 10 10"],
    );
    row(
        "`np.repeat(x, 2, 1)` `x.repeat_interleave(2, 1)` `np.repeat(x, 2)` `x.repeat_interleave(2, 1)?` `x.reshape(-1)?.repeat_interleave(2, 0)?`",
        &[found(&(x.repeat_interleave(2, 1)?)), found(&(x.reshape(-1)?.repeat_interleave(2, 0)?))],
        &["[2, 4]: 1 1 2 2 3 3 4 4", "[2, 4]: 1 1 2 2 3 3 4 4", "[8]: 1 1 2 2 3 3 4 4"],
    );
    row(
        "`x.repeat_interleave(counts, 0)` `x.repeat_interleave(&counts, 0)?`",
        &[found(&(x.repeat_interleave(&counts, 0)?))],
        &["[2, 2]: 3 4 3 4"],
    );
    row(
        "`x[ids, cols]` `x.index(&[Some(&ids), Some(&cols)])?`",
        &[found(&(x.index(&[Some(&ids), Some(&cols)])?))],
        &["[2]: 3 4"],
    );
    row(
        "`x[mask, cols]` `mask` `x.index(&[Some(&mask), Some(&cols)])?`",
        &[found(&(x.index(&[Some(&mask), Some(&cols)])?))],
        &["[2]: 1 4"],
    );
    row(
        "`x[ids] = y` `x.index_put(&[Some(&ids)], &y)?`",
        &[found(&(x.index_put(&[Some(&ids)], &y)?))],
        &["[2, 2]: 1 2 1 1"],
    );
    row(
        "`x[0] = v` `x.slice_assign(s![0], &v)?` `z.set_slice(s![0], &v)?`",
        &[
            found(&(x.slice_assign(s![0], &v)?)),
            found(
                &({
                    let mut z = x.clone();
                    z.set_slice(s![0], &v)?;
                    z
                }),
            ),
        ],
        &["[2, 2]: 7 8 3 4"],
    );
    row(
        "`x[:, -1] = 0` `z.set_slice(s![.., -1], 0)?`",
        &[found(
            &({
                let mut z = x.clone();
                z.set_slice(s![.., -1], 0)?;
                z
            }),
        )],
        &["[2, 2]: 1 0 3 0"],
    );
    row("`x[m]` `m` `x.masked_select(&m)?`", &[found(&(x.masked_select(&m)?))], &["[2]: 3 4"]);
    row(
        "`np.argwhere(m)` `m.nonzero()` `m.nonzero()?`",
        &[found(&(m.nonzero()?))],
        &["[2, 2]: 1 0 1 1 | [2, 2]: 1 1 0 1", "[2]: 1 1; [2]: 0 1 | [2, 2]: 1 0 1 1"],
    );
    row(
        "`F.one_hot(ids, 3)` `F.one_hot(ids, 3).T` `ids.one_hot(3)?` `ids.one_hot_as(3, 0, DType::F32)?`",
        &[found(&(ids.one_hot(3)?)), found(&(ids.one_hot_as(3, 0, DType::F32)?))],
        &["[2, 3]: 0 1 0 0 1 0", "[3, 2]: 0 0 1 1 0 0"],
    );
    row(
        "`F.embedding(ids, x)` `F.embedding(ids, x, padding_idx=0)` `x.embedding(&ids)?` `x.embedding_with_padding(&ids, 0)?`",
        &[found(&(x.embedding(&ids)?)), found(&(x.embedding_with_padding(&ids, 0)?))],
        &["[2, 2]: 3 4 3 4", "[2, 2]: 3 4 3 4"],
    );
    Ok(())
}
