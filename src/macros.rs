//! [`tensor!`](crate::tensor!) and [`s!`](crate::s!), and the functions behind them.

/// Implementation details of the macros.
#[doc(hidden)]
pub mod detail {
    use half::{bf16, f16};

    use crate::dtype::Element;
    use crate::shape::{MAX_RANK, Shape};

    /// A literal that `tensor!` accepts as an element of type `T`.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not a number that a tensor of `{T}` holds",
        label = "not a `{T}`",
        note = "choose the element type with `tensor![i64; 1, 2]`; rows must be equally long"
    )]
    pub trait Literal<T> {
        fn value(self) -> T;
    }

    // Integers and booleans only accept their own type, so that the literal's type is inferred and no
    // value is silently truncated. Floats accept any number.
    macro_rules! literals {
        ($($own:ty)*; $($float:ty)*) => {
            $(impl Literal<$own> for $own {
                fn value(self) -> $own {
                    self
                }
            })*
            $(literals!(@float $float: f32 f64 f16 bf16, from_f64 to_f64);
              literals!(@float $float: i64 i32 u32 u8 i8 i16 u16 u64, from_scalar to_scalar);
              impl Literal<$float> for usize {
                  fn value(self) -> $float {
                      <$float as Element>::from_f64(self as f64)
                  }
              })*
        };
        (@float $float:ty: $($t:ty)*, $from:ident $to:ident) => {
            $(impl Literal<$float> for $t {
                fn value(self) -> $float {
                    <$float as Element>::$from(<$t as Element>::$to(self))
                }
            })*
        };
    }
    literals!(i64 i32 u32 u8 i8 i16 u16 u64 bool; f32 f64 f16 bf16);

    pub fn literal<T, L: Literal<T>>(literal: L) -> T {
        literal.value()
    }

    /// Arrays of one shape, nested to any depth.
    pub trait Nested {
        type Item: Element;
        const RANK: usize;
        fn push_dims(dims: &mut Vec<usize>);
        fn push_items(self, items: &mut Vec<Self::Item>);
    }

    macro_rules! leaves {
        ($($t:ty)*) => {$(
            impl Nested for $t {
                type Item = $t;
                const RANK: usize = 0;
                fn push_dims(_: &mut Vec<usize>) {}
                fn push_items(self, items: &mut Vec<$t>) {
                    items.push(self);
                }
            }
        )*};
    }
    leaves!(f16 bf16 f32 f64 i64 i32 u32 u8 i8 i16 u16 u64 bool);

    impl<N: Nested, const LEN: usize> Nested for [N; LEN] {
        type Item = N::Item;
        const RANK: usize = N::RANK + 1;
        fn push_dims(dims: &mut Vec<usize>) {
            dims.push(LEN);
            N::push_dims(dims);
        }
        fn push_items(self, items: &mut Vec<N::Item>) {
            for row in self {
                row.push_items(items);
            }
        }
    }

    /// Returns the elements in row-major order and their shape. More than [`MAX_RANK`] axes fail to compile.
    pub fn flatten<N: Nested>(nested: N) -> (Vec<N::Item>, Shape) {
        const { assert!(N::RANK <= MAX_RANK, "tensor!: too many axes, at most 8 are supported") };
        let mut dims = Vec::new();
        N::push_dims(&mut dims);
        let mut items = Vec::with_capacity(dims.iter().product());
        nested.push_items(&mut items);
        (items, Shape::new(dims))
    }
}

