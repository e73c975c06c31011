//! [`Rng`]: random numbers that depend only on the seed, the stream and the position.
//!
//! ```text
//! word(seed, stream, i) = lane i mod 4 of philox4x32_10(key: seed, counter: (i / 4, stream))
//! uniform f32  = upper 24 bits of one word · 2⁻²⁴            normal f32 = Φ⁻¹(one word)
//! uniform f64  = upper 53 bits of two words · 2⁻⁵³           normal f64 = Φ⁻¹(two words)
//! ```
//!
//! 1. The generator is a keyed bijection of a counter, not a recurrence: any value can be computed
//!    without those before it, so that results do not depend on the number of threads or on
//!    chunking.
//! 2. A normal number is the inverse cumulative distribution function at one uniform number.
//!    Box-Muller makes two from two and would leave half a pair at an odd boundary.
//! 3. Only integer operations, IEEE +, −, ·, ÷, √ and the kernels' logarithm are used, which give
//!    the same bits on every machine.

mod normal;
mod philox;
#[cfg(test)]
mod tests;
mod weighted;

use std::ops::Range;

use crate::dtype::Element;
use crate::error::{Error, Result, reserved};
use crate::runtime::parallel::{Cost, for_each_chunk_mut};
use philox::philox4x32_10;

/// A counter-based random number generator (Philox4x32-10 of Salmon, Moraes, Dror and Shaw, 2011).
/// A seed gives the same values on every machine, with any number of threads, and drawn in any
/// portions.
///
/// Not suitable for cryptography.
///
/// ```
/// use swath::Rng;
/// let mut rng = Rng::seed(42);
/// let first = rng.uniform_vec::<f32>(10, 0.0..1.0)?;
/// let mut again = Rng::seed(42);
/// let mut portions = again.uniform_vec::<f32>(7, 0.0..1.0)?;
/// portions.extend(again.uniform_vec::<f32>(3, 0.0..1.0)?);
/// assert_eq!(first, portions);
/// # Ok::<(), swath::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rng {
    state: RngState,
    /// The number and words of the last computed block.
    block: Option<(u64, [u32; 4])>,
}

/// The state of an [`Rng`], to be saved and restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RngState {
    /// The seed.
    pub seed: u64,
    /// The stream: one of 2⁶⁴ independent sequences of the seed.
    pub stream: u64,
    /// Number of 32-bit words drawn from the stream.
    pub position: u64,
}

/// Two generators are equal if they return the same values from here on.
impl PartialEq for Rng {
    fn eq(&self, other: &Rng) -> bool {
        self.state == other.state
    }
}

impl Eq for Rng {}

impl Rng {
    /// Creates a generator at the beginning of stream 0 of a seed.
    pub fn seed(seed: u64) -> Self {
        Rng::from_state(RngState { seed, stream: 0, position: 0 })
    }

    /// Creates a generator from a saved state.
    pub fn from_state(state: RngState) -> Self {
        Rng { state, block: None }
    }

    /// Returns the state of the generator.
    pub fn state(&self) -> RngState {
        self.state
    }

    /// Creates a generator at the beginning of another stream of the same seed. Streams are
    /// independent.
    ///
    /// Streams are numbered per seed: `rng.stream(1).stream(2)` is `rng.stream(2)`. For a tree of
    /// generators use [`Rng::split`].
    ///
    /// ```
    /// use swath::Rng;
    /// let rng = Rng::seed(7);
    /// assert_ne!(rng.stream(1).next_u64(), rng.stream(2).next_u64());
    /// ```
    pub fn stream(&self, stream: u64) -> Rng {
        Rng::from_state(RngState { stream, position: 0, ..self.state })
    }

    /// Creates a generator with a seed drawn from this one.
    pub fn split(&mut self) -> Rng {
        Rng::seed(self.next_u64())
    }

