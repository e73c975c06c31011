//! Choices drawn from bytes; zeros follow the last one.

use swath::prelude::*;

pub struct Draw<'a>(pub &'a [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub fn choose<V: Copy>(&mut self, values: &[V]) -> V {
        values[self.below(values.len())]
    }

    /// A shape of few elements, or of none.
    pub fn dims(&mut self) -> Vec<usize> {
        let rank = self.choose(&[2, 1, 3, 0, 4]);
        (0..rank).map(|_| self.choose(&[2, 3, 1, 4, 5, 3, 2, 1, 0, 17])).collect()
    }

    /// Values of a dtype, ordinary and special ones.
    pub fn values(&mut self, dtype: DType, len: usize) -> Result<Tensor<CpuBackend>> {
        const FLOATS: [f64; 24] = [
            0.5,
            -1.0,
            2.0,
            3.25,
            -0.75,
            1.0,
            7.0,
            0.0,
            -2.5,
            1.5,
            100.0,
            -7.0,
            0.125,
            4.0,
            -3.0,
            1e-3,
            -0.0,
            1e4,
            -1e4,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            255.0,
            1e-6,
        ];
        const INTEGERS: [i64; 16] =
            [0, 1, 2, 3, 1, 0, 2, -1, 4, 5, 255, 256, -128, i64::MAX, i64::MIN, (1 << 53) + 1];
        // Most tensors have ordinary values alone.
        let most = if self.once_in(3) { 24 } else { 16 };
        let small = if self.once_in(3) { 16 } else { 4 };
        if dtype.is_float() {
            let values: Vec<f64> = (0..len).map(|_| FLOATS[self.below(most)]).collect();
            return Tensor::from_vec(values, len)?.to_dtype(dtype);
        }
        let values: Vec<i64> = (0..len).map(|_| INTEGERS[self.below(small)]).collect();
        Tensor::from_vec(values, len)?.to_dtype(dtype)
    }
}
