//! Linear algebra. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    let (a, b) = (tensor![[1.0, 2.0], [3.0, 4.0]], tensor![[0.0, 1.0], [1.0, 0.0]]);
    let (u, v) = (tensor![1.0, 2.0], tensor![3.0, 4.0]);
    let product = a.matmul(&b)?;
    let (p, q) = (tensor![1.0, 2.0, 2.0], tensor![2.0, 4.0, 4.0]);
    row(
        "`a @ b` `torch.matmul(a, b)` `a.matmul(&b)?`",
        &[found(&(a.matmul(&b)?))],
        &["[2, 2]: 2 1 4 3", "[2, 2]: 2 1 4 3"],
    );
    row("`u @ v` `torch.dot(u, v)` `u.dot(&v)?`", &[found(&(u.dot(&v)?))], &["[]: 11", "[]: 11"]);
    row(
        "`np.outer(u, v)` `torch.outer(u, v)` `u.outer(&v)?`",
        &[found(&(u.outer(&v)?))],
        &["[2, 2]: 3 4 6 8", "[2, 2]: 3 4 6 8"],
    );
    row(
        "`np.einsum(\"ij,jk->ik\", a, b)` `Tensor::einsum(\"ij,jk->ik\", &[&a, &b])?`",
        &[found(&(Tensor::einsum("ij,jk->ik", &[&a, &b])?))],
        &["[2, 2]: 2 1 4 3"],
    );
    row(
        "`np.tensordot(a, b, 1)` `a.tensordot(&b, 1)?`",
        &[found(&(a.tensordot(&b, 1)?))],
        &["[2, 2]: 2 1 4 3"],
    );
    row(
        "`np.trace(a)` `torch.trace(a)` `a.diagonal(0, 1)?.sum(None, false)?`",
        &[found(&(a.diagonal(0, 1)?.sum(None, false)?))],
        &["[]: 5", "[]: 5"],
    );
    row(
        "`np.kron(a, b)` `torch.kron(a, b)` `a.kron(&b)?`",
        &[found(&(a.kron(&b)?))],
        &["[4, 4]: 0 1 0 2 1 0 2 0 0 3 0 4 3 0 4 0", "[4, 4]: 0 1 0 2 1 0 2 0 0 3 0 4 3 0 4 0"],
    );
    row(
        "`np.cross(p, q)` `torch.linalg.cross(p, q)` `p.cross(&q, -1)?`",
        &[found(&(p.cross(&q, -1)?))],
        &["[3]: 0 0 0", "[3]: 0 0 0"],
    );
    row(
        "`np.linalg.matrix_power(a, 3)` `a.matrix_power(3)?`",
        &[found(&(a.matrix_power(3)?))],
        &["[2, 2]: 37 54 81 118"],
    );
    row(
        "`np.vander(p, 4)` `torch.linalg.vander(p)` `p.vander(4, false)?` `p.vander(None, true)?`",
        &[found(&(p.vander(4, false)?)), found(&(p.vander(None, true)?))],
        &["[3, 4]: 1 1 1 1 8 4 2 1 8 4 2 1", "[3, 3]: 1 1 1 1 2 4 1 2 4"],
    );
    row(
        "`torch.cdist(a, b)` `scipy.spatial.distance_matrix(a, b)` `a.cdist(&b, 2.0)?`",
        &[found(&(a.cdist(&b, 2.0)?))],
        &[
            "[2, 2]: 1.4142135381698608 2 4.242640495300293 4.4721360206604",
            "[2, 2]: 1.4142135623730951 2 4.242640687119285 4.47213595499958",
        ],
    );
    row(
        "`F.pairwise_distance(p, q)` `p.pairwise_distance(&q, 2.0, 1e-6, false)?`",
        &[found(&(p.pairwise_distance(&q, 2.0, 1e-6, false)?))],
        &["[]: 2.9999983310699463"],
    );
    row(
        "`F.cosine_similarity(p, q, 0)` `p.cosine_similarity(&q, 0, 1e-8)?`",
        &[found(&(p.cosine_similarity(&q, 0, 1e-8)?))],
        &["[]: 1"],
    );
    Ok(())
}
