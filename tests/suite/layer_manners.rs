//! The path in errors of models, options of layers, activations, and `module!` with generic parameters.

use std::error::Error as _;
use std::sync::Arc;

use swath::distributed::{DataParallel, World};
use swath::nn::{
    self, Activation, AvgPool1d, BatchNormOptions, Conv1d, Conv2d, ConvLayerOptions,
    ConvTranspose2d, Flatten, Func, GroupNormOptions, LayerNorm, LayerNormOptions, Linear,
    LinearOptions, MaxPool2d, Module, MultiHeadAttentionOptions, RmsNorm, RmsNormOptions,
    Sequential, Shared, TransformerBlock, TransformerBlockOptions, Visit, Visitor, VisitorMut,
};
use swath::prelude::*;
use swath::{ConvOptions, ConvTransposeOptions, Padding, PoolOptions};

type T = Tensor<CpuBackend>;

fn rng() -> Rng {
    Rng::seed(1)
}

fn linear(inputs: usize, outputs: usize) -> Linear {
    Linear::new(inputs, outputs, &mut rng()).unwrap()
}

fn zeros(shape: impl Into<Shape>) -> T {
    T::zeros(shape, DType::F32).unwrap()
}

/// The path of an error, and the error without it.
fn split(error: Error) -> (String, Error) {
    match error {
        Error::In { path, source } => (path, *source),
        error => (String::new(), error),
    }
}

/// The path of the error of `x` in a model.
fn path(model: &impl Module<CpuBackend>, x: &T) -> String {
    split(model.call(x).unwrap_err()).0
}

struct Block<B: Backend> {
    norm: LayerNorm<B>,
    linear: Linear<B>,
    flatten: Flatten,
    dropout: nn::Dropout,
}
swath::module!(Block<B> { norm, linear, flatten, dropout });

impl<B: Backend> Module<B> for Block<B> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let y = self.linear.forward(&self.norm.forward(x)?)?;
        x.add(&self.dropout.forward(&self.flatten.forward(&y)?)?)
    }
}

fn block(width: usize, inputs: usize) -> Block<CpuBackend> {
    let dropout = nn::Dropout::new(0.5, &mut rng()).unwrap();
    let norm = LayerNorm::new(width).unwrap();
    Block { norm, linear: linear(inputs, width), flatten: Flatten, dropout }
}

struct Net {
    blocks: Vec<Block<CpuBackend>>,
    body: Sequential,
    head: Option<Box<dyn Module<CpuBackend>>>,
    tied: [Shared<Linear>; 2],
}
swath::module!(Net: CpuBackend { blocks, body, head, tied });

impl Module<CpuBackend> for Net {
    fn forward(&self, x: &T) -> Result<T> {
        let mut x = x.clone();
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        x = self.body.forward(&x)?;
        if let Some(head) = &self.head {
            x = head.forward(&x)?;
        }
        self.tied.iter().try_fold(x, |x, layer| layer.forward(&x))
    }
}

fn net() -> Net {
    let tied = Shared::new(linear(4, 4));
    Net {
        blocks: vec![block(4, 4), block(4, 4), block(4, 4)],
        body: Sequential::new().push(linear(4, 4)).push(Activation::Relu).push(block(4, 4)),
        head: Some(Box::new(linear(4, 4))),
        tied: [tied.clone(), tied],
    }
}

#[test]
fn errors_name_the_path_of_the_layer() {
    let x = zeros((2, 4));
    assert!(net().call(&x).is_ok());
    assert_eq!(path(&net(), &zeros((2, 5))), "blocks.0.norm");
    let mut model = net();
    model.blocks[2].linear = linear(5, 4);
    let error = model.call(&x).unwrap_err();
    let inner = "linear: 5 inputs expected, found 4, for shapes [2, 4] and [4, 5]";
    assert_eq!(error.to_string(), format!("in `blocks.2.linear`: {inner}"));
    assert_eq!(error.source().unwrap().to_string(), inner);
    assert!(matches!(error.root(), Error::ShapeMismatch { op: "linear", .. }));

    let mut model = net();
    model.body.layers[2] = Box::new(block(4, 5));
    assert_eq!(path(&model, &x), "body.2.linear");
    let mut model = net();
    model.head = Some(Box::new(Sequential::new().push(Flatten).push(linear(3, 4))));
    assert_eq!(path(&model, &x), "head.1");
    // Of a part at several places, what their paths have in common.
    let mut model = net();
    let tied = Shared::new(linear(5, 5));
    model.tied = [tied.clone(), tied];
    assert_eq!(path(&model, &x), "tied");
    assert_eq!(path(&model, &zeros((2, 4, 1))), "blocks.0.norm");
}

