//! The training loop: draws batches, takes steps, measures the held-out loss and saves.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};
use swath::distributed::{DataParallel, ShardedOptimizer, World};
use swath::io::replace_file;
use swath::nn::{self, Module};
use swath::optim::{
    self, AdamW, AdamWOptions, CosineSchedule, Optimizer, Schedule, WarmupSchedule, clip_grad_norm,
};
use swath::prelude::*;

use crate::Failure;
use crate::data::{Batch, Corpus};
use crate::history::History;
use crate::model::{Gpt, Sizes};
use crate::plan::Plan;
use crate::progress::Progress;

/// Held-out batches over which the loss is averaged during training.
const HELD_OUT_BATCHES: usize = 8;

/// Stream of random numbers for the initial parameters and for dropout.
const MODEL_STREAM: u64 = 1;
/// Stream of random numbers for training batches.
const BATCH_STREAM: u64 = 2;
/// Stream of random numbers for held-out batches.
const HELD_OUT_STREAM: u64 = 3;
/// Stream of random numbers for sampled text.
pub const SAMPLE_STREAM: u64 = 4;

/// A run: everything that its next step depends on, besides the text.
pub struct Run<B: Backend> {
    pub plan: Plan,
    pub model: Gpt<B>,
    pub optimizer: Box<dyn Optimizer<B>>,
    pub parallel: DataParallel,
    /// Draws the batches.
    pub rng: Rng,
    pub history: History,
}

/// How training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    Interrupted,
}

impl<B: Backend> Run<B> {
    /// Returns a run that has not done a step yet. If `shard` is true, the ranks share out the optimizer's state.
    pub fn new(plan: Plan, vocabulary: usize, world: &World, shard: bool) -> Result<Self> {
        let Plan { width, layers, heads, context, dropout, .. } = plan;
        let rng = Rng::seed(plan.seed);
        let sizes = Sizes { vocabulary, width, layers, heads, context, dropout };
        let options = AdamWOptions {
            learning_rate: plan.rate,
            betas: [0.9, 0.95],
            weight_decay: 0.1,
            decays: optim::matrices,
            ..AdamWOptions::default()
        };
        let mut model = Gpt::new(sizes, &mut rng.stream(MODEL_STREAM))?;
        Ok(Run {
            plan,
            parallel: DataParallel::new(world, &mut model, plan.micro_batches)?,
            model,
            optimizer: match shard {
                true => Box::new(ShardedOptimizer::new(world, options)?),
                false => Box::new(AdamW::new(options)?),
            },
            rng: rng.stream(BATCH_STREAM),
            history: History::default(),
        })
    }

    /// Returns the number of steps done.
    pub fn steps(&self) -> usize {
        self.history.losses.len()
    }

    /// Returns the learning rate of a step, counted from 0.
    fn rate(&self, step: usize) -> f64 {
        let (peak, warmup) = (self.plan.rate, self.plan.warmup() as u64);
        let steps = (self.plan.schedule as u64).saturating_sub(warmup);
        let then = CosineSchedule { peak, floor: self.plan.final_rate(), steps };
        WarmupSchedule { warmup, then }.rate(step as u64)
    }

    /// Takes one step on a batch; returns its loss. Every rank computes its part, and has the same result.
    pub fn step(&mut self, batch: &Batch<B>) -> Result<f32> {
        let Batch { inputs, targets } = batch;
        let batch = (inputs.clone(), targets.clone());
        let mut mean = self.parallel.mean_gradients(&mut self.model, &batch, |model, micro| {
            let (inputs, targets) = micro.data;
            model.loss(&inputs, &targets)
        })?;
        let value = mean.loss as f32;
        if !value.is_finite() {
            let reason = format!(
                "the loss of step {} is {value}: expected a finite loss; lower --lr",
                self.steps() + 1
            );
            return Err(Error::InvalidArgument { op: "training", reason });
        }
        clip_grad_norm(&self.model, &mut mean.gradients, 1.0)?;
        self.optimizer.set_learning_rate(self.rate(self.steps()));
        self.optimizer.step(&mut self.model, &mean.gradients)?;
        self.history.losses.push(value);
        Ok(value)
    }

