//! Saving and resuming a run. Model, optimizer, random numbers, plan and loss curve are saved in one file, so
//! that they always belong to the same step.

use std::path::{Path, PathBuf};

use swath::io::safetensors::{self, Metadata, TrainingState, module_tensors};
use swath::prelude::*;

use crate::Failure;
use crate::data::Corpus;
use crate::options::Options;
use crate::plan::Plan;
use crate::train::Run;

/// Returns the path of the saved state.
fn state_file(folder: &Path) -> PathBuf {
    folder.join("state.safetensors")
}

/// True if a run is saved in the folder.
pub fn exists(folder: &Path) -> bool {
    state_file(folder).exists()
}

/// Saves the state of the run, and the model in a file of its own: rank 0 writes them. All ranks call it, since
/// each may hold a part of the optimizer's state.
pub fn save<B: Backend>(folder: &Path, run: &Run<B>, corpus: &Corpus) -> Result<(), Failure> {
    let plan = &run.plan;
    // As text: not every backend has `F64`.
    let numbers: Vec<String> = plan.numbers().iter().map(f64::to_string).collect();
    let (steps, held_out): (Vec<i64>, Vec<f32>) =
        run.history.held_out.iter().map(|&(step, loss)| (step as i64, loss)).unzip();
    let losses = &run.history.losses;
    let state = TrainingState::new().with_model(&run.model).with_optimizer(&*run.optimizer)?;
    if !run.parallel.world().is_root() {
        return Ok(());
    }
    state
        .with_rng("batches", &run.rng)?
        .with_counter("seed", plan.seed)?
        .with_counter("corpus", corpus.fingerprint())?
        .with_text("plan", &numbers.join(" "))
        .with_tensor("losses", Tensor::from_slice(losses, losses.len())?)
        .with_tensor("held_out.step", Tensor::from_slice(&steps, steps.len())?)
        .with_tensor("held_out.loss", Tensor::from_slice(&held_out, held_out.len())?)
        .save(state_file(folder))?;
    let text = |key: &str, value: String| (key.to_owned(), value);
    let metadata = Metadata::from([
        text("vocabulary", corpus.vocabulary().iter().collect()),
        text("heads", plan.heads.to_string()),
        text("steps", run.steps().to_string()),
    ]);
    safetensors::save(folder.join("model.safetensors"), module_tensors(&run.model), &metadata)?;
    Ok(())
}

/// A saved run, loaded but not yet restored into a [`Run`].
pub struct Saved<B: Backend> {
    pub plan: Plan,
    state: TrainingState<B>,
}

impl<B: Backend> Saved<B> {
    /// Loads the run saved in the folder. The options must agree with its plan.
    pub fn load(folder: &Path, options: &Options) -> Result<Self, Failure> {
        if !exists(folder) {
            return Err(format!("--resume: no run is saved in {}", folder.display()).into());
        }
        let state = TrainingState::load(state_file(folder))?;
        let numbers = state.text("plan").unwrap_or_default().split(' ');
        let numbers: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
        let plan = Plan::from_numbers(&numbers, state.counter("seed")?)
            .ok_or_else(|| format!("{}: invalid plan of a run", state_file(folder).display()))?;
        let done = state.tensor("losses")?.numel();
        Ok(Saved { plan: plan.resumed(options, done)?, state })
    }

    /// Restores the saved state into `run`, a new run of the same plan.
    pub fn restore(mut self, run: &mut Run<B>, corpus: &Corpus) -> Result<(), Failure> {
        if self.state.counter("corpus")? != corpus.fingerprint() {
            return Err("--resume: the text differs from that of the saved run; \
                        pass the same --data"
                .into());
        }
        let values = |name: &str| -> Result<Vec<f32>> { self.state.tensor(name)?.to_vec() };
        let (losses, held_out) = (values("losses")?, values("held_out.loss")?);
        let steps = self.state.tensor("held_out.step")?.to_vec::<i64>()?;
        let steps = steps.into_iter().map(|step| usize::try_from(step).unwrap_or(0));
        run.rng = self.state.rng("batches")?;
        run.history.held_out = steps.zip(held_out).collect();
        run.parallel.set_steps(losses.len() as u64);
        run.history.losses = losses;
        self.state.restore(&mut run.model, &mut *run.optimizer)?;
        // Each rank has read the file.
        run.parallel.check_model(&run.model)?;
        Ok(())
    }
}
