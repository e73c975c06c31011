//! Tensors, gradients, layers and an optimizer: two interleaved half circles are told apart.

use swath::nn::{Activation, LayerNorm, Linear, Sequential};
use swath::optim::{AdamW, AdamWOptions};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

const WIDTH: usize = 32;

/// Points of two half circles, and which of the two each is of.
struct Moons {
    points: T,
    classes: T,
}

impl Moons {
    fn new(count: usize, rng: &mut Rng) -> Result<Self> {
        let (mut points, mut classes) = (Vec::new(), Vec::new());
        for i in 0..count {
            let class = (i % 2) as i64;
            let angle = std::f32::consts::PI * i as f32 / count as f32;
            let (x, y) = match class {
                0 => (angle.cos(), angle.sin()),
                _ => (1.0 - angle.cos(), 0.5 - angle.sin()),
            };
            points.extend([x, y]);
            classes.push(class);
        }
        let noise = T::randn((count, 2), rng)?;
        let points = T::from_vec(points, (count, 2))?;
        let points = points.add(&noise.mul_scalar(0.1)?)?;
        Ok(Moons { points, classes: T::from_vec(classes, count)? })
    }
}

/// Layers, with a sum around the hidden one.
struct Model {
    input: Linear,
    norm: LayerNorm,
    hidden: Sequential,
    output: Linear,
}
swath::module!(Model: CpuBackend { input, norm, hidden, output });

impl Model {
    fn new(rng: &mut Rng) -> Result<Self> {
        Ok(Model {
            input: Linear::new(2, WIDTH, rng)?,
            norm: LayerNorm::new(WIDTH)?,
            hidden: Sequential::new().push(Linear::new(WIDTH, WIDTH, rng)?).push(Activation::Gelu),
            output: Linear::new(WIDTH, 2, rng)?,
        })
    }

    fn forward(&self, x: &T) -> Result<T> {
        let x = self.input.forward(x)?.tanh()?;
        let branch = self.hidden.forward(&self.norm.forward(&x)?)?;
        self.output.forward(&x.add(&branch)?)
    }

    /// The share of points that the model gets right.
    fn accuracy(&self, moons: &Moons) -> Result<f32> {
        let chosen = self.forward(&moons.points)?.argmax(1, false)?;
        let right = chosen.eq(&moons.classes)?.to_dtype(DType::F32)?;
        right.mean(None, false)?.item::<f32>()
    }
}

/// The derivative of a mean of squares, and what tensors do without layers.
fn tensors(rng: &mut Rng) -> Result<()> {
    let x = T::randn((6, 4), rng)?;
    let weights = T::randn((4, 3), rng)?.requires_grad();
    let scores = x.matmul(&weights)?.softmax(1)?;
    let loss = scores.add_scalar(-0.5)?.square()?.mean(None, false)?;
    let gradients = loss.backward()?;
    println!("loss {loss}, its gradient\n{}", gradients.wrt(&weights)?);
    let centred = x.sub(&x.mean(Some(&[0]), true)?)?;
    let covariance = centred.t()?.matmul(&centred)?.mul_scalar(1.0 / 6.0)?;
    println!("{covariance}");
    println!("{}", T::cat(&[&x, &centred], 0)?.narrow(0, 4, 4)?.exp()?);
    println!("{}", x.reshape((3, 8))?.t()?.contiguous()?.max_axis(0, false)?);
    Ok(())
}

fn main() -> Result<()> {
    let mut rng = Rng::seed(1);
    tensors(&mut rng)?;
    let moons = Moons::new(200, &mut rng)?;
    let mut model = Model::new(&mut rng)?;
    let options = AdamWOptions { learning_rate: 0.01, ..AdamWOptions::default() };
    let mut optimizer = AdamW::new(options)?;
    for step in 0..100 {
        let scores = model.forward(&moons.points)?;
        let loss = scores.cross_entropy(&moons.classes, CrossEntropy::default())?;
        optimizer.step(&mut model, &loss.backward()?)?;
        if step % 20 == 0 {
            println!("step {step}: loss {:.4}", loss.item::<f32>()?);
        }
    }
    println!("{:.3} of the points are right", model.accuracy(&moons)?);
    Ok(())
}
