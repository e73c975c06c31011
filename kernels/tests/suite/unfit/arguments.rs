//! Drawn arguments of kernels, and what calls with them give by definition.

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use swath_kernels::{
    Block, BlockArg, Gemm, GemmError, Geometry, Indirect, MatMut, MatRef, Permute, Sliding,
    Transpose, Windows, Workspace, add, avg_pool, copy_strided, gemm, max_pool, permute, transpose,
};
use swath_kernels::{Function as _, math::Add};

/// Draws numbers: `(self.0)(n)` is below `n`.
pub struct Draw<'a>(pub Box<dyn FnMut(usize) -> usize + 'a>);

impl Draw<'_> {
    fn below(&mut self, n: usize) -> usize {
        (self.0)(n)
    }

    fn choose<V: Copy>(&mut self, values: &[V]) -> V {
        values[self.below(values.len())]
    }

    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// One of these numbers, or a number that no slice has.
    fn number(&mut self, usual: &[usize]) -> usize {
        let far = [usize::MAX, usize::MAX - 15, 1 << 63, isize::MAX as usize, 1 << 62, 1 << 33];
        if self.once_in(40) { self.choose(&far) } else { self.choose(usual) }
    }

    fn stride(&mut self, usual: &[isize]) -> isize {
        let far = [isize::MIN, isize::MAX, isize::MIN / 2, 1 << 40];
        if self.once_in(40) { self.choose(&far) } else { self.choose(usual) }
    }
}

thread_local! {
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// True during a call that may panic.
pub fn is_expected() -> bool {
    EXPECTED.get()
}

/// The result of a call, `None` if it panics.
fn tried<R>(f: impl FnOnce() -> R) -> Option<R> {
    EXPECTED.set(true);
    let result = catch_unwind(AssertUnwindSafe(f)).ok();
    EXPECTED.set(false);
    result
}

/// Elements around every slice.
const MARGIN: usize = 64;
const OUTSIDE: f32 = 1e30;

/// Memory with a slice of `len` numbers, each its index.
fn memory(len: usize) -> (Vec<f32>, Range<usize>) {
    let inside = MARGIN..MARGIN + len;
    let all = 0..len + 2 * MARGIN;
    let number = |i: usize| if inside.contains(&i) { (i - MARGIN) as f32 } else { OUTSIDE };
    (all.map(number).collect(), inside)
}

/// Calls `f` on the slice of a result, and returns its elements; `None` if it panics or is an error. Fails if an
/// element around it has changed.
fn written(len: usize, f: impl FnOnce(&mut [f32]) -> Result<(), GemmError>) -> Option<Vec<f32>> {
    let (mut data, inside) = memory(len);
    let done = tried(|| f(&mut data[inside.clone()]));
    let (before, after) = (&data[..inside.start], &data[inside.end..]);
    assert!(before.iter().chain(after).all(|&x| x == OUTSIDE), "wrote outside of a slice");
    done?.ok()?;
    Some(data[inside].to_vec())
}

/// The element of a slice at a position, if there is one: elements are their indices.
fn at(position: i128, len: usize) -> Option<f32> {
    (0..len as i128).contains(&position).then_some(position as f32)
}

/// Number of kinds of calls.
pub const KINDS: usize = 6;

/// Makes a call; returns its kind, and true unless it was refused.
pub fn run(mut draw: Draw<'_>) -> (usize, bool) {
    let kind = draw.below(KINDS);
    let call = [windows, indirect, permuted, block, pools, strided][kind];
    (kind, call(&mut draw))
}

/// Fails unless a call was refused where `expected` is `None`, and gave these elements otherwise.
#[track_caller]
fn check(what: &dyn std::fmt::Debug, found: Option<Vec<f32>>, expected: Option<Vec<f32>>) -> bool {
    assert_eq!(found, expected, "{what:?}");
    found.is_some()
}

fn sliding(draw: &mut Draw<'_>) -> Sliding {
    let [image, kernel] = [draw.number(&[5, 4, 7, 1, 20, 2, 0]), draw.choose(&[1, 3, 2, 1])];
    let [stride, dilation] = [draw.number(&[1, 2, 3, 1]), draw.number(&[1, 2, 1])];
    let padding = [draw.stride(&[0, 1, 2, -1, 0]), draw.stride(&[0, 1, 2, -1, 0])];
    let windows = draw.number(&[1, 2, 3, 5, 9, 18]);
    Sliding { image, kernel, stride, dilation, padding, windows }
}

fn geometry(draw: &mut Draw<'_>) -> Option<Geometry> {
    let axes = draw.choose(&[1, 2, 1, 3]);
    let along = [0, 1, 2].map(|axis| match axis + axes < 3 {
        true => Sliding::default(),
        false => sliding(draw),
    });
    Geometry::new(along).ok()
}

/// The pixel that a window sees at a tap along each axis, if it sees one, as the number of its row-major position.
fn pixel(geometry: &Geometry, window: [usize; 3], tap: [usize; 3]) -> Option<[usize; 3]> {
    let mut at = [0; 3];
    for (i, at) in at.iter_mut().enumerate() {
        let &Sliding { image, stride, dilation, padding, .. } = geometry.axis(i);
        let steps = window[i] as i128 * stride as i128 + tap[i] as i128 * dilation as i128;
        let pixel = steps - padding[0] as i128;
        *at = usize::try_from(pixel).ok().filter(|&pixel| pixel < image)?;
    }
    Some(at)
}

/// All indices below these extents in row-major order.
fn indices([a, b, c]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| [i, j, k])))
}

