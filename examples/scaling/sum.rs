//! Time of the agreement and of the sum of gradients over ranks: phases 2 to 5 of a step.
//!
//! A tree node is maximal if its rank owns all its micro-batches, but not all those of its parent.
//! A rank that owns an aligned power of two has one node, others at most about 2·log2(G/R) + 1.

use crate::model::Model;

/// Seconds in which rank 0 takes or sends one message of the agreement, besides the latency.
const AGREEMENT_MESSAGE: f64 = 1e-6;

/// Memory traffic of an addition in multiples of an operand: two are read and one is written.
const ADDITION_TRAFFIC: f64 = 3.0;

impl Model {
    /// Returns the seconds of agreement, exchange of slices, additions and gathering.
    pub fn sum_seconds(&self, ranks: u64) -> f64 {
        if ranks == 1 {
            return 0.0;
        }
        let latency = match ranks > self.ranks_per_host {
            true => self.latency,
            false => self.local_latency,
        };
        let agreement = 2.0 * latency + 2.0 * (ranks - 1) as f64 * AGREEMENT_MESSAGE;
        let nodes = node_counts(self.total_micro_batches(ranks), ranks);
        let slice = self.bytes / ranks as f64;
        let additions = (nodes.iter().sum::<u64>() - 1) as f64;
        let adding = additions * ADDITION_TRAFFIC * slice / self.memory;
        let gathering = self.exchange_seconds(&vec![1; nodes.len()], slice);
        agreement + self.exchange_seconds(&nodes, slice) + adding + gathering
    }

    /// Returns the seconds in which each rank sends its number of slices to every other rank.
    /// Messages within and between hosts go at the same time.
    fn exchange_seconds(&self, slices: &[u64], slice: f64) -> f64 {
        let all: u64 = slices.iter().sum();
        let mut slowest = 0f64;
        for host in slices.chunks(self.ranks_per_host as usize) {
            let here = host.len() as u64;
            let elsewhere = slices.len() as u64 - here;
            let of_host: u64 = host.iter().sum();
            let traffic = (of_host * elsewhere).max(here * (all - of_host)) as f64 * slice;
            let between = traffic / self.bandwidth + elsewhere as f64 * self.latency;
            let sent = host.iter().max().map_or(0, |most| most * (here - 1));
            let received = host.iter().min().map_or(0, |least| of_host - least);
            let traffic = sent.max(received) as f64 * slice;
            let within = traffic / self.local_bandwidth + (here - 1) as f64 * self.local_latency;
            slowest = slowest.max(between).max(within);
        }
        slowest
    }
}

/// Returns the number of maximal tree nodes of each rank.
fn node_counts(micro_batches: u64, ranks: u64) -> Vec<u64> {
    let start = |rank: u64| rank * micro_batches / ranks;
    (0..ranks).map(|rank| node_count(start(rank), start(rank + 1), micro_batches)).collect()
}

/// Returns the number of maximal aligned blocks `k·2^l .. (k+1)·2^l` that cover `start .. end`. A
/// block that the end of all micro-batches cuts off is complete.
fn node_count(mut start: u64, end: u64, all: u64) -> u64 {
    let mut count = 0;
    while start < end {
        let mut block = 1;
        while block < all && start.is_multiple_of(2 * block) && (start + 2 * block).min(all) <= end
        {
            block *= 2;
        }
        start += block;
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::{assert_close, model};

    /// Counts maximal nodes by building the tree: the nodes of a level hold their owner, if all
    /// their micro-batches have the same.
    fn node_counts_by_tree(micro_batches: u64, ranks: u64) -> Vec<u64> {
        let owner = |batch| (0..ranks).rfind(|rank| rank * micro_batches / ranks <= batch);
        let mut level: Vec<Option<u64>> = (0..micro_batches).map(owner).collect();
        let mut counts = vec![0; ranks as usize];
        while level.len() > 1 {
            let parents = level.chunks(2).map(|children| match *children {
                [left, right] if left != right => {
                    for rank in children.iter().flatten() {
                        counts[*rank as usize] += 1;
                    }
                    None
                }
                _ => children[0],
            });
            level = parents.collect();
        }
        for rank in level.into_iter().flatten() {
            counts[rank as usize] += 1;
        }
        counts
    }

    #[test]
    fn node_counts_equal_those_of_an_explicit_tree() {
        assert_eq!(node_counts(8, 2), [1, 1]);
        assert_eq!(node_counts(8, 3), [1, 2, 2]);
        assert_eq!(node_counts(7, 4), [1, 2, 2, 2]);
        for micro_batches in 1..=70 {
            for ranks in 1..=micro_batches {
                let counts = node_counts(micro_batches, ranks);
                let expected = node_counts_by_tree(micro_batches, ranks);
                assert_eq!(counts, expected, "{micro_batches} micro-batches, {ranks} ranks");
            }
        }
    }

    #[test]
    fn free_communication_gives_full_efficiency_if_the_ranks_share_the_work_evenly() {
        let free = Model {
            micro_batches: 1024,
            bandwidth: f64::INFINITY,
            latency: 0.0,
            local_bandwidth: f64::INFINITY,
            local_latency: 0.0,
            memory: f64::INFINITY,
            ..model()
        };
        for ranks in [2, 8, 64, 1024] {
            let agreement = 2.0 * (ranks - 1) as f64 * AGREEMENT_MESSAGE;
            assert_close(free.cost(ranks).sum, agreement);
            let compute = free.cost(ranks).compute;
            assert_close(free.efficiency(ranks), compute / (compute + agreement));
        }
        let uneven = Model { seconds: 1e9, micro_batches: 8, ..free };
        assert_close(uneven.efficiency(4), 1.0);
        assert_close(uneven.efficiency(3), 8.0 / 9.0);
    }

    #[test]
    fn two_hosts_exchange_every_byte_twice() {
        let model = Model { latency: 0.0, memory: f64::INFINITY, ..model() };
        // Half of the gradients in each phase, and the agreement of two messages.
        assert_close(model.cost(2).sum, model.bytes / model.bandwidth + 2e-6);
    }

    #[test]
    fn ranks_of_a_host_share_its_network() {
        let model = Model {
            latency: 0.0,
            local_bandwidth: f64::INFINITY,
            memory: f64::INFINITY,
            ranks_per_host: 4,
            ..model()
        };
        // In each phase, four ranks send four slices out of eight through one connection.
        let phase = 4.0 * 4.0 / 8.0 * model.bytes / model.bandwidth;
        assert_close(model.cost(8).sum, 2.0 * phase + 14e-6);
    }
}
