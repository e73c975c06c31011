//! Convolutions against the composites on the reference backend in `f64`.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::among;
use crate::testing::suite::inputs::FLOATS;
use swath::ops::Activation;
use swath::prelude::*;
use swath::{ConvOptions, ConvTransposeOptions, Padding, PoolOptions};

/// A tensor of the reference backend.
pub type R = Tensor<ReferenceBackend>;

pub fn wide<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    let x: R = x.detach().to_backend().unwrap();
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

pub fn close<A: Backend, B: Backend>(
    what: &str,
    x: &Tensor<A>,
    expected: &Tensor<B>,
    tolerance: f64,
) {
    assert_eq!(x.shape(), expected.shape(), "{what}");
    let (x, expected) = (wide(x), wide(expected));
    let scale = expected.iter().fold(1.0f64, |scale, x| scale.max(x.abs()));
    for (i, (x, y)) in x.iter().zip(&expected).enumerate() {
        assert!((x - y).abs() <= tolerance * scale, "{what}, element {i}: {x} instead of {y}");
    }
}

/// Copies `x` to the reference backend in `f64`, exactly.
pub fn reference<B: Backend>(x: &Tensor<B>) -> R {
    R::from_vec(wide(x), *x.shape()).unwrap()
}

/// Draws from a small set.
pub struct Draw(pub Rng);

impl Draw {
    pub fn below(&mut self, n: usize) -> usize {
        self.0.permutation(n).unwrap()[0] as usize
    }

    pub fn of<V: Copy>(&mut self, values: &[V]) -> V {
        values[self.below(values.len())]
    }

    /// A random tensor in one of several layouts.
    pub fn tensor<B: Backend>(
        &mut self,
        shape: impl Into<Shape>,
        dtype: DType,
    ) -> Result<Tensor<B>> {
        let x = Tensor::<B>::randn(shape, &mut self.0)?.to_dtype(dtype)?;
        Ok(match (self.below(4), x.rank()) {
            (0, 4) => x.permute(&[0, 2, 3, 1])?.contiguous()?.permute(&[0, 3, 1, 2])?,
            (1, 4) => x.flip(3)?.contiguous()?.flip(3)?,
            (2, 4) => Tensor::cat(&[&x, &x], 1)?.narrow(1, 0, x.dims()[1])?,
            _ => x,
        })
    }
}

pub const DTYPES: [(DType, f64); 4] =
    [(DType::F64, 1e-13), (DType::F32, 1e-5), (DType::F16, 4e-3), (DType::BF16, 4e-2)];

/// Compares values and gradients with the reference backend's, for a random upstream gradient.
pub fn compare<B: Tested, const N: usize>(
    what: &str,
    tolerance: f64,
    draw: &mut Draw,
    inputs: [&Tensor<B>; N],
    tested: impl Fn([&Tensor<B>; N]) -> Result<Tensor<B>>,
    plain: impl Fn([&R; N]) -> Result<R>,
) -> Result<bool> {
    let tolerance = B::SLACK * tolerance;
    let leaves = inputs.map(|x| x.requires_grad());
    let wide = inputs.map(|x| reference(x).requires_grad());
    let (y, expected) = match (tested(leaves.each_ref()), plain(wide.each_ref())) {
        (Err(a), Err(b)) => {
            assert_eq!(a.to_string(), b.to_string());
            return Ok(false);
        }
        (y, expected) => (y?, expected?),
    };
    close(what, &y, &expected, tolerance);
    let g: Tensor<B> = draw.tensor(*y.shape(), y.dtype())?;
    let grads = y.backward_with(&g)?;
    let wide_grads = expected.backward_with(&reference(&g))?;
    for (i, (x, wide)) in leaves.iter().zip(&wide).enumerate() {
        let what = format!("{what}, gradient of input {i}");
        close(&what, grads.wrt(x)?, wide_grads.wrt(wide)?, tolerance);
    }
    Ok(true)
}

pub fn convolutions_agree<B: Tested>() {
    let mut draw = Draw(Rng::seed(11));
    let mut compared = 0;
    for i in 0..160 {
        let (dtype, tolerance) = DTYPES[i % 4];
        if !B::DTYPES.contains(&dtype) {
            continue;
        }
        let groups = draw.of(&[1, 1, 2, 3]);
        let (n, c, o) =
            (draw.of(&[1, 2, 5]), groups * draw.of(&[1, 2, 4]), groups * draw.of(&[1, 2, 7, 9]));
        let (h, w) = (1 + draw.below(12), 1 + draw.below(40));
        let kernel = [1 + draw.below(3), 1 + draw.below(5)];
        let zeros = [draw.below(3), draw.below(4)];
        let options = ConvOptions {
            stride: [1 + draw.below(3), 1 + draw.below(3)],
            padding: draw.of(&[Padding::Valid, Padding::Same, Padding::Zeros(zeros)]),
            dilation: [1 + draw.below(2), 1 + draw.below(3)],
            groups,
        };
        let x: Tensor<B> = draw.tensor((n, c, h, w), dtype).unwrap();
        let weight = draw.tensor((o, c / groups, kernel[0], kernel[1]), dtype).unwrap();
        let bias = draw.tensor(o, dtype).unwrap();
        let activation = draw.of(&[None, Some(Activation::Relu), Some(Activation::Gelu)]);
        let what =
            format!("{i}: {dtype} {} {} {options:?} {activation:?}", x.shape(), weight.shape());
        fn run<B: Backend>(
            [x, w, b]: [&Tensor<B>; 3],
            options: ConvOptions<2>,
            activation: Option<Activation>,
        ) -> Result<Tensor<B>> {
            match activation {
                Some(activation) => x.conv2d_activation(w, Some(b), options, activation),
                None => x.conv2d(w, Some(b), options),
            }
        }
        let inputs = [&x, &weight, &bias];
        let tested = |xs: [&Tensor<B>; 3]| run(xs, options, activation);
        let plain = |xs: [&R; 3]| run(xs, options, activation);
        let found = compare(&what, tolerance, &mut draw, inputs, tested, plain);
        compared += usize::from(found.unwrap());
    }
    assert!(compared > 25 * among::<B>(&FLOATS).count(), "{compared}");
    // Enough channels and pixels for the large tiles of products.
    let [x, weight] =
        [[1, 36, 7, 8], [40, 36, 3, 3]].map(|shape| draw.tensor::<B>(shape, DType::F32).unwrap());
    let same = ConvOptions { padding: Padding::Same, ..Default::default() };
    let tested = |[x, w]: [&Tensor<B>; 2]| x.conv2d(w, None, same);
    let plain = |[x, w]: [&R; 2]| x.conv2d(w, None, same);
    compare("many channels", 1e-5, &mut draw, [&x, &weight], tested, plain).unwrap();
}