fn count(extents: [usize; 3]) -> usize {
    extents.iter().fold(1, |all: usize, &extent| all.saturating_mul(extent))
}

/// Some rows and columns of windows, by a product with an identity.
fn windows(draw: &mut Draw<'_>) -> bool {
    let Some(geometry) = geometry(draw) else { return false };
    let counts = [draw.number(&[1, 2, 3]), draw.number(&[1, 2, 3])];
    let (image, taps) = (geometry.image(), geometry.taps());
    let plane = count(image);
    let own = [counts[1].wrapping_mul(plane), plane, image[1].wrapping_mul(image[2]), image[2], 1];
    let mut strides = own.map(|stride| stride as isize);
    for stride in &mut strides {
        match draw.below(24) {
            0 => *stride = -*stride,
            1 => *stride = draw.stride(&[0, 1, 2, 3]),
            _ => {}
        }
    }
    let whole = plane.saturating_mul(counts[0]).saturating_mul(counts[1]).min(1 << 12);
    let len = draw.choose(&[whole, whole, whole + 3, whole.saturating_sub(1)]);
    let offset = draw.number(&[0, 0, 0, 1, 3]);
    let shape =
        [counts[1].saturating_mul(taps), counts[0].saturating_mul(count(geometry.windows()))];
    if shape[0].saturating_mul(shape[1]) > 1 << 14 || shape[0] > 256 {
        return false;
    }
    let (top, left) = (draw.number(&[0, 0, 1]), draw.number(&[0, 0, 1, 5]));
    let rows = draw.number(&[shape[0], shape[0], shape[0].saturating_sub(top), 1, 2]).min(1 << 12);
    let columns = draw.number(&[shape[1], shape[1].saturating_sub(left), 1, 40]).min(1 << 12);

    let identity: Vec<f32> =
        (0..rows * rows).map(|i| if i % (rows + 1) == 0 { 1.0 } else { 0.0 }).collect();
    let (x, inside) = memory(len);
    let found = written(rows * columns, |y| {
        let all = Windows::new(&x[inside], offset, counts, strides, geometry)?;
        let a = MatRef::row_major(&identity, [rows, rows])?;
        let c = MatMut::row_major(y, [rows, columns])?;
        let part = all.rows(top, rows).columns(left, columns);
        gemm(Gemm::new(a, &part), c, &mut Workspace::new()).map(drop)
    });

    let position = |n: usize, c: usize, at: [usize; 3]| {
        let index = [n, c, at[0], at[1], at[2]];
        let steps = index.iter().zip(strides).map(|(&i, stride)| i as i128 * stride as i128);
        offset as i128 + steps.sum::<i128>()
    };
    let extents = [counts[0], counts[1], image[0], image[1], image[2]];
    let is_inside = || {
        // Extremes of a linear function are at corners.
        (0..32).all(|corner| {
            let [n, c, z, y, x] =
                std::array::from_fn(|i| if corner >> i & 1 == 1 { extents[i] - 1 } else { 0 });
            at(position(n, c, [z, y, x]), len).is_some()
        })
    };
    let fits = (extents.contains(&0) || is_inside())
        && top.checked_add(rows).is_some_and(|end| end <= shape[0])
        && left.checked_add(columns).is_some_and(|end| end <= shape[1]);
    let expected = fits.then(|| {
        let taps: Vec<_> = indices(geometry.kernel()).collect();
        let places: Vec<_> = indices(geometry.windows()).collect();
        let element = |row: usize, column: usize| {
            let at_tap = pixel(&geometry, places[column % places.len()], taps[row % taps.len()]);
            at_tap.map_or(0.0, |pixel| {
                position(column / places.len(), row / taps.len(), pixel) as f32
            })
        };
        let all = (0..rows * columns).map(|i| element(top + i / columns, left + i % columns));
        all.collect()
    });
    check(&(geometry, counts, strides, offset, len, [top, rows], [left, columns]), found, expected)
}

