//! Hyperparameters of a run: sizes, schedule and seed. They are fixed when the run begins and saved with it.

use crate::Failure;
use crate::options::Options;

/// Everything besides the data that the losses and parameters of a run depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub context: usize,
    pub dropout: f64,
    /// Total number of steps.
    pub steps: usize,
    /// Steps of the learning-rate schedule: the total number of steps with which the run began.
    pub schedule: usize,
    pub batch: usize,
    /// Parts of a batch whose gradients are added in a fixed order; ranks share them out.
    pub micro_batches: usize,
    pub rate: f64,
    pub seed: u64,
}

/// Default number of steps: at most three minutes on two cores with AVX-512.
const STEPS: usize = 2000;

impl Default for Plan {
    fn default() -> Self {
        Plan {
            width: 128,
            layers: 4,
            heads: 4,
            context: 128,
            dropout: 0.0,
            steps: STEPS,
            schedule: STEPS,
            batch: 16,
            micro_batches: 1,
            rate: 3e-3,
            seed: 42,
        }
    }
}

/// A number of the plan and the option that sets it.
struct Entry {
    /// Name of the option, without dashes.
    name: &'static str,
    get: fn(&Plan) -> f64,
    set: fn(&mut Plan, f64),
    option: fn(&Options) -> Option<f64>,
}

macro_rules! entries {
    ($($name:literal $field:ident $t:ty;)*) => {
        &[$(Entry {
            name: $name,
            get: |plan| plan.$field as f64,
            set: |plan, value| plan.$field = value as $t,
            option: |options| options.$field.map(|value| value as f64),
        }),*]
    };
}

/// The numbers of a plan, saved as `f64`, which holds integers up to 2⁵³ exactly. The seed may be larger and
/// is saved separately.
const ENTRIES: &[Entry] = entries! {
    "width" width usize;
    "layers" layers usize;
    "heads" heads usize;
    "context" context usize;
    "dropout" dropout f64;
    "steps" steps usize;
    "batch" batch usize;
    "micro-batches" micro_batches usize;
    "lr" rate f64;
};

impl Plan {
    /// Returns the plan of a new run: the options that are given, defaults for the others.
    pub fn new(options: &Options) -> Result<Self, Failure> {
        let mut plan = Plan::default();
        for entry in ENTRIES {
            if let Some(value) = (entry.option)(options) {
                (entry.set)(&mut plan, value);
            }
        }
        plan.seed = options.seed.unwrap_or(plan.seed);
        plan.schedule = plan.steps;
        if plan.micro_batches > plan.batch {
            let Plan { micro_batches, batch, .. } = plan;
            return Err(format!("--micro-batches {micro_batches} exceeds --batch {batch}").into());
        }
        match plan.width % plan.heads {
            0 => Ok(plan),
            _ => {
                Err(format!("--heads {} does not divide --width {}", plan.heads, plan.width).into())
            }
        }
    }

    /// Returns the numbers to save, without the seed.
    pub fn numbers(&self) -> Vec<f64> {
        let entries = ENTRIES.iter().map(|entry| (entry.get)(self));
        entries.chain([self.schedule as f64]).collect()
    }

    /// Returns the plan with these [`numbers`](Self::numbers); `None` if they are invalid.
    pub fn from_numbers(numbers: &[f64], seed: u64) -> Option<Self> {
        let mut plan = Plan { seed, ..Plan::default() };
        let (&schedule, numbers) = numbers.split_last()?;
        if numbers.len() != ENTRIES.len() {
            return None;
        }
        ENTRIES.iter().zip(numbers).for_each(|(entry, &value)| (entry.set)(&mut plan, value));
        plan.schedule = schedule as usize;
        // The numbers come from a file, which may hold anything.
        let Plan { width, layers, heads, context, steps, batch, micro_batches, .. } = plan;
        let counts = [width, layers, heads, context, steps, batch, micro_batches, plan.schedule];
        let valid = counts.iter().all(|&count| (1..1 << 32).contains(&count))
            && width % heads == 0
            && micro_batches <= batch
            && (0.0..1.0).contains(&plan.dropout)
            && plan.rate > 0.0
            && plan.rate.is_finite();
        valid.then_some(plan)
    }

    /// Returns the saved plan of a run that has done `done` steps, with the number of steps of `options`.
    /// Every other option must agree with the plan.
    pub fn resumed(mut self, options: &Options, done: usize) -> Result<Self, Failure> {
        for entry in ENTRIES.iter().filter(|entry| entry.name != "steps") {
            let (saved, given) = ((entry.get)(&self), (entry.option)(options));
            if let Some(given) = given.filter(|&given| given != saved) {
                let name = entry.name;
                return Err(format!("--{name} {given}: the saved run has --{name} {saved}").into());
            }
        }
        if let Some(seed) = options.seed.filter(|&seed| seed != self.seed) {
            return Err(format!("--seed {seed}: the saved run has --seed {}", self.seed).into());
        }
        self.steps = options.steps.unwrap_or(self.steps);
        match self.steps < done {
            true => {
                Err(format!("--steps {}: the saved run has done {done} steps", self.steps).into())
            }
            false => Ok(self),
        }
    }

    /// Returns the learning rate at the end of the schedule.
    pub fn final_rate(&self) -> f64 {
        self.rate * 0.1
    }

    /// Returns the number of warm-up steps.
    pub fn warmup(&self) -> usize {
        (self.schedule / 10).clamp(1, 100)
    }
}
