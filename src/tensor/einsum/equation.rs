//! The equation of an `einsum`: parsing, and the extent of each label. Works on shapes, not on
//! tensors.
//!
//! ```text
//! equation := term ("," term)* ["->" term]         one term an operand; spaces are skipped
//! term     := letters with at most one "..."
//! ```
//!
//! Labels are numbers: letters in the order of their codes, then the axes that `...` stands for,
//! aligned at the last one as in broadcasting.

use smallvec::SmallVec;

use crate::shape::{MAX_RANK, Shape};

/// The number of a named axis.
pub(crate) type Label = u8;

/// The labels of an operand's axes, outermost first.
pub(crate) type Labels = SmallVec<[Label; MAX_RANK]>;

const LETTERS: Label = 52;

/// Number of different labels.
const LABELS: usize = LETTERS as usize + MAX_RANK;

/// A set of labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSet(pub u64);

impl LabelSet {
    pub fn contains(self, label: Label) -> bool {
        self.0 >> label & 1 == 1
    }

    pub fn insert(&mut self, label: Label) {
        self.0 |= 1 << label;
    }

    pub fn union(self, other: LabelSet) -> LabelSet {
        LabelSet(self.0 | other.0)
    }

    pub fn intersection(self, other: LabelSet) -> LabelSet {
        LabelSet(self.0 & other.0)
    }

    pub fn without(self, other: LabelSet) -> LabelSet {
        LabelSet(self.0 & !other.0)
    }

    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The labels in ascending order.
    pub fn iter(mut self) -> impl Iterator<Item = Label> {
        std::iter::from_fn(move || {
            let label = self.0.trailing_zeros() as Label;
            self.0 &= self.0.checked_sub(1)?;
            Some(label)
        })
    }
}

impl FromIterator<Label> for LabelSet {
    fn from_iter<I: IntoIterator<Item = Label>>(labels: I) -> Self {
        let mut set = LabelSet::default();
        labels.into_iter().for_each(|label| set.insert(label));
        set
    }
}

/// The extent of each label after broadcasting.
pub(super) struct Extents([usize; LABELS]);

impl Extents {
    pub fn of(&self, label: Label) -> usize {
        self.0[usize::from(label)]
    }

    /// Number of elements of a tensor with these axes.
    pub fn size(&self, labels: LabelSet) -> f64 {
        labels.iter().map(|label| self.of(label) as f64).product()
    }

    #[cfg(test)]
    pub fn new(extents: &[usize]) -> Self {
        let mut all = [1; LABELS];
        all[..extents.len()].copy_from_slice(extents);
        Extents(all)
    }
}

/// A parsed equation for operands of known ranks.
pub(super) struct Equation {
    /// Labels of each operand, possibly repeated.
    pub inputs: SmallVec<[Labels; 4]>,
    /// Distinct labels, each of them in an input.
    pub output: Labels,
}

/// A parsed term, before the ranks are known.
struct Term {
    letters: Labels,
    /// The number of letters before `...`.
    ellipsis: Option<usize>,
}

impl Term {
    fn parse(text: &str) -> Result<Term, String> {
        let mut term = Term { letters: Labels::new(), ellipsis: None };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                ' ' => {}
                'A'..='Z' => term.letters.push(c as Label - b'A'),
                'a'..='z' => term.letters.push(c as Label - b'a' + LETTERS / 2),
                '.' => {
                    rest = rest
                        .strip_prefix("..")
                        .ok_or("expected `...`, got a single point".to_owned())?;
                    if term.ellipsis.replace(term.letters.len()).is_some() {
                        return Err(format!("`...` occurs twice in `{}`", text.trim()));
                    }
                }
                _ => return Err(format!("expected a letter, got `{c}`")),
            }
        }
        Ok(term)
    }

    /// The labels of the term, with `...` standing for `covered` axes.
    fn labels(&self, covered: usize) -> Labels {
        let Some(place) = self.ellipsis else { return self.letters.clone() };
        let (before, after) = self.letters.split_at(place);
        let end = LABELS as Label;
        let covered = end - covered as Label..end;
        before.iter().copied().chain(covered).chain(after.iter().copied()).collect()
    }
}

