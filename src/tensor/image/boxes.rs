//! Boxes in images: `roi_align`, `nms`.

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, reserved};
use crate::options::PerAxis;
use crate::shape::Shape;

use crate::tensor::base::Tensor;
use crate::tensor::fused::pool::check_image_axes;
use crate::tensor::pad::PadMode;

/// Maximum number of elements that [`Tensor::roi_align`] reads before it adds them up, unless one region needs more.
const READ_AT_ONCE: usize = 1 << 22;

/// # Boxes
impl<B: Backend> Tensor<B> {
    /// Averages regions of images `[n, c, h, w]` over a grid of `size` cells each: `[k, c, size[0], size[1]]`. A region
    /// is a row of `rois`, `[k, 5]`: the index of its image, x and y of a corner, x and y of the opposite one, which
    /// are multiplied by `spatial_scale`, and with `aligned` reduced by ½ then, as pixels lie at whole numbers. Without
    /// `aligned`, regions are at least one pixel wide and high. A cell is the mean of `sampling_ratio` times
    /// `sampling_ratio` samples, or for 0 of one for each pixel, of which each is interpolated between four pixels.
    /// torchvision's `roi_align`, and ONNX's `RoiAlign`, whose `half_pixel` is `aligned`.
    ///
    /// The gradient reaches the images, not the regions. 16-bit floats are computed in `F32` and rounded once.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::arange(0.0, 16.0, 1.0)?.reshape((1, 1, 4, 4))?;
    /// let y = x.roi_align(&tensor![[0.0, 0.0, 0.0, 3.0, 3.0]], [1, 3], 1.0, 1, false)?;
    /// assert_eq!(y.to_vec::<f32>()?, [6.5, 7.5, 8.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] for other axes; [`Error::InvalidArgument`] for a size or an image without a pixel, or a
    /// region that is not finite or in no image; [`Error::UnsupportedDType`] for integers.
    pub fn roi_align(
        &self,
        rois: &Tensor<B>,
        size: impl PerAxis<2>,
        spatial_scale: f64,
        sampling_ratio: usize,
        aligned: bool,
    ) -> Result<Self> {
        self.roi_pool(
            "roi_align",
            rois,
            size.per_axis(),
            (spatial_scale, sampling_ratio, aligned),
            false,
        )
    }

    /// Like [`roi_align`](Tensor::roi_align), with the largest product of a pixel and its weight in a cell instead of
    /// the mean: ONNX's mode `max`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::arange(0.0, 16.0, 1.0)?.reshape((1, 1, 4, 4))?;
    /// let y = x.roi_align_max(&tensor![[0.0, 0.0, 0.0, 4.0, 4.0]], 1, 1.0, 2, false)?;
    /// assert_eq!(y.to_vec::<f32>()?, [15.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`roi_align`](Tensor::roi_align).
    pub fn roi_align_max(
        &self,
        rois: &Tensor<B>,
        size: impl PerAxis<2>,
        spatial_scale: f64,
        sampling_ratio: usize,
        aligned: bool,
    ) -> Result<Self> {
        self.roi_pool(
            "roi_align_max",
            rois,
            size.per_axis(),
            (spatial_scale, sampling_ratio, aligned),
            true,
        )
    }

