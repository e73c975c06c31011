//! A progress bar, or plain lines if standard error is not a terminal.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

/// Progress of a run, as shown to the user.
pub struct Progress {
    bar: Option<ProgressBar>,
    steps: usize,
    /// Steps done before this process started.
    first: usize,
    done: usize,
    tokens_per_step: usize,
    start: Instant,
    /// Exponential moving average of the loss, with a weight of 1/20 for a new loss.
    smooth: Option<f32>,
}

impl Progress {
    /// Starts to show a run of `steps` steps, of which `first` are done.
    pub fn new(steps: usize, first: usize, tokens_per_step: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(steps as u64).with_position(first as u64);
            bar.reset_eta();
            let template = "{bar:30} {pos}/{len} {msg} {eta} left";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        let (done, start) = (first, Instant::now());
        Progress { bar, steps, first, done, tokens_per_step, start, smooth: None }
    }

    /// Shows that a step was done, with its loss and the latest held-out loss.
    pub fn step(&mut self, loss: f32, held_out: Option<f32>) {
        self.done += 1;
        let smooth = self.smooth.map_or(loss, |smooth| smooth + (loss - smooth) * 0.05);
        self.smooth = Some(smooth);
        let show = self.done.is_multiple_of(self.steps.div_ceil(10)) || self.done == self.steps;
        if self.bar.is_none() && !show {
            return;
        }
        let tokens = ((self.done - self.first) * self.tokens_per_step) as f64;
        let seconds = self.start.elapsed().as_secs_f64();
        let rate = tokens / seconds;
        let held_out = held_out.map_or(String::new(), |loss| format!(", held out {loss:.3}"));
        let text = format!("loss {smooth:.3}{held_out}, {rate:.0} tokens/s");
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
            bar.set_message(text);
        } else {
            let left = (self.steps - self.done) as f64 * seconds / (self.done - self.first) as f64;
            crate::say!("step {}/{}: {text}, {left:.0} s left", self.done, self.steps);
        }
    }

    /// Leaves the bar on the terminal as it is.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.abandon();
        }
    }
}
