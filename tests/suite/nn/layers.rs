//! Gradients of each layer against finite differences in f64, and results of layers against formulas.

use super::{T, parameters, randn};
use swath::nn::{
    self, Activation, Dropout, Embedding, Func, Kind, LayerNorm, LayerNormOptions, Linear,
    LinearOptions, Module, MultiHeadAttention, MultiHeadAttentionOptions, RmsNorm, RmsNormOptions,
    Sequential, TransformerBlock, TransformerBlockOptions,
};
use swath::ops::DropoutMask;
use swath::prelude::*;

fn rng() -> Rng {
    Rng::seed(5)
}

/// Checks gradients of every parameter, and of `x` if it has a float dtype, in f64. Parameters are moved away
/// from their initial values of zeros and ones.
fn check<M: Module<CpuBackend>>(build: impl Fn() -> M, x: &T, order: u32) {
    let float = x.dtype().is_float();
    let x = if float { x.to_dtype(DType::F64).unwrap() } else { x.clone() };
    let mut model = build();
    nn::to_dtype(&mut model, DType::F64).unwrap();
    let mut points: Vec<T> = Vec::new();
    for (i, (_, parameter)) in parameters(&model).into_iter().enumerate() {
        let noise = randn(*parameter.shape(), 100 + i as u64).to_dtype(DType::F64).unwrap();
        points.push(parameter.detach().add(noise * 0.3).unwrap());
    }
    let count = points.len();
    assert!(count > 0 || float);
    if float {
        points.push(x.clone());
    }
    let f = |xs: &[T]| {
        let mut model = build();
        let mut next = xs.iter();
        nn::for_each_tensor_mut(&mut model, |_, tensor, kind| {
            if kind == Kind::Parameter {
                *tensor = next.next().expect("one for each").clone();
            }
            Ok(())
        })?;
        model.forward(next.next().unwrap_or(&x))
    };
    let points: Vec<&T> = points.iter().collect();
    check_gradients(f, &points, GradCheck { order, ..Default::default() }).unwrap();
}

#[test]
fn gradients_of_linear() {
    let x = randn((2, 3, 4), 1);
    check(|| Linear::new(4, 5, &mut rng()).unwrap(), &x, 2);
    let options = LinearOptions { bias: false, ..Default::default() };
    check(|| Linear::with_options(4, 5, options, &mut rng()).unwrap(), &x, 2);
}

#[test]
fn gradients_of_embedding() {
    let indices = tensor![i64; [1, 0, 3], [3, 3, 2]];
    check(|| Embedding::new(5, 4, &mut rng()).unwrap(), &indices, 2);
}

#[test]
fn gradients_of_layer_norm() {
    let x = randn((2, 3, 6), 2);
    for (weight, bias) in [(true, true), (true, false), (false, true), (false, false)] {
        let options = LayerNormOptions { weight, bias, eps: 1e-3, ..Default::default() };
        check(|| LayerNorm::with_options(6, options).unwrap(), &x, 2);
    }
}

#[test]
fn gradients_of_rms_norm() {
    for weight in [true, false] {
        let options = RmsNormOptions { weight, eps: 1e-3, ..Default::default() };
        check(|| RmsNorm::with_options(6, options).unwrap(), &randn((2, 3, 6), 2), 2);
    }
}

#[test]
fn gradients_of_dropout() {
    check(|| Dropout::new(0.4, &mut rng()).unwrap(), &randn((4, 5), 3), 2);
}

#[test]
fn gradients_of_attention() {
    let x = randn((2, 3, 4), 4);
    for (causal, dropout, bias) in [(false, 0.0, true), (true, 0.3, true), (true, 0.0, false)] {
        let options = MultiHeadAttentionOptions { causal, dropout, bias, ..Default::default() };
        check(|| MultiHeadAttention::with_options(4, 2, options, &mut rng()).unwrap(), &x, 2);
    }
}

#[test]
fn gradients_of_a_transformer_block() {
    let x = randn((1, 3, 4), 5);
    for (activation, bias) in [(Activation::GeluTanh, true), (Activation::Silu, false)] {
        let options = TransformerBlockOptions {
            hidden: Some(6),
            causal: true,
            dropout: 0.2,
            activation,
            bias,
            ..Default::default()
        };
        check(|| TransformerBlock::with_options(4, 2, options, &mut rng()).unwrap(), &x, 2);
    }
}

