//! One convolution, transposed or not.
//!
//! Both have the same triples of a *large* image's pixel, a *small* image's pixel and a tap of a filter. A convolution
//! reads the large image and writes the small one, a transposed convolution the reverse.

use swath::prelude::*;
use swath::{ConvOptions, ConvTransposeOptions, Padding};

use super::{DTYPES, Draw, T, compare, flat, indices, last, rounded};

#[derive(Clone, Copy, Debug)]
enum Zeros {
    None,
    Same,
    Both([usize; 3]),
    /// Before and after.
    Uneven([[usize; 3]; 2]),
}

#[derive(Debug)]
struct Case {
    #[allow(dead_code, reason = "printed to repeat a case")]
    seed: u64,
    is_transposed: bool,
    axes: usize,
    dtype: DType,
    images: usize,
    groups: usize,
    /// Channels of the large and of the small images in a group.
    channels: [usize; 2],
    /// Extents of the operand's images, and of filters.
    image: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    dilation: [usize; 3],
    zeros: Zeros,
    output_padding: [usize; 3],
    has_bias: bool,
}

impl Case {
    fn draw(seed: u64) -> (Self, Draw) {
        let mut draw = Draw(Rng::seed(seed));
        let is_transposed = draw.once_in(3);
        let axes = draw.choose(&[1, 2, 2, 3]);
        let extents: &[usize] = match axes {
            1 if draw.once_in(4) => &[40, 64, 65, 130, 300],
            2 if draw.once_in(20) => &[1, 16, 17, 33],
            3 => &[1, 2, 3, 1, 2, 4, 5],
            _ => &[1, 2, 3, 1, 4, 5, 6, 7, 8, 11],
        };
        let mut image = draw.each(axes, 1, extents);
        if draw.once_in(40) {
            image[2] = 0;
        }
        let mut kernel = draw.each(axes, 1, &[1, 2, 3, 1, 3, 5]);
        if draw.once_in(200) {
            kernel[2] = 0;
        }
        let stride = match draw.once_in(4) {
            true => [1; 3],
            false => draw.each(axes, 1, &[1, 2, 3, 1, 2, 4, 7, 100]),
        };
        let dilation = match draw.once_in(2) {
            true => [1; 3],
            false => draw.each(axes, 1, &[1, 2, 3, 4]),
        };
        let most = if draw.once_in(3) { 4 } else { 2 };
        let mut zeros = || draw.each(axes, 0, &[0, 1, 2, 3, 4][..=most]);
        let (both, uneven) = (Zeros::Both(zeros()), Zeros::Uneven([zeros(), zeros()]));
        let zeros = match is_transposed {
            true => both,
            false => draw.choose(&[Zeros::None, Zeros::Same, both, both, uneven]),
        };
        let output_padding = match is_transposed && draw.once_in(2) {
            true => std::array::from_fn(|i| draw.below(stride[i].max(dilation[i]).min(8))),
            false => [0; 3],
        };
        let channels = match draw.once_in(3) {
            true => [1, 1],
            false => [0, 1].map(|_| draw.choose(&[1, 2, 3, 4, 1, 2, 3, 9, 17])),
        };
        let case = Case {
            seed,
            is_transposed,
            axes,
            dtype: draw.choose(&DTYPES).0,
            images: if draw.once_in(60) { 0 } else { draw.choose(&[1, 2, 3]) },
            groups: draw.choose(&[1, 1, 2, 3]),
            channels,
            image,
            kernel,
            stride,
            dilation,
            zeros,
            output_padding,
            has_bias: draw.once_in(2),
        };
        (case, draw)
    }

    /// Zeros before and after an axis, and the extent of the result; `None` if it has no pixel.
    fn axis(&self, axis: usize) -> Option<(usize, usize)> {
        let (extent, stride) = (self.image[axis], self.stride[axis]);
        let window = self.dilation[axis] * self.kernel[axis].checked_sub(1)? + 1;
        if self.is_transposed {
            let Zeros::Both(zeros) = self.zeros else { return None };
            let all = extent.checked_sub(1)? * stride + window + self.output_padding[axis];
            let result = all.checked_sub(2 * zeros[axis]).filter(|&extent| extent > 0)?;
            return Some((zeros[axis], result));
        }
        let (before, all) = match self.zeros {
            Zeros::None => (0, 0),
            Zeros::Both(zeros) => (zeros[axis], 2 * zeros[axis]),
            Zeros::Uneven([before, after]) => (before[axis], before[axis] + after[axis]),
            Zeros::Same => {
                let reach = (extent.div_ceil(stride).max(1) - 1) * stride + window;
                let all = reach.saturating_sub(extent);
                (all / 2, all)
            }
        };
        Some((before, (extent + all).checked_sub(window)? / stride + 1))
    }

    fn apply(&self, x: &T, weight: &T, bias: Option<&T>) -> Result<T> {
        match (self.is_transposed, self.axes) {
            (false, 1) => x.conv1d(weight, bias, self.options()),
            (false, 2) => x.conv2d(weight, bias, self.options()),
            (false, _) => x.conv3d(weight, bias, self.options()),
            (true, 1) => x.conv_transpose1d(weight, bias, self.transpose_options()),
            (true, 2) => x.conv_transpose2d(weight, bias, self.transpose_options()),
            (true, _) => x.conv_transpose3d(weight, bias, self.transpose_options()),
        }
    }

    fn options<const N: usize>(&self) -> ConvOptions<N> {
        let padding = match self.zeros {
            Zeros::None => Padding::Valid,
            Zeros::Same => Padding::Same,
            Zeros::Both(zeros) => Padding::Zeros(last(zeros)),
            Zeros::Uneven([before, after]) => {
                let (before, after) = (last::<N>(before), last::<N>(after));
                std::array::from_fn(|i| (before[i], after[i])).into()
            }
        };
        let (stride, dilation) = (last(self.stride), last(self.dilation));
        ConvOptions { stride, padding, dilation, groups: self.groups }
    }

