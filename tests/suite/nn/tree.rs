//! Visitors: names, kinds, flags, shared parts, conversion, the summary.

use std::sync::Arc;

use super::{T, parameters, paths, randn};
use swath::nn::{
    self, Activation, Dropout, Embedding, Func, Kind, LayerNorm, Linear, Module,
    MultiHeadAttention, Sequential, TransformerBlock, TransformerBlockOptions,
};
use swath::prelude::*;

fn rng() -> Rng {
    Rng::seed(5)
}

struct Model<B: Backend> {
    blocks: Vec<Box<dyn Module<B>>>,
    extra: Option<Dropout>,
    shared: Arc<Sequential<B>>,
    head: Linear<B>,
}
swath::module!(Model<B> { blocks, extra, shared, head });

impl<B: Backend> Module<B> for Model<B> {
    fn forward(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let x = self.blocks.iter().try_fold(x.clone(), |x, block| block.forward(&x))?;
        let x = self.extra.iter().try_fold(x, |x, extra| extra.forward(&x))?;
        self.head.forward(&self.shared.forward(&x)?)
    }
}

fn model() -> Model<CpuBackend> {
    let mut rng = rng();
    let options = TransformerBlockOptions { dropout: 0.2, ..Default::default() };
    let block = TransformerBlock::with_options(4, 2, options, &mut rng).unwrap();
    let nested = Sequential::new()
        .push(Sequential::new().push(Dropout::new(0.2, &mut rng).unwrap()))
        .push(Activation::Relu);
    Model {
        blocks: vec![Box::new(block), Box::new(nested)],
        extra: Some(Dropout::new(0.2, &mut rng).unwrap()),
        shared: Arc::new(Sequential::new().push(Dropout::new(0.2, &mut rng).unwrap())),
        head: Linear::new(4, 3, &mut rng).unwrap(),
    }
}

#[test]
fn names_match_pytorchs() {
    let block: TransformerBlock = TransformerBlock::new(4, 2, &mut rng()).unwrap();
    let names: Vec<String> = parameters(&block).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        names,
        [
            "norm1.weight",
            "norm1.bias",
            "self_attn.in_proj_weight",
            "self_attn.in_proj_bias",
            "self_attn.out_proj.weight",
            "self_attn.out_proj.bias",
            "norm2.weight",
            "norm2.bias",
            "linear1.weight",
            "linear1.bias",
            "linear2.weight",
            "linear2.bias",
        ]
    );
    let sequence = Sequential::new()
        .push(Embedding::new(3, 2, &mut rng()).unwrap())
        .push(Func::new(|x: &T| x.tanh()))
        .push(LayerNorm::new(2).unwrap());
    assert_eq!(paths(&sequence), ["0.weight", "2.weight", "2.bias"]);
}

#[test]
fn set_training_reaches_every_part() -> Result<()> {
    let mut model = model();
    let x = randn((2, 3, 4), 1);
    let repeats = |model: &Model<CpuBackend>| {
        let run = || model.forward(&x)?.to_vec::<f32>();
        Ok::<_, Error>(run()? == run()?)
    };
    assert!(!repeats(&model)?);
    let _other = Arc::clone(&model.shared);
    model.set_training(false);
    assert!(repeats(&model)?);
    model.set_training(true);
    assert!(!repeats(&model)?);
    let mut boxed: Box<dyn Module<CpuBackend>> = Box::new(model);
    boxed.set_training(false);
    let run = || boxed.forward(&x)?.to_vec::<f32>();
    assert_eq!(run()?, run()?);
    Ok(())
}