/// A product of an identity with rows of a slice.
fn indirect(draw: &mut Draw<'_>) -> bool {
    let (len, rows) = (draw.choose(&[40usize, 7, 100, 0]), draw.choose(&[1, 3, 5, 0, 20]));
    let columns = draw.number(&[3, 1, 7, 33, 0]);
    let room = len.saturating_sub(columns) + usize::from(draw.once_in(4));
    let offsets: Vec<usize> = (0..rows)
        .map(|_| if draw.once_in(200) { draw.number(&[0]) } else { draw.below(room + 1) })
        .collect();
    let identity: Vec<f32> =
        (0..rows * rows).map(|i| if i % (rows + 1) == 0 { 1.0 } else { 0.0 }).collect();
    let width = columns.min(1 << 12);
    let (x, inside) = memory(len);
    let found = written(rows * width, |y| {
        let b = Indirect::new(&x[inside], &offsets, columns)?;
        let a = MatRef::row_major(&identity, [rows, rows])?;
        gemm(Gemm::new(a, &b), MatMut::row_major(y, [rows, width])?, &mut Workspace::new())
            .map(drop)
    });
    let each = offsets
        .iter()
        .flat_map(|&offset| (0..width).map(move |i| at(offset as i128 + i as i128, len)));
    // Rows of no elements begin inside the slice too.
    let begins = offsets.iter().all(|&offset| offset <= len);
    let expected = if columns == width && begins { each.collect() } else { None };
    check(&(len, &offsets, columns), found, expected)
}

fn permuted(draw: &mut Draw<'_>) -> bool {
    let rank = draw.choose(&[2, 3, 1, 4, 0, 9]);
    let dims: Vec<usize> = (0..rank).map(|_| draw.number(&[2, 3, 1, 4, 17, 2, 0])).collect();
    let (mut strides, mut step) = (vec![0; rank], 1isize);
    for i in (0..rank).rev() {
        let axis = if draw.once_in(2) { (i + 1) % rank } else { i };
        strides[axis] = draw.stride(&[step, step, step, -step, 0]);
        step = step.saturating_mul(isize::try_from(dims[axis]).unwrap_or(isize::MAX).max(1));
    }
    if draw.once_in(30) {
        strides.pop();
    }
    let negative: i128 = dims.iter().zip(&strides).fold(0, |sum, (&dim, &stride)| {
        sum + (dim.saturating_sub(1) as i128 * stride as i128).min(0)
    });
    let offset = usize::try_from(-negative).unwrap_or(0).wrapping_add(draw.number(&[0, 0, 1]));
    let numel = dims.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim));
    let len = step.min(1 << 12) as usize + draw.choose(&[0, 2, 0]) - usize::from(draw.once_in(12));
    let size = numel.unwrap_or(7).min(1 << 12) + usize::from(draw.once_in(30));
    let (x, inside) = memory(len);
    let shape = Permute { dims: &dims, strides: &strides, offset };
    let found = written(size, |y| {
        permute(&x[inside], y, shape);
        Ok(())
    });
    let mut positions = vec![offset as i128];
    if size == 0 {
        positions.clear();
    } else if numel == Some(size) && dims.len() == strides.len() {
        for (&dim, &stride) in dims.iter().zip(&strides) {
            let along = |start: i128| (0..dim).map(move |i| start + i as i128 * stride as i128);
            positions = positions.into_iter().flat_map(along).collect();
        }
    }
    let fits = numel == Some(size) && dims.len() == strides.len() && rank <= 8;
    let elements = || positions.iter().map(|&position| at(position, len)).collect();
    check(&(shape, len, size), found, if fits { elements() } else { None })
}

