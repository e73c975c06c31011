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
//! 4. Vectors are drawn in chunks: words, then numbers of them, by `swath_kernels::draw_uniform` and
//!    `draw_normal`.

mod philox;
#[cfg(test)]
mod tests;
mod weighted;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use swath_kernels::{Drawn, Uniform, draw_normal, draw_uniform, philox_words};

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

    /// Writes the words from position `first` on.
    fn words(&self, first: u64, out: &mut [u32]) {
        let RngState { seed, stream, .. } = self.state;
        // Word 0 follows the last one.
        let left = usize::try_from((u64::MAX - first).saturating_add(1)).unwrap_or(usize::MAX);
        let (here, after) = out.split_at_mut(left.min(out.len()));
        philox_words(seed, stream, first, here);
        philox_words(seed, stream, 0, after);
    }

    /// A generator at the position of number `numbers`, of `words` words each, from here.
    fn after(&self, numbers: usize, words: usize) -> Rng {
        let position = self.state.position.wrapping_add(numbers as u64 * words as u64);
        Rng::from_state(RngState { position, ..self.state })
    }

    /// Draws the first `count` of two words; the others are 0.
    fn pair(&mut self, count: usize) -> [u32; 2] {
        std::array::from_fn(|i| if i < count { self.next_u32() } else { 0 })
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
        T::normal(self)
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

    fn uniform_body<T: RandomFloat + Drawn>(
        &mut self,
        len: usize,
        range: Range<f64>,
    ) -> Result<Vec<T>> {
        let op = "rand";
        let [low, high] = [range.start, range.end].map(<T as Element>::from_f64);
        // Comparisons with a NaN bound are false.
        let [from, to] = [low, high].map(Element::to_f64);
        let finite = from.is_finite() && to.is_finite();
        if !(finite && low < high) {
            let reason = format!("the range {range:?} holds no {}", T::DTYPE);
            return Err(Error::InvalidArgument { op, reason });
        }
        let largest = high.before();
        // Half the width of a range does not overflow.
        let half_width = to * 0.5 - from * 0.5;
        let range = Uniform { from, half_width, largest };
        self.vec(op, len, WORD_COST.times(T::WORDS), &|words, out| draw_uniform(words, range, out))
    }

    /// Draws `len` numbers from the normal distribution with mean 0 and variance 1. Number `i`
    /// depends only on the words at its own position, one for `f32` and two for `f64`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn normal_vec<T: RandomFloat>(&mut self, len: usize) -> Result<Vec<T>> {
        T::normal_vec(self, len)
    }

    fn normal_body<T: RandomFloat + Drawn>(&mut self, len: usize) -> Result<Vec<T>> {
        self.vec("randn", len, NORMAL_COST, &|words, out| draw_normal(words, out))
    }

    /// Fills a vector of `len` numbers, in parallel: `f` makes numbers of their words.
    fn vec<T: Element + Drawn>(
        &mut self,
        op: &'static str,
        len: usize,
        cost: Cost,
        f: &(dyn Fn(&[u32], &mut [T]) + Sync),
    ) -> Result<Vec<T>> {
        let mut out = reserved(op, len)?;
        out.resize(len, T::ZERO);
        let rng = &*self;
        for_each_chunk_mut(&mut out, CHUNK, cost, &|first, out| {
            let mut words = [0; 2 * CHUNK];
            for (i, out) in (first..).zip(out.chunks_mut(CHUNK)) {
                let words = &mut words[..out.len() * T::WORDS];
                rng.words(rng.after(i * CHUNK, T::WORDS).state.position, words);
                f(words, out);
            }
        });
        *self = self.after(len, T::WORDS);
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
        let mut wide = product(self.next_u64(), n);
        // Without rejection, 2^64 mod n words would make some results more likely.
        if (wide as u64) < n {
            let excess = n.wrapping_neg() % n;
            while (wide as u64) < excess {
                wide = product(self.next_u64(), n);
            }
        }
        (wide >> 64) as u64
    }

    /// Draws at most [`CHUNK`] integers as [`Rng::below`] does, integer i from `0..n` where `limits(i)` is
    /// n and a number from `2^64 mod n` to n: one by one if a product is below it.
    fn below_each(&mut self, out: &mut [i64], limits: impl Fn(usize) -> [u64; 2]) {
        let mut words = [0; 2 * CHUNK];
        let words = &mut words[..2 * out.len()];
        self.words(self.state.position, words);
        let mut is_accepted = true;
        for (i, (x, word)) in out.iter_mut().zip(words.as_chunks::<2>().0).enumerate() {
            let [n, least] = limits(i);
            let wide = product(u64::from(word[0]) | u64::from(word[1]) << 32, n);
            is_accepted &= wide as u64 >= least;
            *x = (wide >> 64) as i64;
        }
        if is_accepted {
            *self = self.after(out.len(), 2);
        } else {
            out.iter_mut().enumerate().for_each(|(i, x)| *x = self.below(limits(i)[0]) as i64);
        }
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
        out.resize(len, 0);
        let width = range.end.wrapping_sub(range.start) as u64;
        let limits = [width, width.wrapping_neg() % width];
        let fill = |rng: &mut Rng, out: &mut [i64]| {
            rng.below_each(out, |_| limits);
            out.iter_mut().for_each(|x| *x = range.start.wrapping_add(*x));
        };
        // The first chunk after one with a rejected word begins at a later word, as do all that follow.
        let (rng, moved) = (&*self, AtomicUsize::new(len));
        for_each_chunk_mut(&mut out, CHUNK, INTEGER_COST, &|first, out| {
            let mut here = rng.after(first * CHUNK, 2);
            for (i, out) in (first..).zip(out.chunks_mut(CHUNK)) {
                fill(&mut here, out);
                if here != rng.after(i * CHUNK + out.len(), 2) {
                    moved.fetch_min(i * CHUNK, Ordering::Relaxed);
                }
            }
        });
        let moved = moved.into_inner();
        *self = self.after(moved, 2);
        out[moved..].chunks_mut(CHUNK).for_each(|out| fill(self, out));
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
        let (mut targets, mut last) = ([0; CHUNK], n.saturating_sub(1));
        while last > 0 {
            let targets = &mut targets[..CHUNK.min(last)];
            self.below_each(targets, |i| [(last - i) as u64 + 1; 2]);
            for &mut target in targets {
                order.swap(last, target as usize);
                last -= 1;
            }
        }
        Ok(order)
    }
}