/// A label as error messages name it.
pub(super) fn name(label: Label) -> String {
    match label {
        ..26 => format!("`{}`", char::from(b'A' + label)),
        26..LETTERS => format!("`{}`", char::from(b'a' + label - LETTERS / 2)),
        _ => format!("axis -{} of `...`", LABELS - usize::from(label)),
    }
}

impl Equation {
    /// Parses the equation. The error is the reason for a message.
    pub fn parse(text: &str, ranks: &[usize]) -> Result<Equation, String> {
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(output)),
            None => (text, None),
        };
        let count = inputs.split(',').count();
        if count != ranks.len() {
            return Err(format!("expected one term per operand, got {count} for {}", ranks.len()));
        }
        let mut labels = SmallVec::new();
        let mut widest = 0;
        for (i, (text, &rank)) in inputs.split(',').zip(ranks).enumerate() {
            let term = Term::parse(text)?;
            let letters = term.letters.len();
            let covered = match (rank.checked_sub(letters), term.ellipsis) {
                (Some(0), None) => 0,
                (Some(covered), Some(_)) => covered,
                _ => {
                    let text = text.trim();
                    return Err(format!("`{text}` does not name the {rank} axes of operand {i}"));
                }
            };
            widest = widest.max(covered);
            labels.push(term.labels(covered));
        }
        let output = match output {
            Some(text) => Term::parse(text)?.labels(widest),
            None => implicit_output(&labels),
        };
        let known: LabelSet = labels.iter().flatten().copied().collect();
        let mut seen = LabelSet::default();
        for &label in &output {
            if !known.contains(label) {
                return Err(format!("{} of the output is in no operand", name(label)));
            }
            if seen.contains(label) {
                return Err(format!("{} occurs twice in the output", name(label)));
            }
            seen.insert(label);
        }
        if output.len() > MAX_RANK {
            let axes = output.len();
            return Err(format!("the output has {axes} axes, at most {MAX_RANK} are supported"));
        }
        Ok(Equation { inputs: labels, output })
    }

    /// The labels of all operands, in the order of first occurrence.
    pub fn sequence(&self) -> Labels {
        let mut sequence = Labels::new();
        for &label in self.inputs.iter().flatten() {
            if !sequence.contains(&label) {
                sequence.push(label);
            }
        }
        sequence
    }

    /// The extents of the labels. They must be equal, or 1 in one of two operands.
    pub fn extents(&self, shapes: &[Shape]) -> Result<Extents, String> {
        let mut extents = [1; LABELS];
        for (i, (labels, shape)) in self.inputs.iter().zip(shapes).enumerate() {
            for (axis, (&label, &dim)) in labels.iter().zip(shape.dims()).enumerate() {
                let first = labels.iter().position(|&other| other == label).unwrap_or(axis);
                let own = shape.dims()[first];
                if own != dim {
                    let name = name(label);
                    return Err(format!("{name} is {own} and {dim} in operand {i}"));
                }
                let extent = &mut extents[usize::from(label)];
                if *extent == 1 {
                    *extent = dim;
                } else if dim != 1 && dim != *extent {
                    let name = name(label);
                    return Err(format!("{name} is {dim} in operand {i}, {extent} before it"));
                }
            }
        }
        Ok(Extents(extents))
    }
}

/// The output of an equation without `->`: the axes of `...`, then the letters that occur once, in
/// the order of their codes.
fn implicit_output(inputs: &[Labels]) -> Labels {
    let count = |label| inputs.iter().flatten().filter(|&&other| other == label).count();
    let all: LabelSet = inputs.iter().flatten().copied().collect();
    let covered = all.iter().filter(|&label| label >= LETTERS);
    covered.chain(all.iter().filter(|&label| label < LETTERS && count(label) == 1)).collect()
}