#[test]
fn gradients_of_a_sequence() {
    let build = || {
        Sequential::new()
            .push(Linear::new(3, 4, &mut rng()).unwrap())
            .push(Activation::Tanh)
            .push(Func::new(|x: &T| x.mul_scalar(2.0)))
            .push(LayerNorm::new(4).unwrap())
    };
    check(build, &randn((2, 3), 6), 2);
}

/// With 16-bit floats a fused activation is rounded once, which distinguishes it from a separate one.
#[test]
fn a_sequence_fuses_activations_into_the_layers_before_them() {
    let linear = |inputs, outputs, dtype| {
        let options = LinearOptions { dtype, ..Default::default() };
        Linear::<CpuBackend>::with_options(inputs, outputs, options, &mut rng()).unwrap()
    };
    let bits = |x: &T| x.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
    for dtype in [DType::F32, DType::BF16] {
        let x = randn((40, 3), 8).to_dtype(dtype).unwrap();
        let (first, second) = (linear(3, 50, dtype), linear(50, 4, dtype));
        let hidden = first.forward_then(&x, Activation::Gelu).unwrap();
        let apart = first.forward(&x).unwrap().gelu().unwrap();
        assert_eq!(bits(&hidden) == bits(&apart), dtype == DType::F32, "{dtype}");

        let model = Sequential::new().push(first).push(Activation::Gelu).push(second);
        let within = |layers: Sequential| Sequential::new().push(nn::Shared::new(layers));
        let y = model.layers[2].forward(&hidden).unwrap();
        assert_eq!(bits(&model.forward(&x).unwrap()), bits(&y), "{dtype}");
        let expected = bits(&model.layers[2].forward_then(&hidden, Activation::Silu).unwrap());
        let y = model.forward_then(&x, Activation::Silu).unwrap();
        assert_eq!(bits(&y), expected, "{dtype}");
        let y = within(model).push(Activation::Silu).forward(&x).unwrap();
        assert_eq!(bits(&y), expected, "{dtype}");
    }
    let x = randn((40, 3), 9).to_dtype(DType::BF16).unwrap();
    let layer = std::sync::Arc::new(linear(3, 50, DType::BF16));
    let expected = layer.forward_then(&x, Activation::Gelu).unwrap().relu().unwrap();
    let model = Sequential::new()
        .push(layer)
        .push(nn::Shared::new(Activation::Gelu))
        .push(Activation::Relu);
    assert_eq!(bits(&model.forward(&x).unwrap()), bits(&expected));
    let x = randn((2, 3), 9);
    let functions = Sequential::new().push(Activation::Relu).push(Activation::Tanh);
    let expected = bits(&x.relu().unwrap().tanh().unwrap().sigmoid().unwrap());
    assert_eq!(bits(&functions.forward_then(&x, Activation::Sigmoid).unwrap()), expected);
    let nothing = Sequential::new();
    assert_eq!(bits(&nothing.forward(&x).unwrap()), bits(&x));
    let y = nothing.forward_then(&x, Activation::Relu).unwrap();
    assert_eq!(bits(&y), bits(&x.relu().unwrap()));
}

#[test]
fn activations_match_the_methods_of_their_names() {
    let x = randn(9, 7);
    let expected = [x.relu(), x.gelu(), x.gelu_tanh(), x.silu(), x.sigmoid(), x.tanh()];
    for (activation, expected) in Activation::ALL.into_iter().zip(expected) {
        let y = activation.forward(&x).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), expected.unwrap().to_vec::<f32>().unwrap());
    }
}

#[test]
fn embedding_refuses_invalid_indices() {
    let table: Embedding = Embedding::new(5, 2, &mut rng()).unwrap();
    assert!(matches!(table.forward(&tensor![i64; 5]), Err(Error::IndexOutOfRange { .. })));
    assert!(matches!(table.forward(&tensor![1.0]), Err(Error::DTypeMismatch { .. })));
    assert_eq!(table.forward(&tensor![i64; 4].squeeze(0).unwrap()).unwrap().dims(), [2]);
}

#[test]
fn heads_that_do_not_divide_the_width_are_refused() {
    for (width, heads) in [(6, 4), (6, 0)] {
        let error = MultiHeadAttention::<CpuBackend>::new(width, heads, &mut rng()).unwrap_err();
        assert!(
            error.to_string().contains("expected a number of heads that divides width 6"),
            "{error}"
        );
    }
}

