//! Memory of others as storage: owners that are kept and dropped, views, bytes and vectors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::{bf16, f16};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Elements, and a count of how often they were dropped.
struct Owner<E>(Vec<E>, Arc<AtomicUsize>);

impl<E> AsRef<[E]> for Owner<E> {
    fn as_ref(&self) -> &[E] {
        &self.0
    }
}

impl<E> Drop for Owner<E> {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_owner_is_dropped_once_with_the_last_view() {
    let drops = Arc::new(AtomicUsize::new(0));
    let owner = Owner((0..6).map(|i| i as f32).collect(), drops.clone());
    let memory = owner.0.as_ptr();
    let x = T::from_owner(owner, (2, 3)).unwrap();
    assert_eq!(x.as_bytes().unwrap().as_ptr(), memory.cast());
    let column = x.narrow(1, 2, 1).unwrap();
    let (again, thread) = (x.clone(), x.t().unwrap());
    drop((x, again));
    std::thread::spawn(move || {
        assert_eq!(thread.to_vec::<f32>().unwrap(), [0., 3., 1., 4., 2., 5.])
    })
    .join()
    .unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    assert_eq!(column.to_vec::<f32>().unwrap(), [2.0, 5.0]);
    drop(column);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn an_owner_that_does_not_fit_is_dropped() {
    let drops = Arc::new(AtomicUsize::new(0));
    let error = T::from_owner(Owner(vec![1f32; 5], drops.clone()), (2, 3)).unwrap_err();
    assert!(error.to_string().contains("from_owner"), "{error}");
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    for (shape, strides, offset) in [
        (vec![2, 3], vec![3, 1], 1usize),
        (vec![2, 3], vec![3], 0),
        (vec![2, 3], vec![-3, 1], 2),
        (vec![2, 3], vec![isize::MAX, 1], 0),
        (vec![2, 3], vec![3, 1], usize::MAX),
        (vec![1 << 40, 1 << 40], vec![0, 0], 0),
    ] {
        let owner = Owner(vec![1f32; 6], drops.clone());
        let count = drops.load(Ordering::Relaxed);
        let error = T::from_owner_strided(owner, shape, &strides, offset).unwrap_err();
        assert!(error.to_string().contains("from_owner_strided"), "{error}");
        assert_eq!(drops.load(Ordering::Relaxed), count + 1);
    }
}

#[test]
fn strides_of_an_owner_may_be_negative_or_zero() {
    let numbers: Vec<i64> = (0..12).collect();
    let reversed = T::from_owner_strided(numbers.clone(), (2, 3), &[-6, -2], 11).unwrap();
    assert_eq!(reversed.to_vec::<i64>().unwrap(), [11, 9, 7, 5, 3, 1]);
    let repeated = T::from_owner_strided(numbers, (2, 2), &[0, 5], 1).unwrap();
    assert_eq!(repeated.to_vec::<i64>().unwrap(), [1, 6, 1, 6]);
    let empty =
        T::from_owner_strided(Vec::<f64>::new(), (0, 7), &[isize::MAX, isize::MIN], 9).unwrap();
    assert_eq!(empty.sum(None, false).unwrap().item::<f64>().unwrap(), 0.0);
}

#[test]
fn changes_in_place_leave_the_owner_alone() {
    let numbers: Arc<[f32]> = Arc::new([1.0, 2.0, 3.0, 4.0]);
    let mut x = T::from_owner(numbers.clone(), 4).unwrap();
    x.add_assign(1.0).unwrap();
    x.set_slice(s![0], 9).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [9.0, 3.0, 4.0, 5.0]);
    assert_eq!(*numbers, [1.0, 2.0, 3.0, 4.0]);
    let y = T::from_owner(numbers.clone(), 4).unwrap().exp().unwrap().neg().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap()[0], -1f32.exp());
    let mut leaf = T::from_owner(numbers.clone(), 4).unwrap().requires_grad();
    let gradients = leaf.square().unwrap().sum(None, false).unwrap().backward().unwrap();
    let mut sgd = swath::optim::Sgd::new(swath::optim::SgdOptions::default()).unwrap();
    swath::optim::Optimizer::step(&mut sgd, &mut leaf, &gradients).unwrap();
    assert_eq!(*numbers, [1.0, 2.0, 3.0, 4.0]);
    assert_ne!(leaf.to_vec::<f32>().unwrap(), *numbers);
}

/// Elements at an address that is a multiple of their size alone.
struct Apart<E>(Vec<E>);

impl<E> AsRef<[E]> for Apart<E> {
    fn as_ref(&self) -> &[E] {
        &self.0[1..]
    }
}

