//! Images. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    use swath::{GridMode, GridPadding, PoolOptions, Resize, ResizeMode};
    let x = Tensor::arange(0.0, 32.0, 1.0)?.reshape((1, 4, 2, 4))?;
    let y = x.interpolate([4, 6], Interpolation::Bilinear { align_corners: false })?;
    let theta = tensor![[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]];
    let grid = theta.affine_grid(x.shape(), false)?;
    let same = x.grid_sample(&grid, GridMode::Bilinear, GridPadding::Zeros, false)?;
    let (y, at) = x.max_pool2d_with_positions(PoolOptions::new(2))?;
    let rois = tensor![[0.0, 0.0, 0.0, 3.0, 1.0]];
    let (boxes, scores) = (tensor![[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9]], tensor![0.25, 0.5]);
    row(
        "`F.interpolate(x, (4, 6), mode=\"bilinear\")` `x.interpolate([4, 6], Interpolation::Bilinear { align_corners: false })?` `linear` `trilinear` `Bilinear`",
        &[found(&(x.interpolate([4, 6], Interpolation::Bilinear { align_corners: false })?))],
        &[
            "[1, 4, 4, 6]: 0 0.5 1.1666667461395264 1.8333333730697632 2.5 3 1 1.5 2.1666667461395264 2.8333332538604736 3.5 4 3 3.5 4.1666669845581055 4.8333330154418945 5.5 6 4 4.5 5.166666507720947 5.833333492279053 6.5 7 8 8.5 9.166666984558105 9.833333969116211 10.5 11 9 9.5 10.166666984558105 10.833333015441895 11.5 12 11 11.5 12.166666984558105 12.833333015441895 13.5 14 12 12.5 13.166666984558105 13.833333969116211 14.5 15 16 16.5 17.16666603088379 17.83333396911621 18.5 19 17 17.5 18.166667938232422 18.833332061767578 19.5 20 19 19.5 20.166667938232422 20.833332061767578 21.5 22 20 20.5 21.166667938232422 21.83333396911621 22.5 23 24 24.5 25.16666603088379 25.83333396911621 26.5 27 25 25.5 26.16666603088379 26.83333396911621 27.5 28 27 27.5 28.16666603088379 28.833332061767578 29.5 30 28 28.5 29.16666603088379 29.83333396911621 30.5 31",
        ],
    );
    row(
        "`F.interpolate(x, scale_factor=(2, 1.5))` `x.interpolate([2.0, 1.5], Interpolation::Nearest)?` `NearestExact` `Bicubic` `Area`",
        &[found(&(x.interpolate([2.0, 1.5], Interpolation::Nearest)?))],
        &[
            "[1, 4, 4, 6]: 0 0 1 2 2 3 0 0 1 2 2 3 4 4 5 6 6 7 4 4 5 6 6 7 8 8 9 10 10 11 8 8 9 10 10 11 12 12 13 14 14 15 12 12 13 14 14 15 16 16 17 18 18 19 16 16 17 18 18 19 20 20 21 22 22 23 20 20 21 22 22 23 24 24 25 26 26 27 24 24 25 26 26 27 28 28 29 30 30 31 28 28 29 30 30 31",
        ],
    );
    row(
        "`F.interpolate(x, (1, 2), mode=\"bilinear\", antialias=True)` `x.interpolate([1, 2], Interpolation::BilinearAntialias)?`",
        &[found(&(x.interpolate([1, 2], Interpolation::BilinearAntialias)?))],
        &[
            "[1, 4, 1, 2]: 2.7142858505249023 4.285714626312256 10.714285850524902 12.285714149475098 18.71428680419922 20.285715103149414 26.71428680419922 28.285715103149414",
        ],
    );
    row(
        "`F.grid_sample(x, grid, \"bilinear\", \"zeros\", False)` `x.grid_sample(&grid, GridMode::Bilinear, GridPadding::Zeros, false)?`",
        &[found(&(x.grid_sample(&grid, GridMode::Bilinear, GridPadding::Zeros, false)?))],
        &[
            "[1, 4, 2, 4]: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31",
        ],
    );
    row(
        "`F.affine_grid(theta, x.shape, False)` `theta.affine_grid(x.shape(), false)?`",
        &[found(&(theta.affine_grid(x.shape(), false)?))],
        &[
            "[1, 2, 4, 2]: -0.75 -0.5 -0.2499999850988388 -0.5 0.2499999850988388 -0.5 0.75 -0.5 -0.75 0.5 -0.2499999850988388 0.5 0.2499999850988388 0.5 0.75 0.5",
        ],
    );
    row(
        "`F.max_unpool2d(y, at, 2)` `y.max_unpool2d(&at, [2, 4])?`",
        &[found(&(y.max_unpool2d(&at, [2, 4])?))],
        &["[1, 4, 2, 4]: 0 0 0 0 0 5 0 7 0 0 0 0 0 13 0 15 0 0 0 0 0 21 0 23 0 0 0 0 0 29 0 31"],
    );
    row(
        "`F.pixel_shuffle(x, 2)` `F.pixel_unshuffle(x, 2)` `x.pixel_shuffle(2)?` `x.pixel_unshuffle(2)?`",
        &[found(&(x.pixel_shuffle(2)?)), found(&(x.pixel_unshuffle(2)?))],
        &[
            "[1, 1, 4, 8]: 0 8 1 9 2 10 3 11 16 24 17 25 18 26 19 27 4 12 5 13 6 14 7 15 20 28 21 29 22 30 23 31",
            "[1, 16, 1, 2]: 0 2 1 3 4 6 5 7 8 10 9 11 12 14 13 15 16 18 17 19 20 22 21 23 24 26 25 27 28 30 29 31",
        ],
    );
    row(
        "`F.channel_shuffle(x, 2)` `x.channel_shuffle(2)?`",
        &[found(&(x.channel_shuffle(2)?))],
        &[
            "[1, 4, 2, 4]: 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31",
        ],
    );
    row(
        "`F.local_response_norm(x, 3, 1e-4, 0.75, 1.0)` `x.local_response_norm(3, 1e-4, 0.75, 1.0)?`",
        &[found(&(x.local_response_norm(3, 1e-4, 0.75, 1.0)?))],
        &[
            "[1, 4, 2, 4]: 0 0.9979548454284668 1.994815707206726 2.9902865886688232 3.984074354171753 4.975886344909668 5.9654340744018555 6.95242977142334 7.936592102050781 8.917417526245117 9.894318580627441 10.866880416870117 11.834698677062988 12.797374725341797 13.754522323608398 14.705759048461914 15.650716781616211 16.589035034179688 17.52036476135254 18.444368362426758 19.360715866088867 20.26909637451172 21.169204711914062 22.060747146606445 23.51261329650879 24.443565368652344 25.368396759033203 26.28688621520996 27.198823928833008 28.103994369506836 29.0022029876709 29.89324951171875",
        ],
    );
    Ok(())
}