/// Makes a tensor on the CPU from values in nested brackets, up to 8 levels deep.
///
/// The elements are `f32` and may be written as integers; `tensor![i64; …]` chooses another type.
/// An element may be any expression. Rows of different lengths fail to compile.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![[1.0, 2.0], [3, -4]];
/// assert_eq!((x.dtype(), x.shape()), (DType::F32, &Shape::new([2, 2])));
/// let n = tensor![i64; 1, 2];
/// assert_eq!(n.to_vec::<i64>()?, [1, 2]);
/// let mask = tensor![bool; [true], [1 > 2]];
/// assert_eq!(mask.to_vec::<bool>()?, [true, false]);
/// # Ok::<(), Error>(())
/// ```
///
/// ```compile_fail
/// let ragged = swath::tensor![[1.0, 2.0], [3.0]];
/// ```
#[macro_export]
macro_rules! tensor {
    (f16; $($nested:tt)*) => { $crate::__tensor!($crate::f16; $($nested)*) };
    (bf16; $($nested:tt)*) => { $crate::__tensor!($crate::bf16; $($nested)*) };
    ($t:ident; $($nested:tt)*) => { $crate::__tensor!($t; $($nested)*) };
    ($($nested:tt)*) => { $crate::__tensor!(f32; $($nested)*) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tensor {
    ($t:ty; $($nested:tt)*) => {{
        let (items, shape) = $crate::macros::detail::flatten($crate::__nested!($t; $($nested)*));
        $crate::Tensor::<$crate::CpuBackend>::from_vec(items, shape)
            .expect("the shape is that of the nested arrays")
    }};
}

/// The nested arrays of `tensor!`, with every element converted to the element type.
#[doc(hidden)]
#[macro_export]
macro_rules! __nested {
    ($t:ty; $([$($row:tt)*]),+ $(,)?) => { [$($crate::__nested!($t; $($row)*)),+] };
    ($t:ty; $($element:expr),* $(,)?) => {{
        let row: [$t; _] = [$($crate::macros::detail::literal::<$t, _>($element)),*];
        row
    }};
}

/// Selection of a slice: an index or a range per axis, with an optional `; step`. As in NumPy, negative
/// bounds count from the end, bounds beyond the axis are clamped to it, an index removes its axis, and
/// axes without an item are kept whole.
///
/// ```
/// use swath::{Layout, Shape, s};
/// let layout = Layout::contiguous(Shape::new([4, 5, 6]));
/// let view = layout.slice("slice", &s![1..3, .., ..;2])?;
/// assert_eq!(view.shape(), &Shape::new([2, 5, 3]));
/// let view = layout.slice("slice", &s![-1, 2..;-1])?;
/// assert_eq!(view.shape(), &Shape::new([3, 6]));
/// # Ok::<(), swath::Error>(())
/// ```
#[macro_export]
macro_rules! s {
    ($($item:expr $(; $step:expr)?),* $(,)?) => {{
        let items: [$crate::SliceItem; _] =
            [$($crate::SliceItem::from($item)$(.step_by($step))?),*];
        items
    }};
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::detail::flatten;
    use crate::layout::SliceItem;

    #[test]
    fn integers_and_floats_mix() {
        let x = 0.5f64;
        let third = |n: i64| n as f32 / 3.0;
        let (items, shape) = flatten(__nested![f32; [1.0, 2, -3], [x, third(1), -x * 2.0,],]);
        assert_eq!(items, [1.0, 2.0, -3.0, 0.5, 1.0 / 3.0, -1.0]);
        assert_eq!(shape, [2, 3]);
    }

    #[test]
    fn the_element_type_can_be_chosen() {
        assert_eq!(flatten(__nested![i64; 3_000_000_000, -1]).0, [3_000_000_000i64, -1]);
        assert_eq!(flatten(__nested![f64; [0.1], [2]]).0, [0.1f64, 2.0]);
        assert_eq!(flatten(__nested![bool; true, 1 > 2]).0, [true, false]);
        assert_eq!(flatten(__nested![u8; 255]).0, [255u8]);
        assert_eq!(flatten(__nested![f16; 1.5, 2]).0, [f16::from_f32(1.5), f16::from_f32(2.0)]);
    }

    #[test]
    fn arrays_nest_up_to_eight_levels() {
        let (items, shape) = flatten(__nested![i64; [[[[[[[1], [2]]]]]]], [[[[[[[3], [4]]]]]]]]);
        assert_eq!(items, [1, 2, 3, 4]);
        assert_eq!(shape, [2, 1, 1, 1, 1, 1, 2, 1]);
        assert_eq!(flatten(__nested![f32;]).1, [0]);
        assert_eq!(flatten(__nested![f32; [], []]).1, [2, 0]);
        assert_eq!(flatten(__nested![f32; [1, 2][1], [3].len()]).0, [2.0, 1.0]);
    }

    #[test]
    fn long_lists_need_no_recursion() {
        let (items, _) = flatten(__nested![i64;
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ]);
        assert_eq!(items.len(), 145);
    }

    #[test]
    fn items_of_slices_are_indices_and_ranges() {
        let range = |start, end, step| SliceItem::Range { start, end, step };
        let n = 3usize;
        let items = s![1..n, .., ..;2, -1, 2..;-1, ..-1];
        let expected = [
            range(Some(1), Some(3), 1),
            range(None, None, 1),
            range(None, None, 2),
            SliceItem::Index(-1),
            range(Some(2), None, -1),
            range(None, Some(-1), 1),
        ];
        assert_eq!(items, expected);
        assert!(s![].is_empty());
    }
}
