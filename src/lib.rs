//! A CPU-first numeric engine: tensors with broadcasting and views, element-wise kernels written by
//! hand for AVX-512, AVX2, NEON and portable code, matrix products by a BLAS or by the embedded
//! GEMM, and reverse-mode automatic differentiation over any backend.
//!
//! ```text
//! user code
//!    |  tensor      shapes, broadcasting, views; records ops
//!    v
//!   autodiff        recording, rules, backward
//!    v
//!   backend         trait Backend: 14 required methods, ops passed as enums
//!    v
//!   backend/cpu     layouts -> contiguous runs, threads, BLAS
//!    v
//!   swath-kernels   slices in, slices out
//! ```
//!
//! ```
//! use swath::cpu::prelude::*;
//!
//! let w = tensor![[0.5, -1.0], [2.0, 0.25]].requires_grad();
//! let x = Tensor::linspace(1.0, 2.0, 2)?;
//! let loss = w.matmul(&x)?.tanh()?.sum(None, false)?;
//! let grads = loss.backward()?;
//! println!("{}", grads.wrt(&w)?);
//! # Ok::<(), Error>(())
//! ```
//!
//! [`cpu::prelude`] has the names that most programs use, with [`Tensor`] on the CPU; [`prelude`] has the same names
//! for programs that choose their backend. [`Tensor`] lists the operations by task. If you know NumPy or PyTorch,
//! *From NumPy and PyTorch* (`docs/FROM_NUMPY_AND_PYTORCH.md`) translates.

#[cfg(feature = "testing-suite")]
extern crate self as swath;

pub mod autodiff;
pub mod backend;
pub mod blas;
pub mod distributed;
mod dtype;
mod engine;
mod error;
pub mod interop;
#[cfg(feature = "safetensors")]
pub mod io;
mod layout;
#[doc(hidden)]
pub mod macros;
pub mod nn;
pub mod ops;
pub mod optim;
mod options;
mod rng;
pub mod runtime;
mod shape;
pub mod tensor;
#[cfg(feature = "testing")]
pub mod testing;

pub use autodiff::{
    Backward, CheckpointLayer, CheckpointOutput, CustomOp, GradCheck, Gradients, Keep,
    check_gradients, checkpoint, checkpoint_sequential, checkpoint_with, detect_anomaly, grad,
    hessian, hessian_vector_product, is_checkpointing, is_grad_enabled, is_recomputing, jacobian,
    jvp, no_grad, numerical_gradient, replayed, vjp, with_checkpoint_mode,
};
#[cfg(feature = "pulp")]
pub use backend::any::SimdBackend;
pub use backend::any::{AnyBackend, AnyTensor, Device};
pub use backend::cpu::CpuBackend;
#[cfg(all(feature = "metal", target_vendor = "apple"))]
pub use backend::gpu::MetalBackend;
#[cfg(feature = "wgpu")]
pub use backend::gpu::WgpuBackend;
pub use backend::reference::ReferenceBackend;
pub use backend::{Arg, Backend, IntoBackend, TensorData};
pub use dtype::{DType, Element, HostData, Scalar};
pub use error::{Error, Result};
pub use half::{bf16, f16};
pub use layout::{AxisPart, Layout, LoopNest, SliceItem, merge_axes};
pub use options::PerAxis;
pub use rng::{RandomFloat, Rng, RngState};
pub use shape::{
    Axes, Axis, Extent, MAX_RANK, NewShape, Position, Shape, Strides, broadcast_index,
    broadcast_shape,
};
#[cfg(feature = "pulp")]
pub use swath_kernels::{SimdOp, pulp};
#[doc(inline)]
pub use tensor::Tensor;
pub use tensor::fused::attention::Attention;
pub use tensor::fused::conv::{ConvOptions, ConvSlices, ConvTransposeOptions, Padding};
pub use tensor::fused::cross_entropy::{CrossEntropy, Reduction};
pub use tensor::fused::pool::PoolOptions;
pub use tensor::{
    AspectRatio, Coordinates, GridMode, GridPadding, ImageSize, Interpolation, NearestMode,
    Operand, PadMode, QuantileMethod, ReduceMode, Resize, ResizeMode, Shifts, SplitSizes,
    TensordotAxes, Unique,
};
#[cfg(feature = "fft")]
pub use tensor::{FftNorm, FftOptions, StftOptions, Window};

