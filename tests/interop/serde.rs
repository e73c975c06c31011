//! Tensors, shapes and dtypes in JSON and in postcard's bytes.

use swath::cpu::prelude::*;
use swath::{bf16, f16};

use super::layouts;

fn through_json(x: &Tensor) -> Tensor {
    serde_json::from_str(&serde_json::to_string(x).unwrap()).unwrap()
}

fn through_bytes(x: &Tensor) -> Tensor {
    postcard::from_bytes(&postcard::to_allocvec(x).unwrap()).unwrap()
}

#[test]
fn every_dtype_and_layout_comes_back() {
    for dtype in DType::ALL {
        for x in layouts() {
            let x = x.to_dtype(dtype).unwrap();
            for y in [through_json(&x), through_bytes(&x)] {
                assert_eq!((y.dtype(), y.shape()), (dtype, x.shape()));
                assert_eq!(y.as_bytes().unwrap(), x.contiguous().unwrap().as_bytes().unwrap());
            }
        }
    }
    for dims in [vec![], vec![0], vec![1, 0, 3], vec![1; 8]] {
        let x = Tensor::ones(dims, DType::F32).unwrap();
        assert_eq!((through_json(&x).shape(), through_bytes(&x).shape()), (x.shape(), x.shape()));
    }
}

#[test]
fn extreme_numbers_come_back_bit_for_bit() {
    let mut rng = Rng::seed(7);
    let mut bits =
        || Tensor::randint(4000, i64::MIN..i64::MAX, &mut rng).unwrap().to_vec::<i64>().unwrap();
    let doubles: Vec<f64> =
        bits().iter().map(|&bits| f64::from_bits(bits as u64)).filter(|x| !x.is_nan()).collect();
    let singles: Vec<f32> =
        bits().iter().map(|&bits| f32::from_bits(bits as u32)).filter(|x| !x.is_nan()).collect();
    let more = [0.1, -0.0, f64::MAX, f64::MIN_POSITIVE, 5e-324, f64::INFINITY, f64::NEG_INFINITY];
    let doubles: Vec<f64> = more.into_iter().chain(doubles).collect();
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).filter(|x| !x.is_nan()).collect();
    let brains: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).filter(|x| !x.is_nan()).collect();
    let mut integers = bits();
    integers.extend([i64::MIN, i64::MAX, (1 << 53) + 1]);
    let tensors = [
        Tensor::from_vec(doubles.clone(), doubles.len()).unwrap(),
        Tensor::from_vec(singles.clone(), singles.len()).unwrap(),
        Tensor::from_vec(halves.clone(), halves.len()).unwrap(),
        Tensor::from_vec(brains.clone(), brains.len()).unwrap(),
        Tensor::from_vec(integers.clone(), integers.len()).unwrap(),
    ];
    for x in tensors {
        assert_eq!(through_json(&x).as_bytes().unwrap(), x.as_bytes().unwrap(), "{}", x.dtype());
        assert_eq!(through_bytes(&x).as_bytes().unwrap(), x.as_bytes().unwrap(), "{}", x.dtype());
    }
    let text = serde_json::to_string(&tensor![f64; f64::NAN, 1.0, f64::NEG_INFINITY]).unwrap();
    assert_eq!(text, r#"{"dtype":"f64","shape":[3],"data":["NaN",1.0,"-inf"]}"#);
    let x: Tensor = serde_json::from_str(&text).unwrap();
    assert!(x.to_vec::<f64>().unwrap()[0].is_nan());
}

#[test]
fn fields_come_in_any_order_and_numbers_as_others_write_them() {
    let x: Tensor =
        serde_json::from_str(r#"{"data":[1, 2.5], "shape":[2], "dtype":"f32"}"#).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.5]);
    let x: Tensor = serde_json::from_str(r#"["u8", [1, 2], [0, 255]]"#).unwrap();
    assert_eq!((x.dims(), x.to_vec::<u8>().unwrap()), (&[1, 2][..], vec![0, 255]));
    assert_eq!(
        serde_json::to_string(&(DType::BF16, Shape::from((2, 3)))).unwrap(),
        r#"["bf16",[2,3]]"#
    );
    for dtype in DType::ALL {
        assert_eq!(
            serde_json::from_str::<DType>(&serde_json::to_string(&dtype).unwrap()).unwrap(),
            dtype
        );
    }
    let tracked = tensor![1.0].requires_grad();
    assert!(!through_json(&tracked).is_tracked());
}

#[test]
fn bad_text_is_an_error() {
    for (text, expected) in [
        (r#"{"dtype":"f33","shape":[1],"data":[1]}"#, "f33"),
        (r#"{"dtype":"f32","shape":[2],"data":[1]}"#, "1 values do not fill shape [2]"),
        (r#"{"dtype":"f32","shape":[9000000000000,900000000],"data":[1]}"#, "more elements"),
        (r#"{"dtype":"f32","shape":[4000000000000],"data":[]}"#, "0 values do not fill"),
        (r#"{"dtype":"f32","shape":[1,1,1,1,1,1,1,1,1],"data":[1]}"#, "at most 8 axes"),
        (r#"{"dtype":"f32","shape":[-1],"data":[1]}"#, "-1"),
        (r#"{"dtype":"f32","shape":[1],"data":[null]}"#, "null"),
        (r#"{"dtype":"f32","shape":[1],"data":["nan"]}"#, "nan"),
        (r#"{"dtype":"f32","shape":[1],"data":[true]}"#, "element 0 is not of type f32"),
        (r#"{"dtype":"bool","shape":[1],"data":[1]}"#, "element 0 is not of type bool"),
        (r#"{"dtype":"u8","shape":[2],"data":[255,256]}"#, "element 1 is not of type u8"),
        (r#"{"dtype":"u8","shape":[1],"data":[-1]}"#, "element 0 is not of type u8"),
        (r#"{"dtype":"i64","shape":[1],"data":[1.0]}"#, "element 0 is not of type i64"),
        (r#"{"dtype":"i64","shape":[1],"data":[9223372036854775808]}"#, "element 0"),
        (r#"{"dtype":"f32","shape":[1],"data":1}"#, "a list of numbers"),
        (r#"{"dtype":"f32","shape":[1]}"#, "data"),
        (r#"{"dtype":"f32","dtype":"f32","shape":[1],"data":[1]}"#, "dtype comes twice"),
        (r#"{"dtype":"f32","shape":[1],"data":[1],"more":1}"#, "more"),
        (r#"["f32",[1]]"#, "invalid length 2"),
    ] {
        let error = serde_json::from_str::<Tensor>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn bad_bytes_are_an_error() {
    let good = postcard::to_allocvec(&tensor![[1.0, 2.0]]).unwrap();
    // The dtype's name, the shape, and the data, each after its length.
    assert_eq!(good, [&[3][..], b"f32", &[2, 1, 2], &[8], &[0, 0, 128, 63, 0, 0, 0, 64]].concat());
    for end in 0..good.len() {
        assert!(postcard::from_bytes::<Tensor>(&good[..end]).is_err());
    }
    let huge =
        [&[3][..], b"f32", &[1], &[255, 255, 255, 255, 255, 255, 255, 255, 127], &[0]].concat();
    let long = [&[3][..], b"f32", &[255, 255, 255, 255, 255, 127], &[1]].concat();
    let other = [&[4][..], b"bool", &[1, 1, 1, 7]].concat();
    for bytes in [huge, long, other, vec![255; 30]] {
        assert!(postcard::from_bytes::<Tensor>(&bytes).is_err());
    }
}