#[test]
fn sequential_names_the_index_of_every_kind_of_layer() {
    let x = zeros((2, 4));
    let fails = || Sequential::new().push(Flatten).push(Activation::Relu);
    let at_2 =
        |layer: Box<dyn Module<CpuBackend>>| split(fails().push(layer).forward(&x).unwrap_err()).0;
    assert_eq!(at_2(Box::new(linear(3, 4))), "2");
    assert_eq!(at_2(Box::new(LayerNorm::new(3).unwrap())), "2");
    assert_eq!(at_2(Box::new(RmsNorm::new(3).unwrap())), "2");
    assert_eq!(at_2(Box::new(nn::GroupNorm::new(1, 3).unwrap())), "2");
    assert_eq!(at_2(Box::new(nn::BatchNorm2d::new(4).unwrap())), "2");
    assert_eq!(at_2(Box::new(nn::Embedding::new(4, 4, &mut rng()).unwrap())), "2");
    assert_eq!(at_2(Box::new(Conv2d::new(4, 4, 1, &mut rng()).unwrap())), "2");
    assert_eq!(at_2(Box::new(MaxPool2d(PoolOptions::new(2)))), "2");
    assert_eq!(at_2(Box::new(Func::new(|x: &T| x.reshape(7)))), "2");
    assert_eq!(at_2(Box::new(block(4, 5))), "2.linear");
    assert_eq!(at_2(Box::new(Arc::new(fails().push(linear(3, 4))))), "2.2");
    let block = TransformerBlock::new(4, 2, &mut rng()).unwrap();
    let transformer = |change: fn(&mut TransformerBlock)| {
        let mut block = TransformerBlock::new(4, 2, &mut rng()).unwrap();
        change(&mut block);
        at_2(Box::new(block))
    };
    assert!(block.forward(&x).is_ok());
    assert_eq!(transformer(|block| block.linear1 = linear(5, 4)), "2.linear1");
    assert_eq!(
        transformer(|block| block.self_attn.out_proj = linear(5, 4)),
        "2.self_attn.out_proj"
    );
    assert_eq!(transformer(|block| block.self_attn.heads = 3), "2.self_attn");
    assert_eq!(transformer(|block| block.norm2 = LayerNorm::new(5).unwrap()), "2.norm2");
    // A layer whose activation is computed with it, and activations that fail after a layer.
    let fused = Sequential::new().push(linear(4, 4)).push(linear(5, 4)).push(Activation::Gelu);
    assert_eq!(split(fused.forward(&x).unwrap_err()).0, "1");
    let integers = tensor![i64; [1, 2]];
    let at = |model: Sequential| split(model.forward(&integers).unwrap_err()).0;
    let flatten = || Sequential::new().push(Flatten);
    for activation in [Activation::Gelu, Activation::LeakyRelu(0.1)] {
        let gelu = || Sequential::new().push(activation).push(activation);
        assert_eq!(at(flatten().push(activation)), "1");
        assert_eq!(at(flatten().push(Flatten).push(activation).push(Flatten)), "2");
        assert_eq!(at(Sequential::new().push(flatten()).push(activation)), "1");
        assert_eq!(at(Sequential::new().push(flatten().push(flatten())).push(activation)), "1");
        assert_eq!(at(Sequential::new().push(Sequential::new()).push(activation)), "1");
        assert_eq!(at(gelu()), "0");
        assert_eq!(at(flatten().push(flatten().push(gelu()))), "1.1.0");
    }
}

