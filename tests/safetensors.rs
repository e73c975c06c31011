//! Files of tensors: what is saved is loaded, by us and by the format's own implementation; what is
//! not a good file is an error that names it and changes nothing; a save that fails harms nothing.

#[path = "safetensors/atomic.rs"]
mod atomic;
#[path = "safetensors/formats.rs"]
mod formats;
#[path = "safetensors/hostile.rs"]
mod hostile;
#[path = "safetensors/models.rs"]
mod models;

#[path = "support/files.rs"]
mod files;

use swath::prelude::*;

type T = Tensor<CpuBackend>;
