//! `tensor!` and `s!`.

use swath::prelude::*;

#[test]
fn literals_and_slices_have_the_expected_values() -> Result<()> {
    let n = 3usize;
    let half = 0.5f64;
    let x = tensor![[1, 2.0, -3], [half, n, 1.0 / 4.0f32]];
    assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, -3.0, 0.5, 3.0, 0.25]);
    assert_eq!(x.dims(), [2, 3]);

    assert_eq!(tensor![i64; 1, 2].dtype(), DType::I64);
    assert_eq!(tensor![i64; 9_000_000_000].item::<i64>()?, 9_000_000_000);
    assert_eq!(tensor![f64; [0.1], [2]].to_vec::<f64>()?, [0.1, 2.0]);
    assert_eq!(tensor![bool; true, false].dtype(), DType::Bool);
    assert_eq!(tensor![f16; 1.5].dtype(), DType::F16);
    assert_eq!(tensor![u8; [255], [0]].dims(), [2, 1]);
    assert_eq!(tensor![[[[[[[[1]]]]]]]].rank(), 8);
    assert_eq!(tensor![].dims(), [0]);

    let x = Tensor::<CpuBackend>::arange(0., 24., 1.)?.reshape((2, 3, 4))?;
    assert_eq!(x.slice(s![1, .., ..;2])?.dims(), [3, 2]);
    assert_eq!(x.slice(s![-1, 0..n - 1, 3..;-1])?.dims(), [2, 4]);
    Ok(())
}