#[test]
fn layers_that_are_called_directly_have_errors_without_a_path() {
    let x = zeros((2, 3));
    assert!(matches!(linear(4, 4).forward(&x), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(linear(4, 4).call(&x), Err(Error::ShapeMismatch { .. })));
    assert!(matches!(block(4, 4).forward(&x), Err(Error::ShapeMismatch { .. })));
    // Between layers: x + y in `Block`.
    let mut model = block(4, 4);
    model.linear = linear(4, 3);
    assert_eq!(path(&model, &zeros((2, 4))), "");
    let model = Sequential::new().push(model).push(Activation::Gelu);
    assert_eq!(path(&model, &zeros((2, 4))), "0");
}

/// Nor does it name that of an equal one of a later layer. Of one that no layer returns it does: see [`nn::locate`].
#[test]
fn an_earlier_error_does_not_name_the_path_of_one_that_differs() {
    struct Tries {
        first: Linear,
        second: Linear,
    }
    swath::module!(Tries: CpuBackend { first, second });
    impl Module<CpuBackend> for Tries {
        fn forward(&self, x: &T) -> Result<T> {
            let _ = self.first.forward(x);
            self.second.forward(x)
        }
    }
    let model = Tries { first: linear(5, 4), second: linear(5, 4) };
    assert_eq!(path(&model, &zeros((2, 4))), "second");
    let model = Tries { first: linear(6, 4), second: linear(4, 4) };
    assert!(model.call(&zeros((2, 4))).is_ok());
    let other = zeros((2, 4)).matmul(&zeros((3, 3))).unwrap_err();
    assert_eq!(split(nn::locate(&model, other.clone())), (String::new(), other));
}

#[test]
fn layers_of_ones_own_are_found_if_they_are_called() {
    struct Own(T);
    impl Visit<CpuBackend> for Own {
        fn visit(&self, visitor: &mut dyn Visitor<CpuBackend>) {
            visitor.part(nn::PartId::of(self));
            self.0.visit(visitor);
        }
        fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<CpuBackend>) {
            self.0.visit_mut(visitor);
        }
    }
    impl Module<CpuBackend> for Own {
        fn forward(&self, x: &T) -> Result<T> {
            x.matmul(&self.0)
        }
    }
    struct Two {
        a: Own,
        b: Box<Own>,
    }
    swath::module!(Two: CpuBackend { a, b });
    impl Module<CpuBackend> for Two {
        fn forward(&self, x: &T) -> Result<T> {
            self.b.call(&self.a.call(x)?)
        }
    }
    let model = |a, b| Two { a: Own(zeros((a, 4))), b: Box::new(Own(zeros((b, 4)))) };
    let x = zeros((2, 4));
    assert_eq!([path(&model(3, 4), &x), path(&model(4, 3), &x)], ["a", "b"]);
    let whole = Sequential::new().push(model(4, 3));
    assert_eq!(path(&whole, &x), "0.b");
}

/// A part that is being changed cannot be visited.
#[test]
fn a_locked_part_is_an_error_and_no_panic() {
    let shared = Shared::new(linear(4, 4));
    let model = Sequential::new().push(Flatten).push(shared.clone());
    let guard = shared.write();
    let error = model.forward(&zeros((2, 4))).unwrap_err();
    assert_eq!(split(error.clone()).0, "1");
    assert!(matches!(error.root(), Error::InvalidArgument { op: "Shared::read", .. }));
    drop(guard);
}

#[test]
fn checkpoints_and_data_parallel_training_name_the_path() -> Result<()> {
    let layers: Vec<Arc<dyn Module<CpuBackend>>> =
        vec![Arc::new(linear(4, 4)), Arc::new(Activation::Gelu), Arc::new(block(4, 5))];
    for segments in [1, 2, 3] {
        let error = checkpoint_sequential(&zeros((2, 4)), &layers, segments).unwrap_err();
        assert_eq!(split(error).0, "2.linear", "{segments} segments");
    }
    let mut model = net();
    model.blocks[1].linear = linear(5, 4);
    let mut parallel = DataParallel::new(&World::local(1)?.remove(0), &mut model, 2)?;
    let mean = parallel.mean_gradients(&mut model, &zeros((4, 4)), |model, micro| {
        model.forward(&micro.data)?.mean(None, false)
    });
    assert_eq!(split(mean.unwrap_err()).0, "blocks.1.linear");
    Ok(())
}