    /// Pools regions: by the mean, or by the maximum. The options are scale, ratio and alignment.
    fn roi_pool(
        &self,
        op: &'static str,
        rois: &Tensor<B>,
        size: [usize; 2],
        (scale, ratio, aligned): (f64, usize, bool),
        is_max: bool,
    ) -> Result<Self> {
        let samples = |ends, cells| Samples::new(ends, cells, scale, ratio, aligned);
        check_image_axes(op, self, 2)?;
        self.check_float(op)?;
        self.check_beside(op, rois)?;
        let [n, c, h, w] = [0, 1, 2, 3].map(|axis| self.dims()[axis]);
        let &[count, 5] = rois.dims() else {
            let reason = "expected regions [k, 5]: the index of an image, x1, y1, x2, y2";
            return Err(Error::InvalidShape { op, shape: *rois.shape(), reason });
        };
        if [h, w].contains(&0) || size.contains(&0) {
            let reason =
                format!("no pixel in images of shape {} or in size {size:?}", self.shape());
            return Err(Error::InvalidArgument { op, reason });
        }
        let shape = Shape::from([count, size[0], size[1], c]);
        shape.validate(op)?;
        let mut regions = Vec::new();
        for roi in rois.host_floats()?.as_chunks().0 {
            let &[image, x1, y1, x2, y2]: &[f64; 5] = roi;
            if !(0.0..n as f64).contains(&image) || !roi.iter().all(|number| number.is_finite()) {
                let reason = format!("expected one of {n} images and a finite region, got {roi:?}");
                return Err(Error::InvalidArgument { op, reason });
            }
            let along = [samples([y1, y2], size[0]), samples([x1, x2], size[1])];
            regions.push((image as usize * h * w, along));
        }
        // A row of 0 behind the pixels is read for samples outside the image.
        let pixels = self.widened()?.permute(&[0, 2, 3, 1])?.reshape((n * h * w, c))?;
        let pixels = pixels.extended(0, [0, 1], PadMode::Constant(0.0))?;
        let mut cells = vec![pixels.narrow(0, 0, 0)?];
        let counts = |(_, [down, across]): &(usize, [Samples; 2])| [down.count, across.count];
        for alike in regions.chunk_by(|a, b| counts(a) == counts(b)) {
            let taps = counts(&alike[0])
                .into_iter()
                .fold(4, |taps: usize, n| taps.saturating_mul(n.max(1)));
            let rows = taps.saturating_mul(size[0] * size[1]);
            for some in alike.chunks((READ_AT_ONCE / rows.saturating_mul(c).max(1)).max(1)) {
                let mut table = reserved(op, rows.saturating_mul(some.len()))?;
                for (image, [down, across]) in some {
                    let across: Vec<_> = (0..size[1]).map(|cell| across.taps(cell, w)).collect();
                    for (cell, columns) in (0..size[0])
                        .flat_map(|cell| across.iter().map(move |columns| (cell, columns)))
                    {
                        for (row, near) in down.taps(cell, h) {
                            table.extend(columns.iter().map(
                                |&(column, close)| match row.zip(column) {
                                    Some((row, column)) => (image + row * w + column, near * close),
                                    None => (n * h * w, 0.0),
                                },
                            ));
                        }
                    }
                }
                let index = |i: usize| Scalar::Int(table[i].0 as i64);
                let index = Tensor::from_scalars(op, table.len().into(), DType::I64, index)?;
                let weight = |i: usize| Scalar::Float(table[i].1);
                let weights = pixels.along(op, 0, table.len(), pixels.dtype(), weight)?;
                let products = pixels.index_select(0, &index)?.mul(&weights)?;
                let products = products.reshape((table.len() / taps, taps, c))?;
                cells.push(match is_max {
                    true => products.max_axis(1, false)?,
                    false => products.sum_axis(1, false)?.div((taps / 4) as f64)?,
                });
            }
        }
        Tensor::cat(&cells, 0)?.reshape(shape)?.permute(&[0, 3, 1, 2])?.to_dtype(self.dtype())
    }

