//! PyTorch's results, written by tests/vectors/make_nn.py.

use std::collections::HashMap;

use swath::prelude::*;

type T = Tensor<CpuBackend>;

pub struct Vectors(HashMap<String, T>);

impl Vectors {
    pub fn read(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split(' ');
            let mut word = || words.next().expect("a name, a dtype, a shape");
            let (name, dtype, shape) = (word().to_owned(), word(), word());
            let dims = shape.split('x').filter(|dim| *dim != "-");
            let dims: Vec<usize> = dims.map(|dim| dim.parse().unwrap()).collect();
            let tensor = match dtype {
                "f32" => T::from_vec(words.map(|w| w.parse::<f32>().unwrap()).collect(), dims),
                "f64" => T::from_vec(words.map(|w| w.parse::<f64>().unwrap()).collect(), dims),
                "i64" => T::from_vec(words.map(|w| w.parse::<i64>().unwrap()).collect(), dims),
                other => panic!("dtype {other}"),
            };
            (name, tensor.unwrap())
        };
        Vectors(text.lines().map(line).collect())
    }

    pub fn get(&self, name: &str) -> &T {
        self.0.get(name).unwrap_or_else(|| panic!("no vector {name}"))
    }

    /// The names of all vectors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// An input, converted to the dtype.
    pub fn input(&self, name: &str, dtype: DType) -> T {
        self.get(name).to_dtype(dtype).unwrap()
    }

    /// Fails unless `x` is the result `name` in the dtype of `x`: within `ulps` of f32, relative to the
    /// larger of the value and the tensor's mean magnitude, and within 1e-12 of f64.
    pub fn assert(&self, name: &str, x: &T, ulps: f64) {
        let name = format!("{name}.{}", x.dtype());
        let expected = self.get(&name);
        assert_eq!(x.shape(), expected.shape(), "{name}");
        let tolerance = if x.dtype() == DType::F64 { 1e-12 } else { ulps * 2f64.powi(-24) };
        let values = |x: &T| x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        let (x, expected) = (values(x), values(expected));
        let mean = expected.iter().map(|v| v.abs()).sum::<f64>() / expected.len().max(1) as f64;
        for (i, (x, y)) in x.iter().zip(&expected).enumerate() {
            let allowed = tolerance * y.abs().max(mean);
            assert!((x - y).abs() <= allowed, "{name}, element {i}: {x} instead of {y}");
        }
    }
}
