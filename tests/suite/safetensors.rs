//! Files of tensors: round trips, also with the format's reference implementation; an invalid file is an
//! error that names it and changes nothing; a save that fails does no harm.

mod atomic;
mod formats;
mod hostile;
mod models;

use swath::prelude::*;

type T = Tensor<CpuBackend>;
