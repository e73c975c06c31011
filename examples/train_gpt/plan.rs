//! What a run is: sizes, schedule, seed. Fixed when it begins, saved with it.

use crate::Failure;
use crate::options::Options;

/// All that decides a run's numbers besides the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub context: usize,
    pub dropout: f64,
    /// Steps to do.
    pub steps: usize,
    /// Steps that the learning rate's course was laid out for: those of the run's first command.
    pub schedule: usize,
    pub batch: usize,
    pub rate: f64,
    pub seed: u64,
}

/// Steps unless told: within three minutes on two cores with AVX-512.
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
            rate: 3e-3,
            seed: 42,
        }
    }
}

/// A number of a plan under the name of its option.
struct Entry {
    name: &'static str,
    get: fn(&Plan) -> f64,
    set: fn(&mut Plan, f64),
    asked: fn(&Options) -> Option<f64>,
}

macro_rules! entries {
    ($($name:literal $field:ident $t:ty;)*) => {
        &[$(Entry {
            name: $name,
            get: |plan| plan.$field as f64,
            set: |plan, value| plan.$field = value as $t,
            asked: |options| options.$field.map(|value| value as f64),
        }),*]
    };
}

/// Whole numbers up to 2⁵³ and rates are kept as they are. The seed is saved by itself.
const ENTRIES: &[Entry] = entries! {
    "width" width usize;
    "layers" layers usize;
    "heads" heads usize;
    "context" context usize;
    "dropout" dropout f64;
    "steps" steps usize;
    "batch" batch usize;
    "lr" rate f64;
};

impl Plan {
    /// The plan that the options ask for, with defaults for the rest.
    pub fn new(options: &Options) -> Result<Self, Failure> {
        let mut plan = Plan::default();
        for entry in ENTRIES {
            if let Some(value) = (entry.asked)(options) {
                (entry.set)(&mut plan, value);
            }
        }
        plan.seed = options.seed.unwrap_or(plan.seed);
        plan.schedule = plan.steps;
        match plan.width % plan.heads {
            0 => Ok(plan),
            _ => {
                Err(format!("--heads {} does not divide --width {}", plan.heads, plan.width).into())
            }
        }
    }

    /// The numbers but for the seed, to be saved.
    pub fn numbers(&self) -> Vec<f64> {
        let entries = ENTRIES.iter().map(|entry| (entry.get)(self));
        entries.chain([self.schedule as f64]).collect()
    }

    /// The plan of saved numbers; `None` if they are none.
    pub fn from_numbers(numbers: &[f64], seed: u64) -> Option<Self> {
        let mut plan = Plan { seed, ..Plan::default() };
        let (&schedule, numbers) = numbers.split_last()?;
        if numbers.len() != ENTRIES.len() {
            return None;
        }
        ENTRIES.iter().zip(numbers).for_each(|(entry, &value)| (entry.set)(&mut plan, value));
        plan.schedule = schedule as usize;
        // A file may hold anything.
        let Plan { width, layers, heads, context, steps, batch, .. } = plan;
        let counts = [width, layers, heads, context, steps, batch, plan.schedule];
        let sound = counts.iter().all(|&count| (1..1 << 32).contains(&count))
            && width % heads == 0
            && (0.0..1.0).contains(&plan.dropout)
            && plan.rate > 0.0
            && plan.rate.is_finite();
        sound.then_some(plan)
    }

    /// The saved plan of a run of which `done` steps are done, with the options given beside
    /// `--resume`: they agree with it, but for the number of steps.
    pub fn resumed(mut self, options: &Options, done: usize) -> Result<Self, Failure> {
        for entry in ENTRIES.iter().filter(|entry| entry.name != "steps") {
            let (saved, asked) = ((entry.get)(&self), (entry.asked)(options));
            if let Some(asked) = asked.filter(|&asked| asked != saved) {
                let name = entry.name;
                return Err(format!("--{name} {asked}: the saved run has --{name} {saved}").into());
            }
        }
        if let Some(seed) = options.seed.filter(|&seed| seed != self.seed) {
            return Err(format!("--seed {seed}: the saved run has --seed {}", self.seed).into());
        }
        self.steps = options.steps.unwrap_or(self.steps);
        match self.steps < done {
            true => Err(format!("--steps {}: the saved run has done {done}", self.steps).into()),
            false => Ok(self),
        }
    }

    /// The learning rate that the schedule ends with.
    pub fn final_rate(&self) -> f64 {
        self.rate * 0.1
    }

    /// Steps over which the rate rises.
    pub fn warmup(&self) -> usize {
        (self.schedule / 10).clamp(1, 100)
    }
}
