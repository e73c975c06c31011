//! Layers of images without parameters: poolings and [`Flatten`].

use super::{Module, PartId, Visit, Visitor, VisitorMut, locate};
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::fused::pool::PoolOptions;

macro_rules! layers {
    ($($(#[$doc:meta])* $Layer:ident $(($Argument:ty))? : |$x:ident, $layer:ident| $forward:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $Layer $((
            /// The argument of the tensor's method.
            pub $Argument,
        ))?;

        impl<B: Backend> Visit<B> for $Layer {
            fn visit(&self, visitor: &mut dyn Visitor<B>) {
                visitor.part(PartId::of(self));
            }
            fn visit_mut(&mut self, _visitor: &mut dyn VisitorMut<B>) {}
        }

        impl<B: Backend> Module<B> for $Layer {
            fn forward(&self, $x: &Tensor<B>) -> Result<Tensor<B>> {
                let $layer = self;
                $forward.map_err(|error| locate::<B>(self, error))
            }
        }
    )*};
}

layers! {
    /// The largest values of windows of signals `[n, c, l]`, [`Tensor::max_pool1d`].
    MaxPool1d(PoolOptions<1>): |x, layer| x.max_pool1d(layer.0);
    /// The largest pixels of windows of images `[n, c, h, w]`, [`Tensor::max_pool2d`].
    ///
    /// ```
    /// use swath::PoolOptions;
    /// use swath::nn::{Flatten, MaxPool2d, Module, Sequential};
    /// use swath::prelude::*;
    ///
    /// let model: Sequential =
    ///     Sequential::new().push(MaxPool2d(PoolOptions::new(2))).push(Flatten);
    /// let x = Tensor::zeros((5, 3, 4, 6), DType::F32)?;
    /// assert_eq!(model.forward(&x)?.dims(), [5, 18]);
    /// # Ok::<(), Error>(())
    /// ```
    MaxPool2d(PoolOptions<2>): |x, layer| x.max_pool2d(layer.0);
    /// The largest values of windows of volumes `[n, c, d, h, w]`, [`Tensor::max_pool3d`].
    MaxPool3d(PoolOptions<3>): |x, layer| x.max_pool3d(layer.0);
    /// The means of windows of signals `[n, c, l]`, [`Tensor::avg_pool1d`].
    AvgPool1d(PoolOptions<1>): |x, layer| x.avg_pool1d(layer.0);
    /// The means of windows of images `[n, c, h, w]`, [`Tensor::avg_pool2d`].
    AvgPool2d(PoolOptions<2>): |x, layer| x.avg_pool2d(layer.0);
    /// The means of windows of volumes `[n, c, d, h, w]`, [`Tensor::avg_pool3d`].
    AvgPool3d(PoolOptions<3>): |x, layer| x.avg_pool3d(layer.0);
    /// The means of as many windows of signals `[n, c, l]` as given, [`Tensor::adaptive_avg_pool1d`].
    AdaptiveAvgPool1d(usize): |x, layer| x.adaptive_avg_pool1d(layer.0);
    /// The means of as many windows of images `[n, c, h, w]` as given, [`Tensor::adaptive_avg_pool2d`].
    AdaptiveAvgPool2d([usize; 2]): |x, layer| x.adaptive_avg_pool2d(layer.0);
    /// The largest values of as many windows of signals `[n, c, l]` as given, [`Tensor::adaptive_max_pool1d`].
    AdaptiveMaxPool1d(usize): |x, layer| x.adaptive_max_pool1d(layer.0);
    /// The largest pixels of as many windows of images `[n, c, h, w]` as given, [`Tensor::adaptive_max_pool2d`].
    AdaptiveMaxPool2d([usize; 2]): |x, layer| x.adaptive_max_pool2d(layer.0);
    /// All axes after the first as one: `[n, …]` becomes `[n, elements]`.
    Flatten: |x, _layer| x.flatten(1, -1);
}
