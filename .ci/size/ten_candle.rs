use candle_core::{Device, Result, Tensor};

fn main() -> Result<()> {
    let device = Device::Cpu;
    let a = Tensor::randn(0f32, 1f32, (4, 3), &device)?;
    let b = Tensor::randn(0f32, 1f32, (3, 4), &device)?;
    let product = a.matmul(&b)?;
    println!("{product}");
    Ok(())
}