/// The product whose upper half is a number from `0..n`.
fn product(word: u64, n: u64) -> u128 {
    u128::from(word) * u128::from(n)
}

/// Picoseconds of drawing a word, a normal number, and an integer.
const WORD_COST: Cost = Cost(1_500);
const NORMAL_COST: Cost = Cost(3_500);
const INTEGER_COST: Cost = Cost(3_000);

/// Numbers per chunk: words are drawn, and logarithms computed, for many at a time.
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
    /// Draws from the normal distribution.
    #[doc(hidden)]
    fn normal(rng: &mut Rng) -> Self;
    /// The next smaller value.
    #[doc(hidden)]
    fn before(self) -> Self;
    /// Defined per type, like `normal_vec`, so that the code is compiled in this crate.
    #[doc(hidden)]
    fn uniform_vec(rng: &mut Rng, len: usize, range: Range<f64>) -> Result<Vec<Self>>;
    #[doc(hidden)]
    fn normal_vec(rng: &mut Rng, len: usize) -> Result<Vec<Self>>;
}

macro_rules! random_float {
    ($Float:ident) => {
        impl RandomFloat for $Float {
            fn unit(rng: &mut Rng) -> Self {
                $Float::unit_of(&rng.pair($Float::WORDS)) as $Float
            }

            fn normal(rng: &mut Rng) -> Self {
                let mut y = [0.0];
                draw_normal(&rng.pair($Float::WORDS)[..$Float::WORDS], &mut y);
                y[0]
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
random_float!(f32);
random_float!(f64);
