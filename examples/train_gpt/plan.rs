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
    pub steps: usize,
    pub batch: usize,
    pub rate: f64,
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            width: 128,
            layers: 4,
            heads: 4,
            context: 128,
            dropout: 0.0,
            steps: 3000,
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

/// Whole numbers up to 2⁵³ and rates are kept as they are; seeds are split in two where saved.
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
        match plan.width % plan.heads {
            0 => Ok(plan),
            _ => {
                Err(format!("--heads {} does not divide --width {}", plan.heads, plan.width).into())
            }
        }
    }

    /// The numbers but for the seed, to be saved.
    pub fn numbers(&self) -> Vec<f64> {
        ENTRIES.iter().map(|entry| (entry.get)(self)).collect()
    }

    /// The plan of saved numbers; `None` if they are none.
    pub fn from_numbers(numbers: &[f64], seed: u64) -> Option<Self> {
        let mut plan = Plan { seed, ..Plan::default() };
        if numbers.len() != ENTRIES.len() {
            return None;
        }
        ENTRIES.iter().zip(numbers).for_each(|(entry, &value)| (entry.set)(&mut plan, value));
        Some(plan)
    }

    /// Options given beside `--resume` agree with the plan.
    pub fn agrees(&self, options: &Options) -> Result<(), Failure> {
        for entry in ENTRIES {
            let (saved, asked) = ((entry.get)(self), (entry.asked)(options));
            if let Some(asked) = asked.filter(|&asked| asked != saved) {
                let name = entry.name;
                return Err(format!("--{name} {asked}: the saved run has --{name} {saved}").into());
            }
        }
        match options.seed {
            Some(seed) if seed != self.seed => {
                Err(format!("--seed {seed}: the saved run has --seed {}", self.seed).into())
            }
            _ => Ok(()),
        }
    }

    /// Steps over which the rate rises.
    pub fn warmup(&self) -> usize {
        (self.steps / 10).clamp(1, 100)
    }
}
