//! Inputs: a small generator, shapes, layouts, and random values with special ones among them.

use crate::testing::suite::ulp::{limits, unit_roundoff};
use half::{bf16, f16};
use swath::{Backend, DType, Element, HostData, Layout, Scalar, Shape, SliceItem, TensorData};

/// SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next_u64() >> 11) as f64 * 2f64.powi(-53)
    }
}

pub const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

pub const SHAPES: [&[usize]; 10] =
    [&[], &[0], &[1], &[7], &[3, 0, 2], &[3, 5], &[33, 65], &[2, 3, 4, 5], &[1030], &[70, 129]];

/// Layout of the elements in the storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrangement {
    Contiguous,
    /// Axes in reverse order.
    Permuted,
    /// The first axis has stride 0.
    RepeatedRows,
    /// The last axis has stride 0.
    RepeatedColumns,
    /// A window with a border of one element on both sides.
    Narrowed,
    /// Every second element along every axis, starting at the second.
    Stepped,
    /// All axes reversed.
    Flipped,
    /// Permuted axes of a window, the first of them reversed.
    Mixed,
}

use Arrangement::*;

impl Arrangement {
    pub const ALL: [Arrangement; 8] =
        [Contiguous, Permuted, RepeatedRows, RepeatedColumns, Narrowed, Stepped, Flipped, Mixed];

    /// Shape of the tensor that [`Arrangement::view`] makes a view of.
    fn base(self, shape: &Shape) -> Shape {
        let mut dims = shape.dims().to_vec();
        match self {
            Contiguous | Flipped => {}
            Permuted => dims.reverse(),
            RepeatedRows => dims.iter_mut().take(1).for_each(|dim| *dim = 1),
            RepeatedColumns => dims.iter_mut().rev().take(1).for_each(|dim| *dim = 1),
            Narrowed => dims.iter_mut().for_each(|dim| *dim += 2),
            Stepped => dims.iter_mut().for_each(|dim| *dim *= 2),
            Mixed => {
                dims.reverse();
                dims.iter_mut().for_each(|dim| *dim += 2);
            }
        }
        dims.into()
    }

    fn view(self, base: &Layout, shape: &Shape) -> Layout {
        let rank = shape.ndim();
        let backwards: Vec<usize> = (0..rank).rev().collect();
        let window = |shape: &Shape| {
            (0..rank).fold(*base, |layout, i| layout.narrow("test", i, 1, shape.dim(i)).unwrap())
        };
        match self {
            Contiguous => *base,
            Permuted => base.permute("test", &backwards).unwrap(),
            RepeatedRows | RepeatedColumns => base.broadcast_to("test", shape).unwrap(),
            Narrowed => window(shape),
            Stepped => {
                let every_second = SliceItem::Range { start: Some(1), end: None, step: 2 };
                base.slice("test", &vec![every_second; rank]).unwrap()
            }
            Flipped => (0..rank).fold(*base, |layout, i| layout.flip(i)),
            Mixed => {
                let turned = window(&shape.dims().iter().rev().copied().collect());
                let flipped = if rank > 0 { turned.flip(0) } else { turned };
                flipped.permute("test", &backwards).unwrap()
            }
        }
    }
}

/// Host values, and the layout of the tensor made of them.
pub struct Input {
    pub shape: Shape,
    pub arrangement: Arrangement,
    base: Shape,
    data: HostData,
}

impl Input {
    pub fn new(
        dtype: DType,
        shape: impl Into<Shape>,
        arrangement: Arrangement,
        mut value: impl FnMut() -> Scalar,
    ) -> Input {
        let shape = shape.into();
        let base = arrangement.base(&shape);
        let data = host(dtype, (0..base.numel()).map(|_| value()));
        Input { shape, arrangement, base, data }
    }

    /// A contiguous tensor of these values.
    pub fn of(dtype: DType, shape: impl Into<Shape>, values: &[Scalar]) -> Input {
        let mut values = values.iter().copied();
        Input::new(dtype, shape, Contiguous, || values.next().expect("as many as elements"))
    }

    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    pub fn on<B: Backend>(&self) -> B::Tensor {
        let base = B::from_host(self.data.clone(), self.base).unwrap();
        if self.arrangement == Contiguous {
            return base;
        }
        B::view(&base, self.arrangement.view(base.layout(), &self.shape)).unwrap()
    }
}

