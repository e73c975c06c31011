//! Arrays of ndarray.

use ndarray::{
    ArcArray, Array, Array2, ArrayD, Axis, CowArray, Dimension, IxDyn, ShapeBuilder, array, s,
};
use swath::cpu::prelude::{DType, Tensor};

use super::{address, layouts};

fn counted() -> Array2<f32> {
    Array::from_iter((0..20_000).map(|i| i as f32)).into_shape_with_order((100, 200)).unwrap()
}

/// The elements in row-major order, by ndarray.
fn values(array: &ArrayD<f32>) -> Vec<f32> {
    array.iter().copied().collect()
}

#[test]
fn owned_arrays_of_any_layout_come_in_without_a_copy() {
    let mut sliced = counted();
    sliced.slice_collapse(s![10..;3, 20..;-7]);
    let mut flipped = counted();
    flipped.invert_axis(Axis(0));
    let fortran = Array2::from_shape_fn((300, 70).f(), |(i, j)| (7 * i + j) as f32);
    for array in [counted(), counted().reversed_axes(), sliced, flipped, fortran] {
        let array = array.into_dyn();
        let (expected, dims, first) = (values(&array), array.shape().to_vec(), array.as_ptr());
        let strides = array.strides().to_vec();
        let x = Tensor::from_ndarray(array).unwrap();
        assert_eq!((x.dims(), x.layout().strides()), (&dims[..], &strides[..]));
        let view = x.view::<f32>().unwrap();
        assert_eq!(&raw const view.storage()[view.layout().offset()], first);
        assert_eq!(x.to_vec::<f32>().unwrap(), expected);
    }
}

#[test]
fn arrays_with_owners_of_any_kind_come_in() {
    let expected = values(&counted().into_dyn());
    let arc: ArcArray<f32, _> = counted().into_shared();
    let first = arc.as_ptr();
    let shared = arc.clone();
    let copy = Tensor::from_ndarray(shared).unwrap();
    assert_ne!(address(&copy), first.addr());
    let moved = Tensor::from_ndarray(arc).unwrap();
    assert_eq!(address(&moved), first.addr());
    let array = counted();
    let view = Tensor::from_ndarray(array.view()).unwrap();
    let cow = Tensor::from_ndarray(CowArray::from(array.view())).unwrap();
    for x in [copy, moved, view, cow] {
        assert_eq!(x.to_vec::<f32>().unwrap(), expected);
    }
    let bools =
        Tensor::from_ndarray(array![[true, false], [false, false]].reversed_axes()).unwrap();
    assert_eq!(
        (bools.dtype(), bools.to_vec::<bool>().unwrap()),
        (DType::Bool, vec![true, false, false, false])
    );
}

#[test]
fn extents_of_zero_and_one_and_no_axes_come_in_and_go_out() {
    for dims in [vec![], vec![0], vec![1], vec![3, 0, 2], vec![1, 4, 1], vec![1; 8]] {
        let array =
            ArrayD::from_shape_fn(IxDyn(&dims), |index| index.slice().iter().sum::<usize>() as f32);
        let x = Tensor::from_ndarray(array.clone().reversed_axes()).unwrap();
        let x = x.transpose(Some(&(0..dims.len()).rev().collect::<Vec<_>>())).unwrap();
        assert_eq!(x.dims(), dims);
        assert_eq!(x.view::<f32>().unwrap().ndarray().unwrap(), array);
        assert_eq!(x.into_ndarray::<f32>().unwrap(), array);
    }
    let error = Tensor::from_ndarray(ArrayD::<f32>::zeros(IxDyn(&[1; 9]))).unwrap_err();
    assert_eq!(error.to_string(), "from_ndarray: 9 axes, at most 8 are supported");
}

#[test]
fn views_of_any_layout_are_arrays_without_a_copy() {
    for x in layouts() {
        let view = x.view::<f32>().unwrap();
        let array = view.ndarray().unwrap();
        assert_eq!(array.shape(), x.dims());
        for (index, value) in array.indexed_iter() {
            assert_eq!(view.get(index.slice()), Some(*value));
            assert!(view.storage().as_ptr_range().contains(&&raw const *value));
        }
        assert_eq!(array.len(), x.numel());
    }
}

#[test]
fn the_memory_of_an_array_in_order_is_the_tensors_own_and_goes_out_again() {
    let array = counted();
    let first = array.as_ptr();
    let mut x = Tensor::from_ndarray(array).unwrap();
    x.add_assign(1.0).unwrap();
    let array = x.into_ndarray::<f32>().unwrap();
    assert_eq!((array.as_ptr(), array[[99, 199]]), (first, 20_000.0));
    let error = Tensor::from_ndarray(counted()).unwrap().into_ndarray::<f64>().unwrap_err();
    assert!(error.to_string().starts_with("into_vec: dtypes f32"), "{error}");
}
