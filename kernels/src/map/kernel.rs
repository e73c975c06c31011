//! Element-wise functions as they are called: the compiled kernels and the checks of their
//! arguments.

use super::driver::{Stored, drive};
use super::{Arg, Block, BlockArg, Input, Levels, Rows};
use crate::copy::streaming;
use crate::output::{Output, Place};

/// An element-wise function of `N` arguments: a unit struct of [`math`](crate::math). Sealed.
///
/// ```
/// use swath_kernels::{Function, math::Exp};
///
/// fn apply<F: Function<1>>(x: &[f32]) -> Vec<f32> {
///     let mut y = vec![0.0; x.len()];
///     F::KERNEL.run([x.into()], &mut y);
///     y
/// }
/// assert_eq!(apply::<Exp>(&[0.0]), [1.0]);
/// ```
pub trait Function<const N: usize>: sealed::Sealed {
    /// The function's compiled kernels.
    const KERNEL: &'static Kernel<N>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// An element-wise function of `N` arguments, compiled for `f32` and `f64` on every instruction set;
/// 16-bit floats are computed in `f32` and rounded once.
///
/// ```
/// use swath_kernels::{Arg, Function, math::Sub};
///
/// let mut y = [1.0f32, 2.0, 3.0];
/// Sub::KERNEL.run_in_place([Some(Arg::Scalar(1.0)), None], &mut y);
/// assert_eq!(y, [0.0, -1.0, -2.0]);
/// ```
pub struct Kernel<const N: usize> {
    pub(crate) name: &'static str,
    pub(crate) is_cheap: bool,
    pub(crate) f32: Levels<f32, N>,
    pub(crate) f64: Levels<f64, N>,
}

impl<const N: usize> core::fmt::Debug for Kernel<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Kernel").field(&self.name).finish()
    }
}

/// The static [`Kernel`] of a unit struct; being static, it is compiled with this crate.
macro_rules! kernel {
    ($Kernel:ident, $n:literal, $name:expr, $is_cheap:expr) => {{
        static KERNEL: $crate::Kernel<$n> = $crate::Kernel {
            name: $name,
            is_cheap: $is_cheap,
            f32: $crate::map::f32_levels::<$Kernel, $n>(),
            f64: $crate::map::f64_levels::<$Kernel, $n>(),
        };
        &KERNEL
    }};
}
pub(crate) use kernel;

impl<const N: usize> Kernel<N> {
    /// The function's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if an element costs a few instructions, false if it costs a polynomial or more.
    pub fn is_cheap(&self) -> bool {
        self.is_cheap
    }

    /// Writes `y[i] = f(x[0][i], …)`.
    ///
    /// # Panics
    /// If a slice's length is not that of `y`.
    #[track_caller]
    pub fn run<T: Stored>(&self, x: [Arg<T>; N], y: &mut (impl Output<T> + ?Sized)) {
        let len = y.as_raw().1;
        x.iter().for_each(|x| self.check_len(x, len));
        let (streams, _fence) = streaming(y);
        self.write(
            x.each_ref().map(|x| x.as_row().input()),
            Block::row(len),
            y.as_raw().0,
            streams,
        );
    }

    /// Writes `y[i] = f(x[0][i], …)`, where an argument that is `None` stands for `y` itself.
    ///
    /// # Panics
    /// If a slice's length is not that of `y`.
    #[track_caller]
    pub fn run_in_place<T: Stored>(&self, x: [Option<Arg<T>>; N], y: &mut [T]) {
        x.iter().flatten().for_each(|x| self.check_len(x, y.len()));
        let shape = Block::row(y.len());
        let rows = x.each_ref().map(|x| x.as_ref().map(|x| x.as_row()));
        self.run_block_in_place(rows, shape, &mut Place::cached(y));
    }

    /// Writes `y[r · stride + c] = f(x[0][r, c], …)` for all rows and columns, and leaves the
    /// elements between rows alone.
    ///
    /// ```
    /// use swath_kernels::{Block, BlockArg, Function, math::Sub};
    ///
    /// let (a, b) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 10.0]);
    /// let mut y = [0.0; 6];
    /// let a = BlockArg { data: &a, start: 0, stride: 3, is_value: false };
    /// let column = BlockArg { data: &b, start: 0, stride: 1, is_value: true };
    /// Sub::KERNEL.run_block([a, column], Block { rows: 2, cols: 3, stride: 3 }, &mut y);
    /// assert_eq!(y, [0.0, 1.0, 2.0, -6.0, -5.0, -4.0]);
    /// ```
    ///
    /// # Panics
    /// If a row of an argument or of the result exceeds its slice, or if rows of the result
    /// overlap.
    #[track_caller]
    pub fn run_block<T: Stored>(
        &self,
        x: [BlockArg<T>; N],
        shape: Block,
        y: &mut (impl Output<T> + ?Sized),
    ) {
        let shape = shape.checked(self.name, y.as_raw().1);
        x.iter().for_each(|x| x.check(self.name, shape));
        let (streams, _fence) = streaming(y);
        self.write(x.map(|x| x.input()), shape, y.as_raw().0, streams);
    }

    /// [`run_block`](Kernel::run_block), where an argument that is `None` stands for `y` itself.
    ///
    /// # Panics
    /// In the cases of [`run_block`](Kernel::run_block).
    #[track_caller]
    pub fn run_block_in_place<T: Stored>(
        &self,
        x: [Option<BlockArg<T>>; N],
        shape: Block,
        y: &mut Place<T>,
    ) {
        let shape = shape.checked(self.name, y.len());
        x.iter().flatten().for_each(|x| x.check(self.name, shape));
        // If the result is also an argument, its cache lines will be loaded anyway.
        let is_held = x.iter().any(Option::is_none);
        let (streams, _fence) = if is_held { (false, None) } else { streaming(y) };
        let y = y.as_mut_ptr();
        // No stride exceeds the slice, unless there is only one row.
        let held = Input { first: y, stride: shape.stride as isize, is_value: false };
        self.write(x.map(|x| x.map_or(held, |x| x.input())), shape, y, streams);
    }

    /// Runs the kernel on checked arguments.
    #[inline]
    fn write<T: Stored>(
        &self,
        inputs: [Input<T>; N],
        Block { rows, cols: len, stride: y_stride }: Block,
        y: *mut T,
        streams: bool,
    ) {
        // SAFETY: the callers have checked that the rows of arguments and result are inside their
        // slices. The result is borrowed exclusively, so only an argument that stands for it
        // overlaps it.
        unsafe { drive(self, Rows { inputs, y, y_stride, rows, len }, streams) };
    }

    #[inline]
    #[track_caller]
    fn check_len<T>(&self, x: &Arg<T>, len: usize) {
        match x {
            Arg::Slice(x) if x.len() != len => lengths_differ(self.name, x.len(), len),
            _ => {}
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
pub(super) fn lengths_differ(name: &str, input: usize, output: usize) -> ! {
    panic!("{name}: an input has {input} elements, the output {output}");
}
