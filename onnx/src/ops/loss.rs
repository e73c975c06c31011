//! Losses of classification.

use swath::{Backend, CrossEntropy, Reduction};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{self, Absent, Text};
use crate::row::{Call, Row, all, one, row};

/// The options of a loss; the classes are axis 1.
fn options<'a, B: Backend>(call: &'a Call<'_, B>) -> Result<CrossEntropy<'a, B>> {
    let reduction = match call.text("reduction")? {
        "none" => Reduction::None,
        "sum" => Reduction::Sum,
        "mean" => Reduction::Mean,
        other => {
            return Err(Error::operator(format!(
                "reduction must be \"none\", \"sum\" or \"mean\", got {other:?}"
            )));
        }
    };
    let ignore_index = call.find_int("ignore_index")?;
    Ok(CrossEntropy {
        weight: call.find(2),
        ignore_index,
        label_smoothing: 0.0,
        reduction,
        axis: Some(1.into()),
    })
}

const OPTIONS: &[(&str, Default)] = &[("ignore_index", Absent), ("reduction", Text("mean"))];

impl<B: Backend> Rows<B> {
    pub const LOSS: &'static [Row<B>] = &[
        row("NegativeLogLikelihoodLoss", 12, OPTIONS, |c| {
            one(c.tensor(0)?.nll(c.tensor(1)?, options(c)?))
        }),
        row("SoftmaxCrossEntropyLoss", 12, OPTIONS, |c| {
            let (x, classes, options) = (c.tensor(0)?, c.tensor(1)?, options(c)?);
            if c.outputs() < 2 {
                return one(x.cross_entropy(classes, options));
            }
            let log_p = x.log_softmax(1)?;
            all([log_p.nll(classes, options)?, log_p])
        }),
    ];
}