    /// Takes steps until the plan is done or `stop` is set, on any rank. Calls `save` about 20 times and at the end.
    pub fn train(
        &mut self,
        corpus: &Corpus,
        stop: &AtomicBool,
        mut save: impl FnMut(&Run<B>) -> Result<(), Failure>,
    ) -> Result<End, Failure> {
        let Plan { steps, schedule, batch: rows, context, .. } = self.plan;
        let (held_out_every, save_every) = (schedule.div_ceil(30), schedule.div_ceil(20));
        let is_root = self.parallel.world().is_root();
        let mut progress = is_root.then(|| Progress::new(steps, self.steps(), rows * context));
        self.history.losses.reserve((steps - self.steps()).min(1 << 20));
        let mut end = End::Done;
        while self.steps() < steps {
            let batch = Batch::draw(&corpus.training, rows, context, &mut self.rng)?;
            let loss = self.step(&batch)?;
            let done = self.steps();
            if done.is_multiple_of(held_out_every) || done == steps {
                let loss = self.held_out_sample(corpus)?;
                self.history.held_out.push((done, loss));
            }
            if let Some(progress) = &mut progress {
                progress.step(loss, self.history.held_out.last().map(|&(_, loss)| loss));
            }
            if self.is_stopped(stop)? && done < steps {
                end = End::Interrupted;
                break;
            }
            if done.is_multiple_of(save_every) && done < steps {
                save(self)?;
            }
        }
        progress.into_iter().for_each(Progress::finish);
        save(self)?;
        Ok(end)
    }

    /// True if `stop` was set on any rank: all of them stop after the same step.
    fn is_stopped(&self, stop: &AtomicBool) -> Result<bool> {
        let own = Tensor::<CpuBackend>::full((), stop.load(Ordering::Relaxed))?;
        let all = self.parallel.world().all_gather(&own)?;
        Ok(all.iter().any(|stop| stop.item::<bool>().unwrap_or(true)))
    }

    /// Returns the mean loss of a fixed set of held-out windows, in nats per character. The ranks share them out.
    fn held_out_sample(&mut self, corpus: &Corpus) -> Result<f32> {
        let Plan { batch: rows, context, seed, .. } = self.plan;
        let mut rng = Rng::seed(seed).stream(HELD_OUT_STREAM);
        let batches = (0..HELD_OUT_BATCHES)
            .map(|_| Batch::draw(&corpus.held_out, rows, context, &mut rng))
            .collect::<Result<Vec<_>>>()?;
        self.model.set_training(false);
        let mean = self.parallel.mean_of(HELD_OUT_BATCHES, |i| {
            let Batch { inputs, targets } = &batches[i];
            Ok([f64::from(self.model.loss(inputs, targets)?.item::<f32>()?)])
        });
        self.model.set_training(true);
        Ok(mean?[0] as f32)
    }

    /// Returns the mean loss over a text, in nats per character. The text is split into consecutive windows,
    /// and a character is predicted from those before it in its window. A remainder that is shorter than a
    /// window is left out. The ranks share out the windows.
    pub fn loss_of(&mut self, text: &[i64]) -> Result<f64> {
        let Plan { batch: rows, context, .. } = self.plan;
        let windows = (text.len() - 1) / context;
        let groups = windows.div_ceil(rows);
        self.model.set_training(false);
        let mean = self.parallel.mean_of(groups, |i| {
            let (first, rows) = (i * rows, rows.min(windows - i * rows));
            let batch = Batch::consecutive(text, rows, context, first * context)?;
            let loss = self.model.loss(&batch.inputs, &batch.targets)?.item::<f32>()?;
            Ok([f64::from(loss) * rows as f64])
        });
        self.model.set_training(true);
        Ok(mean?[0] * groups as f64 / windows as f64)
    }

    /// Calls `f` with the model in evaluation mode, without recording and without dropout.
    pub fn evaluating<R>(&mut self, f: impl FnOnce(&Gpt<B>) -> Result<R>) -> Result<R> {
        self.model.set_training(false);
        let result = no_grad(|| f(&self.model));
        self.model.set_training(true);
        result
    }

    /// Returns the SHA-256 of all losses and parameters.
    pub fn digest(&self) -> Result<String> {
        let mut hasher = Sha256::new();
        let held_out = self.history.held_out.iter().map(|(_, loss)| loss);
        for loss in self.history.losses.iter().chain(held_out) {
            hasher.update(loss.to_le_bytes());
        }
        let mut failure = None;
        nn::for_each_tensor(&self.model, |_, tensor, kind| {
            if kind == nn::Kind::Parameter {
                match tensor.to_vec::<f32>() {
                    Ok(values) => values.iter().for_each(|x| hasher.update(x.to_le_bytes())),
                    Err(error) => failure = Some(error),
                }
            }
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }

    /// Writes the loss curve, as CSV and SVG, into the folder.
    pub fn write_curve(&self, folder: &Path) -> Result<(), Failure> {
        let (csv, svg) = (self.history.to_csv(), self.history.to_svg()?);
        replace_file(folder.join("history.csv"), |file| file.write_all(csv.as_bytes()))?;
        replace_file(folder.join("loss.svg"), |file| file.write_all(svg.as_bytes()))?;
        Ok(())
    }
}
