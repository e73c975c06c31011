//! The backend that is chosen at run time: the tests of all backends on its default device, and its own.

use swath::nn::{Linear, Module};
use swath::ops::{BinaryOp, DropoutMask, FusedOp};
use swath::optim::{Adam, AdamOptions, Optimizer};
use swath::prelude::*;
use swath::{AnyBackend, Arg, Device, TensorData};

use crate::support::{alone, alone_with};

type T = Tensor<AnyBackend>;

crate::testing::backend_suite!(swath::AnyBackend);

/// The loss of a step of training, and the weights after it.
fn step<B: Backend>() -> Result<Vec<f32>> {
    let mut rng = Rng::seed(3);
    let x = Tensor::<B>::randn((8, 5), &mut rng)?;
    let mut model = Linear::new(5, 3, &mut rng)?;
    let mut optimizer = Adam::new(AdamOptions::default())?;
    let targets = Tensor::from_vec(vec![0i64, 1, 2, 0, 1, 2, 0, 1], 8)?;
    let y = model.forward(&x)?.gelu()?.dropout(DropoutMask { p: 0.3, seed: 5, stream: 1 })?;
    let loss = y.cross_entropy(&targets, CrossEntropy::default())?;
    let grads = loss.backward()?;
    optimizer.step(&mut model, &grads)?;
    let mut values = vec![loss.item::<f32>()?];
    values.extend(model.weight.to_vec::<f32>()?);
    Ok(values)
}

#[test]
fn a_step_has_the_bits_of_the_device() -> Result<()> {
    let here = AnyBackend::with_device(Device::Cpu, step::<AnyBackend>)?;
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&here), bits(&step::<CpuBackend>()?));
    let there = AnyBackend::with_device(Device::Reference, step::<AnyBackend>)?;
    for (x, y) in there.iter().zip(&here) {
        assert!((x - y).abs() <= 1e-5, "{x} {y}");
    }
    Ok(())
}

#[test]
fn operands_on_two_devices_are_an_error_that_names_both() -> Result<()> {
    let a = AnyBackend::with_device(Device::Cpu, || T::ones((2, 2), DType::F32))?;
    let b = AnyBackend::with_device(Device::Reference, || T::ones((2, 2), DType::F32))?;
    let index = AnyBackend::with_device(Device::Reference, || T::zeros((2, 2), DType::I64))?;
    let results = [
        a.add(&b),
        b.add(&a),
        a.clone().maximum(&b),
        a.lt(&b),
        a.lerp(&a, &b),
        T::where_cond(&a, &a, &b),
        a.matmul(&b),
        a.gather(0, &index),
        a.scatter_add(0, &index, &a),
        T::cat(&[&a, &b], 0),
        a.layer_norm(Some(&b.narrow(0, 0, 1)?.reshape(2)?), None, 1e-5),
        a.cross_entropy(&index.narrow(0, 0, 1)?.reshape(2)?, CrossEntropy::default()),
    ];
    for (i, result) in results.into_iter().enumerate() {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("cpu") && error.contains("reference"), "{i}: {error}");
        assert!(error.contains("to_device"), "{i}: {error}");
    }
    let moved = a.to_device(Device::Reference)?;
    assert_eq!((a.device(), moved.device()), (Device::Cpu, Device::Reference));
    assert_eq!(moved.add(&b)?.to_vec::<f32>()?, [2.0; 4]);
    assert!(a.requires_grad().to_device(Device::Reference).is_err());
    Ok(())
}

/// Owned operands stay the only handle of their storage, which is then written in place.
#[test]
fn owned_operands_are_written_in_place() -> Result<()> {
    let x = <AnyBackend as Backend>::from_vec(vec![1.0; 1000], 1000)?;
    let place = |x: &swath::AnyTensor| match x {
        swath::AnyTensor::Cpu(x) => x.as_slice::<f32>().unwrap().as_ptr(),
        _ => unreachable!("the default device"),
    };
    let before = place(&x);
    let y = AnyBackend::binary(BinaryOp::Add, Arg::Owned(x), Arg::Scalar(1.0.into()))?;
    assert_eq!(place(&y), before);
    Ok(())
}

#[test]
fn tensors_go_from_every_backend_to_every_other() -> Result<()> {
    let x = Tensor::<CpuBackend>::arange(0.0, 6.0, 1.0)?.reshape((2, 3))?.t()?;
    let any: T = x.to_backend()?;
    assert_eq!(any.device(), AnyBackend::device()?);
    let there: Tensor<ReferenceBackend> = any.to_backend()?;
    let back: Tensor<CpuBackend> = there.to_backend()?;
    let again: T = there.to_backend()?;
    assert_eq!(back.to_vec::<f32>()?, x.to_vec::<f32>()?);
    assert_eq!(again.to_vec::<f32>()?, x.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn fused_ops_name_all_their_operands() -> Result<()> {
    let [a, b, c] = [1.0, 2.0, 3.0].map(|x| CpuBackend::from_vec(vec![x], 1).unwrap());
    let op = FusedOp::LayerNorm { x: &a, weight: Some(&b), bias: Some(&c), eps: 0.1 };
    let values: Vec<f64> =
        op.operands().iter().map(|x| CpuBackend::item(x).unwrap().to_f64()).collect();
    assert_eq!(values, [1.0, 2.0, 3.0]);
    let mapped = op.try_map(|x| if std::ptr::eq(x, &a) { Ok(&c) } else { Err(x.numel()) });
    assert_eq!(mapped.unwrap_err(), 1);
    let mapped = op.try_map::<_, Error>(|_| Ok(&c))?;
    assert!(mapped.operands().iter().all(|x| std::ptr::eq(*x, &c)));
    assert_eq!(mapped.name(), "layer_norm");
    let without = FusedOp::LayerNorm { x: &a, weight: None, bias: Some(&c), eps: 0.1 };
    assert_eq!(without.operands().len(), 2);
    Ok(())
}

#[test]
fn the_default_device_is_chosen_once_for_all_threads() {
    alone("any::the_default_device_is_chosen_once_for_all_threads", || {
        assert_eq!(AnyBackend::device().unwrap(), Device::Cpu);
        AnyBackend::set_default(Device::Reference).unwrap();
        let there = std::thread::spawn(|| T::zeros(1, DType::F32).unwrap().device());
        assert_eq!(there.join().unwrap(), Device::Reference);
        let inside = AnyBackend::with_device(Device::Cpu, || T::zeros(1, DType::F32).unwrap());
        assert_eq!(inside.device(), Device::Cpu);
        assert_eq!(T::zeros(1, DType::F32).unwrap().device(), Device::Reference);
        assert!("gpu".parse::<Device>().unwrap_err().to_string().contains("cpu, reference, wgpu"));
        #[cfg(not(feature = "wgpu"))]
        {
            let error = AnyBackend::set_default(Device::Wgpu).unwrap_err().to_string();
            assert!(error.contains("wgpu: built without"), "{error}");
        }
    });
}

#[test]
fn a_wrong_name_in_the_environment_is_an_error() {
    let name = "any::a_wrong_name_in_the_environment_is_an_error";
    alone_with(name, &[("SWATH_DEVICE", "gpu")], || {
        let error = T::zeros(1, DType::F32).unwrap_err().to_string();
        assert!(error.contains("SWATH_DEVICE=gpu"), "{error}");
        let there = AnyBackend::with_device(Device::Reference, || T::zeros(1, DType::F32));
        assert_eq!(there.unwrap().device(), Device::Reference);
    });
}
