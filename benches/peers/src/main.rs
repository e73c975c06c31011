//! swath beside other crates, in one process, interleaved: ratios of times, the median over
//! repetitions in which all ran one after the other, on one thread.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- [WORD…]
//! ```
//!
//! * Words choose the cases whose name contains one: `product`, `exp`, `"exp 4096"`, `tensor`,
//!   `"tensor sum"`.
//! * `--worst` draws the arguments of element-wise functions from subnormal and huge numbers.
//! * `--errors` prints the largest error of each crate's functions instead of times.
//! * `--alone` times swath's operations of tensors without the others, for `tensors.py`.
//! * `--test` runs each case once, to see that it works.
//! * `RAYON_NUM_THREADS=1` keeps the others, too, on one thread.
//! * `SWATH_ISA` chooses swath's instruction set; the others choose theirs.

mod elementwise;
mod products;
mod race;
#[allow(dead_code, reason = "the benchmarks of swath use the rest")]
#[path = "../../support/mod.rs"]
mod support;
mod tensors;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let (once, worst, errors) = (has("--test"), has("--worst"), has("--errors"));
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(*word));

    println!("kernels run on {}, one thread", swath_kernels::isa());
    if !errors && !worst {
        println!("{:20} {:>12}   time over swath's", "", "swath");
        for size in [16, 64, 256, 1024].into_iter().filter(|n| wanted(&format!("product {n}"))) {
            products::products(size, once);
        }
    }
    elementwise::functions(&wanted, once, worst, errors);
    if !errors && !worst {
        tensors::tensors(&wanted, has("--alone"), once);
    }
}
