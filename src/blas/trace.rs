//! Which way matrix products take: for tests, and for people who wonder where the time goes.

use std::cell::RefCell;
use std::fmt;

pub use swath_kernels::GemmPath;

use crate::dtype::DType;

/// Who computed a product, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Path {
    /// The embedded product, and which of its loops: those of the first part, where threads share it. What
    /// was packed before all of a batch is [`Path::EmbeddedPacked`].
    Embedded(GemmPath),
    /// The embedded product, k shared by threads: C is too small to be cut. The loops of the first block.
    EmbeddedAlongK(GemmPath),
    /// The embedded product, the right side of a batch packed once.
    EmbeddedPacked,
    /// The BLAS library, a call a tile.
    Provider,
    /// The BLAS library, many products a call.
    ProviderBatch,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Path::Embedded(path) => format!("embedded, {path}"),
            Path::EmbeddedAlongK(path) => format!("embedded, along k, {path}"),
            Path::EmbeddedPacked => "embedded, right side packed".to_owned(),
            Path::Provider => "provider".to_owned(),
            Path::ProviderBatch => "provider, batched".to_owned(),
        })
    }
}

impl Path {
    /// True if the BLAS library computed the product.
    pub fn is_provider(self) -> bool {
        matches!(self, Path::Provider | Path::ProviderBatch)
    }
}

/// A matrix product of the CPU backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traced {
    /// Type of the sums: 16-bit floats are multiplied as `f32`. The embedded product chooses its loops by the
    /// bytes that are stored.
    pub dtype: DType,
    /// Products of this shape; a batch with one right side has been made one product.
    pub batch: usize,
    /// m, k, n.
    pub shape: [usize; 3],
    /// Of the first product of the batch.
    pub path: Path,
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traced { dtype, batch, shape: [m, k, n], path } = self;
        write!(f, "{batch} x [{m}, {k}] · [{k}, {n}] {dtype}: {path}")
    }
}

thread_local! {
    static RECORD: RefCell<Option<Vec<Traced>>> = const { RefCell::new(None) };
}

/// Products that an outer call gathers. They are put back when it is dropped, also if a closure panics, and
/// those that an inner call has gathered go behind them.
struct Outer(Option<Vec<Traced>>);

impl Drop for Outer {
    fn drop(&mut self) {
        let inner = RECORD.replace(self.0.take());
        inner.into_iter().flatten().for_each(|product| record(|| product));
    }
}

/// Runs `f` and tells which products it made in this thread, in their order.
///
/// ```
/// use swath::blas::trace::{GemmPath, Path, trace};
/// use swath::prelude::*;
/// let a = tensor![[1.0, 2.0], [3.0, 4.0]];
/// let (product, traced) = trace(|| a.matmul(&a));
/// assert_eq!(product?.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
/// assert_eq!((traced[0].shape, traced[0].path), ([2, 2, 2], Path::Embedded(GemmPath::Small)));
/// # Ok::<(), Error>(())
/// ```
pub fn trace<T>(f: impl FnOnce() -> T) -> (T, Vec<Traced>) {
    let _outer = Outer(RECORD.replace(Some(Vec::new())));
    let result = f();
    (result, RECORD.with_borrow(|record| record.clone().unwrap_or_default()))
}

/// Runs `f`, of which this thread gathers nothing.
pub(crate) fn untraced<T>(f: impl FnOnce() -> T) -> T {
    let _outer = Outer(RECORD.take());
    f()
}

/// Adds a product to what this thread gathers, if it gathers.
pub(crate) fn record(product: impl FnOnce() -> Traced) {
    RECORD.with_borrow_mut(|record| {
        if let Some(record) = record {
            record.push(product());
        }
    });
}
