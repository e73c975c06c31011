//! DLPack, with a producer and a consumer of the tests' own.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use swath::cpu::prelude::*;
use swath::interop::dlpack::*;

use super::layouts;

/// A tensor of another library: what the pointers of its managed tensor point to, and a count of deletions.
struct Foreign {
    _data: Box<[u64]>,
    _shape: Box<[i64]>,
    _strides: Option<Box<[i64]>>,
    deleted: Arc<AtomicUsize>,
}

/// `f32` from the library of [`Foreign`].
#[derive(Clone)]
struct Given {
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    byte_offset: u64,
    dtype: DLDataType,
    device: i32,
    null_data: bool,
    ndim: Option<i32>,
}

const F32: DLDataType = DLDataType { code: 2, bits: 32, lanes: 1 };

impl Given {
    fn new(shape: &[i64]) -> Self {
        let (shape, strides, byte_offset, dtype) = (shape.to_vec(), None, 0, F32);
        Given { shape, strides, byte_offset, dtype, device: 1, null_data: false, ndim: None }
    }

    fn tensor(&self, data: &[u8]) -> (DLTensor, Box<Foreign>, Arc<AtomicUsize>) {
        let mut memory = vec![0u64; data.len().div_ceil(8)].into_boxed_slice();
        for (word, bytes) in memory.iter_mut().zip(data.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        let mut shape = self.shape.clone().into_boxed_slice();
        let mut strides = self.strides.clone().map(Vec::into_boxed_slice);
        let tensor = DLTensor {
            data: if self.null_data { null_mut() } else { memory.as_mut_ptr().cast() },
            device: DLDevice { device_type: self.device, device_id: 0 },
            ndim: self.ndim.unwrap_or(shape.len() as i32),
            dtype: self.dtype,
            shape: if shape.is_empty() { null_mut() } else { shape.as_mut_ptr() },
            strides: strides.as_mut().map_or(null_mut(), |strides| strides.as_mut_ptr()),
            byte_offset: self.byte_offset,
        };
        let deleted = Arc::new(AtomicUsize::new(0));
        let foreign =
            Foreign { _data: memory, _shape: shape, _strides: strides, deleted: deleted.clone() };
        (tensor, Box::new(foreign), deleted)
    }

    /// Both versions of the managed tensor into swath, whose results must be the same.
    fn take(&self, data: &[u8]) -> (Result<Tensor>, Arc<AtomicUsize>) {
        let (dl_tensor, foreign, old_deleted) = self.tensor(data);
        let manager_ctx = Box::into_raw(foreign).cast::<c_void>();
        let old = Box::new(DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(delete_old) });
        // SAFETY: the managed tensor is as DLPack defines it, with memory for all of its elements.
        let x = unsafe { Tensor::from_dlpack(Box::into_raw(old)) };
        let (dl_tensor, foreign, deleted) = self.tensor(data);
        let manager_ctx = Box::into_raw(foreign).cast::<c_void>();
        let version = DLPackVersion { major: 1, minor: 9 };
        let deleter = Some(delete_new as _);
        let new =
            DLManagedTensorVersioned { version, manager_ctx, deleter, flags: READ_ONLY, dl_tensor };
        // SAFETY: as above.
        let y = unsafe { Tensor::from_dlpack(Box::into_raw(Box::new(new))) };
        let bytes = |x: &Result<Tensor>| match x {
            Ok(x) => Ok(x.contiguous().unwrap().as_bytes().unwrap().to_vec()),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(bytes(&x), bytes(&y));
        let count = |deleted: &AtomicUsize| deleted.load(Ordering::Relaxed);
        assert_eq!(count(&old_deleted), count(&deleted));
        drop(x);
        assert_eq!(count(&old_deleted), 1);
        (y, deleted)
    }
}

unsafe extern "C" fn delete_old(managed: *mut DLManagedTensor) {
    // SAFETY: `take` made the boxes, and swath calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        let foreign = Box::from_raw(managed.manager_ctx.cast::<Foreign>());
        foreign.deleted.fetch_add(1, Ordering::Relaxed);
    }
}