pub fn transposed_convolutions_agree<B: Tested>() {
    let mut draw = Draw(Rng::seed(12));
    let mut compared = 0;
    for i in 0..120 {
        let (dtype, tolerance) = DTYPES[i % 4];
        if !B::DTYPES.contains(&dtype) {
            continue;
        }
        let groups = draw.of(&[1, 1, 2, 3]);
        let (n, c, o) = (draw.of(&[1, 2, 5]), groups * draw.of(&[1, 2, 4]), draw.of(&[1, 2, 7]));
        let stride = [1 + draw.below(3), 1 + draw.below(3)];
        let dilation = [1 + draw.below(3), 1 + draw.below(3)];
        let more = [0, 1].map(|axis| draw.below(stride[axis].max(dilation[axis])));
        let padding = [draw.below(3), draw.below(3)];
        let options =
            ConvTransposeOptions { stride, padding, output_padding: more, dilation, groups };
        let [h, w, kh, kw] = [6, 20, 4, 4].map(|most| 1 + draw.below(most));
        let x: Tensor<B> = draw.tensor((n, c, h, w), dtype).unwrap();
        let weight = draw.tensor((c, o, kh, kw), dtype).unwrap();
        let what = format!("{i}: {dtype} {} {} {options:?}", x.shape(), weight.shape());
        let tested = |[x, w]: [&Tensor<B>; 2]| x.conv_transpose2d(w, None, options);
        let plain = |[x, w]: [&R; 2]| x.conv_transpose2d(w, None, options);
        let found = compare(&what, tolerance, &mut draw, [&x, &weight], tested, plain);
        compared += usize::from(found.unwrap());
    }
    assert!(compared > 20 * among::<B>(&FLOATS).count(), "{compared}");
}

/// Convolutions and poolings of three axes, with more zeros on one side than on the other.
pub fn volumes_agree<B: Tested>() {
    let mut draw = Draw(Rng::seed(13));
    for i in 0..24 {
        let (dtype, tolerance) = DTYPES[i % 4];
        if !B::DTYPES.contains(&dtype) {
            continue;
        }
        let kernel = [1 + draw.below(2), 1 + draw.below(3), 1 + draw.below(3)];
        let [before, after] = [0, 1].map(|_| kernel.map(|extent| draw.below(extent / 2 + 1)));
        let sides = [0, 1, 2].map(|axis| [before[axis], after[axis]]);
        let stride = [1 + draw.below(2), 1 + draw.below(2), 1 + draw.below(3)];
        let width = 4 + draw.below(9);
        let x: Tensor<B> = draw.tensor((2, 2, 3, 5, width), dtype).unwrap();
        let weight = draw.tensor((2, 2, kernel[0], kernel[1], kernel[2]), dtype).unwrap();
        let padding = Padding::Uneven(sides);
        let options = ConvOptions { stride, padding, dilation: [1, 1, 2], groups: 1 };
        let what = format!("{i}: {dtype} {kernel:?} {options:?}");
        let tested = |[x, w]: [&Tensor<B>; 2]| x.conv3d(w, None, options);
        let plain = |[x, w]: [&R; 2]| x.conv3d(w, None, options);
        compare(&what, tolerance, &mut draw, [&x, &weight], tested, plain).unwrap();
        let options = ConvTransposeOptions { stride, ..Default::default() };
        let tested = |[x, w]: [&Tensor<B>; 2]| x.conv_transpose3d(w, None, options);
        let plain = |[x, w]: [&R; 2]| x.conv_transpose3d(w, None, options);
        compare(&what, tolerance, &mut draw, [&x, &weight], tested, plain).unwrap();
        let count_include_pad = i % 3 == 0;
        let pool =
            PoolOptions { stride: Some(stride), count_include_pad, ..PoolOptions::new(kernel) };
        let pool = PoolOptions { padding: before, ..pool }.padding_after(after);
        let what = format!("{i}: {dtype} {pool:?}");
        let (tested, plain) =
            (|[x]: [&Tensor<B>; 1]| x.max_pool3d(pool), |[x]: [&R; 1]| x.max_pool3d(pool));
        compare(&what, tolerance, &mut draw, [&x], tested, plain).unwrap();
        let (tested, plain) =
            (|[x]: [&Tensor<B>; 1]| x.avg_pool3d(pool), |[x]: [&R; 1]| x.avg_pool3d(pool));
        compare(&what, tolerance, &mut draw, [&x], tested, plain).unwrap();
    }
}