#[test]
fn setters_set_the_fields() -> Result<()> {
    let conv = ConvOptions {
        stride: [1, 2],
        padding: Padding::Zeros([0, 1]),
        dilation: [3, 3],
        groups: 4,
    };
    let set = ConvOptions::new().stride([1, 2]).padding([0, 1]).dilation(3).groups(4);
    assert_eq!(set, conv);
    assert_eq!(ConvOptions::<1>::new().padding(2).padding, Padding::Zeros([2]));
    assert_eq!(ConvOptions::<3>::new().padding(Padding::Same).padding, Padding::Same);
    let transposed = ConvTransposeOptions {
        stride: [2, 2],
        padding: [1, 0],
        output_padding: [1, 1],
        dilation: [1, 2],
        groups: 2,
    };
    let set = ConvTransposeOptions::new().stride(2).padding([1, 0]).output_padding(1);
    assert_eq!(set.dilation([1, 2]).groups(2), transposed);
    let pool = PoolOptions {
        kernel: [3, 4],
        stride: Some([2, 2]),
        padding: [1, 2],
        padding_after: Some([0, 2]),
        dilation: [1, 1],
        ceil_mode: true,
        count_include_pad: true,
    };
    let set = PoolOptions::new(9).kernel([3, 4]).stride(2).padding([1, 2]).dilation(1);
    assert_eq!(set.padding_after([0, 2]).ceil_mode(true).count_include_pad(true), pool);

    let text = |options: &dyn std::fmt::Debug| format!("{options:?}");
    let (bias, weight, affine, dtype, eps) = (false, false, false, DType::F64, 0.5);
    let set = LinearOptions::new().bias(bias).dtype(dtype);
    assert_eq!(text(&set), text(&LinearOptions { bias, dtype }));
    let set = LayerNormOptions::new().weight(weight).bias(bias).eps(eps).dtype(dtype);
    assert_eq!(text(&set), text(&LayerNormOptions { weight, bias, eps, dtype }));
    let set = RmsNormOptions::new().weight(weight).eps(eps).dtype(dtype);
    assert_eq!(text(&set), text(&RmsNormOptions { weight, eps, dtype }));
    let set = GroupNormOptions::new().affine(affine).eps(eps).dtype(dtype);
    assert_eq!(text(&set), text(&GroupNormOptions { affine, eps, dtype }));
    let set = BatchNormOptions::new().affine(affine).eps(eps).momentum(0.25).dtype(dtype);
    assert_eq!(text(&set), text(&BatchNormOptions { affine, eps, momentum: 0.25, dtype }));
    let (causal, dropout) = (true, 0.25);
    let set = MultiHeadAttentionOptions::new().causal(causal).dropout(dropout).bias(bias);
    let wanted = MultiHeadAttentionOptions { causal, dropout, bias, dtype };
    assert_eq!(text(&set.dtype(dtype)), text(&wanted));
    let (hidden, activation) = (Some(7), Activation::Mish);
    let set = TransformerBlockOptions::new().hidden(7).activation(activation).causal(causal);
    let wanted = TransformerBlockOptions { hidden, activation, causal, dropout, eps, bias, dtype };
    assert_eq!(text(&set.dropout(dropout).eps(eps).bias(bias).dtype(dtype)), text(&wanted));
    Ok(())
}

#[test]
fn layers_take_numbers_and_options_in_one_line() -> Result<()> {
    let (rng, x) = (&mut rng(), zeros((1, 3, 9, 9)));
    let halving = ConvOptions::new().stride(2).padding(1);
    let layer = Conv2d::with_options(3, 16, 3, halving, rng)?;
    assert_eq!((layer.weight.dims(), layer.bias.is_some()), (&[16, 3, 3, 3][..], true));
    assert_eq!(layer.forward(&x)?.dims(), [1, 16, 5, 5]);
    let layer = Conv2d::with_options(3, 6, [3, 1], halving.groups(3).bias(false), rng)?;
    assert_eq!((layer.weight.dims(), layer.bias.is_none()), (&[6, 1, 3, 1][..], true));
    assert_eq!(layer.forward(&x)?.dims(), [1, 6, 5, 6]);
    let options = ConvOptions::new().padding(Padding::Same).dtype(DType::F64).bias(false);
    let layer: Conv1d = Conv1d::with_options(3, 6, 5, options, rng)?;
    assert_eq!((layer.weight.dtype(), layer.options.padding), (DType::F64, Padding::Same));
    let options = ConvLayerOptions { bias: false, ..Default::default() };
    assert_eq!(Conv2d::with_options(3, 6, 3, options, rng)?.forward(&x)?.dims(), [1, 6, 7, 7]);
    let doubling = ConvTransposeOptions::new().stride(2).bias(false);
    let layer = ConvTranspose2d::with_options(3, 6, 2, doubling, rng)?;
    assert_eq!(layer.forward(&x)?.dims(), [1, 6, 18, 18]);
    assert_eq!(MaxPool2d(PoolOptions::new(3).padding(1)).forward(&x)?.dims(), [1, 3, 3, 3]);
    assert_eq!(AvgPool1d(PoolOptions::new(2)).forward(&zeros((1, 1, 5)))?.dims(), [1, 1, 2]);
    Ok(())
}