/// A model that gets the buffers of another one continues with the same dropout masks.
#[test]
fn buffers_can_be_written_back() -> Result<()> {
    let x = randn((2, 3, 4), 2);
    let model = model();
    for _ in 0..3 {
        model.forward(&x)?;
    }
    let mut buffers = Vec::new();
    nn::for_each_tensor(&model, |path, tensor, kind| {
        if kind == Kind::Buffer {
            assert_eq!((tensor.dtype(), tensor.rank()), (DType::I64, 0), "{path}");
            buffers.push((path.to_owned(), tensor.clone()));
        }
    });
    let steps = buffers.iter().filter(|(path, _)| path.ends_with(".step"));
    let steps: Vec<i64> = steps.map(|(_, step)| step.item::<i64>()).collect::<Result<_>>()?;
    assert_eq!(steps, [3; 6]);

    let mut other = self::model();
    let mut rng = Rng::seed(77);
    other.extra = Some(Dropout::new(0.2, &mut rng)?);
    let mut next = buffers.iter();
    nn::for_each_tensor_mut(&mut other, |path, tensor, kind| {
        if kind == Kind::Buffer {
            let (from, value) = next.next().expect("as many");
            assert_eq!(path, from);
            *tensor = value.clone();
        }
        Ok(())
    })?;
    assert_eq!(other.forward(&x)?.to_vec::<f32>()?, model.forward(&x)?.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn a_part_held_by_two_arcs_is_an_error_and_nothing_changes() {
    let mut model = model();
    let other = Arc::clone(&model.shared);
    let mut calls = 0;
    let error = nn::for_each_tensor_mut(&mut model, |_, _, _| {
        calls += 1;
        Ok(())
    })
    .unwrap_err();
    assert!(error.to_string().contains("`shared` is held by more than one Arc"), "{error}");
    assert_eq!(calls, 0);
    drop(other);
    nn::for_each_tensor_mut(&mut model, |_, _, _| Ok(())).unwrap();
}

#[test]
fn a_visit_stops_at_the_first_error() {
    let mut layer: Linear = Linear::new(2, 2, &mut rng()).unwrap();
    let mut seen = Vec::new();
    let result = nn::for_each_tensor_mut(&mut layer, |path, _, _| {
        seen.push(path.to_owned());
        Err(Error::InvalidArgument { op: "test", reason: path.to_owned() })
    });
    assert_eq!(result.unwrap_err().to_string(), "test: weight");
    assert_eq!(seen, ["weight"]);
}

struct Tied<B: Backend> {
    table: Embedding<B>,
    frozen: Tensor<B>,
    head: Linear<B>,
}
swath::module!(Tied<B> { table, frozen, head });

fn tied() -> Tied<CpuBackend> {
    let table: Embedding = Embedding::new(10, 4, &mut rng()).unwrap();
    let mut head = Linear::new(4, 10, &mut rng()).unwrap();
    head.weight = table.weight.clone();
    Tied { table, frozen: randn((2, 3), 3), head }
}

#[test]
fn the_summary_counts_a_tied_parameter_once() {
    let summary = nn::summary(&tied());
    assert_eq!((summary.parameters(), summary.parameter_bytes()), (50, 200));
    assert_eq!((summary.buffers(), summary.buffer_bytes()), (6, 24));
    assert_eq!(
        summary.to_string(),
        "\
path          shape    dtype      parameters  bytes
table.weight  [10, 4]  f32                40    160
frozen        [2, 3]   f32            buffer     24
head.weight   [10, 4]  f32    = table.weight
head.bias     [10]     f32                10     40
parameters                                50    200
buffers                                    6     24
"
    );
}

#[test]
fn conversion_keeps_ties_kinds_names_and_counters() -> Result<()> {
    let mut tied = tied();
    tied.head.bias = Some(T::var("bias", randn(10, 4).data().clone()));
    let before = tied.table.weight.to_vec::<f32>()?;
    nn::to_dtype(&mut tied, DType::F64)?;
    assert_eq!(nn::summary(&tied).parameters(), 50);
    assert_eq!(tied.frozen.dtype(), DType::F64);
    assert!(!tied.frozen.is_tracked());
    assert_eq!(tied.head.bias.as_ref().and_then(|bias| bias.name()), Some("bias"));
    let after = tied.table.weight.to_vec::<f64>()?;
    assert!(before.iter().zip(&after).all(|(&a, &b)| f64::from(a) == b));

    let mut dropout = Dropout::new(0.5, &mut rng())?;
    nn::to_dtype::<CpuBackend>(&mut dropout, DType::F64)?;
    assert_eq!(paths(&dropout), ["seed", "step"]);
    let refused = nn::to_dtype::<CpuBackend>(&mut dropout, DType::I64);
    assert!(matches!(refused, Err(Error::UnsupportedDType { .. })));
    Ok(())
}

#[test]
fn gradients_reach_both_uses_of_a_tied_parameter() -> Result<()> {
    let tied = tied();
    let y = tied.head.forward(&tied.table.forward(&tensor![i64; 1, 2])?)?;
    let grads = y.sum(None, false)?.backward()?;
    let (a, b) = (grads.wrt(&tied.table.weight)?, grads.wrt(&tied.head.weight)?);
    assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn models_are_sent_between_threads() {
    fn check<M: Send + Sync>() {}
    check::<Sequential>();
    check::<TransformerBlock>();
    check::<MultiHeadAttention>();
    check::<Box<dyn Module<CpuBackend>>>();
}