    fn transpose_options<const N: usize>(&self) -> ConvTransposeOptions<N> {
        let zeros = if let Zeros::Both(zeros) = self.zeros { zeros } else { [0; 3] };
        ConvTransposeOptions {
            stride: last(self.stride),
            padding: last(zeros),
            output_padding: last(self.output_padding),
            dilation: last(self.dilation),
            groups: self.groups,
        }
    }

    /// Calls `f(element of the large images, element of the small images, element of the filters)` for each of their
    /// products, given the extents of the images and the zeros before the large one.
    fn each_product(
        &self,
        [large, small]: [[usize; 3]; 2],
        before: [usize; 3],
        mut f: impl FnMut(usize, usize, usize),
    ) {
        let [of_large, of_small] = self.channels;
        let [large_len, small_len, taps] =
            [large, small, self.kernel].map(|e| e.iter().product::<usize>());
        for (pixel, tap) in indices(small).flat_map(|p| indices(self.kernel).map(move |k| (p, k))) {
            let seen: [Option<usize>; 3] = std::array::from_fn(|i| {
                let at = pixel[i] * self.stride[i] + tap[i] * self.dilation[i];
                at.checked_sub(before[i]).filter(|&at| at < large[i])
            });
            let [Some(z), Some(y), Some(x)] = seen else { continue };
            let (seen, pixel) = (flat([z, y, x], large), flat(pixel, small));
            let tap = flat(tap, self.kernel);
            for [image, group, b] in indices([self.images, self.groups, of_small]) {
                for a in 0..of_large {
                    let in_large = (image * self.groups + group) * of_large + a;
                    let in_small = (image * self.groups + group) * of_small + b;
                    let filter = (group * of_small + b) * of_large + a;
                    f(
                        in_large * large_len + seen,
                        in_small * small_len + pixel,
                        filter * taps + tap,
                    );
                }
            }
        }
    }
}

/// Checks the case of a seed; false if it has no result, which must be an error.
pub fn check(seed: u64) -> bool {
    let (case, mut draw) = Case::draw(seed);
    let Case { axes, dtype, images, groups, channels: [of_large, of_small], image, kernel, .. } =
        case;
    let (sources, own) =
        if case.is_transposed { (of_small, of_large) } else { (of_large, of_small) };
    let tail = |extents: [usize; 3]| extents[3 - axes..].to_vec();
    let x_dims = [vec![images, groups * sources], tail(image)].concat();
    let weight_dims = [vec![groups * of_small, of_large], tail(kernel)].concat();
    let [x_values, weight_values] =
        [&x_dims, &weight_dims].map(|dims| draw.integers(dims.iter().product()));
    let x = draw.tensor(&x_values, &x_dims, dtype);
    let weight = draw.tensor(&weight_values, &weight_dims, dtype);
    let bias_values = draw.integers(groups * own);
    let bias = T::from_vec(bias_values.clone(), groups * own).unwrap();
    let bias = bias.to_dtype(dtype).unwrap().requires_grad();
    let bias = Some(&bias).filter(|_| case.has_bias);

    let y = case.apply(&x, &weight, bias);
    let [Some(z), Some(h), Some(w)] = [0, 1, 2].map(|axis| case.axis(axis)) else {
        assert!(y.is_err(), "{case:?} has no result");
        return false;
    };
    let y = y.unwrap_or_else(|error| panic!("{case:?}: {error}"));
    let (before, result) = ([z.0, h.0, w.0], [z.1, h.1, w.1]);
    let y_dims = [vec![images, groups * own], tail(result)].concat();
    assert_eq!(y.dims(), y_dims, "{case:?}");
    let g_values = draw.integers(y.numel());
    let g = draw.tensor(&g_values, &y_dims, dtype).detach();
    let gradients = y.backward_with(&g).unwrap_or_else(|error| panic!("{case:?}: {error}"));

    let [mut sums, mut dx, mut dw] = [y.numel(), x.numel(), weight.numel()].map(|n| vec![0.0; n]);
    let mut of_products = |at_x: usize, at_y: usize, at_w: usize| {
        sums[at_y] += x_values[at_x] * weight_values[at_w];
        dx[at_x] += g_values[at_y] * weight_values[at_w];
        dw[at_w] += g_values[at_y] * x_values[at_x];
    };
    match case.is_transposed {
        false => case.each_product([image, result], before, of_products),
        true => case.each_product([result, image], before, |y, x, w| of_products(x, y, w)),
    }
    let channel = |i: usize| i / result.iter().product::<usize>() % (groups * own);
    if bias.is_some() {
        // A transposed convolution is rounded before its bias is added.
        let before_bias = if case.is_transposed { rounded(&sums, dtype) } else { sums };
        sums = before_bias.iter().zip(0..).map(|(sum, i)| sum + bias_values[channel(i)]).collect();
    }
    let mut db = vec![0.0; groups * own];
    (0..y.numel()).for_each(|i| db[channel(i)] += g_values[i]);

    compare(&case, "y", &y, &rounded(&sums, dtype), 0.0);
    compare(&case, "dx", gradients.wrt(&x).unwrap(), &rounded(&dx, dtype), 0.0);
    compare(&case, "dw", gradients.wrt(&weight).unwrap(), &rounded(&dw, dtype), 0.0);
    if let Some(bias) = bias {
        compare(&case, "db", gradients.wrt(bias).unwrap(), &rounded(&db, dtype), 0.0);
    }
    true
}
