//! The order in which three or more operands are multiplied, two at a time. Works on extents, not
//! on tensors.
//!
//! ```text
//! up to EXHAUSTIVE operands: for every set of operands, by number of members:
//!     best[set] := min over the ways to cut it in two of  best[one] + best[other] + cost of both
//! more: repeatedly the pair whose product grows least over its two factors
//! ```
//!
//! The cost of a pair is its number of multiplications, the product of the extents of all its
//! labels. A product keeps the labels that are still needed, at most [`MAX_RANK`].

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use smallvec::{SmallVec, smallvec};

use super::equation::{Extents, LabelSet};
use crate::shape::MAX_RANK;

/// Largest number of operands for which all orders are tried: 3⁶ / 2 cuts take some ten
/// microseconds.
const EXHAUSTIVE: usize = 6;

/// The pairs to multiply, by number: operands first, then the results in order.
pub(super) type Steps = SmallVec<[[usize; 2]; 8]>;

/// The steps that leave one result with the labels of `output`; `None` if every order needs a
/// product of too many axes.
pub(super) fn steps(operands: &[LabelSet], output: LabelSet, extents: &Extents) -> Option<Steps> {
    match operands.len() {
        0 | 1 => Some(Steps::new()),
        2 => Some(SmallVec::from_slice(&[[0, 1]])),
        ..=EXHAUSTIVE => cheapest(operands, output, extents),
        _ => greedy(operands, output, extents),
    }
}

/// The cheapest known order for a set of operands.
#[derive(Clone, Copy)]
struct Best {
    cost: f64,
    /// One side of the last cut, as a set; 0 for a single operand.
    one: usize,
}

fn cheapest(operands: &[LabelSet], output: LabelSet, extents: &Extents) -> Option<Steps> {
    let count = operands.len();
    let all = (1usize << count) - 1;
    let union_of = |set: usize| {
        let members = (0..count).filter(|i| set >> i & 1 == 1);
        members.fold(LabelSet::default(), |union, i| union.union(operands[i]))
    };
    let held = |set: usize| union_of(set).intersection(output.union(union_of(all & !set)));
    let mut best: SmallVec<[Option<Best>; 1 << EXHAUSTIVE]> = smallvec![None; all + 1];
    let by_members = |members: u32| (1..=all).filter(move |set| set.count_ones() == members);
    for set in by_members(1) {
        best[set] = Some(Best { cost: 0.0, one: 0 });
    }
    for set in (2..=count as u32).flat_map(by_members) {
        if held(set).len() > MAX_RANK {
            continue;
        }
        // Only sides with the first member of the set, so that each cut is tried once.
        let first = set & set.wrapping_neg();
        let mut one = (set - 1) & set;
        while one > 0 {
            let other = set & !one;
            if one & first != 0
                && let (Some(a), Some(b)) = (best[one], best[other])
            {
                let cost = a.cost + b.cost + extents.size(held(one).union(held(other)));
                if best[set].is_none_or(|known| cost < known.cost) {
                    best[set] = Some(Best { cost, one });
                }
            }
            one = (one - 1) & set;
        }
    }
    let mut steps = Steps::new();
    number(all, &best, count, &mut steps)?;
    Some(steps)
}

/// Appends the steps of a set, the innermost first, and returns the number of its result.
fn number(set: usize, best: &[Option<Best>], count: usize, steps: &mut Steps) -> Option<usize> {
    let Best { one, .. } = best[set]?;
    if one == 0 {
        return Some(set.trailing_zeros() as usize);
    }
    let pair = [number(one, best, count, steps)?, number(set & !one, best, count, steps)?];
    steps.push(pair);
    Some(count + steps.len() - 1)
}

/// How good a pair is, and its numbers. The first is the best.
#[derive(PartialEq)]
struct Rank {
    /// How much larger the product is than its factors, and its number of multiplications.
    cost: [f64; 2],
    pair: [usize; 2],
}

impl Ord for Rank {
    /// The largest is the best, as a `BinaryHeap` wants it.
    fn cmp(&self, other: &Self) -> Ordering {
        let costs = other.cost.iter().zip(&self.cost);
        let costs = costs.map(|(theirs, own)| theirs.total_cmp(own));
        costs.fold(Ordering::Equal, Ordering::then).then(other.pair.cmp(&self.pair))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Rank {}

/// The operands that are left, by number, and the labels that one or two of them have.
struct Open<'a> {
    sets: Vec<Option<LabelSet>>,
    once: LabelSet,
    twice: LabelSet,
    output: LabelSet,
    extents: &'a Extents,
}

impl Open<'_> {
    /// Counts the labels anew, and returns those that fewer operands have than before.
    fn count(&mut self) -> LabelSet {
        let mut seen = [LabelSet::default(); 3];
        for set in self.sets.iter().flatten() {
            seen[2] = seen[2].union(seen[1].intersection(*set));
            seen[1] = seen[1].union(seen[0].intersection(*set));
            seen[0] = seen[0].union(*set);
        }
        let (once, twice) = (seen[0].without(seen[1]), seen[1].without(seen[2]));
        let fewer = once.without(self.once).union(twice.without(self.twice));
        (self.once, self.twice) = (once, twice);
        fewer
    }

