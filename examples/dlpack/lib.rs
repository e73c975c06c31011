//! A library with a C interface by which Python exchanges tensors with swath through DLPack: `test.py` beside it does so
//! with NumPy and PyTorch.
//!
//! Build it with `cargo build --features dlpack --example dlpack`.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};

use swath::cpu::prelude::*;
use swath::interop::dlpack::{DLManagedTensor, DLManagedTensorVersioned, Handle, Managed};

/// Elements that count how many of their kind are alive.
struct Counted(Vec<f32>);

static ALIVE: AtomicI64 = AtomicI64::new(0);

impl AsRef<[f32]> for Counted {
    fn as_ref(&self) -> &[f32] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

fn boxed(x: Result<Tensor>) -> *mut Tensor {
    x.map_or_else(
        |error| {
            eprintln!("{error}");
            null_mut()
        },
        |x| Box::into_raw(Box::new(x)),
    )
}

fn raw<M: Managed>(handle: Result<Handle<M>>) -> *mut M {
    handle.map_or(null_mut(), Handle::into_raw)
}

fn numbers(rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| i as f32).collect()
}

/// 0, 1, 2, … in memory of swath's.
#[unsafe(no_mangle)]
pub extern "C" fn swath_arange(rows: usize, columns: usize) -> *mut Tensor {
    boxed(Tensor::from_vec(numbers(rows, columns), (rows, columns)))
}

/// The same in memory whose owner is counted, transposed.
#[unsafe(no_mangle)]
pub extern "C" fn swath_counted(rows: usize, columns: usize) -> *mut Tensor {
    ALIVE.fetch_add(1, Ordering::SeqCst);
    let x = Tensor::from_owner(Counted(numbers(rows, columns)), (rows, columns));
    boxed(x.and_then(|x| x.t()))
}

/// Number of counted owners that are alive.
#[unsafe(no_mangle)]
pub extern "C" fn swath_alive() -> i64 {
    ALIVE.load(Ordering::SeqCst)
}

/// Shares the elements, read-only.
///
/// # Safety
/// `x` is a tensor of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swath_to_dlpack(x: *const Tensor) -> *mut DLManagedTensorVersioned {
    // SAFETY: the caller's.
    raw(unsafe { &*x }.to_dlpack())
}

/// A copy of the elements, in version 0.
///
/// # Safety
/// `x` is a tensor of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swath_to_dlpack_0(x: *const Tensor) -> *mut DLManagedTensor {
    // SAFETY: the caller's.
    raw(unsafe { &*x }.to_dlpack())
}

/// Hands the tensor over, which is then freed.
///
/// # Safety
/// `x` is a tensor of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swath_into_dlpack(x: *mut Tensor) -> *mut DLManagedTensorVersioned {
    // SAFETY: the caller's; this library made the box.
    raw(unsafe { Box::from_raw(x) }.into_dlpack())
}

/// Takes over a managed tensor; null if swath refuses it.
///
/// # Safety
/// That of `Tensor::from_dlpack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swath_from_dlpack(managed: *mut DLManagedTensorVersioned) -> *mut Tensor {
    // SAFETY: the caller's.
    boxed(unsafe { Tensor::from_dlpack(managed) })
}

/// Takes over a managed tensor of version 0; null if swath refuses it.
///
/// # Safety
/// That of `Tensor::from_dlpack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swath_from_dlpack_0(managed: *mut DLManagedTensor) -> *mut Tensor {
    // SAFETY: the caller's.
    boxed(unsafe { Tensor::from_dlpack(managed) })
}

/// The element at a position in row-major order, as `f64`; NaN if there is none.
///
/// # Safety
/// `x` is a tensor of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swath_get(x: *const Tensor, position: usize) -> f64 {
    // SAFETY: the caller's.
    let x = unsafe { &*x };
    let element =
        x.reshape(x.numel()).and_then(|x| x.narrow(0, position, 1)?.to_dtype(DType::F64)?.item());
    element.unwrap_or(f64::NAN)
}

/// Address of the first element of a tensor of `f32`.
///
/// # Safety
/// `x` is a tensor of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swath_address(x: *const Tensor) -> usize {
    // SAFETY: the caller's.
    let view = unsafe { &*x }.view::<f32>();
    view.map_or(0, |view| (&raw const view.storage()[view.layout().offset()]).addr())
}

/// Frees a tensor.
///
/// # Safety
/// `x` is a tensor of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swath_free(x: *mut Tensor) {
    // SAFETY: the caller's; this library made the box.
    drop(unsafe { Box::from_raw(x) });
}
