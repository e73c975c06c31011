//! Addition of rows to rows that an index names, in the index's order: gradients of embeddings and of
//! selections.

use crate::dispatch::{Task, run};
use crate::rows::same_len;
use crate::simd::Simd;

/// Elements that are added up: `f32`, `f64`, `i64` and `u8`. Sealed.
pub trait Addend: Copy + Send + Sync + sealed::Sealed {
    /// The sum: of floats rounded, of integers wrapping.
    fn plus(self, other: Self) -> Self;
    #[doc(hidden)]
    fn add_rows(x: &[Self], index: &[i64], cols: usize, first: usize, y: &mut [Self]);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! impl_addend {
    ($($t:ident: |$x:ident, $y:ident| $sum:expr;)*) => {$(
        impl sealed::Sealed for $t {}

        impl Addend for $t {
            #[inline(always)]
            fn plus(self, $y: $t) -> $t {
                let $x = self;
                $sum
            }
            fn add_rows(x: &[$t], index: &[i64], cols: usize, first: usize, y: &mut [$t]) {
                run(AddRows { x, index, cols, first, y });
            }
        }
    )*};
}
impl_addend! {
    f32: |x, y| x + y;
    f64: |x, y| x + y;
    i64: |x, y| x.wrapping_add(y);
    u8: |x, y| x.wrapping_add(y);
}

/// `y[index[i]] += x[i]` for each row `i` of `x` `[index.len(), cols]`, to rows of `y` `[rows, cols]`.
///
/// Rows are added one after another, in order, and each sum is rounded: a row of `y` that is named many
/// times has the same bits whatever the instruction set.
///
/// ```
/// let mut y = [0.5f32, 0.0, 1.0, 1.0];
/// swath_kernels::scatter_add_rows(&[1.0, 2.0, 3.0, 4.0], &[0, 0], 2, &mut y);
/// assert_eq!(y, [4.5, 6.0, 1.0, 1.0]);
/// ```
///
/// # Panics
/// Before anything is added, if an index is not in `0..rows`, `y` is no multiple of `cols` or the length of
/// `x` is not `index.len() · cols`.
#[track_caller]
pub fn scatter_add_rows<E: Addend>(x: &[E], index: &[i64], cols: usize, y: &mut [E]) {
    let name = "scatter_add_rows";
    check(name, x.len(), index.len(), cols, y.len());
    // Rows of nothing may be anywhere.
    let Some(rows) = y.len().checked_div(cols) else { return };
    let is_row = |i: i64| u64::try_from(i).is_ok_and(|i| i < rows as u64);
    if let Some(i) = index.iter().find(|&&i| !is_row(i)) {
        panic!("{name}: index {i} of {rows} rows");
    }
    E::add_rows(x, index, cols, 0, y);
}

/// What [`scatter_add_rows`] adds to the rows of the whole from `first` on that `y` holds; rows of `x` for
/// others are passed over. So threads share the rows that are added to: each has all of `x` and its own `y`,
/// and every sum is taken in the same order.
///
/// ```
/// let mut y = [0.5f32, 0.0];
/// swath_kernels::scatter_add_rows_from(&[1.0, 2.0, 3.0, 4.0], &[7, 2], 2, 7, &mut y);
/// assert_eq!(y, [1.5, 2.0]);
/// ```
///
/// # Panics
/// If `y` is no multiple of `cols` or the length of `x` is not `index.len() · cols`.
#[track_caller]
pub fn scatter_add_rows_from<E: Addend>(
    x: &[E],
    index: &[i64],
    cols: usize,
    first: usize,
    y: &mut [E],
) {
    check("scatter_add_rows_from", x.len(), index.len(), cols, y.len());
    E::add_rows(x, index, cols, first, y);
}

#[track_caller]
fn check(name: &str, x: usize, indices: usize, cols: usize, y: usize) {
    let Some(wanted) = indices.checked_mul(cols) else {
        panic!("{name}: {indices} rows of {cols} elements");
    };
    same_len(name, x, wanted);
    assert!(y == 0 || y.is_multiple_of(cols), "{name}: {y} elements in rows of {cols}");
}

struct AddRows<'a, E> {
    x: &'a [E],
    index: &'a [i64],
    cols: usize,
    first: usize,
    y: &'a mut [E],
}

/// Indices that are looked at before their rows are added: a place among them fits into a byte.
const CHUNK: usize = 256;

impl<E: Addend> Task for AddRows<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let AddRows { x, index, cols, first, y } = self;
        if y.is_empty() {
            return;
        }
        let part = Part { first: first as i64, rows: (y.len() / cols) as u64, cols };
        for (index, x) in index.chunks(CHUNK).zip(x.chunks(CHUNK * cols)) {
            // Whether a row is another part's cannot be foretold: no branch depends on it alone.
            let outside = index.iter().map(|&i| usize::from(!part.has(i))).sum::<usize>();
            if outside == 0 {
                (0..index.len()).for_each(|i| part.add(i, index, x, y));
            } else if outside < index.len() {
                let (mut own, mut count) = ([0u8; CHUNK], 0);
                for (i, &to) in index.iter().enumerate() {
                    own[count] = i as u8;
                    count += usize::from(part.has(to));
                }
                own[..count].iter().for_each(|&i| part.add(usize::from(i), index, x, y));
            }
        }
    }
}

/// Rows of the whole.
struct Part {
    first: i64,
    rows: u64,
    cols: usize,
}

impl Part {
    /// Where a row of the whole lies; one before the part wraps to beyond any length.
    #[inline(always)]
    fn row(&self, index: i64) -> u64 {
        index.wrapping_sub(self.first) as u64
    }

    #[inline(always)]
    fn has(&self, index: i64) -> bool {
        self.row(index) < self.rows
    }

    /// Adds row `i` of `x`, whose target is the part's.
    #[inline(always)]
    fn add<E: Addend>(&self, i: usize, index: &[i64], x: &[E], y: &mut [E]) {
        let (to, cols) = (self.row(index[i]) as usize, self.cols);
        if cols == 1 {
            y[to] = y[to].plus(x[i]);
            return;
        }
        let (x, y) = (&x[i * cols..][..cols], &mut y[to * cols..][..cols]);
        for (y, &x) in y.iter_mut().zip(x) {
            *y = y.plus(x);
        }
    }
}