    /// The labels of the product of two operands, which others or the output need.
    fn product(&self, a: LabelSet, b: LabelSet) -> LabelSet {
        let last = self.once.union(self.twice.intersection(a.intersection(b)));
        a.union(b).without(last.without(self.output))
    }

    /// The rank of a pair; `None` if an operand is used or the product has too many axes.
    fn rank(&self, pair: [usize; 2]) -> Option<Rank> {
        let [a, b] = pair.map(|i| self.sets[i]);
        let (a, b) = (a?, b?);
        let product = self.product(a, b);
        if product.len() > MAX_RANK {
            return None;
        }
        let size = |set| self.extents.size(set);
        let growth = size(product) - size(a) - size(b);
        let growth = if growth.is_nan() { f64::INFINITY } else { growth };
        Some(Rank { cost: [growth, size(a.union(b))], pair })
    }
}

/// Ranks of pairs change only with labels that fewer operands have than before: those pairs are
/// ranked anew, and of the ranks in the queue only those count that are still the same. So each of
/// n² pairs is ranked a few times, not at every step.
fn greedy(operands: &[LabelSet], output: LabelSet, extents: &Extents) -> Option<Steps> {
    let none = LabelSet::default();
    let sets = operands.iter().copied().map(Some).collect();
    let mut open = Open { sets, once: none, twice: none, output, extents };
    let mut queue = BinaryHeap::new();
    let mut steps = Steps::new();
    let mut newest = 0;
    while steps.len() + 1 < operands.len() {
        let fewer = open.count();
        let is_new = |i: usize| {
            let set = open.sets[i].unwrap_or_default();
            i >= newest || set.intersection(fewer) != none
        };
        for i in (0..open.sets.len()).filter(|&i| open.sets[i].is_some() && is_new(i)) {
            let others = (0..open.sets.len()).filter(|&j| j != i && !(j > i && is_new(j)));
            queue.extend(others.filter_map(|j| open.rank([i.min(j), i.max(j)])));
        }
        let [a, b] = loop {
            let rank = queue.pop()?;
            if open.rank(rank.pair).as_ref() == Some(&rank) {
                break rank.pair;
            }
        };
        let product = open.sets[a].zip(open.sets[b]).map(|(a, b)| open.product(a, b));
        (open.sets[a], open.sets[b]) = (None, None);
        newest = open.sets.len();
        open.sets.push(product);
        steps.push([a, b]);
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of multiplications of the steps. Asserts that each operand is used once.
    fn cost(operands: &[LabelSet], output: LabelSet, extents: &Extents, steps: &Steps) -> f64 {
        let mut open: Vec<Option<LabelSet>> = operands.iter().copied().map(Some).collect();
        let mut total = 0.0;
        for &[i, j] in steps {
            let (a, b) = (open[i].take().unwrap(), open[j].take().unwrap());
            let needed = open.iter().flatten().fold(output, |all, set| all.union(*set));
            open.push(Some(a.union(b).intersection(needed)));
            total += extents.size(a.union(b));
        }
        assert_eq!(open.iter().flatten().count(), 1);
        total
    }

    /// Least cost over all sequences of pairs, by brute force.
    fn least(open: &[LabelSet], output: LabelSet, extents: &Extents) -> f64 {
        if open.len() == 1 {
            return 0.0;
        }
        let mut least_cost = f64::INFINITY;
        for i in 0..open.len() {
            for j in 0..i {
                let mut rest: Vec<LabelSet> = open.to_vec();
                let (a, b) = (rest.remove(i), rest.remove(j));
                let needed = rest.iter().fold(output, |all, set| all.union(*set));
                let held = a.union(b).intersection(needed);
                if held.len() > MAX_RANK {
                    continue;
                }
                rest.push(held);
                let rest_cost = least(&rest, output, extents);
                least_cost = least_cost.min(extents.size(a.union(b)) + rest_cost);
            }
        }
        least_cost
    }

    /// Random operands over ten labels; labels of a single operand are in the output.
    fn random(count: usize, seed: u64) -> (Vec<LabelSet>, LabelSet, Extents) {
        let mut state = seed;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        let extents: Vec<usize> = (0..10).map(|_| next(9) as usize + 1).collect();
        let operands: Vec<LabelSet> = (0..count)
            .map(|_| (0..10).filter(|_| next(3) == 0).map(|label| label as u8).collect())
            .collect();
        let lone = |label: u8| operands.iter().filter(|set| set.contains(label)).count() == 1;
        let output = (0..10).filter(|&label| lone(label)).collect();
        (operands, output, Extents::new(&extents))
    }

    #[test]
    fn up_to_six_operands_have_the_least_cost() {
        let mut found = 0;
        for seed in 0..300 {
            let count = 3 + seed as usize % 4;
            let (operands, output, extents) = random(count, seed * 977 + 5);
            let Some(steps) = steps(&operands, output, &extents) else {
                assert_eq!(least(&operands, output, &extents), f64::INFINITY);
                continue;
            };
            found += 1;
            assert_eq!(
                cost(&operands, output, &extents, &steps),
                least(&operands, output, &extents),
                "{operands:?}"
            );
        }
        assert!(found > 200, "{found}");
    }
}
