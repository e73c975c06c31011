//! The MNIST files, in the IDX format: a magic number with the element type and the number of axes, the extents, each as
//! four bytes, the highest first, and the elements.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;
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
    let (pixels, images) = read(folder, &format!("{part}-images-idx3-ubyte"), &[SIDE, SIDE])?;
    let (digits, count) = read(folder, &format!("{part}-labels-idx1-ubyte"), &[])?;
    if images != count {
        return Err(
            format!("{}: {part} has {images} images and {count} labels", folder.display()).into()
        );
    }
    if images == 0 {
        return Err(format!("{}: {part} has no images", folder.display()).into());
    }
    if let Some(digit) = digits.iter().find(|&&digit| digit > 9) {
        return Err(format!("{}: {part} has the label {digit}", folder.display()).into());
    }
    let pixels = pixels.iter().map(|&pixel| f32::from(pixel) / 255.0).collect();
    let digits = digits.iter().map(|&digit| i64::from(digit)).collect();
    Ok(Images {
        pixels: Tensor::from_vec(pixels, (images, 1, SIDE, SIDE))?,
        digits: Tensor::from_vec(digits, images)?,
    })
}

/// Reads the bytes of a file, plain or compressed, whose items have the given extents; returns them and the number of
/// items.
fn read(folder: &Path, name: &str, item: &[usize]) -> Result<(Vec<u8>, usize), Failure> {
    let plain = folder.join(name);
    let compressed = folder.join(format!("{name}.gz"));
    let (path, mut file): (_, Box<dyn Read>) = if plain.exists() {
        let file = File::open(&plain).map_err(|error| format!("{}: {error}", plain.display()))?;
        (plain, Box::new(BufReader::new(file)))
    } else if compressed.exists() {
        let file = File::open(&compressed)
            .map_err(|error| format!("{}: {error}", compressed.display()))?;
        (compressed, Box::new(GzDecoder::new(BufReader::new(file))))
    } else {
        return Err(format!(
            "neither {name} nor {name}.gz is in {}; both can be downloaded from {SOURCE}",
            folder.display()
        )
        .into());
    };
    parse(&mut *file, item).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn parse(file: &mut dyn Read, item: &[usize]) -> Result<(Vec<u8>, usize), Failure> {
    let mut word = || -> Result<usize, Failure> {
        let mut bytes = [0; 4];
        file.read_exact(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes) as usize)
    };
    let magic = word()?;
    let expected = 0x800 + 1 + item.len();
    if magic != expected {
        return Err(format!("the magic number is {magic:#x}, expected {expected:#x}").into());
    }
    let count = word()?;
    for &extent in item {
        let found = word()?;
        if found != extent {
            return Err(format!("an extent is {found}, expected {extent}").into());
        }
    }
    let len = count.saturating_mul(item.iter().product());
    let mut elements = Vec::new();
    file.take(len as u64).read_to_end(&mut elements)?;
    match elements.len() == len {
        true => Ok((elements, count)),
        false => Err(format!("{} elements, expected {len}", elements.len()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_wrong_ones_refused() {
        let file = [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 7, 8, 9, 10];
        let read = |bytes: &[u8]| parse(&mut &bytes[..], &[1, 2]);
        assert_eq!(read(&file).unwrap(), (vec![7, 8, 9, 10], 2));
        assert!(read(&file[..19]).unwrap_err().to_string().contains("3 elements, expected 4"));
        assert!(read(&file[..6]).is_err());
        assert!(parse(&mut &file[..], &[1, 3]).unwrap_err().to_string().contains("extent"));
        assert!(parse(&mut &file[..], &[]).unwrap_err().to_string().contains("magic"));
    }

    #[test]
    fn missing_files_say_where_to_get_them() {
        let error = load(Path::new("no such folder")).err().unwrap().to_string();
        assert!(error.contains(SOURCE) && error.contains("train-images-idx3-ubyte"), "{error}");
    }
}
