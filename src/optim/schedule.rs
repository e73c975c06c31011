//! Learning rate schedules: pure functions of the step, so that there is nothing to save, with the
//! same bits on every machine. Their constructors check rates at once; a rate that is invalid all
//! the same is an error of the optimizer's step.

use swath_kernels::power;

use crate::error::{Result, check_options};

/// A learning rate for each step.
///
/// A number is a constant schedule.
pub trait Schedule {
    /// The learning rate of a step, counted from 0.
    fn rate(&self, step: u64) -> f64;
}

/// Fails unless the first rate of a schedule, and what else it is made of, is finite and at least 0.
fn check<S: Schedule>(op: &'static str, options: &[(&str, f64)], schedule: S) -> Result<S> {
    check_options(op, options)?;
    check_options(op, &[("the first rate", schedule.rate(0))])?;
    Ok(schedule)
}

impl Schedule for f64 {
    fn rate(&self, _step: u64) -> f64 {
        *self
    }
}

/// Cosine decay from `peak` at step 0 to `floor` at step `steps`, then constant.
///
/// ```
/// use swath::optim::{CosineSchedule, Schedule};
/// let schedule = CosineSchedule { peak: 1.0, floor: 0.2, steps: 100 };
/// assert_eq!(schedule.rate(0), 1.0);
/// assert!((schedule.rate(50) - 0.6).abs() < 1e-15);
/// assert_eq!(schedule.rate(100), 0.2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineSchedule {
    /// The first rate.
    pub peak: f64,
    /// The last rate.
    pub floor: f64,
    /// Number of steps of the decay.
    pub steps: u64,
}

impl CosineSchedule {
    /// Creates a schedule whose rates optimizers accept.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) unless both rates are finite and at least 0.
    pub fn new(peak: f64, floor: f64, steps: u64) -> Result<Self> {
        let options = [("peak", peak), ("floor", floor)];
        check("cosine_schedule", &options, CosineSchedule { peak, floor, steps })
    }
}

impl Schedule for CosineSchedule {
    fn rate(&self, step: u64) -> f64 {
        if step >= self.steps {
            return self.floor;
        }
        let angle = std::f64::consts::PI * (step as f64 / self.steps as f64);
        // The kernels' cosine has the same bits on every machine, unlike the system's.
        let mut cosine = [0.0];
        swath_kernels::cos(&[angle], &mut cosine[..]);
        let share = 0.5 + 0.5 * cosine[0];
        self.peak * share + self.floor * (1.0 - share)
    }
}

/// Linear warmup to the first rate of another schedule, followed by that schedule: step i of the
/// first `warmup` has the share `(i + 1) / (warmup + 1)` of `then.rate(0)`.
///
/// ```
/// use swath::optim::{Schedule, WarmupSchedule};
/// let schedule = WarmupSchedule { warmup: 3, then: 1.0 };
/// let rates: Vec<f64> = (0..5).map(|step| schedule.rate(step)).collect();
/// assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 1.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmupSchedule<S> {
    /// Number of warmup steps.
    pub warmup: u64,
    /// The schedule after the warmup.
    pub then: S,
}

impl<S: Schedule> WarmupSchedule<S> {
    /// Creates a schedule whose rates optimizers accept if they accept those of `then`. Only the first of `then` is checked.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) unless the first rate of `then` is
    /// finite and at least 0.
    pub fn new(warmup: u64, then: S) -> Result<Self> {
        check("warmup_schedule", &[], WarmupSchedule { warmup, then })
    }
}

impl<S: Schedule> Schedule for WarmupSchedule<S> {
    fn rate(&self, step: u64) -> f64 {
        match step.checked_sub(self.warmup) {
            Some(later) => self.then.rate(later),
            // Each as `f64` first: one more than the last u64 is none.
            None => self.then.rate(0) * ((step as f64 + 1.0) / (self.warmup as f64 + 1.0)),
        }
    }
}

/// Step decay: `initial`, multiplied by `factor` after every `every` steps.
///
/// ```
/// use swath::optim::{Schedule, StepSchedule};
/// let schedule = StepSchedule { initial: 1.0, factor: 0.5, every: 10 };
/// assert_eq!([0, 9, 10, 35].map(|step| schedule.rate(step)), [1.0, 1.0, 0.5, 0.125]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepSchedule {
    /// The first rate.
    pub initial: f64,
    /// Factor from each stage to the next.
    pub factor: f64,
    /// Number of steps of a stage; 0 for a single stage.
    pub every: u64,
}

impl StepSchedule {
    /// Creates a schedule whose rates optimizers accept, unless a factor above 1 makes later ones infinite.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) unless rate and factor are finite
    /// and at least 0.
    pub fn new(initial: f64, factor: f64, every: u64) -> Result<Self> {
        let options = [("initial", initial), ("factor", factor)];
        check("step_schedule", &options, StepSchedule { initial, factor, every })
    }
}

impl Schedule for StepSchedule {
    fn rate(&self, step: u64) -> f64 {
        self.initial * power(self.factor, step.checked_div(self.every).unwrap_or(0))
    }
}
