//! Transposes of matrices with a side too narrow for vectors, unit by unit.
//!
//! The innermost loop runs along the longest axis of the matrix, or along the axis of many small
//! matrices. It pauses after so many units that the L1 cache still holds their lines: the loops
//! over the matrix's other axes are around it, then it continues, then the outer axes follow.

use core::mem::MaybeUninit;

use super::permute::Nest;
use super::stream::{LINE, stream};
use super::unit::for_unit;

/// Units in a row of the result below which vectors would be partly empty, unless its bytes fill
/// whole vectors.
const NARROW: usize = 8;
const VECTOR: usize = 32;

/// Units in a row of the source below which vectors would be mostly empty, for matrices of at most
/// `SMALL` bytes.
const NARROW_SOURCE: usize = 4;
const SMALL: usize = 256;

/// The fewest units for an innermost loop, and the number beyond which a longer loop gains nothing.
const FEWEST: usize = 16;
const LONG: usize = 64;

/// Bytes moved before the innermost loop continues along its axis.
const TOGETHER: usize = 8 << 10;

/// Cache lines at one offset in their pages that stay in the L1 cache of any machine, and lines per
/// page.
const WAYS: usize = 4;
const SETS: usize = 64;

/// Units of a matrix that is moved unit by unit even if the lines of many evict each other.
const FEW: usize = 4;

#[repr(align(64))]
struct Buffer([MaybeUninit<u8>; TOGETHER]);

/// The loops of a transpose with a narrow side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loops {
    /// The first axis that is not an outer one.
    first: usize,
    innermost: usize,
    /// Units of the innermost loop before it pauses, at least [`FEWEST`].
    at_once: usize,
}

impl Nest {
    /// The loops for transposes of `axis` and the last axis, if vectors do not pay; steps are in
    /// bytes.
    pub(super) fn narrow(&self, axis: usize, unit: usize) -> Option<Loops> {
        let extent = |axis: usize| self.extent(axis);
        let last = self.rank() - 1;
        let units: usize = (axis..=last).map(extent).product();
        let is_small = units.saturating_mul(unit) <= SMALL;
        let is_narrow = extent(last) < NARROW && !(extent(last) * unit).is_multiple_of(VECTOR);
        let is_narrow_source = is_small && extent(axis) < NARROW_SOURCE;
        if !(is_narrow || is_narrow_source) {
            return None;
        }
        let longest = (axis..=last).rev().max_by_key(|&axis| extent(axis))?;
        let matrices = axis.checked_sub(1).filter(|&axis| extent(axis) >= FEWEST);
        let (first, innermost) = match matrices {
            Some(axis) if is_small && extent(longest) < LONG.min(extent(axis)) => (axis, axis),
            _ if extent(longest) >= FEWEST => (axis, longest),
            _ => return None,
        };
        // Units that are a line or more apart take a line each; limit them to the number that their
        // sets hold.
        let [from, to] = self.steps(innermost).map(isize::unsigned_abs);
        let fits = |step: usize| match step {
            ..LINE => usize::MAX,
            _ => WAYS * (SETS >> (step / LINE).trailing_zeros().min(SETS.ilog2())),
        };
        let fits = fits(from).min(fits(to));
        if fits < FEWEST && units > FEW {
            return None;
        }
        let others = units / if first == axis { extent(innermost) } else { 1 };
        let bytes = if from.max(to) < LINE { others * unit } else { (others * unit).max(LINE) };
        Some(Loops { first, innermost, at_once: (TOGETHER / bytes).min(fits).max(FEWEST) })
    }