/// Outputs of a causal layer do not depend on later positions.
#[test]
fn causal_attention_ignores_later_positions() {
    let options = MultiHeadAttentionOptions { causal: true, ..Default::default() };
    let layer = MultiHeadAttention::with_options(4, 2, options, &mut rng()).unwrap();
    let x = randn((1, 6, 4), 8);
    let whole = layer.forward(&x).unwrap();
    let part = layer.forward(&x.narrow(1, 0, 4).unwrap()).unwrap();
    assert_eq!(
        whole.narrow(1, 0, 4).unwrap().to_vec::<f32>().unwrap(),
        part.to_vec::<f32>().unwrap()
    );
}

/// Cross-attention of a tensor to itself is self-attention; a mask with one visible key gives its projected
/// value.
#[test]
fn cross_attention_and_masks() -> Result<()> {
    let mut layer = MultiHeadAttention::new(4, 2, &mut rng())?;
    layer.in_proj_bias = Some(randn(12, 20));
    let (x, memory) = (randn((2, 3, 4), 9), randn((2, 5, 4), 10));
    let close = |a: &T, b: &T| {
        let difference = a.sub(b)?.abs()?.max(None, false)?.item::<f32>()?;
        assert!(difference < 1e-6, "{difference}");
        Ok::<(), Error>(())
    };
    close(&layer.forward(&x)?, &layer.forward_cross(&x, &x, None)?)?;

    let visible = T::arange_as(0., 5., 1., DType::I64)?.eq(2.0)?;
    let y = layer.forward_cross(&x, &memory, Some(&visible))?;
    let weight = layer.in_proj_weight.slice(s![8..])?;
    let bias = layer.in_proj_bias.as_ref().unwrap().slice(s![8..])?;
    let value = memory.slice(s![.., 2..3])?.matmul(&weight.t()?)?.add(&bias)?;
    close(&y, &layer.out_proj.forward(&value)?.broadcast_to((2, 3, 4))?)
}

#[test]
fn dropout_depends_on_seed_and_step() -> Result<()> {
    let x = T::ones((50, 20), DType::F32)?;
    let dropout = Dropout::new(0.25, &mut rng())?;
    let seed = rng().next_u64();
    for step in 0..3 {
        let expected = x.dropout(DropoutMask { p: 0.25, seed, stream: step })?;
        assert_eq!(dropout.forward(&x)?.to_vec::<f32>()?, expected.to_vec::<f32>()?);
    }
    for p in [-0.1, 1.0, f64::NAN] {
        assert!(matches!(Dropout::new(p, &mut rng()), Err(Error::InvalidArgument { .. })));
    }
    Ok(())
}

#[test]
fn dropout_with_p_0_and_in_evaluation_returns_the_input_and_takes_no_step() -> Result<()> {
    let x = T::ones(100, DType::F32)?;
    let mut dropout = Dropout::new(0.5, &mut rng())?;
    let first = dropout.forward(&x)?.to_vec::<f32>()?;
    Module::<CpuBackend>::set_training(&mut dropout, false);
    assert_eq!(dropout.forward(&x)?.to_vec::<f32>()?, [1.0; 100]);
    Module::<CpuBackend>::set_training(&mut dropout, true);
    let second = dropout.forward(&x)?.to_vec::<f32>()?;
    let again = Dropout::new(0.5, &mut rng())?;
    assert_eq!(again.forward(&x)?.to_vec::<f32>()?, first);
    assert_eq!(again.forward(&x)?.to_vec::<f32>()?, second);
    let none = Dropout::new(0.0, &mut rng())?;
    assert_eq!(none.forward(&x)?.to_vec::<f32>()?, [1.0; 100]);
    Ok(())
}

#[test]
fn dropout_in_a_block_is_off_in_evaluation() -> Result<()> {
    let options = TransformerBlockOptions { dropout: 0.5, ..Default::default() };
    let mut block = TransformerBlock::with_options(4, 2, options, &mut rng())?;
    let x = randn((1, 3, 4), 11);
    let outputs = |block: &TransformerBlock| {
        let (a, b) = (block.forward(&x)?.to_vec::<f32>()?, block.forward(&x)?.to_vec::<f32>()?);
        Ok::<_, Error>(a == b)
    };
    assert!(!outputs(&block)?);
    block.set_training(false);
    assert!(outputs(&block)?);
    Ok(())
}