#[test]
fn operations_read_foreign_memory_as_their_own() {
    let mut rng = Rng::seed(3);
    let values = rng.uniform_vec::<f32>(2 * 6 * 8 + 1, -1.0..1.0).unwrap();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let own = T::from_slice(&values[1..], (2, 6, 8)).unwrap().to_dtype(dtype).unwrap();
        let shape = (2, 6, 8);
        let foreign = match dtype {
            DType::F32 => T::from_owner(Apart(values.clone()), shape),
            DType::F64 => {
                T::from_owner(Apart(values.iter().map(|&x| f64::from(x)).collect()), shape)
            }
            DType::F16 => {
                T::from_owner(Apart(values.iter().map(|&x| f16::from_f32(x)).collect()), shape)
            }
            _ => T::from_owner(Apart(values.iter().map(|&x| bf16::from_f32(x)).collect()), shape),
        }
        .unwrap();
        let bytes = |x: Result<T>| x.unwrap().contiguous().unwrap().as_bytes().unwrap().to_vec();
        let ops: [fn(&T) -> Result<T>; 10] = [
            |x| x.exp(),
            |x| x.add(&x.flip(2)?),
            |x| x.sum(Some(&[1]), false),
            |x| x.softmax(1),
            |x| x.matmul(&x.t()?),
            |x| x.permute(&[2, 0, 1]),
            |x| x.cumsum(0),
            |x| T::cat(&[x, x], 2),
            |x| Ok(x.sort(1, true)?.0),
            |x| x.to_dtype(DType::F32),
        ];
        for (i, op) in ops.iter().enumerate() {
            assert_eq!(bytes(op(&foreign)), bytes(op(&own)), "{dtype} {i}");
        }
    }
}

#[test]
fn bytes_of_every_dtype_make_the_tensor_again() {
    for dtype in DType::ALL {
        let x = T::arange_as(0.0, 6.0, 1.0, DType::I64).unwrap().to_dtype(dtype).unwrap();
        let x = x.reshape((2, 3)).unwrap();
        let again = T::from_bytes(dtype, (2, 3), x.as_bytes().unwrap()).unwrap();
        assert_eq!(again.as_bytes().unwrap(), x.as_bytes().unwrap());
        assert!(x.t().unwrap().as_bytes().unwrap_err().to_string().contains("as_bytes"));
        assert!(T::from_bytes(dtype, 7, x.as_bytes().unwrap()).is_err());
    }
    assert!(
        T::from_bytes(DType::Bool, 2, &[1, 2]).unwrap_err().to_string().contains("bool byte 2")
    );
    assert!(
        T::from_bytes(DType::F32, 1, &[0; 5]).unwrap_err().to_string().contains("whole elements")
    );
}

#[test]
fn a_vector_comes_back_without_a_copy() {
    let values: Vec<f64> = (0..5000).map(f64::from).collect();
    let memory = values.as_ptr();
    let x = T::from_vec(values, (50, 100)).unwrap().reshape(5000).unwrap();
    let vector = x.into_vec::<f64>().unwrap();
    assert_eq!((vector.as_ptr(), vector.len(), vector[4999]), (memory, 5000, 4999.0));
    // Shared, a part, permuted, computed, of another dtype, small.
    let x = T::from_vec(vector, (50, 100)).unwrap();
    let kept = x.clone();
    assert_eq!(x.into_vec::<f64>().unwrap(), kept.to_vec::<f64>().unwrap());
    assert_eq!(kept.narrow(0, 1, 1).unwrap().into_vec::<f64>().unwrap()[0], 100.0);
    assert_eq!(kept.t().unwrap().into_vec::<f64>().unwrap()[1], 100.0);
    assert_eq!(kept.neg().unwrap().into_vec::<f64>().unwrap()[2], -2.0);
    assert!(kept.into_vec::<f32>().is_err());
    assert_eq!(
        T::from_vec(vec![true, false], 2).unwrap().into_vec::<bool>().unwrap(),
        [true, false]
    );
}

#[test]
fn views_show_strides_and_elements() {
    let x = T::arange(0.0, 24.0, 1.0).unwrap().reshape((2, 3, 4)).unwrap();
    let y = x.permute(&[2, 0, 1]).unwrap().narrow(0, 1, 2).unwrap().flip(2).unwrap();
    let view = y.view::<f32>().unwrap();
    assert_eq!((view.dims(), view.strides()), (&[2, 2, 3][..], &[1, 12, -4][..]));
    assert!(view.iter().eq(y.to_vec::<f32>().unwrap()));
    assert_eq!(view.get(&[1, 0, 2]), Some(2.0));
    assert_eq!((view.get(&[2, 0, 0]), view.get(&[0, 0])), (None, None));
    assert_eq!(view.as_slice(), None);
    assert_eq!(x.view::<f32>().unwrap().as_slice().unwrap().len(), 24);
    assert!(x.view::<f64>().unwrap_err().to_string().contains("view"));
}

