//! The GPU by wgpu, on any Vulkan device, also on Mesa's of the CPU: `cargo test --features wgpu --test suite wgpu::`.

use swath::{DType, WgpuBackend};

use crate::support::agree::Tested;

impl Tested for WgpuBackend {
    const DTYPES: &'static [DType] =
        &[DType::F16, DType::F32, DType::I64, DType::I32, DType::U32, DType::U8, DType::Bool];
    /// Functions have errors of a few ULP.
    const SLACK: f64 = 4.0;
}

mod required {
    crate::backends::required_tests!(swath::WgpuBackend);
}

mod provided {
    crate::backends::provided_tests!(swath::WgpuBackend);
}

mod fused {
    crate::fused::fused_tests!(swath::WgpuBackend);
}
