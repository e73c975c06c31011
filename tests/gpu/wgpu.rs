//! The GPU by wgpu, on any Vulkan device, also on Mesa's of the CPU: `cargo test --features wgpu --test gpu wgpu::`.

mod conversion;
mod long;
mod training;

crate::testing::backend_suite!(swath::WgpuBackend);
