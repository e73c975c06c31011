//! Reductions, functions of rows, broadcasts, layouts and conversions of tensors of `f32` beside those
//! of other crates.
//!
//! Each crate works on tensors of its own and makes a new one a call; rten-vecmath, which has functions
//! of slices, writes to memory that is there. Results are compared with swath's before anything is timed.

mod arrays;
mod burn;
mod candle;
mod own;
mod slices;

use crate::peer::{EXACT, Peer, call, check, report, sum_of};
use crate::values::values;

/// What the operands of all crates are made of.
pub struct Inputs {
    shape: [usize; 2],
    a: Vec<f32>,
    b: Vec<f32>,
    /// Of `shape`.
    mask: Vec<bool>,
    /// Of `shape`: for each element a column.
    columns: Vec<i64>,
    /// For each row a row.
    rows: Vec<i64>,
    /// Shape that `permute(0, 2, 1, 3)` takes, runs of at most 64 elements.
    images: [usize; 4],
    /// Matrices in a row, each of as many rows as it has columns.
    squares: [usize; 3],
}

impl Inputs {
    fn new(shape: [usize; 2]) -> Self {
        let [rows, columns] = shape;
        let a = values(rows * columns).to_vec();
        let b: Vec<f32> = a.iter().rev().copied().collect();
        // The operands' values, in [-4, 4), choose positions as well.
        let place = |x: &f32, extent: usize| ((x + 4.0) / 8.0 * extent as f32) as i64;
        let run = columns.min(64);
        Inputs {
            shape,
            images: [32, 64, rows * columns / (32 * 64 * run), run],
            squares: [rows / columns, columns, columns],
            mask: b.iter().map(|x| *x < 0.0).collect(),
            columns: b.iter().map(|x| place(x, columns)).collect(),
            rows: b[..rows].iter().map(|x| place(x, rows)).collect(),
            a,
            b,
        }
    }

    /// `b`'s first row: what is added to each row of `a`, and weights of columns.
    fn row(&self) -> &[f32] {
        &self.b[..self.shape[1]]
    }

    /// What is added to each column of `a`.
    fn column(&self) -> &[f32] {
        &self.b[..self.shape[0]]
    }
}

/// An operation and how far results may differ.
type Case = (&'static str, f32);

/// Results of at most 1, of a few roundings; larger and smaller ones in proportion.
const ROUNDED: f32 = 32.0 * f32::EPSILON;

/// Cases of a shape: what is printed behind their names, the shape, the cases.
type Group = (&'static str, [usize; 2], &'static [Case]);

const GROUPS: [Group; 10] = [
    (
        "",
        [4096, 1024],
        &[
            ("sum", sum_of(4096 * 1024)),
            ("sum axis 0", sum_of(4096)),
            ("sum axis 1", sum_of(1024)),
            ("mean", sum_of(1)),
            ("max", EXACT),
            ("max axis 1", EXACT),
            ("argmax axis 1", EXACT),
            ("variance axis 1", 16.0 * ROUNDED),
            ("softmax", 0.01 * ROUNDED),
            ("layer_norm", 16.0 * ROUNDED),
            ("cumsum axis 1", sum_of(1024)),
            ("where_cond", EXACT),
            ("lt", EXACT),
            ("to f16", EXACT),
            ("to i64", EXACT),
            ("gather axis 1", EXACT),
            ("index_select axis 0", EXACT),
        ],
    ),
    (
        " 1024",
        [1024, 1024],
        &[("a + row", EXACT), ("a + column", EXACT), ("a + scalar", EXACT), ("a.t() + b", EXACT)],
    ),
    (
        " 4096",
        [4096, 4096],
        &[
            ("a.t() + b", EXACT),
            ("a.t() contiguous", EXACT),
            ("permute(0, 2, 1, 3)", EXACT),
            ("a.flip(1).t() + b", EXACT),
            ("-a[:, ::2].t()", EXACT),
        ],
    ),
    (" of 2", rows_of(2), &SHORT),
    (" of 3", rows_of(3), &[RUNS, ("a + row", EXACT)]),
    (" of 4", rows_of(4), &[RUNS, ("a + row", EXACT), SQUARES]),
    (" of 8", rows_of(8), &SHORT),
    (" of 16", rows_of(16), &SHORT),
    // No whole number of squares.
    (" of 24", rows_of(24), SHORT.split_at(8).0),
    (" of 32", rows_of(32), &SHORT),
];

/// About 4 Mi elements in short rows, such that [`Inputs::images`] are whole.
const fn rows_of(columns: usize) -> [usize; 2] {
    [(4 << 20) / columns / 2048 * 2048, columns]
}

const RUNS: Case = ("permute(0, 2, 1, 3)", EXACT);
const SQUARES: Case = ("squares.t() + b", EXACT);

/// Rows of few elements, of which a call each would be most of the time.
const SHORT: [Case; 9] = [
    ("sum axis 1", sum_of(32)),
    ("max axis 1", EXACT),
    ("argmax axis 1", EXACT),
    ("variance axis 1", 16.0 * ROUNDED),
    ("logsumexp axis 1", 4.0 * ROUNDED),
    ("softmax", ROUNDED),
    ("a + row", EXACT),
    RUNS,
    SQUARES,
];

/// What layer norm adds to a variance.
const EPSILON: f32 = 1e-5;

/// Times the wanted cases, swath `alone` or beside the others.
pub fn tensors(wanted: &dyn Fn(&str) -> bool, alone: bool, once: bool) {
    swath::runtime::set_threads(1).expect("one thread is allowed");
    println!("{:22} {:>12}   time over swath's", "", "swath");
    for (label, shape, cases) in GROUPS {
        let mut cases =
            cases.iter().filter(|(name, _)| wanted(&format!("tensor {name}{label}"))).peekable();
        if cases.peek().is_none() {
            continue;
        }
        let inputs = Inputs::new(shape);
        let own = own::Operands::new(&inputs);
        let candle = candle::Operands::new(&inputs);
        let burn = burn::Operands::new(&inputs);
        let arrays = arrays::Operands::new(&inputs);
        for (name, tolerance) in cases {
            let mut peers = vec![("swath", own::peer(name, &own).expect("swath has all"))];
            if !alone {
                let others = [
                    ("candle", candle::peer(name, &candle)),
                    ("burn", burn::peer(name, &burn)),
                    ("ndarray", arrays::peer(name, &arrays)),
                    ("rten", slices::peer(name, &inputs)),
                ];
                peers.extend(others.into_iter().filter_map(|(name, peer)| Some((name, peer?))));
            }
            let name = format!("{name}{label}");
            check(&name, &mut peers, *tolerance);
            report(&name, shape[0] * shape[1], peers, once);
        }
    }
}
