//! Cost model of a step of data-parallel training. The bits of its sum do not depend on the number
//! of ranks.
//!
//! A step has G micro-batches, and gradients of N bytes. Rank r of R ranks
//!
//! 1. computes the micro-batches `r·G/R .. (r+1)·G/R` (rounded down) and adds their gradients along
//!    the aligned binary tree over all G. The measured step time contains these additions;
//! 2. agrees with the others that all are about to add the same things: rank 0 receives a message
//!    from each and answers it;
//! 3. cuts its maximal tree nodes in R slices and sends slice q of each node to rank q, in one
//!    message;
//! 4. adds the slices it received, in the order of the tree;
//! 5. sends its slice of the sum to all others.
//!
//! Each phase takes as long as its slowest rank, since the next one needs the data of all. Sending
//! and receiving overlap, phases do not, nor does the sum with the backward pass. A rank pays the
//! latency of its messages one after the other, which is pessimistic for many ranks.

/// Largest number of ranks that is computed.
pub const MOST_RANKS: u64 = 1024;

/// Work of a step, and the machines it runs on. Times in seconds, sizes in bytes.
#[derive(Clone, Debug)]
pub struct Model {
    /// Time of one micro-batch.
    pub seconds: f64,
    /// Micro-batches of a step; with weak scaling, of a rank.
    pub micro_batches: u64,
    /// True if the work grows with the number of ranks.
    pub weak: bool,
    /// Size of all gradients.
    pub bytes: f64,
    /// Bytes per second that a host sends to other hosts, while it receives as many.
    pub bandwidth: f64,
    /// Time of an empty message between hosts.
    pub latency: f64,
    /// Bytes per second that a rank sends to other ranks of its host, while it receives as many.
    pub local_bandwidth: f64,
    /// Time of an empty message within a host.
    pub local_latency: f64,
    /// Bytes per second that a rank reads and writes when it adds gradients.
    pub memory: f64,
    /// Ranks of a host. The last host may have fewer.
    pub ranks_per_host: u64,
}

/// Time of a step on some number of ranks.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Micro-batches of the rank that has most.
    pub micro_batches: u64,
    /// Seconds in which that rank computes them.
    pub compute: f64,
    /// Seconds of the agreement and of the sum over ranks.
    pub sum: f64,
}

impl Cost {
    /// Returns the seconds of the whole step.
    pub fn total(&self) -> f64 {
        self.compute + self.sum
    }
}

impl Model {
    /// Returns the largest number of ranks that have work.
    pub fn most_ranks(&self) -> u64 {
        if self.weak { MOST_RANKS } else { MOST_RANKS.min(self.micro_batches) }
    }

    /// Returns the numbers of ranks to show: powers of two, 1.5 times them, and the largest.
    pub fn rank_counts(&self) -> Vec<u64> {
        let most = self.most_ranks();
        let powers = (0..).map(|level| 1 << level).take_while(|&power| power <= most);
        let mut counts: Vec<u64> = powers.flat_map(|power| [power, power + power / 2]).collect();
        counts.retain(|&count| count <= most);
        counts.push(most);
        counts.dedup();
        counts
    }

    /// Returns the time of a step on `ranks` ranks.
    pub fn cost(&self, ranks: u64) -> Cost {
        let micro_batches = self.total_micro_batches(ranks).div_ceil(ranks);
        Cost {
            micro_batches,
            compute: micro_batches as f64 * self.seconds,
            sum: self.sum_seconds(ranks),
        }
    }

    /// Returns the samples per second of `ranks` ranks over those of one.
    pub fn speed_up(&self, ranks: u64) -> f64 {
        let work = self.total_micro_batches(ranks) as f64 / self.micro_batches as f64;
        work * self.cost(1).total() / self.cost(ranks).total()
    }

    /// Returns the speed-up per rank.
    pub fn efficiency(&self, ranks: u64) -> f64 {
        self.speed_up(ranks) / ranks as f64
    }

    /// Returns the time of a step on one rank above which two ranks are faster. `None` if there is
    /// no work for two.
    pub fn break_even(&self) -> Option<f64> {
        if self.most_ranks() < 2 {
            return None;
        }
        // Share of a step that two ranks save for the same samples: the sum must take less.
        let saved = match self.weak {
            true => 1.0,
            false => (self.micro_batches / 2) as f64 / self.micro_batches as f64,
        };
        Some(self.sum_seconds(2) / saved)
    }

    /// Returns the micro-batches of all ranks together.
    pub fn total_micro_batches(&self, ranks: u64) -> u64 {
        if self.weak { self.micro_batches * ranks } else { self.micro_batches }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns a model of eight micro-batches on hosts of one rank.
    pub fn model() -> Model {
        Model {
            seconds: 0.007,
            micro_batches: 8,
            weak: false,
            bytes: 3.3e6,
            bandwidth: 1.25e9,
            latency: 20e-6,
            local_bandwidth: 5e9,
            local_latency: 2e-6,
            memory: 1e10,
            ranks_per_host: 1,
        }
    }

    pub fn assert_close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} and {b} differ");
    }

    #[test]
    fn one_rank_has_efficiency_one() {
        for weak in [false, true] {
            let model = Model { weak, ..model() };
            assert_eq!(model.efficiency(1), 1.0);
            assert_eq!(model.cost(1).sum, 0.0);
        }
    }

    #[test]
    fn more_bandwidth_never_lowers_efficiency() {
        for (weak, ranks_per_host) in [(false, 1), (false, 4), (true, 1), (true, 3)] {
            let at = |bandwidth| {
                let micro_batches = if weak { 5 } else { 1000 };
                Model { weak, ranks_per_host, micro_batches, bandwidth, ..model() }
            };
            for ranks in at(1e6).rank_counts() {
                let mut last = 0.0;
                for exponent in 6..14 {
                    let efficiency = at(10f64.powi(exponent)).efficiency(ranks);
                    assert!(efficiency >= last, "{ranks} ranks, 1e{exponent} bytes/s");
                    assert!(efficiency <= 1.0, "{ranks} ranks, 1e{exponent} bytes/s");
                    last = efficiency;
                }
            }
        }
    }

    #[test]
    fn two_ranks_are_as_fast_as_one_at_the_break_even() {
        for (weak, micro_batches) in [(false, 8), (false, 7), (false, 2), (true, 7)] {
            let model = Model { weak, micro_batches, ..model() };
            let step = model.break_even().unwrap();
            let model = Model { seconds: step / micro_batches as f64, ..model };
            assert_close(model.speed_up(2), 1.0);
        }
        assert_eq!(Model { micro_batches: 1, ..model() }.break_even(), None);
    }

    #[test]
    fn rank_counts_end_with_the_number_of_micro_batches() {
        let counts = |micro_batches| Model { micro_batches, ..model() }.rank_counts();
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(7), [1, 2, 3, 4, 6, 7]);
        assert_eq!(counts(8), [1, 2, 3, 4, 6, 8]);
        assert_eq!(counts(5000).last(), Some(&MOST_RANKS));
    }
}
