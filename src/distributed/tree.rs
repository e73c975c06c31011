//! A sum over micro-batches. The order of the additions depends only on the number of micro-batches.
//!
//! ```text
//! level 2             0 … 3                    node (level, k) is the sum of the leaves
//! level 1       0, 1         2, 3        4     [k · 2^level, (k + 1) · 2^level); a node without
//! level 0     0      1     2      3      4     a right neighbour moves up unchanged
//! ```
//!
//! Each rank first adds its own micro-batches in pairs, as far as they form complete subtrees. Those of all ranks, added
//! from left to right, then complete the same tree.

use std::ops::Range;

use crate::error::Result;

/// A node and its sum.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node<V> {
    pub level: u32,
    pub k: usize,
    pub value: V,
}

/// The largest complete nodes of the leaves added so far, from left to right.
#[derive(Debug)]
pub(super) struct Tree<V> {
    leaves: usize,
    pub nodes: Vec<Node<V>>,
}

impl<V> Tree<V> {
    /// Returns a tree for this number of leaves, without any of them.
    pub fn new(leaves: usize) -> Self {
        Tree { leaves, nodes: Vec::new() }
    }

    /// Adds leaf `k`, the one after the last leaf added.
    pub fn leaf(&mut self, k: usize, value: V, add: impl FnMut(V, V) -> Result<V>) -> Result<()> {
        self.node(Node { level: 0, k, value }, add)
    }

    /// Adds a node, the one to the right of the last node added.
    pub fn node(&mut self, node: Node<V>, mut add: impl FnMut(V, V) -> Result<V>) -> Result<()> {
        let Node { mut level, mut k, mut value } = node;
        while k > 0 || 1 << level < self.leaves {
            if k % 2 == 1 {
                let is_left = |left: &mut Node<V>| left.level == level && left.k + 1 == k;
                // The left neighbour may belong to another rank.
                let Some(left) = self.nodes.pop_if(is_left) else { break };
                value = add(left.value, value)?;
            } else if (k + 1) << level < self.leaves {
                // The right neighbour has not been added yet.
                break;
            }
            (level, k) = (level + 1, k / 2);
        }
        self.nodes.push(Node { level, k, value });
        Ok(())
    }

    /// Returns the sum if all leaves have been added.
    pub fn sum(mut self) -> Option<V> {
        let root = self.nodes.pop()?;
        let is_whole = self.nodes.is_empty() && root.k == 0 && 1 << root.level >= self.leaves;
        is_whole.then_some(root.value)
    }
}

/// Returns the nodes that consecutive leaves fill.
pub(super) fn nodes_of(leaves: usize, own: Range<usize>) -> Vec<Node<()>> {
    let mut tree = Tree::new(leaves);
    for k in own {
        tree.leaf(k, (), |(), ()| Ok(())).expect("adding nothing does not fail");
    }
    tree.nodes
}

/// Returns a rank's share of `count` items: a range. The shares differ in length by one at most.
pub(super) fn part(rank: usize, size: usize, count: usize) -> Range<usize> {
    let start = |rank: usize| (rank as u128 * count as u128 / size as u128) as usize;
    start(rank)..start(rank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the sum with parentheses, by its definition: split at halves of the smallest power of two that covers
    /// all leaves.
    fn defined(range: Range<usize>, span: usize) -> String {
        match range.len() {
            1 => range.start.to_string(),
            _ => {
                let half = span / 2;
                let middle = range.start + half;
                match middle < range.end {
                    true => format!(
                        "({} {})",
                        defined(range.start..middle, half),
                        defined(middle..range.end, half)
                    ),
                    false => defined(range, half),
                }
            }
        }
    }

    fn join(a: String, b: String) -> Result<String> {
        Ok(format!("({a} {b})"))
    }

    #[test]
    fn any_number_of_ranks_adds_in_the_same_order() {
        for leaves in 1..40 {
            let expected = defined(0..leaves, leaves.next_power_of_two());
            for size in 1..=leaves + 2 {
                let mut all = Tree::new(leaves);
                let mut covered = 0;
                for rank in 0..size {
                    let own = part(rank, size, leaves);
                    assert_eq!(own.start, covered);
                    covered = own.end;
                    let mut tree = Tree::new(leaves);
                    for k in own.clone() {
                        tree.leaf(k, k.to_string(), join).unwrap();
                    }
                    let found: Vec<_> = tree.nodes.iter().map(|n| (n.level, n.k)).collect();
                    let expected = nodes_of(leaves, own);
                    let expected: Vec<_> = expected.iter().map(|n| (n.level, n.k)).collect();
                    assert_eq!(found, expected);
                    for node in tree.nodes {
                        all.node(node, join).unwrap();
                    }
                }
                assert_eq!(covered, leaves);
                assert_eq!(all.sum().as_ref(), Some(&expected), "{leaves} leaves, {size} ranks");
            }
        }
    }

    #[test]
    fn a_part_of_the_leaves_has_no_sum() {
        let mut tree = Tree::new(3);
        tree.leaf(0, "0".to_owned(), join).unwrap();
        assert_eq!(tree.sum(), None);
        assert_eq!(Tree::<String>::new(0).sum(), None);
    }
}
