//! The backends of GPUs, in a program of their own, which is empty without their features.
//!
//! ```text
//! cargo test --features wgpu --test gpu        on a Vulkan device, also on Mesa's of the CPU
//! cargo test --features metal --test gpu       on Apple's systems; on Linux without a device
//! ```
#![cfg(any(feature = "wgpu", feature = "metal"))]

#[cfg(feature = "metal")]
mod metal;
#[cfg(feature = "wgpu")]
mod wgpu;

#[cfg(feature = "wgpu")]
#[path = "../suite/gpt.rs"]
mod gpt;
#[allow(dead_code, unused_imports, reason = "these tests use a part of it")]
mod support;
#[allow(dead_code, unused_imports, reason = "these tests use a part of it")]
#[path = "../suite/testing.rs"]
mod testing;

#[global_allocator]
static ALLOCATOR: support::counting::Counting = support::counting::Counting;