/// Values converted to a dtype.
pub fn host(dtype: DType, values: impl Iterator<Item = Scalar>) -> HostData {
    fn typed<T: Element>(values: impl Iterator<Item = Scalar>) -> HostData {
        T::into_host(values.map(T::from_scalar).collect())
    }
    match dtype {
        DType::F16 => typed::<f16>(values),
        DType::BF16 => typed::<bf16>(values),
        DType::F32 => typed::<f32>(values),
        DType::F64 => typed::<f64>(values),
        DType::I64 => typed::<i64>(values),
        DType::I32 => typed::<i32>(values),
        DType::U32 => typed::<u32>(values),
        DType::U8 => typed::<u8>(values),
        DType::I8 => typed::<i8>(values),
        DType::I16 => typed::<i16>(values),
        DType::U16 => typed::<u16>(values),
        DType::U64 => typed::<u64>(values),
        DType::Bool => typed::<bool>(values),
        #[allow(
            unreachable_patterns,
            reason = "other crates must provide for dtypes of later versions"
        )]
        other => panic!("no values for {other}"),
    }
}

/// Distribution of random values.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// Range of floats; integers are drawn from all of their range.
    pub domain: (f64, f64),
    /// One value in this many is a special one; 0: none.
    pub special_every: usize,
    /// Set from which special values are drawn.
    pub specials: Specials,
}

/// Sets of special values.
#[derive(Clone, Copy, Debug)]
pub enum Specials {
    /// NaN, infinities, zeros, subnormal and huge numbers.
    All,
    /// Without numbers so large that the order of additions decides whether a sum overflows.
    NoHuge,
    /// Within −1 to 1, and NaN: possible values of tanh.
    Unit,
    /// Values by which any integer can be divided.
    Divisors,
    /// Negative numbers near 1: factors of products that neither overflow nor vanish.
    Signs,
}

impl Fill {
    pub fn plain(low: f64, high: f64) -> Fill {
        Fill { domain: (low, high), special_every: 0, specials: Specials::All }
    }

    pub fn with(self, special_every: usize, specials: Specials) -> Fill {
        Fill { special_every, specials, ..self }
    }

    pub fn draw(&self, rng: &mut Rng, dtype: DType) -> Scalar {
        let special = self.special_every > 0 && rng.below(self.special_every) == 0;
        match dtype.is_float() {
            true if special => Scalar::Float(rng.pick(&special_floats(dtype, self.specials))),
            true => Scalar::Float(rng.uniform(self.domain.0, self.domain.1)),
            false => {
                let integer = match rng.below(4) {
                    0 => rng.pick(&[0, 1, -1, 2, 255, i64::MIN, i64::MAX, 1 << 31, 1 << 32]),
                    1 => rng.below(20) as i64 - 10,
                    _ => rng.next_u64() as i64,
                };
                let divisor = matches!(self.specials, Specials::Divisors);
                let stored = || host(dtype, [Scalar::Int(integer)].into_iter()).get(0);
                match divisor && stored().is_none_or(|x| matches!(x.to_i64(), 0 | -1)) {
                    true => Scalar::Int(3),
                    false => Scalar::Int(integer),
                }
            }
        }
    }
}

/// The special values of a float type.
pub fn special_floats(dtype: DType, which: Specials) -> Vec<f64> {
    let [tiny, normal, max] = limits(dtype);
    let next = 1.0 + 2.0 * unit_roundoff(dtype);
    let below = 1.0 - unit_roundoff(dtype);
    if matches!(which, Specials::Signs) {
        return vec![-1.0, -next, -below];
    }
    let mut values = vec![f64::NAN, 0.0, -0.0, tiny, -tiny, normal, -normal, normal - tiny];
    values.extend([1.0, -1.0, 0.5, -0.5, below, -below]);
    if !matches!(which, Specials::Unit) {
        values.extend([f64::INFINITY, f64::NEG_INFINITY, next, 2.0, 9.0, -9.0, 88.0, -88.0, 4e3]);
    }
    if matches!(which, Specials::All | Specials::Divisors) {
        values.extend([max, -max, 0.7 * max]);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrangements_have_the_documented_layouts() {
        let shape = Shape::new([3, 5]);
        let layout = |arrangement: Arrangement| {
            arrangement.view(&Layout::contiguous(arrangement.base(&shape)), &shape)
        };
        for arrangement in Arrangement::ALL {
            assert_eq!(layout(arrangement).shape(), &shape, "{arrangement:?}");
        }
        assert_eq!(layout(Permuted).strides(), [1, 3]);
        assert_eq!(layout(RepeatedRows).strides(), [0, 1]);
        assert_eq!(layout(RepeatedColumns).strides(), [1, 0]);
        assert_eq!((layout(Narrowed).strides(), layout(Narrowed).offset()), (&[7, 1][..], 8));
        assert_eq!((layout(Stepped).strides(), layout(Stepped).offset()), (&[20, 2][..], 11));
        assert_eq!((layout(Flipped).strides(), layout(Flipped).offset()), (&[-5, -1][..], 14));
        assert_eq!((layout(Mixed).strides(), layout(Mixed).offset()), (&[1, -5][..], 26));
    }
}
