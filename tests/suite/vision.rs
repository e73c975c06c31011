//! Resizing, sampling at positions, boxes and shuffles: against PyTorch, torchvision and ONNX's reference on both
//! backends, and what their pages promise.

mod behaviour;

use std::collections::HashMap;

use swath::prelude::*;
use swath::{AspectRatio, Coordinates, GridMode, GridPadding, NearestMode, Resize, ResizeMode};

use crate::support::vectors::Vectors;

type T = Tensor<CpuBackend>;

/// The options in the name of a case of tests/vectors/make_vision.py.
struct Options<'a>(HashMap<&'a str, &'a str>);

impl Options<'_> {
    fn word(&self, key: &str) -> &str {
        self.0.get(key).copied().unwrap_or("")
    }

    fn list<N: std::str::FromStr>(&self, key: &str) -> Vec<N> {
        let words = self.word(key).split('x').filter(|word| !word.is_empty());
        words.map(|word| word.parse().ok().unwrap_or_else(|| panic!("{key}: {word}"))).collect()
    }

    fn number(&self, key: &str) -> f64 {
        self.list(key)[0]
    }

    fn count(&self, key: &str) -> usize {
        self.list(key)[0]
    }

    fn flag(&self, key: &str) -> bool {
        matches!(self.word(key), "True" | "1")
    }
}

fn interpolated<B: Backend>(x: &Tensor<B>, options: &Options) -> Result<Tensor<B>> {
    let align_corners = options.flag("corners");
    let mode = match options.word("mode") {
        "nearest" => Interpolation::Nearest,
        "nearest-exact" => Interpolation::NearestExact,
        "linear" => Interpolation::Bilinear { align_corners },
        "cubic" => Interpolation::Bicubic { align_corners },
        "linear-aa" => Interpolation::BilinearAntialias,
        "cubic-aa" => Interpolation::BicubicAntialias,
        _ => Interpolation::Area,
    };
    match options.list::<f64>("factor") {
        factors if factors.is_empty() => x.interpolate(options.list::<usize>("size"), mode),
        factors => x.interpolate(factors, mode),
    }
}

fn resized<B: Backend>(x: &Tensor<B>, options: &Options) -> Result<Tensor<B>> {
    let nearest = match options.word("nearest") {
        "round_prefer_floor" => NearestMode::PreferFloor,
        "round_prefer_ceil" => NearestMode::PreferCeil,
        "floor" => NearestMode::Floor,
        _ => NearestMode::Ceil,
    };
    let ends: Vec<f64> = options.list("roi");
    let (starts, ends) = ends.split_at(ends.len() / 2);
    let coordinates = match options.word("coordinates") {
        "half_pixel" => Coordinates::HalfPixel,
        "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        _ => Coordinates::TfCropAndResize {
            roi: starts.iter().zip(ends).map(|(&start, &end)| [start, end]).collect(),
            outside: 1.5,
        },
    };
    let mode = match options.word("mode") {
        "nearest" => ResizeMode::Nearest(nearest),
        "linear" => ResizeMode::Linear,
        _ => ResizeMode::Cubic { a: options.number("a") },
    };
    let policy = match options.word("policy") {
        "stretch" => AspectRatio::Stretch,
        "not_larger" => AspectRatio::NotLarger,
        _ => AspectRatio::NotSmaller,
    };
    let resize = Resize::new(mode)
        .axes(&options.list("axes"))
        .size(&options.list("size"))
        .scale(&options.list("scale"))
        .coordinates(coordinates)
        .antialias(options.flag("antialias"))
        .exclude_outside(options.flag("outside"))
        .aspect_ratio(policy);
    x.resize(&resize)
}

fn sampled<B: Backend>(xs: &[Tensor<B>], options: &Options) -> Result<Tensor<B>> {
    let mode = match options.word("mode") {
        "nearest" => GridMode::Nearest,
        "bilinear" => GridMode::Bilinear,
        _ => GridMode::Bicubic,
    };
    let padding = match options.word("padding") {
        "zeros" => GridPadding::Zeros,
        "border" => GridPadding::Border,
        _ => GridPadding::Reflection,
    };
    xs[0].grid_sample(&xs[1], mode, padding, options.flag("corners"))
}

fn computed<B: Backend>(op: &str, xs: &[Tensor<B>], options: &Options) -> Result<Tensor<B>> {
    let x = &xs[0];
    let size = || options.list::<usize>("size");
    let by = || options.count("by");
    match op {
        "interpolate" => interpolated(x, options),
        "resize" => resized(x, options),
        "grid_sample" => sampled(xs, options),
        "affine_grid" => x.affine_grid(size(), options.flag("corners")),
        "max_unpool" => match *size() {
            [l] => x.max_unpool1d(&xs[1], l),
            [h, w] => x.max_unpool2d(&xs[1], [h, w]),
            [d, h, w] => x.max_unpool3d(&xs[1], [d, h, w]),
            _ => panic!("{:?}", size()),
        },
        "pixel_shuffle" => x.pixel_shuffle(by()),
        "pixel_unshuffle" => x.pixel_unshuffle(by()),
        "channel_shuffle" => x.channel_shuffle(by()),
        "lrn" => {
            let [alpha, beta, k] = ["alpha", "beta", "k"].map(|key| options.number(key));
            x.local_response_norm(options.count("size"), alpha, beta, k)
        }
        "roi_align" | "roi_align_max" => {
            let size: [usize; 2] = size().try_into().unwrap();
            let (scale, ratio) = (options.number("scale"), options.count("ratio"));
            match op {
                "roi_align" => x.roi_align(&xs[1], size, scale, ratio, options.flag("aligned")),
                _ => x.roi_align_max(&xs[1], size, scale, ratio, options.flag("aligned")),
            }
        }
        "nms" => x.nms(&xs[1], options.number("threshold")),
        _ => {
            let (most, iou, least) =
                (options.count("most"), options.number("threshold"), options.number("least"));
            x.non_max_suppression(&xs[1], most, iou, least, options.flag("center"))
        }
    }
}