/// The names that most programs use.
pub mod prelude {
    pub use crate::{
        Attention, Backend, Backward, ConvOptions, ConvTransposeOptions, CpuBackend, CrossEntropy,
        CustomOp, DType, Element, Error, GradCheck, Gradients, Interpolation, IntoBackend, Keep,
        PadMode, Padding, PoolOptions, QuantileMethod, ReduceMode, ReferenceBackend, Result, Rng,
        Shape, Tensor, TensorData, check_gradients, checkpoint, checkpoint_sequential,
        checkpoint_with, detect_anomaly, grad, hessian, hessian_vector_product, is_checkpointing,
        jacobian, jvp, nn, no_grad, numerical_gradient, optim, s, tensor, vjp,
        with_checkpoint_mode,
    };
    pub use crate::{nn::Module, optim::Optimizer};
}

/// Programs on the CPU.
pub mod cpu {
    /// The [prelude](crate::prelude) with `Tensor` on the CPU, so that constructors need no type.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::zeros((2, 3), DType::F32)?;
    /// let y: Tensor = x.add(1.0)?;
    /// # Ok::<(), Error>(())
    /// ```
    pub mod prelude {
        pub use crate::prelude::*;

        /// A tensor of [`CpuBackend`].
        pub type Tensor = crate::Tensor<CpuBackend>;
    }
}

/// Programs on a GPU.
#[cfg(any(feature = "wgpu", all(feature = "metal", target_vendor = "apple")))]
pub mod gpu {
    /// The [prelude](crate::prelude) with `Tensor` on the GPU, by Metal where it was built, else by wgpu. The
    /// macro `tensor!` makes tensors on the CPU, which `to_backend` copies.
    ///
    /// ```no_run
    /// use swath::gpu::prelude::*;
    /// let x = Tensor::zeros((2, 3), DType::F32)?;
    /// let y: Tensor = tensor![1.0, 2.0, 3.0].to_backend()?;
    /// println!("{}", x.add(&y)?);
    /// # Ok::<(), Error>(())
    /// ```
    pub mod prelude {
        pub use crate::prelude::*;

        #[cfg(all(feature = "metal", target_vendor = "apple"))]
        use crate::MetalBackend as Gpu;
        #[cfg(not(all(feature = "metal", target_vendor = "apple")))]
        use crate::WgpuBackend as Gpu;

        /// A tensor of the GPU's backend.
        pub type Tensor = crate::Tensor<Gpu>;
    }
}

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Runs the examples of the first-model guide as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/FIRST_MODEL.md")]
struct FirstModel;

/// Runs the examples of the page on automatic differentiation as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/AUTODIFF.md")]
struct Autodiff;

/// Runs the examples of the page that translates from NumPy and PyTorch as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/FROM_NUMPY_AND_PYTORCH.md")]
struct FromNumpyAndPytorch;

/// Runs the examples of the page on files of weights as tests.
#[cfg(all(doctest, feature = "npy"))]
#[doc = include_str!("../docs/WEIGHTS.md")]
struct Weights;

/// Runs the examples of the page on backends as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/BACKENDS.md")]
struct Backends;

/// Runs the example of the page on training on several ranks as a test.
#[cfg(doctest)]
#[doc = include_str!("../docs/BEYOND_ONE_MACHINE.md")]
struct BeyondOneMachine;

/// Runs the examples of the page on other libraries as tests.
#[cfg(all(
    doctest,
    feature = "ndarray",
    feature = "nalgebra",
    feature = "faer",
    feature = "serde",
    feature = "dlpack"
))]
#[doc = include_str!("../docs/INTEROP.md")]
struct Interop;