    /// Selects boxes by non-maximum suppression: of these boxes `[n, 4]`, x and y of a corner and of the opposite,
    /// larger one, in the order of descending scores `[n]`, each that overlaps no selected one by more than
    /// `iou_threshold`, the quotient of intersection and union. Returns their indices, `I64`, in that order; of equal
    /// scores the first comes first, and NaN before all. torchvision's `nms`. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let boxes = tensor![[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [1.0, 1.0, 3.0, 3.0]];
    /// let kept = boxes.nms(&tensor![0.5, 0.75, 0.25], 0.5)?;
    /// assert_eq!(kept.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] for other axes; [`Error::UnsupportedDType`] for integers.
    pub fn nms(&self, scores: &Tensor<B>, iou_threshold: f64) -> Result<Self> {
        let op = "nms";
        if self.rank() != 2 || scores.rank() != 1 {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *scores.shape() });
        }
        let (boxes, scores) = (self.unsqueeze(0)?, scores.reshape((1, 1, scores.numel()))?);
        let kept =
            boxes.suppressed(op, &scores, (usize::MAX, iou_threshold, None), |corners| corners)?;
        kept.narrow(1, 2, 1)?.contiguous()?.squeeze(1)
    }

    /// Selects at most `most` boxes `[b, n, 4]` for each batch and class of scores `[b, c, n]` above `score_threshold`,
    /// as [`nms`](Tensor::nms) does; corners may be any two opposite ones, and with `center_point_box` boxes are x, y
    /// of the center, width and height. Returns batch, class and index of each box, `[k, 3]`, `I64`. ONNX's
    /// `NonMaxSuppression`. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let boxes = tensor![[[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.1], [4.0, 4.0, 5.0, 5.0]]];
    /// let scores = tensor![[[0.5, 0.75, 0.25], [0.0, 0.0, 1.0]]];
    /// let kept = boxes.non_max_suppression(&scores, 2, 0.5, 0.3, false)?;
    /// assert_eq!(kept.to_vec::<i64>()?, [0, 0, 1, 0, 1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`nms`](Tensor::nms).
    pub fn non_max_suppression(
        &self,
        scores: &Tensor<B>,
        most: usize,
        iou_threshold: f64,
        score_threshold: impl Into<Option<f64>>,
        center_point_box: bool,
    ) -> Result<Self> {
        let limits = (most, iou_threshold, score_threshold.into());
        self.suppressed(
            "non_max_suppression",
            scores,
            limits,
            |[a, b, c, d]| match center_point_box {
                true => [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0],
                false => [a.min(c), b.min(d), a.max(c), b.max(d)],
            },
        )
    }

    /// The selected boxes, with `limits` of their number, overlap and score; `corners` makes corners of what describes
    /// a box, the smaller one first.
    fn suppressed(
        &self,
        op: &'static str,
        scores: &Tensor<B>,
        (most, threshold, least): (usize, f64, Option<f64>),
        corners: impl Fn([f64; 4]) -> [f64; 4],
    ) -> Result<Self> {
        self.check_float(op)?;
        scores.check_float(op)?;
        self.check_beside(op, scores)?;
        let (&[batches, count, 4], &[_, classes, _]) = (self.dims(), scores.dims()) else {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *scores.shape() });
        };
        if *scores.shape() != [batches, classes, count] {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *scores.shape() });
        }
        // In the type of the boxes, at least `f32`, in which others compute them.
        let is_wide = self.dtype() == DType::F64;
        let round = |x: f64| if is_wide { x } else { f64::from(x as f32) };
        let boxes: Vec<[f64; 4]> =
            self.host_floats()?.as_chunks().0.iter().map(|&own| corners(own).map(round)).collect();
        let area = |b: &[f64; 4]| round(round(b[2] - b[0]) * round(b[3] - b[1]));
        let overlap = |a: &[f64; 4], b: &[f64; 4]| {
            let side = |i: usize| round(a[i + 2].min(b[i + 2]) - a[i].max(b[i])).max(0.0);
            let shared = round(side(0) * side(1));
            round(shared / round(round(area(a) + area(b)) - shared))
        };
        let scores = scores.host_floats()?;
        let mut found: Vec<[usize; 3]> = Vec::new();
        for (batch, class) in
            (0..batches).flat_map(|batch| (0..classes).map(move |class| (batch, class)))
        {
            let (boxes, first) = (&boxes[batch * count..][..count], found.len());
            let scores = &scores[(batch * classes + class) * count..][..count];
            let is_candidate = |&i: &usize| least.is_none_or(|least| scores[i] > least);
            let mut order: Vec<usize> = (0..count).filter(is_candidate).collect();
            // NaN is the largest, and -0 equals 0.
            let key = |i: usize| if scores[i].is_nan() { f64::NAN } else { scores[i] + 0.0 };
            order.sort_by(|&a, &b| key(b).total_cmp(&key(a)));
            for at in order {
                let covers =
                    |&[.., other]: &[usize; 3]| overlap(&boxes[other], &boxes[at]) > threshold;
                if found.len() - first < most && !found[first..].iter().any(covers) {
                    found.push([batch, class, at]);
                }
            }
        }
        let index = |i: usize| Scalar::Int(found[i / 3][i % 3] as i64);
        Tensor::from_scalars(op, [found.len(), 3].into(), DType::I64, index)
    }
}

/// The samples of a region along an axis.
struct Samples {
    start: f64,
    /// Distance of neighbouring samples.
    step: f64,
    /// Number of samples in a cell.
    count: usize,
}

impl Samples {
    fn new(ends: [f64; 2], cells: usize, scale: f64, ratio: usize, aligned: bool) -> Self {
        let [start, end] = ends.map(|end| end * scale - if aligned { 0.5 } else { 0.0 });
        let extent = if aligned { end - start } else { (end - start).max(1.0) };
        let cell = extent / cells as f64;
        let count = if ratio > 0 { ratio } else { cell.ceil() as usize };
        Samples { start, step: cell / count.max(1) as f64, count }
    }

    /// The pixels around the samples in a cell and their weights. There is no pixel if the sample is more than a pixel
    /// outside the axis, or if there are no samples.
    fn taps(&self, cell: usize, extent: usize) -> Vec<(Option<usize>, f64)> {
        let count = self.count.max(1);
        let taps = (0..count).flat_map(|sample| {
            let position = self.start + ((cell * count + sample) as f64 + 0.5) * self.step;
            let is_inside = self.count > 0 && (-1.0..=extent as f64).contains(&position);
            let position = position.clamp(0.0, extent as f64 - 1.0);
            let (before, part) = (position as usize, position.fract());
            let next = (before + 1).min(extent - 1);
            [(before, 1.0 - part), (next, part)]
                .map(|(pixel, weight)| (is_inside.then_some(pixel), weight))
        });
        taps.collect()
    }
}
