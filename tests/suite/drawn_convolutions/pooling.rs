//! One pooling, of given windows or to a given size.

use swath::PoolOptions;
use swath::prelude::*;

use super::{DTYPES, Draw, T, compare, flat, indices, last, numbers, rounded};

#[derive(Debug)]
struct Case {
    #[allow(dead_code, reason = "printed to repeat a case")]
    seed: u64,
    is_max: bool,
    axes: usize,
    dtype: DType,
    images: usize,
    channels: usize,
    image: [usize; 3],
    windows: Windows,
}

#[derive(Debug)]
enum Windows {
    To([usize; 3]),
    Of {
        kernel: [usize; 3],
        stride: Option<[usize; 3]>,
        padding: [usize; 3],
        after: Option<[usize; 3]>,
        dilation: [usize; 3],
        ceil: bool,
        count_padding: bool,
    },
}

/// Pixels of each window along an axis, and its number of pixels with those of the padding.
type Axis = Vec<(Vec<usize>, usize)>;

impl Case {
    fn draw(seed: u64) -> (Self, Draw) {
        let mut draw = Draw(Rng::seed(seed));
        let (axes, is_max) = (1 + draw.below(3), draw.once_in(2));
        let mut image = draw.each(axes, 1, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 31]);
        if draw.once_in(40) {
            image[2] = 0;
        }
        let windows = if axes < 3 && draw.once_in(3) {
            Windows::To(draw.each(axes, 1, &[1, 2, 3, 4, 5, 7, 8, 11]))
        } else {
            let kernel = draw.each(axes, 1, &[1, 2, 3, 4, 5]);
            let stride = draw.once_in(2).then(|| draw.each(axes, 1, &[1, 2, 3, 4, 100]));
            let dilation = match draw.once_in(2) {
                true => draw.each(axes, 1, &[1, 2, 3]),
                false => [1; 3],
            };
            let mut zeros = || kernel.map(|kernel| draw.below(kernel / 2 + 1));
            let (padding, after) = (zeros(), zeros());
            let after = draw.once_in(2).then_some(after);
            let (ceil, count_padding) = (draw.once_in(2), draw.once_in(2));
            Windows::Of { kernel, stride, padding, after, dilation, ceil, count_padding }
        };
        let case = Case {
            seed,
            is_max,
            axes,
            dtype: draw.choose(&DTYPES).0,
            images: if draw.once_in(40) { 0 } else { draw.choose(&[1, 2, 3]) },
            channels: draw.choose(&[1, 2, 3, 5]),
            image,
            windows,
        };
        (case, draw)
    }

    /// The windows along an axis; `None` if there are none, or one has no pixel of the image.
    fn axis(&self, axis: usize) -> Option<Axis> {
        let extent = self.image[axis];
        let windows: Axis = match self.windows {
            Windows::To(counts) => {
                let count = counts[axis];
                let window = |i: usize| i * extent / count..((i + 1) * extent).div_ceil(count);
                (0..count).map(|i| (window(i).collect(), window(i).len())).collect()
            }
            Windows::Of { kernel, stride, padding, after, dilation, ceil, count_padding } => {
                let (kernel, zeros) = (kernel[axis], padding[axis]);
                let padded = extent + zeros + after.unwrap_or(padding)[axis];
                let (stride, dilation) = (stride.map_or(kernel, |s| s[axis]), dilation[axis]);
                let room = padded as isize - (dilation * (kernel - 1) + 1) as isize;
                let room = if ceil { room + stride as isize - 1 } else { room };
                let count = room.div_euclid(stride as isize) + 1;
                let mut count = usize::try_from(count).ok().filter(|&count| count > 0)?;
                if ceil && (count - 1) * stride >= extent + zeros {
                    count -= 1;
                }
                if count == 0 {
                    return None;
                }
                let window = |i: usize| {
                    let all = (0..kernel).map(|tap| i * stride + tap * dilation);
                    let inside = all.clone().filter_map(|at| at.checked_sub(zeros));
                    let inside: Vec<usize> = inside.filter(|&at| at < extent).collect();
                    let with_padding = all.filter(|&at| at < padded).count();
                    let counted = if count_padding { with_padding } else { inside.len() };
                    (inside, counted)
                };
                (0..count).map(window).collect()
            }
        };
        Some(windows).filter(|all| all.iter().all(|(pixels, _)| !pixels.is_empty()))
    }

    /// The result, and the positions of the largest pixels if the operation gives them.
    fn apply(&self, x: &T) -> Result<(T, Option<T>)> {
        let alone = |y: Result<T>| Ok((y?, None));
        let with = |y: Result<(T, T)>| y.map(|(y, positions)| (y, Some(positions)));
        match (&self.windows, self.axes, self.is_max) {
            (Windows::To([.., count]), 1, true) => alone(x.adaptive_max_pool1d(*count)),
            (Windows::To([.., count]), 1, false) => alone(x.adaptive_avg_pool1d(*count)),
            (Windows::To(counts), _, true) => alone(x.adaptive_max_pool2d(last(*counts))),
            (Windows::To(counts), _, false) => alone(x.adaptive_avg_pool2d(last(*counts))),
            (_, 1, true) => with(x.max_pool1d_with_positions(self.options())),
            (_, 1, false) => alone(x.avg_pool1d(self.options())),
            (_, 2, true) => with(x.max_pool2d_with_positions(self.options())),
            (_, 2, false) => alone(x.avg_pool2d(self.options())),
            (_, _, true) => with(x.max_pool3d_with_positions(self.options())),
            (_, _, false) => alone(x.avg_pool3d(self.options())),
        }
    }

    fn options<const N: usize>(&self) -> PoolOptions<N> {
        let Windows::Of { kernel, stride, padding, after, dilation, ceil, count_padding } =
            self.windows
        else {
            unreachable!("a pooling to a size has no options");
        };
        PoolOptions {
            kernel: last(kernel),
            stride: stride.map(last),
            padding: last(padding),
            padding_after: after.map(last),
            dilation: last(dilation),
            ceil_mode: ceil,
            count_include_pad: count_padding,
        }
    }
}

