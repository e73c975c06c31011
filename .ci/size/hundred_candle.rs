//! Tensors, gradients, layers and an optimizer: two interleaved half circles are told apart.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, LayerNorm, Linear, Module, Optimizer, ParamsAdamW, VarBuilder, VarMap};
use candle_nn::{layer_norm, linear, loss, ops};

const WIDTH: usize = 32;
const DEVICE: Device = Device::Cpu;

/// Points of two half circles, and which of the two each is of.
struct Moons {
    points: Tensor,
    classes: Tensor,
}

impl Moons {
    fn new(count: usize) -> Result<Self> {
        let (mut points, mut classes) = (Vec::new(), Vec::new());
        for i in 0..count {
            let class = (i % 2) as u32;
            let angle = std::f32::consts::PI * i as f32 / count as f32;
            let (x, y) = match class {
                0 => (angle.cos(), angle.sin()),
                _ => (1.0 - angle.cos(), 0.5 - angle.sin()),
            };
            points.extend([x, y]);
            classes.push(class);
        }
        let noise = Tensor::randn(0f32, 0.1, (count, 2), &DEVICE)?;
        let points = Tensor::from_vec(points, (count, 2), &DEVICE)?;
        let points = points.add(&noise)?;
        Ok(Moons { points, classes: Tensor::from_vec(classes, count, &DEVICE)? })
    }
}

/// Layers, with a sum around the hidden one.
struct Model {
    input: Linear,
    norm: LayerNorm,
    hidden: Linear,
    output: Linear,
}

impl Model {
    fn new(variables: VarBuilder) -> Result<Self> {
        Ok(Model {
            input: linear(2, WIDTH, variables.pp("input"))?,
            norm: layer_norm(WIDTH, 1e-5, variables.pp("norm"))?,
            hidden: linear(WIDTH, WIDTH, variables.pp("hidden"))?,
            output: linear(WIDTH, 2, variables.pp("output"))?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.input.forward(x)?.tanh()?;
        let branch = self.hidden.forward(&self.norm.forward(&x)?)?.gelu_erf()?;
        self.output.forward(&x.add(&branch)?)
    }

    /// The share of points that the model gets right.
    fn accuracy(&self, moons: &Moons) -> Result<f32> {
        let chosen = self.forward(&moons.points)?.argmax(D::Minus1)?;
        let right = chosen.eq(&moons.classes)?.to_dtype(DType::F32)?;
        right.mean_all()?.to_scalar::<f32>()
    }
}

/// The derivative of a mean of squares, and what tensors do without layers.
fn tensors() -> Result<()> {
    let x = Tensor::randn(0f32, 1f32, (6, 4), &DEVICE)?;
    let weights = Var::from_tensor(&Tensor::randn(0f32, 1f32, (4, 3), &DEVICE)?)?;
    let scores = ops::softmax(&x.matmul(&weights)?, 1)?;
    let loss = (scores - 0.5)?.sqr()?.mean_all()?;
    let gradients = loss.backward()?;
    let gradient = gradients.get(&weights).expect("the loss depends on the weights");
    println!("loss {loss}, its gradient\n{gradient}");
    let centred = x.broadcast_sub(&x.mean_keepdim(0)?)?;
    let covariance = (centred.t()?.matmul(&centred)? / 6.0)?;
    println!("{covariance}");
    println!("{}", Tensor::cat(&[&x, &centred], 0)?.narrow(0, 4, 4)?.exp()?);
    println!("{}", x.reshape((3, 8))?.t()?.contiguous()?.max(0)?);
    Ok(())
}

fn main() -> Result<()> {
    tensors()?;
    let moons = Moons::new(200)?;
    let parameters = VarMap::new();
    let model = Model::new(VarBuilder::from_varmap(&parameters, DType::F32, &DEVICE))?;
    let options = ParamsAdamW { lr: 0.01, ..ParamsAdamW::default() };
    let mut optimizer = AdamW::new(parameters.all_vars(), options)?;
    for step in 0..100 {
        let scores = model.forward(&moons.points)?;
        let loss = loss::cross_entropy(&scores, &moons.classes)?;
        optimizer.backward_step(&loss)?;
        if step % 20 == 0 {
            println!("step {step}: loss {:.4}", loss.to_scalar::<f32>()?);
        }
    }
    println!("{:.3} of the points are right", model.accuracy(&moons)?);
    Ok(())
}
