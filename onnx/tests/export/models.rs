//! Models of layers, extents with names, and what cannot be recorded.

use super::*;

/// Copies a model to the backend that is traced, and checks it with two batch sizes, the first of which is traced.
fn check_model<M: Module<CpuBackend>, N: Module<Trace>>(
    name: &str,
    model: &M,
    mut traced: N,
    axes: &[(usize, &str)],
    runs: Vec<C>,
) {
    copy_values(model, &mut traced).unwrap();
    let export = Export::new().model(&traced).dynamic("x0", axes);
    let runs = runs.into_iter().map(|x| vec![x]).collect();
    Case { name: name.to_owned(), export, runs }
        .check(|x| Ok(vec![model.forward(&x[0])?]), |x| Ok(vec![traced.forward(&x[0])?]));
}

fn mlp<B: Backend>() -> Result<Sequential<B>> {
    let mut rng = rng();
    Ok(Sequential::new()
        .push(Linear::new(5, 7, &mut rng)?)
        .push(Activation::Gelu)
        .push(nn::LayerNorm::new(7)?)
        .push(nn::Dropout::new(0.5, &mut rng)?)
        .push(Linear::new(7, 3, &mut rng)?)
        .push(Activation::LeakyRelu(0.2)))
}

/// A small vision transformer: patches, a token for the class, positions.
struct Vision<B: Backend> {
    patches: nn::Conv2d<B>,
    class: Tensor<B>,
    positions: Tensor<B>,
    block: nn::TransformerBlock<B>,
    head: Linear<B>,
}
swath::module!(Vision<B> { patches, class, positions, block, head });

impl<B: Backend> Vision<B> {
    fn new(rng: &mut Rng) -> Result<Self> {
        let conv = swath::ConvOptions { stride: [2, 2], ..Default::default() };
        let options = nn::ConvLayerOptions { conv, ..Default::default() };
        Ok(Vision {
            patches: nn::Conv2d::with_options(1, 8, [2, 2], options, rng)?,
            class: nn::init::normal((1, 1, 8), 0.0, 1.0, DType::F32, rng)?,
            positions: nn::init::normal((10, 8), 0.0, 1.0, DType::F32, rng)?,
            block: nn::TransformerBlock::with_options(8, 2, Default::default(), rng)?,
            head: Linear::new(8, 3, rng)?,
        })
    }
}

impl<B: Backend> Module<B> for Vision<B> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let n = x.dims()[0];
        let patches = self.patches.forward(x)?.flatten(2, 3)?.t()?;
        let x = Tensor::cat(&[&self.class.expand((n, 1, 8))?, &patches], 1)?;
        let x = self.block.forward(&x.add(&self.positions)?)?;
        self.head.forward(&x.narrow(1, 0, 1)?.squeeze(1)?)
    }
}

#[test]
fn models() {
    let mut model = mlp::<CpuBackend>().unwrap();
    model.set_training(false);
    check_model("mlp", &model, mlp().unwrap(), &[(0, "batch")], vec![randn((1, 5)), randn((4, 5))]);
    let mut digits = mnist::network::<CpuBackend>(&mut rng()).unwrap();
    // Statistics that are not 0 and 1.
    digits.forward(&randn((8, 1, 28, 28))).unwrap();
    digits.set_training(false);
    let runs = vec![randn((2, 1, 28, 28)), randn((5, 1, 28, 28))];
    check_model(
        "digits",
        &digits,
        mnist::network(&mut rng()).unwrap(),
        &[(0, "batch")],
        runs.clone(),
    );
    check_model(
        "digits_static",
        &digits,
        mnist::network(&mut rng()).unwrap(),
        &[],
        runs[..1].to_vec(),
    );
    let sizes =
        gpt::Sizes { vocabulary: 11, width: 16, layers: 2, heads: 4, context: 12, dropout: 0.1 };
    let mut model = gpt::Gpt::<CpuBackend>::new(sizes, &mut rng()).unwrap();
    model.positions = nn::init::normal((12, 16), 0.0, 1.0, DType::F32, &mut rng()).unwrap();
    model.set_training(false);
    let new = || gpt::Gpt::<Trace>::new(sizes, &mut rng()).unwrap();
    check_model("gpt_static", &model, new(), &[], vec![ints((2, 12), 11)]);
    check_model(
        "gpt",
        &model,
        new(),
        &[(0, "batch"), (1, "time")],
        vec![ints((1, 6), 11), ints((3, 9), 11), ints((1, 1), 11)],
    );
    let model = Vision::<CpuBackend>::new(&mut rng()).unwrap();
    check_model(
        "vision",
        &model,
        Vision::new(&mut rng()).unwrap(),
        &[(0, "batch")],
        vec![randn((1, 1, 6, 6)), randn((3, 1, 6, 6))],
    );
}

fn dynamic(name: &str, axes: &[(usize, &str)], runs: Vec<C>) -> Case<'static> {
    let runs = runs.into_iter().map(|x| vec![x]).collect();
    Case { name: name.into(), export: Export::new().dynamic("x0", axes), runs }
}