    /// Draws 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        let (number, lane) = (self.state.position / 4, (self.state.position % 4) as usize);
        self.state.position = self.state.position.wrapping_add(1);
        match self.block {
            Some((held, words)) if held == number => words[lane],
            _ => {
                let words = self.block(number);
                self.block = Some((number, words));
                words[lane]
            }
        }
    }

    /// Draws 64 random bits: two words, the first in the lower half.
    pub fn next_u64(&mut self) -> u64 {
        let low = u64::from(self.next_u32());
        low | u64::from(self.next_u32()) << 32
    }

    fn block(&self, number: u64) -> [u32; 4] {
        let (seed, stream) = (self.state.seed, self.state.stream);
        let halves = |x: u64| [x as u32, (x >> 32) as u32];
        let ([n0, n1], [s0, s1]) = (halves(number), halves(stream));
        philox4x32_10([n0, n1, s0, s1], halves(seed))
    }

    /// Draws a number from `[0, 1)`: a multiple of 2⁻²⁴ (`f32`) or 2⁻⁵³ (`f64`), each with equal
    /// probability.
    ///
    /// ```
    /// let x: f32 = swath::Rng::seed(1).uniform();
    /// assert!((0.0..1.0).contains(&x));
    /// ```
    pub fn uniform<T: RandomFloat>(&mut self) -> T {
        T::unit(self)
    }

    /// Draws from the normal distribution with mean 0 and variance 1.
    pub fn normal<T: RandomFloat>(&mut self) -> T {
        T::from_f64(normal::inverse_cdf(T::lower_tail(self)))
    }

    /// Draws `len` numbers from the uniform distribution over `range`, whose upper bound is
    /// excluded even after rounding. The bounds are rounded to `T` first.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless both bounds are finite and, as `T`, lower < upper;
    /// [`Error::OutOfMemory`].
    pub fn uniform_vec<T: RandomFloat>(&mut self, len: usize, range: Range<f64>) -> Result<Vec<T>> {
        T::uniform_vec(self, len, range)
    }

    fn uniform_body<T: RandomFloat>(&mut self, len: usize, range: Range<f64>) -> Result<Vec<T>> {
        let op = "rand";
        let (low, high) = (T::from_f64(range.start), T::from_f64(range.end));
        // Comparisons with a NaN bound are false.
        let finite = low.to_f64().is_finite() && high.to_f64().is_finite();
        if !(finite && low < high) {
            let reason = format!("the range {range:?} holds no {}", T::DTYPE);
            return Err(Error::InvalidArgument { op, reason });
        }
        let largest = high.before();
        let (from, to) = (low.to_f64(), high.to_f64());
        // Half the width of a range does not overflow.
        let half_width = to * 0.5 - from * 0.5;
        self.vec(op, len, WORD_COST.times(words::<T>()), &|rng, out| {
            for x in out {
                let unit = T::unit(rng).to_f64();
                let value = T::from_f64(half_width * unit + from + half_width * unit);
                *x = if value > largest { largest } else { value };
            }
        })
    }

    /// Draws `len` numbers from the normal distribution with mean 0 and variance 1. Number `i`
    /// depends only on the words at its own position, one for `f32` and two for `f64`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn normal_vec<T: RandomFloat>(&mut self, len: usize) -> Result<Vec<T>> {
        T::normal_vec(self, len)
    }

    fn normal_body<T: RandomFloat>(&mut self, len: usize) -> Result<Vec<T>> {
        self.vec("randn", len, NORMAL_COST, &|rng, out| {
            let len = out.len();
            let mut out = out.iter_mut();
            let emit = |x| _ = out.next().map(|y| *y = T::from_f64(x));
            normal::for_each(len, || T::lower_tail(rng), emit);
        })
    }

    /// Fills a vector of `len` numbers, in parallel: `f` fills a chunk from a generator positioned
    /// at its [`words`].
    fn vec<T: RandomFloat>(
        &mut self,
        op: &'static str,
        len: usize,
        cost: Cost,
        f: &(dyn Fn(&mut Rng, &mut [T]) + Sync),
    ) -> Result<Vec<T>> {
        let mut out = reserved(op, len)?;
        out.resize(len, T::from_f64(0.0));
        let state = self.state;
        let after = |numbers: usize| {
            let position = state.position.wrapping_add(numbers as u64 * words::<T>() as u64);
            Rng::from_state(RngState { position, ..state })
        };
        for_each_chunk_mut(&mut out, CHUNK, cost, &|first, out| f(&mut after(first * CHUNK), out));
        *self = after(len);
        Ok(out)
    }

    /// Returns true with probability `p`: never for 0 or NaN, always for 1.
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.uniform::<f64>() < p
    }

    /// Draws an integer from `0..n` with equal probabilities (Lemire's multiplication, 2019); 0 if
    /// `n` is 0.
    ///
    /// ```
    /// let die = 1 + swath::Rng::seed(3).below(6);
    /// assert!((1..=6).contains(&die));
    /// ```
    pub fn below(&mut self, n: u64) -> u64 {
        let product = |word: u64| u128::from(word) * u128::from(n);
        let mut wide = product(self.next_u64());
        // Without rejection, 2^64 mod n words would make some results more likely.
        if (wide as u64) < n {
            let excess = n.wrapping_neg() % n;
            while (wide as u64) < excess {
                wide = product(self.next_u64());
            }
        }
        (wide >> 64) as u64
    }

    /// Draws `len` integers from `range` with equal probabilities, one after the other by [`Rng::below`].
    ///
    /// ```
    /// let dice = swath::Rng::seed(3).integer_vec(100, 1..7)?;
    /// assert!(dice.iter().all(|die| (1..=6).contains(die)));
    /// # Ok::<(), swath::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the range is empty; [`Error::OutOfMemory`].
    pub fn integer_vec(&mut self, len: usize, range: Range<i64>) -> Result<Vec<i64>> {
        let op = "randint";
        if range.is_empty() {
            let reason = format!("the range {range:?} is empty");
            return Err(Error::InvalidArgument { op, reason });
        }
        let mut out = reserved(op, len)?;
        let width = range.end.wrapping_sub(range.start) as u64;
        out.extend((0..len).map(|_| range.start.wrapping_add(self.below(width) as i64)));
        Ok(out)
    }

    /// Returns the numbers `0..n` in random order, each order with equal probability
    /// (Fisher-Yates), as indices for [`index_select`](crate::Tensor::index_select).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let order = Rng::seed(3).permutation(5)?;
    /// let x = Tensor::<CpuBackend>::arange(0., 5., 1.)?;
    /// let shuffled = x.index_select(0, &Tensor::from_vec(order.clone(), 5)?)?;
    /// assert_eq!(shuffled.to_dtype(DType::I64)?.to_vec::<i64>()?, order);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn permutation(&mut self, n: usize) -> Result<Vec<i64>> {
        let mut order = reserved("permutation", n)?;
        order.extend((0..n).map(|i| i as i64));
        for last in (1..n).rev() {
            order.swap(last, self.below(last as u64 + 1) as usize);
        }
        Ok(order)
    }
}