/// A sum of two rows, columns or values for each row of a result.
fn block(draw: &mut Draw<'_>) -> bool {
    let [rows, cols] = [draw.number(&[1, 2, 3, 9, 0]), draw.number(&[1, 4, 17, 3, 0])];
    let size = rows.saturating_mul(cols).min(1 << 10);
    let stride = draw.number(&[cols, cols, cols, cols.wrapping_add(2), 1]);
    let shape = Block { rows, cols, stride };
    let len = size + draw.choose(&[0, 5, 20]);
    let (x, inside) = memory(len);
    let mut argument = || {
        let data = &x[inside.clone()];
        let stride =
            draw.stride(&[cols as isize, cols as isize, 0, 1, (cols as isize).wrapping_neg(), -1]);
        let back = rows.saturating_sub(1).saturating_mul(stride.min(0).unsigned_abs());
        let start = draw.number(&[back, back, back.wrapping_add(1), 0]);
        BlockArg { data, start, stride, is_value: draw.once_in(3) }
    };
    let [a, b] = [argument(), argument()];
    let out = rows.saturating_sub(1).saturating_mul(stride).saturating_add(cols).min(1 << 12);
    let out = if rows == 0 { 0 } else { out };
    let out = draw.choose(&[out, out, out, out + 1, out.saturating_sub(1)]);
    let found = written(out, |y| {
        Add::KERNEL.run_block([a, b], shape, y);
        Ok(())
    });
    let Some(found) = found else { return false };
    // Elements between rows keep their numbers.
    let mut expected: Vec<Option<f32>> = (0..out).map(|i| Some(i as f32)).collect();
    for [_, r, c] in indices([cols.min(1), rows, cols]) {
        let element = |x: &BlockArg<'_, f32>| {
            let column = if x.is_value { 0 } else { c as i128 };
            at(x.start as i128 + r as i128 * x.stride as i128 + column, len)
        };
        expected[r * stride + c] = element(&a).zip(element(&b)).map(|(a, b)| a + b);
    }
    let expected: Option<Vec<f32>> = expected.into_iter().collect();
    check(&(shape, a.start, a.stride, b.start, b.stride, len), Some(found), expected)
}

