//! Borders: a file of 8 GB is opened, one of 2 GB gives a model its values, 64 MiB cross between vectors and tensors.
//! Both files are sparse, so that they take no disk. The limit is a copy of what has to be written.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use support::{Limit, Suite};
use swath::io::{File, Load};
use swath::nn::{self, Linear, LinearOptions};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Rows and columns of a matrix of bf16 of 64 MiB.
const SIDE: usize = 5793;

struct Matrices {
    m: Vec<Linear>,
}
swath::module!(Matrices: CpuBackend { m });

impl Matrices {
    fn new(count: usize, dtype: DType) -> Result<Self> {
        let options = LinearOptions { bias: false, dtype };
        let rng = &mut Rng::seed(1);
        let mut layer = || Linear::with_options(SIDE, SIDE, options, rng);
        Ok(Matrices { m: (0..count).map(|_| layer()).collect::<Result<_>>()? })
    }
}

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    let folder = std::env::temp_dir().join(format!("swath-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the folder of temporary files");
    let [large, small] = [128, 32].map(|count| sparse(&folder, count));
    let nothing = Limit::copy(1, 1);
    let mut group = suite.group_on(1, "files")?;
    group.case("open and list 8 GB", nothing, || {
        let large = &large;
        move || {
            let file = File::open(large).expect("a file");
            file.names().map(|name| file.info(name).expect("its tensor").bytes()).sum::<usize>()
        }
    });
    group.case("2 GB of bf16 into a bf16 model", nothing, || {
        let small = &small;
        move || {
            let file = File::open(small).expect("a file");
            let model = nn::empty(|| Matrices::new(32, DType::BF16)).expect("a model");
            Load::new(&file).fill(model).expect("its values").0
        }
    });
    let of_file = File::open(&small).expect("a file");
    let stored: T = of_file.get("m.0.weight")?;
    let copy = Limit::copy(1, SIDE * SIDE);
    group.tensor("64 MiB of bf16 in a file to f32", copy, || {
        of_file.get_as("m.0.weight", DType::F32)
    });
    group.tensor("64 MiB of bf16 in a tensor to f32", copy, || stored.to_dtype(DType::F32));
    let mut values = vec![1f32; 16 << 20];
    group.case("64 MiB from a vector to a tensor and back", nothing, || {
        move || {
            let x = T::from_vec(std::mem::take(&mut values), 16 << 20).expect("as many elements");
            values = black_box(x).into_vec().expect("its dtype");
        }
    });
    let owner: std::sync::Arc<[f32]> = vec![1f32; 16 << 20].into();
    group.tensor("64 MiB of an owner as a tensor", nothing, || {
        T::from_owner(owner.clone(), 16 << 20)
    });
    drop(group);
    fs::remove_dir_all(&folder).expect("the folder was made");
    suite.finish();
    Ok(())
}

/// A file of `count` matrices of zeros, which the disk does not hold.
fn sparse(folder: &Path, count: usize) -> PathBuf {
    let bytes = 2 * SIDE * SIDE;
    let entry = |i: usize| {
        let (start, end) = (i * bytes, (i + 1) * bytes);
        format!(
            r#""m.{i}.weight":{{"dtype":"BF16","shape":[{SIDE},{SIDE}],"data_offsets":[{start},{end}]}}"#
        )
    };
    let mut header = format!("{{{}}}", (0..count).map(entry).collect::<Vec<_>>().join(","));
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let path = folder.join(format!("{count}.safetensors"));
    let start = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    fs::write(&path, &start).expect("room for a header");
    let file = fs::File::options().write(true).open(&path).expect("the file is there");
    file.set_len((start.len() + count * bytes) as u64).expect("sparse files");
    path
}