/// Values of PyTorch 2 in `f64`.
#[test]
fn activations_have_pytorchs_values() -> Result<()> {
    use Activation::*;
    let x = tensor![f64; -7.0, -3.0, -1.5, -0.25, 0.0, 0.5, 3.0, 7.0];
    #[rustfmt::skip]
    let expected = [
        (Relu, [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 3.0, 7.0]),
        (Gelu, [-8.958667141456544e-12, -0.00404969409489031, -0.10021080190328704, -0.10032341857926907, 0.0, 0.34573123063700656, 2.99595030590511, 6.999999999991041]),
        (GeluTanh, [-2.3314683517128287e-15, -0.0036373920817729943, -0.10042842301976707, -0.100324649298315, 0.0, 0.34571400982514394, 2.996362607918227, 6.999999999999997]),
        (Silu, [-0.006377358360804518, -0.14227761953270035, -0.2736382857095345, -0.10945587477855048, 0.0, 0.3112296656009273, 2.8577223804672998, 6.993622641639196]),
        (Sigmoid, [0.0009110511944006454, 0.04742587317756678, 0.18242552380635635, 0.43782349911420193, 0.5, 0.6224593312018546, 0.9525741268224334, 0.9990889488055994]),
        (Tanh, [-0.9999983369439447, -0.9950547536867305, -0.9051482536448664, -0.24491866240370913, 0.0, 0.46211715726000974, 0.9950547536867305, 0.9999983369439447]),
        (Relu6, [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 3.0, 6.0]),
        (Selu, [-1.7564961617648047, -1.6705687287671118, -1.3658143533672527, -0.388890197478119, 0.0, 0.5253504936777402, 3.1521029620664414, 7.354906911488364]),
        (Mish, [-0.006380263409573668, -0.1456474612756246, -0.29809974216680674, -0.129926963679141, 0.0, 0.3752452113048951, 2.9865350049679575, 6.999988379809741]),
        (Softplus, [0.0009114664537742447, 0.04858735157374206, 0.2014132779827524, 0.5759394198788436, std::f64::consts::LN_2, 0.9740769841801067, 3.048587351573742, 7.000911466453774]),
        (LogSigmoid, [-7.000911466453775, -3.048587351573742, -1.7014132779827524, -0.8259394198788436, -std::f64::consts::LN_2, -0.4740769841801067, -0.04858735157374206, -0.0009114664537742447]),
        (Hardsigmoid, [0.0, 0.0, 0.25, 0.4583333333333333, 0.5, 0.5833333333333334, 1.0, 1.0]),
        (Hardswish, [0.0, 0.0, -0.375, -0.11458333333333333, 0.0, 0.2916666666666667, 3.0, 7.0]),
        (LeakyRelu(0.3), [-2.1, -0.8999999999999999, -0.44999999999999996, -0.075, 0.0, 0.5, 3.0, 7.0]),
        (Elu(1.5), [-1.4986321770516682, -1.4253193974482041, -1.1653047597773554, -0.3317988253928927, 0.0, 0.5, 3.0, 7.0]),
    ];
    let names = |f: Activation| format!("{f:?}").split('(').next().unwrap().to_owned();
    assert_eq!(Activation::ALL.map(names), expected.map(|(f, _)| names(f)));
    for (activation, expected) in expected {
        for y in [activation.forward(&x)?, x.activation(activation)?] {
            for (y, expected) in y.to_vec::<f64>()?.into_iter().zip(expected) {
                let error = (y - expected).abs();
                assert!(error <= 1e-14 * expected.abs() + 1e-15, "{activation:?}: {y} {expected}");
            }
        }
    }
    Ok(())
}

fn bits(x: &T) -> Vec<u32> {
    let x = x.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
    x.into_iter().map(f32::to_bits).collect()
}

