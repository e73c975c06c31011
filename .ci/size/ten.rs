use swath::prelude::*;

fn main() -> Result<()> {
    let mut rng = Rng::seed(1);
    let a = Tensor::<CpuBackend>::randn((4, 3), &mut rng)?;
    let b = Tensor::<CpuBackend>::randn((3, 4), &mut rng)?;
    let product = a.matmul(&b)?;
    println!("{product}");
    Ok(())
}
