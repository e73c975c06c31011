use super::functions1;
use crate::reference;

functions1! {
    relu Relu |x| if x < 0.0 { 0.0 } else { x }, |x| if x < 0.0 { 0.0 } else { x },
        |x| if x < 0.0 { 0.0 } else { x }, [];
    sigmoid Sigmoid |x| reference::sigmoid_wide(x.into()) as f32, reference::sigmoid_wide,
        reference::sigmoid, [(-746.0, 40.0), (-4.0, 4.0)];
    gelu_tanh GeluTanh |x| reference::gelu_tanh_wide(x.into()) as f32, reference::gelu_tanh_wide,
        reference::gelu_tanh, [(-22.0, 10.0), (-2.0, 2.0)];
    gelu Gelu |x| reference::gelu_wide(x.into()) as f32, reference::gelu_wide,
        reference::gelu, [(-39.5, 10.0), (-2.0, 2.0)];
    silu Silu |x| reference::silu_wide(x.into()) as f32, reference::silu_wide,
        reference::silu, [(-755.0, 40.0), (-4.0, 4.0)];
    softplus Softplus |x| reference::softplus_wide(x.into()) as f32, reference::softplus_wide,
        reference::softplus, [(-746.0, 40.0), (-4.0, 4.0)];
    log_sigmoid LogSigmoid |x| -reference::softplus_wide(-f64::from(x)) as f32,
        |x| -reference::softplus_wide(-x), |x| -reference::softplus(-x),
        [(-40.0, 746.0), (-4.0, 4.0)];
    mish Mish |x| reference::mish_wide(x.into()) as f32, reference::mish_wide,
        reference::mish, [(-755.0, 40.0), (-4.0, 4.0)];
    selu Selu |x| reference::selu_wide(x.into()) as f32, reference::selu_wide,
        reference::selu, [(-40.0, 40.0), (-1.0, 1.0)];
    relu6 Relu6 |x| x.clamp(0.0, 6.0), |x| x.clamp(0.0, 6.0), |x| x.clamp(0.0, 6.0), [(-1.0, 7.0)];
    hardsigmoid Hardsigmoid |x| reference::hardsigmoid_wide(x.into()) as f32,
        reference::hardsigmoid_wide, reference::hardsigmoid, [(-3.5, 3.5), (-3.0, -2.99)];
    hardswish Hardswish |x| reference::hardswish_wide(x.into()) as f32,
        reference::hardswish_wide, reference::hardswish, [(-3.5, 3.5), (-3.0, -2.99)];
}