fn wide<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Fails unless the tensors agree within `tolerance`, relative to the largest magnitude or 1.
fn close<B: Backend>(what: &str, x: &Tensor<B>, expected: &T, tolerance: f64) {
    assert_eq!(x.shape(), expected.shape(), "{what}");
    let (x, expected) = (wide(x), wide(expected));
    let scale = expected.iter().fold(1.0f64, |scale, x| scale.max(x.abs()));
    for (i, (x, y)) in x.iter().zip(&expected).enumerate() {
        assert!((x - y).abs() <= tolerance * scale, "{what}, element {i}: {x} instead of {y}");
    }
}

fn check<B: Backend>(vectors: &Vectors, names: &[&str], case: &str, dtype: DType) {
    let (tolerance, gradient_tolerance) = match dtype {
        DType::F64 => (1e-12, 1e-11),
        DType::F32 => (2e-6, 1e-5),
        DType::F16 => (2f64.powi(-11), 4e-3),
        _ => (2f64.powi(-8), 4e-2),
    };
    let get = |part: &str| {
        let x = vectors.get(&format!("{case}/{part}"));
        let x = Tensor::<B>::from_vec(wide(x), *x.shape()).unwrap().to_dtype(x.dtype()).unwrap();
        if x.dtype().is_float() { x.to_dtype(dtype).unwrap() } else { x }
    };
    let has = |part: &str| names.contains(&&*format!("{case}/{part}"));
    let inputs = (0..2).map(|i| i.to_string()).filter(|part| has(part));
    let xs: Vec<Tensor<B>> = inputs.map(|part| get(&part).requires_grad()).collect();
    let mut words = case.split(',');
    let op = words.next().unwrap();
    let options = Options(words.filter_map(|word| word.split_once('=')).collect());
    let what = |part: &str| format!("{case}, {}, {dtype}, {part}", B::NAME);
    let y = computed(op, &xs, &options).unwrap_or_else(|error| panic!("{}: {error}", what("y")));
    close(&what("y"), &y, vectors.get(&format!("{case}/y")), tolerance);
    if !has("g") {
        return;
    }
    assert_eq!(y.dtype(), dtype, "{case}");
    let grads = y.backward_with(&get("g")).unwrap();
    for (i, x) in xs.iter().enumerate().filter(|(i, _)| has(&format!("d{i}"))) {
        let expected = vectors.get(&format!("{case}/d{i}"));
        match grads.get(x) {
            Some(gradient) => {
                close(&what(&format!("d{i}")), gradient, expected, gradient_tolerance)
            }
            // Of the grid of `GridMode::Nearest`, for which PyTorch returns zeros.
            None => assert!(wide(expected).iter().all(|&x| x == 0.0), "{}", what("no gradient")),
        }
    }
}

/// [`check`]s all cases of some operations on both backends in every float type: those of vision.txt, or of the file that
/// `SWATH_VISION` names, to which make_vision.py has written more.
fn check_all(ops: &[&str]) {
    let given = std::env::var("SWATH_VISION").map(|path| std::fs::read_to_string(path).unwrap());
    let own = include_str!("../vectors/vision.txt");
    let vectors = Vectors::read(given.as_deref().unwrap_or(own));
    let mut names: Vec<&str> = vectors.names().collect();
    names.sort_unstable();
    let cases = names.iter().filter_map(|name| name.strip_suffix("/y"));
    let cases = cases.filter(|case| ops.contains(&case.split(',').next().unwrap()));
    let mut count = 0;
    for case in cases {
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            check::<CpuBackend>(&vectors, &names, case, dtype);
            check::<ReferenceBackend>(&vectors, &names, case, dtype);
        }
        count += 1;
    }
    assert!(count >= 3, "{count} cases of {ops:?}");
}

#[test]
fn pytorch_interpolate() {
    check_all(&["interpolate"]);
}

#[test]
fn onnx_resize() {
    check_all(&["resize"]);
}

#[test]
fn pytorch_grids() {
    check_all(&["grid_sample", "affine_grid"]);
}

#[test]
fn pytorch_channels_and_unpooling() {
    check_all(&["max_unpool", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "lrn"]);
}

#[test]
fn torchvision_boxes() {
    check_all(&["roi_align", "roi_align_max", "nms", "non_max_suppression"]);
}
