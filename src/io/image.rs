//! Images in PNG and JPEG files, as tensors of bytes.

use std::io::{BufWriter, Cursor, Write};
use std::path::Path;

use image::{DynamicImage, GrayImage, ImageFormat, ImageReader, RgbImage, RgbaImage};

use super::Place;
use super::atomic::replace;
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The channels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// One, the brightness.
    Gray,
    /// Red, green and blue.
    Rgb,
    /// Red, green, blue and opacity.
    Rgba,
}

/// Reads an image as a tensor of [`DType::U8`] of shape `[channels, height, width]`, converted to `channels`.
///
/// ```
/// use swath::io::image::{self, Channels};
/// use swath::prelude::*;
/// # let path = std::env::temp_dir().join("swath-pixels.png");
/// let pixels = tensor![u8; [[0, 255, 7]], [[1, 2, 3]], [[9, 8, 7]]];
/// image::save(&path, &pixels)?;
/// let again: Tensor<CpuBackend> = image::load(&path, Channels::Rgb)?;
/// assert_eq!((again.dims(), again.to_vec::<u8>()?), (&[3, 1, 3][..], pixels.to_vec::<u8>()?));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// Pixels of 16 bits are rounded to 8. An orientation that a camera has noted is not applied. Images whose pixels take
/// more than 512 MiB are refused.
///
/// # Errors
/// [`Error::File`] for a file that cannot be read, or is no image of a known format.
pub fn load<B: Backend>(path: impl AsRef<Path>, channels: Channels) -> Result<Tensor<B>> {
    let place = Place { op: "image::load", path: path.as_ref() };
    let reader = ImageReader::open(place.path).and_then(ImageReader::with_guessed_format);
    let image = reader.map_err(|error| place.cannot_read(error))?.decode();
    let image = image.map_err(|error| place.error(None, error))?;
    let (height, width) = (image.height() as usize, image.width() as usize);
    let (count, bytes) = match channels {
        Channels::Gray => (1, image.into_luma8().into_raw()),
        Channels::Rgb => (3, image.into_rgb8().into_raw()),
        Channels::Rgba => (4, image.into_rgba8().into_raw()),
    };
    Tensor::from_vec(bytes, (height, width, count))?.permute(&[2, 0, 1])?.contiguous()
}

/// Writes a tensor of [`DType::U8`] of shape `[channels, height, width]`, of 1, 3 or 4 channels, in the format that the
/// name's ending says. The file is replaced atomically.
///
/// # Errors
/// [`Error::InvalidArgument`] for another shape or dtype; [`Error::File`] if the file cannot be written, or if its
/// format is not known or cannot hold the image.
pub fn save<B: Backend>(path: impl AsRef<Path>, x: &Tensor<B>) -> Result<()> {
    let place = Place { op: "image::save", path: path.as_ref() };
    let misfit = || {
        let reason = format!(
            "expected u8 of shape [1, 3 or 4, height, width], found {} of shape {}",
            x.dtype(),
            x.shape()
        );
        Error::InvalidArgument { op: place.op, reason }
    };
    let (3, DType::U8) = (x.rank(), x.dtype()) else { return Err(misfit()) };
    let side = |axis: usize| u32::try_from(x.dims()[axis]).map_err(|_| misfit());
    let (height, width) = (side(1)?, side(2)?);
    let bytes = x.permute(&[1, 2, 0])?.to_vec::<u8>()?;
    let image = match x.dims()[0] {
        1 => GrayImage::from_raw(width, height, bytes).map(DynamicImage::from),
        3 => RgbImage::from_raw(width, height, bytes).map(DynamicImage::from),
        4 => RgbaImage::from_raw(width, height, bytes).map(DynamicImage::from),
        _ => None,
    };
    let image = image.ok_or_else(misfit)?;
    let failed = |error| place.error(None, format_args!("cannot write: {error}"));
    let format = ImageFormat::from_path(place.path).map_err(failed)?;
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).map_err(failed)?;
    replace(place, |file: &mut BufWriter<_>| {
        file.write_all(bytes.get_ref()).map_err(|error| place.cannot_write(error))
    })
}
