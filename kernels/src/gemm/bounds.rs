//! Bounds of strided views.

/// True if every element of the view is inside `len` elements.
///
/// A position is linear in each index, so its extremes are at the corners.
#[inline]
pub(super) fn is_inside<const N: usize>(
    len: usize,
    offset: usize,
    extents: [usize; N],
    strides: [isize; N],
) -> bool {
    if extents.contains(&0) {
        return true;
    }
    let extremes = || -> Option<(isize, isize)> {
        let (mut low, mut high) = (isize::try_from(offset).ok()?, isize::try_from(offset).ok()?);
        for (extent, stride) in extents.into_iter().zip(strides) {
            let reach = isize::try_from(extent - 1).ok()?.checked_mul(stride)?;
            if reach < 0 {
                low = low.checked_add(reach)?;
            } else {
                high = high.checked_add(reach)?;
            }
        }
        Some((low, high))
    };
    matches!(extremes(), Some((low, high)) if low >= 0 && high.unsigned_abs() < len)
}
