//! Transposes of matrices with a side too narrow for vectors: unit by unit, many along the longest axis that
//! is near.
//!
//! ```text
//! outer axes | axis of matrices, if they are small | axes of a matrix
//!              some indices of the longest of these in the innermost loop, the others around it
//! ```

use core::mem::MaybeUninit;

use super::permute::Nest;
use super::stream::stream;
use super::unit::for_unit;

/// Units of a row below which vectors would be partly empty, unless its bytes are whole ones.
const NARROW: usize = 8;
const VECTOR: usize = 32;

/// Bytes of a matrix up to which it is too small for vectors where its source's rows are narrow, and its units
/// may be moved along the axis of many: larger ones are too far apart for the first-level cache's sets.
const SMALL: usize = 256;

/// Fewest indices for an innermost loop, and those beyond which a longer one gains nothing.
const FEWEST: usize = 16;
const LONG: usize = 64;

/// Bytes that are moved before the innermost loop goes on along its axis: a part of the first-level cache, where
/// lines stay until all of their units have been moved.
const TOGETHER: usize = 8 << 10;

#[repr(align(64))]
struct Buffer([MaybeUninit<u8>; TOGETHER]);

impl Nest {
    /// Where a transpose of `axis` and the last has a side too narrow for vectors: the first of the axes that
    /// are near, and the innermost loop's.
    pub(super) fn narrow(&self, axis: usize, unit: usize) -> Option<[usize; 2]> {
        let extent = |axis: usize| self.extent(axis);
        let last = self.rank() - 1;
        let units: usize = (axis..=last).map(extent).product();
        let is_small = units * unit <= SMALL;
        let is_narrow = extent(last) < NARROW && !(extent(last) * unit).is_multiple_of(VECTOR);
        if !is_narrow && (extent(axis) >= NARROW || !is_small) {
            return None;
        }
        let longest = (axis..=last).rev().max_by_key(|&axis| extent(axis))?;
        let matrices = axis.checked_sub(1).filter(|&axis| extent(axis) >= FEWEST);
        match matrices {
            Some(axis) if is_small && extent(longest) < LONG.min(extent(axis)) => Some([axis; 2]),
            _ => (extent(longest) >= FEWEST).then_some([axis, longest]),
        }
    }

    /// Copies unit by unit. Steps are in bytes.
    ///
    /// # Safety
    /// Every unit may be read from `src` and written from `dst` on.
    pub(super) unsafe fn copy_narrow(
        mut self,
        [first, innermost]: [usize; 2],
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
        let units: usize = (0..near.rank()).map(|axis| near.extent(axis)).product();
        let at_once = (TOGETHER / (units * unit)).max(FEWEST);
        // What is moved together is a piece of the result, which goes there past the caches as whole lines.
        let is_piece = near.piece(unit) == Some(step) && at_once * units * unit <= TOGETHER;
        let is_buffered = streams && is_piece;
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
                    // SAFETY: these are units of the nest.
                    unsafe {
                        for_unit!(unit, copy => copy_run((from, stride), (to, step), count, copy));
                    }
                    if !at.step() {
                        break;
                    }
                }
                if is_buffered {
                    // SAFETY: the piece has been written to the buffer, all of it, and is one in the result.
                    unsafe { stream(target.cast_const(), dst, count * units * unit) };
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
unsafe fn copy_run(
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
