//! swath beside other crates, in one process, interleaved: ratios of times, the median over
//! repetitions in which all ran one after the other.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- [WORD…]
//! ```
//!
//! * Words choose the cases whose name contains one: `product`, `"product f32 NN"`, `exp`,
//!   `"exp 4096"`, `tensor`, `"tensor sum"`, `convolution`, `overhead`.
//! * `--worst` draws the arguments of element-wise functions from subnormal and huge numbers.
//! * `--errors` prints the largest error of each crate's functions instead of times.
//! * `--alone` times swath's tensors without the others, for `tensors.py`, `products.py` and
//!   `convolution.py`.
//! * `--test` runs each case once, to see that it works.
//! * `--blas=PATH` adds a BLAS library to the products; may be given again. MKL goes last: its functions
//!   take the place of those of the same names that a library opened after it calls.
//! * `RAYON_NUM_THREADS=1` keeps the others, too, on one thread. With another number products and
//!   convolutions use so many, of all who can; other cases stay on one.
//! * `SWATH_ISA` chooses swath's instruction set; the others choose theirs.

#[path = "../../support/cases.rs"]
mod cases;
mod convolution;
mod elementwise;
mod overheads;
mod peer;
mod products;
mod race;
mod tensors;
#[path = "../../support/values.rs"]
mod values;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let (once, worst, errors) = (has("--test"), has("--worst"), has("--errors"));
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(*word));

    println!("kernels run on {}", swath_kernels::isa());
    if !errors && !worst {
        println!("{:35} {:>9}   time over swath's", "", "swath");
        let threads = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
        let libraries = arguments.iter().filter_map(|argument| argument.strip_prefix("--blas="));
        let libraries: Vec<String> = libraries.map(String::from).collect();
        let plan = race::Plan { threads: threads.unwrap_or(1), alone: has("--alone"), once };
        products::products(&wanted, &libraries, &plan);
        convolution::convolutions(&wanted, &plan);
    }
    elementwise::functions(&wanted, once, worst, errors);
    if !errors && !worst {
        tensors::tensors(&wanted, has("--alone"), once);
        overheads::overheads(&wanted, has("--alone"), once);
    }
}
