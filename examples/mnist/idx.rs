//! The MNIST files.

use std::path::Path;

use swath::io::idx;
use swath::prelude::*;

use crate::digits::SIDE;
use crate::{Failure, Images, Tensor};

/// Where the files can be downloaded.
const SOURCE: &str = "https://ossci-datasets.s3.amazonaws.com/mnist/";

/// Loads training and test images from a folder.
pub fn load(folder: &Path) -> Result<[Images; 2], Failure> {
    Ok([images(folder, "train")?, images(folder, "t10k")?])
}

fn images(folder: &Path, part: &str) -> Result<Images, Failure> {
    let pixels = read(folder, &format!("{part}-images-idx3-ubyte"))?;
    let digits = read(folder, &format!("{part}-labels-idx1-ubyte"))?;
    let (&[images, SIDE, SIDE], &[count]) = (pixels.dims(), digits.dims()) else {
        let [pixels, digits] = [pixels.shape(), digits.shape()];
        let reason = format!("{part} has images of shape {pixels} and labels of shape {digits}");
        return Err(format!("{}: {reason}", folder.display()).into());
    };
    if images != count || images == 0 {
        let reason = format!("{part} has {images} images and {count} labels");
        return Err(format!("{}: {reason}", folder.display()).into());
    }
    if let Some(digit) = digits.to_vec::<u8>()?.iter().find(|&&digit| digit > 9) {
        return Err(format!("{}: {part} has the label {digit}", folder.display()).into());
    }
    let pixels = pixels.to_dtype(DType::F32)?.div(255.0)?.reshape((images, 1, SIDE, SIDE))?;
    Ok(Images { pixels, digits: digits.to_dtype(DType::I64)? })
}

/// Reads a file, plain or compressed.
fn read(folder: &Path, name: &str) -> Result<Tensor, Failure> {
    let paths = [folder.join(name), folder.join(format!("{name}.gz"))];
    match paths.iter().find(|path| path.exists()) {
        Some(path) => Ok(idx::load(path)?),
        None => Err(format!(
            "neither {name} nor {name}.gz is in {}; both can be downloaded from {SOURCE}",
            folder.display()
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_say_where_to_get_them() {
        let error = load(Path::new("no such folder")).err().unwrap().to_string();
        assert!(error.contains(SOURCE) && error.contains("train-images-idx3-ubyte"), "{error}");
    }
}
