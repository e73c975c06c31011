use super::Gradient;

/// Name and kernel; `gradients.rs` checks the values.
macro_rules! gradients {
    ($($name:ident $Kernel:ident;)*) => {
        pub const ROWS: &[Gradient] = &[$(Gradient {
            name: stringify!($name),
            kernel: <swath_kernels::math::$Kernel as swath_kernels::Function<2>>::KERNEL,
        }),*];
    };
}

gradients! {
    erf_grad ErfGrad;
    tanh_grad TanhGrad;
    sigmoid_grad SigmoidGrad;
    relu_grad ReluGrad;
    silu_grad SiluGrad;
    gelu_tanh_grad GeluTanhGrad;
    gelu_grad GeluGrad;
    softplus_grad SoftplusGrad;
    log_sigmoid_grad LogSigmoidGrad;
    mish_grad MishGrad;
    selu_grad SeluGrad;
    relu6_grad Relu6Grad;
    hardsigmoid_grad HardsigmoidGrad;
    hardswish_grad HardswishGrad;
}
