//! Softmax, norms and running sums of a `[4096, 1024]` tensor of `f32`, also along other axes and of short
//! rows; selection and addition of rows by index. The limit is reading as many elements once.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

use support::values::values;
use support::{Limit, Suite};
use swath::prelude::*;

const ROWS: usize = 4096;
const COLUMNS: usize = 1024;

type T = Tensor<CpuBackend>;

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    let x = T::from_slice(&values(ROWS * COLUMNS), (ROWS, COLUMNS))?;
    let short = x.reshape((ROWS * COLUMNS / 16, 16))?;
    let cube = x.reshape((16, 256, COLUMNS))?;
    let (w, b) = (x.slice(s![0])?.contiguous()?, x.slice(s![1])?.contiguous()?);
    let ids: Vec<i64> = (0..16_384).map(|i| i * 7919 % 1000).collect();
    let (ids, table) = (T::from_vec(ids, 16_384)?, T::zeros((1000, 256), DType::F32)?);
    let rows = x.reshape((16_384, 256))?;
    for threads in [1, 2] {
        let mut group = suite.group_on(threads, "rows")?;
        let mut case = |name: &str, run: &dyn Fn() -> Result<T>| {
            group.tensor(name, Limit::read(threads, ROWS * COLUMNS), run);
        };
        case("softmax", &|| x.softmax(-1));
        case("log_softmax", &|| x.log_softmax(-1));
        case("layer_norm", &|| x.layer_norm(Some(&w), Some(&b), 1e-5));
        case("rms_norm", &|| x.rms_norm(Some(&w), 1e-5));
        case("cumsum axis 1", &|| x.cumsum(1));
        case("cumsum axis 0", &|| x.cumsum(0));
        case("cumsum middle axis", &|| cube.cumsum(1));
        case("softmax rows of 16", &|| short.softmax(-1));
        case("log_softmax rows of 16", &|| short.log_softmax(-1));
        case("softmax axis 0", &|| x.softmax(0));
        case("softmax middle axis", &|| cube.softmax(1));
        case("index_select of 16384 rows of 256", &|| rows.index_select(0, &ids));
        case("index_add of 16384 rows of 256", &|| table.index_add(0, &ids, &rows));
    }
    suite.finish();
    Ok(())
}
