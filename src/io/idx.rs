//! Arrays in the [IDX](https://yann.lecun.org/exdb/mnist/) format of MNIST's files.
//!
//! ```text
//! 0 | 0 | type of the elements | number of axes | extents, four bytes each | elements, all big-endian
//! ```

use std::fs;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::atomic::replace;
use super::{Place, for_each_chunk};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::{MAX_RANK, Shape};
use crate::tensor::Tensor;

/// Numbers of types in files.
const DTYPES: [(u8, DType); 6] = [
    (0x08, DType::U8),
    (0x09, DType::I8),
    (0x0B, DType::I16),
    (0x0C, DType::I32),
    (0x0D, DType::F32),
    (0x0E, DType::F64),
];

/// Reads an array, from a file that gzip has compressed too.
///
/// ```
/// use swath::io::idx;
/// use swath::prelude::*;
/// # let folder = std::env::temp_dir();
/// let path = folder.join("swath-labels.idx1-ubyte.gz");
/// idx::save(&path, &tensor![u8; 5, 0, 4])?;
/// let labels: Tensor<CpuBackend> = idx::load(&path)?;
/// assert_eq!(labels.to_vec::<u8>()?, [5, 0, 4]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::File`](crate::Error::File) for a file that cannot be read, is malformed, or has elements or axes that
/// tensors cannot have.
pub fn load<B: Backend>(path: impl AsRef<Path>) -> Result<Tensor<B>> {
    let place = Place { op: "idx::load", path: path.as_ref() };
    let file = fs::File::open(place.path).map_err(|error| place.cannot_read(error))?;
    let (mut file, mut magic) = (BufReader::new(file), Vec::new());
    file.by_ref().take(4).read_to_end(&mut magic).map_err(|error| place.cannot_read(error))?;
    let file = magic.chain(file);
    if file.get_ref().0.starts_with(&[0x1F, 0x8B]) {
        return read(place, &mut MultiGzDecoder::new(file));
    }
    read(place, &mut { file })
}

fn read<B: Backend>(place: Place<'_>, file: &mut dyn Read) -> Result<Tensor<B>> {
    let failed = |error| place.cannot_read(error);
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(failed)?;
    let [0, 0, number, rank] = magic else {
        return Err(place.error(None, "it is no IDX file, which begins with two zeros"));
    };
    let Some(&(_, dtype)) = DTYPES.iter().find(|(known, _)| *known == number) else {
        return Err(place.error(None, format_args!("no type of elements has the number {number}")));
    };
    let rank = usize::from(rank);
    if rank > MAX_RANK {
        return Err(place.error(None, format_args!("{rank} axes are more than {MAX_RANK}")));
    }
    let mut dims = Vec::with_capacity(rank);
    for _ in 0..rank {
        let mut dim = [0; 4];
        file.read_exact(&mut dim).map_err(failed)?;
        dims.push(u32::from_be_bytes(dim) as usize);
    }
    let shape = Shape::from(dims);
    shape.validate(place.op).map_err(|error| place.error(None, error))?;
    let bytes = shape.numel().saturating_mul(dtype.size());
    // Grows as the file yields bytes, whatever its extents promise.
    let mut data = Vec::new();
    file.take(bytes as u64 + 1).read_to_end(&mut data).map_err(failed)?;
    if data.len() != bytes {
        let found = if data.len() > bytes { "more".to_owned() } else { data.len().to_string() };
        let reason = format!("{dtype} of shape {shape} takes {bytes} bytes, the file has {found}");
        return Err(place.error(None, reason));
    }
    data.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    Tensor::from_bytes(dtype, shape, &data).map_err(|error| place.error(None, error))
}

/// Writes a tensor, compressed by gzip if the name ends in `.gz`. The file is replaced atomically.
///
/// # Errors
/// [`Error::File`](crate::Error::File) for a file that cannot be written, for a dtype that the format lacks, and for
/// extents of 2^32 and more.
pub fn save<B: Backend>(path: impl AsRef<Path>, x: &Tensor<B>) -> Result<()> {
    let place = Place { op: "idx::save", path: path.as_ref() };
    let Some((number, _)) = DTYPES.iter().find(|(_, dtype)| *dtype == x.dtype()) else {
        return Err(place.error(None, format_args!("the format has no elements of {}", x.dtype())));
    };
    let mut header = vec![0, 0, *number, x.rank() as u8];
    for &dim in x.dims() {
        let dim = u32::try_from(dim).map_err(|error| place.error(None, error))?;
        header.extend(dim.to_be_bytes());
    }
    let failed = |error| place.cannot_write(error);
    let put = |file: &mut dyn Write| {
        file.write_all(&header).map_err(failed)?;
        for_each_chunk(x, &mut |bytes| {
            let mut bytes = bytes.to_vec();
            bytes.chunks_exact_mut(x.dtype().size()).for_each(<[u8]>::reverse);
            file.write_all(&bytes).map_err(failed)
        })
    };
    replace(place, |file: &mut BufWriter<fs::File>| {
        if place.path.extension().is_some_and(|end| end == "gz") {
            let mut file = GzEncoder::new(file, Compression::default());
            put(&mut file)?;
            return file.finish().map(drop).map_err(failed);
        }
        put(file)
    })
}
