//! Arrays, matrices and tensors of other libraries, in and out: values are theirs, borders are crossed without a copy
//! where the documentation says so. Run with `--features dlpack,faer,nalgebra,ndarray,serde`.

#[path = "interop/borders.rs"]
mod borders;
#[path = "interop/dlpack.rs"]
mod dlpack;
#[path = "interop/faer.rs"]
mod faer;
#[path = "interop/nalgebra.rs"]
mod nalgebra;
#[path = "interop/ndarray.rs"]
mod ndarray;
#[path = "interop/serde.rs"]
mod serde;
#[allow(dead_code, reason = "its main function")]
#[path = "../examples/solve_faer.rs"]
mod solve_faer;

use swath::cpu::prelude::*;

/// 0, 1, 2, … in every kind of layout of two axes.
fn layouts() -> Vec<Tensor> {
    let x = Tensor::arange(0.0, 60.0, 1.0).unwrap().reshape((6, 10)).unwrap();
    let part = x.narrow(0, 1, 4).unwrap().narrow(1, 3, 5).unwrap();
    let first = x.narrow(1, 0, 1).unwrap();
    vec![
        x.t().unwrap(),
        x.flip(0).unwrap(),
        x.flip(1).unwrap(),
        x.flip(0).unwrap().flip(1).unwrap(),
        part.clone(),
        part.t().unwrap().flip(0).unwrap(),
        x.slice(s![..;2, ..;3]).unwrap(),
        x.slice(s![..;-2, ..;3]).unwrap(),
        first.expand((6, 4)).unwrap(),
        first,
        x.narrow(0, 5, 1).unwrap(),
        x.narrow(0, 6, 0).unwrap(),
        x.narrow(1, 10, 0).unwrap().flip(0).unwrap(),
        x.narrow(1, 10, 0).unwrap().narrow(0, 6, 0).unwrap(),
        Tensor::ones((1, 1), DType::F32).unwrap(),
        x,
    ]
}

/// The address of the first element of a contiguous tensor.
fn address(x: &Tensor) -> usize {
    x.as_bytes().unwrap().as_ptr().addr()
}
