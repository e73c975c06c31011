//! A sum over micro-batches, in an order that depends on their number alone.
//!
//! ```text
//! level 2             0 … 3                    node (level, k) is the sum of the leaves
//! level 1       0, 1         2, 3        4     [k · 2^level, (k + 1) · 2^level); one without a
//! level 0     0      1     2      3      4     neighbour on its right passes up as it is
//! ```
//!
//! A rank adds its own leaves as far as they fill nodes; whoever adds up the nodes of all ranks, from left to
//! right, does the remaining additions of the same tree.

use std::ops::Range;

use crate::error::Result;

/// A node and its sum.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node<V> {
    pub level: u32,
    pub k: usize,
    pub value: V,
}

/// The largest nodes that the leaves added so far make, from left to right.
#[derive(Debug)]
pub(super) struct Tree<V> {
    leaves: usize,
    pub nodes: Vec<Node<V>>,
}

impl<V> Tree<V> {
    /// A tree over so many leaves, of which none has been added.
    pub fn new(leaves: usize) -> Self {
        Tree { leaves, nodes: Vec::new() }
    }

    /// Adds a leaf, to the right of those before.
    pub fn leaf(&mut self, k: usize, value: V, add: impl FnMut(V, V) -> Result<V>) -> Result<()> {
        self.node(Node { level: 0, k, value }, add)
    }

    /// Adds a node, to the right of those before.
    pub fn node(&mut self, node: Node<V>, mut add: impl FnMut(V, V) -> Result<V>) -> Result<()> {
        let Node { mut level, mut k, mut value } = node;
        while k > 0 || 1 << level < self.leaves {
            if k % 2 == 1 {
                let is_left = |left: &mut Node<V>| left.level == level && left.k + 1 == k;
                // The left neighbour may be another rank's.
                let Some(left) = self.nodes.pop_if(is_left) else { break };
                value = add(left.value, value)?;
            } else if (k + 1) << level < self.leaves {
                // The right neighbour is still to come.
                break;
            }
            (level, k) = (level + 1, k / 2);
        }
        self.nodes.push(Node { level, k, value });
        Ok(())
    }

    /// The sum, if all leaves have been added.
    pub fn sum(mut self) -> Option<V> {
        let root = self.nodes.pop()?;
        let is_whole = self.nodes.is_empty() && root.k == 0 && 1 << root.level >= self.leaves;
        is_whole.then_some(root.value)
    }
}

/// The nodes that some consecutive leaves make.
pub(super) fn nodes_of(leaves: usize, own: Range<usize>) -> Vec<Node<()>> {
    let mut tree = Tree::new(leaves);
    for k in own {
        tree.leaf(k, (), |(), ()| Ok(())).expect("adding nothing does not fail");
    }
    tree.nodes
}

/// The part of `count` things that a rank has: consecutive, as many as others' or one more or less.
pub(super) fn part(rank: usize, size: usize, count: usize) -> Range<usize> {
    let start = |rank: usize| (rank as u128 * count as u128 / size as u128) as usize;
    start(rank)..start(rank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum as a text with its parentheses, by the definition: halves of the smallest power of two that
    /// holds all leaves.
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
                    let places: Vec<_> = tree.nodes.iter().map(|n| (n.level, n.k)).collect();
                    let expected = nodes_of(leaves, own);
                    let expected: Vec<_> = expected.iter().map(|n| (n.level, n.k)).collect();
                    assert_eq!(places, expected);
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