/// Those with a parameter are rounded after the layer, as two calls are.
#[test]
fn activations_with_a_parameter_have_the_bits_of_two_calls() -> Result<()> {
    let rng = &mut rng();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        for rows in [0, 1, 7] {
            let x = T::randn((rows, 5), rng)?.to_dtype(dtype)?;
            let layer = Linear::with_options(5, 3, LinearOptions::new().dtype(dtype), rng)?;
            let images = T::randn((rows, 2, 4, 5), rng)?.to_dtype(dtype)?;
            let conv = Conv2d::with_options(2, 3, [3, 1], ConvOptions::new().dtype(dtype), rng)?;
            let bias = layer.bias.as_ref().unwrap();
            for activation in [Activation::LeakyRelu(0.2), Activation::Elu(0.7)] {
                let after = |y: T| match activation {
                    Activation::LeakyRelu(slope) => y.leaky_relu(slope),
                    Activation::Elu(scale) => y.elu(scale),
                    _ => unreachable!(),
                };
                let wanted = bits(&after(layer.forward(&x)?)?);
                assert_eq!(bits(&layer.forward_then(&x, activation)?), wanted);
                let y = x.linear_activation(&layer.weight, Some(bias), activation)?;
                assert_eq!(bits(&y), wanted);
                let y = conv.forward_then(&images, activation)?;
                assert_eq!(bits(&y), bits(&after(conv.forward(&images)?)?));
                let z = layer.forward(&x)?;
                let y = z.bias_activation(bias, activation)?;
                // The sum of 16-bit floats is not rounded.
                let [z, bias] = [&z, bias].map(|x| x.to_dtype(DType::F32));
                assert_eq!(bits(&y), bits(&after(z?.add(&bias?)?)?.to_dtype(dtype)?));
            }
        }
    }
    Ok(())
}

struct Residual<B: Backend, M: Module<B>, const N: usize> {
    layers: [M; N],
    scale: Tensor<B>,
}
swath::module!(Residual<B: Backend, M: Module<B>, const N: usize> { layers, scale });

impl<B: Backend, M: Module<B>, const N: usize> Module<B> for Residual<B, M, N> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self.layers.iter().try_fold(x.clone(), |x, layer| layer.forward(&x)?.mul(&self.scale))
    }
}

struct Pair<F, G> {
    first: F,
    second: G,
    name: &'static str,
}
swath::module!(Pair<F, G>: CpuBackend where F: Module<CpuBackend>, G: Visit<CpuBackend> + Send {
    first,
    second;
    skip name
});

struct Wrapped<B: Backend, M>(Tensor<B>, M);
impl<B: Backend, M> Wrapped<B, M> {
    fn split(self) -> Fields<B, M> {
        Fields { weight: self.0, inner: self.1 }
    }
}
struct Fields<B: Backend, M> {
    weight: Tensor<B>,
    inner: M,
}
swath::module!(Fields<B: Backend, M> where M: Visit<B> { weight, inner });

struct Rows<const N: usize> {
    rows: [T; N],
}
swath::module!(Rows<const N: usize>: CpuBackend { rows });

#[test]
fn structs_with_generic_parameters_are_visited() -> Result<()> {
    let paths = |model: &dyn Visit<CpuBackend>| {
        let mut paths = Vec::new();
        nn::for_each_tensor(model, |path, _, _| paths.push(path.to_owned()));
        paths.join(" ")
    };
    let residual =
        |inputs| Residual { layers: [linear(4, 4), linear(inputs, 4)], scale: zeros(()) };
    let two = "layers.0.weight layers.0.bias layers.1.weight layers.1.bias scale";
    assert_eq!(paths(&residual(4)), two);
    assert!(residual(4).call(&zeros((2, 4))).is_ok());
    assert_eq!(path(&residual(5), &zeros((2, 4))), "layers.1");
    let first = Residual { layers: [] as [Linear; 0], scale: zeros(()) };
    let pair = Pair { first, second: vec![Some(zeros(3))], name: "pair" };
    assert_eq!((paths(&pair), pair.name), ("first.scale second.0".to_owned(), "pair"));
    let mut fields = Wrapped(zeros(2), Rows { rows: [zeros(1), zeros(1)] }).split();
    assert_eq!(paths(&fields), "weight inner.rows.0 inner.rows.1");
    let mut shapes = Vec::new();
    nn::for_each_tensor_mut(&mut fields, |_, x, _| {
        shapes.push(*x.shape());
        Ok(())
    })?;
    assert_eq!(shapes, [2, 1, 1].map(|n| Shape::new([n])));
    Ok(())
}