/// Checks the case of a seed; false if it has no result, which must be an error.
pub fn check(seed: u64) -> bool {
    let (case, mut draw) = Case::draw(seed);
    let Case { is_max, axes, dtype, images, channels, image, .. } = case;
    let dims = [vec![images, channels], image[3 - axes..].to_vec()].concat();
    let values = draw.integers(dims.iter().product());
    let x = draw.tensor(&values, &dims, dtype);
    let y = case.apply(&x);
    let [Some(deep), Some(down), Some(across)] = [0, 1, 2].map(|axis| case.axis(axis)) else {
        assert!(y.is_err(), "{case:?} has no result");
        return false;
    };
    let (y, positions) = y.unwrap_or_else(|error| panic!("{case:?}: {error}"));
    let result = [deep.len(), down.len(), across.len()];
    let y_dims = [vec![images, channels], result[3 - axes..].to_vec()].concat();
    assert_eq!(y.dims(), y_dims, "{case:?}");
    let g_values = draw.integers(y.numel());
    let g = draw.tensor(&g_values, &y_dims, dtype).detach();
    let gradients = y.backward_with(&g).unwrap_or_else(|error| panic!("{case:?}: {error}"));

    let (mut expected, mut first, mut dx) = (Vec::new(), Vec::new(), vec![0.0; values.len()]);
    let pixels: usize = image.iter().product();
    for [plane, _, _] in indices([images * channels, 1, 1]) {
        let x = &values[plane * pixels..][..pixels];
        for [i, j, k] in indices(result) {
            let g = g_values[expected.len()];
            let axes = [&deep[i], &down[j], &across[k]];
            let extents = axes.map(|(pixels, _)| pixels.len());
            let seen: Vec<usize> = indices(extents)
                .map(|at| flat(std::array::from_fn(|i| axes[i].0[at[i]]), image))
                .collect();
            let dx = &mut dx[plane * pixels..][..pixels];
            if is_max {
                let largest = seen.iter().map(|&at| x[at]).fold(f64::NEG_INFINITY, f64::max);
                let at = seen.iter().copied().find(|&at| x[at] == largest).unwrap();
                expected.push(largest);
                first.push(at as f64);
                dx[at] += g;
            } else {
                let count: usize = axes.iter().map(|(_, count)| count).product();
                expected.push(seen.iter().map(|&at| x[at]).sum::<f64>() / count as f64);
                seen.iter().for_each(|&at| dx[at] += g / count as f64);
            }
        }
    }
    let tolerance = DTYPES.iter().find(|other| other.0 == dtype).unwrap().1;
    let tolerance = if is_max { 0.0 } else { tolerance };
    compare(&case, "y", &y, &rounded(&expected, dtype), tolerance);
    compare(&case, "dx", gradients.wrt(&x).unwrap(), &rounded(&dx, dtype), 4.0 * tolerance);
    if let Some(positions) = positions {
        assert_eq!(numbers(&positions), first, "positions of {case:?}");
    }
    true
}
