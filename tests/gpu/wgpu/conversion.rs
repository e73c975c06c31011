//! Tensors that move between the CPU backend and a device.

use swath::prelude::*;
use swath::{AnyBackend, Device, WgpuBackend};

const DTYPES: [DType; 7] =
    [DType::F32, DType::F16, DType::I64, DType::I32, DType::U32, DType::U8, DType::Bool];

/// Views of a tensor: contiguous ones of any offset, a part, strided, reversed, of one element and of none.
fn views<B: Backend>(x: &Tensor<B>) -> Result<Vec<Tensor<B>>> {
    Ok(vec![
        x.clone(),
        x.narrow(0, 1, 3)?,
        x.slice(s![3])?,
        x.slice(s![2, 1..4])?,
        x.transpose(None)?,
        x.flip(1)?,
        x.slice(s![.., ..;2])?,
        x.slice(s![4, 6])?,
        x.narrow(1, 2, 0)?,
    ])
}

#[test]
fn conversions_keep_the_values_of_every_dtype_and_layout() -> Result<()> {
    let start = Tensor::<CpuBackend>::arange(0.0, 35.0, 1.0)?.reshape((5, 7))?;
    for dtype in DTYPES {
        let x = match dtype {
            DType::Bool => start.sin()?.gt(0.0)?,
            _ => start.to_dtype(dtype)?,
        };
        let values = |x: &Tensor<CpuBackend>| x.to_dtype(DType::F64)?.to_vec::<f64>();
        let there: Tensor<WgpuBackend> = x.to_backend()?;
        let any: Tensor<AnyBackend> = x.to_backend()?;
        for (i, (expected, view)) in views(&x)?.iter().zip(views(&there)?).enumerate() {
            let right = values(expected)?;
            let context = format!("{dtype:?}, view {i}");
            assert_eq!(values(&view.to_backend()?)?, right, "{context} from the device");
            let moved: Tensor<WgpuBackend> = expected.to_backend()?;
            assert_eq!(values(&moved.to_backend()?)?, right, "{context} to the device");
            let moved = views(&any)?[i].to_device(Device::Wgpu)?.to_device(Device::Cpu)?;
            assert_eq!(values(&moved.to_backend()?)?, right, "{context} by to_device");
        }
    }
    Ok(())
}