#[test]
fn named_extents() {
    let runs = || vec![randn((1, 6)), randn((4, 9)), randn((3, 1))];
    let axes = &[(0, "rows"), (1, "columns")];
    check!(dynamic("dynamic_views", axes, runs()), |x, B| {
        let (n, t) = (x[0].dims()[0], x[0].dims()[1]);
        let state = Tensor::<B>::zeros((n, 3), DType::F32)?
            .matmul(&Tensor::<B>::ones((3, t), DType::F32)?)?;
        [
            x[0].add(&state)?.t()?.reshape((t, 1, n))?,
            x[0].narrow(1, t - 1, 1)?.flip(0)?,
            x[0].unsqueeze(-1)?.expand((n, t, 2))?.reshape((n, t * 2))?,
            Tensor::cat(&[&x[0], &x[0].pad(&[(1, 2)], PadMode::Constant(0.0))?], 1)?
                .flatten(0, 1)?,
        ]
    });
    check!(dynamic("dynamic_numbers", axes, runs()), |x, B| {
        let (n, t) = (x[0].dims()[0], x[0].dims()[1]);
        let columns = Tensor::<B>::arange(0.0, t as f64, 1.0)?;
        [
            x[0].mul(&columns)?,
            x[0].sum(Some(&[1]), true)?.div(t as f64)?,
            x[0].reshape(n * t)?,
            x[0].sort(1, true)?.0,
        ]
    });
    let refused = |program: fn(&Tensor<Trace>) -> Result<Tensor<Trace>>| {
        let inputs = [("x", randn((3, 4)))];
        let error = Export::new()
            .dynamic("x", &[(0, "batch")])
            .trace(&inputs, |x| Ok(vec![("y", program(&x[0])?)]));
        error.unwrap_err().to_string()
    };
    let frozen = refused(|x| {
        x.mul(&Tensor::arange(1.0, x.dims()[0] as f64 + 1.0, 1.0)?.square()?.unsqueeze(1)?)
    });
    assert!(frozen.contains("mul freezes an extent") && frozen.contains("batch 3"), "{frozen}");
    let parts = refused(|x| Tensor::cat(&x.unbind(0)?, 0));
    assert!(parts.contains("depends on an extent"), "{parts}");
    let branches = refused(|x| if x.dims()[0] > 3 { x.exp() } else { x.sin() });
    assert!(branches.contains("depends on an extent") && branches.contains("sin"), "{branches}");
}

#[test]
fn what_cannot_be_recorded_is_an_error() {
    let refused = |program: fn(&Tensor<Trace>) -> Result<Tensor<Trace>>| {
        let y = Export::new().trace(&[("x", randn((3, 4)))], |x| Ok(vec![("y", program(&x[0])?)]));
        y.unwrap_err().to_string()
    };
    assert!(refused(|x| x.lgamma()).contains("reads values"));
    assert!(refused(|x| x.masked_select(&x.gt(0.0)?)).contains("reads values"));
    let mask = swath::ops::DropoutMask { p: 0.5, seed: 1, stream: 0 };
    let dropped =
        Export::new().trace(&[("x", randn((3, 4)))], |x| Ok(vec![("y", x[0].dropout(mask)?)]));
    assert!(dropped.unwrap_err().to_string().contains("evaluation"));
    let model = mlp::<Trace>().unwrap();
    let twice = Export::new()
        .model(&model)
        .trace(&[("0.weight", randn((3, 5)))], |x| Ok(vec![("y", model.forward(&x[0])?)]));
    assert!(twice.unwrap_err().to_string().contains("0.weight"));
}

#[test]
fn parameters_keep_their_paths_and_models_their_mode() {
    let model = mlp::<Trace>().unwrap();
    let bytes = swath_onnx::export(&model, &[("x", randn((3, 5)))]).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    nn::for_each_tensor(&model, |path, _, _| {
        assert!(has(path) || path.starts_with("3."), "{path}")
    });
    struct Training(Vec<bool>);
    impl nn::Visitor<Trace> for Training {
        fn enter(&mut self, _name: &str) {}
        fn leave(&mut self) {}
        fn tensor(&mut self, _tensor: &Tensor<Trace>, _kind: nn::Kind) {}
        fn training(&mut self, flag: &std::sync::atomic::AtomicBool) {
            self.0.push(flag.load(std::sync::atomic::Ordering::Relaxed));
        }
    }
    let mut flags = Training(Vec::new());
    model.visit(&mut flags);
    assert_eq!(flags.0, [true]);
}

/// An exported model that is read back can be exported again, with names that the first export made.
#[test]
fn files_are_read_back_and_exported_again() {
    let x = randn((2, 3));
    let expected = x.add(1.0).unwrap().relu().unwrap().leaky_relu(0.1).unwrap();
    let y = |x: &[Tensor<Trace>]| Ok(vec![("y", x[0].add(1.0)?.relu()?.leaky_relu(0.1)?)]);
    let mut file = Export::new().trace(&[("x", x.clone())], y).unwrap().into_bytes();
    for _ in 0..2 {
        let model = Model::from_owner(file).unwrap();
        let found = model.run([("x", x.clone())]).unwrap();
        assert_eq!(found[0].to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
        file = swath_onnx::export(&model.module::<Trace>().unwrap(), &[("x", x.clone())]).unwrap();
    }
}
