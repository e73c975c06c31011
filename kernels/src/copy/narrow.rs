//! Transposes of matrices with a side too narrow for vectors: unit by unit.
//!
//! The innermost loop goes along one axis, the longest of a matrix or the one of many small matrices, and stops
//! after so many units that the first-level cache still holds their lines: the loops of the other axes of the
//! matrix are around it, then it goes on, then the outer axes follow.

use core::mem::MaybeUninit;

use super::permute::Nest;
use super::stream::{LINE, stream};
use super::unit::for_unit;

/// Units of a result's row below which vectors would be partly empty, unless its bytes are whole ones.
const NARROW: usize = 8;
const VECTOR: usize = 32;

/// Units of a source's row below which vectors would be mostly empty, where the matrix has at most so many bytes.
const NARROW_SOURCE: usize = 4;
const SMALL: usize = 256;

/// Fewest units for an innermost loop, and those beyond which a longer one gains nothing.
const FEWEST: usize = 16;
const LONG: usize = 64;

/// Bytes that are moved before the innermost loop goes on along its axis.
const TOGETHER: usize = 8 << 10;

/// Lines of the same place in a page that stay in the first-level cache of any machine, and lines of a page.
const WAYS: usize = 4;
const SETS: usize = 64;

/// Units of a matrix that is moved unit by unit although the lines of many push each other out.
const FEW: usize = 4;

#[repr(align(64))]
struct Buffer([MaybeUninit<u8>; TOGETHER]);

/// The loops of a transpose with a narrow side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loops {
    /// The first of the axes that are not outer ones.
    first: usize,
    innermost: usize,
    /// Units of the innermost loop before it goes on, at least [`FEWEST`].
    at_once: usize,
}

impl Nest {
    /// The loops for transposes of `axis` and the last if vectors do not pay: steps are in bytes.
    pub(super) fn narrow(&self, axis: usize, unit: usize) -> Option<Loops> {
        let extent = |axis: usize| self.extent(axis);
        let last = self.rank() - 1;
        let units: usize = (axis..=last).map(extent).product();
        let is_small = units * unit <= SMALL;
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
        // Of what stands apart a line each; as many of them as their sets hold.
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

    /// Copies unit by unit; past the caches, if wanted, where what is moved together is one piece of the result.
    ///
    /// # Safety
    /// Every unit may be read from `src` and written from `dst` on; steps are in bytes.
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
        let is_piece = near.piece(unit) == Some(step) && at_once * bytes <= TOGETHER;
        let whole_lines = at_once - at_once % (LINE >> bytes.trailing_zeros().min(LINE.ilog2()));
        let is_buffered = streams && is_piece && whole_lines.min(len) * bytes >= 2 * LINE;
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
                    // SAFETY: these are units of the nest; or places in the buffer, which holds `at_once * bytes`,
                    // of a piece without gaps, to whose end `step` leads.
                    unsafe {
                        for_unit!(unit, copy => copy_apart((from, stride), (to, step), count, copy));
                    }
                    if !at.step() {
                        break;
                    }
                }
                if is_buffered {
                    // SAFETY: the piece has been written to the buffer, all of it, and is one in the result.
                    unsafe { stream(target.cast_const(), dst, count * bytes) };
                }
            }
            if !place.step() {
                return;
            }
        }
    }
}

/// Copies `count` units, the first of which is at the places given, each so far from the one before.
///
/// # Safety
/// They may be read and written; `copy` copies one.
#[inline(always)]
unsafe fn copy_apart(
    (mut from, stride): (*const u8, isize),
    (mut to, step): (*mut u8, isize),
    count: usize,
    copy: impl Fn(*const u8, *mut u8),
) {
    // Four a turn take half of the time of one.
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

    /// Of `f32`: extents, steps in the source and in the result, in elements; the last axis is adjacent in the
    /// result, `axis` in the source.
    fn narrow(axis: usize, axes: &[(usize, isize, isize)]) -> Option<[usize; 3]> {
        let mut nest = Nest::default();
        axes.iter().for_each(|&(extent, from, to)| nest.push(extent, from, to));
        let loops = nest.in_bytes(4).narrow(axis, 4);
        loops.map(|Loops { first, innermost, at_once }| [first, innermost, at_once])
    }

    #[test]
    fn the_innermost_loop_is_long_and_its_lines_stay() {
        // Three planes to pixels, and pixels to planes, which are rows of many elements.
        assert_eq!(narrow(0, &[(1000, 1, 3), (3, 1000, 1)]), Some([0, 0, 682]));
        assert_eq!(narrow(0, &[(3, 1, 1000), (1000, 3, 1)]), None);
        // Many small matrices; few; ones of a source whose rows are narrow; larger ones.
        assert_eq!(narrow(1, &[(500, 9, 9), (3, 1, 3), (3, 3, 1)]), Some([0, 0, 227]));
        assert_eq!(narrow(1, &[(5, 9, 9), (3, 1, 3), (3, 3, 1)]), None);
        assert_eq!(narrow(1, &[(500, 32, 32), (2, 1, 16), (16, 2, 1)]), Some([0, 0, 64]));
        assert_eq!(narrow(1, &[(500, 64, 64), (8, 1, 8), (8, 8, 1)]), None);
        assert_eq!(narrow(1, &[(500, 200, 200), (100, 1, 2), (2, 100, 1)]), Some([1, 1, 1024]));
        // Apart by whole lines, by a quarter of a page, by half of one and by one.
        assert_eq!(narrow(1, &[(500, 48, 9), (3, 1, 3), (3, 3, 1)]), Some([0, 0, 128]));
        assert_eq!(narrow(1, &[(500, 256, 9), (3, 1, 3), (3, 3, 1)]), Some([0, 0, 16]));
        assert_eq!(narrow(1, &[(500, 512, 9), (3, 1, 3), (3, 3, 1)]), None);
        assert_eq!(narrow(0, &[(1000, 1, 1024), (7, 1000, 1)]), None);
        assert_eq!(narrow(1, &[(500, 1024, 4), (2, 1, 2), (2, 2, 1)]), Some([0, 0, 16]));
    }
}