unsafe extern "C" fn delete_new(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: as above.
    unsafe {
        let managed = Box::from_raw(managed);
        let foreign = Box::from_raw(managed.manager_ctx.cast::<Foreign>());
        foreign.deleted.fetch_add(1, Ordering::Relaxed);
    }
}

fn floats(count: u8) -> Vec<u8> {
    (0..count).flat_map(|i| f32::from(i).to_ne_bytes()).collect()
}

#[test]
fn strides_of_all_kinds_come_in_and_the_deleter_runs_once() {
    type Case = (&'static [i64], Option<&'static [i64]>, u64, &'static [f32]);
    let cases: [Case; 9] = [
        (&[2, 3], None, 0, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        (&[2, 3], None, 8, &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
        (&[2, 3], Some(&[1, 2]), 0, &[0.0, 2.0, 4.0, 1.0, 3.0, 5.0]),
        (&[2, 3], Some(&[-3, 1]), 12, &[3.0, 4.0, 5.0, 0.0, 1.0, 2.0]),
        (&[2, 3], Some(&[-3, -2]), 40, &[10.0, 8.0, 6.0, 7.0, 5.0, 3.0]),
        (&[2, 2], Some(&[0, 5]), 4, &[1.0, 6.0, 1.0, 6.0]),
        (&[], None, 4, &[1.0]),
        (&[1, 1], Some(&[i64::MAX, i64::MIN]), 4, &[1.0]),
        (&[3, 0], Some(&[1, 1]), 0, &[]),
    ];
    for (shape, strides, byte_offset, expected) in cases {
        let strides = strides.map(<[i64]>::to_vec);
        let (x, deleted) = Given { strides, byte_offset, ..Given::new(shape) }.take(&floats(12));
        let x = x.unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), expected);
        assert!(x.dims().iter().map(|&dim| dim as i64).eq(shape.iter().copied()));
        let view = x.unsqueeze(0).unwrap();
        drop(x);
        // Without elements there is nothing to keep.
        assert_eq!(deleted.load(Ordering::Relaxed), usize::from(expected.is_empty()));
        drop(view);
        assert_eq!(deleted.load(Ordering::Relaxed), 1);
    }
    let (x, deleted) = Given { byte_offset: 4, ..Given::new(&[4]) }.take(&floats(12));
    let x = x.unwrap();
    let part = x.narrow(0, 1, 2).unwrap();
    let mut changed = x.clone();
    drop(x);
    changed.add_assign(10.0).unwrap();
    assert_eq!(deleted.load(Ordering::Relaxed), 0);
    assert_eq!(part.to_vec::<f32>().unwrap(), [2.0, 3.0]);
    std::thread::spawn(move || drop(part)).join().unwrap();
    assert_eq!(deleted.load(Ordering::Relaxed), 1);
    assert_eq!(changed.to_vec::<f32>().unwrap(), [11.0, 12.0, 13.0, 14.0]);
}

#[test]
fn unaligned_data_are_copied() {
    let bytes: Vec<u8> = [9].into_iter().chain(floats(4)).collect();
    let given = Given { byte_offset: 9, strides: Some(vec![-2]), ..Given::new(&[2]) };
    let (x, deleted) = given.take(&bytes);
    assert_eq!(deleted.load(Ordering::Relaxed), 1);
    assert_eq!(x.unwrap().to_vec::<f32>().unwrap(), [2.0, 0.0]);
}

#[test]
fn every_dtype_comes_in() {
    let numbers: Vec<u8> = (1..9).collect();
    for (code, bits, dtype) in [
        (0, 8, DType::I8),
        (0, 16, DType::I16),
        (0, 32, DType::I32),
        (0, 64, DType::I64),
        (1, 8, DType::U8),
        (1, 16, DType::U16),
        (1, 32, DType::U32),
        (1, 64, DType::U64),
        (2, 16, DType::F16),
        (2, 32, DType::F32),
        (2, 64, DType::F64),
        (4, 16, DType::BF16),
    ] {
        let given = Given { dtype: DLDataType { code, bits, lanes: 1 }, ..Given::new(&[1]) };
        let x = given.take(&numbers).0.unwrap();
        assert_eq!((x.dtype(), x.as_bytes().unwrap()), (dtype, &numbers[..dtype.size()]));
    }
    let given = Given { dtype: DLDataType { code: 6, bits: 8, lanes: 1 }, ..Given::new(&[3]) };
    assert_eq!(given.take(&[0, 1, 0]).0.unwrap().to_vec::<bool>().unwrap(), [false, true, false]);
    // A byte between the elements is none of them.
    let given = Given { strides: Some(vec![2]), ..given };
    assert_eq!(
        given.take(&[1, 7, 0, 7, 1]).0.unwrap().to_vec::<bool>().unwrap(),
        [true, false, true]
    );
}

#[test]
fn what_cannot_be_a_tensor_is_an_error_and_deleted() {
    let given = Given::new(&[2]);
    let dtype =
        |code, bits, lanes| Given { dtype: DLDataType { code, bits, lanes }, ..given.clone() };
    for (given, expected) in [
        (Given { device: 2, ..given.clone() }, "device type 2"),
        (dtype(2, 32, 4), "type code 2 of 32 bits and 4 lanes"),
        (dtype(2, 8, 1), "type code 2 of 8 bits"),
        (dtype(0, 128, 1), "type code 0 of 128 bits"),
        (dtype(5, 64, 1), "type code 5"),
        (dtype(6, 8, 1), "invalid bool byte 128: expected 0 or 1"),
        (Given::new(&[-1, 2]), "a negative extent in [-1, 2]"),
        (Given::new(&[1; 9]), "9 axes"),
        (Given { ndim: Some(-1), ..given.clone() }, "-1 axes"),
        (Given { ndim: Some(1), ..Given::new(&[]) }, "the shape is null"),
        (Given::new(&[i64::MAX, i64::MAX]), "more elements"),
        (Given { strides: Some(vec![i64::MAX]), ..Given::new(&[3]) }, "overflow"),
        (Given { strides: Some(vec![i64::MIN]), ..Given::new(&[3]) }, "overflow"),
        (Given { null_data: true, ..given.clone() }, "2 elements at 0 bytes from 0x0"),
    ] {
        let (x, deleted) = given.take(&[128, 191, 0, 0, 0, 0, 0, 0]);
        let error = x.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(deleted.load(Ordering::Relaxed), 1);
    }
    let (dl_tensor, foreign, deleted) = given.tensor(&floats(2));
    let manager_ctx = Box::into_raw(foreign).cast();
    let version = DLPackVersion { major: 2, minor: 0 };
    let managed = DLManagedTensorVersioned {
        version,
        manager_ctx,
        deleter: Some(delete_new),
        flags: 0,
        dl_tensor,
    };
    // SAFETY: the managed tensor is one of another version, of which the deleter may be called.
    let error = unsafe { Tensor::from_dlpack(Box::into_raw(Box::new(managed))) }.unwrap_err();
    assert_eq!(error.to_string(), "from_dlpack: expected DLPack version 1, got 2.0");
    assert_eq!(deleted.load(Ordering::Relaxed), 1);
    // SAFETY: a null pointer is allowed.
    let error = unsafe { Tensor::from_dlpack(null_mut::<DLManagedTensor>()) }.unwrap_err();
    assert_eq!(error.to_string(), "from_dlpack: the pointer is null");
}

/// Elements, and a count of how often they were dropped.
struct Owner(Vec<f32>, Arc<AtomicUsize>);

impl AsRef<[f32]> for Owner {
    fn as_ref(&self) -> &[f32] {
        &self.0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn handles_free_what_they_hold_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let owned = || Tensor::from_owner(Owner(vec![1.0, 2.0], drops.clone()), 2).unwrap();
    let handle = owned().to_dlpack::<DLManagedTensorVersioned>().unwrap();
    // SAFETY: the handle owns a managed tensor.
    assert_eq!(unsafe { (*handle.as_ptr()).flags }, READ_ONLY);
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(handle);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    let managed = owned().to_dlpack::<DLManagedTensorVersioned>().unwrap().into_raw();
    // SAFETY: the managed tensor was handed over, and is freed once.
    unsafe { (*managed).deleter.unwrap()(managed) };
    assert_eq!(drops.load(Ordering::Relaxed), 2);
    // Memory of others is never written, so these are copies.
    let old = owned().to_dlpack::<DLManagedTensor>().unwrap();
    let new = owned().into_dlpack::<DLManagedTensorVersioned>().unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 4);
    // SAFETY: the handle owns a managed tensor.
    assert_eq!(unsafe { (*new.as_ptr()).flags }, IS_COPIED);
    drop((old, new));
}

#[test]
fn tensors_of_any_layout_go_out_and_come_back() {
    for x in layouts() {
        for x in [x.clone(), x.gt(20.0).unwrap(), x.to_dtype(DType::BF16).unwrap()] {
            let expected = x.contiguous().unwrap();
            let shared = x.to_dlpack::<DLManagedTensorVersioned>().unwrap();
            let copy = x.to_dlpack::<DLManagedTensor>().unwrap();
            // SAFETY: the handle owns a managed tensor.
            let tensor = unsafe { &(*shared.as_ptr()).dl_tensor };
            assert_eq!(tensor.data.is_null(), x.numel() == 0);
            // SAFETY: strides of as many axes.
            let strides = unsafe { std::slice::from_raw_parts(tensor.strides, 2) };
            assert!(strides.iter().zip(x.layout().strides()).all(|(a, &b)| *a == b as i64));
            // SAFETY: both are handed over.
            let back = unsafe {
                [Tensor::from_dlpack(shared.into_raw()), Tensor::from_dlpack(copy.into_raw())]
            };
            for y in back {
                let y = y.unwrap();
                assert_eq!((y.dtype(), y.shape()), (x.dtype(), x.shape()));
                assert_eq!(
                    y.contiguous().unwrap().as_bytes().unwrap(),
                    expected.as_bytes().unwrap()
                );
            }
        }
    }
}

#[test]
fn a_tensor_that_is_handed_over_is_written_in_place() {
    let x = Tensor::from_vec(vec![0f32; 10_000], (100, 100)).unwrap();
    let memory = super::address(&x);
    let handle = x.t().unwrap();
    drop(x);
    let handle = handle.into_dlpack::<DLManagedTensorVersioned>().unwrap();
    // SAFETY: the handle owns a managed tensor.
    let managed = unsafe { &*handle.as_ptr() };
    assert_eq!((managed.flags, managed.dl_tensor.data.addr()), (0, memory));
    // SAFETY: nothing else reads the 10,000 elements now.
    unsafe { managed.dl_tensor.data.cast::<f32>().add(1).write(7.0) };
    // SAFETY: the managed tensor is handed over.
    let x: Tensor = unsafe { Tensor::from_dlpack(handle.into_raw()).unwrap() };
    assert_eq!(x.view::<f32>().unwrap().get(&[1, 0]), Some(7.0));

    let shared = tensor![1.0, 2.0];
    let wide = Tensor::ones((1, 2), DType::F32).unwrap().expand((3, 2)).unwrap();
    for x in [shared.clone(), wide] {
        let handle = x.into_dlpack::<DLManagedTensorVersioned>().unwrap();
        // SAFETY: as above.
        let managed = unsafe { &*handle.as_ptr() };
        assert_eq!(managed.flags, IS_COPIED);
        assert_ne!(managed.dl_tensor.data.addr(), super::address(&shared));
    }
}
