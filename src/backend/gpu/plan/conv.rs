//! Convolutions and their gradients: tiled products that read their second factor from the images.
//!
//! Only gradients of filters are computed in parts, because the epilogue of the others needs the whole sum.

use crate::error::Result;
use crate::ops::{Geometry, UnaryOp};
use crate::shape::Shape;

use super::super::shader::{Module, Source, Store};
use super::expressions::unary;
use super::matmul::{LONGEST, Products, TileWords, Tiles};
use super::words::words;
use super::{windows, word};

words! {
    /// Channels of a group: `inputs` of the images, `outputs` of the windows. The axes are those of the windows.
    ConvWords { groups: u32, inputs: u32, outputs: u32, has_bias: u32, }
}

/// The three convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The result, with an epilogue: a bias, then a function.
    Forward(Option<UnaryOp>),
    /// The gradient of the images.
    Transpose,
    /// The gradient of the filters.
    Weight,
}

/// A convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conv {
    pub kind: Kind,
    pub store: Store,
    pub result: Store,
    pub tiles: Tiles,
}

/// Numbers of images and channels.
#[derive(Clone, Copy, Debug)]
pub struct Channels {
    pub images: usize,
    pub groups: usize,
    /// Image channels in a group.
    pub inputs: usize,
    /// Filters in a group, each of which makes a channel of the windows.
    pub outputs: usize,
}

impl Conv {
    /// Returns the kernel's text.
    pub fn module(self) -> Module {
        let Conv { kind, store, result, tiles } = self;
        let (name, text, operands) = match kind {
            Kind::Forward(_) => ("conv", shader!("conv"), 3),
            Kind::Transpose => ("conv_transpose", shader!("conv_transpose"), 2),
            Kind::Weight => ("conv_weight_grad", shader!("conv_weight_grad"), 2),
        };
        let mut source =
            Source::new(&[TileWords::FIELDS, ConvWords::FIELDS], &[store; 3][..operands]);
        source.result("y", result);
        source.add(shader!("windows"));
        let mut suffix = String::new();
        match kind {
            Kind::Forward(function) => {
                let expression = function.map_or("a", unary);
                source.add(&format!("fn activation(a: f32) -> f32 {{ return {expression}; }}"));
                source.math();
                suffix = function.map_or(suffix, |f| format!("_{}", f.name()));
            }
            Kind::Transpose => source.math(),
            Kind::Weight if result != store => suffix = "_sums".to_owned(),
            Kind::Weight => {}
        }
        source.add(text);
        tiles.add_main(&mut source);
        source.finish(format!("{name}_{}_{}{suffix}", store.name(), tiles.name()))
    }

    /// Returns the dispatches for contiguous operands; `None` if a sum is too long for a workgroup.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a position does not fit a word.
    pub fn plans(
        op: &'static str,
        shape: &Shape,
        (kind, store): (Kind, Store),
        channels: Channels,
        geometry: &Geometry,
        has_bias: bool,
    ) -> Result<Option<Products<Conv>>> {
        let Channels { images, groups, inputs, outputs } = channels;
        let volume = |extents: [usize; 3]| extents.into_iter().fold(1, usize::saturating_mul);
        let [pixels, taps, count] =
            [geometry.image(), geometry.kernel(), geometry.windows()].map(volume);
        let matrices = images.saturating_mul(groups);
        for numel in [
            matrices.saturating_mul(inputs).saturating_mul(pixels),
            matrices.saturating_mul(outputs).saturating_mul(count),
            groups.saturating_mul(outputs).saturating_mul(inputs).saturating_mul(taps),
        ] {
            word(op, shape, numel)?;
        }
        let sizes = match kind {
            Kind::Forward(_) => [outputs, count, inputs * taps, matrices],
            Kind::Transpose => [inputs, pixels, outputs * taps, matrices],
            Kind::Weight => [outputs, inputs * taps, images * count, groups],
        };
        let fields = ConvWords {
            groups: word(op, shape, groups)?,
            inputs: word(op, shape, inputs)?,
            outputs: word(op, shape, outputs)?,
            has_bias: has_bias.into(),
        };
        let axes = windows::axes_of(op, shape, geometry)?;
        let tiles = Tiles::of(sizes[0], sizes[1]);
        let parts = if kind == Kind::Weight { tiles.parts(sizes) } else { 1 };
        if sizes[2].div_ceil(parts) > LONGEST {
            return Ok(None);
        }
        let result = if parts > 1 { Store::F32 } else { store };
        let kernel = Conv { kind, store, result, tiles };
        tiles.plans(op, shape, kernel, sizes, parts, (&fields, &axes)).map(Some)
    }
}
