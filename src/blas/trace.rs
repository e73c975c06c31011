//! Records which code path computes each matrix product, for tests and for performance analysis.

use std::cell::RefCell;
use std::fmt;

pub use swath_kernels::GemmPath;

use crate::dtype::DType;

/// Code path that computed a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Path {
    /// The embedded product, with its loops. If threads share the product, the loops of its first part.
    Embedded(GemmPath),
    /// The embedded product with the k dimension shared by threads, because C is too small to be cut; with the
    /// loops of the first block of k.
    EmbeddedAlongK(GemmPath),
    /// The embedded product with the right side of a batch packed once.
    EmbeddedPacked,
    /// The BLAS library, one call per tile.
    Provider,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Path::Embedded(path) => format!("embedded, {path}"),
            Path::EmbeddedAlongK(path) => format!("embedded, along k, {path}"),
            Path::EmbeddedPacked => "embedded, right side packed".to_owned(),
            Path::Provider => "provider".to_owned(),
        })
    }
}

impl Path {
    /// True if the BLAS library computed the product.
    pub fn is_provider(self) -> bool {
        self == Path::Provider
    }
}

/// A matrix product of the CPU backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traced {
    /// Type of the sums; `f32` for 16-bit floats.
    pub dtype: DType,
    /// Number of products of this shape. A batch with one right side counts as one product if its left side
    /// is one stack of rows.
    pub batch: usize,
    /// Extents m, k, n.
    pub shape: [usize; 3],
    /// Code path of the first product of the batch.
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

/// Replaces this thread's record; there is none in destructors of thread-local values that outlive it.
fn replace(record: Option<Vec<Traced>>) -> Option<Vec<Traced>> {
    RECORD.try_with(|mine| mine.replace(record)).ok().flatten()
}

/// Products recorded by an enclosing call of [`trace`]. Dropping it restores them, also after a panic, and
/// appends those recorded since.
struct Outer(Option<Vec<Traced>>);

impl Drop for Outer {
    fn drop(&mut self) {
        let inner = replace(self.0.take());
        inner.into_iter().flatten().for_each(|product| record(|| product));
    }
}

/// Runs `f` and returns the products that it computed on this thread, in order.
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
    let _outer = Outer(replace(Some(Vec::new())));
    let result = f();
    let record = RECORD.try_with(|record| record.borrow().clone());
    (result, record.ok().flatten().unwrap_or_default())
}

/// Runs `f` without recording its products.
pub(crate) fn untraced<T>(f: impl FnOnce() -> T) -> T {
    let _outer = Outer(replace(None));
    f()
}

/// Records a product if this thread is inside [`trace`].
pub(crate) fn record(product: impl FnOnce() -> Traced) {
    _ = RECORD.try_with(|record| {
        if let Some(record) = record.borrow_mut().as_mut() {
            record.push(product());
        }
    });
}
