//! AdamW (Loshchilov & Hutter, 2019) with warm-up and a smooth decay of the rate.

use swath::prelude::*;

use crate::model::T;

const PEAK_RATE: f64 = 3e-3;
const FINAL_RATE: f64 = 3e-4;
const WARM_UP: usize = 20;
const BETA1: f64 = 0.9;
const BETA2: f64 = 0.95;
const EPSILON: f64 = 1e-8;
const DECAY: f64 = 0.1;

pub struct AdamW {
    steps: usize,
    done: usize,
    /// `BETA1` and `BETA2` to the power of the steps done, by multiplication: the same everywhere.
    powers: (f64, f64),
    /// First and second moment of each parameter's gradient.
    moments: Vec<(T, T)>,
}

impl AdamW {
    pub fn new(steps: usize) -> Self {
        AdamW { steps, done: 0, powers: (1.0, 1.0), moments: Vec::new() }
    }

    /// Linear warm-up to the peak, then along the smooth step `1 - 3p² + 2p³` down to the final
    /// rate: close to the usual half cosine, but the same bits on every machine.
    fn rate(&self) -> f64 {
        let step = self.done as f64 + 1.0;
        let warm_up = WARM_UP.min(self.steps) as f64;
        if step <= warm_up {
            return PEAK_RATE * step / warm_up;
        }
        let progress = (step - warm_up) / (self.steps as f64 - warm_up).max(1.0);
        let falling = 1.0 - progress * progress * (3.0 - 2.0 * progress);
        FINAL_RATE + (PEAK_RATE - FINAL_RATE) * falling
    }

    /// Replaces every parameter by its updated value.
    pub fn step(&mut self, parameters: &mut [T], gradients: &Gradients<CpuBackend>) -> Result<()> {
        if self.moments.is_empty() {
            let zeros = |p: &T| Ok((p.zeros_like()?, p.zeros_like()?));
            self.moments = parameters.iter().map(zeros).collect::<Result<_>>()?;
        }
        let rate = self.rate();
        self.done += 1;
        self.powers = (self.powers.0 * BETA1, self.powers.1 * BETA2);
        let (correct1, correct2) = (1.0 - self.powers.0, 1.0 - self.powers.1);
        no_grad(|| {
            for (parameter, (m, v)) in parameters.iter_mut().zip(&mut self.moments) {
                let g = gradients.wrt(parameter)?;
                *m = &*m * BETA1 + g * (1.0 - BETA1);
                *v = &*v * BETA2 + g.square()? * (1.0 - BETA2);
                let scale = (&*v * (1.0 / correct2)).sqrt()? + EPSILON;
                let step = (&*m * (rate / correct1)) / scale;
                // Weights decay, scales and shifts do not.
                let decay = if parameter.rank() > 1 { rate * DECAY } else { 0.0 };
                let updated = &*parameter * (1.0 - decay) - step;
                let name = parameter.name().unwrap_or_default().to_owned();
                *parameter = T::var(&name, updated.data().clone());
            }
            Ok(())
        })
    }
}