/// Number of 32-bit words per number.
fn words<T>() -> usize {
    size_of::<T>().div_ceil(4)
}

/// Cost of drawing a word, and of a normal number.
const WORD_COST: Cost = Cost(6_000);
const NORMAL_COST: Cost = Cost(16_000);

/// Numbers per chunk of a thread: logarithms are computed for many at a time.
const CHUNK: usize = 256;

/// The types that [`Rng`] draws directly: `f32` and `f64`. Sealed, as [`Element`] is.
#[diagnostic::on_unimplemented(
    message = "random numbers are drawn as `f32` or `f64`, not `{Self}`",
    label = "neither `f32` nor `f64`",
    note = "draw an `f32` and convert it"
)]
pub trait RandomFloat: Element {
    /// Draws from `[0, 1)`.
    #[doc(hidden)]
    fn unit(rng: &mut Rng) -> Self;
    /// Draws a point of the normal distribution.
    #[doc(hidden)]
    fn lower_tail(rng: &mut Rng) -> Tail;
    /// The next smaller value.
    #[doc(hidden)]
    fn before(self) -> Self;
    /// Defined per type, like `normal_vec`, so that the code is compiled in this crate.
    #[doc(hidden)]
    fn uniform_vec(rng: &mut Rng, len: usize, range: Range<f64>) -> Result<Vec<Self>>;
    #[doc(hidden)]
    fn normal_vec(rng: &mut Rng, len: usize) -> Result<Vec<Self>>;
}

/// A point of a symmetric distribution: the tail probability beyond it, in (0, ½], and its sign.
/// Two fields because `1 - p` would be inaccurate for the upper tail.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    p: f64,
    negative: bool,
}

macro_rules! random_float {
    ($Float:ident, $Word:ident, $next:ident) => {
        impl RandomFloat for $Float {
            fn unit(rng: &mut Rng) -> Self {
                const DIGITS: u32 = $Float::MANTISSA_DIGITS;
                (rng.$next() >> ($Word::BITS - DIGITS)) as $Float / (1u64 << DIGITS) as $Float
            }

            fn lower_tail(rng: &mut Rng) -> Tail {
                let word = rng.$next();
                let magnitude = (word & ($Word::MAX >> 1)) as f64;
                let p = (magnitude + 0.5) / (1u128 << $Word::BITS) as f64;
                Tail { p, negative: word >> ($Word::BITS - 1) == 1 }
            }

            fn before(self) -> Self {
                self.next_down()
            }

            fn uniform_vec(rng: &mut Rng, len: usize, range: Range<f64>) -> Result<Vec<Self>> {
                rng.uniform_body(len, range)
            }

            fn normal_vec(rng: &mut Rng, len: usize) -> Result<Vec<Self>> {
                rng.normal_body(len)
            }
        }
    };
}
random_float!(f32, u32, next_u32);
random_float!(f64, u64, next_u64);
