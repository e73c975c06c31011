//! The text of an `einsum`: what each letter stands for. Knows shapes, not tensors.
//!
//! ```text
//! equation := term ("," term)* ["->" term]         one term an operand; spaces are skipped
//! term     := letters with at most one "..."
//! ```
//!
//! Labels are numbers: letters in the order of their codes, then the axes that `...` stands for, which
//! end alike in every operand, as in broadcasting.

use smallvec::SmallVec;

use crate::shape::{MAX_RANK, Shape};

/// What an axis is called.
pub(crate) type Label = u8;

/// The axes of an operand, outermost first.
pub(crate) type Labels = SmallVec<[Label; MAX_RANK]>;

const LETTERS: Label = 52;

/// Labels that there are.
const LABELS: usize = LETTERS as usize + MAX_RANK;

/// Labels without an order.
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

    /// In rising order.
    pub fn iter(self) -> impl Iterator<Item = Label> {
        (0..u64::BITS as Label).filter(move |&label| self.contains(label))
    }
}

impl FromIterator<Label> for LabelSet {
    fn from_iter<I: IntoIterator<Item = Label>>(labels: I) -> Self {
        let mut set = LabelSet::default();
        labels.into_iter().for_each(|label| set.insert(label));
        set
    }
}

/// The extent that each label has after broadcasting.
pub(super) struct Extents([usize; LABELS]);

impl Extents {
    pub fn of(&self, label: Label) -> usize {
        self.0[usize::from(label)]
    }

    /// The number of elements with these axes, however large.
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
#[derive(Debug, PartialEq)]
pub(super) struct Equation {
    /// A label may stand there twice.
    pub inputs: SmallVec<[Labels; 4]>,
    /// Distinct labels, each of which an input has.
    pub output: Labels,
}

/// What a text is, before ranks are known.
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
                        .ok_or("a point that is not part of `...`".to_owned())?;
                    if term.ellipsis.replace(term.letters.len()).is_some() {
                        return Err(format!("`...` stands twice in `{}`", text.trim()));
                    }
                }
                _ => return Err(format!("`{c}` is no letter")),
            }
        }
        Ok(term)
    }

    /// With `...` standing for so many axes.
    fn labels(&self, covered: usize) -> Labels {
        let Some(place) = self.ellipsis else { return self.letters.clone() };
        let (before, after) = self.letters.split_at(place);
        let end = LABELS as Label;
        let covered = end - covered as Label..end;
        before.iter().copied().chain(covered).chain(after.iter().copied()).collect()
    }
}

/// A label as messages name it.
pub(super) fn name(label: Label) -> String {
    match label {
        ..26 => format!("`{}`", char::from(b'A' + label)),
        26..LETTERS => format!("`{}`", char::from(b'a' + label - LETTERS / 2)),
        _ => format!("axis -{} of `...`", LABELS - usize::from(label)),
    }
}

impl Equation {
    /// Reads the equation; the error says what is wrong with it.
    pub fn parse(text: &str, ranks: &[usize]) -> Result<Equation, String> {
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(output)),
            None => (text, None),
        };
        let count = inputs.split(',').count();
        if count != ranks.len() {
            return Err(format!("{count} terms for {} operands", ranks.len()));
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
            None => implicit(&labels),
        };
        let known: LabelSet = labels.iter().flatten().copied().collect();
        let mut seen = LabelSet::default();
        for &label in &output {
            if !known.contains(label) {
                return Err(format!("{} of the output is in no operand", name(label)));
            }
            if seen.contains(label) {
                return Err(format!("{} stands twice in the output", name(label)));
            }
            seen.insert(label);
        }
        if output.len() > MAX_RANK {
            let axes = output.len();
            return Err(format!("the output has {axes} axes, at most {MAX_RANK} are supported"));
        }
        Ok(Equation { inputs: labels, output })
    }

    /// The labels of all operands, in the order in which they stand first.
    pub fn sequence(&self) -> Labels {
        let mut sequence = Labels::new();
        for &label in self.inputs.iter().flatten() {
            if !sequence.contains(&label) {
                sequence.push(label);
            }
        }
        sequence
    }

    /// What the labels stand for, if the operands agree: extents are equal, or 1 beside another in a
    /// different operand.
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

/// The output where the equation names none: the axes of `...`, then the letters that stand once, in
/// the order of their codes.
fn implicit(inputs: &[Labels]) -> Labels {
    let count = |label| inputs.iter().flatten().filter(|&&other| other == label).count();
    let all: LabelSet = inputs.iter().flatten().copied().collect();
    let covered = all.iter().filter(|&label| label >= LETTERS);
    covered.chain(all.iter().filter(|&label| label < LETTERS && count(label) == 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, ranks: &[usize]) -> (Vec<String>, String) {
        let text_of = |labels: &Labels| labels.iter().map(|&label| name(label)).collect::<String>();
        let equation = Equation::parse(text, ranks).unwrap();
        let short =
            |text: String| text.replace('`', "").replace("axis ", "").replace(" of ...", "");
        let inputs = equation.inputs.iter().map(|labels| short(text_of(labels))).collect();
        (inputs, short(text_of(&equation.output)))
    }

    #[test]
    fn terms_spaces_and_implicit_outputs() {
        let cases: [(&str, &[usize], &[&str], &str); 11] = [
            ("ij,jk->ik", &[2, 2], &["ij", "jk"], "ik"),
            (" i j , j k ", &[2, 2], &["ij", "jk"], "ik"),
            ("ba", &[2], &["ba"], "ab"),
            ("bA", &[2], &["bA"], "Ab"),
            ("ii", &[2], &["ii"], ""),
            ("i,i", &[1, 1], &["i", "i"], ""),
            ("->", &[0], &[""], ""),
            (",", &[0, 0], &["", ""], ""),
            ("...ij,...jk", &[4, 3], &["-2-1ij", "-1jk"], "-2-1ik"),
            ("i...->...", &[3], &["i-2-1"], "-2-1"),
            ("i...j->ji", &[4], &["i-2-1j"], "ji"),
        ];
        for (text, ranks, inputs, output) in cases {
            let (found, found_output) = parsed(text, ranks);
            assert_eq!((&found[..], found_output.as_str()), (&inputs.map_strings()[..], output));
        }
    }

    trait Strings {
        fn map_strings(&self) -> Vec<String>;
    }

    impl Strings for &[&str] {
        fn map_strings(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }

    #[test]
    fn extents_broadcast_between_operands_only() {
        let equation = Equation::parse("ij,jk", &[2, 2]).unwrap();
        let extents = |a: [usize; 2], b: [usize; 2]| {
            let extents = equation.extents(&[a.into(), b.into()])?;
            Ok::<_, String>([26 + 8, 26 + 9, 26 + 10].map(|label| extents.of(label)))
        };
        assert_eq!(extents([2, 3], [3, 4]), Ok([2, 3, 4]));
        assert_eq!(extents([2, 1], [3, 4]), Ok([2, 3, 4]));
        assert_eq!(extents([2, 3], [1, 4]), Ok([2, 3, 4]));
        assert_eq!(extents([2, 0], [1, 4]), Ok([2, 0, 4]));
        assert!(extents([2, 3], [0, 4]).unwrap_err().contains("`j` is 0 in operand 1, 3 before"));
        let trace = Equation::parse("ii", &[2]).unwrap();
        assert!(trace.extents(&[[1, 3].into()]).is_err());
    }
}
