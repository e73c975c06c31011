//! Files of tensors: what is saved is loaded, by us and by the format's own implementation; what is
//! not a good file is an error that names it and changes nothing; a save that fails harms nothing.

mod atomic;
mod formats;
mod hostile;
mod models;

use swath::prelude::*;

type T = Tensor<CpuBackend>;
