//! The words of a dispatch, by name. A kernel reads them as fields of `p`.

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::layout::LoopNest;
use crate::shape::Shape;

use super::super::shader::WORDS;
use super::{step, word};

/// The words that a kernel reads.
pub type Words = SmallVec<[u32; WORDS]>;

/// Words that can be packed.
pub trait Pack {
    /// Appends the words.
    fn pack(&self, words: &mut Words);
}

/// Declares a struct of words, each a `u32` or an `f32`. Its constant `FIELDS` declares the same fields in WGSL.
macro_rules! words {
    ($(#[$meta:meta])* $Name:ident { $($(#[$doc:meta])* $field:ident: $T:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $Name { $($(#[$doc])* pub $field: $T,)* }

        impl $Name {
            /// The fields in WGSL.
            pub const FIELDS: &[&str] = &[$(concat!(stringify!($field), ": ", stringify!($T))),*];
        }

        impl $crate::backend::gpu::plan::words::Pack for $Name {
            fn pack(&self, words: &mut $crate::backend::gpu::plan::words::Words) {
                words.extend([$(bytemuck::cast::<$T, u32>(self.$field)),*]);
            }
        }
    };
}
pub(super) use words;

words! {
    /// The number of results, for threads or workgroups to compute, and that of threads or workgroups in a row of the
    /// grid.
    GridWords { count: u32, across: u32, }
}

/// Packs structs, then the words that the kernel reads as `p.axes`.
///
/// # Errors
/// [`Error::TooManyAxes`] if they do not fit.
pub fn pack(op: &'static str, shape: &Shape, structs: &[&dyn Pack], axes: &[u32]) -> Result<Words> {
    let mut words = Words::new();
    structs.iter().for_each(|fields| fields.pack(&mut words));
    words.extend_from_slice(axes);
    if words.len() > WORDS - 2 {
        return Err(Error::TooManyAxes { op, rank: shape.ndim() });
    }
    words.resize(WORDS, 0);
    Ok(words)
}

/// Returns for each axis of a nest, the innermost first, its extent and the step of each of `n` layouts.
///
/// # Errors
/// [`Error::Overflow`] if one does not fit a word.
pub fn axes_of(op: &'static str, shape: &Shape, nest: &LoopNest, n: usize) -> Result<Words> {
    let mut axes = Words::new();
    for axis in (0..nest.dims().len()).rev() {
        axes.push(word(op, shape, nest.dims()[axis])?);
        for i in 0..n {
            axes.push(step(op, shape, nest.strides(i)[axis])?);
        }
    }
    Ok(axes)
}
