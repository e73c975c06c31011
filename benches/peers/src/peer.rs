//! A call of each crate: its results are compared with those of swath's, then it is timed.

use std::hint::black_box;

use crate::race::{Rival, ratios};

/// A crate's function with its arguments.
pub trait Peer {
    fn run(&mut self);
    fn results(&mut self) -> Vec<f32>;
}

/// No rounding, or the same one.
pub const EXACT: f32 = 0.0;

/// So many values in [-4, 4), added in `f32` in any order: partial sums are a few times √n, and of n
/// roundings a few times √n add up.
pub const fn sum_of(terms: usize) -> f32 {
    16.0 * f32::EPSILON * terms as f32
}

/// An operation of a crate on its operands, whose results are read by `read`.
struct Call<'a, O, R> {
    operands: &'a O,
    function: fn(&O) -> R,
    read: fn(R) -> Vec<f32>,
}

impl<O, R> Peer for Call<'_, O, R> {
    fn run(&mut self) {
        black_box((self.function)(black_box(self.operands)));
    }

    fn results(&mut self) -> Vec<f32> {
        (self.read)((self.function)(self.operands))
    }
}

pub fn call<'a, O, R: 'a>(
    operands: &'a O,
    function: fn(&O) -> R,
    read: fn(R) -> Vec<f32>,
) -> Option<Box<dyn Peer + 'a>> {
    Some(Box::new(Call { operands, function, read }))
}

/// A rival that computes something else is no rival.
pub fn check(case: &str, peers: &mut [(&str, Box<dyn Peer + '_>)], tolerance: f32) {
    let (own, others) = peers.split_first_mut().expect("swath");
    let own = own.1.results();
    for (name, peer) in others {
        let results = peer.results();
        assert_eq!(own.len(), results.len(), "{case}: results of {name}");
        for (i, (x, y)) in own.iter().zip(&results).enumerate() {
            assert!((x - y).abs() <= tolerance, "{case}, element {i}: {x}, {name} {y}");
        }
    }
}

/// The peers as [`ratios`] takes them.
pub fn rivals<'a>(peers: Vec<(&'a str, Box<dyn Peer + 'a>)>) -> Vec<Rival<'a>> {
    let rival = |(name, mut peer): (&'a str, Box<dyn Peer + 'a>)| -> Rival<'a> {
        (name, Box::new(move || peer.run()))
    };
    peers.into_iter().map(rival).collect()
}

/// Times the peers in turn and prints the first one's time an element and the others' over it.
pub fn report(
    case: &str,
    elements: usize,
    peers: Vec<(&'static str, Box<dyn Peer + '_>)>,
    once: bool,
) {
    let (own, ratios) = ratios(rivals(peers), once);
    print!("{case:22} {:9.3} ns  ", own * 1e9 / elements as f64);
    let others = &ratios[1..];
    for (name, ratio) in others {
        print!(" {name} {ratio:.2}");
    }
    if let Some((name, _)) = others.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
        print!("; best {name}");
    }
    println!();
}
