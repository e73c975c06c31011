//! Convolutions of `f32`, alone and followed by the gradients of images and filters, and a max pooling
//! beside those of other crates.
//!
//! Every upstream gradient is an array of ones, where the backward passes of candle and burn begin; they make
//! it at each call. Results, gradients included, are compared with swath's before anything is timed.

mod burn;
mod candle;
mod own;

use crate::cases::{CONVOLUTIONS, Convolution, POOLED, name_of};
use crate::peer::{EXACT, check, rivals, sum_of};
use crate::race::{Plan, race};
use crate::values::values;

/// The case that the operands of all crates are made for, and their elements.
pub struct Inputs {
    case: Convolution,
    x: Vec<f32>,
    w: Vec<f32>,
}

impl Inputs {
    fn new(case: Convolution) -> Self {
        let [images, filters] = [case.images, case.filters].map(|shape| shape.iter().product());
        let mut x: Vec<f32> = values(images + filters).to_vec();
        let w = x.split_off(images);
        Inputs { case, x, w }
    }
}

/// Times the wanted cases.
pub fn convolutions(wanted: &dyn Fn(&str) -> bool, plan: &Plan) {
    swath::runtime::set_threads(plan.threads).expect("so many threads are allowed");
    for case in CONVOLUTIONS {
        // Pixels and weights are less than 4, so that products add up to four times as much as pixels.
        let terms = case.filters[1..].iter().product();
        let mut operations = vec![
            ("conv2d", case.to_string(), 4.0 * sum_of(terms)),
            ("backward", format!("{case} backward"), 4.0 * sum_of(case.windows())),
        ];
        if case.images == POOLED {
            operations.push(("max_pool2d", format!("max_pool2d {}", name_of(POOLED)), EXACT));
        }
        operations.retain(|(_, name, _)| wanted(&format!("convolution {name}")));
        if operations.is_empty() {
            continue;
        }
        let inputs = Inputs::new(case);
        let own = own::Operands::new(&inputs);
        let candle = candle::Operands::new(&inputs);
        let burn = burn::Operands::new(&inputs);
        for (operation, name, tolerance) in operations {
            let mut peers = vec![("swath", own::peer(operation, &own).expect("swath has all"))];
            if !plan.alone {
                let others = [
                    ("candle", candle::peer(operation, &candle)),
                    ("burn", burn::peer(operation, &burn)),
                ];
                peers.extend(others.into_iter().filter_map(|(name, peer)| Some((name, peer?))));
            }
            check(&name, &mut peers, tolerance);
            race(&name, rivals(peers), plan.once);
        }
    }
}
