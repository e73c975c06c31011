//! A run in a file: model, optimizer, random numbers, plan and curve together, so that they cannot be of
//! different steps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use swath::RngState;
use swath::io::safetensors::{
    load, module_tensors, restore_module, save as save_tensors, save_module,
};
use swath::optim::Optimizer;
use swath::prelude::*;

use crate::Failure;
use crate::data::Corpus;
use crate::model::T;
use crate::plan::Plan;
use crate::train::Run;

fn state_file(folder: &Path) -> PathBuf {
    folder.join("state.safetensors")
}

/// Saves the run, and the model by itself.
pub fn save(folder: &Path, run: &Run, corpus: &Corpus) -> Result<(), Failure> {
    let mut tensors = Vec::new();
    let mut under = |prefix: &str, part: Vec<(String, T)>| {
        tensors.extend(part.into_iter().map(|(name, x)| (format!("{prefix}.{name}"), x)));
    };
    under("model", module_tensors(&run.model));
    under("optimizer", run.optimizer.state()?);
    let RngState { seed, stream, position } = run.rng.state();
    let words = [seed, stream, position].map(u64::cast_signed);
    let (steps, held_out): (Vec<i64>, Vec<f32>) =
        run.history.held_out.iter().map(|&(step, loss)| (step as i64, loss)).unzip();
    under(
        "run",
        vec![
            ("rng".to_owned(), T::from_slice(&words, 3)?),
            ("plan".to_owned(), T::from_vec(run.plan.numbers(), run.plan.numbers().len())?),
            ("seed".to_owned(), T::full((), run.plan.seed.cast_signed())?),
            ("corpus".to_owned(), T::full((), corpus.fingerprint())?),
            ("losses".to_owned(), T::from_slice(&run.history.losses, run.history.losses.len())?),
            ("held_out.step".to_owned(), T::from_slice(&steps, steps.len())?),
            ("held_out.loss".to_owned(), T::from_slice(&held_out, held_out.len())?),
        ],
    );
    save_tensors(state_file(folder), &tensors)?;
    save_module(folder.join("model.safetensors"), &run.model)?;
    Ok(())
}

/// A saved run, before there is a model to put it in.
pub struct Saved {
    pub plan: Plan,
    tensors: BTreeMap<String, T>,
}

impl Saved {
    pub fn load(folder: &Path) -> Result<Self, Failure> {
        let path = state_file(folder);
        if !path.exists() {
            return Err(format!("--resume: no run is saved in {}", folder.display()).into());
        }
        let tensors = load::<CpuBackend>(&path)?;
        let mut saved = Saved { plan: Plan::default(), tensors };
        let seed = saved.values::<i64>("run.seed")?;
        let numbers = saved.values::<f64>("run.plan")?;
        let plan = seed.first().and_then(|seed| Plan::from_numbers(&numbers, seed.cast_unsigned()));
        saved.plan = plan.ok_or_else(|| missing("run.plan"))?;
        Ok(saved)
    }

    fn values<V: Element>(&self, name: &str) -> Result<Vec<V>, Failure> {
        let tensor = self.tensors.get(name).ok_or_else(|| missing(name))?;
        Ok(tensor.to_vec::<V>()?)
    }

    /// Puts the run where one of the same plan begins.
    pub fn restore(mut self, run: &mut Run, corpus: &Corpus) -> Result<(), Failure> {
        if self.values::<i64>("run.corpus")? != [corpus.fingerprint()] {
            return Err("--resume: the text differs from what the saved run learns from; \
                        give it the same --data"
                .into());
        }
        let rng = self.values::<i64>("run.rng")?;
        let &[seed, stream, position] = rng.as_slice() else { return Err(missing("run.rng")) };
        let [seed, stream, position] = [seed, stream, position].map(i64::cast_unsigned);
        let losses = self.values("run.losses")?;
        let steps = self.values::<i64>("run.held_out.step")?;
        let held_out = self.values::<f32>("run.held_out.loss")?;
        let optimizer = self.part("optimizer.");
        restore_module(&mut run.model, self.part("model."))?;
        run.optimizer.load_state(optimizer.into_iter().collect())?;
        run.rng = Rng::from_state(RngState { seed, stream, position });
        run.history.losses = losses;
        run.history.held_out = steps.into_iter().map(|step| step as usize).zip(held_out).collect();
        Ok(())
    }

    /// The tensors whose names begin so, without it.
    fn part(&mut self, prefix: &str) -> BTreeMap<String, T> {
        let all = std::mem::take(&mut self.tensors);
        let (part, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(name, _)| name.starts_with(prefix));
        self.tensors = rest.into_iter().collect();
        part.into_iter().map(|(name, x)| (name[prefix.len()..].to_owned(), x)).collect()
    }
}

fn missing(name: &str) -> Failure {
    format!("--resume: the saved run has no {name}").into()
}
