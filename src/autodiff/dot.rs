//! The recorded graph as text: [`Tensor::graph_dot`] for Graphviz, [`Tensor::graph_text`] for a
//! terminal.

use std::fmt::Write;

use crate::backend::Backend;
use crate::runtime::shared::Shared;
use crate::tensor::Tensor;

use super::graph::{GraphNode, Inputs, Visit};
use super::ids::{IdMap, IdSet};

/// Largest indentation of a line, in levels: deep graphs stay readable and linear in size.
const MAX_LEVELS: usize = 16;

/// A node as it is printed.
struct Entry {
    /// Op or leaf, name, shape, dtype, saved bytes.
    text: String,
    is_leaf: bool,
    /// Numbers of the tracked inputs.
    inputs: Vec<usize>,
}

/// # The recorded graph
impl<B: Backend> Tensor<B> {
    /// The recorded graph that this tensor was computed by, in the language of Graphviz:
    /// `dot -Tsvg` draws it. Each node has its op, or the name of a leaf, its shape and dtype, and
    /// the bytes of the tensors that its derivative keeps; tensors kept by several nodes are counted
    /// at each. An arrow leads from an input to a result. Untracked inputs are left out, and what a
    /// backward pass has released has no inputs any more. An untracked tensor has no graph.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0].requires_grad();
    /// let dot = x.exp()?.graph_dot();
    /// assert!(dot.starts_with("digraph {"));
    /// assert!(dot.contains(r#"n1 [label="exp\n[2] f32\nsaves 8 B"]"#), "{dot}");
    /// assert!(dot.contains("n0 -> n1"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn graph_dot(&self) -> String {
        let mut dot = "digraph {\n".to_owned();
        for (i, entry) in self.entries("\n").iter().enumerate() {
            let text = entry.text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            let shape = if entry.is_leaf { ", shape=box" } else { "" };
            let _ = writeln!(dot, "  n{i} [label=\"{text}\"{shape}];");
            for input in &entry.inputs {
                let _ = writeln!(dot, "  n{input} -> n{i};");
            }
        }
        dot + "}\n"
    }

    /// The recorded graph as in [`graph_dot`](Tensor::graph_dot), as indented text, from this tensor
    /// down to the leaves. What follows a line at the same level was its only input; several inputs
    /// are listed below it. A node that occurs again is only named by its number.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0].requires_grad();
    /// let y = x.exp()?.mul(&x)?.sum(None, false)?;
    /// let text = "\
    /// %3 sum [] f32
    /// %2 mul [2] f32 saves 16 B
    ///   - %1 exp [2] f32 saves 8 B
    ///     %0 leaf [2] f32
    ///   - %0
    /// ";
    /// assert_eq!(y.graph_text(), text);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn graph_text(&self) -> String {
        let entries = self.entries(" ");
        let mut printed = vec![false; entries.len()];
        let mut text = String::new();
        // Number, level, and whether the line begins a branch.
        let mut open = Vec::from_iter(entries.len().checked_sub(1).map(|last| (last, 0, false)));
        while let Some((i, level, is_branch)) = open.pop() {
            let indentation = 4 * level.min(MAX_LEVELS);
            let bullet = if is_branch { "- " } else { "" };
            let _ = write!(text, "{:1$}{bullet}%{i}", "", indentation - bullet.len());
            if std::mem::replace(&mut printed[i], true) {
                text.push('\n');
                continue;
            }
            let Entry { text: own, inputs, .. } = &entries[i];
            let _ = writeln!(text, " {own}");
            let is_branch = inputs.len() > 1;
            let level = level + usize::from(is_branch);
            open.extend(inputs.iter().rev().map(|&input| (input, level, is_branch)));
        }
        text
    }

    /// The nodes of the graph, inputs before results. `between` separates the parts of a text.
    fn entries(&self, between: &str) -> Vec<Entry> {
        let mut open: Vec<Shared<GraphNode<B>>> = self.node().cloned().into_iter().collect();
        let mut seen: IdSet = open.iter().map(|node| node.id()).collect();
        let mut nodes = Vec::new();
        while let Some(node) = open.pop() {
            let inputs = match node.tracked_inputs() {
                Visit::Recorded(inputs) => inputs,
                Visit::Leaf | Visit::Released => Inputs::new(),
            };
            open.extend(inputs.iter().flatten().filter(|input| seen.insert(input.id())).cloned());
            nodes.push((node, inputs));
        }
        nodes.sort_unstable_by_key(|(node, _)| node.id());
        let numbers = nodes.iter().enumerate().map(|(i, (node, _))| (node.id(), i));
        let numbers: IdMap<usize> = numbers.collect();
        let entry = |(node, inputs): &(Shared<GraphNode<B>>, Inputs<B>)| Entry {
            text: node.describe(between),
            is_leaf: node.is_leaf(),
            inputs: inputs.iter().flatten().map(|input| numbers[&input.id()]).collect(),
        };
        nodes.iter().map(entry).collect()
    }
}