/// 0, 1, 2, … in layouts of many kinds.
fn counted() -> Vec<T> {
    let x = T::arange(0.0, 120.0, 1.0).unwrap().reshape((4, 6, 5)).unwrap();
    vec![
        x.permute(&[2, 0, 1]).unwrap(),
        x.flip(0).unwrap().narrow(1, 2, 3).unwrap(),
        x.flip(2).unwrap(),
        x.slice(s![1, ..;2, 2..4]).unwrap(),
        x.slice(s![1, 2]).unwrap(),
        x.slice(s![1, 2, 3]).unwrap(),
        x.narrow(2, 4, 1).unwrap(),
        x.narrow(2, 4, 1).unwrap().expand((4, 6, 3)).unwrap(),
        x.narrow(0, 3, 0).unwrap(),
        x.narrow(2, 5, 0).unwrap(),
        x.narrow(2, 5, 0).unwrap().narrow(0, 4, 0).unwrap(),
        x,
    ]
}

#[test]
fn rows_are_slices_along_the_last_axis() {
    let mut refused = 0;
    for x in counted() {
        let view = x.view::<f32>().unwrap();
        let len = x.dims().last().copied().unwrap_or(1);
        let rows = match view.rows() {
            Ok(rows) => rows.collect::<Vec<_>>(),
            Err(error) => {
                assert!(len > 1 && x.layout().strides().last() != Some(&1));
                assert!(error.to_string().ends_with("not 1: call contiguous()"), "{error}");
                refused += 1;
                continue;
            }
        };
        let count: usize = x.dims().iter().rev().skip(1).product();
        assert_eq!(rows.len(), count);
        assert!(rows.iter().all(|row| row.len() == len));
        assert_eq!(rows.concat(), x.to_vec::<f32>().unwrap());
    }
    assert_eq!(refused, 3);
}

#[test]
fn chunks_and_windows_are_those_of_slices() {
    for x in counted().iter().filter(|x| x.rank() > 0) {
        let view = x.view::<f32>().unwrap();
        let entries = x.unbind(0).unwrap();
        let entries: Vec<Vec<f32>> = entries.iter().map(|entry| entry.to_vec().unwrap()).collect();
        for n in [1, 2, 3, x.dims()[0].max(1), 7] {
            let chunks: Vec<_> = view.chunks(n).unwrap().collect();
            assert!(chunks.iter().all(|chunk| chunk.dims()[1..] == x.dims()[1..]));
            let values = |view: &swath::tensor::View<'_, f32>| view.iter().collect::<Vec<_>>();
            assert!(chunks.iter().map(values).eq(entries.chunks(n).map(<[Vec<f32>]>::concat)));
            let windows: Vec<_> = view.windows(n).unwrap().collect();
            assert!(windows.iter().map(values).eq(entries.windows(n).map(<[Vec<f32>]>::concat)));
        }
        assert_eq!(
            view.chunks(0).err().unwrap().to_string(),
            format!("chunks: expected at least 1 entry of shape {} at a time, got 0", x.shape())
        );
        assert!(view.windows(0).is_err());
    }
    let scalar = tensor![1.0].reshape(()).unwrap();
    assert_eq!(
        scalar.view::<f32>().unwrap().windows(2).err().unwrap().to_string(),
        "windows: shape []: there is no first axis"
    );
}

#[test]
fn functions_apply_to_every_element_of_any_layout() {
    for x in counted() {
        let y = x.map_elements(|x: f32| i64::from(x as i32) * 3).unwrap();
        let expected: Vec<i64> = x.to_vec::<f32>().unwrap().iter().map(|&x| 3 * x as i64).collect();
        assert_eq!((y.shape(), y.to_vec::<i64>().unwrap()), (x.shape(), expected));
        let even = x.map_elements(|x: f32| x % 2.0 == 0.0).unwrap();
        let back = even.map_elements(|x: bool| half::f16::from_f32(x.into())).unwrap();
        assert_eq!((even.dtype(), back.dtype()), (DType::Bool, DType::F16));
        let expected: Vec<bool> =
            x.to_vec::<f32>().unwrap().iter().map(|x| x % 2.0 == 0.0).collect();
        assert_eq!(back.to_dtype(DType::Bool).unwrap().to_vec::<bool>().unwrap(), expected);
    }
    let large = T::arange(0.0, 1e6, 1.0).unwrap().reshape((1000, 1000)).unwrap().t().unwrap();
    let y = large.map_elements(|x: f32| (x * 1e-3).sin()).unwrap();
    let expected =
        large.to_vec::<f32>().unwrap().iter().map(|x| (x * 1e-3).sin()).collect::<Vec<_>>();
    assert_eq!(y.to_vec::<f32>().unwrap(), expected);

    let error = large.map_elements(|x: f64| x).unwrap_err();
    assert!(error.to_string().starts_with("map_elements: dtypes f32"), "{error}");
    let tracked = tensor![1.0, 2.0].requires_grad();
    let error = tracked.map_elements(|x: f32| x).unwrap_err();
    assert!(matches!(error, Error::NoGradient { op: "map_elements", .. }), "{error}");
    assert_eq!(
        no_grad(|| tracked.map_elements(|x: f32| -x)).unwrap().to_vec::<f32>().unwrap(),
        [-1.0, -2.0]
    );
}
