//! A decoder-only transformer with pre-norm blocks and learned position embeddings.

use swath::nn::{
    self, Dropout, Embedding, LayerNorm, Linear, LinearOptions, Module, TransformerBlock,
    TransformerBlockOptions, init,
};
use swath::prelude::*;

/// Sizes of a model.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub vocabulary: usize,
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub context: usize,
    pub dropout: f64,
}

/// The transformer.
pub struct Gpt<B: Backend = CpuBackend> {
    /// Token embedding, `[vocabulary, width]`.
    pub tokens: Embedding<B>,
    /// Position embedding, `[context, width]`.
    pub positions: Tensor<B>,
    pub dropout: Dropout,
    pub blocks: Vec<TransformerBlock<B>>,
    pub norm: LayerNorm<B>,
    /// Projection from width to vocabulary, without a bias.
    pub head: Linear<B>,
}
swath::module!(Gpt<B> { tokens, positions, dropout, blocks, norm, head });

impl<B: Backend> Gpt<B> {
    /// Initialises a model like GPT-2: matrices from N(0, 0.02²), those at the end of a residual branch divided
    /// by √(2 layers); biases 0; weights of norms 1.
    pub fn new(sizes: Sizes, rng: &mut Rng) -> Result<Self> {
        let Sizes { vocabulary, width, layers, heads, context, dropout } = sizes;
        let block = TransformerBlockOptions { causal: true, dropout, ..Default::default() };
        let head = LinearOptions { bias: false, ..Default::default() };
        let mut model = Gpt {
            tokens: Embedding::new(vocabulary, width, rng)?,
            positions: init::zeros((context, width), DType::F32)?,
            dropout: Dropout::new(dropout, rng)?,
            blocks: (0..layers)
                .map(|_| TransformerBlock::with_options(width, heads, block, rng))
                .collect::<Result<_>>()?,
            norm: LayerNorm::new(width)?,
            head: Linear::with_options(width, vocabulary, head, rng)?,
        };
        let residual = 0.02 / (2.0 * layers as f64).sqrt();
        nn::for_each_tensor_mut(&mut model, |path, tensor, _| {
            let ends_branch = path.ends_with("out_proj.weight") || path.ends_with("linear2.weight");
            let deviation = if ends_branch { residual } else { 0.02 };
            match tensor.rank() {
                2 => *tensor = init::normal(*tensor.shape(), 0.0, deviation, tensor.dtype(), rng)?,
                1 if path.ends_with("bias") => {
                    *tensor = init::zeros(*tensor.shape(), tensor.dtype())?;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(model)
    }

    /// Returns the mean cross-entropy, in nats, of predicting `targets` `[b, t]` from `inputs` `[b, t]`.
    pub fn loss(&self, inputs: &Tensor<B>, targets: &Tensor<B>) -> Result<Tensor<B>> {
        let options = CrossEntropy { axis: Some((-1).into()), ..CrossEntropy::default() };
        self.forward(inputs)?.cross_entropy(targets, options)
    }
}

impl<B: Backend> Module<B> for Gpt<B> {
    /// Returns the logits `[b, t, vocabulary]` of the token that follows each of the tokens `[b, t]`.
    fn forward(&self, tokens: &Tensor<B>) -> Result<Tensor<B>> {
        let (t, context) = (tokens.dims()[1], self.positions.dims()[0]);
        let embedded = self.tokens.forward(tokens)?;
        let mut x = match t == context {
            true => embedded.add(&self.positions)?,
            false => embedded.add(&self.positions.narrow(0, 0, t)?)?,
        };
        x = self.dropout.forward(&x)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        self.head.forward(&self.norm.forward(&x)?)
    }
}
