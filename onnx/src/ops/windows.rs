//! Windows that slide over images, as convolutions and poolings describe them.

use swath::{Backend, Tensor};

use crate::error::{Error, Result};
use crate::row::Call;

/// The attributes of windows, and others.
macro_rules! sliding {
    ($($other:expr),*) => {
        &[
            ("auto_pad", crate::row::Default::Text("NOTSET")),
            ("dilations", crate::row::Default::Absent),
            ("pads", crate::row::Default::Absent),
            ("strides", crate::row::Default::Absent),
            $($other),*
        ]
    };
}
pub(super) use sliding;

/// Strides, pads and the like are at most this, so that their sums and products with extents do not overflow.
const MOST: i64 = 1 << 31;

/// The windows along an axis of images.
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    /// Padding before the image and after it.
    pub pads: [usize; 2],
    /// True if the number of windows is rounded up.
    pub ceil: bool,
    /// Number of windows.
    pub count: usize,
}

impl Sliding {
    /// The number of pixels that a window spans.
    pub fn window(&self) -> usize {
        self.kernel.saturating_sub(1) * self.dilation + 1
    }

    /// The number of pixels that the windows reach beyond an image of this extent.
    pub fn reach(&self, image: usize) -> usize {
        ((self.count - 1) * self.stride + self.window()).saturating_sub(self.pads[0] + image)
    }
}

/// A list of integers of an attribute, `count` of them or, if the node has none, that often the default.
pub fn list<B: Backend>(
    call: &Call<'_, B>,
    name: &str,
    count: usize,
    least: i64,
) -> Result<Vec<usize>> {
    let given = call.find_ints(name)?.map_or_else(|| vec![least; count], <[i64]>::to_vec);
    if given.len() != count || given.iter().any(|number| !(least..=MOST).contains(number)) {
        let reason = format!(
            "attribute {name:?} must be {count} integers from {least} to {MOST}, but is {given:?}"
        );
        return Err(Error::operator(reason));
    }
    Ok(given.into_iter().map(|number| number as usize).collect())
}

/// The kind of padding, and the pads before and after each axis, 0 for those that the kind implies.
pub fn pads<'a, B: Backend>(call: &Call<'a, B>, axes: usize) -> Result<(&'a str, Vec<[usize; 2]>)> {
    let kind = call.text("auto_pad")?;
    match kind {
        "NOTSET" => {
            let pads = list(call, "pads", 2 * axes, 0)?;
            Ok((kind, (0..axes).map(|axis| [pads[axis], pads[axes + axis]]).collect()))
        }
        "VALID" | "SAME_UPPER" | "SAME_LOWER" => Ok((kind, vec![[0; 2]; axes])),
        other => Err(Error::operator(format!("\"auto_pad\" is {other:?}"))),
    }
}

/// Divides padding between the ends of an axis; an odd pixel is at the end for `SAME_UPPER`, else at the beginning.
pub fn halves(total: usize, auto_pad: &str) -> [usize; 2] {
    let (less, more) = (total / 2, total - total / 2);
    if auto_pad == "SAME_UPPER" { [less, more] } else { [more, less] }
}

/// The number of axes of images `[n, c, …]`: one to three.
pub fn image_axes<B: Backend>(x: &Tensor<B>) -> Result<usize> {
    let found = Some(x.rank()).filter(|rank| (3..=5).contains(rank));
    let wrong = || {
        Error::operator(format!(
            "images must have 3 to 5 axes, [n, channels, …], but have {}",
            x.rank()
        ))
    };
    found.map(|rank| rank - 2).ok_or_else(wrong)
}

/// The extents of filters `[out, in, …]` of images, which an attribute may repeat.
pub fn filters<'w, B: Backend>(
    call: &Call<'_, B>,
    x: &Tensor<B>,
    weight: &'w Tensor<B>,
) -> Result<&'w [usize]> {
    let axes = image_axes(x)?;
    if weight.rank() != axes + 2 {
        let reason = format!(
            "filters must have {} axes, as the images, but have {}",
            axes + 2,
            weight.rank()
        );
        return Err(Error::operator(reason));
    }
    let kernel = &weight.dims()[2..];
    match call.find_ints("kernel_shape")? {
        Some(shape) if !shape.iter().copied().eq(kernel.iter().map(|&extent| extent as i64)) => {
            Err(Error::operator(format!(
                "\"kernel_shape\" is {shape:?}, but the filters' is {kernel:?}"
            )))
        }
        _ => Ok(kernel),
    }
}

/// The windows of these extents of an image.
pub fn windows<B: Backend>(
    call: &Call<'_, B>,
    image: &[usize],
    kernel: &[usize],
    ceil: bool,
) -> Result<Vec<Sliding>> {
    let axes = image.len();
    let (strides, dilations) = (list(call, "strides", axes, 1)?, list(call, "dilations", axes, 1)?);
    let (auto_pad, pads) = pads(call, axes)?;
    let sliding = |axis: usize| {
        let (image, stride, ceil) = (image[axis], strides[axis], ceil && auto_pad == "NOTSET");
        let mut along = Sliding {
            kernel: kernel[axis],
            stride,
            dilation: dilations[axis],
            pads: pads[axis],
            ceil,
            count: 0,
        };
        let window = along.window();
        if auto_pad.starts_with("SAME") {
            let reach = image.div_ceil(stride).saturating_sub(1) * stride + window;
            along.pads = halves(reach.saturating_sub(image), auto_pad);
        }
        let [before, after] = along.pads;
        let beyond = (image + before + after).checked_sub(window).filter(|_| along.kernel > 0);
        let beyond = beyond.ok_or_else(|| {
            let reason = format!(
                "axis {axis} of the image has {image} pixels, with padding of {before} and {after}"
            );
            Error::operator(format!("{reason}: no window of {window} fits"))
        })?;
        along.count = 1 + if ceil { beyond.div_ceil(stride) } else { beyond / stride };
        // A window that begins after the image and the padding before it is left out.
        if ceil && along.count > 1 && (along.count - 1) * stride >= image + before {
            along.count -= 1;
        }
        Ok(along)
    };
    (0..axes).map(sliding).collect()
}
