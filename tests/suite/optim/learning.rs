//! Training small models to solve a task.

use super::T;
use swath::nn::{Activation, Dropout, Linear, Module, Sequential, loss};
use swath::optim::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, CosineSchedule, Lion,
    LionOptions, Optimizer, RmsProp, RmsPropOptions, Schedule, Sgd, SgdOptions, WarmupSchedule,
    clip_grad_norm,
};
use swath::prelude::*;

/// Points of two spirals of one and a half turns, and the spiral that each point is on.
fn spirals(count: usize, rng: &mut Rng) -> (T, T) {
    let (mut points, mut classes) = (Vec::new(), Vec::new());
    for i in 0..count {
        let class = i % 2;
        let t = f64::from(rng.uniform::<f32>());
        let angle = 2.0 * std::f64::consts::PI * (1.25 * t + 0.5 * class as f64);
        let radius = 0.1 + 0.9 * t;
        let noise = |rng: &mut Rng| 0.02 * f64::from(rng.normal::<f32>());
        points.push((radius * angle.cos() + noise(rng)) as f32);
        points.push((radius * angle.sin() + noise(rng)) as f32);
        classes.push(class as i64);
    }
    (T::from_vec(points, (count, 2)).unwrap(), T::from_vec(classes, count).unwrap())
}

fn accuracy(model: &Sequential, x: &T, classes: &T) -> f64 {
    let logits = model.forward(x).unwrap().to_vec::<f32>().unwrap();
    let classes = classes.to_vec::<i64>().unwrap();
    let right = logits.chunks(2).zip(&classes).filter(|(y, class)| (y[1] > y[0]) == (**class == 1));
    right.count() as f64 / classes.len() as f64
}

#[test]
fn a_perceptron_separates_two_spirals() -> Result<()> {
    let mut rng = Rng::seed(11);
    let (x, classes) = spirals(400, &mut rng);
    let (x_test, classes_test) = spirals(200, &mut rng);
    let mut model = Sequential::new()
        .push(Linear::new(2, 32, &mut rng)?)
        .push(Activation::Tanh)
        .push(Dropout::new(0.05, &mut rng)?)
        .push(Linear::new(32, 32, &mut rng)?)
        .push(Activation::Relu)
        .push(Linear::new(32, 2, &mut rng)?);
    let schedule =
        WarmupSchedule { warmup: 20, then: CosineSchedule { peak: 0.02, floor: 1e-4, steps: 380 } };
    let mut optimizer = AdamW::new(AdamWOptions::default())?;
    for step in 0..400 {
        optimizer.set_learning_rate(schedule.rate(step));
        let mut grads = loss::cross_entropy(&model.forward(&x)?, &classes)?.backward()?;
        clip_grad_norm(&model, &mut grads, 1.0)?;
        optimizer.step(&mut model, &grads)?;
    }
    model.set_training(false);
    let reached = accuracy(&model, &x_test, &classes_test);
    assert!(reached > 0.95, "{reached}");
    Ok(())
}

#[test]
fn every_optimizer_learns_exclusive_or() -> Result<()> {
    let x = tensor![[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
    let y = tensor![[0.0], [1.0], [1.0], [0.0]];
    let momentum = SgdOptions { momentum: 0.9, ..Default::default() };
    let optimizers: [(&str, f64, Box<dyn Optimizer<CpuBackend>>); 6] = [
        ("sgd", 0.5, Box::new(Sgd::new(momentum)?)),
        ("adam", 0.05, Box::new(Adam::new(AdamOptions::default())?)),
        ("adamw", 0.05, Box::new(AdamW::new(AdamWOptions::default())?)),
        ("rms_prop", 0.02, Box::new(RmsProp::new(RmsPropOptions::default())?)),
        ("adagrad", 0.3, Box::new(Adagrad::new(AdagradOptions::default())?)),
        ("lion", 0.02, Box::new(Lion::new(LionOptions::default())?)),
    ];
    for (name, rate, mut optimizer) in optimizers {
        optimizer.set_learning_rate(rate);
        let mut rng = Rng::seed(2);
        let mut model = Sequential::new()
            .push(Linear::new(2, 8, &mut rng)?)
            .push(Activation::Tanh)
            .push(Linear::new(8, 1, &mut rng)?);
        for _ in 0..300 {
            let logits = model.forward(&x)?;
            let grads = loss::binary_cross_entropy_with_logits(&logits, &y)?.backward()?;
            optimizer.step(&mut model, &grads)?;
        }
        let p = model.forward(&x)?.sigmoid()?.to_vec::<f32>()?;
        let right = p.iter().zip([0.0, 1.0, 1.0, 0.0]).all(|(p, y)| (p - y).abs() < 0.1);
        assert!(right, "{name}: {p:?}");
    }
    Ok(())
}
