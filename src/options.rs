//! Methods that set the fields of options.

/// A number for each of N axes: one for all, or an array.
///
/// ```
/// use swath::{ConvOptions, PoolOptions};
/// let options = ConvOptions::<2>::new().stride(2).dilation([1, 3]);
/// assert_eq!((options.stride, options.dilation), ([2, 2], [1, 3]));
/// assert_eq!(PoolOptions::<3>::new(2).kernel, [2, 2, 2]);
/// ```
pub trait PerAxis<const N: usize>: sealed::Sealed {
    /// The number for each axis.
    fn per_axis(self) -> [usize; N];
}

impl<const N: usize> PerAxis<N> for usize {
    fn per_axis(self) -> [usize; N] {
        [self; N]
    }
}

impl<const N: usize> PerAxis<N> for [usize; N] {
    fn per_axis(self) -> [usize; N] {
        self
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for usize {}
    impl<const N: usize> Sealed for [usize; N] {}
}

/// For each row `field: argument;` a method that sets the field; after a comma, the method that converts the argument.
macro_rules! setters {
    ($([$($generics:tt)*] $Options:ty {
        $(@$new:ident;)?
        $($field:ident: $Argument:ty $(, $convert:ident)?;)*
    })*) => {$(
        impl<$($generics)*> $Options {
            $(
                /// Creates the default options.
                pub fn $new() -> Self {
                    Self::default()
                }
            )?

            $(
                #[doc = concat!("Sets `", stringify!($field), "`.")]
                #[must_use]
                pub fn $field(mut self, $field: $Argument) -> Self {
                    self.$field = $field$(.$convert())?;
                    self
                }
            )*
        }
    )*};
}
pub(crate) use setters;
