//! A decoder-only transformer (pre-norm, learned positions) written with tensor operations.

use swath::prelude::*;

pub type T = Tensor<CpuBackend>;

/// Sizes of the model and of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub vocabulary: usize,
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub context: usize,
    pub batch: usize,
}

impl Config {
    /// Learns visibly within a minute or two on two cores.
    pub fn small() -> Self {
        Config { vocabulary: 0, width: 96, layers: 3, heads: 4, context: 64, batch: 16 }
    }

    pub fn with_vocabulary(self, vocabulary: usize) -> Self {
        Config { vocabulary, ..self }
    }
}

/// Positions in [`Gpt::parameters`] of one block's parameters, in this order.
const BLOCK: [&str; 12] = [
    "norm1.scale",
    "norm1.shift",
    "query",
    "key",
    "value",
    "projection",
    "norm2.scale",
    "norm2.shift",
    "expand.weight",
    "expand.bias",
    "contract.weight",
    "contract.bias",
];

pub struct Gpt {
    config: Config,
    /// Token embedding `[v, c]`, position embedding `[t, c]`, the blocks', last norm's scale and
    /// shift `[c]`, output weight `[c, v]`.
    parameters: Vec<T>,
    /// `[t, t]`, true where a position may look.
    causal: T,
}

impl Gpt {
    /// Weights from N(0, 0.02²) (GPT-2), the last ones of each block scaled down by the depth.
    pub fn new(config: Config, rng: &Rng) -> Result<Self> {
        let (v, c, t) = (config.vocabulary, config.width, config.context);
        let mut parameters = Vec::new();
        let mut add = |name: &str, shape: &[usize], deviation: f64, fill: f64| -> Result<()> {
            let mut rng = rng.stream(1000 + parameters.len() as u64);
            let value = T::randn(shape, &mut rng)?.affine(deviation, fill)?;
            parameters.push(T::var(name, value.data().clone()));
            Ok(())
        };
        let residual = 0.02 / (2.0 * config.layers as f64).sqrt();
        add("tokens", &[v, c], 0.02, 0.0)?;
        add("positions", &[t, c], 0.02, 0.0)?;
        for layer in 0..config.layers {
            for name in BLOCK {
                let (shape, deviation, fill): (&[usize], _, _) = match name {
                    "norm1.scale" | "norm2.scale" => (&[c], 0.0, 1.0),
                    "query" | "key" | "value" => (&[c, c], 0.02, 0.0),
                    "projection" => (&[c, c], residual, 0.0),
                    "expand.weight" => (&[c, 4 * c], 0.02, 0.0),
                    "expand.bias" => (&[4 * c], 0.0, 0.0),
                    "contract.weight" => (&[4 * c, c], residual, 0.0),
                    _ => (&[c], 0.0, 0.0),
                };
                add(&format!("blocks.{layer}.{name}"), shape, deviation, fill)?;
            }
        }
        add("norm.scale", &[c], 0.0, 1.0)?;
        add("norm.shift", &[c], 0.0, 0.0)?;
        add("output", &[c, v], 0.02, 0.0)?;
        let row = T::arange(0., t as f64, 1.)?;
        let causal = row.unsqueeze(0)?.le(&row.unsqueeze(1)?)?;
        Ok(Gpt { config, parameters, causal })
    }

    pub fn config(&self) -> Config {
        self.config
    }

    pub fn parameters(&self) -> &[T] {
        &self.parameters
    }

    pub fn parameters_mut(&mut self) -> &mut [T] {
        &mut self.parameters
    }

    pub fn parameter_count(&self) -> usize {
        self.parameters.iter().map(T::numel).sum()
    }

    /// Mean cross-entropy in nats of predicting `targets` `[b, t]` from `inputs` `[b, t]`.
    pub fn loss(&self, inputs: &T, targets: &T) -> Result<T> {
        let log_p = self.logits(inputs)?.log_softmax(-1)?;
        log_p.gather(1, &targets.reshape((targets.numel(), 1))?)?.mean(None, false)?.neg()
    }

    /// Logits `[b·t, v]` of the character after each of `inputs` `[b, t]`.
    pub fn logits(&self, inputs: &T) -> Result<T> {
        let (b, t, c) = (inputs.dims()[0], inputs.dims()[1], self.config.width);
        let p = &self.parameters;
        let tokens = p[0].index_select(0, &inputs.flatten(0, 1)?)?.reshape((b, t, c))?;
        let mut x = tokens.add(&p[1].narrow(0, 0, t)?)?;
        for block in p[2..p.len() - 3].chunks_exact(BLOCK.len()) {
            let normed = layer_norm(&x, &block[0], &block[1])?;
            x = x.add(&self.attention(&normed, &block[2..6])?)?;
            let hidden = layer_norm(&x, &block[6], &block[7])?.matmul(&block[8])?;
            let hidden = hidden.add(&block[9])?.gelu_tanh()?;
            x = x.add(&hidden.matmul(&block[10])?.add(&block[11])?)?;
        }
        let [scale, shift, output] = &p[p.len() - 3..] else { unreachable!("three were added") };
        layer_norm(&x, scale, shift)?.reshape((b * t, c))?.matmul(output)
    }

    /// Causal self-attention of `x` `[b, t, c]`; `weights` are query, key, value, projection.
    fn attention(&self, x: &T, weights: &[T]) -> Result<T> {
        let (b, t, c) = (x.dims()[0], x.dims()[1], x.dims()[2]);
        let heads = self.config.heads;
        let split = |weight: &T| -> Result<T> {
            x.matmul(weight)?.reshape((b, t, heads, c / heads))?.permute(&[0, 2, 1, 3])
        };
        let (q, k, v) = (split(&weights[0])?, split(&weights[1])?, split(&weights[2])?);
        let scores = q.matmul(&k.t()?)?.mul_scalar(((c / heads) as f64).sqrt().recip())?;
        let mask = self.causal.slice(s![..t, ..t])?;
        let scores = T::where_cond(&mask, &scores, &T::full((), f32::NEG_INFINITY)?)?;
        let mixed = scores.softmax(-1)?.matmul(&v)?;
        mixed.permute(&[0, 2, 1, 3])?.reshape((b, t, c))?.matmul(&weights[3])
    }
}

fn layer_norm(x: &T, scale: &T, shift: &T) -> Result<T> {
    let last = x.rank() - 1;
    let centred = x.sub(&x.mean(Some(&[last]), true)?)?;
    let variance = centred.square()?.mean(Some(&[last]), true)?;
    let normal = centred.div(&variance.add_scalar(1e-5)?.sqrt()?)?;
    normal.mul(scale)?.add(shift)
}
