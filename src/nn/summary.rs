//! [`summary`]: a model's tensors as a table.

use std::collections::HashMap;
use std::fmt;

use super::{Kind, Visit, for_each_tensor};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::shape::Shape;

/// One tensor of a [`Summary`].
#[derive(Clone, Debug)]
pub struct SummaryRow {
    /// Path of the tensor in the model.
    pub path: String,
    /// The shape.
    pub shape: Shape,
    /// dtype of the elements.
    pub dtype: DType,
    /// Parameter or buffer.
    pub kind: Kind,
    /// Whether it is trained.
    pub tracking: Tracking,
    /// For a tied parameter, the path of its first occurrence, under which it is counted.
    pub tied: Option<String>,
}

/// Whether a tensor of a model is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tracking {
    /// Gradients are computed for it.
    Tracked,
    /// A parameter frozen by [`nn::freeze`](super::freeze).
    Frozen,
    /// A buffer, or a parameter whose layer expects it to be tracked: a step of an optimizer is then an error.
    Untracked,
}

/// The tensors of a model, as listed by [`summary`]. `Display` prints them as a table.
#[derive(Clone, Debug)]
pub struct Summary {
    /// One row per tensor, in the order of the model.
    pub rows: Vec<SummaryRow>,
}

impl Summary {
    fn counted(&self, kind: Kind) -> impl Iterator<Item = &SummaryRow> {
        self.rows.iter().filter(move |row| row.kind == kind && row.tied.is_none())
    }

    /// Number of elements of all parameters. A parameter at several paths counts once.
    pub fn parameters(&self) -> usize {
        self.counted(Kind::Parameter).map(|row| row.shape.numel()).sum()
    }

    /// Size of the parameters in bytes.
    pub fn parameter_bytes(&self) -> usize {
        self.counted(Kind::Parameter).map(SummaryRow::bytes).sum()
    }

    /// Number of elements of the parameters that are frozen.
    pub fn frozen(&self) -> usize {
        let rows = self.counted(Kind::Parameter);
        rows.filter(|row| row.tracking == Tracking::Frozen).map(|row| row.shape.numel()).sum()
    }

    /// Number of elements of all buffers.
    pub fn buffers(&self) -> usize {
        self.counted(Kind::Buffer).map(|row| row.shape.numel()).sum()
    }

    /// Size of the buffers in bytes.
    pub fn buffer_bytes(&self) -> usize {
        self.counted(Kind::Buffer).map(SummaryRow::bytes).sum()
    }
}

impl SummaryRow {
    fn bytes(&self) -> usize {
        self.shape.numel() * self.dtype.size()
    }

    /// A parameter that is not trained, in the last column of the table.
    fn note(&self) -> &'static str {
        match (self.kind, self.tracking) {
            (Kind::Parameter, Tracking::Frozen) => "frozen",
            (Kind::Parameter, Tracking::Untracked) => "not tracked",
            _ => "",
        }
    }
}

/// Lists the tensors of a model. Parameters that are not trained are marked: frozen ones, and those that are not
/// tracked.
///
/// ```
/// use swath::nn::{self, Linear};
/// use swath::prelude::*;
///
/// let layer: Linear = Linear::new(3, 2, &mut Rng::seed(1))?;
/// assert_eq!(nn::summary(&layer).parameters(), 8);
/// assert_eq!(nn::summary(&layer).to_string(), "\
/// path        shape   dtype  parameters  bytes
/// weight      [2, 3]  f32             6     24
/// bias        [2]     f32             2      8
/// parameters                          8     32
/// ");
/// # Ok::<(), Error>(())
/// ```
pub fn summary<B: Backend>(model: &(impl Visit<B> + ?Sized)) -> Summary {
    let (mut rows, mut first_path) = (Vec::new(), HashMap::new());
    for_each_tensor(model, |path, tensor, kind| {
        let tied = tensor.identity().and_then(|id| match first_path.get(&id) {
            Some(first) => Some(String::clone(first)),
            None => first_path.insert(id, path.to_owned()).and(None),
        });
        let tracking = match (tensor.is_tracked(), tensor.is_frozen()) {
            (true, _) => Tracking::Tracked,
            (_, true) => Tracking::Frozen,
            _ => Tracking::Untracked,
        };
        let (path, shape, dtype) = (path.to_owned(), *tensor.shape(), tensor.dtype());
        rows.push(SummaryRow { path, shape, dtype, kind, tracking, tied });
    });
    Summary { rows }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["path", "shape", "dtype", "parameters", "bytes", ""].map(str::to_owned);
        let mut lines = vec![heads];
        for row in &self.rows {
            let (count, bytes) = match (&row.tied, row.kind) {
                (Some(first), _) => (format!("= {first}"), String::new()),
                (None, Kind::Parameter) => (row.shape.numel().to_string(), row.bytes().to_string()),
                (None, Kind::Buffer) => ("buffer".to_owned(), row.bytes().to_string()),
            };
            let (shape, dtype) = (row.shape.to_string(), row.dtype.to_string());
            lines.push([row.path.clone(), shape, dtype, count, bytes, row.note().to_owned()]);
        }
        let total = |name: &str, count: usize, bytes: usize| {
            let (count, bytes) = (count.to_string(), bytes.to_string());
            [name.into(), String::new(), String::new(), count, bytes, String::new()]
        };
        lines.push(total("parameters", self.parameters(), self.parameter_bytes()));
        if self.rows.iter().any(|row| row.kind == Kind::Buffer) {
            lines.push(total("buffers", self.buffers(), self.buffer_bytes()));
        }
        let width = |column: usize| {
            let cells = lines.iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let [path, shape, dtype, count, bytes] = [0, 1, 2, 3, 4].map(width);
        for line in &lines {
            let [a, b, c, d, e, note] = line;
            let line =
                format!("{a:path$}  {b:shape$}  {c:dtype$}  {d:>count$}  {e:>bytes$}  {note}");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