    /// Copies unit by unit; with `streams`, by non-temporal stores if the units of a pause are one
    /// piece of the result.
    ///
    /// # Safety
    /// Every unit is valid for reads from `src` and writes from `dst`; steps are in bytes.
    pub(super) unsafe fn copy_narrow(
        mut self,
        Loops { first, innermost, at_once }: Loops,
        src: *const u8,
        dst: *mut u8,
        unit: usize,
        streams: bool,
    ) {
        let (len, stride, step) = self.remove(innermost);
        let (mut outer, mut near) = (Nest::default(), Nest::default());
        for axis in 0..self.rank() {
            let nest = if axis < first { &mut outer } else { &mut near };
            nest.push_axis_of(&self, axis);
        }
        let bytes = unit * (0..near.rank()).map(|axis| near.extent(axis)).product::<usize>();
        let is_piece = near.piece(unit) == Some(step) && at_once.saturating_mul(bytes) <= TOGETHER;
        let whole_lines = at_once - at_once % (LINE >> bytes.trailing_zeros().min(LINE.ilog2()));
        let is_buffered =
            streams && is_piece && whole_lines.min(len).saturating_mul(bytes) >= 2 * LINE;
        let at_once = if is_buffered { whole_lines } else { at_once };
        let mut buffer = Buffer([const { MaybeUninit::uninit() }; TOGETHER]);
        let mut place = outer.walk();
        loop {
            for start in (0..len).step_by(at_once) {
                let count = at_once.min(len - start);
                let start = start as isize;
                let src = src.wrapping_offset(place.from + start * stride);
                let dst = dst.wrapping_offset(place.to + start * step);
                let target = if is_buffered { buffer.0.as_mut_ptr().cast() } else { dst };
                let mut at = near.walk();
                loop {
                    let from = src.wrapping_offset(at.from);
                    let to = target.wrapping_offset(at.to);
                    // SAFETY: these are units of the nest, or of the buffer, which holds the
                    // `at_once * bytes` of a piece without gaps, of length `step`.
                    unsafe {
                        for_unit!(unit, copy => copy_apart((from, stride), (to, step), count, copy));
                    }
                    if !at.step() {
                        break;
                    }
                }
                if is_buffered {
                    // SAFETY: the whole piece was written to the buffer, and is one in the result.
                    unsafe { stream(target.cast_const(), dst, count * bytes) };
                }
            }
            if !place.step() {
                return;
            }
        }
    }
}

/// Copies `count` units from the addresses given, `stride` and `step` bytes apart.
///
/// # Safety
/// The units are valid for reads and writes; `copy` copies one.
#[inline(always)]
unsafe fn copy_apart(
    (mut from, stride): (*const u8, isize),
    (mut to, step): (*mut u8, isize),
    count: usize,
    copy: impl Fn(*const u8, *mut u8),
) {
    // Four per iteration take half the time of one.
    for _ in 0..count / 4 {
        for i in 0..4 {
            copy(from.wrapping_offset(i * stride), to.wrapping_offset(i * step));
        }
        from = from.wrapping_offset(4 * stride);
        to = to.wrapping_offset(4 * step);
    }
    for i in 0..(count % 4) as isize {
        copy(from.wrapping_offset(i * stride), to.wrapping_offset(i * step));
    }
}

#[cfg(test)]
mod tests {
    use super::{Loops, Nest};

    /// The loops for `f32`, from extents and steps in the source and in the result, in elements.
    /// The last axis is contiguous in the result, `axis` in the source.
    fn narrow(axis: usize, axes: &[(usize, isize, isize)]) -> Option<[usize; 3]> {
        let mut nest = Nest::default();
        axes.iter().for_each(|&(extent, from, to)| nest.push(extent, from, to));
        let loops = nest.in_bytes(4).narrow(axis, 4);
        loops.map(|Loops { first, innermost, at_once }| [first, innermost, at_once])
    }

    #[test]
    fn narrow_loops_are_long_and_fit_l1() {
        // Three planes to pixels, and pixels to planes, whose rows have many elements.
        assert_eq!(narrow(0, &[(1000, 1, 3), (3, 1000, 1)]), Some([0, 0, 682]));
        assert_eq!(narrow(0, &[(3, 1, 1000), (1000, 3, 1)]), None);
        // Small matrices: many; few; with a narrow row of the source; larger ones.
        assert_eq!(narrow(1, &[(500, 9, 9), (3, 1, 3), (3, 3, 1)]), Some([0, 0, 227]));
        assert_eq!(narrow(1, &[(5, 9, 9), (3, 1, 3), (3, 3, 1)]), None);
        assert_eq!(narrow(1, &[(500, 32, 32), (2, 1, 16), (16, 2, 1)]), Some([0, 0, 64]));
        assert_eq!(narrow(1, &[(500, 64, 64), (8, 1, 8), (8, 8, 1)]), None);
        assert_eq!(narrow(1, &[(500, 200, 200), (100, 1, 2), (2, 100, 1)]), Some([1, 1, 1024]));
        // Whole lines apart, then a quarter of a page, half a page, and a page.
        assert_eq!(narrow(1, &[(500, 48, 9), (3, 1, 3), (3, 3, 1)]), Some([0, 0, 128]));
        assert_eq!(narrow(1, &[(500, 256, 9), (3, 1, 3), (3, 3, 1)]), Some([0, 0, 16]));
        assert_eq!(narrow(1, &[(500, 512, 9), (3, 1, 3), (3, 3, 1)]), None);
        assert_eq!(narrow(0, &[(1000, 1, 1024), (7, 1000, 1)]), None);
        assert_eq!(narrow(1, &[(500, 1024, 4), (2, 1, 2), (2, 2, 1)]), Some([0, 0, 16]));
    }
}
