//! The time that 64 MiB take to cross a border without a copy, either way. Run with `--nocapture` to see it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ndarray::Array2;
use swath::cpu::prelude::*;
use swath::interop::dlpack::DLManagedTensorVersioned;

const ROWS: usize = 4096;

/// A copy would take milliseconds.
const MOST: Duration = Duration::from_micros(50);

struct Times(Vec<(&'static str, Duration)>);

impl Times {
    /// The least time of a crossing by this name.
    fn of<T>(&mut self, name: &'static str, cross: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = black_box(cross());
        let took = start.elapsed();
        match self.0.iter_mut().find(|row| row.0 == name) {
            Some((_, least)) => *least = took.min(*least),
            None => self.0.push((name, took)),
        }
        result
    }
}

#[test]
fn borders_are_crossed_without_a_copy() {
    let mut times = Times(Vec::new());
    let mut array = Array2::from_elem((ROWS, ROWS), 1f32);
    for _ in 0..200 {
        let x: Tensor = times.of("from_ndarray", || Tensor::from_ndarray(array)).unwrap();
        let view = x.view::<f32>().unwrap();
        times.of("view, ndarray", || x.view::<f32>()?.ndarray()).unwrap();
        times.of("view, nalgebra", || view.nalgebra()).unwrap();
        times.of("view, faer", || view.faer()).unwrap();
        let handle = times.of("to_dlpack", || x.to_dlpack::<DLManagedTensorVersioned>()).unwrap();
        let managed = handle.into_raw();
        // SAFETY: the managed tensor is handed over, and nobody writes to it.
        drop(times.of("from_dlpack", || unsafe { Tensor::from_dlpack(managed) }).unwrap());
        let out = times.of("into_ndarray", || x.into_ndarray::<f32>()).unwrap();
        let back = times
            .of("from_ndarray, transposed", || Tensor::from_ndarray(out.reversed_axes()))
            .unwrap();
        drop::<Tensor>(back);
        array = Array2::zeros((ROWS, ROWS));
    }
    let mut matrix = nalgebra::DMatrix::from_element(ROWS, ROWS, 1f32);
    for _ in 0..200 {
        let x: Tensor = times.of("from_nalgebra", || Tensor::from_nalgebra(matrix)).unwrap();
        matrix = times.of("into_nalgebra", || x.into_nalgebra::<f32>()).unwrap();
    }
    let x = Tensor::ones((ROWS, ROWS), DType::F32).unwrap();
    let mut values = x.to_vec::<f32>().unwrap();
    for _ in 0..200 {
        let x = times.of("from_vec", || Tensor::from_vec(values, (ROWS, ROWS))).unwrap();
        times.of("as_bytes", || x.as_bytes().map(<[u8]>::len)).unwrap();
        values = times.of("into_vec", || x.into_vec()).unwrap();
        let x = Tensor::zeros((ROWS, ROWS), DType::F32).unwrap();
        drop(times.of("into_dlpack", || x.into_dlpack::<DLManagedTensorVersioned>()).unwrap());
    }
    for (name, took) in &times.0 {
        println!("{name:26} {:8.3} µs", took.as_secs_f64() * 1e6);
    }
    for (name, took) in times.0 {
        assert!(took < MOST, "{name}: {took:?}");
    }
}
