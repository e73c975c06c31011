//! Shapes and views. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    let x = Tensor::arange(0., 12., 1.)?.reshape((3, 4))?;
    let y = x.unsqueeze(0)?;
    let z = x.unsqueeze((0, -1))?;
    let v = x.slice(s![0])?;
    row(
        "`x.reshape(2, 6)` `x.view(2, 6)` `x.reshape((2, 6))?`",
        &[found(&(x.reshape((2, 6))?))],
        &["[2, 6]: 0 1 2 3 4 5 6 7 8 9 10 11", "[2, 6]: 0 1 2 3 4 5 6 7 8 9 10 11"],
    );
    row(
        "`x.reshape(-1, 2)` `x.reshape((-1, 2))?`",
        &[found(&(x.reshape((-1, 2))?))],
        &["[6, 2]: 0 1 2 3 4 5 6 7 8 9 10 11"],
    );
    row(
        "`x.ravel()` `x.flatten()` `x.reshape(-1)?`",
        &[found(&(x.reshape(-1)?))],
        &["[12]: 0 1 2 3 4 5 6 7 8 9 10 11", "[12]: 0 1 2 3 4 5 6 7 8 9 10 11"],
    );
    row(
        "`x.flatten(0, 1)` `x.flatten(0, 1)?`",
        &[found(&(x.flatten(0, 1)?))],
        &["[12]: 0 1 2 3 4 5 6 7 8 9 10 11"],
    );
    row(
        "`x.T` `x.t()` `x.mT` `x.t()?`",
        &[found(&(x.t()?))],
        &[
            "[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11",
            "[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11",
            "[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11",
        ],
    );
    row(
        "`np.swapaxes(x, 0, 1)` `x.transpose(0, 1)` `x.swap_axes(0, 1)?`",
        &[found(&(x.swap_axes(0, 1)?))],
        &[
            "[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11",
            "[3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 | [4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11",
        ],
    );
    row(
        "`np.transpose(x, (1, 0))` `x.permute(1, 0)` `x.permute(&[1, 0])?`",
        &[found(&(x.permute(&[1, 0])?))],
        &["[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11", "[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11"],
    );
    row(
        "`np.expand_dims(x, 0)` `x.unsqueeze(0)` `x.unsqueeze(0)?`",
        &[found(&(x.unsqueeze(0)?))],
        &["[1, 3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11", "[1, 3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11"],
    );
    row(
        "`np.squeeze(y, 0)` `y.squeeze(0)` `y.squeeze(0)?`",
        &[found(&(y.squeeze(0)?))],
        &["[3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11", "[3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11"],
    );
    row(
        "`np.expand_dims(x, (0, -1))` `np.squeeze(z, (0, -1))` `x.unsqueeze((0, -1))?` `z.squeeze((0, -1))?`",
        &[found(&(x.unsqueeze((0, -1))?)), found(&(z.squeeze((0, -1))?))],
        &["[1, 3, 4, 1]: 0 1 2 3 4 5 6 7 8 9 10 11", "[3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11"],
    );
    row(
        "`np.broadcast_to(x, (2, 3, 4))` `x.expand(2, 3, 4)` `x.broadcast_to((2, 3, 4))?` `x.expand((2, 3, 4))?`",
        &[found(&(x.broadcast_to((2, 3, 4))?)), found(&(x.expand((2, 3, 4))?))],
        &[
            "[2, 3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3 4 5 6 7 8 9 10 11",
            "[2, 3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3 4 5 6 7 8 9 10 11",
        ],
    );
    row("`x[1]` `x.slice(s![1])?`", &[found(&(x.slice(s![1])?))], &["[4]: 4 5 6 7"]);
    row(
        "`x[:, 1:3]` `x.narrow(1, 1, 2)` `x.slice(s![.., 1..3])?` `x.narrow(1, 1, 2)?`",
        &[found(&(x.slice(s![.., 1..3])?)), found(&(x.narrow(1, 1, 2)?))],
        &["[3, 2]: 1 2 5 6 9 10", "[3, 2]: 1 2 5 6 9 10"],
    );
    row(
        "`x[::2, -1]` `x.slice(s![..;2, -1])?`",
        &[found(&(x.slice(s![..;2, -1])?))],
        &["[2]: 3 11"],
    );
    row(
        "`np.flip(x, 0)` `x.flip(0)` `x.flip(0)?`",
        &[found(&(x.flip(0)?))],
        &["[3, 4]: 8 9 10 11 4 5 6 7 0 1 2 3", "[3, 4]: 8 9 10 11 4 5 6 7 0 1 2 3"],
    );
    row(
        "`np.diagonal(x)` `x.diagonal()` `x.diagonal(0, 1)?`",
        &[found(&(x.diagonal(0, 1)?))],
        &["[3]: 0 5 10", "[3]: 0 5 10"],
    );
    row(
        "`x.unfold(1, 2, 1)` `x.unfold(1, 2, 1)?`",
        &[found(&(x.unfold(1, 2, 1)?))],
        &["[3, 3, 2]: 0 1 1 2 2 3 4 5 5 6 6 7 8 9 9 10 10 11"],
    );
    row(
        "`np.concatenate([x, x], 0)` `torch.cat([x, x], 0)` `Tensor::cat(&[&x, &x], 0)?`",
        &[found(&(Tensor::cat(&[&x, &x], 0)?))],
        &[
            "[6, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3 4 5 6 7 8 9 10 11",
            "[6, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3 4 5 6 7 8 9 10 11",
        ],
    );
    row(
        "`torch.cat(x.split(1, 1), 0)` `Tensor::cat(&x.split(1, 1)?, 0)?`",
        &[found(&(Tensor::cat(&x.split(1, 1)?, 0)?))],
        &["[12, 1]: 0 4 8 1 5 9 2 6 10 3 7 11"],
    );
    row(
        "`np.stack([x, x])` `torch.stack([x, x])` `Tensor::stack(&[&x, &x], 0)?`",
        &[found(&(Tensor::stack(&[&x, &x], 0)?))],
        &[
            "[2, 3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3 4 5 6 7 8 9 10 11",
            "[2, 3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3 4 5 6 7 8 9 10 11",
        ],
    );
    row(
        "`x.split(2, 1)` `x.split([1, 3], 1)` `x.split(2, 1)?` `x.split([1, 3], 1)?`",
        &[found(&(x.split(2, 1)?)), found(&(x.split([1, 3], 1)?))],
        &[
            "[3, 2]: 0 1 4 5 8 9; [3, 2]: 2 3 6 7 10 11",
            "[3, 1]: 0 4 8; [3, 3]: 1 2 3 5 6 7 9 10 11",
        ],
    );
    row(
        "`x.chunk(2, 1)` `x.unbind(0)` `x.chunk(2, 1)?` `x.unbind(0)?`",
        &[found(&(x.chunk(2, 1)?)), found(&(x.unbind(0)?))],
        &[
            "[3, 2]: 0 1 4 5 8 9; [3, 2]: 2 3 6 7 10 11",
            "[4]: 0 1 2 3; [4]: 4 5 6 7; [4]: 8 9 10 11",
        ],
    );
    row(
        "`np.tile(x, (2, 1))` `x.repeat(2, 1)` `x.repeat((2, 1))?` `x.tile((2, 1))?`",
        &[found(&(x.repeat((2, 1))?)), found(&(x.tile((2, 1))?))],
        &[
            "[6, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3 4 5 6 7 8 9 10 11",
            "[3, 8]: 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9 10 10 11 11 | [6, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 0 1 2 3 4 5 6 7 8 9 10 11",
        ],
    );
    row(
        "`np.roll(x, 1, 0)` `x.roll(1, 0)` `x.roll(1, 0)?`",
        &[found(&(x.roll(1, 0)?))],
        &["[3, 4]: 8 9 10 11 0 1 2 3 4 5 6 7", "[3, 4]: 8 9 10 11 0 1 2 3 4 5 6 7"],
    );
    row(
        "`np.moveaxis(x, 0, -1)` `x.movedim(0, -1)` `x.movedim(0, -1)?`",
        &[found(&(x.movedim(0, -1)?))],
        &["[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11", "[4, 3]: 0 4 8 1 5 9 2 6 10 3 7 11"],
    );
    row(
        "`np.tril(x)` `x.triu(1)` `x.tril(0)?` `x.triu(1)?`",
        &[found(&(x.tril(0)?)), found(&(x.triu(1)?))],
        &["[3, 4]: 0 0 0 0 4 5 0 0 8 9 10 0", "[3, 4]: 0 1 2 3 0 0 6 7 0 0 0 11"],
    );
    row(
        "`np.diag(v)` `torch.diag(v, 1)` `v.diag(0)?` `v.diag(1)?`",
        &[found(&(v.diag(0)?)), found(&(v.diag(1)?))],
        &[
            "[4, 4]: 0 0 0 0 0 1 0 0 0 0 2 0 0 0 0 3",
            "[5, 5]: 0 0 0 0 0 0 0 1 0 0 0 0 0 2 0 0 0 0 0 3 0 0 0 0 0",
        ],
    );
    row(
        "`torch.diag_embed(x, 1)` `x.diag_embed(1, -2, -1)?`",
        &[found(&(x.diag_embed(1, -2, -1)?))],
        &[
            "[3, 5, 5]: 0 0 0 0 0 0 0 1 0 0 0 0 0 2 0 0 0 0 0 3 0 0 0 0 0 0 4 0 0 0 0 0 5 0 0 0 0 0 6 0 0 0 0 0 7 0 0 0 0 0 0 8 0 0 0 0 0 9 0 0 0 0 0 10 0 0 0 0 0 11 0 0 0 0 0",
        ],
    );
    row(
        "`scipy.linalg.block_diag(x, x)` `torch.block_diag(x, x)` `Tensor::block_diag(&[&x, &x])?`",
        &[found(&(Tensor::block_diag(&[&x, &x])?))],
        &[
            "[6, 8]: 0 1 2 3 0 0 0 0 4 5 6 7 0 0 0 0 8 9 10 11 0 0 0 0 0 0 0 0 0 1 2 3 0 0 0 0 4 5 6 7 0 0 0 0 8 9 10 11",
            "[6, 8]: 0 1 2 3 0 0 0 0 4 5 6 7 0 0 0 0 8 9 10 11 0 0 0 0 0 0 0 0 0 1 2 3 0 0 0 0 4 5 6 7 0 0 0 0 8 9 10 11",
        ],
    );
    row(
        "`torch.cartesian_prod(v, v)` `Tensor::cartesian_prod(&[&v, &v])?`",
        &[found(&(Tensor::cartesian_prod(&[&v, &v])?))],
        &["[16, 2]: 0 0 0 1 0 2 0 3 1 0 1 1 1 2 1 3 2 0 2 1 2 2 2 3 3 0 3 1 3 2 3 3"],
    );
    row(
        "`np.meshgrid(v, v, indexing=\"ij\")` `torch.meshgrid(v, v, indexing=\"ij\")` `Tensor::meshgrid(&[&v, &v])?`",
        &[found(&(Tensor::meshgrid(&[&v, &v])?))],
        &[
            "[4, 4]: 0 0 0 0 1 1 1 1 2 2 2 2 3 3 3 3; [4, 4]: 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 3",
            "[4, 4]: 0 0 0 0 1 1 1 1 2 2 2 2 3 3 3 3; [4, 4]: 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 3",
        ],
    );
    row(
        "`np.pad(x, ((0, 0), (1, 1)))` `x.pad(&[(0, 0), (1, 1)], PadMode::Constant(0.0))?`",
        &[found(&(x.pad(&[(0, 0), (1, 1)], PadMode::Constant(0.0))?))],
        &["[3, 6]: 0 0 1 2 3 0 0 4 5 6 7 0 0 8 9 10 11 0"],
    );
    row(
        "`np.ascontiguousarray(x)` `x.contiguous()` `x.contiguous()?`",
        &[found(&(x.contiguous()?))],
        &["[3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11", "[3, 4]: 0 1 2 3 4 5 6 7 8 9 10 11"],
    );
    Ok(())
}
