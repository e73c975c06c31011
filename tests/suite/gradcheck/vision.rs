//! Cases of resizing, sampling at positions, boxes and shuffles.

use super::cases::{ALL, DENSE, Suite, T};
use super::movement::movement;
use swath::prelude::*;
use swath::{AspectRatio, Coordinates, GridMode, GridPadding, NearestMode, Resize, ResizeMode};

pub fn vision(op: &str, s: &mut Suite) {
    match op {
        "resize" => {
            let cubic = Resize::new(ResizeMode::Cubic { a: -0.5 });
            let shrunk = cubic.axes(&[-1, 0]).scale(&[0.6, 1.5]).antialias(true);
            s.one("antialias", move |x| x.resize(&shrunk));
            let linear = Resize::new(ResizeMode::Linear).aspect_ratio(AspectRatio::NotSmaller);
            let fitted = linear.clone().size(&[5, 3]).exclude_outside(true);
            s.one("aspect ratio", move |x| x.resize(&fitted));
            let roi = vec![[0.25, 1.25], [0.1, 0.6]];
            let coordinates = Coordinates::TfCropAndResize { roi, outside: 1.5 };
            let cropped = linear.aspect_ratio(AspectRatio::Stretch).coordinates(coordinates);
            s.one("cropped", move |x| x.resize(&cropped.clone().size(&[4, 3])));
            let nearest = Resize::new(ResizeMode::Nearest(NearestMode::Ceil)).size(&[2, 6, 3]);
            s.one("nearest", move |x| x.resize(&nearest));
        }
        "grid_sample" => {
            let modes = [GridMode::Bilinear, GridMode::Bicubic];
            let paddings = [GridPadding::Zeros, GridPadding::Border, GridPadding::Reflection];
            for (i, mode) in modes.into_iter().enumerate() {
                for padding in paddings {
                    let f = move |xs: &[T]| xs[0].grid_sample(&xs[1], mode, padding, i == 0);
                    let shapes: &[&[usize]] = &[&[2, 2, 2, 3], &[2, 1, 2, 2]];
                    s.add(&format!("{mode:?}, {padding:?}"), shapes, &DENSE, f);
                }
            }
            let f = |xs: &[T]| {
                xs[0].grid_sample(&xs[1], GridMode::Bilinear, GridPadding::Reflection, false)
            };
            s.add("volumes", &[&[1, 1, 2, 3, 2], &[1, 1, 2, 1, 3]], &DENSE, f);
            let grid = tensor![f64; [[[0.3, -0.4], [1.3, 0.1]]]];
            let f = move |xs: &[T]| {
                let grid = grid.to_dtype(xs[0].dtype())?;
                xs[0].grid_sample(&grid, GridMode::Nearest, GridPadding::Border, true)
            };
            s.add("nearest", &[&[1, 2, 3, 2]], &ALL, f);
        }
        "affine_grid" => {
            s.add("images", &[&[2, 2, 3]], &ALL, |xs| xs[0].affine_grid((2, 1, 2, 3), true));
            s.add("volumes", &[&[2, 3, 4]], &ALL, |xs| xs[0].affine_grid((2, 1, 2, 1, 2), false));
        }
        "max_unpool" => {
            let at = tensor![i64; [[3, 0], [1, 5]]];
            s.add("line", &[&[1, 2, 2]], &ALL, move |xs| xs[0].max_unpool1d(&at, 6));
            let at = tensor![i64; [[[[0, 3]], [[7, 5]]]]].reshape((1, 2, 1, 2)).unwrap();
            s.add("image", &[&[1, 2, 1, 2]], &ALL, move |xs| xs[0].max_unpool2d(&at, [2, 4]));
        }
        "pixel_shuffle" => {
            s.add("larger", &[&[2, 4, 1, 3]], &ALL, |xs| xs[0].pixel_shuffle(2));
            s.add("smaller", &[&[1, 2, 4]], &ALL, |xs| xs[0].pixel_unshuffle(2));
        }
        "channel_shuffle" => s.add("images", &[&[2, 6, 2]], &ALL, |xs| xs[0].channel_shuffle(3)),
        "local_response_norm" => {
            s.one("odd", |x| x.local_response_norm(3, 0.5, 0.75, 1.0));
            s.one("even", |x| x.local_response_norm(2, 2.0, 1.5, 0.5));
        }
        "roi_align" => {
            let rois = tensor![f64; [0.0, -1.0, 0.5, 3.0, 4.0], [1.0, 0.3, 0.4, 2.0, 1.5]];
            for (ratio, aligned) in [(0, true), (2, false)] {
                let rois = rois.clone();
                let f = move |xs: &[T]| {
                    let rois = rois.to_dtype(xs[0].dtype())?;
                    xs[0].roi_align(&rois, [2, 1], 0.75, ratio, aligned)
                };
                s.add(&format!("{ratio} samples"), &[&[2, 2, 3, 4]], &ALL, f);
            }
            let f = move |xs: &[T]| {
                let rois = rois.to_dtype(xs[0].dtype())?;
                xs[0].roi_align_max(&rois, [1, 2], 1.0, 1, true)
            };
            s.add("maximum", &[&[2, 2, 3, 4]], &DENSE, f);
        }
        _ => movement(op, s),
    }
}