/// The largest pixels and means of windows.
fn pools(draw: &mut Draw<'_>) -> bool {
    let Some(geometry) = geometry(draw) else { return false };
    let channels = draw.number(&[1, 2, 3]);
    let [pixels, windows] = [geometry.image(), geometry.windows()].map(count);
    let mut size = |each: usize| {
        let all = each.saturating_mul(channels).min(1 << 12);
        draw.choose(&[all, all, all, all, all, all + 1, all.saturating_sub(1)])
    };
    let (len, out) = (size(pixels), size(windows));
    let (counts_padding, with_positions) = (draw.once_in(2), draw.once_in(2));
    let (x, inside) = memory(len);
    let x = &x[inside];
    let mut positions = vec![-1; if with_positions { out } else { 0 }];
    let largest = written(out, |y| {
        max_pool(x, geometry, y, &mut positions);
        Ok(())
    });
    let mean = written(out, |y| {
        avg_pool(x, geometry, counts_padding, y);
        Ok(())
    });
    if mean.is_none() {
        let fits = windows > 0
            && len == pixels.saturating_mul(channels)
            && out == windows.saturating_mul(channels);
        assert!(!fits && largest.is_none(), "{geometry:?} refused, {len} pixels, {out} windows");
        return false;
    }
    // Pixels that each window sees.
    let [_, height, width] = geometry.image();
    let seen = |window| {
        let at = indices(geometry.kernel()).filter_map(move |tap| pixel(&geometry, window, tap));
        at.map(move |[z, y, x]| (z * height + y) * width + x)
    };
    let all: Vec<Vec<usize>> = indices(geometry.windows()).map(|at| seen(at).collect()).collect();
    let channels = out / windows;
    let each = (0..channels).flat_map(|channel| all.iter().map(move |at| (channel * pixels, at)));
    let padded = Geometry::new([0, 1, 2].map(|axis| geometry.axis(axis).with_padding()));
    let counted = if counts_padding { padded.expect("a geometry") } else { geometry };
    let divisors = indices(geometry.windows()).map(|window| {
        let taps = indices(geometry.kernel());
        taps.filter(|&tap| pixel(&counted, window, tap).is_some()).count()
    });
    let mean_of = |((first, at), divisor): ((usize, &Vec<usize>), usize)| {
        let sum = at.iter().fold(0.0, |sum, &pixel| sum + (first + pixel) as f64);
        (sum / divisor as f64) as f32
    };
    let divisors = divisors.collect::<Vec<_>>().repeat(channels);
    let expected: Vec<f32> = each.clone().zip(divisors).map(mean_of).collect();
    let bits =
        |x: &[f32]| x.iter().map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect::<Vec<_>>();
    assert_eq!(bits(&mean.expect("tested above")), bits(&expected), "{geometry:?}");
    // Pixels are their numbers, so that the last one is the largest.
    let last: Option<Vec<usize>> = each.clone().map(|(_, at)| at.iter().copied().max()).collect();
    let expected = last.as_ref().map(|last| {
        let firsts = each.map(|(first, _)| first);
        firsts.zip(last).map(|(first, &at)| (first + at) as f32).collect::<Vec<f32>>()
    });
    if let Some(last) = last.filter(|_| with_positions) {
        assert!(last.iter().zip(&positions).all(|(&a, &b)| a as i64 == b), "{geometry:?}");
    }
    check(&(geometry, channels), largest, expected)
}

/// A transpose, a run of evenly spaced elements, and a sum of slices whose lengths differ.
fn strided(draw: &mut Draw<'_>) -> bool {
    let len = draw.choose(&[40, 100, 12, 0]);
    let (x, inside) = memory(len);
    let x = &x[inside];
    let (offset, size) = (draw.number(&[0, 1, 5, 11]), draw.choose(&[4, 1, 9, 0]));
    let stride = draw.stride(&[1, 2, -1, 0, 3]);
    let found = written(size, |y| {
        copy_strided(x, offset, stride, y);
        Ok(())
    });
    let elements = (0..size).map(|i| at(offset as i128 + i as i128 * stride as i128, len));
    check(&(len, offset, stride, size), found, elements.collect());

    let longer = size + usize::from(draw.once_in(2));
    let sum = written(longer, |y| {
        add(&x[..size.min(len)], &x[..size.min(len)], y);
        Ok(())
    });
    assert_eq!(sum.is_some(), size.min(len) == longer);

    let [rows, cols] = [draw.number(&[3, 1, 5, 0, 8]), draw.number(&[3, 1, 5, 0, 8])];
    let src_row_stride = draw.number(&[cols, cols, cols.wrapping_add(1), 0]);
    let dst_row_stride = draw.number(&[rows, rows, rows, rows.wrapping_add(2), 1]);
    let shape = Transpose { rows, cols, src_offset: offset, src_row_stride, dst_row_stride };
    let out = cols.saturating_sub(1).saturating_mul(dst_row_stride).saturating_add(rows);
    let out = out.min(1 << 12) - usize::from(draw.once_in(12) && out > 0);
    let Some(found) = written(out, |y| {
        transpose(x, y, shape);
        Ok(())
    }) else {
        return false;
    };
    let mut expected: Vec<Option<f32>> = (0..out).map(|i| Some(i as f32)).collect();
    for [_, r, c] in indices([cols.min(1), rows, cols]) {
        let position = offset as i128 + r as i128 * src_row_stride as i128 + c as i128;
        expected[c * dst_row_stride + r] = at(position, len);
    }
    check(&(shape, len, out), Some(found), expected.into_iter().collect())
}
