//! Functions of the rows of a `[4096, 1024]` matrix of `f32` and running sums, through `Tensor`: time
//! as a multiple of one pass that reads the same data on as many threads; short rows and other axes;
//! additions by index.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::cell::RefCell;
use std::hint::black_box;

use support::{Bench, Work, values};
use swath::prelude::*;

const ROWS: usize = 4096;
const COLUMNS: usize = 1024;

type T = Tensor<CpuBackend>;

fn main() -> Result<()> {
    let bench = Bench::from_args("rows");
    println!("{:34} {:>12} {:>10} {:>10}", "", "time", "reads", "ns / el.");
    let x = T::from_slice(&values(ROWS * COLUMNS), (ROWS, COLUMNS))?;
    let short = x.reshape((ROWS * COLUMNS / 16, 16))?;
    let cube = x.reshape((16, 256, COLUMNS))?;
    let (w, b) = (x.slice(s![0])?.contiguous()?, x.slice(s![1])?.contiguous()?);
    let ids: Vec<i64> = (0..16_384).map(|i| i * 7919 % 1000).collect();
    let (ids, table) = (T::from_vec(ids, 16_384)?, T::zeros((1000, 256), DType::F32)?);
    let rows = x.reshape((16_384, 256))?;
    type Case<'a> = (&'static str, Box<dyn Fn() -> Result<T> + 'a>);
    let cases: Vec<Case<'_>> = vec![
        ("softmax", Box::new(|| x.softmax(-1))),
        ("log_softmax", Box::new(|| x.log_softmax(-1))),
        ("layer_norm", Box::new(|| x.layer_norm(Some(&w), Some(&b), 1e-5))),
        ("rms_norm", Box::new(|| x.rms_norm(Some(&w), 1e-5))),
        ("cumsum axis 1", Box::new(|| x.cumsum(1))),
        ("cumsum axis 0", Box::new(|| x.cumsum(0))),
        ("cumsum middle axis", Box::new(|| cube.cumsum(1))),
        ("softmax rows of 16", Box::new(|| short.softmax(-1))),
        ("log_softmax rows of 16", Box::new(|| short.log_softmax(-1))),
        ("softmax axis 0", Box::new(|| x.softmax(0))),
        ("softmax middle axis", Box::new(|| cube.softmax(1))),
        ("index_select of 16384 rows of 256", Box::new(|| rows.index_select(0, &ids))),
        ("index_add of 16384 rows of 256", Box::new(|| table.index_add(0, &ids, &rows))),
    ];
    for threads in [1, 2] {
        swath::runtime::set_threads(threads)?;
        for (name, case) in &cases {
            let name = format!("{name}, T{threads}");
            let work = Work::new(4 * ROWS * COLUMNS, || {
                black_box(case().expect("shapes and axes fit"));
            });
            let read = read_on_threads(threads);
            if let Some(measured) = bench.measure(&name, work, &mut [read]) {
                println!(
                    "{name:34} {:9.1} us {:10.2} {:10.3}",
                    measured.seconds * 1e6,
                    1.0 / measured.yardsticks[0].1,
                    measured.seconds * 1e9 / (ROWS * COLUMNS) as f64,
                );
            }
        }
    }
    Ok(())
}

/// One read of the data on so many threads, which wait for their turn awake.
fn read_on_threads(threads: usize) -> Work<'static> {
    if threads == 1 {
        return Work::read(ROWS * COLUMNS);
    }
    let x = T::from_slice(&values(ROWS * COLUMNS), ROWS * COLUMNS).expect("as many as given");
    let result = RefCell::new(None);
    Work::new(4 * ROWS * COLUMNS, move || {
        *result.borrow_mut() = Some(black_box(x.max(None, false)).expect("there are elements"));
    })
}
